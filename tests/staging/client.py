"""npm's own client, of a version that knows `npm stage`, on a machine of its own."""

from __future__ import annotations

import os
import pty
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from integration.tools import require_tool
from integration.verdaccio import NODE, installed, tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NPM: Final = "11.19.1"


@dataclass(frozen=True, kw_only=True)
class Client:
    """`home` is where everything of it stays, `token` whom it speaks for."""

    home: Path
    url: str
    token: str
    environment: Mapping[str, str]

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_npm(), *arguments],
            cwd=cwd or self.home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def out(self, *arguments: str, cwd: Path | None = None) -> str:
        """What it prints where it succeeds."""
        done = self.run(*arguments, cwd=cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def at_a_terminal(self, *arguments: str) -> tuple[int, str]:
        """Exit code and everything that a person would have seen."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [*_npm(), *arguments],
            cwd=self.home,
            env=self._environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            seen = b""
            try:
                while chunk := os.read(ours, 65536):
                    seen += chunk
            except OSError:
                pass  # Linux ends a terminal that nobody has open any more with EIO
            finally:
                os.close(ours)
        return process.returncode, seen.decode(errors="replace").replace("\r\n", "\n")

    def _environment(self) -> dict[str, str]:
        config = self.home / "npmrc"
        place = self.url.partition(":")[2]
        credentials = f"{place}:_authToken={self.token}\n" if self.token else ""
        config.write_text(f"registry={self.url}\n{credentials}")
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "npm_config_userconfig": str(config),
            "npm_config_cache": str(self.home / "cache"),
            "npm_config_update_notifier": "false",
            "npm_config_fetch_retries": "0",
            **self.environment,
        }


def _npm() -> list[str]:
    require_tool("npm")
    node = tools() / NODE / "bin" / "node"
    npm = installed(f"npm-{NPM}", {"private": True, "dependencies": {"npm": NPM}})
    return [str(node), str(npm / "npm" / "bin" / "npm-cli.js")]
