"""What starting costs: entrypoint.sh beside a bare Python and beside `uv run`.

    python bench/start.py [--rounds 20] [--cold 3] [--uv PATH]

Each round runs every way once, so that a busy machine slows all of them alike; environments are
made before the first round. `--cold` counts rounds in which there is neither an environment nor a
cache to make one from, once without uv and once with it: what a new runner takes. It needs the
network, or an index near by.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

PROJECT = Path(__file__).resolve().parents[1]


def ways(uv: str) -> dict[str, list[str]]:
    """What a table calls it, and what runs."""
    python = [sys.executable, "-I", "-u", "-X", "utf8"]
    entry = str(PROJECT / "entrypoint.sh")
    ours = str(PROJECT / "src" / "__main__.py")
    return {
        "`python -c pass`": [*python, "-c", "pass"],
        "`python src/__main__.py --version`": [*python, ours, "--version"],
        "`./entrypoint.sh --version`": [entry, "--version"],
        "`./entrypoint.sh publish --help`": [entry, "publish", "--help"],
        "`uv run releasekit --version`": [
            *(uv, "run", "--quiet", "--frozen", "--no-dev", "--project", str(PROJECT)),
            *("releasekit", "--version"),
        ],
    }


def seconds(argv: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        argv, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - began


def cold(uv: str, rounds: int) -> dict[str, list[float]]:
    """`publish --help` by an entrypoint.sh that finds nothing, and has all of PATH but uv."""
    entry = str(PROJECT / "entrypoint.sh")
    took: dict[str, list[float]] = {"cold, by pip": [], "cold, by uv": []}
    for _ in range(rounds):
        for name, times in took.items():
            with tempfile.TemporaryDirectory() as scratch:
                kept = [it for it in os.environ["PATH"].split(":") if not Path(it, "uv").exists()]
                environment = {
                    **{k: v for k, v in os.environ.items() if not k.startswith(("UV_", "PIP_"))},
                    **{k: v for k, v in os.environ.items() if k == "PIP_CERT"},
                    **({"RELEASEKIT_UV_PATH": uv} if name == "cold, by uv" else {}),
                    "PATH": ":".join(kept),
                    "HOME": scratch,
                    "XDG_STATE_HOME": "",
                }
                times.append(seconds([entry, "publish", "--help"], environment))
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, metavar="N")
    parser.add_argument("--cold", type=int, default=0, metavar="N")
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    parser.add_argument("--uv", default=uv, metavar="PATH")
    chosen = parser.parse_args()
    # In /tmp, where builds may write, entrypoint.sh takes no state.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        environment = {**os.environ, "XDG_STATE_HOME": scratch}
        environment["RELEASEKIT_UV_PATH"] = chosen.uv
        environment["UV_PROJECT_ENVIRONMENT"] = str(Path(scratch, "environment"))
        compared = ways(chosen.uv)
        first = {name: seconds(argv, environment) for name, argv in compared.items()}
        took: dict[str, list[float]] = {name: [] for name in compared}
        for _ in range(chosen.rounds):
            for name, argv in compared.items():
                took[name].append(seconds(argv, environment))
    took |= {name: times for name, times in cold(chosen.uv, chosen.cold).items() if times}
    first |= {name: times[0] for name, times in took.items() if name not in first}
    bare_s = min(took["`python -c pass`"])
    print("| command | first, ms | best, ms | median, ms | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, times in took.items():
        cells = " | ".join(f"{s * 1e3:.0f}" for s in (first[name], min(times), median(times)))
        print(f"| {name} | {cells} | {min(times) / bare_s:.1f} |")


if __name__ == "__main__":
    main()
