"""The review of a staged release as a terminal shows it, and the job summary of its run."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from make_pictures.recorded import svg
from releasekit.model import (
    Artifact,
    Outcome,
    Package,
    PackageId,
    Report,
    Result,
    Staged,
)
from releasekit.problems import Problem
from releasekit.report.review import Change, Review, show_review
from releasekit.report.summary import summary
from releasekit.text.commands import spell

WIDTHS: Final = (80, 120)
RUN: Final = "https://github.com/acme/monorepo/actions/runs/1234567890"
VERSION: Final = "2.4.0"
BEFORE: Final = "2.3.1"
LEVELS: Final = {
    1: ("errors", "logger", "schema", "types"),
    2: ("client", "config", "parser", "runtime", "store"),
    3: ("cli", "react", "server"),
}
NEEDS: Final = {
    "client": ("errors", "types"),
    "config": ("logger", "schema"),
    "parser": ("errors", "schema"),
    "runtime": ("logger", "types"),
    "store": ("types",),
    "cli": ("config", "parser"),
    "react": ("client", "store"),
    "server": ("client", "config", "runtime"),
}
ADDED: Final = {"client": ("dist/retry.js", "dist/retry.d.ts"), "server": ("install.js",)}
REMOVED: Final = {"parser": ("dist/legacy.js",)}
SCRIPTS: Final = {"server": ("postinstall: node install.js",)}
BEHIND: Final = PackageId("pypi", "acme-bindings")


def named(name: str) -> PackageId:
    return PackageId("npm", f"@acme/{name}")


def size(name: str) -> int:
    return 2_800 + 2_417 * sum(map(ord, name)) // 61


def pictures() -> dict[str, str]:
    return {f"review-{width}.svg": picture(width) for width in WIDTHS}


def review() -> Review:
    names = [(level, name) for level, members in LEVELS.items() for name in members]
    return Review(
        run_id="run",
        commit="5d41402abc4b2a76b9719d911017c592ae1f3c07",
        run={
            "repository": "acme/monorepo",
            "workflow": ".github/workflows/release.yml",
            "event": "push",
            "ref": "main",
            "commit": "5d41402abc4b2a76b9719d911017c592ae1f3c07",
            "started by": "octocat",
            "title": "Release 2.4.0",
        },
        place="https://registry.npmjs.org/",
        changes=tuple(_change(level, name) for level, name in names),
        settled={},
        refused={},
        behind={BEHIND: [named("server")]},
    )


def _change(level: int, name: str) -> Change:
    is_new = name == "store"
    changed = {**ADDED, **REMOVED}.get(name, ())
    return Change(
        package=named(name),
        version="0.1.0" if is_new else VERSION,
        level=level,
        size=size(name),
        files=9 + len(name) + len(changed),
        tag="latest",
        by="GitHub Actions",
        before="" if is_new else BEFORE,
        size_before=0 if is_new else size(name) - 640 * len(changed),
        added=ADDED.get(name, ()),
        removed=REMOVED.get(name, ()),
        scripts=SCRIPTS.get(name, ()),
        needed_by=tuple(named(other) for other, needs in NEEDS.items() if name in needs),
    )


def picture(width: int) -> str:
    stream = _Terminal()
    show_review(review(), stream, {"TERM": "xterm-256color", "COLUMNS": str(width)})
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(stream.getvalue() + "Approve 12 packages? [y/N] y"))
    return svg(console, title="releasekit approve results.json", name=f"review-{width}")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def staged_summary() -> str:
    held = review()
    results = [_result(number, change) for number, change in enumerate(held.changes)]
    package = Package(id=BEHIND, version=VERSION, directory=Path(), manifest=Path())
    results.append(
        Result(
            package=package,
            outcome=Outcome.BLOCKED,
            hint=f"Approve what is staged, with {spell('approve')}, then run the same command "
            "again.",
            problem=Problem.WAITS_FOR_APPROVAL,
            reason="needs npm:@acme/server, which is staged",
        )
    )
    edges = {
        change.package: frozenset(map(named, NEEDS.get(change.package.name[6:], ())))
        for change in held.changes
    }
    report = Report(
        run_id=held.run_id,
        plan_digest="",
        commit=held.commit,
        started_at="2026-11-22T12:00:00+00:00",
        duration_s=41.0,
        results=tuple(results),
        edges={**edges, BEHIND: frozenset([named("server")])},
        registries={"npm": held.place},
        project="acme/monorepo",
        repository="https://github.com/acme/monorepo",
        run_url=RUN,
    )
    return summary(report)


def _result(number: int, change: Change) -> Result:
    id_ = f"0b54f3d2-6c1e-4a1b-9d60-{number:012x}"
    filename = f"acme-{change.package.name[6:]}-{change.version}.tgz"
    return Result(
        package=Package(
            id=change.package, version=change.version, directory=Path(), manifest=Path()
        ),
        outcome=Outcome.STAGED,
        reason="accepted; it waits for a person's approval",
        artifacts=(
            Artifact(path=Path(filename), size=change.size, digests={"sha256": _digest(filename)}),
        ),
        staged=Staged(id=id_, url=f"https://www.npmjs.com/settings/staged/{id_}", tag="latest"),
    )


def _digest(filename: str) -> str:
    return hashlib.sha256(filename.encode()).hexdigest()
