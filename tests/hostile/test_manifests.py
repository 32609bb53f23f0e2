"""Files of the workspace that mean harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.case import sampled
from hostile.manifests import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", sampled(CASES), ids=lambda case: case.name)
def test_manifest(case: Case, judge: Judge) -> None:
    """R35, R36, R40, R51, R52"""
    judge(case)
