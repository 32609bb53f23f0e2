"""Tags of versions: planned and checked before anything is published, pushed once nothing is in
flight. A push is never forced, and a tag never moved.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.announce.tag_names import (
    is_shared,
    name_tags,
    refuse_names,
    refuse_nested,
    template_of,
)
from releasekit.announced import Status, Tag
from releasekit.errors import CommandFailed, ConfigError, PackageError, PathError, Rejected
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.git.objects import make_tag, write_pack
from releasekit.git.remote import Remote
from releasekit.git.versions import find_first_commits, find_versions
from releasekit.host.ci import JOB_BEARER
from releasekit.host.files import repository_of
from releasekit.host.scratch import scratch
from releasekit.http.client import retry
from releasekit.model import Action
from releasekit.plan.changes import version_tags
from releasekit.plan.decision import compare, is_clean
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.announce.tag_names import Named
    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.errors import ReleasekitError
    from releasekit.git.objects import Object
    from releasekit.git.remote import RemoteTag
    from releasekit.host.forges import Pages
    from releasekit.host.process import Processes
    from releasekit.http.client import RetryPolicy
    from releasekit.model import Package, PackageId, Plan, PlannedPackage, Result


_BY_HAND: Final = "Run again where the state of the run is that published it, or tag it by hand."
_DEEPER: Final = (
    "Check out with `fetch-depth: 0`, or `GIT_DEPTH: 0` at GitLab: it brings the whole history."
)


class Tagging(Struct, frozen=True):
    """What looks tags up and pushes them. `pages` are those of the sources."""

    remote: Remote
    commits: Commits
    config: PlanConfig
    pages: Pages


async def plan_tags(
    plan: Plan,
    config: PlanConfig,
    targets: Mapping[str, Target],
    services: Services,
    *,
    pages: Pages,
) -> tuple[Plan, Tagging]:
    """`plan` with the tag of each package, and what pushes those that are missing. `pages` are
    those of the sources; where there are none, those of the remote, if its forge is known.

    Raises PlanError for names that git refuses, ConfigError outside of a git repository, and
    PackageError where the remote does not answer.
    """
    top = repository_of(config.root)
    if top is None:
        asked = "tag" if config.tag else "announce"
        raise ConfigError(
            f"`{asked}` is true, and {config.root} is in no git repository",
            hint="Tags are made in a git repository, and pushed to a remote of it: run `git init` "
            f"there, or leave `{asked}` out.",
        )
    name, job_token = config.tagging.remote, services.credentials.get(JOB_BEARER)
    remote = Remote(name, services.git, job_token, services.retries)
    if not pages.repository and (found := services.ci.forge_of(await remote.find_url())):
        pages = found.pages
    tagging = Tagging(remote, Commits(top, services.processes), config, pages)
    named = name_tags(plan, config.tagging.name, config.root, targets)
    refuse_names(named, config.tagging.name)
    there = await tagging.remote.list_tags()
    refuse_nested(named, there)
    tags = await _plan_each(plan, named, there, targets, tagging)
    packages = tuple(replace(each, tag=tags.get(each.package.id)) for each in plan.packages)
    tagged = {
        each.package: tag
        for each in packages
        if (tag := each.tag) is not None and not named[each.package.id].own
    }
    notes = (*plan.notes, *_note_other_names(tagged, config.root, there))
    words = _count_by_status(tags.values())
    return replace(plan, packages=packages, announcing=words, notes=notes), tagging


def _note_other_names(
    tagged: Mapping[Package, Tag], root: Path, there: Collection[str]
) -> list[str]:
    """A note where another tool has tagged these versions: they would get a second tag."""
    missing = {
        each for each, tag in tagged.items() if tag.status in {Status.WANTED, Status.PENDING}
    }
    others = {
        package: revision.shown.removeprefix("tag ")
        for package, revision in version_tags(tagged, root, there).items()
        if package in missing
    }
    if not others:
        return []
    note = (
        "the remote has tags of these versions by other names "
        f"({few(list(dict.fromkeys(others.values())))})"
    )
    kept = {each: tag.name for each, tag in tagged.items() if each not in missing}
    if template := template_of({**kept, **others}, root, of_all=others.keys() == tagged.keys()):
        return [f'{note}: to go on with those, write [tag] name = "{template}" in releasekit.toml']
    return [f"{note}: no one [tag] name gives them all, so these versions get a second tag"]


async def _plan_each(
    plan: Plan,
    named: Mapping[PackageId, Named],
    there: Mapping[str, RemoteTag],
    targets: Mapping[str, Target],
    tagging: Tagging,
) -> dict[PackageId, Tag]:
    """The tag of each package that is published or is going to be."""
    found: dict[PackageId, Tag] = {}
    unknown: list[PlannedPackage] = []
    for planned in plan.packages:
        package = planned.package
        if planned.action is Action.REFUSE or package.id not in named:
            continue
        name, own = named[package.id].tag, named[package.id].own
        commit = commit_of_version(planned, plan.commit)
        # A registry that creates tags may tag another commit.
        known = commit if is_clean(commit) and not own else ""
        tag = Tag(name=name, status=Status.WANTED, commit=known)
        if (held := there.get(name)) is not None:
            found[package.id] = existing_tag(held, tag, own=own)
        elif own:
            found[package.id] = tag
        elif not tagging.config.tag:
            disabled = PackageError(
                f"the remote has no tag {tag.name}, and `tag` is not true",
                hint="Set `tag: true`, or push the tag.",
                problem=Problem.TAG_OWED,
            )
            found[package.id] = pending_tag(tag, disabled)
        elif tag.commit:
            found[package.id] = tag
        elif commit:
            dirty = PackageError(
                f"the sources from which {package} is built have changes that no commit has, in "
                "this package or beside it",
                hint="Commit them, and publish from there; a version that is published already is "
                "tagged by hand: `git tag`.",
                problem=Problem.TAG_OWED,
            )
            found[package.id] = pending_tag(tag, dirty)
        else:
            found[package.id] = tag
            unknown.append(planned)
    found |= await _find_foreign(plan, found, targets, tagging)
    found |= await _find_commits(unknown, found, targets, tagging)
    return {each: replace(tag, url=tagging.pages.tag(tag.name)) for each, tag in found.items()}


def commit_of_version(planned: PlannedPackage, head: str) -> str:
    """The commit that its files were or will be built from, with `+dirty…` for uncommitted sources.
    Empty where it is not known: an earlier run may have built other files than are published.
    """
    if planned.action is Action.PUBLISH:
        return head
    ours = compare(planned.artifacts, planned.published)
    if planned.action is Action.KEEP and (not planned.artifacts or ours.missing or ours.differing):
        return ""
    return planned.built_from


def existing_tag(held: RemoteTag, tag: Tag, *, own: bool = False) -> Tag:
    """`tag`, whose name the remote has already: the same tag, or a foreign one, which stays. Where
    the commit is not known, the existing tag is believed.
    """
    if own or not tag.commit or tag.commit == held.commit:
        return replace(tag, status=Status.EXISTING, commit=held.commit, object=held.object)
    error = Rejected(
        f"the remote has the tag {tag.name} on {held.commit}, and this version is built from "
        f"{tag.commit}: nothing was moved",
        problem=Problem.TAG_FOREIGN,
    )
    return _with(replace(tag, status=Status.FOREIGN, object=held.object), error)


def pending_tag(tag: Tag, error: ReleasekitError) -> Tag:
    return _with(replace(tag, status=Status.PENDING), error)


def _with(tag: Tag, error: ReleasekitError) -> Tag:
    return replace(tag, note=str(error), hint=error.hint, problem=error.problem)


async def _find_foreign(
    plan: Plan, tags: Mapping[PackageId, Tag], targets: Mapping[str, Target], tagging: Tagging
) -> dict[PackageId, Tag]:
    """Existing tags on a commit of another version, where no journal knows the commit."""
    asked = []
    for planned in plan.packages:
        package, target = planned.package, targets[planned.package.id.ecosystem]
        tag = tags.get(package.id)
        if tag is None or tag.status is not Status.EXISTING:
            continue
        if not is_clean(commit_of_version(planned, plan.commit)):
            asked.append((package, target.versioning.read_version, tag.commit))
    here = await tagging.commits.find_existing(commit for *_, commit in asked)
    asked = [each for each in asked if each[2] in here]
    versions = await find_versions(asked, tagging.commits)
    found = {}
    for package, _, commit in asked:
        version, tag = versions[package.id, commit], tags[package.id]
        if version and version != package.version:
            error = Rejected(
                f"the remote has the tag {tag.name} ({tag.object}) on {commit}, where the version "
                f"is {version}: nothing was moved",
                problem=Problem.TAG_FOREIGN,
            )
            found[package.id] = _with(replace(tag, status=Status.FOREIGN), error)
    return found


async def _find_commits(
    unknown: Sequence[PlannedPackage],
    tags: Mapping[PackageId, Tag],
    targets: Mapping[str, Target],
    tagging: Tagging,
) -> dict[PackageId, Tag]:
    """Tags of published versions whose commit only the history of the manifests tells."""
    asked = {
        planned.package: targets[planned.package.id.ecosystem].versioning.read_version
        for planned in unknown
    }
    commits = await find_first_commits(asked, tagging.commits) if asked else {}
    cut = bool(unknown) and await tagging.commits.is_shallow()
    error = PackageError(
        "which commit was published is not known here: neither the state of an earlier run nor the "
        "history of the manifests tells",
        hint=f"{_DEEPER} {_BY_HAND}" if cut else _BY_HAND,
        problem=Problem.TAG_OWED,
    )
    found = {}
    for each in (planned.package.id for planned in unknown):
        commit = commits.get(each, "")
        tag = tags[each]
        found[each] = replace(tag, commit=commit) if commit else pending_tag(tag, error)
    return found


def _count_by_status(tags: Iterable[Tag]) -> str:
    counts = Counter(tag.status for tag in tags)
    said = {
        Status.WANTED: "to tag",
        Status.EXISTING: "tagged already",
        Status.FOREIGN: "with another tag of that name",
        Status.PENDING: "that cannot be tagged",
    }
    return ", ".join(f"{counts[each]} {words}" for each, words in said.items() if counts[each])


async def push_tags(
    plan: Plan,
    results: Sequence[Result],
    tagging: Tagging,
    processes: Processes,
    policy: RetryPolicy,
) -> tuple[Result, ...]:
    """`results`, each published one with its tag. A tag that cannot be pushed stays pending;
    nothing is raised for it.
    """
    planned = {each.package.id: each for each in plan.packages}
    done = {result.package.id for result in results if result.outcome.done}
    tags: dict[str, Tag] = {}
    missing: dict[Tag, str] = {}  # each with its message
    by_registry: list[Tag] = []
    for name, sharing in _list_sharing(plan, done):
        tags[name] = tag = _combine(name, sharing, done)
        if tag.status is Status.WANTED and not tag.commit:
            by_registry.append(tag)
        elif tag.status is Status.WANTED:
            shared = is_shared(tagging.config.tagging.name)
            package = sharing[0].package
            missing[tag] = name if shared else f"{package.id.name} {package.version}"
    if by_registry:
        tags |= await _find_pushed(by_registry, tagging)
    if missing:
        tags |= await _push_missing(missing, tagging, processes, policy)

    def with_tag(result: Result) -> Result:
        wanted = planned[result.package.id].tag
        if wanted is None or not result.outcome.done:
            return result
        # A shared tag may be right for some of its packages and foreign to the rest.
        kept = wanted.status in {Status.EXISTING, Status.FOREIGN}
        return replace(result, tag=wanted if kept else tags[wanted.name])

    return tuple(map(with_tag, results))


def _list_sharing(
    plan: Plan, done: Collection[PackageId]
) -> Iterator[tuple[str, list[PlannedPackage]]]:
    """Each tag of something `done`, by its name, with all packages that share it."""
    by_name: dict[str, list[PlannedPackage]] = {}
    for each in plan.packages:
        if each.tag is not None:
            by_name.setdefault(each.tag.name, []).append(each)
    for name, sharing in by_name.items():
        if any(each.package.id in done for each in sharing):
            yield name, sharing


async def _find_pushed(tags: Sequence[Tag], tagging: Tagging) -> dict[str, Tag]:
    """Tags that a registry pushes, as this run has pushed them."""
    try:
        there = await tagging.remote.list_tags()
    except PackageError as error:
        return {tag.name: pending_tag(tag, error) for tag in tags}
    absent = PackageError(
        "the remote does not show it",
        hint="Run it again, and it is looked for.",
        problem=Problem.TAG_OWED,
    )
    return {
        tag.name: replace(tag, status=Status.CREATED, commit=held.commit, object=held.object)
        if (held := there.get(tag.name)) is not None
        else pending_tag(tag, absent)
        for tag in tags
    }


def _combine(name: str, sharing: Sequence[PlannedPackage], done: Collection[PackageId]) -> Tag:
    """One tag for the packages that share it."""
    tags = [each.tag for each in sharing if each.tag is not None]
    worst = next((tag for tag in tags if tag.status is not Status.WANTED), tags[0])
    if worst.status is not Status.WANTED:
        return worst
    absent = [str(each.package.id) for each in sharing if each.package.id not in done]
    if absent:
        waits = f"the tag {name} waits for {few(absent)}"
        return pending_tag(
            worst,
            PackageError(
                waits, hint="The run that publishes the rest makes it.", problem=Problem.TAG_OWED
            ),
        )
    commits = sorted({tag.commit for tag in tags})
    if len(commits) > 1:
        error = PackageError(
            f"the packages that share the tag {name} are built from several commits: "
            f"{few(commits)}",
            hint="Tag the one that you mean by hand, and push the tag.",
            problem=Problem.TAG_OWED,
        )
        return pending_tag(worst, error)
    return worst


async def _push_missing(
    missing: Mapping[Tag, str], tagging: Tagging, processes: Processes, policy: RetryPolicy
) -> dict[str, Tag]:
    size = tagging.config.tagging.at_a_time or len(missing)
    found: dict[str, Tag] = {}

    def refuse(error: Exception) -> dict[str, Tag]:
        """None of them can be made; the error does not name them."""
        words = f"the tags cannot be made: {error}"
        cause = PackageError(words, hint="", problem=Problem.TAG_OWED)
        return {tag.name: pending_tag(tag, cause) for tag in missing}

    try:
        # Every run makes the same objects: tagger and date are those of the commit.
        commits = dict.fromkeys(tag.commit for tag in missing)
        by = await tagging.commits.read_committers(commits)
        objects = {
            tag.name: make_tag(tag.name, tag.commit, by[tag.commit], message)
            for tag, message in missing.items()
        }
    except (PackageError, CommandFailed, ValueError) as error:
        return refuse(error)
    async with contextlib.AsyncExitStack() as stack:
        try:
            directory = await stack.enter_async_context(scratch(processes.environment))
            await asyncio.to_thread(write_pack, objects.values(), directory)
        except (OSError, PathError) as error:
            return refuse(error)
        for start in range(0, len(missing), size):
            part = list(missing)[start : start + size]
            push = _Push(part, objects, tagging, directory)
            try:
                await retry(push.attempt, policy)
            except PackageError as error:
                await push.look_again()
                found |= {tag.name: pending_tag(tag, error) for tag in part}
            found |= push.there
    return found


class _Push:
    """One push of several tags; `there` is what the remote had of them at the last look."""

    def __init__(
        self, tags: Sequence[Tag], objects: Mapping[str, Object], tagging: Tagging, directory: Path
    ) -> None:
        self._tags = tags
        self._ids = {tag.name: objects[tag.name].id for tag in tags}
        self._tagging = tagging
        self._directory = directory
        self._sent = False
        self.there: dict[str, Tag] = {}

    async def attempt(self) -> None:
        """Raises Transient, Denied, Rejected. What an earlier attempt has pushed is not pushed
        again, and what somebody else has pushed meanwhile stays.
        """
        await self._look()
        absent = {name: oid for name, oid in self._ids.items() if name not in self.there}
        if absent:
            remote = self._tagging.remote
            self._sent = True
            # Whoever shows the error names the tags.
            await remote.push(absent, objects=self._directory, what="the push failed")
            pushed = [tag for tag in self._tags if tag.name in absent]
            self.there |= {
                tag.name: replace(tag, status=Status.CREATED, object=absent[tag.name])
                for tag in pushed
            }

    async def look_again(self) -> None:
        """After a failure: the push may have taken effect."""
        with contextlib.suppress(PackageError):
            await self._look()

    async def _look(self) -> None:
        seen = await self._tagging.remote.list_tags()
        for tag in self._tags:
            if (held := seen.get(tag.name)) is None:
                continue
            ours = self._sent and held.object == self._ids[tag.name]
            found = existing_tag(held, tag)
            self.there[tag.name] = replace(found, status=Status.CREATED) if ours else found
