"""Approves or rejects a staged release, in dependency order. It keeps no state: each step first
asks the registry, so that a command stopped anywhere can be repeated, and nothing is approved
twice.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from releasekit.aio import gather_all, growing_pauses
from releasekit.errors import (
    CodeWanted,
    DigestMismatch,
    PackageError,
    Rejected,
    ReleasekitError,
    Transient,
    UnderReview,
)
from releasekit.fields import replace
from releasekit.problems import Problem
from releasekit.report.text import seconds

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.approval.review import Examined
    from releasekit.ecosystems.approval import Approval, Waiting
    from releasekit.model import PackageId
    from releasekit.scheduler.retries import Retry


# npm looks at a version before and after its approval, for up to 18 minutes by users' accounts.
# https://github.com/npm/cli/issues/9889
SCAN_S: Final = 20 * 60.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

State = Literal["approved", "published", "rejected", "failed", "unknown", "blocked", "waiting"]


class ApprovalResult(Struct, frozen=True, kw_only=True):
    """What became of one package. The registry may take a while to show what is approved."""

    state: State
    reason: str
    hint: str = ""
    problem: Problem | None = None

    @property
    def is_out(self) -> bool:
        return self.state in {"approved", "published"}


class ApprovalPolicy(Struct, frozen=True, kw_only=True):
    """With `visible`, a dependent waits until the registry shows what it needs."""

    visible: bool
    max_wait_s: float
    retry: Retry


class ApprovalRun:
    """Approves one release. `needs` are the packages that go first; `say` gets progress lines."""

    def __init__(
        self,
        examined: Mapping[PackageId, Examined],
        needs: Mapping[PackageId, frozenset[PackageId]],
        approval: Approval,
        codes: Codes,
        *,
        terms: ApprovalPolicy,
        say: Callable[[str], None],
        rng: random.Random,
    ) -> None:
        self._examined = examined
        self._needs = needs
        self._needed = frozenset().union(*needs.values())
        self._approval = approval
        self._codes = codes
        self._terms = terms
        self._say = say
        self._rng = rng
        self.endings: dict[PackageId, ApprovalResult] = {}
        # Resolved once it is known whether dependents of the package may go on.
        self._passed: dict[PackageId, asyncio.Future[bool]] = {}
        self._over: NoCode | None = None

    async def run(self) -> None:
        """Returns when nothing is left to do; `endings` hold after a cancellation too."""
        loop = asyncio.get_running_loop()
        self._passed = {name: loop.create_future() for name in self._examined}
        await gather_all(map(self._settle, self._examined))
        if self._over is not None:
            raise self._over

    async def _settle(self, name: PackageId) -> None:
        is_through = False
        try:
            ending = await self._result_of(name)
            self._end(name, ending)
            is_through = ending.is_out and (
                name not in self._needed or await self._release_dependents(name, ending)
            )
        finally:
            self._passed[name].set_result(is_through)

    def _end(self, name: PackageId, ending: ApprovalResult) -> None:
        self.endings[name] = ending
        told = ending.state if ending.is_out else f"{ending.state}: {ending.reason}"
        self._say(f"{name}: {told}")

    async def _result_of(self, name: PackageId) -> ApprovalResult:
        for need in sorted(self._needs[name]):
            if not await self._passed[need]:
                first = self.endings[need]
                why = "is not visible yet" if first.is_out else f"is {first.state}"
                return ApprovalResult(
                    state="blocked",
                    reason=f"needs {need}, which {why}",
                    hint="Run the same command again once that is settled.",
                )
        examined = self._examined[name]
        if examined.refusal is not None:
            return _make_result("failed", examined.refusal)
        try:
            if examined.visible:
                return ApprovalResult(state="published", reason="everybody sees it already")
            if examined.waiting is not None:
                return await self._approve(name, examined.waiting)
            return await self._await_visible(name)
        except NoCode as error:
            self._over = error
            return _make_result("waiting", error)
        except Transient as error:
            return _unknown(error)
        except PackageError as error:
            return _make_result("failed", error)

    async def _approve(self, name: PackageId, waiting: Waiting) -> ApprovalResult:
        recorded = self._examined[name].recorded
        until = asyncio.get_running_loop().time() + self._terms.max_wait_s
        pauses = growing_pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        failures = 0
        while True:
            if self._over is not None:
                raise self._over
            try:
                await self._codes.run_with_code(partial(self._attempt, name, waiting))
            except UnderReview as error:
                pause_s = max(next(pauses), error.retry_after or 0.0)
                if asyncio.get_running_loop().time() + pause_s > until:
                    return ApprovalResult(state="waiting", reason=str(error), hint=_LATER)
                self._say(f"{name}: still under review; again in {seconds(pause_s)}")
                await asyncio.sleep(pause_s)
            except PackageError as error:
                # Whatever the answer was, what counts is whether the version still waits.
                if await self._approval.waiting(recorded) is None:
                    return await self._await_visible(name)
                failures += 1
                now_s = asyncio.get_running_loop().time()
                backoff = self._terms.retry.decide(
                    error, attempts=failures, now_s=now_s, doublings=failures - 1
                )
                delay_s = backoff.draw(self._rng) if backoff else math.inf
                if now_s + delay_s > until:
                    raise
                await asyncio.sleep(delay_s)
            else:
                return ApprovalResult(state="approved", reason="approved")

    async def _attempt(self, name: PackageId, waiting: Waiting, code: str) -> None:
        try:
            await self._approval.approve(waiting, code)
        except asyncio.CancelledError:
            self._end(name, STOPPED)
            raise

    async def _await_visible(self, name: PackageId) -> ApprovalResult:
        """The version waits no more: approved, by this command or another, and perhaps still being
        scanned; or rejected.
        """
        limit_s = min(SCAN_S, self._terms.max_wait_s)
        if await self._become_visible(name, limit_s, "it waits no more; watching for it"):
            return ApprovalResult(state="published", reason="approved before")
        raise Rejected(
            f"{name}: it neither waits any more, nor is it visible after "
            f"{seconds(limit_s)}: it was rejected, or the registry has dropped it",
            hint="Its maintainer bumps the version and runs the release again.",
            problem=Problem.CANNOT_APPROVE,
        )

    async def _release_dependents(self, name: PackageId, ending: ApprovalResult) -> bool:
        """Whether dependents may go on."""
        if not self._terms.visible or ending.state == "published":
            return True
        try:
            return await self._become_visible(name, self._terms.max_wait_s)
        except DigestMismatch as error:
            self._end(name, _make_result("failed", error))
            return False
        except PackageError as error:
            self._end(name, replace(ending, reason=f"approved, and not seen yet: {error}"))
            return False

    async def _become_visible(
        self, name: PackageId, limit_s: float, told: str = "waiting until everybody sees it"
    ) -> bool:
        """Raises DigestMismatch where what is visible is not what was built."""
        until = asyncio.get_running_loop().time() + limit_s
        pauses = growing_pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        said = False
        while not await self._sees(name):
            pause_s = next(pauses)
            if asyncio.get_running_loop().time() + pause_s > until:
                return False
            if not said:
                self._say(f"{name}: {told}, for up to {seconds(limit_s)}")
                said = True
            await asyncio.sleep(pause_s)
        return True

    async def _sees(self, name: PackageId) -> bool:
        each = self._examined[name]
        try:
            return await self._approval.is_visible(each.recorded, each.place)
        except Transient:
            return False  # asked again, until the wait is over


_LATER: Final = "Run the same command again in a few minutes, or raise `--max-wait`."
STOPPED: Final = ApprovalResult(
    state="unknown",
    reason="stopped while it was being decided",
    hint="Run the same command again: it sees whether that was done.",
)


def _make_result(state: State, error: ReleasekitError) -> ApprovalResult:
    return ApprovalResult(state=state, reason=str(error), hint=error.hint, problem=error.problem)


def _unknown(error: PackageError) -> ApprovalResult:
    return ApprovalResult(state="unknown", reason=str(error), hint=_LATER)


async def reject(
    examined: Examined, approval: Approval, codes: Codes, *, max_retries: int
) -> ApprovalResult:
    """Reject one version, unless it is not what the run staged."""
    if examined.refusal is not None:
        return _make_result("failed", examined.refusal)
    waiting = examined.waiting
    if waiting is None:
        if examined.visible:
            return ApprovalResult(
                state="failed",
                reason="it is published, and cannot be rejected any more",
                hint="Deprecate it, or publish a version after it.",
            )
        return ApprovalResult(state="rejected", reason="it does not wait any more")
    for failures in itertools.count():
        try:
            await codes.run_with_code(lambda code: approval.reject(waiting, code))
        except PackageError as error:
            try:
                if await approval.waiting(examined.recorded) is None:
                    break
            except PackageError as unanswered:
                return _unknown(unanswered)
            if not isinstance(error, Transient) or failures == max_retries:
                return _make_result("failed", error)
        else:
            break
    return ApprovalResult(state="rejected", reason="rejected")


MOST_REFUSALS: Final = 3
# Longer than registries wait for a sign-in.
SIGN_IN_S: Final = 15 * 60.0


class Prompter(Protocol):
    """Asks the person at the terminal."""

    async def code(self, why: str) -> str:
        """The one-time code that they type; empty to give up."""
        ...

    def open(self, page: str) -> None:
        """Ask them to open the page."""
        ...


class NoCode(ReleasekitError):
    """The registry wants a one-time code and gets none that it accepts."""

    general = Problem.CODE_WANTED


class Codes:
    """One-time codes for one registry. `given` is the first code, or empty; `person` is None
    without a terminal.
    """

    def __init__(self, approval: Approval, given: str, person: Prompter | None) -> None:
        self._approval = approval
        self._code = given
        self._person = person
        self._was_taken = False
        self._refusals = 0
        self._turn = asyncio.Lock()
        self._over: NoCode | None = None

    async def run_with_code(self, attempt: Callable[[str], Awaitable[None]]) -> None:
        """Run `attempt` with a code, and with another one while it asks for one; one attempt at a
        time. Raises NoCode, and what `attempt` raises.
        """
        async with self._turn:
            if self._over is not None:
                raise self._over
            while True:
                try:
                    await attempt(self._code)
                except CodeWanted as wanted:
                    try:
                        await self._change(wanted)
                    except NoCode as error:
                        self._over = error  # those that wait for their turn do not ask again
                        raise
                    continue
                self._was_taken, self._refusals = True, 0
                return

    async def _change(self, wanted: CodeWanted) -> None:
        # A code that was accepted before has merely expired.
        if self._code and not self._was_taken:
            self._refusals += 1
        if self._refusals >= MOST_REFUSALS:
            raise NoCode(
                f"{self._approval.url} refused {MOST_REFUSALS} codes in a row",
                hint="See that the clock of the authenticator is right, then run the same command "
                "again: what is approved by now stays so.",
            ) from wanted
        if self._code and not wanted.page and self._person is not None:
            # npm names its sign-in page only in answer to a request without a code.
            self._code = ""
            return
        self._was_taken = False
        if self._person is None:
            raise NoCode(str(wanted), hint=wanted.hint) from wanted
        if wanted.page:
            self._person.open(wanted.page)
            try:
                async with asyncio.timeout(SIGN_IN_S):
                    self._code = await self._approval.confirmed(wanted)
            except (Rejected, TimeoutError):
                # Not signed in in time; the next answer names another page.
                self._refusals += 1
                self._code = ""
            return
        self._code = await self._person.code(str(wanted))
        if not self._code:
            raise NoCode(
                "no code was given",
                hint="Run the same command again: what is approved by now stays so.",
            ) from wanted
