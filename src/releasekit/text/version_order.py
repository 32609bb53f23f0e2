"""Which of two versions is later, where the kind of version is not known.

Semantic Versioning, PEP 440 and Maven agree on nearly all that projects use. Where they do not,
what most people mean counts: `alpha10` comes after `alpha2`.

https://semver.org/#spec-item-11
https://packaging.python.org/en/latest/specifications/version-specifiers/
https://maven.apache.org/pom.html#version-order-specification
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_VERSION: Final = re.compile(
    r"\s*[vV]?(?:(?P<epoch>[0-9]+)!)?(?P<release>[0-9]+(?:\.[0-9]+)*)(?P<rest>[^+]*)"
)
_PART: Final = re.compile(r"(?P<mark>[-._]?)(?:(?P<number>[0-9]+)|(?P<word>[A-Za-z]+))")
_SPELLINGS: Final = {
    "a": "alpha",
    "b": "beta",
    "c": "rc",
    "cr": "rc",
    "pre": "rc",
    "preview": "rc",
    "m": "milestone",
    "rev": "post",
    "r": "post",
}
_RELEASED: Final = frozenset({"final", "ga", "release"})
_AFTER: Final = frozenset({"post", "sp"})
# What Java packages built for different platforms have behind their version.
_FLAVOURS: Final = frozenset({"jre", "android", "jdk", "java"})

# How the parts that may stand at one place of a version sort; the end of a version is one of them.
_DEV, _END, _NUMBER, _WORD, _RELEASE, _FLAVOUR, _POST = range(7)

Number = tuple[int, str]


class VersionKey(NamedTuple):
    """Compares as the versions do; equal for two spellings of one version."""

    epoch: Number
    release: tuple[Number, ...]
    rest: tuple[tuple[int, Number, str], ...]


def version_key(version: str) -> VersionKey:
    """Sorts versions; text that is not a version sorts before all versions."""
    found = _VERSION.match(version)
    if not found:
        return VersionKey(_number(""), (), ((_DEV, _number(""), version),))
    release = [_number(each) for each in found["release"].split(".")]
    while release and release[-1] == _number("0"):
        release.pop()
    three = found["release"].count(".") == 2
    return VersionKey(
        _number(found["epoch"] or "0"), tuple(release), tuple(_rest(found["rest"], three=three))
    )


def is_stable(version: str) -> bool:
    """Whether it is neither a pre-release, a snapshot nor a development version."""
    found = version_key(version)
    return bool(_VERSION.match(version)) and (
        found.rest[0][0] >= _RELEASE and all(kind != _DEV for kind, _, _ in found.rest)
    )


def _rest(text: str, *, three: bool) -> list[tuple[int, Number, str]]:
    found: list[tuple[int, Number, str]] = []
    for part in _PART.finditer(text):
        if part["number"]:
            # 1.0.0-1 is a pre-release of npm and cargo, 1.0-1 comes after 1.0 elsewhere.
            after = not found and not (three and part["mark"] == "-")
            found.append((_POST if after else _NUMBER, _number(part["number"]), ""))
            continue
        word = _SPELLINGS.get(part["word"].lower(), part["word"].lower())
        if word not in _RELEASED:
            found.append((_kind(word, part["mark"], first=not found), _number(""), word))
    return [*found, (_END if found else _RELEASE, _number(""), "")]


def _kind(word: str, mark: str, *, first: bool) -> int:
    if word in _AFTER:
        return _POST
    if word in _FLAVOURS and first:
        return _FLAVOUR
    # PEP 440 writes 1.0.dev1, which comes before 1.0a1. A snapshot precedes what it is one of.
    if (word == "dev" and mark != "-") or (word == "snapshot" and not first):
        return _DEV
    return _WORD


def _number(text: str) -> Number:
    """Compares as the number does, and costs the same for any number of digits."""
    digits = text.lstrip("0")
    return len(digits), digits
