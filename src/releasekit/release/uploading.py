"""The steps of an upload: what a registry lacks of packages is sent, and on record before that."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.aio import gather_all, in_time
from releasekit.errors import CircuitOpen, PackageError, StageOnly, Transient, Undecided
from releasekit.http.traffic import attribute_to
from releasekit.model import Outcome, map_digests
from releasekit.problems import Problem
from releasekit.release.package_run import CUT_OFF, outcome_of
from releasekit.release.polling import missing_artifacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Package, PackageId, Staged
    from releasekit.release.events import Events
    from releasekit.release.package_run import PackageRun
    from releasekit.release.polling import Lookups
    from releasekit.state.journal import Journal


class Uploads(Struct, frozen=True):
    """`limit_s` is how long one attempt may take to send."""

    journal: Journal
    events: Events
    lookups: Lookups
    limit_s: float

    async def upload_missing(
        self, target: Target, runs: Sequence[PackageRun], companions: Sequence[PackageRun] = ()
    ) -> None:
        """Send what the registry lacks of `runs` and, unless that is nothing, all of `companions`.
        Each run keeps whether its end is unclear, what was refused, and what waits for a person.
        Raises PackageError.
        """
        release: dict[Package, Sequence[Artifact]] = {}
        sending = []
        for run in runs:
            if missing := await self._find_missing(target, run):
                release[run.planned.package] = missing
                sending.append(run)
        if not sending:
            return
        release |= {run.planned.package: run.artifacts for run in companions}
        sending += companions
        await self._intend(target.registry.url, sending)
        ambiguities = [run.ambiguity for run in sending]
        for run in sending:  # until there is an answer: an attempt that is cancelled leaves it so
            run.ambiguity = "the upload was interrupted before the registry answered"
        try:
            staged = await self.upload_or_stage(target, release, sending)
        except PackageError as error:
            lost = isinstance(error, Transient) and error.ambiguous
            ambiguous = lost or not target.is_repeatable
            for run, ambiguity in zip(sending, ambiguities, strict=True):
                run.ambiguity = str(error) if ambiguous else ambiguity
                if not isinstance(error, CircuitOpen):
                    run.refusal = str(error)
                if run in companions and not run.ambiguity:
                    # Nothing of it was sent, and its own turn may never come.
                    self.journal.outcome(run.planned.package, Outcome.FAILED, str(error))
            raise
        for run in sending:
            self._accept(run, staged.get(run.id))

    async def _intend(self, url: str, runs: Sequence[PackageRun]) -> None:
        intents = []
        for run in runs:
            digests = map_digests(run.artifacts)
            intents.append(self.journal.intent(run.planned.package, registry=url, digests=digests))
        await gather_all(intents)

    def _accept(self, run: PackageRun, staged: Staged | None) -> None:
        run.ambiguity, run.refusal, run.sent, run.staged = "", "", True, staged
        if staged is not None:
            run.staged_at_s = self.events.now_s()
            # It may be long until this run ends.
            outcome, reason = outcome_of(run, (), CUT_OFF)
            self.journal.outcome(run.planned.package, outcome, reason, staged=staged)

    async def upload_or_stage(
        self,
        target: Target,
        release: Mapping[Package, Sequence[Artifact]],
        runs: Sequence[PackageRun],
    ) -> Mapping[PackageId, Staged]:
        """Send `release`, of these runs, in time; what of it waits for a person now. A version that
        was staged once is never published directly.
        """
        staging = target.staging
        try:
            async with in_time(asyncio.timeout(self.limit_s)):
                if staging is not None and any(run.stages for run in runs):
                    return await staging.stage(release)
                try:
                    if target.deployment is not None:
                        await target.deployment.deploy(release)
                    else:
                        for package, artifacts in release.items():
                            await target.registry.upload(package, artifacts)
                except StageOnly as only:
                    if staging is None or staging.mode != "auto":
                        raise
                    for run in runs:
                        words = str(only).removeprefix(f"{run.planned.package}: ")
                        run.stages, run.may_only_stage = True, words
                    return await staging.stage(release)
        except TimeoutError as error:
            names = ", ".join(str(package.id) for package in release)
            late, problem = f"within {self.limit_s:g} s", Problem.NOT_SENT_IN_TIME
            if not target.is_repeatable:
                raise Undecided(f"its `publish` did not end {late}", problem=problem) from error
            message = f"{target.registry.url} did not take {names} {late}"
            raise Transient(message, ambiguous=True, problem=problem) from error
        return {}

    async def _find_missing(self, target: Target, run: PackageRun) -> Sequence[Artifact]:
        """What the registry lacks; a deployment takes no version in parts, and what is missing
        beside the files is made with all of them.
        """
        if not target.is_repeatable and not run.sent:
            await self.lookups.settle(run)
        elif run.attempts > 1 or run.ambiguity:
            with attribute_to(run.id):
                run.published = await target.registry.lookup(run.planned.package)
        missing = missing_artifacts(run)
        if run.sent:
            return ()
        if run.published is not None and run.published.lacks:
            return run.artifacts
        return run.artifacts if missing and target.single_upload else missing
