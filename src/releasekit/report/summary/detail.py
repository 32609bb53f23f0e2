"""How much a summary says, so that it stays within its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """`rows` bounds each table and each list of names, `chars` each reason and hint, `logs` the
    number of build logs.
    """

    rows: int
    chars: int
    logs: int
    files: bool
    pictures: bool


# Each step leaves out what a reader misses least. The last one stays below 300 kB even when every
# character has to be escaped.
DETAILS: Final = (
    Detail(rows=2_000, chars=1_000, logs=9, files=True, pictures=True),
    Detail(rows=2_000, chars=300, logs=9, files=False, pictures=True),
    Detail(rows=500, chars=300, logs=3, files=False, pictures=True),
    Detail(rows=100, chars=200, logs=0, files=False, pictures=False),
    Detail(rows=15, chars=200, logs=0, files=False, pictures=False),
)
