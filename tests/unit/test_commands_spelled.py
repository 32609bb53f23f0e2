"""R47: what a hint says can be copied, by those who use the action as by those with a terminal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from releasekit.cli.commands import COMMANDS
from releasekit.text import commands

ROOT = Path(__file__).parents[2]
# What only a person reads who has just typed `releasekit`.
TERMINAL = {
    *("cli/command_line.py", "cli/approve.py", "cli/change.py", "cli/notes.py", "cli/verify.py"),
    *("cli/help.py", "cli/init/telling.py", "text/commands.py"),
}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("plan", "`releasekit plan` (`mode: plan` of the action)"),
        (
            "check --fix",
            "`releasekit check --fix` (`./entrypoint.sh check --fix` of the action)",
        ),
    ],
)
def test_it_is_named_for_both(command: str, words: str) -> None:
    assert commands.spell(command) == words


def test_modes_are_those_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    said = set(re.findall(r"`([\w-]+)` [a-z]", action["inputs"]["mode"]["description"]))
    assert said == commands._MODES
    assert said < COMMANDS.keys()


def test_no_hint_names_a_command_that_the_action_does_not_install() -> None:
    source = ROOT / "src" / "releasekit"
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if re.search(r"^[^#\n]*[\"f(][^#\n]*`releasekit \w", path.read_text("utf-8"), re.MULTILINE)
    }
    assert found <= TERMINAL
