"""The page beside the results: it costs no run, and replaces nothing but one of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.cli.result_files import forget_results, write_beside, write_page
from sample_runs import partial_report

if TYPE_CHECKING:
    from pathlib import Path


def test_the_page_is_written_and_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        assert write_page(partial_report(), tmp_path / "any.json") == ""
    assert (tmp_path / "report.html").read_text().endswith("</html>\n")


def test_what_is_in_the_way_stays_and_is_told_of(tmp_path: Path) -> None:
    """R52"""
    page = tmp_path / "report.html"
    page.write_text("<html>mine</html>")
    assert write_page(partial_report(), tmp_path / "results.json") == (
        f"warning: {page} is there, and is no report page; this run has no report page"
    )
    assert page.read_text() == "<html>mine</html>"


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    """R52"""
    (tmp_path / "report.html").symlink_to("elsewhere")
    assert "is a symbolic link" in write_page(partial_report(), tmp_path / "results.json")
    assert not (tmp_path / "elsewhere").exists()


def test_what_other_programs_read_ends_no_run_that_cannot_write_it(tmp_path: Path) -> None:
    """R4, R52: the release has ended by then."""
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "link.xml").symlink_to("elsewhere")
    (tmp_path / "directory.xml").mkdir()
    for path in (tmp_path / "directory.xml", tmp_path / "absent/junit.xml"):
        assert write_beside(path, "<x/>").startswith(f"warning: {path} cannot be written: ")
    write_beside(tmp_path / "link.xml", "<x/>")
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert write_beside(tmp_path / "junit.xml", "<x/>") == ""
    assert (tmp_path / "junit.xml").read_text() == "<x/>"


def test_nothing_of_an_earlier_run_is_taken_for_that_of_this_one(tmp_path: Path) -> None:
    """R4: GitLab shows what there is, however this run ends."""
    for name in ("results.json", "junit.xml", "annotations.json"):
        (tmp_path / name).write_text('{"schema": 1}')
    (tmp_path / "journal.jsonl").write_text("")
    forget_results(tmp_path, None)
    assert [path.name for path in tmp_path.iterdir()] == ["journal.jsonl"]


@pytest.mark.parametrize("directory", ["absent", "file/inner"])
def test_a_page_that_cannot_be_written_is_a_warning(tmp_path: Path, directory: str) -> None:
    (tmp_path / "file").touch()
    said = write_page(partial_report(), tmp_path / directory / "results.json")
    assert said.startswith("warning: ")
    assert "cannot be written: " in said
