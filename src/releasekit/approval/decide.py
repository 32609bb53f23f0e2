"""A release that waits, let out in dependency order. No state is kept: each step first asks the
registry what is true, so whoever is stopped anywhere starts again, and nothing is approved twice.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, replace
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Final, Literal

from releasekit.aio import backoff, gather_all, growing_pauses
from releasekit.approval.codes import NoCode
from releasekit.errors import (
    DigestMismatch,
    PackageError,
    PlanError,
    Rejected,
    Transient,
    UnderReview,
)
from releasekit.problems import Problem
from releasekit.report.text import seconds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.approval.codes import Codes
    from releasekit.approval.compare import Examined
    from releasekit.ecosystems.approval import Approval, Waiting
    from releasekit.errors import ReleasekitError
    from releasekit.model import PackageId

# npm looks at a version before and after its approval, for up to 18 minutes by users' accounts.
# https://github.com/npm/cli/issues/9889
SCAN_S: Final = 20 * 60.0
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0

State = Literal["approved", "published", "rejected", "failed", "unknown", "blocked", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What became of one package. `approved` may take its registry a while to show."""

    state: State
    reason: str
    hint: str = ""
    problem: Problem | None = None

    @property
    def is_out(self) -> bool:
        return self.state in {"approved", "published"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is approved by one request: a package, or a deployment of several. `needs` are the
    packages outside of it that go first; `gates` says whether another unit waits for it.
    """

    id: str
    members: tuple[Examined, ...]
    needs: frozenset[PackageId]
    gates: bool

    @property
    def names(self) -> list[PackageId]:
        return [each.recorded.package.id for each in self.members]

    @property
    def ecosystem(self) -> str:
        return self.names[0].ecosystem


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """`visible` says whether a dependent waits until everybody sees what it needs."""

    visible: bool
    max_wait_s: float
    max_retries: int
    base_delay_s: float


def units_of(
    examined: Mapping[PackageId, Examined], needs: Mapping[PackageId, frozenset[PackageId]]
) -> list[Unit]:
    """In the order of `examined`, which is one with dependencies first. Raises PlanError where two
    deployments need each other: neither could go first.
    """
    groups: dict[tuple[str, str], list[PackageId]] = {}
    for name, each in examined.items():
        # What waits under no id any more has only its own name.
        id_ = each.waiting.id if each.waiting else f"={name}"
        groups.setdefault((name.ecosystem, id_), []).append(name)
    needed = frozenset().union(*needs.values())
    units = [
        Unit(
            id=id_,
            members=tuple(examined[name] for name in names),
            needs=frozenset().union(*(needs[name] for name in names)) - set(names),
            gates=any(name in needed for name in names),
        )
        for (_, id_), names in groups.items()
    ]
    of = {name: place for place, unit in enumerate(units) for name in unit.names}
    try:
        TopologicalSorter(
            {place: {of[name] for name in unit.needs} for place, unit in enumerate(units)}
        ).prepare()
    except CycleError as error:
        first, second, *_ = (units[place].names[0] for place in error.args[1])
        raise PlanError(
            f"{first} and {second} wait in deployments that need each other",
            problem=Problem.ALL_AT_ONCE,
        ) from error
    return units


class Approving:
    """One release. `codes` and `approvals` are by ecosystem; `say` is told what happens."""

    def __init__(
        self,
        units: Sequence[Unit],
        approvals: Mapping[str, Approval],
        codes: Mapping[str, Codes],
        *,
        terms: Terms,
        say: Callable[[str], None],
        rng: random.Random,
    ) -> None:
        self._units = units
        self._approvals = approvals
        self._codes = codes
        self._terms = terms
        self._say = say
        self._rng = rng
        self.endings: dict[PackageId, Ending] = {}
        # Done once it is known whether what needs this package may go on.
        self._passed: dict[PackageId, asyncio.Future[bool]] = {}
        self._over: NoCode | None = None

    async def run(self) -> None:
        """Until nothing can be done any more; `endings` are there also after a cancellation."""
        loop = asyncio.get_running_loop()
        self._passed = {name: loop.create_future() for unit in self._units for name in unit.names}
        await gather_all(map(self._settle, self._units))
        if self._over is not None:
            raise self._over

    async def _settle(self, unit: Unit) -> None:
        is_through = False
        try:
            ending = await self._ending(unit)
            self._end(unit, ending)
            is_through = ending.is_out and (not unit.gates or await self._lets_on(unit, ending))
        finally:
            for name in unit.names:
                self._passed[name].set_result(is_through)

    def _end(self, unit: Unit, ending: Ending) -> None:
        for name in unit.names:
            self.endings[name] = ending
            told = ending.state if ending.is_out else f"{ending.state}: {ending.reason}"
            self._say(f"{name}: {told}")

    async def _ending(self, unit: Unit) -> Ending:
        for name in sorted(unit.needs):
            if not await self._passed[name]:
                return Ending(
                    state="blocked",
                    reason=f"needs {name}, which {self._why(name)}",
                    hint="Run the same command again once that is settled.",
                )
        refused = next((each.refusal for each in unit.members if each.refusal), None)
        if refused is not None:
            return _failed(refused)
        try:
            if all(each.visible for each in unit.members):
                return Ending(state="published", reason="everybody sees it already")
            if any(each.waiting for each in unit.members):
                return await self._approved(unit)
            return await self._gone(unit)
        except NoCode as error:
            self._over = error
            return _ending("waiting", error)
        except Transient as error:
            return _unknown(error)
        except PackageError as error:
            return _failed(error)

    def _why(self, name: PackageId) -> str:
        ending = self.endings[name]
        return "is not visible yet" if ending.is_out else f"is {ending.state}"

    async def _approved(self, unit: Unit) -> Ending:
        approval = self._approvals[unit.ecosystem]
        waiting = next(each.waiting for each in unit.members if each.waiting)
        until = asyncio.get_running_loop().time() + self._terms.max_wait_s
        pauses = growing_pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        failures = 0
        while True:
            if self._over is not None:
                raise self._over
            try:
                await self._codes[unit.ecosystem].deciding(partial(self._attempt, unit, waiting))
            except UnderReview as error:
                pause_s = max(next(pauses), error.retry_after or 0.0)
                if asyncio.get_running_loop().time() + pause_s > until:
                    return Ending(state="waiting", reason=str(error), hint=_LATER)
                self._say(f"{_names(unit)}: still under review; again in {seconds(pause_s)}")
                await asyncio.sleep(pause_s)
            except PackageError as error:
                # Whatever was answered, or lost: what counts is whether it still waits.
                if await approval.waiting(unit.members[0].recorded) is None:
                    return await self._gone(unit)
                failures += 1
                if not isinstance(error, Transient) or failures > self._terms.max_retries:
                    raise
                delay_s = backoff(failures - 1, self._terms.base_delay_s, self._rng)
                delay_s = max(delay_s, error.retry_after or 0.0)
                if asyncio.get_running_loop().time() + delay_s > until:
                    raise
                await asyncio.sleep(delay_s)
            else:
                return Ending(state="approved", reason="approved")

    async def _attempt(self, unit: Unit, waiting: Waiting, code: str) -> None:
        try:
            await self._approvals[unit.ecosystem].approve(waiting, code)
        except asyncio.CancelledError:
            self._end(unit, STOPPED)
            raise

    async def _gone(self, unit: Unit) -> Ending:
        """It waits no more. Somebody has approved it, or this command has and was stopped then, and
        it may be scanned; or somebody has rejected it.
        """
        limit_s = min(SCAN_S, self._terms.max_wait_s)
        if await self._become_visible(unit, limit_s, "it waits no more; watching for it"):
            return Ending(state="published", reason="approved before")
        raise Rejected(
            f"{_names(unit)}: it neither waits any more, nor is it visible after "
            f"{seconds(limit_s)}: it was rejected, or the registry has dropped it",
            hint="Whoever releases it bumps the version and runs the release again.",
            problem=Problem.CANNOT_APPROVE,
        )

    async def _lets_on(self, unit: Unit, ending: Ending) -> bool:
        """Whether dependents may follow."""
        if not self._terms.visible or ending.state == "published":
            return True
        try:
            return await self._become_visible(unit, self._terms.max_wait_s)
        except DigestMismatch as error:
            self._end(unit, _failed(error))
            return False
        except PackageError as error:
            self._end(unit, replace(ending, reason=f"approved, and not seen yet: {error}"))
            return False

    async def _become_visible(
        self, unit: Unit, limit_s: float, told: str = "waiting until everybody sees it"
    ) -> bool:
        """Raises DigestMismatch where what is visible is not what was built."""
        until = asyncio.get_running_loop().time() + limit_s
        pauses = growing_pauses(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        said = False
        left = list(unit.members)
        while True:
            left = [each for each in left if not await self._sees(unit, each)]
            if not left:
                return True
            pause_s = next(pauses)
            if asyncio.get_running_loop().time() + pause_s > until:
                return False
            if not said:
                self._say(f"{_names(unit)}: {told}, for up to {seconds(limit_s)}")
                said = True
            await asyncio.sleep(pause_s)

    async def _sees(self, unit: Unit, each: Examined) -> bool:
        try:
            return await self._approvals[unit.ecosystem].is_visible(each.recorded, each.place)
        except Transient:
            return False  # asked again, for as long as anybody waits for it


_LATER: Final = "Run the same command again in a few minutes, or raise `--max-wait`."


STOPPED: Final = Ending(
    state="unknown",
    reason="stopped while it was being decided",
    hint="Run the same command again: it sees whether that was done.",
)


def _failed(error: PackageError) -> Ending:
    return _ending("failed", error)


def _ending(state: State, error: ReleasekitError) -> Ending:
    return Ending(state=state, reason=str(error), hint=error.hint, problem=error.problem)


def _unknown(error: PackageError) -> Ending:
    return Ending(state="unknown", reason=str(error), hint=_LATER)


def _names(unit: Unit) -> str:
    return ", ".join(map(str, unit.names[:3])) + (", …" if len(unit.names) > 3 else "")


async def reject(unit: Unit, approval: Approval, codes: Codes, *, max_retries: int) -> Ending:
    """One unit, taken back, unless it is not what the run has left."""
    refused = next((each.refusal for each in unit.members if each.refusal), None)
    if refused is not None:
        return _failed(refused)
    waiting = next((each.waiting for each in unit.members if each.waiting), None)
    if waiting is None:
        if any(each.visible for each in unit.members):
            return Ending(
                state="failed",
                reason="it is published, and cannot be rejected any more",
                hint="Deprecate it, or publish a version after it.",
            )
        return Ending(state="rejected", reason="it does not wait any more")
    for failures in itertools.count():
        try:
            await codes.deciding(lambda code: approval.reject(waiting, code))
        except PackageError as error:
            try:
                if await approval.waiting(unit.members[0].recorded) is None:
                    break
            except PackageError as unanswered:
                return _unknown(unanswered)
            if not isinstance(error, Transient) or failures == max_retries:
                return _failed(error)
        else:
            break
    return Ending(state="rejected", reason="rejected")
