from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx
import pytest

import fakes
from javascript import package, tarball
from releasekit.config.values import Url
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.npm import NpmInputs
from releasekit.ecosystems.npm.registry import NpmRegistry
from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.shared.login import describe_untold
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES
from releasekit.errors import (
    ConfigError,
    Denied,
    MissingCredentials,
    PackageError,
    Rejected,
    Transient,
    UnnamedRegistry,
)
from releasekit.host.sandbox import UNCONFINED
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.ecosystems.interface import Registry
    from releasekit.host.process import Processes
    from releasekit.model import Published

T = TypeVar("T")
PACKAGE = package()
ROOT = "https://npm.example/team/"
LOGIN = {"RELEASEKIT_NPM_TOKEN": "npm_hunter2"}
ONE, ALL = "/team/@acme%2fcore/1.0.0", "/team/@acme%2fcore"
DIGEST = f"sha512:{'ab' * 64}"
DIST = {"dist": {"integrity": f"sha512-{base64.b64encode(bytes.fromhex('ab' * 64)).decode()}"}}
IN_ACTIONS = {"GITHUB_ACTIONS": "true"}
ACTIONS = {
    **IN_ACTIONS,
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example/?x=1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


class Server:
    """Answers by method and path, the same one again when there is only one left."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = {key: value if isinstance(value, list) else [value]
                        for key, value in answers.items()}  # fmt: skip
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        key = f"{request.method} {request.url.raw_path.decode()}"
        left = self.answers.get(key, [httpx.Response(404, json={"error": "not found"})])
        answer = left.pop(0) if len(left) > 1 else left[0]
        assert isinstance(answer, httpx.Response | dict)
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    @property
    def asked(self) -> list[str]:
        return [f"{it.method} {it.url.raw_path.decode()}" for it in self.requests]


def using(
    server: Server,
    use: Callable[[Registry], Awaitable[T]],
    *,
    environ: Mapping[str, str] = LOGIN,
    place: str = ROOT,
    root: Path = Path("/workspace"),
    **changes: object,
) -> T:
    async def main() -> T:
        taken = snapshot(environ)
        registries = fakes.registries(npm=place)
        values = {"registries": registries, "max_retries": 0, "retry_base_delay": 0.0, **changes}
        config = fakes.config(root, **values)
        async with http_client(transport=httpx.MockTransport(server)) as http:
            credentials = Credentials(taken, mask=lambda _: None)
            processes = cast("Processes", Nothing())
            services = fakes.make_services(config, http, processes, credentials)
            found = await discovery(ECOSYSTEMS["npm"], config, services).discover(config.root)
            return await use(found.registry)

    return asyncio.run(main())


class Nothing:
    sandbox = UNCONFINED

    def passing(self, names: object) -> dict[str, str]:
        return {}


def lookup(server: Server, **more: object) -> Mapping[str, str] | None:
    found = using(server, lambda registry: registry.lookup(PACKAGE), **more)  # type: ignore[arg-type]
    return found.files if found else None


def upload(
    tmp_path: Path, answers: Mapping[str, object], *, manifest: object = None, **more: object
) -> Server:
    server = Server({f"PUT {ALL}": httpx.Response(201), **answers})
    artifact = tarball(tmp_path, PACKAGE, publishConfig=manifest or {})
    using(server, lambda registry: registry.upload(PACKAGE, [artifact]), **more)  # type: ignore[arg-type]
    return server


def sent(server: Server) -> dict[str, object]:
    document: dict[str, object] = json.loads(server.requests[-1].content)
    return document


VERSIONS = {"versions": {"1.0.0": DIST}}
OTHERS = {"versions": {"0.9.0": DIST}}
AGED = {"Age": "7"}


def test_a_plan_asks_one_question_and_the_token_goes_along() -> None:
    server = Server({f"GET {ALL}": VERSIONS})
    assert lookup(server) == {"acme-core-1.0.0.tgz": DIGEST}
    assert server.asked == [f"GET {ALL}"]
    assert server.requests[0].headers["Authorization"] == "Bearer npm_hunter2"
    assert server.requests[0].headers["Accept"].startswith("application/vnd.npm.install-v1+json")


@pytest.mark.parametrize(
    ("answers", "there", "more"),
    [
        ({}, False, []),
        ({f"GET {ALL}": OTHERS}, False, []),
        ({f"GET {ALL}": {"versions": []}}, False, []),
        # What a cache had kept proves no absence, and no lack of a package.
        ({f"GET {ALL}": httpx.Response(200, json=OTHERS, headers=AGED)}, False, [ONE]),
        ({f"GET {ALL}": httpx.Response(200, json=OTHERS, headers=AGED), f"GET {ONE}": DIST},
         True, [ONE]),
        ({f"GET {ALL}": httpx.Response(404, headers=AGED), f"GET {ONE}": DIST}, True, [ONE]),
        ({f"GET {ALL}": httpx.Response(200, json=VERSIONS, headers=AGED)}, True, []),
        ({f"GET {ALL}": httpx.Response(200, json=OTHERS, headers={"Age": "0"})}, False, []),
        # A packument that is refused, or too large, leaves the version.
        ({f"GET {ALL}": httpx.Response(405), f"GET {ONE}": DIST}, True, [ONE]),
        ({f"GET {ALL}": httpx.Response(200, content=b" " * (MAX_PAGE_BYTES + 1)),
          f"GET {ONE}": DIST}, True, [ONE]),
    ],
)  # fmt: skip
def test_whether_a_version_is_there_before_a_run(
    answers: Mapping[str, object], there: bool, more: list[str]
) -> None:
    """R17, R19"""
    server = Server(answers)
    assert bool(lookup(server)) is there
    assert server.asked == [f"GET {path}" for path in (ALL, *more)]


@pytest.mark.parametrize(
    ("answers", "there", "more"),
    [
        ({f"GET {ONE}": DIST}, True, [ONE]),
        ({}, False, [ONE, ALL]),
        ({f"GET {ALL}": [OTHERS, VERSIONS]}, True, [ONE, ALL]),
        ({f"GET {ONE}": httpx.Response(405), f"GET {ALL}": [OTHERS, VERSIONS]}, True, [ONE, ALL]),
    ],
)
def test_from_then_on_the_version_alone_is_asked_for(
    answers: Mapping[str, Any], there: bool, more: list[str]
) -> None:
    """R1, R15: anew each time; where it has no address of its own, the packument tells."""

    async def twice(registry: Registry) -> object:
        assert await registry.lookup(PACKAGE) is None
        return await registry.lookup(PACKAGE)

    server = Server(answers)
    assert bool(using(server, twice)) is there
    assert server.asked == [f"GET {path}" for path in (ALL, *more)]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({f"GET {ALL}": httpx.Response(503)}, Transient),
        ({f"GET {ALL}": httpx.Response(401)}, Denied),
        ({f"GET {ALL}": httpx.Response(400)}, Rejected),
        ({f"GET {ALL}": httpx.Response(400), f"GET {ONE}": httpx.Response(503)}, Transient),
        ({f"GET {ALL}": httpx.Response(200, text="<html>")}, Transient),
        ({f"GET {ALL}": httpx.Response(200, json=[])}, Transient),
        ({f"GET {ALL}": httpx.Response(304)}, Rejected),
        ({f"GET {ALL}": {"versions": {"1.0.0": {"dist": {}}}}}, Rejected),
    ],
)
def test_doubt_is_no_absence(answers: Mapping[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        lookup(Server(answers))


@pytest.mark.parametrize(
    "answers",
    [
        {f"GET {ONE}": httpx.Response(503)},
        {f"GET {ONE}": httpx.Response(200, text="<html>")},
        {f"GET {ONE}": httpx.Response(200, json=[])},
        {f"GET {ALL}": [OTHERS, httpx.Response(503)]},
    ],
)
def test_doubt_is_no_absence_later_either(answers: Mapping[str, object]) -> None:
    """R15"""

    async def twice(registry: Registry) -> None:
        assert await registry.lookup(PACKAGE) is None
        with pytest.raises(Transient):
            await registry.lookup(PACKAGE)

    using(Server(answers), twice)


def published(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, *, later_s: float
) -> list[str]:
    """What was asked, and the tag that was sent, `later_s` after the plan."""
    artifact = tarball(tmp_path, PACKAGE)

    async def main(registry: Registry) -> None:
        assert await registry.lookup(PACKAGE) is None
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + later_s)
        await registry.upload(PACKAGE, [artifact])
        server.answers[f"GET {ONE}"] = [DIST]
        assert await registry.lookup(PACKAGE) is not None

    using(server, main)
    (put,) = (it for it in server.requests if it.method == "PUT")
    return [*server.asked, *json.loads(put.content)["dist-tags"]]


PUT = {f"PUT {ALL}": httpx.Response(201)}
OLD, NEW = {"dist-tags": {"latest": "0.9.0"}}, {"dist-tags": {"latest": "2.0.0"}}


def test_a_package_takes_three_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tag is chosen by what the plan was told."""
    server = Server({**PUT, f"GET {ALL}": NEW})
    found = published(tmp_path, server, monkeypatch, later_s=5)
    assert found == [f"GET {ALL}", f"PUT {ALL}", f"GET {ONE}", "release-1.x"]


@pytest.mark.parametrize(
    ("again", "tag"), [(NEW, "release-1.x"), (httpx.Response(304), "latest"), (OLD, "latest")]
)
def test_a_tag_is_not_chosen_by_what_was_true_a_while_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: object, tag: str
) -> None:
    """Another job may have published a newer version, which is to stay `latest`."""
    first = httpx.Response(200, json=OLD, headers={"ETag": '"one"'})
    server = Server({**PUT, f"GET {ALL}": [first, again]})
    found = published(tmp_path, server, monkeypatch, later_s=100)
    assert found == [f"GET {ALL}", f"GET {ALL}", f"PUT {ALL}", f"GET {ONE}", tag]
    assert "If-None-Match" not in server.requests[0].headers
    assert server.requests[1].headers["If-None-Match"] == '"one"'


@pytest.mark.parametrize("etag", ["", "x" * 1000])
def test_a_mark_of_any_length_is_not_sent_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etag: str
) -> None:
    """R40"""
    answer = httpx.Response(200, json=OLD, headers={"ETag": etag})
    server = Server({**PUT, f"GET {ALL}": answer})
    assert "latest" in published(tmp_path, server, monkeypatch, later_s=100)
    assert "If-None-Match" not in server.requests[1].headers


def test_whose_package_is_unknown_is_told_by_the_plan() -> None:
    async def ask(registry: Registry) -> tuple[bool, bool]:
        assert isinstance(registry, NpmRegistry)
        before = registry.is_new(PACKAGE.id)
        await registry.lookup(PACKAGE)
        return before, registry.is_new(PACKAGE.id)

    assert using(Server({}), ask) == (False, True)
    assert using(Server({f"GET {ALL}": OTHERS}), ask) == (False, False)


@pytest.mark.parametrize(
    ("packument", "config", "changes", "tag"),
    [
        ({}, {}, {}, "latest"),
        ({"dist-tags": {"latest": "0.9.0"}}, {}, {}, "latest"),
        ({"dist-tags": {"latest": "2.0.0"}}, {}, {}, "release-1.x"),
        ({"dist-tags": {"latest": "2.0.0"}}, {"tag": "latest"}, {}, "latest"),
        (
            {"dist-tags": {"latest": "2.0.0"}},
            {"tag": "own"},
            {"ecosystem_inputs": [NpmInputs(tag="given")]},
            "given",
        ),
    ],
)
def test_latest_only_goes_forward_unless_told(
    tmp_path: Path,
    packument: dict[str, object],
    config: dict[str, object],
    changes: dict[str, object],
    tag: str,
) -> None:
    answers = {f"GET {ALL}": packument} if packument else {}
    server = upload(tmp_path, answers, manifest=config, **changes)
    assert sent(server)["dist-tags"] == {tag: "1.0.0"}
    assert server.requests[-1].headers["Authorization"] == "Bearer npm_hunter2"


def test_access_is_said_only_where_somebody_said_it(tmp_path: Path) -> None:
    assert "access" not in sent(upload(tmp_path, {}))
    assert "access" not in sent(upload(tmp_path, {}, manifest={"access": "odd"}))
    own = upload(tmp_path, {}, manifest={"access": "public"})
    assert sent(own)["access"] == "public"
    told = upload(
        tmp_path,
        {},
        manifest={"access": "public"},
        ecosystem_inputs=[NpmInputs(access="restricted")],
    )
    assert sent(told)["access"] == "restricted"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (403, "You cannot publish over the previously published versions: 1.0.0."),
        (403, "403 Forbidden - Package already exists."),
        (400, "Repository does not allow updating assets: npm"),
    ],
)
def test_a_version_that_exists_counts_as_accepted(tmp_path: Path, status: int, text: str) -> None:
    """R17"""
    upload(tmp_path, {f"PUT {ALL}": httpx.Response(status, json={"error": text})})


def test_409_is_no_proof(tmp_path: Path) -> None:
    """R15"""
    conflict = {f"PUT {ALL}": httpx.Response(409, json={"error": "Failed to save packument"})}
    with pytest.raises(Transient, match="Failed to save packument") as caught:
        upload(tmp_path, conflict)
    assert caught.value.ambiguous
    upload(tmp_path, {**conflict, f"GET {ONE}": DIST})


@pytest.mark.parametrize(
    ("status", "text", "error", "hint"),
    [
        (401, "", Denied, "does not know it"),
        (401, "This operation requires a one-time pass", Denied, "second factor"),
        (402, "Payment Required", Rejected, "npm-access: public"),
        (403, "Two-factor authentication is required", Denied, "second factor"),
        (403, "You do not have permission", Denied, "may not publish this package"),
        (404, "Not found", Denied, "answers 404"),
        (422, "invalid", Rejected, ""),
        (500, "oops", Transient, ""),
        (307, "", Rejected, "npm-registry"),
    ],
)
def test_what_is_refused_is_explained(
    tmp_path: Path, status: int, text: str, error: type[PackageError], hint: str
) -> None:
    headers = {"Location": "https://elsewhere.example/"} if status == 307 else {}
    answer = httpx.Response(status, json={"error": text}, headers=headers)
    with pytest.raises(error) as caught:
        upload(tmp_path, {f"PUT {ALL}": answer})
    assert str(caught.value).startswith("npm:@acme/core 1.0.0")
    assert hint in caught.value.hint
    assert "hunter2" not in f"{caught.value!r}{caught.value.hint}"


@pytest.mark.parametrize(
    ("status", "error", "ambiguous"),
    [
        (400, Rejected, None),
        (401, Denied, None),
        (403, Denied, None),
        (404, Denied, None),
        (409, Transient, True),
        (413, Rejected, None),
        (422, Rejected, None),
        (429, Transient, False),
        (500, Transient, True),
        (502, Transient, True),
        (503, Transient, True),
    ],
)
@pytest.mark.parametrize(
    "body",
    [{"error": "the keeper says no"}, {"message": "the keeper says no"}],
    ids=["error", "message"],
)
def test_an_error_brings_the_registrys_own_words(
    tmp_path: Path,
    status: int,
    error: type[PackageError],
    ambiguous: bool | None,
    body: dict[str, str],
) -> None:
    """R15: and says whether the bytes may have been stored all the same."""
    answer = httpx.Response(status, json=body, headers={"Retry-After": "1800"})
    with pytest.raises(error, match="the keeper says no") as caught:
        upload(tmp_path, {f"PUT {ALL}": answer})
    assert type(caught.value) is error
    if isinstance(caught.value, Transient):
        assert caught.value.ambiguous is ambiguous
        if status != 409:
            assert caught.value.retry_after == 1800.0


@pytest.mark.parametrize(
    ("version", "packument", "tag"),
    [
        ("2.0.0-beta.1", {}, "beta"),
        ("2.0.0-beta.1", {"dist-tags": {"latest": "1.0.0"}}, "beta"),
        ("2.0.0-0", {"dist-tags": {"latest": "1.0.0"}}, "next"),
        ("2.0.0-latest.1", {"dist-tags": {"latest": "1.0.0"}}, "next"),
        ("2.0.0-rc.1", {"dist-tags": {"latest": "2.0.0-beta.1"}}, "rc"),
    ],
)
def test_a_prerelease_is_never_sent_as_latest(
    tmp_path: Path, version: str, packument: dict[str, object], tag: str
) -> None:
    target = package(version=version)
    server = Server({f"PUT {ALL}": httpx.Response(201), f"GET {ALL}": packument})
    artifact = tarball(tmp_path, target)
    using(server, lambda registry: registry.upload(target, [artifact]))
    assert sent(server)["dist-tags"] == {tag: version}


@pytest.mark.parametrize(
    ("version", "tag"), [("0.0.0-pr-9.20261121.g1a2b3c", "pr-9"), ("2.0.0-rc.1", "latest")]
)
def test_latest_in_a_manifest_is_not_for_prereleases_below_it(
    tmp_path: Path, version: str, tag: str
) -> None:
    """A snapshot without `npm-tag` would be what everybody installs."""
    target = package(version=version)
    known = {"dist-tags": {"latest": "1.0.0"}}
    server = Server({f"PUT {ALL}": httpx.Response(201), f"GET {ALL}": known})
    artifact = tarball(tmp_path, target, publishConfig={"tag": "latest"})
    using(server, lambda registry: registry.upload(target, [artifact]))
    assert sent(server)["dist-tags"] == {tag: version}


ADD_TAG = "npm dist-tag add @acme/core@1.0.0 release-1.x"


@pytest.mark.parametrize(
    ("tags", "lacks"),
    [
        ({"latest": "2.0.0"}, f"there is no dist-tag release-1.x (`{ADD_TAG}` makes it)"),
        ({"latest": "2.0.0", "release-1.x": "1.0.0"}, ""),
    ],
)
def test_a_dist_tag_that_a_refusal_has_left_out_is_told(
    tmp_path: Path, tags: dict[str, str], lacks: str
) -> None:
    """R57: a registry may store a version, then answer 400 for its tag."""
    before = {"dist-tags": {"latest": "2.0.0"}, "versions": {}}
    after = {"dist-tags": tags, **VERSIONS}
    refusal = httpx.Response(400, json={"error": "The tag name is invalid"})
    server = Server({f"PUT {ALL}": refusal, f"GET {ALL}": [before, after], f"GET {ONE}": DIST})

    async def use(registry: Registry) -> list[Published | None]:
        with pytest.raises(Rejected, match="tag name is invalid"):
            await registry.upload(PACKAGE, [artifact])
        return [await registry.lookup(PACKAGE) for _ in range(2)]

    artifact = tarball(tmp_path, PACKAGE)
    for found in using(server, use):
        assert found is not None
        assert found.lacks == lacks


@pytest.mark.parametrize(
    ("config", "sent"),
    [({}, ("next", "public")), ({"tag": "own", "access": "restricted"}, ("own", "restricted"))],
)
def test_settings_of_the_workspace_count_where_the_package_says_nothing(
    tmp_path: Path, config: dict[str, str], sent: tuple[str, str]
) -> None:
    """R66: `tag` and `access` of .npmrc, `npmPublishAccess` of .yarnrc.yml."""

    async def upload(registry: Registry) -> None:
        assert isinstance(registry, NpmRegistry)
        registry.usual = {PACKAGE.id.name: {"tag": "next", "access": "public"}}
        await registry.upload(PACKAGE, [artifact])

    artifact = tarball(tmp_path, PACKAGE, publishConfig=config)
    server = Server({**PUT, f"GET {ALL}": OLD})
    using(server, upload)
    (put,) = (it for it in server.requests if it.method == "PUT")
    document = json.loads(put.content)
    assert (*document["dist-tags"], document["access"]) == sent


def test_nothing_is_sent_where_latest_cannot_be_told(tmp_path: Path) -> None:
    """Without the packument a backport would become latest."""
    answers = {f"GET {ALL}": httpx.Response(503, json={"error": "later"})}
    server = Server({f"PUT {ALL}": httpx.Response(201), **answers})
    artifact = tarball(tmp_path, PACKAGE)
    with pytest.raises(Transient) as caught:
        using(server, lambda registry: registry.upload(PACKAGE, [artifact]))
    assert not caught.value.ambiguous
    assert all(it.method == "GET" for it in server.requests)


@pytest.mark.parametrize(
    ("name", "path", "attachment"),
    [
        ("@acme/core", "/team/@acme%2fcore", "@acme/core-1.0.0.tgz"),
        ("lone.js", "/team/lone.js", "lone.js-1.0.0.tgz"),
        ("@a.b/c_d~e", "/team/@a.b%2fc_d~e", "@a.b/c_d~e-1.0.0.tgz"),
    ],
)
def test_a_scope_is_part_of_one_segment(
    tmp_path: Path, name: str, path: str, attachment: str
) -> None:
    """https://github.com/npm/npm-package-arg: `escapedName`"""
    target = package(name)
    server = Server({f"PUT {path}": httpx.Response(201)})
    artifact = tarball(tmp_path, target)
    using(server, lambda registry: registry.upload(target, [artifact]))
    assert server.asked == [f"GET {path}", f"PUT {path}"]
    document = sent(server)
    assert list(document["_attachments"]) == [attachment]  # type: ignore[call-overload]
    entry = document["versions"]["1.0.0"]  # type: ignore[index]
    assert entry["_id"] == f"{name}@1.0.0"
    assert entry["dist"]["tarball"] == f"https://npm.example/team/{name}/-/{attachment}"


def test_what_is_no_npm_package_is_not_sent(tmp_path: Path) -> None:
    artifact = tarball(tmp_path, PACKAGE, {"package.json": "7"})
    server = Server({})
    with pytest.raises(PackageError, match="not a tarball of an npm package"):
        using(server, lambda registry: registry.upload(PACKAGE, [artifact]))
    assert not server.requests


def test_a_page_for_people() -> None:
    server = Server({"GET /@acme%2fcore": VERSIONS})
    found = using(server, lambda registry: registry.lookup(PACKAGE), place="")
    assert found is not None
    assert found.url == "https://www.npmjs.com/package/@acme/core/v/1.0.0"
    assert using(server, _url) == ROOT


async def _url(registry: Registry) -> str:
    return registry.url


async def _check(registry: Registry) -> None:
    registry.check_credentials()


def test_a_token_or_a_directory_is_all_it_takes(tmp_path: Path) -> None:
    using(Server({}), _check)
    using(Server({}), _check, environ={}, place=f"dir:{tmp_path}")


def test_bad_places_and_tags_are_found_at_once() -> None:
    """R37"""
    with pytest.raises(ConfigError, match="npm-registry"):
        using(Server({}), _check, place="http://npm.example/")
    with pytest.raises(ConfigError, match="npm-tag"):
        using(Server({}), _check, ecosystem_inputs=[NpmInputs(tag="1.x")])


@pytest.mark.parametrize(
    ("environ", "place", "changes", "words"),
    [
        ({}, ROOT, {}, "RELEASEKIT_NPM_TOKEN is not set"),
        ({}, "", {}, "jobs of github.com, gitlab.com and CircleCI only"),
        ({}, "", {}, "Set the environment variable RELEASEKIT_NPM_TOKEN to"),
        (IN_ACTIONS, "", {}, "`npm-token: ${{ secrets.NPM_TOKEN }}`"),
        (IN_ACTIONS, "", {}, "no `id-token: write` permission"),
        (IN_ACTIONS, "", {}, "`permissions: { contents: read, id-token: write }`"),
        (LOGIN | IN_ACTIONS, ROOT, {"trusted_publishing": "always"}, "id-token: write"),
        (ACTIONS, ROOT, {}, "RELEASEKIT_NPM_TOKEN is not set"),
        (ACTIONS, "", {"trusted_publishing": "never"}, "RELEASEKIT_NPM_TOKEN is not set"),
    ],
)
def test_missing_credentials_say_what_to_set(
    tmp_path: Path,
    environ: Mapping[str, str],
    place: str,
    changes: dict[str, Any],
    words: str,
) -> None:
    with pytest.raises(MissingCredentials) as caught:
        using(Server({}), _check, environ=environ, place=place, **changes)
    assert words in str(caught.value) + caught.value.hint
    assert "\n" not in caught.value.hint
    assert environ or "permission" not in caught.value.hint
    artifact = tarball(tmp_path, PACKAGE)
    with pytest.raises(MissingCredentials):
        using(Server({}), lambda registry: registry.upload(PACKAGE, [artifact]), environ=environ,
              place=place, **changes)  # fmt: skip
    assert lookup(Server({}), environ=environ, place=place, **changes) is None


@pytest.mark.parametrize(
    ("environ", "changes", "sent"),
    [
        ({}, {}, "Bearer npm_mine"),
        (LOGIN, {}, f"Bearer {next(iter(LOGIN.values()))}"),
        (IN_ACTIONS, {}, "Bearer npm_mine"),
        (IN_ACTIONS, {"place": ""}, None),
        ({}, {"trusted_publishing": "always"}, None),
    ],
)
def test_on_a_laptop_the_login_of_npm_will_do(
    tmp_path: Path, environ: Mapping[str, str], changes: dict[str, Any], sent: str | None
) -> None:
    """R38: and the plan says whose token it is."""
    home = tmp_path / "home"
    home.mkdir()
    for place in (ROOT.removeprefix("https:").rstrip("/"), "//registry.npmjs.org"):
        with (home / ".npmrc").open("a") as file:
            file.write(f"{place}/:_authToken=npm_mine\n")
    server = Server({f"PUT {ALL}": httpx.Response(201)})
    artifact = tarball(tmp_path, PACKAGE)

    async def use(registry: Registry) -> str:
        assert isinstance(registry, NpmRegistry)
        note = registry.plan_notes([])
        await registry.upload(PACKAGE, [artifact])
        return note

    environ = {**environ, "HOME": str(home)}
    if sent is None:
        with pytest.raises(MissingCredentials):
            using(server, use, environ=environ, **changes)
        return
    note = using(server, use, environ=environ, **changes)
    own = f"npm: the token for {ROOT} is that of {home / '.npmrc'}"
    assert note == ("" if environ.get("RELEASEKIT_NPM_TOKEN") else own)
    assert server.requests[-1].headers["Authorization"] == sent


PLACE = "//npm.example/team"
BASIC = "Basic bWU6c2VjcmV0"  # me:secret


@pytest.mark.parametrize(
    ("lines", "sent"),
    [
        (f"{PLACE}/:_authToken=npm_mine", "Bearer npm_mine"),
        (f"{PLACE}/:_auth=bWU6c2VjcmV0", BASIC),
        (f"{PLACE}/:_auth = 'bWU6c2VjcmV0'\n{PLACE}/:_authToken=npm_mine", "Bearer npm_mine"),
        (f"{PLACE}/:username=me\n{PLACE}/:_password=c2VjcmV0", BASIC),
        (f"{PLACE}:username=me\n{PLACE}:_password=${{WORD}}", BASIC),
        # As Node reads base64, and npm an .npmrc.
        ("//npm.example/:username=me\n//npm.example/:_password=c2Vj cmV0=x", BASIC),
        (f"\ufeff{PLACE}/:_authToken = npm_mine ; ours\r\n{PLACE}/:email=x # y", "Bearer npm_mine"),
        (f"{PLACE}/:_authToken=npm\\#mine#ours", "Bearer npm#mine"),
        (f"{PLACE}/:_authToken=npm${{NOPE?}}_${{END?}}", "Bearer npm_mine"),
        (f"{PLACE}/:_authToken=${{NOPE}}\n//npm.example/:_auth=${{PAIR}}", BASIC),
        (f"[other]\n{PLACE}/:_authToken=npm_mine", None),
        (f"{PLACE}/:username=j\u00f6rg\n{PLACE}/:_password=c2VjcmV0", "Basic asO2cmc6c2VjcmV0"),
        (f"{PLACE}/:_authToken=npm_\u00e4", None),
        (f"; {PLACE}/:_authToken=npm_mine", None),
        (f"; \x0c{PLACE}/:_authToken=npm_mine", None),
        # Half a login is none, and the next one above counts.
        (f"{PLACE}/:username=you\n//npm.example/:_authToken=npm_mine", "Bearer npm_mine"),
        (f"{PLACE}/:_password=c2VjcmV0", None),
        (f"{PLACE}/:_authToken=${{ABSENT}}", None),
        (f"{PLACE}/:_authToken=XXXXX-XXXXX-XXXXX-XXXXX", None),
        ("//npm.example/other/:_authToken=npm_mine", None),
        ("_auth=bWU6c2VjcmV0", None),
    ],
)
@pytest.mark.parametrize("environ", [{}, IN_ACTIONS])
def test_every_login_of_npmrc_will_do_for_a_registry_of_ones_own(
    tmp_path: Path, lines: str, sent: str | None, environ: Mapping[str, str]
) -> None:
    """R38, R66: in a job, too."""
    (tmp_path / "npmrc").write_text(lines + "\n")
    values = {"WORD": "c2VjcmV0", "END": "mine", "PAIR": "bWU6c2VjcmV0"}
    given = {"NPM_CONFIG_USERCONFIG": str(tmp_path / "npmrc"), **values, **environ}
    server = Server({"PUT /team/@acme%2fcore": httpx.Response(201)})
    artifact = tarball(tmp_path, PACKAGE)

    async def use(registry: Registry) -> None:
        await registry.upload(PACKAGE, [artifact])

    if sent is None:
        with pytest.raises(MissingCredentials):
            using(server, use, environ=given, place="https://npm.example/team/")
        return
    using(server, use, environ=given, place="https://npm.example/team/")
    assert server.requests[-1].headers["Authorization"] == sent


@pytest.mark.parametrize(
    ("environ", "only_in", "sent"),
    [
        ({}, "", True),  # a home directory may be a checkout
        ({}, "releasekit.toml", False),
        (IN_ACTIONS, "", False),
        (LOGIN, "releasekit.toml", False),  # what is withheld has nothing in its place
    ],
)
def test_a_login_in_the_checkout_counts_for_its_user_alone(
    tmp_path: Path, environ: Mapping[str, str], only_in: str, sent: bool
) -> None:
    """R38: a pull request could have written it."""
    (tmp_path / "npmrc").write_text(f"{PLACE}/:_authToken=npm_mine\n")
    server = Server({"PUT /team/@acme%2fcore": httpx.Response(201)})
    artifact = tarball(tmp_path, PACKAGE)
    goes_to = {"npm": Url("https://npm.example/team/", only_in)}

    async def use(registry: Registry) -> None:
        await registry.upload(PACKAGE, [artifact])

    given = {"NPM_CONFIG_USERCONFIG": str(tmp_path / "npmrc"), **environ}
    if sent:
        using(server, use, environ=given, root=tmp_path, registries=goes_to)
        assert server.requests[-1].headers["Authorization"] == "Bearer npm_mine"
        return
    with pytest.raises((MissingCredentials, UnnamedRegistry)):
        using(server, use, environ=given, root=tmp_path, registries=goes_to)
    assert server.requests == []


def test_a_login_for_a_place_with_a_blank_in_it_is_found(tmp_path: Path) -> None:
    """As projects of Azure have them."""
    (tmp_path / "npmrc").write_text("//npm.example/a%20b/npm/:_authToken=npm_mine\n")
    server = Server({"PUT /a%20b/npm/@acme%2fcore": httpx.Response(201)})
    environ = {"NPM_CONFIG_USERCONFIG": str(tmp_path / "npmrc")}
    artifact = tarball(tmp_path, PACKAGE)

    async def use(registry: Registry) -> None:
        await registry.upload(PACKAGE, [artifact])

    using(server, use, environ=environ, place="https://npm.example/a%20b/npm/")
    assert server.requests[-1].headers["Authorization"] == "Bearer npm_mine"


EXCHANGE = "POST /-/npm/v1/oidc/token/exchange/package/@acme%2fcore"
ID_TOKEN = {"GET /?x=1&audience=npm%3Aregistry.npmjs.org": {"value": "id-token-value"}}


def trusted(tmp_path: Path, *exchanges: httpx.Response, max_retries: int = 0) -> Server:
    server = Server({**ID_TOKEN, EXCHANGE: [*exchanges], "PUT /@acme%2fcore": httpx.Response(201)})
    artifact = tarball(tmp_path, PACKAGE)

    async def use(registry: Registry) -> None:
        registry.check_credentials()
        assert await registry.lookup(PACKAGE) is None
        await registry.upload(PACKAGE, [artifact])

    using(server, use, environ=ACTIONS, place="", max_retries=max_retries)
    return server


def test_trusted_publishing_makes_a_token_for_each_package(tmp_path: Path) -> None:
    """R38: https://docs.npmjs.com/trusted-publishers"""
    server = trusted(tmp_path, httpx.Response(201, json={"token": "npm_minted"}))
    by_place = dict(zip(server.asked, server.requests, strict=True))
    assert by_place[EXCHANGE].headers["Authorization"] == "Bearer id-token-value"
    assert by_place["PUT /@acme%2fcore"].headers["Authorization"] == "Bearer npm_minted"
    assert "Authorization" not in by_place["GET /@acme%2fcore"].headers


def test_trusted_publishing_that_is_refused_says_what_to_register(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="package not found") as caught:
        trusted(tmp_path, httpx.Response(404, json={"message": "package not found"}))
    assert "https://www.npmjs.com/package/@acme/core/access" in caught.value.hint
    assert "the runner has to be GitHub's own" in caught.value.hint


def test_trusted_publishing_is_tried_again(tmp_path: Path) -> None:
    good = httpx.Response(201, json={"token": "npm_minted"})
    server = trusted(tmp_path, httpx.Response(503), httpx.Response(200, json={}), good,
                     max_retries=2)  # fmt: skip
    assert server.asked.count(EXCHANGE) == 3
    with pytest.raises(Transient) as caught:
        trusted(tmp_path, httpx.Response(503))
    assert not caught.value.ambiguous


OTHER = package("@acme/other")


def rights(server: Server, *, proving: bool = True, **more: Any) -> RightsFound:
    async def use(registry: Registry) -> RightsFound:
        assert isinstance(registry, NpmRegistry)
        return await registry.find_rights([PACKAGE, OTHER], proving=proving)

    return using(server, use, **more)


def test_each_package_has_to_trust_the_job_before_one_is_sent() -> None:
    """R38"""
    second = EXCHANGE.replace("core", "other")
    missing = httpx.Response(404, json={"message": "package not found"})
    made = httpx.Response(201, json={"token": "npm_minted"})
    server = Server({**ID_TOKEN, EXCHANGE: made, second: missing})
    found = rights(server, environ=ACTIONS, place="").denied
    assert [*found] == [OTHER.id]
    assert "package not found" in str(found[OTHER.id])
    assert "https://www.npmjs.com/package/@acme/other/access" in found[OTHER.id].hint
    asked = len(server.asked)
    assert rights(server, environ=ACTIONS, place="", proving=False) == RightsFound()
    assert len(server.asked) == asked


def test_a_token_that_npm_does_not_know_may_publish_nothing() -> None:
    """https://github.com/npm/registry/blob/main/docs/user/authentication.md (npm whoami)"""
    dead = Server({"GET /-/whoami": httpx.Response(401)})
    found = rights(dead, place="").denied
    assert {*found} == {PACKAGE.id, OTHER.id}
    assert "or it has expired" in found[OTHER.id].hint
    assert dead.requests[0].headers["Authorization"] == "Bearer npm_hunter2"
    untold = RightsFound(note=describe_untold("registry.npmjs.org"))
    assert rights(Server({"GET /-/whoami": {"username": "me"}}), place="") == untold
    assert rights(Server({"GET /-/whoami": httpx.Response(404)}), place="") == untold
    elsewhere = Server({})
    untold = RightsFound(note=describe_untold("npm.example"))
    assert rights(elsewhere) == untold  # other servers may answer anything
    assert elsewhere.asked == []


def test_packages_that_npm_does_not_list_as_writable_are_a_doubt() -> None:
    """https://docs.npmjs.com/cli/v11/commands/npm-access: one request for all of them."""
    listing: dict[str, object] = {
        PACKAGE.id.name: "write",
        OTHER.id.name: "read",
        "@acme/else": "write",
    }
    server = Server({"GET /-/whoami": {"username": "me@x"}, "GET /-/user/me%40x/package": listing})
    found = rights(server, place="")
    assert found.denied == {}
    assert found.note == (
        "as far as npm tells, me@x may not publish @acme/other: see `npm access list packages me@x`"
    )
    assert server.asked == ["GET /-/whoami", "GET /-/user/me%40x/package"]
    listing[OTHER.id.name] = ["write"]
    assert "may not publish @acme/other" in rights(server, place="").note
    listing[OTHER.id.name] = "read-write"
    assert rights(server, place="").note == describe_untold("registry.npmjs.org")


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[1]),
        httpx.Response(200, content=b" " * (MAX_PAGE_BYTES + 1)),
        httpx.Response(500),
    ],
)
def test_what_only_raises_doubts_stops_no_release(answer: httpx.Response) -> None:
    server = Server({"GET /-/whoami": {"username": "me"}, "GET /-/user/me/package": answer})
    assert rights(server, place="") == RightsFound(note=describe_untold("registry.npmjs.org"))
