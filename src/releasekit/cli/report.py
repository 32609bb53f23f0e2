"""The command report: the results of several jobs as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit import report
from releasekit.aio import uncancellable
from releasekit.cli.commands.report import ReportInputs
from releasekit.cli.result_files import RESULTS, load_results, refuse_tracked_results, tell
from releasekit.errors import ConfigError
from releasekit.plan.file import PlanFile
from releasekit.problems import Problem
from releasekit.state.directory import refuse_links

if TYPE_CHECKING:
    from releasekit.cli.session import Session
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Join the results of several jobs, found below the state directory, into one report."""
    inputs = config.own(ReportInputs)
    await asyncio.to_thread(refuse_links, config.state_directory)
    await refuse_tracked_results(inputs.results_file, config, session)
    found = sorted(config.state_directory.rglob(RESULTS))
    if not found:
        raise ConfigError(
            f"{config.state_directory}: there is no {RESULTS} below it",
            hint="Download the artifacts of the publishing jobs there, one directory each "
            "(actions/download-artifact), or name another `state-directory`.",
            problem=Problem.RESULTS,
        )
    reports = await asyncio.to_thread(load_results, *found)
    planned = PlanFile.read(inputs.plan_file).plan() if inputs.plan_file else None
    made = await asyncio.to_thread(report.join, reports, plan=planned)
    table = await asyncio.to_thread(report.results_table, made)
    print(table, file=session.out, flush=True)
    await uncancellable(asyncio.to_thread(tell, made, inputs.results_file, config, session))
    return report.exit_code(made)
