from __future__ import annotations

import base64
import html
import json
import pickle
from urllib.parse import quote, quote_plus

import pytest

from releasekit.ecosystems import ECOSYSTEMS
from releasekit.errors import ConfigError
from releasekit.host.process import Processes
from releasekit.host.scrub import ToolVariables
from releasekit.http.credentials import Credentials, Secret, require_text, snapshot


def credentials(masked: list[str] | None = None, **environ: str) -> Credentials:
    seen: list[str] = [] if masked is None else masked
    return Credentials(snapshot(environ), mask=seen.append)


def test_a_secret_shows_itself_on_request_only() -> None:
    """R34"""
    secret = Secret("hunter2")
    assert secret.reveal() == "hunter2"
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {secret:>20}"
    with pytest.raises(TypeError, match="not written down"):
        pickle.dumps(secret)


def test_secrets_compare_by_value() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret("")


@pytest.mark.parametrize(
    "name",
    [
        "RELEASEKIT_PYPI_TOKEN",
        "RELEASEKIT_MAVEN_PASSWORD",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "ACTIONS_RUNTIME_TOKEN",
        "PYPI_ID_TOKEN",
        "PYPI_ID_TOKEN_2",
        "CI_JOB_TOKEN",
        "UV_PUBLISH_TOKEN",
        "UV_INDEX_INTERNAL_PASSWORD",
        "TWINE_PASSWORD",
        "NODE_AUTH_TOKEN",
        "npm_config__auth",
        "CARGO_REGISTRY_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "OPENAI_API_KEY",
        "MAVEN_GPG_PASSPHRASE",
    ],
)
def test_secrets_are_split_off_the_environment(name: str) -> None:
    """R34, R39"""
    taken = snapshot({name: " hunter2\n", "PATH": "/bin"})
    assert dict(taken.environment) == {"PATH": "/bin"}
    assert taken.secrets[name] == Secret("hunter2")


@pytest.mark.parametrize("name", ["PATH", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM", "KEYBOARD"])
def test_other_variables_stay(name: str) -> None:
    assert snapshot({name: "value"}).environment == {name: "value"}


def test_the_snapshot_cannot_be_changed() -> None:
    """R39"""
    taken = snapshot({"PATH": "/bin"})
    with pytest.raises(TypeError):
        taken.environment["PATH"] = "/evil"  # type: ignore[index]


def test_a_variable_that_is_set_to_nothing_is_not_set() -> None:
    """GitHub passes an empty string for a secret that does not exist."""
    found = credentials(RELEASEKIT_PYPI_TOKEN=" ", PATH="/bin")
    assert found.get("RELEASEKIT_PYPI_TOKEN") is None
    assert found.get("RELEASEKIT_NPM_TOKEN") is None
    assert found.environment == {"PATH": "/bin"}


def test_every_secret_is_masked_at_once() -> None:
    """R38"""
    masked: list[str] = []
    credentials(masked, GITHUB_TOKEN="ghs_1", NPM_TOKEN="npm_2", EMPTY_TOKEN="")
    assert sorted(masked) == ["ghs_1", "npm_2"]


def test_a_minted_token_is_masked_once_and_redacted() -> None:
    """R38"""
    masked: list[str] = []
    found = credentials(masked)
    live = found.values
    assert found.adopt("pypi-abc") == found.adopt("pypi-abc") == Secret("pypi-abc")
    assert masked == ["pypi-abc"]
    assert "pypi-abc" in live
    assert found.redact("the token pypi-abc is bad") == "the token *** is bad"


def test_a_secret_that_begins_with_another_is_redacted_whole() -> None:
    """R34"""
    found = credentials(A_TOKEN="abcd", B_TOKEN="abcdefgh")
    assert found.redact("abcdefgh abcd") == "*** ***"


def test_words_of_three_letters_stay_readable() -> None:
    assert credentials(A_TOKEN="the").redact("the end") == "the end"


def test_lines_of_a_secret_are_secrets() -> None:
    """R34"""
    found = credentials(SIGNING_PRIVATE_KEY="-----BEGIN\nMIIEvq\n}\n-----END")
    assert found.redact("read MIIEvq") == "read ***"
    assert found.redact("{}") == "{}"


def test_a_token_is_a_secret_without_the_word_in_front_of_it_too() -> None:
    """R34: what a server shows of `Bearer TOKEN` is the token."""
    masked: list[str] = []
    found = credentials(masked, RELEASEKIT_CARGO_TOKEN="Bearer abc-def")
    assert masked == ["Bearer abc-def", "abc-def"]
    assert found.redact("Bearer abc-def, abc-def") == "***, ***"


TOKEN = 's3cr3t/with+odd&"chars" ü%'


@pytest.mark.parametrize(
    "shown",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote(TOKEN, safe="").lower(),
        quote_plus(TOKEN),
        json.dumps({"a": TOKEN}),
        json.dumps({"a": TOKEN}, ensure_ascii=False),
        json.dumps({"a": TOKEN}).replace("/", r"\/"),
        repr([TOKEN]),
        html.escape(TOKEN),
        *(
            encode(f"{user}{TOKEN}".encode()).decode().rstrip(end)
            for user in ("", "a:", "__token__:", "ab:", "jane.doe@example.org:")
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
            for end in ("", "=")
        ),
    ],
)
def test_a_secret_is_redacted_in_every_spelling(shown: str) -> None:
    """R50: a server echoes what it was sent, a build prints what it has made of it."""
    redacted = credentials(A_TOKEN=TOKEN).redact(f"<{shown}>")
    assert "***" in redacted
    assert "s3cr3t" not in redacted
    # Of base64, what depends on the neighbours stays: parts of one character at both ends.
    assert len(redacted) <= len(base64.b64encode(b"jane.doe@example.org:")) + 10


@pytest.mark.parametrize(
    ("value", "shown", "left"),
    [
        ("Basic amFuZTpodW50ZXIyMw==", "hunter23, jane", "***, jane"),
        ("amFuZTpodW50ZXIyMw==", "jane:hunter23", "***"),
        ("Bearer QWxhNDIxeHk6aHVudGVyMjM=", "Ala421xy", "***"),
        ("  padded-token\n", "padded-token", "***"),
        ("Token abcdef", "Authorization: Token abcdef", "Authorization: ***"),
    ],
)
def test_parts_of_a_secret_are_secrets(value: str, shown: str, left: str) -> None:
    """R50"""
    assert credentials(NPM_CONFIG__AUTH=value).redact(shown) == left


@pytest.mark.parametrize("value", ["true", "None", "}", "abc"])
def test_words_are_no_secrets(value: str) -> None:
    masked: list[str] = []
    assert credentials(masked, ENABLE_AUTH=value).redact(f"is {value}") == f"is {value}"
    assert masked == []


# What a variable may hold, and the part of it that nobody may read.
HOLDING = [
    *((f"{kind}_PROXY", "http://u:pa55word@proxy:3128") for kind in ("HTTP", "HTTPS", "ALL")),
    ("http_proxy", "u:pa55word@proxy:3128"),
    ("PIP_PROXY", "u:pa55word@proxy:3128"),
    ("CARGO_HTTP_PROXY", "u:pa55word@proxy:3128"),
    ("npm_config_https_proxy", "http://u:pa55word@proxy"),
    ("HTTPS_PROXY", "http://u:pa55%77ord@proxy"),
    *(
        (name, "https://u:pa55word@index.example/simple")
        for name in (
            *("RELEASEKIT_INDEX_URL", "RELEASEKIT_PYPI_REGISTRY", "RELEASEKIT_FIND_LINKS"),
            *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL"),
            *("PIP_EXTRA_INDEX_URL", "NPM_CONFIG_REGISTRY", "GOPROXY", "GONOSUMDB", "GOPRIVATE"),
            *("CARGO_REGISTRIES_ACME_INDEX", "DATABASE_URL"),
        )
    ),
    ("GOPROXY", "https://proxy.example|https://u:pa55word@two.example,direct"),
    ("UV_INDEX", "acme=https://pa55word@index.example"),
    ("UV_INDEX_ACME_PASSWORD", "pa55word"),
    ("UV_PUBLISH_PASSWORD", "pa55word"),
    ("TWINE_PASSWORD", "pa55word"),
    ("POETRY_HTTP_BASIC_ACME_PASSWORD", "pa55word"),
    ("POETRY_PYPI_TOKEN_PYPI", "pa55word"),
    ("HATCH_INDEX_AUTH", "pa55word"),
    ("NPM_CONFIG__AUTH", "pa55word"),
    ("npm_config__auth", "dTpwYTU1d29yZA=="),
    ("NPM_CONFIG__AUTHTOKEN", "pa55word"),
    ("npm_config_//registry.npmjs.org/:_authToken", "pa55word"),
    ("npm_config_//npm.example/:_password", "pa55word"),
    ("YARN_NPM_AUTH_TOKEN", "pa55word"),
    ("CARGO_REGISTRY_TOKEN", "pa55word"),
    ("CARGO_REGISTRIES_ACME_TOKEN", "Bearer pa55word"),
    ("MAVEN_OPTS", "-Xmx1g -Dgpg.passphrase=pa55word"),
    ("MAVEN_ARGS", '-Drepo.password="pa55word" -B'),
    ("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.keyStorePassword=pa55word"),
    ("NODE_OPTIONS", "--title=x --token=pa55word"),
    ("GOFLAGS", "-ldflags=-X=main.apiKey=pa55word"),
    ("RUSTFLAGS", '--cfg api_token="pa55word"'),
    ("CFLAGS", '-DCLIENT_SECRET="pa55word"'),
    ("AZURE_CREDENTIALS", '{"clientId": "an-id", "clientSecret": "pa55word"}'),
    ("GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic dTpwYTU1d29yZA=="),
    ("ORG_GRADLE_PROJECT_signingKey", "-----BEGIN PGP-----\npa55word\n-----END PGP-----"),
    ("SIGNING_KEY", "-----BEGIN PGP-----\npa55word\n-----END PGP-----"),
]


@pytest.mark.parametrize(("name", "value"), HOLDING)
def test_a_secret_in_a_variable_reaches_no_build_and_no_text(name: str, value: str) -> None:
    """R34, R50: whatever the variable is called, and even where a build asks for it."""
    masked: list[str] = []
    found = credentials(masked, **{name: value})
    variables = ToolVariables.of_all(each.variables for each in ECOSYSTEMS.values())
    processes = Processes(environment=found.environment, secrets=found.values, variables=variables)
    assert name not in processes.environment
    assert processes.passing([name]) == {}
    assert "pa55word" in "".join(masked)
    assert found.redact("it is pa55word") == "it is ***"
    assert base64.b64encode(b"pa55word").decode()[:-1] not in found.redact(
        base64.b64encode(b"pa55word").decode()
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTP_PROXY", "http://proxy:3128"),
        ("PIP_INDEX_URL", "https://index.example/simple"),
        ("MAVEN_OPTS", "-Xmx1g -Djavax.net.ssl.trustStorePassword=changeit"),
        ("JAVA_TOOL_OPTIONS", "-Dtoken.file=/run/token"),
        ("GOFLAGS", "-mod=readonly -tags=netgo"),
        ("GOPRIVATE", "example.com/*"),
        ("RUSTFLAGS", "-C target-cpu=native"),
        ("NODE_OPTIONS", "--max-old-space-size=4096"),
        ("npm_config_cache", "/cache"),
        ("UV_CACHE_DIR", "/cache"),
        ("CARGO_HOME", "/cargo"),
    ],
)
def test_what_holds_no_secret_reaches_builds(name: str, value: str) -> None:
    masked: list[str] = []
    found = credentials(masked, **{name: value})
    variables = ToolVariables.of_all(each.variables for each in ECOSYSTEMS.values())
    processes = Processes(environment=found.environment, secrets=found.values, variables=variables)
    assert processes.environment == {name: value}
    assert masked == []


@pytest.mark.parametrize(
    "text",
    ["Rotate token: acme-core on 401", "Read the password: twice, then\nstore no secret: ever."],
)
def test_a_sentence_holds_no_secret(text: str) -> None:
    """As the title of a pull request. A mask drops every output that holds the word."""
    masked: list[str] = []
    assert credentials(masked, TITLE=text).redact(text) == text
    assert masked == []


@pytest.mark.parametrize(
    "text",
    [
        *("password: correcthorse", "user: me\n  api-token: correcthorse", "a secret=correcthorse"),
        *("-H 'PRIVATE-TOKEN: correcthorse'", 'its "token": "correcthorse"', "token:correcthorse"),
        *("its token: c0rrecthorse", "its Authorization: Bearer correcthorse"),
    ],
)
def test_a_setting_does(text: str) -> None:
    assert "rrecthorse" not in credentials(CONFIG=text).redact(text)


def test_where_a_secret_is_is_none() -> None:
    places = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": "/var/run/token",
        "GOOGLE_APPLICATION_CREDENTIALS": "/tmp/gha-creds.json",
        "SSH_AUTH_SOCK": "/tmp/agent",
    }
    assert snapshot(places).environment == places


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ("jane", "jane"),
        ("__token__", "__token__"),
        ("a@b.ex1", "a@b.ex1"),
        ("aB3dE9xY", "***"),
    ],
)
def test_a_user_that_is_half_of_a_token_is_a_secret(user: str, shown: str) -> None:
    """R50: Maven Central's tokens have two."""
    found = credentials()
    found.adopt_user(user)
    assert found.redact(user) == shown


def test_a_secret_that_is_no_text_is_hidden_and_refused() -> None:
    """R34, R40: an environment may hold any bytes, and an answer in JSON half a character."""
    masked: list[str] = []
    odd = "hunter2\udcff/\udcfe"
    known = credentials(masked, RELEASEKIT_PYPI_TOKEN=odd, OTHER_TOKEN="fine")
    assert masked == [odd, "fine"]
    for shown in (odd, "hunter2\ufffd/\ufffd", "hunter2%FF%2F%FE", "hunter2%ff/%fe", repr(odd)):
        assert "hunter2" not in known.redact(f"x {shown} y")
    known.adopt("correct\ud83d")
    assert known.redact("correct\ud83d correct%ED%A0%BD") == "*** ***"
    assert Secret(odd) == Secret(odd) != Secret("\ud83d")
    taken = snapshot({"RELEASEKIT_PYPI_TOKEN": odd, "OTHER_TOKEN": odd})
    with pytest.raises(ConfigError, match=r"^RELEASEKIT_PYPI_TOKEN is not UTF-8; write") as refused:
        require_text(taken, ["RELEASEKIT_NPM_TOKEN", "RELEASEKIT_PYPI_TOKEN"])
    assert "hunter2" not in str(refused.value)
    require_text(taken, ["RELEASEKIT_NPM_TOKEN"])


def test_a_scheme_without_a_secret_behind_it_is_none() -> None:
    """As of `Bearer ${{ secrets.NAME }}`, where the repository has no such secret."""
    for value, secret in {"Bearer ": "", "Bearer abc": "Bearer abc", "Bearer2": "Bearer2"}.items():
        taken = snapshot({"RELEASEKIT_CARGO_TOKEN": value})
        assert taken.secrets["RELEASEKIT_CARGO_TOKEN"].reveal() == secret
