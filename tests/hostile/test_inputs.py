"""Values of inputs, arguments and configuration that mean harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.case import sampled
from hostile.inputs import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", sampled(CASES), ids=lambda case: case.name)
def test_input(case: Case, judge: Judge) -> None:
    """R34, R35, R40, R50, R52"""
    judge(case)
