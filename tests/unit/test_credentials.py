from __future__ import annotations

import base64
import html
import json
import pickle
from urllib.parse import quote, quote_plus

import pytest

from releasekit.http.credentials import Credentials, Secret, snapshot


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
