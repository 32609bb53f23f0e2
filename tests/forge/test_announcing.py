"""Releases made, found, gone on with and left alone, at the double of each forge."""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import TYPE_CHECKING, Any, Literal

import pytest

from forge.forges import FORGES, GITEA, GITHUB
from harness.github import serving_github
from harness.http_server import HangUp
from releasekit.announce.forge import Draft, Upload
from releasekit.announce.github import GitHubReleases
from releasekit.announce.releases import announce, with_marker, write_state
from releasekit.announced import Announcement, Status
from releasekit.fields import replace
from releasekit.http.client import RetryPolicy, http_client
from releasekit.model import Artifact, PackageId

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
    case: ForgeCase,
    world: World,
    *drafts: Draft,
    token: str = "",
    latest: PackageId | Literal["highest", "none"] = "highest",
    leaves_drafts: bool = False,
) -> dict[str, Announcement]:
    async def main() -> dict[str, Announcement]:
        async with http_client() as http:
            forge = case.open(world, http, token or case.token, POLICY)
            if leaves_drafts:
                assert isinstance(forge, GitHubReleases)
                forge = replace(forge, leaves_drafts=True)
            return await announce(drafts, forge, latest, tell=lambda _: None)

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
    assert (shown.title, shown.body) == ("a 1.0.0", write_state(with_marker(draft()).body, ""))
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


@pytest.mark.parametrize(
    ("latest", "made"),
    [
        ("none", []),
        (PackageId("npm", "a"), ["a-v1.0.0"]),
        (PackageId("npm", "c"), []),  # has no stable version here
        (PackageId("npm", "d"), []),
    ],
)
def test_latest_is_that_of_the_chosen_package(
    tmp_path: Path, latest: PackageId | Literal["none"], made: list[str]
) -> None:
    """R72."""
    drafts = [
        replace(
            draft(name, version, prerelease=name == "c"),
            packages=frozenset({PackageId("npm", name)}),
        )
        for name, version in (("a", "1.0.0"), ("b", "2.0.0"), ("c", "0.1.0"))
    ]
    with serving_github(tmp_path) as world:
        commit_tags(world)
        announce_at(GITHUB, world, *drafts, latest=latest)
        shown = [each["tag_name"] for each in world.releases if each["id"] == world.latest]
        assert shown == made
        assert not world.defects


@pytest.mark.parametrize(
    ("there", "is_moved"),
    [
        (["a-v0.9.0"], True),
        (["a-v1.1.0"], False),
        (["a-v1.1.0", "b-v0.1.0"], False),  # which is the latest now
        (["b-v9.0.0"], True),
        (["a-v2.0.0-rc.1", "a-vnext"], True),
        (["a-v2.0.0-beta.1"], True),  # which the forge takes for stable
    ],
)
def test_latest_of_the_chosen_package_never_goes_back(
    tmp_path: Path, there: list[str], is_moved: bool
) -> None:
    """R72."""
    package = PackageId("npm", "a")
    with serving_github(tmp_path) as world:
        commit_tags(world)
        for tag in there:
            world.latest = world.add(tag, prerelease="-rc" in tag)["id"]
        made = draft(packages=frozenset({package}))
        announce_at(GITHUB, world, made, latest=package)
        (shown,) = (each["tag_name"] for each in world.releases if each["id"] == world.latest)
        assert shown == ("a-v1.0.0" if is_moved else there[-1])


@pytest.mark.parametrize("case", [GITHUB], ids=str)
def test_a_draft_is_left_whole_and_is_found_again(case: ForgeCase, world: World) -> None:
    """R72: and is no draft any more once somebody has published it."""
    first, again = (announce_at(case, world, draft(), leaves_drafts=True) for _ in range(2))
    (said,), (found,) = first.values(), again.values()
    assert replace(found, note="") == said
    assert said.status is Status.DRAFT
    assert "PATCH" in said.hint
    (release,) = world.releases
    assert release["draft"]
    assert [each["name"] for each in release["assets"]] == ["checksums.txt", "report.html"]
    written = list(world.writes)
    assert len(written) == case.writes + 1
    release["draft"] = False
    (said,) = announce_at(case, world, draft(), leaves_drafts=True).values()
    assert said.status is Status.EXISTING
    assert world.writes == written


def test_a_whole_looking_draft_of_an_earlier_version_is_completed_first(tmp_path: Path) -> None:
    """R72: its marker said the same from the beginning."""
    with serving_github(tmp_path) as world:
        commit_tags(world)
        world.add("a-v1.0.0", body=write_state(with_marker(draft()).body, ""), draft=True)
        (said,) = announce_at(GITHUB, world, draft(), leaves_drafts=True).values()
        assert said.status is Status.DRAFT
        assert len(world.releases[0]["assets"]) == 2
        assert not world.defects


def test_a_draft_with_the_words_of_another_release_is_not_ours(tmp_path: Path) -> None:
    """R72: somebody has taken its text for a template."""
    with serving_github(tmp_path) as world:
        commit_tags(world)
        other = write_state(with_marker(draft("b", "2.0.0")).body, "")
        world.add("a-v1.0.0", body=f"{other}\nNot before Monday.\n", draft=True)
        said = only(GITHUB, world, draft(object=world.tags["a-v1.0.0"]))
        assert (said.status, world.writes) == (Status.FOREIGN, [])


def test_what_somebody_published_too_early_is_said(tmp_path: Path) -> None:
    """R72: nothing is added to what is public."""
    with serving_github(tmp_path) as world:
        commit_tags(world)
        world.add("a-v1.0.0", body=with_marker(draft()).body)
        said = only(GITHUB, world)
        assert (said.status, world.writes) == (Status.FOREIGN, [])
        assert "before all its files were there" in said.note


@pytest.mark.parametrize("case", [GITHUB], ids=str)
def test_what_was_left_as_a_draft_is_published_where_that_is_wanted_now(
    case: ForgeCase, world: World
) -> None:
    announce_at(case, world, draft(), leaves_drafts=True)
    world.releases[0]["body"] = f"Before.\n{world.releases[0]['body']}\nAfter.\n"
    assert only(case, world).status is Status.CREATED
    assert whole(case, world)
    body = case.shown(world)[0].body
    assert body.startswith("Before.\n- A change.")
    assert body.endswith("-->\n\nAfter.\n")
    assert only(case, world).status is Status.EXISTING


@pytest.mark.parametrize("case", [GITHUB, GITEA], ids=str)
def test_a_draft_with_a_statement_under_its_old_name_gets_no_other(
    case: ForgeCase, world: Any
) -> None:
    """R72: of an earlier version, whose drafts had the marker of whole ones at GitHub."""
    body = with_marker(draft()).body
    release = world.add(
        "a-v1.0.0", body=write_state(body, "") if case is GITHUB else body, draft=True
    )
    world.add_asset(release, "provenance.jsonl", b"{}\n")
    statement = upload("a-1.0.0.intoto.jsonl", b"[]\n", by_name=True)
    made = replace(draft(), assets=(replace(statement, formerly="provenance.jsonl"),))
    assert only(case, world, made).status is Status.CREATED
    assert case.shown(world)[0].files == {"provenance.jsonl": b"{}\n"}


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
    world.add("a-v1.0.0", body=write_state(with_marker(draft()).body, ""))
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
        "a-1.0.0.tgz has changed since it was hashed",
    )
    assert case.shown(world) == []
    assert case.count_files(world) == 0
