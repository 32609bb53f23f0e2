"""The table `[version]`, and what an entry of `[dependencies]` carries over."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED, extra_edge
from releasekit.config.config import load
from releasekit.config.version_options import GroupOptions, VersionOptions
from releasekit.decided import Level
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.config import Config


def loaded(root: Path, text: str = "") -> Config:
    (root / "releasekit.toml").write_text(text, encoding="utf-8")
    return load(DECLARED.from_environment({}), root, DECLARED)


def test_without_a_table_commits_and_files_count(tmp_path: Path) -> None:
    options = loaded(tmp_path).versioning
    assert options == VersionOptions()
    assert (options.changes, options.directory) == ("both", ".changeset")
    assert (options.zero, options.propagate) == ("shift", "needed")


def test_types_are_added_to_the_usual_ones(tmp_path: Path) -> None:
    text = '[version.types]\n"build(deps)" = "patch"\nperf = "none"\nfeat = "major"\n'
    assert loaded(tmp_path, text).versioning.types == {
        "feat": Level.MAJOR,
        "fix": Level.PATCH,
        "perf": Level.NONE,
        "revert": Level.PATCH,
        "build(deps)": Level.PATCH,
    }


def test_all_options_reach_the_run(tmp_path: Path) -> None:
    text = """\
        [version]
        changes = "files"
        directory = "notes/changes"
        ignore = ["bench/**", "!docs/api.md"]
        paths = { "pypi:acme" = ["proto/**"] }
        zero = "literal"
        propagate = "never"
        groups = { ui = { packages = ["@acme/ui*"] }, all = { packages = ["*"], kind = "linked" } }
        """
    assert loaded(tmp_path, text).versioning == VersionOptions(
        changes="files",
        directory="notes/changes",
        ignore=("bench/**", "!docs/api.md"),
        paths={"pypi:acme": ("proto/**",)},
        zero="literal",
        propagate="never",
        groups={"ui": GroupOptions(("@acme/ui*",), "fixed"), "all": GroupOptions(("*",), "linked")},
    )


GROUP = 'groups = { ui = { packages = ["@acme/ui*"], kind = "fixed" } }'


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ('changes = "commit"', 'Write one of "both", "commits", "files".'),
        (
            'directory = "../notes"',
            'Write a path relative to the root, without "..": ".changeset".',
        ),
        ('directory = "/notes"', 'Write a path relative to the root, without "..": ".changeset".'),
        ('types = "fix"', 'Write a table of strings: types = { a = "b" }.'),
        (
            'types = { fix = "tiny" }',
            'fix is "tiny"; write one of "none", "patch", "minor", "major".',
        ),
        (
            'types = { "Fix it" = "patch" }',
            "'Fix it' is not a type of commit; write one like feat, or \"build(deps)\".",
        ),
        ("paths = []", 'Write a table of lists: paths = { "pypi:acme" = ["proto/**"] }.'),
        ('paths = { "pypi:a" = "x" }', 'Write a list of strings: pypi:a = ["…"].'),
        (
            "groups = { ui = [] }",
            f"Write packages and kind for 'ui': {GROUP}.",
        ),
        (
            'groups = { ui = { packages = ["a"], kind = "tied" } }',
            'The kind of \'ui\' is "tied"; write "fixed" or "linked".',
        ),
        ("groups = { ui = {} }", 'Write a list of strings: packages = ["…"].'),
    ],
)
def test_what_cannot_be_used_says_what_to_write(tmp_path: Path, line: str, instead: str) -> None:
    key = line.partition(" ")[0]
    with pytest.raises(ConfigError, match=rf"^releasekit\.toml: \[version\] {key} is ") as caught:
        loaded(tmp_path, f"[version]\n{line}\n")
    assert caught.value.hint == instead


def test_options_that_do_nothing_yet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[version\] has an unknown key 'after'"):
        loaded(tmp_path, "[version]\nafter = []\n")


def test_an_entry_of_dependencies_says_what_it_carries_over(tmp_path: Path) -> None:
    text = (
        '[dependencies]\n"pypi:m" = [{ on = "cargo:m", bump = "same" }, "npm:m", '
        '{ on = "npm:n", bump = "none" }, { on = "npm:o" }, "pypi:n", { on = "pypi:o" }]\n'
    )
    assert loaded(tmp_path, text).extra_edges == (
        extra_edge("pypi:m", "cargo:m", "same"),
        extra_edge("pypi:m", "npm:m", ""),
        extra_edge("pypi:m", "npm:n", "none"),
        extra_edge("pypi:m", "npm:o", ""),
        extra_edge("pypi:m", "pypi:n", "patch"),
        extra_edge("pypi:m", "pypi:o", "patch"),
    )


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("3", '"pypi:m" has 3; write a package, or { on = "ecosystem:name", bump = "same" }'),
        (
            '{ on = "cargo:m", level = "same" }',
            "\"pypi:m\" has an unknown key 'level'",
        ),
        ('{ on = "cargo:m", bomp = "same" }', "unknown key 'bomp', did you mean 'bump'?"),
        (
            '{ at = "cargo:m", since = 1979-05-27, last = [1.5, true] }',
            'has { at = "cargo:m", since = 1979-05-27, last = [1.5, true] }; write a package',
        ),
        (
            '{ on = "cargo:m", bump = "major" }',
            '"pypi:m": the bump for \'cargo:m\' is "major"; write one of "patch", "same", "none"',
        ),
        ('{ on = "m" }', "\"pypi:m\": 'm' is not a package; write ecosystem:name"),
    ],
)
def test_an_entry_that_cannot_be_used_says_what_to_write(
    tmp_path: Path, entry: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        loaded(tmp_path, f'[dependencies]\n"pypi:m" = [{entry}]\n')
