from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import httpx
import pytest

import distributions
import registries
from provenance.oidc import gitlab_claims_of
from releasekit.ecosystems.pypi.registry import PackageIndex
from releasekit.errors import Denied, MissingCredentials, PackageError, Rejected, Transient
from trusted_index import CLAIMS, RUNNER_TOKEN, TrustedIndex, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.preflight import RightsFound
    from releasekit.model import Artifact

ORIGIN = "https://upload.pypi.org"
PACKAGE = distributions.package()
IN_ACTIONS = {"GITHUB_ACTIONS": "true"}


@pytest.fixture
def artifacts(tmp_path: Path) -> tuple[Artifact, ...]:
    return distributions.both(tmp_path / "dist", PACKAGE)


def served(index: TrustedIndex) -> Callable[[httpx.Request], httpx.Response]:
    index.audience = "pypi"

    def answer(request: httpx.Request) -> httpx.Response:
        status, body, kind = index.answer(
            request.method,
            str(request.url),
            request.headers.get("Authorization", ""),
            request.content,
        )
        return httpx.Response(status, content=body, headers={"Content-Type": kind})

    return answer


def upload(
    answer: Callable[[httpx.Request], httpx.Response],
    artifacts: Sequence[Artifact],
    *,
    environ: Mapping[str, str] | None = None,
    masked: list[str] | None = None,
    times: int = 1,
    place: str = "",
    **changes: object,
) -> None:
    async def main() -> None:
        async with registries.opened(
            place,
            TrustedIndex().environment("https://actions.example") if environ is None else environ,
            changes,
            transport=httpx.MockTransport(answer),
            masked=masked,
        ) as registry:
            registry.check_credentials()
            for _ in range(times):
                await registry.upload(PACKAGE, artifacts)

    asyncio.run(main())


def missing(environ: Mapping[str, str], **changes: object) -> MissingCredentials:
    async def main() -> None:
        async with registries.opened("", environ, changes) as registry:
            registry.check_credentials()

    with pytest.raises(MissingCredentials) as caught:
        asyncio.run(main())
    return caught.value


def test_one_token_is_minted_late_and_serves_all_files(artifacts: tuple[Artifact, ...]) -> None:
    """R38"""
    index = TrustedIndex()
    masked: list[str] = []
    upload(served(index), artifacts, masked=masked, times=3)
    assert len(index.files) == 6
    assert len(index.id_tokens) == len(index.minted) == 1
    assert {RUNNER_TOKEN, *index.id_tokens, *index.minted} <= set(masked)


def test_a_token_that_ends_soon_is_renewed_with_a_fresh_identity(
    artifacts: tuple[Artifact, ...],
) -> None:
    """R38"""
    index = TrustedIndex(lifetime_s=60)
    upload(served(index), artifacts[:1], times=3)
    assert len(index.minted) == len(set(index.id_tokens)) == 3


def test_a_refused_token_is_renewed_once(artifacts: tuple[Artifact, ...]) -> None:
    """R38: the registry may forget a token before its time."""
    index = TrustedIndex()
    answer = served(index)

    def forgetful(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/legacy/" and len(index.minted) == 1:
            index.valid.clear()
        return answer(request)

    upload(forgetful, artifacts)
    assert len(index.files) == 2
    assert len(index.minted) == 2


def test_a_token_that_is_never_accepted_is_denied(artifacts: tuple[Artifact, ...]) -> None:
    index = TrustedIndex()
    answer = served(index)

    def strict(request: httpx.Request) -> httpx.Response:
        index.valid.clear()
        return answer(request)

    with pytest.raises(Denied, match="Invalid or non-existent authentication"):
        upload(strict, artifacts[:1])
    assert len(index.minted) == 2


def test_a_given_token_goes_first(artifacts: tuple[Artifact, ...]) -> None:
    index = TrustedIndex(valid={"pypi-given"})
    environ = index.environment("https://actions.example") | {"RELEASEKIT_PYPI_TOKEN": "pypi-given"}
    upload(served(index), artifacts, environ=environ)
    assert (len(index.files), index.id_tokens) == (2, [])
    upload(served(index), artifacts, environ=environ, trusted_publishing="always")
    assert len(index.id_tokens) == 1


def test_an_identity_that_was_used_is_replaced(artifacts: tuple[Artifact, ...]) -> None:
    """The answer to the first mint got lost: the same ID token would be refused."""
    index = TrustedIndex()
    answer = served(index)
    lost: list[httpx.Response] = []

    def ignore_write_errors(request: httpx.Request) -> httpx.Response:
        response = answer(request)
        if request.url.path == "/_/oidc/mint-token" and not lost:
            lost.append(response)
            raise httpx.ReadTimeout("", request=request)
        return response

    upload(ignore_write_errors, artifacts, max_retries=1)
    assert len(index.files) == 2
    assert len(index.id_tokens) == 2


def test_a_refusal_of_a_used_identity_is_worth_another_attempt(
    artifacts: tuple[Artifact, ...],
) -> None:
    index = TrustedIndex(refusal=("invalid-reuse-token", "invalid token: already used"))
    with pytest.raises(Transient, match="already used") as caught:
        upload(served(index), artifacts, max_retries=2)
    assert not caught.value.ambiguous
    assert len(index.id_tokens) == 3


@pytest.mark.parametrize(
    ("refusal", "claims", "parts"),
    [
        (
            ("invalid-publisher", "valid token, but no corresponding publisher"),
            {},
            [
                "https://pypi.org/manage/account/publishing/",
                "Owner: acme",
                "Repository name: mono",
                "Workflow name: release.yml",
                "Environment name: pypi",
            ],
        ),
        (
            ("invalid-publisher", "Publisher with matching claims was not found"),
            {"environment": ""},
            ["Environment name: (none)", "on both sides"],
        ),
        (
            ("invalid-publisher", "no corresponding publisher"),
            {"job_workflow_ref": "acme/shared/.github/workflows/publish.yml@refs/heads/main"},
            [
                "does not support reusable workflows",
                "publish.yml",
                "release.yml",
                "id-token: write",
            ],
        ),
        (
            ("invalid-pending-publisher", "valid token, but project already exists"),
            {},
            ["Workflow name: release.yml"],
        ),
        (("not-enabled", "github trusted publishing not enabled"), {}, ["troubleshooting"]),
        (("invalid-token", "malformed or invalid token"), {}, ["troubleshooting"]),
    ],
)
def test_each_refusal_says_what_to_change(
    artifacts: tuple[Artifact, ...],
    refusal: tuple[str, str],
    claims: dict[str, str],
    parts: list[str],
) -> None:
    index = TrustedIndex(claims=CLAIMS | claims, refusal=refusal)
    with pytest.raises(Denied, match=refusal[0]) as caught:
        upload(served(index), artifacts)
    message = f"{caught.value}\n{caught.value.hint}"
    assert all(part in message for part in parts), message
    assert refusal[1] in message
    assert not any(token in message for token in index.id_tokens)


def given(index: TrustedIndex, count: int) -> dict[str, str]:
    """What GitLab sets for a job with so many ID tokens, all of which `index` knows."""
    environ = {"GITLAB_CI": "true", "CI_SERVER_URL": "https://gitlab.com"}
    for number in range(1, count + 1):
        claims = {**gitlab_claims_of(), "environment": "release", "aud": "pypi", "jti": number}
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
        index.id_tokens.append(f"eyJhbGciOiJub25lIn0.{body}.c2ln")
        environ[f"PYPI_ID_TOKEN_{number}"] = index.id_tokens[-1]
    return environ


def test_each_upload_token_takes_the_next_of_the_given_ones(
    artifacts: tuple[Artifact, ...],
) -> None:
    """R38: none is shown twice, as PyPI takes each once."""
    index = TrustedIndex(lifetime_s=60)
    shown: list[str] = []
    answer = served(index)

    def seen(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/_/oidc/mint-token":
            shown.append(json.loads(request.content)["token"])
        return answer(request)

    environ = given(index, 2)
    upload(seen, artifacts[:1], environ=environ, times=2)
    assert shown == index.id_tokens
    with pytest.raises(Denied, match="are used or too old: it had 2"):
        upload(answer, artifacts[:1], environ=environ, times=3, max_retries=9)


def test_a_lost_answer_spends_a_given_token(artifacts: tuple[Artifact, ...]) -> None:
    """R38: PyPI says so of the next attempt, and the one after that brings another token."""
    index = TrustedIndex()
    answer = served(index)
    lost: list[httpx.Response] = []

    def hang_up(request: httpx.Request) -> httpx.Response:
        response = answer(request)
        if request.url.path == "/_/oidc/mint-token" and not lost:
            lost.append(response)
            raise httpx.ReadTimeout("", request=request)
        return response

    upload(hang_up, artifacts, environ=given(index, 2), max_retries=2)
    assert len(index.files) == 2
    assert len(index.minted) == 2


def test_a_project_of_gitlab_is_told_what_to_register(artifacts: tuple[Artifact, ...]) -> None:
    """R38: with the fields of PyPI's form."""
    index = TrustedIndex(refusal=("invalid-publisher", "no corresponding publisher"))
    with pytest.raises(Denied, match="project_path acme/tools/widgets, ") as caught:
        upload(served(index), artifacts, environ=given(index, 1))
    values = "Namespace: acme/tools; Project name: widgets; Top-level pipeline file path: "
    assert f"{values}.gitlab-ci.yml; Environment name: release." in caught.value.hint


def test_a_refusal_without_reasons_is_shown_as_it_is(artifacts: tuple[Artifact, ...]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/_/oidc/mint-token":
            return httpx.Response(422, text="Unprocessable for reasons unknown")
        return served(index)(request)

    index = TrustedIndex()
    with pytest.raises(Denied, match="for reasons unknown"):
        upload(answer, artifacts)


@pytest.mark.parametrize("errors", [["odd"], {}, [{"code": "invalid-publisher"}]])
@pytest.mark.parametrize("token", ["opaque", "a.b.c", "a.W10.c", "a.e30.c"])
def test_odd_answers_and_tokens_do_not_crash(
    artifacts: tuple[Artifact, ...], errors: object, token: str
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/idtoken":
            return httpx.Response(200, json={"value": token})
        if request.url.path == "/_/oidc/mint-token":
            return httpx.Response(422, json={"errors": errors})
        return served(TrustedIndex())(request)

    with pytest.raises(Denied, match="refuses trusted publishing"):
        upload(answer, artifacts)


@pytest.mark.parametrize(
    ("path", "response", "error", "message"),
    [
        ("/_/oidc/audience", httpx.Response(404), Denied, "offers no trusted publishing"),
        ("/_/oidc/audience", httpx.Response(403), Denied, "offers no trusted publishing"),
        ("/_/oidc/audience", httpx.Response(200, json={}), Transient, "no audience"),
        ("/_/oidc/audience", httpx.Response(410), Rejected, "HTTP 410"),
        *(
            ("/_/oidc/audience", httpx.Response(200, json={"audience": each}), Rejected, "another")
            for each in ("testpypi", "npm:registry.npmjs.org", "upload.pypi.org")
        ),
        ("/_/oidc/mint-token", httpx.Response(503), Transient, "HTTP 503"),
        ("/_/oidc/mint-token", httpx.Response(200, json={}), Transient, "without a token"),
        ("/idtoken", httpx.Response(403), Denied, "ID token service"),
    ],
)
def test_an_exchange_that_fails_uploads_nothing(
    artifacts: tuple[Artifact, ...],
    path: str,
    response: httpx.Response,
    error: type[PackageError],
    message: str,
) -> None:
    """R15: it is never ambiguous, since nothing was sent."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == path:
            return response
        return served(index)(request)

    index = TrustedIndex()
    with pytest.raises(error, match=message) as caught:
        upload(answer, artifacts)
    assert not getattr(caught.value, "ambiguous", False)
    assert index.files == []


@pytest.mark.parametrize("audience", ["pypi.example", "https://pypi.example:8443"])
def test_any_other_index_gets_an_identity_for_its_own_host(
    artifacts: tuple[Artifact, ...], audience: str
) -> None:
    index = TrustedIndex()
    answer = served(index)
    index.audience = audience
    place = "https://pypi.example:8443/legacy/"
    upload(answer, artifacts, place=place, trusted_publishing="always")
    assert len(index.files) == 2


@pytest.mark.parametrize(
    "audience",
    ["pypi", "testpypi", "crates.io", "https://vault.example", "example", "https://pypi.example"],
)
def test_an_index_gets_no_identity_for_another_service(
    artifacts: tuple[Artifact, ...], audience: str
) -> None:
    """It could pass for this job there, whatever the other service is."""
    index = TrustedIndex()
    answer = served(index)
    index.audience = audience
    place = "https://pypi.example:8443/legacy/"
    with pytest.raises(Rejected, match=r"another service, and not for pypi\.example;") as caught:
        upload(answer, artifacts, place=place, trusted_publishing="always")
    assert "RELEASEKIT_PYPI_TOKEN" in caught.value.hint
    assert index.id_tokens == []


@pytest.mark.parametrize("expires", ["soon", None])
def test_a_token_without_an_end_lives_fifteen_minutes(
    artifacts: tuple[Artifact, ...], expires: object
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        response = served(index)(request)
        if request.url.path == "/_/oidc/mint-token":
            return httpx.Response(200, json=response.json() | {"expires": expires})
        return response

    index = TrustedIndex()
    upload(answer, artifacts, times=2)
    assert len(index.minted) == 1


def test_outside_of_actions_a_token_is_asked_for() -> None:
    for mode, says in (("auto", "jobs of github.com and gitlab.com only"), ("always", "ID token")):
        error = missing({}, trusted_publishing=mode)
        assert "RELEASEKIT_PYPI_TOKEN is not set" in str(error)
        assert says in error.hint
    error = missing(IN_ACTIONS, trusted_publishing="never")
    assert "`pypi-token`" in error.hint


def test_a_job_without_the_permission_is_told_the_line_to_paste() -> None:
    error = missing(IN_ACTIONS)
    assert "no `id-token: write` permission" in str(error)
    assert "`permissions: { contents: read, id-token: write }`" in error.hint


def pull_request(head: object, base: object) -> str:
    return json.dumps({"pull_request": {"head": {"repo": head}, "base": {"repo": base}}})


@pytest.mark.parametrize(
    ("event", "fork"),
    [
        (pull_request({"full_name": "me/mono"}, {"full_name": "acme/mono"}), True),
        (pull_request({"full_name": "acme/mono"}, {"full_name": "acme/mono"}), False),
        (pull_request(None, {"full_name": "acme/mono"}), False),
        ("{}", False),
        ("not JSON", False),
    ],
)
def test_a_pull_request_from_a_fork_is_told_to_publish_elsewhere(
    tmp_path: Path, event: str, fork: bool
) -> None:
    path = tmp_path / "event.json"
    path.write_text(event)
    error = missing(
        IN_ACTIONS | {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(path)}
    )
    assert ("from a fork" in str(error)) is fork
    assert ("tags: ['v*']" in error.hint) is fork


def test_an_event_that_cannot_be_read_is_no_fork() -> None:
    error = missing(IN_ACTIONS | {"GITHUB_EVENT_NAME": "pull_request"})
    assert "no `id-token: write` permission" in str(error)


ACCOUNT_WIDE = "pypi-hunter2"


def denied(
    index: TrustedIndex,
    new: Sequence[str],
    *,
    token: str = "",
    proving: bool = True,
    names: Sequence[str] = "abcd",
) -> tuple[dict[str, str], str]:
    """Of four projects, why some may not be published, and the first hint."""
    packages = [distributions.package(name) for name in names]
    answer = served(index)

    def serve(request: httpx.Request) -> httpx.Response:
        if request.url.host == "pypi.org":
            name = request.url.path.split("/")[2]
            return httpx.Response(404) if name in new else httpx.Response(200, json={"files": []})
        return answer(request)

    environ = index.environment("https://actions.example")
    environ |= {"RELEASEKIT_PYPI_TOKEN": token} if token else {}

    async def main() -> RightsFound:
        async with registries.opened("", environ, transport=httpx.MockTransport(serve)) as registry:
            assert isinstance(registry, PackageIndex)
            for each in packages:
                await registry.lookup(each)
            return await registry.find_rights(packages, proving=proving)

    found = asyncio.run(main())
    assert bool(found.note) == (token == ACCOUNT_WIDE)
    hints = [each.hint for each in found.denied.values()]
    told = {package.name: str(error) for package, error in found.denied.items()}
    return told, "".join(hints[:1])


def test_a_job_that_all_projects_trust_may_publish_them() -> None:
    """R38: no more is asked than which token there is."""
    index = TrustedIndex(projects=["a", "b", "c", "d", "elsewhere"])
    assert denied(index, []) == ({}, "")
    assert len(index.minted) == 1
    assert denied(TrustedIndex(), []) == ({}, "")  # an index whose tokens say nothing


def test_fewer_projects_than_are_published_are_too_few() -> None:
    """The token tells how many, and not which: https://docs.pypi.org/trusted-publishers/"""
    index = TrustedIndex(projects=["a", "b", "c"])
    told, hint = denied(index, [])
    assert told == dict.fromkeys("abcd", "upload.pypi.org lets this job publish 3 of 4 projects")
    assert "trusted publisher of each" in hint
    assert len(index.minted) == 1
    assert denied(index, [], proving=False) == ({}, "")
    assert len(index.minted) == 1  # which would have made the project of a pending publisher


def test_each_pending_publisher_is_made_a_project_before_anything_is_sent() -> None:
    """One for the environment and one for none may be waiting."""
    index = TrustedIndex(projects=["a", "b"], pending=["c", "d"])
    assert denied(index, ["c", "d"]) == ({}, "")
    assert len(index.minted) == 2
    index = TrustedIndex(projects=["a", "b"], pending=["c"])
    told, hint = denied(index, ["c", "d"])
    assert set(told) == set("abcd")
    assert told["d"].endswith("publish 3 of 4 projects; c, d did not exist")
    assert "one of for a workflow and an environment" in hint
    assert len(index.minted) == 2  # the second made nothing


def test_a_token_for_some_projects_is_not_for_others() -> None:
    told, hint = denied(TrustedIndex(), [], token=make_token([1, ["a", "c"]]))
    assert told == dict.fromkeys("bd", "the token is for a, c only")
    assert "for the whole account" in hint
    told, _ = denied(TrustedIndex(), [], token=make_token([0, 1000, 0]), proving=False)
    assert told == dict.fromkeys("abcd", "the token has expired at 1970-01-01T00:16+00:00")
    assert denied(TrustedIndex(), [], token=ACCOUNT_WIDE) == ({}, "")


def test_the_names_of_pythons_own_modules_are_for_nobody() -> None:
    """https://pypi.org/help/#project-name"""
    names = ["asyncio", "string-io", "graphlib"]
    told, hint = denied(TrustedIndex(), ["asyncio", "string-io"], proving=False, names=names)
    assert told == {"asyncio": "a module of Python's standard library has its name"}
    assert hint.startswith("PyPI never takes it")
