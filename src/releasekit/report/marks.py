"""One colour for each way a package may end, or may be about to: squares that read the same in a
light theme and a dark one, always with a word beside them, and the class of a graph's nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from releasekit.model import Action, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Style = Literal["done", "kept", "failed", "blocked", "doubt", "staged", "later"]
_CELLS: Final = 30


class Mark(NamedTuple):
    """`word` follows a number: "3 failed"."""

    square: str
    style: Style
    word: str


# In the order of a bar: what is there first, what needs attention last.
OUTCOMES: Final[Mapping[Outcome, Mark]] = {
    Outcome.PUBLISHED: Mark("🟩", "done", "published"),
    Outcome.WOULD_PUBLISH: Mark("🟩", "done", "would be published"),
    Outcome.ALREADY_PUBLISHED: Mark("⬜", "kept", "already there"),
    Outcome.REMOVED: Mark("⬛", "kept", "left out"),
    Outcome.STAGED: Mark("🟪", "staged", "staged"),
    Outcome.CANCELLED: Mark("🟦", "later", "cancelled"),
    Outcome.BLOCKED: Mark("🟧", "blocked", "blocked"),
    Outcome.UNKNOWN: Mark("🟨", "doubt", "unknown"),
    Outcome.FAILED: Mark("🟥", "failed", "failed"),
}
ACTIONS: Final[Mapping[Action, Mark]] = {
    Action.PUBLISH: Mark("🟩", "done", "to build and publish"),
    Action.UPLOAD: Mark("🟦", "later", "to upload as built before"),
    Action.KEEP: Mark("⬜", "kept", "already published"),
    Action.AWAIT: Mark("🟪", "staged", "waiting for approval"),
    Action.REFUSE: Mark("🟥", "failed", "refused"),
}


def bar(counts: Sequence[tuple[Mark, int]]) -> str:
    """A line of squares, by share; of what there is at all, there is one at least."""
    shown = [(mark.square, count) for mark, count in counts if count]
    total = sum(count for _, count in shown)
    cells = min(total, _CELLS)
    widths = [max(1, count * cells // total) for _, count in shown]
    # What rounding has left over or taken too much belongs to the widest, where it shows least.
    if widths:
        widths[widths.index(max(widths))] += cells - sum(widths)
    return "".join(square * width for (square, _), width in zip(shown, widths, strict=True))


def legend(counts: Sequence[tuple[Mark, int]]) -> str:
    """What the squares of a bar stand for."""
    return " · ".join(f"{mark.square} **{count}** {mark.word}" for mark, count in counts if count)
