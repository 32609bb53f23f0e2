"""Tests that let broken code pass prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crash.mutants import CHOSEN, trial
from effort import SEARCHING
from integration.tools import require_tool

if TYPE_CHECKING:
    from mutation import Mutant


@pytest.fixture(autouse=True)
def _strace() -> None:
    require_tool("strace")


if SEARCHING:  # each test run has the judges themselves

    def test_the_unchanged_code_passes() -> None:
        assert trial(None) == ""


@pytest.mark.parametrize("mutant", CHOSEN, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant: Mutant) -> None:
    assert trial(mutant) != ""
