"""results.json and report.html: where a run leaves them, and reading them back."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from releasekit import report
from releasekit.approval.workflow_run import WorkflowRun
from releasekit.cli.session import refuse_tracked, say
from releasekit.errors import ConfigError, PathError
from releasekit.host import durable
from releasekit.host.files import read_file
from releasekit.host.forges import Pages
from releasekit.host.output_path import describe_obstacle, require_free
from releasekit.http.client import http_client
from releasekit.problems import Problem
from releasekit.report.results import MAX_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.commands.approve import ApproveInputs
    from releasekit.cli.session import Session
    from releasekit.config.config import BuildConfig, PlanConfig, ReportConfig
    from releasekit.model import Report


PAGE: Final = "report.html"
JUNIT: Final = "junit.xml"
# As GitLab reads them: https://docs.gitlab.com/ci/yaml/artifacts_reports/#artifactsreportsannotations
LINKS: Final = "annotations.json"


async def refuse_tracked_results(
    results: Path | None, config: BuildConfig, session: Session
) -> None:
    """Raises ConfigError where results-file, or the page beside it, is tracked by git."""
    await refuse_tracked(results, "results-file", config, session)
    page = results.with_name(PAGE) if results else None
    is_replaced = False
    with contextlib.suppress(OSError):  # a page that cannot be read stays
        is_replaced = bool(page and page.is_file() and not describe_obstacle(page, "page"))
    if is_replaced:
        await refuse_tracked(page, "results-file", config, session)


def forget_results(state_directory: Path, results_file: Path | None) -> None:
    """Durably remove the results of an earlier run: if this one ends early, later steps must not
    take those for its own.
    """
    own = state_directory / RESULTS
    places = {own, results_file or own}
    for path in [*places, state_directory / JUNIT, state_directory / LINKS]:
        if path == results_file:
            require_free(path, "results-file")
        try:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                durable.remove(path)
        except OSError as error:
            raise PathError(f"{path}: cannot be removed: {error.strerror}") from error
    for path in places:
        page = path.with_name(PAGE)  # an old one of ours would pass for one of this run
        with contextlib.suppress(OSError):
            if not describe_obstacle(page, "page"):
                durable.remove(page)


def page_of(made: Report) -> bytes:
    # Only a run that has ended needs it.
    from releasekit.report.page import report_page  # noqa: PLC0415

    return report_page(made).encode()


def write_page(made: Report, results: Path) -> str:
    """Write the report page beside `results`. Where something is in the way, the run goes on
    without a page; returns the warning, else "".
    """
    path = results.with_name(PAGE)
    try:
        if trouble := describe_obstacle(path, "page"):
            return f"warning: {path} {trouble}; this run has no report page"
        durable.replace(path, page_of(made))
    except OSError as error:
        return f"warning: {path} cannot be written: {error.strerror}; this run has no report page"
    return ""


RESULTS: Final = "results.json"


def load_results(*paths: Path) -> list[Report]:
    """The reports in these files. Raises ConfigError that names the file."""
    return report.load_all((str(path), read_file(path, max_bytes=MAX_BYTES)) for path in paths)


async def load_recorded(
    inputs: ApproveInputs, config: PlanConfig, session: Session
) -> tuple[Report, str, dict[str, str]]:
    """The results to decide about, where they were found, and a description of the run. Results of
    several jobs are joined.
    """
    if not inputs.run:
        path = inputs.results_file or config.state_directory / RESULTS
        try:
            (recorded,) = await asyncio.to_thread(load_results, path)
        except ConfigError as error:
            hint = error.hint or "Name the results.json of the run, or its page with --run."
            raise error.with_(hint=hint) from error.__cause__
        said = {"page, as the file says": recorded.run_url} if recorded.run_url else {}
        return recorded, str(path), said
    if inputs.results_file:
        raise ConfigError(
            "RESULTS and --run both name results; write one of them", problem=Problem.COMMAND_LINE
        )
    run = WorkflowRun.named(inputs.run, session.credentials.get)
    policy = config.retry_policy(redact=session.credentials.redact)
    async with http_client() as http:
        described = await run.describe(http, policy)
        found = await run.results(http, policy)
    reports = await asyncio.to_thread(report.load_all, found)
    return (reports[0] if len(reports) == 1 else report.join(reports)), inputs.run, described


def tell(made: Report, results: Path | None, config: ReportConfig, session: Session) -> None:
    """Everything that outlives the run: results, outputs, summary, annotations."""
    runner = session.runner
    made = session.placed(made, config.root)
    text = report.results_json(made)
    own = config.state_directory / RESULTS
    path = results or own
    # The state directory's first: what is in the way elsewhere keeps no run off the record.
    for place in dict.fromkeys([own, path] if config.mode == "publish" else [path]):
        if place == results:
            require_free(place, "results-file")
        write(place, text)
    runner.output("results-file", str(path))
    found = report.outputs(made) if session.ci.is_actions else report.scalars(made)
    for name, value in found.items():
        runner.output(name, value)
    if not session.ci.is_actions:
        say(write_beside(config.state_directory / JUNIT, report.junit(made)), session)
    if session.ci.kind == "gitlab":
        _link(made, path.with_name(PAGE), config, session)
    if config.summary:
        runner.summary(report.summary(made))
    if config.annotations:
        for level, notes in report.notices(made):
            runner.annotate(level, notes)
    say(write_page(made, path), session)


def _link(made: Report, page: Path, config: ReportConfig, session: Session) -> None:
    """From the page of a job of GitLab, and for the jobs that follow."""
    shown = session.ci.page_of_artifact(page)
    releases = Pages(made.forge, made.repository).releases()
    for name, url in (("report-url", shown), ("releases-url", releases)):
        session.runner.output(name, url)
    links = report.job_links(made, report_url=shown, releases_url=releases)
    say(write_beside(config.state_directory / LINKS, links), session)


def write_beside(path: Path, text: str) -> str:
    """Returns the warning where something is in the way: the results are on record all the same."""
    try:
        durable.replace(path, text.encode())
    except OSError as error:
        return f"warning: {path} cannot be written: {error.strerror}"
    return ""


def write(path: Path, text: str) -> None:
    try:
        durable.make_directory(path.parent)
        durable.replace(path, text.encode())
    except OSError as error:
        raise PathError(
            f"{path}: cannot be written: {error.strerror}",
            hint="Make room, or name a place that can be written.",
        ) from error
