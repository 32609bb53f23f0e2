"""How the files of one package go out: which of them side by side, and in how few pieces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, cast

import httpx

from releasekit.aio import gather_all
from releasekit.ecosystems.shared.answers import all_stored, most_telling
from releasekit.errors import Denied, PackageError, Rejected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

# Sends one file; whether that stored it, as `Answers.accept` says.
Send = Callable[[], Awaitable[bool]]

_PIECE_BYTES: Final = 64 * 1024


async def first_alone(sends: Sequence[Send]) -> None:
    """For pypi.org, which makes the project and the release with their first file.

    That transaction lasts until the file is in the object store. A second file that came meanwhile
    would find neither, wait for the first to be committed, and break a unique constraint: nothing
    is gained, and it may end as HTTP 500, or as 409 for a new project.
    https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py (file_upload)
    https://github.com/pypi/warehouse/blob/main/warehouse/db.py
    """
    first, *others = sends
    await first()
    await all_stored(send() for send in others)


async def side_by_side(sends: Sequence[Send]) -> None:
    """All at once. A server may refuse one only because another was about to make the release: what
    was refused beside one that was stored is sent once more, when nothing else is.

    Raises one error for all, once all have ended.
    """

    async def answer_to(send: Send) -> bool | PackageError:
        try:
            return await send()
        except PackageError as error:
            return error

    answers = await gather_all(map(answer_to, sends))
    if True in answers:
        for place, answer in enumerate(answers):
            if answer is False or (isinstance(answer, Rejected) and not isinstance(answer, Denied)):
                answers[place] = await answer_to(sends[place])
    errors = [answer for answer in answers if isinstance(answer, PackageError)]
    if errors:
        raise most_telling(errors)


class Gathered(httpx.AsyncByteStream):
    """A body in pieces of some size: a form has two for each of its fields and each would be a
    system call of its own.
    """

    def __init__(self, stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        self._stream = cast("httpx.AsyncByteStream", stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        gathered = bytearray()
        async for piece in self._stream:
            gathered += piece
            if len(gathered) >= _PIECE_BYTES:
                yield bytes(gathered)
                gathered.clear()
        if gathered:
            yield bytes(gathered)

    async def aclose(self) -> None:
        await self._stream.aclose()
