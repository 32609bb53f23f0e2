"""A release in miniature over the real code, made to be killed.

    python -ISB workload.py SOURCES release|recover|shorten|version DIRECTORY

It says on its output what it may rely on from then on: what `tests/crash` holds it to.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

if __name__ == "__main__":
    sys.path[:0] = sys.argv[1].split(os.pathsep)

from releasekit.model import Artifact, Outcome, Package, PackageId
from releasekit.state import locks, pins
from releasekit.state.journal import Journal

T = TypeVar("T")

ECOSYSTEM = "pypi"
PINNED = {"a.toml": b">=1", "packages/b.toml": b">=1", "packages/same.toml": b"absent"}
WHEEL = b"wheel " * 2000


async def _at_once(function: Callable[..., T], *arguments: object) -> T:
    return function(*arguments)


def manifests(root: Path) -> Mapping[Path, bytes]:
    """What each manifest is pinned to."""
    return {
        root / name: (root / name).read_bytes().replace(old, b"==2.0.0")
        for name, old in PINNED.items()
    }


async def release(root: Path) -> None:
    state = root / ".releasekit"
    with locks.acquire(state, [ECOSYSTEM]):
        pins.recover(state, [ECOSYSTEM], root=root)
        _say("recovered")
        journal = Journal.open(state, run_id=f"run-{len(list(state.glob('dist/**/*.whl')))}")
        await _publish(journal, root, state)
        journal.close()


async def _publish(journal: Journal, root: Path, state: Path) -> None:
    package = Package(
        id=PackageId(ECOSYSTEM, "b"),
        version="2.0.0",
        directory=root / "packages",
        manifest=root / "packages" / "b.toml",
    )
    journal.run_started(
        plan_digest="p", commit="c", tool="1.0.0", started_at="2026", ecosystems=[ECOSYSTEM]
    )
    with pins.EphemeralPin(state, manifests(root), ecosystem=ECOSYSTEM, root=root):
        _say("pinned")
        journal.phase_started("build pypi:b")
        wheel = state / "dist" / ECOSYSTEM / "b" / "2.0.0" / "b.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        wheel.write_bytes(WHEEL)
    _say("restored")
    artifact = Artifact(path=wheel, size=len(WHEEL), digests={"sha256": "0" * 64})
    await journal.built(package, [artifact])
    journal.phase_ended("build pypi:b", duration_s=1.0)
    await journal.intent(package, registry="https://r.test/", digests={"b.whl": "0" * 64})
    _say("intent")
    journal.outcome(package, Outcome.PUBLISHED, "uploaded")
    await journal.run_ended("success")
    _say("ended")


def recover(root: Path) -> None:
    """What every run does before anything else."""
    state = root / ".releasekit"
    with locks.acquire(state, [ECOSYSTEM]):
        pins.recover(state, [ECOSYSTEM], root=root)
        _say("recovered")
        Journal.open(state, run_id="next").close()


def version(root: Path) -> None:
    """Write versions: files are edited, one is new, and one goes."""
    state = root / ".releasekit"
    edits = {**manifests(root), root / "packages/NEWS": b"new\n", root / "packages/same.toml": None}
    with (
        locks.acquire(state, [ECOSYSTEM]),
        pins.EphemeralPin(state, edits, ecosystem=pins.VERSIONS, root=root) as pin,
    ):
        _say("written")
        pin.keep()
        _say("kept")


def shorten(root: Path) -> None:
    """A start that finds its journal long."""
    Journal.compact_above = 0
    recover(root)


def _say(word: str) -> None:
    os.write(1, word.encode() + b"\n")


if __name__ == "__main__":
    # One thread, so that a count of system calls names one instant of the program.
    asyncio.to_thread = _at_once  # type: ignore[assignment]
    command, directory = sys.argv[2], Path(sys.argv[3])
    if command == "release":
        asyncio.run(release(directory))
    elif command == "shorten":
        shorten(directory)
    elif command == "version":
        version(directory)
    else:
        recover(directory)
