"""The double of GitLab holds to what GitLab documents, or its source says; the sources are in
harness/gitlab.py, beside each rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from gitlab import Gitlab, GitlabAuthenticationError, GitlabError

from harness.gitlab import PERSONAL_TOKEN, TOKEN, serving_gitlab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gitlab.v4.objects import Project

    from harness.gitlab import GitLabDouble


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GitLabDouble]:
    with serving_gitlab(tmp_path) as served:
        tree = served.git("mktree").strip()
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        commit = served.git(*who, "commit-tree", tree, "-m", "Start").strip()
        served.git("update-ref", "refs/heads/main", commit)
        served.git("tag", "v1", "main")
        yield served


def project_of(world: GitLabDouble, token: str = PERSONAL_TOKEN) -> Project:
    client = Gitlab(world.origin, private_token=token)
    return client.projects.get(world.repository, lazy=True)


def refuse(status: int, ask: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(GitlabError) as refused:
        ask(*arguments, **named)
    assert refused.value.response_code == status
    return str(refused.value.error_message)


def test_a_tag_has_one_release_and_without_a_ref_none_is_made(world: GitLabDouble) -> None:
    releases = project_of(world).releases
    releases.create({"tag_name": "v1", "description": "One."})
    assert refuse(409, releases.create, {"tag_name": "v1"}) == "Release already exists"
    assert refuse(422, releases.create, {"tag_name": "v2"}) == "Ref is not specified"
    assert world.defects == []
    releases.create({"tag_name": "v2", "ref": "main"})
    assert [each.tag_name for each in releases.list(get_all=True)] == ["v2", "v1"]
    assert world.defects == ["GitLab had to make the tag v2"]


def test_links_of_a_release_are_unlike_one_another_and_lead_somewhere(world: GitLabDouble) -> None:
    releases = project_of(world).releases
    link = {"name": "a", "url": f"{world.project}/packages/generic/releases/v1/a.txt"}
    twice = {"tag_name": "v1", "assets": {"links": [link, {**link, "name": "b"}]}}
    assert "duplicate values (url)" in refuse(400, releases.create, twice)
    plus = {"tag_name": "v1", "assets": {"links": [{**link, "direct_asset_path": "/a+b.txt"}]}}
    assert "invalid format" in refuse(400, releases.create, plus)
    assert world.defects == []
    releases.create({"tag_name": "v1", "assets": {"links": [link]}})
    assert world.defects == ["a of v1 leads nowhere"]


@pytest.mark.parametrize(
    "place", ["re@leases/v1/a", "releases/@a/a", "releases/v..1/a", "releases/v1/a@b"]
)
def test_some_names_are_none_of_packages(world: GitLabDouble, place: str) -> None:
    package, version, name = place.split("/")
    upload = project_of(world).generic_packages.upload
    refuse(400, upload, package, version, name, data=b"1")
    assert world.files == []


def test_a_file_may_be_there_twice_unless_that_is_off(world: GitLabDouble) -> None:
    packages = project_of(world).generic_packages
    for content in (b"1", b"2"):
        packages.upload("releases", "v1", "a", data=content)
    assert packages.download("releases", "v1", "a") == b"2"
    assert world.defects == ["a was uploaded twice"]
    world.allows_duplicates = False
    said = refuse(400, packages.upload, "releases", "v1", "a", data=b"3")
    assert "Duplicate package is not allowed" in said


def test_a_job_may_ask_for_little_and_a_wrong_token_for_nothing(world: GitLabDouble) -> None:
    job = Gitlab(world.origin, job_token=TOKEN).projects.get(world.repository, lazy=True)
    assert job.releases.list(get_all=True) == []
    assert [each.name for each in job.tags.list(get_all=True, search="^V1$")] == ["v1"]
    refuse(404, job.tags.get, "v1")
    world.read_only = True
    refuse(403, job.releases.create, {"tag_name": "v1"})
    wrong = project_of(world, "glpat-other")
    with pytest.raises(GitlabAuthenticationError):
        wrong.releases.list(get_all=True)
