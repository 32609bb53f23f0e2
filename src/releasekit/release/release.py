"""A whole release: the task graph of a plan, run by the scheduler, and one result per package."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, get_args

from releasekit.aio import gather_all
from releasekit.errors import PackageError
from releasekit.model import Action, Event, Node, Outcome, PackageId, Phase
from releasekit.release.batches import batches_of, expect_nothing
from releasekit.release.delivery import hold_back
from releasekit.release.events import Events
from releasekit.release.foreign import Foreign
from releasekit.release.life import (
    CUT_OFF,
    DRY_RUN,
    Ending,
    PackageRun,
    companions,
    loss,
    result_of,
    results_of,
)
from releasekit.release.others import OtherJobs
from releasekit.release.phases import Phases
from releasekit.release.polling import POLLING, Lookups, Polling
from releasekit.release.spending import Spending, one_at_a_time, slots_of, spending
from releasekit.release.waits import Waits
from releasekit.scheduler import Scheduler, Task
from releasekit.scheduler.patience import Patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.config.values import StageMode
    from releasekit.ecosystems.interface import Target
    from releasekit.http.traffic import Book
    from releasekit.model import Plan, Result
    from releasekit.release.sources import Sources
    from releasekit.state.journal import Journal

# A runner leaves 7.5 s between its first signal and its second one.
# https://github.com/actions/runner/blob/main/src/Runner.Sdk/ProcessInvoker.cs
CANCEL_GRACE_S = 6.0
PHASES: tuple[Phase, ...] = get_args(Phase)


class ReleaseRun:
    """One run of one plan, made inside the running event loop.

    `watch` is told of everything that happens, as it happens. `patience` began with the command, if
    this is not all that it does.
    """

    def __init__(  # noqa: PLR0913 - all that a release works with, by name
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        *,
        config: Config,
        journal: Journal,
        watch: Callable[[Event], None],
        sources: Sources,
        polling: Polling = POLLING,
        patience: Patience | None = None,
    ) -> None:
        self._plan = plan
        self._targets = targets
        self._config = config
        self._patience = patience or Patience.from_now(
            max_wait_s=config.max_wait_s, deadline_s=config.deadline_s
        )
        self._runs = {
            planned.package.id: PackageRun.from_plan(planned) for planned in plan.packages
        }
        for package, run in self._runs.items():
            run.stages = self._staging_mode(package) == "always"
        self._edges = {
            package: frozenset(on for on in needs if not self._together(package, on))
            for package, needs in plan.edges().items()
        }
        self._events = Events(journal, watch)
        self._lookups = Lookups(
            targets, polling=polling, patience_s=config.task_timeout_s, events=self._events
        )
        self._phases = Phases(
            targets,
            config=config,
            journal=journal,
            events=self._events,
            lookups=self._lookups,
            sources=sources,
            patience=self._patience,
        )
        self._foreign = Foreign(
            plan,
            self._runs,
            wait_s=config.wait_s,
            polling=polling,
            lookups=self._lookups,
            events=self._events,
            others=OtherJobs.around(config, plan),
        )
        self._jobs: dict[Node, Callable[[], Awaitable[None]]] = {}
        self._ending = ""
        self._stopped = asyncio.Event()
        self._events.on_settled = partial(self._foreign.settled, shown_by=self._shown)
        self._task_list = tasks = self._tasks()
        self._events.waits = Waits(tasks)
        known = journal.history.durations
        self._scheduler = Scheduler.from_tasks(
            tasks,
            lanes=slots_of(config),
            max_retries=config.max_retries,
            retry_base_delay=config.retry_base_delay_s,
            task_timeout=None,
            durations={t.name: known[str(t.name)] for t in tasks if str(t.name) in known},
            completing={"confirm", "approval", "follow-up"},
            sequential=one_at_a_time(config, waits_for_jobs=bool(plan.foreign)),
            patience=self._patience,
            observer=self._events,
        )

    @property
    def scheduler(self) -> Scheduler[Node]:
        """For pausing and resuming."""
        return self._scheduler

    def stop(self, reason: str, *, grace_s: float | None = None) -> None:
        """Start nothing new: builds in progress are finished, and uploads in progress are finished
        and confirmed. With `grace_s`, builds are interrupted at once, and uploads after that time.

        May be called again: the stricter call holds.
        """
        self._ending = self._ending or reason
        self._stopped.set()
        self._foreign.stop()
        lanes = None if grace_s is None else {"upload", "confirm"}
        self._scheduler.cancel(grace_s=grace_s, lanes=lanes, reason=reason)

    async def run(self) -> None:
        """Run to the end, whatever happens to single packages; `results` tells how they ended."""
        for run in self._runs.values():
            if run.planned.action is Action.KEEP:
                self._events.ended(result_of(run))
        timer = None
        if self._config.deadline_s is not None:
            reason = f"the deadline of {self._config.deadline_s:g} s passed"
            timer = asyncio.get_running_loop().call_at(
                self._patience.until, partial(self.stop, reason, grace_s=CANCEL_GRACE_S)
            )
        try:
            await self._scheduler.run(self._perform)
        except asyncio.CancelledError:
            self._ending = self._ending or "cancelled by the caller"
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if self._ending:
            doubtful = [run for run in self._runs.values() if run.unconfirmed]
            await gather_all(map(self._lookups.last_poll, doubtful))
        for result in self.results():
            self._events.ended(result)

    def results(self) -> tuple[Result, ...]:
        """What is true now, in publish order; after `run` it is final."""
        return results_of(self._runs, self._edges, self._rest())

    def _rest(self) -> Ending:
        if self._ending:
            return Outcome.CANCELLED, self._ending
        return DRY_RUN if self._config.dry_run else CUT_OFF

    async def _perform(self, node: Node) -> None:
        try:
            with self._events.attempt(node):
                await self._jobs[node]()
        except PackageError as error:
            run = self._runs.get(node.package)
            if run is not None and run.error is error:
                self._failed(run)
            raise

    def spending(self, book: Book) -> Spending:
        """What went into it until now, with what was asked of servers."""
        batches = {node: each.packages for node, each in self._batches.items()}
        return spending(self._events, book, self._task_list, batches, self._config)

    def _failed(self, run: PackageRun) -> None:
        if self._config.failure_policy == "stop":
            self.stop(f"{run.id} failed, and `failure-policy` is `stop`")
        # Until its dependencies have ended, a failed package cannot be told from a blocked one; and
        # until the run has ended, an unconfirmed one may still be found.
        if run.unconfirmed:
            return
        if all(self._runs[on].visible or self._kept(on) for on in self._edges[run.id]):
            self._events.ended(result_of(run))

    def _kept(self, package: PackageId) -> bool:
        run = self._runs.get(package)
        return run is not None and run.planned.action is Action.KEEP

    async def _build(
        self,
        runs: Sequence[PackageRun],
        versions: Mapping[str, str],
        absent: frozenset[PackageId],
    ) -> None:
        if not self._config.dry_run:
            hold_back(runs, [self._runs[on] for on in absent & self._runs.keys()], mode="never")
        await self._phases.build(runs, versions)

    async def _upload(self, node: Node, runs: Sequence[PackageRun]) -> None:
        for run in runs:
            if run.planned.action is Action.REFUSE:
                run.error = PackageError(run.planned.reason)
            elif not (run.attempts or run.planned.begun):
                run.error = run.error or loss(run, self._runs.values())
        needs = [self._runs[on] for run in runs for on in self._edges[run.id]]
        if all(run.error is None for run in runs):
            hold_back(runs, needs, mode=self._staging_mode(node.package))
        await self._phases.upload(
            runs,
            companions=self._companions,
            may_retry=lambda error: not self._ending and self._scheduler.retries(node, error),
        )

    async def _confirm(self, run: PackageRun) -> None:
        await self._lookups.confirm(run)
        if run.pending_follow_up is None and not (run.awaits_approval and self._may_wait(run.id)):
            self._events.ended(result_of(run))

    async def _approval(self, run: PackageRun) -> None:
        await self._lookups.approval(run, self._config.wait_for_approval_s, self._stopped)
        if run.pending_follow_up is None:
            self._events.ended(result_of(run))

    async def _follow_up(self, run: PackageRun) -> None:
        await self._phases.follow_up(run)
        self._events.ended(result_of(run))

    def _tasks(self) -> list[Task[Node]]:
        """Three nodes per package, and one for its follow-up; packages that are kept have none, and
        dry runs only build. They are in plan order, each package with all its phases.
        """
        tasks = self._builds()
        if not self._config.dry_run:
            uploads = self._uploads()
            tasks += self._transfers(uploads)
            tasks += self._approvals()
            tasks += self._follow_ups(uploads)
            # What is always staged waits in no order, and so for no other job.
            if any(node.phase == "wait" for task in tasks for node in task.after):
                tasks += self._waits()
        places = {package: place for place, package in enumerate((*self._runs, *self._foreign))}
        # Where one thing is done at a time, a person is waited for when all else is done.
        return sorted(
            tasks,
            key=lambda t: (
                t.name.phase == "approval",
                places[t.name.package],
                PHASES.index(t.name.phase),
            ),
        )

    def _transfers(self, uploads: Mapping[Node, Sequence[PackageId]]) -> list[Task[Node]]:
        """Every upload, and a confirmation of each of its packages."""
        built_by = {on: node for node, each in self._batches.items() for on in each.packages}
        sent_by = {package: node for node, packages in uploads.items() for package in packages}
        tasks = []
        for upload, packages in uploads.items():
            needs = {on for package in packages for on in self._edges[package]}
            needs.update(*(self._foreign.needs[package] for package in packages))
            if self._staging_mode(upload.package) == "always":
                # Nobody gets any of it before it is approved: it waits in no order.
                needs = {on for on in needs if on.ecosystem != upload.package.ecosystem}
            waits = {
                self._gate(on, upload.package, sent_by) for on in needs if not self._kept(on)
            } | {built_by[package] for package in packages if package in built_by}
            group = upload.package.ecosystem
            tasks.append(Task(name=upload, lane="upload", after=frozenset(waits), group=group))
            for package in packages:
                confirm = Node("confirm", package)
                # What waits in another job has to be uploaded and confirmed there.
                weight = 1.0 + 2 * self._plan.behind.get(package, 0)
                after = frozenset({upload})
                tasks.append(Task(name=confirm, lane="confirm", after=after, weight=weight))
                self._jobs[confirm] = partial(self._confirm, self._runs[package])
        return tasks

    def _gate(self, on: PackageId, package: PackageId, sent_by: Mapping[PackageId, Node]) -> Node:
        """The task of `on` that has to be done before `package` may go out."""
        if on in self._foreign:
            return Node("wait", on)
        beside = on.ecosystem == package.ecosystem and self._staging_mode(package) != "never"
        if not beside and self._may_wait(on):
            return Node("approval", on)
        accepted = self._config.gate == "accepted" and on in sent_by
        return sent_by[on] if accepted else Node("confirm", on)

    def _waits(self) -> list[Task[Node]]:
        """One node for each package that another job publishes."""
        nodes = {Node("wait", on): on for on in self._foreign}
        self._jobs |= {node: partial(self._foreign.wait, on) for node, on in nodes.items()}
        return [Task(name=node, lane="wait") for node in nodes]

    def _approvals(self) -> list[Task[Node]]:
        """What earlier runs have staged, confirmed as if this one had, and a node for each package
        that may have to wait for a person.
        """
        tasks = []
        for package, run in self._runs.items():
            confirm, approval = Node("confirm", package), Node("approval", package)
            if run.planned.action is Action.AWAIT:
                tasks.append(Task(name=confirm, lane="confirm"))
                self._jobs[confirm] = partial(self._confirm, run)
            if self._may_wait(package):
                tasks.append(Task(name=approval, lane="approval", after=frozenset({confirm})))
                self._jobs[approval] = partial(self._approval, run)
        return tasks

    def _staging_mode(self, package: PackageId) -> StageMode:
        staging = self._targets[package.ecosystem].staging
        return "never" if staging is None else staging.mode

    def _may_wait(self, package: PackageId) -> bool:
        """Whether this run waits for its approval, should it be staged."""
        action = self._runs[package].planned.action
        staged = action is Action.AWAIT or self._staging_mode(package) != "never"
        return staged and action is not Action.KEEP and self._config.wait_for_approval_s > 0

    def _shown(self, package: PackageId) -> Node:
        """The task after which the registry shows it, if it is ever going to in this run."""
        if package in self._foreign:
            return Node("wait", package)
        return Node("approval" if self._may_wait(package) else "confirm", package)

    def _follow_ups(self, uploads: Mapping[Node, Sequence[PackageId]]) -> list[Task[Node]]:
        """One node for each package that has something to do once it is confirmed."""
        tasks = []
        for package in (package for packages in uploads.values() for package in packages):
            follow_up = self._targets[package.ecosystem].follow_up
            run = self._runs[package]
            if follow_up is not None and follow_up.due(run.planned.package):
                node = Node("follow-up", package)
                after = frozenset({self._shown(package)})
                tasks.append(Task(name=node, lane="follow-up", after=after))
                self._jobs[node] = partial(self._follow_up, run)
        return tasks

    def _uploads(self) -> dict[Node, list[PackageId]]:
        """One node per package; a single one for packages that go out together."""
        nodes: dict[Node, list[PackageId]] = {}
        shared: dict[str, Node] = {}
        for package, run in self._runs.items():
            if run.planned.action in {Action.KEEP, Action.AWAIT}:
                continue
            node = Node("upload", package)
            if self._together(package, package):
                node = shared.setdefault(package.ecosystem, node)
            nodes.setdefault(node, []).append(package)
        for node, packages in nodes.items():
            runs = [self._runs[package] for package in packages]
            self._jobs[node] = partial(self._upload, node, runs)
        return nodes

    def _together(self, one: PackageId, other: PackageId) -> bool:
        """Whether both go out in one upload, and neither waits for the other."""
        if Action.AWAIT in {self._runs[one].planned.action, self._runs[other].planned.action}:
            return False
        return one.ecosystem == other.ecosystem and self._targets[one.ecosystem].single_upload

    def _companions(self, run: PackageRun) -> list[PackageRun]:
        """The packages that go out with it, ahead of their own turn."""
        return companions(run, self._runs.values(), self._edges)

    def _builds(self) -> list[Task[Node]]:
        """One node per batch, after those whose packages it needs to be built, and after what the
        registry has to show by then.
        """
        found = batches_of(self._plan, self._targets)
        self._batches = {Node("build", each.packages[0]): each for each in found}
        built_by = {on: node for node, each in self._batches.items() for on in each.packages}
        tasks = []
        for node, batch in self._batches.items():
            runs = [self._runs[package] for package in batch.packages]
            needs = {built_by[on] for on in batch.needs if on in built_by}
            if self._config.dry_run:
                expect_nothing(runs, batch.absent)
            else:
                needs |= {self._shown(on) for on in batch.absent}
            tasks.append(Task(name=node, lane="build", after=frozenset(needs - {node})))
            versions = self._plan.versions[node.package.ecosystem]
            self._jobs[node] = partial(self._build, runs, versions, batch.absent)
        return tasks
