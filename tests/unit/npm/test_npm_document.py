from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

import javascript
from javascript import package
from releasekit.ecosystems.npm import document, tarball
from releasekit.ecosystems.shared import archives
from releasekit.errors import ConfigError, PackageError

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.npm.tarball import Tarball

PACKAGE = package()
SHA512 = base64.b64encode(b"\xab" * 64).decode()


def contained(tmp_path: Path, files: dict[str, str] | None = None, **more: object) -> Tarball:
    with javascript.tarball(tmp_path, PACKAGE, files, **more).path.open("rb") as file:
        return tarball.read_tarball(file, "npm:@acme/core 1.0.0")


def test_what_is_sent_is_what_lies_in_the_tarball(tmp_path: Path) -> None:
    artifact = javascript.tarball(tmp_path, PACKAGE, {"README.md": "# Core", "lib/README.md": "no"})
    with artifact.path.open("rb") as file:
        found = tarball.read_tarball(file, "it")
    entry = document.make_version_entry(
        PACKAGE, found, tarball="https://x/t", digests=artifact.digests
    )
    data = artifact.path.read_bytes()
    body = json.loads(document.make_request_body(PACKAGE, entry, data, tag="next", access="public"))
    assert body["dist-tags"] == {"next": "1.0.0"}
    assert body["access"] == "public"
    assert body["readme"] == entry["readme"] == "# Core"
    (name,) = body["_attachments"]
    assert name == "@acme/core-1.0.0.tgz"
    assert base64.b64decode(body["_attachments"][name]["data"]) == data
    assert body["_attachments"][name]["length"] == len(data)
    version = body["versions"]["1.0.0"]
    assert version["_id"] == "@acme/core@1.0.0"
    assert document.find_digest(version["dist"]) == f"sha512:{artifact.digests['sha512']}"
    assert document.find_digest({"shasum": version["dist"]["shasum"]}).startswith("sha1:")
    assert "access" not in json.loads(
        document.make_request_body(PACKAGE, entry, data, tag="latest", access="")
    )


@pytest.mark.parametrize(
    ("files", "manifest", "expected"),
    [
        ({}, {"bin": "x.js"}, {"bin": {"core": "x.js"}}),
        ({}, {"bundledDependencies": ["a"]}, {"bundleDependencies": ["a"]}),
        (
            {"binding.gyp": ""},
            {"scripts": {"test": "t"}},
            {"scripts": {"test": "t", "install": "node-gyp rebuild"}, "gypfile": True},
        ),
        ({"binding.gyp": ""}, {"scripts": {"install": "i"}}, {"scripts": {"install": "i"}}),
        ({"binding.gyp": ""}, {"gypfile": False, "scripts": {"a": 7}}, {"scripts": {}}),
        ({"npm-shrinkwrap.json": "{}"}, {}, {"_hasShrinkwrap": True}),
        ({}, {"bin": ["./a/x.js", "/../y.js"]}, {"bin": {"x.js": "a/x.js", "y.js": "y.js"}}),
        (
            {"cli/run": "", "cli/.hidden": "", "other": ""},
            {"directories": {"bin": "./cli"}},
            {"bin": {"run": "cli/run"}},
        ),
        ({"man/a.1": "", "man/a.md": ""}, {"directories": {"man": "man"}}, {"man": ["man/a.1"]}),
        ({"lib/a.d.ts": ""}, {"main": "./lib/a.js"}, {"types": "./lib/a.d.ts"}),
        ({"lib/a.d.ts": ""}, {"main": "lib/a", "types": "b"}, {"types": "b"}),
        (
            {},
            {"dependencies": {"a": "1"}, "bundledDependencies": True},
            {"bundleDependencies": ["a"]},
        ),
        (
            {},
            {
                "dependencies": {"a": "1"},
                "bundleDependencies": None,
                "bundledDependencies": True,
            },
            {"bundleDependencies": ["a"]},
        ),
        (
            {},
            {"repository": "acme/core"},
            {
                "repository": {"type": "git", "url": "git+https://github.com/acme/core.git"},
                "bugs": {"url": "https://github.com/acme/core/issues"},
                "homepage": "https://github.com/acme/core#readme",
            },
        ),
        ({}, {"bugs": "a@b.example", "homepage": "b.example"}, {"bugs": {"email": "a@b.example"}}),
        (
            {},
            {"author": "A B <a@b.example> (https://b.example)"},
            {"author": {"name": "A B", "email": "a@b.example", "url": "https://b.example"}},
        ),
        (
            {},
            {"contributors": [{"name": "A", "web": "x"}]},
            {"contributors": [{"name": "A", "url": "x"}]},
        ),
        ({}, {"keywords": "a, b"}, {"keywords": ["a", "b"]}),
        ({"README.md": "# Core\n\nIt is\nsmall.\n\nMore."}, {}, {"description": "It is small."}),
        ({"server.js": ""}, {}, {"scripts": {"start": "node server.js"}}),
        ({}, {"scripts": {"t": "./node_modules/.bin/t"}}, {"scripts": {"t": "t"}}),
    ],
)
def test_manifests_are_spelled_as_clients_read_them(
    tmp_path: Path, files: dict[str, str], manifest: dict[str, object], expected: dict[str, object]
) -> None:
    found = contained(tmp_path, files, **{"_private": 1, **manifest}).shown
    assert "_private" not in found
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"bundleDependencies": None, "bundledDependencies": True},
        {"bundleDependencies": {"a": "1"}},
        {"bundledDependencies": ["a"]},
    ],
)
def test_what_is_said_to_be_bundled_has_to_be_in_the_tarball(
    tmp_path: Path, fields: dict[str, object]
) -> None:
    contents = contained(tmp_path, None, dependencies={"a": "1"}, **fields)
    assert contents.shown["bundleDependencies"] == ["a"]
    with pytest.raises(PackageError, match="has no node_modules/a"):
        tarball.refuse_unresolvable(contents, "it")


def test_the_readme_of_a_manifest_is_shown_before_the_file(tmp_path: Path) -> None:
    contents = contained(tmp_path, {"README.md": "# The file"}, readme="# The field")
    digests = {"sha512": "ab" * 64, "sha1": "cd" * 20}
    entry = document.make_version_entry(PACKAGE, contents, tarball="https://x/t", digests=digests)
    assert entry["readme"] == "# The field"


@pytest.mark.parametrize(
    "data", [b"", b"no archive", gzip.compress(b"no archive"), gzip.compress(b"x" * 2000)[:60]]
)
def test_what_is_no_tarball_is_said_to_be_none(data: bytes) -> None:
    told = r"it: .*not a tarball of an npm package|no package\.json"
    with pytest.raises(PackageError, match=told):
        tarball.read_tarball(io.BytesIO(data), "it")


def test_a_tarball_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="not a tarball of an npm package"):
        contained(tmp_path, {"package.json": "[]"})
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w:gz"):
        pass
    empty.seek(0)
    with pytest.raises(PackageError, match=r"there is no package\.json in it"):
        tarball.read_tarball(empty, "it")


def test_a_tarball_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(archives, "MAX_FILES", 1)
    with pytest.raises(PackageError, match="more than 1 files"):
        contained(tmp_path, {"a": "", "b": "", "c": ""})


@pytest.mark.parametrize(
    ("dist", "digest"),
    [
        ({}, ""),
        ({"shasum": "AB" * 20}, f"sha1:{'ab' * 20}"),
        ({"shasum": 7}, ""),
        ({"integrity": f"sha1-qrs= sha512-{SHA512}?x"}, f"sha512:{'ab' * 64}"),
        ({"integrity": "sha512-!", "shasum": "ab" * 20}, f"sha1:{'ab' * 20}"),
        ({"integrity": f"sha512-{SHA512 * 10_000}", "shasum": "ab" * 1_000_000}, ""),
        ({"integrity": "sha512-q80=", "shasum": "xy" * 20}, ""),
    ],
)
def test_digests_of_a_packument(dist: dict[str, object], digest: str) -> None:
    assert document.find_digest(dist) == digest


@pytest.mark.parametrize(
    ("version", "latest", "tag"),
    [
        ("1.0.0", "", "latest"),
        ("1.0.0", "0.9.0", "latest"),
        ("1.0.0", "1.0.0", "latest"),
        ("1.0.0", "2.0.0-beta.1", "latest"),
        ("1.0.0", "unknown", "latest"),
        ("1.4.1", "2.0.0", "release-1.x"),
        ("0.3.1", "0.4.0", "release-0.3.x"),
        ("2.0.0-beta.1", "1.0.0", "beta"),
        ("2.0.0-1", "1.0.0", "next"),
        ("2.0.0-1.rc", "1.0.0", "rc"),
        ("2.0.0-latest", "1.0.0", "next"),
        ("2.0.0-x", "1.0.0", "next"),
        ("2.0.0-v1", "1.0.0", "next"),
    ],
)
def test_only_what_is_newest_becomes_latest(version: str, latest: str, tag: str) -> None:
    assert document.choose_tag(version, latest=latest) == tag


def test_the_input_goes_before_the_manifest() -> None:
    manifest = {"publishConfig": {"tag": "own"}}
    assert document.find_given_tag("lts", manifest, where="x") == "lts"
    assert document.find_given_tag("", manifest, where="x") == "own"
    assert document.find_given_tag("", {"publishConfig": 7}, where="x") == ""
    assert document.find_given_tag("", {}, where="x") == ""


@pytest.mark.parametrize("tag", ["1.x", "v2", "a b", "*", "^1", "a/b"])
def test_what_reads_as_a_range_is_no_tag(tag: str) -> None:
    with pytest.raises(ConfigError, match="is not a dist-tag"):
        document.check_tag(tag, where="npm-tag")
