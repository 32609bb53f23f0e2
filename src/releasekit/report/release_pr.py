"""The release pull request in words: its title, its body, and what has become of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.decided import TITLE_FIELD
from releasekit.report.summary.markdown import details, first_fitting, table, warning_section
from releasekit.report.text import packages
from releasekit.text.escape import (
    clip,
    code,
    link,
    log_line,
    markdown,
    notify_nobody,
    prose,
    subject,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.announced import ForgePullRequest
    from releasekit.decided import Bump
    from releasekit.model import PackageId
    from releasekit.report.versions import VersionsView

# https://docs.github.com/en/rest/issues/comments, whose limit is that of a body: 65,536 characters.
_LIMIT_BYTES: Final = 60_000
_NAME_CHARS: Final = 200
# GitHub takes 256, GitLab 255, and Gitea cuts after 255, where all but Latin letters count twice.
# https://github.com/dead-claudia/github-limits
# https://docs.gitlab.com/api/merge_requests/#create-mr
# https://github.com/go-gitea/gitea/blob/v1.26.0/models/issues/pull.go (NewPullRequest)
_TITLE_CHARS: Final = 250
# Packages with notes, and rows; fewer until it fits.
_SIZES: Final = ((500, 500), (100, 500), (20, 200), (0, 200), (0, 20))
_MOST_WARNINGS: Final = 20
DONE: Final = "There is nothing to release any more, so this is closed."


Operation = Literal["created", "updated", "current", "newer", "edited", "closed", "none"]


class Kept(Struct, frozen=True):
    """What has become of it, `words` for a line that says so, and the one that is open or was."""

    operation: Operation
    words: str
    pull: ForgePullRequest | None = None


def release_pr_line(kept: Kept) -> str:
    url = kept.pull.url if kept.pull else ""
    return log_line(f"{kept.operation}{url and ' '}{url}: {kept.words}")


def release_pr_summary(kept: Kept) -> str:
    named = link(kept.pull.name, kept.pull.url) if kept.pull else "None"
    return f"## Release pull request\n\n{named}, {kept.operation}: {prose(kept.words)}\n"


def release_pr_outputs(kept: Kept) -> dict[str, str]:
    return {
        "operation": kept.operation,
        "pull-request": str(kept.pull.number) if kept.pull else "",
        "pull-request-url": kept.pull.url if kept.pull else "",
    }


def write_title(view: VersionsView, template: str) -> str:
    """`{packages}` is the first of them, and how many more there are."""
    bumps = view.decision.bumps
    first = f"{view.name(bumps[0].package)} {view.spell(bumps[0].package, bumps[0].new)}"
    more = f" and {len(bumps) - 1} more" if len(bumps) > 1 else ""
    named = f"{clip(visible(first), _NAME_CHARS)}{more}"
    title = template.replace(TITLE_FIELD, named).strip()
    is_wide = any(each > "\xff" for each in title)
    return clip(title, _TITLE_CHARS // 2 if is_wide else _TITLE_CHARS)


def write_body(
    view: VersionsView,
    notes: Mapping[PackageId, str],
    *,
    into: str,
    page: str,
    told: Sequence[str],
    last: str,
) -> str:
    """`page` is where a person writes a change file, empty where that is unknown. `told` are
    sentences about the forge, some of which may be empty, and `last` is the line that ends it.
    """
    bumps = view.decision.bumps
    head = (
        f"Merging this releases {packages(len(bumps))}, in this order. Until then, each push to "
        f"{code(into)} brings it up to date."
    )
    more = (
        f"**Another version, or other notes?** {link('Write a change file', page)} on {code(into)}."
        " A commit on this branch is never overwritten: from then on it stays as it is, until you "
        "merge or delete it."
    )
    foot = [
        *(f"{prose(note)}\n" for note in view.moved_notes),
        *warning_section(view.warned, _MOST_WARNINGS),
        more,
        "",
        *(f"{each}\n" for each in told if each),
        last,
    ]
    folded = ["\n".join(_fold_notes(view, bump, notes[bump.package])) for bump in bumps]
    return first_fitting(
        (
            "\n".join([head, "", *_write_table(view, rows), "", *folded[:with_notes], *foot])
            for with_notes, rows in _SIZES
        ),
        _LIMIT_BYTES,
    )


def _fold_notes(view: VersionsView, bump: Bump, text: str) -> list[str]:
    named = f"{code(view.name(bump.package))} {markdown(view.spell(bump.package, bump.new))}"
    return details(named, [notify_nobody(text)])


def _write_table(view: VersionsView, most: int) -> list[str]:
    rows = []
    for bump in view.decision.bumps[:most]:
        old, new = (view.spell(bump.package, each) for each in (bump.old, bump.new))
        because = subject(view.because(view.reasons(bump)[0]))
        rows.append((code(view.name(bump.package)), markdown(old), markdown(new), because))
    left = len(view.decision.bumps) - most
    more = ["", f"… and {packages(left)} more."] if left > 0 else []
    return [*table(("package", "now", "next", "because"), rows), *more]
