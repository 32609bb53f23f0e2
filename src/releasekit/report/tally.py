"""How far a run is: what has ended, what that keeps from starting, how long the rest may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.graph import reachable
from releasekit.model import Outcome
from releasekit.report.text import seconds

if TYPE_CHECKING:
    from releasekit.model import Event, PackageId, Plan

# Before so many have ended, what is left is a guess.
_ENOUGH: Final = 3


class Tally:
    """Of the packages that there is something to do for. Another thread may ask how many they are:
    it takes the sets' sizes, and never goes through them.
    """

    def __init__(self) -> None:
        self.packages: frozenset[PackageId] = frozenset()
        self.built: set[PackageId] = set()  # and have not ended
        self.ended: set[PackageId] = set()
        self._failed: set[PackageId] = set()
        self._blocked: set[PackageId] = set()  # will be said to be, in the end
        self._dependents: dict[PackageId, list[PackageId]] = {}

    def begin(self, plan: Plan) -> None:
        pending = plan.pending()
        self.packages = frozenset(pending)
        for name, needs in pending.items():
            for on in needs:
                self._dependents.setdefault(on, []).append(name)

    def on_event(self, event: Event) -> None:
        package = event.package
        if event.state == "ended" and event.phase == "build" and not event.detail:
            self.built.add(package)
        elif event.state == "settled" and package in self.packages:
            self.ended.add(package)
            self.built.discard(package)
            self._blocked.discard(package)
            if event.outcome in {Outcome.FAILED, Outcome.UNKNOWN}:
                self._failed.add(package)
                found = reachable([package], lambda on: self._dependents.get(on, ()))
                self._blocked |= found - self.ended

    def counts(self) -> str:
        parts = [
            (len(self.built), "built"),
            (len(self._failed), "failed"),
            (len(self._blocked), "blocked"),
        ]
        rest = "".join(f", {count} {word}" for count, word in parts if count)
        return f"{len(self.ended)} of {len(self.packages)} packages{rest}"

    def times(self, elapsed_s: float, *, idle_s: float, goes_on: bool) -> str:
        """`idle_s` is what pauses took of it. What is left is only said of a run that `goes_on`."""
        elapsed = f"{_whole(elapsed_s)} elapsed"
        left = len(self.packages) - len(self.ended) - len(self._blocked)
        if len(self.ended) < _ENOUGH or left <= 0 or not goes_on:
            return elapsed
        each_s = max(0.0, elapsed_s - idle_s) / len(self.ended)
        return f"{elapsed}, about {_whole(each_s * left)} left"


def _whole(duration_s: float) -> str:
    """Its last digit does not flicker."""
    return f"{duration_s:.0f} s" if duration_s < 10 else seconds(duration_s)
