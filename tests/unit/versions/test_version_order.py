"""Which of two versions is the later one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from releasekit.text.version_order import is_stable, version_key


@pytest.mark.parametrize(
    "versions",
    [
        # https://semver.org/#spec-item-11
        "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11",
        "1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.0.30 1.2.0 2.0.0 10.0.0",
        "0.0.0-20190101000000 0.0.0-canary.9 0.0.0-canary.10 0.0.0-next.1 0.0.0",
        "1.0.0-alpha2 1.0.0-alpha10 1.0.0-beta1 1.0.0",
        # https://packaging.python.org/en/latest/specifications/version-specifiers/
        "1.0.dev1 1.0a1.dev1 1.0a1 1.0a2 1.0a12 1.0b1 1.0rc1 1.0",
        "1.0 1.0.post1.dev1 1.0.post1 1.0.post2 1.1.dev1 1.1 1!0.1",
        "1.0 1.0-1 1.0-2",
        # https://maven.apache.org/pom.html#version-order-specification
        "1.0-alpha-1 1.0-beta-1 1.0-milestone-2 1.0-rc-1-SNAPSHOT 1.0-rc-1 1.0-SNAPSHOT 1.0 1.0-sp",
        "1.0.0.Beta1 1.0.0.CR1 1.0.0.Final 1.0.0.SP1 1.0.1.Final",
        "32.0.0-jre 33.0.0-jre",
        "2023-12-31 2024-01-02 2024-01-15",
        "latest 0.0.0-a",
        "v1.2.3 v1.2.30",
        f"1.{'9' * 4999}.0 1.1{'0' * 4999}.0",
    ],
)
def test_later_versions_come_later(versions: str) -> None:
    for earlier, later in pairwise(versions.split()):
        assert version_key(earlier) < version_key(later), (earlier, later)
        assert not version_key(later) < version_key(earlier), (earlier, later)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.0", "1.0.0"),
        ("v1.2.3", "1.2.3"),
        ("1.0.0.Final", "1.0.0"),
        ("1.0.0+build.7", "1.0.0"),
        ("1.0.0-rc.1", "1.0.0rc1"),
        ("1.0c1", "1.0rc1"),
        ("1.0-rev2", "1.0.post2"),
        ("01.002", "1.2"),
    ],
)
def test_spellings_of_one_version_are_equal(one: str, other: str) -> None:
    assert version_key(one) == version_key(other)


@pytest.mark.parametrize(
    ("version", "stable"),
    [
        *((each, True) for each in ("1.0.0", "0.1.0", "v2.0.0", "1.0.post1", "1.0-1", "2024.1.15")),
        *((each, True) for each in ("1.0.0.Final", "33.0.0-jre", "1.0-sp", "5.3.1.RELEASE")),
        *((each, False) for each in ("1.0.0-1", "1.0.0-rc.1", "1.0a1", "1.0.dev1", "1.0-SNAPSHOT")),
        *((each, False) for each in ("1.0.post1.dev1", "v0.0.0-20240101000000-abcdefabcdef")),
        *((each, False) for each in ("1.0.0-canary.1", "latest", "")),
    ],
)
def test_what_is_for_everybody_is_stable(version: str, stable: bool) -> None:
    assert is_stable(version) is stable
