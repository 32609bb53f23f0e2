"""Parts of a release by themselves, where a whole one would hide what they take."""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.release.measure import Spent, spending
from bench.release.place import PROJECT, Scenario
from bench.release.rounds import INDEX_S, READ_S
from bench.release.ways import placed

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.release.peers import Peers
    from bench.release.place import Place

    Argv = Callable[[Place], list[str | Path]]


@dataclass(frozen=True)
class Figure:
    """`requests` is empty where there is no server."""

    name: str
    wall_s: float
    cpu_s: float
    peak_bytes: float
    requests: str


def figures(peers: Peers, *, rounds: int, quick: bool, beside: Path | None = None) -> list[Figure]:
    """`beside` is another checkout of ours."""
    many, crates = (100, 10) if quick else (1_000, 60)

    def plan(place: Place) -> list[str | Path]:
        origin = f"{place.server.origin}/"
        return [place.tree / "entrypoint.sh", "plan", place.root, "--npm-registry", origin]

    def into_directory(place: Place) -> list[str | Path]:
        target = f"dir:{place.directory / 'registry'}"
        return [place.tree / "entrypoint.sh", "publish", place.root, "--npm-registry", target]

    def ours(place: Place) -> list[str | Path]:
        argv: list[str | Path] = [place.tree / "entrypoint.sh", "publish", "--dry-run", place.root]
        return [*argv, "--cargo-registry", f"{place.server.origin}/index/"]

    def cargo(_place: Place) -> list[str | Path]:
        return ["cargo", "package", "--workspace", "--no-verify", "--registry", "local"]

    npm, rust = Scenario("npm", many, 0.1), Scenario("cargo", crates, 0.1, 0.0, INDEX_S)
    by_us: dict[str, tuple[Scenario, Argv]] = {
        f"`plan` of {many:,} npm packages, 100 ms a request": (npm, plan),
        f"`plan` of {many:,} npm packages, 20 ms a request": (npm._replace(latency_s=READ_S), plan),
        f"`publish` of {many:,} npm packages into `dir:`": (npm, into_directory),
        f"`publish --dry-run` of {crates} crates": (rust, ours),
    }
    trees = {"": PROJECT} | ({f", {beside.name}": beside} if beside else {})
    asked = {
        f"{name}{of}": (scenario, argv, tree)
        for name, (scenario, argv) in by_us.items()
        for of, tree in trees.items()
    }
    asked[f"`cargo package --workspace --no-verify` of {crates} crates"] = rust, cargo, PROJECT
    taken: dict[str, list[tuple[Spent, int]]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, (scenario, argv, tree) in asked.items():
            taken[name].append(_once(scenario, argv, peers, tree))
            print(f"{name:60} {taken[name][-1][0].wall_s:7.2f} s", flush=True)
    return [
        Figure(
            name,
            statistics.median(spent.wall_s for spent, _ in each),
            statistics.median(spent.cpu_s for spent, _ in each),
            statistics.median(spent.peak_bytes for spent, _ in each),
            f"{statistics.median(requests for _, requests in each):.0f}",
        )
        for name, each in taken.items()
    ]


def _once(scenario: Scenario, argv: Argv, peers: Peers, tree: Path) -> tuple[Spent, int]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as directory,
        placed(scenario, peers, Path(directory).resolve(), slots=5) as place,
    ):
        argv_here = argv(replace(place, tree=tree))
        spent = spending(argv_here, where=place.root, environment=place.environment)
        return spent, sum(place.server.seen()["requests"].values())


def saved(made: list[Figure], path: Path) -> None:
    path.write_text(json.dumps([it.__dict__ for it in made]) + "\n")


def read(path: Path) -> list[Figure]:
    return [Figure(**it) for it in json.loads(path.read_text())] if path.exists() else []
