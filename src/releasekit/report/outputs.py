"""What a run or a plan tells GitHub: the outputs of the action, whose lists are JSON on one line,
and the annotations that stand beside the log.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from releasekit.announced import Status, Tag, is_made
from releasekit.host.ci import is_linked
from releasekit.model import Action, Outcome
from releasekit.problems import mark
from releasekit.report.remarks import lack_annotations, warning_annotations
from releasekit.report.text import describe_pages, few, packages, split_staged
from releasekit.report.view import View, name_files, what_to_do
from releasekit.text.commands import spell
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from releasekit.model import PackageId, Plan, PlannedPackage, Report, Result

    Annotation = tuple[str, str]

# The outputs of a job are at most 1 MB, and other steps want some of it:
# https://docs.github.com/actions/how-tos/write-workflows/choose-what-workflows-do/pass-job-outputs
_BUDGET: Final = 450_000

_MOST_LINKS: Final = 50
# Packages that were left out on purpose need no follow-up step; results.json names them.
_LISTED: Final = (
    Outcome.PUBLISHED,
    Outcome.ALREADY_PUBLISHED,
    Outcome.STAGED,
    Outcome.FAILED,
    Outcome.UNKNOWN,
    Outcome.BLOCKED,
    Outcome.CANCELLED,
)


def outputs(report: Report) -> dict[str, str]:
    """What a run tells the steps after it.

    `published` says whether this run put anything on a registry. Where a very large release would
    exceed GitHub's limit, first the attestations, then the checksums, then the long fields and then
    the tags and releases are left out (results.json has them); the lists of packages stay complete.
    """
    view = View(report)
    found = _outputs(view, brief=False)
    if _count_chars(found) > _BUDGET:
        found["attestations"] = "{}"
    if _count_chars(found) > _BUDGET:
        found["checksums"] = ""
    if _count_chars(found) > _BUDGET:
        found = _outputs(view, brief=True) | {"checksums": "", "attestations": "{}"}
    if _count_chars(found) > _BUDGET:
        found |= {"tags": "[]", "releases": "[]"}
    return found


def _count_chars(found: dict[str, str]) -> int:
    return sum(map(len, found.values()))


def _outputs(view: View, *, brief: bool) -> dict[str, str]:
    report = view.report
    return {
        "result": view.verdict,
        "published": "true" if view.counts[Outcome.PUBLISHED] else "false",
        "ecosystems": _json(sorted({result.package.id.ecosystem for result in report.results})),
        **{
            f"{outcome}-packages": _json(
                [
                    _package_row(result, brief=brief)
                    for result in report.results
                    if result.outcome is outcome
                ]
            )
            for outcome in _LISTED
        },
        "packages-there": _json(
            [_package_row(each, brief=brief) for each in report.results if each.outcome.done]
        ),
        "checksums": checksums(report),
        "attestations": _attestations(report),
        "tags": _created_rows(report, releases=False, brief=brief),
        "releases": _created_rows(report, releases=True, brief=brief),
    }


def _package_row(result: Result, *, brief: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "name": result.package.id.name,
        "version": result.package.version,
        "ecosystem": result.package.id.ecosystem,
    }
    if brief:
        return row
    return row | {
        "url": result.url,
        "reason": clip(visible(result.reason), 500),
        "attempts": result.attempts,
        "duration_s": round(result.duration_s, 3),
        **({"problem": result.problem} if result.problem else {}),
        **({"url": result.staged.url, "stage-id": result.staged.id} if result.staged else {}),
    }


def checksums(report: Report) -> str:
    """Every artifact on a registry, as `sha256sum --check` reads it; no final line end."""
    named = name_files([each for each in report.results if each.outcome.done])
    return "\n".join(f"{artifact.sha256}  {visible(name)}" for name, artifact in named)


def _attestations(report: Report) -> str:
    """Each signed file by its name, which follows its package's where several have the same."""
    signed = [
        (result.package.id, file, file.attestation)
        for result in report.results
        for file in result.artifacts
        if file.attestation is not None
    ]
    counts = Counter(file.filename for _, file, _ in signed)
    return _json(
        {
            (file.filename if counts[file.filename] == 1 else f"{package}/{file.filename}"): {
                "log-index": attestation.log_index,
                "url": attestation.link,
            }
            for package, file, attestation in signed
        }
    )


def _created_rows(report: Report, *, releases: bool, brief: bool) -> str:
    """One for each package that this run has made a tag, or a release, for, or whose release is
    left as a draft of this commit; packages may share a release.
    """
    rows = []
    for result in report.results:
        followed = result.announcement if releases else result.tag
        if followed is None or followed.status not in {Status.CREATED, Status.DRAFT}:
            continue
        commit = result.tag.commit if result.tag is not None else ""
        if not is_made(followed) and commit != report.commit.partition("+")[0]:
            continue
        name = followed.name if isinstance(followed, Tag) else followed.tag
        row = {"package": str(result.package.id), "version": result.package.version, "tag": name}
        if not brief:
            row |= {"commit": commit, "url": followed.url}
        rows.append(row)
    return _json(rows)


def scalars(report: Report) -> dict[str, str]:
    """As `outputs`, for where no list can go: numbers in the place of lists."""
    view = View(report)
    tags = {
        result.tag.name
        for result in report.results
        if result.tag is not None and result.tag.status is Status.CREATED
    }
    return {
        "result": view.verdict,
        "published": "true" if view.counts[Outcome.PUBLISHED] else "false",
        **{f"{outcome}-packages": str(view.counts[outcome]) for outcome in _LISTED},
        "tags": str(len(tags)),
        "releases": str(len(_created_releases(report))),
    }


def job_links(report: Report, *, report_url: str, releases_url: str) -> str:
    """What GitLab shows beside a job: the pages of the report, of the releases and of the first of
    them. Either address may be empty.
    """
    made = [*_created_releases(report).items()][:_MOST_LINKS]
    links = [("Report", report_url), ("Releases", releases_url), *made]
    shown = [(label, url) for label, url in links if is_linked(url)]
    rows = [{"external_link": {"label": visible(label), "url": url}} for label, url in shown]
    return _json({"ReleaseKit": rows})


def _created_releases(report: Report) -> dict[str, str]:
    """The pages by their tags; packages may share one."""
    return {
        each.tag: each.url
        for each in (result.announcement for result in report.results)
        if each is not None and each.status in {Status.CREATED, Status.DRAFT}
    }


def plan_outputs(plan: Plan, *, apart: bool = False) -> dict[str, str]:
    """`matrix` has one row per ecosystem with work; its `packages` is that input's own format.

    Ecosystems whose packages wait for one another share a row, because jobs of a matrix run side by
    side: one of them would find that the other has not yet published what it needs. They stay
    `apart` where jobs wait for one another; a plan that is split has a row for each part.
    """
    work = [planned.package.id for planned in plan.packages if _is_work(planned)]
    if any(planned.shard for planned in plan.packages):
        rows = _shard_rows(plan)
    else:
        groups = (
            sorted({(each.ecosystem,) for each in work}) if apart else _joint_ecosystems(work, plan)
        )
        rows = [
            {
                "ecosystem": ",".join(together),
                "packages": "\n".join(
                    str(package) if len(together) > 1 else package.name
                    for package in work
                    if package.ecosystem in together
                ),
            }
            for together in groups
        ]
    return {
        "matrix": _json({"include": rows}),
        "has-work": "true" if rows else "false",
        "ecosystems": _json(sorted({each.package.id.ecosystem for each in plan.packages})),
    }


def _is_work(planned: PlannedPackage) -> bool:
    """Also a published package that is not tagged or announced yet: a job has to do that, too."""
    followed = (planned.tag, planned.announcement)
    wanted = any(each is not None and each.status is Status.WANTED for each in followed)
    return wanted or planned.action is not Action.KEEP


def _shard_rows(plan: Plan) -> list[dict[str, str]]:
    """`row` is the name of a job's artifacts, which may have no slash. An ecosystem in which
    nothing is left to be published has no parts.
    """
    found: dict[tuple[str, int, str], list[str]] = {}
    for planned in plan.packages:
        if _is_work(planned):
            package = planned.package.id
            key = (package.ecosystem, int(planned.shard.partition("/")[0] or 0), planned.shard)
            found.setdefault(key, []).append(package.name)
    return [
        {
            "ecosystem": ecosystem,
            "shard": shard,
            "row": f"{ecosystem}-{number}" if number else ecosystem,
            "packages": "\n".join(found[ecosystem, number, shard]),
        }
        for ecosystem, number, shard in sorted(found)
    ]


def _joint_ecosystems(work: Collection[PackageId], plan: Plan) -> list[tuple[str, ...]]:
    """The ecosystems of `work`; those with an edge between them share a tuple."""
    groups = {package.ecosystem: {package.ecosystem} for package in work}
    edges, wanted = plan.edges(), frozenset(work)
    for package in work:
        for on in edges[package] & wanted:
            joined = groups[package.ecosystem] | groups[on.ecosystem]
            groups |= dict.fromkeys(joined, joined)
    return sorted({tuple(sorted(group)) for group in groups.values()})


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def notices(
    report: Report,
) -> Iterator[tuple[Literal["error", "warning", "notice"], list[Annotation]]]:
    """Title and message of each, by level."""
    view, results = View(report), report.results
    yield (
        "error",
        _result_annotations(r for r in results if r.outcome in {Outcome.FAILED, Outcome.UNKNOWN}),
    )
    if wrong := lack_annotations(lack for lack in view.lacks if lack.is_wrong):
        yield "error", wrong
    if foreign := lack_annotations(lack for lack in view.lacks if not lack.is_wrong):
        yield "notice", foreign
    # The package is published, but a step after that failed.
    yield "warning", _result_annotations(r for r in results if r.outcome.done and r.hint)
    yield "warning", warning_annotations((r.package, r.warnings) for r in results)
    staged, paged = split_staged(results)
    ways = [
        (staged, f"{few([str(r.package.id) for r in staged])}: approve with {spell('approve')}"),
        (paged, describe_pages(paged)),
    ]
    for waiting, way in ways:
        if waiting:
            verb = "waits" if len(waiting) == 1 else "wait"
            yield "notice", [(f"{packages(len(waiting))} {verb} for approval", way)]


def _result_annotations(results: Iterable[Result]) -> list[Annotation]:
    return [result_annotation(each) for each in results]


def result_annotation(result: Result) -> Annotation:
    title = f"{result.package} {result.outcome}{mark(result.problem)}"
    page = result.problem and result.problem.url
    return title, "\n".join(filter(None, (result.reason, what_to_do(result), page)))
