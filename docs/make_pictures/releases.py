"""Reports of releases that never took place: of 6, 60 and 1,000 packages, the same every time.

Who decides what became of each package, and what it waited for, is the program; thought up are the
names, how long everything took, and what went wrong.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

from make_pictures.mishaps import Mishap, mishaps, warnings_of
from make_pictures.on_paper import Try, play, spent_on, tasks_of
from make_pictures.workspaces import (
    REGISTRIES,
    Member,
    artifact,
    digest,
    filenames,
    many,
    page,
    six,
)
from releasekit.fields import replace
from releasekit.model import Action, Node, Package, PackageId, PlannedPackage, Published, Report
from releasekit.release.package_run import PackageRun, results_of
from releasekit.release.timesheet import timesheet
from releasekit.spent import added

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from make_pictures.on_paper import Played

SIZES: Final = (6, 60, 1_000)
PROJECT: Final = "acme/platform"
REPOSITORY: Final = f"https://github.com/{PROJECT}"
RUN_URL: Final = f"{REPOSITORY}/actions/runs/16204418332"
# Seconds of a build, of an upload, and until the registry shows it: the least and the most.
_TIMES: Final[Mapping[str, tuple[tuple[float, float], ...]]] = {
    "npm": ((0.9, 3.5), (0.5, 1.6), (1.0, 4.0)),
    "pypi": ((1.6, 5.5), (0.7, 1.9), (1.5, 6.0)),
    "cargo": ((4.0, 16.0), (0.7, 1.5), (1.0, 3.0)),
    "go": ((0.6, 1.8), (0.4, 1.1), (0.8, 2.4)),
    "maven": ((5.0, 14.0), (1.8, 4.0), (4.0, 9.0)),
}


@cache
def release(packages: int, *, well: bool = False) -> Report:
    """Of one of `SIZES`, or of any other number; unless all went `well`, two of them failed."""
    members = six() if packages == 6 else many(packages)
    random = Random(packages)
    edges = {
        each.package.id: frozenset(need.on for need in each.package.dependencies)
        for each in members
    }
    failed = () if well else mishaps([each.package for each in members], edges)
    behind = _behind(failed, edges)
    kept = _kept(members, edges, behind, wanted=max(1, packages // 12))
    sent = [each.package for each in members if each.package.id not in kept]
    tries = {node: times for each in sent for node, times in _tries(random, each).items()}
    for mishap in failed:
        tries[mishap.node] = tries[mishap.node][-1:]
    # Nobody releases a thousand packages on the smallest of runners.
    cpus = 4 if packages < 100 else 32
    lanes: dict[str, int | None] = {
        "build": cpus,
        "upload": 5 if packages < 100 else 20,
        "confirm": None,
    }
    tasks = tasks_of(sent, tries)
    played = play(tasks, tries, failing={each.node for each in failed}, lanes=lanes)
    runs = {
        each.package.id: _run(each.package, played, kept, {each.node: each for each in failed})
        for each in members
    }
    results = results_of(runs, edges)
    sheet = timesheet(
        tasks,
        played.moments,
        batches={Node("build", each.id): [each.id] for each in sent},
        end_s=played.lasted_s,
    )
    spent = {each.id: spent_on(sheet, runs[each.id]) for each in sent}
    return Report(
        run_id=digest(f"run {packages} {well}")[:32],
        plan_digest=digest(f"plan {packages}"),
        commit=digest(f"commit {packages}")[:40],
        started_at="2026-11-22T12:00:00+00:00",
        duration_s=round(played.lasted_s, 1),
        builds="sandboxed (Landlock 7)",
        results=tuple(replace(each, spent=spent.get(each.package.id)) for each in results),
        private=_private(packages),
        edges=edges,
        registries={
            name: url
            for name, url in REGISTRIES.items()
            if any(on.ecosystem == name for on in edges)
        },
        project=PROJECT,
        repository=REPOSITORY,
        run_url=RUN_URL,
        spent=added(spent.values()),
    )


def _behind(
    failed: Sequence[Mishap], edges: Mapping[PackageId, Collection[PackageId]]
) -> set[PackageId]:
    """What failed, and what waits for it."""
    found = {each.node.package for each in failed}
    for package, needs in edges.items():  # dependencies come first
        if found & set(needs):
            found.add(package)
    return found


def _kept(
    members: Sequence[Member],
    edges: Mapping[PackageId, Collection[PackageId]],
    behind: Collection[PackageId],
    *,
    wanted: int,
) -> set[PackageId]:
    """Some that an earlier release has brought, and nothing of which is new."""
    kept: set[PackageId] = set()
    for each in members:
        id_ = each.package.id
        fits = id_ not in behind and kept.issuperset(edges[id_])
        if len(kept) < wanted and fits and int(digest(f"kept {id_}")[:2], 16) % 3 < 1 + each.layer:
            kept.add(id_)
    return kept


def _tries(random: Random, package: Package) -> dict[Node, list[Try]]:
    """Every twelfth upload takes a second attempt."""
    build, upload, confirm = (round(random.uniform(*t), 3) for t in _TIMES[package.id.ecosystem])
    busy = random.random() < 1 / 12
    first = [Try(round(upload / 3, 3), round(random.uniform(1, 3), 3))] if busy else []
    return {
        Node("build", package.id): [Try(build)],
        Node("upload", package.id): [*first, Try(upload)],
        Node("confirm", package.id): [Try(confirm)],
    }


def _run(
    package: Package, played: Played, kept: Collection[PackageId], failed: Mapping[Node, Mishap]
) -> PackageRun:
    """Of a package, as the phases leave it."""
    id_ = package.id
    if id_ in kept:
        there = Published(files={}, url=page(package))
        planned = PlannedPackage(
            package=package, action=Action.KEEP, reason="on the registry already", published=there
        )
        return PackageRun.from_plan(planned)
    planned = PlannedPackage(package=package, action=Action.PUBLISH, reason="not on the registry")
    run = PackageRun.from_plan(planned)
    run.spans = list(played.spans.get(id_, ()))
    run.attempts = sum(span.phase == "upload" for span in run.spans)
    run.visible = any(span.phase == "confirm" for span in run.spans)
    run.sent = run.visible
    run.published = Published(files={}, url=page(package)) if run.visible else None
    mishap = next((each for node, each in failed.items() if node.package == id_), None)
    run.error = mishap.error if mishap else None
    if run.spans and not (mishap and mishap.node.phase == "build"):
        run.artifacts = tuple(artifact(package, name) for name in filenames(package))
        run.warnings = warnings_of(id_, int(digest(f"warning {id_}")[:2], 16))
    return run


def _private(packages: int) -> tuple[Package, ...]:
    reasons = {
        PackageId("npm", "@acme/monorepo"): "package.json says `private`",
        PackageId("pypi", "acme-dev-tools"): "marked Private :: Do Not Upload",
        PackageId("cargo", "acme-benches"): "Cargo.toml says `publish = false`",
    }
    return tuple(
        Package(id=id_, version="0.0.0", directory=Path(), manifest=Path(), unpublishable=reason)
        for id_, reason in list(reasons.items())[: 1 if packages < 10 else 3]
    )
