"""How often a task is tried, how long, and what its last error makes of it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from releasekit.aio import backoff
from releasekit.errors import ReleasekitError, Transient, Undecided
from releasekit.model import Outcome
from releasekit.priority import K
from releasekit.scheduler.patience import PATIENT, Patience

if TYPE_CHECKING:
    from collections.abc import Iterable

    from releasekit.scheduler.task import Task

V = TypeVar("V")

SPREAD = random.Random()  # noqa: S311 - it spreads retries and guards nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`max_retries` and `task_timeout_s` have an entry for every lane; None is no limit.

    With `any_error`, whatever a task raises ends only that task, and is worth a retry. Without it,
    only PackageError ends a task, only Transient is retried, and anything else is a bug and ends
    the run.
    """

    max_retries: Mapping[str, int]
    task_timeout_s: Mapping[str, float | None]
    base_delay_s: float
    any_error: bool
    rng: random.Random
    patience: Patience = PATIENT

    def __post_init__(self) -> None:
        for lane, retries in self.max_retries.items():
            if retries < 0:
                raise ValueError(f"max_retries of lane {lane!r} is {retries}, must be at least 0")
        for lane, timeout_s in self.task_timeout_s.items():
            if timeout_s is not None and not timeout_s > 0:
                raise ValueError(f"task_timeout of lane {lane!r} is {timeout_s}, must be above 0")
        if not 0 <= self.base_delay_s < math.inf:
            raise ValueError(f"retry_base_delay is {self.base_delay_s}, must be 0 or more")

    def retries(self, error: BaseException, *, lane: str, attempt: int) -> bool:
        """Whether another attempt follows the one numbered `attempt`, counted from 1."""
        allowed = attempt <= self.max_retries[lane] and self.patience.allows(error)
        return allowed and self.is_passing(error)

    def is_passing(self, error: BaseException) -> bool:
        """Whether another attempt may succeed."""
        if isinstance(error, ReleasekitError) or not self.any_error:
            return isinstance(error, Transient)
        return True

    def delay_s(self, error: BaseException, *, attempt: int) -> float:
        """Never less than the `retry_after` of the error."""
        delay = backoff(attempt - 1, self.base_delay_s, self.rng)
        asked = getattr(error, "retry_after", None)  # of any class: callers have their own
        if isinstance(asked, int | float) and math.isfinite(asked):
            delay = max(delay, float(asked))
        return delay


def per_lane(value: V | Mapping[str, V], lanes: Iterable[str], default: V) -> dict[str, V]:
    """One value for all lanes, or each lane's own."""
    if isinstance(value, Mapping):
        return {lane: value.get(lane, default) for lane in lanes}
    return dict.fromkeys(lanes, value)


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a task whose last attempt ended with `error`."""
    return Outcome.UNKNOWN if isinstance(error, Undecided) else Outcome.FAILED


class Estimates(Generic[K]):
    """How long tasks are expected to take: as long as in the last run; otherwise the mean of their
    lane, or of all lanes, times their own weight; without any durations, their weight.
    """

    def __init__(self, tasks: Iterable[Task[K]], durations: Mapping[K, float]) -> None:
        self._known = {name: s for name, s in durations.items() if 0.0 <= s < math.inf}
        by_lane: dict[str, list[float]] = {}
        for task in tasks:
            if task.name in self._known:
                by_lane.setdefault(task.lane, []).append(self._known[task.name])
        self._means = {lane: math.fsum(s) / len(s) for lane, s in by_lane.items()}
        everything = [s for lane in by_lane.values() for s in lane]
        self._mean = math.fsum(everything) / len(everything) if everything else 1.0

    def weigh(self, task: Task[K]) -> Task[K]:
        if not self._known:
            return task
        seconds = self._known.get(task.name)
        if seconds is None:
            seconds = task.weight * self._means.get(task.lane, self._mean)
        return replace(task, weight=seconds)
