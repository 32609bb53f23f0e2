"""What tags are called, refused before anything is published where that cannot be."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.errors import PlanError
from releasekit.notes.names import is_shared, tag_name, trouble_with_name
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Plan

_APART: Final = "{ecosystem}/{name}-v{version}"


class Named(NamedTuple):
    """A package, its tag, and whether its registry pushes that."""

    package: Package
    tag: str
    own: bool


def named_tags(plan: Plan, config: Config, targets: Mapping[str, Target]) -> dict[PackageId, Named]:
    """Of each package that is published at all; those without a tag are left out."""
    found = {}
    for planned in plan.packages:
        package = planned.package
        own = targets[package.id.ecosystem].own_tag
        name = own(package) if own else tag_name(config.tagging.name, package, config.root)
        if name:
            found[package.id] = Named(package, name, own is not None)
    return found


def refuse_names(named: Mapping[PackageId, Named], template: str) -> None:
    """Raises PlanError and PlanError: no remote has to be asked for that."""
    holders: dict[str, Package] = {}
    for package, name, own in named.values():
        if trouble := trouble_with_name(name):
            raise PlanError(
                f"{package}: its tag would be {name!r}, which {trouble}",
                hint=f'Write another `[tag] name` in releasekit.toml; it is "{template}".',
                problem=Problem.TAG_NAME,
            )
        holder = holders.setdefault(name, package)
        if holder is not package and (own or named[holder.id].own or not is_shared(template)):
            raise PlanError(
                f"{holder.id} and {package.id} would both have the tag {name!r}",
                hint=f'Tell them apart: [tag] name = "{_APART}" in releasekit.toml.',
                problem=Problem.SAME_TAG,
            )


def refuse_nested(named: Mapping[PackageId, Named], there: Collection[str]) -> None:
    """Git keeps refs as files and directories: none is both.

    https://git-scm.com/docs/git-check-ref-format
    """
    ours = {name for _, name, _ in named.values()}
    everything = ours.union(there)
    above = {str(each): name for name in everything for each in PurePosixPath(name).parents}
    for package, name, _ in named.values():
        if name in there:
            continue
        if name in above:
            raise PlanError(
                f"{package}: git can keep no tag {name!r} beside the tag {above[name]!r}",
                hint="Write another `[tag] name` in releasekit.toml.",
                problem=Problem.SAME_TAG,
            )
        for each in PurePosixPath(name).parents:
            if str(each) in everything:
                raise PlanError(
                    f"{package}: git can keep no tag {name!r} beside the tag {str(each)!r}",
                    hint="Write another `[tag] name` in releasekit.toml.",
                    problem=Problem.SAME_TAG,
                )
