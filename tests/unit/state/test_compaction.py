from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_log import MemoryLog
from releasekit.errors import JournalError
from releasekit.model import Outcome
from releasekit.state import journal as journal_module
from releasekit.state.history import History, compact, encode, fold
from releasekit.state.journal import Journal, read_history

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE = Path("/state")
DIGESTS = {"a.whl": "0" * 64}
ARTIFACTS = [{"path": "dist/a.whl", "size": 1, "digests": {"sha256": "0" * 64}}]


def started(run: str, *ecosystems: str) -> dict[str, object]:
    return {
        "event": "run_started",
        "run": run,
        "plan": "p",
        "commit": f"commit of {run}",
        "tool": "1",
        "started_at": "2026",
        "ecosystems": ecosystems or ["pypi"],
    }


def ended(run: str) -> dict[str, object]:
    return {"event": "run_ended", "run": run, "result": "success"}


def step(run: str, node: str, duration_s: float = 1.0, **fields: object) -> dict[str, object]:
    return {
        "event": "step_ended",
        "run": run,
        "node": node,
        "duration_s": duration_s,
        **fields,
    }


def of(run: str, event: str, version: str, **fields: object) -> dict[str, object]:
    name = fields.pop("name", "a")
    return {"event": event, "run": run, "package": f"pypi:{name}", "version": version, **fields}


def built(run: str, version: str, **fields: object) -> dict[str, object]:
    return of(run, "built", version, fingerprint=f"of {run}", artifacts=ARTIFACTS, **fields)


def intent(run: str, version: str, **fields: object) -> dict[str, object]:
    return of(run, "intent", version, registry="https://r.test/", digests=DIGESTS, **fields)


def outcome(run: str, version: str, what: Outcome, **fields: object) -> dict[str, object]:
    return of(run, "outcome", version, outcome=what, reason=f"{what} in {run}", **fields)


def written(records: Sequence[dict[str, object]]) -> bytes:
    sequence: dict[object, int] = {}
    data = b""
    for record in records:
        number = sequence[record["run"]] = sequence.get(record["run"], -1) + 1
        data += encode({"v": 1, "seq": number, "at": 0.0, "durable": len(data), **record})
    return data


def told(data: bytes) -> History:
    history = fold(data, state_directory=STATE)
    assert history.torn == 0
    return history


def versions(data: bytes) -> list[str]:
    return [version for _, version in told(data).entries]


def test_versions_that_were_followed_are_left_out() -> None:
    """R40"""
    records: list[dict[str, object]] = []
    for number in range(20):
        run, version = f"run-{number}", f"{number}.0"
        records += [started(run), built(run, version), step(run, "build pypi:a", float(number))]
        records += [intent(run, version), outcome(run, version, Outcome.PUBLISHED), ended(run)]
    before = written(records)
    after = compact(before)
    assert versions(after) == ["19.0"]
    assert [run.id for run in told(after).runs] == ["run-19"]
    assert told(after).durations == {"build pypi:a": 19.0}
    assert told(after).entries.items() <= told(before).entries.items()
    assert compact(after) == after


@pytest.mark.parametrize(
    ("then", "kept"),
    [
        ([], True),
        ([outcome("one", "1", Outcome.UNKNOWN)], True),
        ([outcome("one", "1", Outcome.BLOCKED)], True),
        ([outcome("one", "1", Outcome.FAILED)], False),
        # Another run's failure may be its build's: it tells nothing of this upload.
        ([outcome("two", "1", Outcome.FAILED)], True),
        ([outcome("two", "1", Outcome.ALREADY_PUBLISHED)], False),
        ([outcome("one", "1", Outcome.PUBLISHED), intent("two", "1")], True),
        ([outcome("one", "1", Outcome.PUBLISHED), built("two", "1")], False),
        ([outcome("one", "1", Outcome.STAGED)], True),
        ([outcome("one", "1", Outcome.STAGED), outcome("two", "1", Outcome.CANCELLED)], True),
        ([outcome("one", "1", Outcome.STAGED), outcome("one", "1", Outcome.FAILED)], True),
        ([outcome("one", "1", Outcome.STAGED), outcome("two", "1", Outcome.PUBLISHED)], False),
    ],
)
def test_an_upload_that_nobody_knows_the_end_of_stays(
    then: list[dict[str, object]], kept: bool
) -> None:
    """R16"""
    records = [started("one"), built("one", "1"), intent("one", "1"), started("two"), *then]
    records += [ended("two"), started("three"), outcome("three", "2", Outcome.PUBLISHED)]
    before = written(records)
    after = compact(before)
    assert versions(after) == (["1", "2"] if kept else ["2"])
    assert told(after).entries.items() <= told(before).entries.items()


def test_what_was_built_and_never_sent_is_forgotten_with_its_version() -> None:
    records = [started("one"), built("one", "1"), ended("one"), started("two"), built("two", "2")]
    assert versions(compact(written(records))) == ["2"]


def test_runs_that_may_still_write_keep_all_their_records() -> None:
    """R26"""
    at_work = [started("npm", "npm"), step("npm", "build npm:x", error="503")]
    dead = [started("dead"), step("dead", "build pypi:a", error="503")]
    after = compact(written([*at_work, *dead, started("next"), ended("next")]))
    kept = [json.loads(line) for line in after.splitlines()]
    assert [(record["run"], record["seq"], record["event"]) for record in kept] == [
        ("npm", 0, "run_started"),
        ("npm", 1, "step_ended"),
        ("next", 0, "run_started"),
        ("next", 1, "run_ended"),
    ]


def test_a_run_may_have_any_id_that_is_read() -> None:
    """R35"""
    numbered = [{**record, "run": 1} for record in (started(""), intent("", "1"), ended(""))]
    assert versions(compact(written(numbered))) == ["1"]


def test_a_run_that_ended_without_a_word_has_ended() -> None:
    records = [started("one"), step("one", "x", error="503"), {**ended("one"), "result": ""}]
    assert len(compact(written(records)).splitlines()) == 2


def test_damage_within_a_shortened_journal_is_still_an_error() -> None:
    """R32"""
    records = [started("one"), intent("one", "1"), intent("one", "2", name="b"), ended("one")]
    after = compact(written(records))
    broken = after.replace(b'"pypi:a"', b'"pypi:x"')
    assert broken != after
    with pytest.raises(JournalError, match="line 2 is damaged"):
        fold(broken, state_directory=STATE)


@pytest.mark.parametrize("seed", range(200))
def test_the_next_run_learns_the_same(seed: int) -> None:
    rng = random.Random(seed)
    records: list[dict[str, object]] = []
    for number in range(rng.randrange(1, 12)):
        run = f"run-{number}"
        records.append(started(run, *rng.sample(["pypi", "npm", "go"], rng.randrange(1, 4))))
        records.append({"event": "planned", "run": run, "needs": {"pypi:a": [], "pypi:b": []}})
        for _ in range(rng.randrange(12)):
            name, version = rng.choice("abc"), str(rng.randrange(1, 4))
            records.append(
                rng.choice(
                    [
                        step(run, f"upload pypi:{name}", rng.random()),
                        step(run, f"upload pypi:{name}", error="503"),
                        {"event": "step_started", "run": run, "node": f"upload pypi:{name}"},
                        built(run, version, name=name),
                        intent(run, version, name=name),
                        outcome(run, version, rng.choice(list(Outcome)), name=name),
                    ]
                )
            )
        if rng.random() < 0.7:
            records.append(ended(run))
    before, after = written(records), compact(written(records))
    old, new = told(before), told(after)
    assert new.entries == {key: old.entries[key] for key in new.entries}
    assert all(
        new.entries.get(key) == entry for key, entry in old.entries.items() if entry.uncertain
    )
    assert new.durations == old.durations
    for ecosystem in ("pypi", "npm", "go"):
        assert new.last_run(ecosystem) == old.last_run(ecosystem)
    assert compact(after) == after


def test_a_journal_is_shortened_where_that_halves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [started("one"), *(step("one", "x", error="503") for _ in range(9)), ended("one")]
    monkeypatch.setattr(Journal, "compact_above", 0)
    for data, shorter in [(written(records), True), (written([records[0], records[-1]]), False)]:
        log = MemoryLog(data)
        journal = Journal(log, state_directory=STATE, run_id="next")
        assert (len(log.data) < len(data)) == shorter
        assert journal.history.intact == len(log.data)
        journal.run_started(plan_digest="", commit="", tool="", started_at="", ecosystems=["pypi"])
        assert [run.id for run in told(log.data).runs] == ["one", "next"]


def test_the_length_of_what_is_read_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R40"""
    (tmp_path / "journal.jsonl").write_bytes(written([started("one"), ended("one")]))
    monkeypatch.setattr(journal_module, "MAX_BYTES", 100)
    for start in (lambda: read_history(tmp_path), lambda: Journal.open(tmp_path, run_id="next")):
        with pytest.raises(
            JournalError, match=r"journal\.jsonl: is longer than 100 bytes"
        ) as caught:
            start()
        assert "check --fix" in caught.value.hint
