"""What a console has recorded, as a picture of a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich._export_format import CONSOLE_SVG_FORMAT

if TYPE_CHECKING:
    from rich.console import Console

# Without the addresses of fonts: a picture in a page may load nothing.
_FORMAT: Final = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "ui-monospace, Menlo, Consolas"
)


def svg(console: Console, *, title: str, name: str) -> str:
    """On a dark ground of its own, so that it reads the same on a light page and on a dark one."""
    drawn = console.export_svg(title=title, code_format=_FORMAT, unique_id=name)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"
