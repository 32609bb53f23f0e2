from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

import pytest

import javascript
from releasekit.ecosystems.npm import entry_points, tarball
from releasekit.ecosystems.npm.entry_points import find_missing_files, find_warnings
from releasekit.errors import PackageError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

CONDITIONS = {"types": "./d.ts", "import": "./a.mjs", "require": "./a.cjs"}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ({}, []),
        ({"main": "lib"}, []),
        ({"main": "./lib/"}, []),
        ({"main": "a"}, []),
        ({"main": "lib/index.js"}, []),
        ({"main": "dist/index.js"}, ['main "dist/index.js"']),
        ({"module": "./a.mjs", "types": "d.ts"}, []),
        ({"module": "b.mjs", "typings": "t.d.ts"}, ['module "b.mjs"', 'typings "t.d.ts"']),
        ({"bin": {"a": "./a.js", "b": "bin/b.js"}}, ['bin "bin/b.js"']),
        ({"exports": "./a.mjs"}, []),
        ({"exports": "./b.mjs"}, ['exports "./b.mjs"']),
        ({"exports": CONDITIONS}, ['exports "./a.cjs"']),
        ({"exports": {".": {"node": {"import": "./x.js"}}}}, ['exports "./x.js"']),
        ({"exports": {"./lib/*": "./lib/*.js", "./no": None}}, []),
        ({"exports": {"./dist/*": "./dist/*.js"}}, ['exports "./dist/*.js"']),
        ({"exports": {".": ["not-a-path", "./a.js"]}}, ['exports "not-a-path"']),
        ({"exports": {".": {"@acme/source": "./src/a.ts", "default": "./a.js"}}}, []),
        ({"exports": {".": "./x.js", "./again": "./x.js"}}, ['exports "./x.js"']),
        ({"main": "", "types": "d"}, []),
        ({"types": "./typed", "typings": "typed/", "module": "lib"}, []),
        ({"types": "lib"}, ['types "lib"']),
        ({"exports": {"./": "./", "./lib/": "./lib/"}}, []),
        ({"exports": {"./dist/": "./dist/"}}, ['exports "./dist/"']),
        ({"exports": {"./*": "./lib/*/x.js"}}, []),
        ({"exports": {"./*": "./lib/*/*.js"}}, ['exports "./lib/*/*.js"']),
        ({"files": ["core", "sg"]}, ['files "core"', 'files "sg"']),
        ({"files": ["dist/*.js", "README.md", "!lib"]}, ['files "dist/*.js"']),
        ({"files": ["core", "./LIB/"]}, []),
        ({"files": ["lib/**/*.js"]}, []),
        *(({"files": files}, []) for files in ([], ["."], ["/**"], ["README.md"], [1], "core")),
        ({"main": 1, "module": None, "bin": {"a": 2}, "exports": 3}, []),
    ],
)
def test_files_that_are_named_and_missing(manifest: dict[str, Any], expected: list[str]) -> None:
    """R49"""
    names = {"package.json", "a.js", "a.mjs", "d.ts", "d.d.ts", "typed/index.d.ts"}
    names |= {"lib/index.js", "lib/deep/x.js"}
    assert find_missing_files(manifest, names) == expected


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    """What stands in a package.json is not always meant well."""
    stars = "*".join("a" * 30)
    assert find_missing_files({"exports": {"./*": f"./{stars}b"}}, {"a" * 200}) != []


def test_conditions_may_be_nested_as_deep_as_json() -> None:
    exports: object = "./x.js"
    for _ in range(2000):
        exports = {"import": exports}
    assert find_missing_files({"exports": exports}, {"x.js"}) == []


def test_an_unbuilt_package_is_said(tmp_path: Path) -> None:
    """R49: a command may be given as one path."""
    package = javascript.package()
    built = javascript.tarball(tmp_path, package, {"a.js": ""}, main="a", bin="./cli.js")
    (warning,) = find_warnings(package, [built])
    assert warning.name == "missing-files"
    assert warning.message.startswith('its package.json names bin "./cli.js", which the tarball')


def test_patterns_and_files_have_a_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R49: forty thousand patterns and as many files took minutes. A repeated one counts once."""
    package = javascript.package()
    exports = {"./a": "./x/*", "./b": "./y/", "./c": "./x/*", "./d": "./a.js"}
    built = javascript.tarball(tmp_path, package, {"a.js": ""}, exports=exports)
    limit = 2 * len("package.json" + "a.js")
    monkeypatch.setattr(entry_points, "_MAX_COMPARED_CHARS", limit)
    (warning,) = find_warnings(package, [built])
    assert warning.message.startswith('its package.json names exports "./x/*", exports "./y/", wh')
    monkeypatch.setattr(entry_points, "_MAX_COMPARED_CHARS", limit - 1)
    (warning,) = find_warnings(package, [built])
    assert warning.name == "missing-files"
    assert warning.message == (
        "its package.json names 2 patterns, too many to look for each of them among the 2 files of "
        "the tarball"
    )


def test_a_repeated_pattern_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    monkeypatch.setattr(entry_points, "_matches", lambda path, _: compared.append(path))
    find_missing_files({"exports": {f"./{number}": "./x/*" for number in range(9)}}, set())
    assert compared == ["./x/*"]


def test_what_is_no_tarball_is_named(tmp_path: Path) -> None:
    package = javascript.package()
    built = javascript.tarball(tmp_path, package)
    built.path.write_bytes(b"no")
    with pytest.raises(PackageError):
        list(find_warnings(package, [built]))


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"dependencies": {"x": "workspace:^"}}, "dependencies.x is 'workspace:^'"),
        ({"dependencies": {"x": "catalog:"}}, "dependencies.x is 'catalog:'"),
        ({"dependencies": {"x": "jsr:@a/b@1"}}, "dependencies.x is 'jsr:"),
        ({"peerDependencies": {"x": "link:./lib"}}, "peerDependencies.x is 'link:"),
        ({"optionalDependencies": {"x": "file:./vendor"}}, "optionalDependencies.x is 'file:"),
        ({"dependencies": {"x": "file:./lib"}}, ""),
        ({"dependencies": {"x": "./lib/"}}, ""),
        ({"dependencies": {"x": "file:."}}, "dependencies.x is 'file:."),
        ({"dependencies": {"x": "file:../package/lib"}}, "dependencies.x is 'file:.."),
        ({"dependencies": {"x": "^1"}, "bundleDependencies": ["x"]}, "names x, but the tarball"),
        ({"dependencies": {"x": "^1"}, "bundledDependencies": True}, "names x, but the tarball"),
        ({"peerDependencies": {"x": "^1"}, "bundleDependencies": ["x"]}, "names x, but the"),
        ({"dependencies": {"in": "link:../in"}, "bundleDependencies": ["in"]}, ""),
        ({"dependencies": {"@a/in": "^2"}, "bundleDependencies": True}, ""),
        ({"dependencies": {"x": "^1"}, "bundleDependencies": False}, ""),
        ({"bundleDependencies": ["x"]}, ""),
        ({"devDependencies": {"x": "workspace:^"}, "bundleDependencies": ["x"]}, ""),
        ({"dependencies": {"x": 1}}, "dependencies.x is 1"),
    ],
)
def test_what_was_packed_is_read_as_npm_reads_it(
    tmp_path: Path, manifest: dict[str, Any], says: str
) -> None:
    """R63: a script may have written package.json, and only the archive tells what it holds."""
    package = javascript.package()
    files = {
        f"{place}/package.json": "{}" for place in ("lib", "node_modules/in", "node_modules/@a/in")
    }
    file = javascript.tarball(tmp_path, package, files, **manifest)
    if not says:
        assert list(find_warnings(package, [file])) == []
        return
    with pytest.raises(PackageError) as caught:
        list(find_warnings(package, [file]))
    assert says in str(caught.value)
    assert file.filename in str(caught.value)


BUNDLES: dict[str, Any] = {"dependencies": {"u": "1.0.0"}, "bundleDependencies": ["u"]}


@pytest.mark.parametrize(
    ("files", "own", "says"),
    [
        ({"": {"a": "workspace:^"}}, {}, "the bundled u needs a (workspace:^)"),
        ({"": {"a": "catalog:"}}, {}, "the bundled u needs a (catalog:)"),
        ({"": {"a": "^1"}}, {}, "the bundled u needs a (^1)"),
        ({"": {"a": "^1"}}, {"devDependencies": {"a": "^1"}}, "the bundled u needs a (^1)"),
        ({"": {"a": "^1"}}, {"dependencies": {"u": "1.0.0", "a": "^1"}}, ""),
        ({"": {"a": "^1"}}, {"peerDependencies": {"a": "^1"}}, ""),
        ({"": {"a": "workspace:^"}, "/node_modules/a": {}}, {}, ""),
        ({"": {"a": "workspace:^"}, "/../a": {}}, {}, ""),
        ({"": {"a": "^1"}, "/../a": {"c": "^1"}}, {}, "the bundled a needs c (^1)"),
        ({"": {"a": "^1"}, "/../a": {"u": "*", "@acme/core": "*"}}, {}, ""),
        ({"": {"a": "^1"}, "/node_modules/a": {"@s/c": "^1"}}, {}, "a needs @s/c (^1)"),
        ({"": {"a": "^1"}, "/node_modules/a": {"c": "^1"}, "/../c": {}}, {}, ""),
        ({"": {"a": "^1"}}, {"dependencies": {"u": "1", "a": "1.2.3 || ^2"}}, ""),
        (
            {"": {"a": "^1"}},
            {"dependencies": {"u": "1", "a": "^2"}},
            "users would get a ^2, which @",
        ),
        ({"": {"a": "^1"}}, {"dependencies": {"u": "1", "a": "npm:b@^2"}}, ""),
        ({"": {"a": "^1"}}, {"dependencies": {"u": "1", "a": "next"}}, ""),
        ({"": {"a": "workspace:^"}}, {"peerDependencies": {"a": "1"}}, "npm does not understand"),
        ({"": {"a": "link:../a"}}, {"peerDependencies": {"a": "1"}}, "npm does not understand"),
        ({"": {"a": "file:../a"}}, {"peerDependencies": {"a": "1"}}, ""),
        # Nothing leads there.
        ({"": {}, "/../z": {"c": "^1"}, "/test/node_modules/z": {"c": "^1"}}, {}, ""),
    ],
)
def test_what_a_bundled_package_needs_is_bundled_or_installed(
    tmp_path: Path, files: dict[str, dict[str, str]], own: dict[str, Any], says: str
) -> None:
    """R63: npm and pnpm install none of the dependencies of what comes in a tarball."""
    texts = {
        posixpath.normpath(f"node_modules/u{place}/package.json"): json.dumps(
            {
                "dependencies": {**needs, "fsevents": "^2"},
                "optionalDependencies": {"fsevents": "^2"},
                "devDependencies": {"x": "workspace:^"},
            }
        )
        for place, needs in files.items()
    }
    file = javascript.tarball(tmp_path, javascript.package(), texts, **{**BUNDLES, **own})
    if not says:
        assert list(find_warnings(javascript.package(), [file])) == []
        return
    with pytest.raises(PackageError) as caught:
        list(find_warnings(javascript.package(), [file]))
    assert says in str(caught.value)
    assert caught.value.problem is Problem.UNRESOLVABLE


@pytest.mark.parametrize(
    ("bundled", "own", "says"),
    [
        ({"peerDependencies": {"a": "^1"}}, {}, "the bundled u needs a (^1), which is neither"),
        ({"peerDependencies": {"a": "^1"}}, {"peerDependencies": {"a": ">=1"}}, ""),
        ({"peerDependencies": {"a": "^1"}}, {"peerDependencies": {"a": "2"}}, "users would get"),
        (
            {"peerDependencies": {"a": "*"}, "peerDependenciesMeta": {"a": {"optional": True}}},
            {},
            "",
        ),
        ({"optionalDependencies": {"a": "catalog:"}}, {}, ""),
        ({"optionalDependencies": {"a": "catalog:"}}, {"peerDependencies": {"a": "1"}}, "npm does"),
    ],
)
def test_peers_of_a_bundled_package_are_of_the_package_around_it(
    tmp_path: Path, bundled: dict[str, Any], own: dict[str, Any], says: str
) -> None:
    """R63: npm installs them for no bundled package, and compares them with what it installs."""
    texts = {"node_modules/u/package.json": json.dumps(bundled)}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **{**BUNDLES, **own})
    if not says:
        assert list(find_warnings(javascript.package(), [file])) == []
        return
    with pytest.raises(PackageError, match=re.escape(says)):
        list(find_warnings(javascript.package(), [file]))


def test_a_bundled_package_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """R66."""
    texts = {"node_modules/u/package.json": "{"}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **BUNDLES)
    with pytest.raises(PackageError, match=r"node_modules/u/package\.json, of the bundled u"):
        list(find_warnings(javascript.package(), [file]))


@pytest.mark.parametrize("path", ["../u/index.js", "lib/../index.js", "lib\\..\\index.js"])
def test_a_path_that_npm_does_not_unpack_is_refused(tmp_path: Path, path: str) -> None:
    """R63: npm packs what lies behind a link in node_modules by such a path."""
    file = javascript.tarball(tmp_path, javascript.package(), {path: ""})
    with pytest.raises(PackageError) as caught:
        list(find_warnings(javascript.package(), [file]))
    assert f"it holds package/{path}, a path with '..'" in str(caught.value)
    assert caught.value.problem is Problem.UNRESOLVABLE


def test_ranges_of_bundled_packages_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68: a few kilobytes, packed, that took minutes to compare."""
    monkeypatch.setattr(tarball, "_MAX_COMPARED", 50_000)
    ours = "||".join(map(str, range(50)))
    theirs = "||".join([*map(str, range(100, 140)), "49"])
    names = [f"a{number}" for number in range(2)]
    texts = {
        "node_modules/u/package.json": json.dumps({"dependencies": dict.fromkeys(names, theirs)})
    }
    own = {"peerDependencies": dict.fromkeys(names, ours)}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **{**BUNDLES, **own})
    with pytest.raises(PackageError, match="needs too many long ranges"):
        list(find_warnings(javascript.package(), [file]))


def test_needs_of_bundled_packages_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68: each is looked for in every node_modules above."""
    monkeypatch.setattr(tarball, "_MAX_NEEDS", 1)
    texts = {"node_modules/u/package.json": '{"optionalDependencies": {"a": "1", "b": "1"}}'}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **BUNDLES)
    with pytest.raises(PackageError, match="needs more than 1 packages"):
        list(find_warnings(javascript.package(), [file]))


def test_a_name_in_a_bundled_package_does_not_fill_the_log(tmp_path: Path) -> None:
    """R68."""
    texts = {"node_modules/u/package.json": json.dumps({"dependencies": {"a" * 10_000: "1"}})}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **BUNDLES)
    with pytest.raises(PackageError) as caught:
        list(find_warnings(javascript.package(), [file]))
    assert len(f"{caught.value}{caught.value.hint}") < 2_000


def test_manifests_of_bundled_packages_have_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarball, "_MAX_BUNDLED_BYTES", 10)
    texts = {"node_modules/u/package.json": json.dumps({"name": "unbounded"})}
    file = javascript.tarball(tmp_path, javascript.package(), texts, **BUNDLES)
    with pytest.raises(PackageError, match="have more than 10 bytes"):
        list(find_warnings(javascript.package(), [file]))


def test_a_bundled_package_that_is_optional_may_be_of_another_platform(tmp_path: Path) -> None:
    """R63: its users work without it, and are told."""
    fields: dict[str, Any] = {
        "optionalDependencies": {"fsevents": "^2"},
        "bundleDependencies": ["fsevents"],
    }
    file = javascript.tarball(tmp_path, javascript.package(), **fields)
    (warning,) = find_warnings(javascript.package(), [file])
    assert 'bundleDependencies "fsevents"' in warning.message
    assert not warning.error
