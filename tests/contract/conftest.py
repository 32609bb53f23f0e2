"""Every case of this suite, for every ecosystem and each of its registries."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import pytest

from contract import workbench
from contract.case import WORKSPACE, Place
from integration.tools import require_tool
from releasekit.errors import BuildFailed
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from contract.case import Case
    from releasekit.model import Artifact, Package

DIRECTORY: Final = "directory"


@dataclass(frozen=True)
class Builds:
    """All publishable packages in publish order and what they were built into, once and then from
    other sources of the same version, after a later discovery of the first.

    `before` are the files of the root, before it was built.
    """

    root: Path
    before: Mapping[Path, bytes]
    packages: tuple[Package, ...]
    artifacts: Mapping[str, tuple[Artifact, ...]]
    others: Mapping[str, tuple[Artifact, ...]]


def case_of(ecosystem: str) -> Case:
    return cast("Case", importlib.import_module(f"contract.{ecosystem}").CASE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = list(workbench.TABLE)
    if "server" in metafunc.fixturenames or "place" in metafunc.fixturenames:
        directory = () if "server" in metafunc.fixturenames else (DIRECTORY,)
        pairs = [(name, kind) for name in names for kind in (*case_of(name).servers, *directory)]
        ids = [f"{name}-{kind}" for name, kind in pairs]
        metafunc.parametrize(("ecosystem", "kind"), pairs, ids=ids, scope="session")
    elif "ecosystem" in metafunc.fixturenames:
        metafunc.parametrize("ecosystem", names, scope="session")


@pytest.fixture(scope="session")
def case(ecosystem: str) -> Case:
    return case_of(ecosystem)


@pytest.fixture
def place(request: pytest.FixtureRequest, case: Case, kind: str, tmp_path: Path) -> Place:
    """Empty; a server, or a directory."""
    if kind == DIRECTORY:
        return Place(registry=f"dir:{tmp_path / 'registry'}")
    return case.place(request.getfixturevalue(kind))


@pytest.fixture
def server(request: pytest.FixtureRequest, case: Case, kind: str) -> Place:
    """Empty, with accounts, behind a recorder."""
    return case.place(request.getfixturevalue(kind))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory for a workspace."""
    directory = tmp_path / "a workspace"
    directory.mkdir()
    return directory


@pytest.fixture(scope="session")
def builds(ecosystem: str, case: Case, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    for tool in case.tools:
        require_tool(tool)
    roots = [tmp_path_factory.mktemp(f"{ecosystem}-{text}") for text in ("one", "two")]

    for root, text in zip(roots, ("one", "two"), strict=True):
        case.write(root, [replace(member, text=text) for member in WORKSPACE])
    before = workbench.files(roots[0])

    async def build(root: Path) -> tuple[list[Package], dict[str, tuple[Artifact, ...]]]:
        async with workbench.opened(ecosystem, case, root) as bench:
            packages = bench.publishable
            await bench.discovery.discover(roots[0].resolve())
            built: dict[str, tuple[Artifact, ...]] = {}
            for package, result in (await bench.build(packages)).items():
                assert not isinstance(result, BuildFailed), (str(result), result.log)
                built[package.name] = result
            return packages, built

    packages, artifacts = asyncio.run(build(roots[0]))
    _, others = asyncio.run(build(roots[1]))
    return Builds(roots[0], before, tuple(packages), artifacts, others)
