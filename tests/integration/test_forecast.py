"""What a plan says of a release that its registry, or its run, has no time for."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest

from integration.test_cargo_publish import toolchain
from integration.tools import require_tool
from processes import PATIENCE_S
from releasekit.__main__ import main
from releasekit.http.client import http_client
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

NEW = 60


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Crates of which crates.io knows none, each on top of the one before."""
    require_tool("cargo")
    root = tmp_path / "crates"
    for number in range(NEW):
        source = root / f"c{number:02}" / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text("")
        needs = f'c{number - 1:02} = {{ path = "../c{number - 1:02}", version = "1" }}\n'
        (source.parent / "Cargo.toml").write_text(
            f'[package]\nname = "c{number:02}"\nversion = "1.0.0"\nedition = "2021"\n'
            f'description = "d"\nlicense = "MIT"\n[dependencies]\n{needs if number else ""}'
        )
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["c*"]\nresolver = "2"\n')
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Begin")
    transport = httpx.MockTransport(lambda _: httpx.Response(404))
    monkeypatch.setattr(
        "releasekit.cli.prepare.http_client", partial(http_client, transport=transport)
    )
    for name, value in toolchain(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("RELEASEKIT_CARGO_TOKEN", "cio-hunter2")
    return root


def test_a_plan_warns_of_what_the_deadline_leaves_out(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R49: five go out at once, and the next one as the deadline passes."""
    assert main(["plan", str(root), "--deadline", "600", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert sum("takes at least 9 h 10 min: crates.io" in note for note in made["notes"]) == 1
    warned = {
        each["name"]: [warning["message"] for warning in each["warnings"]]
        for each in made["packages"]
        if any(warning["name"] == "ends-early" for warning in each["warnings"])
    }
    assert list(warned) == [f"c{number:02}" for number in range(5, NEW)]
    assert main(["plan", str(root), "--deadline", "600"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("ends-early") == 1
    assert "cargo:c05, cargo:c06, cargo:c07, cargo:c08, cargo:c09 and 50 more: it cannot" in shown
    assert "[RK-517]" in shown


def test_in_the_time_that_it_takes_nothing_is_warned_of(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last one goes out after 55 times ten minutes; `strict` refuses what does not."""
    assert main(["plan", str(root), "--deadline", "33001"]) == 0
    assert "ends-early" not in capsys.readouterr().out
    assert main(["plan", str(root), "--deadline", "33000", "--strict"]) == 3
    assert "ends-early: cargo:c59: " in capsys.readouterr().err


GITLAB = {"GITLAB_CI": "true", "CI_JOB_TIMEOUT": "3600"}


def test_a_plan_in_a_job_of_gitlab_warns_of_what_its_timeout_leaves_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R49"""
    for name, value in {**GITLAB, "CI_JOB_STARTED_AT": "2026-01-01T00:00:00Z"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("time.time", datetime(2026, 1, 1, 0, 30, tzinfo=UTC).timestamp)
    assert main(["plan", str(root)]) == 0
    shown = capsys.readouterr().out
    assert "GitLab ends its job after 30 min: run it again for the rest" in " ".join(shown.split())


def test_a_run_ends_before_its_job_of_gitlab(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R27: this job has no time left, and its registry does not answer."""

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.wait_for(asyncio.Event().wait(), PATIENCE_S)
        raise AssertionError

    monkeypatch.setattr(
        "releasekit.cli.prepare.http_client",
        partial(http_client, transport=httpx.MockTransport(never)),
    )
    for name, value in {**GITLAB, "CI_JOB_STARTED_AT": "2026-01-01T00:00:00Z"}.items():
        monkeypatch.setenv(name, value)
    assert main(["plan", str(root)]) == 130
    assert "the deadline of 1 s passed while the plan was made" in capsys.readouterr().err
