"""Every kind of lock in the order in which they are taken, and who holds what right now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.state import locks, pins
from releasekit.state.directory import JOURNAL
from releasekit.state.lock_order import DIRECTORY_LOCK, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


def lock_table(
    state_directory: Path, ecosystems: Sequence[str], *, registries: Iterable[Path]
) -> list[str]:
    """A title, and a line for each kind; changes nothing. `registries` are static directories."""
    backups = pins.backups(state_directory, ecosystems)
    held = {
        Kind.ECOSYSTEM: _ecosystems(state_directory, ecosystems),
        Kind.DIRECTORY: (_file(root / DIRECTORY_LOCK) for root in sorted({*registries})),
        Kind.PINS: (f"a set of manifests, kept in {backup}" for backup in backups),
        Kind.JOURNAL: iter([_file(state_directory / JOURNAL)]),
    }
    lines = [
        f"  {int(kind)}. {kind}: "
        + ("; ".join(held[kind]) or "none" if kind in held else "inside one process")
        for kind in Kind
    ]
    return ["locks, in the order in which they are taken:", *lines]


def _ecosystems(state_directory: Path, ecosystems: Iterable[str]) -> Iterator[str]:
    for name in ecosystems:
        file = locks.lock_file(state_directory, name)
        if locks.is_held(file):
            yield f"{name} held by {locks.holder(file) or 'somebody without a name'}"
        else:
            yield f"{name} free"


def _file(path: Path) -> str:
    return f"{path} {'held' if locks.is_held(path) else 'free'}"
