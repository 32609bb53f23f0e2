"""The command plan: what `publish` would do."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, assert_never

from releasekit import report
from releasekit.aio import Group
from releasekit.cli.commands.plan import PlanInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.prepare import prepare
from releasekit.cli.request_log import request_logger
from releasekit.cli.result_files import write
from releasekit.cli.session import find_seal, refuse_elsewhere, refuse_tracked
from releasekit.config.shards import ShardCounts
from releasekit.host.output_path import require_free
from releasekit.http.traffic import collect
from releasekit.plan.rights import refuse_unentitled
from releasekit.plan.shards import with_shards
from releasekit.plan.warnings import refuse_errors
from releasekit.report.screen import fit_lines
from releasekit.state.directory import make_state_directory, refuse_links
from releasekit.state.journal import read_history
from releasekit.state.quarantine import with_restored

if TYPE_CHECKING:
    from releasekit.cli.session import Session
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Show what `publish` would do; changes nothing but the plan file, where one is wanted."""
    inputs = config.own(PlanInputs)
    counts = ShardCounts.parse(inputs.shards, session.ecosystems, "shards")
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    await refuse_tracked(inputs.plan_file, "plan-file", config, session)
    await asyncio.to_thread(refuse_links, config.state_directory)
    seal = find_seal(session, make=False)
    history = await asyncio.to_thread(read_history, config.state_directory, seal=seal)
    history = await asyncio.to_thread(with_restored, config.state_directory, history)
    session.runner.watch_files()  # build backends may have to tell versions
    with Interruption(), collect(request_logger(session, verbose=config.verbose, mode=config.mode)):
        async with Group() as group:
            ready = await prepare(group, config, session, history, run_id=uuid.uuid4().hex)
            made = await refuse_unentitled(ready.plan, ready.targets, None, proving=False)
    made = session.redacted.clean(made)
    session.runner.restore_files(for_good=True)
    made = await asyncio.to_thread(with_shards, made, counts, ready.targets, history.durations)
    path = inputs.plan_file
    if path is None and session.ci.kind != "other":
        make_state_directory(config.state_directory)
        path = config.state_directory / "plan.json"
    if path is not None:
        if path == inputs.plan_file:
            require_free(path, "plan-file")
        write(path, report.plan_json(made, config.root))
        session.runner.output("plan-file", str(path))
    for name, value in report.plan_outputs(made, apart=config.wait > 0).items():
        session.runner.output(name, value)
    if config.summary:
        session.runner.summary(report.plan_summary(made, session.ci.origin(config.root)))
    if config.annotations:
        warned = [(planned.package, planned.warnings) for planned in made.packages]
        session.runner.annotate("warning", report.warning_annotations(warned))
    match inputs.format:
        case "table":
            text = fit_lines(report.plan_table(made), session.out, session.credentials.environment)
        case "json":
            # The runner finds a command in it anywhere: see `log_line`.
            text = report.plan_json(made, config.root).replace("##[", r"\u0023#[")
        case "mermaid":
            text = report.plan_mermaid(made)
        case _:
            assert_never(inputs.format)
    print(text.rstrip("\n"), file=session.out, flush=True)
    refuse_errors(made, config.levels)
    return 0
