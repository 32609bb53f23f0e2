"""What a run leaves besides its outputs: the place of its results, and the page beside them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from releasekit.cli.recorded import RESULTS
from releasekit.cli.session import refuse_tracked
from releasekit.errors import PathError
from releasekit.host import durable
from releasekit.host.outlet import require_free, trouble_at

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.model import Report

PAGE: Final = "report.html"


async def refuse_tracked_results(config: Config, session: Session) -> None:
    """Raises ConfigError where the results, or the page that would be replaced beside them, are
    among the sources.
    """
    results = config.results_file
    await refuse_tracked(results, "results-file", config, session)
    page = results.with_name(PAGE) if results else None
    if page is not None and _may_be_replaced(page):
        await refuse_tracked(page, "results-file", config, session)


def _may_be_replaced(page: Path) -> bool:
    """Whether there is one of ours; one that may not be read stays, too."""
    with contextlib.suppress(OSError):
        return page.is_file() and not trouble_at(page, page=True)
    return False


def forget_results(config: Config) -> None:
    """Remove what an earlier run has left, durably: should this one end before it has results, no
    later step may take those for its own.
    """
    for path in {config.state_directory / RESULTS, config.results_file}:
        if path is None:
            continue
        if path == config.results_file:
            require_free(path, "results-file")
        try:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                durable.remove(path)
        except OSError as error:
            raise PathError(f"{path}: cannot be removed: {error.strerror}") from error
    for path in {config.state_directory / RESULTS, config.results_file}:
        if path is not None:
            _forget_page(path.with_name(PAGE))


def _forget_page(path: Path) -> None:
    """An old page must not pass for one of this run; what is in its way stays, and is told of."""
    with contextlib.suppress(OSError):
        if not trouble_at(path, page=True):
            durable.remove(path)


def page_of(made: Report) -> bytes:
    # Only a run that has ended needs it.
    from releasekit.report.page import report_page  # noqa: PLC0415

    return report_page(made).encode()


def write_page(made: Report, results: Path) -> str:
    """Put the report page beside `results`; what is in its way costs the page, never the run: then
    this is the warning.
    """
    path = results.with_name(PAGE)
    try:
        if trouble := trouble_at(path, page=True):
            return f"warning: {path} {trouble}; this run has no report page"
        durable.replace(path, page_of(made))
    except OSError as error:
        return f"warning: {path} cannot be written: {error.strerror}; this run has no report page"
    return ""
