"""Versions that are thrown away: what a commit would release, and all that needs it, published
under a label so that no usual requirement takes it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from releasekit.decided import Bump, Level, Reason
from releasekit.report.versions import VersionsView
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.cli.decision import Decided
    from releasekit.decided import Edge
    from releasekit.model import PackageId

# Go makes versions of commits itself (https://go.dev/ref/mod#pseudo-versions), and a -SNAPSHOT of
# Maven is no version that is published once.
_LEFT_OUT: Final[Mapping[str, str]] = {
    "go": "Go takes a commit as it is: go get {}@{}",
    "maven": "there are no snapshots of Maven packages",
}
_DIGITS: Final = 10


async def make_snapshot(decided: Decided, label: str) -> Decided:
    """`decided`, with such versions in the place of the next ones. They are those of HEAD, so that
    another run on it makes the same. Raises CommandFailed.
    """
    commits = decided.workspace.commits
    commit = await commits.read_head()
    time_s = (await commits.read_committers([commit]))[commit].time_s
    short = commit[:_DIGITS]
    stamp = f"{datetime.fromtimestamp(time_s, UTC):%Y%m%d%H%M%S}"

    def spell(package: PackageId, upcoming: str) -> str:
        if package.ecosystem == "pypi":
            # PyPI takes no local versions, and installers no development release unasked.
            return f"{upcoming}.dev{stamp}"
        # Lower than all others: https://github.com/changesets/changesets/blob/main/docs/snapshot-releases.md
        return f"0.0.0-{label}.{stamp}.g{short}"

    view = decided.view
    upcoming = {bump.package: bump for bump in view.decision.bumps}
    for edge in _list_reaching(decided.edges, upcoming):
        written = view.packages[edge.dependent].version
        following = numbering_of(edge.dependent.ecosystem).bump(written, Level.PATCH, "shift")
        reason = Reason(package=edge.dependent, level=Level.PATCH, edge=edge)
        upcoming[edge.dependent] = Bump(
            package=edge.dependent,
            old=written,
            new=following,
            level=Level.PATCH,
            reasons=(reason,),
        )
    bumps = [
        replace(bump, new=spell(package, bump.new))
        for package, bump in upcoming.items()
        if package.ecosystem not in _LEFT_OUT
    ]
    left = [
        Reason(package=package, rule=_LEFT_OUT[package.ecosystem].format(package.name, short))
        for package in upcoming
        if package.ecosystem in _LEFT_OUT
    ]
    decision = replace(view.decision, bumps=tuple(bumps), left_alone=tuple(left))
    return replace(decided, view=VersionsView(decision, view.packages, view.warned))


def _list_reaching(edges: Sequence[Edge], released: Collection[PackageId]) -> Iterator[Edge]:
    """One for each package that needs one of these, or needs one that does."""
    dependents: defaultdict[PackageId, list[Edge]] = defaultdict(list)
    for edge in edges:
        dependents[edge.on].append(edge)
    found, pending = {*released}, deque(released)
    while pending:
        for edge in dependents[pending.popleft()]:
            if edge.dependent not in found and edge.requirement:
                found.add(edge.dependent)
                pending.append(edge.dependent)
                yield edge
