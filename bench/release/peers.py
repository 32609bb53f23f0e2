"""The tools that are compared, fetched by the lock files in `peers/` into a folder of their own:
nothing of it is part of what is released.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
LOCKS: Final = Path(__file__).with_name("peers")
_MACHINE: Final = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")
_NODE: Final = f"node-{platform.system().lower()}-{_MACHINE}"
_PNPM: Final = f"@pnpm/exe.{platform.system().lower()}-{_MACHINE}"


@dataclass(frozen=True)
class Peers:
    """`directory` holds node_modules, an environment with twine, and links to node and uv."""

    directory: Path

    @property
    def modules(self) -> Path:
        return self.directory / "node_modules"

    @property
    def path(self) -> str:
        """PATH with the same node and uv for all of them, us included."""
        return f"{self.directory / 'bin'}:{os.environ['PATH']}"

    def js(self, package: str, script: str) -> list[str]:
        return [str(self.directory / "bin" / "node"), str(self.modules / package / script)]

    @property
    def pnpm(self) -> list[str]:
        return [str(self.modules / _PNPM / "pnpm")]

    @property
    def twine(self) -> list[str]:
        return [str(self.directory / "python" / "bin" / "twine")]

    @property
    def npm_modules(self) -> str:
        """Where npm keeps the libraries that it packs with."""
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm is not installed")
        return str(Path(npm).resolve().parents[1] / "node_modules")

    def versions(self) -> dict[str, str]:
        """Of what is compared, and of what both sides use."""
        listed = json.loads((LOCKS / "package.json").read_text())["dependencies"]
        found = {name: str(version) for name, version in listed.items()}
        pinned = (LOCKS / "requirements.txt").read_text()
        found["twine"] = _number(re.search(r"^twine==\S+", pinned, re.MULTILINE))
        for name, argv in {
            "node": ["node", "--version"],
            "npm": ["npm", "--version"],
            "uv": ["uv", "--version"],
            "cargo": ["cargo", "--version"],
            "Maven": ["mvn", "--version"],
            "Java": ["java", "--version"],
            "Go": ["go", "version"],
            "git": ["git", "--version"],
        }.items():
            environment = {**os.environ, "PATH": self.path}
            if shutil.which(argv[0], path=self.path):
                done = subprocess.run(
                    argv, env=environment, capture_output=True, text=True, check=True
                )
                found[name] = _number(re.search(r"\d+\.\d[\w.]*", done.stdout))
        return {**found, "Python": platform.python_version()}


def _number(found: re.Match[str] | None) -> str:
    return found[0].removeprefix("twine==") if found else "unknown"


def fetched(directory: Path) -> Peers:
    """Does nothing where everything is there already."""
    directory = directory.resolve()
    peers = Peers(directory)
    wanted = b"".join(
        (LOCKS / name).read_bytes() for name in ("package-lock.json", "requirements.txt")
    )
    done = directory / "fetched"
    if done.exists() and done.read_bytes() == wanted:
        return peers
    print(f"fetching the tools to compare with into {directory}", flush=True)
    binaries = directory / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / name, directory / name)
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    # Not `npm ci`, which wants the optional packages of every other platform in the lock as well.
    subprocess.run(["npm", "install", "--no-save", *quiet], cwd=directory, check=True)
    uv = Path(shutil.which("uv") or Path(sys.executable).with_name("uv"))
    for name, target in {"node": peers.modules / _NODE / "bin" / "node", "uv": uv}.items():
        (binaries / name).unlink(missing_ok=True)
        (binaries / name).symlink_to(target)
    python = directory / "python"
    made: list[str | Path] = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, python]
    subprocess.run(made, check=True)
    requirements: list[str | Path] = [
        "--require-hashes",
        "--requirements",
        LOCKS / "requirements.txt",
    ]
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", python, *requirements]
    subprocess.run(install, check=True)
    done.write_bytes(wanted)
    return peers
