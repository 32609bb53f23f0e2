"""What the action installs, and what the wheel holds, is all that the program takes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]

# Imports every module of ours, and uses the client once, which imports the rest of its own, while
# no distribution can be imported that the lock file of the action does not name.
IMPORTS = """
import asyncio, importlib, pkgutil, re, sys
from importlib import metadata

def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()

lock = open(sys.argv[1], encoding="utf-8").read()
installed = set(re.findall(r"^([\\w.-]+)==", lock, re.MULTILINE))
left_out = {
    module
    for module, owners in metadata.packages_distributions().items()
    if not {*map(canonical, owners)} & {*installed, "releasekit-action"}
}
sys.modules.update(dict.fromkeys(left_out))  # None is "not to be found"
assert {"pygments", "markdown_it"} <= left_out, left_out

import httpx, yaml
from rich.console import Console
from rich.table import Table
import releasekit
from releasekit.http.client import http_client

verifier = "releasekit.provenance.verifier"
for module in pkgutil.walk_packages(releasekit.__path__, "releasekit."):
    if module.name != verifier:
        importlib.import_module(module.name)
assert "sigstore" in left_out or "sigstore" not in sys.modules
if "sigstore" in installed:
    importlib.import_module(verifier)

async def ask():
    async with http_client() as client:
        try:
            await client.get("https://127.0.0.1:1/", timeout=9)
        except httpx.TransportError:
            pass

asyncio.run(ask())
table = Table("name")
table.add_row("[b]acme[/b]")
Console(file=open("/dev/null", "w"), force_terminal=True).print(table)
"""


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-verify.lock"])
def test_nothing_is_imported_that_the_lock_file_leaves_out(lock: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, str(PROJECT / lock)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


STARTS = """
import sys
from importlib.metadata import distribution
script, *sys.argv[1:] = sys.argv[1:]
sys.exit(distribution("releasekit-action").entry_points[script].load()())
"""


def test_the_wheel_has_all_files_and_starts_by_either_name(tmp_path: Path) -> None:
    """`uvx releasekit-action` looks for a script of the package's own name."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*build, "--directory", str(tmp_path)], cwd=PROJECT, check=True)
    source, site, workspace = PROJECT / "src", tmp_path / "site", tmp_path / "workspace"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    assert {
        path.relative_to(source)
        for path in (source / "releasekit").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    } == {path.relative_to(site) for path in (site / "releasekit").rglob("*") if path.is_file()}
    workspace.mkdir()
    (workspace / "package.json").write_text('{"name": "acme-ui", "version": "1.0.0"}')
    registry = f"--registry=dir:{tmp_path / 'registry'}"
    started = [
        subprocess.run(
            [sys.executable, "-c", STARTS, script, "plan", str(workspace), registry],
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for script in ("releasekit", "releasekit-action")
    ]
    assert [said.startswith("package ") for said in started] == [True, True]
