from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pytest

from releasekit.host.ci import CI
from releasekit.host.runner import MAX_SUMMARY_BYTES, open_runner

if TYPE_CHECKING:
    from pathlib import Path


class Runner:
    """Reads a step's log and files the way the platform's runner does."""

    def __init__(self, directory: Path) -> None:
        self.log = io.StringIO()
        self.outputs_file = directory / "output"
        self.summary_file = directory / "summary"
        self.outputs_file.touch()
        self.environment = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(self.outputs_file),
            "GITHUB_STEP_SUMMARY": str(self.summary_file),
        }
        self.actions = open_runner(self.environment, self.log)

    @property
    def commands(self) -> list[str]:
        return self.log.getvalue().splitlines()

    @property
    def outputs(self) -> dict[str, str]:
        text = self.outputs_file.read_text(encoding="utf-8")
        found = {}
        while text:
            match = re.match(r"([^=\n<]+)<<(\S+)\n(.*?)\n\2\n", text, re.DOTALL)
            assert match, text
            found[match[1]] = match[3]
            text = text[match.end() :]
        return found


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_nothing_happens_outside_a_runner(tmp_path: Path) -> None:
    """Not even when the variables of one are set: only GITHUB_ACTIONS says that this is one."""
    log, file = io.StringIO(), tmp_path / "file"
    environment = {"GITHUB_OUTPUT": str(file), "GITHUB_STEP_SUMMARY": str(file)}
    actions = open_runner(environment, log)
    assert not CI.of(environment).is_actions
    actions.mask("secret")
    assert actions.output("a", "b")
    actions.summary("# x")
    actions.annotate("error", [("title", "message")])
    with actions.group("title"):
        pass
    assert log.getvalue() == ""
    assert not file.exists()


def test_outputs_keep_every_character(runner: Runner) -> None:
    values = {
        "list": json.dumps([{"name": "é", "reason": "a\nb"}]),
        "lines": "one\ntwo\n\nEOF\nother<<EOF\n::set-output name=x::y",
        "empty": "",
    }
    for name, value in values.items():
        assert runner.actions.output(name, value)
    assert runner.outputs == values
    assert runner.commands == []


def test_a_value_cannot_set_another_output(runner: Runner) -> None:
    """R35: the delimiter is random, so that a value cannot hold it."""
    runner.actions.output("a", "x\nghadelimiter\nb=c")
    runner.actions.output("b", "d")
    first, second = re.findall(r"<<(\S+)", runner.outputs_file.read_text())
    assert first != second
    assert runner.outputs["b"] == "d"


def test_an_output_with_a_secret_is_not_written(runner: Runner) -> None:
    """R34: the runner would drop it without a word."""
    runner.actions.mask('hun"ter2')
    assert not runner.actions.output("url", 'https://x/?hun"ter2')
    assert not runner.actions.output("json", json.dumps({"x": 'hun"ter2'}))
    assert runner.outputs == {}
    assert "output url is not set: it holds a masked value" in runner.commands[1]


def test_outputs_stop_at_the_limit_and_say_so(runner: Runner) -> None:
    """R40: 1 MB in all, counted as UTF-16; what still fits is still set."""
    assert runner.actions.output("first", "x" * 400_000)
    assert not runner.actions.output("second", "x" * 200_000)
    assert runner.actions.output("third", "x" * 1000)
    assert list(runner.outputs) == ["first", "third"]
    assert "output second is not set: all outputs of a job together" in runner.commands[0]


def test_an_output_file_that_cannot_be_written_is_a_warning(runner: Runner) -> None:
    runner.outputs_file.unlink()
    runner.outputs_file.mkdir()
    assert not runner.actions.output("a", "b")
    assert "output a is not set: Is a directory" in runner.commands[0]


def test_a_runner_without_an_output_file(runner: Runner) -> None:
    assert not open_runner({"GITHUB_ACTIONS": "true"}, runner.log).output("a", "b")


def test_a_secret_is_masked_once_and_line_by_line(runner: Runner) -> None:
    """R34"""
    secret = "-----BEGIN KEY-----\nabc def\n}\n-----END KEY-----\n"
    runner.actions.mask(secret)
    runner.actions.mask(secret)
    runner.actions.mask("abc def")
    runner.actions.mask("")
    assert runner.commands == [
        "::add-mask::-----BEGIN KEY-----%0Aabc def%0A}%0A-----END KEY-----",
        "::add-mask::-----BEGIN KEY-----",
        "::add-mask::abc def",
        "::add-mask::-----END KEY-----",
    ]


@pytest.mark.parametrize("value", ["true", "False", "1", "}", "abc"])
def test_what_is_no_secret_is_not_hidden(runner: Runner, value: str) -> None:
    """Else the runner would drop `published=true`, because some variable is called X_AUTH."""
    runner.actions.mask(value)
    assert runner.commands == []
    assert runner.actions.output("published", value)


def test_a_mask_is_flushed_before_anything_else_can_be_printed(runner: Runner) -> None:
    """R38"""
    flushed: list[str] = []

    class Log(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    open_runner(runner.environment, Log()).mask("secret")
    assert flushed[-1] == "::add-mask::secret\n"


def test_the_summary_is_appended(runner: Runner) -> None:
    runner.summary_file.write_text("before\n")
    runner.actions.summary("# One\n")
    runner.actions.summary("two é\n")
    assert runner.summary_file.read_text(encoding="utf-8") == "before\n# One\ntwo é\n"


def test_a_summary_over_the_limit_is_cut_at_a_paragraph(runner: Runner) -> None:
    """R40: a larger one is dropped whole."""
    paragraph = "é" * 1000
    runner.summary_file.write_text("x" * 1000)
    runner.actions.summary("\n\n".join([paragraph] * 600))
    assert runner.summary_file.stat().st_size <= MAX_SUMMARY_BYTES
    written = runner.summary_file.read_text(encoding="utf-8")
    assert "Cut here" in written.splitlines()[-1]
    assert written.count(paragraph) > 500
    for _ in range(3):
        runner.actions.summary("more\n" * 1000)
    assert runner.summary_file.stat().st_size <= MAX_SUMMARY_BYTES


def test_a_summary_that_cannot_be_written_is_a_warning(runner: Runner) -> None:
    runner.summary_file.mkdir()
    runner.actions.summary("x")
    assert (
        "::warning title=ReleaseKit::the job summary is not written: Is a d" in runner.commands[0]
    )


def test_annotations_are_one_line_each(runner: Runner) -> None:
    """R35"""
    runner.actions.annotate("error", [("pypi:a, 1", "first\n::add-mask::x 100%")])
    assert runner.commands == ["::error title=pypi%3Aa%2C 1::first%0A::add-mask::x 100%25"]


@pytest.mark.parametrize("kind", ["GITEA", "FORGEJO"])
def test_a_runner_that_would_print_annotations_gets_none(runner: Runner, kind: str) -> None:
    """Its log says it all; masks and groups it obeys."""
    log = io.StringIO()
    heir = open_runner({**runner.environment, f"{kind}_ACTIONS": "true"}, log)
    heir.annotate("error", [("pypi:a", "it failed")])
    heir.mask("secret")
    assert log.getvalue() == "::add-mask::secret\n"
    assert heir.output("a", "b")
    assert runner.outputs == {"a": "b"}


@pytest.mark.parametrize(("count", "shown", "more"), [(10, 10, ""), (11, 9, "2"), (99, 9, "90")])
def test_annotations_beyond_ten_are_counted(
    runner: Runner, count: int, shown: int, more: str
) -> None:
    runner.actions.annotate("error", [(f"t{n}", "m") for n in range(count)])
    assert sum(line.startswith("::error title=t") for line in runner.commands) == shown
    assert len(runner.commands) <= 10
    if more:
        assert runner.commands[-1].startswith(f"::error title=and {more} more::")


def test_annotations_of_one_step_share_the_limit(runner: Runner) -> None:
    for _ in range(4):
        runner.actions.annotate("warning", [("t", "m")] * 4)
    runner.actions.annotate("notice", [("t", "m")])
    assert sum(line.startswith("::warning") for line in runner.commands) == 10
    assert sum(line.startswith("::notice") for line in runner.commands) == 1


def test_a_long_annotation_is_cut(runner: Runner) -> None:
    runner.actions.annotate("error", [("t" * 5000, "m" * 5000)])
    assert len(runner.commands[0]) == len("::error title=::") + 2 * 4096


def test_a_group_ends_whatever_happens(runner: Runner) -> None:
    with pytest.raises(KeyError), runner.actions.group("Build a\n::error::x"):
        raise KeyError
    assert runner.commands == ["::group::Build a ::error::x", "::endgroup::"]


# ESC, NUL, a bidirectional override and its end, line and paragraph separator, byte order mark.
ACTING = (
    "\x1b[2J",
    "\0",
    "\u202e",
    "\u2066",
    "\u2069",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ud800",
    "\x85",
)


@pytest.mark.parametrize("character", ACTING)
def test_an_annotation_holds_text_only(runner: Runner, character: str) -> None:
    """R35: it is shown in a browser, and in the terminal of whoever reads the log."""
    text = f"a{character}b\r::error::c\n::error::d"
    runner.actions.annotate("error", [(text, text)])
    with runner.actions.group(text):
        pass
    log = runner.log.getvalue()
    assert log.count("\n") == 3
    assert log.isprintable() or all(line.isprintable() for line in log.split("\n"))
    assert character not in log
    assert log.split("\n")[0].endswith("%0A::error::d")


def test_bytes_that_are_no_text_are_masked_as_the_runner_reads_them(runner: Runner) -> None:
    """R34"""
    runner.actions.mask("hunter2\udcff\udcfe")
    runner.actions.mask("half of \ud83d")
    assert runner.commands == [
        "::add-mask::hunter2\ufffd\ufffd",
        "::add-mask::half of \ufffd\ufffd\ufffd",
    ]


def test_what_others_write_after_the_last_look_is_left_to_them(runner: Runner) -> None:
    """`releasekit plan --format json | jq … >> "$GITHUB_OUTPUT"`"""
    runner.actions.watch_files()
    assert runner.actions.restore_files(for_good=True) == []
    output = runner.outputs_file
    with output.open("a") as file:
        file.write("theirs=1\n")
    assert runner.actions.restore_files() == []
    assert "theirs=1" in output.read_text()


def test_text_for_the_log_holds_no_command_on_a_runner_alone() -> None:
    """R40: a change log, say, is printed as it is but for that."""
    text = "## 1.0\n ::set-output name=a::b\nsee ##[error]x and a::b\n\tcode  \n"
    stream = io.StringIO()
    assert open_runner({}, stream).log_text(text) == text
    shown = open_runner({"GITHUB_ACTIONS": "true"}, stream).log_text(text)
    assert shown == "## 1.0\n: :set-output name=a::b\nsee # #[error]x and a::b\n\tcode  \n"
    assert stream.getvalue() == ""
