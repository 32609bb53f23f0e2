"""The command version: which versions the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from releasekit.aio import Group
from releasekit.cli.interruption import Interruption
from releasekit.cli.notes import find_package
from releasekit.cli.session import (
    name_bad_paths,
    open_ecosystems,
    open_workspace,
    refuse_elsewhere,
)
from releasekit.config.package_filter import matches, with_extra
from releasekit.decided import Intent, Level, Rules, Source, VersionGroup
from releasekit.errors import CommandFailed, ConfigError, PlanError, join_errors
from releasekit.host.files import repository_of
from releasekit.plan.make import collect_packages, discover
from releasekit.problems import Problem
from releasekit.report.versions import (
    VersionsView,
    versions_outputs,
    versions_summary,
    versions_table,
)
from releasekit.text.commands import spell
from releasekit.text.escape import visible
from releasekit.versioning.decide import decide
from releasekit.versioning.intents import collect_intents
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.config.version_options import VersionOptions
    from releasekit.decided import Edge, Standing
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId


async def run(config: Config, session: Session) -> int:
    """Show what `version` is going to write; changes nothing."""
    if not (config.dry_run or config.check):
        raise ConfigError(
            "version cannot write versions yet; it shows which ones the changes ask for",
            hint="Give `--dry-run` (`dry-run: true`), or `--check` to exit with 1 where there is "
            "one to write. `releasekit --version` tells the version of ReleaseKit.",
            problem=Problem.COMMAND_LINE,
        )
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    session.actions.watch_files()  # build backends may have to tell versions
    with Interruption("cancelled"):
        async with Group() as group:
            view = await _decide(group, config, session)
    session.actions.restore_files(for_good=True)
    for name, value in versions_outputs(view, config.root).items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(versions_summary(view))
    print(versions_table(view, verbose=config.verbose), file=session.out, flush=True)
    return 1 if config.check and view.to_write else 0


async def _decide(group: Group, config: Config, session: Session) -> VersionsView:
    """Raises PlanError with all troubles at once."""
    top = repository_of(config.root)
    if top is None:
        raise ConfigError(
            f"{config.root} is in no git repository, and its history says what has changed",
            hint="Run it in a clone of the repository.",
        )
    config, _, services = await open_workspace(group, config, session)
    discoveries = await open_ecosystems(group, config, session, services)
    with name_bad_paths(config.root):
        targets = await discover(config.root, discoveries)
    packages = collect_packages(targets, config.root, config.package_filter)
    with_extra(packages, config.extra_edges, targets)  # refuses names that nobody has
    try:
        collected = await collect_intents(...)
    except CommandFailed as error:
        raise ConfigError(f"the history cannot be read: {error}") from error
    standings = collected.standings
    chosen = decide_by_hand(config.set, packages, standings)
    by_hand = {each.package for each in chosen}
    # What is decided by hand stands in place of what a change file says.
    stated = [each for each in collected.intents if not (each.exact and each.package in by_hand)]
    edges = list_edges(targets, standings, config.extra_edges)
    options = config.versioning
    rules = Rules(
        zero=options.zero,
        propagate=options.propagate,
        groups=tuple(list_groups(options, targets, [each.package for each in standings])),
    )
    decision = decide(standings, [*stated, *chosen], edges, rules)
    if decision.troubles:
        raise join_errors(
            [
                PlanError(f"{each.package}: {each.message}", hint=each.hint, problem=each.problem)
                for each in decision.troubles
            ]
        )
    left_alone = (*collected.left_alone, *decision.left_alone)
    found = {each.id: each for each in packages}
    return VersionsView(replace(decision, left_alone=left_alone), found)


def list_edges(
    targets: Mapping[str, Target], standings: Sequence[Standing], extra: Iterable[Edge]
) -> list[Edge]:
    """What published files ask, and what `[dependencies]` adds, between packages that have
    versions.
    """
    versions = {each.package: each.released or each.written for each in standings}
    found = list(extra)
    for name, target in targets.items():
        released = {
            package.name: version
            for package, version in versions.items()
            if package.ecosystem == name
        }
        found += target.published_edges(released)
    return [edge for edge in found if edge.dependent in versions and edge.on in versions]


def list_groups(
    options: VersionOptions, targets: Mapping[str, Target], packages: Sequence[PackageId]
) -> Iterator[VersionGroup]:
    """Those that releasekit.toml declares, then those whose version stands in one place."""
    for name, group in options.groups.items():
        for glob in group.packages:
            if not any(matches(package, [glob]) for package in packages):
                raise ConfigError(
                    f"{options.where()} groups.{name}: {glob!r} matches no package that gets a "
                    "version",
                    hint=f"{spell('plan')} lists them.",
                    problem=Problem.NOTHING_MATCHES,
                )
        members = tuple(package for package in packages if matches(package, group.packages))
        yield VersionGroup(name=name, packages=members, kind=group.kind)
    known = frozenset(packages)
    for target in targets.values():
        for shared in target.shared_versions():
            members = tuple(package for package in shared.packages if package in known)
            yield replace(shared, packages=members)


def decide_by_hand(
    chosen: Sequence[str], packages: Sequence[Package], standings: Sequence[Standing]
) -> list[Intent]:
    """The intents of `--set NAME=VERSION`. Raises ConfigError for a name that nobody has, and for a
    version that is not higher than the released one.
    """
    released = {each.package: each.released for each in standings}
    found: dict[PackageId, Intent] = {}
    for text in chosen:
        name, equals, version = text.rpartition("=")
        if not equals or not name:
            raise ConfigError(
                f"--set {visible(text)!r} has no version",
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
        found[package] = Intent(package=package, level=Level.NONE, source=source, exact=exact)
    return list(found.values())
