"""The pictures of the documents: drawn from what the program says now, and all there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from make_pictures.__main__ import drawn, stale
from make_pictures.releases import SIZES, release
from releasekit.model import Outcome
from releasekit.report.results import load_results, results_json

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]


def test_what_is_drawn_without_a_browser_is_what_the_program_shows() -> None:
    """`make pictures` draws it anew."""
    assert [path.name for path, _ in stale(drawn())] == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_picture_that_a_page_shows_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]*\]\(([^)\s]+)|(?:src|srcset)=\"([^\"]+)\"", text)
    for name in (first or second for first, second in shown):
        if "://" not in name:
            assert (page.parent / name).is_file(), name


@pytest.mark.parametrize("packages", SIZES)
def test_a_release_on_paper_ends_as_releases_do(packages: int) -> None:
    report = release(packages)
    outcomes = {each.outcome for each in report.results}
    assert len(report.results) == packages
    assert outcomes == {
        Outcome.PUBLISHED,
        Outcome.ALREADY_PUBLISHED,
        Outcome.FAILED,
        Outcome.BLOCKED,
    }
    assert len({each.package.id.ecosystem for each in report.results}) == 5
    assert load_results(results_json(report)).results[-1].reason == report.results[-1].reason
    well = release(packages, well=True)
    assert all(each.outcome.done for each in well.results)
