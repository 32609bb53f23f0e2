"""The command publish, from the locks to the results; reads top to bottom."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from releasekit import __version__, report
from releasekit.aio import Group, uncancellable
from releasekit.announce.releases import Assets
from releasekit.cli.interruption import Interruption
from releasekit.cli.request_log import is_verbose, request_logger
from releasekit.cli.result_files import (
    RESULTS,
    forget_results,
    page_of,
    refuse_tracked_results,
    say,
    tell,
)
from releasekit.cli.session import find_seal, prepare, refuse_elsewhere
from releasekit.config.inputs import STATE_KEY
from releasekit.errors import INTERRUPTED
from releasekit.http.traffic import collect
from releasekit.model import Report
from releasekit.plan.decision import SENT
from releasekit.plan.file import PlanFile
from releasekit.plan.registries import check_credentials
from releasekit.plan.warnings import refuse_errors
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.report.progress import choose_progress
from releasekit.report.text import few
from releasekit.scheduler.controls import keys_are_read, listening
from releasekit.state import doctor, locks, pins, run_logs
from releasekit.state.directory import refuse_links
from releasekit.state.journal import Journal
from releasekit.state.quarantine import quarantine
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from releasekit.announce.post_release import PostRelease
    from releasekit.attested import ReleaseStatement
    from releasekit.cli.session import Session
    from releasekit.cli.signing import JobSigning
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Target
    from releasekit.host.sandbox import Sandbox
    from releasekit.http.traffic import Metrics
    from releasekit.model import Plan, Result
    from releasekit.report.progress import Progress
    from releasekit.scheduler.retries import WaitBudget
    from releasekit.state.history import History


async def run(config: Config, session: Session) -> int:
    """Publish what is missing; whatever happens, every package is accounted for."""
    planned = PlanFile.read(config.plan_file) if config.plan_file else None
    if planned is not None:
        config = planned.narrowed(config)
    ecosystems = config.package_filter.ecosystems
    run_id = uuid.uuid4().hex
    redact = session.redacted.text
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    await refuse_tracked_results(config, session)
    session.actions.watch_files()
    with (
        Interruption() as interruption,
        collect(request_logger(session, verbose=config.verbose, mode=config.mode)) as book,
    ):
        async with Group() as group:
            await asyncio.to_thread(refuse_links, config.state_directory)
            say(doctor.dead_runs(config.state_directory, ecosystems), session)
            held = await group.enter(locks.acquire(config.state_directory, ecosystems))
            forget_results(config.state_directory, config.results_file)
            seal = find_seal(session, make=True) or Seal.for_one_run()
            for path in pins.recover(
                config.state_directory, ecosystems, root=config.root, seal=seal
            ):
                say(f"restored {path}, which a killed run had left pinned", session)
            run_logs.remove_old(config.state_directory)
            # Beside the loop: what somebody else put there may be long.
            journal = await uncancellable(
                asyncio.to_thread(
                    Journal.open, config.state_directory, run_id=run_id, redact=redact, seal=seal
                )
            )
            await group.enter(contextlib.closing(journal))
            say(seal.note, session)
            say(
                await _quarantine_unsealed(config.state_directory, journal.history, ecosystems),
                session,
            )
            say(doctor.uncertain_uploads(journal.history, ecosystems), session)
            ready = await prepare(
                group, config, session, journal.history, run_id=run_id, inherit_fds=held.descriptors
            )
            made = ready.plan
            if planned is not None:
                planned.check(made)
            refuse_errors(made)
            if not config.dry_run:
                uploaded = {
                    each.package.id.ecosystem for each in made.packages if each.action in SENT
                }
                check_credentials(uploaded, ready.targets)
            sources = Sources.in_checkout(made, config.root, ready.processes)
            run = Publishing(
                run_id,
                made,
                ready.config,
                session,
                journal,
                sandbox=ready.processes.sandbox,
                patience=ready.patience,
                book=book,
                signing=ready.signing,
                post_release=ready.post_release,
            )
            return await run.carry_out(ready.targets, sources, interruption)


async def _quarantine_unsealed(
    state_directory: Path, history: History, ecosystems: Collection[str]
) -> str:
    """What is said of built files that are not trusted; they are not there any more."""
    # A thread cannot be cancelled, and the locks must be held until it has ended.
    aside = await uncancellable(asyncio.to_thread(quarantine, state_directory, history, ecosystems))
    if not aside:
        return ""
    return (
        f"cannot verify the files that an earlier run built for {few(aside, 3)}; they were "
        "quarantined and will be built again where the version is not published yet. Runs that are "
        f"to trust each other's state need the same `{STATE_KEY.name}`"
    )


@dataclass(frozen=True, slots=True)
class Publishing:
    """One plan being carried out, and what is said about it."""

    id: str
    plan: Plan
    config: Config
    session: Session
    journal: Journal
    sandbox: Sandbox
    patience: WaitBudget
    book: Metrics
    signing: JobSigning | None
    post_release: PostRelease | None = None

    async def carry_out(
        self, targets: Mapping[str, Target], sources: Sources, interruption: Interruption
    ) -> int:
        began = asyncio.get_running_loop().time()
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        environment = self.session.credentials.environment
        redacted = self.session.redacted
        progress = choose_progress(
            self.session.out,
            environment,
            group=self.session.actions.group if self.session.ci.is_actions else None,
            verbose=is_verbose(self.config.verbose, self.session.ci),
            dry_run=self.config.dry_run,
            keys=keys_are_read(),
        )
        release = ReleaseRun(
            self.plan,
            targets,
            config=self.config,
            journal=self.journal,
            watch=lambda event: progress.on_event(redacted.clean(event)),
            sources=sources,
            patience=self.patience,
            on_course=progress.on_course,
            signing=self.signing,
        )
        self.journal.run_started(
            plan_digest=self.plan.digest,
            commit=self.plan.commit,
            tool=__version__,
            started_at=started_at,
            ecosystems=sorted(self.config.package_filter.ecosystems),
        )
        self.journal.planned(self.plan.pending())
        interruption.ends(release)
        self.session.actions.release_began = True
        statement: ReleaseStatement | None = None
        results: tuple[Result, ...] | None = None

        def told() -> Report:
            made = Report(
                run_id=self.id,
                plan_digest=self.plan.digest,
                commit=self.plan.commit,
                started_at=started_at,
                duration_s=asyncio.get_running_loop().time() - began,
                dry_run=self.config.dry_run,
                builds=self.sandbox.words,
                results=self.sandbox.explained(release.results() if results is None else results),
                private=self.plan.private,
                edges=self.plan.edges(),
                registries=self.plan.registries,
                provenance=self.plan.provenance,
                statement=statement,
            )
            return redacted.clean(release.spending(self.book).told_in(made))

        signed = asyncio.ensure_future(self._statement(release))
        try:
            progress.begin(self.plan)
            with listening(pause=release.pause, resume=release.resume, cancel=interruption.by_key):
                await release.run()
                statement = await signed
                results = await self._run_post_release(release, statement, told, progress)
        finally:
            signed.cancel()
            await asyncio.wait((signed,))
            # Even if a bug ends the run, what has happened until then is put on record.
            made = told()
            progress.close()
            self.session.actions.restore_files()  # no build is left; ours are written next
            try:
                tell(made, self.config, self.session)
            finally:
                progress.end(made)  # behind the annotations: the end of a log is read first
        await self.journal.run_ended(report.verdict_of(made))
        code = report.exit_code(made)
        return INTERRUPTED if code and interruption.happened else code

    async def _run_post_release(
        self,
        release: ReleaseRun,
        statement: ReleaseStatement | None,
        told: Callable[[], Report],
        progress: Progress,
    ) -> tuple[Result, ...] | None:
        """The results with what follows what is published, where anything does."""
        if self.post_release is None:
            return None
        if not self.config.dry_run:
            progress.close()  # nothing is in flight any more
        return await self.post_release.run(
            release.results(),
            lambda: Assets(release.published(), statement, lambda: page_of(told())),
            stopped=release.stopped,
            say=lambda line: say(self.session.redacted.text(line), self.session),
        )

    async def _statement(self, release: ReleaseRun) -> ReleaseStatement | None:
        """Signed while the rest is still uploaded; what the log has, nobody takes back."""
        if self.signing is None or self.config.dry_run:
            return None
        results = self.config.results_file or self.config.state_directory / RESULTS
        return await self.signing.statement(
            release,
            results.parent,
            state_directory=self.config.state_directory,
            seal=self.journal.seal or Seal.for_one_run(),
        )
