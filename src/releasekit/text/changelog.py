"""The section of one version in a changelog in Markdown, whose headings begin with `#`.

https://keepachangelog.com, changesets, release-please, git-cliff, lerna and standard-version (where
a patch has a deeper heading than a major version), and by hand.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Final

from msgspec import Struct

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
_DATE: Final = re.compile(r"\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}\b")
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
_Rank = tuple[int, int, int, int]


class Heading(Struct, frozen=True):
    """Its level is the number of marks; `start` is its line."""

    level: int
    text: str
    start: int


class HeadingVersion(Struct, frozen=True):
    """What a heading says: a version, and the words before and after it."""

    version: str
    before: str
    after: str
    ours: bool


class Section(Struct, frozen=True):
    """A heading, what it says of a version, and before which line ends what stands below it. A
    release is one whose heading is about one version and nothing else, or about what is unreleased.
    """

    heading: Heading
    said: HeadingVersion | None
    is_release: bool
    end: int


class Changelog(Struct, frozen=True):
    """`lines` are without comments; those of `prose` are outside of fenced code. `definitions` are
    of links, by their labels, with their places. `ranks` are those of the best section for each
    version, as it is spelled there and for other spellings.
    """

    lines: Sequence[str]
    prose: Sequence[bool]
    sections: Sequence[Section]
    definitions: Mapping[str, tuple[int, str]]
    ranks: Mapping[str | VersionKey, _Rank]

    def find(self, version: str) -> Section | None:
        """The one that fits best: of the package by name, of the version alone, of a project's
        name.
        """
        found = (self.ranks.get(each) for each in _list_spellings(version))
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


def read_changelog(text: str, names: Collection[str]) -> Changelog | None:
    """None for a file beyond the limits."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") >= MAX_LINES:
        return None
    lines, prose = strip_comments(text.split("\n"))
    headings = [*_find_headings(lines, prose)]
    if len(headings) > MAX_HEADINGS:
        return None
    said = [_read_heading(each.text, names) for each in headings]
    releases = _find_releases(headings, said)
    ends = _find_ends(headings, releases, len(lines))
    sections = [Section(*each) for each in zip(headings, said, releases, ends, strict=True)]
    return Changelog(
        lines=lines,
        prose=prose,
        sections=sections,
        definitions=_find_definitions(lines, prose),
        ranks=_rank_sections(sections, _below_name(headings, names)),
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
        if found:
            before, text, ours = text[: found.start()], text[found.end() :].lstrip("-@/_: ["), True
            break
    dated = _DATE.sub(lambda date: " " * len(date[0]), text)
    match = _VERSION.search(dated) or _VERSION.search(text)
    if not match:
        return None
    words = _NOISE.sub(" ", before + dated[: match.start()]).strip()
    return HeadingVersion(match[1], words, dated[match.end() :], ours)


def _find_releases(
    headings: Sequence[Heading], said: Sequence[HeadingVersion | None]
) -> list[bool]:
    """Which headings are of releases."""
    releases = [_is_release(*each) for each in zip(headings, said, strict=True)]
    if any(each and it for each, it in zip(said, releases, strict=True)):
        return releases
    # In a file without other versions, a number that stands alone is one.
    return [
        known
        or bool(
            each and not each.before and _is_one_number(each) and len(each.version) <= _MOST_UNDATED
        )
        for known, each in zip(releases, said, strict=True)
    ]


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
        bool(_DATE.search(heading.text)) and _is_one_number(said) and not _DATE.search(said.version)
    )


def _is_one_number(said: HeadingVersion) -> bool:
    return bool(_ONE_NUMBER.fullmatch(said.version) and _BESIDE.fullmatch(said.after))


def is_unreleased(heading: Heading) -> bool:
    return bool(_UNRELEASED.fullmatch(_TARGET.sub("]", heading.text)))


def ends_with_version(said: HeadingVersion) -> bool:
    """With its version, or a date."""
    return not re.search(r"[A-Za-z]{2}", _IN_BRACKETS.sub("", said.after))


def _rank_sections(
    sections: Sequence[Section], below: Sequence[bool]
) -> dict[str | VersionKey, _Rank]:
    """The best section for each version as it is spelled, and for other spellings of it."""
    told = [each.said for each in sections if each.said]
    prefixes = {each.before for each in told if "." in each.version}
    has_several = len(prefixes) > 1 or any(each.ours for each in told)
    ranks: dict[str | VersionKey, _Rank] = {}
    for at, (each, is_below) in enumerate(zip(sections, below, strict=True)):
        said = each.said
        if said is None:
            continue
        ours = said.ours or is_below
        if has_several and said.before and not ours:
            continue
        rank = 0 if ours else 1 + bool(said.before)
        spellings = _list_spellings(said.version)[: 2 if ours or each.is_release else 1]
        for distance, spelling in enumerate(spellings):
            found = (rank, distance, each.heading.level, at)
            ranks[spelling] = min(ranks.get(spelling, found), found)
    return ranks


def _list_spellings(version: str) -> list[str | VersionKey]:
    """Itself, and what stands for other spellings, unless a build is a part of it."""
    own = version.lower().removeprefix("v")
    return [own] if "+" in version else [own, version_key(version)]


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


def _find_definitions(lines: Sequence[str], prose: Sequence[bool]) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for at, line in enumerate(lines):
        if prose[at] and (match := DEFINITION.fullmatch(line)):
            found.setdefault(match[1].lower(), (at, line.strip()))
    return found


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
