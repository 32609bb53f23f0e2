"""The tags of what is published, pushed once nothing is in flight: not forced, and never moved."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from releasekit.announced import Status
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.errors import CommandFailed, PackageError, PathError
from releasekit.git.objects import tag_object, write_loose
from releasekit.http.client import retry
from releasekit.notes.names import is_shared
from releasekit.plan.tags import held_by, owed
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.announced import Tag
    from releasekit.git.objects import Object
    from releasekit.host.process import Processes
    from releasekit.http.client import RetryPolicy
    from releasekit.model import PackageId, Plan, PlannedPackage, Result
    from releasekit.plan.tags import Tagging


@dataclass(frozen=True, slots=True)
class _Missing:
    """One tag to push, and what it is the tag of."""

    tag: Tag
    message: str


async def push_tags(
    plan: Plan,
    results: Sequence[Result],
    tagging: Tagging,
    processes: Processes,
    policy: RetryPolicy,
) -> tuple[Result, ...]:
    """`results`, each of what is published with its tag; raises nothing for one that cannot be
    pushed.
    """
    planned = {each.package.id: each for each in plan.packages}
    done = {result.package.id for result in results if result.outcome.done}
    tags: dict[str, Tag] = {}
    missing: list[_Missing] = []
    by_registry: list[Tag] = []
    for name, sharing in _by_name(plan).items():
        if not any(each.package.id in done for each in sharing):
            continue
        tags[name] = tag = _of(name, sharing, done)
        if tag.status is Status.WANTED and not tag.commit:
            by_registry.append(tag)
        elif tag.status is Status.WANTED:
            shared = is_shared(tagging.config.tagging.name)
            package = sharing[0].package
            missing.append(
                _Missing(tag, name if shared else f"{package.id.name} {package.version}")
            )
    if by_registry:
        tags |= await _seen(by_registry, tagging)
    if missing:
        tags |= await _pushed(missing, tagging, processes, policy)

    def with_tag(result: Result) -> Result:
        wanted = planned[result.package.id].tag
        if wanted is None or not result.outcome.done:
            return result
        # A tag that several share may be that of some of them, and foreign to the rest.
        kept = wanted.status in {Status.THERE, Status.FOREIGN}
        return replace(result, tag=wanted if kept else tags[wanted.name])

    return tuple(map(with_tag, results))


async def _seen(tags: Sequence[Tag], tagging: Tagging) -> dict[str, Tag]:
    """Those by which a registry publishes, as it has pushed them in this run."""
    try:
        there = await tagging.remote.tags()
    except PackageError as error:
        return {tag.name: owed(tag, error) for tag in tags}
    absent = PackageError(
        "the remote does not show it",
        hint="Run it again, and it is looked for.",
        problem=Problem.TAG_OWED,
    )
    return {
        tag.name: replace(tag, status=Status.MADE, commit=held.commit, object=held.object)
        if (held := there.get(tag.name)) is not None
        else owed(tag, absent)
        for tag in tags
    }


def _by_name(plan: Plan) -> dict[str, list[PlannedPackage]]:
    found: dict[str, list[PlannedPackage]] = {}
    for planned in plan.packages:
        if planned.tag is not None:
            found.setdefault(planned.tag.name, []).append(planned)
    return found


def _of(name: str, sharing: Sequence[PlannedPackage], done: Collection[PackageId]) -> Tag:
    """One tag, of one package or of all that have the version."""
    tags = [each.tag for each in sharing if each.tag is not None]
    worst = next((tag for tag in tags if tag.status is not Status.WANTED), tags[0])
    if worst.status is not Status.WANTED:
        return worst
    absent = [str(each.package.id) for each in sharing if each.package.id not in done]
    if absent:
        waits = f"the tag {name} waits for {few(absent)}"
        return owed(
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
        return owed(worst, error)
    return worst


async def _pushed(
    missing: Sequence[_Missing], tagging: Tagging, processes: Processes, policy: RetryPolicy
) -> dict[str, Tag]:
    size = tagging.config.tagging.at_a_time or len(missing)
    found: dict[str, Tag] = {}
    try:
        objects = await _objects(missing, tagging)
    except (PackageError, CommandFailed, ValueError) as error:
        # Nobody else says what it was about.
        cause = PackageError(f"the tags cannot be made: {error}", hint="", problem=Problem.TAG_OWED)
        return {each.tag.name: owed(each.tag, cause) for each in missing}
    async with contextlib.AsyncExitStack() as stack:
        try:
            directory = await stack.enter_async_context(scratch(processes.environment))
            await asyncio.to_thread(write_loose, objects.values(), directory)
        except (OSError, PathError) as error:
            cause = PackageError(
                f"the tags cannot be made: {error}", hint="", problem=Problem.TAG_OWED
            )
            return {each.tag.name: owed(each.tag, cause) for each in missing}
        for start in range(0, len(missing), size):
            part = [each.tag for each in missing[start : start + size] if each.tag.name in objects]
            push = _Push(part, objects, tagging, directory)
            try:
                await retry(push.attempt, policy)
            except PackageError as error:
                await push.look_again()
                found |= {tag.name: owed(tag, error) for tag in part}
            found |= push.there
    return found


async def _objects(missing: Sequence[_Missing], tagging: Tagging) -> dict[str, Object]:
    """Every run makes the same: the commit says who tags, and when."""
    commits = dict.fromkeys(each.tag.commit for each in missing)
    by = {commit: await tagging.commits.committer(commit) for commit in commits}
    return {
        each.tag.name: tag_object(each.tag.name, each.tag.commit, by[each.tag.commit], each.message)
        for each in missing
    }


class _Push:
    """One push of some tags; `there` is how far they are on the remote, once it was looked at."""

    def __init__(
        self,
        tags: Sequence[Tag],
        objects: Mapping[str, Object],
        tagging: Tagging,
        directory: Path,
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
            await remote.push(absent, objects=self._directory, what=_what(absent))
            pushed = [tag for tag in self._tags if tag.name in absent]
            self.there |= {
                tag.name: replace(tag, status=Status.MADE, object=absent[tag.name])
                for tag in pushed
            }

    async def look_again(self) -> None:
        """After a failure: it may have come as far as that."""
        with contextlib.suppress(PackageError):
            await self._look()

    async def _look(self) -> None:
        seen = await self._tagging.remote.tags()
        for tag in self._tags:
            if (held := seen.get(tag.name)) is None:
                continue
            ours = self._sent and held.object == self._ids[tag.name]
            found = held_by(held, tag)
            self.there[tag.name] = replace(found, status=Status.MADE) if ours else found


def _what(tags: Mapping[str, str]) -> str:
    return few(list(tags))
