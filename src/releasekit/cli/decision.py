"""Which versions the changes since the last release ask for: from a checkout to a decision."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.aio import Group, gather_all
from releasekit.announce.tag_names import tag_name
from releasekit.cli.commands.preview import PreviewInputs
from releasekit.cli.notes import find_package, require_head
from releasekit.cli.session import open_targets, open_workspace
from releasekit.config.package_filter import matches, with_extra
from releasekit.decided import Intent, Level, Reason, Rules, Source, VersionGroup
from releasekit.errors import (
    CommandFailed,
    ConfigError,
    Denied,
    PlanError,
    Rejected,
    Transient,
    join_errors,
)
from releasekit.git.commits import Commits, parse_ref_name
from releasekit.git.versions import find_versions
from releasekit.host.ci import MERGE_QUEUE
from releasekit.host.files import repository_of
from releasekit.model import PackageWarning, WarningName
from releasekit.plan.holdings import Holdings
from releasekit.plan.make import collect_packages
from releasekit.plan.other_tools import (
    Deciding,
    compare_manifest,
    describe_unread,
    find_unread,
    refuse_unread,
)
from releasekit.plan.unlisted_packages import mark_unread
from releasekit.problems import Problem
from releasekit.report.text import describe_private, few
from releasekit.report.versions import VersionsView
from releasekit.text.commands import spell
from releasekit.text.escape import clip, visible
from releasekit.versioning.decide import decide
from releasekit.versioning.intents import collect_intents
from releasekit.versioning.numbering import numbering_of
from releasekit.versioning.owners import name_place
from releasekit.versioning.released import UNSAID, name_unsaid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.config.version_options import VersionOptions
    from releasekit.decided import Decision, Edge, Standing
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.host.ci import CI
    from releasekit.model import Package, PackageId
    from releasekit.plan.holdings import Tree
    from releasekit.plan.other_tools import Unread
    from releasekit.versioning.intents import Collected


_TITLE_CHARS: Final = 100
_BRANCH: Final = re.compile(r"refs/(?:heads|remotes/[^/]+)/(.+)")


@dataclass(frozen=True, slots=True)
class Workspace:
    """What versions are decided for, as it was found. `public` packages get versions, in this run
    those that are `versioned`; `published` is what registries have said so far. `notes` are
    sentences about packages that are in no workspace here. Where it `is_part` of what the
    repository had, change files may name others. `branch` is the one that is released
    from, empty where it is `unknown`, which says why.
    """

    config: Config
    targets: Mapping[str, Target]
    packages: Mapping[PackageId, Package]
    commits: Commits
    services: Services
    public: Sequence[Package]
    versioned: Sequence[Package]
    holdings: Holdings
    branch: str
    unknown: str = ""
    published: dict[tuple[PackageId, str], bool | None] = field(default_factory=dict)
    is_part: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Decided:
    workspace: Workspace
    collected: Collected
    view: VersionsView


async def open_versions(group: Group, config: Config, session: Session) -> Workspace:
    """Open for as long as `group` is."""
    top = repository_of(config.root)
    if top is None:
        raise ConfigError(
            f"{config.root} is in no git repository, and its history says what has changed",
            hint="Run it in a clone of the repository.",
        )
    config, survey, services = await open_workspace(group, config, session)
    commits = Commits(top, services.processes)
    if config.mode != "change":  # which takes no history
        await require_head(commits)
    targets = await open_targets(group, config, session, services, survey.tree)
    about = config.package_filter
    notes = survey.describe_unlisted(config, targets)
    files = survey.describe_unread(about)
    # Where anything is found, what may get no version is said with the versions.
    is_empty = not any(each.workspace.packages for each in targets.values())
    beside = [*notes, *files] if is_empty else ()
    workspace = await make_workspace(config, targets, services, commits, survey.tree, beside)
    notes += map(mark_unread, files)
    if not workspace.versioned:
        private = [each for each in workspace.packages.values() if each.unpublishable]
        notes += describe_private([each for each in private if about.has_package(each.id)])
    deciding = Deciding(
        packages=workspace.versioned,
        branch=workspace.branch,
        excluded=config.exclude_packages,
        given=config.given.keys(),
    )
    unread = list(find_unread((top, config.root), deciding, config.written))
    # A change file is written whatever the version will be.
    if config.mode != "change" and (refused := refuse_unread(unread)):
        raise join_errors(refused)
    idle = _describe_idle_bumps(workspace)
    return replace(workspace, notes=[*notes, *idle, *describe_unread(unread)])


async def make_workspace(
    config: Config,
    targets: Mapping[str, Target],
    services: Services,
    commits: Commits,
    tree: Tree,
    unlisted: Sequence[str] = (),
) -> Workspace:
    """Of what was discovered; `unlisted` are sentences about what is in no workspace."""
    packages = collect_packages(targets, config.root, config.package_filter, unlisted)
    # Refuses names that no package has.
    with_extra(packages, config.extra_edges, {*targets, *config.absent})
    public = [each for each in packages if targets[each.id.ecosystem].takes_version(each)]
    versioned = [each for each in public if config.package_filter.has_package(each.id)]
    branch, unknown = config.branch, ""
    if not branch:
        since = config.own(PreviewInputs).since if config.mode == "preview" else None
        branch, unknown = await find_branch(commits, services.ci, config.versioning, since)
    return Workspace(
        config,
        targets,
        {each.id: each for each in packages},
        commits,
        services,
        public,
        versioned,
        Holdings(targets, config.root, tree, versioned),
        branch,
        unknown,
    )


def _describe_idle_bumps(workspace: Workspace) -> Iterator[str]:
    """Lines of `[dependencies]` that are to release a package for the sake of one that gets no
    version, or the other way round.
    """
    public = {each.id for each in workspace.public}
    for edge in workspace.config.extra_edges:
        # Within an ecosystem, "patch" may be what the default is.
        is_asked = edge.carry == "same" or (
            edge.carry == "patch" and edge.dependent.ecosystem != edge.on.ecosystem
        )
        for each in (edge.dependent, edge.on) if is_asked else ():
            package = workspace.packages.get(each)
            if package is None or each in public:
                continue
            line = f'"{edge.dependent}" = [{{ on = "{edge.on}", bump = "{edge.carry}" }}]'
            cure = "drop `bump`"
            if each == edge.on:
                place = name_place(package.directory, workspace.config.root)
                globs = json.dumps([f"{place}/**" if place else "**"])
                cure = f'write "{edge.dependent}" = {globs} below [version.paths] instead'
            why = f", as {package.unpublishable}" if package.unpublishable else ""
            yield (
                f"releasekit.toml: [dependencies] {line} releases nothing, since {each} gets no "
                f"version{why}: {cure}"
            )


async def find_branch(
    commits: Commits, ci: CI, options: VersionOptions, since: str | None
) -> tuple[str, str]:
    """The branch that is released from, or why it is unknown: the one that changes are going to be
    merged into, or else that of the job or checked out.
    """
    if (request := ci.read_pull_request()) and request.target:
        return request.target, ""
    if since is not None and (base := await _find_base(commits, since)):
        return base, ""
    ref, here = ci.ref, ""
    if options.branches or not ref:
        with suppress(CommandFailed):  # a detached HEAD
            told = await commits.run_git("symbolic-ref", "--quiet", "HEAD")
            here = told.parse(parse_ref_name)
    branch, other = ((ref or here).removeprefix("refs/heads/"), here.removeprefix("refs/heads/"))
    if ref and (not ref.startswith("refs/heads/") or ref.startswith(MERGE_QUEUE)):
        return "", f"this is a job of {visible(ref)}"
    if not branch:
        return "", "a detached commit is checked out"
    if other and _find_label(options, branch) != _find_label(options, other):
        return "", f"this is a job of {visible(branch)}, but {visible(other)} is checked out"
    return branch, ""


async def _find_base(commits: Commits, since: str) -> str:
    """The branch that a preview is compared with; empty where `since` names none."""
    name = since or "origin/HEAD"
    full = ""
    with suppress(CommandFailed):  # the preview says so
        full = await commits.run_git(
            "rev-parse", "--symbolic-full-name", "--verify", "--end-of-options", name
        )
    found = _BRANCH.fullmatch(full.strip())
    return found[1] if found else ""


def _require_branch(workspace: Workspace) -> None:
    """Raises PlanError where it is unknown, and says whether versions are prereleases."""
    options = workspace.config.versioning
    if workspace.unknown and options.branches:
        raise PlanError(
            f"{options.where()} has `branches`, but the current branch is unknown: "
            f"{workspace.unknown}",
            hint="Name it, for example with `--branch main`.",
            problem=Problem.UNKNOWN_BRANCH,
        )


async def look_back(workspace: Workspace, commit: str) -> Workspace:
    """As of an earlier commit: its history, its versions, its change files. What its packages
    required of each other is taken from today. Raises CommandFailed.
    """
    commits = Commits(workspace.commits.top, workspace.services.processes, head=commit)
    reading = {
        each: name_unsaid(workspace.targets[each.id.ecosystem].version_at)
        for each in workspace.public
    }
    asked = [(each, at, it) for each, at in reading.items() for it in (commit, "HEAD")]
    said = await find_versions(asked, commits)

    def go_back(packages: Sequence[Package]) -> Sequence[Package]:
        had = ((each, said[each.id, commit], said[each.id, "HEAD"]) for each in packages)
        # Of one that no manifest says, tags say it.
        return [
            each if UNSAID in {then, now} else replace(each, version=then)
            for each, then, now in had
            if then
        ]

    public = go_back(workspace.public)
    return replace(
        workspace,
        packages=dict(workspace.packages) | {each.id: each for each in public},
        commits=commits,
        public=public,
        versioned=go_back(workspace.versioned),
        is_part=True,
    )


async def decide_versions(
    workspace: Workspace, *, title: str = "", only_asked: bool = False
) -> Decided:
    """`title` is that of `collect_intents`. Where it is `only_asked` what changes ask for, it does
    not matter whether versions are prereleases. Raises PlanError with all troubles at once.
    """
    if not only_asked:
        _require_branch(workspace)
    config, targets, found = workspace.config, workspace.targets, workspace.packages
    options, is_part = config.versioning, workspace.is_part or bool(config.ecosystem)
    packages, holdings = list(found.values()), workspace.holdings
    versioned = {each.id for each in workspace.versioned}
    # No manifest and no path can hold a NUL.
    templates = {
        each.id: tag_name(config.tagging.name, replace(each, version="\0"), config.root)
        for each in workspace.versioned
    }
    try:
        collected = await collect_intents(
            {each: targets[each.id.ecosystem].version_at for each in workspace.versioned},
            packages,
            workspace.commits,
            config.root,
            options,
            packs=lambda package, name: package in versioned and holdings.holds(package, name),
            places=holdings.places,
            templates=templates,
            find_published=partial(find_published, workspace),
            labels=_choose_labels(workspace),
            together=[it.packages for each in targets.values() for it in each.shared_versions()],
            title=title,
            is_part=is_part,
        )
    except CommandFailed as error:
        raise ConfigError(f"the history cannot be read: {error}") from error
    standings = collected.standings
    unread: list[Unread] = []
    if workspace.commits.head == "HEAD" and not only_asked:
        unread = list(compare_manifest((workspace.commits.top, config.root), found, standings))
    if refused := refuse_unread(unread):
        raise join_errors(refused)
    chosen = decide_by_hand(config.set, packages, standings)
    by_hand = {each.package for each in chosen}
    # What is decided by hand stands in place of what a change file says.
    stated = [each for each in collected.intents if not (each.exact and each.package in by_hand)]
    edges = list_edges(targets, standings, config.extra_edges)
    ordered = {each.dependent for each in edges if each.only_orders}
    # It reads manifests.
    contained = await asyncio.to_thread(
        lambda: {each: holdings.find_contained(each) for each in ordered}
    )
    edges = [
        replace(each, carry="patch")
        if each.only_orders and each.on in contained[each.dependent]
        else each
        for each in edges
    ]
    propagate = options.propagate
    if config.snapshot:
        # No usual requirement takes one, so whatever needs it comes along.
        propagate = "needed"
        edges = [
            each if each.carry or each.only_orders else replace(each, carry="patch")
            for each in edges
        ]
    rules = Rules(
        zero=options.zero,
        propagate=propagate,
        groups=tuple(
            list_groups(options, targets, [each.package for each in standings], is_part=is_part)
        ),
    )
    decision = decide(standings, [*stated, *chosen], edges, rules)
    # A snapshot takes no version that another branch may have.
    harmless = {Problem.TAGGED_ELSEWHERE} if config.snapshot else set()
    if troubles := [each for each in decision.troubles if each.problem not in harmless]:
        raise join_errors(
            [
                PlanError(f"{each.package}: {each.message}", hint=each.hint, problem=each.problem)
                for each in troubles
            ]
        )
    left_alone = (
        *_list_resting(standings, decision, collected.left_alone),
        *_list_private(workspace),
        *collected.left_alone,
        *decision.left_alone,
    )
    warned = [
        (found[package], config.levels.apply([warning]))
        for package, warning in find_warnings(collected.unread)
    ]
    decision = replace(decision, left_alone=left_alone)
    notes = [
        *workspace.notes,
        *describe_unread(unread),
        *_describe_unread_tags(collected.unread_tags),
        *_describe_first(standings, collected.intents),
    ]
    view = VersionsView(decision, found, warned, notes)
    return Decided(workspace, collected, view)


def _list_resting(
    standings: Iterable[Standing], decision: Decision, told: Iterable[Reason]
) -> Iterator[Reason]:
    """The last version of each package that gets none now, so that a tag that was missed shows;
    `told` say theirs already.
    """
    shown = {each.package for each in decision.bumps} | {each.package for each in told}
    for each in standings:
        if each.package not in shown:
            mark = "v" if each.package.ecosystem == "go" else ""
            rule = f"stays at {mark}{each.last}" if each.last else "was never released"
            yield Reason(package=each.package, rule=rule)


def _describe_unread_tags(unread: Mapping[PackageId, Sequence[str]]) -> Iterator[str]:
    if unread:
        tags = sorted({tag for each in unread.values() for tag in each})
        yield (
            f"ReleaseKit finds no tag of {few(sorted(map(str, unread)))}, so it decides first "
            f"versions. If {few(tags)} is the tag of a version, write its form as `name` below "
            "[tag] in releasekit.toml, or tag the last version of each package again"
        )


def _describe_first(standings: Sequence[Standing], intents: Iterable[Intent]) -> Iterator[str]:
    """Where nothing shows a release that changes break: a first one takes what is written, and uses
    up change files.
    """
    if not any(each.last or each.taken for each in standings) and any(
        each.level is Level.MAJOR for each in intents
    ):
        yield (
            "no package here has a tag, or a version on its registry, so each gets its first "
            "version, though changes ask for a major one. If they were published before, run `git "
            "fetch --tags`, or name the registry that `publish` was given (`--registry`)"
        )


def _list_private(workspace: Workspace) -> Iterator[Reason]:
    public = {each.id for each in workspace.public}
    for package in workspace.packages.values():
        if package.id not in public and package.unpublishable:
            rule = f"never published: {package.unpublishable}"
            yield Reason(package=package.id, rule=rule)


def _choose_labels(workspace: Workspace) -> dict[PackageId, str]:
    """Of the packages whose next version is a prerelease. Raises ConfigError for a label that the
    ecosystem of one has not.
    """
    options, found = workspace.config.versioning, {}
    versioned = [package.id for package in workspace.versioned]
    is_part = workspace.is_part or bool(workspace.config.ecosystem)
    for glob in options.prerelease if versioned and not is_part else ():
        _refuse_unmatched(glob, versioned, f"{options.where()} prerelease")
    of_branch = _find_label(options, workspace.branch)
    for package in workspace.versioned:
        own = (text for glob, text in options.prerelease.items() if matches(package.id, [glob]))
        label = next(own, of_branch)
        try:
            if label:
                numbering_of(package.id.ecosystem).prerelease("1.0.0", label, 1)
                found[package.id] = label
        except ValueError as error:
            raise ConfigError(
                f"{options.where()} gives {package.id} the label {label!r}: {error}",
                hint="Write one of these for it below `prerelease`.",
            ) from error
    return found


def _find_label(options: VersionOptions, branch: str) -> str:
    """Of its prereleases; empty for one of stable versions, and for none."""
    if branch in options.branches or not branch:
        return options.branches.get(branch, "")
    return next((it for name, it in options.branches.items() if fnmatchcase(branch, name)), "")


async def find_published(
    workspace: Workspace, packages: Iterable[Package]
) -> Mapping[PackageId, bool | None]:
    """Whether its registry has the version of each; None where that does not answer, or is not the
    one that it goes to. It is asked once.
    """

    async def is_there(package: Package) -> bool | None:
        target = workspace.targets[package.id.ecosystem]
        if target.goes_elsewhere(package):
            return None
        try:
            return await target.registry.lookup(package) is not None
        except (Transient, Denied, Rejected):
            return None

    asked, known = list(packages), workspace.published
    unasked = [each for each in asked if (each.id, each.version) not in known]
    there = await gather_all(map(is_there, unasked))
    known.update(zip(((each.id, each.version) for each in unasked), there, strict=True))
    return {each.id: known[each.id, each.version] for each in asked}


def find_warnings(
    unread: Mapping[PackageId, Sequence[Source]],
) -> Iterator[tuple[PackageId, PackageWarning]]:
    """One for each package that commits touch which do not say what they ask for, by the newest."""
    for package, commits in sorted(unread.items()):
        newest = f"{commits[0].commit[:9]}: {clip(commits[0].title, _TITLE_CHARS)}"
        many = f"{len(commits)} commits do not say what they ask for, the newest is"
        told = many if len(commits) > 1 else "a commit does not say what it asks for:"
        yield package, PackageWarning(name=WarningName.UNREAD_COMMIT, message=f"{told} {newest}")


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
        edges = target.published_edges(released)
        found += [each for each in edges if each.dependent not in newest]
        latest = {it.name: last for it, last in newest.items() if it.ecosystem == name}
        if latest:
            found += [
                replace(each, packed=newest[each.dependent])
                for each in target.published_edges(released | latest)
                if each.dependent in newest
            ]
    return [edge for edge in found if edge.dependent in versions and edge.on in versions]


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


def list_groups(
    options: VersionOptions,
    targets: Mapping[str, Target],
    packages: Sequence[PackageId],
    *,
    is_part: bool = False,
) -> Iterator[VersionGroup]:
    """Those that releasekit.toml declares, then those whose version stands in one place. Where
    these are part of the packages, others may be named.
    """
    for name, group in options.groups.items():
        for glob in group.packages if not is_part else ():
            _refuse_unmatched(glob, packages, f"{options.where()} groups.{name}")
        members = tuple(package for package in packages if matches(package, group.packages))
        yield VersionGroup(name=name, packages=members, kind=group.kind)
    known = frozenset(packages)
    for target in targets.values():
        for shared in target.shared_versions():
            members = tuple(package for package in shared.packages if package in known)
            yield replace(shared, packages=members)


def _refuse_unmatched(glob: str, packages: Iterable[PackageId], where: str) -> None:
    if not any(matches(package, [glob]) for package in packages):
        raise ConfigError(
            f"{where}: {glob!r} matches no package that gets a version",
            hint=f"{spell('plan')} lists them.",
            problem=Problem.NOTHING_MATCHES,
        )


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
        found[package] = Intent(package=package, level=Level.NONE, source=source, exact=exact)
    return list(found.values())
