"""A real npm registry on loopback: verdaccio, installed once by the ordinary npm client."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import shutil
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from integration.servers import PASSWORD, USERNAME, free_port, recorded, running
from integration.tools import require_tool
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from integration.recorder import Recorder

_MACHINE: Final = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")
# Verdaccio wants Node 22 or later, which comes as an npm package.
NODE: Final = f"node-{platform.system().lower()}-{_MACHINE}"
_BUN: Final = NODE.replace("node", "bun")
_INSTALLED: Final = {
    "private": True,
    "dependencies": {"verdaccio": "^6.8.0", NODE: "24.21.0", "pnpm": "10.34.9"},
    "overrides": {"node-fetch": "2.7.0"},
}
# Stages as npmjs.com does, and takes no code. https://verdaccio.org/docs/staged-publishing
_STAGING: Final = {"private": True, "dependencies": {"verdaccio": "9.0.0-next-9.31"}}
_CONFIG: Final = """\
storage: {directory}/storage
uplinks: {{}}
packages:
  '@*/*': {{ access: $all, publish: $authenticated }}
  '**': {{ access: $all, publish: $authenticated }}
auth:
  htpasswd: {{ file: {directory}/htpasswd }}
security:
  api:
    # Its default token costs a bcrypt for each request.
    jwt: {{ sign: {{ expiresIn: 60d }} }}
web: {{ enable: false }}
middlewares: {{ audit: {{ enabled: false }} }}
log: {{ type: stdout, level: warn }}
"""


@dataclass(frozen=True)
class Verdaccio:
    """`url` leads through `recorder`, whose tarball addresses it keeps."""

    url: str
    token: str
    recorder: Recorder
    storage: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"RELEASEKIT_NPM_TOKEN": self.token}

    def empty(self) -> None:
        """Forget everything: verdaccio reads its files for each request."""
        for path in self.storage.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        self.recorder.start_over()


def tools() -> Path:
    """The node_modules with verdaccio, a node that it runs on, and pnpm."""
    return installed("verdaccio", _INSTALLED)


def installed(name: str, wanted: Mapping[str, object]) -> Path:
    """The node_modules of a package.json, kept in the cache under `name`."""
    # An older one takes the tag in `npm:node-fetch@cjs` for a range, and fails.
    require_tool("npm", "9.4.2" if "overrides" in wanted else "")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = cache / "releasekit-tests" / name
    directory.mkdir(parents=True, exist_ok=True)
    manifest = json.dumps(wanted)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may want it at once
        done = directory / "installed.json"
        if not done.exists() or done.read_text() != manifest:
            (directory / "package.json").write_text(manifest)
            install = [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--loglevel=error",
            ]
            subprocess.run(install, cwd=directory, check=True, timeout=PATIENCE_S)
            done.write_text(manifest)
    return directory / "node_modules"


def pnpm() -> list[str]:
    modules = tools()
    return [str(modules / NODE / "bin" / "node"), str(modules / "pnpm" / "bin" / "pnpm.cjs")]


def bun() -> Path:
    """The program itself, as the script of the package that would put it in place does not run.
    https://www.npmjs.com/package/bun
    """
    wanted = {"private": True, "dependencies": {f"@oven/{_BUN}": "1.4.5"}}
    return installed("bun", wanted) / "@oven" / _BUN / "bin" / "bun"


@contextlib.contextmanager
def verdaccio(directory: Path, *, staging: bool = False) -> Iterator[Verdaccio]:
    """An empty registry with one user."""
    modules = installed("verdaccio-staging", _STAGING) if staging else tools()
    storage = directory / "storage"
    storage.mkdir(parents=True)
    config = directory / "config.yaml"
    flags = "flags: { stage: true, createUser: true }\n" if staging else ""
    config.write_text(_CONFIG.format(directory=directory) + flags)
    port = free_port()
    # With more threads, that preview may read a file before it knows its length, and then dies
    # of a header that comes too late.
    alone = ("env", "UV_THREADPOOL_SIZE=1") if staging else ()
    argv: list[str | Path] = [*alone, tools() / NODE / "bin" / "node"]
    argv += [modules / "verdaccio" / "bin" / "verdaccio"]
    argv += ["--config", config, "--listen", f"127.0.0.1:{port}"]
    origin = f"http://127.0.0.1:{port}"
    ready = running(argv, log=directory / "log", ready=f"{origin}/-/ping")
    with ready, recorded(origin) as seen:
        yield Verdaccio(f"{seen.url}/", _token(origin), seen, storage)


def _token(origin: str) -> str:
    """Of the account that this creates."""
    return _put(origin, {"name": USERNAME, "password": PASSWORD})["token"]


def _put(origin: str, account: Mapping[str, str]) -> dict[str, str]:
    request = urllib.request.Request(
        f"{origin}/-/user/org.couchdb.user:{USERNAME}",
        json.dumps(account).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        answer: dict[str, str] = json.load(response)
        return answer
