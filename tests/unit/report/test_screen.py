from __future__ import annotations

import io

import pytest

from releasekit.report.screen import fit_lines, size_of
from screens import Terminal

LONG = "warning: new-name: pypi:acme: pypi.org has no package of this name yet"


@pytest.mark.parametrize(
    ("environment", "size"),
    [
        ({}, (80, 24)),
        ({"COLUMNS": "132", "LINES": "43"}, (132, 43)),
        ({"COLUMNS": "wide", "LINES": "-1"}, (80, 24)),
    ],
)
def test_without_a_terminal_to_ask_the_environment_says_its_size(
    environment: dict[str, str], size: tuple[int, int]
) -> None:
    assert size_of(Terminal(), environment)() == size


def test_lines_are_broken_between_words_to_fit_a_terminal() -> None:
    """What follows is indented, and a path that has no room stays whole."""
    path = "/home/me/" + "deep/" * 10 + "pyproject.toml"
    shown = fit_lines(
        f"short\n\n{LONG}\nin {path}\n  {path}", Terminal(), {"COLUMNS": "40"}, indent=4
    )
    assert shown.split("\n") == [
        "short",
        "",
        "warning: new-name: pypi:acme: pypi.org",
        "    has no package of this name yet",
        "in",
        f"    {path}",
        f"  {path}",
    ]


@pytest.mark.parametrize(
    ("stream", "environment"),
    [(io.StringIO(), {}), (Terminal(), {"CI": "true"}), (Terminal(), {"TERM": "dumb"})],
)
def test_programs_and_logs_get_lines_as_they_are(
    stream: io.StringIO, environment: dict[str, str]
) -> None:
    assert fit_lines(LONG, stream, {"COLUMNS": "40", **environment}) == LONG
