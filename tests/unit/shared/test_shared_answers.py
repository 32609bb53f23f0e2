from __future__ import annotations

import httpx
import pytest

from releasekit.ecosystems.cargo.registry import ANSWERS as CARGO
from releasekit.ecosystems.go.registry import ANSWERS as GO
from releasekit.ecosystems.maven.repository import ANSWERS as MAVEN
from releasekit.ecosystems.npm.answers import ANSWERS as NPM
from releasekit.ecosystems.npm.answers import STAGE_ANSWERS as NPM_STAGED
from releasekit.ecosystems.pypi.registry import ANSWERS as PYPI
from releasekit.ecosystems.shared.answers import ResponseRules, most_telling
from releasekit.errors import (
    CircuitOpen,
    CommandFailed,
    Denied,
    PackageError,
    Rejected,
    Transient,
)
from releasekit.git.remote import explain as explain_git
from releasekit.http.answers import check


def test_a_final_error_outweighs_one_to_retry() -> None:
    final = Rejected("no")
    assert most_telling([Transient("later"), final, Denied("you")]) is final


def test_errors_to_retry_are_joined() -> None:
    """R12, R15: the longest pause, and ambiguous if any of them is."""
    joined = most_telling(
        [
            Transient("one", retry_after=3.0, hint="wait"),
            Transient("two", retry_after=8.0),
            Transient("three", ambiguous=True, contended=True),
        ]
    )
    assert isinstance(joined, Transient)
    assert (str(joined), joined.retry_after, joined.ambiguous, joined.hint) == (
        "one",
        8.0,
        True,
        "wait",
    )
    alone = most_telling([Transient("one")])
    assert isinstance(alone, Transient)
    assert (alone.retry_after, alone.ambiguous, alone.contended) == (None, False, False)
    assert joined.contended


def test_files_that_nobody_was_asked_to_take_are_no_attempt() -> None:
    """R16: as little as one such file; where one of several was sent, it counts."""
    resting = [CircuitOpen("down", retry_after=pause_s) for pause_s in (4.0, 5.0)]
    joined = most_telling(resting)
    assert isinstance(joined, CircuitOpen)
    assert joined.retry_after == 5.0
    assert not isinstance(most_telling([*resting, Transient("503")]), CircuitOpen)


def test_a_crowd_is_not_a_version_that_exists() -> None:
    """R15: nothing was stored, whatever the status says elsewhere."""
    crowd = httpx.Response(409, text="failed to push some refs")
    with pytest.raises(Transient) as caught:
        ResponseRules().accept(crowd, "cargo:core", redact=str)
    assert caught.value.contended
    assert not ResponseRules().accept(httpx.Response(409, text="exists"), "cargo:core", redact=str)


def test_an_answer_is_read_once() -> None:
    """R51: whether it says that the file is there, what it says otherwise, and what to do."""
    read: list[str] = []

    def redact(text: str) -> str:
        read.append(text)
        return text

    answers = ResponseRules(exists=((403, "already there"),), hints={"no token": "Get one."})
    response = httpx.Response(403, text="No token")
    with pytest.raises(Denied, match="pypi:core: HTTP 403 No token") as caught:
        answers.accept(response, "pypi:core", redact=redact)
    assert caught.value.hint == "Get one."
    assert read.count("No token") == 1


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("answers", "asked_for"),
    [
        (CARGO, "cargo-token"),
        (GO, "go-proxy"),
        (MAVEN, "maven-password"),
        (NPM, "npm-token"),
        (PYPI, "pypi-token"),
    ],
)
def test_who_may_not_look_is_told_of_reading_not_of_publishing(
    answers: ResponseRules, asked_for: str, status: int
) -> None:
    refused = httpx.Response(status, text="no")
    with pytest.raises(Denied) as looking:
        answers.check(refused, "x", redact=str)
    assert asked_for in looking.value.hint
    with pytest.raises(Denied) as publishing:
        answers.check(refused, "x", redact=str, reading=False)
    assert looking.value.hint != publishing.value.hint
    with pytest.raises(Denied) as uploading:
        answers.accept(refused, "x", redact=str)
    assert uploading.value.hint == publishing.value.hint


def test_words_that_tell_more_than_the_status_are_heeded_in_reading_too() -> None:
    answers = ResponseRules(hints={"expired": "Make a new one."}, reading="Give a token.")
    with pytest.raises(Denied) as caught:
        answers.check(httpx.Response(401, text="token expired"), "x", redact=str)
    assert caught.value.hint == "Make a new one."


EVERYONE = [
    ("npm", NPM),
    ("npm, staged", NPM_STAGED),
    ("cargo", CARGO),
    ("go", GO),
    ("maven", MAVEN),
    ("pypi", PYPI),
]


@pytest.mark.parametrize(
    "answers", [each for _, each in EVERYONE], ids=[name for name, _ in EVERYONE]
)
def test_no_refusal_leaves_anybody_without_a_thing_to_do(answers: ResponseRules) -> None:
    """R47: whatever is asked, and whatever the status, even one that nobody has heard of."""

    def accepted(response: httpx.Response) -> object:
        return answers.accept(response, "core", redact=str)

    def read(response: httpx.Response) -> object:
        return answers.check(response, "core", redact=str)

    def sent(response: httpx.Response) -> object:
        return answers.check(response, "core", redact=str, reading=False)

    def checked(response: httpx.Response) -> object:
        return check(response, "core")

    for status in range(400, 600):
        asked = (
            [read, sent, checked] if status in answers.taken else [accepted, read, sent, checked]
        )
        for ask in asked:
            with pytest.raises(PackageError) as caught:
                ask(httpx.Response(status, text="no"))
            assert 20 < len(caught.value.hint) < 400
            assert caught.value.hint.splitlines() == [caught.value.hint]


def test_no_refusal_of_a_git_server_does_either() -> None:
    """R47"""
    for status in range(400, 600):
        words = f"fatal: unable to access 'https://h/': The requested URL returned error: {status}"
        for writing in (False, True):
            assert explain_git(CommandFailed(words, log=(words,)), "core", writing=writing).hint
    rule = "remote: error: GH013: Repository rule violations found for refs/tags/v1.0.0."
    assert (
        "protect tags" in explain_git(CommandFailed("no", log=(rule,)), "core", writing=True).hint
    )


@pytest.mark.parametrize(
    ("answers", "status", "words", "told"),
    [
        (PYPI, 400, "nobody knows", "https://packaging.python.org/"),
        (PYPI, 400, "File too large. Limit for project 'a' is 100 MB.", "storage-limits"),
        (PYPI, 400, "The name 'a' is too similar to an existing project.", "#project-name"),
        (PYPI, 400, "The use of local versions in <Version> is not allowed.", "`+`"),
        (PYPI, 413, "", "larger"),
        (NPM, 400, "nobody knows", "https://docs.npmjs.com/"),
        (NPM, 400, "Validation failed: Package json structure is too large", "package.json"),
        (NPM, 413, "Payload Too Large", "`files`"),
        (NPM, 415, "Too many files.", "`files`"),
        (CARGO, 400, "nobody knows", "https://doc.rust-lang.org/cargo/"),
        (CARGO, 413, "", "10 MiB"),
        (CARGO, 400, "max upload size is: 10485760", "10 MiB"),
        (MAVEN, 400, "nobody knows", "snapshots"),
        (MAVEN, 402, "", "licence"),
        (MAVEN, 413, "", "client_max_body_size"),
        (MAVEN, 422, "", "capital"),
        (GO, 500, "", "run the same command again"),
        (NPM, 429, "", "however slowly"),
        *((each, 401, "reqPackageAccess", "`write:package`") for each in (PYPI, NPM, CARGO, MAVEN)),
    ],
)
def test_the_usual_causes_are_those_of_the_registry(
    answers: ResponseRules, status: int, words: str, told: str
) -> None:
    """R47"""
    with pytest.raises(PackageError) as caught:
        answers.accept(httpx.Response(status, text=words), "core", redact=str)
    assert told in caught.value.hint


@pytest.mark.parametrize("rules", [CARGO, GO, MAVEN, NPM, PYPI])
@pytest.mark.parametrize(
    ("page", "refused"),
    [
        ('<form action="/login"><input name="p" type="password"></form>', True),
        ("<INPUT TYPE = 'Password' NAME=p>", True),
        ("<!DOCTYPE html><title>201 Created</title><h1>Created</h1>", False),  # Apache's mod_dav
    ],
)
def test_a_page_with_a_login_has_stored_nothing(
    rules: ResponseRules, page: str, refused: bool
) -> None:
    """Proxies and networks answer so, with 200."""
    request = httpx.Request("PUT", "https://r.example/acme")
    response = httpx.Response(200, html=page, request=request)
    if refused:
        with pytest.raises(Rejected, match="the answer is a login page") as caught:
            rules.accept(response, "npm:acme@1", redact=str)
        assert "correct the address" in caught.value.hint
    else:
        assert rules.accept(response, "npm:acme@1", redact=str)
