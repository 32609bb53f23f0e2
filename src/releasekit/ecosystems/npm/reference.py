"""What one dependency of a package.json asks for: a range, a package of the workspace, a path, …

Ranges are as node-semver has them: https://github.com/npm/node-semver
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Self

from msgspec import Struct

from releasekit.ecosystems.shared.semver import PARTIAL, Comparator, Version, satisfied
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMPARATOR: Final = re.compile(rf"(?P<operator>[<>]=?|=|~>?|\^)?[v=\s]*(?:{PARTIAL})?")
# npm takes a prerelease without its hyphen: https://github.com/npm/node-semver/blob/main/internal/re.js
_LOOSE: Final = re.compile(r"^\D*\d+\.\d+\.\d+(?=[A-Za-z])")
_PARTIAL: Final = re.compile(PARTIAL)
# What JavaScript counts up to: https://github.com/npm/node-semver/blob/main/classes/semver.js
MAX_NUMBER: Final = 2**53 - 1
# Operators that do not say where a range begins.
_ONE_SIDED: Final = frozenset({"<", "<=", ">"})
_HYPHEN: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")


class Range(Struct, frozen=True):
    """Alternatives, each a list of comparators that all have to hold."""

    alternatives: tuple[tuple[Comparator, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError for everything else: a dist-tag, a URL, a path."""
        return cls(_parse_alternatives(text))

    def __contains__(self, version: Version) -> bool:
        return any(satisfied(each, version, skips=_skips) for each in self.alternatives)

    def meets(self, other: Self) -> bool:
        """Whether some version can be in both."""
        return any(
            _is_not_empty((*ours, *theirs))
            for ours in self.alternatives
            for theirs in other.alternatives
        )

    @property
    def is_open(self) -> bool:
        """Whether it says nothing: `*`, or an empty string."""
        return any(
            all(comparator.low is comparator.high is None for comparator in comparators)
            for comparators in self.alternatives
        )


def _is_not_empty(comparators: Sequence[Comparator]) -> bool:
    # A prerelease is in no range that names none, such as 1.5.0-0 in `1.5.x` or `>1.4`.
    lows = [
        low if each.pre else Version(low.release)
        for each in comparators
        if (low := each.low) is not None
    ]
    highs = [each.high for each in comparators if each.high is not None]
    return not lows or not highs or max(lows) < min(highs)


# A workspace asks for the same few ranges again and again.
@lru_cache(maxsize=1024)
def _parse_alternatives(text: str) -> tuple[tuple[Comparator, ...], ...]:
    return tuple(_parse_comparators(part) for part in text.split("||"))


def _parse_comparators(text: str) -> tuple[Comparator, ...]:
    if hyphen := _HYPHEN.fullmatch(text):
        low, high = hyphen.groups()
        return _parse_comparator(f">={low}"), _parse_comparator(f"<={high}")
    # An operator may stand apart from its version.
    joined = re.sub(r"(?<=[<>=~^])\s+", "", text)
    return tuple(_parse_comparator(word) for word in joined.split())


def _parse_comparator(text: str) -> Comparator:
    found = _COMPARATOR.fullmatch(_LOOSE.sub(r"\g<0>-", text))
    if found is None:
        raise ValueError(f"{text!r} is not a range")
    comparator = Comparator.from_match(found["operator"] or "=", found)
    high = comparator.high
    if high is not None and max(high.release) > MAX_NUMBER:
        raise ValueError(f"{text!r} is not a range: JavaScript cannot count that far")
    return comparator


def _skips(comparator: Comparator, prerelease: Version) -> bool:
    """`>=1.2` begins with 1.2.0, even where prereleases of that are asked for beside it.
    https://github.com/npm/node-semver/blob/main/classes/range.js (replaceXRange)
    """
    low = comparator.low
    return comparator.is_shortened and low is not None and low.release == prerelease.release


def respell(text: str, old: Version, new: str, *, raises: bool) -> str:
    """A range that holds `old`, with as little changed as makes it hold `new`, or begin there where
    it `raises`. Operators, blanks and the number of components stay; raises ValueError where they
    leave no such range.
    """
    version = Version.parse(new)
    if version in Range.parse(text) and not raises:
        return text
    for begins in (True,) if raises else (False, True):
        parts = (
            _respell_part(part, new, begins=begins) if old in Range.parse(part) else part
            for part in text.split("||")
        )
        edited = "||".join(parts)
        if version in Range.parse(edited):
            return edited
    raise ValueError(f"{text!r} cannot hold {new} in this form")


def _respell_part(text: str, new: str, *, begins: bool) -> str:
    """Changes those comparators that exclude `new`, and if it `begins` there also lower bounds."""
    comparators = _parse_comparators(text)
    partials = list(_PARTIAL.finditer(text))
    if len(partials) != len(comparators):  # an operator without a version
        return text
    version = Version.parse(new)
    return splice(
        text,
        [
            (found.span(), _respell_partial(found, comparator, new, version))
            for found, comparator in zip(partials, comparators, strict=True)
            if not comparator.holds(version) or (begins and comparator.operator not in _ONE_SIDED)
        ],
    )


def _respell_partial(
    found: re.Match[str], comparator: Comparator, new: str, version: Version
) -> str:
    numbers, end = version.release, ""
    if comparator.operator == "<":
        # `<2.0.0` means the next major, `<0.5` the next minor.
        last = max((i for i, number in enumerate(comparator.numbers) if number), default=0)
        higher = [*numbers[:last], numbers[last] + 1, 0, 0]
        numbers, end = (higher[0], higher[1], higher[2]), f"-{found['pre']}" if found["pre"] else ""
    elif not comparator.is_shortened:
        return new
    parts = [part for part in found.group("major", "minor", "patch") if part]
    spelled = (
        str(number) if part.isdigit() else part
        for part, number in zip(parts, numbers, strict=False)
    )
    return ".".join(spelled) + end


Kind = Literal["workspace", "catalog", "range", "path", "jsr", "elsewhere", "unknown"]
_ALIAS: Final = re.compile(r"(?P<name>@?[^@/]+(?:/[^@/]+)?)@(?P<rest>.*)", re.DOTALL)
# Where an alternative of several leads to the workspace.
_MARKED: Final = re.compile(r"(?:(?<=\|\|)|^)(\s*)workspace:\s*(\*(?=\s*(?:\|\||$)))?")
# An operator alone, which asks for the version of the workspace in that form.
_BARE: Final = re.compile(r"(?:(?<=\|\|)|^)(\s*)(?:=|([~^]|[<>]=?))(?=\s*(?:\|\||$))")
_PATH: Final = re.compile(r"(?P<how>file|link|portal):(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_RELATIVE: Final = re.compile(r"\.{1,2}(?:/.*)?", re.DOTALL)
_JSR: Final = re.compile(r"@(?P<scope>[^@/]+)/(?P<name>[^@/]+)(?:@(?P<wanted>.*))?", re.DOTALL)
# What npm takes for a path though nothing before a colon says so: https://docs.npmjs.com/cli/using-npm/package-spec
# and https://github.com/npm/npm-package-arg/blob/main/lib/npa.js (isPosixFile, isFileType)
_BARE_PATH: Final = re.compile(
    r"(?:[./]|~/).*|@[^:#]+/[^:#]*|[^:#/]+/[^:#/]+/[^:#]*|[^:#/]+\.(?:tgz|tar\.gz|tar)",
    re.DOTALL | re.IGNORECASE,
)
# What npm, or else pnpm and yarn, fetch from somewhere; a repository on the disk of its author is
# nowhere. https://github.com/npm/npm-package-arg/blob/main/lib/npa.js (fromURL)
_FETCHED: Final = re.compile(
    r"(?:git(?:\+(?:ftp|https?|rsync|ssh))?|https?|ssh|bitbucket|gist|github|gitlab|sourcehut):"
    r"|[^/:]+@[^/:]+:",
    re.IGNORECASE,
)
_ARCHIVE: Final = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.IGNORECASE)
# https://github.com/npm/npm-package-arg/blob/main/lib/npa.js (fromAlias, fromRegistry)
_NAMED: Final = re.compile(r"(?:@[^@/:]+/)?[^@/:]+")
_TAG: Final = re.compile(r"[\w.~!*'()-]+", re.ASCII)
_LOOSE_WORD: Final = re.compile(
    r"(?:[<>]=?|=|~>?|\^)?[v=]*\d+(?:\.(?:\d+|[xX*])(?:\.(?:\d+|[xX*])"
    r"(?:-?[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?)?)?"
)
# Of other hosts than those whose repositories npm knows.
# https://github.com/npm/hosted-git-info/blob/main/lib/hosts.js
_TARBALL: Final = re.compile(
    r"https?://(?!(?:[^/@]*@)?(?:www\.)?(?:git(?:hub|lab)\.com|gist\.github\.com|bitbucket\.org|git\.sr\.ht)/)",
    re.IGNORECASE,
)
_PROTOCOL: Final = re.compile(r"[a-z][a-z\d+.-]*:", re.IGNORECASE)


class Reference(Struct, frozen=True):
    """`name` is the package it leads to (empty where only its path says), `wanted` the range, the
    marker (`^`, `~`, `*`), the catalog's name or the path. What is `unknown` means nothing to npm.
    """

    kind: Kind
    name: str
    wanted: str

    @classmethod
    def parse(cls, key: str, spec: str) -> Reference:
        """https://pnpm.io/workspaces#workspace-protocol-workspace, https://pnpm.io/catalogs,
        https://docs.npmjs.com/cli/using-npm/package-spec
        """
        spec = spec.strip()
        if spec.startswith("catalog:"):
            return cls("catalog", key, spec.removeprefix("catalog:").strip() or "default")
        if "||" in spec and _MARKED.search(spec):
            # `*` that leads to the workspace means its version, any other one all versions.
            # https://github.com/pnpm/pnpm/blob/main/pnpm11/releasing/exportable-manifest/src/index.ts
            joined = _MARKED.sub(lambda found: f"{found[1]}{'=' if found[2] else ''}", spec)
            return cls("workspace", key, joined) if is_range(joined) else cls("unknown", "", spec)
        if path := _PATH.fullmatch(spec):
            return cls("path", "", path["path"])
        protocol, colon, rest = spec.partition(":")
        if colon and protocol in _PARSERS:
            return _PARSERS[protocol](key, rest)
        if is_range(spec):
            return cls("range", key, spec)
        if _BARE_PATH.fullmatch(spec):
            return cls("path", "", spec)
        return _parse_fetched(key, spec)


def _parse_workspace(key: str, text: str) -> Reference:
    wanted = text.strip()
    if _RELATIVE.fullmatch(wanted):
        return Reference("path", "", wanted)
    alias = _ALIAS.fullmatch(wanted)
    name, wanted = alias.groups() if alias else (key, wanted)
    # Yarn takes anything else for a path from the root, and publishes the version there:
    # https://github.com/yarnpkg/berry/blob/master/packages/plugin-pack/sources/index.ts
    known = wanted in {"^", "~"} or (wanted != "" and is_range(wanted))
    return Reference("workspace", name, wanted if known else "*")


def _parse_alias(_key: str, text: str) -> Reference:
    alias = _ALIAS.fullmatch(text)
    name, wanted = alias.groups() if alias else (text, "*")
    if _NAMED.fullmatch(name):
        if is_range(wanted):
            return Reference("range", name, wanted)
        if _is_read(wanted):
            return Reference("elsewhere", name, wanted)
    return Reference("unknown", "", f"npm:{text}")


def _parse_fetched(key: str, spec: str) -> Reference:
    """A dist-tag of this package, or the URL or the repository of any package."""
    if not re.search(r"[:/]", spec):
        return (
            Reference("elsewhere", key, spec) if _is_read(spec) else Reference("unknown", "", spec)
        )
    is_fetched = _FETCHED.match(spec) or not _PROTOCOL.match(spec)
    # npm reads no fragment of the URL of a tarball.
    is_read = is_fetched and (_TARBALL.match(spec) or _selects_one(spec.partition("#")[2]))
    return Reference("elsewhere" if is_read else "unknown", "", spec)


def _parse_jsr(key: str, text: str) -> Reference:
    """https://pnpm.io/package-sources#jsr-registry; only the name of the entry may be left out."""
    found = _JSR.fullmatch(text) or _JSR.fullmatch(f"{key}@{text}")
    if found is None:
        return Reference("unknown", "", f"jsr:{text}")
    return Reference("jsr", f"@jsr/{found['scope']}__{found['name']}", found["wanted"] or "")


def _is_read(spec: str) -> bool:
    """Whether npm reads a dist-tag in it, or a range all the same: it drops words that are no
    comparators, but not all of them, and takes leading zeros.
    https://github.com/npm/node-semver/blob/main/classes/range.js (loose)
    """
    words = re.sub(r"(?<=[<>=~^])\s+", "", spec).replace("||", " ").split()
    return bool(_TAG.fullmatch(spec)) or any(map(_LOOSE_WORD.fullmatch, words))


def _selects_one(fragment: str) -> bool:
    """Whether what follows the `#` of a repository names one commit, or range, and one directory.
    https://github.com/npm/npm-package-arg/blob/main/lib/npa.js (setGitAttrs)
    """
    kinds = [part.partition(":") for part in fragment.split("::")]
    commits = [name for name, colon, _ in kinds if name and (not colon or name == "semver")]
    paths = [name for name, colon, _ in kinds if colon and name == "path"]
    return len(commits) <= 1 and len(paths) <= 1


def find_carried(spec: str) -> str:
    """The directory of the package itself that npm takes such a dependency from, where a tarball
    holds it; empty for all others.
    """
    found = _PATH.fullmatch(spec.strip())
    if found and found["how"].lower() != "file":
        return ""
    path = posixpath.normpath(found["path"] if found else spec.strip())
    is_inside = path.split("/", 1)[0] not in {"", ".", "..", "~"}
    return path if is_inside and not _ARCHIVE.search(path) else ""


def fill_in(wanted: str, version: str) -> str:
    """A range of the workspace with `version` at each bare operator, as pnpm packs a peer."""
    return _BARE.sub(lambda it: f"{it[1]}{it[2] or ''}{version}", wanted) if version else wanted


def is_range(text: str) -> bool:
    try:
        Range.parse(text)
    except ValueError:
        return False
    return True


# What follows a protocol, of an entry with this key.
_PARSERS: Final = {"workspace": _parse_workspace, "npm": _parse_alias, "jsr": _parse_jsr}
