from __future__ import annotations

import pytest

from releasekit.ecosystems.pypi import PyPIOptions
from releasekit.errors import ConfigError


def test_options_of_a_table() -> None:
    table = {
        "packages": ["libs/*"],
        "exclude": ["libs/old"],
        "config-settings": {"--build-option": "--fast"},
        "pass-env": ["CC"],
    }
    assert PyPIOptions.from_table(table) == PyPIOptions(
        packages=("libs/*",),
        exclude=("libs/old",),
        config_settings={"--build-option": "--fast"},
        pass_env=("CC",),
    )
    assert PyPIOptions.from_table({}) == PyPIOptions()


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({"packages": "a"}, 'packages is "a"', 'Write a list of strings: packages = ["…"].'),
        ({"exclude": [1]}, r"exclude is \[1\]", 'Write a list of strings: exclude = ["…"].'),
        ({"pass-env": [""]}, r'pass-env is \[""\]', 'Write a list of strings: pass-env = ["…"].'),
        (
            {"config-settings": {"a": 1}},
            "config-settings is { a = 1 }",
            'Write a table of strings: config-settings = { a = "b" }.',
        ),
        (
            {"config-settings": []},
            r"config-settings is \[\]",
            'Write a table of strings: config-settings = { a = "b" }.',
        ),
    ],
)
def test_what_cannot_be_used_is_named(table: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=rf"releasekit.toml: \[pypi\] .*{message}") as caught:
        PyPIOptions.from_table(table)
    assert caught.value.hint == hint
