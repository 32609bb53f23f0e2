from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from releasekit.ecosystems.go import paths


def test_versions_are_ordered_by_precedence() -> None:
    """https://semver.org/#spec-item-11"""
    ordered = [
        "nonsense",
        "v0.0.0-00010101000000-000000000000",
        "v0.9.0",
        "v1.0.0-1",
        "v1.0.0-alpha",
        "v1.0.0-alpha.1",
        "v1.0.0-alpha.beta",
        "v1.0.0-beta.2",
        "v1.0.0-beta.11",
        "v1.0.0-rc.1",
        "v1.0.0",
        "v1.2.0",
        "v1.10.0",
    ]
    as_text = sorted(ordered)
    assert as_text != ordered
    assert sorted(as_text, key=paths.parse_version) == ordered


@pytest.mark.parametrize(
    ("version", "fit"),
    [
        ("v1.2.3", True),
        ("v0.1.0-rc.1", True),
        ("1.2.3", False),
        ("v1.2", False),
        ("v01.2.3", False),
        ("v1.2.3-01", False),
        ("v2.0.0+incompatible", False),
        ("v0.0.0-20200101120000-abcdefabcdef", False),
        ("v1.2.4-0.20200101120000-abcdefabcdef", False),
    ],
)
def test_only_canonical_versions_are_released(version: str, fit: bool) -> None:
    assert paths.is_release_version(version) is fit


@pytest.mark.parametrize(
    ("path", "trouble"),
    [
        ("github.com/acme/mono", ""),
        ("github.com/Acme/mono/v2", ""),
        ("gopkg.in/yaml.v3", ""),
        ("example", "has no dot"),
        ("Example.com/x", "host name"),
        ("-a.b/c", "host name"),
        ("a.b/c//d", "does not allow"),
        ("a.b/.hidden", "does not allow"),
        ("a.b/c d", "does not allow"),
        ("a.b/aux", "Windows"),
        ("a.b/c/v1", "never uses"),
        ("a.b/c/v2.1", "not a major version"),
        ("a.b/c/v02", "not a major version"),
        ("a.b/c~1", "`~` and digits"),
        ("a.b/c~1.x/d", "`~` and digits"),
        ("a.b/c~/d~x1", ""),
        ("gopkg.in/yaml", "does not end in a major version"),
        ("gopkg.in/yaml.v03", "does not end in a major version"),
    ],
)
def test_module_paths_nobody_could_require_are_known(path: str, trouble: str) -> None:
    found = paths.trouble_with_path(path)
    assert trouble in found
    assert bool(trouble) is bool(found)


@pytest.mark.parametrize(
    ("path", "version", "instead"),
    [
        ("a.b/c", "v1.2.3", ""),
        ("a.b/c", "v0.1.0", ""),
        ("a.b/c/v2", "v2.0.0-rc.1", ""),
        ("gopkg.in/yaml.v3", "v3.1.0", ""),
        ("gopkg.in/yaml.v3", "v2.1.0", "a version of v3"),
        ("a.b/c", "v2.0.0", "`module a.b/c/v2`"),
        ("a.b/c/v2", "v3.0.0", "a version of v2, or `module a.b/c/v3`"),
        ("a.b/c/v2", "v1.0.0", "a version of v2, or `module a.b/c`"),
        ("a.b/c", "1.0", "write one like v1.2.3"),
    ],
)
def test_path_and_version_go_together(path: str, version: str, instead: str) -> None:
    found = paths.trouble_with_version(path, version)
    assert instead in found
    assert bool(instead) is bool(found)


@pytest.mark.parametrize(
    ("path", "directory", "prefix", "there"),
    [
        ("github.com/acme/mono", ".", "", True),
        ("github.com/acme/mono/v2", ".", "", True),
        ("github.com/acme/mono/v2", "v2", "", True),
        ("github.com/acme/mono/core", "core", "core/", True),
        ("github.com/acme/mono/core/v3", "core", "core/", True),
        ("github.com/acme/mono/core/v3", "core/v3", "core/", True),
        ("github.com/acme/mono/a/b", "a/b", "a/b/", True),
        ("example.com/b", "a/b", "a/b/", False),
        ("github.com/acme/other", "core", "core/", False),
    ],
)
def test_tags_begin_with_the_directory(path: str, directory: str, prefix: str, there: bool) -> None:
    """https://go.dev/ref/mod#vcs-version"""
    assert paths.tag_prefix(path, PurePosixPath(directory)) == prefix
    assert paths.is_at(path, PurePosixPath(directory)) is there


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("example.com/m", "0.1.0"),
        ("example.com/m/v2", "2.0.0"),
        ("example.com/m/v30", "30.0.0"),
        ("gopkg.in/yaml.v0", "0.1.0"),
        ("gopkg.in/yaml.v1", "1.0.0"),
        ("gopkg.in/yaml.v3", "3.0.0"),
    ],
)
def test_the_first_version_belongs_to_the_path(path: str, version: str) -> None:
    assert paths.find_first(path) == version
    assert paths.trouble_with_version(path, f"v{version}") == ""


def test_proxies_spell_capitals_their_own_way() -> None:
    assert (
        paths.escape("github.com/Azure/SDK@v1.0.0-RC1") == "github.com/!azure/!s!d!k@v1.0.0-!r!c1"
    )


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("a/b c/d-[e].go", ""),
        ("ordner/übung.go", ""),
        (".github/x", ""),
        ("a/..", "invalid path element"),
        ("a//b", "invalid path element"),
        ("a./b", "trailing dot"),
        ("a*b", "invalid char '*'"),
        ("a\u2028b", "invalid char"),
        ("x/aux.go", "reserved on Windows"),
        ("COM1", "reserved on Windows"),
    ],
)
def test_names_of_files_are_checked_as_go_does(name: str, trouble: str) -> None:
    found = paths.trouble_with_file(name)
    assert trouble in found
    assert bool(trouble) is bool(found)
