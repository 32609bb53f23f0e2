"""Job summaries in a browser, shown as GitHub shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.tools import require_tool
from make_pictures import chromium, summaries
from make_pictures.npm_files import npm_files
from make_pictures.releases import SIZES, release
from releasekit.report.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def files() -> Path:
    require_tool("chromium")
    require_tool("npm")
    return npm_files()


@pytest.fixture(scope="module")
def browser(files: Path) -> Iterator[Browser]:
    with chromium.browser() as started:
        yield started


@pytest.fixture
def drawn(files: Path, browser: Browser, tmp_path: Path) -> Callable[[str], summaries.Drawn]:
    def draw(markdown: str) -> summaries.Drawn:
        file = tmp_path / "summary.html"
        file.write_text(summaries.page(markdown, files, theme="light"))
        with chromium.shown(browser, file, (summaries.WIDTH, 800), "light") as page:
            return summaries.drawn(page)

    return draw


def test_every_graph_of_a_summary_is_drawn(drawn: Callable[[str], summaries.Drawn]) -> None:
    """Of small releases and of large ones, whether all went well or not."""
    releases = [release(size, well=well) for size in SIZES for well in (False, True)]
    text = "\n\n".join(map(summary, releases))
    assert drawn(text) == summaries.Drawn(charts=text.count("```mermaid\n"), troubles=[])
    assert "```mermaid\n" in text


def test_what_to_do_is_on_the_first_screen_of_a_phone(
    files: Path, browser: Browser, tmp_path: Path
) -> None:
    """Before tables and graphs, below what GitHub and a browser put above it."""
    file = tmp_path / "summary.html"
    file.write_text(summaries.page(summary(release(60)), files, theme="light"))
    with chromium.shown(browser, file, (390, 844), "light") as page:
        assert summaries.drawn(page).troubles == []
        found = page.get_by_text("What to do", exact=True).first.bounding_box()
        later = page.locator("table, .mermaid").first.bounding_box()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert found is not None
    assert later is not None
    assert found["y"] + found["height"] < min(600, later["y"])


def test_what_is_no_graph_is_told(drawn: Callable[[str], summaries.Drawn]) -> None:
    """Else the test above could not fail."""
    charts, troubles = drawn("```mermaid\nflowchart LR\n    a[ --> b\n```\n")
    assert (charts, len(troubles)) == (1, 1)
