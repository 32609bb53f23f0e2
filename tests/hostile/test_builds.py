"""R34, R35, R36, R40, R50, R51: whatever a build does and leaves, a run ends as it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hostile.builds import CASES

if TYPE_CHECKING:
    from hostile.case import Case
    from hostile.conftest import Judge


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_a_build_does(case: Case, judge: Judge) -> None:
    """R34, R35, R36, R40, R50, R51"""
    judge(case)
