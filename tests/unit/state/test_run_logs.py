from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from releasekit.errors import BuildFailed, StateError
from releasekit.host.scrub import NOTHING_SECRET
from releasekit.host.streams import last_lines
from releasekit.model import PackageId
from releasekit.report.view import READ_ITS_LOG
from releasekit.state import run_logs
from releasekit.state.run_logs import Logs

if TYPE_CHECKING:
    from pathlib import Path

BEGAN = datetime(2026, 11, 22, 1, 0, 0, tzinfo=UTC)


def runs(state: Path, count: int) -> list[str]:
    """As many runs, each with a log; their names, oldest first."""
    names = [
        run_logs.name_of(f"{number:032x}"[::-1], BEGAN + timedelta(hours=number))
        for number in range(count)
    ]
    for name in names:
        Logs(state, name, NOTHING_SECRET).fresh("build", PackageId("pypi", "core")).path.touch()
    return names


def left(state: Path) -> list[str]:
    return sorted(entry.name for entry in (state / "logs").iterdir())


def test_a_run_is_named_by_its_time_and_its_id() -> None:
    """R47"""
    assert run_logs.name_of("1f2e3d4c5b6a", BEGAN) == "20261122T010000Z-1f2e3d4c"


def test_logs_of_an_earlier_run_are_not_written_over(tmp_path: Path) -> None:
    """R47"""
    core = PackageId("pypi", "core")
    first = Logs(tmp_path / "state", "one", NOTHING_SECRET).fresh("build", core)
    first.path.write_text("of the first")
    second = Logs(tmp_path / "state", "two", NOTHING_SECRET)
    second.fresh("build", core).path.write_text("of the second")
    assert not second.fresh("build", core).path.exists()
    assert first.path.read_text() == "of the first"


def test_the_last_ten_runs_are_kept(tmp_path: Path) -> None:
    """R47: nine, and the one that is about to begin."""
    names = runs(tmp_path, 14)
    run_logs.remove_old(tmp_path)
    assert left(tmp_path) == names[-9:]
    run_logs.remove_old(tmp_path)
    assert left(tmp_path) == names[-9:]


def test_only_logs_of_runs_are_removed_and_no_link_is_followed(tmp_path: Path) -> None:
    """R52"""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    state = tmp_path / "state"
    oldest, *names = runs(state, 12)
    link = state / "logs" / "20200101T000000Z-00000000"
    link.symlink_to(elsewhere)
    (state / "logs" / "20200101T000000Z-00000001").touch()
    (state / "logs" / "mine").mkdir()
    (state / "logs" / oldest / "inside").symlink_to(elsewhere)
    run_logs.remove_old(state)
    kept = ["20200101T000000Z-00000000", "20200101T000000Z-00000001", *names[-9:], "mine"]
    assert left(state) == kept
    assert (elsewhere / "file").exists()


def test_logs_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    """R36, R52"""
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    names = runs(elsewhere, 12)
    state.mkdir()
    (state / "logs").symlink_to(elsewhere / "logs")
    with pytest.raises(StateError, match=r"state/logs: cannot be used for logs: is a symbolic"):
        run_logs.remove_old(state)
    with pytest.raises(StateError, match=r"state/logs: cannot be used for logs: is a symbolic"):
        Logs(state, "run", NOTHING_SECRET).fresh("build", PackageId("pypi", "core"))
    assert left(elsewhere) == names


def test_a_log_lies_in_a_directory_that_git_ignores(tmp_path: Path) -> None:
    """R25"""
    log = Logs(tmp_path / "state", "run", NOTHING_SECRET).fresh(
        "metadata", PackageId("pypi", "core")
    )
    assert log.path == tmp_path / "state" / "logs" / "run" / "metadata-pypi-core.log"
    assert (tmp_path / "state" / ".gitignore").read_text() == "*\n"


def test_no_state_directory_is_made_to_find_no_logs(tmp_path: Path) -> None:
    run_logs.remove_old(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_no_two_packages_share_a_log(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "run", NOTHING_SECRET)
    names = [
        logs.fresh("build", PackageId("maven", "org.acme:core")).path.name,
        logs.fresh("build", PackageId("npm", "@acme/core")).path.name,
        logs.fresh("build", PackageId("cargo", "core"), call=1).path.name,
        logs.fresh("build", PackageId("cargo", "core-1")).path.name,
    ]
    assert names == [
        "build-maven-org.acme+core.log",
        "build-npm-@acme+core.log",
        "build-cargo-core+1.log",
        "build-cargo-core-1.log",
    ]


def test_a_failure_shows_the_end_of_the_log_and_where_it_is(tmp_path: Path) -> None:
    log = Logs(tmp_path, "run", NOTHING_SECRET).fresh("build", PackageId("pypi", "core"))
    log.path.write_text("the last line\n")
    error = log.failure("it failed", BuildFailed("failed with exit code 1"))
    assert (str(error), error.log) == ("it failed", ("the last line",))
    assert error.hint == f"{READ_ITS_LOG} The whole output is in {log.path}."
    error = log.failure("it failed", BuildFailed("ended", log=("its own",), hint="do this"))
    assert (error.log, error.hint) == (("its own",), "do this")


@pytest.mark.parametrize(
    ("max_bytes", "shown"),
    [
        (100, ("first", "token secret-canary", "last")),
        (31, ("first", "token secret-canary", "last")),
        (30, ("token secret-canary", "last")),
        (25, ("token secret-canary", "last")),
        (24, ("last",)),
        (5, ("last",)),
        (4, ()),
    ],
)
def test_the_end_of_a_log_is_whole_lines(
    tmp_path: Path, max_bytes: int, shown: tuple[str, ...]
) -> None:
    log = tmp_path / "build.log"
    log.write_text("first\ntoken secret-canary\nlast\n")
    assert last_lines(log, max_bytes=max_bytes) == shown
    assert last_lines(log, max_bytes=max_bytes, most=1) == shown[-1:]
    assert last_lines(tmp_path / "none.log") == ()


def test_the_end_of_a_log_is_shown_where_only_a_progress_bar_was_printed(tmp_path: Path) -> None:
    """It ends its lines with a carriage return, and the tool said no more after it."""
    log = tmp_path / "build.log"
    log.write_bytes(b"first\n" + b"".join(b"at %d %%\r" % number for number in range(100)) + b"no")
    assert last_lines(log, max_bytes=20) == ("at 98 %", "at 99 %", "no")
