"""What the action installs is all that the program imports, for a release and to verify one."""

from __future__ import annotations

import subprocess
import sys
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
