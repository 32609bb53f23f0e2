"""One way to release, measured: from the start of its first process to the end of its last."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.release.place import Scenario, Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from bench.release.place import Place

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Cost:
    """What one release took. `idle` is the share of slot time, from the start to the end of the
    last upload, in which no upload was under way; `early` how many packages were sent before
    something that they need was there.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int
    requests: int
    connections: int
    first_upload_s: float
    idle: float
    early: int
    server_cpu_s: float
    published: Mapping[str, int] = field(repr=False)


class WrongResult(Exception):
    """A way that failed, or that published less than it should have."""


@contextlib.contextmanager
def serving(scenario: Scenario, *options: str) -> Iterator[Server]:
    server = Server(scenario, *options)
    try:
        yield server
    finally:
        server.close()


def released(
    commands: Iterable[Sequence[str | Path]],
    place: Place,
    *,
    environment: Mapping[str, str],
    needs: Mapping[str, tuple[str, ...]],
) -> Cost:
    """Raises WrongResult for a command that fails."""
    before = place.server.seen()
    began_s = time.monotonic()
    spent = [spending(it, where=place.root, environment=environment) for it in commands]
    wall_s = time.monotonic() - began_s
    seen = place.server.seen()
    uploads = seen["uploads"]
    if not uploads:
        raise WrongResult("nothing was uploaded")
    return Cost(
        wall_s=wall_s,
        cpu_s=sum(it.cpu_s for it in spent),
        peak_bytes=max(it.peak_bytes for it in spent),
        requests=sum(seen["requests"].values()),
        connections=seen["connections"],
        first_upload_s=min(start for _, start, _ in uploads) - began_s,
        idle=idle_share(uploads, began_s, place.slots),
        early=too_early(uploads, needs),
        server_cpu_s=seen["cpu_s"] - before["cpu_s"],
        published=seen["published"],
    )


class Spent(NamedTuple):
    wall_s: float
    cpu_s: float
    peak_bytes: int


def spending(argv: Sequence[str | Path], *, where: Path, environment: Mapping[str, str]) -> Spent:
    """Runs it to its end. CPU is that of it and of all children that were waited for."""
    log = where.parent / "log"
    began_s = time.monotonic()
    with log.open("wb") as out, Path(os.devnull).open("rb") as nothing:
        process = subprocess.Popen(
            [str(it) for it in argv],
            cwd=where,
            env=dict(environment),
            stdin=nothing,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with watched(process.pid) as peak:
            _, status, usage = os.wait4(process.pid, 0)
        # Popen is not to wait for it again.
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.monotonic() - began_s
    if process.returncode:
        tail = log.read_text(errors="replace")[-4000:]
        raise WrongResult(f"{' '.join(map(str, argv))[:200]}: exit {process.returncode}\n{tail}")
    return Spent(wall_s, usage.ru_utime + usage.ru_stime, max(peak()))


def idle_share(uploads: Sequence[tuple[str, float, float]], began_s: float, slots: int) -> float:
    """A package has a slot from the start of its first upload under way to the end of its last."""
    changes = sorted(
        change
        for package, start, end in uploads
        for change in ((start, 1, package), (end, -1, package))
    )
    running: dict[str, int] = {}
    busy_s, since_s = 0.0, began_s
    for now_s, change, package in changes:
        busy_s += min(slots, sum(count > 0 for count in running.values())) * (now_s - since_s)
        running[package] = running.get(package, 0) + change
        since_s = now_s
    return 1.0 - busy_s / (slots * (since_s - began_s))


def too_early(
    uploads: Sequence[tuple[str, float, float]], needs: Mapping[str, tuple[str, ...]]
) -> int:
    """npm's names have a scope; all of Go's tags may come in one push."""
    start_s: dict[str, float] = {}
    end_s: dict[str, float] = {}
    for package, start, end in uploads:
        name = package.rpartition("/")[2]
        start_s[name] = min(start, start_s.get(name, start))
        end_s[name] = max(end, end_s.get(name, end))
    return sum(
        any(need in end_s and end_s[need] > start_s[name] for need in below)
        for name, below in needs.items()
        if name in start_s
    )


@contextlib.contextmanager
def watched(pid: int, every_s: float = 0.2) -> Iterator[Any]:
    """The memory of a process and all below it that no other process shares with them, looked at
    five times a second.
    """
    seen, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(every_s):
            seen.append(_memory_of(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: seen
    finally:
        over.set()
        thread.join()


def _memory_of(pid: int) -> int:
    """https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html: resident, without shared."""
    below: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        # The name, in parentheses, may hold anything.
        with contextlib.suppress(OSError, IndexError):
            fields = status.read_text().rpartition(")")[2].split()
            below.setdefault(int(fields[1]), []).append(int(status.parent.name))
    total, left = 0, [pid]
    while left:
        process = left.pop()
        left += below.get(process, ())
        with contextlib.suppress(OSError, ValueError):
            _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
            total += (int(resident) - int(shared)) * _PAGE_BYTES
    return total
