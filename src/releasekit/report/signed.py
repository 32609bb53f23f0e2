"""What of a run was signed, for people: one line of its log, one of its summary, links of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.report.links import trusted_page
from releasekit.text.escape import clip, html, html_link, link, log_line, markdown

if TYPE_CHECKING:
    from collections.abc import Callable

    from releasekit.model import Artifact, Report

_MAX_CHARS: Final = 500
_STATEMENT: Final = "release statement"


def signed_line(report: Report) -> list[str]:
    """One line of a log, or none: why nothing is signed, the plan says at its beginning."""
    words = _done(report, _in_log, str)
    return [log_line(f"provenance: {words}")] if words else []


def signed_summary(report: Report) -> list[str]:
    """One line of Markdown, or none."""
    words = _words(report, link, markdown)
    return [f"provenance: {words}"] if words else []


def signed_fact(report: Report) -> str:
    """HTML; empty where there is nothing to say."""
    return _words(report, html_link, html)


def entry_link(artifact: Artifact) -> tuple[str, str]:
    """What to call the log's entry about a file, and its page, empty where it may be no link; both
    empty where nothing is signed about it.
    """
    signed = artifact.attestation
    if signed is None:
        return "", ""
    return f"log entry {signed.log_index}", trusted_page(signed.link)


def _words(report: Report, linked: Callable[[str, str], str], escaped: Callable[[str], str]) -> str:
    """What was signed and, where that is not all of it, what was planned: it says why."""
    done, planned = _done(report, linked, escaped), escaped(clip(report.provenance, _MAX_CHARS))
    if report.statement is not None and report.statement.subjects == _signed(report):
        return done
    return f"{done}. Planned: {planned}" if done and planned else done or planned


def _signed(report: Report) -> int:
    return sum(bool(file.attestation) for each in report.results for file in each.artifacts)


def _done(report: Report, linked: Callable[[str, str], str], escaped: Callable[[str], str]) -> str:
    parts = []
    if count := _signed(report):
        parts.append(f"{_files(count)} signed")
    statement = report.statement
    if statement is not None and statement.attestations:
        about = "" if statement.subjects == count else f" about {_files(statement.subjects)}"
        page = trusted_page(statement.url)
        where = "" if page else f" in {escaped(clip(statement.path.name, 100))}"
        parts.append(f"{linked(f'{_STATEMENT}{about}', page)}{where}")
    note = escaped(clip(statement.note, _MAX_CHARS)) if statement is not None else ""
    return ". ".join(filter(None, (", ".join(parts), note)))


def _in_log(text: str, page: str) -> str:
    return f"{text}: {page}" if page else text


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
