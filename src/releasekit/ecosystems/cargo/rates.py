"""How fast crates.io takes packages, and when the next upload may start.

https://github.com/rust-lang/crates.io/blob/main/src/rate_limiter.rs
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from releasekit.report.text import minutes


class Limit(Struct, frozen=True):
    """`burst` at once, then one every `interval_s`."""

    burst: int
    interval_s: float

    def duration_s(self, count: int) -> float:
        """The least time for `count` of them, with the whole burst left."""
        return max(0, count - self.burst) * self.interval_s

    def share(self, jobs: int) -> Limit:
        """The part of one of several jobs that spend it together."""
        return Limit(self.burst // jobs, self.interval_s * jobs)


NEW_CRATES: Final = Limit(5, 600.0)
NEW_VERSIONS: Final = Limit(30, 60.0)


def plan_note(least_s: float) -> str:
    """Tells the user the least time that a release takes; empty where nothing has to wait."""
    if not least_s:
        return ""
    return (
        f"cargo: this release takes at least {minutes(least_s)}: crates.io takes 5 new "
        "crates, then one every 10 minutes, and 30 new versions, then one a minute. What is "
        "published stays when the run ends before: https://crates.io/docs/rate-limits"
    )


class Pace(Struct):
    """Gives each waiting package its own turn once a registry has said when it takes the next one:
    if all came back at once, the registry would let in only one of them. The jobs of a release
    hear the same moment from the registry, so each has a different `delay_s`.
    """

    limit: Limit
    delay_s: float = 0.0
    _turns: dict[str, float] = field(default_factory=dict)
    _next: float = 0.0
    _asked_until: float = 0.0

    def wait_s(self, name: str, now: float) -> float:
        """0 when `name` may go now; else how long until its turn."""
        turn = self._turns.get(name)
        if turn is None:
            if not self._turns or now >= self._next:
                return 0.0
            turn = self._take(name)
        return max(0.0, turn - now)

    def record_refusal(self, name: str, now: float, retry_after_s: float) -> float:
        """Records that the registry refuses `name` for now; returns the wait until its turn."""
        self._turns.pop(name, None)
        self._asked_until = max(self._asked_until, now + retry_after_s)
        self._next = max(self._next, now + retry_after_s + self.delay_s)
        return round(self._take(name) - now, 3)

    def asked_s(self, now: float) -> float:
        """The part of the wait that the registry asks for; the rest is for packages ahead."""
        return max(0.0, self._asked_until - now)

    def record_acceptance(self, name: str) -> None:
        self._turns.pop(name, None)

    def _take(self, name: str) -> float:
        turn = self._turns[name] = self._next
        self._next += self.limit.interval_s
        return turn
