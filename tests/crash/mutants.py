"""Do the tests notice broken code? Each mutant is one edit of the source, and has to be caught.

`python tests/crash/mutants.py` prints by which test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash.mutations import MUTANTS as STATE_MUTANTS
from crash.mutations import Mutant
from crash.release_mutations import RELEASE_MUTANTS

MUTANTS = (*STATE_MUTANTS, *RELEASE_MUTANTS)

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "releasekit"
GIVE_UP_S = 60.0

# The quickest first: a mutant need not get past the rest.
PINS = ("unit/test_pins.py", "unit/test_durable.py", "crash/test_power_loss.py")
JOURNAL = (
    "unit/test_journal.py",
    "unit/test_logfile.py",
    "crash/test_shared_journal.py",
    "crash/test_journal_damage.py",
    "crash/test_power_loss.py",
)
RELEASE = (
    "unit/test_decision.py",
    "unit/test_life.py",
    "unit/test_plan.py",
    "unit/test_release.py",
    "unit/test_deployment.py",
    "simulation/test_publish_line.py",
)
JUDGES = {
    "host/durable": PINS,
    "state/pins": PINS,
    "state/locks": ("unit/test_locks.py", "crash/test_lock_hammer.py"),
    "state/journal": JOURNAL,
    "state/logfile": JOURNAL,
    "state/history": JOURNAL,
    "state/compaction": ("unit/test_compaction.py",),
    **dict.fromkeys(
        ("plan/decision", "plan/make", "release/phases", "release/release", "release/life"), RELEASE
    ),
    "": ("unit/test_locks.py", "crash/test_lock_hammer.py", *PINS, *JOURNAL[:4], *RELEASE),
}


def try_out(mutant: Mutant | None) -> str:
    """By which test the mutant was caught; empty when by none. None is the unchanged code."""
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "releasekit"
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            module = package / f"{mutant.module}.py"
            text = module.read_text()
            if text.count(mutant.old) != 1:
                raise ValueError(f"{mutant.name}: its edit fits {text.count(mutant.old)} times")
            module.write_text(text.replace(mutant.old, mutant.new))
        try:
            ended = subprocess.run(
                _pytest(directory, JUDGES[mutant.module if mutant else ""]),
                cwd=ROOT,
                env=_environment(),
                capture_output=True,
                text=True,
                timeout=GIVE_UP_S if mutant else 15 * GIVE_UP_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not over after {GIVE_UP_S:g} s"
    if not ended.returncode:
        return ""
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0][:150] if failed else ended.stdout[-500:]


def _environment() -> dict[str, str]:
    """Ours, without what would make the child add a mutant's lines to our coverage."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COV")}
    return {**kept, "SOAK": "0.2", "RELEASES": "600"}


def _pytest(directory: str, judges: tuple[str, ...]) -> list[str]:
    return [
        *(sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", "-p", "no:cov"),
        *("-o", f"pythonpath={directory} tests", "-k", "not 50_ms", "--tb=no"),
        *(f"tests/{judge}" for judge in judges),
    ]


def main() -> int:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        broken, *caught = pool.map(try_out, (None, *MUTANTS))
    for mutant, by in zip(MUTANTS, caught, strict=True):
        print(f"{'caught  ' if by else 'SURVIVED'} {mutant.name}: {by}")  # noqa: T201
    print(f"{sum(map(bool, caught))} of {len(caught)} mutants caught")  # noqa: T201
    if broken:
        print(f"but the unchanged code fails as well: {broken}")  # noqa: T201
    return 0 if all(caught) and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
