"""What is GitHub's own about releases: drafts, what is broken off, immutable ones, and another host
for uploads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from forge.forges import GITHUB
from forge.test_announcing import POLICY, announce_at, commit_tags, draft, only, upload, whole
from harness.github import TOKEN, GitHubDouble, serving_github
from releasekit.announce.forge import ForgeRelease
from releasekit.announce.github import GitHubReleases
from releasekit.announce.releases import with_marker
from releasekit.announced import Status
from releasekit.errors import PackageError
from releasekit.http.credentials import Secret
from releasekit.http.github import GitHub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitHubDouble]:
    with serving_github(tmp_path) as served:
        commit_tags(served)
        yield served
        assert not served.defects


def test_an_immutable_release_is_whole_before_it_is_published(world: GitHubDouble) -> None:
    world.immutable = True
    assert only(GITHUB, world).status is Status.CREATED
    assert whole(GITHUB, world)
    assert only(GITHUB, world).status is Status.EXISTING


def test_a_draft_of_somebody_else_is_left_alone(world: GitHubDouble) -> None:
    world.add("a-v1.0.0", body="Written by hand.", draft=True)
    said = only(GITHUB, world)
    assert (said.status, world.writes) == (Status.FOREIGN, [])
    assert "a draft" in said.note


def test_an_upload_that_broke_off_is_made_again(world: GitHubDouble) -> None:
    body = with_marker(draft()).body
    release = world.add("a-v1.0.0", body=body, draft=True)
    world.add_asset(release, "checksums.txt", b"", "starter")
    assert only(GITHUB, world).status is Status.CREATED
    assert whole(GITHUB, world)


def test_another_file_in_our_draft_is_kept_and_said(world: GitHubDouble) -> None:
    release = world.add("a-v1.0.0", body=with_marker(draft()).body, draft=True)
    world.add_asset(release, "checksums.txt", b"another")
    said = only(GITHUB, world)
    assert said.status is Status.PENDING
    assert said.note == "the draft of a-v1.0.0 has another file as checksums.txt"


def test_an_api_that_is_none_is_named_beside_the_permission(world: GitHubDouble) -> None:
    world.failing = [(404, {"message": "Not Found"}, {})]
    (said,) = announce_at(GITHUB, world, draft()).values()
    assert said.status is Status.PENDING
    assert said.hint.startswith("Check GITHUB_API_URL")


def test_the_token_goes_to_no_other_origin(world: GitHubDouble) -> None:
    world.uploads = "http://127.0.0.1:9"
    said = only(GITHUB, world)
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
