"""The random tests with ever new seeds until the time is up: `python tests/search.py SECONDS`.

Every round starts where the one before ended. A failure is printed with its seed, and the search
goes on; the exit status is 1 then.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Each a few seconds to a minute: the tests, and how many they run in one round.
ROUND = {
    "releases in bad weather": ("simulation/test_publish_line.py", {"RELEASES": "1000"}),
    "releases that wait": ("simulation/test_staged_line.py", {"RELEASES": "2000"}),
    "real runs": ("crash/test_real_runs.py", {"REAL_RUNS": "5"}),
    "schedules": ("simulation/test_simulation.py", {}),
    "kill points": ("crash/test_kill_points.py", {"SOAK": "1"}),
    "power loss": ("crash/test_power_loss.py", {"SOAK": "4"}),
    "locks": ("crash/test_lock_hammer.py", {"SOAK": "2"}),
    "manifests with changed bytes": ("hostile/test_mutated.py", {"MUTANTS": "200"}),
    # hypothesis draws another seed each time, and prints what fails as code.
    "text for parsers": ("hostile/test_parsers.py", {"EXAMPLES": "400"}),
}


def main() -> int:
    until = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else "120")
    first = random.randrange(10**9)
    failures = rounds = 0
    while time.monotonic() < until:
        for name, (tests, size) in ROUND.items():
            left_s = until - time.monotonic()
            if left_s <= 0:
                break
            start = str(first + 1_000 * rounds)
            names = ("FIRST_RELEASE", "FIRST_REAL_RUN", "FIRST_RUN", "FIRST_MUTANT")
            where = dict.fromkeys(names, start)
            failures += not passes(tests, {**size, **where}, name=name, left_s=left_s)
        rounds += 1
    print(f"{rounds} rounds from seed {first}, {failures} failures")
    return 1 if failures else 0


def passes(tests: str, size: dict[str, str], *, name: str, left_s: float) -> bool:
    """Whether none of these failed; what time ran out for does not count."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cov", f"tests/{tests}"],
            cwd=ROOT,
            env={**os.environ, **size},
            capture_output=True,
            text=True,
            timeout=left_s + 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: not over in time", flush=True)
        return True
    took_s = time.monotonic() - began
    print(f"{name}: {done.stdout.strip().splitlines()[-1]} ({took_s:.0f} s, {size})", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
