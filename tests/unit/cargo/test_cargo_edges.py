from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.cargo.discover import Need
from releasekit.ecosystems.cargo.versioning import CargoVersioning
from releasekit.fields import replace
from unit.cargo.test_cargo_discover import CRATES_IO, crate, found_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.values import PinMode
    from releasekit.decided import Edge
    from releasekit.model import PackageId


def edges(root: Path, need: Need, pins: PinMode = "auto") -> list[Edge]:
    """Of a crate `web`, beside `core`, whose 1.0.0 is written after a 0.9.0 was released."""
    there = replace(need, path=need.path and root / need.path)
    crates = [crate(root, "core"), crate(root, "own", publish=()), crate(root, "web", there)]
    packages = found_of(root, crates, CRATES_IO)
    by_name = {each.name: each for each in crates}
    return list(CargoVersioning(packages, by_name, root, pins).list_edges({"core": "0.9.0"}))


def need(requirement: str, path: str = "core", name: str = "core", kind: str = "normal") -> Need:
    where = Path(path) if path else None
    return Need(name=name, path=where, requirement=requirement, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requirement", "pins", "published", "feature", "major"),
    [
        ("*", "auto", "^0.9.0", False, False),
        ("*", "exact", "=0.9.0", False, False),
        ("^1.0", "auto", "^1.0", True, False),
        (">=0.9", "auto", ">=0.9", True, True),
        ("^1.0", "exact", "=0.9.0", False, False),
    ],
)
def test_an_edge_has_the_requirement_that_was_published(
    tmp_path: Path, requirement: str, pins: PinMode, published: str, feature: bool, major: bool
) -> None:
    (edge,) = edges(tmp_path, need(requirement), pins)
    assert (str(edge.dependent), str(edge.on)) == ("cargo:web", "cargo:core")
    assert edge.requirement == published
    assert (edge.admits("1.1.0"), edge.admits("2.0.0")) == (feature, major)


def test_without_a_path_a_requirement_stays(tmp_path: Path) -> None:
    (edge,) = edges(tmp_path, need("^1.0", path=""), "exact")
    assert edge.requirement == "^1.0"


@pytest.mark.parametrize(
    "asked",
    [
        need("^1.0", kind="dev"),
        need("^0.9", path=""),
        need("^1.0", path="own", name="own"),
        need("^1.0", path="", name="serde"),
    ],
)
def test_what_is_not_of_this_workspace_or_only_for_tests_makes_no_edge(
    tmp_path: Path, asked: Need
) -> None:
    assert edges(tmp_path, asked) == []


def shared(root: Path, **manifests: str) -> Mapping[str, Sequence[PackageId]]:
    crates = [crate(root, name) for name in manifests]
    for each, text in zip(crates, manifests.values(), strict=True):
        each.manifest.parent.mkdir()
        each.manifest.write_text(f'[package]\nname = "{each.name}"\n{text}\n')
    packages = found_of(root, crates, CRATES_IO)
    by_name = {each.name: each for each in crates}
    return CargoVersioning(packages, by_name, root, "auto").groups


def test_crates_that_inherit_the_version_of_their_workspace_share_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    inherits = "version.workspace = true"
    found = shared(root, a=inherits, b="version = { workspace = true }", c='version = "1.0.0"')
    ((place, group),) = found.items()
    assert [package.name for package in group] == ["a", "b"]
    assert place == "Cargo.toml: workspace.package.version"


def test_a_crate_alone_shares_with_nobody(tmp_path: Path) -> None:
    inherits = "version.workspace = true"
    assert shared(tmp_path.resolve(), a=inherits, b='version = "1.0.0"') == {}
