"""What packages would go out without, since the checkout does not have it: submodules, files that a
sparse checkout leaves out, and those of which it has pointers only (Git LFS); what is a link or in
a submodule, where a commit alone makes the package, as Go's proxy does; and packages in submodules.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.config.locations import FILENAME
from releasekit.ecosystems import folders
from releasekit.errors import CommandFailed, ConfigError, PlanError, raise_all
from releasekit.host.files import find_top, read_head
from releasekit.plan.unlisted_packages import read_list
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.globs import Glob, matches_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.ecosystems.interface import Target
    from releasekit.host.process import Printed, Processes
    from releasekit.model import Package, PackageId
    from releasekit.plan.holdings import Holdings, Tree
    from releasekit.plan.unlisted_packages import Tables

_TIMEOUT_S: Final = 60.0
# https://github.com/actions/checkout#usage, https://docs.gitlab.com/ci/runners/git_submodules/,
# https://git-scm.com/docs/gitmodules#Documentation/gitmodules.txt-submoduleltnamegtupdate
_CHECK_OUT: Final = (
    "Check out with `submodules: recursive` (actions/checkout) or `GIT_SUBMODULE_STRATEGY: "
    "recursive` (GitLab), or run `git submodule update --init --recursive`."
)
_SUBMODULES: Final = (
    f"{_CHECK_OUT} If no archive needs it, exclude it in the manifest, or write `update = none` "
    "for it in .gitmodules."
)
_NO_MEMBER: Final = "If nothing there is a package, exclude it where it is listed."
# https://git-scm.com/docs/git-submodule#Documentation/git-submodule.txt-add
_UNLISTED: Final = (
    "Git cannot fetch it either: add it with `git submodule add`, or remove it with "
    "`git rm --cached`."
)
_SPARSE: Final = (
    "Run `git sparse-checkout disable`, or drop `sparse-checkout` from actions/checkout, or add "
    "these directories to it."
)
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
_POINTER: Final = b"version https://git-lfs.github.com/spec/v1\n"
_LFS: Final = "check out with `lfs: true` (actions/checkout), or run `git lfs pull`"
_MAX_ATTRIBUTES_BYTES: Final = 1024 * 1024
_MODULES: Final = ".gitmodules"
_MOST_SHOWN: Final = 3


async def check_absent(
    built: Iterable[Package],
    targets: Mapping[str, Target],
    holdings: Holdings,
    root: Path,
    processes: Processes,
) -> str:
    """Notes about submodules that may hold more packages, and about pointers of Git LFS. Raises
    PlanError with all that those to be `built` are made of and that is not there.
    """
    # A commit has neither what submodules have, nor what is behind a pointer, for Go's proxy too.
    committed = {each.id for each in built if targets[each.id.ecosystem].builds_from_commit}
    asked = {each.id for each in built} - committed
    tree = holdings.tree
    fates = await _read_fates(root, tree.missing, processes)
    missing = [place for place in tree.missing if fates.get(place) != "none"]
    held = {place: holdings.list_holders_below(place) & asked for place in missing}
    sparse = _group_by_files(tree.sparse, holdings, asked)
    raise_all([*_list_refused(held, fates, sparse)])
    left_out = _group(_list_not_committed(holdings, committed))
    notes = [
        f"{few(sorted(map(str, packages)), _MOST_SHOWN)} would be published without "
        f"{few(names, _MOST_SHOWN)}: a Go module contains no symbolic links and no files of "
        "submodules; commit the files themselves"
        for names, packages in left_out.items()
    ]
    # A private root, as of an npm workspace, holds it too, and never goes out.
    private = {
        each.id
        for target in targets.values()
        for each in target.workspace.packages
        if each.unpublishable
    }
    unseen = [
        place
        for place in missing
        if not held[place] and private.issuperset(it for it, _ in holdings.locate(place))
    ]
    if unseen:
        notes.append(
            "ReleaseKit cannot see packages in submodules that are not checked out: "
            f"{few(unseen, _MOST_SHOWN)} (check out with `submodules: recursive`, or write "
            "`update = none` for them in .gitmodules)"
        )
    # Not refused: what a Python package leaves out of its files only its build knows.
    pointers = await _list_pointers(tree.files, root, processes) if asked else ()
    notes += [
        f"{few(sorted(map(str, packages)), _MOST_SHOWN)} may be published with pointers in place "
        f"of files that Git LFS has not fetched: {few(names, _MOST_SHOWN)} ({_LFS})"
        for names, packages in _group_by_files(pointers, holdings, asked).items()
    ]
    return ". ".join(notes)


def _list_refused(
    held: Mapping[str, Collection[PackageId]],
    fates: Collection[str],
    sparse: Mapping[tuple[str, ...], Collection[PackageId]],
) -> Iterator[PlanError]:
    for place, packages in held.items():
        what = f"the submodule {place} is not checked out"
        if packages and place in fates:
            yield _make_error(packages, what, _SUBMODULES)
        elif packages:
            yield _make_error(packages, f"{what}, and .gitmodules has no entry for it", _UNLISTED)
    for names, packages in sparse.items():
        what = f"the sparse checkout leaves out {few(names, _MOST_SHOWN)}"
        yield _make_error(packages, what, _SPARSE)


async def refuse_absent_members(
    root: Path,
    tables: Tables,
    ecosystems: Iterable[EcosystemDeclaration],
    tree: Tree,
    processes: Processes,
) -> None:
    """Raises PlanError where packages are listed that lie in submodules that are not checked out:
    some tools call it a mistake in a manifest, others leave them out in silence.
    """
    fates = await _read_fates(root, tree.missing, processes)
    listings = (
        (place, _find_listing(root, place, tables, each, tree))
        for place in tree.missing
        for each in ecosystems
        if fates.get(place) != "none"
    )
    refused = [
        PlanError(
            f"the submodule {place} is not checked out, and {listing} names packages there",
            hint=f"{_CHECK_OUT} {_NO_MEMBER}" if place in fates else _UNLISTED,
            problem=Problem.NOT_CHECKED_OUT,
        )
        for place, listing in listings
        if listing
    ]
    raise_all(refused)


@contextmanager
def explain_absent(root: Path, tree: Tree) -> Iterator[None]:
    """Raises PlanError where discovery misses what lies in a submodule that is not checked out: it
    may be a dependency of a package, which no workspace lists.
    """
    try:
        yield
    except ConfigError as error:
        for place in tree.missing:
            if re.search(rf"{re.escape(str(root / place))}(?![\w.-])", str(error)):
                raise PlanError(
                    f"the submodule {place} is not checked out: {error}",
                    hint=_CHECK_OUT,
                    problem=Problem.NOT_CHECKED_OUT,
                ) from error
        raise


def _find_listing(
    root: Path, place: str, tables: Tables, ecosystem: EcosystemDeclaration, tree: Tree
) -> str:
    """The workspace or the option that lists this directory, or what may be in it; empty where none
    does.
    """
    name, manifests = ecosystem.name, ecosystem.manifests
    if manifests is None or matches_path(place, read_list(tables, name, "exclude")):
        return ""
    above = [root / each for each in PurePosixPath(place).parents]

    def is_free(top: Path) -> bool:
        """What lies in a package is part of that, unless this very directory is meant."""
        inner = [each for each in above if each != top and each.is_relative_to(top)]
        return not any(
            (each / manifest).relative_to(root).as_posix() in tree.files
            for each in inner
            for manifest in manifests.names
        )

    for key in filter(None, (manifests.workspaces, manifests.packages)):
        for text in read_list(tables, name, key):
            with suppress(ConfigError):  # discovery tells what is wrong
                glob, parts = Glob.parse(text, where=key), PurePosixPath(place).parts
                if glob.may_name_below(parts, at_any_depth=is_free(root)):
                    return f"`{key}` below [{name}] in {FILENAME}"
    named = [root / text for text in read_list(tables, name, manifests.workspaces)]
    may_list = folders.roots(ecosystem).may_list
    for top in _list_tops(root, named, above, is_nested=manifests.nested):
        with suppress(ConfigError):
            if may_list(top, root / place, is_free(top)):
                return f"the {name} workspace {top}"
    return ""


def _list_tops(
    root: Path, named: Sequence[Path], above: Sequence[Path], *, is_nested: bool
) -> list[Path]:
    """The directories `above` a place that may be the root of a workspace."""
    tops = named if named and is_nested else [root, *named]
    if is_nested:
        tops = [*tops, *(it for it in above if any(it.is_relative_to(top) for top in tops))]
    return [each for each in dict.fromkeys(tops) if each in above]


def _group_by_files(
    names: Iterable[str], holdings: Holdings, asked: Collection[PackageId]
) -> Mapping[tuple[str, ...], Sequence[PackageId]]:
    """The packages that hold any of these files, by all that they hold of them."""
    return _group(
        (package, name)
        for name in names
        for package in set(holdings.list_holders(name)).intersection(asked)
    )


def _list_not_committed(
    holdings: Holdings, packages: Collection[PackageId]
) -> Iterator[tuple[PackageId, str]]:
    """The links and submodules in these packages that have anything of them."""
    if not packages:
        return
    tree = holdings.tree
    for place in sorted({*tree.links, *tree.submodules}):
        for package, name in holdings.locate(place):
            if package in packages and holdings.holds_below(package, place, name.rstrip("/")):
                yield package, place


def _group(
    held: Iterable[tuple[PackageId, str]],
) -> Mapping[tuple[str, ...], Sequence[PackageId]]:
    by_package: defaultdict[PackageId, list[str]] = defaultdict(list)
    for package, name in held:
        by_package[package].append(name)
    sharing: defaultdict[tuple[str, ...], list[PackageId]] = defaultdict(list)
    for package, listed in by_package.items():
        sharing[(*listed,)].append(package)
    return sharing


def _make_error(holders: Collection[PackageId], what: str, cure: str) -> PlanError:
    names = few(sorted(map(str, holders)), _MOST_SHOWN)
    return PlanError(
        f"{names} would be published without some files: {what}",
        hint=cure,
        problem=Problem.NOT_CHECKED_OUT,
    )


async def _read_fates(root: Path, missing: Sequence[str], processes: Processes) -> dict[str, str]:
    """What .gitmodules says of each by `update`, empty for the default; without those of which it
    has no path.
    """
    if not missing:
        return {}
    above = {root / place for name in missing for place in map(str, PurePosixPath(name).parents)}
    # Of the repository, and of the submodules that hold others.
    homes = {find_top(root), *above}
    found: dict[str, str] = {}
    for home in sorted(each for each in homes if (each / _MODULES).is_file()):
        for entry in (await _read_modules(home, processes)).values():
            found[posixpath.relpath(home / entry.get("path", ""), root)] = entry.get("update", "")
    return found


async def _read_modules(home: Path, processes: Processes) -> Mapping[str, Mapping[str, str]]:
    """The keys of each submodule, by its name."""
    asked = ("--no-includes", "--null", "--get-regexp", r"^submodule\..*\.(path|update)$")
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    told = await _git(processes, home, "config", "--file", _MODULES, *asked)
    for name, what, value in told.parse_rows(_parse_setting, end="\0") if told else ():
        found[name][what] = value
    return found


def _parse_setting(line: str) -> tuple[str, str, str]:
    key, _, value = line.partition("\n")
    name, _, what = key.rpartition(".")
    if what not in {"path", "update"}:
        raise ValueError("not a setting of a submodule")
    return name, what, value


async def _list_pointers(names: Sequence[str], root: Path, processes: Processes) -> Sequence[str]:
    """The files of Git LFS that hold a pointer alone."""
    attributes = [name for name in names if posixpath.basename(name) == ".gitattributes"]
    heads = (_read_head(root / name, _MAX_ATTRIBUTES_BYTES) for name in attributes)
    if not any(b"filter=lfs" in head for head in heads):
        return ()
    listed = await _git(processes, root, "ls-files", "-z", "--", ":(attr:filter=lfs)")
    pointers = (
        name
        for name in (listed or "").split("\0")
        if name and _read_head(root / name, len(_POINTER)) == _POINTER
    )
    return sorted(pointers)


def _read_head(path: Path, size: int) -> bytes:
    try:
        return read_head(path, size)
    except OSError:
        return b""


async def _git(processes: Processes, directory: Path, *arguments: str) -> Printed | None:
    """What it prints; None where it finds nothing."""
    try:
        run = processes.run(["git", *arguments], cwd=directory, timeout_s=_TIMEOUT_S)
        return (await run).stdout
    except CommandFailed:
        return None
