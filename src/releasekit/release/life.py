"""What a run knows of each package while it lasts, and the one outcome that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from releasekit.errors import BuildFailed, DigestMismatch, ReleasekitError
from releasekit.model import Action, Artifact, Outcome, PackageId, Published, Result, Span, Step
from releasekit.scheduler.frontier import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


@dataclass(slots=True, kw_only=True)
class Life:
    """One package during a run; only the task at work on the package changes it.

    `doubt` says why nobody knows whether the registry took our bytes; it is empty when nothing was
    sent, or the answer is known. `sent` is True once the registry accepted bytes from this run,
    `visible` once it shows all of them. `owed` is what should have followed then and did not: a
    blemish, not a failure.
    """

    step: Step
    artifacts: tuple[Artifact, ...] = ()
    published: Published | None = None
    doubt: str = ""
    sent: bool = False
    visible: bool = False
    error: ReleasekitError | None = None
    owed: BuildFailed | None = None
    attempts: int = 0
    spans: list[Span] = field(default_factory=list)

    @classmethod
    def of(cls, step: Step) -> Life:
        return cls(step=step, artifacts=step.artifacts, published=step.published)

    @property
    def unconfirmed(self) -> bool:
        """Whether the registry may have bytes of ours that nobody has seen there."""
        return (self.sent or bool(self.doubt)) and not self.visible and not self.conflict

    @property
    def waiting(self) -> bool:
        """Whether its files are at hand, and nothing of them was accepted or refused."""
        untouched = self.published is None and self.error is None and not self.sent
        return untouched and bool(self.artifacts) and self.step.action is not Action.REFUSE

    @property
    def conflict(self) -> bool:
        return isinstance(self.error, DigestMismatch)

    @property
    def id(self) -> PackageId:
        return self.step.package.id


def companions(
    first: Life, lives: Iterable[Life], edges: Mapping[PackageId, Collection[PackageId]]
) -> list[Life]:
    """Who can go out with `first`, whose turn has come, in one upload that takes all or none.

    Dependencies come first in `lives`; nothing is ever ahead of what it needs.
    """
    there, along = {first.id, *edges[first.id]}, []
    for life in lives:
        if life.visible or life.step.action is Action.KEEP:
            there.add(life.id)
        elif (
            life is not first
            and life.id.ecosystem == first.id.ecosystem
            and life.waiting
            and there.issuperset(edges[life.id])
        ):
            there.add(life.id)
            along.append(life)
    return along


Blockers = Sequence[tuple[PackageId, Outcome]]
Ending = tuple[Outcome, str]

CUT_OFF: Ending = (Outcome.CANCELLED, "the run ended before its turn")


def verdict(life: Life, blockers: Blockers, ending: Ending) -> tuple[Outcome, str]:
    """The outcome of one package and the reason for it, whatever order things happened in.

    `blockers` are its dependencies that will not be there; `ending` is the end of all that nothing
    else has happened to.
    """
    if life.step.action is Action.KEEP:
        return Outcome.ALREADY_PUBLISHED, life.step.reason
    if life.visible:
        if life.sent or life.doubt:
            return Outcome.PUBLISHED, "uploaded, and the registry shows our bytes"
        return Outcome.ALREADY_PUBLISHED, "the registry shows our bytes"
    if life.error is not None and (life.conflict or life.step.action is Action.REFUSE):
        return Outcome.FAILED, str(life.error)
    if life.unconfirmed:
        reason = life.doubt or "accepted, but not seen on the registry before the run ended"
        return Outcome.UNKNOWN, str(life.error) if life.error else reason
    if blockers:
        return Outcome.BLOCKED, ", ".join(f"needs {on}, which is {how}" for on, how in blockers)
    if life.error is not None:
        return Outcome.FAILED, str(life.error)
    return ending


def results(
    lives: Mapping[PackageId, Life],
    edges: Mapping[PackageId, Collection[PackageId]],
    ending: Ending = CUT_OFF,
) -> tuple[Result, ...]:
    """One result for every life, in the same order; dependencies must come first in `lives`."""
    ended: dict[PackageId, Result] = {}
    for package, life in lives.items():
        blockers = sorted(
            (on, ended[on].outcome) for on in edges[package] if ended[on].outcome in BLOCKING
        )
        ended[package] = result_of(life, blockers, ending)
    return tuple(ended.values())


def result_of(life: Life, blockers: Blockers = (), ending: Ending = CUT_OFF) -> Result:
    """Final once every dependency of the package has come to its end."""
    outcome, reason = verdict(life, blockers, ending)
    error = life.error if outcome in {Outcome.FAILED, Outcome.UNKNOWN} else life.owed
    if life.owed is not None:
        reason = f"{reason}; {life.owed}"
    return Result(
        package=life.step.package,
        outcome=outcome,
        reason=reason,
        hint=error.hint if error else _HINTS.get(outcome, ""),
        log=error.log if isinstance(error, BuildFailed) else (),
        attempts=life.attempts,
        duration_s=busy(life.spans),
        url=life.published.url if life.published else "",
        artifacts=life.artifacts,
        spans=tuple(life.spans),
    )


_HINTS = {
    Outcome.UNKNOWN: "Run the same command again: it asks the registry first.",
    Outcome.BLOCKED: "Mend what it needs, then run the same command again.",
    Outcome.CANCELLED: "Run the same command again to finish.",
}


def busy(spans: Sequence[Span]) -> float:
    """Seconds of work; waiting for a turn or for another attempt does not count."""
    return sum(span.end_s - span.start_s for span in spans)
