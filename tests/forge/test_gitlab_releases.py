"""What is GitLab's own about releases: files that come first, as generic packages, tags that are
part of addresses, protected ones, and what python-gitlab makes of it all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest
from gitlab import Gitlab

from forge.forges import GITLAB
from forge.test_announcing import (
    CHECKSUMS,
    announce_at,
    commit_tags,
    draft,
    only,
    upload,
    whole,
)
from harness.gitlab import (
    FILE_NAME,
    PACKAGE_VERSION,
    PERSONAL_TOKEN,
    TOKEN,
    GitLabDouble,
    serving_gitlab,
)
from harness.http_server import HangUp
from releasekit.announce.gitlab import PACKAGE, GitLab, GitLabReleases, name_version
from releasekit.announce.releases import with_marker, write_state
from releasekit.announced import Status
from releasekit.errors import Rejected
from releasekit.http.client import RetryPolicy, http_client
from releasekit.http.credentials import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gitlab.v4.objects import Project

TAG = "a-v1.0.0"
NESTED = "@acme/a/v1.0.0"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitLabDouble]:
    with serving_gitlab(tmp_path) as served:
        commit_tags(served)
        yield served
        assert not served.defects


@pytest.fixture
def project(world: GitLabDouble) -> Project:
    """As a client sees it that is not ours."""
    client = Gitlab(world.origin, private_token=PERSONAL_TOKEN)
    return client.projects.get(world.repository, lazy=True)


@pytest.mark.parametrize("token", [TOKEN, PERSONAL_TOKEN])
def test_python_gitlab_finds_the_release_and_its_files(
    world: GitLabDouble, project: Project, token: str
) -> None:
    world.git("tag", NESTED, "main")
    more = (upload("a+b.tgz", b"plus"), *draft().assets)
    made = announce_at(
        GITLAB, world, draft(tag=NESTED, object=world.tags[NESTED], assets=more), token=token
    )
    assert made[NESTED].status is Status.CREATED, made
    (release,) = project.releases.list(get_all=True)
    assert release.tag_name == NESTED
    assert project.releases.get(NESTED).name == "a 1.0.0"
    body = with_marker(draft(object=world.tags[NESTED])).body
    assert release.description == write_state(body, "")
    assert release.commit["id"] == world.git("rev-parse", "main").strip()
    assert made[NESTED].url == release._links["self"]
    links = {each["name"]: each for each in release.assets["links"]}
    assert {name: each.get("direct_asset_path") for name, each in links.items()} == {
        "a+b.tgz": None,  # GitLab takes no such path
        "checksums.txt": "/checksums.txt",
        "report.html": "/report.html",
    }
    (package,) = project.packages.list(
        get_all=True, package_name=PACKAGE, package_version=name_version(NESTED)
    )
    sizes = {each.file_name: each.size for each in package.package_files.list(get_all=True)}
    assert sizes == {each.name: each.size for each in more}
    content = project.generic_packages.download(PACKAGE, name_version(NESTED), "a+b.tgz")
    assert content == b"plus"
    assert links["a+b.tgz"]["url"].endswith(f"/{PACKAGE}/{name_version(NESTED)}/a%2Bb.tgz")


def test_files_of_an_earlier_attempt_are_not_sent_again(world: GitLabDouble) -> None:
    """Whatever it was that came between them and the release."""

    def lose_the_release(moment: str, what: str) -> None:
        if moment == "before" and what.startswith("POST "):
            raise HangUp

    world.around = lose_the_release
    assert only(GITLAB, world).status is Status.PENDING
    assert (len(world.files), world.releases) == (2, [])
    world.around = lambda moment, what: None
    world.asked.clear()
    assert only(GITLAB, world).status is Status.CREATED
    assert whole(GITLAB, world)
    assert [each.partition(" ")[0] for each in world.writes] == ["POST"]


def test_a_project_that_has_moved_is_named_anew_and_gets_no_token() -> None:
    """R37: a redirect may lead anywhere."""
    asked: list[httpx.URL] = []

    def redirect(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        return httpx.Response(301, headers={"Location": "https://evil.example/api/v4/projects/7"})

    async def look() -> None:
        async with http_client(transport=httpx.MockTransport(redirect)) as http:
            gitlab = GitLab(http=http, api="https://gitlab.example/api/v4", token=Secret(TOKEN))
            await GitLabReleases(gitlab, "acme/old", RetryPolicy()).releases()

    with pytest.raises(Rejected, match="HTTP 301") as caught:
        asyncio.run(look())
    assert caught.value.hint.startswith("The project has another path now")
    assert {url.host for url in asked} == {"gitlab.example"}


def test_another_file_of_that_name_is_kept_and_said(world: GitLabDouble) -> None:
    world.add_file(TAG, "checksums.txt", b"another")
    said = only(GITLAB, world)
    assert said.status is Status.PENDING
    assert said.note == (
        f"the package releases {TAG} of {world.repository} has another file as checksums.txt"
    )
    assert "Package registry" in said.hint
    assert (world.writes, world.releases) == ([], [])


def test_of_files_of_one_name_the_newest_counts(world: GitLabDouble) -> None:
    """Which is what GitLab gives to whoever asks for that name."""
    world.add_file(TAG, "checksums.txt", b"another")
    world.add_file(TAG, "checksums.txt", CHECKSUMS)
    assert only(GITLAB, world).status is Status.CREATED
    assert whole(GITLAB, world)


def test_a_file_that_has_not_arrived_whole_is_looked_after(world: GitLabDouble) -> None:
    told = {"id": 1, "file_name": "checksums.txt", "size": 26, "file_sha256": "0" * 64}
    world.failing = [(201, told, {})]
    assert only(GITLAB, world).status is Status.CREATED
    assert whole(GITLAB, world)


def test_where_duplicates_are_off_a_file_of_another_run_is_found(world: GitLabDouble) -> None:
    """https://docs.gitlab.com/user/packages/generic_packages/#disable-publishing-duplicate-package-names"""
    world.allows_duplicates = False

    def overtake(moment: str, what: str) -> None:
        if moment == "before" and what.startswith("PUT ") and not world.files:
            world.add_file(TAG, "checksums.txt", CHECKSUMS)

    world.around = overtake
    assert only(GITLAB, world).status is Status.CREATED
    assert whole(GITLAB, world)
    assert len(world.files) == 2


def test_packages_that_are_named_alike_are_others(world: GitLabDouble) -> None:
    for package in ("my-releases", "releases-2"):
        world.add_file(TAG, "checksums.txt", b"another", package=package)
    assert only(GITLAB, world).status is Status.CREATED
    assert whole(GITLAB, world)


@pytest.mark.parametrize(
    "answer",
    [(409, "Release already exists"), (400, "Validation failed: Tag has already been taken")],
)
def test_where_another_run_was_faster_its_release_is_found(
    world: GitLabDouble, answer: tuple[int, str]
) -> None:
    """https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/services/releases/create_service.rb"""
    status, message = answer

    def overtake(moment: str, what: str) -> None:
        if moment == "before" and what.startswith("POST ") and not world.releases:
            world.add(TAG, write_state(with_marker(draft()).body, ""))
            world.failing = [(status, {"message": message}, {})]

    world.around = overtake
    assert only(GITLAB, world).status is Status.EXISTING
    assert len(world.releases) == 1


def test_no_tag_is_made_and_none_taken_for_another(world: GitLabDouble) -> None:
    world.git("tag", "a-V1.0.0", "main")  # upper and lower case are the same to GitLab's search
    world.git("tag", "-d", TAG)
    missing = only(GITLAB, world)
    assert (missing.status, missing.note) == (
        Status.PENDING,
        f"GitLab has no tag {TAG} in {world.repository}",
    )
    world.git("tag", TAG, "main")
    other = only(GITLAB, world, draft(object="0" * 40))
    assert other.status is Status.PENDING
    assert world.tags[TAG] in other.note
    assert (world.writes, world.releases) == ([], [])


def test_a_tag_that_goes_while_its_files_come_is_not_made_again(world: GitLabDouble) -> None:
    def drop(moment: str, what: str) -> None:
        if (moment, what.partition(" ")[0]) == ("before", "POST") and TAG in world.tags:
            world.git("tag", "-d", TAG)

    world.around = drop
    said = only(GITLAB, world)
    assert (said.status, said.note) == (
        Status.PENDING,
        f"GitLab has no tag {TAG} in {world.repository}",
    )
    assert TAG not in world.tags


def test_who_may_not_create_a_protected_tag_is_told_who_may(world: GitLabDouble) -> None:
    world.is_protected = True
    said = only(GITLAB, world)
    assert said.status is Status.PENDING
    assert "not allowed to create this tag as it is protected" in said.note
    assert "let somebody start it who has the role" in said.hint
    assert "RELEASEKIT_FORGE_TOKEN" in said.hint


@pytest.mark.parametrize(
    "strange_to", ["/repository/tags", "/packages?", "/package_files", "PUT ", "POST "]
)
@pytest.mark.parametrize("strange", [b"<html>", b"[7]", b'{"id": "../7"}', b"[" * 10_000])
def test_answers_that_nobody_gives_are_owed(
    world: GitLabDouble, strange: bytes, strange_to: str
) -> None:
    world.add_file(TAG, "report.html", b"<p>")
    world.strange, world.strange_to = strange, strange_to
    said = only(GITLAB, world)
    assert said.status is Status.PENDING
    assert len(said.note) < 600


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        ("v1.0.0", "v1.0.0"),
        ("v1.0.0+local_1", "v1.0.0+local_1"),
        ("sdk/v1.0.0", "sdk-v1.0.0-32d5463e"),
        ("sdk@v1.0.0", "sdk-v1.0.0-b03ae29c"),
        ("v1.0.0-\u00e9", None),
        ("x" * 240, None),
    ],
)
def test_the_files_of_a_tag_are_a_version_that_gitlab_takes(tag: str, version: str | None) -> None:
    named = name_version(tag)
    assert version in {named, None}
    assert PACKAGE_VERSION.fullmatch(named)
    assert FILE_NAME.fullmatch(named)
    assert len(named) <= 255
