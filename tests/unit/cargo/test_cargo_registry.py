"""Endpoints, answers, turns and short-lived tokens, without a network."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
import pytest

import fakes
from releasekit.aio import Group
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.errors import Denied, MissingCredentials, PackageError, Rejected, Transient
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Action, Artifact, Dependency, Package, PackageId, PlannedPackage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.interface import Target
    from releasekit.ecosystems.preflight import RightsFound

T = TypeVar("T")

TOKEN = {"RELEASEKIT_CARGO_TOKEN": "cio-of-a-test"}
IDENTITY = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://actions.example/idtoken",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
INDEX = "https://crates.example/index/"
MANIFEST = '[package]\nname = "demo"\nversion = "1.0.0"\ndescription = "d"\nlicense = "MIT"\n'


def package(name: str = "demo") -> Package:
    made = fakes.package(name)
    return Package(
        id=PackageId("cargo", name),
        version="1.0.0",
        directory=made.directory,
        manifest=made.manifest,
        dependencies=(Dependency(on=PackageId("cargo", "core")),),
    )


def crate(files: Mapping[str, str], root: str = "demo-1.0.0") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    path = tmp_path / "demo-1.0.0.crate"
    path.write_bytes(crate({"Cargo.toml": MANIFEST}))
    return fakes.artifact(path, path.read_bytes())


def using(
    root: Path,
    use: Callable[[Target], Awaitable[T]],
    answer: Callable[[httpx.Request], httpx.Response],
    *,
    environ: Mapping[str, str] = TOKEN,
    place: str = INDEX,
    **changes: object,
) -> T:
    values: dict[str, object] = {"max_retries": 0, "retry_base_delay": 0.0, **changes}
    values["registries"] = fakes.registries(cargo=place)

    async def main() -> T:
        taken = snapshot({"CARGO_HOME": str(root), **environ})
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            credentials = Credentials(taken, mask=lambda _: None)
            config = fakes.config(root, **values)
            processes = Processes(environment=taken.environment)
            services = fakes.make_services(config, http, processes, credentials)
            async with Group() as group:
                made = discovery(ECOSYSTEMS["cargo"], config, services)
                opened = await made.opened_in(group)
                return await use(await opened.discover(root))

    return asyncio.run(main())


def index(request: httpx.Request) -> httpx.Response | None:
    """The answers of an index that holds nothing."""
    if request.url.path.endswith("/config.json"):
        return httpx.Response(200, json={"dl": "x", "api": "https://crates.example"})
    return httpx.Response(404) if request.method == "GET" else None


def answering(response: httpx.Response) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: index(request) or response


def detail(status: int, words: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"errors": [{"detail": words}]}, headers=headers)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, json={"warnings": {"other": []}}),
        httpx.Response(200, text="stored"),
        detail(400, "crate version `1.0.0` is already uploaded"),
        detail(200, "crate version `1.0.0` is already uploaded"),
        detail(409, "Crate with version already exists: demo-1.0.0"),
    ],
)
def test_what_counts_as_there(tmp_path: Path, artifact: Artifact, response: httpx.Response) -> None:
    using(tmp_path, lambda it: it.registry.upload(package(), [artifact]), answering(response))


@pytest.mark.parametrize(
    ("response", "error", "words", "hint"),
    [
        (detail(200, "no known crate named `x`"), Rejected, "no known crate named `x`", ""),
        (detail(400, "missing or empty metadata fields: x"), Rejected, "HTTP 400", "[package]"),
        (detail(403, "authentication failed"), Denied, "authentication failed", "CARGO_TOKEN"),
        (detail(403, "you don't seem to be an owner"), Denied, "HTTP 403", "does not own"),
        (httpx.Response(404), Rejected, "HTTP 404", "sparse index"),
        (httpx.Response(413), Rejected, "HTTP 413", "or a proxy in front of it"),
        (httpx.Response(302, headers={"Location": "/x"}), Rejected, "redirected to /x", ""),
        (httpx.Response(503, text="busy"), Transient, "HTTP 503 busy", ""),
        (httpx.Response(200, json={"errors": []}), None, "", ""),
    ],
)
def test_what_else_is_said(
    tmp_path: Path,
    artifact: Artifact,
    response: httpx.Response,
    error: type[PackageError] | None,
    words: str,
    hint: str,
) -> None:
    def upload() -> None:
        using(tmp_path, lambda it: it.registry.upload(package(), [artifact]), answering(response))

    if error is None:
        upload()
        return
    with pytest.raises(error) as caught:
        upload()
    assert words in str(caught.value)
    assert str(caught.value).startswith("cargo:demo 1.0.0: demo-1.0.0.crate: ")
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("dl", "body", "names"),
    [
        ("https://dl.example/crates", crate({"Cargo.toml": MANIFEST, "a": "1"}), ["a"]),
        ("https://dl.example/{crate}/{version}", crate({"Cargo.toml": ""}), ["Cargo.toml"]),
        ("https://dl.example/crates", b"not an archive", []),
        ("https://dl.example/crates", b"", []),
        ("http://dl.example/crates", crate({}), []),
    ],
)
def test_what_differs_from_a_published_crate_is_named(
    tmp_path: Path, artifact: Artifact, dl: str, body: bytes, names: list[str]
) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/config.json"):
            return httpx.Response(200, json={"dl": dl, "api": "https://crates.example"})
        asked.append(request)
        return httpx.Response(200, content=body) if body else httpx.Response(404)

    async def use(target: Target) -> list[str]:
        return await target.differing(package(), artifact)

    assert using(tmp_path, use, answer) == names
    assert all("Authorization" not in request.headers for request in asked)
    wanted = {"/crates/demo/1.0.0/download", "/demo/1.0.0"} if dl.startswith("https") else set()
    assert {request.url.path for request in asked} <= wanted


def test_what_is_no_crate_of_this_package_is_never_sent(tmp_path: Path) -> None:
    contents = {
        "other": crate({"Cargo.toml": MANIFEST.replace("demo", "evil")}),
        "empty": crate({"src/lib.rs": ""}),
        "text": b"not an archive",
        "torn": crate({"Cargo.toml": MANIFEST})[:60],
        "bomb": gzip.compress(b"\0" * 1024),
        "words": crate({"Cargo.toml": "package = 1"}),
    }
    for data in contents.values():
        path = tmp_path / "demo-1.0.0.crate"
        path.write_bytes(data)
        bad = fakes.artifact(path, data)
        with pytest.raises(PackageError, match=r"demo-1.0.0.crate is not its package"):
            using(
                tmp_path,
                lambda it, bad=bad: it.registry.upload(package(), [bad]),  # type: ignore[misc]
                answering(httpx.Response(200)),
            )


def test_turns_are_kept_apart_for_new_crates_and_new_versions(
    tmp_path: Path, artifact: Artifact
) -> None:
    """R12"""
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(404)
        sent.append(request.url.path)
        return detail(429, "You have published too many new crates", **{"Retry-After": "30"})

    async def use(target: Target) -> None:
        for name in ("demo", "other"):
            assert await target.registry.lookup(package(name)) is None
        with pytest.raises(Transient) as first:
            await target.registry.upload(package(), [artifact])
        assert first.value.retry_after == pytest.approx(30)
        assert "rate-limits" in first.value.hint
        with pytest.raises(Transient, match="not its turn") as second:
            await target.registry.upload(package("other"), [artifact])
        assert second.value.retry_after == pytest.approx(630, abs=29)

    using(tmp_path, use, answer, place="")
    assert sent == ["/api/v1/crates/new"]


@pytest.mark.parametrize(("status", "is_new"), [(404, True), (200, False), (503, False)])
def test_a_crate_is_new_only_where_the_index_says_so(
    tmp_path: Path, status: int, is_new: bool
) -> None:
    async def use(target: Target) -> bool:
        with contextlib.suppress(Transient):
            await target.registry.lookup(package())
        assert target.preflight.is_new is not None
        return target.preflight.is_new(package().id)

    assert using(tmp_path, use, lambda _: httpx.Response(status), place="") is is_new


@pytest.mark.parametrize(
    ("new", "known", "shard", "said"),
    [
        (5, 30, "", ""),
        (6, 0, "", "10 min"),
        (12, 30, "", "1 h 10 min"),
        (12, 3, "", "1 h 10 min"),
        (0, 31, "", "1 min"),
        (6, 60, "", "30 min"),
        (2, 15, "1/2", ""),
        (3, 15, "1/2", "10 min"),
    ],
)
def test_the_plan_says_how_long_it_will_take(
    tmp_path: Path, new: int, known: int, shard: str, said: str
) -> None:
    """R12: jobs that share a release share the limits."""

    def answer(request: httpx.Request) -> httpx.Response:
        is_known = request.url.path.rpartition("/")[2].startswith("known")
        return httpx.Response(200, content=b"") if is_known else httpx.Response(404)

    async def use(target: Target) -> str:
        names = [f"new-{number}" for number in range(new)]
        names += [f"known-{number}" for number in range(known)]
        for name in names:
            await target.registry.lookup(package(name))
        steps = [
            PlannedPackage(package=package(it), action=Action.PUBLISH, reason="") for it in names
        ]
        kept = replace(steps[0], package=package("new-kept"), action=Action.KEEP)
        return target.plan_notes([kept, *steps])

    note = using(tmp_path, use, answer, place="", shard=shard)
    assert f"takes at least {said}:" in note if said else note == ""
    assert using(tmp_path, use, answering(httpx.Response(200))) == ""  # not crates.io


@pytest.mark.parametrize("place", ["", INDEX])
def test_a_crate_that_is_larger_than_crates_io_takes_is_said(
    tmp_path: Path, artifact: Artifact, place: str
) -> None:
    """R49: it may have agreed to more for this crate, so it is no error."""

    async def use(target: Target) -> list[list[str]]:
        sized = [replace(artifact, size=10 * 1024**2 + more) for more in (0, 1)]
        found = [await target.find_warnings(package(), [each]) for each in sized]
        return [[str(each.name) for each in warnings] for warnings in found]

    found = using(tmp_path, use, answering(httpx.Response(404)), place=place)
    assert found == [[], [] if place else ["over-limit"]]


def test_the_index_is_asked_as_cargo_asks_it(tmp_path: Path) -> None:
    paths: list[str] = []
    line = {"name": "demo", "vers": "1.0.0+other", "cksum": "AB" * 32, "yanked": True}

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.path)
        if request.url.path == "/de/mo/demo":
            newer = {**line, "vers": "1.0.1", "yanked": False}
            lines = [b"", *(json.dumps(each).encode() for each in (line, newer)), b""]
            return httpx.Response(200, content=b"\n".join(lines))
        return httpx.Response({"/1/a": 404, "/2/ab": 410, "/3/a/abc": 451}[request.url.path])

    async def use(target: Target) -> None:
        for name in ("a", "Ab", "ABC"):
            assert await target.registry.lookup(package(name)) is None
        found = await target.registry.lookup(package())
        assert found is not None
        assert found.files == {"demo-1.0.0.crate": f"sha256:{'ab' * 32}"}
        assert found.url == "https://crates.io/crates/demo/1.0.0"
        assert found.withdrawal is not None
        assert (str(found.withdrawal), found.withdrawal.others) == ("yanked", ("1.0.1",))
        assert found.withdrawal.cure == "run `cargo yank --undo demo@1.0.0`"

    using(tmp_path, use, answer, place="")


@pytest.mark.parametrize("body", [b"<html>", b"OK", b"[]", b'{"name": "demo"}', b'"demo"'])
def test_a_page_that_is_no_index_is_no_verdict(tmp_path: Path, body: bytes) -> None:
    """R16"""
    with pytest.raises(Transient, match=r"not a file of a sparse index|a web page, not a file"):
        using(
            tmp_path,
            lambda it: it.registry.lookup(package()),
            lambda request: httpx.Response(200, content=body),
            place="https://crates.io",
        )


@pytest.mark.parametrize(
    ("response", "error", "words"),
    [
        (
            httpx.Response(200, text="<html>"),
            Transient,
            "config.json: this is a web page, not JSON",
        ),
        (httpx.Response(200, json=[]), Transient, "config.json: not a JSON object"),
        (
            httpx.Response(200, json={"api": "nowhere"}),
            Rejected,
            "config.json: api = nowhere: must",
        ),
        (httpx.Response(200, json={"api": "http://example.org"}), Rejected, "https"),
        (httpx.Response(404), Rejected, "HTTP 404"),
        (httpx.Response(401), Denied, "HTTP 401"),
    ],
)
def test_an_index_without_a_usable_configuration(
    tmp_path: Path, response: httpx.Response, error: type[PackageError], words: str
) -> None:
    """R37"""
    with pytest.raises(error) as caught:
        using(tmp_path, lambda it: it.registry.lookup(package()), lambda _: response)
    assert words in str(caught.value)


@pytest.mark.parametrize("config", [{"dl": "x"}, {"dl": "x", "api": ""}, {"dl": "x", "api": None}])
def test_an_index_without_uploads_can_be_read(
    tmp_path: Path, artifact: Artifact, config: dict[str, str]
) -> None:
    """R68: as that of a directory which is served."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("config.json"):
            return httpx.Response(200, json=config)
        return httpx.Response(404)

    async def use(target: Target) -> RightsFound:
        assert await target.registry.lookup(package()) is None
        assert target.preflight.rights is not None
        with pytest.raises(Rejected, match="takes no uploads"):
            await target.registry.upload(package(), [artifact])
        return await target.preflight.rights.find_rights([package()], proving=False)

    found = using(tmp_path, use, answer)
    assert "has no `api`" in str(found.denied[package().id])


@pytest.mark.parametrize(("refused", "minted"), [(0, 1), (1, 2)])
def test_tokens_are_made_from_the_job_and_given_back(
    tmp_path: Path, artifact: Artifact, refused: int, minted: int
) -> None:
    """R38"""
    seen: list[tuple[str, str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        authorization = request.headers.get("Authorization", "")
        seen.append((request.method, request.url.path, authorization))
        count = sum(it[:2] == ("POST", "/api/v1/trusted_publishing/tokens") for it in seen)
        match request.method:
            case "GET":
                assert request.url.params["audience"] == "crates.io"
                return httpx.Response(200, json={"value": f"identity-{len(seen)}"})
            case "POST":
                assert json.loads(request.content)["jwt"].startswith("identity-")
                return httpx.Response(200, json={"token": f"cio_tp_{count}"})
            case "PUT" if count <= refused:
                return detail(403, "authentication failed")
        return httpx.Response(204 if request.method == "DELETE" else 200)

    async def use(target: Target) -> None:
        target.registry.check_credentials()
        await target.registry.upload(package(), [artifact])

    using(tmp_path, use, answer, environ=IDENTITY, place="")
    tokens = [f"cio_tp_{number}" for number in range(1, minted + 1)]
    assert [it[2] for it in seen if it[0] == "PUT"] == tokens
    assert {it[2] for it in seen if it[0] == "DELETE"} == {f"Bearer {token}" for token in tokens}


@pytest.mark.parametrize(
    ("response", "error", "hint"),
    [
        (detail(400, "No matching Trusted Publishing config found"), Denied, "Register this"),
        (detail(400, "Unexpected `ci_config_ref_uri` value"), Denied, "has an `@` in it"),
        (detail(400, "JWT has already been used"), Transient, ""),
        (httpx.Response(503), Transient, ""),
        (httpx.Response(200, json={}), Transient, ""),
    ],
)
def test_an_identity_that_crates_io_does_not_know(
    tmp_path: Path,
    artifact: Artifact,
    response: httpx.Response,
    error: type[PackageError],
    hint: str,
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"value": "i"}) if request.method == "GET" else response

    with pytest.raises(error) as caught:
        using(
            tmp_path,
            lambda it: it.registry.upload(package(), [artifact]),
            answer,
            environ=IDENTITY,
            place="",
        )
    assert hint in caught.value.hint
    assert not getattr(caught.value, "ambiguous", False)


@pytest.mark.parametrize(
    ("place", "environ", "wanted", "hint"),
    [
        ("", {}, "auto", "jobs of github.com and gitlab.com only"),
        ("", {"GITHUB_ACTIONS": "true"}, "auto", "{ contents: read, id-token: write }"),
        ("", {"GITHUB_ACTIONS": "true"}, "auto", "/CRATE/settings/new-trusted-publisher"),
        ("", IDENTITY, "never", "`cargo-token` to an API token"),
        (INDEX, IDENTITY, "auto", "`cargo-token` to an API token"),
        ("", TOKEN | {"GITHUB_ACTIONS": "true"}, "always", "id-token: write"),
    ],
)
def test_who_cannot_log_in_is_told_before_anything_is_built(
    tmp_path: Path,
    artifact: Artifact,
    place: str,
    environ: Mapping[str, str],
    wanted: str,
    hint: str,
) -> None:
    async def use(target: Target) -> None:
        with pytest.raises(MissingCredentials, match="RELEASEKIT_CARGO_TOKEN") as caught:
            target.registry.check_credentials()
        assert hint in caught.value.hint
        with pytest.raises(MissingCredentials):
            await target.registry.upload(package(), [artifact])

    answer = answering(httpx.Response(200))
    using(tmp_path, use, answer, environ=environ, place=place, trusted_publishing=wanted)


def test_a_token_is_sent_as_it_is_given(tmp_path: Path, artifact: Artifact) -> None:
    """R37: a word in front of it included, which some servers want."""
    seen: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.method, request.headers.get("Authorization", "")))
        if request.url.path.endswith("/config.json") and seen[-1][1]:
            config = {"dl": "x", "api": "https://crates.example", "auth-required": True}
            return httpx.Response(200, json=config)
        return httpx.Response(401 if not seen[-1][1] else 404 if request.method == "GET" else 200)

    async def use(target: Target) -> None:
        assert await target.registry.lookup(package()) is None
        await target.registry.upload(package(), [artifact])

    using(tmp_path, use, answer, environ={"RELEASEKIT_CARGO_TOKEN": "Bearer abc"})
    sent = [("GET", "Bearer abc")] * 2 + [("PUT", "Bearer abc")]
    assert seen == [("GET", ""), *sent]


@pytest.mark.parametrize("environ", [{}, TOKEN])
@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_look_is_told_what_reading_takes(
    tmp_path: Path, environ: Mapping[str, str], status: int
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, text="no")

    with pytest.raises(Denied) as caught:
        using(tmp_path, lambda it: it.registry.lookup(package()), answer, environ=environ)
    assert "one that may read it as RELEASEKIT_CARGO_TOKEN" in caught.value.hint
    assert "publish-new" not in caught.value.hint


def denied(
    root: Path, new: Sequence[str], only: Sequence[str], **more: Any
) -> tuple[Mapping[PackageId, PackageError], list[httpx.Request]]:
    """Of 150 crates."""
    crates = [package(f"c{number}") for number in range(150)]
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "index.crates.io":
            name = request.url.path.rpartition("/")[2]
            return httpx.Response(404) if name in new else httpx.Response(200, text="")
        asked.append(request)
        named = request.url.params.get_list("ids[]")
        found = [{"id": each, "trustpub_only": each in only} for each in named]
        return httpx.Response(200, json={"crates": found, "meta": {}})

    async def use(target: Target) -> Mapping[PackageId, PackageError]:
        for each in crates if not more.get("place") else ():
            await target.registry.lookup(each)
        assert target.preflight.rights is not None
        found = await target.preflight.rights.find_rights(crates, proving=True)
        assert bool(found.note) == ("environ" not in more and not more.get("place"))
        return found.denied

    return using(root, use, answer, **{"place": "", **more}), asked


def test_trusted_publishing_creates_no_crate(tmp_path: Path) -> None:
    """R38: https://crates.io/docs/trusted-publishing"""
    found, asked = denied(tmp_path, ["c7", "c9"], [], environ=IDENTITY)
    assert [each.name for each in found] == ["c7", "c9"]
    assert "publish-new" in found[PackageId("cargo", "c7")].hint
    assert asked == []


def test_a_crate_may_refuse_tokens(tmp_path: Path) -> None:
    """https://crates.io/docs/trusted-publishing (Require Trusted Publishing)"""
    found, asked = denied(tmp_path, ["c7"], ["c3", "c140"])
    assert [each.name for each in found] == ["c3", "c140"]
    assert "Leave out `cargo-token`" in found[PackageId("cargo", "c3")].hint
    assert [len(each.url.params.get_list("ids[]")) for each in asked] == [100, 49]
    assert all("Authorization" not in each.headers for each in asked)


def test_other_registries_are_asked_for_no_rights(tmp_path: Path) -> None:
    found, asked = denied(tmp_path, [], ["c3"], place="https://crates.example/index/")
    assert (found, asked) == ({}, [])
