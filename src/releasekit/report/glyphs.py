"""One sign and one colour for each outcome, in what a terminal's encoding can write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLES: Final = {
    Outcome.PUBLISHED: "green",
    Outcome.ALREADY_PUBLISHED: "dim",
    Outcome.STAGED: "cyan",
    Outcome.FAILED: "bold red",
    Outcome.UNKNOWN: "bold yellow",
    Outcome.BLOCKED: "yellow",
    Outcome.REMOVED: "dim",
    Outcome.WOULD_PUBLISH: "green",
    Outcome.CANCELLED: "yellow",
}


@dataclass(frozen=True, slots=True)
class Glyphs:
    """`done`, `begun` and `rest` are the parts of a bar; `more` stands for what was cut off."""

    marks: Mapping[Outcome, str]
    done: str
    begun: str
    rest: str
    more: str


UNICODE: Final = Glyphs(
    {
        Outcome.PUBLISHED: "✓",
        Outcome.ALREADY_PUBLISHED: "=",
        Outcome.STAGED: "◆",
        Outcome.FAILED: "✗",
        Outcome.UNKNOWN: "?",
        Outcome.BLOCKED: "○",
        Outcome.REMOVED: "-",
        Outcome.WOULD_PUBLISH: "✓",
        Outcome.CANCELLED: "○",
    },
    done="█",
    begun="▒",
    rest="░",
    more="…",
)
ASCII: Final = Glyphs(
    {
        Outcome.PUBLISHED: "+",
        Outcome.ALREADY_PUBLISHED: "=",
        Outcome.STAGED: "^",
        Outcome.FAILED: "x",
        Outcome.UNKNOWN: "?",
        Outcome.BLOCKED: "o",
        Outcome.REMOVED: "-",
        Outcome.WOULD_PUBLISH: "+",
        Outcome.CANCELLED: "o",
    },
    done="#",
    begun="=",
    rest=".",
    more="...",
)


def glyphs_for(encoding: str) -> Glyphs:
    """Those that `encoding` has; an unknown one has ASCII."""
    every = "".join((*UNICODE.marks.values(), UNICODE.done, UNICODE.begun, UNICODE.rest))
    try:
        (every + UNICODE.more).encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE
