"""A state directory that means harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.case import sampled
from hostile.state import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", sampled(CASES), ids=lambda case: case.name)
def test_state(case: Case, judge: Judge) -> None:
    """R32, R36, R40, R52"""
    judge(case)
