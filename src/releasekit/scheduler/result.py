"""What a scheduler reports: to an observer while it runs, and as a result at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from releasekit.model import Outcome
from releasekit.priority import K, Key

if TYPE_CHECKING:
    from collections.abc import Mapping

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Generic[K]):
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
