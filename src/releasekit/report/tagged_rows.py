"""Tags and releases at the forge, as results.json and the outputs have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from releasekit.announced import Announcement, Status, Tag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from releasekit.model import Report
    from releasekit.report.record import Record

_Followed = TypeVar("_Followed", Tag, Announcement)

# What holds when jobs disagree about one: of two that looked, the later has seen more.
_RANK = (Status.MADE, Status.THERE, Status.FOREIGN, Status.OWED, Status.WANTED)


def tag_row(tag: Tag | None) -> dict[str, object] | None:
    if tag is None:
        return None
    return {"name": tag.name, "commit": tag.commit, "object": tag.object, **_state(tag)}


def announcement_row(release: Announcement | None) -> dict[str, object] | None:
    if release is None:
        return None
    return {"tag": release.tag, **_state(release)}


def _state(followed: Tag | Announcement) -> dict[str, object]:
    return {
        "status": followed.status,
        "url": followed.url,
        "note": followed.note,
        "hint": followed.hint,
        "problem": followed.problem or "",
    }


def tag_of(row: Record) -> Tag | None:
    """None in results of an earlier version, too."""
    if row.values.get("tag") is None:
        return None
    tag = row.record("tag")
    return Tag(
        name=tag.text("name"),
        status=tag.choice("status", Status),
        commit=tag.text("commit"),
        object=tag.text("object"),
        url=tag.text("url"),
        note=tag.text("note"),
        hint=tag.text("hint"),
        problem=tag.problem("problem"),
    )


def announcement_of(row: Record) -> Announcement | None:
    """None in results of an earlier version, too."""
    if row.values.get("announcement") is None:
        return None
    release = row.record("announcement")
    return Announcement(
        tag=release.text("tag"),
        status=release.choice("status", Status),
        url=release.text("url"),
        note=release.text("note"),
        hint=release.text("hint"),
        problem=release.problem("problem"),
    )


def best(followed: Iterable[_Followed | None]) -> _Followed | None:
    """What of several jobs holds about one package."""
    known = [each for each in followed if each is not None]
    return min(known, key=lambda each: _RANK.index(each.status), default=None)


def tag_outputs(report: Report, *, brief: bool) -> list[dict[str, str]]:
    """One for each package that this run has made a tag for."""
    return list(_made(report, "tag", brief=brief))


def release_outputs(report: Report, *, brief: bool) -> list[dict[str, str]]:
    """One for each package that this run has made a release for; several may share it."""
    return list(_made(report, "announcement", brief=brief))


def _made(report: Report, what: str, *, brief: bool) -> Iterator[dict[str, str]]:
    for result in report.results:
        tag, release = result.tag, result.announcement
        followed = tag if what == "tag" else release
        if followed is None or followed.status is not Status.MADE:
            continue
        name = followed.name if isinstance(followed, Tag) else followed.tag
        row = {"package": str(result.package.id), "version": result.package.version, "tag": name}
        yield (
            row
            if brief
            else {
                **row,
                "commit": tag.commit if tag is not None else "",
                "url": followed.url,
            }
        )
