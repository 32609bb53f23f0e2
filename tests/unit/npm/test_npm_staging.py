from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

import httpx
import pytest

import fakes
from javascript import Passing, package, tarball, write
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.folders import discovery
from releasekit.ecosystems.npm import document
from releasekit.ecosystems.npm.target import describe_scans
from releasekit.errors import (
    Denied,
    DigestMismatch,
    PackageError,
    Rejected,
    StageOnly,
    Transient,
)
from releasekit.fields import replace
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import (
    Action,
    Dependency,
    DependencyKind,
    PackageId,
    PlannedPackage,
    Staged,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Staging, Target
    from releasekit.host.process import Processes
    from releasekit.model import Artifact

T = TypeVar("T")
PACKAGE = package()
ID = "1de6f3db-2ed9-4d72-b3dd-8f0e2b474a2f"
NPMJS = "https://registry.npmjs.org/"
OTHER = "https://npm.example/team/"
REVIEW = "https://www.npmjs.com/settings/~/staged-packages"
TOKEN = {"RELEASEKIT_NPM_TOKEN": "npm_hunter2"}
ACTIONS = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example/?x=1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}
OIDC_DENIED = httpx.Response(403, json={"error": "OIDC permission denied for this action"})
STAGE_REQUIRED = httpx.Response(
    403, json={"error": "This token cannot publish", "code": "E_STAGE_REQUIRED"}
)
HELD = httpx.Response(409, json={"error": 'Cannot publish over previously staged version "1.0.0".'})
PUBLISHED = httpx.Response(
    403, json={"error": "You cannot publish over the previously published versions: 1.0.0."}
)
STAGED_ALREADY = httpx.Response(
    409, json={"error": 'Cannot stage previously published version "1.0.0".'}
)


class Npm:
    """What a registry says to a publish, a staging and a list, and shows; anybody may ask."""

    def __init__(
        self,
        *,
        publish: httpx.Response | None = None,
        stage: httpx.Response | None = None,
        listed: object = (),
        status: object = None,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        self.publish = publish or httpx.Response(200, json={"success": True})
        self.stage = stage or httpx.Response(201, json={"stageId": ID})
        self.listed = listed
        self.status = status
        self.shown = shown or {}
        self.page_limit = 100
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        path = request.url.raw_path.decode()
        if request.url.host == "token.example":
            return httpx.Response(200, json={"value": "id-token"})
        if "/oidc/" in path:
            return httpx.Response(201, json={"token": "npm_minted"})
        if request.method == "PUT":
            return self.publish
        if request.method == "POST":
            return self.stage
        if "/-/stage?" in path:
            return self._list(request)
        if path == "/-/package/@acme%2fcore/version/1.0.0/status":
            if isinstance(self.status, httpx.Response):
                return self.status
            return httpx.Response(200 if self.status else 404, json={"status": self.status})
        shown = (
            self.shown.get("versions", {}).get("1.0.0") if path.endswith("/1.0.0") else self.shown
        )
        return httpx.Response(200, json=shown) if shown else httpx.Response(404, json={})

    def _list(self, request: httpx.Request) -> httpx.Response:
        if isinstance(self.listed, httpx.Response):
            return self.listed
        items = list(cast("tuple[object]", self.listed))
        page, size = (int(request.url.params[key]) for key in ("page", "perPage"))
        size = min(size, self.page_limit)
        found = items[page * size : (page + 1) * size]
        return httpx.Response(200, json={"items": found, "total": len(items)})

    @property
    def sent(self) -> list[str]:
        return [
            f"{it.method} {it.url.raw_path.decode()}"
            for it in self.requests
            if it.method in {"PUT", "POST"} and "oidc" not in it.url.path
        ]


def using(
    server: Npm,
    root: Path,
    use: Callable[[Target], Awaitable[T]],
    *,
    environ: Mapping[str, str] = TOKEN,
    place: str = NPMJS,
    **changes: object,
) -> T:
    home = write(root, {"package.json": {"name": "@acme/core", "version": "1.0.0"}})

    async def main() -> T:
        taken = snapshot(environ)
        values = {"registries": fakes.registries(npm=place), "max_retries": 0,
                  "retry_base_delay": 0.0, **changes}  # fmt: skip
        config = fakes.config(home, **values)
        async with http_client(transport=httpx.MockTransport(server)) as http:
            credentials = Credentials(taken, mask=lambda _: None)
            processes = cast("Processes", Passing())
            services = fakes.make_services(config, http, processes, credentials)
            return await use(await discovery(ECOSYSTEMS["npm"], config, services).discover(home))

    return asyncio.run(main())


def staging_of(target: Target) -> Staging:
    assert target.staging is not None
    return target.staging


def staged(server: Npm, tmp_path: Path, artifact: Artifact, **more: object) -> Staged:
    async def use(target: Target) -> Staged:
        found = await staging_of(target).stage({PACKAGE: [artifact]})
        return found[PACKAGE.id]

    return using(server, tmp_path, use, **more)  # type: ignore[arg-type]


def upload(server: Npm, tmp_path: Path, artifact: Artifact, **more: object) -> None:
    using(server, tmp_path, lambda it: it.registry.upload(PACKAGE, [artifact]), **more)  # type: ignore[arg-type]


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    (tmp_path / "built").mkdir()
    return tarball(tmp_path / "built", PACKAGE)


def item(artifact: Artifact, **changes: object) -> dict[str, object]:
    return {
        "id": ID,
        "packageName": "@acme/core",
        "version": "1.0.0",
        "tag": "next",
        "shasum": artifact.digests["sha1"],
        **changes,
    }


def test_staging_sends_the_very_document_of_a_publish(tmp_path: Path, artifact: Artifact) -> None:
    """R18"""
    server = Npm()
    upload(server, tmp_path, artifact)
    assert staged(server, tmp_path, artifact) == Staged(id=ID, url=REVIEW, tag="latest")
    assert server.sent == ["PUT /@acme%2fcore", "POST /-/stage/package/@acme%2fcore"]
    published, held = (it for it in server.requests if it.method in {"PUT", "POST"})
    assert held.content == published.content
    assert json.loads(held.content)["dist-tags"] == {"latest": "1.0.0"}
    assert held.headers["npm-command"] == "stage"
    assert held.headers["Authorization"] == "Bearer npm_hunter2"


def test_trusted_publishing_stages_with_a_token_of_the_package(
    tmp_path: Path, artifact: Artifact
) -> None:
    """R38"""
    server = Npm()
    assert staged(server, tmp_path, artifact, environ=ACTIONS).id == ID
    assert server.requests[-1].headers["Authorization"] == "Bearer npm_minted"


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (OIDC_DENIED, "allowed actions"),
        (STAGE_REQUIRED, "leave `stage` at `auto`"),
        (httpx.Response(403, json={"error": "Run npm stage publish instead"}), "`stage`"),
        (
            httpx.Response(
                403, json={"error": "See https://gh.io/bypass-2fa-tokens-no-longer-publish"}
            ),
            "`stage`",
        ),
        (httpx.Response(403, json={"error": "Two-factor authentication is required"}), "factor"),
        (httpx.Response(401, json={"error": "You must provide a one-time pass."}), "factor"),
        (httpx.Response(401, headers={"WWW-Authenticate": "OTP"}, json={}), ""),
        (httpx.Response(403, json={"error": "dual-use packages must be staged"}), "contentPolicy"),
    ],
)
def test_a_refusal_of_whoever_may_only_stage_says_so(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response, hint: str
) -> None:
    with pytest.raises(StageOnly, match=r"^npm:@acme/core 1\.0\.0: HTTP 40[13]") as caught:
        upload(Npm(publish=answer), tmp_path, artifact)
    assert hint in caught.value.hint


@pytest.mark.parametrize("status", [401, 403])
def test_a_second_factor_says_nothing_of_staging_elsewhere(
    tmp_path: Path, artifact: Artifact, status: int
) -> None:
    """Most servers have no staging, and what they do have is what the user should hear of."""
    answer = httpx.Response(status, json={"error": "You must provide a one-time pass."})
    with pytest.raises(Denied) as caught:
        upload(Npm(publish=answer), tmp_path, artifact, place=OTHER)
    assert type(caught.value) is Denied
    assert "second factor" in caught.value.hint


@pytest.mark.parametrize("name", ["@acme/dual-use", "two-factor", "@two-factor/kit"])
@pytest.mark.parametrize("place", [NPMJS, OTHER])
def test_a_name_in_a_refusal_says_nothing_of_staging(tmp_path: Path, name: str, place: str) -> None:
    """Registries repeat the name of what they refuse."""
    named = package(name)
    answer = httpx.Response(403, json={"error": f"You may not publish {name}"})

    async def use(target: Target) -> None:
        await target.registry.upload(named, [tarball(tmp_path, named)])

    with pytest.raises(Denied) as caught:
        using(Npm(publish=answer), tmp_path, use, place=place)
    assert type(caught.value) is Denied


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (STAGE_REQUIRED, 1),  # of the token
        (httpx.Response(403, json={"error": "Two-factor authentication is required"}), 2),
    ],
)
def test_a_token_that_may_only_stage_sends_no_other_package_in_vain(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response, sent: int
) -> None:
    server = Npm(publish=answer)

    async def use(target: Target) -> None:
        for _ in range(2):
            with pytest.raises(StageOnly, match=r"HTTP 403 "):
                await target.registry.upload(PACKAGE, [artifact])

    using(server, tmp_path, use)
    assert len(server.sent) == sent


@pytest.mark.parametrize("answer", [OIDC_DENIED, STAGE_REQUIRED])
def test_each_package_has_a_trusted_publisher_of_its_own(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response
) -> None:
    server = Npm(publish=answer)

    async def use(target: Target) -> None:
        for _ in range(2):
            with pytest.raises(StageOnly):
                await target.registry.upload(PACKAGE, [artifact])

    using(server, tmp_path, use, environ=ACTIONS)
    assert len(server.sent) == 2


@pytest.mark.parametrize("answer", [HELD, STAGED_ALREADY, PUBLISHED])
def test_what_is_staged_already_counts_as_accepted(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response
) -> None:
    """R15: with its identifier and its own tag, where this identity may ask."""
    server = Npm(stage=answer, listed=[item(artifact)])
    assert staged(server, tmp_path, artifact) == Staged(id=ID, url=REVIEW, tag="next")


@pytest.mark.parametrize("answer", [HELD, STAGED_ALREADY, PUBLISHED])
@pytest.mark.parametrize(
    "more",
    [
        {"environ": ACTIONS, "listed": httpx.Response(500)},
        {"listed": httpx.Response(401, json={"message": "Unauthorized"})},
        {"listed": httpx.Response(403, json={"message": "Insufficient permissions"})},
        {"listed": httpx.Response(404, json={"message": "Not found"})},
        {"listed": ()},
    ],
)
def test_who_may_not_ask_stages_all_the_same(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response, more: dict[str, object]
) -> None:
    server = Npm(stage=answer, listed=more["listed"])
    environ = cast("Mapping[str, str]", more.get("environ", TOKEN))
    found = staged(server, tmp_path, artifact, environ=environ)
    assert found == Staged(id="", url=REVIEW, tag="latest")


def test_other_bytes_on_the_stage_are_a_conflict(tmp_path: Path, artifact: Artifact) -> None:
    """R17: with both digests and the way out; by whichever way they are met."""
    theirs = "ab" * 20
    server = Npm(publish=HELD, stage=HELD, listed=[item(artifact, shasum=theirs)])
    ours = artifact.digests["sha1"]

    async def ask(target: Target) -> None:
        await staging_of(target).staged(PACKAGE, [artifact])

    for use in (
        lambda: staged(server, tmp_path, artifact),
        lambda: upload(server, tmp_path, artifact),
        lambda: using(server, tmp_path, ask),
    ):
        with pytest.raises(DigestMismatch, match=f"sha1 {theirs} waits.* ours has {ours}") as met:
            use()
        assert f"npm stage reject {ID}" in met.value.hint


def test_a_conflict_over_what_is_published_is_for_whoever_compares_digests(
    tmp_path: Path, artifact: Artifact
) -> None:
    """R15"""
    dist = {"integrity": document.format_integrity("ab" * 64)}
    shown = {"versions": {"1.0.0": {"dist": dist}}}
    with pytest.raises(Transient, match="previously published") as caught:
        staged(Npm(stage=STAGED_ALREADY, shown=shown), tmp_path, artifact)
    assert caught.value.ambiguous


@pytest.mark.parametrize(
    ("answer", "listed"),
    [
        (httpx.Response(409, json={"error": "Failed to save packument."}), ()),
        (HELD, httpx.Response(503)),
        (HELD, httpx.Response(200, json={"items": {}})),
        (HELD, httpx.Response(200, json=[])),
        (httpx.Response(502), ()),
    ],
)
def test_a_staging_that_nobody_can_tell_of_is_tried_again(
    tmp_path: Path, artifact: Artifact, answer: httpx.Response, listed: object
) -> None:
    """R16"""
    with pytest.raises(Transient) as caught:
        staged(Npm(stage=answer, listed=listed), tmp_path, artifact)
    assert caught.value.ambiguous


@pytest.mark.parametrize(
    ("answer", "error", "hint"),
    [
        (OIDC_DENIED, Denied, "allowed actions"),
        (httpx.Response(403, json={"error": "no"}), Denied, "`npm stage publish`"),
        (httpx.Response(401, json={"message": "Unauthorized"}), Denied, "RELEASEKIT_NPM_TOKEN"),
        (httpx.Response(403, json={"error": "72-hour security hold"}), Denied, "72 hours"),
        (httpx.Response(403, json={"error": "triggered spam detection"}), Denied, "support"),
        (httpx.Response(302, headers={"Location": "https://evil.example/"}), Rejected, "address"),
        (httpx.Response(429, headers={"Retry-After": "9"}), Transient, ""),
    ],
)
def test_a_staging_that_is_refused_says_what_to_change(
    tmp_path: Path,
    artifact: Artifact,
    answer: httpx.Response,
    error: type[PackageError],
    hint: str,
) -> None:
    """And is never followed by a publish."""
    server = Npm(stage=answer)
    with pytest.raises(error, match=r"^npm:@acme/core 1\.0\.0: ") as caught:
        staged(server, tmp_path, artifact)
    assert hint in caught.value.hint
    assert server.sent == ["POST /-/stage/package/@acme%2fcore"]
    assert not isinstance(caught.value, StageOnly)


@pytest.mark.parametrize(
    ("place", "known", "status", "hint"),
    [
        (NPMJS, False, 404, "Publish the first one by hand"),
        (OTHER, False, 404, "Publish the first one by hand"),
        (NPMJS, True, 404, "npm answers 404 to those who may not"),
        (OTHER, True, 404, "set `stage: never`"),
        (OTHER, True, 405, "set `stage: never`"),
    ],
)
def test_what_cannot_be_staged_says_whether_the_name_is_new(
    tmp_path: Path, artifact: Artifact, place: str, known: bool, status: int, hint: str
) -> None:
    stage = httpx.Response(status, json={"error": 'Package "@acme/core" not found'})
    dist = {"integrity": document.format_integrity("ab" * 64)}
    server = Npm(stage=stage, shown={"versions": {"0.9.0": {"dist": dist}}} if known else {})

    async def use(target: Target) -> None:
        assert await target.registry.lookup(PACKAGE) is None
        await staging_of(target).stage({PACKAGE: [artifact]})

    with pytest.raises(Rejected, match=f"HTTP {status} Package") as caught:
        using(server, tmp_path, use, place=place)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"<!doctype html>", b"{}", b'{"stageId": 7}', b'{"stageId": ""}']
)
@pytest.mark.parametrize("status", [200, 201, 204])
def test_an_answer_that_names_no_staging_is_none(
    tmp_path: Path, artifact: Artifact, body: bytes, status: int
) -> None:
    """R16: what knows no staging may answer 200 to anything, and nobody looks again."""
    with pytest.raises(Transient, match="names no staged version") as caught:
        staged(Npm(stage=httpx.Response(status, content=body)), tmp_path, artifact, place=OTHER)
    assert caught.value.ambiguous


@pytest.mark.parametrize("body", [b'{"stageId": "../x"}', b'{"stageId": "`rm`"}'])
def test_an_identifier_that_is_none_is_left_out(
    tmp_path: Path, artifact: Artifact, body: bytes
) -> None:
    """R35: it is accepted, and becomes a part of commands and URLs."""
    found = staged(Npm(stage=httpx.Response(201, content=body)), tmp_path, artifact, place=OTHER)
    assert found == Staged(id="", url=f"{OTHER}-/stage", tag="latest")


def test_another_registrys_page_is_the_staged_version_itself(
    tmp_path: Path, artifact: Artifact
) -> None:
    found = staged(Npm(), tmp_path, artifact, place=OTHER)
    assert found.url == f"{OTHER}-/stage/{ID}"


def test_what_npm_still_looks_through_is_accepted(tmp_path: Path, artifact: Artifact) -> None:
    """R15: of a version that was published some minutes ago npm says that it is staged, lists it
    nowhere, and shows it by itself; https://github.com/npm/cli/issues/9889
    """
    upload(Npm(publish=HELD), tmp_path, artifact)
    upload(Npm(publish=HELD), tmp_path, artifact, environ=ACTIONS)
    dist = {"integrity": document.format_integrity("ab" * 64)}
    upload(Npm(publish=HELD, shown={"versions": {"1.0.0": {"dist": dist}}}), tmp_path, artifact)


@pytest.mark.parametrize(
    "status", ["validating", "published", "unheard-of", 7, httpx.Response(403), httpx.Response(401)]
)
def test_what_is_on_its_way_is_neither_staged_nor_gone(
    tmp_path: Path, artifact: Artifact, status: object
) -> None:
    """R16: between the approval and the end of npm's scan it is listed nowhere."""
    upload(Npm(publish=HELD, status=status), tmp_path, artifact)
    found = staged(Npm(stage=HELD, status=status), tmp_path, artifact)
    assert found == Staged(id="", url=REVIEW, tag="latest")
    seen = using(
        Npm(status=status), tmp_path, lambda it: staging_of(it).staged(PACKAGE, [artifact])
    )
    known = status in {"validating", "published"} if isinstance(status, str) else False
    assert seen == (Staged(id="", url=REVIEW, tag="") if known else None)


@pytest.mark.parametrize("status", ["blocked", "deleted"])
def test_what_npm_has_dropped_is_told_as_that(
    tmp_path: Path, artifact: Artifact, status: str
) -> None:
    server = Npm(publish=HELD, stage=STAGED_ALREADY, status=status)
    for use in (upload, staged):
        with pytest.raises(Rejected, match=f"it is {status}: ") as caught:
            use(server, tmp_path, artifact)
        assert "Bump the version" in caught.value.hint
    ask = using(server, tmp_path, lambda it: staging_of(it).staged(PACKAGE, [artifact]))
    assert ask is None


def test_what_is_staged_and_not_listed_is_staged(tmp_path: Path, artifact: Artifact) -> None:
    with pytest.raises(StageOnly):
        upload(Npm(publish=HELD, status="staged"), tmp_path, artifact)


def test_a_status_that_nobody_can_tell_is_no_rejection(tmp_path: Path, artifact: Artifact) -> None:
    with pytest.raises(Transient):
        using(
            Npm(status=httpx.Response(503)),
            tmp_path,
            lambda it: staging_of(it).staged(PACKAGE, [artifact]),
        )


def test_a_version_that_is_held_and_cannot_be_told_of_is_no_failure(
    tmp_path: Path, artifact: Artifact
) -> None:
    """R16"""
    with pytest.raises(Transient) as caught:
        upload(Npm(publish=HELD, listed=httpx.Response(503)), tmp_path, artifact)
    assert caught.value.ambiguous


@pytest.mark.parametrize("environ", [TOKEN, ACTIONS])
def test_what_may_be_staged_is_not_enough_for_what_needs_it(
    tmp_path: Path, artifact: Artifact, environ: Mapping[str, str]
) -> None:
    """R1: with `gate: accepted`, too, what may wait for a person is not there yet."""
    with pytest.raises(Transient, match="previously staged version") as caught:
        upload(Npm(publish=HELD), tmp_path, artifact, environ=environ, gate="accepted")
    assert caught.value.ambiguous


def test_what_is_listed_was_staged_and_not_published(tmp_path: Path, artifact: Artifact) -> None:
    """R16: though a publish may have brought it there."""
    with pytest.raises(StageOnly, match="previously staged version") as caught:
        upload(Npm(publish=HELD, listed=[item(artifact)]), tmp_path, artifact)
    assert "releasekit approve" in caught.value.hint


def test_what_waits_is_found_on_any_page(tmp_path: Path, artifact: Artifact) -> None:
    """R40: of a list that ends."""
    others = [item(artifact, version=f"0.{number}.0") for number in range(250)]
    foreign = [7, None, {"packageName": "@acme/other"}, item(artifact, packageName="@acme/x")]

    def ask(listed: object) -> Staged | None:
        server = Npm(listed=listed)
        return using(server, tmp_path, lambda it: staging_of(it).staged(PACKAGE, [artifact]))

    assert ask([*others, *foreign, item(artifact)]) == Staged(id=ID, url=REVIEW, tag="next")
    assert ask([*others, *foreign]) is None
    assert ask([item(artifact, shasum=None, tag=None)]) == Staged(id=ID, url=REVIEW, tag="")
    with pytest.raises(Transient, match="more than"):
        ask(httpx.Response(200, json={"items": [{}] * 100, "total": 1}))


def test_a_page_that_is_shorter_than_asked_for_is_not_the_last(
    tmp_path: Path, artifact: Artifact
) -> None:
    """R40: what is on none of the pages counts as rejected."""
    server = Npm(listed=[*(item(artifact, version=f"0.{n}.0") for n in range(50)), item(artifact)])
    server.page_limit = 20
    found = using(server, tmp_path, lambda it: staging_of(it).staged(PACKAGE, [artifact]))
    assert found == Staged(id=ID, url=REVIEW, tag="next")


def test_who_has_no_token_cannot_ask_what_waits(tmp_path: Path, artifact: Artifact) -> None:
    server = Npm(listed=[item(artifact)])
    with pytest.raises(Denied, match="no token to ask"):
        using(
            server,
            tmp_path,
            lambda it: staging_of(it).staged(PACKAGE, [artifact]),
            environ=ACTIONS,
        )
    assert not server.requests


def test_the_placeholder_of_a_new_name_is_no_version_to_keep_latest_from(
    tmp_path: Path, artifact: Artifact
) -> None:
    """https://docs.npmjs.com/staged-publishing: npm makes a public 0.0.0-stage for a new name."""
    dist = {"integrity": document.format_integrity("ab" * 64)}
    shown = {"dist-tags": {"latest": "0.0.0-stage"}, "versions": {"0.0.0-stage": {"dist": dist}}}
    assert staged(Npm(shown=shown), tmp_path, artifact).tag == "latest"
    found = using(Npm(shown=shown), tmp_path, lambda it: it.registry.lookup(PACKAGE))
    assert found is None


@pytest.mark.parametrize(
    ("environ", "more", "noted"),
    [
        (TOKEN, {}, True),
        (TOKEN, {"stage": "never"}, True),
        (TOKEN, {"stage": "always"}, False),
        (TOKEN, {"place": OTHER}, False),
        (ACTIONS, {}, False),
    ],
)
def test_a_plan_tells_of_the_end_of_tokens_once(
    tmp_path: Path, environ: Mapping[str, str], more: dict[str, object], noted: bool
) -> None:
    async def use(target: Target) -> list[str]:
        return [
            target.plan_notes([PlannedPackage(package=PACKAGE, action=action, reason="")] * 3)
            for action in (Action.PUBLISH, Action.UPLOAD, Action.KEEP, Action.AWAIT)
        ]

    notes = using(Npm(), tmp_path, use, environ=environ, **more)  # type: ignore[arg-type]
    assert [note.count("January 2027") for note in notes] == [noted, noted, 0, 0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, True),
        ({"gate": "accepted"}, False),
        ({"stage": "always"}, False),
        ({"place": OTHER}, False),
    ],
)
def test_a_plan_tells_how_long_npm_scans(
    tmp_path: Path, more: dict[str, object], said: bool
) -> None:
    """R49"""

    async def use(target: Target) -> list[str]:
        assert target.preflight.shows_after_s == (300.0 if said else 0.0)
        return [
            target.plan_notes([PlannedPackage(package=PACKAGE, action=action, reason="")])
            for action in (Action.PUBLISH, Action.KEEP)
        ]

    notes = using(Npm(), tmp_path, use, environ=ACTIONS, **more)  # type: ignore[arg-type]
    assert ["expect 5 to 15 minutes" in note for note in notes] == [said, False]


def test_each_level_waits_for_the_scan_of_the_one_below() -> None:
    """R49"""
    needs = (Dependency(on=PACKAGE.id, kind=DependencyKind.RUNTIME),)
    other = replace(PACKAGE, id=PackageId("npm", "other"), dependencies=needs)
    steps = [
        PlannedPackage(package=each, action=Action.PUBLISH, reason="") for each in (PACKAGE, other)
    ]
    note = describe_scans(steps)
    assert "expect 10 to 30 minutes, since these packages form 2 levels" in note
    assert "expect 5 to 15 minutes" in describe_scans(steps[1:])


def test_npm_has_a_stage_of_its_own(tmp_path: Path) -> None:
    async def use(target: Target) -> str:
        return staging_of(target).mode

    assert using(Npm(), tmp_path, use) == "auto"
    assert using(Npm(), tmp_path, use, stage="never") == "never"
    own = {"npm": {"stage": "always"}}
    assert using(Npm(), tmp_path, use, stage="never", ecosystem_tables=own) == "always"


def test_npmjs_takes_its_time_to_show_what_it_has(tmp_path: Path) -> None:
    async def use(target: Target) -> float:
        return target.preflight.shows_within_s

    assert using(Npm(), tmp_path, use) == 45 * 60
    assert using(Npm(), tmp_path, use, place=OTHER) == 0


def test_a_directory_stages_nothing(tmp_path: Path) -> None:
    async def use(target: Target) -> bool:
        return target.staging is None

    assert using(Npm(), tmp_path, use, place=f"dir:{tmp_path / 'registry'}")
