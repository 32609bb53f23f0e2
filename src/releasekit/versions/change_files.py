"""Change files: what a change asks of which package, and what the changelog says of it.

They are those of changesets, pnpm and knope, and may name an exact version in place of a level. Of
the YAML above the text, only lines `"name": level` are read, by our own reader.
https://pnpm.io/cli/change
"""

from __future__ import annotations

import re
from itertools import chain, count
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.decided import Level
from releasekit.errors import MOST_TOLD, PlanError, describe_os_error, did_you_mean, raise_all
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible
from releasekit.versions.owners import index_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from releasekit.errors import ReleasekitError
    from releasekit.git.commits import Commits
    from releasekit.model import PackageId

# The longest of 15,302 real ones has 36,909 characters.
MAX_CHARS: Final = 256 * 1024
LEVELS: Final = {str(level): level for level in reversed(Level)}
LEVELS_IN_WORDS: Final = f"{', '.join(LEVELS)}, or a version such as 2.0.0"
_FENCE: Final = "---"
_ENTRY: Final = re.compile(
    r"""(["']?)(?P<name>[^\s"'\\#]+)\1:[ \t]+(["']?)(?P<word>[^\s"'\\#]+)\3(?:[ \t]+#.*)?"""
)
_EXACT: Final = re.compile(r"v?[0-9][0-9A-Za-z.!+_-]{0,99}")
# What changesets replaces its own idea of a change by; people who are named it only shows.
# https://github.com/changesets/changesets/blob/main/packages/changelog-github/src/index.ts
_REPLACES: Final = re.compile(
    r"(?:pr|pull|pull\s+request):\s*#?(?P<pull_request>[1-9][0-9]{0,9})"
    r"|commit:\s*(?P<commit>[0-9a-f]{7,40})"
    r"|(?:author|user):\s*@?\S+",
    re.IGNORECASE,
)
# Knope writes the first line as one.
_HEADING: Final = re.compile(r"\A#{1,6}[ \t]+")
# Beside change files. https://github.com/changesets/changesets/blob/main/packages/read/src/index.ts
_OTHERS: Final = frozenset({"readme.md", "agents.md", "claude.md", "gemini.md"})
# Where changesets keeps those that went into a prerelease.
_USED: Final = "pre/"
# What knope calls the only package of a repository.
_ONLY: Final = "default"
_MAJOR: Final = re.compile(r"/v[0-9]+\Z")
# Of subdirectories with change files that nothing reads.
_MOST_DEEP: Final = 4


class ChangeEntry(Struct, frozen=True, kw_only=True):
    """What is asked for one package, named as in the file: a level, or `exact`ly this version, as
    it is written there. `package` is known after `resolve_names`, and None for one of another part
    of the repository.
    """

    name: str
    level: Level = Level.NONE
    exact: str = ""
    line: int = 0
    package: PackageId | None = None


class ChangeFile(Struct, frozen=True, kw_only=True):
    """`title` is for one line: the name of the file and the first line of its text, which is
    Markdown. It speaks in place of the commit whose hash begins with `replaces_commit`, and of a
    pull request.
    """

    path: str
    entries: tuple[ChangeEntry, ...]
    text: str
    title: str
    replaces_commit: str = ""
    replaces_pull_request: int = 0

    def asks(self, entry: ChangeEntry) -> bool:
        """Whether an entry of it asks for something, if only in place of a commit."""
        replaces = self.replaces_commit or self.replaces_pull_request
        return bool(entry.level or entry.exact or replaces)


def is_change_file(name: str) -> bool:
    """Of a file below the directory of change files, by its path from there."""
    own = name.removeprefix(_USED)
    hidden = own.startswith(".") or "/" in own
    return own.endswith(".md") and not hidden and own.lower() not in _OTHERS


def _is_like_change_file(data: bytes) -> bool:
    """Whether it begins as one that names a package; a template or another text does not."""
    lines = data.decode(errors="replace").removeprefix("\ufeff").split("\n", 2)[:2]
    return lines[0].strip() == _FENCE and _ENTRY.fullmatch(lines[-1].strip()) is not None


def read_change_file(path: str, text: str) -> ChangeFile:
    """Raises PlanError that names each line that cannot be used."""
    if len(text) > MAX_CHARS:
        raise _refuse(f"{path} has more than {MAX_CHARS} characters", "Write less.")
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    fences = [number for number, line in enumerate(lines) if line.strip() == _FENCE][:2]
    if len(fences) < 2 or any(line.strip() for line in lines[: fences[0]]):
        raise _refuse(
            f"{path}:1: does not begin with its packages between two lines `---`",
            'Write one line `"name": minor` for each package there, and the text below.',
        )
    begin, end = fences
    entries: list[ChangeEntry] = []
    refused: list[PlanError] = []
    for number, line in enumerate(lines[begin + 1 : end], begin + 2):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                entries.append(_read_entry(f"{path}:{number}", line.strip(), number))
            except PlanError as error:
                refused.append(error)
    raise_all(refused)
    commit, pull_request, said = _read_text(lines[end + 1 :])
    stem = path.rpartition("/")[2].removesuffix(".md")
    first_line = _HEADING.sub("", said.partition("\n")[0]).rstrip()
    return ChangeFile(
        path=path,
        entries=tuple(entries),
        text=said,
        title=f"{stem}: {first_line}" if first_line else stem,
        replaces_commit=commit,
        replaces_pull_request=pull_request,
    )


def make_entry(name: str, word: str, line: int = 0) -> ChangeEntry | None:
    """What `word` asks for the package; None where it is neither a level nor a version."""
    if word in LEVELS:
        return ChangeEntry(name=name, level=LEVELS[word], line=line)
    return ChangeEntry(name=name, exact=word, line=line) if _EXACT.fullmatch(word) else None


def _read_entry(where: str, line: str, number: int) -> ChangeEntry:
    found = _ENTRY.fullmatch(line)
    shown = clip(visible(line), 100)
    if found is None or ".." in found["name"] or not found["name"].isprintable():
        raise _refuse(
            f"{where}: cannot read `{shown}`",
            'Write `"name": level` in one line, and nothing else of YAML.',
        )
    entry = make_entry(found["name"], found["word"], number)
    if entry is None:
        meant = did_you_mean(found["word"], LEVELS)
        raise _refuse(f"{where}: `{shown}` names no level{meant}", f"Write {LEVELS_IN_WORDS}.")
    return entry


def _read_text(lines: Sequence[str]) -> tuple[str, int, str]:
    """The commit and the pull request that the text replaces, and what it says."""
    commit, pull_request = "", 0
    for number, line in enumerate(lines):
        found = _REPLACES.fullmatch(line.strip())
        if found is None and line.strip():
            return commit, pull_request, "\n".join(lines[number:]).strip()
        if found is not None:
            commit = (found["commit"] or commit).lower()
            pull_request = int(found["pull_request"] or pull_request)
    return commit, pull_request, ""


def resolve_names(
    files: Iterable[ChangeFile],
    versioned: Sequence[PackageId],
    everything: Iterable[PackageId],
    *,
    is_part: bool = False,
) -> list[ChangeFile]:
    """Those files with the package of each entry. What gets no version, private or left out of this
    run, has its name only where no `versioned` package has it. Raises PlanError with all that name
    no package, several, or one twice. Where `everything` `is_part` of what the repository has,
    others may be named.
    """
    by_name = index_names(everything) | index_names(versioned)
    if len(versioned) == 1:
        by_name.setdefault(_ONLY, [*versioned])
    # A Go module is called otherwise since its last major version.
    by_base: dict[str, list[PackageId]] = {}
    for package in versioned:
        for name in (str(package), package.name) if package.ecosystem == "go" else ():
            by_base.setdefault(_MAJOR.sub("", name), []).append(package)
    found: list[ChangeFile] = []
    refused: list[PlanError] = []
    for file in files:
        seen: dict[PackageId, int] = {}
        entries: list[ChangeEntry] = []
        for entry in file.entries:
            named = by_name.get(entry.name) or by_base.get(_MAJOR.sub("", entry.name), [])
            shown = f"{file.path}:{entry.line}: {clip(entry.name, 100)!r}"
            if len(named) > 1:
                several = f"{shown} is the name of several packages"
                refused.append(_refuse(several, f"Write {' or '.join(map(str, named))}."))
            elif is_part and not named:
                entries.append(entry)
            elif not named:
                # Comparing names takes long, and no more than these are shown.
                near = did_you_mean(entry.name, by_name if len(refused) < MOST_TOLD else ())
                hint = "Correct the name, or remove the line."
                refused.append(_refuse(f"{shown} is no package here{near}", hint))
            elif (first := seen.setdefault(named[0], entry.line)) != entry.line:
                again = f"{shown} is the package of line {first} again"
                refused.append(_refuse(again, "Leave one of the two lines."))
            else:
                entries.append(replace(entry, package=named[0]))
        found.append(replace(file, entries=tuple(entries)))
    raise_all(refused)
    return found


def _refuse(message: str, hint: str) -> PlanError:
    return PlanError(message, hint=hint, problem=Problem.CHANGE_FILE)


def format_change_file(entries: Iterable[ChangeEntry], text: str) -> str:
    """What `read_change_file` reads back."""
    lines = [f'"{each.name}": {each.exact or each.level}' for each in entries]
    return "\n".join([_FENCE, *lines, _FENCE, "", text.strip(), ""])


def drop_entries(text: str, names: Collection[str]) -> str:
    """The file without the lines of these packages; the rest stays as it is written."""
    lines = text.split("\n")
    stripped = [line.removeprefix("\ufeff").strip() for line in lines]
    begin, end = [at for at, line in enumerate(stripped) if line == _FENCE][:2]
    kept = (
        line
        for line in lines[begin + 1 : end]
        if (found := _ENTRY.fullmatch(line.strip())) is None or found["name"] not in names
    )
    return "\n".join([*lines[: begin + 1], *kept, *lines[end:]])


def choose_name(text: str, taken: Collection[str]) -> str:
    """A name for the file of this text, made of its first words, that none of `taken` is, whatever
    the case of their letters.
    """
    stem = "-".join(re.findall(r"[a-z0-9]+", text[:200].lower())[:6])[:60] or "change"
    there = {each.lower() for each in taken} | _OTHERS
    names = chain([f"{stem}.md"], (f"{stem}-{number}.md" for number in count(2)))
    return next(name for name in names if name not in there)


async def read_change_files(directory: Path, root: Path, commits: Commits) -> list[ChangeFile]:
    """Those below the directory that are checked out, committed or not; of another head than HEAD,
    those that it has. Raises PlanError with all that cannot be used.
    """
    if commits.head == "HEAD":
        return _parse_all(_read_files(directory), root, directory)
    committed = await _read_committed(directory, commits)
    return _parse_all(committed.items(), root, directory)


def _read_files(
    directory: Path, below: str = "", depth: int = 0
) -> Iterator[tuple[Path, bytes | OSError]]:
    """Of all Markdown files, as they are checked out, committed or not."""
    try:
        names = durable.names(directory / below)
    except OSError:
        return
    for name in sorted(names):
        path = directory / below / name
        if name.endswith(".md"):
            try:
                yield path, durable.read_file(path, max_bytes=4 * MAX_CHARS)
            except OSError as error:
                yield path, error
        elif depth < _MOST_DEEP and not name.startswith("."):
            yield from _read_files(directory, f"{below}{name}/", depth + 1)


async def _read_committed(directory: Path, commits: Commits) -> dict[Path, bytes]:
    """Those that the commit has."""
    place = directory.relative_to(commits.top).as_posix()
    told = await commits.run_git(
        *("ls-tree", "-r", "-z", "--full-tree", "--name-only", commits.head, "--", f"{place}/")
    )
    paths = (commits.top / name for name in told.split("\0") if name)
    wanted = {
        each: commits.name_object(commits.head, each) for each in paths if each.suffix == ".md"
    }
    there = await commits.read_blobs(wanted.values())
    return {each: data for each, name in wanted.items() if (data := there.get(name)) is not None}


def _parse_all(
    found: Iterable[tuple[Path, bytes | OSError]], root: Path, directory: Path
) -> list[ChangeFile]:
    """Raises PlanError with all that cannot be used, among them those where nothing reads them, as
    changesets ends there: https://github.com/changesets/changesets/blob/%40changesets/cli%402.31.1/packages/read/src/legacy.ts
    """
    files: list[ChangeFile] = []
    refused: list[ReleasekitError] = []
    for path, data in found:
        shown, below = (path.relative_to(it).as_posix() for it in (root, directory))
        if not is_change_file(below):
            if "/" in below and isinstance(data, bytes) and _is_like_change_file(data):
                message = f"{shown} lies in a subdirectory, where ReleaseKit reads no change files"
                hint = f"Move it to {directory.relative_to(root).as_posix()}/, or delete it."
                refused.append(PlanError(message, hint=hint, problem=Problem.CHANGE_FILE))
            continue
        try:
            if isinstance(data, OSError):
                message = f"{shown} cannot be read: {describe_os_error(data)}"
                refused.append(PlanError(message, problem=Problem.CHANGE_FILE))
            else:
                files.append(read_change_file(shown, data.decode(errors="replace")))
        except PlanError as error:
            refused += [error, *error.others]
    raise_all(refused)
    return files
