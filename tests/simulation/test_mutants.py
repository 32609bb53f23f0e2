"""A battery that lets a broken scheduler pass proves nothing."""

from __future__ import annotations

import pytest

from simulation.mutants import try_out_all
from simulation.mutations import MUTANTS


@pytest.fixture(scope="module")
def caught() -> dict[str, str]:
    return try_out_all()


def test_the_unchanged_code_passes(caught: dict[str, str]) -> None:
    assert caught[""] == ""


@pytest.mark.parametrize("name", [mutant.name for mutant in MUTANTS])
def test_the_mutant_is_caught(name: str, caught: dict[str, str]) -> None:
    assert caught[name] != ""
