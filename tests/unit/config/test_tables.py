"""An ecosystem's own table of releasekit.toml: each option is a field."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.go import GoOptions
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.npm import NpmOptions
from releasekit.errors import ConfigError


def test_each_option_is_read_as_its_field_says() -> None:
    table = {
        "reactors": ["app"],
        "properties": {"revision": "1.2.3"},
        "skip-tests": True,
        "sign": "KEY",
        "api": "portal",
        "publishing": "automatic",
    }
    assert MavenOptions.from_table(table) == MavenOptions(
        reactors=("app",),
        properties={"revision": "1.2.3"},
        skip_tests=True,
        sign="KEY",
        api="portal",
        publishing="automatic",
    )


def test_what_is_empty_leaves_the_default() -> None:
    assert MavenOptions.from_table({"command": "", "goals": [], "sign": False}) == MavenOptions()
    assert (MavenOptions().command, MavenOptions().goals) == ("mvn", ("verify",))
    assert GoOptions.from_table(
        {"remote": "", "version-file": "VERSION", "proxy": False}
    ) == GoOptions(version_file="VERSION", proxy=False)


def test_one_of_the_choices_is_offered_and_not_none_of_them() -> None:
    with pytest.raises(ConfigError) as refused:
        NpmOptions.from_table({"stage": "alway"})
    assert refused.value.hint == 'Write one of "auto", "always", "never".'
