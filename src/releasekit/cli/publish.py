"""The command publish, from the locks to the results; reads top to bottom."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit import __version__, report
from releasekit.aio import Group, uncancellable
from releasekit.announced import Status
from releasekit.cli.commands.publish import PublishInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.prepare import prepare
from releasekit.cli.request_log import is_verbose, request_logger
from releasekit.cli.result_files import (
    RESULTS,
    forget_results,
    page_of,
    refuse_tracked_results,
    tell,
)
from releasekit.cli.session import (
    find_seal,
    refuse_elsewhere,
    refuse_foreign,
    restore_manifests,
    say,
)
from releasekit.config.inputs import STATE_KEY
from releasekit.errors import INTERRUPTED, ConfigError
from releasekit.fields import replace
from releasekit.http.traffic import collect
from releasekit.model import SENT, Action, Report
from releasekit.plan.file import PlanFile
from releasekit.plan.registries import check_credentials
from releasekit.plan.rights import refuse_unentitled
from releasekit.plan.warnings import refuse_errors
from releasekit.problems import Problem
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.report.progress import choose_progress
from releasekit.report.text import few
from releasekit.scheduler.controls import keys_are_read
from releasekit.state import leftovers, locks, run_logs
from releasekit.state.directory import refuse_links
from releasekit.state.journal import Journal
from releasekit.state.quarantine import quarantine
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from releasekit.attested import ReleaseStatement
    from releasekit.cli.prepare import Prepared
    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.http.traffic import Metrics
    from releasekit.model import Result
    from releasekit.report.progress import Progress
    from releasekit.state.history import History


async def run(config: Config, session: Session) -> int:
    """Publish what is missing; whatever happens, every package is accounted for."""
    if session.ci.kind == "gitlab" and session.ci.is_debugged:
        raise ConfigError(
            "with CI_DEBUG_TRACE, GitLab prints every variable of this job, secrets too",
            hint="Remove that variable to publish, and replace the secrets of this job, which are "
            "in its log.",
            problem=Problem.TRACED,
        )
    if config.is_uploading:
        refuse_foreign(config, session)
    inputs = config.own(PublishInputs)
    planned = PlanFile.read(inputs.plan_file) if inputs.plan_file else None
    if planned is not None:
        config = planned.narrowed(config)
    ecosystems = config.package_filter.ecosystems
    run_id = uuid.uuid4().hex
    redact = session.redacted.text
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    await refuse_tracked_results(inputs.results_file, config, session)
    session.runner.watch_files()
    with (
        Interruption(keys=True) as interruption,
        collect(request_logger(session, verbose=config.verbose, mode=config.mode)) as book,
    ):
        async with Group() as group:
            await asyncio.to_thread(refuse_links, config.state_directory)
            say(leftovers.dead_runs(config.state_directory, ecosystems), session)
            held = await group.enter(locks.acquire(config.state_directory, ecosystems))
            forget_results(config.state_directory, inputs.results_file)
            seal = find_seal(session, make=True) or Seal.for_one_run()
            restore_manifests(config, seal, session)
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
            say(leftovers.uncertain_uploads(journal.history, ecosystems), session)
            progress = choose_progress(
                session.out,
                session.credentials.environment,
                group=session.runner.group if session.ci.kind != "other" else None,
                verbose=is_verbose(config.verbose, session.ci),
                dry_run=not config.is_uploading,
                keys=keys_are_read(),
            )
            ready = await prepare(
                group, config, session, journal.history, run_id=run_id, inherit_fds=held.descriptors
            )
            made = ready.plan
            if planned is not None:
                planned.check(made)
            refuse_errors(made, config.levels)
            if config.is_uploading:
                uploaded = {
                    each.package.id.ecosystem for each in made.packages if each.action in SENT
                }
                check_credentials(uploaded, ready.targets)
            made = await refuse_unentitled(
                made, ready.targets, ready.post_release, proving=config.is_uploading
            )
            sources = Sources.in_checkout(made, config.root, ready.processes)
            if config.is_uploading and any(it.action is Action.PUBLISH for it in made.packages):
                _ = group.start(sources.look_early())
            ready = replace(ready, plan=session.redacted.clean(made))
            run = Publishing(run_id, ready, session, journal, seal, book, progress)
            return await run.carry_out(sources, interruption)


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


class Publishing(Struct, frozen=True):
    """One plan being carried out, and what is said about it."""

    id: str
    ready: Prepared
    session: Session
    journal: Journal
    seal: Seal
    book: Metrics
    progress: Progress

    async def carry_out(self, sources: Sources, interruption: Interruption) -> int:
        plan, config, sandbox = self.ready.plan, self.ready.config, self.ready.processes.sandbox
        began = asyncio.get_running_loop().time()
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        redacted, progress = self.session.redacted, self.progress
        statement: ReleaseStatement | None = None
        results: tuple[Result, ...] | None = None

        async def make_release() -> str:
            nonlocal statement, results
            statement = await signed
            results = await self._run_post_release(release, statement, told)
            return _find_owed(results or ()) if config.is_uploading else ""

        release = ReleaseRun(
            plan,
            self.ready.targets,
            config=config,
            journal=self.journal,
            watch=lambda event: progress.on_event(redacted.clean(event)),
            sources=sources,
            patience=self.ready.patience,
            on_course=progress.on_course,
            signing=self.ready.signing,
            make_release=make_release,
        )
        self.journal.run_started(
            plan_digest=plan.digest,
            commit=plan.commit,
            tool=__version__,
            started_at=started_at,
            ecosystems=sorted(config.package_filter.ecosystems),
        )
        self.journal.planned(plan.pending())
        self.session.runner.release_began = True

        def told() -> Report:
            made = Report(
                run_id=self.id,
                plan_digest=plan.digest,
                commit=plan.commit,
                started_at=started_at,
                duration_s=asyncio.get_running_loop().time() - began,
                dry_run=not config.is_uploading,
                builds=sandbox.words,
                results=sandbox.explained(release.results() if results is None else results),
                private=plan.private,
                edges=plan.edges(),
                registries=plan.registries,
                provenance=plan.provenance,
                statement=statement,
            )
            return redacted.clean(release.spending(self.book).told_in(made))

        signed = asyncio.ensure_future(self._statement(release))
        try:
            progress.begin(plan)
            interruption.ends(release)
            await release.run()
            interruption.ignore_keys()
            if results is None:
                _ = await make_release()
            if results is not None:
                results = _with_later(results, release.results())
        finally:
            signed.cancel()
            await asyncio.wait((signed,))
            # Even if a bug ends the run, what has happened until then is put on record.
            made = told()
            progress.close()
            self.session.runner.restore_files()  # no build is left; ours are written next
            try:
                tell(made, config.own(PublishInputs).results_file, config, self.session)
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
    ) -> tuple[Result, ...] | None:
        """The results with what follows what is published, where anything does."""
        if self.ready.post_release is None:
            return None
        from releasekit.announce.releases import Assets  # noqa: PLC0415 (with what runs here)

        if self.ready.config.is_uploading:
            self.progress.close()  # nothing is in flight any more
        return await self.ready.post_release.run(
            release.results(),
            lambda: Assets(release.published(), statement, lambda: page_of(told())),
            stopped=release.stopped,
            say=lambda line: say(self.session.redacted.text(line), self.session),
        )

    async def _statement(self, release: ReleaseRun) -> ReleaseStatement | None:
        """Signed while the rest is still uploaded; what the log has cannot be taken back."""
        config, signing = self.ready.config, self.ready.signing
        if signing is None or not config.is_uploading:
            return None
        results = config.own(PublishInputs).results_file or config.state_directory / RESULTS
        return await signing.statement(
            release,
            results.parent,
            state_directory=config.state_directory,
            seal=self.seal,
        )


def _find_owed(results: Iterable[Result]) -> str:
    """Why a tag or a release is not made that should be; empty where all are."""
    made = (it for each in results for it in (each.tag, each.announcement) if it is not None)
    return next((it.note for it in made if it.status in {Status.WANTED, Status.PENDING}), "")


def _with_later(results: Sequence[Result], later: Sequence[Result]) -> tuple[Result, ...]:
    """`later` results of the same packages, with the tags and releases of `results`."""
    return tuple(
        replace(now, tag=each.tag, announcement=each.announcement)
        for each, now in zip(results, later, strict=True)
    )
