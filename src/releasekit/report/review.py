"""What a maintainer reads before a release is approved, as lines of a terminal or of a log.

Names, files and scripts come out of packed files: all of it is untrusted text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from releasekit.report.screen import has_screen
from releasekit.report.text import few, packages, size
from releasekit.text.escape import clip, log_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from rich.console import RenderableType

    from releasekit.model import PackageId

_MOST_FILES: Final = 8
_MOST_CHARS: Final = 300
_LOG_WIDTH: Final = 100


class Change(Struct, frozen=True, kw_only=True):
    """One package, held against `before`, the version that its users have now: empty where there is
    none, or where it is not known, for which `note` is the reason. `scripts` run where it is
    installed, and are new or not what they were.
    """

    package: PackageId
    version: str
    level: int
    size: int
    files: int = 0
    tag: str = ""
    by: str = ""
    before: str = ""
    size_before: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    needed_by: tuple[PackageId, ...] = ()
    note: str = ""


class Review(Struct, frozen=True, kw_only=True):
    """`run` says whose run has staged it: the repository, the event, and so on, each by its name.
    `changes` are to be approved, dependencies first. `settled` need no approval any more, each with
    what became of it; `refused` must not be approved, each with the reason; `behind` waits
    elsewhere, each with what it needs.
    """

    run_id: str
    commit: str
    place: str
    run: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    settled: Mapping[str, str]
    refused: Mapping[str, str]
    behind: Mapping[PackageId, Sequence[PackageId]]


def show_review(review: Review, stream: TextIO, environment: Mapping[str, str]) -> None:
    """In colours and as wide as the terminal, or as plain lines that hold no command."""
    is_screen = has_screen(stream, environment)
    environment = environment if is_screen else {**environment, "NO_COLOR": "1"}
    console = Console(
        file=stream,
        width=None if is_screen else _LOG_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
        no_color=bool(environment.get("NO_COLOR")) or None,
        force_terminal=None if is_screen else False,
        _environ=environment,
    )
    if is_screen:
        for part in _parts(review):
            console.print(part)
        return
    with console.capture() as captured:
        for part in _parts(review):
            console.print(part)
    for line in captured.get().splitlines():
        print(log_line(line.rstrip()), file=stream)
    stream.flush()


def _parts(review: Review) -> Iterator[RenderableType]:
    commit = f" of commit {clip(review.commit, 12)}" if review.commit else ""
    wait = "waits" if len(review.changes) == 1 else "wait"
    waiting = f"{packages(len(review.changes))}{commit} {wait} for approval"
    yield _line(f"{waiting} at {review.place}", "bold")
    yield from _list_lines("Staged by this run:", review.run, "bold")
    if review.changes:
        yield Text()
        yield _overview(review.changes)
    for change in review.changes:
        if details := _details(change):
            yield Text()
            yield _line(f"{change.package} {change.version}", "cyan")
            for line, style in details:
                yield Padding(_line(line, style), (0, 0, 0, 2))
    yield from _list_lines("Not to be approved:", review.refused, "bold red")
    yield from _list_lines("Needs no approval any more:", review.settled, "dim")
    yield from _list_lines(
        "Waits for these elsewhere:",
        {str(name): f"needs {few([*map(str, needs)], 3)}" for name, needs in review.behind.items()},
        "yellow",
    )
    yield Text()


def _overview(changes: Sequence[Change]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("package", overflow="fold", ratio=None)
    table.add_column("version", overflow="fold")
    table.add_column("tag", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("files", justify="right", no_wrap=True)
    level = 0
    for change in changes:
        number = str(change.level) if change.level != level else ""
        level = change.level
        version, amount = f"{change.version} (new)", size(change.size)
        if change.before:
            version = f"{change.before} → {change.version}"
            if more := change.size - change.size_before:
                amount += f" ({'+' if more > 0 else '-'}{size(abs(more))})"
        marks = [f"+{len(change.added)}"] if change.added else []
        marks += [f"-{len(change.removed)}"] if change.removed else []
        files = str(change.files or "?") + (f" ({' '.join(marks)})" if marks else "")
        table.add_row(
            Text(number, style="bold"),
            _line(str(change.package), "cyan"),
            _line(version),
            _line(change.tag, "" if change.tag == "latest" else "yellow"),
            Text(amount),
            Text(files, style="bold red" if change.scripts else ""),
        )
    return table


def _details(change: Change) -> list[tuple[str, str]]:
    """Lines to look at, each with its style."""
    lines = [(f"! runs on installation: {script}", "bold red") for script in change.scripts]
    lines += _names("+", change.added, "green") + _names("-", change.removed, "red")
    if change.note:
        lines.append((change.note, "yellow"))
    if change.needed_by:
        lines.append((f"needed by {few([*map(str, change.needed_by)])}", "dim"))
    return lines


def _names(mark: str, names: Sequence[str], style: str) -> list[tuple[str, str]]:
    lines = [(f"{mark} {name}", style) for name in names[:_MOST_FILES]]
    left = len(names) - _MOST_FILES
    return [*lines, (f"{mark} and {left} more", style)] if left > 0 else lines


def _list_lines(title: str, lines: Mapping[str, str], style: str) -> Iterator[RenderableType]:
    if not lines:
        return
    yield Text()
    yield _line(title, style)
    for name, text in lines.items():
        yield Padding(_line(f"{name}: {text}", limit=1_000), (0, 0, 0, 2))


def _line(text: str, style: str = "", *, limit: int = _MOST_CHARS) -> Text:
    return Text(visible(clip(text, limit)), style=style)
