"""How each way that a package ends, or may end, is shown: one colour, one sign and one word each,
as squares of a summary, signs of a terminal and of the report page, and nodes of a graph. The word
always stands beside the colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec import Struct

from releasekit.model import Action, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Style = Literal["done", "kept", "failed", "blocked", "doubt", "staged", "later"]
_CELLS: Final = 30


class OutcomeMark(NamedTuple):
    """`word` follows a number: "3 failed". Each square reads the same in a light theme and a dark
    one. The page has the `sign`, a terminal that and its `colour`, or the `ascii` one.
    """

    square: str
    style: Style
    word: str
    sign: str = ""
    ascii: str = ""
    colour: str = ""


# In the order of bars, legends and headlines: what is there, then what is not.
OUTCOMES: Final[Mapping[Outcome, OutcomeMark]] = {
    Outcome.PUBLISHED: OutcomeMark("🟩", "done", "published", "✓", "+", "green"),
    Outcome.WOULD_PUBLISH: OutcomeMark("🟩", "done", "would be published", "✓", "+", "green"),
    Outcome.ALREADY_PUBLISHED: OutcomeMark("⬜", "kept", "already there", "=", "=", "dim"),
    Outcome.STAGED: OutcomeMark("🟪", "staged", "staged", "◆", "^", "cyan"),
    Outcome.FAILED: OutcomeMark("🟥", "failed", "failed", "✗", "x", "bold red"),
    Outcome.UNKNOWN: OutcomeMark("🟨", "doubt", "unknown", "?", "?", "bold yellow"),
    Outcome.BLOCKED: OutcomeMark("🟧", "blocked", "blocked", "⊘", "/", "yellow"),
    Outcome.CANCELLED: OutcomeMark("🟦", "later", "cancelled", "○", "o", "yellow"),
    Outcome.REMOVED: OutcomeMark("⬛", "kept", "left out", "-", "-", "dim"),
}
ACTIONS: Final[Mapping[Action, OutcomeMark]] = {
    Action.PUBLISH: OutcomeMark("🟩", "done", "to build and publish"),
    Action.UPLOAD: OutcomeMark("🟦", "later", "to upload as built before"),
    Action.KEEP: OutcomeMark("⬜", "kept", "already published"),
    Action.AWAIT: OutcomeMark("🟪", "staged", "waiting for approval"),
    Action.REFUSE: OutcomeMark("🟥", "failed", "refused"),
}
# Classes of Mermaid's nodes: dark text on light fills reads the same in GitHub's light and dark
# themes.
NODE_STYLES: Final[Mapping[Style, str]] = {
    "done": "fill:#d2f4d3,stroke:#1a7f37,color:#0b3d1a",
    "kept": "fill:#e6e9ec,stroke:#6e7781,color:#24292f",
    "failed": "fill:#ffd8d3,stroke:#cf222e,color:#5c0d12,stroke-width:3px",
    "blocked": "fill:#ffe5cc,stroke:#bc4c00,color:#5c2600",
    "doubt": "fill:#fff1c2,stroke:#9a6700,color:#4d3300",
    "staged": "fill:#ecdcff,stroke:#8250df,color:#3b1a70",
    "later": "fill:#d8ebff,stroke:#0969da,color:#0a3069",
}


def bar(counts: Sequence[tuple[OutcomeMark, int]]) -> str:
    """A line of squares, by share; each count above zero has at least one."""
    shown = [(mark.square, count) for mark, count in counts if count]
    total = sum(count for _, count in shown)
    cells = min(total, _CELLS)
    widths = [max(1, count * cells // total) for _, count in shown]
    # The widest takes the error of rounding, where it shows least.
    if widths:
        widths[widths.index(max(widths))] += cells - sum(widths)
    return "".join(square * width for (square, _), width in zip(shown, widths, strict=True))


def legend(counts: Sequence[tuple[OutcomeMark, int]]) -> str:
    """What the squares of a bar stand for."""
    return " · ".join(f"{mark.square} **{count}** {mark.word}" for mark, count in counts if count)


def count_words(counts: Sequence[tuple[OutcomeMark, int]]) -> str:
    """`🟩 3 published, 🟥 1 failed`."""
    return ", ".join(f"{mark.square} {count} {mark.word}" for mark, count in counts if count)


class Symbols(Struct, frozen=True):
    """What a terminal's encoding can write: the sign of each outcome, the `done`, `begun` and
    `rest` parts of a bar, and `more` in place of what was cut off.
    """

    marks: Mapping[Outcome, str]
    done: str
    begun: str
    rest: str
    more: str


_UNICODE: Final = Symbols({each: mark.sign for each, mark in OUTCOMES.items()}, "█", "▒", "░", "…")
_ASCII: Final = Symbols({each: mark.ascii for each, mark in OUTCOMES.items()}, "#", "=", ".", "...")


def symbols_for(encoding: str) -> Symbols:
    """ASCII, where `encoding` is unknown or lacks one of the others."""
    every = "".join(mark.sign for mark in OUTCOMES.values())
    try:
        f"{every}{_UNICODE.done}{_UNICODE.begun}{_UNICODE.rest}{_UNICODE.more}".encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return _ASCII
    return _UNICODE
