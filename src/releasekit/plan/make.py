"""From the working tree to a Plan: what is there, what goes first, what the registries hold."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Final

import httpx
from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.config.levels import WarningLevel
from releasekit.config.package_filter import with_extra
from releasekit.errors import ConfigError, Cycle, ManifestError, PlanError, map_all, raise_all
from releasekit.fields import replace
from releasekit.graph import DependencyGraph, levels_above, reachable
from releasekit.host.files import read_file
from releasekit.http.origins import is_insecure
from releasekit.model import (
    MAX_MANIFEST_BYTES,
    SENT,
    UNKNOWN,
    Action,
    Artifact,
    Dependency,
    DependencyKind,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
    Published,
    WarningName,
)
from releasekit.plan.absent import explain_absent
from releasekit.plan.decision import compare, decide, is_begun, without_unplanned
from releasekit.plan.foreign_manifests import describe_foreign, suggest_directories
from releasekit.plan.holdings import NO_TREE
from releasekit.plan.order import in_order, without_soft_cycles
from releasekit.plan.registries import find_unnamed, look_up_all, refresh_staged, refuse_unnamed
from releasekit.plan.unlisted_packages import (
    TESTS,
    describe_included,
    describe_unlisted,
    describe_unread,
    find_unlisted,
    is_aside,
    mark_unread,
)
from releasekit.plan.withdrawn import find_withdrawn_needs, refuse_withdrawn, warn_of_withdrawn
from releasekit.problems import Problem
from releasekit.report.text import describe_private, few
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.levels import Levels
    from releasekit.config.package_filter import PackageFilter
    from releasekit.ecosystems.interface import Discovery, Target, Workspace
    from releasekit.errors import PackageError
    from releasekit.plan.holdings import Tree
    from releasekit.plan.unlisted_packages import NestedPackages, UnreadManifest
    from releasekit.state.journal import History, HistoryEntry


class Survey(Struct, frozen=True):
    """What lies below the root, whether discovery finds it or not, and a note about it. `unread` is
    what of it nobody knows to be a package, and `tree` what git has there.
    """

    ecosystems: Mapping[str, EcosystemDeclaration]
    nested: Sequence[NestedPackages] = ()
    note: str = ""
    unread: Sequence[UnreadManifest] = ()
    tree: Tree = NO_TREE

    def describe_unlisted(self, config: PlanConfig, targets: Mapping[str, Target]) -> list[str]:
        """A sentence for each ecosystem that has packages in no workspace here."""
        left, tables = find_unlisted(self.nested, targets), config.ecosystem_tables
        included = describe_included(left, tables, self.ecosystems) if self.note else []
        own = [each for each in left if config.package_filter.has_ecosystem(each.ecosystem)]
        unlisted = describe_unlisted(own, config.root, tables, self.ecosystems)
        return [*unlisted, *included]

    def describe_beside(self, config: PlanConfig, targets: Mapping[str, Target]) -> list[str]:
        """All that is left, and all that could be packages."""
        unread = self.describe_unread(config.package_filter)
        return [*self.describe_unlisted(config, targets), *unread]

    def describe_foreign(self, config: PlanConfig, targets: Mapping[str, Target]) -> str:
        """What other tools publish from here, unless ecosystems were chosen."""
        about = config.package_filter
        has_all = bool(self.ecosystems) and all(map(about.has_ecosystem, self.ecosystems))
        return describe_foreign(config.root, targets) if has_all else ""

    def describe_unread(self, about: PackageFilter) -> list[str]:
        """One for all that could be packages."""
        return describe_unread(
            [each for each in self.unread if about.has_ecosystem(each.ecosystem)]
        )


NO_SURVEY: Final = Survey({})
# Actions that send the bytes of an earlier run, even if the registry shows none.
_AS_BUILT: Final = frozenset({Action.UPLOAD, Action.AWAIT})
# What clients do without, but for Yarn, which takes no package without its optionalDependencies.
_NOT_INSTALLED: Final = frozenset({DependencyKind.DEV, DependencyKind.OPTIONAL})
# How many dependents a message names, which all go into `exclude-packages` with one.
_NAMED: Final = 50


async def discover(
    root: Path,
    discoveries: Mapping[str, Discovery],
    tree: Tree,
    *,
    built: PackageFilter | None = None,
) -> dict[str, Target]:
    """The packages of every ecosystem, discovered side by side.

    Raises the errors of all of them together. Where a tool is missing for that, the tools that the
    packages to be `built` take are looked for too: a user who sees one at a time needs a run for
    each.
    """

    async def attempt(discovery: Discovery) -> Target | ConfigError | PlanError:
        try:
            with explain_absent(root, tree):
                return await discovery.discover(root)
        except (ConfigError, PlanError) as error:
            return error

    found = await gather_all(map(attempt, discoveries.values()))
    refused = [each for each in found if isinstance(each, ConfigError | PlanError)]
    targets = {
        name: each
        for name, each in zip(discoveries, found, strict=True)
        if not isinstance(each, ConfigError | PlanError)
    }
    if built is not None and any(each.problem is Problem.TOOL_MISSING for each in refused):
        there = [each for target in targets.values() for each in target.workspace.packages]
        chosen = [it for it in there if built.has_package(it.id) and not it.unpublishable]
        refused += await _find_unusable(chosen, targets)
    raise_all(refused)
    return join_targets(targets)


def join_targets(targets: Mapping[str, Target]) -> dict[str, Target]:
    """Each with what its packages take from those of others. Raises ConfigError."""
    joined = map_all(lambda each: each.join(targets), targets.values())
    return dict(zip(targets, joined, strict=True))


async def make_plan(
    config: PlanConfig,
    targets: Mapping[str, Target],
    history: History,
    *,
    commit: str,
    survey: Survey = NO_SURVEY,
) -> Plan:
    """Checks, orders and looks up; changes nothing, on disk or anywhere else.

    `targets` are of the ecosystems that the run publishes, and of those that it only consults.
    Raises ConfigError and PlanError for what the user has to correct, PackageError when a registry
    cannot be asked and the run would upload, or refuses to be read.
    """
    about = config.package_filter
    unread = survey.describe_unread(about)
    _refuse_unread(unread, config.levels)
    unlisted = survey.describe_unlisted(config, targets)
    found = collect_packages(targets, config.root, about, [*unlisted, *unread])
    everything, public, ordered, order_notes = _put_in_order(found, config, targets)
    unreleased = find_unreleased(ordered, everything, targets)
    asked = [*with_dependencies(ordered, public), *unreleased]
    checks = {
        each.id.ecosystem: targets[each.id.ecosystem].registry.check_credentials for each in asked
    }
    unnamed = find_unnamed(checks)
    if config.is_uploading:
        refuse_unnamed(unnamed)
    published, unasked = await look_up_all(
        asked, targets, uploading=config.is_uploading, unnamed=unnamed
    )
    urls = _find_urls(config, targets, survey)

    def decide_on(
        package: Package, shown: Published | None, entry: HistoryEntry | None
    ) -> PlannedPackage:
        ecosystem, silence = package.id.ecosystem, unasked.get(package.id)
        # What may not be sent twice is decided by its check alone, and not by the journal.
        binds = targets[ecosystem].is_repeatable
        unknown = "" if silence is None else UNKNOWN if binds else str(silence)
        return plan_package(
            package,
            shown,
            entry,
            commit=commit,
            url=urls[ecosystem],
            unknown=unknown,
            binds=binds,
        )

    decided = [decide_on(it, published.get(it.id), history.entry(it)) for it in ordered]
    seen = [
        decide_on(each.package, each.published, without_staged(history.entry(each.package)))
        if each.action is Action.AWAIT and each.staged is None
        else each
        for each in await refresh_staged(decided, targets)
    ]
    planned, left_out = without_unplanned(seen, config.not_to_publish)
    ordered = [each.package for each in planned]
    known = published if not config.is_uploading else dict.fromkeys(unasked) | published
    foreign = refuse_left_out(
        ordered, known, about, not_to_publish=config.not_to_publish, waits=config.wait > 0
    )
    nowhere = _find_nowhere(unreleased, targets)
    refuse_unreleased(planned, nowhere)
    planned = await asyncio.to_thread(_check_withdrawn, planned, public, published, targets)
    versions = planned_versions(public.values())
    # Parses whole manifests, which may be long.
    await asyncio.to_thread(check_pins, planned, versions, targets)
    check_single_uploads(planned, targets)
    map_all(partial(_refuse_late_need, targets=targets), ordered)
    fingerprints = sorted(each.fingerprint for each in planned)
    waits = f"waits for what other jobs publish: {few(list(map(str, foreign)))}" if foreign else ""
    return Plan(
        packages=planned,
        private=tuple(
            sorted(
                (p for p in found if p.unpublishable and about.has_ecosystem(p.id.ecosystem)),
                key=lambda p: p.id,
            )
        ),
        commit=commit,
        digest=hashlib.sha256("\n".join([commit, *fingerprints]).encode()).hexdigest(),
        registries=urls,
        versions=versions,
        foreign=tuple(public[package] for package in foreign),
        behind=waiting_elsewhere(ordered, public) if config.wait else {},
        notes=(
            *filter(None, [survey.note, survey.describe_foreign(config, targets)]),
            *describe_insecure(urls.values(), config.insecure_hosts),
            *unlisted,
            *map(mark_unread, unread),
            *order_notes,
            *describe_doubts(planned),
            *describe_optional(planned, {**everything, **public}, published, nowhere),
            *filter(None, [waits]),
            *left_out,
            *describe_unasked(unasked, targets),
            *describe_expectations(planned, targets),
            *(
                f"{error}: it was asked without one, and may have more than it shows. {error.hint}"
                for error in unnamed.values()
            ),
        ),
    )


def _refuse_unread(unread: Sequence[str], levels: Levels) -> None:
    if unread and levels.find(WarningName.UNREAD_MANIFEST) is WarningLevel.ERROR:
        words = f"{WarningName.UNREAD_MANIFEST}: {unread[0]}"
        hint = levels.find_way_out([WarningName.UNREAD_MANIFEST])
        raise PlanError(words, hint=hint, problem=Problem.WARNING_OF_PLAN)


def _put_in_order(
    found: Sequence[Package], config: PlanConfig, targets: Mapping[str, Target]
) -> tuple[dict[PackageId, Package], dict[PackageId, Package], list[Package], tuple[str, ...]]:
    """All packages, the public ones, those to publish in their order, and notes about cycles."""
    about = config.package_filter
    joined = with_extra(found, config.extra_edges, {*targets, *config.absent})
    everything = {each.id: with_doubt(each, config.root) for each in joined}
    public, notes = without_soft_cycles(
        {p.id: p for p in everything.values() if not p.unpublishable}
    )
    selected = about.select(public)
    chosen = map_all(partial(without_private, everything=everything, beside=selected), selected)
    beside = [p for p in public.values() if not about.has_ecosystem(p.id.ecosystem)]
    ordered = [p for p in in_order([*chosen, *beside]) if about.has_ecosystem(p.id.ecosystem)]
    return everything, public, ordered, notes


def _find_urls(config: PlanConfig, targets: Mapping[str, Target], survey: Survey) -> dict[str, str]:
    """Of the registries that the run is about, those without a package here too."""
    about = config.package_filter
    present = {
        name: target.registry.url for name, target in targets.items() if about.has_ecosystem(name)
    }
    return present | {
        name: str(config.registries.get(name, survey.ecosystems[name].default_registry))
        for name in config.absent
        if not survey.ecosystems[name].options.NAMED
    }


def _find_nowhere(
    unreleased: Iterable[Package], targets: Mapping[str, Target]
) -> dict[PackageId, Package]:
    """Those whose registry, which was asked, has no version of them at all."""
    return {
        package.id: package
        for package in unreleased
        if (is_new := targets[package.id.ecosystem].preflight.is_new) is not None
        and is_new(package.id)
    }


def with_doubt(package: Package, root: Path) -> Package:
    """`package` with a doubt about publishing it, where its directory or its name gives one."""
    if package.doubt or package.follows:
        return package
    parts = package.directory.parts[len(root.parts) :]
    if aside := [each for each in parts if is_aside(each)]:
        return replace(package, doubt=f"lies in a directory called `{min(aside)}`")
    if TESTS.fullmatch(package.id.name):
        return replace(package, doubt="has the name of tests")
    return package


def describe_doubts(planned: Sequence[PlannedPackage]) -> list[str]:
    """Names the packages that go out although publishing them is hardly meant: a workspace lists
    them, and they do not call themselves private.
    """
    doubts: dict[str, list[str]] = {}
    for each in planned:
        if each.action in SENT and each.package.doubt:
            doubts.setdefault(each.package.doubt, []).append(str(each.package.id))
    return [
        f"to be published, although each of these {doubt}: {few(names)}; `exclude-packages` leaves "
        "them out"
        for doubt, names in doubts.items()
    ]


def describe_optional(
    planned: Sequence[PlannedPackage],
    known: Mapping[PackageId, Package],
    published: Mapping[PackageId, Published | None],
    nowhere: Mapping[PackageId, Package],
) -> list[str]:
    """Names the extras, optional dependencies and optional peers that users would ask for in vain:
    pip, uv, npm and pnpm install the rest without them.
    """
    going = {each.package.id for each in planned}

    def find_loss(need: Dependency) -> str:
        why = need.private or known[need.on].unpublishable
        if why:
            return f"{need.on.name} (never published: {why})"
        is_lost = need.on in published and not _is_there(need.on, going, published)
        return f"{need.on.name} (left out and not published yet)" if is_lost else ""

    notes = []
    for each in planned:
        package = known[each.package.id]
        asked = (*package.asked_for, *(it for it in package.elsewhere if it.on in nowhere))
        needs = [it for it in asked if it.soft and it.kind is DependencyKind.OPTIONAL]
        lost = [*dict.fromkeys(filter(None, map(find_loss, needs)))]
        if lost and each.action in SENT:
            notes.append(
                f"{package.id} is published without optional dependencies: {few(lost)}; users can "
                "install it, but not the parts that need these"
            )
    return notes


def _is_there(
    package: PackageId,
    going: Collection[PackageId],
    published: Mapping[PackageId, Published | None],
) -> bool:
    there = published.get(package)
    return package in going or (there is not None and there.complete)


def describe_unasked(
    errors: Mapping[PackageId, PackageError], targets: Mapping[str, Target]
) -> list[str]:
    """A note for each ecosystem whose registry could not be asked, with the first reason."""
    first: dict[str, PackageError] = {}
    for package, error in errors.items():
        if targets[package.ecosystem].is_repeatable:
            first.setdefault(package.ecosystem, error)
    return [
        f"{ecosystem}: what is published is not known, and `publish` would end here: "
        f"{str(error).removesuffix('.')}. {error.hint}".rstrip()
        for ecosystem, error in first.items()
    ]


def describe_insecure(urls: Iterable[str], hosts: Collection[str]) -> list[str]:
    """A note for each registry that is reached without encryption."""
    return [
        f"INSECURE: {url} is reached without encryption, as `insecure-hosts` allows: anybody on "
        "the network path can read the token and change the packages"
        for url in sorted(set(urls))
        if url.startswith("http://") and is_insecure(httpx.URL(url), hosts)
    ]


def describe_expectations(
    packages: Sequence[PlannedPackage], targets: Mapping[str, Target]
) -> tuple[str, ...]:
    """What the targets expect of this plan, in words for the user."""
    notes = (
        target.plan_notes([each for each in packages if each.package.id.ecosystem == name])
        for name, target in targets.items()
    )
    return tuple(filter(None, notes))


def collect_packages(
    targets: Mapping[str, Target], root: Path, about: PackageFilter, unlisted: Sequence[str] = ()
) -> list[Package]:
    """Every package found; raises ConfigError when there is none, when two have one name, and when
    only `unlisted` ones could be published, with whatever version.
    """
    packages = [package for target in targets.values() for package in target.workspace.packages]
    public = [p for p in packages if about.has_ecosystem(p.id.ecosystem) and p.gets_version]
    if unlisted and not public:
        own = [p for p in packages if about.has_ecosystem(p.id.ecosystem)]
        told = [sentence.partition("; ") for sentence in unlisted]
        here = "start in the directory that is meant (`working-directory`)"
        foreign = filter(None, [describe_foreign(root, targets)])
        ways = [*(cure for _, _, cure in told if cure), here]
        raise ConfigError(
            f"{root}: there is no package to publish here: "
            + "; ".join([*describe_private(own), *(said for said, _, _ in told), *foreign]),
            hint=f"Run {spell('init')}, which writes releasekit.toml; or {'; or '.join(ways)}. "
            f"{suggest_directories(root, targets)}".rstrip(),
            problem=Problem.NO_PACKAGES,
        )
    if not packages:
        here = f"there is no package here ({', '.join(sorted(about.ecosystems))})"
        raise ConfigError(
            "; ".join(filter(None, [f"{root}: {here}", describe_foreign(root, targets)])),
            hint=suggest_directories(root, targets)
            or "Name the repository's root: by `working-directory`, or as ROOT where the command "
            "has that. Directories of examples and tests are not looked into, nor NAME-examples: "
            "start there, or name them in releasekit.toml.",
            problem=Problem.NO_PACKAGES,
        )
    seen: dict[PackageId, Package] = {}
    # Of those that share a name, the one that is published counts, and goes first here.
    for package in sorted(packages, key=lambda each: bool(each.unpublishable)):
        first = seen.setdefault(package.id, package)
        if first is not package and not package.unpublishable:
            raise ConfigError(
                f"{package.manifest}: the name {package.id.name!r} is taken by {first.manifest}",
                hint="Names are compared in their canonical form; rename one of the two.",
                problem=Problem.SAME_NAME,
            )
    return list(seen.values())


def without_private(
    package: Package, everything: Mapping[PackageId, Package], beside: Sequence[Package]
) -> Package:
    """`package` without its optional dependencies that are never published.

    Raises PlanError when it cannot be installed or built without one that is never published.
    """

    def is_public(dependency: Dependency) -> bool:
        reason = dependency.private or everything[dependency.on].unpublishable
        is_needed = dependency.kind not in {DependencyKind.OPTIONAL, DependencyKind.ORDER}
        if reason and is_needed and dependency.on != package.follows:
            name = display_name(dependency.on, beside=package.id)
            kind = f" ({dependency.kind})" if dependency.kind is not DependencyKind.EXTRA else ""
            raise PlanError(
                f"{package.manifest}: {package.id.name} needs {name}{kind}, which is never "
                f"published: {reason}",
                hint=f"Publish {name} too, drop the dependency, or leave "
                f"{with_dependents(package.id, beside)} out with `exclude-packages`, or its "
                "ecosystem with `ecosystem`.",
                problem=Problem.NEEDS_PRIVATE,
            )
        return not reason

    kept = map_all(is_public, package.dependencies)
    return replace(package, dependencies=tuple(compress(package.dependencies, kept)))


def with_dependencies(
    chosen: Sequence[Package], public: Mapping[PackageId, Package]
) -> list[Package]:
    """The chosen packages, and the packages left out that they depend on."""
    wanted = {package.id: package for package in chosen}
    for package in chosen:
        for dependency in package.asked_for:
            wanted.setdefault(dependency.on, public[dependency.on])
    return list(wanted.values())


def refuse_left_out(
    chosen: Sequence[Package],
    published: Mapping[PackageId, Published | None],
    about: PackageFilter,
    *,
    not_to_publish: Collection[PackageId],
    waits: bool,
) -> list[PackageId]:
    """Raises PlanError for a package whose dependency is neither planned nor published, as far as
    is known; returns those dependencies that are waited for instead.
    """
    planned = {package.id for package in chosen}

    def is_foreign(needs: tuple[Package, Dependency]) -> bool:
        package, dependency = needs
        # Installing a package does not install its development dependencies.
        if dependency.kind is DependencyKind.DEV or _is_there(dependency.on, planned, published):
            return False
        # A dependency that goes out after the package cannot be waited for before it.
        if waits and dependency in package.dependencies:
            return True
        if dependency.on not in published or dependency.kind is DependencyKind.OPTIONAL:
            return False
        name = display_name(dependency.on, beside=package.id)
        hint = f"The plan file does not publish {name}: plan again with it."
        if dependency.on not in not_to_publish:
            hint = suggest_way_out(dependency.on, name, with_dependents(package.id, chosen), about)
        raise PlanError(
            f"{package.id} needs {name}, which is left out and not published yet",
            hint=hint,
            problem=Problem.NEEDS_LEFT_OUT,
        )

    needs = [(package, dependency) for package in chosen for dependency in package.asked_for]
    return sorted({need.on for _, need in compress(needs, map_all(is_foreign, needs))})


def find_unreleased(
    chosen: Sequence[Package],
    everything: Mapping[PackageId, Package],
    targets: Mapping[str, Target],
) -> list[Package]:
    """Dependencies of the chosen packages that no run publishes, from registries that can tell
    whether a name is new.
    """
    needs = {
        need.on: everything[need.on]
        for package in chosen
        if targets[package.id.ecosystem].preflight.is_new is not None
        for need in package.elsewhere
        if need.on in everything and need.kind is not DependencyKind.DEV
    }
    return [package for package in needs.values() if package.unpublishable]


def refuse_unreleased(
    planned: Sequence[PlannedPackage], nowhere: Mapping[PackageId, Package]
) -> None:
    """Raises PlanError for a package that goes out and needs one of which its registry has no
    version at all.
    """
    chosen = [each.package for each in planned]

    def refuse(needs: tuple[Package, Dependency]) -> None:
        package, need = needs
        raise PlanError(
            f"{package.id} needs {need.on.name}, which is left out and not published yet: "
            f"{nowhere[need.on].unpublishable}",
            hint=f"Publish a version of {need.on.name} first, drop the dependency, or leave "
            f"{with_dependents(package.id, chosen)} out with `exclude-packages`.",
            problem=Problem.NEEDS_LEFT_OUT,
        )

    map_all(
        refuse,
        [
            (each.package, need)
            for each in planned
            if each.action in SENT
            for need in each.package.elsewhere
            if need.on in nowhere and need.kind not in _NOT_INSTALLED
        ],
    )


def _check_withdrawn(
    planned: Sequence[PlannedPackage],
    public: Mapping[PackageId, Package],
    published: Mapping[PackageId, Published | None],
    targets: Mapping[str, Target],
) -> tuple[PlannedPackage, ...]:
    """With warnings for what goes out and needs a version that was withdrawn. Raises PlanError
    where nobody could install it.
    """
    sent = [each.package for each in planned if each.action in SENT]
    needs = [*find_withdrawn_needs(sent, public, published, targets)]
    chosen = [each.package for each in planned]
    refuse_withdrawn(needs, lambda package: with_dependents(package, chosen))
    return tuple(
        replace(
            each,
            warnings=(
                *each.warnings,
                *warn_of_withdrawn(need for need in needs if need.package.id == each.package.id),
            ),
        )
        for each in planned
    )


def waiting_elsewhere(
    chosen: Sequence[Package], public: Mapping[PackageId, Package]
) -> dict[PackageId, int]:
    """Packages that should go early because other jobs wait for them."""
    here, everywhere = (
        levels_above({p.id: [need.on for need in p.dependencies] for p in packages})
        for packages in (chosen, public.values())
    )
    more = {package: everywhere[package] - levels for package, levels in here.items()}
    return {package: levels for package, levels in more.items() if levels}


def suggest_way_out(left_out: PackageId, name: str, dependents: str, about: PackageFilter) -> str:
    if about.has_ecosystem(left_out.ecosystem):
        return (
            f"Add {name} to `packages` (or take it out of `exclude-packages`), publish it first, "
            f"let this job `wait` for the one that does, or leave {dependents} out."
        )
    together = ",".join(sorted({*about.only, left_out.ecosystem}))
    return (
        f"Publish both in one run (`ecosystem: {together}`), let this job `wait` for the one that "
        f"publishes {left_out.ecosystem}, or leave {dependents} out with `exclude-packages`."
    )


def with_dependents(package: PackageId, chosen: Sequence[Package]) -> str:
    """Its name, and those of all packages that need it: they can only be left out together."""
    above: defaultdict[PackageId, list[PackageId]] = defaultdict(list)
    for each in chosen:
        for need in each.asked_for:
            if need.kind not in _NOT_INSTALLED:
                above[need.on].append(each.id)
    others = sorted(reachable([package], lambda each: above[each]) - {package})
    names = [display_name(each, beside=package) for each in others]
    return f"{package.name} and what needs it ({few(names, _NAMED)})" if names else package.name


def display_name(package: PackageId, *, beside: PackageId) -> str:
    """The name alone where `beside` is of the same ecosystem, else with its ecosystem."""
    return package.name if package.ecosystem == beside.ecosystem else str(package)


def plan_package(
    package: Package,
    published: Published | None,
    entry: HistoryEntry | None,
    *,
    commit: str,
    url: str,
    unknown: str = "",
    binds: bool = True,
) -> PlannedPackage:
    """What is to be done about a package. Where it is `unknown` what its registry shows, nothing is
    refused, and what is not there is as good a guess as any. Unless it `binds`, what an earlier run
    built or sent decides nothing.
    """
    prebuilt = package.prebuilt
    kept = entry if binds else None
    action, reason = decide(published, kept, commit=commit, url=url, prebuilt=prebuilt)
    if unknown and action in {*SENT, Action.REFUSE}:
        action = Action.PUBLISH if action is Action.REFUSE else action
        reason = unknown
    if published and published.withdrawal and action is not Action.REFUSE:
        reason += f", {published.withdrawal}"
    if action is Action.PUBLISH and prebuilt:
        reason += f"; {len(prebuilt)} file{'s' * (len(prebuilt) > 1)} built elsewhere"
    planned = PlannedPackage(
        package=package,
        action=action,
        reason=reason,
        fingerprint=fingerprint(package, url),
        published=published,
    )
    if not binds:
        begun = entry is not None and entry.uncertain and is_begun(entry, url)
        return replace(planned, begun=begun)
    return _with_entry(planned, entry, url) if entry else planned


def _with_entry(planned: PlannedPackage, entry: HistoryEntry, url: str) -> PlannedPackage:
    is_built_again = planned.action is Action.PUBLISH and not entry.sealed
    is_staged = planned.action is Action.AWAIT and entry.staged_sealed
    return replace(
        planned,
        artifacts=_stored_artifacts(entry, planned.published, planned.action),
        built_from=entry.commit,
        begun=is_begun(entry, url),
        claimed=entry.artifacts if is_built_again else (),
        staged=entry.staged if is_staged else None,
    )


def without_staged(entry: HistoryEntry | None) -> HistoryEntry | None:
    """Without a claim to be staged that has no seal and that the registry does not confirm."""
    return entry and replace(entry, staged=None)


def _stored_artifacts(
    entry: HistoryEntry, published: Published | None, action: Action
) -> tuple[Artifact, ...]:
    """The sealed artifacts of an earlier run, where they are still to be sent, or the registry has
    them.
    """
    if not entry.sealed:
        return ()
    comparison = compare(entry.artifacts, published)
    the_same = not comparison.missing and not comparison.differing
    return entry.artifacts if action in _AS_BUILT or the_same else ()


def fingerprint(package: Package, url: str) -> str:
    """The same on every machine that has the same sources and the same destination."""
    edges = sorted(f"{dependency.kind} {dependency.on}" for dependency in package.dependencies)
    manifests = [
        hashlib.sha256(read_file(path, max_bytes=MAX_MANIFEST_BYTES)).hexdigest()
        for path in package.manifests
    ]
    facts: list[object] = [str(package.id), package.version, *manifests, url, edges]
    facts += [f"{artifact.filename} {artifact.sha256}" for artifact in package.prebuilt]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def planned_versions(packages: Iterable[Package]) -> dict[str, dict[str, str]]:
    """Ecosystem → canonical name → the version this workspace has."""
    versions: dict[str, dict[str, str]] = {}
    for package in packages:
        versions.setdefault(package.id.ecosystem, {})[package.id.name] = package.version
    return versions


def check_pins(
    packages: Sequence[PlannedPackage],
    versions: Mapping[str, Mapping[str, str]],
    targets: Mapping[str, Target],
) -> None:
    """Raises PlanError where a manifest asks for another version of a package than the planned
    one, before anything is built.
    """
    manifests = {
        (planned.package.id.ecosystem, manifest): None
        for planned in packages
        if planned.action is Action.PUBLISH
        for manifest in planned.package.manifests
    }
    map_all(
        lambda each: pin_manifest(targets[each[0]].workspace, each[1], versions[each[0]]), manifests
    )


def pin_manifest(
    workspace: Workspace, manifest: Path, versions: Mapping[str, str]
) -> tuple[str, str]:
    """Its text before and after. Raises ManifestError where it is not the manifest that discovery
    read: a build that was asked for a version may have changed it.
    """
    before = read_manifest(manifest)
    try:
        return before, workspace.pin(before, versions)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ManifestError(f"{manifest}: changed while the plan was made: {error}") from error


def read_manifest(path: Path) -> str:
    """Text with its line ends and byte order mark as they are; in UTF-8, with other bytes as
    surrogates: a POM may have another encoding.
    """
    return read_file(path, max_bytes=MAX_MANIFEST_BYTES).decode("utf-8", "surrogateescape")


def check_single_uploads(packages: Sequence[PlannedPackage], targets: Mapping[str, Target]) -> None:
    """Raises PlanError where packages that one upload sends together would have to wait for another
    ecosystem's package that waits for one of them.
    """
    single_upload = {name for name, target in targets.items() if target.single_upload}

    def node(package: PackageId) -> str:
        return f"all of {package.ecosystem}" if package.ecosystem in single_upload else str(package)

    sent = {
        planned.package.id: planned.package
        for planned in packages
        if planned.action not in {Action.KEEP, Action.AWAIT}
    }
    edges: dict[str, set[str]] = {}
    for package in sent.values():
        needs = {
            node(dependency.on) for dependency in package.dependencies if dependency.on in sent
        }
        edges.setdefault(node(package.id), set()).update(needs - {node(package.id)})
    try:
        DependencyGraph.from_edges(edges)
    except Cycle as cycle:
        raise PlanError(
            str(cycle),
            hint="The registry takes all packages of that ecosystem at once. Publish in two runs "
            "with `packages`, first what the others wait for, or drop a dependency.",
            problem=Problem.ALL_AT_ONCE,
        ) from cycle


def _refuse_late_need(package: Package, targets: Mapping[str, Target]) -> None:
    """Raises PlanError for what would go out after the release, without a tag, as it needs what
    does.
    """
    for need in package.dependencies:
        late = targets[need.on.ecosystem].after_release if need.on.ecosystem in targets else ()
        if need.on in late and package.id not in targets[package.id.ecosystem].after_release:
            raise PlanError(
                f"{package.id} needs {need.on}, which comes after the release",
                hint=f"Drop the dependency, or take `after` out of {need.on}.",
            )


async def find_missing_tools(
    plan: Plan, targets: Mapping[str, Target]
) -> list[ConfigError | PlanError]:
    """Of each ecosystem that has something to build here, why its tool cannot."""
    built = [each.package for each in plan.packages if each.action is Action.PUBLISH]
    return await _find_unusable(built, targets)


async def _find_unusable(
    built: Iterable[Package], targets: Mapping[str, Target]
) -> list[ConfigError | PlanError]:
    """Why tools cannot build these."""
    by_ecosystem: defaultdict[str, list[Package]] = defaultdict(list)
    for package in built:
        by_ecosystem[package.id.ecosystem].append(package)

    async def find_error(
        target: Target, building: Sequence[Package]
    ) -> ConfigError | PlanError | None:
        try:
            await target.find_tool(building)
        except (ConfigError, PlanError) as error:
            return error
        return None

    asked = [find_error(targets[name], own) for name, own in sorted(by_ecosystem.items())]
    return [error for error in await gather_all(asked) if error is not None]
