"""Sparse indexes on loopback: what is asked of the registry, what cargo is told, what is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import httpx
import pytest

import fakes
from releasekit.ecosystems.cargo import CargoOptions, build
from releasekit.ecosystems.cargo import mirror as mirror_module
from releasekit.ecosystems.cargo.build import Packager, split_into_chunks
from releasekit.ecosystems.cargo.crate_file import CrateFile
from releasekit.ecosystems.cargo.destination import CargoConfig, Destination
from releasekit.ecosystems.cargo.discover import Crate, Need
from releasekit.ecosystems.cargo.mirror import Indexes, Loopback, Mirror
from releasekit.ecosystems.cargo.sparse_index import download_url
from releasekit.ecosystems.cargo.target import Cargo
from releasekit.errors import BuildFailed
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.http.client import RetryPolicy, http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Artifact, Dependency, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
CRATES_IO = "https://index.crates.example/"
CORP = "sparse+https://corp.example/index"
OPEN = {"dl": "https://files.example", "api": "https://crates.example"}


def serving(request: httpx.Request) -> httpx.Response:
    """An index that has one crate, `demo`."""
    if request.url.path.endswith("/config.json"):
        return httpx.Response(200, json=OPEN)
    return httpx.Response(200, content=b"{}\n") if "demo" in str(request.url) else absent()


def absent() -> httpx.Response:
    return httpx.Response(404)


def using(
    home: Path,
    use: Callable[[Indexes], Awaitable[T]],
    answer: Callable[[httpx.Request], httpx.Response] = serving,
    **changes: object,
) -> T:
    async def main() -> T:
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            indexes = Indexes(
                http=http,
                policy=RetryPolicy(0, 0.0),
                registry=home / "registry",
                stand_in="",
                crates_io=CRATES_IO,
                seen={},
                environment={"no_proxy": "corp.example"},
                destination=Destination(),
                members=frozenset(),
            )
            return await use(replace(indexes, **changes))  # type: ignore[arg-type]

    return asyncio.run(main())


def opened(indexes: Indexes, *named: str) -> Mirror:
    mirror = indexes.make_mirror(named)
    assert mirror is not None
    return mirror


async def told(mirror: Mirror, file: str, index: str = "", **headers: str) -> httpx.Response:
    url = mirror.address(index).removeprefix("sparse+")
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"{url}{file}", headers=headers)


def test_each_file_is_asked_for_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return serving(request)

    async def use(indexes: Indexes) -> list[int]:
        async with opened(indexes) as mirror:
            mirror.fetch([("", "demo"), ("", "gone"), ("elsewhere", "demo")])
            files = ["config.json", "de/mo/demo", "de/mo/demo", "go/ne/gone", "go/ne/gone"]
            found = [await told(mirror, file) for file in files]
            assert found[0].json().items() >= OPEN.items()
            etag = found[1].headers["ETag"]
            again = await told(mirror, "de/mo/demo", **{"If-None-Match": etag})
            assert not mirror.trouble
            return [each.status_code for each in (*found, again)]

    assert using(tmp_path, use, answer) == [200, 200, 200, 404, 404, 304]
    files = ("config.json", "de/mo/demo", "go/ne/gone")
    assert sorted(asked) == [f"{CRATES_IO}{file}" for file in files]


def test_what_was_read_before_is_not_asked_for_again(tmp_path: Path) -> None:
    seen = {f"{CRATES_IO}de/mo/demo": b"seen\n", f"{CRATES_IO}go/ne/gone": None}

    async def use(indexes: Indexes) -> list[tuple[int, bytes]]:
        async with opened(indexes) as mirror:
            found = [await told(mirror, file) for file in ("de/mo/demo", "go/ne/gone")]
            return [(each.status_code, each.content) for each in found]

    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(request.url)

    assert using(tmp_path, use, answer, seen=seen) == [(200, b"seen\n"), (404, b"")]


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("de/mo/demo", httpx.Response(500)),
        ("de/mo/demo", httpx.Response(401)),
        ("config.json", httpx.Response(404)),
        ("config.json", httpx.Response(200, content=b"[")),
        ("config.json", httpx.Response(200, json=[])),
        ("config.json", httpx.Response(200, json={**OPEN, "auth-required": True})),
    ],
)
def test_what_cannot_be_had_is_trouble_and_not_asked_for_again(
    tmp_path: Path, path: str, answer: httpx.Response
) -> None:
    """R15: nobody takes it for an answer of the registry."""

    async def use(indexes: Indexes) -> int:
        async with opened(indexes) as mirror:
            found = await told(mirror, path)
            assert f"{CRATES_IO}{path}" in mirror.trouble
        assert indexes.make_mirror([]) is None
        return found.status_code

    assert using(tmp_path, use, lambda _: answer) == 400


def test_a_build_does_not_ask_for_the_whole_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R51: each file stays in memory, and is asked of the registry."""
    asked: list[str] = []
    monkeypatch.setattr(mirror_module, "_MOST_FILES", 3)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return serving(request)

    async def use(indexes: Indexes) -> list[int]:
        async with opened(indexes) as mirror:
            files = ["de/mo/demo", *(f"go/ne/gone{n}" for n in range(9)), "de/mo/demo"]
            found = [await told(mirror, file) for file in files]
            assert "asks for more than 3 files" in mirror.trouble
            return [each.status_code for each in found]

    assert using(tmp_path, use, answer) == [200, 404, 404, *[400] * 7, 200]
    assert len(asked) == 3


def test_only_files_of_the_indexes_are_served(tmp_path: Path) -> None:
    """R36"""

    async def use(indexes: Indexes) -> list[int]:
        async with opened(indexes) as mirror:
            origin = mirror.address("").removeprefix("sparse+").removesuffix("0/")
            async with httpx.AsyncClient(trust_env=False) as client:
                paths = ("", "1/config.json", "0/", "0/a//b", "0/%2e%2e/x", "0/x?y=z", "x/demo")
                return [(await client.get(f"{origin}{path}")).status_code for path in paths]

    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(request.url)

    assert using(tmp_path, use, answer) == [404] * 7


def test_cargo_is_told_where_everything_is(tmp_path: Path) -> None:
    async def use(indexes: Indexes) -> None:
        async with opened(indexes, CORP, f"sparse+{CRATES_IO}") as mirror:
            assert {"", CORP} <= {*mirror.names}
            pairs = dict(
                argument.split("=", 1)
                for option, argument in zip(*[iter(mirror.arguments())] * 2, strict=True)
                if option == "--config"
            )
            of_corp = {key for key, value in pairs.items() if json.loads(value) == CORP}
            assert of_corp == {"source.releasekit-of-1.registry"}
            assert json.loads(pairs["source.crates-io.replace-with"]) == "releasekit-0"
            assert json.loads(pairs["source.releasekit-0.registry"]) == mirror.address("")
            assert json.loads(pairs["source.releasekit-of-1.replace-with"]) == "releasekit-1"
            assert json.loads(pairs["source.releasekit-1.registry"]) == mirror.address(CORP)
            # Two names of one index lead to one mirror of it.
            assert mirror.address(f"sparse+{CRATES_IO}") == mirror.address("")
            assert mirror.environment["no_proxy"] == "corp.example,127.0.0.1"
            assert mirror.environment["NO_PROXY"] == "127.0.0.1"
            assert (await told(mirror, "de/mo/demo", CORP)).status_code == 200

    using(tmp_path, use)


@pytest.mark.parametrize(
    "named", ["https://github.com/corp/index", "registry+https://x.example", "sparse+http://x.org"]
)
def test_an_index_of_another_kind_is_left_to_cargo(tmp_path: Path, named: str) -> None:
    """R37"""

    async def use(indexes: Indexes) -> Mirror | None:
        assert replace(indexes, crates_io="").make_mirror([]) is None
        return indexes.make_mirror([named])

    assert using(tmp_path, use) is None


@pytest.mark.parametrize(
    ("cargo", "crates_io"),
    [
        (CargoConfig(registries={}), "https://index.crates.io/"),
        (CargoConfig(registries={}, replaced=True, stand_in=CORP), "https://corp.example/index/"),
        (CargoConfig(registries={}, replaced=True), ""),  # by a directory of vendored sources
    ],
)
def test_crates_io_is_where_cargo_looks_for_it(
    tmp_path: Path, cargo: CargoConfig, crates_io: str
) -> None:
    config = fakes.config(tmp_path)
    taken = snapshot({"CARGO_HOME": str(tmp_path)})
    credentials = Credentials(taken, mask=lambda _: None)
    services = replace(
        fakes.services(config, None), environment=taken.environment, credentials=credentials
    )
    found = Indexes.of(
        cargo, services, seen={}, destination=Destination(), members=["core"], downloads=False
    )
    assert (found.crates_io, found.registry) == (crates_io, tmp_path / "registry")
    assert found.members == {"co/re/core"}


def test_nothing_is_left_of_what_cargo_has_kept(tmp_path: Path) -> None:
    """R25, R52: and nothing else is touched."""
    registry = tmp_path / "registry"

    async def use(indexes: Indexes) -> None:
        async with opened(indexes) as mirror:
            config = (await told(mirror, "config.json")).content
            for kind in ("index", "cache", "src"):
                for name in ("127.0.0.1-ours", "127.0.0.1-other", "index.crates.io-1"):
                    (registry / kind / name).mkdir(parents=True)
            (registry / "index" / "127.0.0.1-ours" / "config.json").write_bytes(config)
            (registry / "index" / "127.0.0.1-other" / "config.json").write_text("{}")
            (registry / "index" / "127.0.0.1-link").symlink_to(tmp_path)

    using(tmp_path, use)
    left = {f"{path.parent.name}/{path.name}" for path in registry.glob("*/*")}
    kept = ("127.0.0.1-other", "index.crates.io-1")
    assert left == {
        "index/127.0.0.1-link",
        *(f"{kind}/{name}" for kind in ("index", "cache", "src") for name in kept),
    }


@pytest.mark.parametrize(
    "said",
    [
        b"POST /a HTTP/1.1\r\n\r\n",
        b"GET /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"GET /a HTTP/1.1\r\n" + b"x" * 70_000,
        b"GET /a",
        b"",
    ],
)
def test_whoever_says_anything_else_is_hung_up_on(said: bytes) -> None:
    """R40"""

    async def answer(path: str) -> tuple[int, bytes]:
        raise AssertionError(path)

    async def main() -> bytes:
        async with Loopback(answer) as server:
            host, _, port = server.origin.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            writer.write_eof()
            try:
                return await reader.read()
            except ConnectionResetError:  # it hung up before it had read everything
                return b""
            finally:
                writer.close()

    assert asyncio.run(main()) == b""


def test_where_no_server_can_be_started_nothing_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R46"""

    async def refuse(*_: object, **__: object) -> None:
        raise OSError("no sockets here")

    async def use(indexes: Indexes) -> None:
        mirror = opened(indexes)
        monkeypatch.setattr(asyncio, "start_server", refuse)
        with pytest.raises(OSError, match="no sockets here"):
            await mirror.__aenter__()
        assert mirror.group.is_closed

    using(tmp_path, use)


def test_a_client_that_stays_keeps_nobody_waiting() -> None:
    """R46"""

    async def answer(path: str) -> tuple[int, bytes]:
        return 200, path.encode()

    async def main() -> None:
        async with Loopback(answer) as server:
            host, _, port = server.origin.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /x HTTP/1.1\r\n\r\n")
            assert (await reader.readuntil(b"/x")).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection(host, int(port))

    asyncio.run(main())


def test_a_client_that_does_not_listen_keeps_nobody_waiting() -> None:
    """R51: what it was not told yet is let go."""
    body = b"x" * 50_000_000
    told = asyncio.Event()

    async def answer(_path: str) -> tuple[int, bytes]:
        told.set()
        return 200, body

    async def main() -> None:
        async with Loopback(answer) as server:
            host, _, port = server.origin.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /x HTTP/1.1\r\n\r\n")
            await told.wait()
        assert len(await reader.read()) < len(body)
        writer.close()

    asyncio.run(main())


LOCK = """
version = 4

[[package]]
name = "ours"
version = "1.0.0"
dependencies = ["far", "near 1.0.0", "odd 2.0.0 (registry+https://other.example/index)"]

[[package]]
name = "private"
version = "1.0.0"
dependencies = ["ours", "unneeded"]

[[package]]
name = "near"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
dependencies = ["deep"]

[[package]]
name = "deep"
version = "0.1.0"
source = "sparse+https://corp.example/index"

[[package]]
name = "odd"
version = "2.0.0"
source = "registry+https://other.example/index"

[[package]]
name = "unneeded"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""


def test_a_lock_file_says_what_is_needed() -> None:
    found = build.read_lock_needs(LOCK.encode(), ["near", "odd", "new", "private"])
    assert found == {("", "near"), (CORP, "deep")}


@pytest.mark.parametrize(
    "lock", [b"", b"package = 1", b"[[package]]\nname = 1", b"package = [1]", b"[", b"\xff"]
)
def test_another_file_says_nothing(lock: bytes) -> None:
    """R40"""
    assert build.read_lock_needs(lock, ["ours"]) == set()


def make_cargo(tmp_path: Path) -> Cargo:
    services = fakes.services(fakes.config(tmp_path), None)
    return Cargo("auto", CargoOptions(), services, Destination(), {})


def packaged(
    tmp_path: Path, script: str, *needs: Need, verify: bool = False
) -> tuple[BuildFailed, Sequence[str]]:
    """What becomes of a crate with a cargo that runs `script`, and how it was called each time."""
    program = tmp_path / "bin" / "cargo"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{script}\n')
    program.chmod(0o755)
    manifest = tmp_path / "a" / "Cargo.toml"
    manifest.parent.mkdir()
    crate = Crate(
        name="a",
        version="1.0.0",
        manifest=manifest,
        workspace=tmp_path,
        publish=None,
        needs=needs,
    )
    (tmp_path / "Cargo.lock").write_text(LOCK)

    async def use(indexes: Indexes) -> Mapping[str, object]:
        environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
        async with (
            Processes(environment=environment) as processes,
            make_cargo(tmp_path) as ecosystem,
        ):
            packager = Packager(
                processes=processes,
                crates={"a": crate},
                edges={"a": []},
                scratch=tmp_path / "scratch",
                logs=fakes.logs(tmp_path),
                environment={},
                indexes=indexes,
                open_mirror=partial(ecosystem.open_mirror, indexes),
                verify=verify,
            )
            return await packager.package({"a": tmp_path / "built"})

    error = using(tmp_path, use)["a"]
    assert isinstance(error, BuildFailed)
    return error, (tmp_path / "calls").read_text().splitlines()


def test_what_fails_with_a_mirror_is_tried_without(tmp_path: Path) -> None:
    """R16: a crate is refused for what cargo says of it and of the registry, not of us."""
    script = (
        'case "$*" in *--config*) echo "error: of the mirror" >&2; exit 101;; esac\n'
        'echo "error: of cargo" >&2; exit 101'
    )
    error, calls = packaged(tmp_path, script)
    assert str(error) == "cargo:a could not be packaged: of cargo"
    assert ["--config" in call for call in calls] == [True, False]


@pytest.mark.parametrize(
    ("words", "reason", "calls"),
    [
        (
            "failed to verify package tarball",
            "it does not compile: error: failed to verify package tarball",
            [True],
        ),
        ("failed to download it", "failed to download it", [True, False]),
    ],
)
def test_with_a_mirror_only_what_does_not_compile_is_believed(
    tmp_path: Path, words: str, reason: str, calls: list[bool]
) -> None:
    """R16, R65: cargo may be offline, or its directory full."""
    error, made = packaged(tmp_path, f'echo "error: {words}" >&2; exit 101', verify=True)
    assert str(error) == f"cargo:a could not be packaged: {reason}"
    assert ["--config" in call for call in made] == calls


def test_a_mirror_has_one_address_to_the_end_of_the_run(tmp_path: Path) -> None:
    """Cargo compiles again whatever comes from another one."""

    async def use(indexes: Indexes) -> None:
        async with make_cargo(tmp_path) as cargo:
            opening = [cargo.open_mirror(indexes, [CORP], CORP) for _ in range(2)]
            first, second = await asyncio.gather(*opening)
            assert first is second
            assert first is not None
            assert (await told(first, "de/mo/demo", CORP)).status_code == 200

    using(tmp_path, use)


@pytest.mark.parametrize(
    ("known", "version", "mirrored", "may_have"),
    [
        ("built", "1.1.0", True, True),
        ("built", "1.1.0", False, False),
        ("published", "1.0.0", False, True),
        ("published", "1.1.0", True, False),
        ("published", "1.1.0", False, False),
        ("absent", "1.1.0", True, False),
        ("unknown", "1.1.0", True, True),
        ("unknown", "1.1.0", False, True),
        ("broken", "1.1.0", False, True),
    ],
)
def test_what_cargo_does_not_find_or_only_an_earlier_version_is_known(
    tmp_path: Path, known: str, version: str, *, mirrored: bool, may_have: bool
) -> None:
    """R18: with an earlier one, it would make other bytes."""
    line = json.dumps({"name": "demo", "vers": "1.0.0", "cksum": "ab" * 32}).encode()
    pages = {"built": None, "published": line, "absent": None, "broken": b"["}
    url = "https://corp.example/index/de/mo/demo"

    async def use(indexes: Indexes) -> bool:
        if known == "built":
            indexes.built["de/mo/demo"] = {"vers": "1.1.0"}
        return indexes.may_have("demo", version, mirrored=mirrored)

    seen = {url: pages[known]} if known in pages else {}
    destination = Destination(index="https://corp.example/index/")
    assert using(tmp_path, use, seen=seen, destination=destination) == may_have


def test_a_linked_registry_is_where_its_link_leads(tmp_path: Path) -> None:
    """R52: a link of the user's own to a cache."""
    (tmp_path / "cache of CI" / "cache" / "index.crates.io-1").mkdir(parents=True)
    (tmp_path / "registry").symlink_to(tmp_path / "cache of CI")
    crate = tmp_path / "cache of CI" / "cache" / "index.crates.io-1" / "demo-1.0.0.crate"
    crate.write_bytes(b"downloaded")
    taken = snapshot({"CARGO_HOME": str(tmp_path)})
    services = replace(fakes.services(fakes.config(tmp_path), None), environment=taken.environment)
    found = Indexes.of(
        *(CargoConfig(registries={}), services),
        seen={},
        destination=Destination(),
        members=(),
        downloads=True,
    )
    assert found.registry == tmp_path / "cache of CI"
    checksum = hashlib.sha256(b"downloaded").hexdigest()
    assert found.read_crate("demo", "1.0.0", checksum) == b"downloaded"
    assert found.read_crate("demo", "1.0.0", "ab" * 32) is None
    assert replace(found, registry=tmp_path / "registry").read_crate("demo", "1.0.0", "") is None


def test_what_a_mirror_cannot_hold_is_packaged_without_one(tmp_path: Path) -> None:
    need = Need(
        name="b", path=None, requirement="^1", kind="normal", registry="https://git.example/index"
    )
    _, calls = packaged(tmp_path, "exit 101", need)
    assert ["--config" in call for call in calls] == [False]


def test_a_mirrored_call_is_enough_where_it_succeeds(tmp_path: Path) -> None:
    error, calls = packaged(tmp_path, "exit 0")
    assert "No such file" in str(error)  # this cargo has left no crate behind
    assert ["--config" in call for call in calls] == [True]


def test_what_was_packaged_is_shown_beside_what_there_is(tmp_path: Path) -> None:
    """In the index of the release and in no other; of what it has by that version, ours counts."""
    ours = CrateFile(
        manifest={
            "package": {"name": "demo", "version": "1.0.0"},
            "dependencies": {"far": "1", "near": {"version": "2", "registry-index": CORP}},
        },
        readme=None,
    )
    there = [
        {"name": "demo", "vers": version, "cksum": "cd" * 32} for version in ("1.0.0", "2.0.0")
    ]
    seen: dict[str, bytes | None] = {}

    async def use(indexes: Indexes) -> None:
        made = Artifact(path=tmp_path / "a.crate", size=1, digests={"sha256": "ab" * 32})
        indexes.add_packaged(ours, made)
        mirror = indexes.make_mirror([CORP], home=CORP)
        assert mirror is not None
        async with mirror:
            line = (await told(mirror, "de/mo/demo", CORP)).json()
            assert (line["vers"], line["cksum"]) == ("1.0.0", "ab" * 32)
            assert {need["name"]: need["registry"] for need in line["deps"]} == {
                "far": "https://github.com/rust-lang/crates.io-index",
                "near": CORP,
            }
            assert (await told(mirror, "de/mo/demo")).status_code == 404
        page = f"{CORP.removeprefix('sparse+')}/de/mo/demo"
        for body in (b"".join(json.dumps(each).encode() + b"\n" for each in there), b"{"):
            seen[page] = body
            mirror = indexes.make_mirror([CORP], home=CORP)
            assert mirror is not None
            async with mirror:
                text = (await told(mirror, "de/mo/demo", CORP)).text
            if body == b"{":
                assert text == "{"
            else:
                lines = [json.loads(each) for each in text.splitlines()]
                assert lines == [there[1], {**line, "cksum": "ab" * 32}]

    def answer(request: httpx.Request) -> httpx.Response:
        is_config = request.url.path.endswith("/config.json")
        return httpx.Response(200, json=OPEN) if is_config else absent()

    using(tmp_path, use, answer, seen=seen, members=frozenset({"de/mo/demo"}))


def test_what_needs_a_crate_that_could_not_be_packaged_is_not_tried(tmp_path: Path) -> None:
    """R6: whichever call of cargo it was that said so."""
    crates = {
        name: Crate(
            name=name,
            version="1.0.0",
            manifest=tmp_path / name / "Cargo.toml",
            workspace=tmp_path,
            publish=None,
            needs=(),
        )
        for name in "abc"
    }
    (tmp_path / "cargo").write_text("")
    (tmp_path / "cargo").chmod(0o755)

    async def use(indexes: Indexes) -> Mapping[str, object]:
        async with (
            Processes(environment={"PATH": str(tmp_path)}) as processes,
            make_cargo(tmp_path) as ecosystem,
        ):
            packager = Packager(
                processes=processes,
                crates=crates,
                edges={"a": ["b"], "b": ["c"], "c": []},
                scratch=tmp_path / "scratch",
                logs=fakes.logs(tmp_path),
                environment={},
                indexes=indexes,
                open_mirror=partial(ecosystem.open_mirror, indexes),
                lost={"c": BuildFailed("cargo:c: no", hint="Read the log.")},
            )
            return await packager.package({"a": tmp_path / "built"})

    error = using(tmp_path, use)["a"]
    assert isinstance(error, BuildFailed)
    assert str(error) == ("cargo:a could not be packaged: c, which it needs, could not be packaged")
    assert error.hint == "Read the log."


def needing(name: str, *needs: str) -> Package:
    dependencies = tuple(Dependency(on=PackageId("cargo", need)) for need in needs)
    made = fakes.package(name)
    return replace(made, id=PackageId("cargo", name), dependencies=dependencies)


def test_the_crates_of_a_call_need_none_of_the_others() -> None:
    """As far as few calls allow it."""
    levels = [[f"{level}{letter}" for letter in "abc"] for level in range(4)]
    needs = [[], *levels]
    diamond = [
        needing(name, *below) for level, below in zip(levels, needs, strict=False) for name in level
    ]
    assert chunks_of(diamond) == levels
    chain = [needing("c0"), *(needing(f"c{n}", f"c{n - 1}") for n in range(1, 20))]
    lone = needing("lone", "elsewhere")
    assert chunks_of([*chain, lone]) == [
        ["c0", "lone"],
        *([f"c{n}", f"c{n + 1}"] for n in range(1, 19, 2)),
        ["c19"],
    ]
    wide = [needing(f"w{n}") for n in range(60)]
    above = [needing(f"x{n}", "w59") for n in range(30)]
    assert [len(chunk) for chunk in chunks_of([*wide, *above])] == [16, 32, 12, 30]
    assert chunks_of([needing("one")]) == [["one"]]
    assert chunks_of([]) == []
    # What is on a circle waits for the registry, one crate after the other.
    assert chunks_of([needing("a", "b"), needing("b", "a")]) == [["a"], ["b"]]


def chunks_of(packages: Sequence[Package]) -> list[list[str]]:
    return [[package.id.name for package in chunk] for chunk in split_into_chunks(packages)]


def test_a_cargo_that_compiles_gets_what_this_run_made_and_is_sent_on_for_the_rest(
    tmp_path: Path,
) -> None:
    """R65: no byte of other crates comes through the mirror."""
    crate = tmp_path / "demo-1.0.0.crate"
    crate.write_bytes(b"made")
    checksum = hashlib.sha256(b"made").hexdigest()
    artifact = Artifact(path=crate, size=4, digests={"sha256": checksum})
    made = CrateFile(manifest={"package": {"name": "demo", "version": "1.0.0"}}, readme=None)

    async def use(indexes: Indexes) -> None:
        indexes.add_packaged(made, artifact)
        mirror = indexes.make_mirror([])
        assert mirror is not None
        async with mirror, http_client() as http:
            address = mirror.address("").removeprefix("sparse+")
            template = (await told(mirror, "config.json")).json()["dl"]
            assert template.startswith(address)

            async def fetch(name: str, version: str, sum_: str) -> httpx.Response:
                return await http.get(download_url(template, name, version, sum_))

            assert (await fetch("demo", "1.0.0", checksum)).content == b"made"
            other = await fetch("demo", "1.0.0+a", "ab" * 32)
            assert other.status_code == 302
            assert other.headers["Location"] == "https://files.example/demo/1.0.0+a/download"
            crate.write_bytes(b"changed by a build")
            assert (await fetch("demo", "1.0.0", checksum)).status_code == 302
            elsewhere = await http.get(f"{address[:-2]}9/-/demo/1.0.0/{checksum}")
            assert elsewhere.status_code == 404

    using(tmp_path, use, downloads=True)


def test_a_broken_line_of_a_destination_is_trouble(tmp_path: Path) -> None:
    """R15, R51: what it answered for a member, no build can make the end of the run."""
    index = "https://corp.example/index/"
    seen = {f"{index}de/mo/demo": b"[\n"}
    members = frozenset({"de/mo/demo"})

    async def use(indexes: Indexes) -> None:
        mirror = indexes.make_mirror([])
        assert mirror is not None
        async with mirror, http_client() as http:
            address = mirror.address("").removeprefix("sparse+")
            answer = await http.get(f"{address}-/demo/1.0.0/{'ab' * 32}")
            assert answer.status_code == 400
            assert mirror.trouble.startswith(f"{index}de/mo/demo: ")

    using(
        *(tmp_path, use),
        seen=seen,
        destination=Destination(index=index),
        members=members,
        downloads=True,
    )


@pytest.mark.parametrize(
    ("template", "address"),
    [
        ("https://h", "https://h/Acme/1.0.0/download"),
        ("https://h/{prefix}/{lowerprefix}/{crate}-{version}", "https://h/Ac/me/ac/me/Acme-1.0.0"),
        ("https://h/{sha256-checksum}", "https://h/ab"),
    ],
)
def test_a_template_says_where_a_crate_is(template: str, address: str) -> None:
    assert download_url(template, "Acme", "1.0.0", "ab") == address
