"""What follows once packages are published: first all tags, then releases at the forge."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from msgspec import Struct

from releasekit.announce.extra_files import plan_extra_files
from releasekit.announce.gitea import GiteaReleases
from releasekit.announce.gitea_pull_requests import GiteaPullRequests
from releasekit.announce.github import GitHubReleases, describe_pace
from releasekit.announce.github_pull_requests import GitHubPullRequests
from releasekit.announce.gitlab import GitLab, GitLabReleases
from releasekit.announce.gitlab_pull_requests import GitLabPullRequests
from releasekit.announce.releases import (
    announce,
    announcement_of,
    build_drafts,
    group_by_tag,
    pending_announcement,
    with_announcements,
)
from releasekit.announce.tag_names import is_shared
from releasekit.announce.tags import pending_tag, plan_tags, push_tags
from releasekit.announced import Announcement, Status
from releasekit.config.declaration import PREFIX
from releasekit.config.inputs import FORGE_TOKEN
from releasekit.ecosystems.preflight import RightsFound
from releasekit.errors import ConfigError, MissingCredentials, PackageError, did_you_mean
from releasekit.fields import replace
from releasekit.host.ci import JOB_BEARER
from releasekit.host.forges import API, split_remote
from releasekit.http.forge_api import ForgeApi
from releasekit.http.github import GitHub
from releasekit.model import Outcome, PackageId
from releasekit.problems import Problem
from releasekit.report.text import packages as packages_text
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.announce.forge import Forge
    from releasekit.announce.releases import Assets, TaggedRelease
    from releasekit.announce.tags import Tagging
    from releasekit.announced import ForgeKind
    from releasekit.config.config import PlanConfig
    from releasekit.config.tag_options import AnnounceOptions
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.git.remote import Remote
    from releasekit.host.ci import CI
    from releasekit.host.forges import ForgePlace, Pages
    from releasekit.http.credentials import Credentials, Secret
    from releasekit.model import Artifact, Package, Plan, Result


_Api = TypeVar("_Api", bound=ForgeApi)
_STOPPED: Final = "the run was stopped before its turn"
_AGAIN: Final = "The next run does what is missing."
# What a token for releases has to be allowed.
_NEEDS: Final[Mapping[ForgeKind, str]] = {
    "github": "`contents: write`",
    "gitlab": "the scope `api`",
    "gitea": "the scope `write:repository`",
}


class PostRelease(Struct, frozen=True):
    """The tags and releases of a plan's versions."""

    plan: Plan
    tagging: Tagging
    forge: Forge | None
    services: Services
    extra_files: Mapping[str, Sequence[Artifact]]

    async def find_rights(self, packages: Sequence[Package], *, proving: bool) -> RightsFound:
        """Implements `preflight.Rights`, for the tags that are to be pushed here: those without a
        commit are pushed by their registry.
        """
        wanted = {
            each.package.id: each.tag.name
            for each in self.plan.packages
            if each.tag and each.tag.status is Status.WANTED and each.tag.commit
        }
        own = [each for each in packages if each.id in wanted]
        if not own or not proving:
            return RightsFound()
        push = self.tagging.remote.try_push(wanted[own[0].id])
        return await RightsFound.of_attempt(push, own)

    async def run(
        self,
        results: Sequence[Result],
        assets: Callable[[], Assets],
        *,
        stopped: asyncio.Event,
        say: Callable[[str], None],
    ) -> tuple[Result, ...]:
        """`results` with the tag and the announcement of each published package. What cannot be
        made stays pending; nothing is raised for it. A stop of the run is not delayed. `assets` is
        called once the tags are there.
        """
        steps = _Steps(self, tuple(results), assets, say)
        if not self.tagging.config.is_uploading or stopped.is_set():
            return steps.finish()
        doing = asyncio.ensure_future(steps.run())
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            doing.cancel()
            stopping.cancel()
            await asyncio.wait((doing, stopping))
        if not doing.cancelled():
            doing.result()
        return steps.finish()


async def plan_post_release(
    plan: Plan,
    config: PlanConfig,
    targets: Mapping[str, Target],
    services: Services,
    *,
    pages: Pages,
) -> tuple[Plan, PostRelease]:
    """For a run that tags or announces: `plan` with the tag and the announcement of each version,
    and what makes them; `pages` are those of the sources.

    Raises ConfigError and PlanError for what cannot work, before anything is published, and
    PackageError where the remote or the forge does not answer.
    """
    asked = [name for name in ("tag", "announce") if getattr(config, name)]
    template = config.tagging.name
    if config.is_part and is_shared(template):
        # A job of a matrix does not know what the others publish under a shared tag.
        raise ConfigError(
            f"`{asked[0]}` is true for a part of the workspace, and all of it shares the tag "
            f'[tag] name = "{template}"',
            hint="Give `tag` and `announce` to one job that sees the whole workspace: after the "
            "others it publishes nothing, and tags and announces.",
        )
    plan = _refuse_pull_request(plan, asked, services.ci, uploading=config.is_uploading)
    plan, tagging = await plan_tags(plan, config, targets, services, pages=pages)
    forge: Forge | None = None
    extra_files: Mapping[str, Sequence[Artifact]] = {}
    is_limited = False
    if config.announce and config.announcing.releases != "none":
        if config.announcing.releases == "one" and not is_shared(template):
            raise ConfigError(
                f'releasekit.toml: [announce] releases is "one", and [tag] name is '
                f'"{template}", one for each package',
                hint='Write [tag] name = "v{version}", which all packages of a version share, or '
                '[announce] releases = "changed".',
            )
        place, forge = await _choose_forge(tagging, services)
        _refuse_options(config, plan, place)
        is_limited = place.api == API
    if forge is not None:
        plan = await _look_up_releases(plan, forge, config.announcing, is_limited=is_limited)
        plan, extra_files = await plan_extra_files(plan, tagging, targets)
    return plan, PostRelease(plan, tagging, forge, services, extra_files)


def _refuse_options(config: PlanConfig, plan: Plan, place: ForgePlace) -> None:
    """Raises ConfigError for what this forge cannot do, and for a package that gets no release, as
    far as this run sees it.
    """
    options, where = config.announcing, "releasekit.toml: [announce]"
    if options.draft and place.kind != "github":
        raise ConfigError(
            f"{where} draft is true, and {place.name} keeps no drafts",
            hint="Leave it out, and name files that belong to the release as `extra-files`.",
        )
    if options.latest == "none" and place.kind != "github":
        raise ConfigError(
            f'{where} latest is "none", and {place.name} shows the newest release as the latest',
            hint="Leave it out, or name the package that is to be released last.",
        )
    known = {str(each.package.id) for each in plan.packages if each.tag}
    owners = () if isinstance(options.extra_files, tuple) else options.extra_files
    chosen = [str(options.latest)] if isinstance(options.latest, PackageId) else []
    for key, names in (("extra-files", owners), ("latest", chosen)):
        if (unknown := [*{*names} - known]) and not config.is_part:
            raise ConfigError(
                f"{where} {key} names {visible(unknown[0])}, and no such package has a release "
                f"here{did_you_mean(unknown[0], known)}"
            )


def _refuse_pull_request(plan: Plan, asked: Sequence[str], ci: CI, *, uploading: bool) -> Plan:
    """Commits of a pull request are on no branch yet, and anybody can open one. A plan and a dry
    run only warn.
    """
    job = ci.pull_request
    if not job:
        return plan
    inputs, verb = " and ".join(f"`{name}`" for name in asked), "are" if len(asked) > 1 else "is"
    said = f"{inputs} {verb} true in a job of a pull request ({job})"
    if uploading:
        condition = "${{ !startsWith(github.event_name, 'pull_request') }}"
        way = f"write {' and '.join(f'{name}: {condition}' for name in asked)}"
        if ci.kind == "gitlab":
            way = f"leave {inputs} out of this job"
        raise ConfigError(
            f"{said}, whose commits are on no branch yet",
            hint="Nothing was published. Release on the push that merges it; or "
            f"{way}, and it is published alone.",
        )
    return replace(plan, notes=(*plan.notes, f"publish is going to refuse: {said}"))


async def _choose_forge(tagging: Tagging, services: Services) -> tuple[ForgePlace, Forge | None]:
    """Where the remote or the user says, else where the job runs; no client for a plan without a
    token.

    Raises ConfigError and MissingCredentials.
    """
    remote, ci, credentials = tagging.remote, services.ci, services.credentials
    place = await find_forge(remote, tagging.config.tagging.remote, ci, asked="announce")
    try:
        token = require_token(credentials, ci, place, asked="announce")
    except MissingCredentials:
        if tagging.config.mode == "plan":
            return place, None
        raise
    match place.kind:
        case "github":
            github = _open(GitHub, services, place, token)
            leaves_drafts = tagging.config.announcing.draft
            return place, GitHubReleases(github, place.repository, services.retries, leaves_drafts)
        case "gitlab":
            gitlab = _open(GitLab, services, place, token)
            gitlab = replace(gitlab, is_of_job=token == credentials.get(JOB_BEARER))
            return place, GitLabReleases(gitlab, place.repository, services.retries)
        case "gitea":
            gitea = _open(ForgeApi, services, place, token)
            return place, GiteaReleases(gitea, place.repository, services.retries)
        case _:
            assert_never(place.kind)


async def find_forge(remote: Remote, name: str, ci: CI, *, asked: str) -> ForgePlace:
    """Raises ConfigError where neither the remote, the user nor the job tells, and for one that the
    token of the job is not for.
    """
    # The remote counts first: the job may have checked out another repository.
    url = await remote.find_url()
    place = ci.forge_of(url) or ci.forge
    if place is None:
        host = visible(split_remote(url)[0])
        raise ConfigError(
            f"`{asked}` needs a forge, and nothing says what {host or f'the git remote {name}'} is",
            hint=f"Set {PREFIX}FORGE (or --forge) to KIND:URL of the repository, such as "
            f"gitea:https://{host or 'git.example.com'}/acme/mono.",
        )
    if ci.is_actions and place.host != ci.host:
        # The action gives `forge-token` the job's own token, unless it is told another one.
        raise ConfigError(
            f"forge names {place}, and this is a job of {ci.host}, whose token must not go there",
            hint=f"Leave `{asked}` out here; run it from a clone, or in a job there.",
        )
    return place


def open_pull_requests(
    services: Services, place: ForgePlace, token: Secret
) -> GitHubPullRequests | GitLabPullRequests | GiteaPullRequests:
    where, retries = place.repository, services.retries
    match place.kind:
        case "github":
            return GitHubPullRequests(_open(GitHub, services, place, token), where, retries)
        case "gitlab":
            return GitLabPullRequests(_open(GitLab, services, place, token), where, retries)
        case "gitea":
            return GiteaPullRequests(_open(ForgeApi, services, place, token), where, retries)
        case _:
            assert_never(place.kind)


def _open(kind: type[_Api], services: Services, place: ForgePlace, token: Secret) -> _Api:
    return kind(
        http=services.http,
        api=place.api,
        token=token,
        redact=services.credentials.redact,
        insecure=services.insecure,
    )


def require_token(
    credentials: Credentials, ci: CI, place: ForgePlace | None, *, asked: str, needs: str = ""
) -> Secret:
    """For the forge at `place`, else for GitHub; `needs` are other permissions than releases take.
    Raises MissingCredentials.
    """
    # The token of a job is for the GitLab that it runs on, and for no more than releases.
    is_job = ci.kind == "gitlab" and not needs
    is_here = is_job and place is not None and place.server == ci.server
    token = credentials.get(FORGE_TOKEN.variable) or (
        credentials.get(JOB_BEARER) if is_here else None
    )
    if token is None:
        kind, name = (place.kind, place.name) if place else ("github", "GitHub")
        raise MissingCredentials(
            f"there is no token for {name}, and `{asked}` needs one",
            hint=f"Set {FORGE_TOKEN.variable} to one with {needs or _NEEDS[kind]}.",
        )
    return token


async def _look_up_releases(
    plan: Plan, forge: Forge, options: AnnounceOptions, *, is_limited: bool
) -> Plan:
    """`plan` with what the forge has for each tag already, and how long a forge that `is_limited`
    takes for the others.
    """
    releases = await forge.releases()
    packages = tuple(
        replace(
            each,
            announcement=announcement_of(
                each.tag.name, each.tag.object, releases, forge.draft_hint
            ),
        )
        if each.tag
        else each
        for each in plan.packages
    )
    counts = Counter(
        {
            each.announcement.tag: each.announcement.status
            for each in packages
            if each.announcement
        }.values()
    )
    said = {
        Status.WANTED: "to announce",
        Status.EXISTING: "announced already",
        Status.DRAFT: "left as drafts",
    }
    words = [f"{counts[each]} {text}" for each, text in said.items() if counts[each]]
    pace = ""
    if is_limited:
        pace = describe_pace(counts[Status.WANTED], assets=len(options.assets))
    newest = next((each for each in releases if not each.draft), None)
    sealed = ""
    if newest is not None and newest.immutable and counts[Status.WANTED] and not options.draft:
        sealed = (
            f"releases of {forge.repository} are immutable: later jobs can add nothing to them. "
            "`draft = true` below [announce] leaves them open"
        )
    return replace(
        plan,
        packages=packages,
        announcing=", ".join(filter(None, [plan.announcing, *words])),
        notes=(*plan.notes, *filter(None, [pace, sealed])),
    )


class _Steps:
    """All tags, then one release after another; `results` is how far that came."""

    def __init__(
        self,
        step: PostRelease,
        results: tuple[Result, ...],
        assets: Callable[[], Assets],
        say: Callable[[str], None],
    ) -> None:
        self._step = step
        self._assets = assets
        self._say = say
        planned = {each.package.id: each for each in step.plan.packages}
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

    async def run(self) -> None:
        step = self._step
        processes = step.services.processes
        self.results = await push_tags(
            step.plan, self.results, step.tagging, processes, step.services.retries
        )
        if step.forge is None:
            return
        told = {
            each.announcement.tag: each.announcement
            for each in self.results
            if each.announcement is not None and each.announcement.status is not Status.WANTED
        }
        wanted = [each for each in group_by_tag(self.results) if each.tag.name not in told]
        if wanted:
            self._say(f"announcing {len(wanted)} of {packages_text(len(self.results))}")
            told |= await self._announce(wanted, step.forge)
        self.results = with_announcements(self.results, told)

    async def _announce(
        self, wanted: Sequence[TaggedRelease], forge: Forge
    ) -> dict[str, Announcement]:
        plan, tagging = self._step.plan, self._step.tagging
        try:
            there = await tagging.remote.list_tags()
        except PackageError as error:
            return {each.tag.name: pending_announcement(each.tag.name, error) for each in wanted}
        material = replace(
            self._assets(),
            extra_files=self._step.extra_files,
            repository=forge.repository.rpartition("/")[2],
        )
        made, silent = await build_drafts(plan, wanted, tagging, material, there)
        latest = tagging.config.announcing.latest
        return silent | await announce(made, forge, latest, tell=self._say)

    def finish(self) -> tuple[Result, ...]:
        """The results at the end; what a stopped run did not reach stays pending."""
        if not self._step.tagging.config.is_uploading:
            return self.results
        results = []
        stopped = PackageError(_STOPPED, hint=_AGAIN, problem=Problem.TAG_OWED)
        for result in self.results:
            tag, announcement = result.tag, result.announcement
            if tag is not None and tag.status is Status.WANTED:
                tag = pending_tag(tag, stopped)
            if announcement is not None and announcement.status is Status.WANTED:
                announcement = pending_announcement(announcement.tag, stopped)
            results.append(replace(result, tag=tag, announcement=announcement))
        return tuple(results)
