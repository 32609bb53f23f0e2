"""How often a task is tried, how long it may take, and how long the run waits for a registry that
asks for a pause.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from msgspec import Struct

from releasekit.errors import CircuitOpen, ReleasekitError, Transient, Undecided
from releasekit.fields import replace
from releasekit.graph import K
from releasekit.model import Outcome
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from releasekit.scheduler.frontier import Task


E = TypeVar("E", bound=BaseException)
V = TypeVar("V")

MAX_DELAY_S: Final = 60.0

SPREAD = random.Random()  # noqa: S311 - it spreads retries and guards nothing

# The longest pause that a message names. https://www.rfc-editor.org/rfc/rfc9110
# sets no limit to Retry-After, and a calendar has one.
_LONGEST_S: Final = 100 * 365 * 86_400.0


class WaitBudget(Struct, frozen=True):
    """How long the run waits for a registry that asks for a pause: for `max_wait_s`, and no longer
    than `until`, on the loop's clock. That is the end of the run, or of a part of it; `ends_by` is
    the input that sets it.
    """

    max_wait_s: float = math.inf
    until: float = math.inf
    ends_by: str = "deadline"

    @classmethod
    def from_now(cls, *, max_wait_s: float, deadline_s: float | None) -> Self:
        """For a run that begins now; inside its loop."""
        if deadline_s is None:
            return cls(max_wait_s)
        return cls(max_wait_s, asyncio.get_running_loop().time() + deadline_s)

    def within(self, until: float, ends_by: str) -> WaitBudget:
        """For a part of the run that ends no later than that."""
        return self if self.until <= until else replace(self, until=until, ends_by=ends_by)

    def find_limit(self, error: BaseException, now_s: float) -> str:
        """The input that does not allow for the pause that `error` asks for, on the loop's clock;
        empty where there is none.
        """
        if not isinstance(error, Transient) or error.retry_after is None:
            return ""
        asked_s = error.retry_after if error.asked_s is None else error.asked_s
        if asked_s > self.max_wait_s:
            return "max-wait"
        # Where only our own queue makes the pause too long, nobody has refused: the task ends with
        # the run, and running again is enough.
        return self.ends_by if now_s + asked_s > self.until else ""

    def explain(self, error: E, now_s: float) -> E:
        """`error`, or, where it asks for too long a pause, one that says when to come back, and
        which input would have allowed for that.
        """
        limit = self.find_limit(error, now_s)
        if not limit or not isinstance(error, Transient) or error.retry_at:
            return error
        wait_s = min(error.retry_after or 0.0, _LONGEST_S)
        then = datetime.now(UTC) + timedelta(seconds=wait_s)
        why = f"the `{limit}` ends before"
        if limit == "max-wait":
            why = f"`max-wait` is {in_words(self.max_wait_s)}"
        retry_at = (
            f"come back in {in_words(wait_s)}, at {then:%Y-%m-%d %H:%M} UTC ({why}, so this run "
            "does not wait)"
        )
        return error.with_(
            message=f"{error}; {retry_at}",
            retry_at=retry_at,
            problem=Problem.RATE_LIMITED,
            hint=f"Run the same command again then, or raise `{limit}`. {error.hint}".rstrip(),
        )


PATIENT: Final = WaitBudget()


def in_words(seconds: float) -> str:
    """The two largest units of it, rounded up to the smaller one."""
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s".removesuffix(" 0 s")
    minutes = math.ceil(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")


class Backoff(Struct, frozen=True):
    """A random pause of up to `most_s`, but never shorter than `least_s`, which the error names."""

    most_s: float
    least_s: float = 0.0

    def draw(self, rng: random.Random) -> float:
        """Seconds, with full jitter, so that those who failed together do not come back together.

        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        return max(rng.uniform(0.0, self.most_s), self.least_s)


class Retry(Struct, frozen=True):
    """Whether another attempt follows one that failed, and when: up to `max_retries` follow the
    first, none after an error that asks for a longer pause than `patience` has.

    Only Transient is worth another attempt; with `any_error`, so is every error that is none of
    ours.
    """

    max_retries: int = 3
    base_delay_s: float = 1.0
    patience: WaitBudget = PATIENT
    any_error: bool = False

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise ValueError(f"max_retries is {self.max_retries}, must be at least 0")
        if not 0 <= self.base_delay_s < math.inf:
            raise ValueError(f"retry_base_delay is {self.base_delay_s}, must be 0 or more")

    def decide(
        self, error: BaseException, *, attempts: int, now_s: float, doublings: int | None = None
    ) -> Backoff | None:
        """The pause before another attempt; None where none follows.

        `attempts` is the number of those that count, the one that failed among them; one that found
        the circuit open does not. `doublings` is how often the pause has doubled: once for each
        attempt before, unless the caller says otherwise.
        """
        if (
            attempts > self.max_retries
            or not self.is_passing(error)
            or self.patience.find_limit(error, now_s)
        ):
            return None
        if doublings is None:
            doublings = max(attempts - (not isinstance(error, CircuitOpen)), 0)
        wish = getattr(error, "retry_after", None)  # of any class: callers have their own
        least_s = float(wish) if isinstance(wish, int | float) and math.isfinite(wish) else 0.0
        # 2**64 times any delay that matters is beyond the cap; without a bound it overflows.
        most_s = min(math.ldexp(self.base_delay_s, min(doublings, 64)), MAX_DELAY_S)
        return Backoff(most_s, least_s)

    def is_passing(self, error: BaseException) -> bool:
        """Whether another attempt may succeed."""
        is_theirs = self.any_error and not isinstance(error, ReleasekitError)
        return is_theirs or isinstance(error, Transient)


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


class Deadlines:
    """Cancels the tasks that were not stopped within `limit_s`; None means unlimited.

    A task is cancelled only once. It may still end well: ask `expired` only if it did not.
    """

    def __init__(self, limit_s: float | None) -> None:
        if limit_s is not None and not limit_s > 0:
            raise ValueError(f"task_timeout is {limit_s}, must be above 0")
        self.limit_s = limit_s
        self._running: dict[Hashable, tuple[float, asyncio.Task[object]]] = {}  # earliest first
        self._expired: set[Hashable] = set()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, name: Hashable, task: asyncio.Task[object]) -> None:
        if self.limit_s is None:
            return
        loop = task.get_loop()
        due = loop.time() + self.limit_s
        self._expired.discard(name)
        self._running[name] = (due, task)
        if self._timer is None:
            self._timer = loop.call_at(due, self._expire)

    def stop(self, name: Hashable) -> None:
        self._running.pop(name, None)

    def expired(self, name: Hashable) -> bool:
        """Since its last `start`."""
        return name in self._expired

    def passed(self) -> Transient:
        """What ends an attempt whose time is over."""
        return Transient(
            f"not finished within {self.limit_s:g} s",
            ambiguous=True,
            problem=Problem.NOT_SENT_IN_TIME,
        )

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for name, (due, task) in list(self._running.items()):
            if due > loop.time():
                self._timer = loop.call_at(due, self._expire)
                break
            del self._running[name]
            self._expired.add(name)
            task.cancel()
