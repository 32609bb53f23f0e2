from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.go import GoOptions
from releasekit.ecosystems.go.discover import find_modules
from releasekit.ecosystems.go.versioning import GoVersioning
from unit.go.test_go_discover import write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module


def make_versioning(modules: Mapping[str, Module], root: Path) -> GoVersioning:
    return GoVersioning(modules, root, root / "releasekit.toml")


def test_a_requirement_is_a_minimum(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        go_work="go 1.24\nuse (\n\t.\n\t./sdk\n\t./cmd\n)\n",
        go_mod="module a.b/m\nrequire a.b/m/sdk v1.2.0 // indirect\n",
        sdk__go_mod="module a.b/m/sdk\n",
        cmd__go_mod="module a.b/m/cmd\nrequire (\n\ta.b/m/sdk v1.2.0\n\ta.b/x v1.0.0\n)\n",
    )
    modules = find_modules(root, GoOptions(version="1.2.0"))
    (edge,) = make_versioning(modules, root).list_edges({})
    assert (edge.dependent.name, edge.on.name) == ("a.b/m/cmd", "a.b/m/sdk")
    assert all(edge.admits(each) for each in ("1.2.1", "1.9.0", "2.0.0"))


def test_one_of_a_private_module_asks_nothing_of_users(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        go_mod="module a.b/m\nrequire a.b/m/sdk v1.2.0\n",
        sdk__go_mod="module a.b/m/sdk\n",
    )
    modules = find_modules(root, GoOptions(version="1.2.0", private=(".",)))
    assert list(make_versioning(modules, root).list_edges({})) == []


def test_modules_share_the_version_that_they_find_in_one_place(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        VERSION="1.2.0\n",
        go_mod="module a.b/m\n",
        one__go_mod="module a.b/m/one\n",
        two__go_mod="module a.b/m/two\n",
        two__VERSION="0.3.0\n",
        three__go_mod="module a.b/m/three\n",
    )
    options = GoOptions(version_file="VERSION", versions={"three": "1.2.0"})
    ((place, group),) = make_versioning(find_modules(root, options), root).groups.items()
    assert [package.name for package in group] == ["a.b/m", "a.b/m/one"]
    assert place == "VERSION"


def test_modules_share_the_version_of_the_option(tmp_path: Path) -> None:
    root = write(tmp_path, go_mod="module a.b/m\n", one__go_mod="module a.b/m/one\n")
    groups = make_versioning(find_modules(root, GoOptions(version="1.2.0")), root).groups
    assert list(groups) == ["releasekit.toml: go.version"]
