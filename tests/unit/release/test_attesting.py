"""The lane that signs: before any upload, never twice, and in nobody's way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import virtual_time
from attesting import LOG, FakeAttesting, FakeSigning
from fakes import (
    SEAL,
    FakeRegistry,
    FakeTarget,
    FakeWorkspace,
    config,
    package,
    placed,
    plan,
)
from releasekit.errors import Denied, Transient
from releasekit.fields import replace
from releasekit.model import Action, Artifact, Outcome
from releasekit.problems import Problem
from releasekit.release.polling import Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.release.spending import ATTEST_SLOTS
from releasekit.state.directory import JOURNAL, make_state_directory
from releasekit.state.history import encode, records_of
from releasekit.state.journal import Journal, read_history

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from releasekit.model import Package, Plan, Result


@dataclass
class SeeingRegistry(FakeRegistry):
    """Notes what came with each file."""

    attested: dict[str, int | None] = field(default_factory=dict)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        for file in artifacts:
            index = file.attestation.log_index if file.attestation else None
            self.attested[file.filename] = index
        await super().upload(package, artifacts)


@dataclass
class Bench:
    root: Path
    registry: SeeingRegistry = field(default_factory=SeeingRegistry)
    signing: FakeSigning = field(default_factory=FakeSigning)
    workspace: FakeWorkspace = field(default_factory=FakeWorkspace)
    number: int = 0

    def run(
        self, made: Plan, during: Callable[[ReleaseRun], None] = lambda _: None, **changes: object
    ) -> dict[str, Result]:
        return virtual_time.run(self._run(made, during, **changes))

    async def _run(
        self, made: Plan, during: Callable[[ReleaseRun], None], **changes: object
    ) -> dict[str, Result]:
        settings = config(self.root, **changes)
        make_state_directory(settings.state_directory)
        self.number += 1
        journal = Journal.open(settings.state_directory, run_id=f"run {self.number}", seal=SEAL)
        journal.run_started(plan_digest="", commit="", tool="", started_at="", ecosystems=["fake"])
        there = placed(made, self.root)
        release = ReleaseRun(
            there,
            {"fake": FakeTarget(self.workspace, self.registry, attesting=FakeAttesting())},
            config=settings,
            journal=journal,
            watch=lambda _: None,
            sources=Sources(there, None),
            polling=Polling(),
            signing=self.signing,
        )
        during(release)
        await release.run()
        journal.close()
        return {result.package.id.name: result for result in release.results()}

    def remembered(self, made: Plan) -> Plan:
        """`made`, with the files of packages as the journal has them now, to be uploaded."""
        history = read_history(self.root / ".releasekit", seal=SEAL)
        steps = []
        for each in made.packages:
            entry = history.entry(each.package)
            if entry is not None and entry.artifacts:
                step = replace(each, action=Action.UPLOAD, artifacts=entry.artifacts, begun=True)
                steps.append(step)
            else:
                steps.append(each)
        return replace(made, packages=tuple(steps))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def attested(*packages: Package) -> Plan:
    made = plan(*packages)
    return replace(made, packages=tuple(replace(each, attest=True) for each in made.packages))


def test_every_file_is_sent_with_its_attestation_which_lies_beside_it(bench: Bench) -> None:
    """R15."""
    results = bench.run(attested(package("a"), package("b", "a")))
    assert {each.outcome for each in results.values()} == {Outcome.PUBLISHED}
    found = bench.registry.attested
    assert {name: bench.signing.log.index(name) for name in found} == found
    assert list(found) == ["a-1.0.pkg", "b-1.0.pkg"]
    for result in results.values():
        (file,) = result.artifacts
        assert file.attestation is not None
        assert file.attestation.path == file.path.with_name(f"{file.filename}.sigstore.json")
        assert file.attestation.log_url == LOG
        assert bench.signing.signed(file)


def test_what_is_not_to_be_attested_is_not(bench: Bench) -> None:
    made = plan(package("a"))
    assert bench.run(made)["a"].outcome is Outcome.PUBLISHED
    assert bench.registry.attested == {"a-1.0.pkg": None}
    assert bench.signing.log == []


def test_what_an_earlier_run_has_signed_is_sent_by_one_that_signs_alone(bench: Bench) -> None:
    """With `attestations: off`, and with a token in place of trusted publishing, PyPI would refuse
    it; and nobody has looked at what lies there.
    """
    made = attested(package("a"))
    bench.registry.faults["a"] = [Denied("the attestations are invalid")]
    assert bench.run(made)["a"].outcome is Outcome.FAILED
    (step,) = bench.remembered(made).packages
    assert step.artifacts[0].attestation is not None
    result = bench.run(replace(made, packages=(replace(step, attest=False),)))["a"]
    assert result.outcome is Outcome.PUBLISHED
    assert bench.registry.attested == {"a-1.0.pkg": None}
    assert result.artifacts[0].attestation is None


def test_a_passing_failure_is_tried_again_and_costs_no_upload(bench: Bench) -> None:
    bench.signing.faults["a-1.0.pkg"] = [Transient("503"), Transient("503"), None]
    result = bench.run(attested(package("a")), max_retries=2, retry_base_delay=0.0)["a"]
    assert result.outcome is Outcome.PUBLISHED
    assert result.attempts == 1
    assert bench.registry.attested == {"a-1.0.pkg": 0}


def test_without_an_attestation_nothing_is_sent(bench: Bench) -> None:
    bench.signing.faults["a-1.0.pkg"] = [Transient("the log is down", hint="attestations: off")]
    results = bench.run(attested(package("a"), package("b", "a"), package("c")), max_retries=0)
    assert results["a"].outcome is Outcome.FAILED
    assert results["a"].reason == "the log is down"
    assert results["a"].hint == "attestations: off"
    assert results["b"].outcome is Outcome.BLOCKED
    assert results["c"].outcome is Outcome.PUBLISHED
    assert bench.registry.uploads == ["c"]


def test_a_refusal_is_not_tried_again(bench: Bench) -> None:
    bench.signing.faults["a-1.0.pkg"] = [Denied("no identity")]
    result = bench.run(attested(package("a")), max_retries=3)["a"]
    assert (result.outcome, result.reason) == (Outcome.FAILED, "no identity")
    assert bench.signing.log == []


def test_one_that_does_not_answer_ends_with_its_time(bench: Bench) -> None:
    bench.signing.hang.add("a-1.0.pkg")
    result = bench.run(attested(package("a")), task_timeout=60.0, max_retries=0)["a"]
    assert result.outcome is Outcome.FAILED
    assert result.problem is Problem.NOT_SIGNED
    assert "it was not signed within 60 s" in result.reason


def test_what_is_signed_once_is_not_signed_again(bench: Bench) -> None:
    """Neither by another attempt at the upload, nor by the next run."""
    made = attested(package("a"))
    bench.registry.faults["a"] = [Transient("502"), Transient("502")]
    assert bench.run(made, max_retries=1, retry_base_delay=0.0)["a"].outcome is Outcome.FAILED
    assert bench.run(bench.remembered(made))["a"].outcome is Outcome.PUBLISHED
    assert bench.signing.log == ["a-1.0.pkg"]
    assert bench.registry.attested == {"a-1.0.pkg": 0}


def test_what_was_lost_between_the_log_and_the_disk_is_signed_again(bench: Bench) -> None:
    made = attested(package("a"))
    bench.signing.lost["a-1.0.pkg"] = Denied("the answer got lost")
    assert bench.run(made, max_retries=0)["a"].outcome is Outcome.FAILED
    assert bench.run(bench.remembered(made))["a"].outcome is Outcome.PUBLISHED
    assert bench.signing.log == ["a-1.0.pkg", "a-1.0.pkg"]
    assert bench.registry.attested == {"a-1.0.pkg": 1}


@pytest.mark.parametrize("damage", ["gone", "another"])
def test_what_is_not_of_this_file_is_replaced(bench: Bench, damage: str) -> None:
    made = attested(package("a"))
    bench.registry.faults["a"] = [Denied("no")]
    first = bench.run(made)["a"].artifacts[0].attestation
    assert first is not None
    first.path.unlink() if damage == "gone" else first.path.write_text('["a-1.0.pkg", "other"]')
    result = bench.run(bench.remembered(made))["a"]
    assert result.outcome is Outcome.PUBLISHED
    assert bench.registry.attested == {"a-1.0.pkg": 1}
    assert bench.signing.signed(result.artifacts[0])


@pytest.mark.parametrize("change", [{}, {"seal": "0" * 64}, {"bundle": "0" * 64}, {"index": 7}])
def test_what_a_journal_says_of_a_bundle_counts_under_its_seal_alone(
    bench: Bench, change: dict[str, object]
) -> None:
    """R52: anyone can make a certificate that names our job, and whoever can write has no key."""
    made = attested(package("a"))
    bench.registry.faults["a"] = [Denied("no")]
    bench.run(made)
    path = bench.root / ".releasekit" / JOURNAL
    lines = []
    for record in records_of(path.read_bytes()):
        body = {key: value for key, value in record.items() if key != "crc"}
        if body["event"] == "attested":
            (file,) = body["files"].values()
            (file if change.keys() & file.keys() else body).update(change)
        lines.append(encode(body))
    path.write_bytes(b"".join(lines))
    (step,) = bench.remembered(made).packages
    assert (step.artifacts[0].attestation is None) is bool(change)
    assert bench.run(bench.remembered(made))["a"].outcome is Outcome.PUBLISHED
    assert bench.signing.log == ["a-1.0.pkg"] * (2 if change else 1)


def test_files_that_are_built_anew_have_no_attestation_yet(bench: Bench) -> None:
    made = attested(package("a"))
    bench.registry.faults["a"] = [Denied("no")]
    bench.run(made)
    bench.run(made)  # which builds other bytes
    assert bench.signing.log == ["a-1.0.pkg", "a-1.0.pkg"]
    assert bench.registry.attested == {"a-1.0.pkg": 1}


def test_no_more_than_some_are_signed_at_a_time(bench: Bench) -> None:
    packages = [package(f"p{number:02}") for number in range(3 * ATTEST_SLOTS)]
    results = bench.run(attested(*packages), build_concurrency=30)
    assert all(each.outcome is Outcome.PUBLISHED for each in results.values())
    assert 1 < bench.signing.peak <= ATTEST_SLOTS


def test_it_takes_no_slot_of_builds_or_uploads(bench: Bench) -> None:
    """What cannot be signed holds up nobody: all others are built and sent meanwhile."""
    bench.signing.hang.add("a-1.0.pkg")
    others = [package(f"p{number}") for number in range(4)]

    def stop_when_all_are_out(release: ReleaseRun) -> None:
        def uploaded(_: str) -> None:
            if len(bench.registry.uploads) == len(others):
                asyncio.get_running_loop().call_soon(lambda: release.stop("done", grace_s=0.0))

        bench.registry.on_upload = uploaded

    made = plan(package("a"), *others)
    steps = (replace(made.packages[0], attest=True), *made.packages[1:])
    results = bench.run(
        replace(made, packages=steps),
        stop_when_all_are_out,
        concurrency=1,
        build_concurrency=2,
    )
    assert results["a"].outcome is Outcome.CANCELLED
    assert sorted(bench.registry.uploads) == ["p0", "p1", "p2", "p3"]


def test_a_dry_run_signs_nothing(bench: Bench) -> None:
    assert bench.run(attested(package("a")), dry_run=True)["a"].outcome is Outcome.WOULD_PUBLISH
    assert bench.signing.log == []


def test_the_files_of_a_release_are_known_once_nothing_is_left_to_build(bench: Bench) -> None:
    bench.workspace.broken = ["b"]
    found: list[Sequence[Artifact]] = []

    def during(release: ReleaseRun) -> None:
        async def ask() -> None:
            found.append(await release.built())

        tasks.append(asyncio.ensure_future(ask()))

    tasks: list[asyncio.Future[None]] = []
    bench.run(attested(package("a"), package("b"), package("c")), during)
    assert [[each.filename for each in files] for files in found] == [["a-1.0.pkg", "c-1.0.pkg"]]


@pytest.mark.parametrize(("built_from", "told"), [("c0ffee", ["a", "b"]), ("0ld", ["b"])])
def test_what_was_built_from_another_commit_is_not_said_to_be_of_this_one(
    bench: Bench, built_from: str, told: list[str]
) -> None:
    """It is published, and its files are still there; what this run signs names its own commit."""
    made = plan(package("a"), package("b"), actions={"a": Action.KEEP})
    old = Artifact(path=bench.root / "a-1.0.pkg", size=1, digests={"sha256": "0" * 64})
    kept = replace(made.packages[0], artifacts=(old,), built_from=built_from)
    found: list[Sequence[Artifact]] = []

    def during(release: ReleaseRun) -> None:
        async def ask() -> None:
            found.append(await release.built())

        tasks.append(asyncio.ensure_future(ask()))

    tasks: list[asyncio.Future[None]] = []
    bench.run(replace(made, packages=(kept, *made.packages[1:])), during)
    assert [[each.filename for each in files] for files in found] == [
        [f"{name}-1.0.pkg" for name in told]
    ]
