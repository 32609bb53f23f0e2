"""What a decision goes by beside changes: labels, requirements, groups, and versions chosen by
hand.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from releasekit.config.package_filter import find_package, matches
from releasekit.decided import Level, Rules, Source, VersionGroup, VersionIntent
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.plan.places import name_place
from releasekit.problems import Problem
from releasekit.text.commands import spell
from releasekit.text.escape import visible
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.version_options import VersionOptions
    from releasekit.decided import Edge, Standing
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId


def choose_labels(
    options: VersionOptions, packages: Iterable[Package], branch: str, *, is_part: bool
) -> dict[PackageId, str]:
    """Of the packages whose next version is a prerelease. Where they are part of the packages,
    others may be named. Raises ConfigError for a label that the ecosystem of one has not.
    """
    found: dict[PackageId, str] = {}
    versioned = [each.id for each in packages]
    for glob in options.prerelease if versioned and not is_part else ():
        _refuse_unmatched(glob, versioned, f"{options.where()} prerelease")
    of_branch = find_label(options, branch)
    for package in versioned:
        own = (text for glob, text in options.prerelease.items() if matches(package, [glob]))
        label = next(own, of_branch)
        try:
            if label:
                numbering_of(package.ecosystem).prerelease("1.0.0", label, 1)
                found[package] = label
        except ValueError as error:
            raise ConfigError(
                f"{options.where()} gives {package} the label {label!r}: {error}",
                hint="Write one of these for it below `prerelease`.",
            ) from error
    return found


def find_label(options: VersionOptions, branch: str) -> str:
    """Of its prereleases; empty for one of stable versions, and for none."""
    if branch in options.branches or not branch:
        return options.branches.get(branch, "")
    return next((it for name, it in options.branches.items() if fnmatchcase(branch, name)), "")


def list_edges(
    targets: Mapping[str, Target], standings: Sequence[Standing], extra: Iterable[Edge]
) -> list[Edge]:
    """What published files ask, and what `[dependencies]` adds, between packages that have
    versions. Those of a prerelease were packed beside the prereleases of what they need.
    """
    versions = {each.package: each.last or each.written for each in standings}
    newest = {it.package: last for it in standings if (last := _find_last_prerelease(it))}
    found = list(extra)
    for name, target in targets.items():
        released = {it.name: last for it, last in versions.items() if it.ecosystem == name}
        edges = target.versioning.list_edges(released)
        found += [each for each in edges if each.dependent not in newest]
        latest = {it.name: last for it, last in newest.items() if it.ecosystem == name}
        if latest:
            found += [
                replace(each, packed=newest[each.dependent])
                for each in target.versioning.list_edges(released | latest)
                if each.dependent in newest
            ]
    return [edge for edge in found if edge.dependent in versions and edge.on in versions]


def describe_idle_edges(
    extra: Iterable[Edge],
    packages: Mapping[PackageId, Package],
    public: Iterable[Package],
    root: Path,
) -> Iterator[str]:
    """Lines of `[dependencies]` that are to release a package for the sake of one that gets no
    version, or the other way round. `public` are those that get one.
    """
    versioned = {each.id for each in public}
    for edge in extra:
        # Within an ecosystem, "patch" may be what the default is.
        is_asked = edge.carry == "same" or (
            edge.carry == "patch" and edge.dependent.ecosystem != edge.on.ecosystem
        )
        for each in (edge.dependent, edge.on) if is_asked else ():
            package = packages.get(each)
            if package is None or each in versioned:
                continue
            line = f'"{edge.dependent}" = [{{ on = "{edge.on}", bump = "{edge.carry}" }}]'
            cure = "drop `bump`"
            if each == edge.on:
                place = name_place(package.directory, root)
                globs = json.dumps([f"{place}/**" if place else "**"])
                cure = f'write "{edge.dependent}" = {globs} below [version.paths] instead'
            why = f", as {package.unpublishable}" if package.unpublishable else ""
            yield (
                f"releasekit.toml: [dependencies] {line} releases nothing, since {each} gets no "
                f"version{why}: {cure}"
            )


def _find_last_prerelease(standing: Standing) -> str:
    """The highest one that is out, of those after the last stable version and up to the written
    one, of a package whose next version is one; empty without any.
    """
    if not standing.label:
        return ""
    numbering = numbering_of(standing.package.ecosystem)
    least = numbering.order(standing.released) if standing.released else None
    most = numbering.order(standing.written)
    out = [
        (order, each)
        for each in standing.taken
        if numbering.read(each).is_prerelease
        and (order := numbering.order(each)) <= most
        and (least is None or least < order)
    ]
    return max(out)[1] if out else ""


def make_rules(
    options: VersionOptions,
    targets: Mapping[str, Target],
    packages: Sequence[PackageId],
    *,
    is_part: bool,
) -> Rules:
    """Where these are part of the packages, others may be named. Raises ConfigError."""
    groups = tuple(_list_groups(options, targets, packages, is_part=is_part))
    return Rules(zero=options.zero, propagate=options.propagate, groups=groups)


def _list_groups(
    options: VersionOptions,
    targets: Mapping[str, Target],
    packages: Sequence[PackageId],
    *,
    is_part: bool,
) -> Iterator[VersionGroup]:
    """Those that releasekit.toml declares, then those whose version stands in one place."""
    for name, group in options.groups.items():
        for glob in group.packages if not is_part else ():
            _refuse_unmatched(glob, packages, f"{options.where()} groups.{name}")
        members = tuple(package for package in packages if matches(package, group.packages))
        yield VersionGroup(name=name, packages=members, kind=group.kind)
    known = frozenset(packages)
    for target in targets.values():
        for place, sharing in target.versioning.groups.items():
            members = tuple(package for package in sharing if package in known)
            yield VersionGroup(name=place, packages=members, place=place)


def read_chosen(
    chosen: Sequence[str], packages: Sequence[Package], standings: Sequence[Standing]
) -> list[VersionIntent]:
    """The intents of `--set NAME=VERSION`. Raises ConfigError for a name that nobody has, and for a
    version that is not higher than the released one.
    """
    released = {each.package: each.released for each in standings}
    found: dict[PackageId, VersionIntent] = {}
    for text in chosen:
        name, equals, version = text.rpartition("=")
        if not equals or not name:
            raise ConfigError(
                f"--set {visible(text)} has no version",
                hint="Write NAME=VERSION, like acme-core=2.0.0.",
            )
        package = find_package(name, packages).id
        if package not in released:
            raise ConfigError(
                f"--set {visible(text)}: {package} is never published, so it gets no version"
            )
        if package in found:
            raise ConfigError(f"--set names {package} twice", hint="Write one version for it.")
        numbering = numbering_of(package.ecosystem)
        try:
            exact = numbering.check(version)
        except ValueError as error:
            raise ConfigError(f"--set {visible(text)}: {error}") from error
        last = released[package]
        if last and numbering.order(exact) <= numbering.order(last):
            raise ConfigError(
                f"--set {visible(text)}: {version} is not higher than {last}, which is released"
            )
        source = Source(title=f"--set {name}={version}")
        found[package] = VersionIntent(
            package=package, level=Level.NONE, source=source, exact=exact
        )
    return list(found.values())


def _refuse_unmatched(glob: str, packages: Iterable[PackageId], where: str) -> None:
    if not any(matches(package, [glob]) for package in packages):
        raise ConfigError(
            f"{where}: {glob!r} matches no package that gets a version",
            hint=f"{spell('plan')} lists them.",
            problem=Problem.NOTHING_MATCHES,
        )
