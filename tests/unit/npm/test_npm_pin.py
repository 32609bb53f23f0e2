from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from javascript import ecosystem, write
from releasekit.ecosystems.npm.pin import Keys, replace_strings
from releasekit.errors import PlanError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

YAML = """\
packages: ['*']
catalog: {core: ^1.0.0, chalk: ^5.3.0}
catalogs: {dev: {core: 'workspace:~'}}
"""
VERSIONS = {"core": "1.2.0", "web": "2.0.0"}


def pinned(tmp_path: Path, text: str, *, mode: str = "auto", space: str = YAML) -> str:
    files = {
        "pnpm-workspace.yaml": space,
        "core/package.json": {"name": "core", "version": "1.2.0"},
        "tools/package.json": {"name": "tools", "private": True},
        "web/package.json": text,
    }
    if not space:
        del files["pnpm-workspace.yaml"]
        if not (tmp_path / "package.json").exists():
            files["package.json"] = {"workspaces": ["*"]}
    root = write(tmp_path, files)
    workspace = asyncio.run(ecosystem(root, pin=mode).discover(root))
    return workspace.pin(text, VERSIONS)


@pytest.mark.parametrize("spec", ["file:.", "./", "workspace:."])
def test_a_package_that_needs_itself_by_its_path_is_refused(tmp_path: Path, spec: str) -> None:
    """R63: what users would get is a path on their own machine."""
    with pytest.raises(PlanError, match=r"dependencies\.self is .*, which users cannot install"):
        pinned(tmp_path, web("dependencies", "self", spec))


def web(field: str, key: str, spec: str) -> str:
    return json.dumps({"name": "web", "version": "2.0.0", field: {key: spec}})


@pytest.mark.parametrize(
    ("field", "spec", "auto", "exact", "none"),
    [
        ("dependencies", "workspace:*", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "workspace:", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "workspace:^", "^1.2.0", "1.2.0", "^1.2.0"),
        ("dependencies", "workspace:~", "~1.2.0", "1.2.0", "~1.2.0"),
        ("dependencies", "workspace:^1.0.0", "^1.0.0", "1.2.0", "^1.0.0"),
        ("dependencies", "workspace:../core", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "workspace:core", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "workspace:libs/core", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "link:../core", "1.2.0", "1.2.0", "1.2.0"),
        ("dependencies", "catalog:", "^1.0.0", "1.2.0", "^1.0.0"),
        ("dependencies", "catalog:dev", "~1.2.0", "1.2.0", "~1.2.0"),
        ("dependencies", "*", "1.2.0", "1.2.0", "*"),
        ("dependencies", "^1.1", "^1.1", "1.2.0", "^1.1"),
        ("dependencies", "^2.0.0", "^2.0.0", "^2.0.0", "^2.0.0"),
        ("dependencies", "latest", "latest", "1.2.0", "latest"),
        ("optionalDependencies", "*", "1.2.0", "1.2.0", "*"),
        ("peerDependencies", "*", "*", "*", "*"),
        ("peerDependencies", ">=1", ">=1", ">=1", ">=1"),
        ("peerDependencies", "^2", "^2", "^2", "^2"),
        ("peerDependencies", "workspace:^", "^1.2.0", "^1.2.0", "^1.2.0"),
        ("devDependencies", "workspace:*", "1.2.0", "1.2.0", "1.2.0"),
        ("devDependencies", "^9", "^9", "^9", "^9"),
    ],
)
def test_pins(tmp_path: Path, field: str, spec: str, auto: str, exact: str, none: str) -> None:
    text = web(field, "core", spec)
    for mode, expected in (("auto", auto), ("exact", exact), ("none", none)):
        changed = pinned(tmp_path, text, mode=mode)
        assert changed == text.replace(json.dumps(spec), json.dumps(expected))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("workspace:>= || ^3.9.0", ">=1.2.0 || ^3.9.0"),
        ("workspace:^ || ^0.9", "^1.2.0 || ^0.9"),
        ("workspace:* || ^3", "1.2.0 || ^3"),
        ("^0.9.0||workspace:~", "^0.9.0||~1.2.0"),
        ("workspace:^1.0.0 || workspace:^2", "^1.0.0 || ^2"),
        ("workspace:^1.0.0 || *", "^1.0.0 || *"),
        ("workspace:>=1 || ^2", ">=1 || ^2"),
    ],
)
def test_each_alternative_of_a_peer_may_lead_to_the_workspace(
    tmp_path: Path, spec: str, expected: str
) -> None:
    """As pnpm packs them; never a bare operator, which admits every version. R63."""
    changed = json.loads(pinned(tmp_path, web("peerDependencies", "core", spec)))
    assert changed["peerDependencies"] == {"core": expected}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("workspace:core@^", "npm:core@^1.2.0"),
        ("npm:core@^1.0.0", "npm:core@^1.0.0"),
        ("npm:core", "npm:core@1.2.0"),
        ("npm:core@1.1.0", "npm:core@1.1.0"),
        ("npm:chalk@^5", "npm:chalk@^5"),
    ],
)
def test_aliases_stay_aliases(tmp_path: Path, spec: str, expected: str) -> None:
    changed = json.loads(pinned(tmp_path, web("dependencies", "other", spec)))
    assert changed["dependencies"] == {"other": expected}


def test_ranges_of_others_come_from_the_catalog(tmp_path: Path) -> None:
    changed = json.loads(pinned(tmp_path, web("dependencies", "chalk", "catalog:default")))
    assert changed["dependencies"] == {"chalk": "^5.3.0"}


DEFAULT, NAMED = {"core": "^1.0.0"}, {"dev": {"core": "workspace:~"}}
INNER: dict[str, object] = {"catalog": DEFAULT, "catalogs": NAMED}
OTHER = {"catalog": {"core": "9"}, "catalogs": {"dev": {"core": "9"}, "more": {"core": "9"}}}


@pytest.mark.parametrize(
    "fields",
    [
        {"workspaces": ["*"], **INNER},
        {"workspaces": {"packages": ["*"]}, **INNER},
        {"workspaces": {"packages": ["*"], **INNER}},
        {"workspaces": {"packages": ["*"], **INNER}, **OTHER},
        {"workspaces": ["*"], "catalogs": {**NAMED, "default": DEFAULT}},
        {"workspaces": ["*"], "catalog": {"x": "1"}, "catalogs": {**NAMED, "default": DEFAULT}},
        {"workspaces": ["*"], "packageManager": "npm@11.0.0", **INNER},
    ],
)
def test_bun_has_its_catalogs_in_package_json(tmp_path: Path, fields: dict[str, object]) -> None:
    """R36, R66: below `workspaces` alone, where there are any."""
    write(tmp_path, {"package.json": fields})
    for spec, expected in (("catalog:", "^1.0.0"), ("catalog: dev ", "~1.2.0")):
        changed = pinned(tmp_path, web("dependencies", "core", spec), space="")
        assert json.loads(changed)["dependencies"] == {"core": expected}
    with pytest.raises(PlanError, match="that catalog has no such entry"):
        pinned(tmp_path, web("dependencies", "core", "catalog:more"), space="")


def test_what_is_no_catalog_of_bun_means_nothing(tmp_path: Path) -> None:
    fields = {"workspaces": ["*"], "catalog": "file.yaml", "catalogs": {"dev": 7, "x": {"core": 7}}}
    write(tmp_path, {"package.json": fields})
    kept = web("dependencies", "core", "^1.0.0")
    assert pinned(tmp_path, kept, space="") == kept
    for spec in ("catalog:", "catalog:dev", "catalog:x"):
        with pytest.raises(PlanError, match="that catalog has no such entry"):
            pinned(tmp_path, web("dependencies", "core", spec), space="")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("workspace:^", "^1.2.0"), ("link:../core", "1.2.0"), ("catalog:dev", "~1.2.0"),
        ("*", "*"), ("^9", "^9"),
    ],
)  # fmt: skip
def test_a_bundled_package_asks_for_no_more_than_it_did(
    tmp_path: Path, spec: str, expected: str
) -> None:
    """Its tarball brings the package along; but nobody outside understands `workspace:`."""
    document = json.loads(web("dependencies", "core", spec)) | {"bundleDependencies": ["core"]}
    files = {"web/package.json": json.dumps(document)}
    write(tmp_path, files)
    assert json.loads(pinned(tmp_path, files["web/package.json"]))["dependencies"] == {
        "core": expected
    }


def test_a_private_tool_without_a_version_may_be_anything(tmp_path: Path) -> None:
    changed = json.loads(pinned(tmp_path, web("devDependencies", "tools", "workspace:^")))
    assert changed["devDependencies"] == {"tools": "*"}


@pytest.mark.parametrize(
    ("key", "spec", "words"),
    [
        ("core", "workspace:>=1.3", "npm:web requires core 'workspace:>=1.3', but the workspace"),
        ("chalk", "catalog:old", "npm:web: chalk is 'catalog:old', and that catalog has no such"),
        ("gone", "workspace:*", "no package of this workspace is named 'gone'"),
        (
            "gone",
            "workspace:../gone",
            "npm:web: gone is 'workspace:../gone', and the path does not exist",
        ),
        ("gone", "file:../gone", "npm:web: gone is 'file:../gone', and the path does not exist"),
    ],
)
def test_what_cannot_be_published_is_refused(
    tmp_path: Path, key: str, spec: str, words: str
) -> None:
    with pytest.raises(PlanError) as caught:
        pinned(tmp_path, web("dependencies", key, spec))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        *("file:../out", "link:../out", "portal:../out", "../out", "/", "link:./inside"),
        *("patch:x@npm%3A4.17.21#./p.patch", "exec:./g.js", "runtime:^22", "jsr:1", "ftp://x.y/z"),
        *(
            "workspace:foo || ^1",
            "npm:x@workspace:*",
            "git+file:///srv/x",
            "svn+ssh://x.y/z",
            "C:/x",
            "./vendor/x.tgz",
        ),
        "catalog:patched",
    ],
)
@pytest.mark.parametrize("field", ["dependencies", "optionalDependencies", "peerDependencies"])
def test_what_npm_cannot_install_stops_the_plan(tmp_path: Path, field: str, spec: str) -> None:
    """R63: as npm-package-arg reads a spec; nothing that is there only here helps users."""
    write(tmp_path, {"out/x.js": "", "web/inside/x.js": "", "web/vendor/x.tgz": ""})
    space = YAML.replace("{dev:", "{patched: {x: 'patch:x@npm%3A1.0.0#./x.patch'}, dev:")
    with pytest.raises(PlanError, match=rf"package\.json: {field}\.x is .*users cannot") as caught:
        pinned(tmp_path, web(field, "x", spec), space=space)
    assert caught.value.problem is Problem.CANNOT_PIN


@pytest.mark.parametrize(
    ("key", "spec", "expected"),
    [
        ("@std/path", "jsr:^1.0.0", "npm:@jsr/std__path@^1.0.0"),
        ("@std/path", "jsr:latest", "npm:@jsr/std__path@latest"),
        ("@std/path", "jsr:", "npm:@jsr/std__path"),
        ("p", "jsr:@std/path@1", "npm:@jsr/std__path@1"),
        ("p", "jsr:@std/path", "npm:@jsr/std__path"),
        *(
            ("x", spec, spec)
            for spec in [
                *("latest", "a/b", "a/b#semver:^1", "github:a/b", "git@github.com:a/b.git"),
                *("git+ssh://git@x.y/a/b.git#v1", "https://x.y/z.tgz", "git://x.y/z", "gist:1a"),
                *("npm:y@latest", "file:./vendor", "./vendor"),
            ]
        ),
    ],
)
def test_what_npm_can_install_goes_out_as_pnpm_packs_it(
    tmp_path: Path, key: str, spec: str, expected: str
) -> None:
    """R63: `jsr:` is written as pnpm and yarn write it. A directory may be in the tarball."""
    write(tmp_path, {"web/vendor/package.json": {"name": "x"}})
    for field in ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies"):
        text = web(field, key, spec)
        assert json.loads(pinned(tmp_path, text))[field] == {key: expected}


@pytest.mark.parametrize("spec", ["patch:x@npm%3A1.0.0#./p.patch", "link:../out", "runtime:^22"])
def test_what_users_do_not_install_may_be_anything(tmp_path: Path, spec: str) -> None:
    """R63: npm takes nothing for development, and what is bundled comes from the tarball."""
    for text in (
        web("devDependencies", "x", spec),
        json.dumps(json.loads(web("dependencies", "x", spec)) | {"bundleDependencies": ["x"]}),
    ):
        assert pinned(tmp_path, text) == text


def test_a_bare_path_leads_to_a_package_of_the_workspace(tmp_path: Path) -> None:
    """R63: npm takes `../core` for `file:../core`."""
    for field in ("dependencies", "peerDependencies"):
        changed = json.loads(pinned(tmp_path, web(field, "core", "../core")))
        assert changed[field] == {"core": "1.2.0"}


def test_the_cure_of_a_refusal_is_one_that_works(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        pinned(tmp_path, web("peerDependencies", "core", "workspace:^2"))
    assert caught.value.hint == (
        "Widen the requirement so that it holds 1.2.0, or leave the package out: "
        "`exclude-packages: npm:web`."
    )


def test_a_private_tool_without_a_version_is_in_no_range(tmp_path: Path) -> None:
    for spec in ("^1", "workspace:^1"):
        text = web("optionalDependencies", "tools", spec)
        assert json.loads(pinned(tmp_path, text))["optionalDependencies"] == {"tools": "^1"}


def test_everything_else_is_kept_to_the_byte(tmp_path: Path) -> None:
    """R24: byte order mark, CRLF, order, escapes, and strings that only look like dependencies."""
    text = (
        '\ufeff{\r\n\t"name" : "web", "version":"2.0.0",\r\n'
        '  "scripts": {"core": "workspace:*"}, "keywords": ["workspace:*", {"core": "*"}],\r\n'
        '  "dependencies": {\r\n   "cor\\u0065":   "work\\u0073pace:^" , "z": "1" }, "x": 1.5e3,\r'
        '  "nested": {"dependencies": {"core": "workspace:*"}}, "core": "workspace:*", "t": true}'
    )
    assert pinned(tmp_path, text) == text.replace('"work\\u0073pace:^"', '"^1.2.0"')


def test_the_manifest_of_a_stranger_is_left_alone(tmp_path: Path) -> None:
    text = '{"name": "stranger", "dependencies": {"core": "*"}}'
    root = write(tmp_path, {"package.json": {"name": "core", "version": "1.2.0"}})
    assert asyncio.run(ecosystem(root).discover(root)).pin(text, VERSIONS) == text


CONFIG = {"access": "public", "main": "dist/index.js", "types": "dist/index.d.ts"}
EVERY = {
    "bin": "b.js", "browser": "b", "cpu": ["x64"], "engines": {"node": "24"}, "es2015": "e",
    "esnext": "e", "exports": {".": "./d.js"}, "imports": {"#a": "./a.js"}, "libc": ["musl"],
    "main": "m", "module": "m", "os": ["linux"], "type": "module", "types": "t",
    "typesVersions": {"*": {}}, "typings": "t", "umd:main": "u", "unpkg": "u",
}  # fmt: skip
YARN = {"bin", "browser", "exports", "imports", "main", "module", "type", "types", "typings"}


@pytest.mark.parametrize(
    ("space", "more", "moved"),
    [(YAML, {}, EVERY.keys()), ("", {".yarnrc.yml": ""}, YARN), ("", {}, set())],
    ids=["pnpm", "yarn", "npm"],
)
def test_every_field_is_overridden_that_its_tool_overrides(
    tmp_path: Path, space: str, more: dict[str, object], moved: set[str]
) -> None:
    write(tmp_path, more)
    document = {"name": "web", "version": "2.0.0", "main": "old", "publishConfig": EVERY}
    changed = json.loads(pinned(tmp_path, json.dumps(document), space=space))
    kept = changed.pop("publishConfig", {})
    assert {key: value for key, value in EVERY.items() if key in moved}.items() <= changed.items()
    assert kept.keys() == EVERY.keys() - moved
    assert changed["main"] == ("m" if moved else "old")


@pytest.mark.parametrize(
    ("space", "more", "expected"),
    [
        (YAML, {}, {"main": "dist/index.js", "types": "dist/index.d.ts", "access": "public"}),
        (
            "",
            {".yarnrc.yml": ""},
            {"main": "dist/index.js", "types": "dist/index.d.ts", "access": "public"},
        ),
        ("", {}, {"main": "src/index.ts", "types": None, "access": "public"}),
    ],
    ids=["pnpm", "yarn", "npm"],
)
def test_publish_config_is_applied_as_its_tool_does(
    tmp_path: Path, space: str, more: dict[str, object], expected: dict[str, object]
) -> None:
    write(tmp_path, more)
    document = {"name": "web", "version": "2.0.0", "main": "src/index.ts", "publishConfig": CONFIG}
    text = json.dumps(document, indent=4)
    changed = pinned(tmp_path, text, space=space)
    found = json.loads(changed)
    assert found["main"] == expected["main"]
    assert found.get("types") == expected["types"]
    assert found["publishConfig"]["access"] == "public"
    assert ('\n    "main"' in changed) is True


def test_nothing_is_left_of_a_publish_config_that_only_overrides(tmp_path: Path) -> None:
    document = {"name": "web", "version": "2.0.0", "publishConfig": {"main": "dist/index.js"}}
    changed = json.loads(pinned(tmp_path, json.dumps(document)))
    assert changed == {"name": "web", "version": "2.0.0", "main": "dist/index.js"}


def test_strings_of_lists_have_no_path() -> None:
    seen = []

    def note(path: Keys, value: str) -> str:
        seen.append((path, value))
        return value

    text = '{"a": "1", "b": [{"c": "2"}, "3", ["4"]], "d": {"e": "5"}, "f": "6"}'
    assert replace_strings(text, note) == text
    assert seen == [(("a",), "1"), (("d", "e"), "5"), (("f",), "6")]
    assert replace_strings('"alone"', note) == '"alone"'
