"""What git has committed: the trees that modules are published from. The working tree, its index
and its branches are never changed.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.ecosystems.go.module_zip import MAX_ZIP_BYTES, ModuleFile
from releasekit.ecosystems.shared.archives import BAD_TAR, Tar
from releasekit.errors import BuildFailed, CommandFailed
from releasekit.git.commits import parse_id
from releasekit.git.objects import Signature, TreeEntry, make_tree
from releasekit.host import durable
from releasekit.host.files import repository_of
from releasekit.host.scratch import scratch
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from releasekit.ecosystems.go.discover import Module
    from releasekit.host.process import Printed, Processes

    Tree = Mapping[str, TreeEntry]

TIMEOUT_S: Final = 300.0
# As the go command calls it, so that the bytes are the same on every machine.
# https://github.com/golang/go/blob/master/src/cmd/go/internal/modfetch/codehost/git.go
_AS_GO: Final = ("-c", "core.autocrlf=input", "-c", "core.eol=lf")
# Otherwise `git status` writes what it learns about the working tree to the index.
_READING: Final = {"GIT_OPTIONAL_LOCKS": "0"}
_ATTRIBUTES: Final = "* -export-subst -export-ignore\n"
_ROOT: Final = PurePosixPath()


def path_in_repository(directory: Path, top: Path) -> PurePosixPath:
    """The path of a directory within the repository at `top`."""
    return PurePosixPath(directory.relative_to(top).as_posix())


class SourceHead(Struct, frozen=True, kw_only=True):
    """The commit that is checked out. `objects` is the object directory of its repository."""

    commit: str
    tree: str
    by: Signature
    objects: Path


class ModuleSources(Struct, frozen=True, kw_only=True):
    """HEAD of the repository at `top`: its files, and the entries of the directories of modules and
    of all directories above them. `changed` are Go files that differ from HEAD.
    """

    top: Path
    head: SourceHead
    trees: Mapping[PurePosixPath, Tree]
    archive: Archive
    changed: Sequence[str]

    def path_of(self, module: Module) -> PurePosixPath:
        return path_in_repository(module.directory, self.top)


@contextlib.asynccontextmanager
async def open_sources(
    root: Path, directories: Iterable[Path], processes: Processes
) -> AsyncIterator[ModuleSources]:
    """What the modules in these directories are published from. Raises BuildFailed."""
    if processes.which("git") is None:
        raise BuildFailed(
            "git is not installed; Go modules are published from a commit",
            problem=Problem.BUILD_TOOL,
        )
    top = repository_of(root)
    if top is None:
        raise BuildFailed(
            f"{root} is in no git repository, and a Go module is published from a commit",
            hint="Run `git init`, and commit what you want to publish.",
            problem=Problem.NOT_COMMITTED,
        )
    git = _Git(processes, top)
    head = await _read_head(git)
    wanted = {path_in_repository(directory, top) for directory in directories}
    levels = {level for each in wanted for level in (each, *each.parents)}
    looking = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    listing = ("ls-tree", "-t", "-z", "--full-tree", head.tree)
    status, listed = await gather_all(
        (
            git(*looking, "--", "*.go", "*go.mod", "*go.sum"),
            git(*listing, *(f"{each}/" for each in sorted(levels))),
        )
    )
    trees = _parse_trees(listed, head, top)
    changed = [line[3:] for line in status.split("\0") if line]
    async with scratch(processes.environment) as directory:
        # Builds can write there, but cannot replace a file without a name.
        with durable.unnamed(directory) as tar:
            git = _Git(processes, directory)
            # The directories of the modules and the LICENSE of the root; empty for all of HEAD.
            names: list[str] = []
            if _ROOT not in wanted:
                names += [str(each) for each in sorted(wanted) if each in trees]
                names += {"LICENSE"} & trees[_ROOT].keys()
            await _write_archive(git, head, names, into=tar)
            archive = await asyncio.to_thread(Archive, tar)
            yield ModuleSources(top=top, head=head, trees=trees, archive=archive, changed=changed)


class Archive:
    """The files of HEAD as `git archive` gives them. Reading blocks, and raises BuildFailed."""

    def __init__(self, data: BinaryIO) -> None:
        data.seek(0)
        with _convert_tar_errors("the repository"):
            self._tar = Tar.open(fileobj=data, mode="r:", errors="surrogateescape")
            members = self._tar.getmembers()
        self._members = {member.name: member for member in members if not member.isdir()}

    def below(self, directory: PurePosixPath) -> dict[str, ModuleFile]:
        """The files below a directory, by names relative to it, in the order of the archive."""
        prefix = "" if directory == _ROOT else f"{directory}/"
        return {
            name.removeprefix(prefix): ModuleFile(size=member.size, regular=member.isreg())
            for name, member in self._members.items()
            if name.startswith(prefix)
        }

    def read(self, name: str) -> bytes | None:
        """None where HEAD has no such regular file."""
        member = self._members.get(name)
        if member is None or not member.isreg():
            return None
        if member.size > MAX_ZIP_BYTES:
            raise BuildFailed(
                f"{name} has {member.size} bytes, {MAX_ZIP_BYTES} are allowed",
                problem=Problem.NOT_A_PACKAGE,
            )
        with _convert_tar_errors(name):
            file = self._tar.extractfile(member)
            return None if file is None else file.read()


@contextlib.contextmanager
def _convert_tar_errors(what: str) -> Iterator[None]:
    """Turns what tarfile raises into a BuildFailed."""
    try:
        yield
    except (*BAD_TAR, OSError) as error:
        raise BuildFailed(
            f"{what} cannot be read from the archive that git has made: {error}",
            problem=Problem.NOT_A_PACKAGE,
        ) from error


class _Git(Struct, frozen=True):
    processes: Processes
    directory: Path

    async def __call__(self, *arguments: str, into: int | None = None) -> Printed:
        """Returns what git prints, or writes it to the descriptor `into`."""
        completed = await self.processes.run(
            ["git", *arguments], cwd=self.directory, env=_READING, timeout_s=TIMEOUT_S, stdout=into
        )
        return completed.stdout


async def _read_head(git: _Git) -> SourceHead:
    top, form = git.directory, "--format=%H%x00%T%x00%cn%x00%ce%x00%ct"
    try:
        shown, objects = await gather_all(
            (
                git("log", "-1", "--no-show-signature", form),
                git("rev-parse", "--git-path", "objects"),
            )
        )
    except CommandFailed as error:
        raise BuildFailed(
            f"{top}: git tells no commit to publish from: {error}",
            log=error.log,
            problem=Problem.NOT_COMMITTED,
        ) from error
    commit, tree, by = shown.parse(_parse_head)
    if len(commit) != 40:
        raise BuildFailed(
            f"{top} names objects by SHA-256, which the go command cannot fetch",
            problem=Problem.NOT_COMMITTED,
        )
    directory = (top / objects.rstrip("\n")).resolve()
    return SourceHead(commit=commit, tree=tree, by=by, objects=directory)


def _parse_head(shown: str) -> tuple[str, str, Signature]:
    """The commit, its tree, and who made it when."""
    commit, tree, name, email, time_s = shown.strip("\n").split("\0")
    return parse_id(commit), parse_id(tree), Signature(name, email, int(time_s))


def _parse_trees(
    listing: Printed, head: SourceHead, top: Path
) -> dict[PurePosixPath, dict[str, TreeEntry]]:
    """The entries of each directory that git has listed."""
    trees: dict[PurePosixPath, dict[str, TreeEntry]] = {_ROOT: {}}
    for path, entry in listing.parse_rows(_parse_entry, end="\0"):
        trees.setdefault(path.parent, {})[path.name] = entry
    for level, entries in trees.items():
        above = trees.get(level.parent, {}).get(level.name)
        if make_tree(entries).id != (above.id if above else head.tree):
            raise BuildFailed(
                f"{top / level}: a file name there is not UTF-8; rename it",
                problem=Problem.NOT_A_PACKAGE,
            )
    return trees


def _parse_entry(line: str) -> tuple[PurePosixPath, TreeEntry]:
    facts, _, name = line.partition("\t")
    mode, _, oid = facts.split(" ")
    return PurePosixPath(name), TreeEntry(mode.lstrip("0"), parse_id(oid))


async def _write_archive(
    git: _Git, head: SourceHead, names: Sequence[str], *, into: BinaryIO
) -> None:
    """Git runs in a new repository that shares the objects of the user's: only there can attributes
    be overruled, as the go command does. https://go.dev/issue/27153
    """
    bare = git.directory
    for name in ("objects/info", "refs", "info"):
        durable.make_directory(bare / name, sync=False)
    texts = {
        "HEAD": "ref: refs/heads/none\n",
        "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        "objects/info/alternates": f"{head.objects}\n",
        "info/attributes": _ATTRIBUTES,
    }
    for name, text in texts.items():
        with durable.writing(bare / name) as file:
            file.write(text.encode())
    what = ("archive", "--format=tar", head.tree, "--", *names)
    await git(f"--git-dir={bare}", *_AS_GO, *what, into=into.fileno())
