"""What a run has left to be approved, from its results alone: which packages, in which order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from releasekit.errors import ConfigError
from releasekit.model import Outcome
from releasekit.problems import Problem
from releasekit.report.joined import publish_order

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import PackageId, Report, Result


@dataclass(frozen=True, slots=True)
class Held:
    """`recorded` are the staged results, dependencies first; `needs` are the edges among them.
    `behind` is what the run has blocked, each with what it waits for, directly or not, and `lacks`
    what of a staged package's needs is neither published nor staged.
    """

    recorded: Mapping[PackageId, Result]
    needs: Mapping[PackageId, frozenset[PackageId]]
    behind: Mapping[PackageId, frozenset[PackageId]]
    lacks: Mapping[PackageId, frozenset[PackageId]]

    @classmethod
    def of(cls, report: Report, where: str) -> Self:
        """Raises ConfigError naming `where`, the file, for results that hold a cycle, or nothing
        that can be compared of something staged.
        """
        results = {result.package.id: result for result in report.results}
        staged = {name for name, each in results.items() if each.outcome is Outcome.STAGED}
        for name in sorted(staged):
            if not results[name].artifacts or results[name].staged is None:
                raise ConfigError(
                    f"{where}: {name} is staged, and its files are not on record",
                    hint="Take the results.json of the run that staged it.",
                    problem=Problem.RESULTS,
                )
        order = publish_order(report.edges, where)
        reach: dict[PackageId, frozenset[PackageId]] = {}
        for name in order:
            needed = report.edges.get(name, frozenset())
            # What stands between two staged packages orders them as well.
            reach[name] = frozenset().union(
                *({need} if need in staged else reach.get(need, frozenset()) for need in needed)
            )
        absent = {
            name for name, each in results.items() if not each.outcome.done and name not in staged
        }
        lacks = {name: report.edges.get(name, frozenset()) & absent for name in order}
        return cls(
            {name: results[name] for name in order if name in staged},
            {name: reach[name] for name in order if name in staged},
            {
                name: reach[name]
                for name in order
                if reach[name] and name in results and results[name].outcome is Outcome.BLOCKED
            },
            {name: lacks[name] for name in order if name in staged and lacks[name]},
        )

    def levels(self) -> Mapping[PackageId, int]:
        """From 1, which needs nothing that waits."""
        found: dict[PackageId, int] = {}
        for name in self.recorded:
            found[name] = 1 + max((found[need] for need in self.needs[name]), default=0)
        return found

    def needed_by(self) -> Mapping[PackageId, Sequence[PackageId]]:
        """By name, whatever of it waits too."""
        return {
            name: [other for other, needs in self.needs.items() if name in needs]
            for name in self.recorded
        }
