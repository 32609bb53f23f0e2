from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from javascript import write
from releasekit.ecosystems.npm.roots import find_directories, parse_globs, read_workspace_files
from releasekit.errors import ConfigError
from releasekit.text import globs

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


BERRY, CLASSIC = "# by yarn\n\n__metadata:\n  version: 8\n", "# yarn lockfile v1\n"
MEMBERS = {"workspaces": ["packages/*"]}


@pytest.mark.parametrize(
    ("manifest", "files", "tool"),
    [
        ({}, {}, "npm"),
        ({}, {"package-lock.json": "{}", "yarn.lock": CLASSIC}, "npm"),
        ({}, {"pnpm-workspace.yaml": ""}, "pnpm"),
        ({}, {"pnpm-lock.yaml": ""}, "pnpm"),
        ({"packageManager": "pnpm@10.1.0"}, {".yarnrc.yml": ""}, "pnpm"),
        ({"packageManager": "npm@11.0.0"}, {"pnpm-workspace.yaml": ""}, "pnpm"),
        ({"packageManager": "npm@11.0.0", **MEMBERS}, {"pnpm-workspace.yaml": ""}, "npm"),
        ({"packageManager": "npm@11.0.0"}, {".yarnrc.yml": "", "yarn.lock": BERRY}, "npm"),
        ({"packageManager": "bun@1.2.0"}, {"yarn.lock": BERRY}, "bun"),
        ({}, {"bun.lock": "{}", "yarn.lock": CLASSIC}, "bun"),
        ({}, {"bun.lockb": ""}, "bun"),
        ({}, {"bun.lock": "{}", "package-lock.json": "{}"}, "npm"),
        ({"packageManager": "yarn@4.9.0"}, {}, "yarn"),
        ({"packageManager": "yarn@1.22.22"}, {}, "yarn1"),
        ({"packageManager": "yarn@1.22.22"}, {".yarnrc.yml": "yarnPath: yarn.cjs"}, "yarn"),
        ({"devEngines": {"packageManager": {"name": "pnpm"}}}, {}, "pnpm"),
        ({"devEngines": {"packageManager": {"name": "yarn"}}}, {"yarn.lock": BERRY}, "yarn"),
        ({}, {"yarn.lock": BERRY}, "yarn"),
        ({}, {"yarn.lock": CLASSIC}, "yarn1"),
        ({"packageManager": 7, "devEngines": []}, {}, "npm"),
    ],
)
def test_the_tool_that_packs_is_the_one_that_corepack_starts(
    tmp_path: Path, manifest: dict[str, object], files: dict[str, object], tool: str
) -> None:
    """R64, R66: pnpm 10 refuses to pack where packageManager names another tool."""
    root = write(tmp_path, {"package.json": manifest, **files})
    assert read_workspace_files(root).tool == tool


YARN1 = {"package.json": {"packageManager": "yarn@1.22.22"}}
BUN = {"package.json": {"packageManager": "bun@1.4.5"}}
PNPM = {"pnpm-workspace.yaml": "ignoreScripts: true\ntag: unread"}
LERNA = {
    "registry": "https://top/", "distTag": "top",
    "command": {"version": {"distTag": "version"}, "publish": {"ignoreScripts": True}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "usual", "scriptless"),
    [
        ({".npmrc": "tag=next\naccess = public\nignore-scripts=true"},
         {"tag": "next", "access": "public"}, ".npmrc: ignore-scripts"),
        ({".npmrc": "tag=next\ntag=\nignore-scripts=false"}, {"tag": "next"}, ""),
        ({**PNPM, ".npmrc": "tag=next"}, {"tag": "next"}, "pnpm-workspace.yaml: ignoreScripts"),
        ({".yarnrc.yml": "npmPublishAccess: public", ".npmrc": "tag=next\nignore-scripts=true"},
         {"access": "public"}, ""),
        # Tried with yarn 1.22.22, which takes neither of them from .npmrc.
        ({**YARN1, ".npmrc": "tag=next\nignore-scripts=true"}, {}, ""),
        ({**YARN1, ".yarnrc": "ignore-scripts true"}, {}, ".yarnrc: ignore-scripts"),
        ({**BUN, ".npmrc": "tag=next\naccess=public\nignore-scripts=true"},
         {"tag": "next", "access": "public"}, ".npmrc: ignore-scripts"),
        ({**BUN, "bunfig.toml": "[install]\nignoreScripts = true"}, {},
         "bunfig.toml: install.ignoreScripts"),
        ({"lerna.json": LERNA, ".npmrc": "tag=next"}, {"tag": "version"},
         "lerna.json: command.publish.ignoreScripts"),
    ],
)  # fmt: skip
def test_what_the_settings_of_a_workspace_say_of_publishing(
    tmp_path: Path, files: dict[str, object], usual: dict[str, str], scriptless: str
) -> None:
    """R66: what npm, pnpm, yarn and lerna would do."""
    found = read_workspace_files(write(tmp_path, files))
    assert found.usual == usual
    assert found.scriptless == (f"{tmp_path}/{scriptless}" if scriptless else "")
