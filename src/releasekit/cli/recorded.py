"""The results that a run has left, as a file or as an artifact."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from releasekit.approval.workflow_run import WorkflowRun
from releasekit.errors import ConfigError
from releasekit.host.files import read_file
from releasekit.http.client import RetryPolicy, http_client
from releasekit.problems import Problem
from releasekit.report import join, load_all
from releasekit.report.record import MAX_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.model import Report

RESULTS: Final = "results.json"


def loaded(*paths: Path) -> list[Report]:
    """Of each of these files, one read after the other. Raises ConfigError naming the file."""
    return load_all((str(path), read_file(path, max_bytes=MAX_BYTES)) for path in paths)


async def recorded(config: Config, session: Session) -> tuple[Report, str, dict[str, str]]:
    """The results to decide about, where they were found, and whose run has left them; those of
    several jobs are joined.
    """
    if not config.run:
        path = config.results_file or config.state_directory / RESULTS
        try:
            (report,) = await asyncio.to_thread(loaded, path)
        except ConfigError as error:
            error.hint = error.hint or "Name the results.json of the run, or its page with --run."
            raise
        said = {"page, as the file says": report.run_url} if report.run_url else {}
        return report, str(path), said
    if config.results_file:
        raise ConfigError(
            "RESULTS and --run both name results; write one of them", problem=Problem.COMMAND_LINE
        )
    run = WorkflowRun.named(config.run, session.credentials.get)
    policy = RetryPolicy(
        config.max_retries,
        config.retry_base_delay_s,
        deadline_s=config.task_timeout_s,
        redact=session.credentials.redact,
    )
    async with http_client() as http:
        described = await run.describe(http, policy)
        found = await run.results(http, policy)
    reports = await asyncio.to_thread(load_all, found)
    return (reports[0] if len(reports) == 1 else join(reports)), config.run, described
