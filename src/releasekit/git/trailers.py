"""What the message of a commit of ours ends with: what its versions were decided on, and what it
edits.
"""

from __future__ import annotations

import re
from typing import Final

_BASE: Final = re.compile(r"^ReleaseKit-Base: ([0-9a-f]{40})[ \t\r]*$", re.MULTILINE)
_EDITS: Final = re.compile(r"^ReleaseKit-Edits: ([0-9a-f]{64})[ \t\r]*$", re.MULTILINE)
_TEXT: Final = re.compile(r"^ReleaseKit-Text: ([0-9a-f]{40})[ \t\r]*$", re.MULTILINE)


def find_base(message: str) -> str:
    """The commit that the versions of this one were decided on: the last valid line of ours,
    wherever it stands; empty where there is none.
    """
    return next(reversed(_BASE.findall(message)), "")


def find_edits(message: str) -> str:
    """What names the edits of a commit of ours, as `name_edits` does; empty where it is none."""
    return next(reversed(_EDITS.findall(message)), "")


def write_base(commit: str) -> str:
    """The line that `find_base` finds."""
    return f"ReleaseKit-Base: {commit}"


def find_text(message: str) -> str:
    """The blob that has what its pull request says; empty where it names none."""
    return next(reversed(_TEXT.findall(message)), "")


def write_trailers(base: str, edits: str, text: str) -> str:
    """What the message of a commit of ours ends with."""
    return f"{write_base(base)}\nReleaseKit-Edits: {edits}\nReleaseKit-Text: {text}"
