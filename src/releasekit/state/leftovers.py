"""What earlier runs left behind: a read-only look, and a repair under the locks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.errors import JournalError, JournalNewer, StateError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.folder import LINK
from releasekit.report.text import few
from releasekit.state import journal, locks, pins
from releasekit.state.directory import JOURNAL, WAY_OUT, links, refuse_links
from releasekit.state.history import SET_ASIDE
from releasekit.state.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import PackageId
    from releasekit.state.history import History, HistoryEntry
    from releasekit.state.seals import Seal

Kind = Literal[
    "running",
    "orphan",
    "stale-lock",
    "interrupted-run",
    "leftover-pin",
    "edited-pin",
    "unknown-upload",
    "lost-artifact",
    "torn-journal",
    "damaged-journal",
    "link",
]


# Findings about uploads and files that are shown; more would not help.
_MOST: Final = 1_000


class Finding(Struct, frozen=True, kw_only=True):
    """`hint` says what to do; `fix` repairs what is `fixable`."""

    kind: Kind
    message: str
    hint: str
    fixable: bool = False


def examine(state_directory: Path, *, root: Path) -> list[Finding]:
    """Changes nothing, needs no lock, and raises nothing that a damaged state could cause.

    If the directory holds links, only these are reported: what they lead to may be anything.
    """
    if planted := [*links(state_directory)]:
        return [Finding(kind="link", message=f"{link}: {LINK}", hint=WAY_OUT) for link in planted]
    ecosystems = _find_ecosystems(state_directory)
    held = _find_held(state_directory, ecosystems)
    running = {name for name, (kind, _) in held.items() if kind == "running"}
    idle = [name for name in ecosystems if name not in running]
    # Look at locks and pins before the journal, which may take a while: a run that begins meanwhile
    # takes and pins things that were not left behind.
    return [
        *_describe_held(state_directory, held),
        *_check_stale_locks(state_directory, [name for name in idle if name not in held]),
        *_check_pins(state_directory, idle, root.resolve()),
        *_check_journal(state_directory, running),
    ]


def dead_runs(state_directory: Path, ecosystems: Iterable[str]) -> str:
    """What a run says at its start, before it takes its locks, about runs that did not end in
    order; empty when all did, and where it cannot take them. Changes nothing, and locks nothing.
    """
    wanted = list(ecosystems)
    if _find_held(state_directory, wanted):
        return ""
    dead = _find_dead_holders(state_directory, wanted)
    stale = [
        (f"{', '.join(names)}: " if len(dead) > 1 else "")
        + f"the last run ({holder}) did not end in order"
        for holder, names in dead.items()
    ]
    goes_on = ["this one goes on from what the registries have"] if stale else []
    return "; ".join(stale + goes_on)


def uncertain_uploads(history: History, ecosystems: Collection[str]) -> str:
    """What a run that holds the locks of `ecosystems` says of uploads that earlier runs began."""
    names = [
        f"{package} {version}"
        for (package, version), entry in history.entries.items()
        if entry.uncertain and package.ecosystem in ecosystems
    ]
    if not names:
        return ""
    return (
        "uploads of earlier runs may be unfinished, and their registries are asked first: "
        f"{few(names, 3)}"
    )


def fix(state_directory: Path, *, root: Path, seal: Seal | None = None) -> list[Finding]:
    """Take every lock there is, repair what is fixable, return what was. Raises LockHeld.

    Raises StateError, with all the rest repaired, when a manifest was edited while it was pinned.
    """
    refuse_links(state_directory)
    ecosystems = _find_ecosystems(state_directory)
    if not ecosystems and JOURNAL not in durable.names(state_directory):
        return []
    # This comes first, because taking a lock overwrites what is stale in its file.
    stale = list(_check_stale_locks(state_directory, ecosystems))
    with locks.acquire(state_directory, ecosystems):
        found = [
            *_check_pins(state_directory, ecosystems, root.resolve()),
            *_check_journal(state_directory, set()),
        ]
        for finding in found:
            if finding.kind == "torn-journal":
                Journal.open(state_directory, run_id="check").close()
            elif finding.kind == "damaged-journal" and finding.fixable:
                here = durable.names(state_directory)
                number = 1 + sum(name.startswith("journal.damaged-") for name in here)
                aside = state_directory / f"journal.damaged-{number}.jsonl"
                durable.rename(state_directory / JOURNAL, aside)
        pins.recover(state_directory, ecosystems, root=root, seal=seal)
    return [finding for finding in stale + found if finding.fixable]


def _find_ecosystems(state_directory: Path) -> list[str]:
    here = durable.names(state_directory)
    locked = {name.removeprefix("lock.") for name in here if name.startswith("lock.")}
    backed_up = durable.names(state_directory / "backup") if "backup" in here else []
    return sorted(filter(locks.is_ecosystem, locked.union(backed_up)))


def _find_held(
    state_directory: Path, ecosystems: Iterable[str]
) -> dict[str, tuple[Literal["orphan", "running"], locks.Holder | None]]:
    """Those of these locks that are held, by whom, and whether that run has ended."""
    found: dict[str, tuple[Literal["orphan", "running"], locks.Holder | None]] = {}
    for ecosystem in ecosystems:
        file = locks.lock_file(state_directory, ecosystem)
        if locks.is_held(file):
            holder = locks.holder(file)
            is_orphan = holder is not None and locks.has_ended(holder)
            found[ecosystem] = ("orphan" if is_orphan else "running", holder)
    return found


def _describe_held(
    state_directory: Path,
    held: Mapping[str, tuple[Literal["orphan", "running"], locks.Holder | None]],
) -> Iterator[Finding]:
    """One for each holder: it may hold the locks of several ecosystems."""
    for kind, holder in dict.fromkeys(held.values()):
        names = [name for name, each in held.items() if each == (kind, holder)]
        told = ", ".join(names)
        if kind == "running":
            yield Finding(
                kind=kind,
                message=f"{told}: a run holds the lock: {holder or 'no name given'}",
                hint="Wait for that run to end. The lock goes with it.",
            )
            continue
        what, cure = locks.describe_orphans(state_directory, names)
        yield Finding(
            kind=kind,
            message=f"{told}: a run was killed, and what it started still runs: {what}; the run "
            f"was {holder}",
            hint=f"{cure}; then publish again.",
        )


def _find_dead_holders(
    state_directory: Path, ecosystems: Sequence[str]
) -> dict[locks.Holder, list[str]]:
    """The holders that did not release some of these locks, all of which are free now."""
    found: dict[locks.Holder, list[str]] = {}
    for ecosystem in ecosystems:
        holder = locks.holder(locks.lock_file(state_directory, ecosystem))
        if holder is not None:
            found.setdefault(holder, []).append(ecosystem)
    return found


def _check_stale_locks(state_directory: Path, ecosystems: Sequence[str]) -> Iterator[Finding]:
    for holder, names in _find_dead_holders(state_directory, ecosystems).items():
        yield Finding(
            kind="stale-lock",
            message=f"{', '.join(names)}: the last run did not end in order: {holder}",
            hint="Nothing is locked any more; the next run writes its own name there.",
            fixable=True,
        )


def _check_pins(state_directory: Path, ecosystems: Sequence[str], root: Path) -> Iterator[Finding]:
    for backup in pins.backups(state_directory, ecosystems):
        try:
            originals = pins.load(backup, root)
        except StateError as error:
            yield Finding(kind="edited-pin", message=str(error), hint=error.hint)
            continue
        for original in originals:
            if pins.state_of(original) == "edited":
                yield Finding(
                    kind="edited-pin",
                    message=f"{original.path}: changed since a killed run pinned it",
                    hint=f"The original is in {backup}. Put the file right, then delete that.",
                )
            else:
                yield Finding(
                    kind="leftover-pin",
                    message=f"{original.path}: left as a killed run had pinned it",
                    hint="The next run of this ecosystem restores it, or `check --fix` does.",
                    fixable=True,
                )


def _check_journal(state_directory: Path, running: Collection[str]) -> list[Finding]:
    try:
        history = journal.read_history(state_directory)
    except (JournalError, StateError) as error:
        ours = isinstance(error, JournalError) and not isinstance(error, JournalNewer)
        hint = error.hint or SET_ASIDE
        return [Finding(kind="damaged-journal", message=str(error), hint=hint, fixable=ours)]
    found: list[Finding] = []
    if history.torn and not running:
        found.append(
            Finding(
                kind="torn-journal",
                message=f"{JOURNAL}: ends in {history.torn} bytes that are not a record",
                hint="The next run drops them: nothing was ever promised about them.",
                fixable=True,
            )
        )
    entries = list(_check_entries(history, running))
    found += [*_check_runs(history, running), *entries[:_MOST]]
    if len(entries) > _MOST:
        more = f"{JOURNAL}: there are {len(entries) - _MOST} more like these"
        found.append(replace(entries[_MOST], message=more))
    return found


def _check_runs(history: History, running: Collection[str]) -> Iterator[Finding]:
    ecosystems = set().union(*(run.ecosystems for run in history.runs)).difference(running)
    last = {run.id: run for name in ecosystems if (run := history.last_run(name))}
    for run in last.values():
        if not run.complete:
            yield Finding(
                kind="interrupted-run",
                message=f"{', '.join(sorted(run.ecosystems))}: run {run.id}, started "
                f"{run.started_at}, was cut off",
                hint="Publish again: it goes on from what the registries have.",
            )


def _check_entries(history: History, running: Collection[str]) -> Iterator[Finding]:
    for (package, version), entry in history.entries.items():
        if package.ecosystem in running:
            continue
        if entry.uncertain and entry.intent is not None:
            yield Finding(
                kind="unknown-upload",
                message=f"{package} {version}: an upload to {entry.intent.registry} began, and "
                "its end is unknown",
                hint="Publish again: the registry is asked before anything is sent.",
            )
        if entry.staged is None and (entry.outcome is None or not entry.outcome.done):
            yield from _check_files(package, version, entry)


def _check_files(package: PackageId, version: str, entry: HistoryEntry) -> Iterator[Finding]:
    for artifact in {each.path: each for each in entry.artifacts}.values():
        try:
            with durable.opened(artifact.path, os.O_RDONLY) as descriptor:
                size = os.fstat(descriptor).st_size
        except OSError:
            size = -1
        if size != artifact.size:
            yield Finding(
                kind="lost-artifact",
                message=f"{package} {version}: {artifact.path} is not what was built",
                hint="If the registry has none of its files, publishing builds it again.",
            )
