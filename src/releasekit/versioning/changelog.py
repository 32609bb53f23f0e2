"""The section of one version in a change log, in any of the usual styles.

https://keepachangelog.com, changesets, release-please, git-cliff, lerna and standard-version (where
a patch has a deeper heading than a major version), towncrier in reStructuredText, and by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.versioning.order import version_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'*+#.`:_])\1{2,}[ \t]*")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")
_DEFINITION: Final = re.compile(r" {0,3}\[([^\]\n]+)\]:[ \t]*\S.*")
_TARGET: Final = re.compile(r"\]\([^()\n]*\)|\]\[[^\]\n]*\]|<[^<>\n]*>`?_*|(?<![a-z])[a-z]+://\S+")
_DATE: Final = re.compile(r"\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}\b")
_VERSION: Final = re.compile(
    r"(?<![0-9A-Za-z.])[vV]?([0-9]+(?:!|(?=[.0-9-]))[0-9A-Za-z.!+_-]*[0-9A-Za-z]|[0-9])"
)
_NOISE: Final = re.compile(r"\b(?:version|release|released|v)\b|[^\w@/]+", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(
    r"\([^()]*\)|\b(?:[A-Z][a-z]{2,8}|yanked|YANKED|[0-9]+(?:st|nd|rd|th))\b"
)
_TRAILING: Final = re.compile(r"(?:<a [^>]*>(?:</a>)?|-{3,}|\*{3,}|_{3,})?")
# Four times those of the longest of twenty years. A heading costs as much as a hundred lines.
MAX_LINES: Final = 200_000
MAX_HEADINGS: Final = 20_000
# Longer ones are written to keep us busy: expressions take the square of it at worst.
_MAX_HEADING: Final = 500
_MAX_LINKED: Final = 2_000
_RST_LINK: Final = re.compile(r"`([^`<\n]+)<([^>`\s]+)>`__?")
_RST_ROLE: Final = re.compile(r"(?<![a-z:+-]):[a-z][a-z:+-]*:(`[^`\n]+`)")


@dataclass(frozen=True, slots=True)
class _Heading:
    """In lines of the file: from `start`, its text ends before `body`."""

    level: int
    text: str
    start: int
    body: int


def find_section(text: str, version: str, names: Collection[str] = ()) -> str:
    """What stands below the heading of `version`, as Markdown; "" where nothing does, and for a
    file beyond the limits.

    `names` are those that a heading may give the package, in a file with several of them.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") >= MAX_LINES:
        return ""
    lines, prose = _strip_comments(text.split("\n"))
    headings, is_rst = _find_headings(lines, prose)
    if len(headings) > MAX_HEADINGS:
        return ""
    found = _best_heading(headings, version, names)
    if found is None:
        return ""
    end = _section_end(headings, found, names, len(lines))
    body = range(headings[found].body, end)
    inner = {each.start: each for each in headings if each.start in body}
    return _clean(lines, prose, body, inner if is_rst else None)


def _strip_comments(lines: Sequence[str]) -> tuple[list[str], list[bool]]:
    """Without HTML comments, and which lines are outside of fenced code."""
    kept: list[str] = []
    prose: list[bool] = []
    fence, hidden = "", False
    for line in lines:
        if fence:
            kept.append(line)
            prose.append(False)
            mark = line.strip()
            if mark.startswith(fence) and not mark.strip(fence[0]):
                fence = ""
            continue
        shown, hidden = _strip_comment(line, hidden=hidden)
        opening = _FENCE.fullmatch(shown)
        if opening:
            fence = opening[1]
        kept.append(shown)
        prose.append(not opening)
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


def _find_headings(lines: Sequence[str], prose: Sequence[bool]) -> tuple[list[_Heading], bool]:
    """All of them, and whether they are those of reStructuredText."""
    found: list[_Heading] = []
    underlined = list(_find_underlined(lines, prose))
    atx = [
        (at, match)
        for at, line in enumerate(lines)
        if prose[at] and len(line) <= _MAX_HEADING and (match := _ATX.fullmatch(line))
    ]
    # Levels are those of CommonMark, or given by the order in which the file begins to use them.
    styles = ["=", "-"] if atx else list(dict.fromkeys(style for style, *_ in underlined))
    for style, start, at in underlined:
        if style in styles:
            found.append(_Heading(styles.index(style) + 1, lines[at].strip(), start, at + 2))
    for at, match in atx:
        title = match[2].strip().rstrip("#").strip()
        found.append(_Heading(len(match[1]), title, at, at + 1))
    rst = not atx and any(each[0] not in "=-" or each[2] != each[1] for each in underlined)
    rst = rst or (not atx and any(line.startswith(".. ") for line in lines))
    return sorted(found, key=lambda each: each.start), rst


def _find_underlined(lines: Sequence[str], prose: Sequence[bool]) -> Iterator[tuple[str, int, int]]:
    """The style of each, the line where it begins, and the line of its title."""
    for at in range(len(lines) - 1):
        title, below = lines[at].rstrip(), _UNDERLINE.fullmatch(lines[at + 1])
        if not (title and below and prose[at] and prose[at + 1]) or _UNDERLINE.fullmatch(title):
            continue
        if len(title) > _MAX_HEADING:
            continue
        style, above = below[1], lines[at - 1].rstrip() if at else ""
        if above == below[0].rstrip():
            yield style * 2, at - 1, at
        elif not above and (style in "=-" or len(below[0].rstrip()) >= len(title)):
            yield style, at, at


@dataclass(frozen=True, slots=True)
class _HeadingVersion:
    """What a heading says: a version, and the words before and after it."""

    version: str
    before: str
    after: str
    ours: bool


def _read_heading(heading: str, names: Collection[str]) -> _HeadingVersion | None:
    text = _TARGET.sub(" ", heading).replace("`", " ").replace("*", " ")
    before, ours = "", False
    for name in sorted(names, key=len, reverse=True):
        found = re.search(rf"(?<![\w@/.-]){re.escape(name)}(?=[-@/_: ]*[vV]?[0-9])", text)
        if name and found:
            before, text, ours = text[: found.start()], text[found.end() :].lstrip("-@/_: "), True
            break
    whole = text
    dated = _DATE.sub(lambda date: " " * len(date[0]), text)
    match = _VERSION.search(dated)
    if not match:
        text, match = whole, _VERSION.search(whole)
    if not match:
        return None
    words = _NOISE.sub(" ", before + text[: match.start()]).strip()
    return _HeadingVersion(match[1], words, dated[match.end() :], ours)


def _is_release(heading: _Heading, names: Collection[str]) -> bool:
    """Whether it is about one version, and nothing else."""
    if re.fullmatch(r"\W*unreleased\W*", _TARGET.sub("]", heading.text), re.IGNORECASE):
        return True
    said = _read_heading(heading.text, names)
    if said is None or "." not in said.version or (said.before and not said.ours):
        return False
    return not re.search(r"[A-Za-z]{2}", _IN_BRACKETS.sub("", said.after))


def _best_heading(headings: Sequence[_Heading], version: str, names: Collection[str]) -> int | None:
    """The one that fits best: of the package by name, of the version alone, of a project's name."""
    said = [_read_heading(each.text, names) for each in headings]
    several = any(each is not None and each.ours for each in said)
    prefixes = {each.before for each in said if each is not None and "." in each.version}
    found: list[tuple[tuple[int, int, int, int], int]] = []
    wanted = version.lower().removeprefix("v")
    below = _below_name(headings, names)
    for at, each in enumerate(said):
        if each is None:
            continue
        exact = each.version.lower() == wanted
        if not exact and (
            "+" in version + each.version or version_key(each.version) != version_key(version)
        ):
            continue
        ours = each.ours or below[at]
        if not ours and each.before and (several or len(prefixes) > 1):
            continue
        if not (exact or ours or _is_release(headings[at], names)):
            continue
        rank = 0 if ours else 2 if each.before else 1
        found.append(((rank, not exact, headings[at].level, at), at))
    return min(found)[1] if found else None


def _below_name(headings: Sequence[_Heading], names: Collection[str]) -> list[bool]:
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


def _section_end(headings: Sequence[_Heading], at: int, names: Collection[str], lines: int) -> int:
    releases = [each for each in headings if _is_release(each, names)]
    levels = {each.level for each in releases} | {headings[at].level}
    # Where a patch has a deeper heading than a major version, so may have what is new in it.
    level = headings[at].level if len(levels) == 1 else min(levels) - 1
    ending = {each.start for each in releases}
    for each in headings[at + 1 :]:
        if each.start in ending or each.level <= level:
            return each.start
    return lines


def _clean(
    lines: Sequence[str], prose: Sequence[bool], body: range, headings: dict[int, _Heading] | None
) -> str:
    definitions: dict[str, str] = {}
    for line, is_prose in zip(lines, prose, strict=True):
        if is_prose and (match := _DEFINITION.fullmatch(line)):
            definitions.setdefault(match[1].lower(), line.strip())
    kept: list[str] = []
    skip = 0
    for at in body:
        if heading := (headings or {}).get(at):
            kept.append(f"### {heading.text}")
            skip = heading.body
        if at >= skip and not (prose[at] and _DEFINITION.fullmatch(lines[at])):
            kept.append(
                _to_markdown(lines[at]) if headings is not None and prose[at] else lines[at]
            )
    while kept and _TRAILING.fullmatch(kept[-1].strip(" \t")):
        kept.pop()
    text = "\n".join(kept).strip("\n")
    if fence := _open_fence(kept):
        text += "\n" + fence
    used = {each.lower() for each in re.findall(r"\[([^\[\]\n]+)\]", text)}
    needed = [line for label, line in definitions.items() if label in used]
    return "\n".join([text, "", *needed] if text and needed else [text])


def _to_markdown(line: str) -> str:
    """A line of reStructuredText, its links and roles as Markdown has them."""
    if len(line) > _MAX_LINKED:
        return line
    return _RST_ROLE.sub(
        r"\1", _RST_LINK.sub(lambda link: f"[{link[1].rstrip()}]({link[2]})", line)
    )


def _open_fence(lines: Sequence[str]) -> str:
    """The fence that would end the code at the end of `lines`, "" where it has ended."""
    fence = ""
    for line in lines:
        mark = line.strip()
        if fence:
            if mark.startswith(fence) and not mark.strip(fence[0]):
                fence = ""
        elif opening := _FENCE.fullmatch(line):
            fence = opening[1]
    return fence
