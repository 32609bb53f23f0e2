"""The pipelines of docs/gitlab.md as they stand there, over real builds: gitlab-ci-local takes the
part of GitLab and of its runner.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
import yaml

from documents import ROOT, blocks
from harness.gitlab import AUTHOR, PERSONAL_TOKEN, GitLabDouble, serving_gitlab
from harness.gitlab_pipeline import COMPONENTS, SERVER, Project
from workspaces import git, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.gitlab_pipeline import Pipeline

PACKAGES: dict[str, tuple[str, ...]] = {"acme-core": (), "acme-cli": ("acme-core",)}
# What else the page has of a pipeline are keys of its job `publish`.
ONE_JOB, LOOP, ROWS = [
    block.text
    for block in blocks(ROOT / "docs/gitlab.md")
    if block.file and "include:" in block.text
]
MARK = "<!-- the preview of ReleaseKit -->"
OF_TAG = {"CI_COMMIT_TAG": "v1.0.0", "CI_COMMIT_REF_PROTECTED": "true"}
OF_PLAN = {"RK_HAS_WORK", "RK_PLAN_FILE"}
OF_MAIN = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
OF_MERGE_REQUEST = {
    "CI_PIPELINE_SOURCE": "merge_request_event",
    "CI_MERGE_REQUEST_IID": "7",
    "CI_MERGE_REQUEST_PROJECT_PATH": "acme/mono",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "acme/mono",
}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    # gitlab-ci-local quotes no path of its own.
    with TemporaryDirectory(prefix="releasekit-gitlab-", dir="/var/tmp") as place:
        root = uv_workspace(Path(place, "checkout"), PACKAGES)
        (root / "tell.sh").write_text('#!/bin/sh\necho "told: $*"\n')
        (root / "tell.sh").chmod(0o755)
        yield Project(root, tmp_path)


def registry(project: Project) -> dict[str, str]:
    return {"RELEASEKIT_REGISTRY": f"dir:{project.beside / 'registry'}"}


def published(project: Project) -> list[str]:
    return sorted(path.name for path in (project.beside / "registry").rglob("*.whl"))


def names_in(outputs: Path) -> set[str]:
    return {line.partition("=")[0] for line in outputs.read_text().splitlines()}


def test_a_tag_publishes_and_tells_the_jobs_that_follow(project: Project) -> None:
    """R1, R34"""
    project.configure(ONE_JOB)
    done = project.run(variables={**OF_TAG, **registry(project)})
    assert done.status == 0, done.log
    assert len(published(project)) == 2
    state = project.root / ".releasekit"
    (report_url,) = re.findall(r"told: 2 packages are published (\S+)", done.log)
    assert report_url.startswith(f"{SERVER}/acme/mono/-/jobs/")
    assert report_url.endswith("/artifacts/file/.releasekit/report.html")
    suite = ET.parse(state / "junit.xml")
    assert {case.get("name") for case in suite.iter("testcase")} == {
        f"{name} 1.0.0" for name in PACKAGES
    }
    links = json.loads((state / "annotations.json").read_text())["ReleaseKit"]
    assert {row["external_link"]["url"] for row in links} == {
        report_url, f"{SERVER}/acme/mono/-/releases"
    }  # fmt: skip
    assert re.search(r"^publish releasekit_1 took ", done.log, re.MULTILINE)  # a section
    documented = set(re.findall(r"`(RK_\w+)`", (ROOT / "docs/gitlab.md").read_text()))
    assert names_in(state / "outputs.env") == documented - OF_PLAN
    # GitLab keeps these, and nothing of it is a file of the sources.
    assert git(project.root, "status", "--porcelain", "--untracked-files=no") == ""


def test_a_merge_request_only_says_what_would_be_published(project: Project) -> None:
    project.configure(ONE_JOB)
    done = project.run(variables={**OF_MERGE_REQUEST, **registry(project)})
    assert done.status == 0, done.log
    assert published(project) == []
    outputs = project.root / ".releasekit/outputs.env"
    assert names_in(outputs) == OF_PLAN
    assert "RK_HAS_WORK=true\n" in outputs.read_text()
    plan = json.loads((project.root / ".releasekit/plan.json").read_text())
    assert {row["name"] for row in plan["packages"]} == set(PACKAGES)


def test_a_branch_publishes_nothing(project: Project) -> None:
    project.configure(ONE_JOB)
    done = project.run(variables=registry(project))
    assert "starting shell" not in done.log, done.log
    assert published(project) == []


def test_rows_publish_side_by_side_and_one_report_has_them_all(project: Project) -> None:
    """R55"""
    npm_workspace(project.root / "js", {"acme-ui": ()})
    # These jobs share a checkout, and a runner of GitLab has one for each: a manifest that one pins
    # would be a change of the sources for the other.
    settings = 'pin = "none"\n[npm]\nworkspaces = ["js"]\n'
    (project.root / "releasekit.toml").write_text(settings)
    project.configure(ROWS)
    done = project.run(variables={**OF_TAG, **registry(project)})
    assert done.status == 0, done.log
    results = json.loads((project.root / ".releasekit/results.json").read_text())
    assert {row["outcome"] for row in results["packages"]} == {"published"}
    assert len(results["packages"]) == 3


# Of one whose pipeline runs on its own branch, or for the merged result; for one of a fork; and
# what `releasekit/main` has, which a project access token pushes.
PIPELINES: dict[str, tuple[dict[str, str], set[str]]] = {
    "main": (OF_MAIN, {"publish", "release-pr"}),
    "merge request": (OF_MERGE_REQUEST, {"preview", "preview-comment"}),
    "fork": (
        {**OF_MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH": "mallory/mono"},
        {"preview"},
    ),
    "the release request": (
        {**OF_MERGE_REQUEST, "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "releasekit/main"},
        {"preview", "preview-comment"},
    ),
    "releasekit/main": ({**OF_MAIN, "CI_COMMIT_BRANCH": "releasekit/main"}, set()),
    "tag": ({**OF_TAG, "CI_DEFAULT_BRANCH": "main"}, set()),
}


def test_a_push_to_main_alone_publishes_and_keeps_the_release_request(project: Project) -> None:
    project.configure(LOOP)
    for name, (variables, jobs) in PIPELINES.items():
        shown = project.run("--list-csv", variables={"CI_COMMIT_BRANCH": "", **variables})
        assert shown.status == 0, shown.log
        rows = [line.split(";") for line in shown.out.splitlines()[1:]]
        assert {row[0] for row in rows} == jobs, name


def test_the_release_request_has_a_token_that_nothing_else_has(project: Project) -> None:
    """And takes over no variables of `publish`, where a build may have written them."""
    project.configure(LOOP)
    shown = project.run("--preview", variables=OF_MAIN)
    assert shown.status == 0, shown.log
    jobs = {name: job for name, job in yaml.safe_load(shown.out).items() if "script" in job}
    (needed,) = jobs["release-pr"]["needs"]
    assert (needed["job"], needed["artifacts"]) == ("publish", False)
    assert [each["when"] for each in jobs["release-pr"]["rules"]] == ["always"]
    assert {name: job.get("environment", {}).get("name") for name, job in jobs.items()} == {
        "publish": "release",
        "release-pr": "release-pr",
        "preview": None,
        "preview-comment": "preview",
    }
    locks = {name: job.get("resource_group") for name, job in jobs.items()}
    assert locks["publish"] != locks["release-pr"]
    assert "dotenv" not in jobs["preview"]["artifacts"].get("reports", {})


class Requested:
    """A merge request of one branch of `project`, whose pipelines comment on it at `gitlab`."""

    def __init__(self, project: Project, gitlab: GitLabDouble) -> None:
        self.project = project
        self.gitlab = gitlab
        project.configure(LOOP)
        give_token(project, "preview")
        for name in PACKAGES:
            git(project.root, "tag", f"{name}-v1.0.0")
        self.base = git(project.root, "rev-parse", "HEAD").strip()
        git(project.root, "switch", "--quiet", "--create", "topic")

    def push(self, subject: str) -> None:
        module = self.project.root / "packages/acme-core/src/acme_core/__init__.py"
        with module.open("a") as file:
            file.write(f"# {subject}\n")
        git(self.project.root, "commit", "--quiet", "--all", "--message", subject)

    def run(self, **more: str) -> Pipeline:
        told = {
            **OF_MERGE_REQUEST,
            **more,
            "CI_API_V4_URL": self.gitlab.api,
            "CI_MERGE_REQUEST_PROJECT_ID": quote(self.gitlab.repository, safe=""),
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": self.base,
            "CI_PIPELINE_URL": f"{SERVER}/acme/mono/-/pipelines/17",
        }
        return self.project.run(variables=told)

    @property
    def comments(self) -> list[str]:
        return [each["body"] for each in self.gitlab.notes if each["author"] == AUTHOR]


@pytest.fixture
def requested(project: Project, tmp_path: Path) -> Iterator[Requested]:
    with serving_gitlab(tmp_path / "gitlab") as gitlab:
        yield Requested(project, gitlab)
        assert gitlab.defects == []


def test_one_comment_is_written_and_brought_up_to_date(requested: Requested) -> None:
    """R34: and the token is nowhere to be seen."""
    mine = {"id": 1, "username": "mallory"}
    for number in range(100):
        body = f"{MARK} is what I would have said" if number == 50 else f"Note {number}"
        requested.gitlab.notes.append(
            {"id": number, "noteable_iid": 7, "body": body, "author": mine}
        )
    requested.push("fix: count them")
    first = requested.run()
    assert first.status == 0, first.log
    (said,) = requested.comments
    assert said.startswith(f"{MARK}\n### Merging this changes the next version of 2 packages\n")
    assert "| 1.0.1 | fix: count them |" in said
    commit = git(requested.project.root, "rev-parse", "HEAD").strip()
    assert f"[The preview]({SERVER}/acme/mono/-/pipelines/17) of {commit}" in said

    requested.push("feat: read /* and @all")
    second = requested.run()
    assert second.status == 0, second.log
    (said,) = requested.comments
    assert "| 1.1.0 |" in said
    methods = [each.partition(" ")[0] for each in requested.gitlab.asked]
    assert methods == [*("GET", "GET", "GET", "POST"), *("GET", "GET", "PUT")]
    assert len(requested.gitlab.notes) == 101
    assert PERSONAL_TOKEN not in first.log + second.log


def test_of_a_merged_result_the_title_counts(requested: Requested) -> None:
    requested.push("wip")
    commit = git(requested.project.root, "rev-parse", "HEAD").strip()
    git(requested.project.root, "switch", "--quiet", "--detach", requested.base)
    git(requested.project.root, "merge", "--quiet", "--no-ff", "topic", "--message", "Merge")
    told = {"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": commit}
    ended = requested.run(CI_MERGE_REQUEST_TITLE="feat: count them", **told)
    assert ended.status == 0, ended.log
    (said,) = requested.comments
    assert "| 1.1.0 | feat: count them" in said
    assert f" of {commit}\n" in said


def test_what_the_preview_of_somebody_says_is_no_command(requested: Requested) -> None:
    """The second job by itself, with whatever the first one may have left."""
    state = requested.project.root / ".releasekit"
    state.mkdir()
    (state / "preview.md").write_bytes(b"One\r\n/close\n\r/merge\n  /approve\n- a/b\n")
    assert comment(requested).returncode == 0
    (said,) = requested.comments
    assert "\n/" not in said
    assert "\n&#47;close\n" in said
    assert "- a/b" in said


def test_a_link_is_not_followed_and_no_module_is_loaded(requested: Requested) -> None:
    """Both could have been left by a build of the first job."""
    root = requested.project.root
    (root / "json.py").write_text("raise SystemExit('taken over')\n")
    (requested.project.beside / "secret").mkdir()
    (requested.project.beside / "secret/preview.md").write_text("a secret\n")
    (root / ".releasekit").symlink_to(requested.project.beside / "secret")
    assert comment(requested).returncode == 0
    (root / ".releasekit").unlink()
    (root / ".releasekit").mkdir()
    (root / ".releasekit/preview.md").symlink_to(requested.project.beside / "secret/preview.md")
    assert comment(requested).returncode == 0
    (said,) = requested.comments
    assert "**This cannot be previewed**" in said
    assert "a secret" not in said


def comment(requested: Requested) -> subprocess.CompletedProcess[str]:
    job = requested.project.job("preview-comment", OF_MERGE_REQUEST)
    assert job["variables"]["GIT_STRATEGY"] == "empty"
    assert job["allow_failure"] is True
    (script,) = job["script"]
    return subprocess.run(
        ["bash", "-eo", "pipefail"],
        input=script,
        cwd=requested.project.root,
        env={
            "PATH": os.environ["PATH"],
            "RELEASEKIT_FORGE_TOKEN": PERSONAL_TOKEN,
            "CI_API_V4_URL": requested.gitlab.api,
            "CI_MERGE_REQUEST_PROJECT_ID": quote(requested.gitlab.repository, safe=""),
            "CI_MERGE_REQUEST_IID": "7",
            "CI_PIPELINE_URL": f"{SERVER}/acme/mono/-/pipelines/17",
            "CI_COMMIT_SHA": "5d41402abc4b",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_preview_that_fails_says_so(requested: Requested) -> None:
    (requested.project.root / "releasekit.toml").write_text("unknown = 1\n")
    git(requested.project.root, "add", "--all")
    requested.push("fix: break it")
    ended = requested.run()
    assert ended.status != 0
    (said,) = requested.comments
    assert "**This cannot be previewed**; the log of the job says why." in said


def test_a_token_that_is_refused_is_no_failure_of_the_pipeline(requested: Requested) -> None:
    requested.push("fix: count them")
    (requested.project.root / ".gitlab-ci-local-variables.yml").write_text(
        json.dumps({"RELEASEKIT_FORGE_TOKEN": "glpat-expired"})
    )
    refused = requested.run()
    assert refused.status == 0, refused.log
    assert "HTTP Error 401: Unauthorized" in refused.log
    (requested.project.root / ".gitlab-ci-local-variables.yml").write_text("{}")
    without = requested.run()
    assert without.status == 0, without.log
    assert "RELEASEKIT_FORGE_TOKEN: is not set for the environment preview" in without.log
    assert requested.comments == []


def test_a_push_to_main_opens_the_request_and_merging_it_publishes(
    project: Project, tmp_path: Path
) -> None:
    """R1: the loop of the page, over three pushes."""
    root = project.root
    git(root, "branch", "--move", "main")
    project.configure(LOOP)
    give_token(project, "release-pr")
    with serving_gitlab(tmp_path / "gitlab", "acme/mono") as gitlab:
        for there, here in (
            (f"{SERVER}/acme/mono.git", gitlab.url),
            (f"{gitlab.origin}/{COMPONENTS}.git", (project.beside / "the components").as_uri()),
        ):
            settings = project.environment["GIT_CONFIG_GLOBAL"]
            git(root, "config", "--file", settings, "--add", f"url.{here}.insteadOf", there)
        given = {**OF_MAIN, **registry(project), **gitlab.environment}

        def push(subject: str) -> Pipeline:
            (root / "packages/acme-core/src/acme_core/added.py").write_text(f"# {subject}\n")
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "--message", subject)
            publish_commit(project)
            return project.run(variables=given)

        first = push("docs: begin")
        assert first.status == 0, first.log
        assert len(published(project)) == len(gitlab.tags) == len(gitlab.releases) == 2
        assert gitlab.merge_requests == []

        second = push("feat: read them")
        assert second.status == 0, second.log
        (request,) = gitlab.merge_requests
        assert request["title"] == "chore: release acme-core 1.1.0 and 1 more"
        assert (request["state"], request["squash"]) == ("opened", False)
        assert len(published(project)) == 2

        gitlab.merge(request["iid"], "merge")
        for argv in (
            ["fetch", "--quiet", "origin", "main"],
            ["reset", "--quiet", "--hard", "FETCH_HEAD"],
        ):
            subprocess.run(["git", *argv], cwd=root, env=project.environment, check=True)
        merged = project.run(variables=given)
        assert merged.status == 0, merged.log
        assert len(published(project)) == len(gitlab.tags) == len(gitlab.releases) == 4
        (request,) = gitlab.merge_requests
        assert request["state"] == "merged"
        assert gitlab.defects == []
    assert PERSONAL_TOKEN not in first.log + second.log + merged.log


def publish_commit(project: Project) -> None:
    argv = ["git", "push", "--quiet", "origin", "HEAD:main"]
    subprocess.run(argv, cwd=project.root, env=project.environment, check=True)


def give_token(project: Project, environment: str) -> None:
    """To the jobs of that environment alone, as GitLab does."""
    token = {"type": "variable", "values": {environment: PERSONAL_TOKEN}}
    (project.root / ".gitlab-ci-local-variables.yml").write_text(
        json.dumps({"RELEASEKIT_FORGE_TOKEN": token})
    )
