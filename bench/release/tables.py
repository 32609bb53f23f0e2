"""What was measured as Markdown, for the part of docs/performance.md between two marks."""

from __future__ import annotations

import os
import platform
import re
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.release.rounds import compiled, growth, main_scenario, quick_reads
from bench.release.shape import levels_of
from bench.release.ways import CONFIRMED, LIMIT, OURS
from bench.scheduler_charts import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.release.further import Figure
    from bench.release.place import Scenario
    from bench.release.rounds import Row

BEGIN: Final = "<!-- begin: written by bench/release -->"
END: Final = "<!-- end -->"
TITLES: Final = {
    "npm": "npm",
    "pypi": "Python",
    "cargo": "Rust crates",
    "maven": "Maven",
    "go": "Go modules",
}
_HEAD: Final = (
    *("way", "s", f"over {OURS}", "over the limit", "with confirmation", "CPU s", "peak MB"),
    *("requests", "connections", "first upload s", "idle slots", "too early", "rounds"),
)


def document(rows: Sequence[Row], figures: Sequence[Figure], versions: Mapping[str, str]) -> str:
    tools = ", ".join(f"{name} {version}" for name, version in versions.items())
    said = f"Measured on {datetime.now(UTC):%d %B %Y} on {_machine()}, with {tools}."
    busiest = max(row.cost.server_cpu_s / row.cost.wall_s for row in rows)
    parts = [
        _wrapped(f"{said} The busiest of the servers computed {busiest:.0%} of the time."),
        "![Seconds of every way, by ecosystem](release-performance.svg)",
    ]
    ecosystems = list(dict.fromkeys(row.scenario.ecosystem for row in rows))
    for ecosystem in ecosystems:
        own = [row for row in rows if row.scenario.ecosystem == ecosystem]
        # A quick run has another scenario.
        listed = (main_scenario(ecosystem), quick_reads(ecosystem), *compiled(ecosystem))
        first = dict.fromkeys((*listed, own[0].scenario))
        for scenario in first:
            compared = [row for row in own if row.scenario == scenario]
            if compared:
                parts.append(f"### {TITLES[ecosystem]}: {_words(scenario)}")
                parts.append(_main_table(compared))
    grown = [row for row in rows if row.scenario in growth(row.scenario.ecosystem)]
    if any(row.scenario.packages > 10 for row in grown):
        parts += ["### More packages, slower answers, a late index", _growth_table(grown)]
    if figures:
        parts += ["### Parts of a release", _figures_table(figures)]
    return "\n\n".join(parts)


def _main_table(rows: Sequence[Row]) -> str:
    return table(_HEAD, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    """One push of tags is an upload of all packages at once: of these there are no slots."""
    cost = row.cost
    slots = 5 if row.way.endswith(" 5 slots") else 16
    uploads = (f"{cost.idle:.0%}", f"{cost.early:.0f}")
    if row.scenario.ecosystem == "go":
        uploads = ("-", "-")
    return (
        row.way,
        f"{cost.wall_s:.1f}",
        _ratio(row, f"{OURS}, 16 slots"),
        _ratio(row, f"{LIMIT}, {slots} slots"),
        _ratio(row, f"{CONFIRMED}, {slots} slots"),
        f"{cost.cpu_s:.1f}",
        f"{cost.peak_bytes / 1e6:.0f}",
        f"{cost.requests:.0f}",
        f"{cost.connections:.0f}",
        f"{cost.first_upload_s:.1f}",
        *uploads,
        str(row.rounds),
    )


def _growth_table(rows: Sequence[Row]) -> str:
    made = []
    for scenario in dict.fromkeys(row.scenario for row in rows):
        of = {row.way: row for row in rows if row.scenario == scenario}
        ours, limit = of.get(f"{OURS}, 16 slots"), of.get(f"{LIMIT}, 16 slots")
        if ours is None or limit is None:
            continue
        made.append(
            (
                TITLES[scenario.ecosystem],
                str(scenario.packages),
                f"{scenario.latency_s * 1000:.0f}",
                f"{scenario.lag_s:.0f}",
                f"{ours.cost.wall_s:.1f}",
                f"{limit.cost.wall_s:.1f}",
                _ratio(ours, limit.way),
                _ratio(ours, f"{CONFIRMED}, 16 slots"),
                f"{ours.cost.requests / scenario.packages:.1f}",
                *(
                    "-" if scenario.ecosystem == "go" else f"{row.cost.idle:.0%}"
                    for row in (ours, limit)
                ),
                str(ours.rounds),
            )
        )
    head = (
        *("ecosystem", "packages", "ms a request", "lag s", f"{OURS} s", "limit s", "ratio"),
        *("with confirmation", "requests a package", "idle slots", "of the limit", "rounds"),
    )
    return table(head, made)


def _figures_table(figures: Sequence[Figure]) -> str:
    rows = [
        (it.name, f"{it.wall_s:.2f}", f"{it.cpu_s:.2f}", f"{it.peak_bytes / 1e6:.0f}", it.requests)
        for it in figures
    ]
    return table(("part", "s", "CPU s", "peak MB", "requests"), rows)


def _ratio(row: Row, other: str) -> str:
    return f"{row.over[other]:.2f}" if other in row.over else "-"


def _words(scenario: Scenario) -> str:
    lag = f", {scenario.lag_s:.0f} s until the index shows a version" if scenario.lag_s else ""
    reads = scenario.read_latency_s
    requests = "a request" if reads is None else f"an upload, {reads * 1000:.0f} ms a read"
    levels = f"{scenario.packages} packages in {levels_of(scenario.packages)} levels"
    return f"{levels}, {scenario.latency_s * 1000:.0f} ms {requests}{lag}"


def _machine() -> str:
    cpu = platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        found = re.search(r"^model name\s*: (.+)", information.read_text(), re.MULTILINE)
        cpu = found[1].strip() if found else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release().partition('-')[0]}"
    return f"{os.cpu_count()} cores of {cpu}, {memory:.0f} GiB, {system}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def between_marks(page: str, text: str) -> str:
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if not rest or not tail:
        raise SystemExit(f"docs/performance.md has no {BEGIN} … {END}")
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"
