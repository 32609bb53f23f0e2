"""Which versions the changes since the last release ask for: from a checkout to a decision."""

from __future__ import annotations

import asyncio
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.decided import Level, Reason
from releasekit.errors import CommandFailed, ConfigError, PlanError, raise_all
from releasekit.fields import replace
from releasekit.git.tag_forms import tag_name
from releasekit.model import PackageWarning, WarningName
from releasekit.plan.other_tools import compare_manifest, describe_unread, refuse_unread
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.report.versions import VersionsView
from releasekit.text.escape import clip
from releasekit.versions.candidates import Candidate
from releasekit.versions.decide import decide
from releasekit.versions.intents import collect_intents
from releasekit.versions.owners import Owners
from releasekit.versions.rules import choose_labels, list_edges, make_rules, read_chosen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from releasekit.decided import Decision, Edge, Source, Standing
    from releasekit.plan.holdings import Holdings
    from releasekit.plan.other_tools import Unread
    from releasekit.versions.intents import Collected
    from releasekit.versions.scope import Scope

_TITLE_CHARS: Final = 100


class Decided(Struct, frozen=True):
    scope: Scope
    collected: Collected
    view: VersionsView


async def decide_versions(scope: Scope, *, title: str = "", only_asked: bool = False) -> Decided:
    """`title` is that of `collect_intents`. Where it is `only_asked` what changes ask for, it does
    not matter whether versions are prereleases. Raises PlanError with all troubles at once.
    """
    if not only_asked:
        scope.require_branch()
    collected = await _collect(scope, title)
    unread = [] if only_asked else _compare_manifests(scope, collected)
    decision = await _decide(scope, collected)
    return Decided(scope, collected, _make_view(scope, collected, decision, unread))


def _compare_manifests(scope: Scope, collected: Collected) -> list[Unread]:
    """Where release-please would count from other versions, at HEAD. Raises PlanError for one that
    the next version would be below.
    """
    if scope.commits.head != "HEAD":
        return []
    places = (scope.commits.top, scope.config.root)
    unread = list(compare_manifest(places, scope.packages, collected.standings))
    raise_all(refuse_unread(unread))
    return unread


async def _decide(scope: Scope, collected: Collected) -> Decision:
    config, standings = scope.config, collected.standings
    chosen = read_chosen(config.set, [*scope.packages.values()], standings)
    by_hand = {each.package for each in chosen}
    # What is decided by hand stands in place of what a change file says.
    stated = [it for it in collected.intents if not (it.exact and it.package in by_hand)]
    edges = list_edges(scope.targets, standings, config.extra_edges)
    edges = await _follow_contents(edges, scope.holdings)
    ids = [each.package for each in standings]
    rules = make_rules(config.versioning, scope.targets, ids, is_part=scope.is_part)
    harmless = set[Problem]()
    if config.snapshot:
        # No usual requirement takes one, so whatever needs it comes along.
        rules = replace(rules, propagate="needed")
        edges = [it if it.carry or it.only_orders else replace(it, carry="patch") for it in edges]
        # It takes no version that another branch may have.
        harmless = {Problem.TAGGED_ELSEWHERE}
    decision = decide(standings, [*stated, *chosen], edges, rules)
    refused = [
        PlanError(f"{each.package}: {each.message}", hint=each.hint, problem=each.problem)
        for each in decision.troubles
        if each.problem not in harmless
    ]
    raise_all(refused)
    return decision


def _make_view(
    scope: Scope, collected: Collected, decision: Decision, unread: Sequence[Unread]
) -> VersionsView:
    candidates = [*collected.candidates.values()]
    guessed = [*_list_guessed(candidates)]
    left_alone = (
        *_list_resting(collected.standings, decision, guessed),
        *_list_private(scope),
        *guessed,
        *decision.left_alone,
    )
    warned = [
        (each.package, scope.config.levels.apply([warn_of_unclear(each.unclear)]))
        for each in sorted(candidates, key=attrgetter("id"))
        if each.unclear
    ]
    notes = [
        *scope.notes,
        *describe_unread(unread),
        *_describe_similar_tags(candidates),
        *_describe_first(candidates),
    ]
    return VersionsView(replace(decision, left_alone=left_alone), scope.packages, warned, notes)


async def _collect(scope: Scope, title: str) -> Collected:
    config, options, holdings = scope.config, scope.config.versioning, scope.holdings
    packages = [*scope.packages.values()]
    candidates = _list_candidates(scope)
    versioned = {each.id for each in candidates}
    owners = Owners(
        packages,
        scope.commits.top,
        config.root,
        packs=lambda package, name: package in versioned and holdings.holds(package, name),
        places=holdings.places,
        ignore=options.ignore,
        paths=options.paths,
        is_part=scope.is_part,
    )
    try:
        return await collect_intents(
            candidates,
            packages,
            scope.commits,
            owners,
            options,
            config.root,
            find_published=scope.find_published,
            title=title,
            is_part=scope.is_part,
        )
    except CommandFailed as error:
        raise ConfigError(f"the history cannot be read: {error}") from error


def _list_candidates(scope: Scope) -> list[Candidate]:
    config, targets = scope.config, scope.targets
    labels = choose_labels(config.versioning, scope.versioned, scope.branch, is_part=scope.is_part)
    groups = (ids for each in targets.values() for ids in each.versioning.groups.values())
    # No manifest and no path can hold a NUL.
    shared = {
        package: replace(package, name=f"\0{number}")
        for number, packages in enumerate(groups)
        for package in packages
    }
    return [
        Candidate(
            package=each,
            read_version=targets[each.id.ecosystem].versioning.read_version,
            tag=tag_name(config.tagging.name, replace(each, version="\0"), config.root),
            label=labels.get(each.id, ""),
            shared=shared.get(each.id),
        )
        for each in scope.versioned
    ]


async def _follow_contents(edges: Sequence[Edge], holdings: Holdings) -> list[Edge]:
    """What contains another package follows it, though `[dependencies]` only orders the two."""
    ordered = {each.dependent for each in edges if each.only_orders}
    # It reads manifests.
    contained = await asyncio.to_thread(
        lambda: {each: holdings.find_contained(each) for each in ordered}
    )
    return [
        replace(each, carry="patch")
        if each.only_orders and each.on in contained[each.dependent]
        else each
        for each in edges
    ]


def _list_guessed(candidates: Iterable[Candidate]) -> Iterator[Reason]:
    for each in sorted(candidates, key=attrgetter("id")):
        if each.release.guessed:
            last = each.standing.last
            rule = f"no tag names {last}, so it counts as released by the commit that wrote it"
            yield Reason(package=each.id, rule=rule)


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


def _describe_similar_tags(candidates: Iterable[Candidate]) -> Iterator[str]:
    found = {str(each.id): each.release.similar_tags for each in candidates}
    names = sorted(name for name, tags in found.items() if tags)
    if names:
        tags = sorted({tag for each in found.values() for tag in each})
        yield (
            f"ReleaseKit finds no tag of {few(names)}, so it decides first versions. If "
            f"{few(tags)} is the tag of a version, write its form as `name` below [tag] in "
            "releasekit.toml, or tag the last version of each package again"
        )


def _describe_first(candidates: Iterable[Candidate]) -> Iterator[str]:
    """Where nothing shows a release that changes break: a first one takes what is written, and uses
    up change files.
    """
    known = any(each.standing.last or each.release.taken for each in candidates)
    if not known and any(it.level is Level.MAJOR for each in candidates for it in each.intents):
        yield (
            "no package here has a tag, or a version on its registry, so each gets its first "
            "version, though changes ask for a major one. If they were published before, run `git "
            "fetch --tags`, or name the registry that `publish` was given (`--registry`)"
        )


def _list_private(scope: Scope) -> Iterator[Reason]:
    public = {each.id for each in scope.public}
    for package in scope.packages.values():
        if package.id not in public and package.unpublishable:
            rule = f"never published: {package.unpublishable}"
            yield Reason(package=package.id, rule=rule)


def warn_of_unclear(commits: Sequence[Source]) -> PackageWarning:
    """Of commits, the newest first, that touch a package and do not say what they ask for."""
    newest = f"{commits[0].commit[:9]}: {clip(commits[0].title, _TITLE_CHARS)}"
    many = f"{len(commits)} commits do not say what they ask for, the newest is"
    told = many if len(commits) > 1 else "a commit does not say what it asks for:"
    return PackageWarning(name=WarningName.UNREAD_COMMIT, message=f"{told} {newest}")
