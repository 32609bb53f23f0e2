from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import math
import os
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S
from releasekit.errors import JournalError, JournalNewer, JournalUnwritable
from releasekit.fields import replace
from releasekit.host.scrub import Redactor
from releasekit.model import Artifact, Outcome, Package, PackageId, Staged
from releasekit.state import history
from releasekit.state.history import SCHEMA, encode, fold
from releasekit.state.journal import History, HistoryEntry, Intent, Journal, Run, read_history

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CORE = Package(
    id=PackageId("pypi", "core"), version="1.0", directory=Path("/w"), manifest=Path("/w/p.toml")
)
DIGESTS = {"core-1.0.whl": "a" * 64}


def start(journal: Journal, *ecosystems: str) -> None:
    journal.run_started(
        plan_digest="plan",
        commit="commit",
        tool="1.0.0",
        started_at="2026-11-20T19:00:00+00:00",
        ecosystems=ecosystems or ["pypi"],
    )


def wheel(state: Path, name: str = "core-1.0.whl") -> Artifact:
    path = state / "dist" / "pypi" / "core" / "1.0" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"wheel")
    return Artifact(path=path, size=5, digests={"sha256": "a" * 64})


@pytest.fixture(name="journal")
def _journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal.open(tmp_path, run_id="run")
    start(journal)
    yield journal
    journal.close()


async def release(journal: Journal, state: Path) -> None:
    """One package from its build to the end of the run."""
    journal.phase_started("build pypi:core")
    await journal.built(CORE, [wheel(state)], fingerprint="f" * 64)
    journal.phase_ended("build pypi:core", duration_s=2)
    await journal.intent(CORE, registry="https://r.test/", digests=DIGESTS)
    journal.phase_ended("upload pypi:core", attempt=2, duration_s=0.5, error="503")
    journal.outcome(CORE, Outcome.PUBLISHED, "uploaded")
    await journal.run_ended("success")


def test_what_one_run_writes_the_next_one_knows(journal: Journal, tmp_path: Path) -> None:
    """R14, R18, R20, R31"""
    asyncio.run(release(journal, tmp_path))
    history = read_history(tmp_path)
    assert history.runs == (
        Run(
            id="run",
            plan_digest="plan",
            commit="commit",
            tool="1.0.0",
            started_at="2026-11-20T19:00:00+00:00",
            ecosystems=frozenset({"pypi"}),
            result="success",
        ),
    )
    assert history.runs[0].complete
    assert history.entry(CORE) == HistoryEntry(
        version="1.0",
        run_id="run",
        commit="commit",
        fingerprint="f" * 64,
        artifacts=(wheel(tmp_path),),
        intent=Intent(run_id="run", registry="https://r.test/", digests=DIGESTS),
        outcome=Outcome.PUBLISHED,
        reason="uploaded",
    )
    assert history.durations == {"build pypi:core": 2.0}
    assert (history.torn, history.intact) == (0, (tmp_path / "journal.jsonl").stat().st_size)


def test_which_files_came_from_elsewhere_is_remembered(journal: Journal, tmp_path: Path) -> None:
    """R18: until the next build says otherwise."""
    files = [wheel(tmp_path), wheel(tmp_path, "core-1.0.tar.gz")]
    asyncio.run(journal.built(replace(CORE, prebuilt=(files[0],)), files))
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.prebuilt == {"core-1.0.whl"}
    asyncio.run(journal.built(CORE, files))
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.prebuilt == frozenset()


def test_every_record_has_schema_run_sequence_time_and_crc(
    journal: Journal, tmp_path: Path
) -> None:
    """R31"""
    asyncio.run(release(journal, tmp_path))
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines()
    records = [json.loads(line) for line in lines]
    assert [(record["v"], record["run"], record["seq"]) for record in records] == [
        (SCHEMA, "run", number) for number in range(len(lines))
    ]
    assert [record["event"] for record in records] == [
        "run_started",
        "step_started",
        "built",
        "step_ended",
        "intent",
        "step_ended",
        "outcome",
        "run_ended",
    ]
    assert sorted(record["at"] for record in records) == [record["at"] for record in records]
    for line, record in zip(lines, records, strict=True):
        crc = record.pop("crc")
        assert line.endswith(f',"crc":"{crc}"}}'.encode())
        assert encode(record) == line + b"\n"


def test_intent_is_on_the_disk_before_it_returns(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: and with it everything before, the built files too."""
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((path.name, path.stat().st_size))

    monkeypatch.setattr(os, "fsync", watch)

    async def until_intent() -> None:
        await journal.built(CORE, [wheel(tmp_path)])
        assert synced[0] == ("core-1.0.whl", 5)
        assert {name for name, _ in synced[1:]} == {
            "1.0",
            "core",
            "pypi",
            "dist",
            tmp_path.name,
        }
        await journal.intent(CORE, registry="https://r.test/", digests=DIGESTS)

    asyncio.run(until_intent())
    assert synced[-1] == ("journal.jsonl", (tmp_path / "journal.jsonl").stat().st_size)
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.intent is not None


@pytest.mark.parametrize("concurrency", [1, 5, 50])
def test_fsyncs_are_bounded_and_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    """At most one of the journal per package, and one per built file and its three directories."""
    count = {"journal": 0, "rest": 0}
    fsync = os.fsync

    def counting(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        count["journal" if path.name == "journal.jsonl" else "rest"] += 1
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counting)
    packages = 50
    slots = asyncio.Semaphore(concurrency)

    async def one(journal: Journal, number: int) -> None:
        package = Package(
            id=PackageId("pypi", f"p{number}"),
            version="1.0",
            directory=tmp_path,
            manifest=tmp_path,
        )
        async with slots:
            path = tmp_path / "dist" / "pypi" / f"p{number}" / "1.0" / "file"
            path.parent.mkdir(parents=True)
            path.touch()
            await journal.built(
                package, [Artifact(path=path, size=0, digests={"sha256": "0" * 64})]
            )
            await journal.intent(package, registry="https://r.test/", digests={})
            journal.outcome(package, Outcome.PUBLISHED, "")

    async def run() -> None:
        journal = Journal.open(tmp_path, run_id="run")
        start(journal)
        async with asyncio.TaskGroup() as group:
            for number in range(packages):
                group.create_task(one(journal, number))
        await journal.run_ended("success")
        journal.close()

    asyncio.run(run())
    assert count["journal"] <= packages + 2  # the start and the end of the run
    # Those who come first at the same time all see to dist and to the state directory.
    assert count["rest"] <= 4 * packages + 2 * concurrency + 1
    assert len(read_history(tmp_path).entries) == packages


def test_waiters_share_the_fsync_that_comes_next(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, go_on = threading.Event(), threading.Event()
    calls = itertools.count()
    fsync = os.fsync

    def slow(descriptor: int) -> None:
        if next(calls) == 0:
            entered.set()
            assert go_on.wait(PATIENCE_S)
        fsync(descriptor)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(journal.intent(CORE, registry="first", digests={}))
            await asyncio.to_thread(entered.wait, 10)
            for _ in range(10):
                group.create_task(journal.intent(CORE, registry="later", digests={}))
            await asyncio.sleep(0)
            go_on.set()

    monkeypatch.setattr(os, "fsync", slow)
    asyncio.run(run())
    assert next(calls) == 2


@pytest.mark.parametrize(
    ("outcomes", "uncertain"),
    [
        ([], True),
        ([("first", Outcome.UNKNOWN)], True),
        ([("first", Outcome.CANCELLED)], True),
        ([("first", Outcome.FAILED)], False),
        ([("first", Outcome.PUBLISHED)], False),
        ([("second", Outcome.ALREADY_PUBLISHED)], False),
        ([("second", Outcome.FAILED)], True),
        ([("first", Outcome.UNKNOWN), ("second", Outcome.BLOCKED)], True),
        ([("first", Outcome.UNKNOWN), ("second", Outcome.PUBLISHED)], False),
    ],
)
def test_an_upload_is_uncertain_until_somebody_has_asked(
    tmp_path: Path, outcomes: list[tuple[str, Outcome]], uncertain: bool
) -> None:
    """R16: "failed" of a later run may be about its build, "blocked" says nothing."""
    for run_id in ("first", "second"):
        journal = Journal.open(tmp_path, run_id=run_id)
        start(journal)
        if run_id == "first":
            asyncio.run(journal.intent(CORE, registry="https://r.test/", digests=DIGESTS))
        for wanted, outcome in outcomes:
            if wanted == run_id:
                journal.outcome(CORE, outcome, "why")
        journal.close()
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.uncertain is uncertain


STAGED = Staged(id="5f0c", url="https://r.test/staged/5f0c", tag="latest")


@pytest.mark.parametrize(
    ("then", "staged", "uncertain"),
    [
        (Outcome.STAGED, STAGED, False),
        (Outcome.CANCELLED, STAGED, False),
        (Outcome.FAILED, STAGED, False),  # rejected: no later run stages it again
        (Outcome.REMOVED, STAGED, False),
        (Outcome.PUBLISHED, None, False),
        (Outcome.ALREADY_PUBLISHED, None, False),
        (None, None, True),
    ],
)
def test_what_is_staged_stays_so_until_it_is_seen_or_sent_again(
    tmp_path: Path, then: Outcome | None, staged: Staged | None, uncertain: bool
) -> None:
    """R16, R17"""
    for run_id in ("first", "second"):
        journal = Journal.open(tmp_path, run_id=run_id)
        start(journal)
        if run_id == "first":
            asyncio.run(journal.intent(CORE, registry="https://r.test/", digests=DIGESTS))
            journal.outcome(CORE, Outcome.STAGED, "accepted", staged=STAGED)
        elif then is None:
            asyncio.run(journal.intent(CORE, registry="https://r.test/", digests=DIGESTS))
        else:
            where = STAGED if then is Outcome.STAGED else None
            journal.outcome(CORE, then, "why", staged=where)
        journal.close()
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert (entry.staged, entry.uncertain, entry.outcome) == (staged, uncertain, then)


def test_where_something_is_staged_holds_no_secret(tmp_path: Path) -> None:
    """R34"""
    redact = Redactor(["hunter2"])
    journal = Journal.open(tmp_path, run_id="run", redact=redact)
    start(journal)
    journal.outcome(CORE, Outcome.STAGED, "", staged=Staged(url="https://r.test/hunter2"))
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.staged == Staged(url="https://r.test/***")
    journal.close()


@pytest.mark.parametrize("staged", [[], "id", {"id": 1}, {"url": None}])
def test_a_staged_outcome_of_another_shape_is_an_error(tmp_path: Path, staged: object) -> None:
    """R32"""
    line = record(event="outcome", package="pypi:a", version="1", outcome="staged", reason="")
    fields = {**json.loads(line), "staged": staged}
    fields.pop("crc")
    with pytest.raises(JournalError, match="line 1 is not a record"):
        fold(encode(fields), state_directory=tmp_path)


def test_what_a_journal_tells_has_limits(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40: whoever can write there wrote it."""
    for number in range(4):
        package = replace(CORE, version=f"{number}")
        asyncio.run(journal.intent(package, registry="r", digests={"a": "0", "b": "1"}))
        asyncio.run(journal.intent(package, registry="r", digests={"a": "0"}))
        journal.phase_ended(f"upload {number}", duration_s=1.0)
    journal.close()
    kept = history._RUN + 4 * (history._ENTRY + history._DIGEST + history._NODE) + history._DIGEST
    for name, enough in {"MAX_RECORDS": 13, "MAX_KEPT": kept, "MAX_VALUES": 300}.items():
        with monkeypatch.context() as patch:
            patch.setattr(history, name, enough)
            assert len(read_history(tmp_path).entries) == 4
            patch.setattr(history, name, enough // 2)
            with pytest.raises(JournalError) as caught:
                read_history(tmp_path)
            assert "check --fix" in caught.value.hint


def test_a_rebuild_does_not_forget_an_upload_nobody_knows_about(
    journal: Journal, tmp_path: Path
) -> None:
    """R16"""

    async def run() -> None:
        await journal.intent(CORE, registry="https://r.test/", digests=DIGESTS)
        await journal.built(CORE, [wheel(tmp_path)])

    asyncio.run(run())
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.uncertain
    assert entry.intent == Intent(run_id="run", registry="https://r.test/", digests=DIGESTS)


def test_an_outcome_without_a_build_is_remembered(journal: Journal, tmp_path: Path) -> None:
    journal.outcome(CORE, Outcome.ALREADY_PUBLISHED, "there already")
    assert read_history(tmp_path).entry(CORE) == HistoryEntry(
        version="1.0", outcome=Outcome.ALREADY_PUBLISHED, reason="there already"
    )


def test_last_run_is_that_of_the_ecosystem_asked_for(tmp_path: Path) -> None:
    """R20: matrix jobs share a journal, each has its own last run."""
    for ecosystems in (["pypi"], ["cargo", "npm"], ["npm"]):
        journal = Journal.open(tmp_path, run_id="+".join(ecosystems))
        start(journal, *ecosystems)
        journal.close()
    history = read_history(tmp_path)
    last = {name: history.last_run(name) for name in ("pypi", "cargo", "npm", "go")}
    assert {name: run and run.id for name, run in last.items()} == {
        "pypi": "pypi",
        "cargo": "cargo+npm",
        "npm": "npm",
        "go": None,
    }
    assert not history.runs[-1].complete


@pytest.mark.parametrize("duration_s", [math.nan, math.inf, -math.inf, -1.0, 1e308])
def test_what_took_no_time_that_there_is_says_nothing(tmp_path: Path, duration_s: float) -> None:
    """R53: nothing vouches for these records, and their durations are summed up."""
    with contextlib.closing(Journal.open(tmp_path, run_id="run")) as journal:
        start(journal)
        journal.phase_ended("build pypi:core", duration_s=duration_s)
        journal.phase_ended("upload pypi:core", duration_s=2.0)
    assert read_history(tmp_path).durations == {"upload pypi:core": 2.0}


def test_runs_of_two_processes_may_be_interleaved(tmp_path: Path) -> None:
    """R26, R31: each has its own sequence; neither's tail is cut off by the other."""
    one, two = (Journal.open(tmp_path, run_id=name) for name in ("one", "two"))
    for journal in (one, two):
        start(journal)
    for number in range(3):
        one.phase_ended(f"build pypi:{number}", duration_s=1.0)
        two.phase_ended(f"build npm:{number}", duration_s=2.0)
    Journal.open(tmp_path, run_id="three").close()
    asyncio.run(one.run_ended("success"))
    two.close()
    one.close()
    history = read_history(tmp_path)
    assert [(run.id, run.complete) for run in history.runs] == [("one", True), ("two", False)]
    assert len(history.durations) == 6


def test_half_a_line_of_a_dead_process_is_cut_off_before_the_next(
    journal: Journal, tmp_path: Path
) -> None:
    """R32"""
    with (tmp_path / "journal.jsonl").open("ab") as other:
        other.write(b'{"v":1,"run":"dead","se')
    journal.phase_started("build pypi:core")
    assert read_history(tmp_path).torn == 0
    (tmp_path / "journal.jsonl").write_bytes(b'{"v":1,"run":"dead"')
    journal.phase_started("no line was ever whole")
    assert b'"dead"' not in (tmp_path / "journal.jsonl").read_bytes()


def test_the_next_run_drops_a_torn_tail_and_refuses_damage(tmp_path: Path) -> None:
    """R32"""
    path = tmp_path / "journal.jsonl"
    journal = Journal.open(tmp_path, run_id="first")
    start(journal)
    asyncio.run(journal.run_ended("success"))
    journal.close()
    path.write_bytes(path.read_bytes() + b"\0" * 100)
    assert read_history(tmp_path).torn == 100
    journal = Journal.open(tmp_path, run_id="second")
    assert path.stat().st_size == journal.history.intact
    start(journal)
    journal.close()
    damaged = path.read_bytes().replace(b"success", b"failure")
    path.write_bytes(damaged)
    with pytest.raises(JournalError, match="line 2 is damaged, and it had been written for good"):
        Journal.open(tmp_path, run_id="third")
    assert path.read_bytes() == damaged


def test_text_is_redacted_and_cannot_break_a_line(tmp_path: Path) -> None:
    """R34, R35"""
    journal = Journal.open(
        tmp_path, run_id="run", redact=lambda text: text.replace("hunter2", "***")
    )
    start(journal)
    journal.phase_ended("upload pypi:core", duration_s=1.0, error="401: hunter2\n::error::x")
    journal.outcome(CORE, Outcome.FAILED, "hunter2 \x1b[31m\u2028 ü")
    journal.close()
    data = (tmp_path / "journal.jsonl").read_bytes()
    assert b"hunter2" not in data
    assert data.count(b"\n") == 3
    assert data.isascii()
    assert b"\x1b" not in data
    entry = read_history(tmp_path).entry(CORE)
    assert entry is not None
    assert entry.reason == "*** \x1b[31m\u2028 ü"


def test_a_full_disk_leaves_the_journal_as_it_was(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record that found no room is taken back, and when there is room it goes on."""
    before = (tmp_path / "journal.jsonl").read_bytes()
    write = os.write
    written = itertools.count()

    def full(descriptor: int, data: bytes) -> int:
        if next(written) % 2:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(JournalUnwritable, match=r"journal\.jsonl: cannot be written: No space"):
            journal.phase_started("build pypi:core")
    assert (tmp_path / "journal.jsonl").read_bytes() == before
    journal.phase_started("build pypi:core")
    assert read_history(tmp_path).torn == 0


def test_after_a_failed_fsync_nothing_is_promised_any_more(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: the kernel forgets what it could not write; a second fsync would succeed."""

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(JournalUnwritable, match="Input/output error"):
            asyncio.run(journal.intent(CORE, registry="", digests={}))
    with pytest.raises(JournalUnwritable):
        journal.phase_started("build pypi:core")
    with pytest.raises(JournalUnwritable):
        asyncio.run(journal.run_ended("success"))


def test_an_abandoned_fsync_is_no_promise_and_close_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R29: a cancelled run closes its journal while the disk is still busy."""
    entered, go_on = threading.Event(), threading.Event()
    fsync = os.fsync
    journal = Journal.open(tmp_path, run_id="run")
    start(journal)

    def slow(descriptor: int) -> None:
        entered.set()
        assert go_on.wait(PATIENCE_S)
        fsync(descriptor)

    async def run() -> None:
        task = asyncio.create_task(journal.intent(CORE, registry="", digests={}))
        await asyncio.to_thread(entered.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        journal.outcome(CORE, Outcome.CANCELLED, "")
        asyncio.get_running_loop().call_later(0, go_on.set)
        await asyncio.to_thread(journal.close)

    monkeypatch.setattr(os, "fsync", slow)
    asyncio.run(run())
    assert b'"durable":0,"event":"outcome"' in (tmp_path / "journal.jsonl").read_bytes()
    journal.close()
    with pytest.raises(JournalUnwritable):
        journal.phase_started("too late")


def test_a_journal_that_cannot_be_opened_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(JournalUnwritable, match="Is a directory"):
        Journal.open(tmp_path, run_id="run")


def record(**fields: object) -> bytes:
    basic = {"v": 1, "run": "r", "seq": 0, "at": 0.0, "durable": 0, "event": "run_ended"}
    return encode({**basic, "result": "success", **fields})


def built(**fields: object) -> bytes:
    artifact = {"path": "dist/x.whl", "size": 1, "digests": {}, **fields}
    start_of_run = record(
        event="run_started", plan="", commit="", tool="", started_at="", ecosystems=[]
    )
    return start_of_run + record(
        seq=1,
        event="built",
        package="pypi:core",
        version="1.0",
        fingerprint="",
        artifacts=[artifact],
    )


def _sealed(body: bytes) -> bytes:
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (record(event="yanked"), "line 1 is not a record: unknown event 'yanked'"),
        (record(result=1), "line 1 is not a record: result of run_ended is 1"),
        (record(), "line 1 is not a record: 'r'"),
        (record(seq=1), "a record before this one is missing"),
        (record(v="1"), "not supported between"),
        (record(event="outcome", package="p:x", version="1", outcome="lost", reason=""), "'lost'"),
        (built(path="../x.whl"), "is not inside the state directory"),
        (built(path="/x.whl"), "is not inside the state directory"),
        (built(path="a\\..\\x.whl"), "is not inside the state directory"),
        (built(path="C:x.whl"), "is not inside the state directory"),
        (built(path=None), "line 2 is not a record"),
        (built(digests={"md5": "0"}), "has no size or no sha256"),
        (built(size="1"), "has no size or no sha256"),
        (built(digests={"sha256": 1}), "has no size or no sha256"),
        (built(digests="sha256"), "'str' object"),
        (built(digests=["sha256"]), "'list' object"),
        (built(path="dist/fake/\0"), "is not inside the state directory"),
        (built(path="dist/fake/\ud800"), "is not inside the state directory"),
        (_sealed(b'{"v":' + b"[" * 100_000), "not written by releasekit"),
        (b'1,"crc":"83dcefb7"}\n', "not written by releasekit"),
        (b'{},1,"crc":"00000000"}\n', ""),
    ],
)
def test_what_is_no_record_is_an_error(data: bytes, problem: str, tmp_path: Path) -> None:
    """R32, R36"""
    if not problem:
        assert fold(data, state_directory=tmp_path) == History(torn=len(data))
        return
    with pytest.raises(JournalError) as caught:
        fold(data, state_directory=tmp_path)
    assert problem in str(caught.value)
    assert caught.value.exit_code == 3


def test_sound_lines_that_are_no_objects_are_an_error(tmp_path: Path) -> None:
    for body in (b"[1", b'{},{"a":1', b'"a"},{"b":1'):
        with pytest.raises(JournalError, match="not written by releasekit"):
            fold(_sealed(body), state_directory=tmp_path)


def test_a_journal_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """R33"""
    data = record(v=SCHEMA + 1, event="something new")
    (tmp_path / "journal.jsonl").write_bytes(data)
    with pytest.raises(JournalNewer, match="schema 5; this version knows 4 at most"):
        Journal.open(tmp_path, run_id="run")
    assert (tmp_path / "journal.jsonl").read_bytes() == data


JOURNALS = Path(__file__).parents[2] / "fixtures" / "journals"


@pytest.mark.parametrize("path", sorted(JOURNALS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_journals_of_older_versions_replay(path: Path) -> None:
    """R33: a fixture stays for ever; a new schema adds one."""
    history = fold(path.read_bytes(), state_directory=Path("/state"))
    expected = json.loads(path.with_suffix(".expected.json").read_text())
    assert _summary(history) == expected


def _summary(history: History) -> Mapping[str, object]:
    staged = {
        f"{package} {version}": [entry.staged.id, entry.staged.url, entry.staged.tag]
        for (package, version), entry in history.entries.items()
        if entry.staged
    }
    return {
        **({"staged": staged} if staged else {}),
        "runs": [[run.id, run.commit, run.result] for run in history.runs],
        "entries": {
            f"{package} {version}": [
                entry.outcome,
                entry.uncertain,
                [str(artifact.path) for artifact in entry.artifacts],
                entry.intent and entry.intent.registry,
            ]
            for (package, version), entry in history.entries.items()
        },
        "durations": dict(history.durations),
        "torn": history.torn,
    }


def test_reading_changes_nothing_and_no_journal_is_an_empty_history(tmp_path: Path) -> None:
    """R30"""
    assert read_history(tmp_path) == History()
    assert list(tmp_path.iterdir()) == []
    assert read_history(tmp_path).entry(CORE) is None
