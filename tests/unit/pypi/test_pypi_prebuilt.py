from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

import distributions
from releasekit.ecosystems.pypi.build import is_installable
from releasekit.ecosystems.pypi.target import PythonFiles
from releasekit.errors import PackageError
from releasekit.model import DependencyKind

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Contained
    from releasekit.ecosystems.pypi.target import PyPIWorkspace
    from releasekit.model import Package

CORE = distributions.package("acme-core", "1.0")


@dataclass
class Found:
    packages: tuple[Package, ...] = (CORE, distributions.package("acme-web", "not a version"))


FILES = PythonFiles(cast("PyPIWorkspace", Found()))


def contained(path: Path) -> Contained:
    with path.open("rb") as file:
        return FILES.contained(file, path)


def refusal(path: Path) -> str:
    with pytest.raises(PackageError) as caught:
        contained(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


def test_a_file_is_known_by_its_metadata(tmp_path: Path) -> None:
    for file in (distributions.wheel(tmp_path, CORE), distributions.sdist(tmp_path, CORE)):
        found = contained(file.path)
        assert (found.name, found.version) == ("acme-core", "1.0")


@pytest.mark.parametrize(("name", "spelled"), [("acme-core", "1.0"), ("acme-web", "1.0.0")])
def test_a_version_is_spelled_as_planned(tmp_path: Path, name: str, spelled: str) -> None:
    """PEP 440: 1.0 and 1.0.0 are one version."""
    wheel = distributions.wheel(tmp_path, distributions.package(name, "1.0.0"))
    assert contained(wheel.path).version == spelled


def test_what_it_needs_of_the_workspace_is_read(tmp_path: Path) -> None:
    requires = (
        "Acme.Web>=2",
        "acme-core[all]",
        "elsewhere<1",
        'acme-web==3; extra == "web"',
        "acme-web @ https://example.com/acme-web.whl",
    )
    wheel = distributions.wheel(tmp_path, CORE, requires=requires)
    assert [
        (need.on.name, need.kind, need.requirement, need.soft)
        for need in contained(wheel.path).dependencies
    ] == [
        ("acme-web", DependencyKind.RUNTIME, ">=2", False),
        ("acme-core", DependencyKind.RUNTIME, "", False),
        ("acme-web", DependencyKind.OPTIONAL, "==3", True),
    ]


def test_a_requirement_admits_what_pip_would_take() -> None:
    """Prereleases too: a release of one may need another one."""
    assert FILES.admits("", "1.0b1")
    assert FILES.admits(">=1.0b1", "1.0b2")
    assert not FILES.admits(">=2", "1.0")


def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    """A renamed wheel would be another release on the registry."""
    wheel = distributions.wheel(tmp_path, CORE).path
    other = wheel.with_name("acme_core-2.0-py3-none-any.whl")
    shutil.copy(wheel, other)
    assert refusal(other) == ": its metadata says acme-core 1.0, its name acme-core 2.0"
    nameless = tmp_path / "a.whl"
    shutil.copy(wheel, nameless)
    assert "not the name of a wheel" in refusal(nameless)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """With its path and one line, whatever is wrong with it."""
    wheel = distributions.wheel(tmp_path, CORE, requires=["a b c"]).path
    assert ": its metadata cannot be used: " in refusal(wheel)
    wheel.write_bytes(wheel.read_bytes()[:-30])
    assert ": not a readable archive" in refusal(wheel)
    sdist = distributions.sdist(tmp_path, CORE, info=b"Metadata-Version: 2.1\n\n").path
    assert ": its metadata cannot be used: " in refusal(sdist)


@pytest.mark.parametrize(
    ("wheel", "fits"),
    [
        ("a-1.0-py3-none-any.whl", True),
        ("a-1.0-1-py2.py3-none-any.whl", True),
        ("a-1.0-py3-none-win32.whl", False),
        ("a-1.0-cp27-cp27mu-any.whl", False),
    ],
)
def test_which_wheels_can_be_installed_here(wheel: str, fits: bool) -> None:
    assert is_installable(wheel) is fits
