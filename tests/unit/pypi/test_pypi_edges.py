from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.ecosystems.pypi import PyPIOptions, discover
from releasekit.ecosystems.pypi.versioning import PyPIVersioning
from unit.pypi.test_pypi_discover import project, write

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.decided import Edge

RELEASED = {"core": "1.2.0", "web": "0.3.0"}


def edges(root: Path, *lines: str, pins: PinMode = "auto") -> list[Edge]:
    """Of a package `web`, beside `core`, whose 1.3.0 is written and not released yet."""
    files = {
        "packages/core": project("core", version="1.3.0"),
        "packages/tools": project("tools").replace("[build-system]", "[tool.x]"),
        "packages/web": project("web", *lines, version="0.3.0"),
        ".": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
    }
    projects, _ = discover.read_projects(write(root, files), PyPIOptions())
    found = {name: discover.with_elsewhere(each, projects) for name, each in projects.items()}
    return list(PyPIVersioning(found, root, PyPIOptions(), pins).list_edges(RELEASED))


@pytest.mark.parametrize(
    ("need", "pins", "requirement", "feature", "major"),
    [
        ("core", "auto", "==1.2.0", False, False),
        ("core", "none", "", True, True),
        ("core[fast]; python_version>'3'", "auto", "==1.2.0", False, False),
        ("core>=1.2,<2", "auto", "<2,>=1.2", True, False),
        ("core>=1.2,<2", "exact", "==1.2.0", False, False),
        ("core>=1.2", "auto", ">=1.2", True, True),
        ("core>=1.3", "exact", ">=1.3", True, True),
    ],
)
def test_an_edge_has_the_specifier_that_was_published(
    tmp_path: Path, need: str, pins: PinMode, requirement: str, feature: bool, major: bool
) -> None:
    (edge,) = edges(tmp_path, f'dependencies = ["{need}"]', pins=pins)
    assert (str(edge.dependent), str(edge.on)) == ("pypi:web", "pypi:core")
    assert edge.requirement == requirement
    assert (edge.admits("1.3.0"), edge.admits("2.0.0")) == (feature, major)


def test_extras_are_published_too(tmp_path: Path) -> None:
    (edge,) = edges(tmp_path, 'optional-dependencies = { all = ["core"] }')
    assert (edge.kind, edge.requirement) == ("optional", "==1.2.0")


@pytest.mark.parametrize(
    "lines",
    [
        ('dependencies = ["core<1"]',),
        ('dependencies = ["core @ https://example.com/core.whl"]',),
        ('dependencies = ["tools"]',),
        ("[dependency-groups]", 'dev = ["core"]'),
        ('classifiers = ["Private :: No"]', 'dependencies = ["core"]'),
    ],
)
def test_what_users_never_get_makes_no_edge(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert edges(tmp_path, *lines) == []


def test_a_build_takes_what_it_needs_into_an_environment_of_its_own(tmp_path: Path) -> None:
    files = {
        "packages/core": project("core"),
        "packages/web": project("web").replace('["hatchling"]', '["hatchling", "core"]'),
        ".": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
    }
    projects, _ = discover.read_projects(write(tmp_path, files), PyPIOptions())
    versioning = PyPIVersioning(projects, tmp_path, PyPIOptions(), "auto")
    assert list(versioning.list_edges(RELEASED)) == []
