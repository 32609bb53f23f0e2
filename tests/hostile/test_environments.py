"""Environments that mean harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.environments import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_environment(case: Case, judge: Judge) -> None:
    """R34, R39, R40, R50, R51"""
    judge(case)
