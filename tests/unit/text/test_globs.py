from __future__ import annotations

import pytest

from releasekit.errors import ConfigError
from releasekit.text.globs import MAX_CHARS, Glob, Patterns, decide, matches_path


@pytest.mark.parametrize(
    ("lines", "path", "named"),
    [
        (["*.js"], "a/b.js", True),
        (["/*.js"], "a/b.js", False),
        (["a/*.js"], "a/b.js", True),
        (["a/*.js"], "c/a/b.js", False),
        (["a/**/d.js"], "a/b/c/d.js", True),
        (["a/"], "a", False),
        (["a/"], "a/b", True),
        (["a/**"], "a/b/c", True),
        (["a", "!a/b"], "a/b", False),
        (["!a/b", "a"], "a/b", True),
        (["*.{js,ts}"], "a.ts", True),
        (["a/@(b|c).js"], "a/b.js", True),
        (["../a", "# a", "", 1], "a", False),
    ],
)
def test_patterns_name_what_git_would_ignore(
    lines: list[object], path: str, *, named: bool
) -> None:
    assert Patterns.parse(lines).names(path) is named


@pytest.mark.parametrize(
    ("texts", "path", "said"),
    [
        (["a/*"], "a/b", True),
        (["a/*"], "a/b/c", None),
        (["a/**"], "a", True),
        (["**", "!a/*"], "a/b", False),
        (["!a/*", "**"], "a/b", True),
        (["!a/*"], "b", None),
        ([], "b", None),
    ],
)
def test_the_last_glob_that_fits_decides(texts: list[str], path: str, said: bool | None) -> None:
    globs = [Glob.parse(each, where="", signed=True) for each in texts]
    assert decide(globs, path.split("/")) is said


@pytest.mark.parametrize(
    ("patterns", "path", "fits"),
    [
        (["a/*"], "a/b", True),
        (["a/*"], "a/b/c", True),
        (["a"], "a/b", False),
        (["a/", "b"], "a", True),
        (["./a"], "a", True),
        (["."], ".", True),
        (["[ab]/c"], "b/c", True),
        ([], "a", False),
    ],
)
def test_the_star_of_an_exclusion_passes_a_slash(
    patterns: list[str], path: str, *, fits: bool
) -> None:
    assert matches_path(path, patterns) is fits


def test_an_exclusion_has_a_bound() -> None:
    """R40"""
    assert not matches_path("a", ["b" * MAX_CHARS])
    with pytest.raises(ConfigError, match="is longer than 1000 characters"):
        matches_path("a", ["b" * (MAX_CHARS + 1)])
