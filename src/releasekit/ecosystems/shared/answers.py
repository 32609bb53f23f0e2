"""What a registry's answer means, and what to do about it; often only its wording tells."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from releasekit.aio import gather_all
from releasekit.errors import CircuitOpen, PackageError, Rejected, Transient
from releasekit.http.answers import LOOKED_AT_BYTES, is_contended, make_error, message_of, remedy
from releasekit.problems import Problem
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    import httpx

# What servers with registries of several kinds say in all of them.
# https://github.com/go-gitea/gitea/blob/v1.26.0/routers/api/packages/api.go (reqPackageAccess)
_HINTS: Final = {
    "reqPackageAccess": "On Gitea and Forgejo, the token needs the scope `write:package`, and its "
    "user, if an organization owns the packages, a team that may write them."
}
# Servers as devpi say with a page that they stored a file, but not with a field for a password.
_LOGIN_PAGE: Final = re.compile(
    rb"<input[^<>]{0,500}type\s{0,9}=\s{0,9}[\"']?password", re.IGNORECASE
)
# What a page for people begins with. The type of an answer tells nothing: an upload that pypiserver
# has stored gets an empty body, as text/html.
# https://github.com/pypiserver/pypiserver/blob/master/pypiserver/_app.py (update)
_PAGE: Final = re.compile(
    rb"(?>(?:\s+|<\?[^>]*>|<!--.*?-->)*)<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_LOG_IN: Final = "Log in to the proxy or the network that shows it, or correct the address."


class ResponseRules(Struct, frozen=True, kw_only=True):
    """How one kind of registry answers.

    `taken` are statuses that say a version exists, `exists` those that say so with these words (0
    for any status). `hints` say what to do, by words, or else `by_status`, or else those of all
    registries; `reading` is the hint for a denied lookup. `denied` are statuses that deny an
    upload, besides 401 and 403. `moved` is the input that names the address. `said` finds the
    words of a registry that puts them where `answers.message_of` does not look; an answer with such
    words is an error, with any status.
    """

    taken: frozenset[int] = frozenset({409})
    exists: tuple[tuple[int, str], ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict)
    by_status: Mapping[int, str] = field(default_factory=dict)
    reading: str = ""
    denied: frozenset[int] = frozenset()
    moved: str = ""
    said: Callable[[httpx.Response], str] = lambda _response: ""

    def accept(self, response: httpx.Response, what: str, *, redact: Callable[[str], str]) -> bool:
        """Whether this request stored the file; False if one existed, with any bytes.

        Raises Transient, Denied or Rejected with what the server says and what to do about it.
        """
        own_words = one_line(redact(self.said(response)))
        words = own_words or message_of(response, redact=redact)
        is_stored = response.status_code in self.taken or any(
            status in {0, response.status_code} and text.lower() in words.lower()
            for status, text in self.exists
        )
        if is_stored and not is_contended(response):
            return False
        if response.has_redirect_location:
            target = one_line(redact(response.headers["Location"]))
            raise Rejected(
                f"{what}: redirected to {target}; an upload follows no redirect",
                hint=self.moved and f"Give the address it leads to as {self.moved}.",
                problem=Problem.WRONG_ADDRESS,
            )
        if not response.is_success:
            hint = self._find_hint(response, words)
            raise make_error(response, what, words, hint=hint, denied=self.denied)
        if _LOGIN_PAGE.search(response.content[:LOOKED_AT_BYTES]):
            raise Rejected(
                f"{what}: the answer is a login page, not the answer of a registry",
                hint=_LOG_IN,
                problem=Problem.STRANGE_ANSWER,
            )
        if own_words:  # a refusal, though the status calls it a success
            hint = self._find_hint(response, own_words) or remedy(400)
            raise Rejected(f"{what}: {own_words}", hint=hint)
        return True

    def check(
        self,
        response: httpx.Response,
        what: str,
        *,
        redact: Callable[[str], str],
        reading: bool = True,
    ) -> httpx.Response:
        """`http.answers.check`, with the registry's own words and what to do about it, which may
        differ for one who was only `reading`.
        """
        if response.is_success:
            return response
        words = one_line(redact(self.said(response))) or message_of(response, redact=redact)
        hint = self._find_hint(response, words, reading=reading)
        raise make_error(response, what, words, hint=hint, denied=self.denied)

    def _find_hint(self, response: httpx.Response, words: str, *, reading: bool = False) -> str:
        hints = {**self.hints, **_HINTS}
        fitting = (hint for text, hint in hints.items() if text.lower() in words.lower())
        by_status = self.by_status.get(response.status_code, "")
        if reading and self.reading and response.status_code in {401, 403}:
            by_status = self.reading
        return next(fitting, by_status)


def is_page(body: bytes) -> bool:
    """Whether this is HTML, by how it begins."""
    return _PAGE.match(body[:LOOKED_AT_BYTES].removeprefix(codecs.BOM_UTF8)) is not None


def refuse_page(response: httpx.Response, what: str, form: str) -> httpx.Response:
    """`response`; raises Transient for a web page, where `form` was to come."""
    if is_page(response.content):
        raise Transient(
            f"{what}: this is a web page, not {form}", hint=_LOG_IN, problem=Problem.STRANGE_ANSWER
        )
    return response


def errors_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The objects in `{"errors": [{…}]}`; empty for any other answer."""
    try:
        document = parse_json(response.content)
    except ValueError:
        return []
    errors = document.get("errors") if isinstance(document, dict) else None
    found = errors if isinstance(errors, list) else []
    return [error for error in found if isinstance(error, dict)]


def hints_by_status(*, denied: str, wrong_place: str) -> dict[int, str]:
    """Hints for refused credentials, and for an address that takes no uploads."""
    wrong_place = f"This address takes no uploads. {wrong_place}"
    return dict.fromkeys((401, 403), denied) | dict.fromkeys((404, 405, 501), wrong_place)


async def all_stored(uploads: Iterable[Awaitable[object]]) -> None:
    """Run all at once; a failure interrupts no other upload. Raises one error for all."""

    async def error_of(upload: Awaitable[object]) -> PackageError | None:
        try:
            await upload
        except PackageError as error:
            return error
        return None

    errors = [error for error in await gather_all(map(error_of, uploads)) if error is not None]
    if errors:
        raise most_telling(errors)


def most_telling(errors: Sequence[PackageError]) -> PackageError:
    """One error for all files of a package: a final one, if any, rather than a transient one."""
    transient = [error for error in errors if isinstance(error, Transient)]
    if len(transient) < len(errors):
        return next(error for error in errors if not isinstance(error, Transient))
    waits = [error.retry_after for error in transient if error.retry_after is not None]
    if all(isinstance(error, CircuitOpen) for error in transient):
        first = transient[0]
        wait_s = max(waits, default=None)
        return CircuitOpen(
            str(first), retry_after=wait_s, asked_s=0.0, limited=False, hint=first.hint
        )
    return Transient(
        str(transient[0]),
        retry_after=max(waits, default=None),
        ambiguous=any(error.ambiguous for error in transient),
        contended=any(error.contended for error in transient),
        limited=any(error.limited for error in transient),
        problem=transient[0].problem,
        hint=transient[0].hint,
    )
