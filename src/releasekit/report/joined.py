"""Joins the reports of several jobs: each package of the plan once, with what really happened."""

from __future__ import annotations

from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from releasekit.announced import Announcement, Status, Tag
from releasekit.attested import ReleaseStatement
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.model import Action, Outcome, Package, PackageId, Report, Result
from releasekit.problems import Problem
from releasekit.report.results import MAX_KB, MAX_PACKAGES
from releasekit.spent import added

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import Plan, PlannedPackage
    from releasekit.spent import Spent

# What holds when jobs disagree about a package, first to last: a job that saw it on the registry or
# staged it there is right, "unknown" must not become "failed", and a job that had no part in it
# does not count.
_OUTCOMES: Final = (
    Outcome.PUBLISHED,
    Outcome.ALREADY_PUBLISHED,
    Outcome.STAGED,
    Outcome.UNKNOWN,
    Outcome.FAILED,
    Outcome.BLOCKED,
    Outcome.WOULD_PUBLISH,
    Outcome.CANCELLED,
    Outcome.REMOVED,
)

# Of two jobs that looked at a tag or a release, the later one saw more.
_STATUSES: Final = (
    *(Status.CREATED, Status.EXISTING, Status.DRAFT),
    *(Status.FOREIGN, Status.PENDING, Status.WANTED),
)
_Followed = TypeVar("_Followed", Tag, Announcement)


def join(reports: Sequence[Report], *, plan: Plan | None = None) -> Report:
    """One report over jobs that each published a part of one release.

    A package that `plan` or another package's dependencies name, and that no report accounts for,
    is "unknown": its job did not run, or its results were lost. Raises ConfigError when there is
    nothing to join, or when the reports are of different commits.
    """
    _check_same_release(reports)
    started = min(map(_read_start, reports))
    runs = [
        _shift_report(report, (_read_start(report) - started).total_seconds()) for report in reports
    ]
    edges = _join_edges(runs, plan)
    results = _join_results(runs, edges, plan)
    private = {package.id: package for run in runs for package in run.private}
    return Report(
        run_id="+".join(sorted({run.run_id for run in runs})),
        plan_digest=plan.digest if plan else _common_digest(reports),
        commit=runs[0].commit,
        started_at=min(reports, key=_read_start).started_at,
        duration_s=max(run.duration_s for run in runs),
        dry_run=runs[0].dry_run,
        builds=_join_texts(run.builds for run in runs),
        results=results,
        private=tuple(private[name] for name in sorted(private)),
        edges=edges,
        registries={name: url for run in runs for name, url in run.registries.items()},
        spent=_add_spent(runs),
        provenance=_join_texts(run.provenance for run in runs),
        statement=_join_statements([run.statement for run in runs if run.statement is not None]),
        project=_common_project(runs),
        repository=_common_text(run.repository for run in runs),
        forge=runs[0].forge,
        run_url=_common_text(run.run_url for run in runs),
    )


def _common_project(runs: Sequence[Report]) -> str:
    """The path that all projects share: the repository, where they are workspaces of one."""
    paths = [run.project.split("/") for run in runs if run.project]
    levels = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return "/".join(parts[0] for parts in levels)


def _common_digest(reports: Sequence[Report]) -> str:
    """Empty where each job planned its own part, so that there was no plan of the whole."""
    digests = {report.plan_digest for report in reports}
    return digests.pop() if len(digests) == 1 else ""


def _join_texts(values: Iterable[str]) -> str:
    """Each different text once."""
    return "; ".join(sorted({*values} - {""}))


def _join_statements(signed: Sequence[ReleaseStatement]) -> ReleaseStatement | None:
    """Each job signs the files that it builds; one page shows those of all jobs."""
    if len(signed) < 2:
        return signed[0] if signed else None
    pages = {each.url.rpartition("/attestations")[0] for each in signed if each.url}
    return ReleaseStatement(
        path=signed[0].path,
        subjects=sum(each.subjects for each in signed),
        attestations=tuple(part for each in signed for part in each.attestations),
        url=f"{pages.pop()}/attestations" if len(pages) == 1 else "",
        note=_join_texts(each.note for each in signed),
    )


def _common_text(values: Iterable[str]) -> str:
    """The only text besides empty ones; empty where there are several."""
    found = set(values) - {""}
    return found.pop() if len(found) == 1 else ""


def _check_same_release(reports: Sequence[Report]) -> None:
    if not reports:
        raise ConfigError(
            "no results file to join",
            hint="Download the results.json artifacts of the publish jobs first.",
            problem=Problem.RESULTS,
        )
    trouble = ""
    commits = sorted({report.commit for report in reports})
    if len(commits) > 1:
        trouble = f"the results files are of different commits: {', '.join(commits)}"
    elif len({report.dry_run for report in reports}) > 1:
        trouble = "some of the results files are of a dry run, some are not"
    if trouble:
        hint = "Join only the results.json files of the jobs of one run."
        raise ConfigError(trouble, hint=hint, problem=Problem.RESULTS)


def _read_start(report: Report) -> datetime:
    return datetime.fromisoformat(report.started_at)


def _shift_report(report: Report, by_s: float) -> Report:
    """Puts `report` on the clock of the first job; its duration then counts from there too."""
    return replace(
        report,
        duration_s=report.duration_s + by_s,
        results=tuple(
            replace(
                result,
                spans=tuple(
                    replace(span, start_s=span.start_s + by_s, end_s=span.end_s + by_s)
                    for span in result.spans
                ),
            )
            for result in report.results
        ),
    )


def _join_edges(runs: Sequence[Report], plan: Plan | None) -> dict[PackageId, frozenset[PackageId]]:
    edges = plan.edges() if plan else {}
    if sum(len(on) for run in runs for on in run.edges.values()) > MAX_KB:
        raise ConfigError(
            f"the results files list more than {MAX_KB} dependencies", problem=Problem.RESULTS
        )
    for run in runs:
        for name, dependencies in run.edges.items():
            edges[name] = edges.get(name, frozenset()) | dependencies
    for dependency in frozenset[PackageId]().union(*edges.values()):
        edges.setdefault(dependency, frozenset())
    if len(edges) > MAX_PACKAGES:
        raise ConfigError(
            f"the results files name more than {MAX_PACKAGES} packages", problem=Problem.RESULTS
        )
    return edges


def _join_results(
    runs: Sequence[Report], edges: Mapping[PackageId, frozenset[PackageId]], plan: Plan | None
) -> tuple[Result, ...]:
    told: dict[PackageId, list[Result]] = {}
    for result in (result for run in runs for result in run.results):
        told.setdefault(result.package.id, []).append(result)
    planned = {each.package.id: each for each in plan.packages} if plan else {}
    return tuple(
        _choose_result(told[name]) if name in told else _unreported_result(name, planned.get(name))
        for name in publish_order(edges, "the results files")
    )


def _choose_result(told: Sequence[Result]) -> Result:
    return replace(
        min(told, key=lambda result: _OUTCOMES.index(result.outcome)),
        tag=_choose_latest(result.tag for result in told),
        announcement=_choose_latest(result.announcement for result in told),
    )


def _choose_latest(followed: Iterable[_Followed | None]) -> _Followed | None:
    known = [each for each in followed if each is not None]
    return min(known, key=lambda each: _STATUSES.index(each.status), default=None)


def _add_spent(runs: Sequence[Report]) -> Spent | None:
    known = [run.spent for run in runs if run.spent is not None]
    return added(known) if known else None


def _unreported_result(name: PackageId, planned: PlannedPackage | None) -> Result:
    """A package that was there already is in no job; any other should have been in one."""
    unseen = Package(id=name, version="", directory=Path(), manifest=Path())
    package = planned.package if planned else unseen
    if planned and planned.action is Action.KEEP:
        kept = Outcome.ALREADY_PUBLISHED
        return Result(package=package, outcome=kept, reason=planned.reason)
    return Result(
        package=package,
        outcome=Outcome.UNKNOWN,
        reason="no results file accounts for it: its job did not run, or its results were lost",
        hint="Run the publish job of this package again; it asks the registry first.",
        problem=Problem.NOT_REPORTED,
    )


def publish_order(edges: Mapping[PackageId, frozenset[PackageId]], where: str) -> list[PackageId]:
    """Dependencies first, ties by name. Raises ConfigError naming `where` for a cycle."""
    sorter = TopologicalSorter(edges)
    try:
        sorter.prepare()
    except CycleError as error:
        cycle = " -> ".join(map(str, error.args[1]))
        raise ConfigError(
            f"{where}: a dependency cycle: {cycle}", problem=Problem.RESULTS
        ) from error
    order: list[PackageId] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order
