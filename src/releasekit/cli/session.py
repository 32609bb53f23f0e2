"""What a command works with: whose credentials, and a plan with all that is open for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

from releasekit.aio import Group
from releasekit.config.choice import consulted
from releasekit.ecosystems import folders
from releasekit.ecosystems.interface import Services
from releasekit.ecosystems.prebuilt import with_prebuilt
from releasekit.errors import ConfigError
from releasekit.host.files import repository_of
from releasekit.host.process import Processes
from releasekit.host.scrub import ToolVariables
from releasekit.http.client import http_client
from releasekit.plan import below
from releasekit.plan.above import refuse_member
from releasekit.plan.make import Around, discover, make_plan
from releasekit.plan.source import commit_of, is_tracked
from releasekit.plan.warnings import with_warnings
from releasekit.state import run_logs
from releasekit.state.run_logs import Logs
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.config.ecosystem import EcosystemDeclaration
    from releasekit.ecosystems.interface import Discovery, Target
    from releasekit.host.runner import Actions
    from releasekit.http.credentials import Credentials
    from releasekit.model import Plan
    from releasekit.state.history import History

MAX_PATH_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """Whose credentials a command uses and where it prints, besides its Config."""

    credentials: Credentials
    actions: Actions
    ecosystems: Mapping[str, EcosystemDeclaration]
    out: TextIO


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan and what carries it out, with the config that it was made by."""

    plan: Plan
    config: Config
    targets: Mapping[str, Target]
    processes: Processes


async def prepared(  # noqa: PLR0913 - what a command begins with, by name
    group: Group,
    config: Config,
    session: Session,
    history: History,
    *,
    run_id: str,
    inherit_fds: Collection[int] = (),
) -> Prepared:
    """Discover, plan and warn; what is open for that stays so for as long as `group` is."""
    processes = await _started(group, session, inherit_fds)
    config, around = await _looked_around(config, session, processes)
    logs = _logs(config, session, run_id)
    discoveries = await _opened(group, config, session, processes, logs=logs)
    dist = [place.path for place in config.dist]
    commit = await commit_of(config.root, processes, beside=dist)
    try:
        targets = await discover(config.root, discoveries)
        targets = await with_prebuilt(targets, config, session.ecosystems)
        plan = await make_plan(config, targets, history, commit=commit, around=around)
    except OSError as error:
        # Whatever a manifest names as a path: too long, a loop of links, in nobody's reach.
        place = clip(str(error.filename), MAX_PATH_CHARS)
        raise ConfigError(f"{place}: {error.strerror}; correct what names it") from error
    plan = await with_warnings(plan, config, targets, history, processes)
    return Prepared(plan, config, targets, processes)


def refuse_elsewhere(config: Config, session: Session) -> None:
    """Raises ConfigError in a mere member of a workspace, before anything is written there."""
    home = session.credentials.environment.get("HOME", "")
    refuse_member(config, session.ecosystems, home=home)


async def refuse_tracked(path: Path | None, label: str, session: Session) -> None:
    """Raises ConfigError where the file that is to be written is one of the sources."""
    repository = repository_of(path.parent) if path is not None else None
    if path is None or repository is None:
        return
    async with Group() as group:
        if await is_tracked(path, repository, await _started(group, session, ())):
            raise ConfigError(
                f"{label}: {path} is a file that git tracks; write the path of another"
            )


async def _started(group: Group, session: Session, inherit_fds: Collection[int]) -> Processes:
    """What all children of a command are started by, for as long as `group` is open."""
    return await group.enter(
        Processes(
            environment=session.credentials.environment,
            secrets=session.credentials.values,
            inherit_fds=inherit_fds,
            variables=ToolVariables.of_all(each.variables for each in session.ecosystems.values()),
        )
    )


async def _looked_around(
    config: Config, session: Session, processes: Processes
) -> tuple[Config, Around]:
    """What lies below the root, and the config with what of it is planned all the same."""
    found = await below.found_below(config, session.ecosystems, processes)
    config, note = below.taking_in(config, session.ecosystems, found)
    return config, Around(session.ecosystems, found, note)


async def _opened(
    group: Group, config: Config, session: Session, processes: Processes, *, logs: Logs
) -> Mapping[str, Discovery]:
    """The chosen ecosystems and those to be consulted, not yet discovered; open for as long as
    `group` is.
    """
    credentials = session.credentials
    http = await group.enter(http_client(pool_size=max(10, 2 * config.concurrency)))
    services = Services(credentials.environment, http, processes, credentials, logs)
    discoveries = {}
    for name in (*(config.ecosystems or config.known_ecosystems), *consulted(config)):
        discovery = folders.discovery(session.ecosystems[name], config, services)
        discoveries[name] = await discovery.opened_in(group)
    return discoveries


def _logs(config: Config, session: Session, run_id: str) -> Logs:
    run = run_logs.name_of(run_id, datetime.now(UTC))
    return Logs(config.state_directory, run, session.credentials.redact)
