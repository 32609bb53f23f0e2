"""What merging the changes at hand would release, beside what is going to be released anyway."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.report.summary.markdown import first_fitting, table
from releasekit.report.text import columns, few, packages
from releasekit.text.escape import code, link, log_line, markdown, prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from releasekit.model import Package
    from releasekit.report.versions import VersionsView

_HEADING: Final = ("package", "now", "next, without this", "next, with it", "because")
_MOST_NAMES: Final = 10
# Of a comment, in characters: https://docs.github.com/en/rest/issues/comments
_LIMIT_BYTES: Final = 60_000
# Rows; fewer until it fits.
_SIZES: Final = (200, 50, 10)


class Preview(Struct, frozen=True):
    """Two decisions, and the packages whose changes nothing speaks for; `page` is where a person
    writes a change file for these, empty where that is unknown. Both leave out the commits that the
    changes at hand `lack` of what they are to be merged into, and both go by the `shared` files as
    the changes have them. It `has_title` where that of the pull request counts.
    """

    before: VersionsView
    after: VersionsView
    silent: Sequence[Package]
    page: str = ""
    lack: int = 0
    shared: Sequence[str] = ()
    has_title: bool = False

    def list_rows(self) -> list[tuple[str, str, str, str, str]]:
        """As the heading has them, those first that this changes something about."""
        before, after = self.before.versions, self.after.versions
        bumps = [(self.after, bump) for bump in self.after.decision.bumps]
        gone = (bump for bump in self.before.decision.bumps if bump.package not in after)
        bumps += [(self.before, bump) for bump in gone]
        rows = []
        for view, bump in bumps:
            name = bump.package
            without, within = before.get(name, "-"), after.get(name, "-")
            because = view.because(view.reasons(bump)[0])
            now = self.before.packages.get(name, view.packages[name]).version
            rows.append((view.name(name), now, without, within, because))
        return sorted(rows, key=lambda row: row[2] == row[3])

    @property
    def headline(self) -> str:
        changed = sum(without != within for _, _, without, within, _ in self.list_rows())
        if changed:
            return f"Merging this changes the next version of {packages(changed)}"
        return "Merging this changes no version"


def preview_outputs(preview: Preview) -> dict[str, str]:
    return {"missing": json.dumps([str(package.id) for package in preview.silent])}


def preview_table(preview: Preview) -> str:
    rows = preview.list_rows()
    lines = columns([_HEADING, *rows]) if rows else []
    silent = [f"nothing speaks for {package}" for package in preview.silent]
    told = [*map(log_line, silent), *map(log_line, _tell_limits(preview)), preview.headline]
    told += map(log_line, preview.after.notes)
    return "\n".join([*lines, *([""] if lines else []), *told])


def _tell_limits(preview: Preview) -> Iterator[str]:
    if preview.lack:
        count = "1 commit" if preview.lack == 1 else f"{preview.lack} commits"
        yield f"left out: {count} of the target branch; merge it here to see the whole release"
    if preview.shared:
        yield (
            f"both sides use {few(preview.shared)} as changed here; without these changes, the "
            "versions may differ"
        )


def preview_markdown(preview: Preview) -> str:
    """The section of the job summary, and the text of a comment."""
    return first_fitting((_write_markdown(preview, rows) for rows in _SIZES), _LIMIT_BYTES)


def _write_markdown(preview: Preview, most: int) -> str:
    rows = preview.list_rows()
    cells = [(code(name), *map(markdown, others)) for name, *others in rows[:most]]
    left = len(rows) - most
    lines = [
        f"### {preview.headline}",
        "",
        *(table(_HEADING, cells) if cells else []),
        *([f"… and {packages(left)} more."] if left > 0 else []),
        "",
        *(f"{prose(each)}.\n" for each in _tell_limits(preview)),
        *(f"{prose(note)}\n" for note in preview.after.notes),
    ]
    if preview.silent:
        names = few([code(preview.after.name(each.id)) for each in preview.silent], _MOST_NAMES)
        told = "the pull request a title" if preview.has_title else "a commit a subject"
        lines.append(
            f"**Nothing speaks for {names}.** {link('Write a change file', preview.page)}, or give "
            f"{told} such as `fix: …`, or `chore: …` if users get nothing of it.\n"
        )
    return "\n".join(lines)
