"""The site of the documentation, as `make site` builds it, in a browser."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from documents import ROOT, blocks, statements
from integration.servers import static_server
from integration.tools import require_tool
from make_pictures import chromium
from releasekit import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

# Of the pages with the most kinds of blocks: sessions of Python, commands and what they print.
PAGES = ("index", "scheduler", "getting-started", "verify")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_tool("chromium")
    place: Path = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", place / "docs")
    shutil.copy(ROOT / "zensical.toml", place)
    run = (require_tool("uv"), "run", "--project", ROOT, "--frozen", "--isolated")
    build = ("--only-group", "docs", "zensical", "build", "--strict")
    subprocess.run((*run, *build), cwd=place, check=True, capture_output=True)
    with static_server(place / "build" / "site") as url:
        yield url


@pytest.fixture(scope="module")
def page(site: str) -> Iterator[Page]:
    with chromium.browser() as browser:
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        # GitHub is asked for the number of stars.
        context.route(lambda url: not url.startswith(site), lambda route: route.abort())
        yield context.new_page()


def test_buttons_copy_what_can_be_pasted(site: str, page: Page) -> None:
    for name in PAGES:
        page.goto(f"{site}/{name}.html")
        copied: Counter[str] = Counter()
        for button in page.locator("button[data-md-type=copy]:visible").all():
            button.click()
            text = page.evaluate("navigator.clipboard.readText()")
            copied[textwrap.dedent(text).strip()] += 1
        wanted = Counter(
            (statements(block.text) if block.language == "pycon" else block.text).strip()
            for block in blocks(ROOT / f"docs/{name}.md")
            if block.language != "text"
        )
        assert copied == wanted, name


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_the_front_page_begins_with_what_to_do(
    site: str, page: Page, width: int, theme: chromium.Theme
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=theme)
    page.goto(f"{site}/index.html")
    tops = [
        page.locator(what).first.evaluate("each => each.getBoundingClientRect().top")
        for what in ("h1", ".start a", "article pre", "article img")
    ]
    assert tops == sorted(tops)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".md-logo img").first.evaluate("each => each.naturalWidth") > 0
    edit = page.locator("a[rel=edit]").get_attribute("href")
    assert edit == "https://github.com/org/releasekit-action/edit/main/docs/index.md"
    assert f"describe ReleaseKit {__version__}." in page.locator(".md-copyright").inner_text()
