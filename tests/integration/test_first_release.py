"""docs/first-release.md, as its reader follows it: every command, in its order, in one shell."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from documents import BIN, ROOT, blocks
from workspaces import PROJECT, Program, git

if TYPE_CHECKING:
    from pathlib import Path


def test_its_commands_do_what_it_says(tmp_path: Path) -> None:
    forge, desk = tmp_path / "github", tmp_path / "desk"
    git(tmp_path, "clone", "--quiet", "--bare", str(PROJECT), str(forge / "org/releasekit-action"))
    git(forge / "org/releasekit-action", "tag", "--force", "v1")
    git(tmp_path, "init", "--quiet", "--bare", str(forge / "your-name/my-packages"))
    desk.mkdir()
    environment = Program(tmp_path / "home").full_environment
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.gitconfig").write_text(
        f'[url "file://{forge}/"]\n insteadOf = https://github.com/\n'
        "[user]\n name = Reader\n email = reader@example.org\n"
    )
    page = list(blocks(ROOT / "docs/first-release.md"))
    # What is on pypi.org is no matter of a test.
    commands = "".join(each.text for each in page if each.language == "sh")
    commands = commands.replace("releasekit plan\n", "releasekit plan --registry dir:../pypi.org\n")
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=desk,
        env={**environment, "PATH": f"{BIN}:{environment['PATH']}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for answer in (each.text for each in page if each.language == "text"):
        for line in answer.replace("/home/you", str(desk)).splitlines():
            # What this machine has for a sandbox differs.
            assert ("builds: " if line.startswith("builds: ") else line) in done.stdout
    assert "detached HEAD" not in done.stderr
    assert "pypi:your-name-greet" in done.stdout
    released = git(forge / "your-name/my-packages", "ls-tree", "-r", "--name-only", "v1")
    assert ".github/workflows/release.yml" in released.splitlines()
    for name in released.splitlines():
        if name.endswith((".md", ".toml")):
            assert "acme-" not in git(forge / "your-name/my-packages", "show", f"v1:{name}")
