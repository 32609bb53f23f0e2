from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED
from releasekit import __version__
from releasekit.cli import command_line
from releasekit.cli.commands import COMMANDS
from releasekit.config.inputs import Inputs
from releasekit.config.values import Url
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Inputs:
    return command_line.parse_command_line(argv, environment, DECLARED)


def refusal(*argv: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(argv, {})
    assert "\n" not in str(caught.value)
    return caught.value


def test_without_arguments_the_variables_decide() -> None:
    assert parse([], {"RELEASEKIT_MODE": "publish"}).mode == "publish"
    assert parse([], {}) == Inputs()


def test_the_command_is_the_mode_whatever_the_variable_says() -> None:
    assert parse(["check"], {"RELEASEKIT_MODE": "publish"}).mode == "check"


def test_a_flag_beats_a_variable() -> None:
    inputs = parse(
        ["publish", "--max-retries", "9"],
        {"RELEASEKIT_MAX_RETRIES": "1", "RELEASEKIT_PIN": "none"},
    )
    assert (inputs.max_retries, inputs.pin) == (9, "none")
    assert inputs.given["max_retries"] == "--max-retries"


@pytest.mark.parametrize(
    ("argv", "attribute", "value"),
    [
        (["publish", "some where"], "working_directory", Path("some where")),
        (["publish", "--working-directory", "x"], "working_directory", Path("x")),
        (["publish", "--dry-run", "root"], "dry_run", True),
        (["publish", "--dry-run=true"], "dry_run", True),
        (["publish", "--dry-run=false"], "dry_run", False),
        (["publish", "--no-summary"], "summary", False),
        (["plan", "--packages", "a", "--packages=b,c"], "packages", ("a", "b", "c")),
        (["plan", "--format=mermaid"], "format", "mermaid"),
        (["plan", "--pypi-registry="], "further", {}),
        (["plan", "--npm-tag=next"], "further", {"npm-tag": "next"}),
        (["check", "--fix"], "fix", True),
        (["report", "--results-file", "out.json"], "results_file", Path("out.json")),
    ],
)
def test_a_flag_sets_an_input(argv: list[str], attribute: str, value: object) -> None:
    inputs = parse(argv, {})
    further = inputs.further.get(attribute.replace("_", "-"))
    assert getattr(inputs, attribute, further) == value


def test_files_to_verify_may_stand_anywhere() -> None:
    inputs = parse(["verify", "a", "--repository", "o/n", "b", "https://x.example/c.whl"], {})
    files = (Path("a"), Path("b"), Url("https://x.example/c.whl"))
    assert inputs.further == {"files": files, "repository": "o/n"}
    assert inputs.mode == "verify"


def test_the_help_of_verify_is_about_files(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse(["verify", "--help-all"], {})
    printed = capsys.readouterr().out
    assert "0    all files are verified" in printed
    assert "--repository" in printed
    assert "--ecosystem" not in printed
    assert "_TOKEN" not in printed


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["pulish"], "there is no command 'pulish', did you mean 'publish'?"),
        (["versoin"], "there is no command 'versoin', did you mean 'version'?"),
        (["foo"], "there is no command 'foo'"),
        (["list"], "there is no command 'list'"),
        (["--dry-run", "publish"], "the command comes before its flags"),
        (
            ["publish", "--max-retry", "3"],
            "--max-retry is not a flag, did you mean '--max-retries'?",
        ),
        (["publish", "--max-retries"], "--max-retries needs a value: write --max-retries 4, for"),
        (["plan", "--registry", "--verbose"], "--registry needs a value: write --registry dir:./r"),
        (["plan", "--format"], "--format needs a value: write --format table, for example"),
        (["plan", "--packages"], "--packages needs a value: write --packages NAME,NAME, for exa"),
        (["verify", "--ref"], "--ref needs a value: write --ref VALUE, for example"),
        (["publish", "--concurrency", "many"], '--concurrency = "many" is not a whole number'),
        (["publish", "--dry-run=maybe"], '--dry-run = "maybe" is neither true nor false'),
        (["publish", "a", "b"], "argument 3 is one too many: releasekit publish takes one"),
        (["publish", "--dryrun"], "--dryrun is not a flag, did you mean '--dry-run'?"),
        (
            ["plan", "--dryrun"],
            "--dryrun is not a flag, and --dry-run works with init and publish and version, not",
        ),
        (["publish", "-x"], "-x is not a flag: write two hyphens and a word, such as --verbose"),
        (["publish", "-xyz0123"], "argument 2 is not a flag: write two hyphens and a word"),
        (["publish", "--no-dry-run=x"], "takes no value"),
        (["publish", "--strict", "true"], "--strict is a switch, and takes no 'true' behind it"),
        (["publish", ".", "--dry-run", "false"], "write --no-dry-run"),
        (
            ["publish", "--tag", "next"],
            "--tag is a switch and takes no value; write --npm-tag next",
        ),
        (["release"], "there is no command 'release', did you mean 'publish'?"),
        (["doctor"], "there is no command 'doctor', did you mean 'check'?"),
        (["plan", "--fix"], "--fix works with check, not with plan"),
        (
            ["check", "--verbose"],
            (
                "--verbose works with approve and plan and publish and reject and release-pr and "
                "status and version, not with check"
            ),
        ),
        (
            ["plan", "--package", "a"],
            "--package works with change, not with plan, did you mean '--packages'?",
        ),
        (["plan", "--mode", "publish"], "--mode is not a flag"),
        (["plan", "a", "--working-directory=b"], "ROOT and --working-directory are the same"),
    ],
)
def test_a_mistake_is_named_in_one_line(argv: list[str], says: str) -> None:
    error = refusal(*argv)
    assert says in str(error)
    assert error.exit_code == 2


@pytest.mark.parametrize("root", [".", "./next", "some/where", "--npm-tag=next", "--announce"])
def test_a_switch_stands_before_a_directory(root: str) -> None:
    """Only a bare word behind a switch is refused."""
    assert parse(["publish", "--tag", root], {}).tag is True


def test_alone_on_a_terminal_it_is_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(SystemExit, match="0"):
        parse([], {})
    assert "usage: releasekit COMMAND" in capsys.readouterr().out
    assert parse([], {"RELEASEKIT_MODE": "publish"}).mode == "publish"


@pytest.mark.parametrize("word", ["foo", "list", "dry-run"])
def test_what_is_no_command_is_told_with_those_that_are(word: str) -> None:
    error = refusal(word)
    assert str(error) == f"there is no command {word!r}"
    assert "| plan | publish | status | approve | reject | report |" in error.hint


@pytest.mark.parametrize("argv", [["--pypi-token", "hunter2"], ["--pypi-token=hunter2"]])
def test_a_secret_is_refused_as_an_argument_and_not_repeated(argv: list[str]) -> None:
    """R34"""
    error = refusal("publish", *argv)
    assert "--pypi-token is a secret" in str(error)
    assert "RELEASEKIT_PYPI_TOKEN" in error.hint
    assert "hunter2" not in str(error) + error.hint


@pytest.mark.parametrize(
    "argv",
    [
        ["hunter2x"],
        ["-hunter2x"],
        ["publish", ".", "hunter2x"],
        ["publish", "--pypi-tokn=hunter2x"],
        ["publish", "--pypi-tokn", "hunter2x"],
        ["publish", "-hunter2x"],
        ["publish", "-p", "hunter2x"],
        ["publish", "-phunter2x"],
        ["publish", "--hunter2x"],
        ["publish", "--no-dry-run=hunter2x"],
        ["publish", "--", ".", "hunter2x"],
        ["publish", "--concurrency", "ghp_hunter2x"],
        ["publish", "--concurrency=pypi-AgEIcHlwaShunter2x"],
        ["publish", "--ecosystem", "Hunter2xAbCdEfGhIjKl0123hunter2x"],
        ["publish", "--dry-run=npm_Abcdefhunter2x"],
    ],
)
def test_an_argument_that_may_be_a_secret_is_not_repeated(argv: list[str]) -> None:
    """R34, R50: logs are kept longer than tokens live."""
    error = refusal(*argv)
    assert "unter2x" not in f"{error} {error.hint}"
    assert error.hint or "***" in str(error)


def test_what_follows_two_hyphens_is_a_place() -> None:
    assert str(parse(["plan", "--", "-here"], {}).working_directory) == "-here"


def test_no_default_reads_as_the_parent_directory(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse(["plan", "--help-all"], {})
    printed = " ".join(capsys.readouterr().out.split())
    assert "The root of the workspace. Default: the current directory." in printed
    assert "Default: .." not in printed
    assert "these globs, separated by commas or line breaks" in printed


def test_the_help_of_publish_names_every_secret(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse(["publish", "--help-all"], {})
    printed = capsys.readouterr().out
    for name in ("STATE_KEY", "PYPI_TOKEN", "NPM_TOKEN", "CARGO_TOKEN", "MAVEN_PASSWORD"):
        assert f"  RELEASEKIT_{name}" in printed
    assert "RELEASEKIT_NPM_OTP" not in printed
    assert max(map(len, printed[printed.index("secrets, in variables") :].splitlines())) <= 100


@pytest.mark.parametrize("flag", ["--help", "-h", "help"])
def test_help_has_examples_and_exit_codes(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse([flag], {"RELEASEKIT_NONSENSE": "does not matter"})
    printed = capsys.readouterr().out
    for part in (
        "plan",
        "publish",
        "report",
        "check",
        "examples:",
        "exit codes:",
        "130",
        "--version",
    ):
        assert part in printed
    assert max(map(len, printed.splitlines())) <= 100


@pytest.mark.parametrize(
    ("command", "says", "never"),
    [
        ("plan", "Show what publish would tag, too.", "push the tags"),
        ("plan", "Show what publish would announce at GitHub", "Create a release"),
        ("plan", "a tool that is too old", "nothing new starts. Default: skip"),
        ("check", "3 a tool is too old, or credentials are missing", "nothing new starts"),
        ("publish", "or a tool is missing", "Show what"),
        ("init", "Directory for the logs of builds", "journal"),
        ("preview", "Directory for the logs of builds", "journal"),
        ("notes", "Directory for the logs of builds", "journal"),
        ("version", "Directory of the locks, and of the originals", "journal"),
    ],
)
def test_help_says_of_a_command_what_it_does_itself(
    command: str, says: str, never: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R65: not what `publish` would do with the same option."""
    with pytest.raises(SystemExit, match="0"):
        parse([command, "--help-all"], {})
    printed = " ".join(capsys.readouterr().out.split())
    assert says in printed
    assert never not in printed


def test_help_of_a_command_has_each_of_its_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse(["publish", "--help-all"], {})
    printed = capsys.readouterr().out
    for declaration in DECLARED.inputs.values():
        shown = re.search(rf"(?m)^  {declaration.flag}(?![\w-])", printed) is not None
        assert shown == ("publish" in declaration.commands)
    assert "--help " not in printed
    assert "Default: 600s." in " ".join(printed.split())
    for ecosystem in DECLARED.ecosystems.values():
        _, group = printed.split(f"\n{ecosystem.title}:\n")
        assert ecosystem.registry.flag in group


@pytest.mark.parametrize("command", COMMANDS)
def test_short_help_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What it is for, five examples that are understood, at most fifteen options."""
    for flag in ("-h", "--help"):
        with pytest.raises(SystemExit, match="0"):
            parse([command, flag, "--no-such"], {})
    printed = capsys.readouterr().out
    first, second = printed[: len(printed) // 2], printed[len(printed) // 2 :]
    assert first == second
    lines = first.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert lines[2] == COMMANDS[command].about or " ".join(lines[2:4]) == COMMANDS[command].about
    assert lines[-1].startswith(f"releasekit {command} --help-all ")
    flags = re.findall(r"(?m)^  (--[a-z-]+)", first)
    assert 0 < len(flags) <= 15
    assert {*flags} <= {each.flag for each in DECLARED.inputs.values() if command in each.commands}
    examples = COMMANDS[command].examples.splitlines()
    assert len(examples) == 5
    for example in examples:
        words = shlex.split(re.split(" {2,}|>", example.strip())[0])
        assert words[words.index("releasekit") + 1] == command
        assert parse(words[words.index("releasekit") + 1 :], {}).mode == command


@pytest.mark.parametrize("command", COMMANDS)
def test_long_help_is_about_this_command_alone(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In groups, of which none is empty; what others do with an input is theirs."""
    with pytest.raises(SystemExit, match="0"):
        parse([command, ".", "--help-all"], {})
    printed = capsys.readouterr().out
    assert "\n\n\n" not in printed
    assert max(map(len, printed.splitlines())) <= 88
    titles = re.findall(r"(?m)^([A-Za-z].*):$", printed)
    assert len(titles) == len({*titles})
    others = "|".join(each for each in COMMANDS if each != command)
    told = " ".join(printed.partition("\n\nexit codes")[0].split())
    assert not re.findall(rf"With ({others})\b", told)
    reads = {each for each, row in DECLARED.ecosystems.items() if row.registry.flag in printed}
    assert reads == (set() if command in {"verify", "notes", "report"} else {*DECLARED.ecosystems})


def test_help_behind_two_hyphens_is_a_place() -> None:
    assert str(parse(["plan", "--", "-h"], {}).working_directory) == "-h"


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parse([flag], {})
    assert capsys.readouterr().out == f"releasekit {__version__}\n"
