"""What packages would be published without, as it is not checked out."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from fakes import FakeRegistry, FakeTarget, FakeWorkspace
from integration.tools import require_tool
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.go.module_zip import GoComposition
from releasekit.errors import ConfigError, PlanError
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.plan.absent import check_absent, explain_absent, refuse_absent_members
from releasekit.plan.holdings import Holdings, Tree, read_tree
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
    leaving_out = make_target(there, "core", make_filter=packs)
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


CARGO = "[workspace]\nmembers = ['{}']\nexclude = ['c/b']\n"
UV = "[tool.uv.workspace]\nmembers = ['{}']\nexclude = ['c/b']\n"
POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>r</artifactId><version>1</version>"
    "<packaging>pom</packaging><modules><module>{}</module></modules></project>"
)
# Of each tool the file, and all that it lists in the place of {}, with what lies at c/a and c/b.
LISTED = {
    "cargo": ("Cargo.toml", CARGO, ("c/a", "c/*", "**", "c/a/inner", "c/b", "c/b/x")),
    "uv": ("pyproject.toml", UV, ("c/a", "c/*", "**", "c/a/inner")),
    "npm": (
        "package.json",
        '{{"workspaces": ["{}", "!c/b"]}}',
        ("c/a", "c/*", "c/{a,d}", "**", "c/a/inner"),
    ),
    "pnpm": ("pnpm-workspace.yaml", "packages: ['{}', '!c/b']", ("c/a", "c/**", "c/a/inner")),
    "go": ("go.work", "go 1.22\nuse ./{}\n", ("c/a", "c/a/inner", "c/b")),
    "maven": ("pom.xml", POM, ("c/a", "c/a/pom.xml", "c/a/inner", "c/b")),
}


def list_refused(
    root: Path, tables: dict[str, dict[str, object]], files: tuple[str, ...] = ()
) -> list[str]:
    """With c/a, c/b and c/none as submodules that are not checked out."""
    missing = ("c/a", "c/b", "c/none")
    for place in missing:
        (root / place).mkdir(parents=True, exist_ok=True)
    (root / ".gitmodules").write_text(
        "".join(f'[submodule "{each}"]\npath = {each}\n' for each in missing[:2])
        + '[submodule "none"]\npath = c/none\nupdate = none\n'
    )
    tree = Tree(files=sorted(files), missing=missing)

    async def main() -> list[str]:
        async with Processes(environment=dict(os.environ)) as processes:
            try:
                await refuse_absent_members(root, tables, ECOSYSTEMS.values(), tree, processes)
            except PlanError as error:
                found = [error, *error.others]
                assert {each.problem for each in found} == {Problem.NOT_CHECKED_OUT}
                assert all("`submodules: recursive`" in each.hint for each in found)
                return [str(each) for each in found]
        return []

    return asyncio.run(main())


def say_refused(place: str, listing: str) -> str:
    return f"the submodule {place} is not checked out, and {listing} names packages there"


@pytest.mark.parametrize("name", LISTED)
def test_members_in_a_submodule_that_is_not_checked_out_are_refused(
    tmp_path: Path, name: str
) -> None:
    """R64: some tools leave them out in silence, others call it a mistake in the manifest."""
    root = tmp_path.resolve()
    file, text, listed = LISTED[name]
    tool = {"uv": "pypi", "pnpm": "npm"}.get(name, name)
    for pattern in listed:
        (root / file).write_text(text.format(pattern))
        place = "c/b" if pattern.startswith("c/b") else "c/a"
        assert list_refused(root, {}) == [say_refused(place, f"the {tool} workspace {root}")]
        assert list_refused(root, {tool: {"exclude": [place]}}) == []
    for pattern in ("c/d", "d/*", "c/none"):
        (root / file).write_text(text.format(pattern))
        assert list_refused(root, {}) == []


def test_a_submodule_in_a_package_is_no_member_by_a_glob_of_any_depth(tmp_path: Path) -> None:
    """R64: a package may hold sources of another language there, but what is named is meant."""
    root = tmp_path.resolve()
    for pattern, found in (("**", 0), ("*/*", 2)):
        (root / "package.json").write_text(f'{{"workspaces": ["{pattern}"]}}')
        assert len(list_refused(root, {}, ("c/package.json",))) == found
        (root / "package.json").unlink()
        option: dict[str, dict[str, object]] = {"npm": {"packages": [pattern]}}
        assert len(list_refused(root, option, ("c/package.json",))) == found


def test_what_options_name_in_a_submodule_is_refused(tmp_path: Path) -> None:
    """R64: directories, globs and workspaces, and what such a workspace lists."""
    root = tmp_path.resolve()
    for name, key in (
        ("cargo", "workspaces"),
        ("npm", "packages"),
        ("npm", "workspaces"),
        ("pypi", "packages"),
        ("maven", "reactors"),
    ):
        option = f"`{key}` below [{name}] in releasekit.toml"
        assert list_refused(root, {name: {key: ["c/a"]}}) == [say_refused("c/a", option)]
    assert len(list_refused(root, {"pypi": {"packages": ["c/*"]}})) == 2
    assert list_refused(root, {"pypi": {"packages": ["../c"]}}) == []
    (root / "c" / "Cargo.toml").write_text("[workspace]\nmembers = ['a']\n")
    (root / "pom.xml").write_text(POM.format("c"))
    (root / "c" / "pom.xml").write_text(POM.format("b"))
    assert list_refused(root, {"cargo": {"workspaces": ["c"]}}) == [
        say_refused("c/a", f"the cargo workspace {root / 'c'}"),
        say_refused("c/b", f"the maven workspace {root}"),
    ]


def test_a_parent_in_a_submodule_is_refused(tmp_path: Path) -> None:
    """R64: of a module too, as it may keep them private; Maven goes on to look in repositories."""
    root = tmp_path.resolve()
    (root / "app").mkdir()
    head = "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><version>1</version>"
    parent = (
        "<parent><groupId>g</groupId><artifactId>p</artifactId><version>1</version>"
        "<relativePath>{}</relativePath></parent>"
    )
    own = f"{head}<artifactId>app</artifactId>{parent}<modules><module>../app</module></modules>"
    (root / "pom.xml").write_text(
        f"{head}<artifactId>top</artifactId><modules><module>app</module></modules></project>"
    )
    for path in ("../c/a", "../c/a/pom.xml", "../c/a/inner"):
        (root / "app/pom.xml").write_text(f"{own.format(path)}</project>")
        assert list_refused(root, {}) == [say_refused("c/a", f"the maven workspace {root}")]
    for path in ("", "../pom.xml", "../c", "../c/none"):
        (root / "app/pom.xml").write_text(f"{own.format(path)}</project>")
        assert list_refused(root, {}) == []


def test_what_discovery_misses_in_a_submodule_is_told_so(tmp_path: Path) -> None:
    """R64: as cargo says of a dependency that no workspace lists."""
    tree = Tree(missing=("vendor/a",))
    said = f"failed to read `{tmp_path}/vendor/a/inner/Cargo.toml`"
    with pytest.raises(PlanError) as raised, explain_absent(tmp_path, tree):
        raise ConfigError(said)
    assert str(raised.value) == f"the submodule vendor/a is not checked out: {said}"
    assert raised.value.problem is Problem.NOT_CHECKED_OUT
    with pytest.raises(ConfigError, match="vendor/ab"), explain_absent(tmp_path, tree):
        raise ConfigError(f"failed to read `{tmp_path}/vendor/ab/Cargo.toml`")


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
    of_go = GoComposition().make_filter
    target = make_target(root, "core", builds_from_commit=True, make_filter=of_go)
    assert check(root, target) == (
        "fake:core would be published without core/dir, core/link.go, core/sub and 1 more: a Go "
        "module contains no symbolic links and no files of submodules; commit the files themselves"
    )
    # Others pack what a link leads to.
    assert check(root, make_target(root, "core", make_filter=of_go)) == ""
