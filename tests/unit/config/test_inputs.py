from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import pytest
from msgspec import defstruct

from fakes import DECLARED
from releasekit.cli.command_line import parse_command_line
from releasekit.cli.commands import COMMANDS
from releasekit.config import values
from releasekit.config.command import Command, CommandInputs
from releasekit.config.config import load
from releasekit.config.declaration import FLAG_ONLY, Declaration, declared_by
from releasekit.config.inputs import Declared, Inputs
from releasekit.config.values import Directory, Name, Url
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.errors import ConfigError
from releasekit.fields import replace

from_environment = DECLARED.from_environment


def read(**variables: str) -> Inputs:
    return from_environment({f"RELEASEKIT_{name}": value for name, value in variables.items()})


def refusal(name: str, value: str) -> str:
    with pytest.raises(ConfigError) as caught:
        from_environment({DECLARED.inputs[name].variable: value})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_given_is_all_defaults() -> None:
    assert from_environment({}) == Inputs()
    assert Inputs().given == {}


def test_an_input_is_a_field_of_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its flag, its variable, its key, its help and its row of action.yml follow from it."""
    greeting = Annotated[str, Declaration("What to say first.")]
    more = defstruct(
        "More", [("greeting", greeting, "hello")], bases=(CommandInputs,), frozen=True, kw_only=True
    )
    takes = frozenset({"workspace"})
    greet = Command(
        name="greet",
        about="Greet.",
        module="",
        inputs=cast("type[CommandInputs]", more),
        takes=takes,
    )
    declared = Declared.of({**COMMANDS, "greet": greet}, ECOSYSTEMS)
    (tmp_path / "releasekit.toml").write_text('greeting = "good night"\n')
    variable = {"RELEASEKIT_GREETING": "good morning"}

    def read(argv: list[str], environment: dict[str, str]) -> object:
        inputs = parse_command_line(["greet", *argv], environment, declared)
        return load(inputs, tmp_path, declared).own(more)

    assert read([], {}) == more(greeting="good night")
    assert read([], variable) == more(greeting="good morning")
    assert read(["--greeting=good evening"], variable) == more(greeting="good evening")
    (tmp_path / "releasekit.toml").unlink()
    assert read([], {}) == more(greeting="hello")
    with pytest.raises(SystemExit):
        parse_command_line(["greet", "--help-all"], {}, declared)
    assert "What to say first. Default: hello." in capsys.readouterr().out
    assert "action" in declared.everything["greeting"].places
    with pytest.raises(ConfigError, match="--greeting works with greet, not with plan"):
        parse_command_line(["plan", "--greeting=hello"], {}, declared)


def test_commands_take_what_there_is() -> None:
    together = {each.taken_with for each in DECLARED.everything.values()} - {""}
    assert together.isdisjoint(DECLARED.everything)
    known = {*DECLARED.everything, *together}
    for command in COMMANDS.values():
        assert command.takes <= known
        taken = {name for name, each in DECLARED.inputs.items() if command.name in each.commands}
        assert command.words.keys() <= taken


def test_inputs_of_one_name_are_one_input() -> None:
    """One variable has one value, whichever command reads it."""
    found: dict[str, list[Declaration]] = {}
    for command in COMMANDS.values():
        for name, each in declared_by(command.inputs).items():
            alike = replace(each, help="", writes=None, places=each.places or FLAG_ONLY, group="")
            found.setdefault(name, []).append(replace(alike, words={}, often=False))
    assert all(each == alike[0] for alike in found.values() for each in alike)
    assert len(found["check"]) == 3


@pytest.mark.parametrize("kind", [int, float])
def test_a_number_has_a_maximum(kind: type) -> None:
    """Without, every value above 0 would be out of range."""

    def taken(maximum: int) -> type:
        lots = Annotated[kind, Declaration("How many.", maximum=maximum)]  # type: ignore[valid-type]
        return defstruct("Taken", [("lots", lots, 0)], frozen=True)

    assert declared_by(taken(9))["lots"].parse("9", "lots") == 9
    with pytest.raises(TypeError, match="lots takes a number"):
        declared_by(taken(0))


def test_an_empty_variable_is_not_given() -> None:
    """A runner sets every input of an action, to an empty text where it is left out."""
    everything = {each.variable: " \n" for each in DECLARED.inputs.values()}
    assert from_environment(everything) == Inputs()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("mode", "publish", "publish"),
        ("working-directory", " packages/python ", Path("packages/python")),
        ("ecosystem", "pypi,\n pypi ,", ("pypi", "pypi")),
        ("packages", "acme-*\nother, third\n\n", ("acme-*", "other", "third")),
        ("find-links", "/wheels, old\n/more\n", ("/wheels, old", "/more")),
        ("dry-run", "true", True),
        ("dry-run", "false", False),
        ("concurrency", "1", 1),
        ("concurrency", "100", 100),
        ("build-concurrency", "auto", None),
        ("build-concurrency", "4", 4),
        ("max-retries", "0", 0),
        ("retry-base-delay", "0", 0.0),
        ("retry-base-delay", "0.25s", 0.25),
        ("task-timeout", "30", 30.0),
        ("task-timeout", "30s", 30.0),
        ("task-timeout", "20m", 1200.0),
        ("task-timeout", "1h", 3600.0),
        ("deadline", "1.5 h", 5400.0),
        ("gate", "accepted", "accepted"),
        ("registry", "dir:a directory", Directory(Path("a directory"))),
    ],
)
def test_a_variable_sets_an_input(name: str, text: str, value: object) -> None:
    declaration = DECLARED.inputs[name]
    inputs = from_environment({declaration.variable: text})
    assert getattr(inputs, declaration.attribute, inputs.further.get(name)) == value
    assert inputs.given == {declaration.attribute: f"input {name} ({declaration.variable})"}


def test_inputs_of_an_ecosystem_stay_together() -> None:
    url = Url("https://pypi.example/legacy/")
    inputs = read(PYPI_REGISTRY=str(url), NPM_ACCESS="public")
    assert inputs.further == {"pypi-registry": url, "npm-access": "public"}
    again = DECLARED.adding(inputs, {"npm-access": "restricted"}, {"npm-access": "--npm-access"})
    assert again.further == {"pypi-registry": url, "npm-access": "restricted"}
    assert again.given["pypi_registry"] == "input pypi-registry (RELEASEKIT_PYPI_REGISTRY)"


def test_an_index_may_be_written_as_cargo_writes_it() -> None:
    inputs = read(CARGO_REGISTRY="sparse+https://crates.example/")
    assert inputs.further == {"cargo-registry": Url("https://crates.example/")}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "mode",
            "publsh",
            'preview, release-pr or report; did you mean "publish"?',
        ),
        ("mode", "status", "write plan, publish, check, version, preview, release-pr or report"),
        ("ecosystem", "pypi,pipy", "is not known; write pypi"),
        ("ecosystem", "nmp", 'maven or step; did you mean "npm"?'),
        ("ecosystem", "Rust", '; did you mean "cargo"?'),
        ("ecosystem", "python", '; did you mean "pypi"?'),
        ("ecosystem", "node", '; did you mean "npm"?'),
        ("ecosystem", "javascript", '; did you mean "npm"?'),
        ("ecosystem", "golang", '; did you mean "go"?'),
        ("ecosystem", "java", '; did you mean "maven"?'),
        ("dry-run", "yes", "is neither true nor false; write true or false"),
        ("dry-run", "True", "write true or false"),
        ("concurrency", "five", "is not a whole number; write a whole number from 1 to 100"),
        ("concurrency", "5.0", "is not a whole number"),
        ("concurrency", "-1", "is not a whole number"),
        ("concurrency", "٣", "is not a whole number"),
        ("concurrency", "0", "is out of range; write a whole number from 1 to 100"),
        ("concurrency", "101", "is out of range"),
        ("task-timeout", "10 minutes", "is not a duration; write one like 30, 30s, 20m or 1h"),
        ("task-timeout", "inf", "is not a duration"),
        ("run-url", "ci.example/17", "write one like https://ci.example.com/17"),
        ("forge", "bitbucket:https://bitbucket.org/a/b", "names no forge; write it as gitlab:"),
        ("forge", "gitea:git.acme.dev/acme/mono", "of a repository; write it as gitea:https://"),
        ("task-timeout", "0", "is out of range; write 1s to 86400s"),
        ("task-timeout", "25h", "is out of range"),
        (
            "pypi-registry",
            "pypi.org",
            "is neither an address nor dir:PATH; write https://… or dir:",
        ),
        ("pypi-registry", "ftp://pypi.org", "is neither an address nor dir:PATH"),
        ("pypi-registry", "https://a.example/?b=c", "has a query or a fragment; write the address"),
        ("cargo-registry", "sparse+https://a.example/#b", "has a query or a fragment"),
        ("registry", "dir:", "is neither an address nor dir:PATH"),
        ("cargo-registry", "a b", "is neither a URL, a directory nor a name; write https://…"),
        ("state-directory", "a\nb", "holds a line break or a control character"),
        ("packages", "a\x1b[31m", "control character"),
        ("packages", "\n".join(f"p{n}" for n in range(1001)), "more than 1000 entries"),
        ("packages", "a" * 70_000, "longer than 65536 characters"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_in_one_line(
    name: str, text: str, says: str
) -> None:
    """R40"""
    message = refusal(name, text)
    assert message.startswith(f"input {name} (RELEASEKIT_")
    assert says in message


def test_a_refused_url_is_shown_without_its_credentials() -> None:
    """R34"""
    message = refusal("pypi-registry", "htps://me:hunter2@pypi.example/legacy/")
    assert "hunter2" not in message
    assert "//***@pypi.example" in message
    message = refusal("pypi-registry", "https://pypi.example/?token=hunter2")
    assert "hunter2" not in message
    assert "https://pypi.example/?***" in message


def test_a_long_value_is_shown_in_part() -> None:
    assert len(refusal("mode", "x" * 1000)) < 250


def test_a_variable_that_is_no_input_is_refused() -> None:
    told = "CONCURENCY is not an input, did you mean 'RELEASEKIT_CONCU"
    with pytest.raises(ConfigError, match=told):
        read(CONCURENCY="7")


def test_a_misspelt_secret_is_noticed_and_not_shown() -> None:
    """R34"""
    with pytest.raises(ConfigError, match="did you mean 'RELEASEKIT_PYPI_TOKEN'") as caught:
        read(PYPI_TOKN="hunter2")
    assert "hunter2" not in str(caught.value)


def test_secrets_are_never_read() -> None:
    """R34"""
    assert read(PYPI_TOKEN="pypi-hunter2") == Inputs()


def test_what_the_platform_sets_is_not_read() -> None:
    assert from_environment({"INPUT_MODE": "publish", "INPUT_DRY-RUN": "x"}) == Inputs()


def test_later_texts_are_on_top() -> None:
    inputs = read(CONCURRENCY="7", PIN="none")
    texts, labels = {"concurrency": "8", "pin": ""}, {"concurrency": "--concurrency"}
    again = DECLARED.adding(inputs, texts, labels)
    assert (again.concurrency, again.pin) == (8, "none")
    assert again.given["concurrency"] == "--concurrency"


@pytest.mark.parametrize("declaration", DECLARED.everything.values())
def test_a_default_reads_back_as_itself(declaration: Declaration) -> None:
    if declaration.shown:
        assert declaration.parse(declaration.shown, "") == declaration.default
    else:
        assert declaration.default in ("", (), None)
    assert declaration.commands <= COMMANDS.keys()
    assert declaration.description.endswith(".")
    assert declaration.words.keys() <= declaration.commands
    assert all(declaration.describe(each).endswith(".") for each in declaration.commands)


def test_secrets_have_neither_a_flag_nor_a_key() -> None:
    """R34"""
    assert all(each.places <= {"action"} for each in DECLARED.secrets.values())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("my-corp", Name("my-corp")),
        ("sparse+https://corp.example/", Url("https://corp.example/")),
        ("dir:out", Directory(Path("out"))),
    ],
)
def test_a_registry_of_crates_may_have_a_name(text: str, place: object) -> None:
    assert DECLARED.inputs["cargo-registry"].parse(text, "cargo-registry") == place
    inputs = from_environment({"RELEASEKIT_CARGO_REGISTRY": text})
    assert inputs.further["cargo-registry"] == place


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acme/kit", "acme/kit"),
        ("https://gitlab.com/acme/kit", "https://gitlab.com/acme/kit"),
        ("https://gitlab.com/a/b/c/kit.git/", "https://gitlab.com/a/b/c/kit"),
        ("https://git.example:8443/acme/kit", "https://git.example:8443/acme/kit"),
        ("https://GitLab.com/Acme/mono", "https://gitlab.com/Acme/mono"),
    ],
)
def test_who_signs_is_a_repository(text: str, found: str) -> None:
    assert values.repository(text) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://github.com/acme/kit", "write acme/kit"),
        ("https://gitlab.com/acme", "write OWNER/NAME, or of GitLab https://"),
        ("http://gitlab.com/acme/kit", "write OWNER/NAME"),
        ("https://me@gitlab.com/acme/kit", "write OWNER/NAME"),
        ("https://gitlab.com/acme/kit?x", "write OWNER/NAME"),
        ("https://GitHub.com/acme/mono", "write acme/mono"),
        ("https://www.github.com/acme/mono", "write OWNER/NAME"),
        ("https://github.com:443/acme/mono", "write OWNER/NAME"),
        ("https://github.com/acme/mono/tree/main", "write OWNER/NAME"),
    ],
)
def test_what_names_no_repository_is_refused(text: str, says: str) -> None:
    with pytest.raises(values.InvalidValue, match=says):
        values.repository(text)


@pytest.mark.parametrize(
    ("text", "found"), [("next", "next"), ("refs/heads/next/2", "next/2"), ("", "")]
)
def test_a_branch_may_be_a_ref(text: str, found: str) -> None:
    """R66: CIs tell it so, and `branches` in [version] names it alone."""
    assert values.branch(text) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("origin/next", "write next"),
        ("refs/remotes/origin/next", "write next"),
        ("refs/tags/v1", "is not a branch"),
        ("refs/pull/12/merge", "is not a branch"),
    ],
)
def test_what_is_no_name_of_a_branch_is_refused(text: str, says: str) -> None:
    """R66: as a branch of its own, it would release stable versions."""
    with pytest.raises(values.InvalidValue, match=says):
        values.branch(text)


def test_a_workflow_is_named_and_the_ci_file_of_gitlab_has_a_path() -> None:
    assert values.workflow(".github/workflows/release.yml") == "release.yml"
    for path in (".gitlab-ci.yml", "ci/release.yaml"):
        assert values.workflow(path) == path
    for path in ("ci/../release.yml", "../a.yml", "/release.yml", "ci/release@v1.yml", "release"):
        with pytest.raises(values.InvalidValue):
            values.workflow(path)
