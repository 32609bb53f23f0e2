"""What a scheduler reports: to an observer while it runs, and as a result at the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from msgspec import Struct

from releasekit.graph import K, Key
from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.scheduler.frontier import Frontier


K_contra = TypeVar("K_contra", bound=Key, contravariant=True)


class Observer(Protocol[K_contra]):
    """It is told synchronously of everything that happens, and may call the scheduler back.

    What it raises is logged, as an error of the logger `releasekit.scheduler.engine`, and changes
    nothing else.
    """

    def started(self, name: K_contra, attempt: int) -> None: ...

    def retrying(self, name: K_contra, attempt: int, delay_s: float, error: BaseException) -> None:
        """Attempt number `attempt` failed; the next one starts in `delay_s` or later."""
        ...

    def settled(self, name: K_contra, outcome: Outcome, reason: str) -> None: ...


class RunResult(Struct, Generic[K], frozen=True, kw_only=True):
    """`outcomes` is the record, in the order of settlement; the rest are views of it.

    `failed` holds what failed and what has an unknown end; `skipped` holds what was blocked,
    removed or cancelled. `reasons` has every name of these two, and `errors` the last error of each
    task that had one.
    """

    outcomes: Mapping[K, Outcome]
    reasons: Mapping[K, str]
    errors: Mapping[K, BaseException]
    attempts: Mapping[K, int]

    @property
    def published(self) -> list[K]:
        """In completion order."""
        return self._names({Outcome.PUBLISHED})

    @property
    def already_published(self) -> list[K]:
        return self._names({Outcome.ALREADY_PUBLISHED})

    @property
    def failed(self) -> dict[K, str]:
        return {n: self.reasons[n] for n in self._names({Outcome.FAILED, Outcome.UNKNOWN})}

    @property
    def skipped(self) -> list[K]:
        return self._names({Outcome.BLOCKED, Outcome.REMOVED, Outcome.CANCELLED})

    @property
    def ok(self) -> bool:
        return all(outcome.done for outcome in self.outcomes.values())

    def _names(self, outcomes: set[Outcome]) -> list[K]:
        return [name for name, outcome in self.outcomes.items() if outcome in outcomes]


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
