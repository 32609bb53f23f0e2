"""Does the battery notice a broken scheduler? `python tests/simulation/mutants.py` tells."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulation.mutations import MUTANTS
from trials import report, try_out

if TYPE_CHECKING:
    from mutation import Mutant


def trial(mutant: Mutant | None) -> str:
    return try_out(mutant, ["-m", "simulation.judge"])


if __name__ == "__main__":
    sys.exit(report(MUTANTS, trial))
