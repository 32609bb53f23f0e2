"""What the classes of forges have in common: writes that may be lost, and answers read safely."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec import Struct

from releasekit.announce.forge import LookAgain
from releasekit.errors import PackageError, Rejected, Transient
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.client import retry
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json, read_entries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    import httpx

    from releasekit.announce.forge import Asset, Draft, ForgeRelease
    from releasekit.http.client import RetryPolicy
    from releasekit.http.forge_api import ForgeApi
    from releasekit.model import Artifact

REFUSED: Final = "It would say no again: correct what it says, then run the same command again."
_PIECE_BYTES: Final = 256 * 1024


class ForgeClient(Struct, frozen=True):
    """What is asked of a forge about `repository`; each kind of forge is a class of it. `cures` are
    hints by the status of an answer.
    """

    api: ForgeApi
    repository: str
    policy: RetryPolicy
    cures: ClassVar[Mapping[int, str]]
    repeatable: ClassVar[frozenset[str]] = frozenset({"GET", "PUT", "PATCH", "DELETE"})

    @property
    def draft_hint(self) -> str:
        return ""

    def has_changed(self, error: Rejected) -> bool:
        """Whether something is there by now, or is not what it was, as far as the forge knows."""
        return error.status == 409

    async def digest_of(self, _release: ForgeRelease, asset: Asset) -> str:
        return asset.digest

    async def ask(
        self,
        method: str,
        url: httpx.URL,
        *,
        content: bytes | Artifact = b"",
        headers: Mapping[str, str] | None = None,
        missing: bool = False,
    ) -> httpx.Response:
        """Retries what is `repeatable`, and the rest only where it cannot have taken effect. Raises
        LookAgain, Transient, Denied, Rejected.
        """
        lost: list[Transient] = []

        async def attempt() -> httpx.Response | None:
            body = content if isinstance(content, bytes) else _read_pieces(content)
            try:
                return await self.api.send_once(
                    method, url, content=body, headers=headers, missing=missing
                )
            except Transient as error:
                if method in self.repeatable or not error.ambiguous:
                    raise
                lost.append(error)
                return None

        try:
            response = await retry(attempt, self.policy)
        except Rejected as error:
            hint = self.cures.get(error.status, error.hint)
            if self.has_changed(error):
                raise LookAgain(str(error), hint=hint) from error
            raise error.with_(hint=hint) from error.__cause__
        if response is None:
            raise LookAgain(str(lost[0]), hint=lost[0].hint) from lost[0]
        return response


async def _read_pieces(artifact: Artifact) -> AsyncIterator[bytes]:
    """Raises Rejected where the file is not what was built: its last piece is held back."""
    try:
        with open_artifact(artifact) as file:
            while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
                yield piece
    except PackageError as error:
        raise Rejected(f"{artifact.filename} has changed since it was hashed") from error


def write_json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document).encode()


def parse_answer(response: httpx.Response, forge: str = "GitHub") -> Any:
    """The body and the assets of a release may be long. Raises Rejected."""
    try:
        return parse_json(response.content, max_bytes=4 * 1024 * 1024)
    except ValueError as error:
        raise make_strange_error(f"JSON: {error}", forge) from error


def make_strange_error(what: str, forge: str = "GitHub") -> Rejected:
    return Rejected(f"{forge}'s answer is not {what}", problem=Problem.STRANGE_ANSWER)


def keep_page(url: str) -> str:
    """The address of a page as a forge tells it; empty where no page may link to it."""
    return url if url.startswith(("https://", "http://")) else ""


def check_tag(draft: Draft, found: str, forge: str, repository: str) -> None:
    """`found` is the tag object there; empty without one. Raises LookAgain, Rejected."""
    if not found:
        # One that was pushed a moment ago may take another.
        raise LookAgain(
            f"{forge} has no tag {draft.tag} in {repository}",
            hint=f"Releases are made where tags are: check that {repository} is what the git "
            "remote pushes to.",
        )
    if draft.object and found != draft.object:
        raise Rejected(
            f"the tag {draft.tag} of {repository} is {found}, and that of the git remote "
            f"{draft.object}",
            hint="Nothing was moved. Delete the one that is wrong.",
        )


async def list_pages(
    get: Callable[[int], Awaitable[httpx.Response]], what: str, *, size: int, most: int
) -> AsyncIterator[Any]:
    """The entries of the list called `what`. `get` asks for a page once its entries are wanted, the
    first of which is 1; one with fewer entries than `size` is the last. No link of an answer is
    followed. Raises Rejected.
    """
    for page in range(1, most + 1):
        response = await get(page)
        some = await asyncio.to_thread(parse_list, response.content, what)
        for each in some:
            yield each
        if len(some) < size:
            break


def parse_list(content: bytes, what: str) -> list[Any]:
    """The entries of one page, read one by one: together they may be long. Raises Rejected."""
    try:
        read = list(read_entries(b'{"all":%s}' % content, {"all"}))
    except ValueError as error:
        raise Rejected(f"{what} is not JSON: {error}", problem=Problem.STRANGE_ANSWER) from error
    if not read or read[0][2] != []:
        raise Rejected(f"{what} is not a list", problem=Problem.STRANGE_ANSWER)
    return [value for _, name, value in read if name is not None]
