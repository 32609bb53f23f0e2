"""How long to wait before the next try: the same for tasks and for reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

MAX_DELAY_S: Final = 60.0


def backoff(retry: int, base_s: float, rng: random.Random) -> float:
    """Seconds, with full jitter; `retry` counts from 0.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    # 2**64 times any delay that matters is beyond the cap; without a bound it overflows.
    return rng.uniform(0.0, min(math.ldexp(base_s, min(retry, 64)), MAX_DELAY_S))
