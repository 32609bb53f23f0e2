"""A mirror of sparse indexes on loopback for cargo: each file is fetched once.

Cargo opens its index again for every crate, and requests each file in it again: several round trips
to the registry for each crate of a workspace, one crate after the other.
https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/ops/cargo_package/mod.rs (build_lock)
The mirror answers what the registry answers, so cargo packages the same bytes. `--offline` is no
substitute: it prefers versions that happen to be downloaded.
https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/sources/registry/index/mod.rs
(query_inner)
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import secrets
from typing import TYPE_CHECKING, Any, Final

import httpx
from msgspec import Struct, field

from releasekit.aio import GroupClosed, Resource, uncancellable
from releasekit.ecosystems.cargo import CRATES_IO_INDEX
from releasekit.ecosystems.cargo.crate_file import filename
from releasekit.ecosystems.cargo.destination import CRATES_IO_NAME, SPARSE, cargo_home
from releasekit.ecosystems.cargo.sparse_index import (
    ABSENT,
    Home,
    crate_path,
    download_url,
    index_line,
    index_path,
    parse_lines,
)
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.shared.documents import text_in
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, MAX_PAGE_BYTES
from releasekit.errors import ConfigError, PackageError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.http import client
from releasekit.http.origins import require_safe
from releasekit.text.json_text import MAX_ENTRY_BYTES, parse_json

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
    )
    from pathlib import Path
    from typing import Self

    from releasekit.ecosystems.cargo.crate_file import CrateFile
    from releasekit.ecosystems.cargo.destination import CargoConfig, Destination
    from releasekit.ecosystems.interface import Services
    from releasekit.model import Artifact

    Answer = Callable[[str], Awaitable[tuple[int, bytes]]]


_CONFIG: Final = "config.json"
_PATH: Final = re.compile(r"/(?P<number>\d{1,3})/(?P<file>[A-Za-z0-9_-]+(?:[/.][A-Za-z0-9_-]+)*)")
# Where cargo caches a registry. https://doc.rust-lang.org/cargo/guide/cargo-home.html
_KEPT: Final = ("index", "cache", "src")
_DOWNLOAD: Final = re.compile(r"/(\d{1,3})/-/([A-Za-z0-9_-]+)/([A-Za-z0-9.+-]+)/([0-9a-f]{64})")
_MARK: Final = "releasekit-mirror"
_MAX_CONFIG_BYTES: Final = 64 * 1024
# After that, cargo asks the registry itself, and can wait longer.
_PATIENCE_S: Final = 30.0
# Requests that wait for a connection slow down all others of the client.
_MOST_AT_ONCE: Final = 8
# A build may ask as well, and each file stays in memory; the largest graphs have some 2,000 crates.
_MOST_FILES: Final = 10_000
HOST: Final = "127.0.0.1"
_MAX_HEAD_BYTES: Final = 16 * 1024
# Of what cannot be answered: from 500 on, cargo would ask again.
_TROUBLE: Final = 400
_REASONS: Final = {
    200: "OK",
    302: "Found",
    304: "Not Modified",
    404: "Not Found",
    _TROUBLE: "Bad Request",
}


class Indexes(Struct, frozen=True, kw_only=True):
    """What may be mirrored in a run. `registry` is where cargo keeps what it reads; `stand_in` is
    the index of what stands in for crates.io, as it is written, empty where nothing does;
    `crates_io` is the sparse index that cargo reads for crates.io, with a slash at its end, empty
    where it reads none; `seen` are files that were read in this run, by URL, None for one that is
    not there; `broken` are indexes that could not be mirrored; `built` are the lines of what this
    run has packaged, by the path of their file, and `files` these crates, by checksum. `members`
    are the files of all members: the mirror adds what their `destination` has, which cargo may not
    read. Where cargo `downloads`, it gets crates from the mirror, too.
    """

    http: httpx.AsyncClient
    policy: client.RetryPolicy
    registry: Path
    stand_in: str
    crates_io: str
    seen: dict[str, bytes | None]
    environment: Mapping[str, str]
    destination: Destination
    members: frozenset[str]
    downloads: bool = False
    broken: set[str] = field(default_factory=set)
    built: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cargo: CargoConfig,
        services: Services,
        *,
        seen: dict[str, bytes | None],
        destination: Destination,
        members: Iterable[str],
        downloads: bool,
    ) -> Self:
        """The indexes of cargo's configuration."""
        most = min(services.retries.max_retries, 1)
        return cls(
            http=services.http,
            policy=replace(services.retries, max_retries=most, deadline_s=_PATIENCE_S),
            # It may be a link to a cache. Later a build could make it one.
            registry=(cargo_home(services.environment) / "registry").resolve(),
            stand_in=cargo.stand_in,
            crates_io=_address(cargo.stand_in) if cargo.replaced else CRATES_IO_INDEX,
            seen=seen,
            environment=services.environment,
            destination=destination,
            members=frozenset(map(index_path, members)),
            downloads=downloads,
        )

    def can_mirror(self, named: Iterable[str]) -> bool:
        """Whether crates.io, the destination and the indexes that manifests have `named` are sparse
        and ask for no token, as far as the plan knows: it has read the destination alone.
        """
        index = self.destination.index
        is_read = bool(index) and any(url.startswith(index) for url in self.seen)
        return bool(self.crates_io) and is_read and all(map(self.destination.holds, named))

    def may_have(self, name: str, version: str, *, mirrored: bool) -> bool:
        """Whether cargo finds this version of a member in a mirror or, unless this run has packaged
        it, where it goes to; True where nobody knows. Blocks.
        """
        file = index_path(name)
        if file in self.built:
            return mirrored
        if not self.destination.directory and f"{self.destination.index}{file}" not in self.seen:
            return True
        with contextlib.suppress(OSError, ValueError):  # cargo explains what is wrong
            return any(line["vers"] == version for line in self._read_published(file))
        return True

    def _read_published(self, file: str) -> Iterator[dict[str, Any]]:
        directory = self.destination.directory
        seen = self.seen.get(f"{self.destination.index}{file}")
        page = read_page(directory / file) if directory else seen
        return parse_lines(page or b"")

    def read_lines(self, file: str) -> list[dict[str, Any]]:
        """What the destination has of a member, and what this run has packaged of it. Blocks;
        raises OSError and ValueError for a broken index.
        """
        lines = {line["vers"]: line for line in self._read_published(file)}
        if built := self.built.get(file):
            lines[built["vers"]] = built
        return [*lines.values()]

    def add_packaged(self, crate: CrateFile, artifact: Artifact) -> None:
        """Shows a crate in the mirror of any index, so each of its needs names its own index."""
        line = index_line(crate, artifact.sha256, Home("", ()))
        self.built[index_path(line["name"])] = line
        self.files[artifact.sha256] = artifact.path

    def read_crate(self, name: str, version: str, checksum: str) -> bytes | None:
        """One that this run has packaged, that lies in the directory it goes to, or that cargo has
        downloaded before; None for any other. Blocks.
        """
        found = []
        if packaged := self.files.get(checksum):
            found.append(packaged)
        if self.destination.directory and index_path(name) in self.members:
            found.append(self.destination.directory / crate_path(name, version))
        with contextlib.suppress(OSError):
            cache = self.registry / "cache"
            found += [cache / it / filename(name, version) for it in durable.directories(cache)]
        for path in found:
            with contextlib.suppress(OSError):
                data = durable.read_file(path, max_bytes=MAX_FILE_BYTES)
                if hashlib.sha256(data).hexdigest() == checksum:
                    return data
        return None

    def make_mirror(self, named: Iterable[str], home: str = "") -> Mirror | None:
        """Of crates.io and of the indexes that manifests have `named`; None where one of them
        cannot be mirrored. What this run has packaged shows in the one named `home`.
        """
        origins = {"": self.crates_io, **{index: _address(index) for index in named}}
        if not all(origins.values()) or self.broken & {*origins.values()}:
            return None
        return Mirror(self, origins, home)


class Mirror(Resource):
    """`origins` are the addresses of the indexes, by their names in manifests, empty for crates.io.
    `trouble` says what could not be fetched: what cargo reports then is not to be trusted.
    """

    def __init__(self, indexes: Indexes, origins: Mapping[str, str], home: str) -> None:
        super().__init__()
        self.trouble = ""
        self._home = origins.get(home)
        self._indexes = indexes
        self._names = origins
        self._origins = tuple(dict.fromkeys(origins.values()))
        self._server = Loopback(self._answer)
        self._mark = secrets.token_hex(16)
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)
        self._fetched: dict[str, asyncio.Task[tuple[int, bytes]]] = {}

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            await self.group.enter(self._clean_up())
            await self.group.enter(self._server)
        except BaseException:
            await self.group.aclose()
            raise
        return self

    @property
    def names(self) -> Collection[str]:
        """The names of the mirrored indexes."""
        return self._names.keys()

    def address(self, index: str) -> str:
        """The address for cargo of the index that manifests name so."""
        number = self._origins.index(self._names[index])
        return f"{SPARSE}{self._server.origin}/{number}/"

    def arguments(self) -> list[str]:
        """https://doc.rust-lang.org/cargo/reference/source-replacement.html"""
        settings = {}
        for number, index in enumerate(self._names):
            source = CRATES_IO_NAME
            if index:
                source = f"releasekit-of-{number}"
                settings[f"source.{source}.registry"] = index
            mirror = f"releasekit-{self._origins.index(self._names[index])}"
            settings[f"source.{source}.replace-with"] = mirror
            settings[f"source.{mirror}.registry"] = self.address(index)
        pairs = (f"{key}={json.dumps(value)}" for key, value in settings.items())
        return [argument for pair in pairs for argument in ("--config", pair)]

    @property
    def environment(self) -> dict[str, str]:
        """Loopback needs no proxy."""
        # https://curl.se/libcurl/c/CURLOPT_NOPROXY.html: the one in lower case comes first.
        found = {}
        for name in ("no_proxy", "NO_PROXY"):
            given = self._indexes.environment.get(name)
            found[name] = f"{given},{HOST}" if given else HOST
        return found

    def fetch(self, needs: Iterable[tuple[str, str]]) -> None:
        """Starts to fetch what cargo is going to request: names, with their indexes."""
        wanted = [(index, index_path(name)) for index, name in needs]
        for index, file in sorted([*((index, _CONFIG) for index, _ in wanted), *wanted]):
            if origin := self._names.get(index):
                _ = self._start_fetch(f"{origin}{file}")

    async def _answer(self, path: str) -> tuple[int, bytes]:
        if crate := _DOWNLOAD.fullmatch(path):
            return await self._answer_download(crate)
        found = _PATH.fullmatch(path)
        if found is None or int(found["number"]) >= len(self._origins):
            return 404, b""
        origin = self._origins[int(found["number"])]
        url = f"{origin}{found['file']}"
        if url not in self._fetched and len(self._fetched) >= _MOST_FILES:
            self.trouble = (
                f"{origin}: cargo or a build script asks for more than {_MOST_FILES:,} files"
            )
            return _TROUBLE, b""
        status, body = await asyncio.shield(self._start_fetch(url))
        is_ours = origin == self._home and found["file"] in self._indexes.members
        if not is_ours or status == _TROUBLE:
            return status, body
        return await asyncio.to_thread(self._merge_lines, status, body, found["file"])

    async def _answer_download(self, found: re.Match[str]) -> tuple[int, bytes]:
        """The crate itself, or the address that the index gives for it."""
        number, name, version, checksum = found.groups()
        if int(number) >= len(self._origins):
            return 404, b""
        origin = self._origins[int(number)]
        data = await asyncio.to_thread(self._indexes.read_crate, name, version, checksum)
        if data is not None:
            return 200, data
        if origin == self._home:
            destination = self._indexes.destination
            file = index_path(name)
            if file in self._indexes.members and not destination.directory:
                try:
                    lines = await asyncio.to_thread(self._indexes.read_lines, file)
                except (OSError, ValueError) as error:
                    self.trouble = f"{destination.index}{file}: {error}"
                    return _TROUBLE, b""
                ours = any(line["cksum"] == checksum for line in lines)
                origin = destination.index if ours else origin
        _ = await asyncio.shield(self._start_fetch(f"{origin}{_CONFIG}"))
        try:
            config = parse_json(
                self._indexes.seen.get(f"{origin}{_CONFIG}") or b"{}", max_bytes=MAX_ENTRY_BYTES
            )
            address = download_url(text_in(config, "dl"), name, version, checksum)
            return 302, str(require_safe(address, name=f"{origin}{_CONFIG}: dl")).encode()
        except (ValueError, ConfigError, httpx.InvalidURL) as error:
            self.trouble = f"{origin}{_CONFIG}: {error}"
            return _TROUBLE, b""

    def _merge_lines(self, status: int, body: bytes, file: str) -> tuple[int, bytes]:
        """As cargo does with what it packages: our line replaces that of the registry.

        https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/sources/overlay.rs (query)
        """
        try:
            lines = self._indexes.read_lines(file)
            ours = {line["vers"] for line in lines}
            others = [there for there in parse_lines(body) if there["vers"] not in ours]
        except (OSError, ValueError):
            return status, body  # cargo explains what is wrong
        if not lines:
            return status, body
        return 200, b"".join(json.dumps(each).encode() + b"\n" for each in (*others, *lines))

    def _start_fetch(self, url: str) -> asyncio.Task[tuple[int, bytes]]:
        if url not in self._fetched:
            self._fetched[url] = self.group.start(self._fetch(url))
        return self._fetched[url]

    async def _fetch(self, url: str) -> tuple[int, bytes]:
        seen = self._indexes.seen
        try:
            if url not in seen:
                seen[url] = await self._read(url)
            body = seen[url]
            if body is not None and url.endswith(f"/{_CONFIG}"):
                body = self._mark_configuration(body, url.removesuffix(_CONFIG))
        except (PackageError, ValueError) as error:
            self.trouble = f"{url}: {error}"
            self._indexes.broken.update(it for it in self._origins if url.startswith(it))
            return _TROUBLE, b""
        return (404, b"") if body is None else (200, body)

    async def _read(self, url: str) -> bytes | None:
        """Raises PackageError or ValueError unless the answer shows the file or its absence."""
        async with self._turns:
            response = await client.request_with_retry(
                self._indexes.http,
                "GET",
                url,
                headers={"Accept": "text/plain, application/json"},
                policy=self._indexes.policy,
                max_bytes=MAX_PAGE_BYTES,
            )
        if response.status_code in ABSENT and not url.endswith(f"/{_CONFIG}"):
            return None
        if response.status_code != 200:
            raise ValueError(f"HTTP {response.status_code}")
        return response.content

    def _mark_configuration(self, body: bytes, origin: str) -> bytes:
        """Raises ValueError for an index that requires a token."""
        document = parse_json(body, max_bytes=MAX_ENTRY_BYTES)
        if not isinstance(document, dict) or document.get("auth-required"):
            raise ValueError("the index is not for everybody")
        if self._indexes.downloads and origin in self._origins:
            at = f"{self._server.origin}/{self._origins.index(origin)}"
            document["dl"] = f"{at}/-/{{crate}}/{{version}}/{{sha256-checksum}}"
        return json.dumps({**document, _MARK: self._mark}).encode()

    @contextlib.asynccontextmanager
    async def _clean_up(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await uncancellable(asyncio.to_thread(self._clean))

    def _clean(self) -> None:
        """Cargo keeps a copy of what it reads, in a directory named after this server."""
        registry = self._indexes.registry
        for name in durable.directories(registry / "index"):
            if not name.startswith(f"{HOST}-"):
                continue
            with contextlib.suppress(OSError):
                config = registry / "index" / name / _CONFIG
                data = durable.read_file(config, max_bytes=_MAX_CONFIG_BYTES)
                if self._mark.encode() not in data:
                    continue
                for kept in _KEPT:
                    with contextlib.suppress(OSError):
                        durable.remove_tree(registry / kept / name)


def _address(index: str) -> str:
    """The URL of a sparse index, with a slash at its end; empty for any other index."""
    address = index.removeprefix(SPARSE)
    with contextlib.suppress(ConfigError):
        if address != index:
            require_safe(address, name="index")
            return address if address.endswith("/") else f"{address}/"
    return ""


class Loopback(Resource):
    """A web server for programs that this process starts: GET, on loopback, while it is open.

    `answer` takes the path of a request, and returns a status and a body, which is an address where
    it redirects. Each body has an ETag, so that a client gets it whole only once.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(together=True)
        self.answer = answer
        self.origin = ""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            server = await asyncio.start_server(
                self._accept, HOST, 0, limit=_MAX_HEAD_BYTES, start_serving=False
            )
            self.origin = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
            await self.group.enter(server)
            await server.start_serving()
        except BaseException:
            await self.group.aclose()
            raise
        return self

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            _ = self.group.start(self._serve(reader, writer))
        except GroupClosed:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read_request(reader):
                path, etag = request
                status, body = await self.answer(path)
                writer.write(_make_response(status, body, etag))
                await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass  # the client notices it itself
        finally:
            # A server closes after its connections, and a connection with unsent data waits until
            # its client reads.
            # https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.Server.wait_closed
            writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str] | None:
    """The path, and the ETag that the client has; None where no further GET comes."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, _, rest = first.partition(" ")
    if method != "GET":
        return None
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
    }
    if "content-length" in fields or "transfer-encoding" in fields:
        return None
    return rest.partition(" ")[0], fields.get("if-none-match", "")


def _make_response(status: int, body: bytes, asked: str) -> bytes:
    """https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2"""
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    if status == 200 and asked == etag:
        status, body = 304, b""
    head = [f"HTTP/1.1 {status} {_REASONS[status]}"]
    if status == 302:
        head.append(f"Location: {body.decode()}")
        body = b""
    if status in {200, 304}:
        head.append(f"ETag: {etag}")
    if status != 304:
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*head, "", ""]).encode() + body
