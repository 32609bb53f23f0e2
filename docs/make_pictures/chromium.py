"""Pages shown in a headless Chromium, that of the system: what becomes of them, how they look."""

from __future__ import annotations

import contextlib
import io
import math
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

Theme = Literal["light", "dark"]
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Pixels of a picture for each one of the page: letters stay sharp on a screen of today.
_SCALE: Final = 1.5
_COLOURS: Final = 256


def program() -> str | None:
    """Where it is, if there is one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """It shows pages of this repository alone; in a container, it has no sandbox of its own."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program(),
            args=["--no-sandbox", "--font-render-hinting=none", "--force-color-profile=srgb"],
        )
        try:
            yield started
        finally:
            started.close()


@contextlib.contextmanager
def shown(browser: Browser, file: Path, window: tuple[int, int], theme: Theme) -> Iterator[Page]:
    """The page in a window of that size, without a network and without what moves."""
    page = browser.new_page(
        viewport={"width": window[0], "height": window[1]},
        device_scale_factor=_SCALE,
        color_scheme=theme,
        reduced_motion="reduce",
        offline=True,
    )
    try:
        page.set_default_timeout(120_000)
        page.goto(file.as_uri())
        yield page
    finally:
        page.close()


def picture(page: Page, *, most_height: int) -> bytes:
    """A PNG of few colours: the whole page, or its upper part if it is longer than that."""
    from PIL import Image  # noqa: PLC0415 (tests, which take no pictures, do without it)

    height = page.evaluate("Math.ceil(document.documentElement.getBoundingClientRect().height)")
    size = page.viewport_size or {"width": 0, "height": 0}
    page.set_viewport_size({"width": size["width"], "height": min(height, most_height)})
    with Image.open(io.BytesIO(page.screenshot(animations="disabled", caret="hide"))) as shot:
        colours = shot.convert("RGB")
    pixels = list(colours.getdata())
    # The commonest stay what they are, and the edges of letters get the nearest of these: methods
    # of Pillow tint what is white, or grey what is small.
    counted = Counter(pixels)
    kept = [colour for colour, _ in counted.most_common(_COLOURS)]
    nearest = {
        one: min((math.dist(other, one), place) for place, other in enumerate(kept))[1]
        for one in counted
    }
    few = Image.frombytes("P", colours.size, bytes(map(nearest.__getitem__, pixels)))
    few.putpalette([part for colour in kept for part in colour])
    png = io.BytesIO()
    few.save(png, "PNG", optimize=True)
    return png.getvalue()
