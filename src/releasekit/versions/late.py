"""What a plan says of changes that came after the versions of a release were decided: merged beside
a release pull request, they would go out with it unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.errors import CommandFailed, ConfigError, PlanError
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.git.versions import find_first_commits
from releasekit.host.files import repository_of
from releasekit.model import Action, PackageWarning, WarningName
from releasekit.report.text import few
from releasekit.text.escape import clip
from releasekit.text.numbering import numbering_of
from releasekit.versions.decision import decide_versions
from releasekit.versions.history import make_shallow_error, read_bases, read_line
from releasekit.versions.scope import make_scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Package, PackageId, Plan, PlannedPackage
    from releasekit.plan.holdings import Tree
    from releasekit.versions.decision import Decided
    from releasekit.versions.scope import Scope

_MOST_TITLES: Final = 3
_TITLE_CHARS: Final = 100


async def add_late_changes(
    plan: Plan, config: Config, targets: Mapping[str, Target], services: Services, tree: Tree
) -> Plan:
    """A package of which such a change would have raised the version is refused until the next
    release pull request has done so; another one is warned about. Only versions count whose commit
    says which commit they were decided on; without any, `plan.source.has_base` is False.
    """
    new = {each.package.id: each.package for each in plan.packages if _is_new(each)}
    top = repository_of(config.root)
    # Without a commit, nothing came after anything.
    if not new or top is None or not plan.commit:
        return plan
    commits = Commits(top, services.processes)
    try:
        bases = await _find_bases(new.values(), targets, commits)
        if not bases:
            return plan
        scope = await make_scope(config, targets, services, commits, tree)
        scope = replace(scope, published=_list_published(plan, scope))
        decided = await decide_versions(scope, only_asked=True)
    except (CommandFailed, ConfigError, PlanError) as error:
        why = f"{error}. {error.hint}" if error.hint else error
        note = f"it is unknown what came after these versions were decided: {why}"
        return replace(plan, notes=(*plan.notes, note))
    late = _find_late(decided, bases)
    raised = {
        package: version
        for package, version in decided.view.to_write.items()
        if package in new and _is_raised(new[package], version)
    }

    def tell(planned: PlannedPackage) -> PlannedPackage:
        titles, asked = late.get(planned.package.id, []), raised.get(planned.package.id, "")
        # Without changelogs, nothing would have told of it anyway.
        is_missed = titles and (asked or config.versioning.changelog != "none")
        if not is_missed:
            return planned
        warning = _warn(planned.package, titles, asked)
        told = config.levels.apply([warning])
        if told and asked:
            planned = replace(planned, action=Action.REFUSE, reason=warning.message)
        return replace(planned, warnings=(*planned.warnings, *told))

    return replace(plan, packages=tuple(map(tell, plan.packages)))


def _is_new(planned: PlannedPackage) -> bool:
    return planned.action is Action.PUBLISH and planned.published is None


async def _find_bases(
    packages: Iterable[Package], targets: Mapping[str, Target], commits: Commits
) -> dict[PackageId, int]:
    """How many commits are younger than what each version was decided on, where its commit says
    that. Raises PlanError in a clone that may lack such a commit, and CommandFailed.
    """
    versions = {each: targets[each.id.ecosystem].versioning.read_version for each in packages}
    line = await read_line(commits)
    wrote = await find_first_commits(versions, commits)
    stated = await read_bases(line, filter(None, wrote.values()))
    bases = {
        package: line.indexes[base]
        for package, commit in wrote.items()
        if (base := stated.get(commit, "")) in line.indexes
    }
    if line.is_shallow and len(bases) < len(versions):
        raise make_shallow_error()
    return bases


def _list_published(plan: Plan, scope: Scope) -> dict[tuple[PackageId, str], bool | None]:
    """What the plan knows of it: no registry is asked again."""
    found: dict[tuple[PackageId, str], bool | None]
    found = {(each.id, each.version): None for each in scope.public}
    for each in plan.packages:
        found[each.package.id, each.package.version] = each.published is not None
    return found


def _warn(package: Package, titles: Sequence[str], asked: str) -> PackageWarning:
    """`asked` is the version that changes of these titles ask for, empty where they raise none."""
    raises = f"asks for {asked}: merge the next release pull request, which writes that"
    what = raises if asked else "goes out with it"
    told = f"{few(titles, _MOST_TITLES)} came after {package.version} was decided, and {what}"
    return PackageWarning(name=WarningName.LATE_CHANGE, message=told)


def _is_raised(package: Package, version: str) -> bool:
    """Whether the version leads to a higher stable one: a further prerelease of the same one does
    not.
    """
    numbering = numbering_of(package.id.ecosystem)
    written, asked = (
        numbering.order(numbering.stable(each)) for each in (package.version, version)
    )
    return asked > written


def _find_late(decided: Decided, bases: Mapping[PackageId, int]) -> dict[PackageId, list[str]]:
    """The titles of what came after the base of each package."""
    ages = decided.collected.ages
    return {
        package: [
            clip(each.source.title, _TITLE_CHARS)
            for each in candidate.intents
            if (each.level or each.exact)
            and ages.get(each.source.commit, bases[package]) < bases[package]
        ]
        for package, candidate in decided.collected.candidates.items()
        if package in bases
    }
