"""What is told of requests and pauses while they happen, and to whom."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from releasekit.report.log import LONG_S
from releasekit.report.marks import symbols_for
from releasekit.report.screen import has_screen
from releasekit.report.spent import traffic_line
from releasekit.spent import PauseEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.cli.session import Session
    from releasekit.host.ci import CI
    from releasekit.spent import RequestEvent


def is_verbose(asked: bool, ci: CI) -> bool:
    """By the input, or by the box "Enable debug logging" of a workflow that is run again.

    https://docs.github.com/en/actions/reference/workflows-and-actions/variables
    """
    return asked or ci.is_debugged


def say_busy(doing: str, session: Session) -> None:
    """To a person who watches, what takes its time now; what a command prints may be read by a
    program.
    """
    told = sys.stderr
    if has_screen(told, session.credentials.environment):
        print(f"{doing}{symbols_for(told.encoding).more}", file=told, flush=True)


def request_logger(
    session: Session, *, verbose: bool, mode: str
) -> Callable[[RequestEvent | PauseEvent], None] | None:
    """For `collect`: everything where that was asked for, else, in a log, long pauses."""
    environment = session.credentials.environment
    verbose = is_verbose(verbose, session.ci)
    if not verbose and has_screen(session.out, environment):
        return None
    # What a plan prints may be read by a program.
    out = session.out if mode == "publish" else sys.stderr
    redacted, clock = session.redacted, asyncio.get_running_loop().time
    told_until_s = 0.0

    def tell(seen: RequestEvent | PauseEvent) -> None:
        nonlocal told_until_s
        if not verbose:
            # A server that asks one to wait asks all of them.
            if not isinstance(seen, PauseEvent) or seen.end or seen.lasted_s < LONG_S:
                return
            if clock() < told_until_s:
                return
            told_until_s = clock() + seen.lasted_s
        print(traffic_line(redacted.clean(seen)), file=out, flush=True)

    return tell
