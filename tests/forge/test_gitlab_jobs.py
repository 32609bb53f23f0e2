"""Whole runs in a job of GitLab CI/CD, and beside it, whose git remote is a project of GitLab."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from gitlab import Gitlab

from forge.test_whole_runs import PACKAGES, TAGS, Place, only, statuses
from harness.gitlab import PERSONAL_TOKEN, TOKEN, USER, GitLabDouble, serving_gitlab
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANNOUNCE = ("--tag", "--announce")
# https://gitlab.com/gitlab-org/gitlab-runner/-/blob/main/shells/abstract.go (credHelperCommand)
HELPER = '!f(){ if [ "$1" = "get" ] ; then echo "password=${CI_JOB_TOKEN}" ; fi ; } ; f'


class Job(Place):
    world: GitLabDouble

    def set(self, **variables: str) -> None:
        environment = {**self.program.environment, **variables}
        self.program = replace(self.program, environment=environment)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with serving_gitlab(tmp_path) as world:
        yield Job(tmp_path, world)
        assert world.defects == []


def hide_token(job: Job, config: Path) -> None:
    """As a runner does with FF_GIT_URLS_WITHOUT_TOKENS: git asks for it, and gets the variable."""
    git(job.root, "remote", "set-url", "origin", f"{job.world.page}.git")
    section = f"credential.{job.world.origin}"
    git(job.root, "config", "--file", str(config), f"{section}.helper", "")
    git(job.root, "config", "--file", str(config), "--add", f"{section}.helper", HELPER)
    git(job.root, "config", "--file", str(config), f"{section}.username", USER)
    job.set(GIT_CONFIG_GLOBAL=str(config))


def test_a_job_tags_and_announces_with_its_own_token(job: Job, tmp_path: Path) -> None:
    """Which no URL has here; in test_killed.py it has."""
    hide_token(job, tmp_path / "git config")
    ended = job.run()
    assert ended.code == 0, ended.err
    assert set(job.world.tags) == TAGS
    assert {each["tag_name"] for each in job.world.releases} == TAGS
    (release,) = [each for each in job.world.releases if each["tag_name"] == "acme-cli-v1.0.0"]
    row = ended.row("acme-cli")
    assert row["announcement"]["url"] == release["_links"]["self"]
    assert row["tag"]["url"] == f"{job.world.page}/-/releases/acme-cli-v1.0.0"
    assert TOKEN not in ended.out + ended.err
    client = Gitlab(job.world.origin, job_token=TOKEN)
    project = client.projects.get(job.world.repository, lazy=True)
    for each in project.releases.list(get_all=True):
        (link,) = each.assets["links"]
        package, version, name = link["url"].rsplit("/", 3)[1:]
        sums = project.generic_packages.download(package, version, name)
        assert each.tag_name.partition("-v")[0].replace("-", "_").encode() in bytes(sums)
    again = job.run()
    assert (again.code, again.results["result"]) == (0, "noop")


def test_a_project_that_lets_no_job_push_is_told_how_before_the_first_upload(job: Job) -> None:
    """R38"""
    job.world.may_push = False
    ended = job.run()
    assert ended.code == 3
    assert "You are not allowed to upload code." in ended.err
    assert "*Settings > CI/CD > Job token permissions > Allow Git push requests" in ended.err
    assert not job.registry.exists()
    job.world.may_push = True
    assert job.run().code == 0


def test_a_protected_tag_is_owed_and_the_cure_is_another_user(job: Job) -> None:
    job.world.protect_tags()
    ended = job.run("--tag")
    tag = only(ended, "tag")
    assert (ended.code, tag["status"], tag["problem"]) == (1, "owed", "RK-130")
    assert "You are not allowed to create this tag as it is protected" in tag["note"]
    assert "*Settings > Repository > Protected tags*" in tag["hint"]
    job.world.release_tags()
    assert job.run().code == 0
    assert {each["tag_name"] for each in job.world.releases} == TAGS


def test_elsewhere_the_forge_and_its_token_are_given(job: Job) -> None:
    variables = {
        name: value
        for name, value in job.program.environment.items()
        if "CI" not in name.split("_")
    }
    job.program = replace(job.program, environment=variables)
    unknown = job.run()
    assert unknown.code == 2
    assert "nothing says what 127.0.0.1 is" in unknown.err
    job.set(RELEASEKIT_FORGE=f"gitlab:{job.world.page}")
    without = job.run()
    assert without.code == 3
    assert "there is no token for 127.0.0.1" in without.err
    assert "the scope `api`" in without.err
    planned = job.run(*ANNOUNCE, command="plan")
    assert planned.code == 0, planned.err
    job.set(RELEASEKIT_FORGE_TOKEN=PERSONAL_TOKEN)
    ended = job.run()
    assert ended.code == 0, ended.err
    assert statuses(ended, "announcement") == dict.fromkeys(PACKAGES, "made")


def test_a_job_may_announce_with_another_token_than_its_own(job: Job) -> None:
    """As where the user who started it may not create releases."""
    job.world.read_only = True
    first = job.run()
    assert (first.code, set(first.outcomes.values())) == (1, {"published"})
    assert statuses(first, "announcement") == dict.fromkeys(PACKAGES, "owed")
    assert "RELEASEKIT_FORGE_TOKEN" in only(first, "announcement")["hint"]
    job.set(RELEASEKIT_FORGE_TOKEN=PERSONAL_TOKEN)
    second = job.run()
    assert second.code == 0, second.err
    assert statuses(second, "announcement") == dict.fromkeys(PACKAGES, "made")
