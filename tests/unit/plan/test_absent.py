"""What packages would be published without, as it is not checked out."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace
from integration.tools import require_tool
from releasekit.ecosystems.go import module_zip
from releasekit.errors import PlanError
from releasekit.host.process import Processes
from releasekit.plan.absent import check_absent
from releasekit.plan.holdings import Holdings, read_tree
from releasekit.problems import Problem
from unit.plan.checkouts import add_submodule, clone, commit, make_repository, make_target
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("git")
    return make_repository(tmp_path.resolve() / "top", {"core/a.py": "1"})


def check(root: Path, target: FakeTarget, *chosen: Package) -> str:
    async def main() -> str:
        async with Processes(environment=dict(os.environ)) as processes:
            tree = await read_tree(root, processes)
            built = chosen or target.workspace.packages
            found = Holdings({"fake": target}, root, tree, target.workspace.packages)
            return await check_absent(built, {"fake": target}, found, root, processes)

    return asyncio.run(main())


def refused(root: Path, target: FakeTarget) -> list[tuple[str, str]]:
    with pytest.raises(PlanError) as raised:
        check(root, target)
    found = [raised.value, *raised.value.others]
    assert {each.problem for each in found} == {Problem.NOT_CHECKED_OUT}
    return [(str(each), each.hint) for each in found]


def test_a_submodule_that_is_not_checked_out_is_refused(root: Path) -> None:
    """R64: in a package, or behind a link; one that nobody is to check out is not missed."""
    inner = make_repository(root.parent / "inner", {"inner.c": "1"})
    for place in ("core/vendor", "shared/vendor", "core/none"):
        add_submodule(root, inner, place)
    git(root, "config", "--file", ".gitmodules", "submodule.core/none.update", "none")
    commit(root, {"app/b.py": "1"}, {"app/c": "../shared/vendor/inner.c"})
    lone = git(root, "rev-parse", "HEAD").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{lone},app/lone")
    git(root, "commit", "--quiet", "--message", "Lone")
    there = clone(root)
    target = make_target(there, "core", "app")
    without = "would be published without some files: the submodule"
    (first, add), (second, recursive), (third, _) = refused(there, target)
    assert first == (
        f"fake:app {without} app/lone is not checked out, and .gitmodules has no entry for it"
    )
    assert "git rm --cached" in add
    assert second == f"fake:core {without} core/vendor is not checked out"
    assert "`submodules: recursive`" in recursive
    assert "git submodule update --init --recursive" in recursive
    assert third == f"fake:app {without} shared/vendor is not checked out"
    # Go's proxy takes nothing of a submodule either.
    committed = make_target(there, "core", "app", builds_from_commit=True)
    assert "are not checked out: shared/vendor (" in check(there, committed)
    packs = lambda _package, _names: lambda name: not name.startswith("vendor")  # noqa: E731
    leaving_out = make_target(there, "core", packs=packs)
    note = check(there, leaving_out)
    assert "are not checked out: app/lone, shared/vendor (" in note
    assert "`update = none`" in note


def test_a_submodule_in_a_private_root_may_hold_packages(root: Path) -> None:
    """R64: a member of the workspace that is not checked out is never passed by in silence."""
    inner = make_repository(root.parent / "inner", {"package.json": "{}"})
    add_submodule(root, inner, "packages/b")
    there = clone(root)
    members = make_target(there, "core", ".")
    core, top = members.workspace.packages
    private = replace(top, unpublishable="private")
    target = FakeTarget(FakeWorkspace([core, private]), FakeRegistry())
    assert "are not checked out: packages/b (" in check(there, target, core)


def test_a_workspace_below_the_top_reads_its_submodules(root: Path) -> None:
    """R64: .gitmodules lies at the top."""
    inner = make_repository(root.parent / "inner", {"inner.c": "1"})
    add_submodule(root, inner, "core/lib/vendor")
    there = clone(root) / "core"
    commit(there, {"lib/a.py": "1"})
    [(message, hint)] = refused(there, make_target(there, "lib"))
    assert message.endswith("the submodule lib/vendor is not checked out")
    assert "`submodules: recursive`" in hint


def test_files_that_a_sparse_checkout_leaves_out_are_refused(root: Path) -> None:
    """R64"""
    commit(root, {"core/data/x.bin": "1", "app/a.py": "1", "docs/y.md": "1"})
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/core/data", "!/docs")
    [(message, hint)] = refused(root, make_target(root, "core", "app"))
    assert message == (
        "fake:core would be published without some files: "
        "the sparse checkout leaves out core/data/x.bin"
    )
    assert "git sparse-checkout disable" in hint
    assert check(root, make_target(root, "app")) == ""


def test_pointers_of_git_lfs_are_named(root: Path) -> None:
    """R64: files that say where the bytes are, in the place of these."""
    git(root, "config", "filter.lfs.clean", "cat")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    commit(root, {"core/x.bin": pointer, "core/y.bin": "bytes", "core/notes.md": pointer})
    target = make_target(root, "core")
    assert check(root, target) == ""
    commit(root, {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    assert check(root, target) == (
        "fake:core may be published with pointers in place of files that Git LFS has not fetched: "
        "core/x.bin (check out with `lfs: true` (actions/checkout), or run `git lfs pull`)"
    )
    (root / "core/x.bin").write_text("fetched")
    assert check(root, target) == ""


def test_what_go_leaves_out_is_named(root: Path) -> None:
    """R64: `go mod download` takes no symbolic link, and nothing of a submodule."""
    inner = make_repository(root.parent / "inner", {"inner.go": "1"})
    add_submodule(root, inner, "core/sub")
    add_submodule(root, inner, "core/testdata/sub")
    links = {
        "core/link.go": "../gen/a.go",
        "core/dir": "../gen",
        "core/up.go": "../../nowhere.go",
        "core/link_test.go": "../gen/a.go",
        "core/testdata/dir": "../../gen",
        "elsewhere/link.go": "../gen/a.go",
    }
    commit(root, {"gen/a.go": "1"}, links)
    target = make_target(root, "core", builds_from_commit=True, packs=module_zip.packs)
    assert check(root, target) == (
        "fake:core would be published without core/dir, core/link.go, core/sub and 1 more: a Go "
        "module contains no symbolic links and no files of submodules; commit the files themselves"
    )
    # Others pack what a link leads to.
    assert check(root, make_target(root, "core", packs=module_zip.packs)) == ""
