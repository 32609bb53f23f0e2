from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.npm.roots import find_directories, parse_globs
from releasekit.ecosystems.shared import globs
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = (
    "", "packages/a", "packages/b", "packages/deep/c", "packages/a/node_modules/x", "tools/t",
    "examples/e", "packages/a/test",
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for place in PACKAGES:
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "package.json").touch()
    (tmp_path / "packages" / "empty").mkdir()
    return tmp_path


def found(root: Path, *patterns: str) -> list[str]:
    parsed = parse_globs(patterns, where="here")
    directories = find_directories(root, parsed, where="here")
    return [path.relative_to(root).as_posix() for path in directories]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), []),
        (("packages/*",), ["packages/a", "packages/b"]),
        (("./packages/*/",), ["packages/a", "packages/b"]),
        (("packages/**",), ["packages/a", "packages/a/test", "packages/b", "packages/deep/c"]),
        (("packages/**", "!**/test"), ["packages/a", "packages/b", "packages/deep/c"]),
        (("packages/**", "!**/test/**"), ["packages/a", "packages/b", "packages/deep/c"]),
        (("packages/*", "!packages/a", "packages/a"), ["packages/a", "packages/b"]),
        (("{packages,tools}/[at]",), ["packages/a", "tools/t"]),
        (("tools/t", "packages/none", "packages/empty"), ["tools/t"]),
        (("**",), [".", "examples/e", "packages/a", "packages/a/test", "packages/b",
                   "packages/deep/c", "tools/t"]),
        (("**/c",), ["packages/deep/c"]),
        ((".",), ["."]),
    ],
)  # fmt: skip
def test_directories_by_glob(root: Path, patterns: tuple[str, ...], expected: list[str]) -> None:
    assert found(root, *patterns) == expected


@pytest.mark.parametrize("pattern", ["../x", "/etc", "a/../../b", "a/{b,../../c}"])
def test_a_glob_that_leaves_the_workspace_is_refused(root: Path, pattern: str) -> None:
    """R36"""
    with pytest.raises(ConfigError, match=r"here: .* leaves the workspace"):
        found(root, pattern)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["/".join("a" * 40)], "deeper than 32 directories"),
        (["a" * 1_001], "longer than 1000 characters"),
        (["{,a}" * 30], "more than 1000 globs"),
        ([f"{{{',' * 100_000}}}"], "more than 1000 globs"),
        (["{" + "," * 1_000_000], "longer than 1000 characters"),
        (["a"] * 1_001, "more than 1000 globs"),
    ],
)
def test_globs_have_bounds(root: Path, patterns: list[str], message: str) -> None:
    """R40, R51: few characters may stand for many globs."""
    with pytest.raises(ConfigError, match=f"here.* {message}"):
        found(root, *patterns)


def test_links_are_not_followed(root: Path) -> None:
    """R36"""
    (root / "packages" / "link").symlink_to(root / "tools" / "t")
    assert found(root, "packages/*") == ["packages/a", "packages/b"]


def test_a_search_has_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(globs, "MAX_VISITED", 3)
    with pytest.raises(ConfigError, match="more than 3 directories"):
        found(root, "**")
