"""How much is tried: a fixed sample in each test run, all of it in a long search."""

from __future__ import annotations

import os
from typing import Final

SEARCHING: Final = "SEARCH" in os.environ


def tries(variable: str, *, sample: int, all_of_them: int) -> int:
    """As many as the environment variable says, where it is set."""
    return int(os.environ.get(variable, all_of_them if SEARCHING else sample))
