"""Pictures of what is shown in a browser: job summaries, report pages, and the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from make_pictures import chromium, summaries
from make_pictures.npm_files import npm_files
from make_pictures.releases import SIZES, release
from releasekit.report.page import report_page
from releasekit.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from make_pictures.chromium import Theme
    from releasekit.model import Report

# Whoever reads on below sees that there is more.
_MOST_HEIGHT: Final = 1_900
_SCREEN: Final = (1_280, 1_000)
# The first screen of it is shown.
_PHONE: Final = (390, 844)
# A page of A4 between its margins.
_PAPER: Final = (700, 1_000)


def taken(pages: Path, site: Path) -> Iterator[tuple[str, bytes]]:
    """Names and PNGs; `pages` is where the pages go that they show, and `site` the front page of
    the documentation.
    """
    pages.mkdir(parents=True, exist_ok=True)
    with chromium.browser() as browser:
        for size in SIZES:
            for theme in chromium.THEMES:
                for kind, show in (("summary", _summary), ("report", _report)):
                    file = pages / f"{kind}-{size}-{theme}.html"
                    yield f"{file.stem}.png", show(browser, file, release(size), theme)
        for kind, show, window in (
            ("summary-phone", _summary, _PHONE),
            ("report-phone", _report, _PHONE),
            ("report-print", _report, _PAPER),
        ):
            file = pages / f"{kind}.html"
            yield f"{file.stem}.png", show(browser, file, release(6), "light", window)
        for name, theme, window in (("site", "light", _SCREEN), ("site-phone", "dark", _PHONE)):
            with chromium.shown(browser, site, window, theme) as page:
                yield f"{name}.png", chromium.picture(page, most_height=window[1])


def _summary(
    browser: Browser,
    file: Path,
    report: Report,
    theme: Theme,
    window: tuple[int, int] = (summaries.WIDTH, _MOST_HEIGHT),
) -> bytes:
    file.write_text(summaries.page(summary(report), npm_files(), theme=theme))
    with chromium.shown(browser, file, window, theme) as page:
        if troubles := summaries.drawn(page).troubles:
            raise SystemExit(f"{file}: {troubles}")
        return chromium.picture(page, most_height=window[1])


def _report(
    browser: Browser,
    file: Path,
    report: Report,
    theme: Theme,
    window: tuple[int, int] = _SCREEN,
) -> bytes:
    file.write_text(report_page(report))
    with chromium.shown(browser, file, window, theme) as page:
        if window == _PAPER:
            page.evaluate("dispatchEvent(new Event('beforeprint'))")
            page.emulate_media(media="print")
        most_height = _MOST_HEIGHT if window == _SCREEN else window[1]
        return chromium.picture(page, most_height=most_height)
