from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import httpx
import pytest

import virtual_time
from releasekit.errors import ConfigError, Denied, Transient
from releasekit.host.ci import CI
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, Secret, snapshot
from releasekit.http.identity import (
    CIRCLECI,
    GITHUB,
    GITLAB,
    NO_PERMISSION,
    AskedTokens,
    GivenTokens,
    Minted,
    SharedToken,
    is_known,
    open_tokens,
    read_claims,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OFFERED = {
    "GITHUB_ACTIONS": "true",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.actions.example/get?api-version=2.0",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
}


def fetch(
    environ: dict[str, str],
    answer: Callable[[httpx.Request], httpx.Response],
    masked: list[str] | None = None,
) -> Secret:
    seen: list[str] = [] if masked is None else masked

    async def main() -> Secret:
        async with http_client(transport=httpx.MockTransport(answer)) as http:
            credentials = Credentials(snapshot(environ), mask=seen.append)
            return await AskedTokens(CI.of(environ), credentials, http).fetch("pypi")

    return virtual_time.run(main())


def test_an_id_token_is_asked_for_with_its_audience() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"value": "eyJ.claims.sig"})

    masked: list[str] = []
    assert fetch(OFFERED, answer, masked) == Secret("eyJ.claims.sig")
    (request,) = requests
    assert str(request.url) == "https://token.actions.example/get?api-version=2.0&audience=pypi"
    assert request.headers["Authorization"] == "Bearer runner-token"
    assert masked[-1] == "eyJ.claims.sig"


@pytest.mark.parametrize("missing", list(OFFERED)[1:])
def test_without_the_permission_nothing_is_offered(missing: str) -> None:
    environ = {name: value for name, value in OFFERED.items() if name != missing}
    credentials = Credentials(snapshot(environ), mask=lambda _: None)
    tokens = AskedTokens(CI.of(environ), credentials, httpx.AsyncClient())
    assert tokens.find_obstacle("pypi") == NO_PERMISSION
    with pytest.raises(Denied, match="may not ask GitHub"):
        fetch(environ, lambda _: httpx.Response(200))


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (httpx.Response(200, text="no JSON"), Transient),
        (httpx.Response(200, text="[" * 100_000), Transient),
        (httpx.Response(200, json=["value"]), Transient),
        (httpx.Response(200, json={"value": ""}), Transient),
        (httpx.Response(200, json={"value": 1}), Transient),
        (httpx.Response(503), Transient),
        (httpx.Response(403, text="runner-token is not welcome"), Denied),
    ],
)
def test_an_answer_without_a_token_is_an_error(
    response: httpx.Response, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        fetch(OFFERED, lambda _: response)
    assert "runner-token" not in str(caught.value)


def test_the_runners_token_goes_to_no_unencrypted_host() -> None:
    """R37"""
    unsafe = OFFERED | {"ACTIONS_ID_TOKEN_REQUEST_URL": "http://token.actions.example/"}
    with pytest.raises(ConfigError, match="ACTIONS_ID_TOKEN_REQUEST_URL"):
        fetch(unsafe, lambda _: httpx.Response(200))


class Mint:
    def __init__(self, *lifetimes: float) -> None:
        self.lifetimes = list(lifetimes)
        self.made: list[Secret] = []

    async def __call__(self) -> Minted:
        await asyncio.sleep(1)
        self.made.append(Secret(f"token-{len(self.made)}"))
        return Minted(self.made[-1], self.lifetimes[len(self.made) - 1])


def test_one_token_serves_all_uploads() -> None:
    """R38"""

    async def main() -> None:
        mint = Mint(900)
        shared = SharedToken(mint)
        tokens = await asyncio.gather(*(shared.get() for _ in range(20)))
        assert set(tokens) == set(mint.made) == {Secret("token-0")}

    virtual_time.run(main())


def test_a_token_is_renewed_before_it_ends() -> None:
    """R38"""

    async def main() -> None:
        mint = Mint(900, 900)
        shared = SharedToken(mint)
        await shared.get()
        await asyncio.sleep(779)
        assert await shared.get() == Secret("token-0")
        await asyncio.sleep(1)
        assert await shared.get() == Secret("token-1")
        assert len(mint.made) == 2

    virtual_time.run(main())


def test_a_refused_token_is_replaced_once_for_everybody() -> None:
    async def main() -> None:
        mint = Mint(900, 900)
        shared = SharedToken(mint)
        old = await shared.get()
        shared.drop(old)
        new = await shared.get()
        shared.drop(old)  # another upload was refused with the same old token
        assert await shared.get() is new
        assert len(mint.made) == 2

    virtual_time.run(main())


def test_a_mint_that_fails_is_tried_again_by_the_next_upload() -> None:
    async def mint() -> Minted:
        if not failures:
            return Minted(Secret("token"), 900)
        raise failures.pop()

    async def main() -> None:
        shared = SharedToken(mint)
        with pytest.raises(Denied):
            await shared.get()
        assert await shared.get() == Secret("token")

    failures = [Denied("not yet")]
    virtual_time.run(main())


def jwt(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{body}.c2lnbmF0dXJl"


GITLAB_CI = {"GITLAB_CI": "true", "CI_SERVER_URL": "https://gitlab.com"}
OURS = {"iss": "https://gitlab.com", "exp": 200, "ci_config_ref_uri": "gitlab.com/a/b//c.yml@r"}


def given(
    tokens: dict[str, str], *, now_s: float = 100.0, ci: dict[str, str] = GITLAB_CI
) -> GivenTokens:
    taken = snapshot({**ci, **tokens})
    credentials = Credentials(taken, mask=lambda _: None)
    return GivenTokens(CI.of(taken.environment), credentials, clock=lambda: now_s)


def test_given_tokens_are_handed_out_in_the_order_of_their_names() -> None:
    """R38: until the registry has taken one, that one."""
    names = ["B_ID_TOKEN_10", "B_ID_TOKEN", "ID_TOKEN", "B_ID_TOKEN_2", "A_ID_TOKEN_3"]
    mine = {name: jwt(**OURS, aud="pypi", jti=name) for name in names}
    tokens = given({**mine, "SIGSTORE_ID_TOKEN": jwt(**OURS, aud="sigstore")})
    found = []
    for _ in names:
        token = asyncio.run(tokens.fetch("pypi"))
        assert asyncio.run(tokens.fetch("pypi")) == token
        tokens.spend(token)
        found.append(read_claims(token.reveal())["jti"])
    assert found == ["A_ID_TOKEN_3", "B_ID_TOKEN", "B_ID_TOKEN_10", "B_ID_TOKEN_2", "ID_TOKEN"]
    with pytest.raises(Denied, match="for `pypi` are used or too old: it had 5") as caught:
        asyncio.run(tokens.fetch("pypi"))
    advice = 'Give the job `id_tokens: { PYPI_ID_TOKEN_6: { aud: "pypi" } }`.'
    assert caught.value.hint == f"Run the job again. {advice}"
    assert tokens.find_obstacle("pypi") is None


def test_a_given_token_that_is_too_old_is_passed_over() -> None:
    old, new = jwt(**{**OURS, "exp": 99.5}, aud="pypi"), jwt(aud="pypi", iss="https://gitlab.com")
    tokens = given({"PYPI_ID_TOKEN": old, "PYPI_ID_TOKEN_2": new})
    assert asyncio.run(tokens.fetch("pypi")) == Secret(new)
    with pytest.raises(Denied, match="used or too old"):
        asyncio.run(given({"PYPI_ID_TOKEN": old}).fetch("pypi"))


@pytest.mark.parametrize(
    ("tokens", "audience", "condition", "cure"),
    [
        (
            {},
            "npm:registry.npmjs.org",
            "this job has no ID token for `npm:registry.npmjs.org`",
            '`id_tokens: { NPM_ID_TOKEN: { aud: "npm:registry.npmjs.org" } }`',
        ),
        (
            {"PYPI_ID_TOKEN": jwt(**OURS, aud="https://pypi.org")},
            "pypi",
            "no ID token for `pypi` (PYPI_ID_TOKEN is for `https://pypi.org`)",
            '`id_tokens: { PYPI_ID_TOKEN: { aud: "pypi" } }`',
        ),
        # PyPI and crates.io take no token that is for others too.
        (
            {"PYPI_ID_TOKEN": jwt(**OURS, aud=["pypi", "testpypi"])},
            "pypi",
            "PYPI_ID_TOKEN is for `['pypi', 'testpypi']`",
            "PYPI_ID_TOKEN",
        ),
        (
            {"X_ID_TOKEN": jwt(**OURS, aud="\x1b[2J\n")},
            "https://index.example",
            "X_ID_TOKEN is for `\\x1b[2J`",
            "INDEX_EXAMPLE_ID_TOKEN",
        ),
        (
            {"PYPI_ID_TOKEN": jwt(**{**OURS, "ci_config_ref_uri": None}, aud="pypi")},
            "pypi",
            "the CI file of this job is not in its project",
            "let it `include:` what it needs",
        ),
        *(
            ({"PYPI_ID_TOKEN": odd}, "pypi", "this job has no ID token for `pypi`", "PYPI_ID_TOKEN")
            for odd in ("", "odd", "a.b.c", "a.W10.c", f"a.{'[' * 10_000}.c")
        ),
    ],
)
def test_why_no_token_is_given_is_told(
    tokens: dict[str, str], audience: str, condition: str, cure: str
) -> None:
    obstacle = given(tokens).find_obstacle(audience)
    assert obstacle is not None
    assert condition in obstacle.condition
    assert cure in obstacle.cure


def test_elsewhere_a_script_asks_for_the_token() -> None:
    """R38: CircleCI has one issuer, and had one for each organization."""
    token = jwt(iss="https://oidc.circleci.com/org/1", aud="npm:registry.npmjs.org")
    others = {"GOOGLE_ID_TOKEN": jwt(iss="https://accounts.google.com", aud=["npm"])}
    tokens = given({"NPM_ID_TOKEN": token, **others}, ci={})
    assert asyncio.run(tokens.fetch("npm:registry.npmjs.org")) == Secret(token)
    issuer = tokens.find_issuer(["npm:registry.npmjs.org"])
    assert is_known(issuer, (GITHUB, GITLAB, CIRCLECI))
    assert not is_known(issuer, (GITHUB, GITLAB))
    assert is_known(CIRCLECI, (CIRCLECI,))
    assert not is_known(f"{CIRCLECI}.evil.example/org/1", (CIRCLECI,))
    obstacle = tokens.find_obstacle("pypi")
    assert obstacle is not None
    assert obstacle.cure.startswith("Set PYPI_ID_TOKEN to an ID token of this job")
    assert given({}, ci={}).find_issuer(["pypi"]) == ""


@pytest.mark.parametrize(
    ("ci", "issuer"),
    [
        (GITLAB_CI, "https://gitlab.com"),
        (GITLAB_CI | {"CI_SERVER_URL": "https://git.example"}, "https://git.example"),
        ({"GITHUB_ACTIONS": "true"}, GITHUB),
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://git.example"},
            "https://git.example/_services/token",
        ),
        (
            {
                "GITHUB_ACTIONS": "true",
                "FORGEJO_ACTIONS": "true",
                "GITHUB_SERVER_URL": "https://codeberg.org",
            },
            "https://codeberg.org/api/actions",
        ),
    ],
)
def test_each_ci_signs_in_its_own_name(ci: dict[str, str], issuer: str) -> None:
    credentials = Credentials(snapshot(ci), mask=lambda _: None)
    tokens = open_tokens(CI.of(ci), credentials, httpx.AsyncClient())
    assert tokens.find_issuer(["pypi"]) == issuer


@pytest.mark.parametrize(
    ("told", "condition"),
    [
        ("FORGEJO_ACTIONS", "this workflow has no `enable-openid-connect: true`"),
        ("GITEA_ACTIONS", "Gitea has no ID tokens"),
    ],
)
def test_each_service_says_what_it_takes(told: str, condition: str) -> None:
    ci = {"GITHUB_ACTIONS": "true", told: "true", "GITHUB_SERVER_URL": "https://git.example"}
    credentials = Credentials(snapshot(ci), mask=lambda _: None)
    obstacle = open_tokens(CI.of(ci), credentials, httpx.AsyncClient()).find_obstacle("pypi")
    assert obstacle is not None
    assert obstacle.condition == condition


def test_forgejo_answers_by_its_own_name() -> None:
    ci = {**OFFERED, "FORGEJO_ACTIONS": "true", "GITHUB_SERVER_URL": "https://codeberg.org"}
    with pytest.raises(Denied, match="Forgejo's ID token service"):
        fetch(ci, lambda _: httpx.Response(403))
