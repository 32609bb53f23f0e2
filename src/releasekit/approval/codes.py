"""One code for everything that is decided, until its registry takes it no longer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from releasekit.errors import CodeWanted, Rejected, ReleasekitError
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from releasekit.ecosystems.approval import Approval

MOST_REFUSALS: Final = 3
# The registry gives up sooner.
SIGN_IN_S: Final = 15 * 60.0


class Present(Protocol):
    """A person who can be asked."""

    async def code(self, why: str) -> str:
        """What they type; empty where they do not want to go on."""
        ...

    def open(self, page: str) -> None:
        """Ask them to go there."""
        ...


class NoCode(ReleasekitError):
    """Nobody gives a code that is taken: nothing more can be decided."""

    problem = Problem.CODE_WANTED


class Codes:
    """For one registry. `given` is the code to begin with, if any; `person` is None where nobody
    can be asked.
    """

    def __init__(self, approval: Approval, given: str, person: Present | None) -> None:
        self._approval = approval
        self._code = given
        self._person = person
        self._was_taken = False
        self._refusals = 0
        self._turn = asyncio.Lock()
        self._over: NoCode | None = None

    async def deciding(self, attempt: Callable[[str], Awaitable[None]]) -> None:
        """`attempt` with a code, and again with another one for as long as that is all it wants;
        one at a time. Raises NoCode, and what `attempt` raises.
        """
        async with self._turn:
            if self._over is not None:
                raise self._over
            while True:
                try:
                    await attempt(self._code)
                except CodeWanted as wanted:
                    await self._change(wanted)
                    continue
                self._was_taken, self._refusals = True, 0
                return

    async def _change(self, wanted: CodeWanted) -> None:
        try:
            self._count_refusal(wanted)
            if self._code and not wanted.page and self._person is not None:
                # npm names its page to those only who send no code.
                self._code = ""
            else:
                await self._renew(wanted)
        except NoCode as error:
            self._over = error  # nobody who waits for a turn asks once more
            raise

    def _count_refusal(self, wanted: CodeWanted) -> None:
        # A code that was good for something has only become old.
        if self._code and not self._was_taken:
            self._refusals += 1
        if self._refusals >= MOST_REFUSALS:
            raise NoCode(
                f"{self._approval.url} refused {MOST_REFUSALS} codes in a row",
                hint="See that the clock of the authenticator is right, then run the same command "
                "again: what is approved by now stays so.",
            ) from wanted

    async def _renew(self, wanted: CodeWanted) -> None:
        self._was_taken = False
        if self._person is None:
            raise NoCode(str(wanted), hint=wanted.hint) from wanted
        if wanted.page:
            self._person.open(wanted.page)
            try:
                async with asyncio.timeout(SIGN_IN_S):
                    self._code = await self._approval.confirmed(wanted)
            except (Rejected, TimeoutError):
                # Nobody went there in time; the next answer names another page.
                self._refusals += 1
                self._code = ""
            return
        self._code = await self._person.code(str(wanted))
        if not self._code:
            raise NoCode(
                "no code was given",
                hint="Run the same command again: what is approved by now stays so.",
            ) from wanted
