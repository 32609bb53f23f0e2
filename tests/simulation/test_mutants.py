"""A battery that lets a broken scheduler pass proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from mutation import sample
from simulation.mutants import trial
from simulation.mutations import MUTANTS

if TYPE_CHECKING:
    from mutation import Mutant


if SEARCHING:  # each test run has the judges themselves

    def test_the_unchanged_code_passes() -> None:
        assert trial(None) == ""


@pytest.mark.parametrize("mutant", sample(MUTANTS), ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant: Mutant) -> None:
    assert trial(mutant) != ""
