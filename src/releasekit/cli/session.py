"""What a command works with: whose credentials, what starts children, and open ecosystems."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from msgspec import Struct

from releasekit.aio import Group
from releasekit.cli.interruption import Interruption
from releasekit.cli.preload import load_everything
from releasekit.config.inputs import STATE_KEY
from releasekit.config.levels import WarningLevel
from releasekit.ecosystems import folders
from releasekit.ecosystems.interface import Services
from releasekit.errors import ConfigError, PathError
from releasekit.fields import replace
from releasekit.host.ci import FOREIGN_EVENTS, TEMPORARY
from releasekit.host.files import repository_of
from releasekit.host.process import Processes
from releasekit.host.sandbox import chosen
from releasekit.host.scratch import scratch
from releasekit.host.scrub import ToolVariables
from releasekit.http.client import http_client
from releasekit.http.pool import CONNECTIONS
from releasekit.model import WarningName
from releasekit.plan.absent import refuse_absent_members
from releasekit.plan.enclosing_workspace import refuse_member
from releasekit.plan.holdings import read_tree
from releasekit.plan.make import Survey, discover
from releasekit.plan.source import is_tracked
from releasekit.plan.unlisted_packages import (
    find_absent,
    find_nested,
    include_workspaces,
    list_manifests,
)
from releasekit.problems import Problem
from releasekit.report.redacted import Redacted
from releasekit.state import locks, pins, run_logs
from releasekit.state.directory import refuse_links
from releasekit.state.run_logs import Logs
from releasekit.state.seals import Seal, seal_for
from releasekit.text.escape import clip, log_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import BuildConfig, Config, PlanConfig
    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.config.package_filter import PackageFilter
    from releasekit.ecosystems.interface import Discovery, Target
    from releasekit.host.ci import CI
    from releasekit.host.runner import Runner
    from releasekit.http.credentials import Credentials
    from releasekit.model import Package, Report
    from releasekit.plan.holdings import Tree

MAX_PATH_CHARS: Final = 1_000


class Session(Struct, frozen=True):
    """Whose credentials a command uses and where it prints, besides its Config."""

    credentials: Credentials
    runner: Runner
    ci: CI
    ecosystems: Mapping[str, EcosystemDeclaration]
    out: TextIO

    @property
    def redacted(self) -> Redacted:
        return Redacted(self.credentials.redact)

    def placed(self, made: Report, root: Path) -> Report:
        """`made`, which may be that of other jobs, with where it took place."""
        here = self.ci.origin(root)
        return replace(
            made,
            project=made.project or here.project,
            repository=made.repository or here.repository,
            forge=made.forge if made.repository else here.forge,
            run_url=made.run_url or here.run_url,
        )


@contextlib.contextmanager
def name_bad_paths(root: Path) -> Iterator[None]:
    """Raises PathError where a manifest names a path that is too long, a loop, or out of reach."""
    try:
        yield
    except OSError as error:
        place = clip(str(error.filename or root), MAX_PATH_CHARS)
        raise PathError(f"{place}: {error.strerror or error}; correct what names it") from error


async def open_workspace(
    group: Group, config: Config, session: Session
) -> tuple[Config, Survey, Services]:
    """What a command takes that looks at the workspace and asks no registry, for as long as `group`
    is open.
    """
    processes = await start_processes(group, config, session, ())
    await asyncio.to_thread(load_everything, config, signs=False)  # discovery may start builds
    config, survey = await survey_root(config, session, processes)
    http = await group.enter(http_client(pool_size=CONNECTIONS))
    logs = make_logs(config.state_directory, session, config.mode)
    services = Services.of(config, http, processes, session.credentials, session.ci, logs)
    await services.git.remember()
    return config, survey, services


async def list_packages(
    group: Group, config: Config, session: Session
) -> tuple[Sequence[Package], str, Processes]:
    """All packages of the workspace, what is left out of them, and what starts children."""
    config, survey, services = await open_workspace(group, config, session)
    targets = await open_targets(group, config, session, services, survey.tree)
    packages = [each for one in targets.values() for each in one.workspace.packages]
    aside = filter(None, (each.versioning.describe_left_out() for each in targets.values()))
    return packages, "; ".join(aside), services.processes


async def open_targets(
    group: Group, config: PlanConfig, session: Session, services: Services, tree: Tree
) -> Mapping[str, Target]:
    """As `open_ecosystems`, and discovered. Raises PathError as `name_bad_paths`."""
    discoveries = await open_ecosystems(group, config, session, services)
    with name_bad_paths(config.root):
        return await discover(config.root, discoveries, tree)


def refuse_elsewhere(root: Path, about: PackageFilter, session: Session) -> None:
    """Raises ConfigError in a mere member of a workspace, before anything is written there."""
    home = session.credentials.environment.get("HOME", "")
    ecosystems = {
        name: each for name, each in session.ecosystems.items() if about.has_ecosystem(name)
    }
    refuse_member(root, ecosystems, home=home)


def refuse_foreign(config: PlanConfig, session: Session) -> None:
    """Raises ConfigError in a job that may run a stranger's code, or go by what it left."""
    event = session.ci.event
    if event in FOREIGN_EVENTS and event not in config.allow_events:
        raise ConfigError(
            f"`{event}` started this job, so it has the secrets of the repository and may run a "
            "stranger's code with them",
            hint=f"Run `{config.mode}` on a push, a tag, a release, or `workflow_dispatch`. If the "
            "job checks out no commit of a pull request and downloads no artifact of one, set "
            f"`allow-events: {event}`.",
            problem=Problem.FOREIGN_EVENT,
        )


@contextlib.asynccontextmanager
async def open_command(
    config: PlanConfig, session: Session, leaving: str = "cancelled"
) -> AsyncIterator[Group]:
    """The group of a command that uploads nothing. Builds may have to tell versions: what they
    write into files that the runner obeys is taken out at the end.
    """
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    session.runner.watch_files()
    with Interruption(leaving):
        async with Group() as group:
            yield group
    session.runner.restore_files(for_good=True)


def find_seal(session: Session, *, make: bool) -> Seal | None:
    """What built files are sealed with; raises ConfigError for a `state-key` that is too short."""
    given = session.credentials.get(STATE_KEY.variable)
    environment = session.credentials.environment
    return seal_for(given.reveal() if given else "", environment, make=make)


def say(line: str, session: Session) -> None:
    if line:
        print(log_line(line), file=session.out)


def restore_manifests(config: PlanConfig, seal: Seal, session: Session) -> None:
    """Give back what a killed run left pinned or half written; its locks are held."""
    ecosystems = config.package_filter.ecosystems
    for path in pins.recover(config.state_directory, ecosystems, root=config.root, seal=seal):
        say(f"restored {path}, which a killed run had left changed", session)


async def take_turn(group: Group, config: PlanConfig, session: Session) -> Seal:
    """The locks of this checkout, with what a killed run left given back. Raises LockHeld while
    another run works here.
    """
    await asyncio.to_thread(refuse_links, config.state_directory)
    ecosystems = config.package_filter.ecosystems
    await group.enter(locks.acquire(config.state_directory, ecosystems))
    seal = find_seal(session, make=True) or Seal.for_one_run()
    restore_manifests(config, seal, session)
    return seal


async def refuse_tracked(
    path: Path | None, label: str, config: BuildConfig, session: Session
) -> None:
    """Raises ConfigError where the file that is to be written is one of the sources."""
    repository = repository_of(path.parent) if path is not None else None
    if path is None or repository is None:
        return
    async with Group() as group:
        if await is_tracked(path, repository, await start_processes(group, config, session, ())):
            raise PathError(f"{label}: {path} is a file that git tracks; write the path of another")


async def start_processes(
    group: Group, config: BuildConfig, session: Session, inherit_fds: Collection[int]
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


async def survey_root(
    config: Config, session: Session, processes: Processes
) -> tuple[Config, Survey]:
    """What lies below the root, and the config with what of it is planned all the same, and which
    ecosystems need not be discovered.
    """
    root, tables, ecosystems = config.root, config.ecosystem_tables, session.ecosystems
    names, chosen = config.ecosystems_to_discover, config.package_filter.ecosystems
    wanted = {name: each for name, each in ecosystems.items() if name in names}
    tree = await read_tree(root, processes)
    meant = [each for name, each in wanted.items() if config.package_filter.has_ecosystem(name)]
    await refuse_absent_members(root, tables, meant, tree, processes)
    listed = await list_manifests(root, wanted.values(), tree)
    found, unread = await find_nested(root, tables, wanted, listed)
    tables, note = include_workspaces(root, tables, ecosystems, found)
    config = replace(config, ecosystem_tables=tables)
    absent = find_absent(config, [ecosystems[name] for name in chosen], listed)
    if config.levels.find(WarningName.UNREAD_MANIFEST) is WarningLevel.IGNORE:
        unread = []
    return replace(config, absent=absent), Survey(ecosystems, found, note, unread, tree)


async def open_ecosystems(
    group: Group, config: PlanConfig, session: Session, services: Services
) -> Mapping[str, Discovery]:
    """The chosen ecosystems and those to be consulted, not yet discovered; open for as long as
    `group` is.
    """
    return {
        name: await open_ecosystem(name, group, config, session, services)
        for name in config.ecosystems_to_discover
    }


async def open_ecosystem(
    name: str, group: Group, config: PlanConfig, session: Session, services: Services
) -> Discovery:
    discovery = folders.discovery(session.ecosystems[name], config, services)
    return await discovery.opened_in(group)


def make_logs(state_directory: Path, session: Session, run_id: str) -> Logs:
    run = run_logs.name_of(run_id, datetime.now(UTC))
    return Logs(state_directory, run, session.credentials.redact)
