"""A new section in a changelog, written as the file writes its others.

Lines are spliced, so that everything else stays as it is; and what was written is read back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.versioning.changelog import (
    DATE,
    DEFINITION,
    TRAILING,
    ends_with_version,
    has_version,
    is_unreleased,
    read_changelog,
)
from releasekit.versioning.edits import refuse_edit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from releasekit.errors import PlanError
    from releasekit.versioning.changelog import Changelog, Section

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
# What a heading is linked by stands above it.
_ANCHOR: Final = re.compile(r"<a [^>]*>(?:</a>)?|\.\. _[^:]*:")
_ITEM: Final = re.compile(r"[-*+] |\s")
_PENDING: Final = re.compile(r"\bunreleased\b", re.IGNORECASE)
_LINK: Final = re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])|`([^`<]*?)\s*<[^<>]*>`_+")
_BEFORE: Final = re.compile(r"[\w@/`.:\[ -]*")
_OTHER_NAME: Final = re.compile(r"(\[?)(?:\S.*?([ @/:-]+))?(\[?v?)")
# How release-please, conventional-changelog and others link headings and entries.
_COMPARED: Final = re.compile(
    r"\[([^\[\]]*)\]\((https://[^()\s]+/compare/)[^()\s]+?\.\.\.([^()\s]+)\)"
)
_LINKED: Final = re.compile(
    r"\[#[0-9]+\]\((https://[^()\s]+/(?:issues|pull|merge_requests)/)[0-9]+\)"
)
_NUMBER: Final = re.compile(r"^(- .*)\(#([0-9]+)\)", re.MULTILINE)
# With a dash of any length.
_DATED: Final = re.compile(r"([ ,/:\u2013\u2014-]{1,3}\(?)[0-9]{4}-[0-9]{2}-[0-9]{2}(\)?)")
# Longer headings are not searched for links.
_MAX_LINKED: Final = 1_000
# Lines that introduce a changelog are fewer.
_MAX_INTRODUCTION: Final = 20


class _Part(NamedTuple):
    """Lines without their ends: of a heading, and of what stands below it."""

    title: str
    heading: Sequence[str]
    lines: list[str]


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

    Headings and numbers are linked as the file links them. `text` is None for a new file, and
    `body` is from `write_section_body`. `names` are those that headings may give the package;
    `name` is the one that they have to, in a file of several packages. Raises PlanError, which
    shows `path`, for a file that could not be read back so.
    """
    is_rst = path.lower().endswith(".rst")
    if not text or not text.strip():
        text = "Changelog\n=========\n" if is_rst else "# Changelog\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    names, version = {*names, name} - {""}, version.removeprefix("v")
    if linked := _LINKED.search(text):
        body = _NUMBER.sub(rf"\1([#\2]({linked[1]}\2))", body)
    old = read_changelog(text, names, is_rst=is_rst)
    if old is None or "\0" in text:
        raise _refuse(path, "it is longer than anybody reads, or no text")
    releases = _list_releases(old, shared=bool(name))
    own = [each for each in releases if not name or (each.said and each.said.ours)]
    known, replaced = (
        next((each for each in own if each is found), None)
        for found in (old.find(version), old.find(replaces) if replaces else None)
    )
    taken = known or replaced or next(filter(_is_pending, own[:1]), None)
    upcoming = next((each for each in old.sections if is_unreleased(each.heading)), None)
    if upcoming and releases and releases[0].heading.start < upcoming.heading.start:
        upcoming = None
    told = sum(bool(each.strip()) for each in old.lines)
    if not releases and not upcoming and told > _MAX_INTRODUCTION:
        raise _refuse(path, "none of its headings is a version")

    lines = _LINE.findall(text)
    shown = [each.rstrip("\r\n") for each in lines]
    kept, moved = _find_text(old, taken), _find_text(old, upcoming)
    parts = _split(old, shown, kept)
    # Of several packages, nobody knows whose it is.
    news = [] if name else _split(old, shown, moved, told=True)
    there = {line.strip() for part in (*parts, *news) for line in part.lines} - {""}
    model = next((each for each in releases if not _is_pending(each)), upcoming)
    like = taken or model
    lacking = [
        _Part(title, _write_heading(old, like, title, below=True) if title else (), entries)
        for title, entries in _list_lacking(body, there)
    ]
    heading: Sequence[str] = _write_heading(old, like, _write_title(model, version, date, name))
    if known and not _is_pending(known):
        if not news and not lacking:
            return mark + text
        heading = shown[known.heading.start : known.heading.body]
    gap = shown[taken.heading.body : kept.start] if taken and kept else [""]
    section = [*heading, *gap, *_join(parts, [*news, *lacking])]

    if taken:
        place = range(taken.heading.start, max(taken.heading.body, kept.stop))
    elif upcoming:
        place = moved if news else range(moved.stop, moved.stop)
    elif releases:
        above = _find_anchor(shown, releases[0].heading.start)
        place = range(above, above)
    else:
        rest = any(each.strip() for each in shown[kept.stop :])
        place = range(kept.stop, kept.stop if rest else len(lines))
    newline = lines[0].removeprefix(shown[0]) if lines else ""
    _splice(lines, place, section, newline or "\n")
    if taken and news:
        _splice(lines, moved, [], newline or "\n")
    written = "".join(lines)
    new = read_changelog(written, names, is_rst=is_rst)
    links = sorted(old.definitions.values())
    before = [line for at, line in links if at < place.start]
    alone = read_changelog(
        "\n".join([*before, *section, "", *(line for _, line in links)]), names, is_rst=old.is_rst
    )
    others = [each for each in own if each is not taken]
    added = {line for part in lacking for line in part.lines}
    if (
        new is None
        or alone is None
        or not added <= {*alone.lines}  # some are inside a comment
        or not any(new.find(version) is each for each in _list_releases(new, shared=bool(name)))
        or not _is_read_back(old, new, alone, version, others)
    ):
        raise _refuse(path, f"that of {version} would be read otherwise, or change another one")
    return mark + written


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
    start, stop = (section.heading.body, section.end) if section else (0, len(log.lines))
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


def _split(log: Changelog, lines: Sequence[str], body: range, *, told: bool = False) -> list[_Part]:
    """`told` leaves out parts in which nothing stands."""
    headings = [each.heading for each in log.sections if each.heading.start in body]
    starts = [*(each.start for each in headings), body.stop]
    parts = [_Part("", (), [*lines[body.start : starts[0]]])]
    for number, each in enumerate(headings):
        stop = starts[number + 1]
        below = number + 1 < len(headings) and headings[number + 1].level > each.level
        if not told or below or any(line.strip() for line in log.lines[each.body : stop]):
            parts.append(
                _Part(each.text, lines[each.start : each.body], [*lines[each.body : stop]])
            )
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
        found += [*part.heading, *part.lines]
    return _strip(found)


def _strip(lines: Sequence[str]) -> list[str]:
    """Without empty lines around them."""
    told = [at for at, line in enumerate(lines) if line.strip()]
    return [*lines[told[0] : told[-1] + 1]] if told else []


def _write_heading(
    log: Changelog, like: Section | None, title: str, *, below: bool = False
) -> list[str]:
    """As that of a section like it, or one level below."""
    heading = like.heading if like else None
    level = (heading.level if heading else 2) + below
    underlined = log.is_rst or (heading is not None and heading.body - heading.start > 1)
    # In Markdown, underlines give two levels.
    if not underlined or (below and not log.is_rst):
        return [f"{'#' * min(6, max(level, 3 * below))} {title}"]
    styles = [*log.styles, *(each for each in "=-\"'^" if each not in log.styles)]
    style = styles[level - 1]
    line = style[0] * len(title)
    return [*[line] * (len(style) - 1), title, line]


def _write_title(model: Section | None, version: str, date: str, name: str) -> str:
    """The words of a heading, as `model` has them, else in a form that all tools know."""
    label = f"{name} {version}".lstrip()
    plain = f"{label} - {date}"
    text = _LINK.sub(lambda link: link[1] or link[2] or "", model.heading.text) if model else ""
    if model is None or model.said is None:
        return f"[{label}] - {date}" if text.startswith("[") else plain
    before, _, after = text.partition(model.said.version)
    bracket = "]" if "[" in before else ""
    if not _BEFORE.fullmatch(before) or DATE.search(before) or not after.startswith(bracket):
        return plain
    after = after.removeprefix(bracket).rstrip()
    dated = _DATED.fullmatch(after)
    if "." not in version and not dated and "." in model.said.version:
        return plain  # beside others, a lone number is a version only with a date
    if name and (other := _OTHER_NAME.fullmatch(before)):
        before = f"{other[1]}{name}{other[2] or ' '}{other[3]}"
    ending = f"{dated[1]}{date}{dated[2]}" if dated else f" - {date}" if after else ""
    title, last = f"{before}{version}{bracket}{ending}", model.said.version
    compared = _COMPARED.search(model.heading.text[:_MAX_LINKED])
    if not compared or last not in compared[1] or last not in compared[3]:
        return title
    shown, tag = (each.replace(last, version) for each in (compared[1], compared[3]))
    return title.replace(shown, f"[{shown}]({compared[2]}{compared[3]}...{tag})", 1)


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


def _refuse(path: str, why: str) -> PlanError:
    return refuse_edit(
        f"{path}: cannot add a section: {why}",
        'Write the section by hand, or set `changelog = "none"` in [version].',
    )
