"""The tables `[tag]` and `[announce]`, and the inputs that make them count."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from documents import ROOT
from fakes import DECLARED
from raising import raises
from releasekit.config.config import load
from releasekit.config.file import read_config
from releasekit.config.tag_options import AnnounceOptions, TagOptions
from releasekit.errors import ConfigError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.config import Config


def loaded(root: Path, text: str = "", **variables: str) -> Config:
    (root / "releasekit.toml").write_text(text, encoding="utf-8")
    return load(DECLARED.from_environment(variables), root, DECLARED)


def test_nothing_is_tagged_or_announced_unless_somebody_asks(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert not config.tag
    assert not config.announce
    assert config.tagging == TagOptions(name="{name}-v{version}", remote="origin", at_a_time=0)
    assert config.announcing == AnnounceOptions(
        releases="changed", assets=("checksums", "provenance")
    )


def test_inputs_and_tables_reach_the_run(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        '[tag]\nname = "v{version}"\nremote = "upstream"\nat-a-time = 3\n'
        '[announce]\nreleases = "one"\nassets = ["files", "report", "files"]\n',
        RELEASEKIT_TAG="true",
        RELEASEKIT_ANNOUNCE="true",
    )
    assert config.tag
    assert config.announce
    assert config.tagging == TagOptions(name="v{version}", remote="upstream", at_a_time=3)
    assert config.announcing == AnnounceOptions(releases="one", assets=("files", "report"))


def test_a_release_may_be_without_files(tmp_path: Path) -> None:
    config = loaded(tmp_path, "[announce]\nassets = []")
    assert config.announcing.assets == ()


@pytest.mark.parametrize(
    "name",
    [
        *("v{version}", "{name}@{version}", "{component}-v{version}"),
        *("{ecosystem}/{name}-v{version}", "{directory}/v{version}"),
    ],
)
def test_a_name_is_what_it_says(name: str) -> None:
    assert TagOptions.from_table({"name": name}).name == name


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"name": 1}, 'Write a string: name = "…".'),
        (
            {"name": "{package}-v{version}"},
            "It has no field {package}; write any of {name}, {component}, {version}, {ecosystem}",
        ),
        ({"name": "{}-{version}"}, "It has no field {}; write any of"),
        ({"name": "{version.x}"}, "It has no field {version.x}; write any of"),
        ({"name": "v{version"}, "Braces are those of fields here"),
        ({"name": "v}{version}"}, "Braces are those of fields here"),
        ({"name": "{{v}}{version}"}, "Braces are those of fields here"),
        ({"name": "{name!r}{version}"}, "It has no field {name!r}; write any of"),
        ({"name": "{version:>9}"}, "It has no field {version:>9}; write any of"),
        ({"name": "{name}"}, 'so write {version} into it: name = "v{version}".'),
        ({"remote": "-x"}, "Write the name of a remote: `git remote`."),
        ({"remote": "https://example.com/x"}, "Write the name of a remote: `git remote`."),
        ({"at-a-time": -1}, "or 0 for all at once: at-a-time = 3."),
        ({"at-a-time": True}, "or 0 for all at once: at-a-time = 3."),
        ({"at-a-time": "3"}, "or 0 for all at once: at-a-time = 3."),
        ({"at-a-time": 1_001}, "or 0 for all at once: at-a-time = 3."),
    ],
)
def test_what_a_tag_cannot_be_is_refused(table: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=r"^releasekit\.toml: \[tag\] ") as refused:
        TagOptions.from_table(table)
    assert says in refused.value.hint


def test_other_assets_than_there_are_are_refused() -> None:
    with pytest.raises(ConfigError, match='checksum"') as refused:
        AnnounceOptions.from_table({"assets": ["checksum"]})
    assert '"checksums", "files", "provenance", "report"; [] for none' in refused.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tag]\nnames = 'v{version}'", r"\[tag\] has an unknown key 'names', did you mean 'name'"),
        ("[announce]\nasset = []", r"\[announce\] has an unknown key 'asset', did you mean 'ass"),
        ("[anounce]\nassets = []", r"unknown key 'anounce', did you mean 'announce'"),
        ("[tags]\nname = 'v{version}'", r"unknown key 'tags', did you mean 'tag'"),
    ],
)
def test_a_typo_is_noticed(tmp_path: Path, text: str, says: str) -> None:
    with raises(Problem.UNKNOWN_NAME, match=says):
        loaded(tmp_path, text)


@pytest.mark.parametrize("name", ["tag", "announce"])
def test_the_file_does_not_decide_whether(tmp_path: Path, name: str) -> None:
    """A key of that name in releasekit.toml is the table."""
    with pytest.raises(ConfigError, match=rf"{name} is not a table; write \[{name}\]"):
        loaded(tmp_path, f"{name} = true")


def test_tables_are_read_whatever_the_run_is_about(tmp_path: Path) -> None:
    path = tmp_path / "releasekit.toml"
    path.write_text('[tag]\nname = "v{version}"\n', encoding="utf-8")
    assert read_config(path, DECLARED).tagging.name == "v{version}"


def test_the_page_explains_every_key_and_shows_what_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs/after-publishing.md").read_text(encoding="utf-8")
    for kind in (TagOptions, AnnounceOptions):
        for key in kind.option_keys():
            assert f"\n{key} = " in page, key
    defaults, *others = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert loaded(tmp_path, defaults) == loaded(tmp_path)
    for block in others:
        assert loaded(tmp_path, block) != loaded(tmp_path)
