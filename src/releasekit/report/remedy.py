"""What to do about a package that did not go out, where nobody knows anything more exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Result

_AGAIN: Final = "then run it again: what is published is left alone."
_REMEDIES: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: f"Mend what the reason says, {_AGAIN}",
    Outcome.UNKNOWN: "Run it again: it asks the registry first.",
    Outcome.BLOCKED: "Nothing here: the next run publishes it, once what it waits for is there.",
    Outcome.CANCELLED: "Run it again to finish.",
    Outcome.STAGED: "Review and approve it.",
}
_OUTPUT: Final = "The whole output is in "


def remedy(result: Result) -> str:
    """Its hint, or what helps in general; empty where there is nothing to do."""
    return " ".join(filter(None, (what_to_do(result), whole_output(result))))


def what_to_do(result: Result) -> str:
    """As `remedy`, without where the output of its build is."""
    where = whole_output(result)
    if result.outcome is Outcome.FAILED and result.log and result.hint in {"", where}:
        return f"Mend what the last lines of its build say, {_AGAIN}"
    return "" if where else result.hint or _REMEDIES.get(result.outcome, "")


def whole_output(result: Result) -> str:
    """Where the output of its build is, as a sentence; empty where its hint is about more."""
    return result.hint if result.hint.startswith(_OUTPUT) else ""
