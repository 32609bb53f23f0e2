"""Built files that no seal vouches for are quarantined before a run can use them."""

from __future__ import annotations

import contextlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from releasekit.attested import bundle_name, unfinished_name
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.folder import Folder
from releasekit.state.directory import BUILT, MOVE_AWAY, state_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from releasekit.model import Artifact
    from releasekit.state.history import History, HistoryEntry

    Named = Mapping[PurePath, tuple[str, HistoryEntry]]

# Beside what was built; a run that has the key of the seal restores files from there.
QUARANTINE: Final = "unsealed"


def quarantine(state_directory: Path, history: History, ecosystems: Collection[str]) -> list[str]:
    """Leave only the files of sealed records, each with its digest, where built files lie; return
    the packages whose files were quarantined. The caller holds the locks of `ecosystems`.

    Raises StateError, for instance for a link in the way.
    """
    with state_errors(MOVE_AWAY):
        # The entries that have files, by the directory of these below `dist`.
        dist = state_directory / BUILT
        named: Named = {
            place.relative_to(dist): (f"{package} {version}", entry)
            for (package, version), entry in history.entries.items()
            for place in {artifact.path.parent for artifact in entry.artifacts}
            if place.is_relative_to(dist) and place != dist
        }
        for where, (_, entry) in named.items():
            aside, built = state_directory / QUARANTINE / where, dist / where
            sealed = entry.sealed and where.parts[0] in ecosystems
            if sealed and _has_files(aside, entry) and not _has_files(built, entry):
                _move(aside, built)
        found = [*_find_unvouched(dist, ecosystems, named)]
        for where in found:
            aside, built = state_directory / QUARANTINE / where, dist / where
            # What was quarantined before stays if it is what the record names.
            if where in named and _has_files(aside, named[where][1]):
                with Folder.reached(built.parent) as folder:
                    folder.remove_tree(built.name)
            else:
                _move(built, aside)
        return [named[where][0] for where in found if where in named]


def with_restored(state_directory: Path, history: History) -> History:
    """The same history, in which sealed files that an earlier run quarantined have the paths where
    they lie now: for commands that change nothing.
    """
    with state_errors(MOVE_AWAY):
        if QUARANTINE not in durable.names(state_directory):
            return history
        entries = {
            key: _with_restored(state_directory, entry) if entry.sealed else entry
            for key, entry in history.entries.items()
        }
        return replace(history, entries=entries)


def _with_restored(state_directory: Path, entry: HistoryEntry) -> HistoryEntry:
    built = state_directory / BUILT
    for place in {artifact.path.parent for artifact in entry.artifacts}:
        if place.is_relative_to(built):
            aside = state_directory / QUARANTINE / place.relative_to(built)
            if _has_files(aside, entry) and not _has_files(place, entry):
                lying = [replace(each, path=aside / each.filename) for each in entry.artifacts]
                return replace(entry, artifacts=tuple(lying))
    return entry


def _find_unvouched(built: Path, ecosystems: Collection[str], named: Named) -> Iterator[PurePath]:
    """Directories of files that no sealed record names, and files in places of directories."""
    kept = {
        where
        for where, (_, entry) in named.items()
        if where.parts[0] in ecosystems and entry.sealed and _has_files(built / where, entry)
    }
    pending = [PurePath(each) for each in sorted(ecosystems, reverse=True)]
    above = {parent for where in kept for parent in where.parents}.union(pending)
    while pending:
        place = pending.pop()
        names: list[str] = []
        inner: list[str] = []
        with contextlib.suppress(FileNotFoundError), Folder.reached(built / place) as folder:
            names = folder.names()
            inner = [name for name in names if folder.is_directory(name)]
        files = sorted({*names} - {*inner})
        if files and place not in above:
            yield place
            continue
        yield from (place / name for name in files)
        pending += [place / name for name in inner if place / name not in kept]


def _move(old: Path, new: Path) -> None:
    with Folder.reached(old.parent) as source, Folder.reached(new.parent, make=True) as target:
        target.remove_tree(new.name)
        source.move(old.name, target, new.name)
        target.sync()
        source.sync()


def _has_files(directory: Path, entry: HistoryEntry) -> bool:
    """Whether it holds the files of the record, each with its digest, and nothing else but signed
    statements about them, which are checked wherever they are used.
    """
    wanted = {artifact.filename: artifact for artifact in entry.artifacts}
    about = {name_for(each) for each in wanted for name_for in (bundle_name, unfinished_name)}
    return {*durable.names(directory)} - about == wanted.keys() and all(
        is_intact(directory / name, artifact) for name, artifact in wanted.items()
    )


def is_intact(path: Path, artifact: Artifact) -> bool:
    """Whether the file at `path` has the bytes of `artifact`."""
    try:
        return durable.sha256_of(path, max_bytes=artifact.size) == artifact.sha256
    except OSError:
        return False
