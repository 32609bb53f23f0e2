from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from packaging.metadata import RawMetadata

import distributions
import registries
from releasekit.ecosystems.pypi.registry import BatchedStream, PackageIndex
from releasekit.errors import Denied, PackageError, Rejected, Transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

PACKAGE = distributions.package()
PRIVATE = "https://pkgs.example/team/legacy/"
PYPI = "https://upload.pypi.org/legacy/"
LOGIN = {"RELEASEKIT_PYPI_TOKEN": "pypi-hunter2"}


class Index:
    """Answers uploads once `together` of them are there, or at once; `sent` are their files."""

    def __init__(self, *, together: int = 1) -> None:
        self.sent: list[str] = []
        self.ended: list[str] = []
        self.refusals: dict[str, list[httpx.Response]] = {}
        self._together = together
        self._all_there = asyncio.Event()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        name = "sdist" if b'name="filetype"\r\n\r\nsdist' in body else "wheel"
        self.sent.append(name)
        if len(self.sent) >= self._together:
            self._all_there.set()
        await self._all_there.wait()
        self.ended.append(name)
        refusals = self.refusals.get(name)
        return refusals.pop(0) if refusals else httpx.Response(200)


def uploading(tmp_path: Path, place: str, index: Callable[[], Index], **changes: object) -> Index:
    async def main() -> Index:
        server = index()
        transport = httpx.MockTransport(server)
        files = distributions.both(tmp_path, PACKAGE)
        async with registries.opened(place, LOGIN, changes, transport=transport) as registry:
            uploads: Awaitable[None] = registry.upload(PACKAGE, files)
            await uploads
        return server

    return asyncio.run(main())


def test_both_files_of_a_package_are_under_way_at_once(tmp_path: Path) -> None:
    """R2: a slot is for a package. The server answers neither before it has both."""
    index = uploading(tmp_path, PRIVATE, lambda: Index(together=2), concurrency=2)
    assert sorted(index.sent) == ["sdist", "wheel"]


def test_pypi_gets_the_first_file_alone(tmp_path: Path) -> None:
    """It makes project and release, and a second request would find neither."""
    index = uploading(tmp_path, PYPI, Index, concurrency=5)
    assert index.sent == index.ended == ["sdist", "wheel"]


@pytest.mark.parametrize("place", [PYPI, PRIVATE])
def test_nothing_follows_a_first_file_that_is_refused(tmp_path: Path, place: str) -> None:
    """Half a release is worse than none."""
    indexes: list[Index] = []

    def refusing() -> Index:
        indexes.append(Index())
        indexes[0].refusals["sdist"] = [httpx.Response(400, text="Invalid classifier")]
        return indexes[0]

    with pytest.raises(Rejected, match="Invalid classifier"):
        uploading(tmp_path, place, refusing, concurrency=1)
    assert indexes[0].sent == ["sdist"]


@pytest.mark.parametrize(
    "refusal",
    [
        httpx.Response(409, text="The name conflicts with an existing project"),
        httpx.Response(400, text="Validation failed: Name has already been taken"),
        httpx.Response(422, text="duplicate key"),
    ],
    ids=["conflict", "taken", "else"],
)
def test_what_is_refused_beside_a_stored_file_is_sent_again_alone(
    tmp_path: Path, refusal: httpx.Response
) -> None:
    """The release was being made by the other file just then."""

    def once() -> Index:
        index = Index(together=2)
        index.refusals["wheel"] = [refusal]
        return index

    index = uploading(tmp_path, PRIVATE, once, concurrency=2)
    assert (sorted(index.sent[:2]), index.sent[2:]) == (["sdist", "wheel"], ["wheel"])


def test_what_stays_refused_is_final(tmp_path: Path) -> None:
    indexes: list[Index] = []

    def twice() -> Index:
        indexes.append(Index(together=2))
        indexes[0].refusals["wheel"] = [httpx.Response(400, text="Invalid wheel")] * 2
        return indexes[0]

    with pytest.raises(Rejected, match="Invalid wheel"):
        uploading(tmp_path, PRIVATE, twice, concurrency=2)
    assert len(indexes[0].sent) == 3


@pytest.mark.parametrize(
    ("sdist", "wheel", "error"),
    [(400, 400, Rejected), (200, 403, Denied), (200, 503, Transient), (503, 400, Rejected)],
)
def test_nothing_else_is_sent_twice(
    tmp_path: Path, sdist: int, wheel: int, error: type[Exception]
) -> None:
    """R15: after a lost answer the registry is asked first, which is not done here."""
    indexes: list[Index] = []

    def refusing() -> Index:
        indexes.append(Index(together=2))
        indexes[0].refusals = {
            "sdist": [httpx.Response(sdist, text="no")],
            "wheel": [httpx.Response(wheel, text="no")],
        }
        return indexes[0]

    with pytest.raises(error):
        uploading(tmp_path, PRIVATE, refusing, concurrency=2)
    assert len(indexes[0].sent) == 2


def test_a_file_that_was_read_after_its_build_is_not_read_for_its_form(tmp_path: Path) -> None:
    bodies: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200)

    async def main() -> None:
        (file, _) = distributions.both(tmp_path, PACKAGE)
        transport = httpx.MockTransport(server)
        async with registries.opened(PRIVATE, LOGIN, {}, transport=transport) as registry:
            known = RawMetadata(metadata_version="2.4", name="acme", version="1", summary="Kept")
            assert isinstance(registry, PackageIndex)
            registry.keep_metadata(file, known)
            await registry.upload(PACKAGE, [file])
            await registry.upload(PACKAGE, [file])

    asyncio.run(main())
    # One by one: a second attempt reads it again.
    assert [b"Kept" in body for body in bodies] == [True, False]


class Counting(httpx.AsyncBaseTransport):
    requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        await request.aread()
        return httpx.Response(200)


def test_nothing_of_a_small_file_that_has_changed_is_sent(tmp_path: Path) -> None:
    """R18"""
    transport = Counting()

    async def main() -> None:
        (file, _) = distributions.both(tmp_path, PACKAGE)
        async with registries.opened(PRIVATE, LOGIN, {}, transport=transport) as registry:
            assert isinstance(registry, PackageIndex)
            known = RawMetadata(metadata_version="2.4", name="acme", version="1")
            registry.keep_metadata(file, known)
            file.path.write_bytes(b"!" * file.size)
            await registry.upload(PACKAGE, [file])

    with pytest.raises(PackageError, match="is not what was built"):
        asyncio.run(main())
    assert transport.requests == 0


def test_a_form_goes_out_in_few_pieces() -> None:
    client = httpx.AsyncClient()
    fields = {f"field-{number}": "text" for number in range(40)}
    files = {"content": ("acme.whl", b"x" * 150_000)}
    request = client.build_request("POST", PRIVATE, data=fields, files=files)
    plain = request.stream

    async def pieces(stream: object) -> list[bytes]:
        assert isinstance(stream, httpx.AsyncByteStream)
        return [piece async for piece in stream]

    gathered = asyncio.run(pieces(BatchedStream(plain)))
    assert b"".join(gathered) == b"".join(asyncio.run(pieces(plain)))
    assert len(gathered) == 2
    assert sum(map(len, gathered)) == int(request.headers["Content-Length"])
