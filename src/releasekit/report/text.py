"""Plain-text pieces shared by tables, sentences and the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import Package

_MAX_WIDTH: Final = 100
_BECAME: Final[Mapping[str, str]] = {
    Outcome.FAILED: "failed",
    Outcome.CANCELLED: "was cancelled",
    Outcome.REMOVED: "was left out",
}


def packages(count: int) -> str:
    return f"{count} package" if count == 1 else f"{count} packages"


def few(names: Sequence[str], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def without_name(reason: str, package: Package) -> str:
    """`reason`, which may begin with the package's name, for where that stands beside it."""
    for name in (str(package), str(package.id)):
        if reason.startswith(name) and reason[len(name) : len(name) + 1] in {":", " "}:
            return reason[len(name) :].lstrip(": ") or reason
    return reason


def became(how: str) -> str:
    """The end of "it needs X, which …"; `how` begins with the outcome of X, or says what it is."""
    word, space, rest = how.partition(" ")
    return f"{_BECAME.get(word, f'is {word}')}{space}{rest}"


def by_reason(private: Sequence[Package]) -> dict[str, list[Package]]:
    """Packages that are never published: there may be hundreds that share a reason."""
    groups: dict[str, list[Package]] = {}
    for package in private:
        groups.setdefault(package.unpublishable, []).append(package)
    return groups


def seconds(duration_s: float) -> str:
    """No more exact than a reader needs: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min"."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """`rows` as lines with aligned columns; the last column may have any width."""
    shown = [[log_line(cell) for cell in row] for row in rows]
    # A long cell only shifts its own row: padding all others would multiply its length.
    widths = [min(max(map(len, column)), _MAX_WIDTH) for column in zip(*shown, strict=True)]
    widths[-1] = 0
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
