"""Which packages hold a file, by links, by manifests, and by submodules."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from releasekit.errors import PathError
from releasekit.host.process import Processes
from releasekit.model import PackageId
from releasekit.plan.holdings import Holdings, list_uncommitted_above
from unit.plan.checkouts import (
    FETCHING,
    add_submodule,
    at,
    clone,
    commit,
    make_repository,
    make_target,
    read,
)
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("git")
    return make_repository(tmp_path.resolve() / "top", {"core/a.py": "1"})


def holdings(root: Path, *places: str, **given: object) -> Holdings:
    found = make_target(root, *places, **given)
    return Holdings({"fake": found}, root, read(root), found.workspace.packages)


def holding(found: Holdings, *paths: str) -> dict[str, set[str]]:
    return {path: {each.name for each in found.list_holders(path)} for path in paths}


def test_a_package_holds_what_its_links_lead_to(root: Path) -> None:
    """R64: files and directories, by a link, a link to a link, and a link on the way."""
    links = {
        "core/a/shared": "../../shared",
        "shared/more": "../more",
        "app/one.py": "../hop/more/one.py",
        "hop": "shared",
        "app/up": "..",
        "app/self": ".",
        "app/out": "../../elsewhere",
        "app/absolute": "/etc/hostname",
        "app/round": "round",
        "app/gone": "../nowhere",
    }
    commit(
        root, {"shared/s.py": "1", "more/one.py": "1", "more/two.py": "1", "app/b.py": "1"}, links
    )
    found = holdings(root, "core", "app")
    assert holding(found, "shared/s.py", "more/one.py", "more/two.py", "core/a.py", "b.py") == {
        "shared/s.py": {"core"},
        "more/one.py": {"core", "app"},
        "more/two.py": {"core"},
        "core/a.py": {"core"},
        "b.py": set(),
    }
    assert sorted(found.locate("more/one.py")) == [
        (at(root, "app").id, "one.py"),
        (at(root, "core").id, "a/shared/more/one.py"),
    ]
    assert sorted(found.list_places(at(root, "core"))) == ["core", "more", "shared"]


def test_a_package_holds_the_links_on_the_way(root: Path) -> None:
    """R64: whoever lets one lead elsewhere changes what is published."""
    links = {"core/src": "../hop/deep", "hop": "second", "second": "shared", "core/b": "../one"}
    commit(root, {"shared/deep/s.py": "1", "one": "1"}, links)
    found = holdings(root, "core")
    assert holding(found, "hop", "second", "shared/deep/s.py", "one", "shared/t.py") == {
        "hop": {"core"},
        "second": {"core"},
        "shared/deep/s.py": {"core"},
        "one": {"core"},
        "shared/t.py": set(),
    }


def test_a_package_holds_what_lies_above_its_workspace(root: Path) -> None:
    """R64: in the same repository, and not what is around the workspace or outside of both."""
    links = {
        "ws/core/r.md": "../../README.md",
        "ws/core/lib": "../../shared/lib",
        "ws/core/back": "../../ws/hop",
        "ws/core/around": "../..",
        "ws/core/out": "../../../top/README.md",
        "ws/core/far": "../../../other",
    }
    files = {"README.md": "1", "shared/lib/x.py": "1", "ws/hop/y.py": "1", "ws/core/z.py": "1"}
    commit(root, files, links)
    found = holdings(root / "ws", "core")
    asked = ("../README.md", "../shared/lib/x.py", "hop/y.py", "../core/a.py", "../../other/z")
    held = holding(found, *asked)
    assert {path for path, holders in held.items() if holders} == set(asked[:3])
    assert found.list_places(at(root / "ws", "core"))[0] == "core"
    (root / "README.md").write_text("2")
    (root / "shared/lib/x.py").write_text("2")
    (root / "core/a.py").write_text("2")

    async def ask() -> list[str]:
        async with Processes(environment=dict(os.environ)) as processes:
            return list(await list_uncommitted_above(found, root / "ws", processes))

    assert asyncio.run(ask()) == ["../README.md", "../shared/lib/x.py"]


def test_what_a_link_leads_to_counts_by_its_name_in_the_package(root: Path) -> None:
    """R64: by the name that its tool packs it under."""
    commit(root, {"shared/s.py": "1", "app/b.py": "1"}, {"core/notes/s.py": "../../shared/s.py"})
    filtered = lambda _package, _names: lambda name: not name.startswith("notes/")  # noqa: E731
    assert holding(holdings(root, "core", make_filter=filtered), "shared/s.py") == {
        "shared/s.py": set()
    }
    none = holdings(root, "core", follows_links=lambda *_: False)
    assert holding(none, "shared/s.py") == {"shared/s.py": set()}


def test_links_to_one_another_end(root: Path) -> None:
    """R64: however many paths they stand for."""
    links = {f"d{n}/{name}": f"../d{n + 1}" for n in range(40) for name in "abc"}
    commit(root, {"d40/x.py": "1"}, {**links, "core/d": "../d0"})
    assert holding(holdings(root, "core"), "d40/x.py") == {"d40/x.py": {"core"}}


def test_more_links_than_can_be_followed_are_refused(root: Path) -> None:
    """R51: deep directories whose links lead to one another, up to all memory."""
    deep = {name: "/".join([name] * 150) for name in "yz"}
    links = {
        f"{deep[here]}/l{number}": f"{'../' * 150}{'/'.join([there] * (1 + number))}"
        for here, there in ("yz", "zy")
        for number in range(150)
    }
    commit(root, {}, {**links, "core/y": "../y"})
    with pytest.raises(PathError, match="the symbolic links of fake:core lead to more"):
        _ = holdings(root, "core").elsewhere


def test_a_package_holds_what_its_manifest_names_elsewhere(root: Path) -> None:
    """R64: but not its tests, and not all that is around it."""
    commit(root, {"assets/docs/x.md": "1", "assets/docs/tests/t.md": "1", "README.md": "1"})
    outside = {
        root / "core/../assets/docs",
        root / "README.md",
        root,
        root.parent / "y",
        root / "no",
    }
    found = holdings(root, "core", list_outside=lambda _: outside)
    paths = ("assets/docs/x.md", "assets/docs/tests/t.md", "README.md", "other.md")
    assert holding(found, *paths) == {
        "assets/docs/x.md": {"core"},
        "assets/docs/tests/t.md": set(),
        "README.md": {"core"},
        "other.md": set(),
    }


def test_what_is_compiled_in_ends_where_another_package_begins(root: Path) -> None:
    """R64: also one that is in no workspace, and around the package itself."""
    files = (
        *("crate.toml", "src/r.rs", "src/tests/t.rs", "docs/d.md", "app/b.py", "app/in/i.rs"),
        *("lib/crate.toml", "lib/l.rs", "lib/fuzz/crate.toml", "lib/fuzz/f.rs", "fuzz/f.rs"),
        "fuzz/crate.toml",
    )
    links = {"src/linked": "../shared", "fuzz/linked": "../unshared"}
    commit(root, dict.fromkeys((*files, "shared/s.rs", "unshared/u.rs"), "1"), links)
    compiled = [root / each / "crate.toml" for each in ("", "lib", "core", "app/in", "gone")]
    found = holdings(
        root, "core", "app", "app/in", list_compiled=lambda it: compiled if "app" in str(it) else ()
    )
    whole = "src/r.rs", "lib/l.rs", "crate.toml", "shared/s.rs", "gone/g.rs"
    none = "src/tests/t.rs", "docs/d.md", "lib/fuzz/f.rs", "fuzz/f.rs"
    held = holding(found, *whole, *none, "app/in/i.rs", "app/b.py", "core/a.py")
    assert {path for path in (*whole, *none) if "app" in held[path]} == {*whole}
    assert held["app/in/i.rs"] == {"app", "app/in"}
    assert held["app/b.py"] == {"app"}
    assert held["core/a.py"] == {"app", "core", "app/in"}
    assert found.find_contained(at(root, "app").id) == {
        at(root, each).id for each in ("app", "core", "app/in")
    }
    assert not holding(holdings(root, "core"), "src/r.rs")["src/r.rs"]


def test_the_files_of_a_submodule_are_known_once_it_is_checked_out(root: Path) -> None:
    """R64: and those of the submodules in it."""
    deep = make_repository(root.parent / "deep", {"deep.c": "1"})
    inner = make_repository(root.parent / "inner", {"inner.c": "1"})
    add_submodule(inner, deep, "deep")
    add_submodule(root, inner, "core/vendor")
    bare = read(clone(root))
    assert bare.files == [".gitmodules", "core/a.py", "core/vendor/"]
    assert bare.missing == ["core/vendor"]
    half = read(root)
    assert half.missing == ["core/vendor/deep"]
    assert "core/vendor/inner.c" in half.files
    assert "core/vendor/deep/" in half.files
    git(root, *FETCHING, "submodule", "--quiet", "update", "--init", "--recursive")
    whole = read(root)
    assert not whole.missing
    assert "core/vendor/deep/deep.c" in whole.files
    assert whole.submodules == {"core/vendor"}
    outside = root.parent / "outside"
    outside.mkdir()
    assert read(outside).files == ()


def test_files_that_git_does_not_have_are_listed_unless_they_are_too_many(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R63: what git has is known all the same."""
    commit(root, {".gitignore": "ignored\n"})
    tracked = read(root).files
    for name in ("ignored", *(f"new-{number:03}" for number in range(200))):
        (root / name).touch()
    tree = read(root)
    assert len(tree.untracked or ()) == 200
    monkeypatch.setattr("releasekit.host.process.MAX_OUTPUT", 1_500)
    limited = read(root)
    assert limited.files == tree.files == tracked
    assert limited.untracked is None


def test_a_path_that_a_manifest_repeats_is_followed_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68: there is room for five million in one file."""
    found = holdings(root, "core", "other")
    core, other = (PackageId("fake", name) for name in ("core", "other"))
    (root / "core/manifest").write_text("../other " * 1_000)
    followed: list[str] = []
    normpath = os.path.normpath

    def follow(path: str) -> str:
        followed.append(str(path))
        return normpath(path)

    monkeypatch.setattr(os.path, "normpath", follow)
    assert found.find_contained(core) == {core, other}
    assert len([each for each in followed if each.endswith("../other")]) == 1
