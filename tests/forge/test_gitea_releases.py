"""What is Gitea's own about releases: it publishes drafts of pushed tags, tells no digests, and has
as many files of one name as it gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge.forges import GITEA
from forge.test_announcing import CHECKSUMS, announce_at, commit_tags, draft, only, whole
from harness.gitea_double import GiteaDouble, serving_gitea
from releasekit.announce.releases import with_marker, write_state
from releasekit.announced import Status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GiteaDouble]:
    with serving_gitea(tmp_path) as served:
        commit_tags(served)
        yield served
        assert not served.defects


def test_a_draft_that_gitea_has_published_is_not_whole_yet(world: GiteaDouble) -> None:
    """R15: it does so where a tag was pushed a moment ago; a run that is killed then leaves a
    release that says so.
    """
    world.add("a-v1.0.0", body=with_marker(draft()).body)
    assert GITEA.shown(world) == []
    assert only(GITEA, world).status is Status.CREATED
    assert whole(GITEA, world)
    assert world.releases[0]["body"] == write_state(with_marker(draft()).body, "")
    assert only(GITEA, world).status is Status.EXISTING


def test_notes_that_hold_a_marker_of_a_draft_are_no_draft(world: GiteaDouble) -> None:
    """They hold what commits say."""
    said = f"<!-- releasekit draft: x sha256:{'0' * 64} -->"
    assert only(GITEA, world, draft(body=f"- {said}\n")).status is Status.CREATED
    written = list(world.writes)
    assert only(GITEA, world, draft(body=f"- {said}\n")).status is Status.EXISTING
    assert world.writes == written
    assert said in world.releases[0]["body"]


@pytest.mark.parametrize(
    ("content", "status"),
    [(CHECKSUMS, Status.CREATED), (CHECKSUMS[::-1], Status.PENDING), (b"short", Status.PENDING)],
)
def test_a_file_of_our_draft_is_read_to_compare_it(
    world: GiteaDouble, content: bytes, status: Status
) -> None:
    """R53: of the same size too."""
    release = world.add("a-v1.0.0", body=with_marker(draft()).body, draft=True)
    world.add_asset(release, "checksums.txt", content)
    said = only(GITEA, world)
    assert said.status is status
    if status is Status.PENDING:
        assert said.note == "the draft of a-v1.0.0 has another file as checksums.txt"
        assert world.contents[release["assets"][0]["uuid"]] == content
    else:
        assert whole(GITEA, world)
        assert len([each for each in world.writes if "name=checksums.txt" in each]) == 0


def test_of_two_files_of_one_name_the_first_stays(world: GiteaDouble) -> None:
    """As two runs upload them, of which each finds the draft of the other."""
    release = world.add("a-v1.0.0", body=with_marker(draft()).body, draft=True)
    first = world.add_asset(release, "report.html", b"<p>")

    def another_run(when: str, what: str) -> None:
        if (when, what.partition(" ")[0]) == ("before", "PATCH"):
            world.add_asset(release, "report.html", b"<p>another")
            world.add_asset(release, "checksums.txt", CHECKSUMS)

    world.around = another_run
    assert only(GITEA, world).status is Status.CREATED
    assert whole(GITEA, world)
    assert sorted(each["name"] for each in release["assets"]) == ["checksums.txt", "report.html"]
    assert first in release["assets"]


def test_a_server_may_show_less_at_once_than_is_asked_for(world: GiteaDouble) -> None:
    world.page_size = 2
    drafts = (draft(), draft("b", "2.0.0"), draft("c", "0.1.0"))
    assert {each.status for each in announce_at(GITEA, world, *drafts).values()} == {Status.CREATED}
    written = list(world.writes)
    assert {each.status for each in announce_at(GITEA, world, *drafts).values()} == {
        Status.EXISTING
    }
    assert world.writes == written


def test_the_highest_version_is_made_last_as_the_newest_is_the_latest(world: GiteaDouble) -> None:
    announce_at(GITEA, world, draft("b", "2.0.0"), draft(), draft("c", "0.1.0"))
    assert [each["tag_name"] for each in world.releases] == ["b-v2.0.0", "c-v0.1.0", "a-v1.0.0"]
