"""Servers for tests of every directory, each started when first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration import crates, maven_server, portal, servers, verdaccio
from integration import goproxy as go_server
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.verdaccio import Verdaccio


@pytest.fixture(scope="session")
def pypiserver_and_its_files(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[servers.IndexServer, Path]]:
    require_tool("pypi-server")
    directory = tmp_path_factory.mktemp("pypiserver") / "server"
    with servers.pypiserver(directory) as server:
        yield server, directory / "packages"


@pytest.fixture
def pypiserver(
    pypiserver_and_its_files: tuple[servers.IndexServer, Path],
) -> servers.IndexServer:
    """Empty: it reads its directory for each request."""
    server, packages = pypiserver_and_its_files
    for path in packages.iterdir():
        path.unlink()
    server.recorder.start_over()
    return server


@pytest.fixture(scope="session")
def devpi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Devpi]:
    require_tool("devpi-server")
    require_tool("devpi-init")
    with servers.devpi(tmp_path_factory.mktemp("devpi") / "server") as server:
        yield server


@pytest.fixture
def devpi_index(devpi: servers.Devpi) -> Iterator[servers.IndexServer]:
    with devpi.index() as index:
        yield index


@pytest.fixture(params=["pypiserver", "devpi_index"])
def index_server(request: pytest.FixtureRequest) -> servers.IndexServer:
    """Each of the real servers in turn."""
    server: servers.IndexServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def crate_server() -> Iterator[crates.CrateServer]:
    """With the rules of crates.io; empty, and without limits."""
    with crates.crate_server() as server:
        yield server


@pytest.fixture
def alternate_crate_server() -> Iterator[crates.CrateServer]:
    """As companies have them: private, and not particular about dependencies."""
    with crates.crate_server(crates.Crates(private=True, strict=False)) as server:
        yield server


@pytest.fixture(scope="session")
def verdaccio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdaccio]:
    require_tool("npm")
    with verdaccio.verdaccio(tmp_path_factory.mktemp("verdaccio")) as server:
        yield server


@pytest.fixture
def npm_registry(verdaccio_server: Verdaccio) -> Verdaccio:
    """Verdaccio, empty; it takes seconds to start."""
    verdaccio_server.empty()
    return verdaccio_server


@pytest.fixture(name="maven_server")
def _maven_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[maven_server.MavenServer]:
    with maven_server.nginx(tmp_path_factory.mktemp("nginx")) as server:
        yield server


@pytest.fixture
def goproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[go_server.GoProxy]:
    with go_server.goproxy(tmp_path_factory.mktemp("goproxy") / "server") as server:
        yield server


@pytest.fixture
def portal_server() -> Iterator[portal.PortalServer]:
    """A double of Maven Central: there is no other one that could be published to for a test."""
    with portal.portal_server() as server:
        yield server
