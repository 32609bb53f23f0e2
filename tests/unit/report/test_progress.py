from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from releasekit.report.live import LiveProgress
from releasekit.report.log import LogProgress
from releasekit.report.progress import choose_progress

if TYPE_CHECKING:
    from collections.abc import Mapping


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "environment", "live"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"CI": "true"}, False),
        (False, {"TERM": "xterm-256color"}, False),
    ],
)
def test_only_a_terminal_gets_the_live_table(
    terminal: bool, environment: Mapping[str, str], live: bool
) -> None:
    progress = choose_progress(Terminal() if terminal else StringIO(), environment)
    assert isinstance(progress, LiveProgress if live else LogProgress)


def test_a_log_that_folds_is_never_a_live_table() -> None:
    progress = choose_progress(Terminal(), {}, group=lambda _: nullcontext())
    assert isinstance(progress, LogProgress)


def test_who_wants_to_see_everything_gets_lines_on_a_terminal_too() -> None:
    progress = choose_progress(Terminal(), {"TERM": "xterm"}, verbose=True)
    assert isinstance(progress, LogProgress)


def test_a_log_does_not_import_rich() -> None:
    code = "import sys, releasekit.report.progress; sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
