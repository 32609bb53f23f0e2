from __future__ import annotations

import pytest

from releasekit.ecosystems.npm.reference import Range, Reference, respell
from releasekit.ecosystems.shared.semver import Version

ORDERED = [
    "0.0.0", "0.0.3", "0.1.0", "0.2.3", "1.0.0-0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.11",
    "1.0.0", "1.2.2", "1.2.3-beta.2", "1.2.3", "1.2.4-rc.1", "1.9.9", "2.0.0-0", "2.0.0", "10.0.0",
]  # fmt: skip

# Range, and the versions of ORDERED that node-semver 7.7 says it holds.
RANGES = {
    "": "0.0.0 0.0.3 0.1.0 0.2.3 1.0.0 1.2.2 1.2.3 1.9.9 2.0.0 10.0.0",
    "*": "0.0.0 0.0.3 0.1.0 0.2.3 1.0.0 1.2.2 1.2.3 1.9.9 2.0.0 10.0.0",
    ">=*": "0.0.0 0.0.3 0.1.0 0.2.3 1.0.0 1.2.2 1.2.3 1.9.9 2.0.0 10.0.0",
    ">*": "",
    "1": "1.0.0 1.2.2 1.2.3 1.9.9",
    "1.2.x": "1.2.2 1.2.3",
    "=1.2.3": "1.2.3",
    "v1.2.3": "1.2.3",
    "^1.2.3": "1.2.3 1.9.9",
    "^0": "0.0.0 0.0.3 0.1.0 0.2.3",
    "^0.0": "0.0.0 0.0.3",
    "^0.0.3": "0.0.3",
    "^0.2.3": "0.2.3",
    "^1.2.3-beta.2": "1.2.3-beta.2 1.2.3 1.9.9",
    "~1": "1.0.0 1.2.2 1.2.3 1.9.9",
    "~1.2": "1.2.2 1.2.3",
    "~>1.2.3": "1.2.3",
    ">1": "2.0.0 10.0.0",
    ">1.2": "1.9.9 2.0.0 10.0.0",
    "1.2.4-alpha - 2": "1.2.4-rc.1 1.9.9 2.0.0",
    ">=1.2.4-alpha >1.2": "1.9.9 2.0.0 10.0.0",
    ">=1.0.0-alpha ~1": "1.0.0 1.2.2 1.2.3 1.9.9",
    "1.2.x+build": "1.2.2 1.2.3",
    "~ 1.2.3beta": "1.2.3-beta.2 1.2.3",
    "1.2.3beta.2 - 1.2.4rc.1": "1.2.3-beta.2 1.2.3 1.2.4-rc.1",
    "<1": "0.0.0 0.0.3 0.1.0 0.2.3",
    "<=1.2": "0.0.0 0.0.3 0.1.0 0.2.3 1.0.0 1.2.2 1.2.3",
    ">=1.2 <2": "1.2.2 1.2.3 1.9.9",
    "> 1.2.3-beta.1 <= 1.2.3": "1.2.3-beta.2 1.2.3",
    ">=1.2": "1.2.2 1.2.3 1.9.9 2.0.0 10.0.0",
    "1.0.0 - 1.2": "1.0.0 1.2.2 1.2.3",
    "^0.1 || 2": "0.1.0 2.0.0",
    ">=1.0.0-alpha <1.0.0": "1.0.0-alpha 1.0.0-alpha.1 1.0.0-beta.11",
}


@pytest.mark.parametrize(("text", "held"), RANGES.items())
def test_ranges_hold_what_npm_says(text: str, held: str) -> None:
    wanted = Range.parse(text)
    assert [version for version in ORDERED if Version.parse(version) in wanted] == held.split()


@pytest.mark.parametrize(
    "text",
    [
        *("latest", "workspace:*", "file:../x", "1.2.3.4", "git+ssh://x", "2-beta", "1.2-beta"),
        *("1.x.5", "x.1", "*.*.1", "^9007199254740991.0.0"),
    ],
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ValueError, match="is not a range"):
        Range.parse(text)


@pytest.mark.parametrize(("text", "is_open"), [("", True), ("*", True), ("x", True), ("1", False)])
def test_a_range_that_says_nothing_is_open(text: str, is_open: bool) -> None:
    assert Range.parse(text).is_open is is_open


# From 1.2.3, to a version: a range that has to hold it, and one that is to begin there.
RESPELLED = [
    ("^1.2.0", "1.3.0", "^1.2.0", "^1.3.0"),
    ("^1.2.0", "2.0.0", "^2.0.0", "^2.0.0"),
    ("^1", "1.3.0", "^1", "^1"),
    ("~1.2", "1.3.0", "~1.3", "~1.3"),
    ("~> 1.2.0", "1.3.0", "~> 1.3.0", "~> 1.3.0"),
    ("1.x", "2.1.0", "2.x", "2.x"),
    ("1.2.*", "2.1.0", "2.1.*", "2.1.*"),
    ("1.2.3", "1.2.4", "1.2.4", "1.2.4"),
    ("=v1.2.3", "1.2.4", "=v1.2.4", "=v1.2.4"),
    (">=1.2 <2", "1.3.0", ">=1.2 <2", ">=1.3 <2"),
    (">= 1.2  < 2.0.0", "2.1.0", ">= 1.2  < 3.0.0", ">= 2.1  < 3.0.0"),
    (">=1.2.0 <2.0.0-0", "2.1.0", ">=1.2.0 <3.0.0-0", ">=2.1.0 <3.0.0-0"),
    (">1.0.0 <1.3", "1.4.1", ">1.0.0 <1.5", ">1.0.0 <1.5"),
    ("1.0.0 - 1.9", "2.1.0", "1.0.0 - 2.1", "2.1.0 - 2.1"),
    (">=1", "2.1.0", ">=1", ">=2"),
    ("^0.9.0 || ^1.2.0", "2.0.0", "^0.9.0 || ^2.0.0", "^0.9.0 || ^2.0.0"),
    ("^1.2.0", "2.0.0-rc.1", "^2.0.0-rc.1", "^2.0.0-rc.1"),
    (">=1.2.0 <2", "2.0.0-rc.1", ">=2.0.0-rc.1 <3", ">=2.0.0-rc.1 <3"),
]


@pytest.mark.parametrize(("text", "new", "held", "raised"), RESPELLED)
def test_a_range_keeps_its_form_when_it_has_to_hold_a_version(
    text: str, new: str, held: str, raised: str
) -> None:
    old = Version.parse("1.2.3")
    assert respell(text, old, new, raises=False) == held
    assert respell(text, old, new, raises=True) == raised
    for edited in (held, raised):
        assert Version.parse(new) in Range.parse(edited)


@pytest.mark.parametrize("text", ["1.x", "~1.2", ">=1 <2"])
def test_a_short_range_holds_no_prerelease_in_its_form(text: str) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        respell(text, Version.parse("1.2.3"), "2.0.0-rc.1", raises=False)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        # What `semver.intersects` says.
        ("1.5.x", "<1.5.0 || >=1.6.0", False),
        (">1.2", "<1.3.0", False),
        ("1.5.x", "<1.5.1", True),
        (">=1.5.0-0", "<1.5.0", True),
        ("^1.2.0", "~1.4", True),
        ("^1.2.0", "2", False),
    ],
)
def test_ranges_meet_where_a_version_is_in_both(one: str, other: str, meet: bool) -> None:
    """R63: a prerelease is in neither unless they name it."""
    assert Range.parse(one).meets(Range.parse(other)) is meet
    assert Range.parse(other).meets(Range.parse(one)) is meet


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("next", "elsewhere"),
        ("npm:@acme/core@next", "elsewhere"),
        ("acme/core#1.0.0::path:lib", "elsewhere"),
        ("acme/core#semver:^1::other:2", "elsewhere"),
        ("https://example.com/core.tgz#a::b", "elsewhere"),
        # Ranges in loose form, out of which npm drops words.
        ("^1.0 | ^2.0", "elsewhere"),
        (">=16 && <20", "elsewhere"),
        ("^16.0.0 || ^17.0.0 || experimental", "elsewhere"),
        ("^01.2.3", "elsewhere"),
        ("^1.0.0-alpha.01", "elsewhere"),
        ("1.0.0 - latest", "elsewhere"),
        ("npm:core@^01.2.3", "elsewhere"),
        ("^1.0|^2", "unknown"),
        (">=1,<2", "unknown"),
        ("1.2.3.4", "elsewhere"),
        (">=^4", "unknown"),
        ("== 1.0.0 || next", "elsewhere"),
        ("npm:", "unknown"),
        ("npm:acme/core", "unknown"),
        ("npm:core@npm:other", "unknown"),
        ("acme/core#1.0.0::2.0.0", "unknown"),
        ("acme/core#semver:^1::1.0.0", "unknown"),
        ("git+https://example.com/core#path:a::path:b", "unknown"),
    ],
)
def test_what_npm_cannot_read_is_unknown(spec: str, kind: str) -> None:
    """R63: npm-package-arg 13 says so."""
    found = Reference.parse("core", spec)
    assert found.kind == kind
    assert kind == "elsewhere" or not found.name
