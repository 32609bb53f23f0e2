"""What releasekit.toml says of steps, and what is said of what it may not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED
from releasekit.config.file import take_apart
from releasekit.ecosystems.step import StepOptions
from releasekit.errors import ConfigError
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP = 'version = "npm:a"\ncheck = "is-there {version}"\npublish = "send"\n'


def read(text: str) -> Mapping[str, StepOptions]:
    found = take_apart(parse_toml(text), "releasekit.toml", DECLARED)
    return StepOptions.of_table(found.tables["step"])


def test_a_step_waits_for_whose_version_it_has_and_for_what_it_needs() -> None:
    text = f'[steps.image]\n{STEP}needs = ["pypi:b", "npm:a"]\n[steps.tap]\n{STEP}'
    edges = take_apart(parse_toml(text), "releasekit.toml", DECLARED).dependencies
    assert [(str(each.dependent), str(each.on)) for each in edges] == [
        ("step:image", "npm:a"),
        ("step:image", "pypi:b"),
        ("step:tap", "npm:a"),
    ]
    # Versions of what it waits for ask for none of its own.
    assert all(each.only_orders for each in edges)


def test_edges_of_both_tables_count() -> None:
    text = f'[dependencies]\n"npm:z" = ["step:image"]\n[steps.image]\n{STEP}'
    edges = take_apart(parse_toml(text), "releasekit.toml", DECLARED).dependencies
    assert [str(each.dependent) for each in edges] == ["npm:z", "step:image"]


@pytest.mark.parametrize(
    "words",
    [
        "sh -c 'echo ${HOME} {version}; awk \"{print $1}\" x | tee y' 'https://a/?b=1&c=2'",
        r"find . -name x -exec rm {} ';' -exec rm {} \;",
        "jq '$NF' '<a>' 's/$a/b/' '>=1.0' a$1",
        'sh -c "echo $NAME | tee x"',
    ],
)
def test_what_only_looks_like_a_shell_stays(words: str) -> None:
    own = STEP.replace('"send"', json.dumps(words))
    assert read(f"[steps.image]\n{own}")["image"].publish == words


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        (f"[steps.Image]\n{STEP}", "'Image' is not the name of a step", "[steps.docker-image]"),
        (f"[steps.a]\n{STEP}colour = 1", "[steps.a] has an unknown key 'colour'", "Known: "),
        (f"[steps.a]\n{STEP}chek = 'x'", "did you mean 'check'?", "Known: "),
        ("[steps]\na = 1", "steps.a is not a table; write [steps.a]", ""),
        ("steps = 1", "steps is not a table", ""),
        ("[step.a]\nversion = 1", "unknown key 'step', did you mean 'steps'?", ""),
        (STEP.replace("check", "#"), "[steps.a] has no `check`", "exits with 0"),
        (STEP.replace("publish", "#"), "[steps.a] has no `publish`", "the command that publishes"),
        (STEP.replace("version =", "#"), "[steps.a] has no `version`", '"npm:@acme/core"'),
        (STEP.replace('"npm:a"', '"a"'), 'version is "a"', "Chart.yaml"),
        (STEP.replace('"npm:a"', '{ path = "x" }'), "version is", "match = "),
        (STEP.replace('"npm:a"', '{ path = "x", match = "(" }'), "version is", "not a regular"),
        (STEP.replace('"npm:a"', '{ path = "../x", match = "(.)" }'), "version is", "relative"),
        (STEP.replace('"send"', '"send \'"'), "publish is", "words as for a shell"),
        (STEP.replace('"send"', '"send {verison}"'), "publish is", "{verison} stands for nothing"),
        (STEP.replace('"send"', '"send {Version}"'), "publish is", "{Version} stands for nothing"),
        (STEP.replace('"send"', "7"), "publish is 7", "Write a string"),
        *(
            (STEP.replace('"send"', json.dumps(f"send {word} b")), "publish is", f"reads {word}")
            for word in ["|", "||", "&&", ">>", ">&", "<", ";", "`", "$STEP_TAG", "${HOME"]
        ),
        (f'{STEP}needs = ["image"]', "needs is", "step:image"),
        (STEP.replace('"npm:a"', '"step:b"'), "step:b has no version of its own", "`needs`"),
        (STEP.replace('"npm:a"', '"step:a"'), "step:a has no version of its own", "`needs`"),
        (
            STEP.replace('"npm:a"', '{ path = "x", match = "(.)" }') + 'after = "release"',
            "has a tag, and cannot come after it",
            "version of a package",
        ),
        (f'{STEP}secrets = ["PATH"]', "secrets is", "is not given to a step"),
        (f'{STEP}after = "publish"', 'after is "publish"', 'Write one of "release"'),
        (f'{STEP}directory = "../x"', 'directory is "../x"', "relative to the root"),
        (f'{STEP}secrets = ["a value"]', "secrets is", "names of variables"),
        (f'{STEP}secrets = ["RELEASEKIT_NPM_TOKEN"]', "secrets is", "is not given to a step"),
        (
            f'{STEP}secrets = ["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]',
            "secrets is",
            "`identity` asks for an ID token",
        ),
    ],
)
def test_what_cannot_be_used_is_said_with_what_to_write(text: str, said: str, hint: str) -> None:
    whole = text if text.startswith(("[", "steps")) else f"[steps.a]\n{text}"
    with pytest.raises(ConfigError) as raised:
        read(whole)
    assert said in str(raised.value)
    assert str(raised.value).startswith("releasekit.toml: ")
    assert hint in raised.value.hint
    assert "\n" not in str(raised.value)
