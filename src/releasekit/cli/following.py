"""What follows once packages are published: their tags, and their releases at the forge."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from releasekit.announced import Announcement, Status
from releasekit.config.inputs import FORGE_TOKEN
from releasekit.errors import ConfigError, MissingCredentials, PackageError
from releasekit.forge.announcing import announce, standing
from releasekit.forge.github import GitHubReleases
from releasekit.git.remote import GITHUB, repository_at
from releasekit.host.origin import pull_request_of
from releasekit.http.client import RetryPolicy, retry
from releasekit.http.github import GitHub
from releasekit.model import Outcome
from releasekit.notes.names import is_shared
from releasekit.plan.tags import owed, with_tags
from releasekit.problems import Problem
from releasekit.release.announcing import drafts, subjects, unsaid, with_announcements
from releasekit.release.tagging import push_tags
from releasekit.report.text import packages as packages_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.forge.interface import Forge
    from releasekit.model import Plan, Result
    from releasekit.plan.tags import Tagging
    from releasekit.release.announcing import Material, Subject

_API: Final = "https://api.github.com"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_STOPPED: Final = "the run was stopped before its turn"
_AGAIN: Final = "The next run does what is missing."


@dataclass(frozen=True, slots=True)
class Following:
    """What a plan's versions get besides a place on their registries."""

    plan: Plan
    tagging: Tagging
    forge: Forge | None
    services: Services
    policy: RetryPolicy

    async def follow(
        self,
        results: Sequence[Result],
        material: Callable[[], Material],
        *,
        stopped: asyncio.Event,
        say: Callable[[str], None],
    ) -> tuple[Result, ...]:
        """`results` with the tag and the announcement of each package that is published; those that
        could not be made are owed, and nothing is raised for them. Whoever stops the run does not
        wait. `material` is asked for once the tags are there.
        """
        steps = _Steps(self, tuple(results), material, say)
        if self.tagging.config.dry_run or stopped.is_set():
            return steps.settled()
        following = asyncio.ensure_future(steps.take())
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            following.cancel()
            stopping.cancel()
            await asyncio.wait((following, stopping))
        if not following.cancelled():
            following.result()
        return steps.settled()


async def with_following(
    plan: Plan,
    config: Config,
    targets: Mapping[str, Target],
    services: Services,
    *,
    repository: str,
) -> tuple[Plan, Following | None]:
    """`plan` with the tag and the announcement of each version, and what makes those.

    Raises ConfigError and PlanError for what could never be, before anything is published, and
    PackageError where remote or forge do not answer.
    """
    if not (config.tag or config.announce):
        return plan, None
    policy = RetryPolicy(
        config.max_retries,
        config.retry_base_delay_s,
        deadline_s=config.task_timeout_s,
        patience=services.patience,
        redact=services.credentials.redact,
    )
    _refuse_part(config)
    plan = _refuse_pull_request(plan, config, services)
    plan, tagging = await with_tags(plan, config, targets, services, policy, repository=repository)
    forge: Forge | None = None
    if config.announce and config.announcing.releases != "none":
        _refuse_many(config)
        forge = await _forge(tagging, services, policy)
    if forge is not None:
        plan = await _with_standing(plan, forge)
    return plan, Following(plan, tagging, forge, services, policy)


def _refuse_part(config: Config) -> None:
    """No job of a matrix knows what the others publish under a tag that they share."""
    if config.is_part and is_shared(config.tagging.name):
        asked = "tag" if config.tag else "announce"
        raise ConfigError(
            f"`{asked}` is true for a part of the workspace, and all of it shares the tag "
            f'[tag] name = "{config.tagging.name}"',
            hint="Give `tag` and `announce` to one job that sees the whole workspace: after the "
            "others it publishes nothing, and tags and announces.",
        )


def _refuse_pull_request(plan: Plan, config: Config, services: Services) -> Plan:
    """What a pull request holds is on no branch yet, and anybody may open one. A plan and a dry run
    only say so.
    """
    job = pull_request_of(services.environment)
    if not job:
        return plan
    asked = [name for name in ("tag", "announce") if getattr(config, name)]
    inputs, verb = " and ".join(f"`{name}`" for name in asked), "are" if len(asked) > 1 else "is"
    said = f"{inputs} {verb} true in a job of a pull request ({job})"
    if config.mode == "publish" and not config.dry_run:
        condition = "${{ !startsWith(github.event_name, 'pull_request') }}"
        raise ConfigError(
            f"{said}, whose commits are on no branch yet",
            hint="Nothing was published. Release on the push that merges it; or write "
            f"{' and '.join(f'{name}: {condition}' for name in asked)}, and it is published alone.",
        )
    return replace(plan, notes=(*plan.notes, f"publish is going to refuse: {said}"))


def _refuse_many(config: Config) -> None:
    if config.announcing.releases == "one" and not is_shared(config.tagging.name):
        raise ConfigError(
            f'releasekit.toml: [announce] releases is "one", and [tag] name is '
            f'"{config.tagging.name}", one for each package',
            hint='Write [tag] name = "v{version}", which all packages of a version share, or '
            '[announce] releases = "changed".',
        )


async def _forge(tagging: Tagging, services: Services, policy: RetryPolicy) -> Forge | None:
    """GitHub, where the job runs on it, or the remote is there; None for a plan without a token."""
    environment = services.environment
    server = environment.get("GITHUB_SERVER_URL", GITHUB)
    # Where tags go, another repository may have been checked out.
    repository = repository_at(await tagging.remote.url(), server)
    if not repository and _REPOSITORY.fullmatch(environment.get("GITHUB_REPOSITORY", "")):
        repository = environment["GITHUB_REPOSITORY"]
    if not repository:
        name = tagging.config.tagging.remote
        raise ConfigError(
            f"`announce` is true, and the git remote {name} is no repository of {server}",
            hint="Releases are announced on GitHub: set GITHUB_REPOSITORY=OWNER/NAME, and for "
            "GitHub Enterprise GITHUB_SERVER_URL and GITHUB_API_URL, as its runners do.",
        )
    token = services.credentials.get(FORGE_TOKEN.variable)
    if token is None and tagging.config.mode == "plan":
        return None
    if token is None:
        raise MissingCredentials(
            "`announce` is true, and there is no token for GitHub",
            hint=f"Set {FORGE_TOKEN.variable}; its permission is `contents: write`.",
        )
    github = GitHub(
        http=services.http,
        api=environment.get("GITHUB_API_URL", _API),
        token=token,
        redact=services.credentials.redact,
    )
    return GitHubReleases(github, repository, policy)


async def _with_standing(plan: Plan, forge: Forge) -> Plan:
    """`plan` with what the forge says of each tag already."""
    releases = await forge.releases()
    packages = tuple(
        replace(each, announcement=standing(each.tag.name, releases)) if each.tag else each
        for each in plan.packages
    )
    counts = Counter(
        {
            each.announcement.tag: each.announcement.status
            for each in packages
            if each.announcement
        }.values()
    )
    said = {Status.WANTED: "to announce", Status.THERE: "announced already"}
    words = [f"{counts[each]} {text}" for each, text in said.items() if counts[each]]
    return replace(
        plan, packages=packages, announcing=", ".join(filter(None, [plan.announcing, *words]))
    )


class _Steps:
    """First all tags, then one release after another; `results` says how far that came."""

    def __init__(
        self,
        following: Following,
        results: tuple[Result, ...],
        material: Callable[[], Material],
        say: Callable[[str], None],
    ) -> None:
        self._following = following
        self._material = material
        self._say = say
        planned = {each.package.id: each for each in following.plan.packages}
        self.results = tuple(
            replace(
                result,
                tag=planned[result.package.id].tag,
                announcement=planned[result.package.id].announcement,
            )
            if result.outcome.done or result.outcome is Outcome.WOULD_PUBLISH
            else result
            for result in results
        )

    async def take(self) -> None:
        following = self._following
        plan, tagging = following.plan, following.tagging
        self.results = await push_tags(
            plan, self.results, tagging, following.services.processes, following.policy
        )
        if following.forge is None:
            return
        settled = {
            each.announcement.tag: each.announcement
            for each in self.results
            if each.announcement is not None and each.announcement.status is not Status.WANTED
        }
        wanted = [each for each in subjects(self.results) if each.tag.name not in settled]
        told: dict[str, Announcement] = dict(settled)
        if wanted:
            self._say(f"announcing {len(wanted)} of {packages_text(len(self.results))}")
            told |= await self._announced(wanted, following.forge)
        self.results = with_announcements(self.results, told)

    async def _announced(self, wanted: Sequence[Subject], forge: Forge) -> dict[str, Announcement]:
        plan, tagging = self._following.plan, self._following.tagging
        try:
            there = await retry(tagging.remote.tags, self._following.policy)
        except PackageError as error:
            tags = [each.tag.name for each in wanted]
            return {tag: unsaid(Announcement(tag=tag, status=Status.OWED), error) for tag in tags}
        made, silent = await drafts(plan, wanted, tagging, self._material(), there)
        return silent | await announce(made, forge, tell=self._say)

    def settled(self) -> tuple[Result, ...]:
        """Where nothing is going to happen any more."""
        if self._following.tagging.config.dry_run:
            return self.results
        return tuple(map(_settled, self.results))


def _settled(result: Result) -> Result:
    """What a run that was stopped did not come to, is owed."""
    tag, announcement = result.tag, result.announcement
    if tag is not None and tag.status is Status.WANTED:
        tag = owed(tag, PackageError(_STOPPED, hint=_AGAIN, problem=Problem.TAG_OWED))
    if announcement is not None and announcement.status is Status.WANTED:
        announcement = unsaid(
            announcement, PackageError(_STOPPED, hint=_AGAIN, problem=Problem.NOT_ANNOUNCED)
        )
    return replace(result, tag=tag, announcement=announcement)
