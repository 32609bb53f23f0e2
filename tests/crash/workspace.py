"""The small workspace that the crash tests release from, and what it must look like afterwards."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from crash import workload
from releasekit.model import Outcome, Package, PackageId
from releasekit.state import locks, pins
from releasekit.state.journal import History, Journal

if TYPE_CHECKING:
    from pathlib import Path

# CRLF, a byte order mark, a missing final newline, odd modes and odd times (R24).
MANIFESTS = {
    "a.toml": (b'[project]\r\nname="a"\r\ndependencies=["b>=1"]\r\n', 0o640, 10**18 + 5),
    "packages/b.toml": (b'\xef\xbb\xbfname="b" # no newline at end >=1', 0o444, 10**18 + 7),
    "packages/same.toml": (b"needs no pin\n", 0o600, 10**18 + 9),
}


def create(directory: Path) -> Path:
    (directory / "packages").mkdir(parents=True)
    for name, (data, mode, modified_ns) in MANIFESTS.items():
        path = directory / name
        path.write_bytes(data)
        path.chmod(mode)
        os.utime(path, ns=(modified_ns, modified_ns))
    return directory


def tree(directory: Path) -> dict[str, tuple[bytes, int, int]]:
    """Bytes, mode and modification time of every file outside the state directory (R25)."""
    found = {}
    for folder, _, files in os.walk(directory):
        if ".releasekit" in folder:
            continue
        for file in files:
            path = os.path.join(folder, file)  # noqa: PTH118 (half of the time of a campaign)
            status = os.stat(path)  # noqa: PTH116
            with open(path, "rb") as stream:  # noqa: PTH123
                data = stream.read()
            name = os.path.relpath(path, directory)
            found[name] = (data, status.st_mode & 0o7777, status.st_mtime_ns)
    return found


def start_again(directory: Path) -> History:
    """What the next run does before anything else, and what it then knows."""
    state = directory / ".releasekit"
    with locks.acquire(state, [workload.ECOSYSTEM]):
        pins.recover(state, [workload.ECOSYSTEM], root=directory)
        journal = Journal.open(state, run_id="next")
        journal.close()
        return journal.history


def with_long_journal(directory: Path) -> Path:
    """After several releases, and with an upload of which nobody knows the end."""
    state = create(directory) / ".releasekit"
    for number in range(5):
        package = Package(
            id=PackageId(workload.ECOSYSTEM, "b"),
            version=f"{number}.0",
            directory=directory,
            manifest=directory / "a.toml",
        )
        with locks.acquire(state, [workload.ECOSYSTEM]):
            journal = Journal.open(state, run_id=f"run-{number}")
            asyncio.run(_released(journal, package, known=number != 2))
            journal.close()
    return directory


async def _released(journal: Journal, package: Package, *, known: bool) -> None:
    journal.run_started(
        plan_digest="p", commit="c", tool="1.0.0", started_at="2026", ecosystems=["pypi"]
    )
    for _ in range(10):
        journal.phase_ended("upload pypi:b", duration_s=1.0, error="503")
    await journal.intent(package, registry="https://r.test/", digests={"b.whl": "0" * 64})
    if known:
        journal.outcome(package, Outcome.PUBLISHED, "uploaded")
    await journal.run_ended("success")


def journal_bytes(directory: Path) -> bytes:
    path = directory / ".releasekit" / "journal.jsonl"
    return path.read_bytes() if path.exists() else b""


def broken_promises(directory: Path, said: list[str], history: History) -> list[str]:
    """What the workload had said it relied upon, and is not so after the next start."""
    broken = []
    if tree(directory) != MANIFESTS:
        broken.append(f"manifests differ: {tree(directory)}")
    entry = next(iter(history.entries.values()), None)
    if entry is not None:
        broken += [
            f"{artifact.path} is in the journal, its bytes are gone"
            for artifact in entry.artifacts
            if not artifact.path.exists() or artifact.path.read_bytes() != workload.WHEEL
        ]
    if "intent" in said and (entry is None or entry.intent is None):
        broken.append("the intent is gone")
    if "ended" in said and not (history.runs and history.runs[-1].complete):
        broken.append("the end of the run is gone")
    return broken
