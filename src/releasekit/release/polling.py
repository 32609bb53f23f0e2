"""What a registry shows of a package: asked once, or until it shows all of our bytes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.aio import growing_pauses, in_time
from releasekit.errors import BuildFailed, DigestMismatch, PackageError, Transient, Undecided
from releasekit.http.traffic import attribute_to
from releasekit.plan.decision import compare, mismatch
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact
    from releasekit.release.package_run import PackageRun


BY_HAND = "It is published, and no later run does this again: do the rest of it by hand."


class Polling(Struct, frozen=True, kw_only=True):
    """How a registry is asked whether it shows a package: at once, then with pauses that grow from
    the first to the longest, and when it should, as far as others of the run have told. It is
    asked for `ambiguity_window_s` when the upload ended without an answer, and once more, for
    `last_poll_s`, when the run is being ended. While a person has to approve something, who is not
    as fast, pauses grow to `approval_pause_s`; while another job publishes something, to
    `foreign_pause_s`, and of all such packages together no more than `foreign_per_s` are asked for
    in a second.
    """

    first_pause_s: float = 0.25
    longest_pause_s: float = 5.0
    ambiguity_window_s: float = 20.0
    last_poll_s: float = 0.75
    approval_pause_s: float = 30.0
    foreign_pause_s: float = 10.0
    foreign_per_s: float = 10.0


POLLING = Polling()


class Lookups(Struct):
    """Asks the registries, and keeps `published` and `visible` of each run up to date; a package is
    asked for during `patience_s`, by the clock `now_s`.
    """

    targets: Mapping[str, Target]
    polling: Polling
    patience_s: float
    now_s: Callable[[], float]
    _lags: defaultdict[str, Lag] = field(default_factory=lambda: defaultdict(Lag))

    async def poll_until_shown(self, run: PackageRun) -> None:
        """Raises Undecided when it does not show all our bytes within the time for a package
        (`task-timeout`, or longer where its registry is known to take longer; less when the
        upload's own answer was lost).
        """
        now_s, target = self.now_s, self.targets[run.id.ecosystem]
        patience_s = max(self.patience_s, target.preflight.shows_within_s)
        if run.ambiguity:
            patience_s = min(patience_s, self.polling.ambiguity_window_s)
        began_s, missed_s = now_s(), 0.0
        deadline = began_s + patience_s
        lag = self._lags[run.id.ecosystem]
        first_s = lag.first_pause_s(self.polling.first_pause_s)
        pauses = growing_pauses(first_s, max(first_s, self.polling.longest_pause_s))
        while trouble := await self.poll_once(run):
            missed_s = now_s() - began_s
            lag.hidden(missed_s)
            pause_s = min(next(pauses), lag.pause_s(missed_s) or math.inf)
            if now_s() + pause_s > deadline:
                where, cure = target.describe_lookups()
                hints = ["Run the same command again later: it asks the registry first.", cure]
                if run.ambiguity:
                    hints.append("If it ends the same, check that this address takes uploads.")
                raise Undecided(
                    f"{where}: {trouble}, {patience_s:g} s after the upload"
                    f"{run.ambiguity and f', which had ended with: {run.ambiguity}'}",
                    hint=" ".join(filter(None, hints)),
                    problem=Problem.NOT_VISIBLE,
                )
            await asyncio.sleep(pause_s)
        if run.sent:
            lag.shown(now_s() - began_s, missed_s)

    async def poll_until_approved(
        self, run: PackageRun, wait_s: float, stopped: asyncio.Event
    ) -> None:
        """For `wait_s` since it was staged, or until the run is `stopped`; at least once."""
        deadline = run.staged_at_s + wait_s
        pauses = growing_pauses(self.polling.first_pause_s, self.polling.approval_pause_s)
        await self._ask_again(run)
        left_s = deadline - self.now_s()
        while run.awaits_approval and not stopped.is_set() and left_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(next(pauses), left_s)):
                    await stopped.wait()
            await self._ask_again(run)
            left_s = deadline - self.now_s()

    async def _ask_again(self, run: PackageRun) -> None:
        """A registry that cannot be asked is asked later."""
        try:
            await self._look_up(run)
        except DigestMismatch as error:
            run.error = error
            raise
        except PackageError:
            pass

    async def poll_once(self, run: PackageRun) -> str:
        """One look at the registry: sets `run.visible`, or says what stands in the way."""
        try:
            missing = await self._look_up(run)
        except Transient as error:
            return str(error)
        return f"{missing[0].filename} is not visible" if missing else ""

    async def settle(self, run: PackageRun) -> bool:
        """Whether the registry shows it, where nothing may be sent again before that is known: as
        it says at once, or at the end of the time after an upload of unclear end.

        Raises Undecided, the `error` of the run from then on, where it does not say.
        """
        deadline = self.now_s() + min(self.patience_s, self.polling.ambiguity_window_s)
        is_unclear = bool(run.ambiguity) or (run.planned.begun and run.attempts <= 1)
        pauses = growing_pauses(self.polling.first_pause_s, self.polling.longest_pause_s)
        while True:
            silence = None
            try:
                await self._look_up(run)
            except Transient as error:
                silence = error
            pause_s = next(pauses)
            is_settled = run.visible or not (is_unclear or silence)
            if is_settled or self.now_s() + pause_s > deadline:
                break
            await asyncio.sleep(pause_s)
        run.ambiguity = str(silence or "")
        if silence is not None:
            both = "; and ".join(filter(None, [run.refusal, run.ambiguity]))
            run.error = Undecided(both, hint=silence.hint, problem=silence.problem)
            raise run.error from silence
        return run.visible

    async def last_poll(self, run: PackageRun) -> None:
        """For a package whose run is being ended before it could be confirmed."""
        with contextlib.suppress(TimeoutError, PackageError):
            async with in_time(asyncio.timeout(self.polling.last_poll_s)):
                await self.poll_once(run)

    async def is_published(self, run: PackageRun) -> bool:
        """Whether the registry shows it, whatever it answered to the upload: npmjs says 403 to a
        version that is there. Where it does not say, what an earlier run had begun is unclear.

        Raises DigestMismatch when it shows other bytes.
        """
        try:
            await self._look_up(run)
        except DigestMismatch as error:
            run.error = error
            raise
        except Transient as silence:
            if run.planned.begun and not run.ambiguity:
                run.ambiguity = f"an earlier run had begun to upload it, and now: {silence}"
        except PackageError:
            pass  # the upload's own error tells more
        return run.visible

    async def _look_up(self, run: PackageRun) -> list[Artifact]:
        """Ask once, and return the files of ours that the registry does not show."""
        target = self.targets[run.id.ecosystem]
        with attribute_to(run.id):
            run.published = await target.registry.lookup(run.planned.package)
        try:
            missing = missing_artifacts(run)
        except DigestMismatch as error:
            # What differs inside the first file with other bytes, where somebody can tell.
            other = compare(run.artifacts, run.published).differing[0]
            ours = next(artifact for artifact in run.artifacts if artifact.filename == other)
            if names := await target.differing(run.planned.package, ours):
                raise DigestMismatch(f"{error}. They differ in {few(names, 3)}") from error
            raise
        # Of what nothing vouches for, no file is known to be ours.
        complete = run.published is not None and run.published.complete
        run.visible = not missing and (bool(run.artifacts) or complete)
        if run.visible:
            run.pending_follow_up = None
            # After an earlier run it is not done again.
            if run.is_ours and (due := target.due(run.planned.package)):
                run.pending_follow_up = BuildFailed(
                    f"{due} did not run to the end, because this run ended",
                    hint=BY_HAND,
                    problem=Problem.FOLLOW_UP,
                )
        return missing


def missing_artifacts(run: PackageRun) -> list[Artifact]:
    """Files of ours that the last answer does not show; raises DigestMismatch for other bytes."""
    comparison = compare(run.artifacts, run.published)
    if comparison.differing:
        raise DigestMismatch(mismatch(run.artifacts, run.published, comparison.differing[0]))
    return [artifact for artifact in run.artifacts if artifact.filename in comparison.missing]


# Below that, a first look at once costs next to nothing.
_WORTH_WAITING_S: Final = 0.5
# The least pause between two lookups, as a part of the expected time.
_STEP: Final = 0.03
# The first pause is this part of it.
_FIRST: Final = 0.25
# It may take less than it did: packages that were there at the first look move the next one ahead.
_EARLIER: Final = 0.8
# Multiples of it, modulo 1, are spread evenly, however many there are: several packages that went
# out together are looked for one after the other, and what is seen of one helps the rest.
_SPREAD: Final = 0.618034


class Lag(Struct):
    """Of one registry in one run: packages were not there `hidden_s` after their upload, and were
    `shown_s` after it, which is 0 while none has kept us waiting.
    """

    hidden_s: float = 0.0
    shown_s: float = 0.0
    _places: Iterator[float] = field(
        default_factory=lambda: (1.0 - n * _SPREAD % 1.0 for n in itertools.count())
    )

    @property
    def is_known(self) -> bool:
        return self.shown_s >= _WORTH_WAITING_S

    def first_pause_s(self, usual_s: float) -> float:
        """After a look at once: one that did not take as long as the others is soon found."""
        return max(usual_s, self.shown_s * _FIRST) if self.is_known else usual_s

    def pause_s(self, elapsed_s: float) -> float:
        """Until the next look at a package that was uploaded so long ago; 0 where that is longer
        than it should have taken.
        """
        if not self.is_known or elapsed_s >= self.shown_s:
            return 0.0
        since_s = max(elapsed_s, self.hidden_s)
        step_s = max((self.shown_s - since_s) * next(self._places), self.shown_s * _STEP)
        return since_s + step_s - elapsed_s

    def hidden(self, elapsed_s: float) -> None:
        """It was looked for so long after its upload, and not there."""
        if elapsed_s < self.shown_s:
            self.hidden_s = max(self.hidden_s, elapsed_s)

    def shown(self, elapsed_s: float, missed_s: float) -> None:
        """It was there, and last not there `missed_s` after its upload, 0 for never."""
        if missed_s >= self.shown_s or elapsed_s <= self.hidden_s:
            self.hidden_s, self.shown_s = missed_s, elapsed_s
            return
        self.shown_s = min(self.shown_s, elapsed_s)
        if not missed_s:
            self.hidden_s = min(self.hidden_s, self.shown_s * _EARLIER)
