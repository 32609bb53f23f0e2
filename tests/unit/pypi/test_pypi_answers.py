from __future__ import annotations

import httpx
import pytest

from releasekit.ecosystems.pypi.registry import ANSWERS, is_token_stale
from releasekit.errors import Denied, PackageError, Rejected, Transient

REUSED = (
    "This filename was previously used by a file that has since been deleted. Use a different "
    "version. See https://pypi.org/help/#file-name-reuse for more information."
)
CLOSED = "Uploading new files to releases older than 14 days is not allowed."
NEW_PROJECTS = "Too many new projects created"
PENDING = "Non-user identities cannot create new projects. This was probably caused by successfully"
OTHER_PROJECT = "Invalid API Token: OIDC scoped token is not valid for project 'acme-core'"
NOT_ALLOWED = "The user 'me' isn't allowed to upload to project 'acme-core'. See"
INVALID = "Invalid or non-existent authentication information. See"


def warehouse(status: int, text: str) -> httpx.Response:
    """https://github.com/pypi/warehouse/blob/main/warehouse/forklift/utils.py"""
    page = f"<html>\n <head>\n  <title>{status} {text}</title>\n </head>\n <body>\n  "
    page += f"<h1>{status} {text}</h1>\n  The server could not comply.<br/><br/>\n{text}\n</body>"
    return httpx.Response(status, html=page)


def accept(response: httpx.Response) -> None:
    ANSWERS.accept(response, "acme 1.0: acme-1.0.whl", redact=lambda text: text)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200),
        httpx.Response(201),
        warehouse(400, "File already exists ('acme-1.0.whl', with blake2_256 hash 'ab'). See"),
        httpx.Response(409, text="Package 'acme-1.0.whl' already exists!"),
        httpx.Response(409, text="409 acme-1.0.whl already exists in non-volatile index"),
        httpx.Response(400, text="Repository does not allow updating assets: pypi"),
        httpx.Response(
            400, json={"message": "Validation failed: File name has already been taken"}
        ),
        httpx.Response(403, text="Not enough permissions to overwrite artifact 'pypi:acme'"),
    ],
)
def test_a_file_that_is_there_is_accepted(response: httpx.Response) -> None:
    """R15, R17: the caller compares the bytes."""
    accept(response)


@pytest.mark.parametrize(
    ("response", "error", "hint"),
    [
        (warehouse(400, REUSED), Rejected, "never taken twice"),
        (warehouse(400, CLOSED), Rejected, "under another version"),
        (warehouse(429, NEW_PROJECTS), Transient, "pending trusted publisher"),
        (warehouse(400, PENDING), Rejected, "pending trusted publisher"),
        (warehouse(403, OTHER_PROJECT), Denied, "trusted publisher of this project too"),
        (warehouse(403, NOT_ALLOWED), Denied, "does not maintain this project"),
        (warehouse(403, INVALID), Denied, "pypi.org and test.pypi.org do not share accounts"),
        (httpx.Response(401), Denied, "RELEASEKIT_PYPI_TOKEN"),
        (httpx.Response(403), Denied, "`pypi-username`"),
        (httpx.Response(404), Rejected, "address that takes uploads"),
        (httpx.Response(405), Rejected, "address that takes uploads"),
        (
            httpx.Response(413, text="Request Entity Too Large"),
            Rejected,
            "larger than the registry takes",
        ),
        (httpx.Response(422, text="bad metadata"), Rejected, "correct what it says"),
        (httpx.Response(503), Transient, "run the same command again later"),
    ],
)
def test_every_refusal_says_what_to_do(
    response: httpx.Response, error: type[PackageError], hint: str
) -> None:
    with pytest.raises(
        error, match=rf"^acme 1.0: acme-1.0.whl: HTTP {response.status_code}"
    ) as caught:
        accept(response)
    assert type(caught.value) is error
    assert hint in caught.value.hint


def test_the_servers_own_words_are_kept() -> None:
    with pytest.raises(Rejected, match="previously used by a file that has since been deleted"):
        accept(warehouse(400, REUSED))


def test_an_upload_is_not_redirected() -> None:
    """R37"""
    response = httpx.Response(308, headers={"Location": "https://evil.example/legacy/\x7f"})
    with pytest.raises(Rejected, match=r"redirected to https://evil.example/legacy/") as caught:
        accept(response)
    assert "as pypi-registry" in caught.value.hint
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("response", "stale"),
    [
        (httpx.Response(401), True),
        (warehouse(403, INVALID), True),
        (warehouse(403, "Invalid API Token: token is expired"), True),
        (warehouse(403, OTHER_PROJECT), False),
        (warehouse(400, INVALID), False),
        (httpx.Response(200), False),
    ],
)
def test_only_a_stale_token_is_worth_a_new_one(response: httpx.Response, stale: bool) -> None:
    """R38"""
    assert is_token_stale(response) is stale
