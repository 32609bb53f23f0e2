"""A plan on each pull request: its summary, and one comment where the token may write."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from harness.act import PROJECT, Repository, Run
from harness.github import PULL_REQUEST, TOKEN, GitHubDouble, serving_github
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = 6
MARK = "<!-- the plan of ReleaseKit -->"
EXAMPLE = (PROJECT / "docs/examples/pull-request.yml").read_text(encoding="utf-8")
# act knows one address of GitHub's API.
CURL = """\
#!/usr/bin/env bash
there=https://api.github.com here={here}
for argument; do
    shift
    set -- "$@" "${{argument/#$there/$here}}"
done
exec {curl} "$@"
"""


@pytest.fixture
def api(tmp_path: Path) -> Iterator[GitHubDouble]:
    with serving_github(tmp_path, "acme/monorepo") as served:
        yield served


def opened(
    repository: Repository, api: GitHubDouble, *, head: str = "acme/monorepo", author: str = "ada"
) -> Run:
    """What the example does for a pull request from the repository `head`."""
    repository.workflow(EXAMPLE)
    config = repository.root / "releasekit.toml"
    config.write_text(f"registry = 'dir:{repository.beside}/registry'\n")
    if not (repository.programs / "curl").exists():
        curl = repository.beside / "curl"
        curl.write_text(CURL.format(curl=require_tool("curl"), here=api.api))
        curl.chmod(0o755)
        repository.add_programs(curl=curl, jq=require_tool("jq"))
    event = {
        "action": "opened",
        "number": PULL_REQUEST,
        "repository": {"full_name": api.repository},
        "pull_request": {
            "number": PULL_REQUEST,
            "user": {"login": author},
            "head": {"sha": "5d41402abc4b", "ref": "topic", "repo": {"full_name": head}},
            "base": {"sha": "HEAD", "ref": "main", "repo": {"full_name": api.repository}},
        },
    }
    payload = repository.beside / "event.json"
    payload.write_text(json.dumps(event))
    arguments = ["pull_request", "-e", str(payload), "-s", f"GITHUB_TOKEN={TOKEN}"]
    return repository.run(*arguments, environment={"GITHUB_REPOSITORY": api.repository})


def test_one_comment_is_written_and_brought_up_to_date(
    repository: Repository, api: GitHubDouble
) -> None:
    """R34: and the token is nowhere to be seen."""
    for number in range(100):
        api.add_comment(f"Comment {number}", login="ada")
    api.add_comment(f"{MARK} is what I would have said", login="mallory")
    run = opened(repository, api)
    assert run.job("plan") == "success", run.log("plan")
    assert run.job("comment") == "success", run.log("comment")
    (first,) = api.comments_of_the_bot()
    assert first.startswith(f"{MARK}\n")
    assert f"A release of this would publish **{PACKAGES} of {PACKAGES}** packages." in first
    assert "| `pypi:acme-core` | `1.2.0` |" in first
    assert "/acme/monorepo/actions/runs/" in first
    assert "### Merging this changes" in first
    assert "acme-core" in run.summary("plan", "2")

    manifest = repository.root / "python/acme-core/pyproject.toml"
    manifest.write_text(manifest.read_text().replace('"1.2.0"', '"1.2.1"'))
    run = opened(repository, api)
    assert run.job("comment") == "success", run.log("comment")
    (second,) = api.comments_of_the_bot()
    assert "| `pypi:acme-core` | `1.2.1` |" in second
    assert [each.partition(" ")[0] for each in api.asked] == [
        *("GET", "GET", "POST"),
        *("GET", "GET", "PATCH"),
    ]
    assert len(api.comments) == 102
    assert f"{MARK} is what I would have said" in api.comments[100]["body"]
    assert TOKEN not in run.shown


@pytest.mark.parametrize(
    ("head", "author"), [("mallory/monorepo", "mallory"), ("acme/monorepo", "dependabot[bot]")]
)
def test_whose_token_may_not_write_gets_the_summary(
    repository: Repository, api: GitHubDouble, head: str, author: str
) -> None:
    api.read_only = True
    run = opened(repository, api, head=head, author=author)
    assert run.job("plan") == "success", run.log("plan")
    assert "acme-core" in run.summary("plan", "2")
    assert run.job("comment") == ""
    assert api.asked == []


def test_a_plan_that_is_impossible_is_said_to_be(repository: Repository, api: GitHubDouble) -> None:
    manifest = repository.root / "python/acme-core/pyproject.toml"
    text = manifest.read_text()
    manifest.write_text(text.replace("[project]", '[project]\ndependencies = ["acme-cli"]', 1))
    run = opened(repository, api)
    assert run.job("plan") == "failure"
    (said,) = api.comments_of_the_bot()
    assert "**A release of this is not possible**" in said


def test_names_of_somebody_else_are_no_markdown(api: GitHubDouble, tmp_path: Path) -> None:
    """The step by itself, with a plan that holds whatever its author likes."""
    evil = "x` | </table> @everyone [click](https://example.org)\n# ![](https://example.org/x.png)"
    row = {"ecosystem": "pypi", "name": evil, "version": evil, "action": "publish"}
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan/preview.md").write_text("### Merging this changes no version\n")
    (tmp_path / "plan/plan.json").write_text(json.dumps({"packages": [row] * 60}))
    for tool in ("curl", "jq"):
        require_tool(tool)
    step = yaml.safe_load(EXAMPLE)["jobs"]["comment"]["steps"][-1]
    given = {
        "TOKEN": TOKEN,
        "API": f"{api.api}/repos/{api.repository}/issues",
        "NUMBER": str(PULL_REQUEST),
        "COMMIT": "5d41402abc4b",
        "RUN": "https://github.com/acme/monorepo/actions/runs/1",
    }
    assert set(given) == set(step["env"])
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    subprocess.run(argv, cwd=tmp_path, env={"PATH": os.environ["PATH"], **given}, check=True)
    (said,) = api.comments_of_the_bot()
    rows = [line for line in said.splitlines() if line.startswith("| `pypi")]
    assert len(rows) == 50
    assert "And 10 more." in said
    for line in rows:
        assert (line.count("`"), line.count("|")) == (4, 3)
        assert not set(line) & set("<>[]()!#")
