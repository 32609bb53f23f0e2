"""Python's garbage collector, kept out of the way while large, lasting structures are built."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def gc_paused() -> Iterator[None]:
    """Nothing that is built in here becomes garbage, and the collector would walk over it again and
    again as it grows. https://docs.python.org/3/library/gc.html#gc.disable
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
