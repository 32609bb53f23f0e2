"""What other tools were told of versions is named with the line that says the same."""

from __future__ import annotations

import json
import tomllib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from fakes import package
from releasekit.config.version_options import VersionOptions
from releasekit.decided import Standing
from releasekit.fields import replace
from releasekit.model import Dependency, DependencyKind, PackageId
from releasekit.plan.other_tools import (
    Deciding,
    Unread,
    compare_manifest,
    describe_unread,
    find_unread,
    refuse_unread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Package


def make(ecosystem: str, version: str, *names: str) -> tuple[Package, ...]:
    return tuple(
        replace(package(name), id=PackageId(ecosystem, name), version=version) for name in names
    )


NPM = make("npm", "1.2.0", "@acme/a", "@acme/b", "c")
CRATES = make("cargo", "0.2.0", "core", "cli")
PYTHON = make("pypi", "0.2.0", "acme")


def find(
    root: Path,
    files: dict[str, Any],
    *,
    packages: tuple[Package, ...] = NPM,
    branch: str = "main",
    excluded: tuple[str, ...] = (),
    written: frozenset[str] = frozenset(),
) -> list[Unread]:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    deciding = Deciding(packages=packages, branch=branch, excluded=excluded)
    return list(find_unread((root, root), deciding, written))


def test_what_changesets_makes_of_peers_is_said(tmp_path: Path) -> None:
    """R68: no option of ours does the same."""
    a, b, c = NPM
    peer = Dependency(on=a.id, kind=DependencyKind.PEER, requirement="^1.2.0")
    config: dict[str, Any] = {".changeset/config.json": {}}
    told = describe_unread(find(tmp_path, config, packages=(a, replace(b, dependencies=(peer,)))))
    assert "For peer dependencies no option corresponds: changesets 2 releases a major" in told[0]
    assert "peer" not in describe_unread(find(tmp_path, config, packages=(a, b, c)))[0]


@pytest.mark.parametrize(
    ("access", "packages", "given", "is_said"),
    [
        ("public", NPM, (), True),
        ("public", NPM, ("npm_access",), False),
        ("restricted", NPM, (), False),  # as npm does without being told
        ("public", NPM[2:], (), False),  # without a scope, all are public
    ],
)
def test_who_may_see_packages_of_changesets_is_said(
    tmp_path: Path, access: str, packages: Sequence[Package], given: Sequence[str], is_said: bool
) -> None:
    """R68: https://github.com/changesets/changesets/blob/main/docs/config-file-options.md#access"""
    (tmp_path / ".changeset").mkdir()
    (tmp_path / ".changeset/config.json").write_text(json.dumps({"access": access}))
    deciding = Deciding(packages=packages, given=given)
    (told,) = describe_unread([*find_unread([tmp_path], deciding, frozenset())])
    line = 'or access write above the tables of releasekit.toml `npm-access = "public"`'
    assert (line in told) is is_said


@pytest.mark.parametrize(
    ("file", "content", "line"),
    [
        (
            ".changeset/config.json",
            {"fixed": [["@acme/*"]]},
            'groups = { "fixed-1" = { packages = ["@acme/*"], kind = "fixed" } }',
        ),
        (  # here, a star does not fit a scope
            ".changeset/config.json",
            {"fixed": [["*"]], "linked": [["@acme/a", "c"], ["@acme/private"]]},
            'groups = { "linked-1" = { packages = ["@acme/a", "c"], kind = "linked" } }',
        ),
        (
            ".changeset/config.json",
            {"linked": [["**", "!c"]]},
            'groups = { "linked-1" = { packages = ["@acme/a", "@acme/b"], kind = "linked" } }',
        ),
        (".changeset/config.json", {"ignore": ["@acme/b"]}, 'exclude-packages = ["@acme/b"]'),
        (
            ".changeset/config.json",
            {
                "___experimentalUnsafeOptions_WILL_CHANGE_IN_PATCH": {
                    "updateInternalDependents": "always"
                }
            },
            'propagate = "always"',
        ),
        (".changeset/pre.json", {"mode": "pre", "tag": "rc"}, 'branches = { "main" = "rc" }'),
        (
            "pnpm-workspace.yaml",
            "versioning:\n  fixed:\n  - ['@acme/*']\n",
            'groups = { "fixed-1" = { packages = ["@acme/*"], kind = "fixed" } }',
        ),
    ],
)
def test_what_decides_versions_is_refused_with_the_line(
    tmp_path: Path, file: str, content: Any, line: str
) -> None:
    """R61, R68: and the line is one that releasekit.toml takes."""
    unread = find(tmp_path, {file: content})
    refused = [each for each in unread if each.refused]
    assert [each.line for each in refused] == [line]
    assert line in refuse_unread(unread)[0].hint
    assert not describe_unread(refused)
    if key := refused[0].settled_by:
        VersionOptions.from_table(tomllib.loads(line))
        again = find(tmp_path, {}, written=frozenset({key}))
        assert not [each for each in again if each.refused]


def test_a_package_that_is_left_out_is_ignored_already(tmp_path: Path) -> None:
    """R68."""
    config = {".changeset/config.json": {"ignore": ["@acme/b"]}}
    unread = find(tmp_path, config, packages=(NPM[0],), excluded=("@acme/b",))
    assert not refuse_unread(unread)


def test_the_end_of_prereleases_asks_for_nothing(tmp_path: Path) -> None:
    """R61: what comes next is stable, here as there."""
    assert not find(tmp_path, {".changeset/pre.json": {"mode": "exit", "tag": "rc"}})


@pytest.mark.parametrize("document", [{"mode": "pre", "tag": "RC.1"}, {"mode": "begin"}, {}])
def test_a_prerelease_mode_that_is_not_known_is_refused(tmp_path: Path, document: Any) -> None:
    """R68: it is never taken for none."""
    [refused] = refuse_unread(find(tmp_path, {".changeset/pre.json": document}))
    assert "changeset pre exit" in refused.hint


@pytest.mark.parametrize(
    ("glob", "left"),
    [("!(@acme/*)", ["c"]), ("!(@acme/a)", ["@acme/b", "c"]), ("!(c)", []), ("!(x)", ["c"])],
)
def test_all_but_some_are_ignored_as_micromatch_does(
    tmp_path: Path, glob: str, left: list[str]
) -> None:
    config = {".changeset/config.json": {"ignore": [glob]}}
    refused = refuse_unread(find(tmp_path, config))
    assert [each.hint.partition(" = ")[2].partition("]")[0] for each in refused] == (
        [json.dumps(left)[:-1]] if left else []
    )


def test_globs_that_are_not_read_are_settled_by_any_exclusion(tmp_path: Path) -> None:
    config = {".changeset/config.json": {"ignore": ["@(c)"]}}
    assert refuse_unread(find(tmp_path, config))
    assert not refuse_unread(find(tmp_path, config, excluded=("c",)))


def test_a_glob_that_is_not_read_is_named(tmp_path: Path) -> None:
    """R66."""
    config = {".changeset/config.json": {"fixed": [["@acme/{a,b}"]], "ignore": ["@(c)"]}}
    told = [each.hint for each in refuse_unread(find(tmp_path, config))]
    assert "'@acme/{a,b}' is not a glob" in told[0]
    assert "'@(c)' is not a glob" in told[1]


@pytest.mark.parametrize(
    ("file", "content", "packages", "lines"),
    [
        (
            ".changeset/config.json",
            {"updateInternalDependencies": "minor"},
            NPM,
            ['changes = "files"', 'ranges = "keep"'],
        ),
        (
            "release-please-config.json",
            {
                "packages": {"a": {"bump-minor-pre-major": True}},
                "plugins": [
                    "cargo-workspace",
                    {"type": "linked-versions", "groupName": "x", "components": ["core", "cli"]},
                ],
            },
            CRATES,
            [
                'zero = "minor"',
                'types = { "deps" = "patch" }',
                'propagate = "always"',
                'groups = { "x" = { packages = ["core", "cli"], kind = "fixed" } }',
            ],
        ),
        (
            ".github/release-please-config.json",
            {
                "versioning": "prerelease",
                "prerelease-type": "beta.1",
                "changelog-sections": [{"type": "docs"}, {"type": "x", "hidden": True}],
            },
            NPM,
            ['types = { "docs" = "patch" }', 'branches = { "main" = "beta" }'],
        ),
        (
            "lerna.json",
            {"version": "1.2.0", "command": {"version": {"ignoreChanges": ["**/*.md"]}}},
            NPM,
            [
                'groups = { "all" = { packages = ["*"], kind = "linked" } }',
                'propagate = "always"',
                'ignore = ["**/*.md"]',
            ],
        ),
        ("lerna.json", {"version": "independent"}, NPM, ['propagate = "always"']),
        ("lerna.json", {"version": "1.2.0"}, CRATES, []),
        (
            "nx.json",
            {"release": {"versionPlans": True}},
            NPM,
            [
                'groups = { "all" = { packages = ["*"], kind = "fixed" } }',
                'directory = ".nx/version-plans"',
                'propagate = "always"',
            ],
        ),
        ("nx.json", {"targetDefaults": {}}, NPM, []),
        (
            "release-plz.toml",
            (
                '[[package]]\nname = "core"\nversion_group = "g"\n[[package]]\nname = "cli"\n'
                'version_group = "g"\nrelease = false\n'
            ),
            CRATES,
            [
                'groups = { "g" = { packages = ["core", "cli"], kind = "fixed" } }',
                'exclude-packages = ["cli"]',
            ],
        ),
        (
            "Cargo.toml",
            "[workspace.metadata.release]\nshared-version = true\n",
            CRATES,
            ['groups = { "shared" = { packages = ["cargo:*"], kind = "fixed" } }'],
        ),
        (
            ".releaserc",
            (
                "branches: [main, {name: next, prerelease: rc}, {name: beta, prerelease: true}]\n"
                "plugins:\n- ['@semantic-release/commit-analyzer', {releaseRules: "
                "[{type: docs, scope: api, release: patch}, {type: build, release: false}]}]\n"
            ),
            NPM,
            [
                'branches = { "next" = "rc", "beta" = "beta" }',
                'types = { "docs(api)" = "patch", "build" = "none" }',
            ],
        ),
        (
            "package.json",
            {"release": {"branches": [{"name": "next", "prerelease": True}]}},
            NPM,
            ['branches = { "next" = "next" }'],
        ),
        (
            "pyproject.toml",
            (
                "[tool.semantic_release.commit_parser_options]\nminor_tags = ['feat']\n"
                "patch_tags = ['chore']\n"
            ),
            PYTHON,
            ['zero = "literal"', 'types = { "feat" = "minor", "chore" = "patch" }'],
        ),
        ("knope.toml", "[package]\n", CRATES, ['propagate = "never"']),
    ],
)
def test_other_tools_are_named_once_with_the_lines(
    tmp_path: Path, file: str, content: Any, packages: tuple[Package, ...], lines: list[str]
) -> None:
    """R61, R66: each goes away with the key that says the same."""
    unread = find(tmp_path, {file: content}, packages=packages)
    assert [each.line for each in unread] == lines
    assert not refuse_unread(unread)
    told = describe_unread(unread)
    assert len(told) == bool(lines)
    for each in unread:
        assert f"without {file}: " in told[0]
        assert f"`{each.line}`" in told[0]
        if key := each.settled_by:
            VersionOptions.from_table(tomllib.loads(each.line))
            rest = find(tmp_path, {}, packages=packages, written=frozenset({key}))
            assert each not in rest


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (".releaserc.json", {"tagFormat": "release-${version}"}, "[tag] name"),
        (".releaserc.json", {"releaseRules": [{"breaking": True}]}, "`types`"),
        ("release-please-config.json", {"versioning": "service-pack"}, "change files"),
        (
            "release-please-config.json",
            {"release-as": "2.0.0", "exclude-paths": ["a"], "extra-files": ["b"]},
            "change file",
        ),
        ("nx.json", {"release": {"groups": {"ui": {}}}}, "[version.groups]"),
        ("release.toml", "pre-release-replacements = [{file = 'a'}]\n", "[version.files]"),
        ("release-plz.toml", "[workspace]\nrelease_commits = '^feat'\n", "`types`"),
        (
            "pyproject.toml",
            (
                "[tool.semantic_release]\nversion_variables = ['a:b']\ntag_format = 'x{version}'\n"
                "[tool.semantic_release.branches.next]\nmatch = 'next'\nprerelease = true\n"
            ),
            "next = rc",
        ),
        ("release.config.mjs", "export default {}", "below [version]"),
        *(
            (name, "", "below [version]")
            for name in (
                ".release-it.json",
                ".release-it.ts",
                "beachball.config.js",
                "common/config/rush/version-policies.json",
                ".autorc",
                "cog.toml",
                ".bumpversion.cfg",
                ".bumpversion.toml",
                ".cz.toml",
                "cz.yaml",
            )
        ),
        ("pyproject.toml", "[tool.commitizen]\nversion = '1.0'\n", "[tool.commitizen]"),
        ("pyproject.toml", "[tool.bumpversion]\nallow_dirty = true\n", "[tool.bumpversion]"),
        (".releaserc.yml", "- a\n", "not a table"),
        ("lerna.json", "{", "correct it"),
        (
            ".changeset/config.json",
            {
                "bumpVersionsWithWorkspaceProtocolOnly": True,
                "privatePackages": {"version": True},
                "snapshot": {"useCalculatedVersion": True},
            },
            "no option corresponds",
        ),
    ],
)
def test_what_no_line_says_comes_with_advice(
    tmp_path: Path, file: str, content: Any, says: str
) -> None:
    """R66, R67: silence would let two tools decide."""
    [told] = describe_unread(find(tmp_path, {file: content}))
    assert f"without {file}: " in told
    assert says in told


@pytest.mark.parametrize(
    ("file", "key"), [(".changeset/pre.json", "branches"), (".changeset/config.json", "groups")]
)
def test_changesets_that_cannot_be_read_decide_nothing_by_default(
    tmp_path: Path, file: str, key: str
) -> None:
    """R66: broken by a merge, say, it was in prerelease mode all the same."""
    [refused] = refuse_unread(find(tmp_path, {file: "<<<<<<< ours"}))
    assert f"{file}: ReleaseKit does not read its content" in str(refused)
    assert f"Correct it, or write its `{key}` below [version]" in (refused.hint or "")
    assert refuse_unread([*find(tmp_path, {}, written=frozenset({"changelog"}))])
    assert not find(tmp_path, {}, written=frozenset({key}))
    assert not refuse_unread(find(tmp_path, {}, packages=CRATES))


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("pyproject.toml", "[tool.semantic_release]\n", "tool.semantic_release"),
        (
            "Cargo.toml",
            "[workspace.metadata.release]\nshared-version = true\n",
            "workspace.metadata.release",
        ),
        ("package.json", {"release": {"tagFormat": "${version}"}}, "release"),
        ("nx.json", {"release": {}}, "release"),
        ("pnpm-workspace.yaml", "versioning:\n  fixed: [['@acme/*']]\n", "versioning"),
    ],
)
def test_no_file_is_to_be_deleted_that_is_for_more(
    tmp_path: Path, file: str, content: Any, part: str
) -> None:
    """R66: the manifest of the workspace would go."""
    unread = find(tmp_path, {file: content}, packages=(*NPM, *PYTHON))
    refused = refuse_unread(unread)
    [told] = [*describe_unread(unread), *(each.hint or "" for each in refused)]
    assert "delete the file" not in told
    assert f"elete `{part}`" in told


def test_a_file_of_changesets_may_be_as_large_as_a_manifest(tmp_path: Path) -> None:
    """R66: changesets has no limit of its own."""
    config = {"fixed": [["@acme/a", "@acme/b"]], "x": "y" * 256 * 1024}
    [refused] = refuse_unread(find(tmp_path, {".changeset/config.json": config}))
    assert "does not read fixed" in str(refused)


def test_settings_of_packages_that_are_not_here_say_nothing(tmp_path: Path) -> None:
    """R68: changesets knows nothing of crates."""
    files = {
        ".changeset/config.json": {"fixed": [["core", "cli"]], "ignore": ["core"]},
        ".changeset/pre.json": {"mode": "pre", "tag": "rc"},
    }
    assert not find(tmp_path, files, packages=CRATES)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("lerna.json", {"version": [1]}),
        ("release-please-config.json", {"versioning": ["x"]}),
        ("release-plz.toml", 'package = [{ name = ["x"] }]'),
        (".releaserc.json", {"releaseRules": [{"type": "feat", "release": ["x"]}]}),
        (".releaserc", "releaseRules: [{type: feat, release: {a: b}}]"),
    ],
)
def test_a_list_in_place_of_a_word_ends_no_run(tmp_path: Path, file: str, content: Any) -> None:
    """R51."""
    for each in find(tmp_path, {file: content}, packages=(*NPM, *CRATES)):
        assert each.file == file


def test_no_glob_takes_long(tmp_path: Path) -> None:
    """R51: nobody would see the end of all ways to divide a name."""
    long = make("npm", "1.0.0", "a" * 200)
    globs = ["*a" * 20 + "b", "**a" * 20 + "b"]
    assert not any(
        each.setting == "fixed"
        for each in find(tmp_path, {".changeset/config.json": {"fixed": [globs]}}, packages=long)
    )


class Counted(str):
    """A name that counts what it is compared with, and parted for."""

    __slots__ = ()
    steps = 0

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.steps += 1
        return str.__eq__(self, other)

    def split(self, *args: Any, **options: Any) -> list[str]:
        Counted.steps += 1
        return super().split(*args, **options)


MANY = tuple(
    replace(each, id=PackageId("npm", Counted(f"@acme/p{number}")))
    for number, each in enumerate(make("npm", "1.0.0", *["x"] * 2_000))
)


@pytest.mark.parametrize(
    "config",
    [
        {"ignore": [f"@x{n}/*" for n in range(300)]},
        {"fixed": [[f"*a*b{n}"] for n in range(300)]},
        {"linked": [["**", *(f"!@acme/p{n}" for n in range(300))]]},
        {"fixed": [["**"]] * 200, "ignore": ["@b/*"] * 100},
        {"fixed": [[f"!(a{n})" for n in range(300)]]},
    ],
)
def test_too_many_globs_for_many_packages_are_refused_by_name(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    """R51, R66: none of them is tried, however few each list has."""
    Counted.steps = 0
    found = find(tmp_path, {".changeset/config.json": config}, packages=MANY)
    assert Counted.steps == 0
    refused = [each for each in found if each.refused]
    assert {each.setting for each in refused} == config.keys()
    assert "ReleaseKit tries at most 250 globs per file for 2000 packages" in refused[0].advice
    settled = frozenset({"groups"})
    assert not [
        each
        for each in find(
            tmp_path,
            {".changeset/config.json": config},
            packages=MANY,
            excluded=("b",),
            written=settled,
        )
        if each.refused
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"ignore": [f"@acme/p{n}" for n in range(2_000)]},
        {"linked": [[f"@acme/p{n}" for n in range(500)]] * 20},
        {"ignore": ["**", "!**", "**/p*"]},
        {"ignore": ["!(c)", "!(@acme/*)", "**"]},
    ],
)
def test_what_names_select_takes_no_step_for_each_pair(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    """R51: each glob is tried once with each name, and a name with none."""
    Counted.steps = 0
    found = find(tmp_path, {".changeset/config.json": config}, packages=MANY)
    assert [each.setting for each in found if each.refused] == [*config]
    assert Counted.steps <= 10 * len(MANY)


def test_no_message_is_as_long_as_a_file(tmp_path: Path) -> None:
    """R51"""
    packages = tuple(make("npm", "1.0.0", *(f"@acme/pkg-{n}" for n in range(300))))
    for globs in (["@acme/*"], [each.id.name for each in packages], ["{" * 100_000]):
        content = {"ignore": globs, "fixed": [globs]}
        found = find(tmp_path, {".changeset/config.json": content}, packages=packages)
        for error in refuse_unread(found):
            assert len(f"{error} {error.hint}") < 10_000
        assert all(len(each) < 20_000 for each in describe_unread(found))


@pytest.mark.parametrize(
    ("glob", "fits"),
    [
        ("*", ["c"]),
        ("**", ["@acme/a", "@acme/b", "c"]),
        ("@acme/*", ["@acme/a", "@acme/b"]),
        ("**c*", ["c"]),
        ("**e/a", ["@acme/a"]),
        ("*a", []),
        ("***", ["@acme/a", "@acme/b", "c"]),
    ],
)
def test_one_star_ends_at_a_slash(glob: str, fits: list[str]) -> None:
    """R66: as micromatch has it."""
    names = [each.id.name for each in NPM]
    chosen = Deciding(packages=NPM).select([glob], dict.fromkeys(names))
    assert [name for name in names if any(fnmatchcase(name, each) for each in chosen)] == fits


@pytest.mark.parametrize(
    ("said", "released", "written", "refused"),
    [
        ("1.4.0", "1.4.0", "1.4.0", None),
        ("v1.4.0", "1.4.0", "1.4.0", None),
        ("1.3.0", "1.4.0", "1.4.0", False),  # left from before ReleaseKit
        ("1.4.0", "", "1.4.0", False),
        ("1.4.0", "1.3.0", "1.4.0", False),  # about to be released
        ("1.5.0", "1.4.0", "1.4.0", True),
        ("1.5.0", "", "1.4.0", True),
        ("much", "1.4.0", "1.4.0", False),
        (14, "1.4.0", "1.4.0", None),
    ],
)
@pytest.mark.parametrize("ecosystem", ["npm", "pypi", "cargo", "go", "maven"])
def test_a_manifest_of_release_please_is_compared(
    tmp_path: Path, ecosystem: str, said: object, released: str, written: str, refused: bool | None
) -> None:
    """R68: release-please counts from there, and ReleaseKit from tags."""
    (made,) = make(ecosystem, written, "a")
    found = replace(made, directory=tmp_path / "packages/a")
    (tmp_path / ".release-please-manifest.json").write_text(json.dumps({"packages/a": said}))
    standings = [Standing(package=found.id, written=written, released=released)]
    unread = list(compare_manifest([tmp_path, tmp_path], {found.id: found}, standings))
    assert [each.refused for each in unread] == ([] if refused is None else [refused])
    told = " ".join([*describe_unread(unread), *map(str, refuse_unread(unread))])
    here = f"{released} here" if released else "not released here"
    assert refused is None or f"{found.id} at {said} ({here})" in told
    # Nothing here writes the file: that it is behind is nothing to tag.
    is_behind = (said, released) == ("1.3.0", "1.4.0")
    assert ("write the last versions into it before release-please runs again" in told) is is_behind
    assert ("tag the commits of these versions" in told) is (refused is False and not is_behind)
