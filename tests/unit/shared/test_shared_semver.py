from __future__ import annotations

import itertools

import pytest

from releasekit.ecosystems.shared.semver import Version
from releasekit.text.semver import MAX_CHARS

# https://semver.org/#spec-item-11
ORDERED = (
    "0.0.0", "0.0.3", "0.1.0", "0.2.3", "1.0.0-0", "1.0.0-2", "1.0.0-11", "1.0.0-alpha",
    "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
    "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.2.3-beta.2", "1.2.3", "1.10.0", "2.0.0-0", "2.0.0",
    "10.0.0",
)  # fmt: skip


def test_versions_are_ordered() -> None:
    versions = [Version.parse(text) for text in ORDERED]
    assert all(low < high for low, high in itertools.pairwise(versions))
    assert len(set(versions)) == len(versions)


def test_a_build_says_nothing_about_order() -> None:
    """R16: a registry takes a version once, whatever its build."""
    one, other = Version.parse("1.2.3-rc.1+linux"), Version.parse("1.2.3-rc.1+0.mac")
    assert one == other
    assert not one < other < one
    assert (one.pre, one.build, other.build) == (("rc", 1), "linux", "0.mac")


@pytest.mark.parametrize(
    "text",
    ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3.4", "1.2.3-a..b"],
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse(text)


def test_a_version_has_a_length() -> None:
    """R40"""
    start = "1.2.3-"
    assert Version.parse(start + "9" * (MAX_CHARS - len(start))).release == (1, 2, 3)
    with pytest.raises(ValueError, match="is not a version"):
        Version.parse(start + "9" * (MAX_CHARS - len(start) + 1))


def test_a_number_of_a_version_has_an_end() -> None:
    """R40: cargo counts up to it."""
    largest = 2**64 - 1
    assert Version.parse(f"1.{largest}.0").release == (1, largest, 0)
    with pytest.raises(ValueError, match="has a number above"):
        Version.parse(f"1.{largest + 1}.0")
