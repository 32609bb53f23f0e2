"""What happens in a run, put on record in the journal and shown to those who watch."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from releasekit.model import Event, Node, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from releasekit.model import Outcome, PackageId, Phase, Result
    from releasekit.release.life import PackageRun
    from releasekit.state.journal import Journal


class Events:
    """The events of one run, which starts now; times are in seconds since then. It also observes
    the scheduler.
    """

    def __init__(self, journal: Journal, watch: Callable[[Event], None]) -> None:
        self._journal = journal
        self._watch = watch
        self._ended: set[PackageId] = set()
        self._began = asyncio.get_running_loop().time()

    def now_s(self) -> float:
        """Seconds since the run started."""
        return asyncio.get_running_loop().time() - self._began

    @contextlib.contextmanager
    def span(self, phase: Phase, *runs: PackageRun) -> Iterator[None]:
        """Around one attempt at a phase of packages that go through it together."""
        node, attempt = str(Node(phase, runs[0].id)), max(runs[0].attempts, 1)
        start_s = self.now_s()
        self._journal.phase_started(node, attempt=attempt)
        for run in runs:
            self._watch(
                Event(package=run.id, state="started", at_s=start_s, phase=phase, attempt=attempt)
            )
        trouble = ""
        try:
            yield
        except BaseException as error:
            trouble = str(error) or type(error).__name__
            raise
        finally:
            end_s = self.now_s()
            self._journal.phase_ended(
                node, attempt=attempt, duration_s=end_s - start_s, error=trouble
            )
            for run in runs:
                run.spans.append(Span(phase=phase, start_s=start_s, end_s=end_s))
                self._watch(
                    Event(
                        package=run.id,
                        state="ended",
                        at_s=end_s,
                        phase=phase,
                        attempt=attempt,
                        detail=trouble,
                    )
                )

    def ended(self, result: Result) -> None:
        """Record the end of a package: only the first call counts."""
        package = result.package
        if package.id in self._ended:
            return
        self._ended.add(package.id)
        self._journal.outcome(package, result.outcome, result.reason, staged=result.staged)
        self._watch(
            Event(
                package=package.id,
                state="settled",
                at_s=self.now_s(),
                attempt=result.attempts,
                outcome=result.outcome,
                detail=result.reason,
            )
        )

    def retrying(self, node: Node, attempt: int, delay_s: float, error: BaseException) -> None:
        """Only the scheduler knows when a phase will be tried again."""
        self._watch(
            Event(
                package=node.package,
                state="retrying",
                at_s=self.now_s(),
                phase=node.phase,
                attempt=attempt,
                delay_s=delay_s,
                detail=str(error),
            )
        )

    def started(self, node: Node, attempt: int) -> None:
        """`span` tells it."""

    def settled(self, node: Node, outcome: Outcome, reason: str) -> None:
        """The end of a phase, which is not yet that of its package."""
