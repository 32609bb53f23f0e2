"""R51, R52, R53: what builds plant for whoever runs outside of their sandbox is never followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.planted import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_a_build_plants(case: Case, judge: Judge) -> None:
    """R51, R52, R53: nothing outside changes, and the run ends in time, with a word why."""
    judge(case)
