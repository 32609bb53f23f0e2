from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED
from releasekit.cli.command_line import parse_command_line
from releasekit.config.config import load
from releasekit.config.levels import Levels, WarningLevel
from releasekit.errors import ConfigError
from releasekit.model import PackageWarning, WarningName

if TYPE_CHECKING:
    from pathlib import Path


def loaded(root: Path, text: str, *flags: str) -> Levels:
    (root / "releasekit.toml").write_text(text)
    inputs = parse_command_line(["publish", str(root), *flags], {}, DECLARED)
    return load(inputs, root, DECLARED).levels


NEW = PackageWarning(name=WarningName.NEW_NAME, message="new")
EMPTY = PackageWarning(name=WarningName.EMPTY_PACKAGE, message="empty")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (Levels(), [(NEW.name, False), (EMPTY.name, False)]),
        (Levels(strict=True), [(NEW.name, True), (EMPTY.name, True)]),
        (Levels({NEW.name: WarningLevel.IGNORE}, strict=True), [(EMPTY.name, True)]),
        (Levels({NEW.name: WarningLevel.ERROR}), [(NEW.name, True), (EMPTY.name, False)]),
        (
            Levels({NEW.name: WarningLevel.WARN}, strict=True),
            [(NEW.name, False), (EMPTY.name, True)],
        ),
    ],
)
def test_a_level_of_its_own_outweighs_strict(
    levels: Levels, expected: list[tuple[WarningName, bool]]
) -> None:
    assert [(each.name, each.error) for each in levels.apply([NEW, EMPTY])] == expected


def test_what_the_registry_will_refuse_cannot_be_ignored() -> None:
    refused = PackageWarning(name=WarningName.PLATFORM_TAG, message="refused", error=True)
    assert Levels({refused.name: WarningLevel.IGNORE}).apply([refused]) == (refused,)


def test_the_table_of_the_file_is_read(tmp_path: Path) -> None:
    levels = loaded(tmp_path, '[warnings]\nnew-name = "ignore"\n', "--strict")
    assert levels == Levels({WarningName.NEW_NAME: WarningLevel.IGNORE}, strict=True)
    assert loaded(tmp_path, "strict = true\n") == Levels(strict=True)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            '[warnings]\nnew-names = "warn"\n',
            "releasekit.toml: [warnings] has an unknown key 'new-names', did you mean 'new-name'?",
            f"Known: {', '.join(WarningName)}.",
        ),
        (
            '[warnings]\nnew-name = "off"\n',
            'releasekit.toml: [warnings] new-name is "off"',
            'Write one of "ignore", "warn", "error".',
        ),
        (
            "[warnings]\nnew-name = false\n",
            "releasekit.toml: [warnings] new-name is false",
            'Write one of "ignore", "warn", "error".',
        ),
        (
            "warnings = 1\n",
            "releasekit.toml: warnings is not a table; write [warnings] and its keys below it",
            "",
        ),
    ],
)
def test_mistakes_in_the_table_are_named(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert (str(caught.value), caught.value.hint) == (message, hint)
