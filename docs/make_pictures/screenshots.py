"""Pictures of what is shown in a browser: job summaries, for now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from make_pictures import chromium, summaries
from make_pictures.npm_files import npm_files
from make_pictures.releases import SIZES, release
from releasekit.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Of the page; whoever reads on there is shown that there is more.
_MAX_HEIGHT: Final = 1_500


def pictures(pages: Path) -> Iterator[tuple[str, bytes]]:
    """Names and PNGs; `pages` is where the pages go that they show."""
    pages.mkdir(parents=True, exist_ok=True)
    files = npm_files()
    for size in SIZES:
        for theme in chromium.THEMES:
            name = f"summary-{size}-{theme}"
            page = pages / f"{name}.html"
            page.write_text(summaries.page(summary(release(size)), files, theme=theme))
            _, troubles, height = summaries.drawn(chromium.document(page, width=summaries.WIDTH))
            if troubles:
                raise SystemExit(f"{page}: Mermaid says: {troubles}")
            height = min(height, _MAX_HEIGHT)
            yield (
                f"{name}.png",
                chromium.picture(page, width=summaries.WIDTH, height=height, theme=theme),
            )
