"""What cargo reads of sparse indexes while it packages, on loopback: each file is fetched once.

Cargo opens its index anew for every crate, and asks for each file in it again, which takes some
round trips to a registry for each crate of a workspace, one crate after the other:
https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/ops/cargo_package/mod.rs (build_lock)
What it is told here is what the registry says, so that it packages the same bytes. `--offline`
would not do: it prefers versions that happen to be downloaded.
https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/sources/registry/index/mod.rs
(query_inner)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from releasekit.aio import Resource, uncancellable
from releasekit.ecosystems.cargo.configuration import CRATES_IO_NAME, cargo_home
from releasekit.ecosystems.cargo.loopback import HOST, Loopback
from releasekit.ecosystems.cargo.publication import Home
from releasekit.ecosystems.cargo.sparse_index import ABSENT, index_line, index_path, parse_lines
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES
from releasekit.errors import ConfigError, PackageError
from releasekit.host import durable
from releasekit.http import client
from releasekit.http.origins import require_safe
from releasekit.text.json_text import MAX_ENTRY_BYTES, parse_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo.configuration import CargoConfig
    from releasekit.ecosystems.cargo.crate_file import CrateFile
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services

_CONFIG: Final = "config.json"
_PATH: Final = re.compile(r"/(?P<number>\d{1,3})/(?P<file>[A-Za-z0-9_-]+(?:[/.][A-Za-z0-9_-]+)*)")
# Where cargo keeps what it knows of a registry. https://doc.rust-lang.org/cargo/guide/cargo-home.html
_KEPT: Final = ("index", "cache", "src")
_MARK: Final = "releasekit-mirror"
_MAX_CONFIG_BYTES: Final = 64 * 1024
_CRATES_IO: Final = "https://index.crates.io/"
# Cargo itself can wait longer, and is asked then.
_PATIENCE_S: Final = 30.0
# Those that wait for a connection make every other request of the client slower.
_MOST_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """What may be mirrored in a run. `crates_io` is the sparse index that cargo reads in the place
    of crates.io, with a slash at its end, empty where it reads none; `seen` are files that were
    read in this run, by URL, None for one that is not there; `broken` are indexes that could not
    be mirrored; `built` are the lines of what this run has packaged, by the path of their file.
    `members` are the files of all members, of which cargo is shown what their `destination` has,
    too: it may know another index, or none.
    """

    http: httpx.AsyncClient
    policy: client.RetryPolicy
    home: Path
    crates_io: str
    seen: dict[str, bytes | None]
    environment: Mapping[str, str]
    destination: Destination
    members: frozenset[str]
    broken: set[str] = field(default_factory=set)
    built: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cargo: CargoConfig,
        config: Config,
        services: Services,
        *,
        seen: dict[str, bytes | None],
        destination: Destination,
        members: Iterable[str],
    ) -> Self:
        """Those that cargo's configuration knows."""
        policy = client.RetryPolicy(
            min(config.max_retries, 1),
            config.retry_base_delay_s,
            deadline_s=_PATIENCE_S,
            patience=services.patience,
            redact=services.credentials.redact,
        )
        return cls(
            http=services.http,
            policy=policy,
            home=cargo_home(services.environment).resolve(),
            crates_io=_address(cargo.stand_in) if cargo.replaced else _CRATES_IO,
            seen=seen,
            environment=services.environment,
            destination=destination,
            members=frozenset(map(index_path, members)),
        )

    def lines_of(self, file: str) -> list[dict[str, Any]]:
        """What its own registry has of a member, and what this run has packaged of it. Blocks;
        raises OSError and ValueError for an index that is none.
        """
        page: bytes | None = None
        if file in self.members:
            directory = self.destination.directory
            page = read_page(directory / file) if directory else self._seen_at(file)
        lines = {line["vers"]: line for line in parse_lines(page or b"")}
        if built := self.built.get(file):
            lines[built["vers"]] = built
        return [*lines.values()]

    def _seen_at(self, file: str) -> bytes | None:
        return self.seen.get(f"{self.destination.index}{file}")

    def packaged(self, crate: CrateFile, checksum: str) -> None:
        """Show it in mirrors, in whichever index; so each of its needs has to say where it is."""
        line = index_line(crate, checksum, Home("", ()))
        self.built[index_path(line["name"])] = line

    def mirror(self, named: Iterable[str], home: str = "") -> Mirror | None:
        """Of crates.io and of the indexes that manifests have `named`, where all can be. What this
        run has packaged is shown as if it were in the one named `home` already.
        """
        origins = {"": self.crates_io, **{index: _address(index) for index in named}}
        if not all(origins.values()) or self.broken & {*origins.values()}:
            return None
        return Mirror(self, origins, home)


class Mirror(Resource):
    """Open while cargo runs. `origins` are the addresses of the indexes, by how manifests name
    them, empty for crates.io. `trouble` says what could not be fetched: what cargo makes of that is
    not to be believed.
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
            await self.group.enter(self._cleaned())
            await self.group.enter(self._server)
        except BaseException:
            await self.group.aclose()
            raise
        return self

    @property
    def names(self) -> Collection[str]:
        """Of what is mirrored."""
        return self._names.keys()

    def address(self, index: str) -> str:
        """Of an index that manifests name so, as cargo wants it."""
        number = self._origins.index(self._names[index])
        return f"sparse+{self._server.origin}/{number}/"

    def arguments(self) -> list[str]:
        """https://doc.rust-lang.org/cargo/reference/source-replacement.html"""
        settings = {}
        for number, (index, _) in enumerate(self._names.items()):
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
        """Loopback is reached through no proxy, and what fails here fails at once."""
        # https://curl.se/libcurl/c/CURLOPT_NOPROXY.html: the one in lower case comes first.
        here = self._indexes.environment
        return {
            "CARGO_NET_RETRY": "0",
            **{
                name: ",".join(filter(None, (here.get(name, ""), HOST)))
                for name in ("no_proxy", "NO_PROXY")
            },
        }

    def fetch(self, needs: Iterable[tuple[str, str]]) -> None:
        """Begin to fetch what cargo is going to ask for: names, with their indexes."""
        wanted = [(index, index_path(name)) for index, name in needs]
        for index, file in sorted([*((index, _CONFIG) for index, _ in wanted), *wanted]):
            if origin := self._names.get(index):
                _ = self._file(f"{origin}{file}")

    async def _answer(self, path: str) -> tuple[int, bytes]:
        found = _PATH.fullmatch(path)
        if found is None or int(found["number"]) >= len(self._origins):
            return 404, b""
        origin = self._origins[int(found["number"])]
        status, body = await asyncio.shield(self._file(f"{origin}{found['file']}"))
        if origin != self._home or status == 502:
            return status, body
        return await asyncio.to_thread(self._with_lines, status, body, found["file"])

    def _with_lines(self, status: int, body: bytes, file: str) -> tuple[int, bytes]:
        """As cargo does it with what it packages: ahead of what the registry has of that version.

        https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/sources/overlay.rs (query)
        """
        try:
            lines = self._indexes.lines_of(file)
            ours = {line["vers"] for line in lines}
            others = [there for there in parse_lines(body) if there["vers"] not in ours]
        except (OSError, ValueError):
            return status, body  # of which cargo says more
        if not lines:
            return status, body
        return 200, b"".join(json.dumps(each).encode() + b"\n" for each in (*others, *lines))

    def _file(self, url: str) -> asyncio.Task[tuple[int, bytes]]:
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
                body = self._configuration(body)
        except (PackageError, ValueError) as error:
            self.trouble = f"{url}: {error}"
            self._indexes.broken.update(it for it in self._origins if url.startswith(it))
            return 502, b""
        return (404, b"") if body is None else (200, body)

    async def _read(self, url: str) -> bytes | None:
        """Raises PackageError or ValueError for what says neither that it is there nor that not."""
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

    def _configuration(self, body: bytes) -> bytes:
        """Raises ValueError for one that is only for those with a token."""
        document = parse_json(body, max_bytes=MAX_ENTRY_BYTES)
        if not isinstance(document, dict) or document.get("auth-required"):
            raise ValueError("the index is not for everybody")
        marked: dict[str, Any] = {**document, _MARK: self._mark}
        return json.dumps(marked).encode()

    @contextlib.asynccontextmanager
    async def _cleaned(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await uncancellable(asyncio.to_thread(self._clean))

    def _clean(self) -> None:
        """Cargo keeps a copy of what it reads, in a directory named after this server."""
        for name in self._kept():
            for kept in _KEPT:
                with contextlib.suppress(OSError):
                    durable.remove_tree(self._indexes.home / "registry" / kept / name)

    def _kept(self) -> Iterator[str]:
        index = self._indexes.home / "registry" / "index"
        for name in durable.directories(index):
            if name.startswith(f"{HOST}-"):
                with contextlib.suppress(OSError):
                    config = durable.read_file(index / name / _CONFIG, max_bytes=_MAX_CONFIG_BYTES)
                    if self._mark.encode() in config:
                        yield name


def _address(index: str) -> str:
    """Of a sparse index, with a slash at its end; empty for any other."""
    address = index.removeprefix("sparse+")
    with contextlib.suppress(ConfigError):
        if address != index:
            require_safe(address, name="index")
            return address if address.endswith("/") else f"{address}/"
    return ""
