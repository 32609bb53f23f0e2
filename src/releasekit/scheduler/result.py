"""What a scheduler tells: while it runs, to an observer; at the end, as a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from releasekit.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping


class Observer(Protocol):
    """Told of everything that happens, synchronously, and free to call the scheduler back.

    What it raises goes to the event loop's exception handler and changes nothing else.
    """

    def started(self, name: str, attempt: int) -> None: ...

    def retrying(self, name: str, attempt: int, delay_s: float, error: BaseException) -> None:
        """Attempt number `attempt` failed; the next one starts in `delay_s` or later."""
        ...

    def settled(self, name: str, outcome: Outcome, reason: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """`outcomes` is the record, in the order of settlement; the rest are views of it.

    `failed` holds what failed and what nobody knows the end of; `skipped` what was blocked, removed
    or cancelled. `reasons` has every name of these two; `errors` the last error of what had one.
    """

    outcomes: Mapping[str, Outcome]
    reasons: Mapping[str, str]
    errors: Mapping[str, BaseException]
    attempts: Mapping[str, int]

    @property
    def published(self) -> list[str]:
        """In completion order."""
        return self._names({Outcome.PUBLISHED})

    @property
    def already_published(self) -> list[str]:
        return self._names({Outcome.ALREADY_PUBLISHED})

    @property
    def failed(self) -> dict[str, str]:
        return {n: self.reasons[n] for n in self._names({Outcome.FAILED, Outcome.UNKNOWN})}

    @property
    def skipped(self) -> list[str]:
        return self._names({Outcome.BLOCKED, Outcome.REMOVED, Outcome.CANCELLED})

    @property
    def ok(self) -> bool:
        return all(outcome.done for outcome in self.outcomes.values())

    def _names(self, outcomes: set[Outcome]) -> list[str]:
        return [name for name, outcome in self.outcomes.items() if outcome in outcomes]
