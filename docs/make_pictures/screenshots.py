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

    from playwright.sync_api import Browser

# Of the page; whoever reads on there is shown that there is more.
_MOST_HEIGHT: Final = 1_500


def taken(pages: Path) -> Iterator[tuple[str, bytes]]:
    """Names and PNGs; `pages` is where the pages go that they show."""
    pages.mkdir(parents=True, exist_ok=True)
    with chromium.browser() as browser:
        for size in SIZES:
            for theme in chromium.THEMES:
                name = f"summary-{size}-{theme}"
                text = summary(release(size))
                yield f"{name}.png", _summary(browser, pages / f"{name}.html", text, theme)


def _summary(browser: Browser, file: Path, text: str, theme: chromium.Theme) -> bytes:
    file.write_text(summaries.page(text, npm_files(), theme=theme))
    with chromium.shown(
        browser, file, width=summaries.WIDTH, height=_MOST_HEIGHT, theme=theme
    ) as page:
        if troubles := summaries.drawn(page).troubles:
            raise SystemExit(f"{file}: {troubles}")
        return chromium.picture(page, most_height=_MOST_HEIGHT)
