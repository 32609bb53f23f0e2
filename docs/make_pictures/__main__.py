"""Writes what has changed; with `--check` it writes nothing, and ends with status 1 if it would."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from make_pictures import review

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCS: Final = Path(__file__).resolve().parents[1]
PICTURES: Final = DOCS / "pictures"


def drawn() -> dict[Path, str]:
    """Every file that is the same wherever it is made."""
    pictures = review.pictures()
    return {PICTURES / name: text for name, text in pictures.items()} | {
        DOCS / "examples" / "staged-summary.md": review.staged_summary()
    }


def stale(files: Mapping[Path, str]) -> list[Path]:
    return [path for path, text in files.items() if not path.exists() or path.read_text() != text]


def main() -> int:
    files, check = drawn(), "--check" in sys.argv[1:]
    changed = stale(files)
    for path in changed:
        print(path.relative_to(DOCS.parent))
        if not check:
            path.write_text(files[path])
    return 1 if changed and check else 0


if __name__ == "__main__":
    sys.exit(main())
