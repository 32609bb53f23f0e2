"""Go modules that go to /v2: their paths are changed by hand, as the refusal says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from integration.tools import require_tool
from releasekit.__main__ import main
from versions.test_version_command import bare_environment, commit, lines, repository
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["bare_environment"]

SDK = "example.com/acme/sdk"
FILES = {
    "sdk/go.mod": f"module {SDK}\n\ngo 1.22\n",
    "sdk/VERSION": "v1.2.0\n",
    "sdk/sdk.go": f'package sdk\n\nimport "{SDK}/inner"\n\nconst Name = inner.Name\n',
    "sdk/inner/inner.go": 'package inner\n\nconst Name = "n"\n',
    "releasekit.toml": '[go]\nversion-file = "VERSION"\n',
}


def test_a_module_gets_the_path_of_its_next_major_version_by_the_command_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R61: nothing is written before; afterwards its changes are counted on."""
    go = require_tool("go")
    root = tmp_path / "w"
    repository(root, FILES)
    git(root, "tag", "sdk/v1.2.0")
    commit(root, "feat(sdk)!: contexts everywhere (#97)", {"sdk/inner/more.go": "package inner\n"})
    assert main(["version", str(root)]) == 3
    said = capsys.readouterr().err
    assert git(root, "status", "--porcelain") == ""
    named = re.search(
        r"Run `(go [^`]+)`, write (\S+) in all imports, and 2\.0\.0 in (\S+)\.\n", said
    )
    assert named is not None, said
    command, path, place = named.groups()
    assert (path, place) == (f"{SDK}/v2", "sdk/VERSION")
    subprocess.run([go, *shlex.split(command)[1:]], cwd=root, check=True)
    source = root / "sdk/sdk.go"
    source.write_text(source.read_text().replace(SDK, path))
    (root / place).write_text("v2.0.0\n")
    offline = {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=mod"}
    subprocess.run([go, "vet", "./..."], cwd=root / "sdk", check=True, env=offline)
    commit(root, "feat(sdk)!: the path of version 2", {})
    lines(capsys)
    assert main(["version", str(root), "--dry-run"]) == 0
    assert f"{SDK}/v2  v1.2.0 → v2.0.0" in capsys.readouterr().out
