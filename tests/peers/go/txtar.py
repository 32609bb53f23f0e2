"""Many files in one, as Go's tests have them: https://pkg.go.dev/golang.org/x/tools/txtar"""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(rb"^-- (.+?) --[ \t\r]*\n", re.MULTILINE)


def read(data: bytes) -> tuple[str, dict[str, bytes]]:
    """What stands above the files, and these by their names, the last of each."""
    above, *pairs = _MARK.split(data)
    names = (each.decode(errors="surrogateescape").strip() for each in pairs[::2])
    contents = (each if not each or each.endswith(b"\n") else each + b"\n" for each in pairs[1::2])
    return above.decode(errors="surrogateescape"), dict(zip(names, contents, strict=True))
