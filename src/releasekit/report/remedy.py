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
_OUTPUT: Final = "The whole output is in "


def remedy(result: Result) -> str:
    """Its hint, or what helps in general; empty where there is nothing to do."""
    if result.outcome is Outcome.FAILED and result.log:
        general = f"Fix what the last lines of its build say, {_AGAIN}"
        if not result.hint or result.hint.startswith(_OUTPUT):
            return f"{general} {result.hint}".rstrip()
    return result.hint or GENERAL.get(result.outcome, "")
