"""Every kind of lock in the order in which they are taken, and who holds what right now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.state import locks, pins
from releasekit.state.directory import JOURNAL
from releasekit.state.lock_order import DIRECTORY_LOCK, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_INSIDE: Final = "inside one process"


def lock_table(
    state_directory: Path,
    ecosystems: Sequence[str],
    *,
    registries: Iterable[Path],
    every: bool = True,
) -> list[str]:
    """A title, and a line for each kind; changes nothing. `registries` are static directories.

    Without `every`, only what is held or left behind: nothing at all where nothing is.
    """
    backups = pins.backups(state_directory, ecosystems)
    # What to say of each lock, and whether it is held or left behind.
    held: dict[Kind, list[tuple[str, bool]]] = {
        Kind.ECOSYSTEM: [_ecosystem(state_directory, name) for name in ecosystems],
        Kind.DIRECTORY: [_file(root / DIRECTORY_LOCK) for root in sorted({*registries})],
        Kind.PINS: [(f"a set of manifests, kept in {backup}", True) for backup in backups],
        Kind.JOURNAL: [_file(state_directory / JOURNAL)],
    }
    if not every:
        in_use = {kind: [words for words, used in told if used] for kind, told in held.items()}
        lines = [f"  {kind}: {'; '.join(words)}" for kind, words in in_use.items() if words]
        return ["locks in use:", *lines] if lines else []
    lines = [
        f"  {int(kind)}. {kind}: "
        + ("; ".join(words for words, _ in held[kind]) or "none" if kind in held else _INSIDE)
        for kind in Kind
    ]
    return ["locks, in the order in which they are taken:", *lines]


def _ecosystem(state_directory: Path, name: str) -> tuple[str, bool]:
    file = locks.lock_file(state_directory, name)
    if locks.is_held(file):
        return f"{name} held by {locks.holder(file) or 'somebody without a name'}", True
    return f"{name} free", False


def _file(path: Path) -> tuple[str, bool]:
    held = locks.is_held(path)
    return f"{path} {'held' if held else 'free'}", held
