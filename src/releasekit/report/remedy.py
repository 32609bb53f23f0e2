"""What to do about a package that did not go out, where nobody knows anything more exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Result

_AGAIN: Final = "then run the same command again."
GENERAL: Final[Mapping[Outcome, str]] = {
    Outcome.FAILED: f"Fix what the reason names, {_AGAIN}",
    Outcome.UNKNOWN: "Run the same command again: it asks the registry first.",
    Outcome.BLOCKED: f"Fix what it needs, {_AGAIN}",
    Outcome.CANCELLED: "Run the same command again to finish.",
}
READ_ITS_LOG: Final = f"Fix what the end of its log says, {_AGAIN}"
OUTPUT: Final = "The whole output is in "


def remedy(result: Result) -> str:
    """Its hint, or what helps in general; empty where there is nothing to do."""
    return " ".join(filter(None, (what_to_do(result), whole_output(result))))


def what_to_do(result: Result) -> str:
    """As `remedy`, without where the output of its build is."""
    hint = result.hint.partition(OUTPUT)[0].strip()
    if hint or not result.log or result.outcome is not Outcome.FAILED:
        return hint or GENERAL.get(result.outcome, "")
    return READ_ITS_LOG


def whole_output(result: Result) -> str:
    """Where the output of its build is, as a sentence, and what its hint says after it."""
    _, found, where = result.hint.partition(OUTPUT)
    return f"{found}{where}"
