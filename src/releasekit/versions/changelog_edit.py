"""A new section in a changelog in Markdown.

Lines are spliced, so that everything else stays as it is; and what was written is read back.
"""

from __future__ import annotations

import re
from itertools import zip_longest
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
    """Sections of a file, which several packages may share. `releases` are those of versions, from
    the top, and `own` those of them that are of the package. `taken` becomes the section of the new
    version; its heading stays if it `is_written`. `kept` are the lines of its text, and `moved`
    those of `upcoming`.
    """

    log: Changelog
    is_shared: bool
    releases: Sequence[Section]
    own: Sequence[Section]
    taken: Section | None
    is_written: bool
    upcoming: Section | None
    kept: range
    moved: range


class _New(NamedTuple):
    """Lines in place of others, with what is `added` and, where it `moves`, what is unreleased."""

    lines: Sequence[str]
    added: Collection[str]
    place: range
    moves: bool


def add_section(
    text: str | None,
    *,
    path: str,
    version: str,
    date: str,
    body: str,
    names: Collection[str],
    name: str,
    replaces: str,
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
    bare, version = text.removeprefix("\ufeff"), version.removeprefix("v")
    title = f"{name} {version}".lstrip()
    is_markdown = not path.lower().endswith(".rst")

    def refuse(why: str) -> PlanError:
        word = "or" if is_markdown else "and"
        hint = f'Set `changelog = "none"` in [version], {word} add the section by hand:'
        section = [hint, "", _write_heading(None, title, date), "", body]
        return refuse_edit(f"{path}: cannot add a section: {why}", "\n".join(section))

    if not is_markdown:
        raise refuse("only Markdown is edited")
    log = None if "\0" in bare else read_changelog(bare, names)
    if log is None:
        raise refuse("it is too long, or no text")
    places = _find_places(log, version, replaces, is_shared=bool(name))
    told = sum(bool(each.strip()) for each in log.lines)
    if not places.releases and not places.upcoming and told > _MAX_INTRODUCTION:
        raise refuse("none of its headings is a version, such as `## 1.2.0`")
    lines = _LINE.findall(bare)
    new = _make_section(places, lines, body, title, date)
    if places.is_written and not new.moves and not new.added:
        return text
    written = _splice_section(lines, places, new)
    if not _is_read_back(places, new, read_changelog(written, names), names, version):
        raise refuse(f"that of {version} would be read otherwise, or change another one")
    return text.removesuffix(bare) + written


def _find_places(log: Changelog, version: str, replaces: str, *, is_shared: bool) -> _Places:
    releases = _list_releases(log, is_shared=is_shared)
    own = [each for each in releases if not is_shared or (each.said and each.said.ours)]
    known, replaced = (
        found if (found := log.find(each)) in own else None for each in (version, replaces)
    )
    taken = known or replaced or next(filter(_is_pending, own[:1]), None)
    upcoming = next((each for each in log.sections if is_unreleased(each.heading)), None)
    if upcoming and releases and releases[0].heading.start < upcoming.heading.start:
        upcoming = None
    return _Places(
        log=log,
        is_shared=is_shared,
        releases=releases,
        own=own,
        taken=taken,
        is_written=known is not None and not _is_pending(known),
        upcoming=upcoming,
        kept=_find_text(log, taken),
        moved=_find_text(log, upcoming),
    )


def _make_section(places: _Places, lines: Sequence[str], body: str, title: str, date: str) -> _New:
    shown = [each.rstrip("\r\n") for each in lines]
    parts = _split(places.log, shown, places.kept)
    # Of several packages, nobody knows whose it is.
    news = [] if places.is_shared else _split(places.log, shown, places.moved, filled=True)
    released = (each for each in places.releases if not _is_pending(each))
    model = places.taken or next(released, places.upcoming)
    level = min(6, max(3, model.heading.level + 1 if model else 3))
    lacking = [*_list_lacking(body, [*parts, *news], level)]
    top = places.taken.heading.start if places.taken else 0
    heading = shown[top] if places.is_written else _write_heading(model, title, date)
    gap = shown[top + 1 : places.kept.start] if places.kept else [""]
    return _New(
        lines=[heading, *gap, *_join(parts, [*news, *lacking])],
        added={line for part in lacking for line in part.lines},
        place=_choose_place(places, lines, moves=bool(news)),
        moves=bool(news),
    )


def _choose_place(places: _Places, lines: Sequence[str], *, moves: bool) -> range:
    kept, moved = places.kept, places.moved
    if places.taken:
        return range(places.taken.heading.start, kept.stop)
    if places.upcoming:
        return moved if moves else range(moved.stop, moved.stop)
    if places.releases:
        above = _find_anchor(lines, places.releases[0].heading.start)
        return range(above, above)
    rest = any(each.strip() for each in lines[kept.stop :])
    return range(kept.stop, kept.stop if rest else len(lines))


def _list_releases(log: Changelog, *, is_shared: bool) -> list[Section]:
    """Those with a version, from the top. In a file of several packages, and where all headings
    name a project, words may stand before it.
    """
    strict = [each for each in log.sections if each.is_release and each.said]
    if strict and not is_shared:
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
    told = (at for at in range(start, stop) if log.lines[at].strip())
    return range(next(told, stop) if section else stop, stop)


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
    for each, stop, next_ in zip_longest(headings, starts[1:], headings[1:]):
        below = next_ is not None and next_.level > each.level
        if not filled or below or any(line.strip() for line in log.lines[each.start + 1 : stop]):
            parts.append(_Part(each.text, lines[each.start], [*lines[each.start + 1 : stop]]))
    return [each for each in parts if each.heading or any(line.strip() for line in each.lines)]


def _list_lacking(body: str, parts: Sequence[_Part], level: int) -> Iterator[_Part]:
    """The parts of `body`, with those of their entries whose first line is not in `parts`. A
    sentence instead of parts is for a section in which nothing stands.
    """
    there = {line.strip() for part in parts for line in part.lines} - {""}
    for part in re.split(r"^### ", f"\n{body}", flags=re.MULTILINE):
        title, _, text = part.partition("\n")
        entries = [each.rstrip() for each in re.split(r"^(?=- )", text, flags=re.MULTILINE)]
        lacking = [
            each for each in entries if each.strip() and each.partition("\n")[0] not in there
        ]
        if lacking and (title or not there):
            heading = f"{'#' * level} {title}" if title else ""
            yield _Part(title, heading, ["", *"\n".join(lacking).split("\n")])


def _join(parts: Sequence[_Part], more: Iterable[_Part]) -> list[str]:
    """The lines of `parts`, with those of `more` below the same headings, or at the end."""
    joined = [*parts]
    by_title = {part.title.casefold(): part for part in parts[::-1]}
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


def _write_heading(model: Section | None, title: str, date: str) -> str:
    """With the marks and brackets of the model."""
    if model and model.heading.text.startswith("["):
        title = f"[{title}]"
    return f"{'#' * (model.heading.level if model else 2)} {title} - {date}"


def _splice_section(lines: list[str], places: _Places, new: _New) -> str:
    first = lines[0] if lines else ""
    newline = first.removeprefix(first.rstrip("\r\n")) or "\n"
    _splice(lines, new.place, new.lines, newline)
    if places.taken and new.moves:
        _splice(lines, places.moved, [], newline)
    return "".join(lines)


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
    places: _Places, new: _New, after: Changelog | None, names: Collection[str], version: str
) -> bool:
    """Whether the section says in the new file what it says alone, and each of the others what it
    said before.
    """
    old = places.log
    links = sorted(old.definitions.values())
    before = [line for at, line in links if at < new.place.start]
    lines = [*before, *new.lines, "", *(line for _, line in links)]
    alone = read_changelog("\n".join(lines), names)
    if after is None or alone is None:
        return False
    put, found = alone.find(version), after.find(version)
    if put is None or found not in _list_releases(after, is_shared=places.is_shared):
        return False
    return (
        put.end == len(alone.lines)
        and {*alone.lines}.issuperset(new.added)  # none is inside a comment
        and after.read(found) == alone.read(put)
        and all(
            (now := after.find(each.said.version)) and after.read(now) == old.read(each)
            for each in places.own
            if each is not places.taken and each.said and old.find(each.said.version) is each
        )
    )
