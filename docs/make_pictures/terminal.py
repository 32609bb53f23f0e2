"""Draws what a terminal shows of a release: while it runs, paused, cancelled, and when a package
has failed.

The release is made up, and so is its clock; all else is the program, and a terminal emulator that
shows what it wrote.
"""

from __future__ import annotations

import io
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import pyte
from rich.console import Console
from rich.text import Text

from make_pictures.recorded import svg
from releasekit.model import (
    Action,
    Course,
    Dependency,
    Event,
    Outcome,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
    Report,
    Result,
)
from releasekit.report.live import LiveProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.model import Phase

WIDTHS: Final = (60, 120)
ROWS: Final = 40
VERSION: Final = "2.4.0"
# What each one needs, in publish order.
NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "cargo:acme-wire": (),
    "npm:@acme/errors": (),
    "npm:@acme/types": (),
    "pypi:acme-core": (),
    "pypi:acme-types": (),
    "go:acme.dev/wire": (),
    "npm:@acme/schema": ("npm:@acme/errors", "npm:@acme/types"),
    "pypi:acme-config": ("pypi:acme-core",),
    "cargo:acme-store": ("cargo:acme-wire",),
    "npm:@acme/client": ("npm:@acme/schema",),
    "pypi:acme-http": ("pypi:acme-core", "pypi:acme-types"),
    "npm:@acme/store": ("npm:@acme/schema",),
    "npm:@acme/react": ("npm:@acme/client", "npm:@acme/store"),
    "npm:@acme/cli": ("npm:@acme/client",),
    "npm:@acme/server": ("npm:@acme/client", "npm:@acme/store"),
    "npm:@acme/devtools": ("npm:@acme/react",),
    "pypi:acme-cli": ("pypi:acme-config", "pypi:acme-http"),
    "pypi:acme-server": ("pypi:acme-http",),
}
KEPT: Final = frozenset({"pypi:acme-types", "cargo:acme-wire", "go:acme.dev/wire"})
FAILED: Final = "npm:@acme/schema"
WHY: Final = (
    f"{FAILED} {VERSION}: its build failed with exit code 2: src/index.ts(12,7): error TS2322"
)
# Rich's names of the colours that pyte names otherwise.
_COLOURS: Final = {"brown": "yellow", "default": ""}


def pictures() -> dict[str, str]:
    """The text of each file, by its name."""
    scenes = {"running": running, "paused": paused, "failed": failed, "cancelled": cancelled}
    files = {
        f"terminal-{name}-{width}": picture(name, scene, width)
        for name, scene in scenes.items()
        for width in WIDTHS
    }
    files["terminal-failed-80"] = picture("failed", failed, 80)
    files["terminal-failed-80-plain"] = picture("failed", failed, 80, {"NO_COLOR": "1"})
    return {f"{name}.svg": text for name, text in files.items()}


class Stage:
    """A terminal with a release on it, and the release's clock."""

    def __init__(self, width: int, environment: Mapping[str, str]) -> None:
        self.now_s = 0.0
        self.width = width
        self.stream = _Terminal()
        self.progress = LiveProgress(
            self.stream,
            {"TERM": "xterm-256color", **environment},
            keys=True,
            clock=lambda: self.now_s,
            size=lambda: (width, ROWS),
            every_s=0,
        )

    def starts(self, name: str, phase: Phase, at_s: float) -> None:
        self.now_s = at_s
        self.progress.on_event(Event(package=_id(name), state="started", at_s=at_s, phase=phase))

    def ends(self, name: str, phase: Phase, at_s: float) -> None:
        self.now_s = at_s
        self.progress.on_event(Event(package=_id(name), state="ended", at_s=at_s, phase=phase))

    def settles(self, name: str, outcome: Outcome, detail: str = "") -> None:
        self.progress.on_event(
            Event(
                package=_id(name),
                state="settled",
                at_s=self.now_s,
                outcome=outcome,
                detail=detail,
            )
        )

    def publishes(self, name: str, since_s: float, at_s: float) -> None:
        self.starts(name, "build", since_s)
        self.ends(name, "build", since_s + 1.2)
        self.starts(name, "upload", since_s + 1.2)
        self.ends(name, "upload", at_s)
        self.settles(name, Outcome.PUBLISHED)


class _Terminal(io.StringIO):
    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def isatty(self) -> bool:
        return True


def running(stage: Stage) -> None:
    stage.progress.begin(_plan())
    for name, since_s, at_s in (
        ("npm:@acme/errors", 0.0, 2.9),
        ("npm:@acme/types", 0.1, 3.4),
        ("pypi:acme-core", 0.2, 5.1),
        ("pypi:acme-config", 5.2, 8.7),
    ):
        stage.publishes(name, since_s, at_s)
    stage.starts("npm:@acme/schema", "build", 9.2)
    stage.starts("cargo:acme-store", "confirm", 9.8)
    stage.ends("npm:@acme/client", "build", 10.4)
    stage.starts("pypi:acme-http", "upload", 11.2)
    stage.ends("npm:@acme/store", "build", 12.0)


def paused(stage: Stage) -> None:
    running(stage)
    stage.progress.on_course(Course(name="paused", at_s=12.0))
    stage.ends("cargo:acme-store", "confirm", 14.0)
    stage.settles("cargo:acme-store", Outcome.PUBLISHED)


def cancelled(stage: Stage) -> None:
    running(stage)
    stage.progress.on_course(
        Course(name="cancelling", at_s=12.0, reason="cancelled by Ctrl-C", until_s=18.0)
    )
    stage.ends("npm:@acme/schema", "build", 12.1)
    stage.ends("cargo:acme-store", "confirm", 14.0)
    stage.settles("cargo:acme-store", Outcome.PUBLISHED)


def failed(stage: Stage) -> None:
    running(stage)
    stage.ends("npm:@acme/schema", "build", 13.0)
    stage.settles(FAILED, Outcome.FAILED, WHY)
    stage.ends("cargo:acme-store", "confirm", 13.1)
    stage.settles("cargo:acme-store", Outcome.PUBLISHED)
    stage.ends("pypi:acme-http", "upload", 14.2)
    stage.settles("pypi:acme-http", Outcome.PUBLISHED)
    stage.publishes("pypi:acme-cli", 14.3, 17.5)
    stage.publishes("pypi:acme-server", 14.4, 17.9)
    stage.progress.end(_report())


def picture(
    name: str,
    scene: Callable[[Stage], None],
    width: int,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    stage = Stage(width, environment)
    scene(stage)
    screen = pyte.Screen(width, ROWS)
    pyte.Stream(screen).feed(stage.stream.getvalue().replace("\n", "\r\n"))
    stage.progress.close()
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    for row in _rows(screen):
        console.print(row, soft_wrap=True)
    return svg(console, title="releasekit publish", name=f"terminal-{name}-{width}")


def _rows(screen: pyte.Screen) -> list[Text]:
    """What is on the screen, down to the last row that has something."""
    last = max(number for number, row in enumerate(screen.display) if row.strip())
    rows = []
    for number in range(last + 1):
        text = Text()
        for column in range(screen.columns):
            cell = screen.buffer[number][column]
            colour = _COLOURS.get(cell.fg, cell.fg)
            text.append(cell.data, style=f"{'bold ' if cell.bold else ''}{colour}".strip())
        text.rstrip()
        rows.append(text)
    return rows


def _id(name: str) -> PackageId:
    return PackageId.parse(name)


def _package(name: str) -> Package:
    return Package(
        id=_id(name),
        version=VERSION,
        directory=Path(),
        manifest=Path(),
        dependencies=tuple(Dependency(on=_id(on)) for on in NEEDS[name]),
    )


def _plan() -> Plan:
    return Plan(
        packages=tuple(
            PlannedPackage(
                package=_package(name),
                action=Action.KEEP if name in KEPT else Action.PUBLISH,
                reason="",
            )
            for name in NEEDS
        ),
        private=(),
        commit="",
        digest="",
    )


def _report() -> Report:
    results: dict[str, Result] = {}
    for name, needs in NEEDS.items():
        outcome, reason, hint = Outcome.PUBLISHED, "", ""
        if name in KEPT:
            outcome = Outcome.ALREADY_PUBLISHED
        elif name == FAILED:
            outcome, reason = Outcome.FAILED, WHY
            hint = "Fix what the end of its log says."
        elif any(results[on].outcome in {Outcome.FAILED, Outcome.BLOCKED} for on in needs):
            outcome, reason = Outcome.BLOCKED, f"needs {FAILED}, which failed"
        results[name] = Result(package=_package(name), outcome=outcome, reason=reason, hint=hint)
    return Report(
        run_id="run",
        plan_digest="",
        commit="",
        started_at="2026-11-22T12:00:00+00:00",
        duration_s=17.9,
        results=tuple(results.values()),
        edges={_id(name): frozenset(map(_id, needs)) for name, needs in NEEDS.items()},
    )
