"""The decision table: what the registry shows x what the journal remembers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fakes import URL, artifact, package
from releasekit.fields import replace
from releasekit.model import UNKNOWN, Action, Artifact, Published, Staged
from releasekit.plan.decision import compare, decide
from releasekit.plan.make import plan_package
from releasekit.state.journal import HistoryEntry, Intent

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "c0ffee"


@pytest.fixture
def built(tmp_path: Path) -> tuple[Artifact, ...]:
    files = []
    for name, content in (("a-1.0.tar.gz", b"source"), ("a-1.0.whl", b"wheel")):
        (tmp_path / name).write_bytes(content)
        files.append(artifact(tmp_path / name, content))
    return tuple(files)


def shown(*artifacts: Artifact, complete: bool = True) -> Published:
    return Published(files={a.filename: f"sha256:{a.sha256}" for a in artifacts}, complete=complete)


def entry(built: tuple[Artifact, ...], *, begun: bool, commit: str = COMMIT) -> HistoryEntry:
    intent = Intent(run_id="r", registry=URL, digests={a.filename: a.sha256 for a in built})
    return HistoryEntry(
        version="1.0",
        commit=commit,
        artifacts=built,
        sealed=True,
        intent=intent if begun else None,
        uncertain=begun,
    )


def decided(
    published: Published | None, remembered: HistoryEntry | None, commit: str = COMMIT
) -> Action:
    return decide(published, remembered, commit=commit, url=URL)[0]


def test_what_may_be_published_is_not_refused(built: tuple[Artifact, ...], tmp_path: Path) -> None:
    """Where its registry could not be asked, it may show it whole."""
    begun = entry(built, begun=True, commit="another")
    ours = replace(package("a"), manifest=tmp_path / "a-1.0.whl")
    assert plan_package(ours, None, begun, commit=COMMIT, url=URL).action is Action.REFUSE
    planned = plan_package(ours, None, begun, commit=COMMIT, url=URL, unknown=UNKNOWN)
    assert (planned.action, planned.reason) == (Action.PUBLISH, UNKNOWN)


def test_nothing_anywhere_is_published() -> None:
    assert decided(None, None) is Action.PUBLISH


def test_a_fresh_machine_keeps_what_is_there(built: tuple[Artifact, ...]) -> None:
    """R19"""
    assert decided(shown(*built), None) is Action.KEEP


def test_a_fresh_machine_completes_what_is_partly_there(built: tuple[Artifact, ...]) -> None:
    """R21"""
    assert decided(shown(built[0], complete=False), None) is Action.PUBLISH


@pytest.mark.parametrize("begun", [False, True])
def test_stored_bytes_are_uploaded_not_built_again(
    built: tuple[Artifact, ...], begun: bool
) -> None:
    """R18"""
    assert decided(None, entry(built, begun=begun)) is Action.UPLOAD


def test_a_begun_upload_is_completed(built: tuple[Artifact, ...]) -> None:
    """R21"""
    assert decided(shown(built[0]), entry(built, begun=True)) is Action.UPLOAD


def test_our_own_bytes_are_kept(built: tuple[Artifact, ...]) -> None:
    """R17"""
    assert decided(shown(*built), entry(built, begun=True)) is Action.KEEP


def test_other_bytes_are_refused_with_both_digests(
    built: tuple[Artifact, ...], tmp_path: Path
) -> None:
    """R17"""
    other = artifact(built[1].path, b"another wheel")
    action, reason = decide(
        shown(built[0], other), entry(built, begun=True), commit=COMMIT, url=URL
    )
    assert action is Action.REFUSE
    assert built[1].sha256 in reason
    assert other.sha256 in reason
    assert "Bump the version" in reason


def test_a_build_that_was_never_sent_is_not_compared(built: tuple[Artifact, ...]) -> None:
    other = artifact(built[0].path, b"published by somebody else")
    assert decided(shown(other), entry(built, begun=False)) is Action.KEEP


def test_what_was_never_sent_is_not_reported_of_what_others_published(
    built: tuple[Artifact, ...], tmp_path: Path
) -> None:
    """R19"""
    (tmp_path / "a.toml").write_text("")
    ours = replace(package("a"), manifest=tmp_path / "a.toml")
    theirs = shown(artifact(built[0].path, b"published by somebody else"))
    for published, reported in ((theirs, ()), (shown(*built), built)):
        planned = plan_package(ours, published, entry(built, begun=False), commit=COMMIT, url=URL)
        assert (planned.action, planned.artifacts) == (Action.KEEP, reported)


def test_an_upload_begun_elsewhere_does_not_bind(built: tuple[Artifact, ...]) -> None:
    intent = Intent(run_id="r", registry="https://staging.example/", digests={})
    remembered = HistoryEntry(
        version="1.0", commit="older", artifacts=built, intent=intent, uncertain=True
    )
    assert decided(None, remembered) is Action.PUBLISH


@pytest.mark.parametrize(("url", "begun"), [(URL, True), ("https://staging.example/", False)])
def test_an_upload_begun_elsewhere_is_not_begun_here(
    built: tuple[Artifact, ...], url: str, begun: bool
) -> None:
    """The name may be new there, and what was sent elsewhere explains nothing that is there."""
    ours = replace(package("a"), manifest=built[0].path)
    planned = plan_package(ours, None, entry(built, begun=True), commit=COMMIT, url=url)
    assert (planned.begun, planned.artifacts) == (begun, built)


@pytest.mark.parametrize("now", ["deadbeef", "c0ffee+dirty.123", ""])
def test_a_begun_upload_from_other_sources_is_refused(
    built: tuple[Artifact, ...], now: str
) -> None:
    """R20"""
    action, reason = decide(None, entry(built, begun=True), commit=now, url=URL)
    assert action is Action.REFUSE
    assert COMMIT in reason
    assert "bump the version" in reason


@pytest.mark.parametrize("now", ["deadbeef", "c0ffee+dirty.123", ""])
def test_stored_bytes_of_other_sources_are_built_again(
    built: tuple[Artifact, ...], now: str
) -> None:
    assert decided(None, entry(built, begun=False), now) is Action.PUBLISH


def test_stored_bytes_of_changed_sources_are_not_trusted(built: tuple[Artifact, ...]) -> None:
    dirty = "c0ffee+dirty.123"
    assert decided(None, entry(built, begun=False, commit=dirty), dirty) is Action.PUBLISH


@pytest.mark.parametrize(("begun", "then"), [(False, Action.PUBLISH), (True, Action.REFUSE)])
@pytest.mark.parametrize("lost", [False, True])
def test_damaged_bytes_are_never_sent(
    built: tuple[Artifact, ...], begun: bool, then: Action, lost: bool
) -> None:
    """R18, R20"""
    if lost:
        built[1].path.unlink()
    else:
        built[1].path.write_bytes(b"flipped")
    assert decided(None, entry(built, begun=begun)) is then


def test_comparison_uses_the_digest_the_registry_has(tmp_path: Path) -> None:
    file = Artifact(path=tmp_path / "a.tgz", size=1, digests={"sha256": "11", "sha512": "22"})
    same = compare([file], Published(files={"a.tgz": "sha512:22"}))
    other = compare([file], Published(files={"a.tgz": "sha512:23"}))
    unknown = compare([file], Published(files={"a.tgz": "md5:22"}))
    assert (same.missing, same.differing) == ((), ())
    assert other.differing == ("a.tgz",)
    assert unknown.differing == ("a.tgz",)


@pytest.mark.parametrize(("complete", "then"), [(True, Action.KEEP), (False, Action.REFUSE)])
def test_bytes_built_since_are_not_those_begun_with(
    built: tuple[Artifact, ...], complete: bool, then: Action
) -> None:
    """R18"""
    intent = Intent(run_id="r", registry=URL, digests={"a-1.0.whl": "00"})
    remembered = HistoryEntry(version="1.0", commit=COMMIT, artifacts=built, intent=intent)
    assert decided(shown(built[0], complete=complete), remembered) is then


@pytest.mark.parametrize("now", ["deadbeef", COMMIT])
def test_an_upload_that_ended_and_left_nothing_does_not_bind(
    built: tuple[Artifact, ...], now: str
) -> None:
    """It was refused, or the registry has been emptied since: sources may change then."""
    settled = replace(entry(built, begun=True), uncertain=False)
    then = Action.UPLOAD if now == COMMIT else Action.PUBLISH
    assert decided(None, settled, now) is then


def test_an_upload_that_ended_and_left_something_binds(built: tuple[Artifact, ...]) -> None:
    """R18, R20"""
    settled = replace(entry(built, begun=True), uncertain=False)
    assert decided(shown(built[0]), settled, "deadbeef") is Action.REFUSE


def claimed(built: tuple[Artifact, ...], *, begun: bool = True, **changes: object) -> HistoryEntry:
    """What a record says that nobody has sealed."""
    return replace(entry(built, begun=begun), sealed=False, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("begun", [False, True])
def test_what_nobody_vouches_for_is_built_again(built: tuple[Artifact, ...], begun: bool) -> None:
    """R52: whoever can write a journal can write its checksums."""
    action, reason = decide(None, claimed(built, begun=begun), commit=COMMIT, url=URL)
    assert action is Action.PUBLISH
    assert "built again, since the files of an earlier run" in reason


@pytest.mark.parametrize("there", [1, 2])
def test_a_claim_does_not_say_what_belongs_to_a_release(
    built: tuple[Artifact, ...], there: int
) -> None:
    """R21, R52: the record may leave out what is still to be sent."""
    part = shown(*built[:there], complete=False)
    assert decided(part, claimed(built[:there])) is Action.PUBLISH
    assert decided(replace(part, complete=True), claimed(built[:there])) is Action.KEEP


def test_other_bytes_than_claimed_are_compared_with_a_build(
    built: tuple[Artifact, ...],
) -> None:
    """R17: the registry's bytes may be ours, and only the claim a lie."""
    other = artifact(built[1].path, b"another wheel")
    assert decided(shown(built[0], other), claimed(built)) is Action.PUBLISH


def test_a_claimed_upload_binds_to_its_sources(built: tuple[Artifact, ...]) -> None:
    """R20: an intent is never lost, whoever wrote it."""
    assert decided(None, claimed(built), "deadbeef") is Action.REFUSE
    assert decided(None, claimed(built, artifacts=())) is Action.REFUSE


def test_what_was_built_in_the_place_of_a_claim_is_uploaded(
    built: tuple[Artifact, ...],
) -> None:
    """R16: killed between the build and the intent for it."""
    intent = Intent(run_id="r", registry=URL, digests={"a-1.0.whl": "00"})
    again = replace(entry(built, begun=True), intent=intent, again=True)
    assert decided(None, again) is Action.UPLOAD
    assert decided(None, replace(again, sealed=False)) is Action.PUBLISH
    assert decided(shown(built[0], complete=False), again) is Action.UPLOAD
    other = artifact(built[1].path, b"another wheel")
    assert decided(shown(other, complete=False), again) is Action.REFUSE


def brought(
    published: Published | None, remembered: HistoryEntry | None, *files: Artifact
) -> tuple[Action, str]:
    return decide(published, remembered, commit=COMMIT, url=URL, prebuilt=files)


def test_files_from_elsewhere_that_are_there_are_kept(built: tuple[Artifact, ...]) -> None:
    """R19"""
    assert brought(shown(*built), None, *built)[0] is Action.KEEP
    assert brought(shown(*built), entry(built, begun=True), *built)[0] is Action.KEEP


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("complete", [False, True])
def test_files_from_elsewhere_never_differ_from_what_is_there(
    built: tuple[Artifact, ...], begun: bool, complete: bool
) -> None:
    """R17"""
    other = artifact(built[1].path, b"another wheel")
    remembered = entry(built, begun=True) if begun else None
    action, reason = brought(shown(*built, complete=complete), remembered, other)
    assert action is Action.REFUSE
    assert built[1].sha256 in reason
    assert other.sha256 in reason


@pytest.mark.parametrize("begun", [False, True])
def test_a_file_from_elsewhere_that_a_complete_release_lacks_is_published(
    built: tuple[Artifact, ...], begun: bool
) -> None:
    more = artifact(built[1].path.with_name("a-1.0-other.whl"), b"for another platform")
    remembered = entry(built, begun=True) if begun else None
    action, reason = brought(shown(*built), remembered, built[1], more)
    assert (action, reason) == (Action.PUBLISH, "on the registry without a-1.0-other.whl")


@pytest.mark.parametrize(("begun", "then"), [(False, Action.PUBLISH), (True, Action.UPLOAD)])
def test_only_an_upload_that_was_begun_goes_before_files_from_elsewhere(
    built: tuple[Artifact, ...], begun: bool, then: Action
) -> None:
    """R18"""
    other = artifact(built[1].path, b"another wheel")
    remembered = replace(entry(built, begun=begun), prebuilt=frozenset({other.filename}))
    assert brought(None, remembered, other)[0] is then
    assert brought(None, remembered, built[1])[0] is Action.UPLOAD


@pytest.mark.parametrize(("begun", "then"), [(False, Action.PUBLISH), (True, Action.UPLOAD)])
def test_a_file_that_nobody_brings_any_more_is_not_published(
    built: tuple[Artifact, ...], begun: bool, then: Action
) -> None:
    """R18: somebody has taken a bad one out; what an upload had begun with binds all the same."""
    remembered = replace(
        entry(built, begun=begun), prebuilt=frozenset(each.filename for each in built)
    )
    assert brought(None, remembered, built[0])[0] is then
    assert brought(None, remembered)[0] is then
    assert brought(None, remembered, *built)[0] is Action.UPLOAD


@pytest.mark.parametrize(
    ("there", "complete", "action"),
    [
        (0, False, Action.AWAIT),
        (1, False, Action.AWAIT),
        (2, True, Action.KEEP),
    ],
)
def test_what_is_staged_is_awaited_until_all_of_it_is_there(
    built: tuple[Artifact, ...], there: int, complete: bool, action: Action
) -> None:
    """R17: nothing of it is built or sent again, whatever the sources are."""
    remembered = replace(entry(built, begun=True), uncertain=False, staged=Staged(id="1"))
    published = shown(*built[:there], complete=complete) if there else None
    for commit in (COMMIT, "another"):
        assert decided(published, remembered, commit) is action


def test_other_bytes_than_those_staged_are_refused(built: tuple[Artifact, ...]) -> None:
    """R21"""
    remembered = replace(entry(built, begun=True), uncertain=False, staged=Staged())
    other = Published(files={built[0].filename: "sha256:00"}, complete=False)
    assert decided(other, remembered) is Action.REFUSE
    assert decided(None, replace(remembered, intent=None)) is not Action.AWAIT


def test_what_is_staged_on_one_registry_is_sent_to_another(built: tuple[Artifact, ...]) -> None:
    remembered = replace(entry(built, begun=True), uncertain=False, staged=Staged())
    action, _ = decide(None, remembered, commit=COMMIT, url="https://other.example/")
    assert action is Action.UPLOAD


def test_what_is_missing_beside_the_files_is_made_where_they_are_at_hand(
    built: tuple[Artifact, ...],
) -> None:
    """R57: else the plan says what is missing."""
    there = replace(shown(*built), lacks="no list names it")
    for begun in (True, False):
        remembered = entry(built, begun=begun)
        assert decided(there, remembered) is Action.UPLOAD
        assert decided(there, replace(remembered, sealed=False)) is Action.KEEP
    action, reason = decide(there, None, commit=COMMIT, url=URL)
    assert (action, reason) == (Action.KEEP, "on the registry already, but no list names it")
