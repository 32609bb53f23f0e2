"""Do the tests notice a state or a release that is broken? `python tests/crash/mutants.py` prints
which of them do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash.group_mutations import MUTANTS as GROUP_MUTANTS
from crash.mutations import MUTANTS as STATE_MUTANTS
from crash.release_mutations import MUTANTS as RELEASE_MUTANTS
from effort import SEARCHING
from trials import report, try_out

if TYPE_CHECKING:
    from mutation import Mutant

MUTANTS = (*STATE_MUTANTS, *RELEASE_MUTANTS, *GROUP_MUTANTS)

# The quickest first: a mutant need not get past the rest.
PINS = ("unit/state/test_pins.py", "unit/host/test_durable.py", "crash/test_power_loss.py")
JOURNAL = (
    "unit/state/test_journal.py",
    "unit/state/test_logfile.py",
    "crash/test_shared_journal.py",
    "crash/test_journal_damage.py",
    "crash/test_power_loss.py",
)
RELEASE = (
    "unit/plan/test_decision.py",
    "unit/release/test_life.py",
    "unit/plan/test_make.py",
    "unit/release/test_release.py",
    "unit/release/test_deployment.py",
    "unit/release/test_staging.py",
    "unit/release/test_attesting.py",
    "unit/release/test_hold.py",
    "simulation/test_publish_line.py",
)
JUDGES = {
    "aio": ("unit/test_aio.py",),
    "host/durable": PINS,
    **dict.fromkeys(
        ("host/folder", "state/directory"),
        ("unit/host/test_folder.py", "unit/state/test_hostile_state.py"),
    ),
    "state/pins": PINS,
    "state/lock_order": ("unit/state/test_lock_order.py",),
    "state/locks": ("unit/state/test_locks.py", "crash/test_lock_hammer.py"),
    "release/attesting": ("unit/release/test_attesting.py",),
    "release/sources": ("unit/release/test_sources.py",),
    "release/sibling_jobs": ("unit/release/test_foreign.py",),
    "state/journal": JOURNAL,
    "state/history": ("unit/state/test_compaction.py", *JOURNAL),
    "plan/order": ("unit/plan/test_order.py",),
    "graph": ("unit/test_graph.py",),
    "plan/registries": ("unit/plan/test_staged.py",),
    "release/tasks": ("unit/release/test_foreign.py", *RELEASE),
    **dict.fromkeys(
        ("release/package_run", "release/uploading"), (*RELEASE, "simulation/test_staged_line.py")
    ),
    "report/view": ("unit/report/test_report.py", "unit/release/test_staging.py"),
    **dict.fromkeys(
        (
            *("plan/decision", "plan/make", "release/events", "release/polling"),
            *("release/building", "release/phases", "release/release", "scheduler/engine"),
        ),
        RELEASE,
    ),
}
# One for each set of judges, unless all is wanted.
CHOSEN = MUTANTS if SEARCHING else {JUDGES[m.module]: m for m in reversed(MUTANTS)}.values()
PYTEST = (
    *("-m", "pytest", "-xq", "-p", "no:cacheprovider", "-p", "no:cov"),
    *("-o", "pythonpath=", "-k", "not 50_ms", "--tb=no"),
)


def trial(mutant: Mutant | None) -> str:
    judges = dict.fromkeys(sum(JUDGES.values(), ())) if mutant is None else JUDGES[mutant.module]
    return try_out(
        mutant,
        [*PYTEST, *(f"tests/{judge}" for judge in judges)],
        environment={"SOAK": "0.2", "RELEASES": "600"},
    )


if __name__ == "__main__":
    sys.exit(report(MUTANTS, trial))
