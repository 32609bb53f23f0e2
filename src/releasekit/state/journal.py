"""The append-only journal: it tells the next run what no registry can.

One write per record, so what was recorded survives the death of the process. What must survive the
death of the machine is awaited: `intent` returns when it is on the disk, and with it everything
written before; `built` when the built files are. Waiters share one fsync. Runs of different
ecosystems may append to one journal at the same time.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, Self

from releasekit.errors import StateError
from releasekit.host import durable
from releasekit.state.directory import JOURNAL
from releasekit.state.history import (
    SCHEMA,
    History,
    HistoryEntry,
    Intent,
    Run,
    compact,
    encode,
    fold,
)
from releasekit.state.logfile import LogFile, refuse_longer
from releasekit.state.trace import Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Outcome, Package, PackageId, Staged
    from releasekit.state.seals import Seal

__all__ = ["History", "HistoryEntry", "Intent", "Journal", "Log", "Run", "read_history"]

# A release of 10,000 packages takes about 20 MB. It is read as a whole.
MAX_BYTES: Final = 48 * 1024 * 1024


class Log(Protocol):
    """Where the lines go: a file, or memory in a simulation."""

    def heal(self, intact: Callable[[bytes], int]) -> None:
        """Ask how many of all these bytes are intact and drop the rest durably, in one step."""
        ...

    def rewrite(self, shorter: Callable[[bytes], bytes]) -> None:
        """Replace all these bytes by what `shorter` makes of them, durably and in one step."""
        ...

    def append(self, line: Callable[[int], bytes]) -> None:
        """Add a line in one piece or not at all; it is given the number of bytes known durable."""
        ...

    async def sync(self) -> None:
        """Return when everything appended before is durable."""
        ...

    async def persist(self, files: Sequence[Path]) -> None:
        """Return when these files, which were written by others, are durable, names included."""
        ...

    def close(self) -> None:
        """Idempotent; everything appended stays."""
        ...


class Journal:
    """The journal of one run. `history` is what the earlier ones left, without a torn tail.

    What is built or staged is sealed with `seal`, and of what earlier runs have, that counts as
    sealed.
    `redact` takes the secrets out of reasons and errors. `clock` counts seconds. A journal of more
    than `compact_above` bytes is shortened first, if that halves it.
    """

    compact_above: ClassVar[int] = 8 * 1024 * 1024

    def __init__(
        self,
        log: Log,
        *,
        state_directory: Path,
        run_id: str,
        redact: Callable[[str], str] = str,
        seal: Seal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.history = History()
        self._log = log
        self._state_directory = state_directory
        self._run_id = run_id
        self._redact = redact
        self._seal = seal
        self._commit = ""
        self._clock = clock
        self._began = clock()
        self._sequence = 0
        self._registries: dict[PackageId, str] = {}
        log.heal(self._fold)
        if self.history.intact > self.compact_above:
            log.rewrite(self._compacted)

    @classmethod
    def open(
        cls,
        state_directory: Path,
        *,
        run_id: str,
        redact: Callable[[str], str] = str,
        seal: Seal | None = None,
    ) -> Self:
        """The journal in `state_directory`, which exists and whose ecosystems are locked."""
        log = LogFile(state_directory / JOURNAL, max_bytes=MAX_BYTES)
        try:
            return cls(
                log, state_directory=state_directory, run_id=run_id, redact=redact, seal=seal
            )
        except BaseException:
            log.close()
            raise

    @property
    def seal(self) -> Seal | None:
        """What the state of this run is sealed with."""
        return self._seal

    def run_started(
        self,
        *,
        plan_digest: str,
        commit: str,
        tool: str,
        started_at: str,
        ecosystems: Collection[str],
    ) -> None:
        """The first record of a run. `tool` is our version, `started_at` UTC in ISO 8601."""
        self._commit = commit
        self._append(
            "run_started",
            plan=plan_digest,
            commit=commit,
            tool=tool,
            started_at=started_at,
            ecosystems=sorted(ecosystems),
        )

    def planned(self, pending: Mapping[PackageId, Collection[PackageId]]) -> None:
        """The packages with something left to do, and which of them each one waits for: for
        `doctor`.
        """
        needs = {str(package): sorted(map(str, on)) for package, on in pending.items()}
        self._append("planned", needs=needs)

    def phase_started(self, node: str, *, attempt: int = 1) -> None:
        """`node` is the scheduler's name, "upload pypi:acme-core"."""
        self._append("step_started", node=node, **_unless_first(attempt))

    def phase_ended(
        self, node: str, *, attempt: int = 1, duration_s: float, error: str = ""
    ) -> None:
        """Only a success (no `error`) counts for the durations of the next run."""
        failure = {"error": self._redact(error)} if error else {}
        self._append(
            "step_ended",
            node=node,
            duration_s=round(float(duration_s), 6),
            **_unless_first(attempt),
            **failure,
        )

    async def built(
        self,
        package: Package,
        artifacts: Sequence[Artifact],
        *,
        fingerprint: str = "",
        again: bool = False,
    ) -> None:
        """Returns when the files, which lie in the state directory, are durable and recorded.

        The record itself may wait for the next fsync: until an upload begins, losing it costs
        nothing but time, and `intent` makes everything before it durable. `again`: it may differ
        from what an upload was begun with, since nothing vouched for that.
        """
        await self._log.persist([artifact.path for artifact in artifacts])
        brought = [artifact.filename for artifact in package.prebuilt]
        record: dict[str, object] = {
            "package": str(package.id),
            "version": package.version,
            "fingerprint": fingerprint,
            **({"prebuilt": brought} if brought else {}),
            **({"again": True} if again else {}),
            "artifacts": [
                {
                    "path": artifact.path.relative_to(self._state_directory).as_posix(),
                    "size": artifact.size,
                    "digests": dict(artifact.digests),
                }
                for artifact in artifacts
            ],
        }
        if self._seal is not None:
            sealed = {**record, "run": self._run_id}
            record["seal"] = self._seal.of(sealed, commit=self._commit)
        self._append("built", **record)

    def attested(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Durable with the intent that follows. A bundle vouches for itself: it is not sealed."""
        self._append_for(
            package,
            "attested",
            files={
                artifact.filename: {
                    "sha256": artifact.sha256,
                    "path": signed.path.relative_to(self._state_directory).as_posix(),
                    "bundle": signed.sha256,
                    "log": signed.log_url,
                    "index": signed.log_index,
                }
                for artifact in artifacts
                if (signed := artifact.attestation) is not None
            },
        )

    async def intent(self, package: Package, *, registry: str, digests: Mapping[str, str]) -> None:
        """Await it before the first byte of an upload. `digests` maps filename to sha256."""
        self._registries[package.id] = registry
        self._append_for(package, "intent", registry=registry, digests=dict(digests))
        await self._log.sync()

    def outcome(
        self, package: Package, outcome: Outcome, reason: str, *, staged: Staged | None = None
    ) -> None:
        """Durable with the next thing awaited: if it is lost, the next run asks the registry."""
        more: dict[str, object] = {}
        if staged is not None:
            more["staged"] = {key: self._redact(text) for key, text in asdict(staged).items()}
            if self._seal is not None:
                what = {"package": str(package.id), "version": package.version, "outcome": outcome}
                sealed = {**what, **more, "run": self._run_id}
                more["seal"] = self._seal.of(sealed, registry=self._registry_of(package))
        self._append_for(package, "outcome", outcome=outcome, reason=self._redact(reason), **more)

    def _registry_of(self, package: Package) -> str:
        """Where its upload was begun last, by this run or an earlier one."""
        entry = self.history.entry(package)
        earlier = entry.intent.registry if entry and entry.intent else ""
        return self._registries.get(package.id, earlier)

    async def run_ended(self, result: str) -> None:
        """The last record; `result` as in the action's output: "success", "partial" and so on."""
        self._append("run_ended", result=result)
        await self._log.sync()

    def close(self) -> None:
        """Idempotent; nothing recorded is lost by it."""
        self._log.close()

    def _fold(self, data: bytes) -> int:
        self.history = fold(
            data, state_directory=self._state_directory, where=JOURNAL, seal=self._seal
        )
        return self.history.intact

    def _compacted(self, data: bytes) -> bytes:
        self.history = History()  # there is no room for both
        shorter = compact(data, most=len(data) // 2) or data
        self._fold(shorter)
        return shorter

    def _append_for(self, package: Package, event: str, **fields: object) -> None:
        self._append(event, package=str(package.id), version=package.version, **fields)

    def _append(self, event: str, **fields: object) -> None:
        self._log.append(partial(self._line, event, fields))
        self._sequence += 1

    def _line(self, event: str, fields: Mapping[str, object], durable: int) -> bytes:
        record = {
            "v": SCHEMA,
            "run": self._run_id,
            "seq": self._sequence,
            "at": round(self._clock() - self._began, 6),
            "durable": durable,
            "event": event,
            **fields,
        }
        return encode(record)


def read_history(state_directory: Path, *, seal: Seal | None = None) -> History:
    """What the journal says, without changing anything; an empty history when there is none."""
    data = _bytes_in(state_directory)
    return fold(data, state_directory=state_directory, where=JOURNAL, seal=seal)


def read_with_trace(state_directory: Path) -> tuple[History, tuple[Run, Trace] | None]:
    """What the journal says, and how far the last run came if there was one. Changes nothing."""
    data = _bytes_in(state_directory)
    history = fold(data, state_directory=state_directory, where=JOURNAL)
    run = history.last_run()
    return history, None if run is None else (run, read_trace(data[: history.intact], run.id))


def _bytes_in(state_directory: Path) -> bytes:
    path = state_directory / JOURNAL
    try:
        with durable.reading(path) as file:
            # One that only seems long is not read first.
            refuse_longer(os.fstat(file.fileno()).st_size, MAX_BYTES, path)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StateError(
            f"{path}: cannot be read: {error.strerror}",
            hint="Only releasekit writes it: move away what is there.",
        ) from error
    refuse_longer(len(data), MAX_BYTES, path)
    return data


def _unless_first(attempt: int) -> dict[str, int]:
    return {"attempt": attempt} if attempt > 1 else {}
