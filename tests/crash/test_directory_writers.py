"""Processes that publish into one directory at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import asyncio, pathlib, sys
import distributions
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.pypi.directory_layout import SimpleDirectory

registry = DirectoryRegistry(pathlib.Path(sys.argv[1]), SimpleDirectory())
for name in sys.argv[3:]:
    for version in ("1.0", "2.0"):
        package = distributions.package(name.partition("/")[0], version + "." + name[-1])
        built = distributions.both(pathlib.Path(sys.argv[2], name, version), package)
        asyncio.run(registry.upload(package, built))
"""


def test_processes_lose_no_link_to_each_other(tmp_path: Path) -> None:
    """Three writers share one project, and each has some of its own."""
    root = tmp_path / "registry"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, root, tmp_path / "dist", *names],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for names in (["both/1", "one/1"], ["both/2", "two/1"], ["both/3", "three/1"])
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    projects = json.loads((root / "simple/index.json").read_bytes())["projects"]
    assert projects == [{"name": name} for name in ("both", "one", "three", "two")]
    page = json.loads((root / "simple/both/index.json").read_bytes())
    assert len(page["files"]) == 12
    assert (root / "simple/both/index.html").read_text().count("<a ") == 12
