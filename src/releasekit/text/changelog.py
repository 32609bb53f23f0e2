"""The section of one version in a changelog in Markdown, whose headings begin with `#`.

https://keepachangelog.com, changesets, release-please, git-cliff, lerna and standard-version (where
a patch has a deeper heading than a major version), and by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from releasekit.text.version_order import version_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from releasekit.text.version_order import VersionKey


_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_FENCE: Final = re.compile(r"[ \t]*+(?>(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*)(`{3,}|~{3,})([^`]*)")
DEFINITION: Final = re.compile(r" {0,3}\[([^\]\n]+)\]:[ \t]*\S.*")
_TARGET: Final = re.compile(r"\]\([^()\n]*\)|\]\[[^\]\n]*\]|<[^<>\n]*>|(?<![a-z])[a-z]+://\S+")
_UNRELEASED: Final = re.compile(
    r"\W*(?:unreleased(?: changes)?|(?:next|upcoming) release)\W*", re.IGNORECASE
)
DATE: Final = re.compile(r"\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}\b")
_VERSION: Final = re.compile(
    r"(?<![0-9A-Za-z.])[vV]?"
    r"([0-9]+(?:!|(?=[.0-9+-])|(?=(?:a|b|c|rc)[0-9]))[0-9A-Za-z.!+_-]*[0-9A-Za-z]|[0-9])"
)
# A version of one number is one only where nothing but a date stands beside it.
_ONE_NUMBER: Final = re.compile(
    r"(?:[0-9]+!)?[0-9]+(?:(?:a|b|c|rc)[0-9]+|-[A-Za-z][0-9A-Za-z-]*)?(?:\+[0-9A-Za-z-]+)?"
)
_BESIDE: Final = re.compile(r"[\W_]*(?:unreleased[\W_]*)?", re.IGNORECASE)
# Longer ones may be years.
_MOST_UNDATED: Final = 3
_NOISE: Final = re.compile(r"\b(?:version|release|released|v)\b|[^\w@/]+", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(
    r"\([^()]*\)|\b(?:[A-Z][a-z]{2,8}|yanked|YANKED|[0-9]+(?:st|nd|rd|th))\b"
)
TRAILING: Final = re.compile(r"(?:<a [^>]*>(?:</a>)?|-{3,}|\*{3,}|_{3,})?")
# Four times those of the longest of twenty years. A heading costs as much as a hundred lines.
MAX_LINES: Final = 200_000
MAX_HEADINGS: Final = 20_000
# Longer ones are written to keep us busy: expressions take the square of it at worst.
_MAX_HEADING: Final = 500
_Rank = tuple[int, bool, int, int]
_LAST: Final = (9, True, 0, 0)


@dataclass(frozen=True, slots=True)
class Heading:
    """Its level is the number of marks; `start` is its line."""

    level: int
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class HeadingVersion:
    """What a heading says: a version, and the words before and after it."""

    version: str
    before: str
    after: str
    ours: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, what it says of a version, and before which line ends what stands below it. A
    release is one whose heading is about one version and nothing else, or about what is unreleased.
    """

    heading: Heading
    said: HeadingVersion | None
    is_release: bool
    end: int


@dataclass(frozen=True, slots=True)
class Changelog:
    """`lines` are without comments; those of `prose` are outside of fenced code. `definitions` are
    of links, by their labels, with their places. `exact` and `near` have the best section for each
    version, as it is spelled there and for other spellings.
    """

    lines: Sequence[str]
    prose: Sequence[bool]
    sections: Sequence[Section]
    definitions: Mapping[str, tuple[int, str]]
    exact: Mapping[str, _Rank]
    near: Mapping[VersionKey, _Rank]

    def find(self, version: str) -> Section | None:
        """The one that fits best: of the package by name, of the version alone, of a project's
        name.
        """
        found = [self.exact.get(version.lower().removeprefix("v"))]
        if "+" not in version:
            found.append(self.near.get(version_key(version)))
        best = min(filter(None, found), default=None)
        return self.sections[best[-1]] if best else None

    def read(self, section: Section) -> str:
        """What stands below its heading, as Markdown."""
        return _clean(self, range(section.heading.start + 1, section.end))


def list_heading_names(package: str) -> tuple[str, str]:
    """What headings may call a package: its name, and that without its scope or group."""
    return package, package.rpartition("/")[2].rpartition(":")[2]


def find_section(text: str, version: str, names: Collection[str] = ()) -> str:
    """What stands below the heading of `version`, as Markdown; "" where nothing does, and for a
    file beyond the limits.

    `names` are those that a heading may give the package, in a file with several of them.
    """
    log = read_changelog(text, names)
    section = log.find(version) if log else None
    return log.read(section) if log and section else ""


def read_changelog(text: str, names: Collection[str] = ()) -> Changelog | None:
    """None for a file beyond the limits."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") >= MAX_LINES:
        return None
    lines, prose = strip_comments(text.split("\n"))
    headings = [*_find_headings(lines, prose)]
    if len(headings) > MAX_HEADINGS:
        return None
    said = [_read_heading(each.text, names) for each in headings]
    releases = [_is_release(*each) for each in zip(headings, said, strict=True)]
    if not any(each and it for each, it in zip(said, releases, strict=True)):
        # In a file without other versions, a number that stands alone is one.
        releases = [
            known
            or (
                each is not None
                and not each.before
                and _is_one_number(each)
                and len(each.version) <= _MOST_UNDATED
            )
            for known, each in zip(releases, said, strict=True)
        ]
    ends = _find_ends(headings, releases, len(lines))
    exact, near = _rank_headings(headings, said, releases, _below_name(headings, names))
    definitions: dict[str, tuple[int, str]] = {}
    for at, line in enumerate(lines):
        if prose[at] and (match := DEFINITION.fullmatch(line)):
            definitions.setdefault(match[1].lower(), (at, line.strip()))
    return Changelog(
        lines=lines,
        prose=prose,
        sections=[Section(*each) for each in zip(headings, said, releases, ends, strict=True)],
        definitions=definitions,
        exact=exact,
        near=near,
    )


def strip_comments(lines: Sequence[str]) -> tuple[list[str], list[bool]]:
    """Without HTML comments, and which lines are outside of fenced code."""
    kept: list[str] = []
    prose: list[bool] = []
    fence, hidden = "", False
    for line in lines:
        shown = line
        if not fence:
            shown, hidden = _strip_comment(line, hidden=hidden)
        before, fence = fence, _follow_fence(fence, shown)
        kept.append(shown)
        prose.append(not (before or fence))
    return kept, prose


def _strip_comment(line: str, *, hidden: bool) -> tuple[str, bool]:
    shown: list[str] = []
    at = 0
    while at < len(line):
        mark = "-->" if hidden else "<!--"
        found = line.find(mark, at)
        end = len(line) if found < 0 else found
        if not hidden:
            shown.append(line[at:end])
        hidden = hidden != (found >= 0)
        at = end + len(mark)
    return "".join(shown), hidden


def _find_headings(lines: Sequence[str], prose: Sequence[bool]) -> Iterator[Heading]:
    for at, line in enumerate(lines):
        if prose[at] and len(line) <= _MAX_HEADING and (match := _ATX.fullmatch(line)):
            title = match[2].strip().rstrip("#").strip()
            yield Heading(level=len(match[1]), text=title, start=at)


def _read_heading(heading: str, names: Collection[str]) -> HeadingVersion | None:
    text = _TARGET.sub(" ", heading).replace("`", " ").replace("*", " ")
    before, ours = "", False
    for name in sorted(names, key=len, reverse=True):
        found = re.search(
            rf"(?<![\w@/.-]){re.escape(name)}(?=[-@/_: \[]*[vV]?[0-9])", text, re.IGNORECASE
        )
        if name and found:
            before, text, ours = text[: found.start()], text[found.end() :].lstrip("-@/_: ["), True
            break
    whole = text
    dated = DATE.sub(lambda date: " " * len(date[0]), text)
    match = _VERSION.search(dated)
    if not match:
        text, match = whole, _VERSION.search(whole)
    if not match:
        return None
    words = _NOISE.sub(" ", before + dated[: match.start()]).strip()
    return HeadingVersion(match[1], words, dated[match.end() :], ours)


def _is_release(heading: Heading, said: HeadingVersion | None) -> bool:
    """Whether it is about one version, and nothing else."""
    if is_unreleased(heading):
        return True
    if said is None or (said.before and not said.ours):
        return False
    return has_version(heading, said) and ends_with_version(said)


def has_version(heading: Heading, said: HeadingVersion) -> bool:
    """Whether what it says is a version for certain: a lone number may count anything."""
    return "." in said.version or (
        bool(DATE.search(heading.text)) and _is_one_number(said) and not DATE.search(said.version)
    )


def _is_one_number(said: HeadingVersion) -> bool:
    return bool(_ONE_NUMBER.fullmatch(said.version) and _BESIDE.fullmatch(said.after))


def is_unreleased(heading: Heading) -> bool:
    text = _TARGET.sub("]", heading.text)
    return bool(_UNRELEASED.fullmatch(text))


def ends_with_version(said: HeadingVersion) -> bool:
    """With its version, or a date."""
    return not re.search(r"[A-Za-z]{2}", _IN_BRACKETS.sub("", said.after))


def _rank_headings(
    headings: Sequence[Heading],
    said: Sequence[HeadingVersion | None],
    releases: Sequence[bool],
    below: Sequence[bool],
) -> tuple[dict[str, _Rank], dict[VersionKey, _Rank]]:
    """The best heading for each version as it is spelled, and for other spellings of it."""
    several = any(each is not None and each.ours for each in said)
    prefixes = {each.before for each in said if each is not None and "." in each.version}
    exact: dict[str, _Rank] = {}
    near: dict[VersionKey, _Rank] = {}
    for at, each in enumerate(said):
        if each is None:
            continue
        ours = each.ours or below[at]
        if not ours and each.before and (several or len(prefixes) > 1):
            continue
        rank = 0 if ours else 2 if each.before else 1
        own, level = each.version.lower(), headings[at].level
        exact[own] = min(exact.get(own, _LAST), (rank, False, level, at))
        if "+" not in own and (ours or releases[at]):
            key = version_key(each.version)
            near[key] = min(near.get(key, _LAST), (rank, True, level, at))
    return exact, near


def _below_name(headings: Sequence[Heading], names: Collection[str]) -> list[bool]:
    """Whether each is in the part of the file whose heading is one of these names."""
    found: list[bool] = []
    above: list[tuple[int, bool]] = []  # levels that rise, and whether one up to there is a name
    for each in headings:
        while above and above[-1][0] >= each.level:
            above.pop()
        inside = bool(above) and above[-1][1]
        found.append(inside)
        above.append((each.level, inside or each.text.strip("`[] ") in names))
    return found


def _find_ends(headings: Sequence[Heading], releases: Sequence[bool], lines: int) -> list[int]:
    levels = {each.level for each, is_release in zip(headings, releases, strict=True) if is_release}
    ends: list[int] = []
    # Where the next ones begin, of releases and of each level.
    release, nearest = lines, dict[int, int]()
    for at in reversed(range(len(headings))):
        own = headings[at]
        # Where a patch has a deeper heading than a major version, so may have what is new in it.
        level = own.level if levels <= {own.level} else min(levels | {own.level}) - 1
        ends.append(min([release, *(nearest[each] for each in nearest if each <= level)]))
        nearest[own.level] = own.start
        if releases[at]:
            release = own.start
    return ends[::-1]


def _clean(log: Changelog, body: range) -> str:
    kept = [
        log.lines[at] for at in body if not (log.prose[at] and DEFINITION.fullmatch(log.lines[at]))
    ]
    while kept and TRAILING.fullmatch(kept[-1].strip(" \t")):
        kept.pop()
    text = "\n".join(kept).strip("\n")
    if fence := open_fence(kept):
        text += "\n" + fence
    used = {each.lower() for each in re.findall(r"\[([^\[\]\n]+)\]", text)} & log.definitions.keys()
    needed = [line for _, line in sorted(log.definitions[each] for each in used)]
    return "\n".join([text, "", *needed] if text and needed else [text])


def open_fence(lines: Sequence[str]) -> str:
    """The fence that would end the code at the end of `lines`, "" where it has ended."""
    return reduce(_follow_fence, lines, "")


def _follow_fence(fence: str, line: str) -> str:
    """The fence of the code that goes on below the line, `fence` being the one above it."""
    if fence:
        mark = line.strip()
        return "" if mark.startswith(fence) and not mark.strip(fence[0]) else fence
    opening = _FENCE.fullmatch(line)
    return opening[1] if opening else ""
