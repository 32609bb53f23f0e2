"""Versions and ranges: the fixtures of node-semver, and the tests of the crate that cargo has."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers.scenarios import EQUAL, Case, Verdict, compare
from releasekit.config.version_options import VersionOptions
from releasekit.decided import Level, Rules, Source, Standing, VersionIntent
from releasekit.ecosystems.cargo.requirements import Requirement
from releasekit.ecosystems.npm.manifest import parse_package
from releasekit.ecosystems.npm.reference import Range
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ConfigError, ManifestError
from releasekit.model import PackageId
from releasekit.text.numbering import numbering_of
from releasekit.versions.decide import decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Row = list[Any]

_LEVELS: Final = {"major": Level.MAJOR, "minor": Level.MINOR, "patch": Level.PATCH}
_FROM_ONE: Final = Verdict(
    "explained",
    "moving.md: Prereleases are counted from 1, and anew where the changes ask for a higher "
    "version.",
)
_LOOSE: Final = Verdict(
    "explained",
    "limits.md: A name, version or table that npm corrects when it publishes: "
    '`"foo "`, `v1.2.3`, `1.2.3beta`',
)
# How a version begins that npm corrects.
_CORRECTED: Final = re.compile(r"[\s=v]|\d+\.\d+\.\d+[A-Za-z]")
_HYPHENLESS: Final = re.compile(r"\d[A-Za-z]")
_UNLIKE: Final = "prereleases of ReleaseKit have one word and a number"
_NUMBERED: Final = re.compile(r"(\d+\.\d+\.\d+)-(.+)\.(\d+)")


def read_npm(checkout: Path) -> Iterator[Case]:
    for path in sorted(checkout.glob("test/fixtures/*.js")):
        # JSON has no undefined.
        code = f"JSON.stringify(require({json.dumps(str(path.resolve()))}))"
        told = subprocess.run(["node", "-p", code], stdout=subprocess.PIPE, check=True)
        for number, row in enumerate(json.loads(told.stdout)):
            if check := _CHECKS.get(path.stem):
                judge = functools.partial(_judge, check, row)
                yield Case(name=f"{path.stem}#{number}", judge=judge)


def _judge(check: Callable[[Row], Verdict], row: Row, _directory: Path) -> Verdict:
    return check(row)


def _options(row: Row, at: int) -> object:
    return row[at] if len(row) > at else None


def _is_loose(options: object) -> bool:
    return options is True or (isinstance(options, dict) and bool(options.get("loose")))


def _check_range(row: Row, *, holds: bool) -> Verdict:
    options = _options(row, 2)
    if isinstance(options, dict) and options.get("includePrerelease"):
        return Verdict("unusable", "npm asks for no prereleases besides those that a range names")
    if not isinstance(row[0], str) or not isinstance(row[1], str):
        return Verdict("unusable", "no text")
    try:
        own = Version.parse(row[1]) in Range.parse(row[0])
    except ValueError:  # it holds nothing, as npm asks
        own = False
        if holds and _is_loose(options):
            return _LOOSE
    return compare(row, own, holds)


def _check_parsed(row: Row) -> Verdict:
    text, canonical = row[:2]
    try:
        Range.parse(text)
        own = True
    except ValueError:
        own = False
        if canonical is not None and _is_loose(_options(row, 2)):
            return _LOOSE
    if own and canonical is None and not _options(row, 2) and _HYPHENLESS.search(text):
        return Verdict("unusable", "npm reads requirements in loose form alone")
    return compare(row, own, canonical is not None)


def _ask(row: Row, texts: Iterable[str], answer: Callable[..., object], theirs: object) -> Verdict:
    """Of versions, among them some that npm would correct."""
    try:
        return compare(row, answer(*map(Version.parse, texts)), theirs)
    except ValueError as error:
        return _LOOSE if any(map(_CORRECTED.match, texts)) else compare(row, error, theirs)


def _check_order(row: Row) -> Verdict:
    return _ask(row, row[:2], lambda one, other: (other < one, one < other), (True, False))


def _check_equal(row: Row) -> Verdict:
    return _ask(row, row[:2], lambda one, other: one == other, True)


def _check_valid(row: Row) -> Verdict:
    theirs = (tuple(row[1:4]), tuple(row[4]), ".".join(row[5]))
    return _ask(row, row[:1], lambda version: (version.release, version.pre, version.build), theirs)


def _check_invalid(row: Row) -> Verdict:
    try:
        parse_package({"name": "m", "version": row[0]}, Path("package.json"))
    except ManifestError:
        return EQUAL
    return compare(row, "taken", "refused")


def _check_increment(row: Row) -> Verdict:
    """`inc(version, kind, options, identifier, base)`, where options may be left out."""
    version, kind, wanted, *given = row
    if given and isinstance(given[0], str):
        given = [None, *given]
    _, label, base, *_ = [*given, None, None, None]
    numbering = numbering_of("npm")
    try:
        if kind.startswith("pre"):
            return _check_prerelease(row, kind, label, base)
        if kind == "release":
            return compare(row, numbering.stable(version), wanted or version)
        if kind not in _LEVELS:
            return Verdict("unusable", "no level")
        return compare(row, numbering.bump(version, _LEVELS[kind], "literal"), wanted)
    except ValueError as error:
        return _explain_refused(row, error)


def _explain_refused(row: Row, error: object) -> Verdict:
    version, _, wanted = row[:3]
    if wanted is None:
        return EQUAL
    return _LOOSE if _CORRECTED.match(version) else compare(row, error, wanted)


def _check_prerelease(row: Row, kind: str, label: object, base: object) -> Verdict:
    """As a change since a release decides it, with this label."""
    version, wanted = row[0], row[2]
    theirs = _NUMBERED.fullmatch(wanted or "")
    label = label or (theirs and theirs[2])  # without one, npm keeps that of the version
    if not isinstance(label, str) or (theirs[2] != label if theirs else wanted or base is False):
        return Verdict("unusable", _UNLIKE)
    try:
        VersionOptions.from_table({"prerelease": {"*": label}})
    except ConfigError:
        return EQUAL if wanted is None else Verdict("unusable", _UNLIKE)
    stable = numbering_of("npm").stable(version)
    # What is a prerelease leads to its own stable version.
    is_begun = kind == "prerelease" and stable != version
    package = PackageId("npm", "m")
    standing = Standing(
        package=package,
        written=version,
        released="0.0.0" if is_begun else stable,
        taken={version: "0" * 40},
        label=label,
    )
    level = _LEVELS.get(kind.removeprefix("pre"), Level.PATCH)
    change = VersionIntent(package=package, level=level, source=Source(title="change"))
    bumps = decide([standing], [change], [], Rules(zero="literal")).bumps
    own = bumps[0].new if bumps else None
    if theirs and theirs[3] == "0" and own == f"{theirs[1]}-{label}.1":
        return _FROM_ONE
    return compare(row, own, wanted)


def _check_meeting(row: Row) -> Verdict:
    one, other, meets = row[:3]
    return compare(row, Range.parse(one).meets(Range.parse(other)), meets)


_CHECKS: Final[dict[str, Callable[[Row], Verdict]]] = {
    "range-include": functools.partial(_check_range, holds=True),
    "range-exclude": functools.partial(_check_range, holds=False),
    "version-gt-range": functools.partial(_check_range, holds=False),
    "version-lt-range": functools.partial(_check_range, holds=False),
    "range-parse": _check_parsed,
    "range-intersection": _check_meeting,
    "comparisons": _check_order,
    "equality": _check_equal,
    "valid-versions": _check_valid,
    "invalid-versions": _check_invalid,
    "increments": _check_increment,
}

# https://docs.rs/semver
_REQ: Final = re.compile(r'\blet ref r = req\("([^"]*)"\)')
_ASSERTED: Final = re.compile(r"assert_match_(all|none)\(\s*&?r,\s*&\[([^\]]*)\]", re.DOTALL)
_COMPARED: Final = re.compile(
    r'assert(_eq|_ne)?!\((!\()?version\("([^"]+)"\)\s*(,|<=|>=|<|>)\s*version\("([^"]+)"\)'
)
_REFUSED: Final = re.compile(r'\b(version|req)_err\("([^"]*)"\)')


def read_crate(checkout: Path) -> Iterator[Case]:
    for path in sorted(checkout.glob("tests/test_version*.rs")):
        text = path.read_text()
        checks: list[Callable[[Path], Verdict]] = []
        pieces = _REQ.split(text)
        for required, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            for asserted in _ASSERTED.finditer(piece.partition("#[test]")[0]):
                versions = re.findall(r'"([^"]+)"', asserted[2])
                checks += [
                    functools.partial(_judge_required, required, each, asserted[1] == "all")
                    for each in versions
                ]
        checks += [
            functools.partial(_judge_compared, each.groups()) for each in _COMPARED.finditer(text)
        ]
        checks += [
            functools.partial(_judge_refused, each[1], each[2]) for each in _REFUSED.finditer(text)
        ]
        for number, check in enumerate(checks):
            yield Case(name=f"{path.stem}#{number}", judge=check)


def _judge_required(required: str, version: str, holds: bool, _directory: Path) -> Verdict:
    own = Requirement.parse(required).matches(version)
    return compare((required, version), own, holds)


def _judge_compared(groups: tuple[str, ...], _directory: Path) -> Verdict:
    kind, negated, left, operator, right = groups
    one, other = Version.parse(left), Version.parse(right)
    own = {
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        ",": (one == other) == (kind == "_eq"),
    }[operator]
    if own == bool(negated) and left != right and _drop_build(left) == _drop_build(right):
        return _BUILD
    return compare(groups, own, not negated)


def _drop_build(version: str) -> str:
    return version.partition("+")[0]


_BUILD: Final = Verdict(
    "explained", "limits.md: A version that differs from another in build metadata alone"
)


def _judge_refused(kind: str, text: str, _directory: Path) -> Verdict:
    text = text.replace("\\0", "\0")
    try:
        Version.parse(text) if kind == "version" else Requirement.parse(text)
    except ValueError:
        return EQUAL
    return compare((kind, text), "taken", "refused")
