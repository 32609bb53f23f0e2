"""Releases made, found, gone on with and left alone, at the double of each forge."""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from forge.forges import FORGES
from harness.http_server import HangUp
from releasekit.announce.forge import Draft, Upload
from releasekit.announce.releases import announce, with_marker
from releasekit.announced import Announcement, Status
from releasekit.fields import replace
from releasekit.http.client import RetryPolicy, http_client
from releasekit.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forge.forges import ForgeCase, Refusal, World

POLICY = RetryPolicy(max_retries=3, base_delay_s=0.0)
CHECKSUMS = b"SHA256 (a-1.0.0.tgz) = 00\n"


def upload(name: str, content: bytes, *, by_name: bool = False) -> Upload:
    return Upload(
        name=name,
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        by_name=by_name,
    )


def draft(name: str = "a", version: str = "1.0.0", **more: Any) -> Draft:
    made = Draft(
        tag=f"{name}-v{version}",
        title=f"{name} {version}",
        body="- A change.",
        prerelease=False,
        version=version,
        assets=(upload("checksums.txt", CHECKSUMS), upload("report.html", b"<p>", by_name=True)),
    )
    return replace(made, **more)


@pytest.fixture(params=FORGES, ids=str)
def case(request: pytest.FixtureRequest) -> ForgeCase:
    found: ForgeCase = request.param
    return found


@pytest.fixture
def world(case: ForgeCase, tmp_path: Path) -> Iterator[World]:
    with case.serving(tmp_path) as served:
        commit_tags(served)
        yield served
        assert not served.defects


def commit_tags(world: World) -> None:
    """One commit, and a tag for each draft of these tests."""
    tree = world.git("mktree").strip()
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    commit = world.git(*who, "commit-tree", tree, "-m", "Start").strip()
    world.git("update-ref", "refs/heads/main", commit)
    for tag in ("a-v1.0.0", "b-v2.0.0", "c-v0.1.0"):
        world.git("tag", tag, commit)


def announce_at(
    case: ForgeCase, world: World, *drafts: Draft, token: str = ""
) -> dict[str, Announcement]:
    async def main() -> dict[str, Announcement]:
        async with http_client() as http:
            forge = case.open(world, http, token or case.token, POLICY)
            return await announce(drafts, forge, tell=lambda _: None)

    return asyncio.run(main())


def only(case: ForgeCase, world: World, *drafts: Draft) -> Announcement:
    (announcement,) = announce_at(case, world, *(drafts or (draft(),))).values()
    return announcement


def whole(case: ForgeCase, world: World, tag: str = "a-v1.0.0") -> bool:
    """One release, with its assets."""
    (release,) = (each for each in case.shown(world) if each.tag == tag)
    return release.files == {"checksums.txt": CHECKSUMS, "report.html": b"<p>"}


def test_made_once_and_then_only_looked_at(case: ForgeCase, world: World) -> None:
    made = only(case, world)
    (shown,) = case.shown(world)
    assert (made.status, made.url) == (Status.CREATED, shown.url)
    assert (shown.title, shown.body) == ("a 1.0.0", with_marker(draft()).body)
    assert whole(case, world)
    written = list(world.writes)
    found = only(case, world)
    assert (found.status, found.url) == (Status.EXISTING, shown.url)
    assert world.writes == written


def test_latest_is_the_highest_stable_version_of_all(case: ForgeCase, world: World) -> None:
    said = announce_at(
        case,
        world,
        draft("b", "2.0.0"),
        draft(),
        replace(draft("c", "0.1.0"), version="3.0.0b1", prerelease=True),
    )
    assert {each.status for each in said.values()} == {Status.CREATED}
    assert case.shown(world)[0].tag == "b-v2.0.0"


def test_a_foreign_release_is_left_alone(case: ForgeCase, world: World) -> None:
    world.add("a-v1.0.0", body="Written by hand.")
    said = only(case, world)
    assert (said.status, world.writes) == (Status.FOREIGN, [])
    assert "a release" in said.note


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("case", "number"), [(case, each) for case in FORGES for each in range(case.requests)], ids=str
)
def test_any_lost_answer_is_looked_after(
    case: ForgeCase, world: World, moment: str, number: int
) -> None:
    seen = {"before": 0, "after": 0}

    def lose(when: str, what: str) -> None:
        seen[when] += 1
        if (when, seen[when]) == (moment, number + 1):
            raise HangUp

    world.around = lose
    assert only(case, world).status.done
    assert seen[moment] > number
    assert whole(case, world)


@pytest.mark.parametrize(
    ("case", "answer"), [(case, answer) for case in FORGES for answer in case.passing], ids=str
)
def test_limits_and_clashes_are_waited_for_and_looked_after(
    case: ForgeCase, world: World, answer: Refusal
) -> None:
    world.failing = [answer]
    assert only(case, world).status is Status.CREATED
    assert whole(case, world)


def test_a_token_that_may_only_read_is_asked_once(case: ForgeCase, world: World) -> None:
    world.read_only = True
    said = announce_at(case, world, draft(), draft("b", "2.0.0"))
    assert {each.status for each in said.values()} == {Status.PENDING}
    assert len(world.writes) == 1
    for each in said.values():
        assert case.forbidden in each.note
        assert case.cure in each.hint


def test_a_limit_that_lasts_too_long_ends_it_for_all(case: ForgeCase, world: World) -> None:
    world.failing = [case.limit] * 9
    said = announce_at(case, world, draft(), draft("b", "2.0.0"))
    assert [each.status for each in said.values()] == [Status.PENDING, Status.PENDING]
    assert all("too many requests" in each.note for each in said.values())
    assert len(world.writes) == 1
    world.failing.clear()
    said = announce_at(case, world, draft(), draft("b", "2.0.0"))
    assert [each.status for each in said.values()] == [Status.CREATED, Status.CREATED]


def test_a_token_of_nobody_is_owed(case: ForgeCase, world: World) -> None:
    (said,) = announce_at(case, world, draft(), token="other").values()
    assert said.status is Status.PENDING
    assert case.unknown in said.note


@pytest.mark.parametrize("case", [each for each in FORGES if each.longest], ids=str)
def test_a_body_that_is_too_long_is_owed_and_the_rest_goes_on(
    case: ForgeCase, world: World
) -> None:
    long, short = draft(body="x" * case.longest), draft("b", "2.0.0")
    said = announce_at(case, world, long, short)
    assert [said[each.tag].status for each in (long, short)] == [Status.PENDING, Status.CREATED]
    assert "alidation" in said[long.tag].note


def test_all_pages_are_read(case: ForgeCase, world: World) -> None:
    for number in range(250):
        world.add(f"old-v{number}.0.0", body="Old.")
    world.add("a-v1.0.0", body=with_marker(draft()).body)
    world.releases.append(world.releases.pop(0))
    assert only(case, world).status is Status.EXISTING
    pages = [each for each in world.asked if "page=" in each and "per_page=1&" not in each]
    assert pages == [f"{case.pages}{page}" for page in range(1, case.page_count + 1)]
    assert world.writes == []


@pytest.mark.parametrize(
    "strange",
    [
        b"",
        b"<html>",
        b"{}",
        b"7",
        b"[1]",
        b'[{"tag_name": 7}]',
        b'[], "other": [',
        b"[" * 10_000,
        b"[" + b" " * (65 * 1024 * 1024) + b"]",
    ],
    ids=len,
)
def test_answers_that_nobody_gives_are_owed(case: ForgeCase, world: World, strange: bytes) -> None:
    world.strange = strange
    said = only(case, world)
    assert said.status is Status.PENDING
    assert len(said.note) < 600


@pytest.mark.parametrize("now", ["ab", "abcd", "abd", "a link", "a pipe", "nothing"])
def test_a_file_that_is_not_what_was_built_is_never_shown(
    case: ForgeCase, world: World, tmp_path: Path, now: str
) -> None:
    """R53: of the same size too; and a pipe keeps nobody waiting."""
    path = tmp_path / "a-1.0.0.tgz"
    match now:
        case "a link":
            (tmp_path / "abc").write_bytes(b"abc")
            path.symlink_to("abc")
        case "a pipe":
            os.mkfifo(path)
        case "nothing":
            pass
        case _:
            path.write_text(now)
    sha256 = hashlib.sha256(b"abc").hexdigest()
    built = Artifact(path=path, size=3, digests={"sha256": sha256})
    changed = Upload(name=path.name, content=built, sha256=sha256, size=3)
    owed = only(case, world, draft(assets=(changed,)))
    assert (owed.status, owed.note) == (
        Status.PENDING,
        "a-1.0.0.tgz has changed since it was published",
    )
    assert case.shown(world) == []
    assert case.count_files(world) == 0
