"""Why tasks ended as they did, in words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

from releasekit.model import Outcome
from releasekit.priority import K

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.scheduler.frontier import Frontier


class Reasons(Generic[K]):
    """`errors` has the last error of every task that had one; `cancelled` says who or what first
    cancelled the run, and `interrupted` says the same of every attempt that was interrupted.
    """

    def __init__(self, frontier: Frontier[K]) -> None:
        self.errors: dict[K, BaseException] = {}
        self.cancelled = ""
        self.interrupted: dict[K, str] = {}
        self._frontier = frontier

    def so_far(self, name: K) -> str:
        """Why it has just ended; for a blocked task, which dependency blocks it."""
        return self._reason(name, lambda blocked: self._frontier.blockers(blocked)[0])

    def in_the_end(self) -> dict[K, str]:
        """The reasons of all that is not done; for a blocked task, which task is the cause."""
        cause_of = self._frontier.causes().__getitem__
        return {
            name: self._reason(name, cause_of)
            for name, outcome in self._frontier.outcomes.items()
            if not outcome.done
        }

    def _reason(self, name: K, cause_of: Callable[[K], K]) -> str:
        match self._frontier.outcomes[name]:
            case Outcome.FAILED | Outcome.UNKNOWN:
                return message_of(self.errors[name])
            case Outcome.BLOCKED:
                cause = cause_of(name)
                return f"blocked by {cause} ({self._frontier.outcomes[cause]})"
            case Outcome.REMOVED:
                return "removed"
            case Outcome.CANCELLED:
                reason = self.interrupted.get(name, self.cancelled)
                if name in self.errors:
                    return f"{reason}; its last attempt: {message_of(self.errors[name])}"
                return reason
            case _:
                return ""


def message_of(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "its attempt was cancelled, and not by this run"
    return str(error) or type(error).__name__
