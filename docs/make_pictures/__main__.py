"""Writes what has changed; with `--check` it writes nothing, and ends with status 1 if it would.

What needs a browser is left out with `--check`: another Chromium, or other fonts, draw otherwise.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import make_pictures
from make_pictures import chromium, review, screenshots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DOCS: Final = Path(__file__).resolve().parents[1]
PICTURES: Final = DOCS / "pictures"
BUILD: Final = DOCS.parent / "build"


def drawn() -> Iterator[tuple[Path, bytes]]:
    """Every file that is the same wherever it is made: what the modules say that draw text."""
    for found in pkgutil.iter_modules(make_pictures.__path__, "make_pictures."):
        module = import_module(found.name)
        texts = module.pictures() if hasattr(module, "pictures") else {}
        for name, text in texts.items():
            yield PICTURES / name, text.encode()
    yield DOCS / "examples" / "staged-summary.md", review.staged_summary().encode()


def shown() -> Iterator[tuple[Path, bytes]]:
    """What Chromium shows of a page; the pages themselves stay in build/pictures/."""
    if chromium.program() is None:
        print("left alone, without chromium: the pictures of summaries and of report pages")
        return
    for name, png in screenshots.taken(BUILD / "pictures", BUILD / "site" / "index.html"):
        yield PICTURES / name, png


def stale(files: Iterable[tuple[Path, bytes]]) -> Iterator[tuple[Path, bytes]]:
    for path, data in files:
        if not path.exists() or path.read_bytes() != data:
            yield path, data


def main() -> int:
    check = "--check" in sys.argv[1:]
    changed = False
    for path, data in stale(chain(drawn(), () if check else shown())):
        print(path.relative_to(DOCS.parent))
        changed = True
        if not check:
            path.write_bytes(data)
    return 1 if changed and check else 0


if __name__ == "__main__":
    sys.exit(main())
