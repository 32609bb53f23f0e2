"""Versions that are thrown away: of what a commit would release, and all that needs it, published
under a label so that no usual requirement takes them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from releasekit.decided import Reason
from releasekit.fields import replace
from releasekit.report.versions import VersionsView
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.decided import Bump
    from releasekit.versions.decision import Decided

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
    commits = decided.scope.commits
    commit = await commits.read_head()
    time_s = (await commits.read_committers([commit]))[commit].time_s
    short = commit[:_DIGITS]
    stamp = f"{datetime.fromtimestamp(time_s, UTC):%Y%m%d%H%M%S}"

    def spell(bump: Bump) -> str:
        if bump.package.ecosystem == "pypi":
            # PyPI takes no local versions, and installers no development release unasked.
            return numbering_of("pypi").prerelease(bump.new, "dev", int(stamp))
        # Lower than all others: https://github.com/changesets/changesets/blob/main/docs/snapshot-releases.md
        return f"0.0.0-{label}.{stamp}.g{short}"

    view, bumps, left = decided.view, [], []
    for bump in view.decision.bumps:
        package = bump.package
        if rule := _LEFT_OUT.get(package.ecosystem):
            left.append(Reason(package=package, rule=rule.format(package.name, short)))
        else:
            bumps.append(replace(bump, new=spell(bump)))
    decision = replace(view.decision, bumps=tuple(bumps), left_alone=tuple(left))
    return replace(decided, view=VersionsView(decision, view.packages, view.warned, view.notes))
