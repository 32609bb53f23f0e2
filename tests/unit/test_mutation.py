from __future__ import annotations

from pathlib import Path

import pytest

import releasekit
from crash.mutants import JUDGES
from crash.mutants import MUTANTS as CRASH_MUTANTS
from mutation import Edit, EditError, Mutant, always, change, mutants, never, without
from simulation.mutations import MUTANTS as SCHEDULER_MUTANTS

SOURCE = Path(releasekit.__file__).parent
LIMIT = '''
LIMIT = 5
SHARED: set[int] = {1, 2}

class Lane:
    """Of a road."""

    def free(self, busy):  # comments go
        if self.open and busy < LIMIT or self.wide:
            record(busy, mode=OPEN | NEW, times=None)
        return LIMIT - busy

    def close(self):
        with lock(), timing():
            self.open = False
        return [car for car in self if car.moving]
'''


def edited(edit: Edit) -> list[str]:
    """The lines that the edit brings in."""
    before = Mutant("none", "lane", ()).applied(LIMIT).splitlines()
    after = Mutant("one", "lane", (edit,)).applied(LIMIT).splitlines()
    return [line.strip() for line in after if line not in before]


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        (change("LIMIT", "5", "6"), ["LIMIT = 6"]),
        (without("SHARED", "2"), ["SHARED: set[int] = {1}"]),
        (change("Lane.free", "LIMIT-busy", "LIMIT - busy - 1"), ["return LIMIT - busy - 1"]),
        (
            never("Lane.free", "self.open and busy<LIMIT"),
            ["if False or self.wide:"],
        ),
        (always("Lane.free", "busy < LIMIT"), ["if self.open and True or self.wide:"]),
        (without("Lane.free", "self.wide"), ["if self.open and busy < LIMIT:"]),
        (without("Lane.free", "busy < LIMIT"), ["if self.open or self.wide:"]),
        (without("Lane.free", "NEW"), ["record(busy, mode=OPEN, times=None)"]),
        (without("Lane.free", "OPEN"), ["record(busy, mode=NEW, times=None)"]),
        (without("Lane.free", "times=None"), ["record(busy, mode=OPEN | NEW)"]),
        (
            change("Lane.free", "times=None", "times=busy"),
            ["record(busy, mode=OPEN | NEW, times=busy)"],
        ),
        (without("Lane.free", "record(busy, mode=OPEN|NEW, times=None)"), ["pass"]),
        (without("Lane.free", "record(...)"), ["pass"]),
        (never("Lane.free", "self.open and ..."), ["if False or self.wide:"]),
        (without("Lane.close", "timing()"), ["with lock():"]),
        (without("Lane.close", "car.moving"), ["return [car for car in self]"]),
        (change("Lane.close", "self.open = False", "halt(); stop()"), ["halt()", "stop()"]),
    ],
)
def test_an_edit_changes_what_it_names(edit: Edit, lines: list[str]) -> None:
    assert edited(edit) == lines


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (never("Lane.free", "self.shut"), "'self.shut' is there 0 times"),
        (change("Lane.free", "busy", "0"), "'busy' is there 3 times"),
        (change("LIMIT", "5", "(5)"), "'5' becomes what it was"),
        (change("LIMIT", "5", "del x"), "a Constant cannot become that"),
        (never("Lane.shut", "self.open"), "'shut' is defined 0 times"),
    ],
)
def test_an_edit_that_does_not_fit_says_where(edit: Edit, why: str) -> None:
    (mutant,) = mutants("lane", {"broken": edit})
    with pytest.raises(EditError) as caught:
        mutant.applied(LIMIT)
    assert str(caught.value) == f"broken: lane: {edit.scope}: {why}"


@pytest.mark.parametrize(
    "mutant", [*SCHEDULER_MUTANTS, *CRASH_MUTANTS], ids=lambda mutant: mutant.name
)
def test_every_mutant_fits_the_code(mutant: Mutant) -> None:
    mutated = mutant.applied((SOURCE / f"{mutant.module}.py").read_text())
    compile(mutated, mutant.module, "exec")


def test_every_mutant_has_a_name_of_its_own_and_a_judge() -> None:
    for chosen in (SCHEDULER_MUTANTS, CRASH_MUTANTS):
        assert len({mutant.name for mutant in chosen}) == len(chosen)
    assert {mutant.module for mutant in CRASH_MUTANTS} == JUDGES.keys()
