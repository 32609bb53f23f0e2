"""What the sandbox costs: one short child after the other, with and without it, taking turns.

python bench/sandbox.py [--rounds 100]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from releasekit.ecosystems import ECOSYSTEMS
from releasekit.host.process import Processes
from releasekit.host.sandbox import chosen


async def measure(rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"without": [], "in the sandbox": []}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sandbox = chosen(
            "required",
            root=root,
            state_directory=root / ".releasekit",
            further=(),
            caches=[cache for each in ECOSYSTEMS.values() for cache in each.caches],
            environment=dict(os.environ),
        )
        async with Processes(environment=dict(os.environ), sandbox=sandbox) as processes:
            for _ in range(rounds):
                for what, values in times.items():
                    began = time.perf_counter()
                    # Outside, nothing starts where builds can write.
                    outside = what == "without"
                    cwd = Path(root.anchor) if outside else root
                    await processes.run(["true"], cwd=cwd, outside=outside)
                    values.append((time.perf_counter() - began) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    for what, values in asyncio.run(measure(parser.parse_args().rounds)).items():
        quarter = statistics.quantiles(values, n=4)
        print(f"{what}: best {min(values):.1f} ms, median {quarter[1]:.1f} ms")


if __name__ == "__main__":
    main()
