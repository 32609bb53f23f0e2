"""The results that a run has left, as a file or as an artifact."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from releasekit.approval.workflow_run import WorkflowRun
from releasekit.causes.refusals import CommandLineError
from releasekit.errors import ConfigError
from releasekit.host.files import read_text
from releasekit.http.client import RetryPolicy, http_client
from releasekit.report import join, load_results

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.model import Report

RESULTS: Final = "results.json"
# Results of 10,000 packages are some 20 MB, with the last lines of each build.
MAX_RESULTS_BYTES: Final = 256 * 1024 * 1024


def loaded(path: Path) -> Report:
    """Raises ConfigError naming the file."""
    return load_results(read_text(path, max_bytes=MAX_RESULTS_BYTES), where=str(path))


async def recorded(config: Config, session: Session) -> tuple[Report, str]:
    """The results to decide about, and where they were found; those of several jobs are joined."""
    if not config.run:
        path = config.results_file or config.state_directory / RESULTS
        try:
            return await asyncio.to_thread(loaded, path), str(path)
        except ConfigError as error:
            error.hint = error.hint or "Name the results.json of the run, or its page with --run."
            raise
    if config.results_file:
        raise CommandLineError("RESULTS and --run both name results; write one of them")
    run = WorkflowRun.named(config.run, session.credentials.get)
    policy = RetryPolicy(
        config.max_retries,
        config.retry_base_delay_s,
        deadline_s=config.task_timeout_s,
        redact=session.credentials.redact,
    )
    async with http_client() as http:
        found = await run.results(http, policy)
    reports = [await asyncio.to_thread(load_results, text, where) for where, text in found]
    return (reports[0] if len(reports) == 1 else join(reports)), config.run
