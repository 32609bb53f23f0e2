"""The grammar of Semantic Versioning, which npm, cargo and Go write. https://semver.org/"""

from __future__ import annotations

import re
from typing import Final

# https://github.com/npm/node-semver/blob/main/internal/constants.js
MAX_CHARS: Final = 256
NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRE: Final = rf"(?:{NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
PRE: Final = rf"{_PRE}(?:\.{_PRE})*"
BUILD: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
VERSION: Final = re.compile(
    rf"({NUMBER})\.({NUMBER})\.({NUMBER})(?:-(?P<pre>{PRE}))?(?:\+(?P<build>{BUILD}))?"
)
