from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from releasekit.backoff import backoff


@given(st.integers(0, 10_000), st.floats(0.001, 60), st.integers())
def test_backoff_is_full_jitter_up_to_a_minute(attempt: int, base: float, seed: int) -> None:
    """R12"""
    delay = backoff(attempt, base, random.Random(seed))
    assert 0 <= delay <= min(base * 2 ** min(attempt, 20), 60)
