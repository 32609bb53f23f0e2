"""What a program that failed says went wrong: one line of all that it has printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAX_CHARS: Final = 300

_MAX_LINE: Final = 2_000
# A compiler's error with its place, the first of which the others may follow from: gcc, clang,
# javac (`a.c:3:1: error: …`), tsc (`a.ts(3,1): error TS2304: …`, for people `a.ts:3:1 - error …`)
# and go (`a.go:3:1: …`).
_LOCATED: Final = re.compile(
    r"\S[^:(]*(?::\d+(?::\d+)?(?:: (?:fatal )?| - )error\b|\(\d+,\d+\): error |\.go:\d+:\d+: ).*"
)
# rustc's and cargo's stand above the place: `error[E0425]: cannot find value`.
_RUST: Final = re.compile(r"error(?:\[E\d+\])?: (?!could not compile|aborting|[|>]-?$).+")
# What bundlers say: esbuild and vite, and rollup.
_BUNDLER: Final = re.compile(r"(?:[✘X] \[ERROR\]|\[!\]) (.+)")
# A test that failed, as TAP and as node's, vitest's and jest's reporters put it.
_TEST: Final = re.compile(
    r"(?:not ok \d+ - |✖ (?!failing tests:)|FAIL ++(?=.* > )|● (?=.* \u203a )).+"
)
# The end of a traceback, and the top of one of node's.
_RAISED: Final = re.compile(
    r"(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Exit|Interrupt)(?: \[\w+\])?(?:: .+)?"
)
# What uv says at the end of its explanation, and what pip and many others begin with.
_SAID: Final = re.compile(r"(?:╰─▶ |(?:error|ERROR): (?![|>]-?$))(.+)")
# What uv adds below an error, the deepest cause last.
_DEEPER: Final = re.compile(r"(?:Caused by|cause): (.+)")
_ABSENT: Final = re.compile(
    r"(?:/\S*/)?(?:ba|da|z)?sh: (?:(?:line )?\d+: )?(\S+: (?:command )?not found)"
)
# What mvn says of a goal, behind the classes of its exceptions.
_MAVEN: Final = re.compile(
    r"\[ERROR\] Failed to execute goal (?:.*Exception: )?(.+?)(?: -> \[Help \d+\])?"
)
# What it says where it comes to no goal, such as of a plugin that it cannot have.
_MAVEN_SAID: Final = re.compile(r"\[ERROR\] (.+?)(?: -> \[Help \d+\])?")
# What go says of a module that it cannot have, and what pnpm says.
_GO: Final = re.compile(r"(?:.* )?([^\s@]++@v\d[^\s:]*+: .+)")
_PNPM: Final = re.compile(r"ERR_PNPM_\w+\s+(.+)")
# npm's own, without those that name what every one of its failures has.
_NPM: Final = re.compile(
    r"npm (?:error|ERR!) (?!code |path |errno |syscall |dest |signal |workspace |location |"
    r"command |A complete log|Lifecycle script|\s)(.+)"
)


def find_cause(lines: Sequence[str]) -> str:
    """The first error of a compiler, else the first test that failed, else the last exception, else
    the last line that calls itself an error; empty where nothing does. It may hold anything but
    control characters.
    """
    stripped = [line[:_MAX_LINE].strip() for line in lines]
    for pattern, candidates in (
        (_LOCATED, stripped),
        (_RUST, stripped),
        (_BUNDLER, stripped),
        (_TEST, stripped),
        (_MAVEN, stripped),
        (_RAISED, stripped[::-1]),
        (_ABSENT, stripped[::-1]),
        (_SAID, stripped[::-1]),
        (_NPM, stripped),
        (_PNPM, stripped),
        (_GO, stripped),
        (_MAVEN_SAID, stripped),
    ):
        for line in candidates:
            if found := pattern.fullmatch(line):
                words = found[found.lastindex or 0]
                if pattern in {_RUST, _SAID}:
                    below = filter(None, map(_DEEPER.fullmatch, stripped[stripped.index(line) :]))
                    words = ": ".join([words, *[deeper[1] for deeper in below][-1:]])
                return clip(visible(words), _MAX_CHARS)
    return ""
