"""What each command does, from a Config to an exit code; reads top to bottom."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import uuid
from typing import TYPE_CHECKING

from releasekit import report
from releasekit.aio import Group, uncancellable
from releasekit.cli.interruption import Interruption
from releasekit.cli.publishing import Publishing, say, tell, write
from releasekit.cli.request_log import request_logger
from releasekit.cli.result_files import (
    RESULTS,
    forget_results,
    load_results,
    refuse_tracked_results,
)
from releasekit.cli.session import (
    Session,
    find_seal,
    prepare,
    refuse_elsewhere,
    refuse_tracked,
)
from releasekit.config.inputs import STATE_KEY
from releasekit.config.values import Directory
from releasekit.errors import ConfigError
from releasekit.host.output_path import require_free
from releasekit.http.traffic import collect
from releasekit.model import Action
from releasekit.plan.file import PlanFile
from releasekit.plan.registries import check_credentials
from releasekit.plan.shards import with_shards
from releasekit.plan.warnings import refuse_errors
from releasekit.problems import Problem
from releasekit.release.sources import Sources
from releasekit.report.text import few
from releasekit.state import doctor, locks, pins, run_logs
from releasekit.state.directory import make_state_directory, refuse_links
from releasekit.state.journal import Journal, read_history
from releasekit.state.quarantine import quarantine, with_restored
from releasekit.state.seals import Seal
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.model import Plan
    from releasekit.state.history import History


async def run(config: Config, session: Session) -> int:
    await asyncio.to_thread(_find_temporary_directory)
    match config.mode:
        case "plan":
            return await plan(config, session)
        case "publish":
            return await publish(config, session)
        case "approve" | "reject":
            from releasekit.cli.approve import decide  # noqa: PLC0415 - what no other mode needs

            return await decide(config, session)
        case "verify":
            from releasekit.cli.verify import verify  # noqa: PLC0415 - brings cryptography

            return await verify(config, session)
        case "notes":
            from releasekit.cli.notes import notes  # noqa: PLC0415 - what no other mode needs

            return await notes(config, session)
        case "report":
            return await join(config, session)
        case "doctor":
            return await examine(config, session)


def _find_temporary_directory() -> None:
    """Once, before any build could put a link in its place."""
    tempfile.tempdir = os.path.realpath(tempfile.gettempdir())


async def plan(config: Config, session: Session) -> int:
    """Show what `publish` would do; changes nothing but the plan file, where one is wanted."""
    await asyncio.to_thread(refuse_elsewhere, config, session)
    await refuse_tracked(config.plan_file, "plan-file", config, session)
    await asyncio.to_thread(refuse_links, config.state_directory)
    seal = find_seal(session, make=False)
    history = await asyncio.to_thread(read_history, config.state_directory, seal=seal)
    history = await asyncio.to_thread(with_restored, config.state_directory, history)
    session.actions.watch_files()  # build backends may have to tell versions
    with Interruption(), collect(request_logger(config, session)):
        async with Group() as group:
            ready = await prepare(group, config, session, history, run_id=uuid.uuid4().hex)
    session.actions.restore_files(for_good=True)
    made = await asyncio.to_thread(
        with_shards, ready.plan, config, ready.targets, history.durations
    )
    _write_plan(made, config, session)
    print(_render_plan(made, config).rstrip("\n"), file=session.out, flush=True)
    refuse_errors(made)
    return 0


def _render_plan(made: Plan, config: Config) -> str:
    match config.format:
        case "table":
            return report.plan_table(made)
        case "json":
            # The runner finds a command in it anywhere: see `log_line`.
            return report.plan_json(made, config.root).replace("##[", r"\u0023#[")
        case "mermaid":
            return report.plan_mermaid(made)


def _write_plan(made: Plan, config: Config, session: Session) -> None:
    path = config.plan_file
    if path is None and session.ci.is_actions:
        make_state_directory(config.state_directory)
        path = config.state_directory / "plan.json"
    if path is not None:
        if path == config.plan_file:
            require_free(path, "plan-file")
        write(path, report.plan_json(made, config.root))
        session.actions.output("plan-file", str(path))
    for name, value in report.plan_outputs(made, apart=config.wait_s > 0).items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(report.plan_summary(made, session.ci.origin(config.root)))
    if config.annotations:
        warned = [(planned.package, planned.warnings) for planned in made.packages]
        session.actions.annotate("warning", report.warning_annotations(warned))


async def publish(config: Config, session: Session) -> int:
    """Publish what is missing; whatever happens, every package is accounted for."""
    planned = PlanFile.read(config.plan_file) if config.plan_file else None
    if planned is not None:
        config = planned.narrowed(config)
    ecosystems = config.ecosystems or config.known_ecosystems
    run_id = uuid.uuid4().hex
    redact = session.redacted.text
    await asyncio.to_thread(refuse_elsewhere, config, session)
    await refuse_tracked_results(config, session)
    session.actions.watch_files()
    with Interruption() as interruption, collect(request_logger(config, session)) as book:
        async with Group() as group:
            await asyncio.to_thread(refuse_links, config.state_directory)
            say(doctor.dead_runs(config.state_directory, ecosystems), session)
            held = await group.enter(locks.acquire(config.state_directory, ecosystems))
            forget_results(config)
            seal = find_seal(session, make=True) or Seal.for_one_run()
            for path in pins.recover(
                config.state_directory, ecosystems, root=config.root, seal=seal
            ):
                say(f"restored {path}, which a killed run had left pinned", session)
            run_logs.remove_old(config.state_directory)
            # Beside the loop: what somebody else put there may be long.
            journal = await uncancellable(
                asyncio.to_thread(
                    Journal.open,
                    config.state_directory,
                    run_id=run_id,
                    redact=redact,
                    seal=seal,
                )
            )
            await group.enter(contextlib.closing(journal))
            say(seal.note, session)
            say(await _quarantine_unsealed(config, journal.history, ecosystems), session)
            say(doctor.uncertain_uploads(journal.history, ecosystems), session)
            ready = await prepare(
                group,
                config,
                session,
                journal.history,
                run_id=run_id,
                inherit_fds=held.descriptors,
            )
            made = ready.plan
            if planned is not None:
                planned.check(made)
            refuse_errors(made)
            if not config.dry_run:
                check_credentials(ecosystems_to_upload(made), ready.targets)
            sources = Sources.in_checkout(made, config.root, ready.processes)
            run = Publishing(
                run_id,
                made,
                ready.config,
                session,
                journal,
                sandbox=ready.processes.sandbox,
                patience=ready.patience,
                book=book,
                signing=ready.signing,
                post_release=ready.post_release,
            )
            return await run.carry_out(ready.targets, sources, interruption)


async def _quarantine_unsealed(
    config: Config, history: History, ecosystems: Collection[str]
) -> str:
    """What is said of built files that are not trusted; they are not there any more."""
    # A thread cannot be cancelled, and the locks must be held until it has ended.
    aside = await uncancellable(
        asyncio.to_thread(quarantine, config.state_directory, history, ecosystems)
    )
    if not aside:
        return ""
    return (
        f"cannot verify the files that an earlier run built for {few(aside, 3)}; they were "
        "quarantined and will be built again where the version is not published yet. Runs that are "
        f"to trust each other's state need the same `{STATE_KEY.name}`"
    )


def ecosystems_to_upload(made: Plan) -> set[str]:
    """The ecosystems of which something will have to be uploaded."""
    return {
        planned.package.id.ecosystem
        for planned in made.packages
        if planned.action in {Action.PUBLISH, Action.UPLOAD}
    }


async def join(config: Config, session: Session) -> int:
    """Join the results of several jobs, found below the state directory, into one report."""
    await asyncio.to_thread(refuse_links, config.state_directory)
    await refuse_tracked_results(config, session)
    found = sorted(config.state_directory.rglob(RESULTS))
    if not found:
        raise ConfigError(
            f"{config.state_directory}: there is no {RESULTS} below it",
            hint="Download the artifacts of the publishing jobs there, one directory each "
            "(actions/download-artifact), or name another `state-directory`.",
            problem=Problem.RESULTS,
        )
    reports = await asyncio.to_thread(load_results, *found)
    planned = PlanFile.read(config.plan_file).plan() if config.plan_file else None
    made = await asyncio.to_thread(report.join, reports, plan=planned)
    table = await asyncio.to_thread(report.results_table, made)
    print(table, file=session.out, flush=True)
    await uncancellable(asyncio.to_thread(tell, made, config, session))
    return report.exit_code(made)


async def examine(config: Config, session: Session) -> int:
    """Say what earlier runs left behind, and repair it where `fix` asks for that."""
    if config.fix:
        seal = find_seal(session, make=False) or Seal.for_one_run()
        fixed = await asyncio.to_thread(
            doctor.fix, config.state_directory, root=config.root, seal=seal
        )
        for finding in fixed:
            print(f"fixed: {log_line(finding.message)}", file=session.out)
    found = await asyncio.to_thread(
        doctor.examine,
        config.state_directory,
        root=config.root,
        registries=_directories(config),
        every_lock=config.verbose,
    )
    for finding in found.findings:
        print(f"{finding.kind}: {log_line(finding.message)}", file=session.out)
        if finding.hint:
            print(f"  {log_line(finding.hint)}", file=session.out)
    if not found.findings:
        print(f"{config.state_directory}: nothing was left behind", file=session.out)
    for line in (*found.locks, *found.last_run):
        print(log_line(line), file=session.out)
    return 1 if found.findings else 0


def _directories(config: Config) -> list[Path]:
    """The directories of the static registries in the configuration."""
    return [place.path for place in config.registries.values() if isinstance(place, Directory)]
