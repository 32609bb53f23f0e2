"""`make demo` as somebody who has just cloned the repository sees it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from integration.servers import static_server
from integration.tools import require_tool
from workspaces import PROJECT, Program, git

if TYPE_CHECKING:
    from pathlib import Path


def test_the_demo_publishes_what_pip_installs(tmp_path: Path) -> None:
    require_tool("make")
    clone = tmp_path / "a clone"
    git(tmp_path, "clone", "--quiet", str(PROJECT), str(clone))
    (tmp_path / "home").mkdir()
    environment = Program(tmp_path / "home").full_environment

    def demo() -> str:
        done = subprocess.run(
            ["make", "demo"],
            cwd=clone,
            env=environment,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    out = demo()
    simple = clone / "build" / "demo-registry" / "pypi" / "simple"
    names = sorted(path.name for path in simple.iterdir() if path.is_dir())
    assert len(names) >= 4
    assert all(f"pypi:{name}" in out for name in names)
    assert "already published" in demo()
    assert git(clone, "status", "--porcelain") == ""

    with static_server(clone / "build" / "demo-registry" / "pypi") as url:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
        where = ["--target", str(tmp_path / "into"), "--index-url", f"{url}/simple/"]
        subprocess.run([*install, *where, *names], check=True, timeout=300)
