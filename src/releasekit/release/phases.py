"""The three phases of a package: build, upload, confirm; and what each answer means."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from releasekit.aio import gather_all, in_time
from releasekit.errors import (
    BuildFailed,
    ChangedMeanwhile,
    CircuitOpen,
    ConfigError,
    Denied,
    DigestMismatch,
    PackageError,
    PlanError,
    Rejected,
    Transient,
    Undecided,
)
from releasekit.http.traffic import attribute_to, record_wait, wait_for_turn
from releasekit.model import Outcome, PackageWarning, WarningName
from releasekit.problems import Problem
from releasekit.release.building import build_batch, keep_built, make_pins
from releasekit.release.package_run import (
    CUT_OFF,
    deliver,
    fail_together,
    inseparable,
    loss,
    outcome_of,
)
from releasekit.release.polling import BY_HAND, missing_artifacts
from releasekit.scheduler.retries import PATIENT, WaitBudget
from releasekit.state.lock_order import Kind, turn
from releasekit.state.pins import EphemeralPin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Package, PackageId, Staged
    from releasekit.release.events import Events
    from releasekit.release.package_run import PackageRun
    from releasekit.release.polling import Lookups
    from releasekit.release.sources import Sources
    from releasekit.state.journal import Journal

    Companions = Callable[[PackageRun], Sequence[PackageRun]]


class Phases:
    """Each may be called again after any failure, and after a restart."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        *,
        config: PlanConfig,
        journal: Journal,
        events: Events,
        lookups: Lookups,
        sources: Sources,
        patience: WaitBudget = PATIENT,
    ) -> None:
        self._targets = targets
        self._config = config
        self._journal = journal
        self._events = events
        self._lookups = lookups
        self._sources = sources
        self._patience = patience
        # Which packages go along with an upload is decided, and done, one upload at a time.
        self._turns = {name: asyncio.Lock() for name in targets}
        # What several packages inherit from is pinned, and given back, by one build at a time.
        self._inherited = {
            path: asyncio.Lock()
            for target in targets.values()
            for package in target.workspace.packages
            for path in package.inherits
        }

    async def build(
        self,
        runs: Sequence[PackageRun],
        versions: Mapping[str, str],
        *,
        on_built: Callable[[], None],
    ) -> None:
        """Build one batch with its manifests pinned to `versions`; `on_built` is called once the
        tool has built all of it, and what is left to do is for the disk.

        Raises BuildFailed when the batch is one package; otherwise each run keeps its own error,
        which its upload raises.
        """
        async with contextlib.AsyncExitStack() as alone:
            manifests = {path for run in runs for path in run.planned.package.manifests}
            for path in sorted(self._inherited.keys() & manifests, key=str):
                lock = self._inherited[path]
                with record_wait("build-slot", f"the lock on {path.name}"):
                    await alone.enter_async_context(turn(Kind.MANIFEST, str(path), lock))
            await self._build_alone(runs, versions, on_built)

    async def _build_alone(
        self,
        runs: Sequence[PackageRun],
        versions: Mapping[str, str],
        on_built: Callable[[], None],
    ) -> None:
        packages = [run.planned.package for run in runs]
        name = packages[0].id.ecosystem
        target = self._targets[name]
        try:
            pins = make_pins(target.workspace, packages, versions)
        except (ConfigError, PlanError) as error:
            # It could be, when the plan was made.
            changed = ChangedMeanwhile(str(error), hint="Let nothing change the manifests.")
            for run in runs:
                run.error = changed
            if len(runs) == 1:
                raise changed from error
            return
        config = self._config
        with self._events.span("build", *runs):
            pin = EphemeralPin(
                config.state_directory,
                pins,
                rewritten=target.list_rewritten(packages),
                ecosystem=name,
                root=config.root,
                seal=self._journal.seal,
            )
            with self._sources.building(packages, pins):
                async with pin:
                    built = await build_batch(target.workspace, packages, config)
                    if not any(isinstance(each, BuildFailed) for each in built.values()):
                        on_built()
            await gather_all(
                keep_built(run, built[run.id], target, config=config, journal=self._journal)
                for run in runs
            )
            if len(runs) == 1 and runs[0].error is not None:
                raise runs[0].error

    async def upload(
        self,
        runs: Sequence[PackageRun],
        *,
        companions: Companions,
        may_retry: Callable[[PackageError], bool],
    ) -> None:
        """Send what the registry lacks of packages that go out together, usually of one. Also
        returns when only `confirm` can tell how it went. `companions` are those that go along.

        Raises Transient for another attempt, and any other PackageError when there is none.
        """
        for run in runs:
            await self._look_again(run)
            if run.error is not None:
                raise fail_together(run, runs)
        try:
            await self._attempt(runs, companions)
        except PackageError as error:
            if may_retry(error):
                raise
            final = self._patience.explain(error, asyncio.get_running_loop().time())
            for run in runs:
                run.error = final
            if isinstance(error, DigestMismatch):
                raise
            there = [await self._lookups.is_published(run) for run in runs]
            if not (all(there) or any(run.ambiguity for run in runs)):
                raise final from error.__cause__
            if all(there):
                self._tell_refusal(runs)
            elif self._config.gate == "accepted":
                raise Undecided(runs[0].ambiguity) from error

    def _tell_refusal(self, runs: Sequence[PackageRun]) -> None:
        """Of what the registry shows all the same: something beside the files may be missing."""
        for run in runs:
            run.error = None  # nothing that follows has failed
            if run.refusal:
                lacks = run.published.lacks if run.published else ""
                message = f"{f'{lacks}: ' if lacks else ''}{run.refusal}"
                found = PackageWarning(name=WarningName.REFUSED_BUT_THERE, message=message)
                run.warnings += tuple(self._config.levels.apply([found]))

    async def _attempt(self, runs: Sequence[PackageRun], companions: Companions) -> None:
        for run in runs:
            run.attempts += 1
        try:
            with self._events.span("upload", *runs):
                await self._send(runs, companions)
        except CircuitOpen:
            for run in runs:
                run.rests += 1  # though some of its files may be there by now
            raise

    async def _look_again(self, run: PackageRun) -> None:
        """Before the first byte leaves, the sources must still be those that were planned."""
        if run.attempts or run.sent or run.error is not None:
            return
        change = await self._sources.change(run.planned.package)
        # What an earlier run had begun to send may have arrived since.
        if change and not (run.planned.begun and await self._lookups.is_published(run)):
            run.error = ChangedMeanwhile(
                f"{change}; nothing of it was sent",
                hint="Make sure that no build commits or changes a manifest, and run again: "
                "it plans anew.",
            )

    async def _send(self, runs: Sequence[PackageRun], companions_of: Companions) -> None:
        target = self._targets[runs[0].id.ecosystem]
        if target.deployment is None or target.whole:
            await self._send_missing(target, runs)
            return
        name = runs[0].id.ecosystem
        ours = turn(Kind.UPLOAD_TURN, name, self._turns[name])
        async with wait_for_turn(ours, "slot", "the upload before it"):
            built = companions_of(runs[0])
            for companion in built:
                await self._look_again(companion)
            if error := loss(runs[0], built):
                raise error
            companions = companions_of(runs[0])
            try:
                await self._send_missing(target, runs, companions)
            except Rejected as error:
                if not companions or isinstance(error, Denied):
                    raise
                # One of them is refused, and only that one may fail because of it; and what is
                # of no use without it.
                await self._send_missing(target, runs, inseparable(runs[0], companions))

    async def _send_missing(
        self, target: Target, runs: Sequence[PackageRun], companions: Sequence[PackageRun] = ()
    ) -> None:
        release: dict[Package, Sequence[Artifact]] = {}
        sending = []
        for run in runs:
            if run.attempts > 1 or run.ambiguity:
                with attribute_to(run.id):
                    run.published = await target.registry.lookup(run.planned.package)
            if wanted := _to_send(run, whole=target.single_upload):
                release[run.planned.package] = wanted
                sending.append(run)
        if sending:
            release |= {run.planned.package: run.artifacts for run in companions}
            sending += companions
        await self._intend(target.registry.url, sending)
        ambiguities = [run.ambiguity for run in sending]
        for run in sending:
            run.ambiguity = "the upload was interrupted before the registry answered"
        try:
            staged = await self._deliver(target, release, sending)
        except PackageError as error:
            ambiguous = isinstance(error, Transient) and error.ambiguous
            for run, ambiguity in zip(sending, ambiguities, strict=True):
                run.ambiguity = str(error) if ambiguous else ambiguity
                if not isinstance(error, CircuitOpen):
                    run.refusal = str(error)
                if run in companions and not run.ambiguity:
                    # Nothing of it was sent, and its own turn may never come.
                    self._journal.outcome(run.planned.package, Outcome.FAILED, str(error))
            raise
        for run in sending:
            self._accepted(run, staged.get(run.id))

    def _accepted(self, run: PackageRun, staged: Staged | None) -> None:
        run.ambiguity, run.refusal, run.sent, run.staged = "", "", True, staged
        if staged is not None:
            run.staged_at_s = self._events.now_s()
            # It may be long until this run ends.
            outcome, reason = outcome_of(run, (), CUT_OFF)
            self._journal.outcome(run.planned.package, outcome, reason, staged=staged)

    async def _intend(self, url: str, runs: Sequence[PackageRun]) -> None:
        intents = []
        for run in runs:
            digests = {artifact.filename: artifact.sha256 for artifact in run.artifacts}
            intents.append(self._journal.intent(run.planned.package, registry=url, digests=digests))
        await gather_all(intents)

    async def _deliver(
        self,
        target: Target,
        release: Mapping[Package, Sequence[Artifact]],
        sending: Sequence[PackageRun],
    ) -> Mapping[PackageId, Staged]:
        limit_s = self._config.task_timeout
        try:
            async with in_time(asyncio.timeout(limit_s)):
                return await deliver(target, release, sending)
        except TimeoutError as error:
            names = ", ".join(str(package.id) for package in release)
            raise Transient(
                f"{target.registry.url} did not take {names} within {limit_s:g} s",
                ambiguous=True,
                problem=Problem.NOT_SENT_IN_TIME,
            ) from error

    async def follow_up(self, run: PackageRun) -> None:
        """Do what is still to follow; however that ends, the package stays published."""
        target = self._targets[run.id.ecosystem]
        if run.pending_follow_up is None:
            return
        limit_s = self._config.task_timeout
        try:
            with self._events.span("follow-up", run):
                async with in_time(asyncio.timeout(limit_s)):
                    await target.follow_up(run.planned.package)
        except TimeoutError:
            due = target.due(run.planned.package)
            run.pending_follow_up = BuildFailed(
                f"{due} did not end within {limit_s:g} s", hint=BY_HAND, problem=Problem.FOLLOW_UP
            )
        except BuildFailed as error:
            hint = f"{BY_HAND} {error.hint}".rstrip()
            run.pending_follow_up = error.with_(hint=hint, problem=Problem.FOLLOW_UP)
        else:
            run.pending_follow_up = None


def _to_send(run: PackageRun, *, whole: bool) -> Sequence[Artifact]:
    """What the registry lacks; a deployment takes no version in parts, and what is missing beside
    the files is made with all of them.
    """
    missing = missing_artifacts(run)
    if run.sent:
        return ()
    if run.published is not None and run.published.lacks:
        return run.artifacts
    return run.artifacts if missing and whole else missing
