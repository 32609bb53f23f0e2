"""One plan being carried out, and what is told of it: results, outputs, summary, annotations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from releasekit import __version__, report
from releasekit.announce.releases import Assets
from releasekit.cli.request_log import is_verbose
from releasekit.cli.result_files import RESULTS, page_of, write_page
from releasekit.errors import INTERRUPTED, PathError
from releasekit.host import durable
from releasekit.host.output_path import require_free
from releasekit.model import Report
from releasekit.release.release import ReleaseRun
from releasekit.report.progress import choose_progress
from releasekit.scheduler.controls import keys_are_read, listening
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from releasekit.announce.post_release import PostRelease
    from releasekit.attested import ReleaseStatement
    from releasekit.cli.interruption import Interruption
    from releasekit.cli.session import Session
    from releasekit.cli.signing import JobSigning
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Target
    from releasekit.host.sandbox import Sandbox
    from releasekit.http.traffic import Metrics
    from releasekit.model import Plan, Result
    from releasekit.release.sources import Sources
    from releasekit.report.progress import Progress
    from releasekit.scheduler.retries import WaitBudget
    from releasekit.state.journal import Journal


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
        began, started_at = asyncio.get_running_loop().time(), _now()
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
            watch=lambda event: progress.on_event(redacted.event(event)),
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
            return redacted.report(release.spending(self.book).told_in(made))

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

    @property
    def _results_file(self) -> Path:
        return self.config.results_file or self.config.state_directory / RESULTS

    async def _statement(self, release: ReleaseRun) -> ReleaseStatement | None:
        """Signed while the rest is still uploaded; what the log has, nobody takes back."""
        if self.signing is None or self.config.dry_run:
            return None
        return await self.signing.statement(release, self._results_file.parent)


def tell(made: Report, config: Config, session: Session) -> None:
    """Everything that outlives the run: results, outputs, summary, annotations."""
    actions = session.actions
    made = session.placed(made, config.root)
    text = report.results_json(made)
    own = config.state_directory / RESULTS
    path = config.results_file or own
    # The state directory's first: what is in the way elsewhere keeps no run off the record.
    for place in dict.fromkeys([own, path] if config.mode == "publish" else [path]):
        if place == config.results_file:
            require_free(place, "results-file")
        write(place, text)
    actions.output("results-file", str(path))
    for name, value in report.outputs(made).items():
        actions.output(name, value)
    if config.summary:
        actions.summary(report.summary(made))
    if config.annotations:
        for level, notes in report.notices(made):
            actions.annotate(level, notes)
    say(write_page(made, path), session)


def say(line: str, session: Session) -> None:
    if line:
        print(log_line(line), file=session.out)


def write(path: Path, text: str) -> None:
    try:
        durable.make_directory(path.parent)
        durable.replace(path, text.encode())
    except OSError as error:
        raise PathError(
            f"{path}: cannot be written: {error.strerror}",
            hint="Make room, or name a place that can be written.",
        ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
