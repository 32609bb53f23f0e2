"""The pipelines of docs/gitlab.md as they stand there, over real builds: gitlab-ci-local takes the
part of GitLab and of its runner.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from documents import ROOT, blocks
from harness.gitlab_pipeline import SERVER, Project
from workspaces import git, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES: dict[str, tuple[str, ...]] = {"acme-core": (), "acme-cli": ("acme-core",)}
# What else the page has of a pipeline are keys of its job `publish`.
ONE_JOB, ROWS = [
    block.text
    for block in blocks(ROOT / "docs/gitlab.md")
    if block.file and "include:" in block.text
]
OF_TAG = {"CI_COMMIT_TAG": "v1.0.0", "CI_COMMIT_REF_PROTECTED": "true"}
OF_PLAN = {"RK_HAS_WORK", "RK_PLAN_FILE"}
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
