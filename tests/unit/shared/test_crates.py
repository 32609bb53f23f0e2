"""Which crates cargo compiles into another one: as `cargo metadata` resolves them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from integration.tools import require_tool
from releasekit.ecosystems.shared.crates import MANIFEST, Crates
from releasekit.errors import Unreadable
from workspaces import git

TOP = """
[workspace]
members = ["crates/*", "crates/outer/inner", "py"]
exclude = ["apart"]
resolver = "2"
[workspace.dependencies]
shared = { path = "crates/shared", version = "0.1.0" }
spelled-otherwise = { path = "crates/renamed", package = "renamed" }
unused = { path = "crates/unused" }
[patch.crates-io]
itoa = { path = "vendor/itoa" }
"""
NEEDS = {
    "": "[dependencies]\nhop = { path = 'crates/hop' }",
    "py": (
        "[dependencies]\nroot = { path = '..' }\nshared.workspace = true\nitoa = '1'\n"
        "spelled-otherwise = { workspace = true }\napart = { path = '../apart' }\n"
        "optional = { path = '../crates/optional', optional = true }\n"
        "inner = { path = '../crates/outer/inner' }\n"
        "[build-dependencies]\nbuilding = { path = '../crates/building' }"
    ),
    "crates/hop": (
        "[target.'cfg(unix)'.dependencies]\nunix = { path = '../unix' }\n"
        "[target.'cfg(windows)'.dependencies]\nwindows = { path = '../windows' }\n"
        "[dev-dependencies]\ntesting = { path = '../testing' }"
    ),
    **{
        f"crates/{name}": ""
        for name in (
            *("building", "optional", "outer", "outer/inner", "renamed", "shared", "testing"),
            *("unix", "unused", "windows"),
        )
    },
    "apart": "",
    "vendor/itoa": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    require_tool("git")
    require_tool("cargo")
    root = tmp_path.resolve() / "top"
    for place, needs in NEEDS.items():
        name, version = place.rpartition("/")[2] or "root", "1.0.9" if "itoa" in place else "0.1.0"
        source = root / place / "src/lib.rs"
        source.parent.mkdir(parents=True)
        source.touch()
        (root / place / MANIFEST).write_text(
            f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n{needs}\n'
            f"{TOP if not place else ''}"
        )
    git(root, "init", "--quiet")
    return root


def ask_cargo(crate: Path) -> set[Path]:
    """The manifests of the crates that are compiled into it, by all features, on any platform."""
    command = ("cargo", "metadata", "--offline", "--all-features", "--format-version=1")
    told = subprocess.run(command, cwd=crate, capture_output=True, text=True, check=True)
    document = json.loads(told.stdout)
    places = {each["id"]: Path(each["manifest_path"]) for each in document["packages"]}
    nodes = {each["id"]: each["deps"] for each in document["resolve"]["nodes"]}
    found: set[str] = set()
    pending = [name for name, place in places.items() if place.parent == crate]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += [
                each["pkg"]
                for each in nodes[name]
                if any(kind["kind"] != "dev" for kind in each["dep_kinds"])
            ]
    return {places[each] for each in found}


@pytest.mark.parametrize("place", ["py", "", "crates/hop", "crates/unused"])
def test_crates_are_those_that_cargo_resolves(root: Path, place: str) -> None:
    """R64: several hops, the workspace's table, other platforms, builds and patches."""
    found = {*Crates(root).list_compiled([root / place / MANIFEST])}
    assert found - {root / "vendor/itoa" / MANIFEST} == ask_cargo(root / place) - {
        root / "vendor/itoa" / MANIFEST
    }
    # Whether what others need is patched, no manifest says.
    assert root / "vendor/itoa" / MANIFEST in found


def test_crates_that_are_not_there_are_named_and_those_outside_are_not(root: Path) -> None:
    """R51, R64: a submodule may have the first."""
    (root / "py" / MANIFEST).write_text(
        "[dependencies]\ngone = { path = '../gone' }\nout = { path = '../../out' }\n"
        "self = { path = 'link' }\nodd = { path = 3 }\nplain = 'x'\n"
        "[package]\nworkspace = '../apart'\n"
    )
    (root / "py/link").symlink_to(".")
    found = Crates(root).list_compiled([root / "py" / MANIFEST])
    assert {*found} == {root / "py" / MANIFEST, root / "gone" / MANIFEST}


def test_a_crate_that_cannot_be_read_is_named(root: Path) -> None:
    """R66: it may depend on others."""
    (root / "crates/unix" / MANIFEST).write_text("[dependencies")
    with pytest.raises(Unreadable, match=r"crates/unix/Cargo\.toml is not valid TOML"):
        Crates(root).list_compiled([root / MANIFEST])
