"""What git has committed: the trees that modules are published from. The working tree, its index
and its branches are only ever looked at.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.go.module_zip import File
from releasekit.ecosystems.go.objects import Entry, Signature, tree
from releasekit.errors import BuildFailed, CommandFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from releasekit.host.process import Processes

TIMEOUT_S: Final = 300.0
# As the go command calls it, so that the bytes are the same on every machine.
# https://github.com/golang/go/blob/master/src/cmd/go/internal/modfetch/codehost/git.go
_AS_GO: Final = ("-c", "core.autocrlf=input", "-c", "core.eol=lf")
# Otherwise `git status` writes to the index what it learned of the working tree.
_READING: Final = {"GIT_OPTIONAL_LOCKS": "0"}
_ATTRIBUTES: Final = "* -export-subst -export-ignore\n"


def repository_of(directory: Path) -> Path | None:
    """The root of the git repository (or worktree) that holds `directory`; no process."""
    for level in (directory, *directory.parents):
        if (level / ".git").exists():
            return level
    return None


def path_in_repository(directory: Path, top: Path) -> PurePosixPath:
    """Where a directory is in the repository at `top`."""
    return PurePosixPath(directory.relative_to(top).as_posix())


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The commit that is checked out. `objects` is where its repository keeps them."""

    top: Path
    commit: str
    tree: str
    by: Signature
    objects: Path


async def head_of(root: Path, processes: Processes) -> Head:
    """Raises BuildFailed where nothing is committed: a tag has nothing to name then."""
    top = repository_of(root)
    if top is None:
        raise BuildFailed(
            f"{root} is in no git repository, and a Go module is published from a commit",
            hint="Run `git init`, and commit what you want to publish.",
        )
    form = "--format=%H%x00%T%x00%cn%x00%ce%x00%ct"
    try:
        shown = await _git(processes, top, "log", "-1", "--no-show-signature", form)
        objects = await _git(processes, top, "rev-parse", "--git-path", "objects")
    except CommandFailed as error:
        raise BuildFailed(
            f"{top}: git tells no commit to publish from: {error}", log=error.log
        ) from error
    commit, root_tree, name, email, time_s = shown.strip("\n").split("\0")
    if len(commit) != 40:
        raise BuildFailed(f"{top} names objects by SHA-256, which the go command cannot fetch")
    by = Signature(name, email, int(time_s))
    directory = (top / objects.rstrip("\n")).resolve()
    return Head(top=top, commit=commit, tree=root_tree, by=by, objects=directory)


async def changed(head: Head, processes: Processes) -> list[str]:
    """Go files, from the repository's root, that are not as HEAD has them."""
    wanted = ("*.go", "*go.mod", "*go.sum")
    status = await _git(
        processes,
        head.top,
        *("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", *wanted),
    )
    return [line[3:] for line in status.split("\0") if line]


@dataclass(frozen=True, slots=True)
class Trees:
    """The entries of some directories of HEAD, the root among them."""

    head: Head
    listed: Mapping[PurePosixPath, Mapping[str, Entry]]

    @classmethod
    async def of(
        cls, head: Head, directories: Collection[PurePosixPath], processes: Processes
    ) -> Trees:
        """Of `directories` and all directories above them."""
        wanted = {level for each in directories for level in (each, *each.parents)} - {
            PurePosixPath()
        }
        show = ("ls-tree", "-t", "-z", "--full-tree", head.tree)
        listing = await _git(processes, head.top, *show)
        if wanted:
            listing += await _git(
                processes, head.top, *show, *(f"{each}/" for each in sorted(wanted))
            )
        listed: dict[PurePosixPath, dict[str, Entry]] = {PurePosixPath(): {}}
        for line in listing.split("\0"):
            facts, tab, name = line.partition("\t")
            if tab:
                path, (mode, _, oid) = PurePosixPath(name), facts.split(" ")
                listed.setdefault(path.parent, {})[path.name] = Entry(mode.lstrip("0"), oid)
        for level, entries in listed.items():
            above = listed[level.parent].get(level.name)
            if tree(entries).id != (above.id if above else head.tree):
                raise BuildFailed(f"{head.top / level}: a file name there is not UTF-8; rename it")
        return cls(head, listed)


class Archive:
    """The files of HEAD as `git archive` gives them."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {member.name: member for member in tar.getmembers() if not member.isdir()}

    def below(self, directory: PurePosixPath) -> dict[str, File]:
        """Everything below a directory, names relative to it, in the order of the archive."""
        prefix = "" if directory == PurePosixPath() else f"{directory}/"
        return {
            name.removeprefix(prefix): File(size=member.size, regular=member.isreg())
            for name, member in self._members.items()
            if name.startswith(prefix)
        }

    def read(self, name: str) -> bytes | None:
        """None where HEAD has no such regular file."""
        member = self._members.get(name)
        file = self._tar.extractfile(member) if member is not None and member.isreg() else None
        return None if file is None else file.read()

    def close(self) -> None:
        self._tar.close()


async def archive(
    trees: Trees, directories: Collection[PurePosixPath], scratch: Path, processes: Processes
) -> Archive:
    """The archive of these directories of HEAD and of the root's LICENSE, made in `scratch`.

    git runs in a repository of its own there, which sees the objects of the user's: only that way
    can attributes be overruled, as the go command does. https://go.dev/issue/27153
    """
    bare, head = scratch / "bare", trees.head
    for name in ("objects/info", "refs", "info"):
        (bare / name).mkdir(parents=True, exist_ok=True)
    (bare / "HEAD").write_text("ref: refs/heads/none\n")
    (bare / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    (bare / "objects" / "info" / "alternates").write_text(f"{head.objects}\n")
    (bare / "info" / "attributes").write_text(_ATTRIBUTES)
    root = PurePosixPath()
    names = [] if root in directories else [*map(str, directories), *_licence(trees)]
    path = scratch / "tree.tar"
    what = ("archive", "--format=tar", f"--output={path}", head.tree, "--", *names)
    await _git(processes, bare, f"--git-dir={bare}", *_AS_GO, *what)
    return Archive(tarfile.open(path, errors="surrogateescape"))


def _licence(trees: Trees) -> list[str]:
    return ["LICENSE"] if "LICENSE" in trees.listed[PurePosixPath()] else []


async def _git(processes: Processes, where: Path, *arguments: str) -> str:
    completed = await processes.run(
        ["git", *arguments], cwd=where, env=_READING, timeout_s=TIMEOUT_S
    )
    return completed.stdout
