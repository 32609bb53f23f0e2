"""A plan, before anything happens: a table, a graph, the plan file, a job summary."""

from __future__ import annotations

import json
import os.path
from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.model import Action
from releasekit.report.markdown import (
    LIMIT_BYTES,
    details,
    first_fitting,
    package_cells,
    private_section,
    table,
)
from releasekit.report.mermaid import drawable, flowchart
from releasekit.report.text import columns, few, packages
from releasekit.report.warnings import warning_rows, warning_section, warning_table
from releasekit.text import escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.model import Package, Plan, PlannedPackage, Published

PLAN_SCHEMA: Final = 1

_WORDS: Final = {
    Action.PUBLISH: "to build and publish",
    Action.UPLOAD: "to upload as built before",
    Action.KEEP: "already published",
    Action.REFUSE: "refused",
}
_STYLES: Final = {
    Action.PUBLISH: "done",
    Action.UPLOAD: "done",
    Action.KEEP: "kept",
    Action.REFUSE: "failed",
}
_ROWS: Final = (2_000, 300, 30)  # rows of a table in a summary; fewer until it fits


def plan_headline(plan: Plan) -> str:
    if not plan.packages:
        return "No package to publish"
    counts = Counter(planned.action for planned in plan.packages)
    parts = [f"{counts[action]} {_WORDS[action]}" for action in Action if counts[action]]
    return f"{packages(len(plan.packages))}: {', '.join(parts)}"


def plan_table(plan: Plan) -> str:
    """For a terminal or a log: packages in publish order, then why others are never published."""
    rows = [
        (str(planned.package.id), planned.package.version, planned.action.value, planned.reason)
        for planned in plan.packages
    ]
    lines = [*columns([("package", "version", "action", "why"), *rows]), ""] if rows else []
    lines += _never_published(plan.private)
    lines += warning_table((planned.package, planned.warnings) for planned in plan.packages)
    return "\n".join([*lines, plan_headline(plan), *map(escape.visible, plan.notes)])


def _never_published(private: Sequence[Package]) -> list[str]:
    """A line for each reason, as there may be hundreds of packages that share one."""
    by_reason: dict[str, list[str]] = {}
    for package in private:
        by_reason.setdefault(package.unpublishable, []).append(str(package.id))
    lines = [
        escape.log_line(f"never published: {few(names)}: {reason}")
        for reason, names in by_reason.items()
    ]
    return [*lines, ""] if lines else []


def plan_mermaid(plan: Plan) -> str:
    """The graph, whatever its size; packages to publish are green, those that are kept are grey."""
    return flowchart(
        {
            planned.package.id: (
                str(planned.package),
                _STYLES[planned.action],
            )
            for planned in plan.packages
        },
        plan.edges(),
    )


def plan_json(plan: Plan, root: Path) -> str:
    """The plan file; its paths are relative to `root`."""
    document = {
        "schema": PLAN_SCHEMA,
        "digest": plan.digest,
        "commit": plan.commit,
        "registries": dict(sorted(plan.registries.items())),
        "notes": list(plan.notes),
        "packages": [_planned(planned, root) for planned in plan.packages],
        "private": [
            _package(package, root) | {"reason": package.unpublishable} for package in plan.private
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def _package(package: Package, root: Path) -> dict[str, object]:
    return {
        "ecosystem": package.id.ecosystem,
        "name": package.id.name,
        "version": package.version,
        "directory": _relative(package.directory, root),
        "manifest": _relative(package.manifest, root),
        "dependencies": [
            {
                "on": str(dependency.on),
                "kind": dependency.kind.value,
                "requirement": dependency.requirement,
            }
            for dependency in package.dependencies
        ],
    }


def _planned(planned: PlannedPackage, root: Path) -> dict[str, object]:
    return _package(planned.package, root) | {
        "action": planned.action.value,
        "reason": planned.reason,
        "fingerprint": planned.fingerprint,
        "artifacts": [
            {
                "path": _relative(artifact.path, root),
                "size": artifact.size,
                "digests": dict(artifact.digests),
            }
            for artifact in planned.artifacts
        ],
        "published": _published(planned.published),
        "warnings": warning_rows(planned.warnings),
    }


def _published(published: Published | None) -> dict[str, object] | None:
    if published is None:
        return None
    return {
        "files": dict(published.files),
        "complete": published.complete,
        "url": published.url,
    }


def _relative(path: Path, root: Path) -> str:
    # The state directory may lie outside the workspace, where Path.relative_to would give up.
    return os.path.relpath(path, root).replace(os.sep, "/")


def plan_summary(plan: Plan, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """The job summary of `mode: plan`; it says less rather than exceed the limit."""
    return first_fitting((_summary(plan, rows) for rows in _ROWS), limit_bytes)


def _summary(plan: Plan, rows: int) -> str:
    lines = [f"## {plan_headline(plan)}", ""]
    lines += [line for note in plan.notes for line in (escape.markdown(note), "")]
    lines += warning_section(((each.package, each.warnings) for each in plan.packages), rows)
    if plan.packages:
        cells = [
            (
                *package_cells(planned.package),
                _WORDS[planned.action],
                escape.markdown(escape.clip(planned.reason, 300)),
            )
            for planned in plan.packages[:rows]
        ]
        lines += [*table(("Package", "Version", "Action", "Why"), cells), ""]
        if len(plan.packages) > rows:
            lines += [f"… and {len(plan.packages) - rows} more, in the plan file.", ""]
        chart = plan_mermaid(plan)
        if drawable(chart):
            lines += details("Publish order", [escape.fence(chart.splitlines(), "mermaid")])
    lines += private_section(plan.private, rows)
    return "\n".join(lines).rstrip() + "\n"
