"""The text of a release: its section of the change log, else its commits, else the version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from releasekit.text.changelog import find_section, list_heading_names
from releasekit.text.escape import markdown, subject, visible_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.git.commits import Commit
    from releasekit.host.forges import Pages
    from releasekit.model import Package


# A forge takes twice as much. The marker of a release follows the text.
MAX_CHARS: Final = 65_000
_MAX_LOG_BYTES: Final = 4 * 1024 * 1024
_MOST_COMMITS: Final = 200
_STEMS: Final = ("CHANGELOG", "CHANGES", "HISTORY", "NEWS", "RELEASES", "RELEASE_NOTES", "RELEASE")
_ENDS: Final = (".md", ".markdown", ".txt", "")
_NAMES: Final = (
    tuple(f"{stem}{end}" for stem in _STEMS for end in _ENDS)
    + tuple(f"{stem.lower()}{end}" for stem in _STEMS for end in _ENDS)
    + ("Changelog.md", "Changes")
)


class CommitHistory(Protocol):
    """What of `git.commits.Commits` is needed here."""

    def name_object(self, commit: str, path: Path) -> str: ...

    async def find_existing(self, ids: Iterable[str]) -> Collection[str]: ...

    async def read_blobs(self, names: Iterable[str]) -> Mapping[str, bytes | None]: ...

    async def list_commits(
        self, paths: Iterable[Path], *, since: str, until: str, without: Iterable[Path]
    ) -> Sequence[Commit]: ...


async def existing_commit(commit: str, history: CommitHistory) -> str:
    """`commit` if this clone has it, else "": the `previous` of `write_notes`."""
    return commit if commit and commit in await history.find_existing([commit]) else ""


async def write_notes(
    package: Package,
    history: CommitHistory,
    *,
    commit: str,
    previous: str,
    others: Iterable[Package],
    beside: Sequence[Path] = (),
    pages: Pages,
) -> str:
    """Markdown, never empty. `commit` is what the version was built from, `previous` that of the
    version before; where `previous` is empty, commits are not listed. Commits below the directories
    of `others` do not count; the change logs in `beside` do. `pages` are those of the
    sources. Raises CommandFailed.
    """
    directories = dict.fromkeys((package.directory, *beside))
    places = {
        history.name_object(commit, directory / name): directory / name
        for directory in directories
        for name in _NAMES
    }
    found = await history.read_blobs(places)
    names = list_heading_names(package.id.name)
    for place in places:
        data = found.get(place)
        if data is None or len(data) > _MAX_LOG_BYTES:
            continue
        # With the line ends that `find_section` expects.
        log = data.decode(errors="replace").removeprefix("\ufeff")
        log = visible_lines(log.replace("\r\n", "\n").replace("\r", "\n"))
        if text := find_section(log, package.version, names).strip():
            page = pages.file(commit, place.partition(":")[2])
            return shorten(text, _rest_link(page))
    inner = [
        each.directory
        for each in others
        if each.directory != package.directory and each.directory.is_relative_to(package.directory)
    ]
    commits: Sequence[Commit] = ()
    if previous:
        commits = await history.list_commits(
            [package.directory], since=previous, until=commit, without=inner
        )
    if not commits:
        return name_alone(package)
    lines = [_commit_line(each, pages) for each in commits[:_MOST_COMMITS]]
    if len(commits) > _MOST_COMMITS:
        lines.append(f"- and {len(commits) - _MOST_COMMITS} more")
    rest = _rest_link(pages.comparison(previous, commit))
    return shorten("\n".join(lines), rest)


def name_alone(package: Package) -> str:
    """All there is to say where neither a change log nor commits say more."""
    return f"{markdown(package.id.name)} {markdown(package.version)}"


def _commit_line(commit: Commit, pages: Pages) -> str:
    """The subject comes from outside: it may mention no user and close no issue."""
    number = commit.id[:8]
    page = pages.commit(commit.id)
    return f"- {subject(commit.subject)} ({f'[{number}]({page})' if page else number})"


def _rest_link(page: str) -> str:
    return f"The rest is {f'[in the repository]({page})' if page else 'in the repository'}."


def shorten(text: str, rest: str, limit: int = MAX_CHARS) -> str:
    """`text`, or as many of its sections, else paragraphs, else lines as fit, then `rest`."""
    if len(text) <= limit:
        return text
    room = limit - len(rest) - 2
    ends: dict[str, int] = {}
    fence, at = "", 0
    for line in text.split("\n"):
        stripped = line.strip()
        if at > room:
            break
        if not fence:
            if stripped.startswith("#"):
                ends["section"] = at
            ends["paragraph" if not stripped else "line"] = at
        mark = next((each for each in ("```", "~~~") if stripped.startswith(each)), "")
        if mark and fence in {"", mark}:
            fence = "" if fence else mark
        at += len(line) + 1
    # Cutting at a line beats using less than half of the room.
    fitting = [ends[each] for each in ("section", "paragraph", "line") if each in ends]
    end = next((each for each in fitting if each > room // 2), max(fitting, default=0))
    return f"{text[:end].rstrip()}\n\n{rest}".lstrip()


def join_notes(texts: Mapping[Package, str]) -> str:
    """One text for packages that share a release, each under its name. A text that several have
    appears once, and without a name where all have it.
    """
    same: dict[str, list[Package]] = {}
    for package, text in texts.items():
        same.setdefault(text, []).append(package)
    if len(same) == 1:
        return next(iter(same))
    parts = []
    for text, packages in same.items():
        heading = ", ".join(markdown(f"{each.id.name} {each.version}") for each in packages)
        # A single one may use all of the room.
        room = MAX_CHARS - 100 - len(heading)
        rest = "The rest is in the repository."
        parts.append(f"## {heading}\n\n{shorten(text, rest, max(room, MAX_CHARS // 2))}")
    kept: list[str] = []
    for number, part in enumerate(parts):
        if sum(map(len, kept)) + len(part) + 2 * number > MAX_CHARS - 40:
            kept.append(f"And {len(parts) - number} more.")
            break
        kept.append(part)
    return "\n\n".join(kept)
