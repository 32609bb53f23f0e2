"""Maven's order of versions, and its version ranges.

https://maven.apache.org/pom.html#version-order-specification and
https://maven.apache.org/enforcer/enforcer-rules/versionRanges.html
"""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Pre-releases in their order, the release itself (""), and what comes after it.
_QUALIFIERS: Final = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_RELEASE: Final = _QUALIFIERS.index("")
_ALIASES: Final = {"ga": "", "final": "", "release": "", "cr": "rc"}
_SHORT: Final = {"a": "alpha", "b": "beta", "m": "milestone"}
_TOKEN: Final = re.compile(r"\d+|[^\d.\-_]+|[.\-_]")
_INTERVAL: Final = re.compile(r"\s*([\[(])([^,\[\]()]*)(?:(,)([^,\[\]()]*))?([\])])\s*,?")
_OF_A_TIME: Final = re.compile(r".+-\d{8}\.\d{6}-\d+")

# A number, or a qualifier with its rank and its name.
Item = tuple[int, int, str]
# An item after its separator: in 1-1 the second 1 counts for less than in 1.1.
Token = tuple[str, Item]


def is_snapshot(version: str) -> bool:
    """Also one of a certain time, as repositories keep them.

    https://maven.apache.org/guides/getting-started/index.html#what-is-a-snapshot-version
    https://maven.apache.org/ref/3.9.9/maven-artifact/apidocs/org/apache/maven/artifact/ArtifactUtils.html
    """
    text = version.upper()
    return text.endswith("SNAPSHOT") or bool(_OF_A_TIME.fullmatch(text))


def is_range(version: str) -> bool:
    return version.startswith(("[", "("))


def contains(requirement: str, version: str) -> bool:
    """Whether a range holds a version. Raises ValueError for an invalid range."""
    text, position, found = requirement.strip(), 0, False
    while position < len(text):
        match = _INTERVAL.match(text, position)
        if match is None:
            raise ValueError(f"{requirement!r} is not a version range")
        found = found or _is_inside(match, version)
        position = match.end()
    return found


def widen(requirement: str, version: str) -> str:
    """A range with its last bound moved, so that it holds a later version; empty where that does
    not do. A bound that is left out, as 2.0 in [1.2,2.0), becomes the next one of its kind.
    """
    *_, last = _INTERVAL.finditer(requirement)
    number = 4 if last[3] else 2
    old, new = last[number].strip(), version
    if last[5] == ")":
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", old):
            return ""
        parts = old.split(".")
        kind = max((place for place, part in enumerate(parts) if int(part)), default=0)
        numbers = [*re.findall(r"[0-9]+", version), *["0"] * kind]
        behind = ["0"] * (len(parts) - kind - 1)
        new = ".".join([*numbers[:kind], str(int(numbers[kind]) + 1), *behind])
    start = last.start(number) + last[number].index(old)
    edited = requirement[:start] + new + requirement[start + len(old) :]
    return edited if contains(edited, version) else ""


def _is_inside(interval: re.Match[str], version: str) -> bool:
    opening, low, comma, high, closing = (each.strip() for each in interval.groups(default=""))
    if not comma:
        return compare(version, low) == 0
    above = not low or compare(version, low) >= (0 if opening == "[" else 1)
    return above and (not high or compare(version, high) <= (0 if closing == "]" else -1))


def compare(one: str, other: str) -> int:
    """-1, 0 or 1."""
    return _compare(_tokenize(one), _tokenize(other))


def sort_versions(versions: Iterable[str]) -> list[str]:
    key = cmp_to_key(_compare)
    return sorted(versions, key=lambda version: key(_tokenize(version)))


def _compare(left: list[Token], right: list[Token]) -> int:
    for number in range(max(len(left), len(right))):
        a = left[number] if number < len(left) else _make_padding(right[number])
        b = right[number] if number < len(right) else _make_padding(left[number])
        if _rank(a) != _rank(b):
            return 1 if _rank(a) > _rank(b) else -1
    return 0


def _make_padding(beside: Token) -> Token:
    """The token of a version that has ended, beside this one of the longer version."""
    separator, (kind, _, _) = beside
    return separator, (1, 0, "") if kind == 1 else (0, _RELEASE, "")


def _rank(token: Token) -> tuple[int, Item]:
    """Qualifiers come before numbers, and -1 comes before .1."""
    separator, item = token
    if item[0] == 1:
        return (2 if separator == "." else 1), item
    return 0, item


def _tokenize(version: str) -> list[Token]:
    found: list[Token] = []
    separator, before = ".", ""
    for text in _TOKEN.findall(version.lower()):
        if text in {".", "-", "_"}:
            if not before:
                found.append((separator, (1, 0, "")))  # nothing between two separators is 0
            separator, before = ("-" if text == "_" else text), ""
            continue
        if before and before.isdecimal() != text.isdecimal():
            if before in _SHORT:  # a1, b1 and m1 are alpha-1 and so on; a alone is not
                found[-1] = (found[-1][0], _make_item(_SHORT[before]))
            separator = "-"  # so is the change from digits to letters and back
        found.append((separator, _make_item(text)))
        before = text
    return _trim(found)


def _make_item(text: str) -> Item:
    if text.isdecimal():
        return 1, int(text[:100]), ""
    name = _ALIASES.get(text, text)
    if name in _QUALIFIERS:
        return 0, _QUALIFIERS.index(name), ""
    return 0, len(_QUALIFIERS), name


def _trim(tokens: list[Token]) -> list[Token]:
    """Drop the zeros and release words at the end and before each hyphen: 1.0.0-x is 1-x."""
    kept: list[Token] = []
    for token in tokens:
        if token[0] == "-" or token[1][0] == 0:
            _drop_nulls(kept)
        kept.append(token)
    _drop_nulls(kept)
    return kept


def _drop_nulls(tokens: list[Token]) -> None:
    while tokens and tokens[-1][1] in {(1, 0, ""), (0, _RELEASE, "")}:
        tokens.pop()
