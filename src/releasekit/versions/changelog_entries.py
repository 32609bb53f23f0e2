"""What a changelog says of a new version: the reasons for it, as Markdown."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from releasekit.decided import Level
from releasekit.report.text import few
from releasekit.text.changelog import open_fence, strip_comments
from releasekit.text.escape import clip, subject, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.decided import Bump, Source, VersionIntent
    from releasekit.model import PackageId

_PARTS: Final = ("Breaking changes", "Features", "Fixes", "Reverts", "Dependencies")
# People write shorter ones.
_MAX_SUBJECT: Final = 1_000
_LAST_SECOND: Final = 253_402_300_799  # of the year 9999, the last that has a date
# Below that of a part, in which entries are.
_LEVEL: Final = 4
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_OF_RELEASE: Final = re.compile(r"[0-9]\.[0-9]|unreleased", re.IGNORECASE)
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*")
_PARAGRAPH: Final = re.compile(r" {0,3}[^\s>#|*+=-].*")


def write_section_body(
    bump: Bump, versions: Mapping[PackageId, str], late: Iterable[VersionIntent] = ()
) -> str:
    """What stands below the heading of the version: parts begin with `### `, entries with `- `.

    `versions` are the new ones of all packages that get one, as they are to be shown. `late` are
    the intents of this package that its last version had already.
    """
    if not bump.old:
        return "First release."
    parts: dict[str, list[str]] = {part: [] for part in _PARTS}
    for reason in bump.reasons:
        if reason.source:
            part = _choose_part(reason.source, reason.level)
            parts[part].append(_write_entry(reason.source))
        elif reason.edge and reason.edge.on in versions:
            on = reason.edge.on
            name = on.name if on.ecosystem == bump.package.ecosystem else str(on)
            parts["Dependencies"].append(f"- {_write_name(name)} {versions[on]}")
    for intent in late:
        if intent.level or intent.exact:
            part = _choose_part(intent.source, intent.level)
            mark = f" *({subject(f'already in {bump.old}')})*"
            parts[part].append(_write_entry(intent.source, mark))
    # Two edges may lead to one dependency, and a source may say nothing.
    entries = {part: list(filter(None, dict.fromkeys(parts[part]))) for part in _PARTS}
    shown = [f"### {part}\n\n" + "\n".join(each) for part, each in entries.items() if each]
    return "\n\n".join(shown) or _explain_nothing(bump, versions)


def write_date(bump: Bump, newest_s: int) -> str:
    """The day, in UTC, of its newest intent; of `newest_s`, in seconds since 1970, where none has a
    time.
    """
    own_s = max((each.source.time_s for each in bump.reasons if each.source), default=0)
    return datetime.fromtimestamp(min(own_s or newest_s, _LAST_SECOND), UTC).date().isoformat()


def _write_name(name: str) -> str:
    """So that it can be copied: as text, a scope would mention whoever is called so on GitHub."""
    return f"`{name}`" if "@" in name else subject(name)


def _choose_part(source: Source, level: Level) -> str:
    if source.breaking or level is Level.MAJOR:
        return "Breaking changes"
    if source.type == "feat" or level is Level.MINOR:
        return "Features"
    return "Reverts" if source.type == "revert" else "Fixes"


def _write_entry(source: Source, mark: str = "") -> str:
    """Empty where the source says nothing. `mark` follows its first paragraph."""
    text = source.text.strip()
    number = f"(#{source.pull_request})"
    end = f" {number}{mark}" if source.pull_request and number not in text else mark
    if source.path:
        return _write_markdown(text, end)
    return f"- {subject(clip(text, _MAX_SUBJECT))}{end}" if text else ""


def _write_markdown(text: str, end: str) -> str:
    """One item of a list: the first paragraph, `end`, and the rest."""
    lines, prose = _leave_comments_out(visible_lines(text))
    if not any(lines):
        return ""
    headings = _lower_headings(lines, prose)
    breaks = (at for at in range(1, len(lines)) if at in headings or (prose[at] and not lines[at]))
    end_of_first = 1 if 0 in headings else next(breaks, len(lines))
    first, rest = lines[:end_of_first], "\n".join(lines[end_of_first:]).strip("\n")
    if not first[0].strip("- \t"):
        # Dashes behind that of the item would make it a line.
        first[0] = "\\" + first[0].lstrip()
    if prose[end_of_first - 1]:
        first[-1] += end
    elif end:
        first += ["", end.lstrip()]
    told = [*first, *(["", *rest.split("\n")] if rest else [])]
    return "- " + "\n".join(f"  {line}" if line else "" for line in told).lstrip()


def _leave_comments_out(text: str) -> tuple[list[str], list[bool]]:
    """Its lines, and which are outside of fenced code. A comment that is not closed is text."""
    if not strip_comments([*text.split("\n"), "x"])[0][-1]:
        text = text.replace("<!--", "<\u200b!--")
    shown, _ = strip_comments(text.split("\n"))
    text = "\n".join([*shown, open_fence(shown)]).strip()
    lines = [line.rstrip() for line in text.split("\n")]
    _, prose = strip_comments(lines)
    # Around a comment may have stood the halves of another one.
    pairs = zip(lines, prose, strict=True)
    return [line.replace("<!--", "<\u200b!--") if out else line for line, out in pairs], prose


def _lower_headings(lines: list[str], prose: Sequence[bool]) -> set[int]:
    """Where they are. They become lower than a part of the section is, and lose their marks in the
    first line.
    """
    for at in range(len(lines) - 1):
        below = _UNDERLINE.fullmatch(lines[at + 1])
        if below and prose[at] and prose[at + 1] and _PARAGRAPH.fullmatch(lines[at]):
            lines[at : at + 2] = f"{'#' if below[1][0] == '=' else '##'} {lines[at].strip()}", ""
    found = {
        at: match
        for at, line in enumerate(lines)
        if prose[at] and (match := _HEADING.fullmatch(line))
    }
    highest = min((len(match[1]) for at, match in found.items() if at), default=_LEVEL)
    for at, match in found.items():
        marks = "#" * min(6, len(match[1]) + max(0, _LEVEL - highest))
        title = match[2].rstrip("# \t")
        # That of a release would begin a section.
        shown = f"**{title}**" if _OF_RELEASE.search(title) else f"{marks} {match[2]}"
        lines[at] = shown if at else title
    return set(found)


def _explain_nothing(bump: Bump, versions: Mapping[PackageId, str]) -> str:
    """Why there is a version without a change of its own."""
    others = [
        _write_name(each.name)
        for reason in bump.reasons
        for each in (reason.group.packages if reason.group else ())
        if each in versions and each != bump.package
    ]
    return f"Released together with {few(others, 3)}." if others else "No notable changes."
