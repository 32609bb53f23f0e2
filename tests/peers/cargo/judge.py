"""Cargo itself, asked of what a scenario wrote."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from peers.cargo import empty

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ENVIRONMENT: Final = {"CARGO_TERM_COLOR": "never", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    error: str


def run(root: Path, *arguments: str) -> Said:
    done = subprocess.run(
        ["cargo", *arguments],
        cwd=root,
        env=os.environ | _ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def read_metadata(root: Path) -> list[dict[str, Any]] | None:
    """The packages of a workspace, None where cargo refuses it."""
    said = run(root, "metadata", "--format-version", "1", "--no-deps")
    if said.code:
        return None
    packages: list[dict[str, Any]] = json.loads(said.out)["packages"]
    return packages


def package(root: Path, names: Iterable[str], target: Path) -> Said:
    """Without compiling them; into `target`/package."""
    argv = ["package", "--no-verify", "--allow-dirty", "--target-dir", str(target)]
    # What it has packaged itself counts as there, in place of what stands in for crates.io.
    argv += ["--index", f"sparse+{empty.serve()}"]
    return run(root, *argv, *(f"--package={name}" for name in names))
