"""A plan with all that is open for it: what `plan` shows, and `publish` carries out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from msgspec import Struct

from releasekit.aio import in_time
from releasekit.announce.tag_names import name_tags
from releasekit.cli.preload import import_from_top, load_everything
from releasekit.cli.request_log import say_busy
from releasekit.cli.session import (
    make_logs,
    name_bad_paths,
    open_ecosystems,
    start_processes,
    survey_root,
)
from releasekit.cli.signing import plan_signing
from releasekit.config.values import Url
from releasekit.ecosystems.interface import Services
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.errors import DeadlinePassed, Transient, join_errors
from releasekit.fields import replace
from releasekit.http.client import http_client
from releasekit.http.identity import SIGSTORE, open_tokens
from releasekit.http.pool import CONNECTIONS
from releasekit.model import Action
from releasekit.plan.forecast import GITHUB, JobEnd, with_limits
from releasekit.plan.make import discover, find_missing_tools, make_plan
from releasekit.plan.source import has_base, read_checkout
from releasekit.plan.warnings import with_warnings
from releasekit.problems import Problem
from releasekit.release.tasks import describe_late
from releasekit.scheduler.retries import WaitBudget
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from releasekit.aio import Group
    from releasekit.announce.post_release import PostRelease
    from releasekit.cli.session import Session
    from releasekit.cli.signing import JobSigning
    from releasekit.config.config import Config, PlanConfig
    from releasekit.ecosystems.interface import Target
    from releasekit.host.process import Processes
    from releasekit.model import Plan
    from releasekit.state.history import History

_BEFORE_JOB_ENDS_S: Final = 120.0


class Prepared(Struct, frozen=True):
    """A plan and what carries it out, with the config that it was made by."""

    plan: Plan
    config: Config
    targets: Mapping[str, Target]
    processes: Processes
    patience: WaitBudget
    signing: JobSigning | None
    post_release: PostRelease | None


async def prepare(
    group: Group,
    config: Config,
    session: Session,
    history: History,
    *,
    run_id: str,
    inherit_fds: Collection[int] = (),
) -> Prepared:
    """Discover, plan and warn; what is open for that stays so for as long as `group` is.

    Raises DeadlinePassed where that takes longer than the whole run may, and Transient where a
    registry does not answer.
    """
    say_busy("planning", session)
    job, given_s = _end_of_job(session), config.deadline
    if job is not None and given_s is None and session.ci.job_ends is not None:
        # A job that is ended loses what it would show, and what it would resume from.
        config = replace(config, deadline=max(job.left_s - _BEFORE_JOB_ENDS_S, 1.0))
    patience = WaitBudget.from_now(max_wait_s=config.max_wait, deadline_s=config.deadline)
    logs = make_logs(config.state_directory, session, run_id)
    async with _explain_delays(config, session, patience):
        # Parses all certificates that the machine trusts, meanwhile.
        pool_size = max(CONNECTIONS, 4 * config.concurrency)
        client = group.start(asyncio.to_thread(http_client, pool_size=pool_size))
        processes = await start_processes(group, config, session, inherit_fds)
        dist = [place.path for place in config.dist]
        looked_up = group.start(read_checkout(config.root, processes, beside=dist))
        decided = group.start(has_base(config.root, processes))
        surveyed = group.start(survey_root(config, session, processes))
        http = await group.enter(await client)
        tokens = open_tokens(session.ci, session.credentials, http)
        signs = tokens.find_obstacle(SIGSTORE) is None
        loaded = group.start(asyncio.to_thread(load_everything, config, signs=signs))
        services = Services.of(
            config, http, processes, session.credentials, session.ci, logs, patience
        )
        pushes = config.tag or config.announce
        remembered = group.start(services.git.remember()) if pushes else None
        config, survey = await surveyed
        await loaded
        if await decided:  # most are not, and it is much to import
            import_from_top("releasekit.versions.late")
        discoveries = await open_ecosystems(group, config, session, services)
        # Before anybody's tools, which may write something there.
        checkout = await looked_up
        if remembered is not None:
            await remembered
        with name_bad_paths(config.root):
            # What `dist` brings takes no tool; which packages that are is not known yet.
            built = None if config.dist else config.package_filter
            targets = await discover(config.root, discoveries, survey.tree, built=built)
            targets = await with_prebuilt(
                targets, config.dist, config.package_filter, session.ecosystems
            )
            plan = await make_plan(config, targets, history, commit=checkout.commit, survey=survey)
        plan = with_limits(plan, targets, deadline_s=given_s, job=job)
        named = name_tags(plan, config.tagging.name, config.root, targets)
        plan = await with_warnings(
            plan,
            config.root,
            config.levels,
            targets,
            history,
            processes,
            tree=survey.tree,
            uncommitted=checkout.uncommitted,
            tags={package: each.tag for package, each in named.items()},
        )
        if decided.result():
            from releasekit.versions.late import add_late_changes  # noqa: PLC0415 (loaded above)

            plan = await add_late_changes(plan, config, targets, services, survey.tree)
        plan = await _with_tools(plan, config.mode, targets)
        post_release = None
        if pushes:
            from releasekit.announce.post_release import plan_post_release  # noqa: PLC0415 (loaded)

            plan, post_release = await plan_post_release(
                plan, config, targets, services, pages=session.ci.origin(config.root).pages
            )
        plan, signing = await plan_signing(plan, group, config, services, targets)
        if any(planned.action is Action.PUBLISH for planned in plan.packages):
            plan = replace(plan, notes=(*plan.notes, f"builds: {processes.sandbox.words}"))
        if config.start_uploads == "built":
            plan = replace(plan, notes=(*plan.notes, *filter(None, [describe_late(plan, targets)])))
        plan = session.redacted.clean(plan)
        return Prepared(plan, config, targets, processes, patience, signing, post_release)


def _end_of_job(session: Session) -> JobEnd | None:
    ci = session.ci
    if ci.job_ends is not None:
        return JobEnd(max(ci.job_ends - time.time(), 0.0), "GitLab")
    return GITHUB if ci.kind == "github" else None


@contextlib.asynccontextmanager
async def _explain_delays(
    config: PlanConfig, session: Session, patience: WaitBudget
) -> AsyncIterator[None]:
    """Ends planning with the deadline, and says of a server that does not answer what to do."""
    limit = asyncio.timeout_at(None if config.deadline is None else patience.until)
    try:
        async with in_time(limit):
            yield
    except Transient as error:
        hint = error.hint or _nothing_done(str(error), config.registries, session)
        raise error.with_(hint=hint) from error.__cause__
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise DeadlinePassed(
            f"the deadline of {config.deadline:g} s passed while the plan was made; nothing was "
            "published",
            hint=f"Raise `deadline`; see what took so long with {spell('plan')}.",
        ) from error


def _nothing_done(message: str, registries: Mapping[str, object], session: Session) -> str:
    """What to do where a server that `message` names does not answer while the plan is made."""
    urls = {name: place for name, place in registries.items() if isinstance(place, Url)}
    names = [
        f"`{session.ecosystems[name].registry.name}`"
        for name, url in urls.items()
        if f"//{urlsplit(url.text).netloc.rpartition('@')[2]}/" in message
    ]
    given = f"The address is that of {' and '.join(names)}: correct it, or run" if names else "Run"
    return f"Nothing was published. {given} the same command again when the server answers."


async def _with_tools(plan: Plan, mode: str, targets: Mapping[str, Target]) -> Plan:
    """Raises where a tool that has to build is missing or too old. A plan alone needs none, and
    names those that are missing: the machine that publishes may have them.
    """
    missing = await find_missing_tools(plan, targets)
    if any(mode != "plan" or each.problem is Problem.TOOL_TOO_OLD for each in missing):
        raise join_errors(missing)
    notes = [f"{each}, and nothing can be built. {each.hint}" for each in missing]
    return replace(plan, notes=(*plan.notes, *notes))
