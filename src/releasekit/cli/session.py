"""What a command works with: whose credentials, and a plan with all that is open for it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO
from urllib.parse import urlsplit

from releasekit.aio import Group, in_time
from releasekit.announce.post_release import plan_post_release
from releasekit.cli.preload import load_everything
from releasekit.cli.signing import plan_signing
from releasekit.config.inputs import STATE_KEY
from releasekit.config.values import Url
from releasekit.ecosystems import folders
from releasekit.ecosystems.interface import Services
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.errors import DeadlinePassed, PathError, Transient
from releasekit.host.ci import IDENTITY_URL, TEMPORARY
from releasekit.host.files import repository_of
from releasekit.host.process import Processes
from releasekit.host.sandbox import chosen
from releasekit.host.scrub import ToolVariables
from releasekit.http.client import http_client
from releasekit.http.pool import CONNECTIONS
from releasekit.model import Action
from releasekit.plan.enclosing_workspace import refuse_member
from releasekit.plan.make import Survey, discover, find_missing_tools, make_plan
from releasekit.plan.source import is_tracked, read_checkout
from releasekit.plan.unlisted_packages import find_nested, include_workspaces
from releasekit.plan.warnings import with_warnings
from releasekit.report.marks import symbols_for
from releasekit.report.redacted import Redacted
from releasekit.report.screen import has_screen
from releasekit.scheduler.retries import WaitBudget
from releasekit.state import locks, pins, run_logs
from releasekit.state.directory import refuse_links
from releasekit.state.run_logs import Logs
from releasekit.state.seals import Seal, seal_for
from releasekit.text.commands import spell
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.announce.post_release import PostRelease
    from releasekit.cli.signing import JobSigning
    from releasekit.config.commands import Command
    from releasekit.config.config import Config
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.package_filter import PackageFilter
    from releasekit.ecosystems.interface import Discovery, Target
    from releasekit.host.ci import CI
    from releasekit.host.runner import Actions
    from releasekit.http.credentials import Credentials
    from releasekit.model import Package, Plan, Report
    from releasekit.state.history import History

MAX_PATH_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """Whose credentials a command uses and where it prints, besides its Config."""

    credentials: Credentials
    actions: Actions
    ecosystems: Mapping[str, EcosystemDeclaration]
    out: TextIO

    @property
    def redacted(self) -> Redacted:
        return Redacted(self.credentials.redact)

    @property
    def ci(self) -> CI:
        return self.actions.ci

    def placed(self, made: Report, root: Path) -> Report:
        """`made`, which may be that of other jobs, with where it took place."""
        here = self.ci.origin(root)
        return replace(
            made,
            project=made.project or here.project,
            repository=made.repository or here.repository,
            run_url=made.run_url or here.run_url,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
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
    told = sys.stderr  # what a plan prints may be read by a program
    if has_screen(told, session.credentials.environment):
        print(f"planning{symbols_for(told.encoding).more}", file=told, flush=True)
    patience = WaitBudget.from_now(max_wait_s=config.max_wait, deadline_s=config.deadline)
    logs = _logs(config.state_directory, session, run_id)
    async with _explain_delays(config, session, patience):
        processes = await start_processes(group, config, session, inherit_fds)
        signs = session.credentials.get(IDENTITY_URL) is not None
        loaded = group.start(asyncio.to_thread(load_everything, config, signs=signs))
        config, survey = await _survey(config, session, processes)
        dist = [place.path for place in config.dist]
        looked_up = group.start(read_checkout(config.root, processes, beside=dist))
        http = await group.enter(http_client(pool_size=max(CONNECTIONS, 4 * config.concurrency)))
        services = Services.of(config, http, processes, session.credentials, logs, patience)
        await loaded
        discoveries = await open_ecosystems(group, config, session, services)
        checkout = await looked_up  # before anybody's tools, which may write something there
        with name_bad_paths(config.root):
            targets = await discover(config.root, discoveries)
            targets = await with_prebuilt(
                targets, config.dist, config.package_filter, session.ecosystems
            )
            plan = await make_plan(config, targets, history, commit=checkout.commit, survey=survey)
        plan = await with_warnings(
            plan,
            config.root,
            config.levels,
            targets,
            history,
            processes,
            uncommitted=checkout.uncommitted,
        )
        plan = await asyncio.to_thread(_with_tools, plan, config.mode, targets)
        plan, post_release = await plan_post_release(
            plan, config, targets, services, repository=session.ci.origin(config.root).repository
        )
        plan, signing = await plan_signing(plan, group, config, services, targets)
        if any(planned.action is Action.PUBLISH for planned in plan.packages):
            plan = replace(plan, notes=(*plan.notes, f"builds: {processes.sandbox.words}"))
        plan = session.redacted.clean(plan)
        return Prepared(plan, config, targets, processes, patience, signing, post_release)


@contextlib.contextmanager
def name_bad_paths(root: Path) -> Iterator[None]:
    """Raises PathError where a manifest names a path that is too long, a loop, or out of reach."""
    try:
        yield
    except OSError as error:
        place = clip(str(error.filename or root), MAX_PATH_CHARS)
        raise PathError(f"{place}: {error.strerror or error}; correct what names it") from error


@contextlib.asynccontextmanager
async def _explain_delays(
    config: Config, session: Session, patience: WaitBudget
) -> AsyncIterator[None]:
    """Ends planning with the deadline, and says of a server that does not answer what to do."""
    limit = asyncio.timeout_at(None if config.deadline is None else patience.until)
    try:
        async with in_time(limit):
            yield
    except Transient as error:
        error.hint = error.hint or _nothing_done(str(error), config.registries, session)
        raise
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


async def open_workspace(
    group: Group, config: Config, session: Session
) -> tuple[Config, Survey, Services]:
    """What a command takes that looks at the workspace and asks no registry, for as long as `group`
    is open.
    """
    processes = await start_processes(group, config, session, ())
    await asyncio.to_thread(load_everything, config, signs=False)  # discovery may start builds
    config, survey = await _survey(config, session, processes)
    http = await group.enter(http_client(pool_size=CONNECTIONS))
    logs = _logs(config.state_directory, session, config.mode)
    return config, survey, Services.of(config, http, processes, session.credentials, logs)


async def list_packages(
    group: Group, config: Config, session: Session
) -> tuple[Sequence[Package], Processes]:
    """All packages of the workspace, and what starts children."""
    config, _, services = await open_workspace(group, config, session)
    discoveries = await open_ecosystems(group, config, session, services)
    targets = await discover(config.root, discoveries)
    packages = [each for one in targets.values() for each in one.workspace.packages]
    return packages, services.processes


def _with_tools(plan: Plan, mode: Command, targets: Mapping[str, Target]) -> Plan:
    """Raises ConfigError where a tool is missing that has to build; a plan alone needs none, and
    says so.
    """
    error = find_missing_tools(plan, targets)
    if error is None:
        return plan
    if mode != "plan":
        raise error
    return replace(plan, notes=(*plan.notes, f"{error}, and nothing can be built. {error.hint}"))


def refuse_elsewhere(root: Path, about: PackageFilter, session: Session) -> None:
    """Raises ConfigError in a mere member of a workspace, before anything is written there."""
    home = session.credentials.environment.get("HOME", "")
    ecosystems = {
        name: each for name, each in session.ecosystems.items() if about.has_ecosystem(name)
    }
    refuse_member(root, ecosystems, home=home)


def find_seal(session: Session, *, make: bool) -> Seal | None:
    """What built files are sealed with; raises ConfigError for a `state-key` that is too short."""
    given = session.credentials.get(STATE_KEY.variable)
    environment = session.credentials.environment
    return seal_for(given.reveal() if given else "", environment, make=make)


def say(line: str, session: Session) -> None:
    if line:
        print(log_line(line), file=session.out)


def restore_manifests(config: Config, seal: Seal, session: Session) -> None:
    """Give back what a killed run left pinned or half written; its locks are held."""
    ecosystems = config.package_filter.ecosystems
    for path in pins.recover(config.state_directory, ecosystems, root=config.root, seal=seal):
        say(f"restored {path}, which a killed run had left changed", session)


async def take_turn(group: Group, config: Config, session: Session) -> Seal:
    """The locks of this checkout, with what a killed run left given back. Raises LockHeld while
    another run works here.
    """
    await asyncio.to_thread(refuse_links, config.state_directory)
    ecosystems = config.package_filter.ecosystems
    await group.enter(locks.acquire(config.state_directory, ecosystems))
    seal = find_seal(session, make=True) or Seal.for_one_run()
    restore_manifests(config, seal, session)
    return seal


async def refuse_tracked(path: Path | None, label: str, config: Config, session: Session) -> None:
    """Raises ConfigError where the file that is to be written is one of the sources."""
    repository = repository_of(path.parent) if path is not None else None
    if path is None or repository is None:
        return
    async with Group() as group:
        if await is_tracked(path, repository, await start_processes(group, config, session, ())):
            raise PathError(f"{label}: {path} is a file that git tracks; write the path of another")


async def start_processes(
    group: Group, config: Config, session: Session, inherit_fds: Collection[int]
) -> Processes:
    """What all children of a command are started by, for as long as `group` is open.

    Their temporary directory is one of this run: the runner's own holds the files that it obeys.
    """
    environment, secrets = session.credentials.environment, session.credentials.values
    ecosystems, uv = session.ecosystems.values(), config.uv_path
    # Those of uv belong to the uv in use, at any path and under any name.
    caches = [
        replace(cache, tool=uv) if uv and cache.tool == "uv" else cache
        for each in ecosystems
        for cache in each.caches
    ]
    variables = ToolVariables.of_all(each.variables for each in ecosystems)
    own = {}
    if environment.get(TEMPORARY):
        own[TEMPORARY] = await group.enter(scratch(environment))
    sandbox = await asyncio.to_thread(
        chosen,
        config.build_sandbox,
        root=config.root,
        state_directory=config.state_directory,
        further=(*config.build_sandbox_paths, *own.values()),
        caches=caches,
        environment=variables.scrub(environment, secrets),
    )
    return await group.enter(
        Processes(
            environment={**environment, **{name: str(place) for name, place in own.items()}},
            secrets=secrets,
            inherit_fds=inherit_fds,
            variables=variables,
            sandbox=sandbox,
        )
    )


async def _survey(config: Config, session: Session, processes: Processes) -> tuple[Config, Survey]:
    """What lies below the root, and the config with what of it is planned all the same."""
    root, tables, ecosystems = config.root, config.ecosystem_tables, session.ecosystems
    names = config.ecosystems_to_discover
    wanted = {name: each for name, each in ecosystems.items() if name in names}
    found = await find_nested(root, tables, wanted, processes)
    tables, note = include_workspaces(root, tables, ecosystems, found)
    return replace(config, ecosystem_tables=tables), Survey(ecosystems, found, note)


async def open_ecosystems(
    group: Group, config: Config, session: Session, services: Services
) -> Mapping[str, Discovery]:
    """The chosen ecosystems and those to be consulted, not yet discovered; open for as long as
    `group` is.
    """
    return {
        name: await open_ecosystem(name, group, config, session, services)
        for name in config.ecosystems_to_discover
    }


async def open_ecosystem(
    name: str, group: Group, config: Config, session: Session, services: Services
) -> Discovery:
    discovery = folders.discovery(session.ecosystems[name], config, services)
    return await discovery.opened_in(group)


def _logs(state_directory: Path, session: Session, run_id: str) -> Logs:
    run = run_logs.name_of(run_id, datetime.now(UTC))
    return Logs(state_directory, run, session.credentials.redact)
