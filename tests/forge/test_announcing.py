"""Releases made, found, gone on with and left alone, at the double of a repository at GitHub."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from harness.github import NOT_ALLOWED, REPOSITORY, TOKEN, GitHubDouble, serving_github
from harness.http_server import HangUp
from releasekit.announce.forge import Draft, ForgeRelease, Upload
from releasekit.announce.github import GitHubReleases
from releasekit.announce.releases import announce, with_marker
from releasekit.announced import Announcement, Status
from releasekit.errors import PackageError
from releasekit.http.client import RetryPolicy, http_client
from releasekit.http.credentials import Secret
from releasekit.http.github import GitHub
from releasekit.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubDouble]:
    with serving_github(tmp_path) as served:
        tree = served.git("hash-object", "-t", "tree", "-w", "--stdin").strip()
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        commit = served.git(*who, "commit-tree", tree, "-m", "Start").strip()
        served.git("update-ref", "refs/heads/main", commit)
        for tag in ("a-v1.0.0", "b-v2.0.0", "c-v0.1.0"):
            served.git("tag", tag, commit)
        yield served
        assert not served.defects


def run(world: GitHubDouble, *drafts: Draft, token: str = TOKEN) -> dict[str, Announcement]:
    async def main() -> dict[str, Announcement]:
        async with http_client() as http:
            github = GitHub(http=http, api=world.api, token=Secret(token))
            forge = GitHubReleases(github, REPOSITORY, POLICY)
            return await announce(drafts, forge, tell=lambda _: None)

    return asyncio.run(main())


def only(world: GitHubDouble, *drafts: Draft) -> Announcement:
    (announcement,) = run(world, *(drafts or (draft(),))).values()
    return announcement


def whole(world: GitHubDouble, tag: str = "a-v1.0.0") -> bool:
    """One published release, with its assets."""
    (release,) = (each for each in world.releases if each["tag_name"] == tag)
    found = {each["name"]: each["state"] for each in release["assets"]}
    return not release["draft"] and found == dict.fromkeys(
        ("checksums.txt", "report.html"), "uploaded"
    )


@pytest.mark.parametrize("immutable", [False, True])
def test_made_once_and_then_only_looked_at(world: GitHubDouble, immutable: bool) -> None:
    world.immutable = immutable
    made = only(world)
    assert (made.status, made.url) == (Status.CREATED, world.releases[0]["html_url"])
    assert whole(world)
    written = list(world.writes)
    assert only(world).status is Status.EXISTING
    assert world.writes == written


def test_latest_is_the_highest_stable_version_of_all(world: GitHubDouble) -> None:
    said = run(
        world,
        draft("b", "2.0.0"),
        draft(),
        replace(draft("c", "0.1.0"), version="3.0.0b1", prerelease=True),
    )
    assert {each.status for each in said.values()} == {Status.CREATED}
    (latest,) = (each for each in world.releases if each["id"] == world.latest)
    assert latest["tag_name"] == "b-v2.0.0"


def test_a_lower_version_does_not_become_the_latest(world: GitHubDouble) -> None:
    run(world, draft("b", "2.0.0"))
    assert only(world).status is Status.CREATED
    (latest,) = (each for each in world.releases if each["id"] == world.latest)
    assert latest["tag_name"] == "b-v2.0.0"


@pytest.mark.parametrize("is_draft", [False, True])
def test_a_foreign_release_is_left_alone(world: GitHubDouble, is_draft: bool) -> None:
    world.add("a-v1.0.0", body="Written by hand.", draft=is_draft)
    said = only(world)
    assert (said.status, world.writes) == (Status.FOREIGN, [])
    assert ("a draft" if is_draft else "a release") in said.note


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(6))
def test_any_lost_answer_is_looked_after(world: GitHubDouble, moment: str, number: int) -> None:
    """list, latest, create, two uploads, publish"""
    seen = {"before": 0, "after": 0}

    def lose(when: str, what: str) -> None:
        seen[when] += 1
        if (when, seen[when]) == (moment, number + 1):
            raise HangUp

    world.around = lose
    assert only(world).status.done
    assert whole(world)


def test_an_upload_that_broke_off_is_made_again(world: GitHubDouble) -> None:
    body = with_marker(draft()).body
    release = world.add("a-v1.0.0", body=body, draft=True)
    world.add_asset(release, "checksums.txt", b"", "starter")
    assert only(world).status is Status.CREATED
    assert whole(world)


def test_another_file_in_our_draft_is_kept_and_said(world: GitHubDouble) -> None:
    release = world.add("a-v1.0.0", body=with_marker(draft()).body, draft=True)
    world.add_asset(release, "checksums.txt", b"another")
    said = only(world)
    assert said.status is Status.PENDING
    assert said.note == "the draft of a-v1.0.0 has another file as checksums.txt"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, {"Retry-After": "0"}),
        (429, {"Retry-After": "0"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}),
        (409, {}),
        (422, {}),
        (502, {}),
    ],
)
def test_limits_and_clashes_are_waited_for_and_looked_after(
    world: GitHubDouble, status: int, headers: dict[str, str]
) -> None:
    said = {"message": "You have exceeded a secondary rate limit"}
    world.failing = [(status, said, headers)]
    assert only(world).status is Status.CREATED
    assert whole(world)


def test_a_token_that_may_only_read_is_asked_once(world: GitHubDouble) -> None:
    world.read_only = True
    said = run(world, draft(), draft("b", "2.0.0"))
    assert {each.status for each in said.values()} == {Status.PENDING}
    assert len(world.writes) == 1
    for each in said.values():
        assert NOT_ALLOWED["message"] in each.note
        assert "`permissions: contents: write`" in each.hint


def test_an_api_that_is_none_is_named_beside_the_permission(world: GitHubDouble) -> None:
    world.failing = [(404, {"message": "Not Found"}, {})]
    (said,) = run(world, draft()).values()
    assert said.status is Status.PENDING
    assert said.hint.startswith("Check GITHUB_API_URL")


def test_a_limit_that_lasts_too_long_ends_it_for_all(world: GitHubDouble) -> None:
    limit = (403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "7200"})
    world.failing = [limit] * 9
    said = run(world, draft(), draft("b", "2.0.0"))
    assert [each.status for each in said.values()] == [Status.PENDING, Status.PENDING]
    assert all("too many requests" in each.note for each in said.values())
    assert len(world.writes) == 1
    world.failing.clear()
    said = run(world, draft(), draft("b", "2.0.0"))
    assert [each.status for each in said.values()] == [Status.CREATED, Status.CREATED]


def test_a_token_of_nobody_is_owed(world: GitHubDouble) -> None:
    (said,) = run(world, draft(), token="other").values()
    assert said.status is Status.PENDING
    assert "Bad credentials" in said.note


def test_a_body_that_is_too_long_is_owed_and_the_rest_goes_on(world: GitHubDouble) -> None:
    said = run(world, draft(body="x" * 125_001), draft("b", "2.0.0"))
    assert [each.status for each in said.values()] == [Status.PENDING, Status.CREATED]
    assert "Validation Failed" in said["a-v1.0.0"].note


def test_the_token_goes_to_no_other_origin(world: GitHubDouble) -> None:
    world.uploads = "http://127.0.0.1:9"
    said = only(world)
    assert said.status is Status.PENDING
    assert "upload_url" in said.note
    assert not any("/api/uploads/" in each for each in world.asked)


@pytest.mark.parametrize(
    ("api", "uploads", "goes_there"),
    [
        ("https://api.github.com", "https://uploads.github.com/repos/a/b/releases/1/assets", True),
        (
            "https://api.acme.ghe.com",
            "https://uploads.acme.ghe.com/repos/a/b/releases/1/assets",
            True,
        ),
        ("https://ghes.acme.example/api/v3", "https://ghes.acme.example/api/uploads/x", True),
        ("https://api.github.com", "https://uploads.github.com.evil.example/x", False),
        ("https://api.github.com", "https://uploads.ghe.com/x", False),
        ("https://api.github.com", "http://uploads.github.com/x", False),
        ("https://api.github.com", "https://uploads.github.com:444/x", False),
        ("https://api.github.com", "https://me@uploads.github.com/x", False),
        ("https://ghes.acme.example/api/v3", "https://uploads.ghes.acme.example/x", False),
        ("https://api.github.com", "", False),
    ],
)
def test_assets_go_to_the_forge_alone(
    api: str,
    uploads: str,
    goes_there: bool,
) -> None:
    """https://docs.github.com/en/rest/releases/assets#upload-a-release-asset"""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        name = request.url.params["name"]
        asset = {"name": name, "id": 1, "size": 5, "state": "uploaded", "digest": None}
        return httpx.Response(201, json=asset)

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            github = GitHub(http=http, api=api, token=Secret(TOKEN))
            forge = GitHubReleases(github, "a/b", POLICY)
            release = ForgeRelease(
                tag="v1",
                id=1,
                draft=True,
                prerelease=False,
                body="",
                url="",
                uploads=f"{uploads}{{?name,label}}",
            )
            await forge.upload(release, upload("a b.txt", b"bytes"))

    if not goes_there:
        with pytest.raises(PackageError):
            asyncio.run(main())
        assert asked == []
        return
    asyncio.run(main())
    (request,) = asked
    assert str(request.url) == f"{uploads}?name=a+b.txt"
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert request.headers["Content-Length"] == "5"


def test_all_pages_are_read(world: GitHubDouble) -> None:
    for number in range(250):
        world.add(f"old-v{number}.0.0", body="Old.")
    ours = with_marker(draft())
    world.releases.append(world.releases.pop(0))
    world.add("a-v1.0.0", body=ours.body)
    world.releases.append(world.releases.pop(0))
    assert only(world).status is Status.EXISTING
    assert [each for each in world.asked if "page=" in each] == [
        f"GET /api/v3/repos/{REPOSITORY}/releases?per_page=100&page={page}" for page in (1, 2, 3)
    ]
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
def test_answers_that_nobody_gives_are_owed(world: GitHubDouble, strange: bytes) -> None:
    world.strange = strange
    said = only(world)
    assert said.status is Status.PENDING
    assert len(said.note) < 600


@pytest.mark.parametrize("now", ["ab", "abcd", "abd", "a link", "a pipe", "nothing"])
def test_a_file_that_is_not_what_was_built_is_never_shown(
    world: GitHubDouble, tmp_path: Path, now: str
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
    owed = only(world, draft(assets=(changed,)))
    assert (owed.status, owed.note) == (
        Status.PENDING,
        "a-1.0.0.tgz has changed since it was published",
    )
    assert all(each["draft"] and not each["assets"] for each in world.releases)
