"""A plan, before anything happens: its headline, its table, its graph, and the plan file."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.model import Action
from releasekit.report.marks import ACTIONS
from releasekit.report.mermaid import flowchart
from releasekit.report.remarks import headline_words, short_name, tagged_lines, warning_table
from releasekit.report.results import to_row
from releasekit.report.text import columns, describe_private, end_block, packages
from releasekit.text import escape
from releasekit.text.codec import row_of
from releasekit.text.json_text import format_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Package, Plan, PlannedPackage

PLAN_SCHEMA: Final = 1

_FEW: Final = 3
# The usual names of registries whose address for uploads is another one.
_CALLED: Final = {
    "upload.pypi.org": "pypi.org",
    "test.pypi.org": "test.pypi.org",
    "registry.npmjs.org": "registry.npmjs.org",
    "index.crates.io": "crates.io",
    "central.sonatype.com": "central.sonatype.com",
    "proxy.golang.org": "proxy.golang.org",
}
_MAX_CHARS: Final = 200


def plan_headline(plan: Plan) -> str:
    if not plan.packages:
        return "No package to publish"
    counts = Counter(planned.action for planned in plan.packages)
    told = [f"{counts[action]} {ACTIONS[action].word}" for action in Action if counts[action]]
    told += headline_words(plan.packages)
    return f"{packages(len(plan.packages))}: {', '.join(told)}"


def destinations(plan: Plan) -> list[str]:
    """Where its packages go: each place once, without credentials."""
    used = sorted({planned.package.id.ecosystem for planned in plan.packages})
    places = [place(plan.registries[name]) for name in used if plan.registries.get(name)]
    return [escape.clip(each, _MAX_CHARS) for each in dict.fromkeys(places)]


def destination_line(plan: Plan) -> str:
    """`to: pypi.org, dir:/tmp/registry/npm`; empty for a plan without packages."""
    places = destinations(plan)
    return escape.log_line(f"to: {', '.join(places)}") if places else ""


def place(url: str) -> str:
    """What people call it, without credentials."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    host = host.rpartition("@")[2]
    return _CALLED.get(host) or f"{scheme}://{host}{slash}{path}"


def plan_table(plan: Plan, *, whole: bool = True, warnings: bool = True) -> str:
    """For a terminal or a log: packages in publish order, then what many of them have in common,
    why others are never published, where they go and what is signed and announced about them.
    Where it is not the `whole` of it, packages that are kept for one reason are only counted, and
    the headline stands elsewhere.
    """
    shared = shared_reasons(plan)
    shown = [
        (planned, reason)
        for planned, reason in own_reasons(plan, shared)
        if whole or reason or planned.action is not Action.KEEP or headline_words([planned])
    ]
    common = [
        escape.log_line(f"{action} ({count}): {reason}")
        for (action, reason), count in shared.items()
    ]
    never = [*map(escape.log_line, describe_private(plan.private))]
    warned = plan.packages if warnings else ()
    following = {"provenance": plan.provenance, "announcing": plan.announcing}
    lines = [
        *end_block(columns(_list_rows(shown))),
        *end_block(common),
        *end_block(never),
        *warning_table((planned.package, planned.warnings) for planned in warned),
        *filter(None, [destination_line(plan)]),
        *(escape.log_line(f"{title}: {text}") for title, text in following.items() if text),
        *tagged_lines(plan.packages),
        *([plan_headline(plan)] if whole else []),
        *map(escape.log_line, plan.notes),
    ]
    return "\n".join(lines)


def _list_rows(shown: Iterable[tuple[PlannedPackage, str]]) -> list[Sequence[str]]:
    """Each with its reason, below a heading; without columns that are empty."""
    rows = [
        (
            str(planned.package.id),
            planned.package.version,
            planned.action.value,
            short_name(planned.tag),
            reason,
        )
        for planned, reason in shown
    ]
    heading = ("package", "version", "action", "tag", "why")
    told = [n for n in range(5) if n < 3 or any(row[n] for row in rows)]
    return [[row[n] for n in told] for row in (heading, *rows)] if rows else []


def shared_reasons(plan: Plan) -> dict[tuple[Action, str], int]:
    """For each action the reason that most of its packages share, with their number, where those
    are more than a few: it is said once.
    """
    counts = Counter((planned.action, planned.reason) for planned in plan.packages)
    most: dict[Action, tuple[str, int]] = {}
    for (action, reason), count in counts.most_common():
        if count > _FEW:
            most.setdefault(action, (reason, count))
    return {(action, most[action][0]): most[action][1] for action in Action if action in most}


def own_reasons(
    plan: Plan, shared: Collection[tuple[Action, str]]
) -> list[tuple[PlannedPackage, str]]:
    """Each package with its reason, which is empty where it is said for many."""
    return [
        (planned, "" if (planned.action, planned.reason) in shared else planned.reason)
        for planned in plan.packages
    ]


def plan_mermaid(plan: Plan) -> str:
    """The graph, of any size; packages to publish are green, those that are kept are grey."""
    return flowchart(
        {
            planned.package.id: (str(planned.package), ACTIONS[planned.action].style)
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
        "packages": [
            _package_row(planned.package, root)
            | {
                "action": planned.action.value,
                "reason": planned.reason,
                "fingerprint": planned.fingerprint,
                "artifacts": _file_rows(planned.artifacts, root),
                "prebuilt": _file_rows(planned.package.prebuilt, root),
                "published": planned.published
                and row_of(planned.published, lacks={}, since={}, withdrawal={}, asks={}),
                "warnings": planned.warnings,
                **({"shard": planned.shard} if planned.shard else {}),
                **({"tag": planned.tag} if planned.tag else {}),
                **({"announcement": planned.announcement} if planned.announcement else {}),
            }
            for planned in plan.packages
        ],
        "private": [
            _package_row(package, root) | {"reason": package.unpublishable}
            for package in plan.private
        ],
    }
    return format_json(document, to_row) + "\n"


def _package_row(package: Package, root: Path) -> dict[str, object]:
    return {
        **row_of(package.id),
        "version": package.version,
        "directory": _relative(package.directory, root),
        "manifest": _relative(package.manifest, root),
        "dependencies": [
            {"on": str(need.on), "kind": need.kind, "requirement": need.requirement}
            for need in package.dependencies
        ],
    }


def _file_rows(artifacts: Sequence[Artifact], root: Path) -> list[dict[str, object]]:
    return [
        row_of(each, path={"path": _relative(each.path, root)}, attestation={})
        for each in artifacts
    ]


def _relative(path: Path, root: Path) -> str:
    # The state directory may lie outside the workspace, where Path.relative_to would give up.
    return os.path.relpath(path, root).replace(os.sep, "/")
