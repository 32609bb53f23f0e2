from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

import httpx
import pytest

import distributions
import registries
from releasekit.config.values import Url
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.pypi import PyPIInputs
from releasekit.ecosystems.pypi.registry import PackageIndex, derive_index
from releasekit.errors import (
    ConfigError,
    MissingCredentials,
    PackageError,
    PlanError,
    Rejected,
    Transient,
)
from releasekit.fields import replace
from releasekit.http.circuit import Circuit
from releasekit.model import Action, PackageId, PlannedPackage
from trusted_index import make_token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Registry
    from releasekit.model import Published

T = TypeVar("T")
PACKAGE = distributions.package()
PRIVATE = "https://pkgs.example/team/legacy/"
LOGIN = {"RELEASEKIT_PYPI_TOKEN": "hunter2-token", "RELEASEKIT_PYPI_USERNAME": "ci"}
IDENTITY = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://actions.example/idtoken",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
PAGE = {
    "files": [
        {"filename": "acme_core-1.0.0.tar.gz", "hashes": {"sha256": "ab" * 32}},
        {"filename": "acme_core-1.0.0-py3-none-any.whl", "hashes": {"sha256": "cd" * 32}},
    ]
}


class Server:
    """Answers by path; `requests` is all that was asked."""

    def __init__(self, answers: Mapping[str, httpx.Response]) -> None:
        self.answers = dict(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answers.get(request.url.path, httpx.Response(404))

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.url}" for request in self.requests]


def using(
    server: Callable[[httpx.Request], httpx.Response],
    place: str,
    use: Callable[[Registry], Awaitable[T]],
    *,
    environ: Mapping[str, str] = LOGIN,
    **changes: object,
) -> T:
    async def main() -> T:
        transport = httpx.MockTransport(server)
        async with registries.opened(place, environ, changes, transport=transport) as registry:
            return await use(registry)

    return asyncio.run(main())


async def look_up(registry: Registry) -> Published | None:
    return await registry.lookup(PACKAGE)


def page() -> httpx.Response:
    return httpx.Response(
        200, json=PAGE, headers={"Content-Type": "application/vnd.pypi.simple.v1+json"}
    )


@pytest.mark.parametrize(
    ("registry", "index"),
    [
        ("https://upload.pypi.org/legacy/", "https://pypi.org/simple/"),
        ("https://upload.pypi.org/legacy", "https://pypi.org/simple/"),
        ("https://test.pypi.org/legacy/", "https://test.pypi.org/simple/"),
        ("https://pkgs.example/legacy/", "https://pkgs.example/simple/"),
        ("https://pkgs.example/a/legacy", "https://pkgs.example/a/simple/"),
        ("https://pkgs.example/api/pypi/local", "https://pkgs.example/api/pypi/local/simple/"),
        (
            "https://pkgs.dev.azure.com/acme/_packaging/feed/pypi/upload",
            "https://pkgs.dev.azure.com/acme/_packaging/feed/pypi/simple/",
        ),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/simple/"),
        ("https://pkgs.example/nonlegacy/", "https://pkgs.example/nonlegacy/simple/"),
    ],
)
def test_the_index_is_derived_from_the_upload_url(registry: str, index: str) -> None:
    assert derive_index(registry) == index


def test_pypi_is_the_default_and_gets_no_credentials_for_reading() -> None:
    """R37"""
    server = Server({"/simple/acme-core/": page()})
    published = using(server, "", look_up)
    assert published is not None
    assert published.url == "https://pypi.org/project/acme-core/1.0.0/"
    assert published.complete
    assert server.asked == ["GET https://pypi.org/simple/acme-core/"]
    headers = server.requests[0].headers
    assert "Authorization" not in headers
    assert headers["Accept"].startswith("application/vnd.pypi.simple.v1+json")
    assert headers["Cache-Control"] == "no-cache, max-age=0"
    assert headers["User-Agent"].startswith("releasekit-action/")


def test_a_private_index_is_read_with_the_credentials_of_its_own_server() -> None:
    """R37"""
    server = Server({"/team/simple/acme-core/": page()})
    published = using(server, PRIVATE, look_up)
    assert published is not None
    assert published.url == "https://pkgs.example/team/simple/acme-core/"
    pair = base64.b64encode(b"ci:hunter2-token").decode()
    assert server.requests[0].headers["Authorization"] == f"Basic {pair}"


def test_an_index_elsewhere_gets_no_credentials() -> None:
    """R37"""
    server = Server({"/simple/acme-core/": page()})
    using(
        server,
        PRIVATE,
        look_up,
        ecosystem_inputs=[PyPIInputs(index="https://mirror.example/simple/")],
    )
    assert server.asked == ["GET https://mirror.example/simple/acme-core/"]
    assert "Authorization" not in server.requests[0].headers


def test_who_is_sent_on_to_pypi_has_found_nothing() -> None:
    """GitLab does that for a project it does not have, and pypiserver by default."""
    target = {"Location": "https://pypi.org/simple/acme-core/"}
    server = Server(
        {
            "/team/simple/acme-core/": httpx.Response(302, headers=target),
            "/simple/acme-core/": page(),
        }
    )
    assert using(server, PRIVATE, look_up) is None
    assert "Authorization" not in server.requests[1].headers


@pytest.mark.parametrize(
    ("response", "error", "message"),
    [
        (httpx.Response(401), PackageError, "HTTP 401"),
        (httpx.Response(403), PackageError, "HTTP 403"),
        (httpx.Response(410), Rejected, "HTTP 410"),
        (httpx.Response(503), Transient, "HTTP 503"),
        (httpx.Response(200, text="maintenance"), Transient, "not a page of a simple index"),
        (httpx.Response(200, html="<a href='//[x'>"), Transient, "not a page of a simple index"),
        (httpx.Response(200, html="<html>Sign in</html>"), Transient, "this is a web page, not a"),
        (httpx.Response(200, json={"ok": True}), Transient, "JSON without a list of files"),
        (httpx.Response(304), Rejected, "HTTP 304"),
    ],
)
def test_doubt_is_never_an_absence(
    response: httpx.Response, error: type[Exception], message: str
) -> None:
    """R16"""
    server = Server({"/team/simple/acme-core/": response})
    with pytest.raises(error, match=message):
        using(server, PRIVATE, look_up)


WHEEL = "acme_core-1.0.0-py3-none-any.whl"
METADATA = b"""Metadata-Version: 2.4
Name: acme-core
Version: 1.0.0
Requires-Dist: Acme_Base==1.2.0
Requires-Dist: acme-tool==3.0 ; extra == "tool"
"""


@pytest.mark.parametrize(
    ("url", "answer", "asked"),
    [
        (f"../../files/{WHEEL}", httpx.Response(200, content=METADATA), {"acme-base": "==1.2.0"}),
        (f"/team/files/{WHEEL}", httpx.Response(404), {}),
        (f"/team/files/{WHEEL}", httpx.Response(200, content=b"\xff"), {}),
        (f"http://other.example/team/files/{WHEEL}", httpx.Response(200, content=METADATA), {}),
        ("", httpx.Response(200, content=METADATA), {}),
    ],
)
def test_an_index_may_tell_what_a_published_version_requires(
    url: str, answer: httpx.Response, asked: dict[str, str]
) -> None:
    """R65: from the metadata beside its wheel, which a page names by its file."""
    files = [{"filename": WHEEL, "url": url, "hashes": {"sha256": "cd" * 32}}]
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    listed = httpx.Response(200, json={"files": files}, headers=kind)
    where = f"/team/files/{WHEEL}.metadata"
    server = Server({"/team/simple/acme-core/": listed, where: answer})

    async def read(registry: Registry) -> Mapping[str, str]:
        assert isinstance(registry, PackageIndex)
        return await registry.read_asked(PACKAGE)

    assert using(server, PRIVATE, read) == asked
    assert not [each for each in server.requests if each.url.host == "other.example"]


def test_a_devpi_index_is_asked_where_it_is() -> None:
    server = Server({"/root/dev/+simple/acme-core/": page()})
    devpi = httpx.Response(404, headers={"X-DEVPI-API-VERSION": "2"})
    server.answers["/root/dev/simple/acme-core/"] = devpi
    assert using(server, "https://devpi.example/root/dev", look_up) is not None


def test_a_given_index_is_never_second_guessed() -> None:
    devpi = httpx.Response(404, headers={"X-DEVPI-API-VERSION": "2"})
    server = Server({"/other/acme-core/": devpi})
    inputs = [PyPIInputs(index="https://devpi.example/other/")]
    place = "https://devpi.example/root/dev"
    assert using(server, place, look_up, ecosystem_inputs=inputs) is None
    assert server.asked == ["GET https://devpi.example/other/acme-core/"]


@pytest.mark.parametrize(
    ("place", "index", "name"),
    [
        ("http://pkgs.example/legacy/", "", "pypi-registry"),
        ("https://ci:hunter2@pkgs.example/", "", "pypi-registry"),
        ("ftp://pkgs.example/", "", "pypi-registry"),
        (PRIVATE, "http://pkgs.example/simple/", "pypi-index"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_by_name(
    place: str, index: str, name: str
) -> None:
    """R37"""
    registry, inputs = {"pypi": Url(place)}, [PyPIInputs(index=index)]
    with pytest.raises(ConfigError, match=f"^{name}"):
        using(Server({}), "", look_up, registries=registry, ecosystem_inputs=inputs)


def test_a_directory_is_a_registry_too(tmp_path: Path) -> None:
    async def itself(registry: Registry) -> Registry:
        return registry

    registry = using(Server({}), f"dir:{tmp_path}", itself)
    assert isinstance(registry, DirectoryRegistry)
    assert registry.url == f"dir:{tmp_path}"


def test_credentials_are_checked_without_asking_anybody() -> None:
    server = Server({})

    async def check(registry: Registry) -> str:
        registry.check_credentials()
        return registry.url

    assert using(server, PRIVATE, check) == PRIVATE
    with pytest.raises(MissingCredentials, match="RELEASEKIT_PYPI_TOKEN is not set"):
        using(server, PRIVATE, check, environ={})
    assert server.asked == []


def test_without_credentials_an_index_can_be_read_but_nothing_is_sent(tmp_path: Path) -> None:
    server = Server({"/team/simple/acme-core/": page()})

    async def use(registry: Registry) -> None:
        assert await registry.lookup(PACKAGE) is not None
        with pytest.raises(MissingCredentials):
            await registry.upload(PACKAGE, distributions.both(tmp_path, PACKAGE))

    using(server, PRIVATE, use, environ={})
    assert [request.method for request in server.requests] == ["GET"]


def test_every_file_is_one_request_with_its_form(tmp_path: Path) -> None:
    artifacts = distributions.both(tmp_path, PACKAGE)
    server = Server({"/team/legacy/": httpx.Response(200)})
    using(server, PRIVATE, lambda registry: registry.upload(PACKAGE, artifacts))
    assert server.asked == [f"POST {PRIVATE}"] * 2
    for request, artifact in zip(
        sorted(server.requests, key=lambda request: len(request.content)), artifacts, strict=True
    ):
        body = request.content
        assert int(request.headers["Content-Length"]) == len(body)
        assert b'name=":action"\r\n\r\nfile_upload\r\n' in body
        assert f'name="sha256_digest"\r\n\r\n{artifact.sha256}\r\n'.encode() in body
        assert f'name="content"; filename="{artifact.filename}"'.encode() in body
        assert artifact.path.read_bytes() in body
        assert request.headers["Authorization"].startswith("Basic ")


def test_one_upload_at_a_time_keeps_the_order_of_the_files(tmp_path: Path) -> None:
    """R13, although the first file takes longer to read than the last."""
    files = [
        distributions.sdist(tmp_path, PACKAGE, text="A" * 3_000_000),
        distributions.wheel(tmp_path, PACKAGE),
    ]
    server = Server({"/team/legacy/": httpx.Response(200)})
    using(server, PRIVATE, lambda registry: registry.upload(PACKAGE, files), concurrency=1)
    assert [
        file.filename.encode() in sent.content
        for file, sent in zip(files, server.requests, strict=True)
    ] == [True, True]


def test_a_refusal_of_a_given_token_is_final(tmp_path: Path) -> None:
    """There is no other one to try."""
    (source, _) = distributions.both(tmp_path, PACKAGE)
    server = Server({"/team/legacy/": httpx.Response(401, text="bad token hunter2-token")})
    with pytest.raises(PackageError, match="HTTP 401 bad token") as caught:
        using(server, PRIVATE, lambda registry: registry.upload(PACKAGE, [source]))
    assert len(server.requests) == 1
    assert "hunter2" not in str(caught.value)


def test_nothing_is_sent_where_one_of_the_files_changed(tmp_path: Path) -> None:
    """R18: half a version can never be taken back."""
    source, wheel = distributions.both(tmp_path, PACKAGE)
    wheel.path.write_bytes(wheel.path.read_bytes()[::-1])
    server = Server({"/team/legacy/": httpx.Response(200)})
    with pytest.raises(PackageError, match=f"{wheel.filename}: the file is not what was built"):
        using(server, PRIVATE, lambda registry: registry.upload(PACKAGE, [source, wheel]))
    assert server.requests == []


def test_a_server_that_is_down_is_left_alone(tmp_path: Path) -> None:
    """The index still answers, which says nothing about uploads."""
    (source, _) = distributions.both(tmp_path, PACKAGE)
    server = Server({"/team/legacy/": httpx.Response(503)})

    async def use(registry: Registry) -> list[float | None]:
        assert isinstance(registry, PackageIndex)
        registry._server.circuit = Circuit("it", pause_s=60.0)  # longer than this takes anywhere
        waits = []
        for _ in range(7):
            assert await registry.lookup(PACKAGE) is None
            with pytest.raises(Transient) as caught:
                await registry.upload(PACKAGE, [source])
            waits.append(caught.value.retry_after)
        return waits

    waits = using(server, PRIVATE, use)
    assert waits[:5] == [None] * 5
    assert all(wait and wait <= 60 for wait in waits[5:])
    assert [request.method for request in server.requests].count("POST") == 5


@pytest.mark.parametrize(
    ("place", "version", "action", "refused"),
    [
        ("https://upload.pypi.org/legacy/", "1.0+g1a2b3c", Action.PUBLISH, True),
        ("https://test.pypi.org/legacy", "1.0+g1a2b3c", Action.UPLOAD, True),
        ("https://upload.pypi.org/legacy/", "1.0.dev3", Action.PUBLISH, False),
        ("https://upload.pypi.org/legacy/", "1.0+g1a2b3c", Action.KEEP, False),
        (PRIVATE, "1.0+g1a2b3c", Action.PUBLISH, False),
    ],
)
def test_a_local_version_is_refused_where_it_can_never_be_uploaded(
    place: str, version: str, action: Action, refused: bool
) -> None:
    step = PlannedPackage(package=replace(PACKAGE, version=version), action=action, reason="")

    async def plan_notes(registry: Registry) -> str:
        assert isinstance(registry, PackageIndex)
        return registry.plan_notes([step])

    if refused:
        with pytest.raises(PlanError, match=r"acme-core 1\.0\+g1a2b3c .* 'g1a2b3c'") as caught:
            using(Server({}), place, plan_notes)
        assert "no-local-version" in caught.value.hint
        assert "`exclude-packages`" in caught.value.hint
    else:
        of_index = f"pypi: what is published is looked up at {PRIVATE.replace('legacy', 'simple')}"
        said = using(Server({}), place, plan_notes)
        assert said.startswith(of_index) if place == PRIVATE else said == ""


@pytest.mark.parametrize(
    ("given", "headers", "told"),
    [
        ("", {}, "https://pkgs.example/team/simple/, derived from `pypi-registry`"),
        ("https://get.example/x/", {}, "https://get.example/x/, as `pypi-index` says"),
        (
            "https://get.example/aBcD1234eFgH5678iJkL/simple/",
            {},
            "https://get.example/***/simple/, as `pypi-index` says",
        ),
        (
            "",
            {"X-DEVPI-API-VERSION": "2"},
            "https://pkgs.example/team/legacy/+simple/, as devpi has it",
        ),
    ],
)
def test_the_plan_says_where_it_looks_and_doubts_an_index_that_knows_nothing(
    given: str, headers: dict[str, str], told: str
) -> None:
    """R66, R68: pip may install from another address, and a new project is not there either."""
    step = PlannedPackage(package=PACKAGE, action=Action.PUBLISH, reason="")

    async def plan_notes(registry: Registry) -> tuple[str, str]:
        assert isinstance(registry, PackageIndex)
        await registry.lookup(PACKAGE)
        return registry.plan_notes([step]), registry.describe_lookups()[1]

    def absent(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, headers=headers)

    inputs = [PyPIInputs(index=given)]
    note, cure = using(absent, PRIVATE, plan_notes, ecosystem_inputs=inputs)
    assert note.startswith(f"pypi: what is published is looked up at {told}. It has none of these")
    assert "pip installs from another address" in cure
    known, _ = using(lambda _: page(), PRIVATE, plan_notes, ecosystem_inputs=inputs)
    assert "has none" not in known


@pytest.mark.parametrize(
    ("place", "age", "closed"),
    [
        ("https://upload.pypi.org/legacy/", timedelta(days=15), True),
        ("https://upload.pypi.org/legacy/", timedelta(days=13), False),
        (PRIVATE, timedelta(days=15), False),
    ],
)
def test_a_version_that_pypi_completes_no_more_is_named(
    place: str, age: timedelta, closed: bool
) -> None:
    """R49: its files are half there, and the rest would be refused."""
    times = (datetime.now(UTC) - age, datetime.now(UTC))
    files = [
        {
            "filename": f"acme_core-1.0-py3-none-{kind}.whl",
            "hashes": {"sha256": "ab" * 32},
            "upload-time": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        for kind, at in zip(("any", "linux_x86_64"), times, strict=True)
    ]
    page = httpx.Response(
        200,
        json={"meta": {"api-version": "1.1"}, "files": files},
        headers={"Content-Type": "application/vnd.pypi.simple.v1+json"},
    )

    async def plan_notes(registry: Registry) -> str:
        assert isinstance(registry, PackageIndex)
        package = replace(PACKAGE, version="1.0")
        published = await registry.lookup(package)
        assert published is not None
        step = PlannedPackage(
            package=package, action=Action.PUBLISH, reason="", published=published
        )
        kept = replace(step, action=Action.KEEP)
        assert "takes no more" not in registry.plan_notes([kept])
        return registry.plan_notes([step])

    paths = ("/simple/acme-core/", "/team/simple/acme-core/")
    said = using(Server(dict.fromkeys(paths, page)), place, plan_notes)
    assert said.startswith("acme-core 1.0: ") is closed
    assert ("publish a higher one" in said) is closed


@pytest.mark.parametrize(
    ("place", "environ", "new", "named"),
    [
        ("https://upload.pypi.org/legacy/", LOGIN, 20, 0),
        ("https://upload.pypi.org/legacy/", LOGIN, 21, 1),
        ("https://test.pypi.org/legacy/", LOGIN, 25, 5),
        ("https://upload.pypi.org/legacy/", IDENTITY, 21, 0),
        (PRIVATE, LOGIN, 21, 0),
    ],
)
def test_new_projects_are_named_that_pypi_creates_only_later(
    place: str, environ: Mapping[str, str], new: int, named: int
) -> None:
    """R49: 20 in an hour; those of pending publishers do not count, nor those that are there."""

    def answer(request: httpx.Request) -> httpx.Response:
        return page() if request.url.path.endswith("/known/") else httpx.Response(404)

    async def use(registry: Registry) -> list[str]:
        assert isinstance(registry, PackageIndex)
        names = ["known", *(f"new-{number:02}" for number in range(new + 1))]
        steps = []
        for name in names:
            package = replace(PACKAGE, id=PackageId("pypi", name))
            await registry.lookup(package)
            action = Action.KEEP if name == "new-00" else Action.PUBLISH
            steps.append(PlannedPackage(package=package, action=action, reason=""))
        found = registry.find_excess(steps)
        assert all(f"one of {new} new projects" in each.message for each in found.values())
        return [each.name for each in found]

    found = using(answer, place, use, environ=environ)
    assert found == [f"new-{number:02}" for number in range(new - named + 1, new + 1)]


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        (httpx.Response(200, text="Topic :: A\nProgramming Language :: Python\nB :: C"), 3),
        (httpx.Response(200, text="<html>a proxy</html>"), 0),
        (httpx.Response(404), 0),
    ],
)
def test_pypi_is_asked_once_which_classifiers_it_takes(answer: httpx.Response, known: int) -> None:
    """R63, R68: an answer that is no list tells nothing."""
    asked = []

    def serve(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return answer

    async def use(registry: Registry) -> int:
        assert isinstance(registry, PackageIndex)
        first = await registry.find_classifiers()
        assert await registry.find_classifiers() is first
        return len(first)

    assert using(serve, "https://test.pypi.org/legacy/", use) == known
    assert asked == ["https://test.pypi.org/pypi?%3Aaction=list_classifiers"]


@pytest.mark.parametrize(
    ("environ", "ends"),
    [
        ({"RELEASEKIT_PYPI_TOKEN": make_token([0, 2_000_000_000, 0])}, 2_000_000_000),
        ({"RELEASEKIT_PYPI_TOKEN": make_token([3, "user"])}, None),
        (IDENTITY, None),
        ({}, None),
    ],
)
def test_the_end_of_a_token_is_known_where_it_says_so(
    environ: Mapping[str, str], ends: float | None
) -> None:
    """One that is minted for this job is minted again before its end."""

    async def use(registry: Registry) -> float | None:
        assert isinstance(registry, PackageIndex)
        return registry.token_limits.expires

    assert using(Server({}), "https://upload.pypi.org/legacy/", use, environ=environ) == ends


def test_an_answer_that_cannot_be_read_leaves_open_what_became_of_an_upload(tmp_path: Path) -> None:
    """R15, R16: all of the file was sent, so the registry has to be asked."""
    coded = httpx.Response(
        200, headers={"Content-Encoding": "x-evil"}, stream=httpx.ByteStream(b"OK")
    )
    artifact = distributions.wheel(tmp_path, PACKAGE)
    with pytest.raises(Transient) as caught:
        using(
            Server({"/team/legacy/": coded}),
            PRIVATE,
            lambda registry: registry.upload(PACKAGE, [artifact]),
        )
    assert caught.value.ambiguous
