"""Runners that obey nothing that is printed: GitLab's, and any other."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest

from releasekit.host.runner import MAX_DOTENV, MAX_DOTENV_BYTES, Runner, open_runner

if TYPE_CHECKING:
    from pathlib import Path

GITLAB = {"GITLAB_CI": "true"}


def opened(environment: dict[str, str]) -> tuple[Runner, io.StringIO]:
    log = io.StringIO()
    return open_runner(environment, log), log


def test_outputs_are_lines_that_gitlab_and_a_shell_read_alike() -> None:
    runner, _ = opened(GITLAB)
    assert runner.output("result", "partial")
    assert runner.output("failed-packages", "2")
    assert runner.output("result", "failure")  # the last one counts
    assert runner.output("report-url", "")
    assert runner.outputs_text() == "RK_RESULT=failure\nRK_FAILED_PACKAGES=2\nRK_REPORT_URL=\n"


@pytest.mark.parametrize(
    "value",
    ["a b", "a\nRK_RESULT=success", "$HOME", "`id`", "a;b", "a&b", "'a'", '"a"', "~", "\\", "é",
     '["pypi:a"]', "{}", "a\r", "a\0", "*", "(a)", "|", "<a", ">a", "!1"],
)  # fmt: skip
def test_what_they_would_read_differently_is_left_out(value: str) -> None:
    """R52: a line more, a variable in the middle, or a command of the shell."""
    runner, _ = opened({})
    assert not runner.output("results-file", value)
    assert runner.outputs_text() == ""


def test_no_more_is_written_than_every_gitlab_takes() -> None:
    """A job whose file is larger fails, although its packages are published."""
    runner, _ = opened(GITLAB)
    for number in range(MAX_DOTENV + 2):
        assert runner.output(f"a-{number}", "x") is (number < MAX_DOTENV)
    runner, _ = opened(GITLAB)
    assert runner.output("a", "x" * (MAX_DOTENV_BYTES - len("RK_A=\n")))
    assert len(runner.outputs_text()) == MAX_DOTENV_BYTES
    assert not runner.output("b", "")


def test_gitlab_folds_sections_of_the_log() -> None:
    runner, log = opened(GITLAB)
    for title in ("Plan: 2 packages", "Warnings\x1b[2J"):
        with runner.group(title):
            print("inside", file=log)
    pattern = (
        r"\x1b\[0Ksection_start:\d+:(\w+)\[collapsed=true\]\r\x1b\[0K(.*)\ninside\n"
        r"\x1b\[0Ksection_end:\d+:\1\r\x1b\[0K\n"
    )
    found = re.findall(pattern, log.getvalue())
    assert found == [("releasekit_1", "Plan: 2 packages"), ("releasekit_2", r"Warnings\x1b[2J")]


def test_gitlab_shows_what_failed_in_red() -> None:
    runner, log = opened(GITLAB)
    runner.annotate("warning", [("pypi:a", "an old name")])
    assert log.getvalue() == ""
    runner.annotate("error", [("pypi:a failed", "refused\x1b[0m\nRead on"), ("b", "c")])
    assert log.getvalue().split("\n") == [
        "\x1b[31mpypi:a failed: refused\\x1b[0m\x1b[0m", "\x1b[31mb: c\x1b[0m", ""
    ]  # fmt: skip


def test_gitlab_sources_nothing_that_a_build_has_written(tmp_path: Path) -> None:
    """R52: what follows the script of a job reads its variables from there."""
    file = tmp_path / "acme.tmp/gitlab_runner_env"
    file.parent.mkdir()
    runner, _ = opened(GITLAB | {"GITLAB_ENV": str(file)})
    runner.watch_files()
    file.write_text("PATH=/evil\n")
    (told,) = runner.restore_files()
    assert told == f"{file}: written during the release, not by ReleaseKit; put back"
    assert not file.exists()


def test_other_logs_have_nothing_but_what_is_printed() -> None:
    runner, log = opened({})
    runner.mask("secret-of-mine")
    runner.summary("# x")
    runner.annotate("error", [("title", "message")])
    with runner.group("title"):
        pass
    runner.watch_files()
    assert runner.restore_files() == []
    assert log.getvalue() == ""
    assert runner.log_text("##[error]x") == "##[error]x"
