"""What a run knows of each package while it lasts, and the one outcome that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.errors import (
    BuildFailed,
    DigestMismatch,
    PackageError,
    ReleasekitError,
    Undecided,
)
from releasekit.fields import replace
from releasekit.graph import reachable
from releasekit.model import (
    SENT,
    UNKNOWN,
    Action,
    Artifact,
    Outcome,
    PackageId,
    PackageWarning,
    PlannedPackage,
    Published,
    Result,
    Span,
    Staged,
)
from releasekit.problems import Problem
from releasekit.report.text import became, describe_pages, few, split_staged, without_name
from releasekit.report.view import GENERAL, awaiting_approval
from releasekit.scheduler.frontier import BLOCKING
from releasekit.text.commands import spell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from releasekit.config.values import StageMode

_NEVER_SENT: Final = frozenset({Action.REFUSE, Action.AWAIT})
# Of errors that another package is the cause of.
_OF_ANOTHER: Final = frozenset({Problem.BLOCKED, Problem.GOES_TOGETHER, Problem.WAITS_FOR_APPROVAL})


class PackageRun(Struct, kw_only=True):
    """One package during a run; only the task at work on the package changes it.

    `ambiguity` says why it is unclear whether the registry took our bytes; it is empty when nothing
    was sent, or the answer is known. `sent` is True once the registry accepted bytes from this run,
    `visible` once it shows all of them; `refusal` is its answer to the last upload that it did not
    accept. `pending_follow_up` is what should have followed then and
    has not: a blemish, not a failure. `postponed` says why a dry run may fail to build it. `rests`
    are those `attempts` that ended because the registry was left alone. `note` goes behind the
    reason of its outcome. It `stages` where it is not going to be published directly;
    `may_only_stage` says so in the registry's words. `staged` is where it waits for a person, who
    may have approved it since, and `staged_at_s` is when that began in this run. `held_by` is what
    waits so, and kept it from being sent. `lacks` are packages that other jobs did not publish, and
    what is known of that. `is_repeatable` is that of its `Target`.
    """

    planned: PlannedPackage
    is_repeatable: bool = True
    artifacts: tuple[Artifact, ...] = ()
    published: Published | None = None
    ambiguity: str = ""
    refusal: str = ""
    sent: bool = False
    visible: bool = False
    error: ReleasekitError | None = None
    pending_follow_up: BuildFailed | None = None
    postponed: str = ""
    attempts: int = 0
    rests: int = 0
    spans: list[Span] = field(default_factory=list)
    warnings: tuple[PackageWarning, ...] = ()
    note: str = ""
    stages: bool = False
    may_only_stage: str = ""
    staged: Staged | None = None
    staged_at_s: float = 0.0
    held_by: frozenset[PackageId] = frozenset()
    lacks: dict[PackageId, str] = field(default_factory=dict)

    @classmethod
    def from_plan(cls, planned: PlannedPackage) -> PackageRun:
        # What an earlier run has signed is looked at where this one signs, and sent by no other.
        unlooked = not planned.attest and planned.action in SENT
        bare = tuple(replace(each, attestation=None) for each in planned.artifacts)
        return cls(
            planned=planned,
            artifacts=bare if unlooked else planned.artifacts,
            published=planned.published,
            warnings=planned.warnings,
            staged=planned.staged,
        )

    @property
    def unconfirmed(self) -> bool:
        """Whether the registry may have bytes of ours that no lookup has seen."""
        known = self.visible or self.conflict or self.staged is not None
        return (self.sent or bool(self.ambiguity)) and not known

    @property
    def is_ours(self) -> bool:
        """Whether what the registry shows of it has come from this run, as far as can be known."""
        return self.sent or bool(self.ambiguity or self.refusal)

    @property
    def awaits_approval(self) -> bool:
        return self.staged is not None and not self.visible

    @property
    def there(self) -> list[str]:
        """Those of its files that the registry showed when it was last asked."""
        theirs = self.published.files if self.published else {}
        return [artifact.filename for artifact in self.artifacts if artifact.filename in theirs]

    @property
    def waiting(self) -> bool:
        """Whether its files are at hand, and none of them was accepted or refused."""
        untouched = self.published is None and self.error is None and not self.sent
        return untouched and bool(self.artifacts) and self.planned.action not in _NEVER_SENT

    @property
    def conflict(self) -> bool:
        return isinstance(self.error, DigestMismatch)

    @property
    def failed_by_itself(self) -> bool:
        if isinstance(self.error, BuildFailed) and self.error.premature:
            return False
        return self.error is not None and self.error.problem not in _OF_ANOTHER

    @property
    def id(self) -> PackageId:
        return self.planned.package.id


def companions(
    first: PackageRun, runs: Iterable[PackageRun], edges: Mapping[PackageId, Collection[PackageId]]
) -> list[PackageRun]:
    """What can go out with `first`, whose turn has come, in one upload that takes all or none.

    Dependencies come first in `runs`; nothing goes out ahead of what it needs.
    """
    there, companions = {first.id, *edges[first.id]}, []
    for run in runs:
        if run.visible or run.planned.action is Action.KEEP:
            there.add(run.id)
        elif (
            run is not first
            and run.id.ecosystem == first.id.ecosystem
            and run.waiting
            and there.issuperset(edges[run.id])
        ):
            there.add(run.id)
            companions.append(run)
    return companions


def inseparable(first: PackageRun, runs: Iterable[PackageRun]) -> list[PackageRun]:
    """Those of `runs` that `first` needs, directly or not, where some go out after it."""
    if not first.planned.package.needed_late:
        return []
    by_id = {run.id: run for run in runs} | {first.id: first}

    def needed(package: PackageId) -> list[PackageId]:
        return [need.on for need in by_id[package].planned.package.needs if need.on in by_id]

    found = reachable([first.id], needed) - {first.id}
    return [run for run in by_id.values() if run.id in found]


def loss(first: PackageRun, runs: Iterable[PackageRun]) -> PackageError | None:
    """Why `first` would be of no use: what it needs goes out after it, and cannot any more."""
    for other in inseparable(first, runs):
        if other.error is not None or other.planned.action is Action.REFUSE:
            return PackageError(
                f"it needs {other.id}, which failed; nothing of it was sent",
                hint=f"Fix {other.id.name}, then run the same command again.",
                problem=Problem.GOES_TOGETHER,
            )
    return None


def fail_together(failed: PackageRun, runs: Sequence[PackageRun]) -> ReleasekitError:
    """The error of what failed before anything was sent; the rest of the deployment gets an error
    too.
    """
    assert failed.error is not None  # noqa: S101 (why we are here)
    for run in runs:
        if run.error is None:
            run.error = PackageError(
                f"it goes out in one deployment with {failed.id}, which failed: nothing was sent",
                hint=f"Fix {failed.id.name}, or leave it out with `exclude-packages`.",
                problem=Problem.GOES_TOGETHER,
            )
    return failed.error


Blockers = Sequence[tuple[PackageId, str]]
Ending = tuple[Outcome, str]

CUT_OFF: Ending = (Outcome.CANCELLED, "the run ended before its turn")
DRY_RUN: Ending = (Outcome.WOULD_PUBLISH, "built, and not uploaded: a dry run")
_BUILT: Final = "it is built, and the next run uploads it"
_ACCEPTED: Final = "accepted; it waits for a person's approval"
_NOT_COMPARED: Final = (
    f"this identity cannot compare what waits there with what was built; {spell('approve')} "
    "compares it"
)
_WOULD_BE_STAGED: Final = "built; it would be staged, for a person to approve"
_APPROVE: Final = (
    f"Approve what is staged, with {spell('approve')}, then run the same command again."
)
_OTHER_JOB: Final = (
    "Check the job that publishes it, re-run that job, then this one; or raise `wait`."
)
_HELD: Final = "Fix what failed, then run the same command again."
_PROBLEMS: Final = {Outcome.BLOCKED: Problem.BLOCKED, Outcome.CANCELLED: Problem.CANCELLED}


def held_back(runs: Iterable[PackageRun]) -> str:
    """Why `start-uploads: built` keeps these from being uploaded; empty where it does not."""
    failed = [str(run.id) for run in runs if run.error is not None and run.planned.action in SENT]
    if not failed:
        return ""
    return f"not uploaded: {few(failed)} failed, and `start-uploads` is `built`"


def describe_unreleased(runs: Iterable[PackageRun], owed: str) -> str:
    """Why nothing comes after the release: what failed of it, or what is `owed` to it."""
    tagged = (run for run in runs if run.planned.package.follows is None)
    failed = [str(run.id) for run in tagged if run.error is not None]
    return f"it comes after the release: {owed or f'{few(failed)} failed'}"


def outcome_of(run: PackageRun, blockers: Blockers, ending: Ending) -> tuple[Outcome, str]:
    """The outcome of one package and the reason for it, independent of the order of events.

    `blockers` are its dependencies that will not be there; `ending` is the outcome of a package to
    which nothing else has happened.
    """
    if run.planned.action is Action.KEEP:
        return Outcome.ALREADY_PUBLISHED, run.planned.reason
    if run.visible:
        return _seen(run)
    if run.error is not None and (run.conflict or run.planned.action is Action.REFUSE):
        return Outcome.FAILED, str(run.error)
    if run.staged is not None:
        return Outcome.STAGED, _describe_staged(run, run.staged)
    if run.unconfirmed:
        reason = run.ambiguity or "accepted, but not seen on the registry before the run ended"
        return Outcome.UNKNOWN, str(run.error) if run.error else reason
    if blockers:
        return Outcome.BLOCKED, ", ".join(_describe_needs(blockers))
    if run.error is not None:
        # A release of which a part is out for good is not one of which nothing is.
        partly = f"; {few(run.there)} of it is on the registry" if run.there else ""
        return Outcome.FAILED, f"{run.error}{partly}"
    if ending[0] is Outcome.WOULD_PUBLISH:
        return Outcome.WOULD_PUBLISH, _describe_dry_run(run)
    return (ending[0], f"{ending[1]}; {_BUILT}") if run.waiting and run.is_repeatable else ending


def _describe_staged(run: PackageRun, staged: Staged) -> str:
    reasons = [_ACCEPTED, run.may_only_stage]
    if run.planned.staged is not None:
        reasons = [run.planned.reason]
    if not staged.id:
        reasons.append(_NOT_COMPARED)
    return "; ".join(filter(None, reasons))


def _describe_needs(blockers: Blockers) -> Iterator[str]:
    failed = []
    for on, how in blockers:
        if how == Outcome.FAILED:
            failed.append(str(on))
        else:
            yield f"needs {on}, which {became(how)}"
    if failed:
        yield f"needs {few(failed)}, which failed"


def _describe_dry_run(run: PackageRun) -> str:
    if run.postponed and not run.artifacts:
        return run.postponed
    reason = _WOULD_BE_STAGED if run.stages else DRY_RUN[1]
    return f"{reason}; {UNKNOWN}" if run.planned.reason == UNKNOWN else reason


def _seen(run: PackageRun) -> Ending:
    shown = "the registry shows our bytes" if run.is_repeatable else "its check finds it"
    if run.staged is None:
        if run.is_ours:
            return Outcome.PUBLISHED, f"uploaded, and {shown}"
        return Outcome.ALREADY_PUBLISHED, shown
    if run.artifacts:
        return Outcome.PUBLISHED, f"approved, and {shown}"
    # Nothing vouches for what the run that staged it had built.
    return Outcome.ALREADY_PUBLISHED, "approved, and on the registry"


def results_of(
    runs: Mapping[PackageId, PackageRun],
    edges: Mapping[PackageId, Collection[PackageId]],
    ending: Ending = CUT_OFF,
) -> tuple[Result, ...]:
    """One result for every run, in the same order; dependencies must come first in `runs`. What an
    `ending` blocks does not block its dependents: they have the same ending.
    """
    ended: dict[PackageId, Result] = {}
    causes: dict[PackageId, set[PackageId]] = {}
    held: set[PackageId] = set()
    ended_alike: set[PackageId] = set()
    for package, run in runs.items():
        absent = {on for on in edges[package] if ended[on].outcome in BLOCKING} - ended_alike
        why = ((on, _how(ended[on], causes.get(on, ()))) for on in absent)
        staged = dict.fromkeys(run.held_by, str(Outcome.STAGED))
        blockers = sorted([*why, *staged.items(), *run.lacks.items()])
        waits = held.issuperset(on for on, _ in blockers)
        # A build that was to make several packages has one error for all of them.
        shares = any(runs[on].error is run.error for on in absent)
        fails = run.error is not None and (waits or (run.failed_by_itself and not shares))
        found = result_of(run, () if fails else blockers, ending)
        if found.outcome is Outcome.STAGED:
            held.add(package)
        elif found.outcome is Outcome.BLOCKED:
            if waits:
                held.add(package)
            if not blockers:
                found = replace(found, hint=_HELD)
                ended_alike.add(package)
            # In the end, however many others that are blocked lie in between.
            causes[package] = {*run.held_by, *run.lacks}.union(
                *(causes.get(on, {on}) for on in absent)
            )
        ended[package] = found
    waiting = awaiting_approval(tuple(ended.values()), edges) - ended_alike
    return tuple(_with_ways_out(ended, runs, waiting))


def _with_ways_out(
    results: Mapping[PackageId, Result],
    runs: Mapping[PackageId, PackageRun],
    waiting: Collection[PackageId],
) -> Iterator[Result]:
    """Neither its own failure nor one of this run keeps back what is `waiting` for approval."""
    commanded, paged = split_staged(results.values())
    pages = f"{describe_pages(paged)}. " if paged else ""
    how = pages + (_APPROVE if commanded or not paged else "Then run the same command again.")
    for package, found in results.items():
        if found.outcome is Outcome.BLOCKED and package in waiting:
            yield replace(found, hint=how, problem=Problem.WAITS_FOR_APPROVAL)
        elif found.outcome is Outcome.BLOCKED and runs[package].lacks:
            yield replace(found, hint=_OTHER_JOB, problem=Problem.OTHER_JOB)
        else:
            yield found


def _how(result: Result, causes: Iterable[PackageId]) -> str:
    names = sorted(map(str, causes))
    return f"{result.outcome} by {few(names)}" if names else str(result.outcome)


def result_of(run: PackageRun, blockers: Blockers = (), ending: Ending = CUT_OFF) -> Result:
    """Final once every dependency of the package has come to its end."""
    outcome, reason = outcome_of(run, blockers, ending)
    error = run.error if outcome in {Outcome.FAILED, Outcome.UNKNOWN} else run.pending_follow_up
    if run.pending_follow_up is not None:
        reason = f"{reason}; {run.pending_follow_up}"
    if run.note:
        reason = f"{reason}; {run.note}"
    problem = error.problem if error else _PROBLEMS.get(outcome)
    # Where the end of an upload is unclear, its cause matters little.
    if outcome is Outcome.UNKNOWN and not isinstance(error, Undecided):
        problem = Problem.UNDECIDED
    return Result(
        package=run.planned.package,
        outcome=outcome,
        reason=without_name(reason, run.planned.package),
        hint=(error.hint if error else "") or GENERAL.get(outcome, ""),
        problem=problem,
        log=error.log if isinstance(error, BuildFailed) else (),
        attempts=run.attempts - run.rests,
        duration_s=busy(run.spans),
        url=run.published.url if run.published else "",
        artifacts=run.artifacts if run.is_repeatable else (),
        spans=tuple(run.spans),
        warnings=run.warnings,
        staged=run.staged if outcome is Outcome.STAGED else None,
    )


def busy(spans: Sequence[Span]) -> float:
    """Seconds of work; waiting for a turn, for another attempt or for a person does not count."""
    return sum(span.end_s - span.start_s for span in spans if span.phase != "approval")


def block_on_staged(
    runs: Sequence[PackageRun], needs: Iterable[PackageRun], *, mode: StageMode
) -> None:
    """Decide whether packages that go out together are staged, from what they need.

    Raises PackageError where they need what waits for approval, and cannot wait beside it.
    """
    ecosystem = runs[0].id.ecosystem
    waiting = {need.id for need in needs if need.awaits_approval}
    apart = {on for on in waiting if mode == "never" or on.ecosystem != ecosystem}
    for run in runs:
        run.held_by = frozenset(apart)
        run.stages = run.stages or bool(waiting)
    if apart:
        names = ", ".join(map(str, sorted(apart)))
        raise PackageError(
            f"needs {names}, which waits for approval; nothing of it was sent",
            problem=Problem.WAITS_FOR_APPROVAL,
        )
