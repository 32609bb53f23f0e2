"""Versions and ranges: the fixtures of node-semver, and the tests of the crate that cargo has."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peers.scenarios import EQUAL, Case, Verdict
from releasekit.decided import Level
from releasekit.ecosystems.cargo.requirements import Requirement
from releasekit.ecosystems.npm.manifest import parse_package
from releasekit.ecosystems.npm.reference import Range
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ManifestError
from releasekit.versioning.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Row = list[Any]

_LEVELS: Final = {"major": Level.MAJOR, "minor": Level.MINOR, "patch": Level.PATCH}
_FROM_ONE: Final = Verdict("explained", "moving.md: Prereleases are counted from 1")


def read_npm(checkout: Path) -> Iterator[Case]:
    for path in sorted(checkout.glob("test/fixtures/*.js")):
        # JSON has no undefined.
        code = f"JSON.stringify(require({json.dumps(str(path.resolve()))}))"
        told = subprocess.run(["node", "-p", code], stdout=subprocess.PIPE, check=True)
        for number, row in enumerate(json.loads(told.stdout)):
            if check := _CHECKS.get(path.stem):
                judge = functools.partial(_judge, check, row)
                yield Case(name=f"{path.stem}#{number}", judge=judge)


def _judge(check: Callable[[Row], Verdict | bool], row: Row, _directory: Path) -> Verdict:
    found = check(row)
    if isinstance(found, Verdict):
        return found
    return EQUAL if found else Verdict("fault", str(row))


def _holds(text: str, version: str) -> bool:
    """As npm asks; a range or version that ReleaseKit cannot read holds nothing."""
    try:
        return Version.parse(version) in Range.parse(text)
    except (ValueError, AttributeError):
        return False


def _options(row: Row, at: int) -> object:
    return row[at] if len(row) > at else None


def _check_range(row: Row, *, holds: bool) -> Verdict | bool:
    options = _options(row, 2)
    if isinstance(options, dict) and options.get("includePrerelease"):
        return Verdict("unusable", "npm asks for no prereleases besides those that a range names")
    if not isinstance(row[0], str) or not isinstance(row[1], str):
        return Verdict("unusable", "no text")
    own = _holds(row[0], row[1])
    if own != holds and holds and options:
        return Verdict("explained", _LOOSE)
    return own == holds


_HYPHENLESS: Final = re.compile(r"\d[A-Za-z]")
_LOOSE: Final = "limits.md: `v1.2.3`, `=1.2.3`, `1.2.3beta` as versions"


def _is_strict(text: str) -> bool:
    try:
        Version.parse(text)
    except ValueError:
        return False
    return True


def _check_parsed(row: Row) -> Verdict | bool:
    text, canonical = row[:2]
    options = _options(row, 2)
    try:
        Range.parse(text)
    except ValueError:
        if canonical is not None and options:
            return Verdict("explained", _LOOSE)
        return canonical is None
    if canonical is None and not options and _HYPHENLESS.search(text):
        return Verdict("unusable", "npm reads requirements in loose form alone")
    return canonical is not None


def _check_order(row: Row) -> Verdict | bool:
    if _options(row, 2):
        return Verdict("explained", _LOOSE)
    return Version.parse(row[1]) < Version.parse(row[0])


def _check_equal(row: Row) -> Verdict | bool:
    if not (_is_strict(row[0]) and _is_strict(row[1])):
        return Verdict("explained", _LOOSE)
    return Version.parse(row[0]) == Version.parse(row[1])


def _check_valid(row: Row) -> Verdict | bool:
    if not _is_strict(row[0]):
        return Verdict("explained", _LOOSE)
    parsed = Version.parse(row[0])
    return bool(parsed.release == tuple(row[1:4]) and [*parsed.pre] == row[4])


def _check_invalid(row: Row) -> Verdict | bool:
    if not isinstance(row[0], str):
        return True
    try:
        parse_package({"name": "m", "version": row[0]}, Path("package.json"))
    except ManifestError:
        return True
    return False


def _check_increment(row: Row) -> Verdict | bool:
    version, kind, wanted = row[:3]
    if kind.startswith("pre"):
        return _FROM_ONE
    if _options(row, 3):
        return Verdict("explained", _LOOSE)
    numbering = numbering_of("npm")
    if kind == "release":
        return bool(wanted is None or numbering.stable(version) == wanted)
    if kind not in _LEVELS:
        return Verdict("unusable", "no level")
    try:
        return bool(numbering.bump(version, _LEVELS[kind], "literal") == wanted)
    except ValueError:
        return wanted is None


def _check_meeting(row: Row) -> Verdict | bool:
    one, other, meets = row[:3]
    return Range.parse(one).meets(Range.parse(other)) is meets


_CHECKS: Final[dict[str, Callable[[Row], Verdict | bool]]] = {
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
    own = Requirement.parse(required).matches(Version.parse(version))
    return EQUAL if own == holds else Verdict("fault", f"{required} {version}: theirs {holds}")


def _judge_compared(groups: tuple[str, ...], _directory: Path) -> Verdict:
    kind, negated, left, operator, right = groups
    one, other = Version.parse(left), Version.parse(right)
    if one == other and left != right:
        return Verdict("explained", _BUILD)
    own = {
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        ",": (one == other) == (kind == "_eq"),
    }[operator]
    return EQUAL if own != bool(negated) else Verdict("fault", str(groups))


_BUILD: Final = "limits.md: A version that differs from another in build metadata alone"


def _judge_refused(kind: str, text: str, _directory: Path) -> Verdict:
    text = text.replace("\\0", "\0")
    try:
        Version.parse(text) if kind == "version" else Requirement.parse(text)
    except ValueError:
        return EQUAL
    return Verdict("fault", f"ours takes the {kind} {text!r}")
