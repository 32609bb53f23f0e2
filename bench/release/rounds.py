"""What is compared with what, in rounds in which all ways of a scenario take turns."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.release.measure import Cost, WrongResult
from bench.release.place import Scenario
from bench.release.ways import ACCEPTED, BUILT, COMPILED, FIVE, PEERS, SIXTEEN, Way, once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bench.release.peers import Peers

# What one request for a file of the index takes, so that `cargo package` of 60 crates, which makes
# 1,100 of them one after the other, takes the 28 s that it takes with crates.io.
INDEX_S: Final = 0.022
# What a read takes where a content delivery network answers it.
READ_S: Final = 0.02
# A way that takes longer than this is not worth a second round.
LONG_S: Final = 30.0
ECOSYSTEMS: Final = ("npm", "pypi", "cargo", "maven", "go")


@dataclass(frozen=True)
class Comparison:
    """One scenario, and the ways that are tried in it."""

    scenario: Scenario
    ways: tuple[Way, ...]


def comparisons(ecosystems: Iterable[str], *, quick: bool) -> list[Comparison]:
    made = []
    for ecosystem in ecosystems:
        peers = PEERS[ecosystem]
        if quick:
            made.append(Comparison(_scenario(ecosystem, 10, 0.1), (*SIXTEEN, *peers[:1])))
        else:
            both = (*SIXTEEN, *FIVE, BUILT, *(() if ecosystem == "cargo" else (ACCEPTED,)))
            made.append(Comparison(main_scenario(ecosystem), (*both, *peers)))
            if ecosystem != "cargo":
                fastest = peers[: 2 if ecosystem == "npm" else 1]
                made.append(Comparison(quick_reads(ecosystem), (*both, *fastest)))
            made += [Comparison(scenario, COMPILED) for scenario in compiled(ecosystem)]
    if quick:
        return made
    for ecosystem in ecosystems:
        for scenario in growth(ecosystem):
            fastest = PEERS[ecosystem][:1] if scenario.packages == 10 else ()
            made.append(Comparison(scenario, (*SIXTEEN, *fastest)))
    return made


def main_scenario(ecosystem: str) -> Scenario:
    """Every peer; crates where waiting for the index is what a release consists of."""
    packages = 30 if ecosystem == "maven" else 60
    return _scenario(ecosystem, packages, 0.2, 3.0 if ecosystem == "cargo" else 0.0)


def quick_reads(ecosystem: str) -> Scenario:
    """As where a content delivery network answers. Of crates the index has its own time anyway."""
    return main_scenario(ecosystem)._replace(read_latency_s=READ_S)


def compiled(ecosystem: str) -> list[Scenario]:
    """Releases that mostly compile: with an index that lags, with slow requests, with neither."""
    if ecosystem != "cargo":
        return []
    return [
        Scenario(ecosystem, 60, 0.0, 3.0, 0.0),
        _scenario(ecosystem, 12, 0.1),
        Scenario(ecosystem, 12, 0.0, 0.0, 0.0),
    ]


def growth(ecosystem: str) -> list[Scenario]:
    """60 packages at 100 ms, and one thing changed at a time."""
    return [
        *(_scenario(ecosystem, packages, 0.1) for packages in (10, 60, 300)),
        *(_scenario(ecosystem, 60, latency_s) for latency_s in (0.0, 0.3)),
        _scenario(ecosystem, 60, 0.1, 3.0),
    ]


def _scenario(ecosystem: str, packages: int, latency_s: float, lag_s: float = 0.0) -> Scenario:
    return Scenario(
        ecosystem, packages, latency_s, lag_s, INDEX_S if ecosystem == "cargo" else None
    )


@dataclass(frozen=True)
class Measured:
    scenario: Scenario
    way: str
    slots: int
    round: int
    cost: Cost


def warm(ecosystems: Iterable[str], peers: Peers) -> None:
    """Fills the caches that all share: our environment, build requirements, Maven's plugins."""
    for ecosystem in ecosystems:
        ways = (*SIXTEEN[:2], *(PEERS[ecosystem][:1] if ecosystem in {"pypi", "maven"} else ()))
        for way in ways:
            with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                where = Path(directory).resolve()
                once(way, _scenario(ecosystem, 2, 0.0), peers, where, offline=False)


def run(
    chosen: Sequence[Comparison], peers: Peers, *, rounds: int, minutes: float
) -> Iterator[Measured | WrongResult]:
    """Everything once, and further rounds as far as the time is enough for them: first of what
    has every peer.
    """
    until_s = time.monotonic() + 60 * minutes
    left_out: set[tuple[Scenario, str]] = set()
    turns = [(number, each) for number in range(rounds) for each in chosen]
    turns.sort(key=lambda turn: len(turn[1].ways) <= len(SIXTEEN) + 1)
    for number, comparison in turns:
        if number and time.monotonic() > until_s:
            continue
        scenario = comparison.scenario
        ways = [way for way in comparison.ways if (scenario, way.name) not in left_out]
        # Whoever goes first in one round goes last in the next.
        for way in reversed(ways) if number % 2 else ways:
            try:
                with tempfile.TemporaryDirectory(prefix="bench-") as directory:
                    cost = once(way, scenario, peers, Path(directory).resolve())
            except WrongResult as error:
                left_out.add((scenario, way.name))
                yield error
                continue
            measured = Measured(scenario, way.name, way.slots, number, cost)
            print(_line(measured), flush=True)
            yield measured
            if cost.wall_s > LONG_S:
                left_out.add((scenario, way.name))


def _line(it: Measured) -> str:
    scenario, cost = it.scenario, it.cost
    where = f"{scenario.ecosystem} {scenario.packages} {scenario.latency_s:g}s+{scenario.lag_s:g}s"
    where += "" if scenario.read_latency_s is None else " reads"
    return (
        f"{where:24} {it.way:42} {cost.wall_s:7.2f} s {cost.cpu_s:7.2f} s CPU "
        f"{cost.requests:6} requests, server {cost.server_cpu_s / cost.wall_s:4.0%} busy"
    )


@dataclass(frozen=True)
class Row:
    """Medians of one way in one scenario; `over` has its time over each other's of a round."""

    scenario: Scenario
    way: str
    slots: int
    rounds: int
    cost: Cost
    over: dict[str, float]


def medians(measured: Sequence[Measured]) -> list[Row]:
    """In the order of the first round."""
    groups: dict[tuple[Scenario, str], dict[int, Measured]] = defaultdict(dict)
    for it in measured:
        groups[it.scenario, it.way][it.round] = it
    rows = []
    for (scenario, way), held in groups.items():
        costs = [it.cost for it in held.values()]
        middle = Cost(
            **{
                field.name: statistics.median(getattr(cost, field.name) for cost in costs)
                for field in fields(Cost)
                if field.name != "published"
            },
            published=costs[0].published,
        )
        over = {
            other: statistics.median(
                held[number].cost.wall_s / theirs[number].cost.wall_s
                for number in held.keys() & theirs.keys()
            )
            for (where, other), theirs in groups.items()
            if where == scenario and held.keys() & theirs.keys()
        }
        rows.append(Row(scenario, way, next(iter(held.values())).slots, len(costs), middle, over))
    return rows


def saved(measured: Sequence[Measured], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps([{**asdict(it), "scenario": list(it.scenario)} for it in measured]) + "\n"
    )


def read(path: Path) -> list[Measured]:
    return [
        Measured(Scenario(*it["scenario"]), it["way"], it["slots"], it["round"], Cost(**it["cost"]))
        for it in json.loads(path.read_text())
    ]
