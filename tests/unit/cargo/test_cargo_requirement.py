"""Requirements of cargo, as the semver crate decides them."""

from __future__ import annotations

import pytest

from releasekit.ecosystems.cargo.requirement import Requirement, normalised
from releasekit.ecosystems.shared.semver import Version

# https://docs.rs/semver/latest/semver/enum.Op.html
# and https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html
CASES = {
    "1.2.3": ("1.2.3 1.2.4 1.9.0", "1.2.2 2.0.0 1.3.0-rc.1 1.2.3-rc.1"),
    "^1.2": ("1.2.0 1.9.9", "1.1.9 2.0.0"),
    "1": ("1.0.0 1.9.9", "0.9.9 2.0.0"),
    "0.2.3": ("0.2.3 0.2.9", "0.2.2 0.3.0"),
    "^0.0.3": ("0.0.3", "0.0.2 0.0.4"),
    "0.0": ("0.0.0 0.0.9", "0.1.0"),
    "0": ("0.0.0 0.9.0", "1.0.0"),
    "~1.2.3": ("1.2.3 1.2.9", "1.2.2 1.3.0"),
    "~1.2": ("1.2.0 1.2.9", "1.3.0"),
    "~1": ("1.0.0 1.9.0", "2.0.0"),
    "=1.2.3": ("1.2.3 1.2.3+build", "1.2.4 1.2.3-rc.1"),
    "=1.2": ("1.2.0 1.2.9", "1.3.0 1.1.0"),
    "= 1": ("1.0.0 1.9.9", "2.0.0"),
    ">1.2.3": ("1.2.4 2.0.0", "1.2.3 1.2.2"),
    ">1.2": ("1.3.0 2.0.0", "1.2.9"),
    ">1": ("2.0.0", "1.9.9"),
    ">=1.2": ("1.2.0 3.0.0", "1.1.9 2.0.0-rc.1"),
    "<1.2": ("1.1.9", "1.2.0 1.2.0-rc.1"),
    "<=1.2": ("1.2.9 1.0.0", "1.3.0"),
    "<=1.2.3": ("1.2.3 1.2.2", "1.2.4"),
    "<=1": ("1.9.9 0.1.0", "2.0.0"),
    "*": ("0.0.0 9.9.9", "1.0.0-rc.1"),
    "1.*": ("1.0.0 1.9.9", "2.0.0"),
    "*, <2": ("0.0.0 1.9.9", "2.0.0"),
    "1.2.x": ("1.2.0 1.2.9", "1.3.0"),
    "1.2.*": ("1.2.0", "1.1.0"),
    ">=1.2, <1.5": ("1.2.0 1.4.9", "1.5.0 1.1.0"),
    ">=1.2.0-rc.1": ("1.2.0-rc.1 1.2.0-rc.2 1.2.0 1.3.0", "1.2.0-beta 1.3.0-rc.1"),
    "1.2.0-rc.1": ("1.2.0-rc.1 1.2.0 1.4.0", "1.2.0-alpha 2.0.0"),
    "=1.0.0-rc.1": ("1.0.0-rc.1", "1.0.0 1.0.0-rc.2"),
    ">1.0.0-alpha, <1.0.0": ("1.0.0-beta", "1.0.0-alpha 1.0.0"),
    "1.2.3+next": ("1.2.3 1.9.0", "1.2.2 2.0.0"),
    # No shortened version holds a prerelease of what it stands for, but with a caret.
    "1.2.0-alpha, <1.2": ("", "1.2.0-beta"),
    "1.2.0-alpha, <=1.2": ("", "1.2.0-beta"),
    "1.2.0-alpha, >=1.2": ("1.2.0 1.3.0", "1.2.0-beta"),
    "1.2.0-alpha, ~1.2": ("1.2.0", "1.2.0-beta"),
    "1.2.0-alpha, =1": ("1.2.0", "1.2.0-beta"),
    "1.2.0-alpha, ^1": ("1.2.0 1.2.0-beta", "1.3.0-beta"),
    "1.2.0-alpha, 1.2": ("1.2.0 1.2.0-beta", "1.1.0"),
    "1.2.0-alpha, >1.1": ("1.2.0 1.2.0-beta", "1.1.9"),
}


@pytest.mark.parametrize("requirement", CASES)
def test_what_a_requirement_holds_and_what_not(requirement: str) -> None:
    inside, outside = (map(Version.parse, text.split()) for text in CASES[requirement])
    parsed = Requirement.parse(requirement)
    assert [version for version in inside if not parsed.matches(version)] == []
    assert [version for version in outside if parsed.matches(version)] == []


@pytest.mark.parametrize("text", ["one", "1.2.3.4", ">>1", "1,", "", "1.2 || 2", "1.2-rc.1"])
def test_what_is_no_requirement(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version requirement"):
        Requirement.parse(text)


@pytest.mark.parametrize(
    ("written", "index"),
    [
        ("1.2", "^1.2"),
        ("^1", "^1"),
        ("= 1.2.3", "=1.2.3"),
        (">=1,<2", ">=1, <2"),
        ("~1", "~1"),
        ("1.*", "1.*"),
        ("*", "*"),
        ("1.0.0-x", "^1.0.0-x"),
        ("1.0.0+next", "^1.0.0"),
    ],
)
def test_the_index_has_requirements_as_cargo_writes_them(written: str, index: str) -> None:
    assert normalised(written) == index
