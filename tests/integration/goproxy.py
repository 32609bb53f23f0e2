"""A real module proxy, https://github.com/goproxy/goproxy, in front of a real git remote."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from go_workspaces import Forge, forge, go_environment
from integration.servers import free_port, recorded, running
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.recorder import Recorder

VERSION = "v0.16.0"
PACKAGE = "github.com/goproxy/goproxy/cmd/goproxy"


@dataclass(frozen=True, kw_only=True)
class GoProxy:
    """`url` leads through `recorder` to a proxy that fetches from `forge`."""

    url: str
    recorder: Recorder
    forge: Forge

    @property
    def environment(self) -> dict[str, str]:
        """What a release takes: git finds the remote."""
        return {"GIT_CONFIG_GLOBAL": str(self.forge.home / ".gitconfig")}


def installed() -> Path:
    """The program, built once per machine from the sources the Go proxy has."""
    require_tool("go")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "releasekit-tests" / f"goproxy-{VERSION}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
            # Not `go install …@version`: that asks for a list of versions too, which mirrors with
            # a fixed set of modules do not have.
            module = f"module server\n\ngo 1.22\n\nrequire github.com/goproxy/goproxy {VERSION}\n"
            Path(scratch, "go.mod").write_text(module)
            subprocess.run(
                ["go", "build", "-mod=mod", "-o", "built", PACKAGE],
                cwd=scratch,
                env={**os.environ, "GOFLAGS": "-modcacherw"},
                check=True,
                timeout=600,
            )
            shutil.move(Path(scratch, "built"), program)
    return program


@contextlib.contextmanager
def goproxy(directory: Path) -> Iterator[GoProxy]:
    """An empty one."""
    made = forge(directory)
    port = free_port()
    # It only ever fetches from git, as the go command of this machine does it.
    settings = go_environment(made.home, GOPROXY="direct", GIT_TERMINAL_PROMPT="0")
    argv: list[str | Path] = ["env", *(f"{name}={value}" for name, value in settings.items())]
    argv += [installed(), "server", "--address", f"127.0.0.1:{port}"]
    argv += ["--cacher-dir", directory / "cache", "--temp-dir", directory]
    origin = f"http://127.0.0.1:{port}"
    # What it has in its cache it serves at once: the only good answer of an empty one.
    known = directory / "cache" / "ready.test" / "m" / "@v" / "v1.0.0.info"
    known.parent.mkdir(parents=True)
    known.write_text('{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}')
    ready = f"{origin}/ready.test/m/@v/v1.0.0.info"
    with running(argv, log=made.home / "log", ready=ready), recorded(origin) as seen:
        yield GoProxy(url=f"{seen.url}/", recorder=seen, forge=made)
