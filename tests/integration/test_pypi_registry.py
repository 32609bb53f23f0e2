"""The pypi registries against real servers and real installers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest

import distributions
import registries
from integration import servers
from integration.recorder import Fault
from integration.tools import require_tool
from processes import wait_until
from releasekit.ecosystems.pypi import PyPIInputs
from releasekit.errors import Denied, Transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from integration.servers import IndexServer
    from releasekit.ecosystems.interface import Registry
    from releasekit.model import Artifact, Package, Published

T = TypeVar("T")
PACKAGE = distributions.package()


@dataclass(frozen=True)
class Place:
    """A registry to publish to, and the index to install from."""

    registry: str
    environment: Mapping[str, str]
    simple_url: str


@pytest.fixture(params=["devpi_index", "directory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "directory":
        directory = tmp_path / "registry"
        directory.mkdir()
        with servers.static_server(directory) as origin:
            yield Place(f"dir:{directory}", {}, f"{origin}/simple/")
    else:
        server: IndexServer = request.getfixturevalue(request.param)
        yield Place(server.upload_url, server.environment, server.index_url)


def using(
    place: Place | IndexServer, use: Callable[[Registry], Awaitable[T]], **changes: object
) -> T:
    where = place.registry if isinstance(place, Place) else place.upload_url

    async def main() -> T:
        async with registries.opened(where, place.environment, changes) as registry:
            return await use(registry)

    return asyncio.run(main())


def uploading(
    package: Package, artifacts: Sequence[Artifact]
) -> Callable[[Registry], Awaitable[None]]:
    return lambda registry: registry.upload(package, artifacts)


def looking_up(package: Package = PACKAGE) -> Callable[[Registry], Awaitable[Published | None]]:
    return lambda registry: registry.lookup(package)


def digests(artifacts: Sequence[Artifact]) -> dict[str, str]:
    return {artifact.filename: f"sha256:{artifact.sha256}" for artifact in artifacts}


def test_real_installers_install_from_it(place: Place, tmp_path: Path) -> None:
    using(place, uploading(PACKAGE, distributions.both(tmp_path / "a", PACKAGE)))
    dependent = distributions.package("acme-web")
    (tmp_path / "b").mkdir()
    wheel = distributions.wheel(tmp_path / "b", dependent, requires=["acme-core==1.0.0"])
    using(place, uploading(dependent, [wheel]))
    uv = [str(require_tool("uv")), "pip", "install", "--no-config", "--no-cache"]
    pip = [sys.executable, "-m", "pip", "--isolated", "install", "--no-cache-dir"]
    for name, argv in {"uv": uv, "pip": [*pip, "--disable-pip-version-check"]}.items():
        target = tmp_path / name
        argv += ["--index-url", place.simple_url, "--target", str(target), "acme-web"]
        subprocess.run(argv, check=True, timeout=120, cwd=tmp_path)
        assert (target / "acme_core.py").read_text() == "A = 1\n"
        assert (target / "acme_web.py").exists()


def test_bytes_on_the_wire_are_the_bytes_that_were_hashed(
    index_server: IndexServer, tmp_path: Path
) -> None:
    """R18"""
    artifacts = distributions.both(tmp_path, PACKAGE)
    using(index_server, uploading(PACKAGE, artifacts))
    sent = {upload.filename: upload.body for upload in index_server.recorder.uploads}
    assert sent.keys() == {artifact.filename for artifact in artifacts}
    assert all(artifact.path.read_bytes() in sent[artifact.filename] for artifact in artifacts)


def test_one_files_failure_does_not_cut_off_the_other(
    index_server: IndexServer, tmp_path: Path
) -> None:
    source, wheel = distributions.both(tmp_path, PACKAGE)
    index_server.recorder.lag_s = 0.3
    index_server.recorder.faults.append(Fault(kind="reset"))
    with pytest.raises(Transient) as caught:
        using(index_server, uploading(PACKAGE, [source, wheel]))
    assert caught.value.ambiguous
    published = using(index_server, looking_up())
    assert published is not None
    assert len(published.files) == 1
    assert not published.complete


def test_a_read_is_retried(index_server: IndexServer) -> None:
    """R12"""
    index_server.recorder.faults += [
        Fault(kind="status", method="GET", status=503),
        Fault(kind="reset", method="GET"),
    ]
    assert using(index_server, looking_up(), max_retries=2) is None
    assert not index_server.recorder.faults


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_uploads_in_flight_than_allowed(
    index_server: IndexServer, tmp_path: Path, concurrency: int
) -> None:
    """R2: a slot is for a package, whose two files go out at once; a single one for a request."""
    packages = [distributions.package(f"acme-{number}") for number in range(4)]
    built = [distributions.both(tmp_path / package.id.name, package) for package in packages]
    at_once = 1 if concurrency == 1 else 2 * concurrency
    index_server.recorder.faults.extend([Fault(kind="late")] * at_once)

    async def upload_all(registry: Registry) -> None:
        async with asyncio.TaskGroup() as group:
            for package, artifacts in zip(packages, built, strict=True):
                group.create_task(registry.upload(package, artifacts))
            await asyncio.to_thread(wait_until, lambda: index_server.recorder.holding == at_once)
            for _ in range(1000):  # for those that may not be sent
                await asyncio.sleep(0)
            index_server.recorder.let_go()

    using(index_server, upload_all, concurrency=concurrency)
    assert len(index_server.recorder.uploads) == 8
    assert index_server.recorder.peak_uploads == at_once


def test_the_index_of_devpi_is_found(devpi_index: IndexServer, tmp_path: Path) -> None:
    """Its place, `+simple/`, is in no derivation rule; one lookup tells, and it is remembered."""
    artifacts = distributions.both(tmp_path, PACKAGE)

    async def twice(registry: Registry) -> tuple[Published | None, Published | None]:
        before = await registry.lookup(PACKAGE)
        await registry.upload(PACKAGE, artifacts)
        return before, await registry.lookup(PACKAGE)

    before, after = using(devpi_index, twice)
    assert before is None
    assert after is not None
    reads = [seen.path for seen in devpi_index.recorder.exchanges if seen.method == "GET"]
    base = "/" + devpi_index.upload_url.split("/", 3)[3]
    assert reads == [
        f"{base}simple/acme-core/",
        f"{base}+simple/acme-core/",
        f"{base}+simple/acme-core/",
    ]


def test_the_index_of_devpi_is_found_by_many_at_once(
    devpi_index: IndexServer, tmp_path: Path
) -> None:
    """R19: nobody takes the answer of the wrong place for an absence."""
    artifacts = distributions.both(tmp_path, PACKAGE)
    using(devpi_index, uploading(PACKAGE, artifacts))

    async def together(registry: Registry) -> list[Published | None]:
        return await asyncio.gather(*(registry.lookup(PACKAGE) for _ in range(8)))

    found = using(devpi_index, together)
    assert [published.files if published else None for published in found] == [
        digests(artifacts)
    ] * 8


def test_an_explicit_index_is_asked_directly(devpi_index: IndexServer) -> None:
    inputs = PyPIInputs(username=devpi_index.username, index=devpi_index.index_url)
    assert using(devpi_index, looking_up(), ecosystem_inputs=[inputs]) is None
    assert [seen.path for seen in devpi_index.recorder.exchanges] == [
        "/" + devpi_index.index_url.split("/", 3)[3] + "acme-core/"
    ]


def test_a_private_index_is_read_with_the_credentials(tmp_path: Path) -> None:
    require_tool("pypi-server")
    with servers.pypiserver(tmp_path / "server", protected="update,list,download") as server:
        assert using(server, looking_up()) is None
        stranger = Place(server.upload_url, {}, "")
        with pytest.raises(Denied, match="HTTP 401"):
            using(stranger, looking_up())
