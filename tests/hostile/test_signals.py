"""Signals at every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.signals import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_signal(case: Case, judge: Judge) -> None:
    """R28, R29, R40, R51"""
    judge(case)
