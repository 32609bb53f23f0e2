"""The order is that of Maven's own ComparableVersion, asked for these very pairs."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.maven import versions

# Each is lower than the next one.
ASCENDING = (
    "1-alpha",
    "1-alpha2",
    "1-alpha-10",
    "1-beta-1",
    "1-milestone",
    "1.0-rc1",
    "1.0-rc2",
    "1.0-SNAPSHOT",
    "1.0",
    "1.0-sp",
    "1.0-abc",
    "1.0-1",
    "1.0.1",
    "1.1",
    "1.9",
    "1.10",
    "2.0-alpha-1",
    "2",
    "10",
)
EQUAL = (
    ("1", "1.0"),
    ("1.0.0", "1"),
    ("1-ga", "1"),
    ("1.0-final", "1.0"),
    ("1-a1", "1-alpha-1"),
    ("1-b2", "1-beta-2"),
    ("1-m3", "1-milestone-3"),
    ("1-cr4", "1-rc-4"),
    ("1.0-RC1", "1.0-rc1"),
    ("1.0.0-x", "1-x"),
    ("1x", "1-x"),
    ("1..1", "1.0.1"),
    ("1.0-rc1", "1.0.rc1"),
    ("1-ga1-a-1", "1-1-a-1"),  # an "a" right before a digit, but not one by itself
)


def test_versions_in_mavens_order() -> None:
    for number, one in enumerate(ASCENDING):
        for later in ASCENDING[number + 1 :]:
            assert versions.compare(one, later) == -1, (one, later)
            assert versions.compare(later, one) == 1, (one, later)


def test_what_only_looks_like_a_digit_is_a_word() -> None:
    assert versions.compare("1.\u00b2", "1.2") == -1


def test_a_separator_before_a_word_decides_nothing() -> None:
    assert versions.compare("1.0-rc2", "1.0.rc1") == 1


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_versions_that_are_the_same(one: str, other: str) -> None:
    assert versions.compare(one, other) == 0


@pytest.mark.parametrize(
    ("requirement", "version", "holds"),
    [
        ("[1.0]", "1.0", True),
        ("[1.0]", "1.0.1", False),
        ("[1.0,2.0)", "1.5", True),
        ("[1.0,2.0)", "2.0", False),
        ("(1.0,2.0]", "1.0", False),
        ("(1.0,2.0]", "2.0", True),
        ("(,1.0]", "0.1", True),
        ("[1.2,)", "99", True),
        ("(,1.0],[1.2,)", "1.1", False),
        ("(,1.0], [1.2,)", "1.2", True),
    ],
)
def test_ranges(requirement: str, version: str, holds: bool) -> None:
    assert versions.is_range(requirement)
    assert versions.contains(requirement, version) is holds


@pytest.mark.parametrize("version", ["a.1.", "a1", "1.", "0-", ".", "a.1a"])
def test_no_version_takes_long(version: str) -> None:
    """R51"""
    long = version * 5_000
    assert versions.sort_versions([f"{long}.2", long, f"{long}.1"])[0] == long


def test_no_range_takes_long() -> None:
    """R51"""
    assert versions.contains("[1]," * 20_000, "2") is False
    with pytest.raises(ValueError, match="not a version range"):
        versions.contains(f"[1,{' ' * 20_000}x", "1")


@pytest.mark.parametrize("text", ["[1.0", "1.0]", "[1.0,2.0", "[a,b,c]"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version range"):
        versions.contains(text, "1.0")


@pytest.mark.parametrize("version", ["1.0-SNAPSHOT", "1.2.3.SNAPSHOT", "1SNAPSHOT", "snapshot"])
def test_what_maven_deploys_as_a_snapshot_is_none_of_a_release(version: str) -> None:
    """R67: whatever stands before it, as ArtifactUtils.isSnapshot has it."""
    assert versions.is_snapshot(version)
    assert not versions.is_snapshot(f"{version}-1")
