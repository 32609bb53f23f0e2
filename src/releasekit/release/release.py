"""A whole release: its tasks, run by the scheduler, and one result per package."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.errors import PackageError
from releasekit.model import Action, Event, Node, Outcome
from releasekit.release.attesting import Attestations
from releasekit.release.events import Events, Waits
from releasekit.release.package_run import (
    CUT_OFF,
    DRY_RUN,
    Ending,
    PackageRun,
    describe_unreleased,
    held_back,
    result_of,
    results_of,
)
from releasekit.release.phases import Phases
from releasekit.release.polling import POLLING, Lookups, Polling
from releasekit.release.sibling_jobs import ExternalPackages
from releasekit.release.spending import Spending, lanes_of, spending
from releasekit.release.tasks import TaskGraph
from releasekit.scheduler import Scheduler
from releasekit.scheduler.controls import CANCEL_GRACE_S
from releasekit.scheduler.retries import WaitBudget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Target
    from releasekit.http.traffic import Metrics
    from releasekit.model import Artifact, Course, PackageId, Plan, Published, Result
    from releasekit.release.attesting import Signing
    from releasekit.release.sources import Sources
    from releasekit.state.journal import Journal


async def nothing_owed() -> str:
    """Of a run without tags."""
    return ""


class ReleaseRun:
    """One run of one plan, made inside the running event loop.

    `watch` is told of everything that happens, as it happens, and `on_course` of a pause, its end
    and a cancellation. Without `patience`, the time of the run begins now; otherwise it began with
    the command. `signing` is what signs the files of packages that the plan attests. Once all is
    published that is to be tagged, `make_release` sees to that, and returns why what is owed; it is
    not called where nothing comes after that, or something failed.
    """

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        *,
        config: PlanConfig,
        journal: Journal,
        watch: Callable[[Event], None],
        sources: Sources,
        polling: Polling = POLLING,
        patience: WaitBudget | None = None,
        on_course: Callable[[Course], None] = lambda _: None,
        signing: Signing | None = None,
        make_release: Callable[[], Awaitable[str]] = nothing_owed,
    ) -> None:
        self._plan = plan
        self._config = config
        self._patience = patience or WaitBudget.from_now(
            max_wait_s=config.max_wait, deadline_s=config.deadline
        )
        self._runs = {
            planned.package.id: PackageRun.from_plan(planned) for planned in plan.packages
        }
        self._kept = plan.kept()
        self._events = Events(journal, watch, on_course)
        self._lookups = Lookups(targets, polling, config.task_timeout, self._events.now_s)
        self._foreign = ExternalPackages(
            plan, self._runs, config=config, lookups=self._lookups, events=self._events
        )
        self._ending = ""
        self.stopped = asyncio.Event()
        self._graph = TaskGraph(plan, targets, self._runs, config=config, foreign=self._foreign)
        for package, run in self._runs.items():
            run.is_repeatable = targets[package.ecosystem].is_repeatable
            run.stages = self._graph.staging_mode(package) == "always"
        self._events.on_settled = self._settled
        self._task_list = tasks = self._graph.tasks()
        self._unbuilt = {task.name for task in tasks if task.name.phase == "build"}
        self._built = asyncio.Event()
        self._events.waits = Waits(tasks)
        known = journal.history.durations
        lanes = lanes_of(self._graph.build_slots, config.concurrency)
        self._scheduler = Scheduler.from_tasks(
            tasks,
            lanes=lanes,
            max_retries=config.max_retries,
            retry_base_delay=config.retry_base_delay,
            task_timeout=None,
            durations={t.name: known[str(t.name)] for t in tasks if str(t.name) in known},
            # A dry run prepares nothing: its builds are all that it does.
            preparing={"build", "attest", "hold"} if config.is_uploading else (),
            completing={"confirm", "approval", "follow-up"},
            # With one slot for all lanes, what other jobs wait for would wait for these jobs.
            sequential=lanes["upload"] == lanes["build"] == 1 and not plan.foreign,
            patience=self._patience,
            observer=self._events,
        )
        self._phases = Phases(
            plan=plan,
            targets=targets,
            runs=self._runs,
            config=config,
            graph=self._graph,
            scheduler=self._scheduler,
            stopped=self.stopped,
            journal=journal,
            events=self._events,
            lookups=self._lookups,
            attestations=Attestations(targets, signing, journal, config.task_timeout),
            foreign=self._foreign,
            sources=sources,
            patience=self._patience,
            may_upload=config.start_uploads == "ready",
            make_release=make_release,
        )

    def pause(self) -> None:
        """Nothing starts until `resume`; a run that is being stopped is not held up by that."""
        if not self._ending:
            self._scheduler.pause()
            self._events.paused()

    def resume(self) -> None:
        self._scheduler.resume()
        self._events.resumed()

    def stop(self, reason: str, *, grace_s: float | None = None) -> None:
        """Start nothing new: builds in progress are finished, and uploads in progress are finished
        and confirmed. With `grace_s`, builds are interrupted at once, and uploads after that time.

        May be called again: the stricter call holds.
        """
        self._ending = self._ending or reason
        self._events.stopping(reason, grace_s)
        self.stopped.set()
        self._foreign.stop()
        lanes = None if grace_s is None else {"upload", "confirm"}
        self._scheduler.cancel(grace_s=grace_s, lanes=lanes, reason=reason)

    async def run(self) -> None:
        """Run to the end, even if single packages fail; `results` tells how they ended."""
        for run in self._runs.values():
            if run.planned.action is Action.KEEP:
                self._events.ended(result_of(run))
        timer = None
        if self._config.deadline is not None:
            reason = f"the deadline of {self._config.deadline:g} s passed"
            timer = asyncio.get_running_loop().call_at(
                self._patience.until, partial(self.stop, reason, grace_s=CANCEL_GRACE_S)
            )
        if not self._unbuilt:
            self._built.set()
        try:
            await self._scheduler.run(self._perform, self._conclude)
        except asyncio.CancelledError:
            self._ending = self._ending or "cancelled by the caller"
            raise
        finally:
            self._built.set()
            if timer is not None:
                timer.cancel()
        if self._ending:
            doubtful = [run for run in self._runs.values() if run.unconfirmed]
            await gather_all(map(self._lookups.last_poll, doubtful))
        for result in self.results():
            self._events.ended(result)

    async def built(self) -> tuple[Artifact, ...]:
        """All files of the release that are at hand, in plan order, once nothing of it is left to
        be built: those of packages that are published already too, unless they were built from
        another commit, of which this run knows nothing. None of a run that is stopped.
        """
        await self._built.wait()
        if self._ending:
            return ()
        return tuple(
            each
            for name, run in self._runs.items()
            if run.is_repeatable
            and (name not in self._kept or run.planned.built_from == self._plan.commit)
            for each in run.artifacts
        )

    def published(self) -> dict[PackageId, Published]:
        """What the registries showed when each package was last looked up."""
        return {name: run.published for name, run in self._runs.items() if run.published}

    def results(self) -> tuple[Result, ...]:
        """What is true now, in publish order; after `run` it is final."""
        ending: Ending = CUT_OFF if self._config.is_uploading else DRY_RUN
        if self._ending:
            ending = Outcome.CANCELLED, self._ending
        elif not self._phases.may_upload and (reason := held_back(self._runs.values())):
            ending = Outcome.BLOCKED, reason
        elif self._graph.release and not self._phases.is_released:
            owed = self._phases.owed
            ending = Outcome.BLOCKED, describe_unreleased(self._runs.values(), owed)
        return results_of(self._runs, self._graph.edges, ending)

    def _settled(self, node: Node) -> None:
        run = self._runs.get(node.package)
        if run is not None and node == self._graph.shown(run.id):
            self._foreign.settled(run)
        self._unbuilt.discard(node)
        if not self._unbuilt:
            self._built.set()

    async def _perform(self, node: Node) -> None:
        phases = self._phases
        with self._events.attempt(node):
            match node.phase:
                case "build":
                    await phases.build(node)
                case "attest":
                    await phases.attest(node)
                case "hold":
                    await phases.hold(node)
                case "upload":
                    await phases.upload(node)
                case "confirm":
                    await phases.confirm(node)
                case "approval":
                    await phases.approval(node)
                case "follow-up":
                    await phases.follow_up(node)
                case "wait":
                    await phases.wait(node)

    async def _conclude(self, node: Node, error: PackageError) -> None:
        try:
            with self._events.attempt(node):
                await self._phases.conclude(node, error)
        except PackageError as final:
            run = self._runs.get(node.package)
            # A phase that ends a package raises the very error that it leaves there.
            if run is not None and run.error is final:
                self._failed(run)
            raise

    def spending(self, book: Metrics) -> Spending:
        """What went into it until now, with what was asked of servers."""
        batches = {node: each.packages for node, each in self._graph.batches.items()}
        return spending(self._events, book, self._task_list, batches)

    def _failed(self, run: PackageRun) -> None:
        if self._config.failure_policy == "stop":
            self.stop(f"{run.id} failed, and `failure-policy` is `stop`")
        # Until its dependencies have ended, a failed package cannot be told from a blocked one; and
        # until the run has ended, an unconfirmed one may still be found.
        if run.unconfirmed:
            return
        if all(self._runs[on].visible or on in self._kept for on in self._graph.edges[run.id]):
            self._events.ended(result_of(run))
