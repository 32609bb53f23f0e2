"""What a program that failed says went wrong: one line of all that it has printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHARS: Final = 300

# A compiler's error with its place, the first of which the others may follow from: gcc, clang,
# javac and go (`a.c:3:1: error: …`), tsc (`a.ts(3,1): error TS2304: …`).
_LOCATED: Final = re.compile(r"\S[^:(]*(?::\d+(?::\d+)?: (?:fatal )?error\b|\(\d+,\d+\): error ).*")
# rustc's and cargo's stand above the place: `error[E0425]: cannot find value`.
_RUST: Final = re.compile(r"error(?:\[E\d+\])?: (?!could not compile|aborting).+")
# The end of a traceback, and the top of one of node's.
_RAISED: Final = re.compile(
    r"(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|Interrupt)(?: \[\w+\])?(?:: .+)?"
)
# What uv says at the end of its explanation, and what pip and many others begin with.
_SAID: Final = re.compile(r"(?:╰─▶ |(?:error|ERROR): )(.+)")


def cause_in(lines: Sequence[str]) -> str:
    """The first error of a compiler, else the last exception, else the last line that calls itself
    an error; empty where nothing does. It may hold anything but control characters.
    """
    stripped = [line.strip() for line in lines]
    for pattern, candidates in (
        (_LOCATED, stripped),
        (_RUST, stripped),
        (_RAISED, stripped[::-1]),
        (_SAID, stripped[::-1]),
    ):
        for line in candidates:
            if found := pattern.fullmatch(line):
                return clip(visible(found[found.lastindex or 0]), _MAX_CHARS)
    return ""
