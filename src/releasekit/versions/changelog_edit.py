"""A new section in a changelog in Markdown.

Lines are spliced, so that everything else stays as it is; and what was written is read back.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.host.edits import refuse_edit
from releasekit.text.changelog import (
    DEFINITION,
    TRAILING,
    ends_with_version,
    has_version,
    is_unreleased,
    read_changelog,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from releasekit.errors import PlanError
    from releasekit.text.changelog import Changelog, Section

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# What a heading is linked by stands above it.
_ANCHOR: Final = re.compile(r"<a [^>]*>(?:</a>)?")
_ITEM: Final = re.compile(r"[-*+] |\s")
_PENDING: Final = re.compile(r"\bunreleased\b", re.IGNORECASE)
# Lines that introduce a changelog are fewer.
_MAX_INTRODUCTION: Final = 20


class _Part(NamedTuple):
    """Lines without their ends: a heading, or none, and what stands below it."""

    title: str
    heading: str
    lines: list[str]


class _Places(NamedTuple):
    """Sections of a file. `releases` are those of versions, from the top, and `own` those of them
    that are of the package. `taken` becomes the section of the new version; its heading stays if it
    `is_written`.
    """

    releases: Sequence[Section]
    own: Sequence[Section]
    taken: Section | None
    is_written: bool
    upcoming: Section | None


def add_section(
    text: str | None,
    *,
    path: str,
    version: str,
    date: str,
    body: str,
    names: Collection[str] = (),
    name: str = "",
    replaces: str = "",
) -> str:
    """The file with a section for `version`: a new one above all others, or the one that it has,
    or that of `replaces`, a version that was written and not published. What is unreleased moves
    into it, and what it lacks of `body` is added.

    `text` is None for a new file, and `body` is from `write_section_body`. `names` are those that
    headings may give the package; `name` is the one that they have to, in a file of several
    packages. Raises PlanError, which shows `path` and the section, for a file that is not Markdown,
    and for one that could not be read back so.
    """
    if not text or not text.strip():
        text = "# Changelog\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    names, version = {*names, name} - {""}, version.removeprefix("v")
    is_markdown = not path.lower().endswith(".rst")
    new_section = [_write_heading(None, version, date, name), "", body]
    refusal = partial(_refuse, path, new_section, "or" if is_markdown else "and")
    if not is_markdown:
        raise refusal("only Markdown is edited")
    old = None if "\0" in text else read_changelog(text, names)
    if old is None:
        raise refusal("it is too long, or no text")
    places = _find_places(old, version, replaces, is_shared=bool(name))
    told = sum(bool(each.strip()) for each in old.lines)
    if not places.releases and not places.upcoming and told > _MAX_INTRODUCTION:
        raise refusal("none of its headings is a version, such as `## 1.2.0`")

    lines = _LINE.findall(text)
    shown = [each.rstrip("\r\n") for each in lines]
    kept, moved = _find_text(old, places.taken), _find_text(old, places.upcoming)
    parts = _split(old, shown, kept)
    # Of several packages, nobody knows whose it is.
    news = [] if name else _split(old, shown, moved, filled=True)
    like = places.taken or _choose_model(places)
    marks = "#" * min(6, max(3, like.heading.level + 1 if like else 3))
    there = {line.strip() for part in (*parts, *news) for line in part.lines} - {""}
    lacking = [
        _Part(title, f"{marks} {title}" if title else "", entries)
        for title, entries in _list_lacking(body, there)
    ]
    heading = _write_heading(like, version, date, name)
    gap = [""]
    if taken := places.taken:
        if places.is_written and not news and not lacking:
            return mark + text
        if places.is_written:
            heading = shown[taken.heading.start]
        gap = shown[taken.heading.start + 1 : kept.start] if kept else gap
    section = [heading, *gap, *_join(parts, [*news, *lacking])]

    place = _choose_place(places, shown, kept, moved, is_filled=bool(news))
    newline = lines[0].removeprefix(shown[0]) if lines else ""
    _splice(lines, place, section, newline or "\n")
    if taken and news:
        _splice(lines, moved, [], newline or "\n")
    written = "".join(lines)
    new = read_changelog(written, names)
    links = sorted(old.definitions.values())
    before = [line for at, line in links if at < place.start]
    alone = read_changelog("\n".join([*before, *section, "", *(line for _, line in links)]), names)
    others = [each for each in places.own if each is not taken]
    added = {line for part in lacking for line in part.lines}
    if (
        new is None
        or alone is None
        or not added <= {*alone.lines}  # some are inside a comment
        or not any(new.find(version) is each for each in _list_releases(new, shared=bool(name)))
        or not _is_read_back(old, new, alone, version, others)
    ):
        raise refusal(f"that of {version} would be read otherwise, or change another one")
    return mark + written


def _refuse(path: str, section: Sequence[str], word: str, why: str) -> PlanError:
    hint = f'Set `changelog = "none"` in [version], {word} add the section by hand:'
    return refuse_edit(f"{path}: cannot add a section: {why}", "\n".join([hint, "", *section]))


def _find_places(old: Changelog, version: str, replaces: str, *, is_shared: bool) -> _Places:
    releases = _list_releases(old, shared=is_shared)
    own = [each for each in releases if not is_shared or (each.said and each.said.ours)]
    known, replaced = (
        next((each for each in own if each is found), None)
        for found in (old.find(version), old.find(replaces) if replaces else None)
    )
    upcoming = next((each for each in old.sections if is_unreleased(each.heading)), None)
    if upcoming and releases and releases[0].heading.start < upcoming.heading.start:
        upcoming = None
    return _Places(
        releases=releases,
        own=own,
        taken=known or replaced or next(filter(_is_pending, own[:1]), None),
        is_written=known is not None and not _is_pending(known),
        upcoming=upcoming,
    )


def _choose_model(places: _Places) -> Section | None:
    """The section whose heading a new one is like."""
    return next((each for each in places.releases if not _is_pending(each)), places.upcoming)


def _choose_place(
    places: _Places, shown: Sequence[str], kept: range, moved: range, *, is_filled: bool
) -> range:
    """The lines that make way for the section."""
    if places.taken:
        start = places.taken.heading.start
        return range(start, max(start + 1, kept.stop))
    if places.upcoming:
        return moved if is_filled else range(moved.stop, moved.stop)
    if places.releases:
        above = _find_anchor(shown, places.releases[0].heading.start)
        return range(above, above)
    rest = any(each.strip() for each in shown[kept.stop :])
    return range(kept.stop, kept.stop if rest else len(shown))


def _list_releases(log: Changelog, *, shared: bool) -> list[Section]:
    """Those with a version, from the top. In a file of several packages, and where all headings
    name a project, words may stand before it.
    """
    strict = [each for each in log.sections if each.is_release and each.said]
    if strict and not shared:
        return strict
    found = [
        each
        for each in log.sections
        if each.said and has_version(each.heading, each.said) and ends_with_version(each.said)
    ]
    return [each for each in found if each.heading.level == found[0].heading.level]


def _is_pending(section: Section) -> bool:
    """Whether its heading has a version that is said to be unreleased."""
    return section.said is not None and bool(_PENDING.search(section.said.after))


def _find_text(log: Changelog, section: Section | None) -> range:
    """The lines that say something, without what leads to the next heading or ends the file; of a
    file without sections, where it ends.
    """
    start, stop = (section.heading.start + 1, section.end) if section else (0, len(log.lines))
    while stop > start and _is_trailing(log, stop - 1):
        stop -= 1
    if section is None:
        return range(stop, stop)
    return range(next((at for at in range(start, stop) if log.lines[at].strip()), stop), stop)


def _is_trailing(log: Changelog, at: int) -> bool:
    line = log.lines[at].strip()
    return bool(TRAILING.fullmatch(line) or (log.prose[at] and DEFINITION.fullmatch(line)))


def _find_anchor(lines: Sequence[str], at: int) -> int:
    """Where the heading at this line begins, with the targets of links above it."""
    found = at
    while at and (not (line := lines[at - 1].strip()) or _ANCHOR.fullmatch(line)):
        at -= 1
        found = at if line else found
    return found


def _split(
    log: Changelog, lines: Sequence[str], body: range, *, filled: bool = False
) -> list[_Part]:
    """`filled` leaves out parts in which nothing stands."""
    headings = [each.heading for each in log.sections if each.heading.start in body]
    starts = [*(each.start for each in headings), body.stop]
    parts = [_Part("", "", [*lines[body.start : starts[0]]])]
    for number, each in enumerate(headings):
        stop = starts[number + 1]
        below = number + 1 < len(headings) and headings[number + 1].level > each.level
        if not filled or below or any(line.strip() for line in log.lines[each.start + 1 : stop]):
            parts.append(_Part(each.text, lines[each.start], [*lines[each.start + 1 : stop]]))
    return [each for each in parts if each.heading or any(line.strip() for line in each.lines)]


def _list_lacking(body: str, there: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """The parts of `body`, with those of their entries whose first line is not there. A sentence
    instead of parts is for a section in which nothing stands.
    """
    for part in re.split(r"^### ", f"\n{body}", flags=re.MULTILINE):
        title, _, text = part.partition("\n")
        entries = [each.rstrip() for each in re.split(r"^(?=- )", text, flags=re.MULTILINE)]
        lacking = [
            each for each in entries if each.strip() and each.partition("\n")[0] not in there
        ]
        if lacking and (title or not there):
            yield title, ["", *"\n".join(lacking).split("\n")]


def _join(parts: Sequence[_Part], more: Iterable[_Part]) -> list[str]:
    """The lines of `parts`, with those of `more` below the same headings, or at the end."""
    joined = [*parts]
    by_title: dict[str, _Part] = {}
    for part in joined:
        by_title.setdefault(part.title.casefold(), part)
    for each in more:
        part = by_title.setdefault(each.title.casefold(), each)
        if part is each:
            joined.append(each)
            continue
        while part.lines and not part.lines[-1].strip():
            part.lines.pop()
        gap = [] if part.lines and _ITEM.match(part.lines[-1]) else [""]
        part.lines.extend([*gap, *_strip(each.lines)])
    found: list[str] = []
    for part in joined:
        if part.heading and found and found[-1].strip():
            found.append("")
        found += [part.heading, *part.lines] if part.heading else part.lines
    return _strip(found)


def _strip(lines: Sequence[str]) -> list[str]:
    """Without empty lines around them."""
    told = [at for at, line in enumerate(lines) if line.strip()]
    return [*lines[told[0] : told[-1] + 1]] if told else []


def _write_heading(model: Section | None, version: str, date: str, name: str) -> str:
    """With the marks and brackets of the model."""
    label = f"{name} {version}".lstrip()
    if model and model.heading.text.startswith("["):
        label = f"[{label}]"
    return f"{'#' * (model.heading.level if model else 2)} {label} - {date}"


def _splice(lines: list[str], place: range, new: Sequence[str], newline: str) -> None:
    """With an empty line before and behind what is new, or one of two where nothing is."""
    start, stop = place.start, place.stop
    block = [each + newline for each in new]
    if start and not lines[start - 1].endswith(("\r", "\n")):
        lines[start - 1] += newline
    is_free = not start or not lines[start - 1].strip()
    if block and not is_free:
        block.insert(0, newline)
    if block and stop < len(lines) and lines[stop].strip():
        block.append(newline)
    while not block and is_free and stop < len(lines) and not lines[stop].strip():
        stop += 1
    lines[start:stop] = block


def _is_read_back(
    old: Changelog, new: Changelog, alone: Changelog, version: str, others: Iterable[Section]
) -> bool:
    """Whether the section says in the new file what it says alone, and each of the others what it
    said before.
    """
    put, found = alone.find(version), new.find(version)
    if put is None or found is None or put.end < len(alone.lines):
        return False
    return new.read(found) == alone.read(put) and all(
        (now := new.find(each.said.version)) and new.read(now) == old.read(each)
        for each in others
        if each.said and old.find(each.said.version) is each
    )
