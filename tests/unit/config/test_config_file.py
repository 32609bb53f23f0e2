from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED, extra_edge
from releasekit.config.file import MAX_BYTES, ConfigFile, read_config
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def of(directory: Path, content: str | bytes) -> ConfigFile:
    path = directory / "releasekit.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_config(path, DECLARED)


def refusal(directory: Path, content: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        of(directory, content)
    assert "\n" not in str(caught.value)
    assert "releasekit.toml" in str(caught.value)
    return caught.value


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    assert of(tmp_path, "") == ConfigFile()


def test_keys_are_inputs_and_tables_are_kept_as_they_are(tmp_path: Path) -> None:
    file = of(
        tmp_path,
        """
        concurrency = 8
        task-timeout = "20m"
        retry-base-delay = 0.5
        summary = false
        ecosystem = "pypi"
        packages = ["acme-*", "other"]

        [pypi]
        packages = ["libs/*"]
        config-settings = { a = "b" }

        [dependencies]
        "pypi:acme-web" = ["pypi:acme-core"]
        """,
    )
    assert file.texts == {
        "concurrency": "8",
        "task-timeout": "20m",
        "retry-base-delay": "0.5",
        "summary": "false",
        "ecosystem": "pypi",
        "packages": "acme-*\nother",
    }
    assert file.tables == {"pypi": {"packages": ["libs/*"], "config-settings": {"a": "b"}}}
    assert file.dependencies == (extra_edge("pypi:acme-web", "pypi:acme-core"),)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("concurrency = \n", "not valid TOML: Invalid value (at line 1, column 15)"),
        ("a = 1\na = 2", "not valid TOML: Cannot overwrite a value (at"),
        (b"a = 1\n# \xff", "line 2 is not UTF-8; save it as UTF-8"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("#" * (MAX_BYTES + 1), "larger than 1048576 bytes"),
        ("concurency = 1", "unknown key 'concurency', did you mean 'concurrency'?"),
        ("max_retries = 1", "unknown key 'max_retries', did you mean 'max-retries'?"),
        ("[pypy]", "unknown key 'pypy', did you mean 'pypi'?"),
        ("[pipy]", "unknown key 'pipy', did you mean 'pypi'?"),
        ("[conan]", "unknown key 'conan'"),
        ("[npm]\nignore-script = true", "[npm] has an unknown key 'ignore-script', did you mean"),
        ("[dependency]", "did you mean 'dependencies'?"),
        ("dry-run = true", "dry-run says how one run goes; give it as a flag or an input"),
        ("mode = 'publish'", "mode says how one run goes"),
        ("packages = [1]", "packages is not a list of strings; write"),
        ("concurrency = [1]", "concurrency is a list here; write one value"),
        ("concurrency = {}", "concurrency is a table here; write one value"),
        ("packages = {}", "packages is a table here; write a list"),
        ("pypi = 'x'", "pypi is not a table; write [pypi] and its keys below it"),
        ("dependencies = []", "dependencies is not a table"),
        ("[dependencies]\n'pypi:a' = 'pypi:b'", '[dependencies] "pypi:a" is not a list'),
        ("[dependencies]\na = []", "'a' is not a package; write ecosystem:name, like \"pypi:acme"),
        ('[dependencies]\n"npm:a" = []', '[dependencies] "npm:a" is empty; write what it needs'),
        ('[dist]\n"npm:a" = []', '[dist] "npm:a" is empty; write where its files are, or take'),
        ("[dependencies]\n'pypi:a' = ['pip:b']", "'pip:b' is not a package"),
        ("[dependencies]\n'pypi:a' = ['pypi:']", "'pypi:' is not a package"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, content: str | bytes, says: str) -> None:
    """R40"""
    assert says in str(refusal(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "key", "variables"),
    [
        ("pypi-token = 'hunter2'", "pypi-token", ["RELEASEKIT_PYPI_TOKEN"]),
        ("pypi_token = 'hunter2'", "pypi_token", ["RELEASEKIT_PYPI_TOKEN"]),
        ("[npm]\ntoken = 'hunter2'", "[npm] token", ["RELEASEKIT_NPM_TOKEN"]),
        ("state-key = 'hunter2'", "state-key", ["RELEASEKIT_STATE_KEY"]),
        ("password = 'hunter2'", "password", ["RELEASEKIT_MAVEN_PASSWORD"]),
        ("token = 'hunter2'", "token", ["RELEASEKIT_PYPI_TOKEN", "RELEASEKIT_NPM_TOKEN"]),
        ("[announce]\ntoken = 'hunter2'", "[announce] token", ["RELEASEKIT_FORGE_TOKEN"]),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(
    tmp_path: Path, content: str, key: str, variables: list[str]
) -> None:
    """R34: where the key names none of ours, all variables that it may mean are named."""
    error = refusal(tmp_path, content)
    assert f": {key} is a secret" in str(error)
    for variable in variables:
        assert variable in error.hint
    assert "hunter2" not in str(error) + error.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"releasekit\.toml: cannot be read \(No such file"):
        read_config(tmp_path / "releasekit.toml", DECLARED)


def test_an_unknown_key_of_an_ecosystem_comes_with_those_there_are(tmp_path: Path) -> None:
    """R40"""
    hint = "Known: config-settings, directory-url, exclude, packages, pass-env, workspaces."
    assert refusal(tmp_path, "[pypi]\nzzz = 1").hint == hint
