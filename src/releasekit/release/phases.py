"""The phases of a package, in the order of its life; each is a task, and a method here.

build: its batch is built, with manifests pinned, and what is built of it goes on record.
attest: its files are signed, where the plan has them signed.
hold: with `start-uploads: built`, nothing is sent before everything else is built and signed; and
what comes after the release waits for that.
upload: what the registry lacks of it is sent, or staged.
confirm: the registry is asked until it shows all of it.
approval: a person is waited for where it is staged.
follow-up: what is due once it is published is done.
wait: where another job publishes it, the registry is asked until it shows it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from msgspec import Struct

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
    Undecided,
)
from releasekit.http.traffic import record_wait, wait_for_turn
from releasekit.model import SENT, Action, PackageWarning, WarningName
from releasekit.problems import Problem
from releasekit.release.building import build_batch, keep_built, make_pins
from releasekit.release.package_run import (
    block_on_staged,
    companions,
    fail_together,
    held_back,
    inseparable,
    loss,
    result_of,
)
from releasekit.release.polling import BY_HAND
from releasekit.release.uploading import Uploads
from releasekit.state.lock_order import Kind, turn
from releasekit.state.pins import EphemeralPin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Node, Package, PackageId, Plan
    from releasekit.release.attesting import Attestations
    from releasekit.release.events import Events
    from releasekit.release.package_run import PackageRun
    from releasekit.release.polling import Lookups
    from releasekit.release.sibling_jobs import ExternalPackages
    from releasekit.release.sources import Sources
    from releasekit.release.tasks import TaskGraph
    from releasekit.scheduler import Scheduler
    from releasekit.scheduler.retries import WaitBudget
    from releasekit.state.journal import Journal


class Phases(Struct, kw_only=True, eq=False, dict=True):
    """Each may be called again after any failure, and after a restart; once the run is `stopped`,
    none is. After the last failure comes `conclude`. It `may_upload` from `hold` on, and what comes
    the release from when it `is_released`, unless a tag is `owed`.
    """

    plan: Plan
    targets: Mapping[str, Target]
    runs: Mapping[PackageId, PackageRun]
    config: PlanConfig
    graph: TaskGraph
    scheduler: Scheduler[Node]
    stopped: asyncio.Event
    journal: Journal
    events: Events
    lookups: Lookups
    attestations: Attestations
    foreign: ExternalPackages
    sources: Sources
    patience: WaitBudget
    may_upload: bool
    make_release: Callable[[], Awaitable[str]]
    is_released: bool = False
    owed: str = ""

    def __post_init__(self) -> None:
        self._uploads = Uploads(self.journal, self.events, self.lookups, self.config.task_timeout)
        # Which packages go along with an upload is decided, and done, one upload at a time.
        self._turns = {name: asyncio.Lock() for name in self.targets}
        sent = [planned.package for planned in self.plan.packages if planned.action in SENT]
        self._sent = {
            name: [package for package in sent if package.id.ecosystem == name]
            for name in self.targets
        }
        # What several packages inherit from is pinned, and given back, by one build at a time.
        self._inherited = {
            path: asyncio.Lock()
            for target in self.targets.values()
            for package in target.workspace.packages
            for path in package.inherits
        }

    async def build(self, node: Node) -> None:
        """Build a batch; its slot is free once the tool has built all of it, and what is left to do
        is for the disk.

        Raises PackageError when the batch is one package, and where it has to wait for what is
        staged; otherwise each run keeps its own error, which its upload raises.
        """
        batch = self.graph.batches[node]
        runs = [self.runs[package] for package in batch.packages]
        packages = [run.planned.package for run in runs]
        name, config = node.package.ecosystem, self.config
        target = self.targets[name]
        if config.is_uploading:
            absent = [self.runs[on] for on in batch.absent & self.runs.keys()]
            block_on_staged(runs, absent, mode="never")
        pinned = target.list_pinned(packages, self._sent[name])
        async with self._take_manifests(pinned):
            try:
                pins = make_pins(target.workspace, pinned, self.plan.versions[name])
            except (ConfigError, PlanError) as error:
                # It could be, when the plan was made.
                changed = ChangedMeanwhile(str(error), hint="Let nothing change the manifests.")
                for run in runs:
                    run.error = changed
                if len(runs) == 1:
                    raise changed from error
                return
            with self.events.span("build", *runs):
                pin = EphemeralPin(
                    config.state_directory,
                    pins,
                    rewritten=target.list_rewritten(packages),
                    ecosystem=name,
                    root=config.root,
                    seal=self.journal.seal,
                )
                with self.sources.building(packages, pins):
                    async with pin:
                        built = await build_batch(target.workspace, packages, config)
                        failed = any(isinstance(each, BuildFailed) for each in built.values())
                        # What has failed keeps its slot until it is known what that blocks; and
                        # with a single slot, no manifest is pinned while another one is restored.
                        if not failed and self.graph.build_slots != 1:
                            self.scheduler.free_slot(node)
                await gather_all(
                    keep_built(run, built[run.id], target, config=config, journal=self.journal)
                    for run in runs
                )
                if len(runs) == 1 and runs[0].error is not None:
                    raise runs[0].error

    @contextlib.asynccontextmanager
    async def _take_manifests(self, packages: Sequence[Package]) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            manifests = {path for package in packages for path in package.manifests}
            for path in sorted(self._inherited.keys() & manifests, key=str):
                lock = self._inherited[path]
                with record_wait("build-slot", f"the lock on {path.name}"):
                    await stack.enter_async_context(turn(Kind.MANIFEST, str(path), lock))
            yield

    async def attest(self, node: Node) -> None:
        """Sign what has no attestation of this job yet, and keep it beside the files.

        Raises PackageError; after the last attempt, nothing of the package is sent.
        """
        run = self.runs[node.package]
        if run.error is None:
            with self.events.span("attest", run):
                await self.attestations.sign(run)

    async def hold(self, node: Node) -> None:
        """Let uploads begin, or those after the release once that is made. Raises PackageError
        where something failed that was to be sent, or a tag is owed.
        """
        if node == self.graph.release:
            self.is_released = True
            self.owed = await self.make_release()
            if self.owed:
                self.is_released = False
                raise PackageError(self.owed, problem=Problem.TAG_OWED)
            return
        if reason := held_back(self.runs.values()):
            raise PackageError(reason, problem=Problem.BLOCKED)
        self.may_upload = True

    async def upload(self, node: Node) -> None:
        """Send what the registry lacks of packages that go out together, usually of one. Raises
        PackageError.
        """
        runs = [self.runs[package] for package in self.graph.uploads[node]]
        target = self.targets[node.package.ecosystem]
        await self._check_before_upload(runs)
        for run in runs:  # not before: what is refused there was no attempt
            run.attempts += 1
            needs = dict.fromkeys(need.on for need in run.planned.package.dependencies)
            files = {
                on: self.runs[on].artifacts or None if on in self.runs else None for on in needs
            }
            target.receive_files(run.planned.package, files)
        try:
            with self.events.span("upload", *runs):
                if target.deployment is None or target.deployment.whole:
                    await self._uploads.upload_missing(target, runs)
                else:
                    await self._upload_together(target, runs[0])
        except PackageError as error:
            for run in runs:
                # Still one of its attempts: some files may be there, so the next one looks first.
                run.rests += isinstance(error, CircuitOpen)
            raise

    async def _check_before_upload(self, runs: Sequence[PackageRun]) -> None:
        """Raises PackageError for what the plan refuses, what is of no use without something that
        failed, what cannot wait beside what it needs, and sources that have changed.
        """
        for run in runs:
            if run.planned.action is Action.REFUSE:
                is_late = any(it.name is WarningName.LATE_CHANGE for it in run.planned.warnings)
                problem = Problem.LATE_CHANGE if is_late else Problem.OTHER_BYTES
                run.error = PackageError(run.planned.reason, problem=problem)
            elif not (run.attempts or run.planned.begun):
                run.error = run.error or loss(run, self.runs.values())
        if all(run.error is None for run in runs):
            needs = [self.runs[on] for run in runs for on in self.graph.edges[run.id]]
            block_on_staged(runs, needs, mode=self.graph.staging_mode(runs[0].id))
        for run in runs:
            await self._look_again(run)
            if run.error is not None:
                raise fail_together(run, runs)

    async def _look_again(self, run: PackageRun) -> None:
        """Before the first byte leaves, the sources must still be those that were planned."""
        if run.attempts or run.sent or run.error is not None:
            return
        change = await self.sources.change(run.planned.package)
        # What an earlier run had begun to send may have arrived since.
        if change and not (run.planned.begun and await self.lookups.is_published(run)):
            run.error = ChangedMeanwhile(
                f"{change}; nothing of it was sent",
                hint="Make sure that no build commits or changes a manifest, and run again: "
                "it plans anew.",
            )

    async def _upload_together(self, target: Target, run: PackageRun) -> None:
        """In its turn, along with all that can go out by then."""
        name, others, edges = run.id.ecosystem, self.runs.values(), self.graph.edges
        ours = turn(Kind.UPLOAD_TURN, name, self._turns[name])
        async with wait_for_turn(ours, "slot", "the upload before it"):
            built = companions(run, others, edges)
            for companion in built:
                await self._look_again(companion)
            if error := loss(run, built):
                raise error
            going = companions(run, others, edges)
            try:
                await self._uploads.upload_missing(target, [run], going)
            except Rejected as error:
                if not going or isinstance(error, Denied):
                    raise
                # One of them is refused, and only that one may fail because of it; and what is
                # of no use without it.
                await self._uploads.upload_missing(target, [run], inseparable(run, going))

    async def conclude(self, node: Node, error: PackageError) -> None:
        """No attempt follows the one that ended with `error`. Raises what the phase ends with;
        returns where an upload ended well all the same, or only `confirm` can tell how it did.
        """
        if node.phase not in {"attest", "upload"}:
            raise error
        runs = [self.runs[on] for on in self.graph.uploads.get(node, [node.package])]
        if any(run.error or run.held_by for run in runs):
            raise error  # from before anything was sent
        final = self.patience.explain(error, asyncio.get_running_loop().time())
        for run in runs:
            run.error = final
        if node.phase == "attest" or isinstance(error, DigestMismatch):
            raise final from error.__cause__
        is_repeatable = self.targets[node.package.ecosystem].is_repeatable
        look = self.lookups.is_published if is_repeatable else self.lookups.settle
        there = [await look(run) for run in runs]
        if all(there):
            self._tell_refusal(runs)
        elif not any(run.ambiguity for run in runs):
            raise final from error.__cause__
        elif self.config.gate == "accepted":
            raise Undecided(runs[0].ambiguity) from error

    def _tell_refusal(self, runs: Sequence[PackageRun]) -> None:
        """Of what the registry shows all the same: something beside the files may be missing."""
        for run in runs:
            run.error = None  # nothing that follows has failed
            told = any(each.name is WarningName.REFUSED_BUT_THERE for each in run.warnings)
            if run.refusal and not told:
                lacks = run.published.lacks if run.published else ""
                message = f"{f'{lacks}: ' if lacks else ''}{run.refusal}"
                found = PackageWarning(name=WarningName.REFUSED_BUT_THERE, message=message)
                run.warnings += tuple(self.config.levels.apply([found]))

    async def confirm(self, node: Node) -> None:
        """Ask the registry until it shows all our bytes. Of what is staged, which is not to be seen
        yet, nothing is asked.

        Raises DigestMismatch when it shows other bytes, Undecided when it does not show ours in
        time, and Denied or Rejected where it refuses to say.
        """
        run = self.runs[node.package]
        if run.staged is None:
            try:
                with self.events.span("confirm", run):
                    await self.lookups.poll_until_shown(run)
            except PackageError as error:
                run.error = error
                raise
        if not run.is_repeatable and not run.sent:  # a later attempt found it
            self._tell_refusal([run])
        waits = run.awaits_approval and self.graph.may_wait(run.id)
        if run.pending_follow_up is None and not waits:
            self.events.ended(result_of(run))

    async def approval(self, node: Node) -> None:
        """Ask until the registry shows what is staged, the time for it is over, or the run is
        stopped; at least once.

        Raises DigestMismatch when it shows other bytes.
        """
        run = self.runs[node.package]
        if run.awaits_approval:
            wait_s = self.config.wait_for_approval
            with self.events.span("approval", run):
                await self.lookups.poll_until_approved(run, wait_s, self.stopped)
        if run.pending_follow_up is None:
            self.events.ended(result_of(run))

    async def follow_up(self, node: Node) -> None:
        """Do what is still to follow. Raises nothing: however that ends, the package stays
        published.
        """
        run = self.runs[node.package]
        target = self.targets[node.package.ecosystem]
        if run.pending_follow_up is not None:
            limit_s = self.config.task_timeout
            try:
                with self.events.span("follow-up", run):
                    async with in_time(asyncio.timeout(limit_s)):
                        await target.follow_up(run.planned.package)
            except TimeoutError:
                late = f"{target.due(run.planned.package)} did not end within {limit_s:g} s"
                run.pending_follow_up = BuildFailed(late, hint=BY_HAND, problem=Problem.FOLLOW_UP)
            except BuildFailed as error:
                hint = f"{BY_HAND} {error.hint}".rstrip()
                run.pending_follow_up = error.with_(hint=hint, problem=Problem.FOLLOW_UP)
            else:
                run.pending_follow_up = None
        self.events.ended(result_of(run))

    async def wait(self, node: Node) -> None:
        """Ask for what another job publishes until the registry shows it. Raises PackageError, and
        lets what needs it know, where no job publishes it.
        """
        await self.foreign.wait(node.package)
