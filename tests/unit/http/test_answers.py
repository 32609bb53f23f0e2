from __future__ import annotations

import re

import httpx
import pytest

from releasekit.errors import (
    CommandFailed,
    Denied,
    PackageError,
    Rejected,
    ReleasekitError,
    Transient,
)
from releasekit.git.remote import explain
from releasekit.http.answers import (
    check,
    is_contended,
    is_passing,
    make_error,
    message_of,
    remedy,
    retry_after,
    words_of_page,
)
from releasekit.text.escape import one_line

DATE = ("Date", "Wed, 21 Oct 2026 07:28:00 GMT")

# The server is up, and could not do it beside what others asked of it.
CONTENDED = 423


@pytest.mark.parametrize("status", range(400, 600))
def test_one_table_says_which_statuses_are_tried_again(status: int) -> None:
    """R12: requests and git pushes alike."""
    with pytest.raises(PackageError) as caught:
        check(httpx.Response(status), "acme 1.0")
    assert isinstance(caught.value, Transient) == (is_passing(status) or status == CONTENDED)
    log = (f"fatal: The requested URL returned error: {status}",)
    pushed = explain(
        CommandFailed("`git push` failed with exit code 128", log=log), "acme 1.0", writing=True
    )
    assert isinstance(pushed, Transient) == is_passing(status)
    assert caught.value.hint == remedy(status) != ""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([("Retry-After", "17")], 17.0),
        ([("Retry-After", " 0 ")], 0.0),
        ([("Retry-After", "9" * 400)], 999_999_999.0),
        ([("Retry-After", "Wed, 21 Oct 2026 07:28:30 GMT"), DATE], 30.0),
        ([("Retry-After", "Wed, 21 Oct 2026 07:27:30 GMT"), DATE], 0.0),
        ([("Retry-After", "soon"), DATE], None),
        ([("Retry-After", "-5")], None),
        ([("Retry-After", "Wed, 21 Oct 999999 07:28:30 GMT")], None),
        ([], None),
    ],
)
def test_retry_after_is_read_in_both_forms(
    headers: list[tuple[str, str]], seconds: float | None
) -> None:
    """R12"""
    assert retry_after(httpx.Response(429, headers=headers)) == seconds


def test_retry_after_without_a_date_counts_from_our_clock() -> None:
    """R12"""
    response = httpx.Response(429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"})
    assert retry_after(response) == 0.0


@pytest.mark.parametrize(
    ("status", "error", "ambiguous"),
    [
        (400, Rejected, None),
        (401, Denied, None),
        (403, Denied, None),
        (404, Rejected, None),
        (413, Rejected, None),
        (422, Rejected, None),
        (308, Rejected, None),
        (408, Transient, False),
        (425, Transient, False),
        (429, Transient, False),
        (500, Transient, True),
        (503, Transient, True),
        (507, Transient, True),
    ],
)
def test_statuses_become_errors(
    status: int, error: type[ReleasekitError], ambiguous: bool | None
) -> None:
    """R12, R15"""
    with pytest.raises(error, match=rf"^acme 1.0: HTTP {status} no") as caught:
        check(httpx.Response(status, text="no"), "acme 1.0")
    assert type(caught.value) is error
    assert getattr(caught.value, "ambiguous", None) is ambiguous


def test_a_status_is_named_once() -> None:
    with pytest.raises(Denied) as caught:
        check(httpx.Response(401, text="401 Unauthorized"), "acme 1.0")
    assert str(caught.value) == "acme 1.0: HTTP 401 Unauthorized"


def test_a_success_passes() -> None:
    response = httpx.Response(204)
    assert check(response, "acme") is response


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("text/plain", "two\r\nlines\t\x00here", "two lines \\x00here"),
        ("text/plain", "::error::\x1b[31m", "::error::\\x1b[31m"),
        ("text/html", "<html><head><title>400</title></head><h1>No &amp; no</h1>", "No & no"),
        ("text/html", "<style>p{}</style><p>No<script>x()</script>", "No"),
        ("text/html", "<head><title>400</title><body>No", "No"),
        ("text/html", "<head><title>400</title>", "Bad Request"),
        ("text/html", "<script>if (a<b) x()</Script >No", "No"),
        ("text/html", "No" + "<style>" * 10_000, "No"),
        ("text/html", "<" * 60_000, "<" * 399 + "…"),
        # More digits than Python makes a number of.
        ("text/html", f"<p>No &#{'1' * 5_000};", f"No &#{'1' * 394}…"),
        ("text/plain", "x" * 5000, "x" * 399 + "…"),
        ("text/plain", "", "Bad Request"),
        ("text/plain", "your token is hunter2", "your token is ***"),
        ("application/json", '{"error": "no\\u001b[31m hunter2"}', "no\\x1b[31m ***"),
        ("text/html", "<p>not p<b>w, nor p&lt;b&gt;w, hunter2", "not ***, nor ***, ***"),
        ("application/problem+json", '{"error": 7, "message": "no"}', "no"),
        ("application/json", '{"errors": []}', '{"errors": []}'),
        ("application/json", "[1]", "[1]"),
        ("application/json", "{", "{"),
    ],
)
def test_the_servers_words_are_made_harmless(content_type: str, body: str, message: str) -> None:
    """R34, R35"""
    response = httpx.Response(400, content=body, headers={"Content-Type": content_type})

    def redact(text: str) -> str:
        return re.sub("hunter2|p<b>w", "***", text)

    assert message_of(response, redact=redact) == message


@pytest.mark.parametrize(
    "piece",
    ["<", ">", "<a <a", "<a ", "<!--", "<![", "<?", "<style>", "<head ", "</head", "&#", "&"],
)
def test_a_page_of_any_kind_is_read_in_one_pass(piece: str) -> None:
    """R51: what went over such a page again and again would not come to an end within this test."""
    words_of_page("<p>No</p>" + (piece * 2**20)[: 2**20])


def test_no_more_of_an_answer_is_looked_at_than_may_be_shown() -> None:
    """R51"""
    looked_at: list[int] = []

    def redact(text: str) -> str:
        looked_at.append(len(text))
        return text

    message_of(httpx.Response(400, content=b"x" * 2**20), redact=redact)
    assert looked_at == [2**16]
    assert one_line(f"No{' ' * 2**20}y") == "No…"
    assert one_line(f"No{' ' * 1_000}y") == "No y"


def test_words_at_hand_are_not_looked_for_again() -> None:
    error = make_error(httpx.Response(400, text="unseen"), "acme 1.0", "known", hint="Do this.")
    assert (str(error), error.hint) == ("acme 1.0: HTTP 400 known", "Do this.")


@pytest.mark.parametrize(
    ("status", "text", "contended"),
    [
        (500, "error: cannot lock ref 'refs/heads/master': is at 1 but expected 2", True),
        (500, "Unable to create '/i/.git/index.lock': File exists.", True),
        (503, "! [rejected] master -> master (non-fast-forward)", True),
        (409, "cannot push non-fastforwardable reference", True),
        (423, "", True),
        (409, "this version exists", False),
        (500, "no space left on device", False),
        (403, "failed to push some refs", False),
        (400, "cannot lock ref", False),
    ],
)
def test_a_server_says_that_there_were_others(status: int, text: str, contended: bool) -> None:
    """R12, R15: it is up, so that nobody has to leave it alone."""
    response = httpx.Response(status, text=text)
    assert is_contended(response) is contended
    with pytest.raises(PackageError) as caught:
        check(response, "x")
    assert getattr(caught.value, "contended", False) is contended
