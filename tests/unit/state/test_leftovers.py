from __future__ import annotations

import asyncio
import contextlib
import os
import zlib
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from releasekit.errors import LockHeld, StateError
from releasekit.fields import replace
from releasekit.model import Artifact, Outcome, Package, PackageId
from releasekit.state import locks
from releasekit.state.directory import links
from releasekit.state.history import History, encode, fold
from releasekit.state.journal import Journal, read_history
from releasekit.state.leftovers import Finding, dead_runs, examine, fix, uncertain_uploads
from releasekit.state.pins import EphemeralPin

if TYPE_CHECKING:
    from collections.abc import Iterator

CORE = Package(
    id=PackageId("pypi", "core"), version="1.0", directory=Path("/w"), manifest=Path("/w/p.toml")
)


class Site:
    """A workspace with the state directory of earlier runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".releasekit"
        self.state.mkdir()
        self.manifest = root / "pyproject.toml"
        self.manifest.write_bytes(b"b>=1")
        self.journal = self.state / "journal.jsonl"

    def examine(self) -> list[Finding]:
        """And see that nothing changes by it, and that each finding has its cure."""
        before = self.contents()
        found = examine(self.state, root=self.root)
        assert self.contents() == before
        assert all(finding.hint for finding in found)
        return found

    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.examine()]

    def fix(self) -> list[str]:
        """As another process, which knows nothing of what is held in this one."""
        return [finding.kind for finding in Context().run(fix, self.state, root=self.root)]

    def contents(self) -> dict[str, tuple[bytes, int]]:
        return {
            str(path): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def pin_and_die(self) -> None:
        locks.acquire(self.state, ["pypi"]).close()
        EphemeralPin(
            self.state, {self.manifest: b"b==2"}, ecosystem="pypi", root=self.root
        ).__enter__()

    @contextlib.contextmanager
    def run(self, *ecosystems: str) -> Iterator[Journal]:
        """A run whose journal is closed at the end, whether or not it said that it had ended."""
        journal = Journal.open(self.state, run_id=f"run of {ecosystems}")
        journal.run_started(
            plan_digest="", commit="", tool="", started_at="2026", ecosystems=ecosystems
        )
        yield journal
        journal.close()

    def artifact(self) -> Artifact:
        path = self.state / "dist" / "core.whl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"wheel")
        return Artifact(path=path, size=5, digests={"sha256": "a" * 64})


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_nothing_is_found_where_nothing_is(site: Site, tmp_path: Path) -> None:
    """R30"""
    assert site.examine() == []
    assert site.fix() == []
    assert fix(tmp_path / "missing", root=tmp_path) == []
    assert not (tmp_path / "missing").exists()


def test_the_journal_is_read_once_and_links_are_looked_for_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site.run("pypi"):
        pass
    folded, walked = Mock(wraps=fold), Mock(wraps=links)
    monkeypatch.setattr("releasekit.state.journal.fold", folded)
    monkeypatch.setattr("releasekit.state.leftovers.links", walked)
    assert site.kinds() == ["interrupted-run"]
    assert (folded.call_count, walked.call_count) == (1, 1)


def test_a_run_in_order_leaves_nothing_to_find(site: Site) -> None:
    async def release() -> None:
        with site.run("pypi") as journal:
            await journal.built(CORE, [site.artifact()])
            await journal.intent(CORE, registry="https://r.test/", digests={})
            journal.outcome(CORE, Outcome.PUBLISHED, "")
            await journal.run_ended("success")

    with locks.acquire(site.state, ["pypi"]):
        asyncio.run(release())
    (site.state / "dist" / "core.whl").unlink()  # nobody needs it any more
    (site.state / "lock.No Ecosystem").touch()
    assert site.examine() == []


def test_stale_names_in_locks_are_found_and_cleared(site: Site) -> None:
    """R30: the lock itself went with its process."""
    with locks.acquire(site.state, ["pypi"]):
        text = (site.state / "lock.pypi").read_bytes()
    (site.state / "lock.pypi").write_bytes(text)
    [finding] = site.examine()
    assert finding.kind == "stale-lock"
    assert finding.message.startswith("pypi: the last run did not end in order: process ")
    assert site.fix() == ["stale-lock"]
    assert site.kinds() == []


def test_a_live_run_is_reported_as_that_and_nothing_of_it_as_damage(site: Site) -> None:
    """R30"""
    with (
        locks.acquire(site.state, ["pypi"]),
        site.run("pypi") as journal,
        EphemeralPin(site.state, {site.manifest: b"b==2"}, ecosystem="pypi", root=site.root),
    ):
        asyncio.run(journal.intent(CORE, registry="https://r.test/", digests={}))
        with site.journal.open("ab") as half_written:
            half_written.write(b'{"v":1')
        [finding] = site.examine()
        assert finding.kind == "running"
        with pytest.raises(LockHeld):
            site.fix()
        (site.state / "lock.pypi").write_bytes(b"")
        [finding] = site.examine()
        assert finding.message == "pypi: a run holds the lock: no name given"


def test_a_killed_run_is_told_from_what_it_started(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R27, R30: the orphan has the lock still, but the pins are nobody's any more."""

    def gone(_: int, __: int) -> None:
        raise ProcessLookupError

    site.pin_and_die()
    monkeypatch.setattr(os, "kill", gone)
    with locks.acquire(site.state, ["pypi"]), site.run("pypi"):
        assert site.kinds() == ["orphan", "leftover-pin", "interrupted-run"]
        with pytest.raises(LockHeld):
            site.fix()


def test_a_file_in_the_way_of_backups_is_no_finding(site: Site) -> None:
    (site.state / "backup").touch()
    assert site.examine() == []


def test_a_journal_that_is_no_file_is_found_and_left_alone(site: Site) -> None:
    site.journal.mkdir()
    [finding] = site.examine()
    assert (finding.kind, finding.fixable) == ("damaged-journal", False)
    assert "journal.jsonl: cannot be read: Is a directory" in finding.message
    assert site.fix() == []
    assert site.journal.is_dir()


def test_leftover_pins_are_found_and_given_back(site: Site) -> None:
    """R22, R30"""
    site.pin_and_die()
    [finding] = site.examine()
    assert finding.kind == "leftover-pin"
    assert str(site.manifest) in finding.message
    assert site.fix() == ["leftover-pin"]
    assert site.manifest.read_bytes() == b"b>=1"
    assert site.kinds() == []


def test_an_edited_manifest_is_reported_and_left_alone(site: Site) -> None:
    """R22, R30"""
    site.pin_and_die()
    site.manifest.write_bytes(b"edited")
    [finding] = site.examine()
    assert (finding.kind, finding.fixable) == ("edited-pin", False)
    with pytest.raises(StateError, match="changed since it was pinned"):
        site.fix()
    assert site.manifest.read_bytes() == b"edited"


def test_a_damaged_backup_is_reported(site: Site) -> None:
    backup = site.state / "backup" / "pypi" / "x.json"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"")
    [finding] = site.examine()
    assert (finding.kind, finding.fixable) == ("edited-pin", False)
    assert "its checksum is wrong" in finding.message


def test_an_interrupted_run_and_what_became_of_its_upload(site: Site) -> None:
    """R16, R30"""

    async def until_killed() -> None:
        with site.run("pypi") as journal:
            await journal.built(CORE, [site.artifact()])
            await journal.intent(CORE, registry="https://r.test/", digests={})

    asyncio.run(until_killed())
    with site.run("npm") as journal:
        asyncio.run(journal.run_ended("success"))
    interrupted, unknown = site.examine()
    assert interrupted.kind == "interrupted-run"
    assert interrupted.message == "pypi: run run of ('pypi',), started 2026, was cut off"
    assert unknown.kind == "unknown-upload"
    assert unknown.message.startswith("pypi:core 1.0: an upload to https://r.test/ began")
    assert site.fix() == []
    (site.state / "dist" / "core.whl").write_bytes(b"shorter or longer")
    assert site.kinds() == ["interrupted-run", "unknown-upload", "lost-artifact"]


def test_a_run_that_begins_names_who_died(site: Site) -> None:
    """R43: in one line, and nothing changes by it."""
    assert dead_runs(site.state, ["npm", "pypi"]) == ""
    with locks.acquire(site.state, ["pypi"]):
        assert dead_runs(site.state, ["npm", "pypi"]) == ""
        text = (site.state / "lock.pypi").read_bytes()
    (site.state / "lock.pypi").write_bytes(text)
    assert dead_runs(site.state, ["npm"]) == ""
    before = site.contents()
    line = dead_runs(site.state, ["npm", "pypi"])
    assert site.contents() == before
    assert line.startswith("the last run (process ")
    assert line.endswith(") did not end in order; this one goes on from what the registries have")


def test_the_locks_of_one_dead_run_are_told_together(site: Site) -> None:
    """R43: ecosystems are named only where it was not the same process."""
    with locks.acquire(site.state, ["npm", "pypi", "go"]):
        text = (site.state / "lock.pypi").read_bytes()
    for name in ("npm", "pypi"):
        (site.state / f"lock.{name}").write_bytes(text)
    assert dead_runs(site.state, ["npm", "pypi", "go"]).count("did not end in order") == 1
    [finding] = site.examine()
    assert finding.message.startswith("npm, pypi: the last run did not end in order: process ")
    (site.state / "lock.go").write_text('{"pid": 1, "host": "elsewhere", "started": "2026"}')
    line = dead_runs(site.state, ["npm", "pypi", "go"])
    assert line.startswith("npm, pypi: the last run (process ")
    assert "; go: the last run (process 1 on elsewhere, started 2026) did not end" in line
    assert site.fix() == ["stale-lock", "stale-lock"]


def test_what_outlives_a_dead_run_is_told_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """R27, R43"""

    def gone(_: int, __: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", gone)
    with locks.acquire(site.state, ["npm", "pypi"]):
        assert dead_runs(site.state, ["npm", "pypi"]) == ""  # as the refusal says it
        [finding] = site.examine()
    assert finding.message.startswith("npm, pypi: a run was killed, and what it started still runs")
    assert finding.hint.count("lock.npm ") == finding.hint.count("lock.pypi`") == 1


def test_a_run_that_begins_names_unfinished_uploads(site: Site) -> None:
    """R43: three of them, of the ecosystems that are its own."""
    packages = [replace(CORE, id=PackageId("pypi", f"p{number}")) for number in range(5)]

    async def until_killed(journal: Journal) -> None:
        for package in packages:
            await journal.intent(package, registry="https://r.test/", digests={})

    with site.run("pypi") as journal:
        assert uncertain_uploads(journal.history, ["pypi"]) == ""
        asyncio.run(until_killed(journal))
    with site.run("npm", "pypi") as journal:
        assert uncertain_uploads(journal.history, ["npm"]) == ""
        assert uncertain_uploads(journal.history, ["npm", "pypi"]) == (
            "uploads of earlier runs may be unfinished, and their registries are asked first: "
            "pypi:p0 1.0, pypi:p1 1.0, pypi:p2 1.0 and 2 more"
        )


def test_a_torn_journal_is_found_and_cut(site: Site) -> None:
    """R30, R32"""
    with site.run("pypi") as journal:
        asyncio.run(journal.run_ended("success"))
    whole = site.journal.read_bytes()
    site.journal.write_bytes(whole + b"\0\0\0")
    [finding] = site.examine()
    assert finding.kind == "torn-journal"
    assert "3 bytes that are not a record" in finding.message
    assert site.fix() == ["torn-journal"]
    assert site.journal.read_bytes() == whole


def test_a_damaged_journal_is_set_aside_and_kept(site: Site) -> None:
    """R19, R32: the registries alone are enough."""
    for number in (1, 2):
        site.journal.write_bytes(encode({"v": 1, "event": "yanked"}))
        [finding] = site.examine()
        assert (finding.kind, finding.fixable) == ("damaged-journal", True)
        assert site.fix() == ["damaged-journal"]
        assert (site.state / f"journal.damaged-{number}.jsonl").exists()
        assert read_history(site.state).runs == ()
        assert site.kinds() == []


def test_a_journal_with_other_line_ends_inside_of_records_is_told_too(site: Site) -> None:
    """R32: a carriage return is white space in JSON, and ends no record."""
    with site.run("pypi"):
        pass
    started, empty = site.journal.read_bytes().split(b"\n")
    body = started[: -len(b',"crc":"00000000"}')].replace(b',"event"', b',\r"event"')
    site.journal.write_bytes(body + b',"crc":"%08x"}\n' % zlib.crc32(body) + empty)
    assert site.kinds() == ["interrupted-run"]
    assert site.fix() == []


def test_a_run_that_begins_meanwhile_has_left_nothing_behind(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a long journal takes time: what the locks and backups say is looked at before."""
    site.journal.write_bytes(b"")
    begun: list[locks.Locks] = []

    def read(state: Path) -> History:
        begun.append(Context().run(locks.acquire, state, ["pypi"]))
        return History()

    locks.acquire(site.state, ["pypi"]).close()
    monkeypatch.setattr("releasekit.state.journal.read_history", read)
    assert examine(site.state, root=site.root) == []
    for held in begun:
        held.close()


def test_a_journal_of_a_newer_version_is_not_set_aside(site: Site) -> None:
    """R33"""
    site.journal.write_bytes(encode({"v": 99, "run": "", "event": "what"}))
    [finding] = site.examine()
    assert (finding.kind, finding.fixable) == ("damaged-journal", False)
    assert "use that version" in finding.hint
    assert site.fix() == []
    assert site.journal.exists()
