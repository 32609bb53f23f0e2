from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import httpx
import pytest

import fakes
from approvals import recorded
from releasekit.config.values import Directory, Url
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.approval import Waiting
from releasekit.ecosystems.folders import approval
from releasekit.ecosystems.npm.approval import NpmApproval
from releasekit.errors import (
    CodeWanted,
    ConfigError,
    Denied,
    DigestMismatch,
    MissingCredentials,
    PackageError,
    Rejected,
    Transient,
    UnderReview,
    UnnamedRegistry,
)
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.host.sandbox import UNCONFINED, Sandbox
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import PackageId, Staged

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.ecosystems.npm.approval import NpmApproval as Npm

T = TypeVar("T")
ROOT = "https://npm.example/team/"
ID = "1de6f3db-2ed9-4d72-b3dd-8f0e2b474a2f"
STAGE = f"/team/-/stage/{ID}"
PUBLIC = "/team/@acme%2fcore"
ITEM = {
    "id": ID,
    "packageName": "@acme/core",
    "version": "1.0.0",
    "tag": "latest",
    "actor": "releaser",
    "status": "staged",
}
WAITING = Waiting(id=ID, name="@acme/core", version="1.0.0", tag="latest", by="releaser")


def packed(**manifest: object) -> bytes:
    buffer = io.BytesIO()
    text = json.dumps({"name": "@acme/core", "version": "1.0.0", **manifest}).encode()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in {"package.json": text, "index.js": b""}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


TARBALL = packed(scripts={"postinstall": "node x.js", "test": "x"})
BASE = recorded("core", data=TARBALL)
RECORDED = replace(
    BASE,
    package=replace(BASE.package, id=PackageId("npm", "@acme/core")),
    staged=Staged(id=ID),
)


def dist(data: bytes, tarball: str = "") -> dict[str, object]:
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    return {"dist": {"integrity": f"sha512-{digest}", "tarball": tarball}}


class Server:
    """Answers by method and path, the same one again when there is only one left."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = {
            key: [*value] if isinstance(value, list) else [value] for key, value in answers.items()
        }
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        key = f"{request.method} {request.url.raw_path.decode()}"
        left = self.answers.get(key, [httpx.Response(404, json={"message": "not found"})])
        answer = left.pop(0) if len(left) > 1 else left[0]
        match answer:
            case httpx.Response():
                return answer
            case bytes():
                return httpx.Response(200, content=answer)
            case _:
                return httpx.Response(200, json=answer)

    @property
    def asked(self) -> list[str]:
        return [f"{it.method} {it.url.raw_path.decode()}" for it in self.requests]


def using(
    answers: Mapping[str, object] | Server,
    use: Callable[[Npm], Awaitable[T]],
    *,
    environ: Mapping[str, str] | None = None,
    sandbox: Sandbox = UNCONFINED,
    **changes: object,
) -> T:
    server = answers if isinstance(answers, Server) else Server(answers)

    async def main() -> T:
        taken = snapshot({"RELEASEKIT_NPM_TOKEN": "npm_hunter2"} if environ is None else environ)
        values = {"registries": fakes.registries(npm=ROOT), "max_retries": 0, **changes}
        config = fakes.config(Path("/workspace"), **values)
        async with http_client(transport=httpx.MockTransport(server)) as http:
            credentials = Credentials(taken, mask=lambda _: None)
            processes = Processes(environment={}, secrets=(), sandbox=sandbox)
            services = fakes.make_services(config, http, processes, credentials)
            made = approval(ECOSYSTEMS["npm"], config, services)
            assert isinstance(made, NpmApproval)
            return await use(made)

    return asyncio.run(main())


def waiting(answers: Mapping[str, object], **staged: str) -> Waiting | None:
    result = replace(RECORDED, staged=Staged(**staged)) if staged else RECORDED
    return using(answers, lambda npm: npm.waiting(result))


def test_what_waits_is_asked_for_by_its_id() -> None:
    server = Server({f"GET {STAGE}": ITEM})
    assert using(server, lambda npm: npm.waiting(RECORDED)) == WAITING
    assert server.requests[0].headers["Authorization"] == "Bearer npm_hunter2"


@pytest.mark.parametrize("status", ["approved", "published", "rejected"])
def test_what_was_decided_does_not_wait(status: str) -> None:
    assert waiting({f"GET {STAGE}": {**ITEM, "status": status}}) is None


def page(number: int, *items: object, total: object = 2) -> dict[str, object]:
    path = f"GET /team/-/stage?package=%40acme%2Fcore&page={number}&perPage=100"
    return {path: {"items": [*items], "total": total}}


OTHER = {**ITEM, "version": "0.9.0", "id": "another-id"}


def test_what_has_no_such_id_is_looked_for_in_the_list() -> None:
    answers = page(0, OTHER) | page(1, {**ITEM, "id": "third-one-id"})
    found = waiting(answers)
    assert found is not None
    assert found.id == "third-one-id"
    assert waiting(answers, tag="latest") == found


@pytest.mark.parametrize(
    "answers",
    [page(0, OTHER, total=1), page(0, total=5), page(0, OTHER, total=None)],
)
def test_what_is_in_no_list_does_not_wait(answers: Mapping[str, object]) -> None:
    assert waiting(answers) is None


def test_a_list_without_end_is_refused() -> None:
    class Endless(Server):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            if "page=" in str(request.url):
                return httpx.Response(200, json={"items": [OTHER], "total": 10**9})
            return super().__call__(request)

    with pytest.raises(Transient, match="more than 100 pages"):
        using(Endless({}), lambda npm: npm.waiting(RECORDED))


@pytest.mark.parametrize("id_", ["../../x", "a b c d e f", "short", "x" * 65])
def test_an_id_that_npm_does_not_give_goes_into_no_address(id_: str) -> None:
    """R36"""
    with pytest.raises(Rejected, match="is not an id of npm"):
        waiting({}, id=id_)
    with pytest.raises(Rejected, match="without an id"):
        waiting({f"GET {STAGE}": {**ITEM, "id": id_}})


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_look_is_told_to_log_in(status: int) -> None:
    with pytest.raises(Denied, match=f"HTTP {status}") as caught:
        waiting({f"GET {STAGE}": httpx.Response(status, json={"message": "Unauthorized"})})
    assert "npm login" in caught.value.hint


def test_its_files_are_downloaded_and_hashed(tmp_path: Path) -> None:
    server = {f"GET {STAGE}/tarball": TARBALL}
    (file,) = using(server, lambda npm: npm.files(RECORDED, WAITING, tmp_path))
    assert file.path == tmp_path / "acme-core-1.0.0.tgz"
    assert file.path.read_bytes() == TARBALL
    assert file.size == len(TARBALL)
    assert file.digests == {
        name: hashlib.new(name, TARBALL).hexdigest() for name in ("sha256", "sha512", "sha1")
    }


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(404), Rejected),
        (httpx.Response(503), Transient),
        (httpx.Response(204), Transient),
        (httpx.Response(302), Rejected),
        (httpx.Response(200, content=b"x", headers={"Content-Encoding": "br"}), Rejected),
    ],
)
def test_what_is_no_file(answer: httpx.Response, error: type[PackageError], tmp_path: Path) -> None:
    with pytest.raises(error):
        using({f"GET {STAGE}/tarball": answer}, lambda npm: npm.files(RECORDED, WAITING, tmp_path))


def test_a_file_is_no_larger_than_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    monkeypatch.setattr("releasekit.ecosystems.npm.approval.MAX_FILE_BYTES", 10)
    larger = {f"GET {STAGE}/tarball": TARBALL + b"x"}
    with pytest.raises(Rejected, match="over"):
        using(larger, lambda npm: npm.files(RECORDED, WAITING, tmp_path))


def test_a_redirect_takes_no_token_to_another_server(tmp_path: Path) -> None:
    """R37"""
    server = Server(
        {
            f"GET {STAGE}/tarball": httpx.Response(
                302, headers={"Location": "https://cdn.example/x"}
            ),
            "GET /x": TARBALL,
        }
    )
    using(server, lambda npm: npm.files(RECORDED, WAITING, tmp_path))
    assert "Authorization" not in server.requests[-1].headers


def test_redirects_come_to_an_end(tmp_path: Path) -> None:
    back = httpx.Response(302, headers={"Location": f"https://npm.example{STAGE}/tarball"})
    with pytest.raises(Rejected, match="more than 5 redirects"):
        using({f"GET {STAGE}/tarball": back}, lambda npm: npm.files(RECORDED, WAITING, tmp_path))


def test_a_download_that_breaks_is_tried_again(tmp_path: Path) -> None:
    tries: list[str] = []

    class Breaking(Server):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            tries.append(request.method)
            if len(tries) == 1:
                raise httpx.ReadError("reset")
            return super().__call__(request)

    server = Breaking({f"GET {STAGE}/tarball": TARBALL})
    found = using(
        server,
        lambda npm: npm.files(RECORDED, WAITING, tmp_path),
        max_retries=1,
        retry_base_delay=0.0,
    )
    assert found[0].size == len(TARBALL)


def test_what_is_in_it(tmp_path: Path) -> None:
    async def look(npm: Npm) -> object:
        files = await npm.files(RECORDED, WAITING, tmp_path)
        return npm.contents(RECORDED, files)

    found = using({f"GET {STAGE}/tarball": TARBALL}, look)
    assert getattr(found, "names") == {"package.json", "index.js"}  # noqa: B009
    assert getattr(found, "scripts") == {"postinstall": "node x.js"}  # noqa: B009


KNOWN = replace(
    RECORDED,
    artifacts=(
        replace(
            RECORDED.artifacts[0],
            digests={"sha256": "?", "sha512": hashlib.sha512(TARBALL).hexdigest()},
        ),
    ),
)


def test_everybody_sees_it_where_the_digest_is_ours(tmp_path: Path) -> None:
    one = f"GET {PUBLIC}/1.0.0"
    assert using({one: dist(TARBALL)}, lambda npm: npm.is_visible(KNOWN, tmp_path))
    assert not using({}, lambda npm: npm.is_visible(KNOWN, tmp_path))
    with pytest.raises(DigestMismatch, match="shows sha512:"):
        using({one: dist(b"other")}, lambda npm: npm.is_visible(KNOWN, tmp_path))


@pytest.mark.parametrize(
    ("told", "path"),
    [
        (f"{ROOT}elsewhere.tgz", "/team/elsewhere.tgz"),
        ("https://other.example/x.tgz", "/team/@acme/core/-/core-1.0.0.tgz"),
        ("https://x:port/", "/team/@acme/core/-/core-1.0.0.tgz"),
    ],
)
def test_what_was_never_here_is_compared_by_its_bytes(told: str, path: str, tmp_path: Path) -> None:
    entry = dist(TARBALL, told)
    answers = {
        f"GET {PUBLIC}/1.0.0": entry,
        f"GET {PUBLIC}": {"versions": {"1.0.0": entry}},
        f"GET {path}": TARBALL,
    }
    assert using(answers, lambda npm: npm.is_visible(RECORDED, tmp_path))
    with pytest.raises(DigestMismatch):
        using({**answers, f"GET {path}": b"other"}, lambda npm: npm.is_visible(RECORDED, tmp_path))


@pytest.mark.parametrize(
    ("versions", "before"),
    [
        (["0.1.0", "0.9.0", "0.10.0", "1.1.0", "no version"], "0.10.0"),
        (["0.9.0", "1.0.0-rc.1"], "0.9.0"),
        (["1.0.0-rc.1"], "1.0.0-rc.1"),
        (["0.0.0-stage", "2.0.0"], ""),
    ],
)
def test_the_version_before(versions: list[str], before: str, tmp_path: Path) -> None:
    answers = {
        f"GET {PUBLIC}": {"versions": {version: dist(TARBALL) for version in versions}},
        f"GET /team/@acme/core/-/core-{before}.tgz": TARBALL,
    }
    found = using(answers, lambda npm: npm.last_published(RECORDED, tmp_path))
    assert (found.version if found else "") == before


def test_a_new_package_has_none_before(tmp_path: Path) -> None:
    assert using({}, lambda npm: npm.last_published(RECORDED, tmp_path)) is None
    with pytest.raises(Transient, match="not a packument"):
        using({f"GET {PUBLIC}": b"["}, lambda npm: npm.last_published(RECORDED, tmp_path))


def decide(answer: httpx.Response, code: str = "123456") -> httpx.Request:
    server = Server({f"POST {STAGE}/approve": answer, f"DELETE {STAGE}": answer})
    using(server, lambda npm: npm.approve(WAITING, code))
    using(server, lambda npm: npm.reject(WAITING, code))
    assert server.asked == [f"POST {STAGE}/approve", f"DELETE {STAGE}"]
    return server.requests[0]


def test_a_decision_brings_the_code_and_looks_like_npms() -> None:
    request = decide(httpx.Response(201))
    assert request.headers["npm-otp"] == "123456"
    assert request.headers["npm-auth-type"] == "web"
    assert request.headers["npm-command"] == "stage"
    assert request.headers["User-Agent"].startswith("npm/")
    assert "npm-otp" not in decide(httpx.Response(204), "").headers


SIGN_IN = {"authUrl": "https://www.npmjs.com/auth/cli/1", "doneUrl": f"{ROOT}-/v1/done?authId=1"}


@pytest.mark.parametrize(
    ("body", "page"),
    [
        (SIGN_IN, SIGN_IN["authUrl"]),
        ({"message": "Unauthorized"}, ""),
        ({**SIGN_IN, "authUrl": "javascript:alert(1)"}, ""),
        ({**SIGN_IN, "authUrl": "https://x.example/\u202e"}, ""),
        ({**SIGN_IN, "authUrl": "https://x:port/"}, ""),
        ({**SIGN_IN, "authUrl": "https://www.npmjs.com@evil.example/"}, ""),
        ({**SIGN_IN, "doneUrl": "https://evil.example/-/v1/done"}, ""),
        ({**SIGN_IN, "doneUrl": "https://x:port/"}, ""),
        ("no JSON", ""),
    ],
)
def test_a_code_is_asked_for_with_a_page_that_can_be_trusted(body: object, page: str) -> None:
    """R37"""
    answer = (
        httpx.Response(401, text=body) if isinstance(body, str) else httpx.Response(401, json=body)
    )
    with pytest.raises(CodeWanted) as caught:
        decide(answer)
    assert caught.value.page == page
    assert bool(caught.value.answer) == bool(page)


@pytest.mark.parametrize(
    ("status", "words", "error"),
    [
        (409, "… can't be approved yet because automated review hasn't finished.", UnderReview),
        (409, "Conflict", Rejected),
        (404, "staged version with id x not found", Denied),
        (403, "Please enable 2fa for your account", Denied),
        (429, "Too Many Requests", Transient),
        (500, "An error occurred", Transient),
    ],
)
def test_what_else_npm_says(status: int, words: str, error: type[PackageError]) -> None:
    with pytest.raises(error) as caught:
        decide(httpx.Response(status, json={"message": words}))
    assert type(caught.value) is error
    assert "@acme/core 1.0.0" in str(caught.value)


WANTED = CodeWanted("a code", page=SIGN_IN["authUrl"], answer=SIGN_IN["doneUrl"])
DONE = "GET /team/-/v1/done?authId=1"


def test_signing_in_is_waited_for() -> None:
    again = httpx.Response(202, json={}, headers={"Retry-After": "0"})
    server = Server({DONE: [again, again, httpx.Response(200, json={"token": "web-code"})]})
    assert using(server, lambda npm: npm.confirmed(WANTED)) == "web-code"
    assert server.asked == [DONE] * 3


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(200, json={}), Rejected),
        (httpx.Response(200, json={"token": "x\r\ny"}), Rejected),
        (httpx.Response(404), Rejected),
    ],
)
def test_signing_in_that_brings_no_code(answer: httpx.Response, error: type[PackageError]) -> None:
    with pytest.raises(error):
        using({DONE: answer}, lambda npm: npm.confirmed(WANTED))


def test_a_directory_holds_nothing_back() -> None:
    with pytest.raises(ConfigError, match="a directory holds nothing back"):
        using({}, lambda npm: npm.waiting(RECORDED), registries={"npm": Directory(Path("/x"))})


NPMRC = """\
registry=https://npm.example/
//npm.example/:_authToken=npm_of-the-host
//npm.example/team/:_authToken = "${LOGIN}"
//other.example/:_authToken=npm_others
//npm.example/more/:always-auth=true
"""


@pytest.mark.parametrize(
    ("text", "token"),
    [
        (NPMRC, "npm_mine"),
        ("//npm.example/:_authToken=npm_x\n", "npm_x"),
        ("//npm.example/:_authToken=npm_${LOGIN}${UNSET}\n", ""),
        ("//npm.example/team/more/:_authToken=npm_x\n", ""),
        ("//npm.example:8080/:_authToken=npm_x\n", ""),
        ("//npm.example/:_authToken=npm_\u00e4\n", ""),
        ("_authToken=npm_x\n", ""),
        ("//npm.example/:_authToken=${RELEASEKIT_PYPI_TOKEN}\n", ""),
        (None, ""),
    ],
)
@pytest.mark.parametrize("variable", ["HOME", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig"])
def test_the_login_of_the_user(text: str | None, token: str, variable: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / ".npmrc").write_text(text)
    place = tmp_path if variable == "HOME" else tmp_path / ".npmrc"
    environ = {variable: str(place), "LOGIN": "npm_mine", "RELEASEKIT_PYPI_TOKEN": "pypi_mine"}
    server = Server({f"GET {STAGE}": ITEM})
    if token:
        using(server, lambda npm: npm.waiting(RECORDED), environ=environ)
        assert server.requests[0].headers["Authorization"] == f"Bearer {token}"
    else:
        with pytest.raises(MissingCredentials, match="has no login for it"):
            using(server, lambda npm: npm.waiting(RECORDED), environ=environ)
        assert server.requests == []


def test_a_login_that_a_build_may_have_written_is_not_the_users(tmp_path: Path) -> None:
    """R37: only what nobody but the user writes says where a token goes."""
    home = tmp_path / "home"
    (home / "linked").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    box = Sandbox(words="", abi=1, places=(str((tmp_path / "open").resolve()),))
    registries = {"npm": Url(ROOT, "releasekit.toml")}
    for place in (tmp_path / "open" / ".npmrc", home / ".npmrc"):
        place.write_text(NPMRC)
    (home / "linked" / ".npmrc").symlink_to(tmp_path / "open" / ".npmrc")

    def ask(place: Path) -> Server:
        server = Server({f"GET {STAGE}": ITEM})
        using(
            server,
            lambda npm: npm.waiting(RECORDED),
            environ={"NPM_CONFIG_USERCONFIG": str(place), "LOGIN": "npm_mine"},
            sandbox=box,
            registries=registries,
        )
        return server

    for place in (tmp_path / "open" / ".npmrc", home / "linked" / ".npmrc"):
        with pytest.raises(UnnamedRegistry, match="and no input does"):
            ask(place)
    assert ask(home / ".npmrc").requests


def test_nobody_has_a_home() -> None:
    with pytest.raises(MissingCredentials, match=r"no \.npmrc has no login"):
        using({}, lambda npm: npm.waiting(RECORDED), environ={})


@pytest.mark.parametrize("version", ["1.0", "1.0.0\n", "1.0.0?x=1", "1.0.0#x", "../../x"])
def test_what_is_no_version_goes_into_no_address(version: str) -> None:
    """R19"""
    odd = replace(RECORDED, package=replace(RECORDED.package, version=version))
    with pytest.raises(Rejected, match="not a name, a version and one tarball"):
        using({}, lambda npm: npm.waiting(odd))


@pytest.mark.parametrize("count", [0, 2])
def test_a_package_of_npm_has_one_tarball(count: int) -> None:
    """R19"""
    odd = replace(RECORDED, artifacts=RECORDED.artifacts * count)
    with pytest.raises(Rejected, match="one tarball"):
        using({}, lambda npm: npm.waiting(odd))


@pytest.mark.parametrize("code", ["12é456", "12\x1b[A34"])
def test_a_code_that_no_header_takes_is_not_sent(code: str) -> None:
    server = Server({})
    with pytest.raises(CodeWanted, match="nothing but digits or letters"):
        using(server, lambda npm: npm.approve(WAITING, code))
    assert server.asked == []


def test_a_page_at_a_name_that_cannot_be_read_is_none() -> None:
    """R19"""
    body = {"error": "one-time pass", "authUrl": "http://xn--a/", "doneUrl": "https://xn--a/"}
    asked = httpx.Response(401, json=body, headers={"WWW-Authenticate": "OTP"})
    with pytest.raises(CodeWanted) as error:
        using({f"POST {STAGE}/approve": asked}, lambda npm: npm.approve(WAITING, ""))
    assert error.value.page == ""


def test_what_was_decided_before_does_not_hide_what_waits() -> None:
    page = {"items": [{**ITEM, "id": "0" * 36, "status": "rejected"}, ITEM], "total": 2}
    answers = {"GET /team/-/stage?package=%40acme%2Fcore&page=0&perPage=100": page}
    assert waiting(answers, id="") == WAITING


def test_a_page_for_people_is_no_approval() -> None:
    """R15"""
    page = httpx.Response(200, content="<html>", headers={"Content-Type": "text/html"})
    with pytest.raises(Transient, match="a page for people"):
        using({f"POST {STAGE}/approve": page}, lambda npm: npm.approve(WAITING, "1"))
