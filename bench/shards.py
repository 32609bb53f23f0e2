"""What splitting a release over many jobs brings, on a clock that does not wait: the real publish
line in every job, over one registry with its lag and its limits. Builds are simulated.

    python bench/shards.py [--quick]

The bound is what no release can beat: all work over all CPUs, the longest path with the lag of the
registry, and how many packages the registry takes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("src", "tests")]

from releasekit.ecosystems.cargo.rates import NEW_VERSIONS, Limit
from simulation.many_jobs import NO_LIMIT, Index, layers, lower_bound_s, release

BUILD_S, LAG_S, BUILDS = 2.0, 3.0, 2


class Row(NamedTuple):
    """`width` packages in each of `depth` levels."""

    width: int
    depth: int
    jobs: int
    limit: Limit = NO_LIMIT


QUICK = (Row(40, 5, 1), Row(40, 5, 4), Row(100, 6, 12), Row(50, 6, 4, NEW_VERSIONS))
LARGE = (Row(1_000, 10, 1), Row(1_000, 10, 10), Row(1_000, 10, 50))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the 10,000 packages")
    rows = QUICK if parser.parse_args().quick else (*QUICK, *LARGE)
    print("packages  jobs  limit         takes     bound  ratio  cut  questions  simulated in")
    for row in rows:
        print(measured(row), flush=True)


def measured(row: Row) -> str:
    packages = layers(row.width, row.depth)
    seconds = {each.id: BUILD_S for each in packages}
    index = Index(lag_s=LAG_S, limit=row.limit)
    bound_s = lower_bound_s(packages, seconds, index, jobs=row.jobs, builds=BUILDS)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        found = release(Path(place), packages, seconds, index, jobs=row.jobs, builds=BUILDS)
    real_s = time.perf_counter() - began
    assert len(index.puts) == len(packages), found.outcomes
    assert not index.early
    edges = [(each.id, need.on) for each in packages for need in each.dependencies]
    cut = sum(found.parts[one] != found.parts[other] for one, other in edges) / len(edges)
    limit = "none" if row.limit is NO_LIMIT else f"{row.limit.burst}, 1/min"
    return (
        f"{len(packages):8}  {row.jobs:4}  {limit:9}  {found.took_s:7.1f} s  {bound_s:6.1f} s"
        f"  {found.took_s / bound_s:5.2f}  {cut:3.0%}  {index.questions:9}  {real_s:6.1f} s"
    )


if __name__ == "__main__":
    main()
