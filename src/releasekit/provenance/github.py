"""The release statement at GitHub, which shows it on a page and answers `gh attestation verify`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.errors import ConfigError, PackageError, Rejected, Transient
from releasekit.http.client import RetryPolicy, retry
from releasekit.http.github import ask
from releasekit.http.origins import require_safe
from releasekit.provenance.release import BRIEF
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from releasekit.attested import ReleaseStatement
    from releasekit.http.credentials import Secret
    from releasekit.http.github import GitHub
    from releasekit.provenance.bundle import Bundle
    from releasekit.provenance.job import Job

_MAX_DIGITS: Final = 20
_API: Final = "GITHUB_API_URL"
_AGAIN: Final = "Run the job again: what is signed is kept, and sent."
_PERMISSION: Final = "Give the job the permission `attestations: write`."
# What else a refusal is about; its own words come first.
_CURES: Final = {
    401: "`forge-token` has to be a token of this GitHub; leave it out for the job's own.",
    403: f"{_PERMISSION} For private repositories it takes GitHub Enterprise Cloud.",
    404: f"{_PERMISSION} A GitHub Enterprise Server may have no attestations.",
}


async def send_to_github(
    statement: ReleaseStatement,
    bundles: Sequence[Bundle],
    job: Job,
    github: GitHub,
    *,
    policy: RetryPolicy = BRIEF,
) -> ReleaseStatement:
    """`statement` with the page on which GitHub shows it, or with a note that says why there is
    none; a release fails for want of neither.

    https://docs.github.com/en/rest/repos/attestations#create-an-attestation
    """
    if github.token is None:
        return replace(statement, note=f"GitHub was not sent it: there is no token. {_PERMISSION}")
    pages = f"{job.server}/{job.repository}/attestations"
    try:
        place = f"{github.api.rstrip('/')}/repos/{job.repository}/attestations"
        kept = _Kept(github, github.token, require_safe(place, name=_API))
        send = kept.send_unless_there if statement.kept else kept.send
        numbers = await gather_all(retry(partial(send, each), policy) for each in bundles)
    except (ConfigError, PackageError) as error:
        cure = _AGAIN if isinstance(error, Transient) else error.hint
        return replace(statement, note=f"GitHub has not taken it: {error}. {cure}".rstrip())
    # Each has a page; several, or one of an unknown number, are on the one that lists all.
    page = f"{pages}/{numbers[0]}" if len(numbers) == 1 and numbers[0] else pages
    return replace(statement, url=page)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The attestations that GitHub keeps at `place`. Each call is one attempt. Raises Transient,
    Denied, Rejected.
    """

    github: GitHub
    token: Secret
    place: httpx.URL

    async def send(self, bundle: Bundle) -> str:
        """The number that it gets; empty where GitHub tells none."""
        content = b'{"bundle":%s}' % bundle.text
        document = _document(await self._ask("POST", self.place, content))
        number = str(document.get("id")) if isinstance(document, dict) else ""
        is_number = number.isascii() and number.isdigit() and len(number) < _MAX_DIGITS
        return number if is_number else ""

    async def send_unless_there(self, bundle: Bundle) -> str:
        """The run that signed it may have come as far as that. GitHub tells no numbers here.

        https://docs.github.com/en/rest/repos/attestations#list-attestations
        """
        digest = bundle.subjects[0].digests.get("sha256", "")
        page = self.place.copy_with(path=f"{self.place.path}/sha256:{digest}")
        found = _document(await self._ask("GET", page, b"", missing=True))
        if isinstance(found, dict) and _has(found.get("attestations"), bundle):
            return ""
        return await self.send(bundle)

    async def _ask(
        self, method: str, url: httpx.URL, content: bytes, *, missing: bool = False
    ) -> httpx.Response:
        try:
            return await ask(self.github, method, url, content=content, missing=missing)
        except Rejected as error:
            error.hint = _CURES.get(error.status, "")
            raise


def _document(response: httpx.Response) -> object:
    """None for what is no JSON: there it is, whatever GitHub says of it."""
    try:
        return parse_json(response.content)
    except ValueError:
        return None


def _has(attestations: object, bundle: Bundle) -> bool:
    """Whether one of a list from GitHub is this one: its signature is nobody else's."""
    envelope = bundle.document["dsseEnvelope"]
    for each in attestations if isinstance(attestations, list) else ():
        match each:
            case {"bundle": {"dsseEnvelope": found}} if found == envelope:
                return True
    return False
