"""Publish, tag and announce through the real action, and the release pull request beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.act import PROJECT, Repository
from harness.github import TOKEN, serving_github
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES: dict[str, tuple[str, ...]] = {"acme-core": (), "acme-cli": ("acme-core",)}
TAGS = ["acme-core-v1.0.0", "acme-cli-v1.0.0"]


def test_it_is_published_tagged_and_announced_and_then_only_read(tmp_path: Path) -> None:
    """R1, R4, R15: the second run asks for nothing but what is there."""
    repository = Repository(uv_workspace(tmp_path / "user repo", PACKAGES), tmp_path)
    with serving_github(tmp_path) as world:
        git(repository.root, "remote", "add", "origin", world.url)
        repository.workflow(
            f"""
on: push
permissions:
  contents: write
jobs:
  publish:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v7
      - id: release
        uses: org/releasekit-action@v1
        with:
          mode: publish
          tag: true
          announce: true
          forge-token: ${{{{ secrets.FORGE_TOKEN }}}}
          pypi-registry: "dir:{tmp_path / "registry"}"
"""
        )
        git(repository.root, "add", "--all")
        git(repository.root, "commit", "--quiet", "--message", "Release from here")
        git(repository.root, "push", "--quiet", "origin", "HEAD:main")
        environment = {**world.environment}
        del environment["RELEASEKIT_FORGE_TOKEN"]
        arguments = ["push", "-s", f"FORGE_TOKEN={TOKEN}"]
        first = repository.run(*arguments, commit=False, environment=environment)
        assert first.job("publish") == "success", first.log("publish")
        told = first.outputs("publish", "release")
        assert told["result"] == "success"
        assert [each["tag"] for each in json.loads(told["tags"])] == TAGS
        releases = json.loads(told["releases"])
        assert [each["tag"] for each in releases] == TAGS
        summary = first.summary("publish", "release")
        assert all(each["url"] in summary for each in releases)
        assert sorted(world.tags) == sorted(TAGS)
        assert not any(each["draft"] for each in world.releases)
        assert world.defects == []

        world.asked.clear()
        second = repository.run(*arguments, commit=False, environment=environment)
        assert second.job("publish") == "success", second.log("publish")
        told = second.outputs("publish", "release")
        assert (told["result"], told["tags"], told["releases"]) == ("noop", "[]", "[]")
        assert world.asked
        assert world.writes == []
        assert TOKEN not in first.shown
        assert TOKEN not in second.shown


def test_the_example_releases_by_merging_one_pull_request(tmp_path: Path) -> None:
    """docs/examples/release.yml as it is: from the first release to the second one."""
    repository = Repository(uv_workspace(tmp_path / "user repo", PACKAGES), tmp_path)
    root = repository.root
    git(root, "branch", "--move", "main")
    with serving_github(tmp_path) as world:
        git(root, "remote", "add", "origin", world.url)
        repository.workflow((PROJECT / "docs/examples/release.yml").read_text())
        (root / "releasekit.toml").write_text(f'pypi-registry = "dir:{tmp_path / "registry"}"\n')
        environment = {**world.environment}
        del environment["RELEASEKIT_FORGE_TOKEN"]

        def push(message: str) -> dict[str, str]:
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "--allow-empty", "--message", message)
            git(root, "push", "--quiet", "origin", "HEAD:main")
            return run()

        def run() -> dict[str, str]:
            done = repository.run(
                *("push", "-s", f"GITHUB_TOKEN={TOKEN}"), commit=False, environment=environment
            )
            for job in ("publish", "pull-request"):
                assert done.job(job) == "success", done.log(job)
            assert TOKEN not in done.shown
            git(root, "fetch", "--quiet", "--tags", "origin")
            return done.outputs("pull-request", "1")

        assert push("chore: start")["operation"] == "none"
        assert sorted(world.tags) == sorted(TAGS)
        (root / "packages/acme-core/src/acme_core/more.py").write_text("MORE = 1\n")
        told = push("feat: more (#41)")
        assert told["operation"] == "created"
        (pull,) = world.pulls
        assert pull["title"] == "chore: release acme-core 1.1.0 and 1 more"
        world.merge(pull["number"], "squash")
        git(root, "pull", "--quiet", "--ff-only", "origin", "main")
        assert run()["operation"] == "none"
        assert set(world.tags) == {*TAGS, "acme-core-v1.1.0", "acme-cli-v1.0.1"}
        assert world.defects == []
