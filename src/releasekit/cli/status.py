"""The command status: what users can install now, of this release or an earlier one, by any tool.

It keeps no state and takes no lock, so it may run beside a release.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.cli.request_log import request_logger
from releasekit.cli.result_files import load_results
from releasekit.cli.session import name_bad_paths, open_command, open_ecosystems, open_workspace
from releasekit.ecosystems.shared.artifacts import scratch
from releasekit.errors import CommandFailed, ConfigError, PathError, describe_os_error
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.http.traffic import collect
from releasekit.plan.make import collect_packages, discover
from releasekit.plan.registries import ask_all
from releasekit.problems import Problem
from releasekit.report.screen import fit_lines
from releasekit.report.status import Status, list_needs, status_table
from releasekit.text.cause import find_cause
from releasekit.text.escape import clip, visible
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Package, PackageId, Report

_MAX_CHARS: Final = 100


async def run(config: Config, session: Session) -> int:
    """Print it; 0 where all packages are there and, as far as that was asked, installable."""
    recorded = None
    if isinstance(config.release, Path):
        (recorded,) = await asyncio.to_thread(load_results, config.release)
    about = config.package_filter
    tell = request_logger(session, verbose=config.verbose, mode=config.mode)
    async with open_command(config, session) as group:
        with collect(tell):
            config, survey, services = await open_workspace(group, config, session)
            discoveries = await open_ecosystems(group, config, session, services)
            with name_bad_paths(config.root):
                targets = await discover(config.root, discoveries)
            unlisted = survey.describe_unlisted(
                config.root, config.ecosystem_tables, about, targets
            )
            found = collect_packages(targets, config.root, about, unlisted)
            released, gone = _choose_versions(config.release, recorded, found, targets)
            known = {each.id: each for each in released}
            # As in a plan, what a chosen package needs has to be there too.
            wanted = reachable(
                [each.id for each in about.select(known)],
                lambda id_: [need for need in list_needs(known[id_]) if need in known],
            )
            packages = [each for each in released if each.id in wanted]
            status = Status(
                packages=packages,
                answers=await ask_all(packages, targets),
                gone=gone,
                of_tree=all(each in found for each in packages),
            )
            if config.smoke:
                place = await group.enter(scratch(services.processes.environment))
                status = await _resolve_all(status, targets, services, config, place)
    text = session.credentials.redact(status_table(status))
    print(fit_lines(text, session.out, session.credentials.environment), file=session.out)
    return 0 if status.is_installable else 1


def _choose_versions(
    release: str | Path,
    recorded: Report | None,
    found: Sequence[Package],
    targets: Mapping[str, Target],
) -> tuple[list[Package], list[Package]]:
    """The packages of a release, with their versions; and those that are not here any more."""
    if recorded is not None:
        here = {each.id: each for each in found}
        rows = [result.package for result in recorded.results]
        where = str(release)
        chosen = [_with_version(here[it.id], it.version, where) for it in rows if it.id in here]
        return chosen, [it for it in rows if it.id not in here]
    if not release:
        return [each for each in found if not each.unpublishable], []
    takes = [each for each in found if targets[each.id.ecosystem].takes_version(each)]
    return [_with_version(each, str(release), "VERSION") for each in takes], []


def _with_version(package: Package, version: str, where: str) -> Package:
    """Raises ConfigError for one that its ecosystem does not have; it stands in commands and files
    of clients.
    """
    try:
        spelled = numbering_of(package.id.ecosystem).check(version)
    except ValueError as error:
        raise ConfigError(
            f"{where}: {visible(clip(version, _MAX_CHARS))!r} is not a version of {package.id}",
            hint="Write one such as 1.4.0, or the path of a results.json; `--ecosystem` and "
            "`--packages` leave out what has other versions.",
            problem=Problem.COMMAND_LINE,
        ) from error
    mark = "v" if package.id.ecosystem == "go" else ""
    return replace(package, version=f"{mark}{spelled}", unpublishable="")


async def _resolve_all(
    status: Status, targets: Mapping[str, Target], services: Services, config: Config, place: Path
) -> Status:
    """`status` with what clients say of the packages that are there; they work below `place`."""
    limit = asyncio.Semaphore(config.concurrency)
    turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
    unresolved: dict[PackageId, str] = {}
    untried: dict[str, str] = {}

    async def resolve(number: int, package: Package) -> None:
        name = package.id.ecosystem
        shared, directory = place / name, place / f"{name}-{number}"
        try:
            trial = targets[name].try_out(package, shared)
        except ConfigError as error:
            untried[name] = f"{error}. {error.hint}"
            return
        if trial is None:
            untried[name] = "no client is known here"
            return
        await asyncio.to_thread(_write_files, directory, trial.files)
        async with turns[name] if trial.alone else nullcontext(), limit:
            try:
                await services.processes.run(
                    trial.argv, cwd=directory, env=trial.env, timeout_s=config.task_timeout
                )
            except CommandFailed as error:
                client = Path(trial.argv[0]).name
                if error.problem is Problem.CANNOT_START:
                    untried[name] = f"{client} cannot be started; is it on PATH?"
                else:
                    unresolved[package.id] = f"{client}: {_find_reason(error)}"

    there = [each for each in status.packages if status.state(each.id) == "there"]
    await gather_all(resolve(number, package) for number, package in enumerate(there))
    return replace(status, unresolved=unresolved, untried=untried, is_smoked=True)


def _write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Raises PathError."""
    try:
        durable.make_directory(directory)
        for name, text in files.items():
            durable.make_directory((directory / name).parent)
            durable.replace(directory / name, text.encode())
    except OSError as error:
        raise PathError(f"{describe_os_error(error)}; make room there") from error


def _find_reason(error: CommandFailed) -> str:
    said = [line.strip() for line in error.log if line.strip()]
    return find_cause(error.log) or (said[-1] if said else str(error))
