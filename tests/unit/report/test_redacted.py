from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 (annotations are read)
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct

import fakes
from releasekit.__main__ import _print_bug
from releasekit.fields import Identity, Links, replace
from releasekit.host.runner import open_runner
from releasekit.host.scrub import Redactor
from releasekit.model import (
    Action,
    Artifact,
    Event,
    Outcome,
    PackageId,
    PackageWarning,
    Plan,
    PlannedPackage,
    Report,
    Result,
    Staged,
    WarningName,
)
from releasekit.report import (
    outputs,
    plan_json,
    plan_mermaid,
    plan_outputs,
    plan_summary,
    plan_table,
    results_json,
    results_table,
    summary,
)
from releasekit.report.redacted import Redacted
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal, read_history
from releasekit.text.escape import redact_urls
from releasekit.text.output import ignore_write_errors

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "canary-3f9a"
URL = f"https://me:pw@cdn.example/core.whl?X-Amz-Signature={SECRET[::-1]}#{SECRET}"
TEXT = f"{SECRET}: redirected to {URL}, not https"
SHOWN = "***: redirected to https://***@cdn.example/core.whl?… not https"
PACKAGE = fakes.package("core")
WARNING = PackageWarning(name=WarningName.EMPTY_PACKAGE, message=TEXT)
CLEAN = Redacted(Redactor([SECRET]))


def hold_nothing(text: str) -> None:
    assert SECRET not in text
    assert SECRET[::-1] not in text
    assert "me:pw" not in text


def test_a_report_is_written_without_secrets() -> None:
    """R34, R50"""
    result = Result(
        package=PACKAGE,
        outcome=Outcome.FAILED,
        reason=TEXT,
        hint=f"Look at {SECRET}: https://docs.example/page#part",
        log=(TEXT.replace(URL, ""),),
        url=URL,
        warnings=(WARNING,),
        staged=Staged(id=SECRET, url=f"https://r.example/staged?of={SECRET}", tag=SECRET),
    )
    report = Report(
        run_id="1",
        plan_digest="",
        commit="",
        started_at="2026-11-22T00:00:00+00:00",
        duration_s=1.0,
        results=(result,),
    )
    clean = CLEAN.clean(report)
    for text in (
        results_json(clean),
        results_table(clean),
        summary(clean),
        *outputs(clean).values(),
    ):
        hold_nothing(text)
    assert clean.results[0].reason == SHOWN
    link = "https://r.example/staged?of=***"
    assert clean.results[0].staged == Staged(id="***", url=link, tag="***")
    assert clean.results[0].hint == "Look at ***: https://docs.example/page#part"


class Remark(Struct, frozen=True, kw_only=True):
    name: Identity
    words: str


class LaterResult(Result, frozen=True, kw_only=True):
    """With fields that nothing but their annotations speaks of."""

    remark: str
    remarks: tuple[Remark, ...]
    by_name: Mapping[str, str]
    page: Links
    also: Remark | None = None


def test_a_field_that_is_added_is_redacted() -> None:
    """R34"""
    remark = Remark(name=SECRET, words=TEXT)
    result = LaterResult(
        package=PACKAGE,
        outcome=Outcome.PUBLISHED,
        reason="",
        remark=TEXT,
        remarks=(remark,),
        by_name={SECRET: TEXT},
        page=f"https://x.example/a?of={SECRET}",
        also=remark,
    )
    clean = CLEAN.clean(result)
    assert clean.remark == SHOWN
    assert clean.by_name == {SECRET: SHOWN}
    assert clean.page == "https://x.example/a?of=***"
    assert (*clean.remarks, clean.also) == (Remark(name=SECRET, words=SHOWN),) * 2


def test_what_others_know_it_by_stays() -> None:
    package = replace(PACKAGE, id=PackageId("pypi", SECRET), version=SECRET)
    planned = PlannedPackage(
        package=package,
        action=Action.AWAIT,
        reason=TEXT,
        fingerprint=SECRET,
        artifacts=(Artifact(path=package.manifest, size=1, digests={"sha256": SECRET}),),
        staged=Staged(id=SECRET),
    )
    plan = Plan(packages=(planned,), private=(), commit=SECRET, digest=SECRET)
    assert CLEAN.clean(plan) == replace(plan, packages=(replace(planned, reason=SHOWN),))


def test_a_plan_is_written_without_secrets() -> None:
    """R34, R50"""
    planned = PlannedPackage(
        package=PACKAGE, action=Action.REFUSE, reason=TEXT, warnings=(WARNING,)
    )
    plan = Plan(packages=(planned,), private=(), commit="", digest="", notes=(TEXT,))
    clean = CLEAN.clean(plan)
    hold_nothing(plan_json(clean, PACKAGE.directory))
    hold_nothing(plan_table(clean))
    assert clean.notes == (SHOWN,)


def test_an_event_is_shown_without_secrets() -> None:
    """R34, R50"""
    event = Event(package=PACKAGE.id, state="ended", at_s=1.0, detail=TEXT)
    assert CLEAN.clean(event).detail == SHOWN


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no URL? yes", "no URL? yes"),
        ("https://x.example/a?b=c d", "https://x.example/a?… d"),
        ("<https://x.example/a#b>", "<https://x.example/a?…>"),
        (
            "see https://x.example/help/#file-name-reuse.",
            "see https://x.example/help/#file-name-reuse.",
        ),
        ("https://x.example/help/#access-token=abc", "https://x.example/help/?…"),
        ("https://x.example/simple/#correct-horse", "https://x.example/simple/?…"),
        ("https://x.example/help/#abc-DEF0", "https://x.example/help/?…"),
        ("https://docs.x.example/a#is-b,https://u:p@b.example", "https://docs.x.example/a?…"),
        ("https://u:p@x.example/", "https://***@x.example/"),
        ("https://token@x.example/a", "https://***@x.example/a"),
        ("https://x.example/@scope/name", "https://x.example/@scope/name"),
        ("https://one/?a, https://two/?b", "https://one/?… https://two/?…"),
        ("ssh://git@x.example/a", "ssh://***@x.example/a"),
        ("https://a.example,https://u:p@b.example", "https://a.example,https://***@b.example"),
        ("https://one/https://u:p@two/a?b", "https://one/https://***@two/a?…"),
        ("https://u:p@one/://v@two/", "https://***@one/://***@two/"),
    ],
)
def test_of_urls_only_what_is_public_is_shown(text: str, shown: str) -> None:
    """R50: whoever has a presigned URL may read what is there."""
    assert redact_urls(text) == shown


@pytest.mark.parametrize("piece", ["://", "http://a", "://?", "://a@", "://a?"])
def test_long_text_with_urls_is_gone_over_once(piece: str) -> None:
    """R51: it would take minutes otherwise."""
    assert redact_urls(piece * 100_000)


@pytest.mark.parametrize("piece", ["docs/", "/help"])
def test_a_long_path_to_a_help_is_gone_over_once(piece: str) -> None:
    """R51: a server chooses its addresses."""
    assert redact_urls(f"https://a/{piece * 100_000}/#X").endswith("?…")


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb\udc80", "\0\x1b\u202e\u2028"])
def test_whatever_the_text_every_report_of_it_is_written(text: str, tmp_path: Path) -> None:
    """R40: names of files may hold any bytes, and a report comes after the uploads."""
    package = replace(PACKAGE, version=text, unpublishable=text)
    warned = (PackageWarning(name=WarningName.EMPTY_PACKAGE, message=text),)
    result = Result(
        package=package,
        outcome=Outcome.FAILED,
        reason=text,
        hint=text,
        log=(text,),
        url=text,
        warnings=warned,
        artifacts=(Artifact(path=tmp_path / text.strip("\0"), size=1, digests={"sha256": text}),),
    )
    report = Report(
        run_id=text,
        plan_digest=text,
        commit=text,
        started_at="2026-11-22T00:00:00+00:00",
        duration_s=1.0,
        results=(result, replace(result, outcome=Outcome.PUBLISHED)),
        private=(package,),
    )
    planned = PlannedPackage(package=package, action=Action.REFUSE, reason=text, warnings=warned)
    plan = Plan(packages=(planned,), private=(package,), commit=text, digest=text, notes=(text,))
    files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment = {name: str(path) for name, path in files.items()} | {"GITHUB_ACTIONS": "true"}
    with (tmp_path / "out").open("w", encoding="utf-8") as file:
        out = ignore_write_errors(file)
        actions = open_runner(environment, out)
        for name, value in {**outputs(report), **plan_outputs(plan), "path": text}.items():
            actions.output(name, value)
        for markdown in (summary(report), plan_summary(plan)):
            actions.summary(markdown)
        actions.annotate("error", [(text, text)])
        print(results_table(report), plan_table(plan), plan_mermaid(plan), text, file=out)
        out.flush()
    for written in (results_json(report), plan_json(plan, tmp_path)):
        assert written.encode()
    make_state_directory(tmp_path / "state")
    journal = Journal.open(tmp_path / "state", run_id="1" * 32)
    journal.outcome(package, Outcome.FAILED, text)
    journal.close()
    read_history(tmp_path / "state")


def test_a_traceback_holds_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """R34: a bug ends a run with one, and its values may be anything."""
    error = KeyError(f"::error::{SECRET}\n::error::{SECRET}")
    _print_bug(Redactor([SECRET]), KeyError, error, None)
    shown = capsys.readouterr().err
    assert "KeyError" in shown
    assert SECRET not in shown
    assert not any(line.startswith("::") for line in shown.splitlines())
