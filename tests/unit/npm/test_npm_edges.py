from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from javascript import ecosystem, write
from releasekit.ecosystems.npm.pin import Pins
from releasekit.model import DependencyKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.decided import Edge

YAML = "packages: ['*']\ncatalog: {core: ^1.0.0}\n"
RELEASED = {"core": "1.2.0", "web": "2.0.0"}


def edges(tmp_path: Path, web: Mapping[str, object], mode: str = "auto") -> list[Edge]:
    """Of a package `web`, beside `core`, whose 1.3.0 is written and not released yet."""
    files = {
        "pnpm-workspace.yaml": YAML,
        "core/package.json": {"name": "core", "version": "1.3.0"},
        "tools/package.json": {"name": "tools", "version": "1.0.0", "private": True},
        "web/package.json": json.dumps({"name": "web", "version": "2.0.0", **web}),
    }
    root = write(tmp_path, files)
    found = asyncio.run(ecosystem(root, pin=mode).discover(root)).found
    return list(Pins(found, RELEASED, mode).list_edges())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "spec", "requirement", "patch", "major"),
    [
        ("dependencies", "workspace:*", "1.2.0", False, False),
        ("dependencies", "workspace:^", "^1.2.0", True, False),
        ("dependencies", "workspace:~", "~1.2.0", True, False),
        ("dependencies", "workspace:../core", "1.2.0", False, False),
        ("dependencies", "catalog:", "^1.0.0", True, False),
        ("dependencies", "^1.0.0", "^1.0.0", True, False),
        ("dependencies", ">=1", ">=1", True, True),
        ("dependencies", "*", "1.2.0", False, False),
        ("optionalDependencies", "^1.0.0", "^1.0.0", True, False),
        ("peerDependencies", "*", "*", True, True),
        ("peerDependencies", "workspace:^", "^1.2.0", True, False),
    ],
)
def test_an_edge_has_the_range_that_was_published(
    tmp_path: Path, field: str, spec: str, requirement: str, patch: bool, major: bool
) -> None:
    (edge,) = edges(tmp_path, {field: {"core": spec}})
    assert (str(edge.dependent), str(edge.on)) == ("npm:web", "npm:core")
    assert edge.requirement == requirement
    assert (edge.admits("1.2.1"), edge.admits("2.0.0")) == (patch, major)


def test_all_is_exact_where_pins_are(tmp_path: Path) -> None:
    (edge,) = edges(tmp_path, {"dependencies": {"core": "workspace:^"}}, "exact")
    assert edge.requirement == "1.2.0"


@pytest.mark.parametrize("spec", ["workspace:*", "workspace:^", "^1.0.0", "*"])
def test_what_is_bundled_is_held_in_one_version(tmp_path: Path, spec: str) -> None:
    """R64: its users keep the copy in the tarball, whatever the range allows."""
    web = {"dependencies": {"core": spec}, "bundleDependencies": ["core"]}
    (edge,) = edges(tmp_path, web, "none")
    assert (edge.requirement, edge.kind) == ("1.2.0", DependencyKind.RUNTIME)
    assert (edge.admits("1.2.0"), edge.admits("1.2.1")) == (True, False)


@pytest.mark.parametrize(
    "manifest",
    [
        {"devDependencies": {"core": "workspace:*"}},
        {"dependencies": {"core": "^0.9.0"}},
        {"dependencies": {"core": "latest"}},
        {"dependencies": {"core": "^0.9.0"}, "bundleDependencies": ["core"]},
        {"dependencies": {"tools": "*"}, "bundleDependencies": ["tools"]},
        {"private": True, "dependencies": {"core": "*"}, "bundleDependencies": ["core"]},
        {"dependencies": {"tools": "workspace:*"}},
        {"dependencies": {"web": "*"}},
        {"private": True, "dependencies": {"core": "workspace:*"}},
    ],
)
def test_what_users_never_see_makes_no_edge(tmp_path: Path, manifest: Mapping[str, object]) -> None:
    assert edges(tmp_path, manifest) == []


def test_a_peer_is_told_from_what_a_package_brings(tmp_path: Path) -> None:
    manifest = {
        "scripts": {"prepack": "tsc"},
        "peerDependencies": {"core": "^1.0.0"},
        "optionalDependencies": {"core": "^1.0.0"},
    }
    kinds = [edge.kind for edge in edges(tmp_path, manifest)]
    assert kinds == [DependencyKind.OPTIONAL, DependencyKind.PEER]
