"""docs/gitea.md as it is written, on a real Gitea: its runner, its registries, its releases."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from documents import blocks
from harness.gitea import ACTION, OWNER, Job, serving_gitea
from harness.gitea_double import TOKEN
from harness.gitea_double import serving_gitea as serving_gitea_double
from integration import reactor
from integration.polyglot import NEEDS, TAGS
from integration.test_cargo_publish import toolchain
from integration.tools import require_tool
from processes import PATIENCE_S, wait_until
from workspaces import PROJECT, Program, git, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.gitea import Gitea, Runner
    from workspaces import Run

PACKAGES: Final[dict[str, tuple[str, ...]]] = {"acme-core": (), "acme-cli": ("acme-core",)}
OF_TWO: Final = ["pypi:acme-cli@1.0.0", "pypi:acme-core@1.0.0"]
TAGS_OF_TWO: Final = {"acme-cli-v1.0.0", "acme-core-v1.0.0"}
# What the page has says of Go modules, which are on no server that a public proxy sees.
NO_PROXY: Final = "proxy = false\nverify = false\n"


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with serving_gitea(tmp_path_factory.mktemp("a gitea")) as server:
        yield server


def read_page(language: str) -> str:
    page = (PROJECT / "docs/gitea.md").read_text(encoding="utf-8")
    first = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert first
    return first[1]


class Project:
    """A repository `mono` of an organization of its own, with the workflow of the page."""

    def __init__(self, gitea: Gitea, owner: str, root: Path, home: Path) -> None:
        self.gitea = gitea
        self.owner = owner
        self.root = root
        self.name = f"{owner}/mono"
        home.mkdir()
        uv = require_tool("uv").parent
        machine = {**toolchain(home), **reactor.environment()}
        machine["PATH"] = f"{uv}{os.pathsep}{machine.get('PATH') or os.environ['PATH']}"
        self.machine = Program(home, machine).full_environment
        gitea.add_organization(owner)
        workflow = read_page("yaml")
        for public, here in (
            ("https://git.example.com", gitea.origin),
            ("packages/acme/", f"packages/{owner}/"),
            ("https://github.com/org/releasekit-action@v1", f"{gitea.origin}/{ACTION}@v1"),
        ):
            assert public in workflow
            workflow = workflow.replace(public, here)
        self.workflow = workflow
        if not (root / ".git").exists():
            git(root, "init", "--quiet", "--initial-branch", "main")
        self.push(workflow)
        secret = f"/repos/{self.name}/actions/secrets/PACKAGES_TOKEN"
        gitea.ask("PUT", secret, {"data": gitea.token})

    def push(self, workflow: str) -> None:
        path = self.root / ".gitea/workflows/release.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(workflow)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", "Release from here")
        self.gitea.push(self.root, self.name, "HEAD:main")

    def tag(self, name: str) -> None:
        git(self.root, "tag", name)
        self.gitea.push(self.root, self.name, name)

    def release(self, runner: Runner, tag: str) -> Job:
        self.tag(tag)
        return runner.run_job(self.name)

    def require_releases(self, tags: set[str]) -> None:
        """One for each tag, whole."""
        found = self.gitea.releases_of(self.name)
        assert Counter(each["tag_name"] for each in found) == Counter(tags)
        for release in found:
            assert not release["draft"]
            assert re.search(r"<!-- releasekit: \S+ sha256:[0-9a-f]{64} -->\s*\Z", release["body"])
            of_go = re.search(r"/v[0-9.]+\Z", release["tag_name"])
            names = [each["name"] for each in release["assets"]]
            assert names == ([] if of_go else ["checksums.txt"])


def ask(origin: str, token: str, method: str, path: str, content: bytes) -> tuple[int, bytes]:
    """The status and the answer, as the client of forges asks."""
    kind = "application/octet-stream" if "?name=" in path else "application/json"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
    request = urllib.request.Request(f"{origin}{path}", content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def shape(document: Any, like: Any) -> Any:
    """What `document` has of the keys of `like`, and of what kind that is."""
    if isinstance(like, dict):
        return {key: shape(document[key], value) for key, value in like.items()}
    if isinstance(like, list):
        return [shape(each, other) for each, other in zip(document, like, strict=True)]
    return type(document)


def test_the_double_answers_as_gitea_does(gitea: Gitea, tmp_path: Path) -> None:
    """Whatever the client of forges asks, in a row that has each answer once."""
    gitea.add_organization("double")
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    git(root, "tag", "--annotate", "--message", "One", "v1")
    with serving_gitea_double(tmp_path / "double") as double:
        gitea.push(root, "double/mono", "HEAD:main", "v1")
        git(root, "push", "--quiet", double.url, "HEAD:main", "v1")
        real = talk(gitea.origin, gitea.token, "/api/v1/repos/double/mono")
        said = talk(double.origin, TOKEN, f"/api/v1/repos/{double.repository}")
    for (what, status, theirs), (_, ours, content) in zip(real, said, strict=True):
        assert (what, status) == (what, ours)
        if content.startswith((b"{", b"[")):
            like = json.loads(content)
            assert shape(json.loads(theirs), like) == shape(like, like), what
        else:
            assert theirs == content, what


def talk(origin: str, token: str, place: str) -> list[tuple[str, int, bytes]]:
    told: list[tuple[str, int, bytes]] = []

    def say(method: str, path: str, document: object = b"") -> Any:
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        where = path if path.startswith("/attachments/") else f"{place}{path}"
        status, answer = ask(origin, token, method, where, content)
        told.append((f"{method} {re.sub(r'[0-9]+|uuid.*', '#', path)}", status, answer))
        return json.loads(answer) if answer.startswith(b"{") else None

    say("GET", "/releases?limit=50&page=1")
    say("GET", "/releases/latest")
    say("GET", "/tags/v0")
    assert say("GET", "/tags/v1")["name"] == "v1"
    draft = {"tag_name": "v1", "name": "One", "body": "b", "draft": True, "prerelease": False}
    release = f"/releases/{say('POST', '/releases', draft)['id']}"
    say("POST", "/releases", draft)
    first = say("POST", f"{release}/assets?name=a.txt", b"bytes")
    second = say("POST", f"{release}/assets?name=a.txt", b"others")
    uuid = say("GET", f"{release}/assets/{second['id']}")["uuid"]
    assert uuid == second["uuid"]
    assert ask(origin, token, "GET", f"/attachments/{uuid}", b"") == (200, b"others")
    say("DELETE", f"{release}/assets/{second['id']}")
    say("DELETE", f"{release}/assets/{second['id']}")
    whole = say("PATCH", release, {"draft": False, "body": "whole"})
    assert [(each["id"], each["size"]) for each in whole["assets"]] == [(first["id"], 5)]
    assert say("GET", "/releases/latest")["body"] == "whole"
    say("GET", "/releases?limit=50&page=1")
    say("GET", "/releases?limit=50&page=2")
    return told


def test_gitea_publishes_a_draft_of_a_tag_once_that_is_pushed(gitea: Gitea, tmp_path: Path) -> None:
    """Which is why the marker of a release says whether it is whole."""
    gitea.add_organization("late")
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    gitea.push(root, "late/mono", "HEAD:main")
    draft = {"tag_name": "v1", "name": "One", "body": "b", "draft": True}
    made = gitea.ask("POST", "/repos/late/mono/releases", draft)
    assert made["draft"]
    git(root, "tag", "v1")
    gitea.push(root, "late/mono", "v1")
    wait_until(lambda: not gitea.ask("GET", f"/repos/late/mono/releases/{made['id']}")["draft"])


def test_a_pushed_tag_publishes_to_the_registries_of_the_server_once(
    gitea: Gitea, tmp_path: Path
) -> None:
    """R1, R4, R15: five ecosystems, by the workflow of the page; and the next tag finds all of it
    there.
    """
    for tool in ("npm", "cargo", "go", "mvn"):
        require_tool(tool)
    root = tmp_path / "the example"
    ignored = shutil.ignore_patterns(".releasekit", "__pycache__", "node_modules", "target")
    shutil.copytree(PROJECT / "examples" / "polyglot", root, ignore=ignored)
    settings = root / "releasekit.toml"
    assert NO_PROXY in read_page("toml")
    settings.write_text(
        settings.read_text().replace("[go]\n", f"[go]\n{NO_PROXY}")
        # Two packages have one name and version.
        + '\n[tag]\nname = "{ecosystem}/{name}-v{version}"\n'
    )
    project = Project(gitea, "polyglot", root, tmp_path / "home")
    with gitea.runner(project.machine) as runner:
        first = project.release(runner, "v1")
        assert first.conclusion == "success", first.log
        assert f"All {len(NEEDS)} packages are published, {len(NEEDS)} tagged" in first.log
        packages = gitea.packages_of(project.owner)
        assert len(packages) == len({each for each in NEEDS if not each.startswith("go:")})
        tags = set(gitea.tags_of(project.name)) - {"v1"}
        assert set(TAGS) < tags
        project.require_releases(tags)
        ids = [each["id"] for each in gitea.releases_of(project.name)]

        second = project.release(runner, "v2")
        assert second.conclusion == "success", second.log
        assert "already published, nothing to do" in second.log
        assert gitea.packages_of(project.owner) == packages
        assert set(gitea.tags_of(project.name)) - {"v1", "v2"} == tags
        assert [each["id"] for each in gitea.releases_of(project.name)] == ids
    assert gitea.token not in first.log + second.log


def test_a_cancelled_job_that_runs_again_publishes_what_is_missing(
    gitea: Gitea, tmp_path: Path
) -> None:
    """R14: the runner kills it in the middle of a build, and its workspace is gone."""
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    waits = root / "packages" / "acme-cli"
    (waits / "backend").mkdir()
    (waits / "backend" / "waiting.py").write_text(
        "from hatchling.build import *\nfrom pathlib import Path\n"
        f"gate = Path({str(gate)!r})\ngate.exists() and gate.read_bytes()\n"
    )
    settings = (waits / "pyproject.toml").read_text()
    backend = 'build-backend = "waiting"\nbackend-path = ["backend"]'
    (waits / "pyproject.toml").write_text(
        settings.replace('build-backend = "hatchling.build"', backend)
    )
    project = Project(gitea, "cancelled", root, tmp_path / "home")
    with gitea.runner(project.machine) as runner:
        project.tag("v1")
        working = runner.start_job()
        wait_until(
            lambda: gitea.packages_of(project.owner) == OF_TWO[1:], working, lambda: runner.said
        )
        (run,) = gitea.ask("GET", f"/repos/{project.name}/actions/runs")["workflow_runs"]
        gitea.cancel(project.name, run["id"])
        working.wait()
        assert runner.find_job(project.name).conclusion == "cancelled"
        # Whatever of the build is left now ends.
        os.close(os.open(gate, os.O_RDWR))
        gate.unlink()
        assert gitea.releases_of(project.name) == []

        gitea.ask("POST", f"/repos/{project.name}/actions/runs/{run['id']}/rerun")
        again = runner.run_job(project.name)
        assert again.conclusion == "success", again.log
        assert "1 of 2 packages published, 1 already there, 2 tagged, 2 announced" in again.log
    assert gitea.packages_of(project.owner) == OF_TWO
    assert set(gitea.tags_of(project.name)) == {*TAGS_OF_TWO, "v1"}
    project.require_releases(TAGS_OF_TWO)


def test_a_token_that_may_only_read_owes_the_tags_and_says_so(gitea: Gitea, tmp_path: Path) -> None:
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    project = Project(gitea, "readonly", root, tmp_path / "home")
    assert "contents: write" in project.workflow
    project.push(project.workflow.replace("contents: write", "contents: read"))
    with gitea.runner(project.machine) as runner:
        job = project.release(runner, "v1")
    assert job.conclusion == "failure"
    assert "User permission denied for writing." in job.log
    assert "`permissions: contents: write`" in job.log
    assert "Both packages are published, 2 tags are owed, 2 releases are owed" in job.log
    assert "Process completed with exit code 1." in job.log
    assert "::error" not in job.log
    assert gitea.packages_of(project.owner) == OF_TWO
    assert set(gitea.tags_of(project.name)) == {"v1"}
    assert gitea.releases_of(project.name) == []


def test_two_jobs_at_once_take_turns_and_nothing_is_doubled(gitea: Gitea, tmp_path: Path) -> None:
    """By `concurrency`, which Gitea has since 1.26."""
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    project = Project(gitea, "turns", root, tmp_path / "home")
    with gitea.runner(project.machine) as one, gitea.runner(project.machine) as two:
        project.tag("v1")
        project.tag("v2")
        working = [each.start_job() for each in (one, two)]
        for each in working:
            each.wait()
        jobs = [each.find_job(project.name) for each in (one, two)]
    assert [each.conclusion for each in jobs] == ["success", "success"], jobs
    said = sorted("nothing to do" in each.log for each in jobs)
    assert said == [False, True]
    assert gitea.packages_of(project.owner) == OF_TWO
    project.require_releases(TAGS_OF_TWO)


def test_an_owner_whose_packages_a_token_may_not_write_keeps_the_whole_release_back(
    gitea: Gitea, tmp_path: Path
) -> None:
    """R1, R38: of twelve packages, six could have gone out."""
    user = {"username": "worker", "email": "worker@example.com", "password": "a-pass-word-1"}
    gitea.ask("POST", "/admin/users", {**user, "must_change_password": False})
    for owner in ("mine", "theirs"):
        gitea.add_organization(owner)
    (team,) = gitea.ask("GET", "/orgs/mine/teams")
    gitea.ask("PUT", f"/teams/{team['id']}/members/worker")
    basic = base64.b64encode(b"worker:a-pass-word-1").decode()
    made = urllib.request.Request(
        f"{gitea.origin}/api/v1/users/worker/tokens",
        json.dumps({"name": "release", "scopes": ["write:package"]}).encode(),
        {"Authorization": f"Basic {basic}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(made, timeout=PATIENCE_S) as response:
        token = json.load(response)["sha1"]

    # What it answers to an upload of nothing, before anything else is asked of it.
    for method, path in (
        ("PUT", "npm/@acme%2fcore"), ("POST", "pypi"), ("PUT", "cargo/api/v1/crates/new"),
        ("PUT", "maven/releasekit"),
    ):  # fmt: skip
        told = [
            ask(gitea.origin, token, method, f"/api/packages/{owner}/{path}", b"")[0]
            for owner in ("mine", "theirs", "nobody")
        ]
        assert told[2] in {401, 404}, path
        assert told[0] in {400, 500}, path
        assert told[1] == 401, path

    require_tool("npm")
    root = uv_workspace(tmp_path / "a workspace", {f"acme-{letter}": () for letter in "abcdef"})
    npm_workspace(root, dict.fromkeys("abcdef", ()))
    (tmp_path / "home").mkdir()
    program = Program(
        tmp_path / "home", {"RELEASEKIT_NPM_TOKEN": token, "RELEASEKIT_PYPI_TOKEN": token}
    )
    place = f"{gitea.origin}/api/packages"
    addresses = ["--npm-registry", f"{place}/mine/npm/", "--pypi-registry", f"{place}/theirs/pypi"]
    run = program.run("publish", root, *addresses, "--pypi-username", "worker")
    assert run.code == 3, run.out + run.err
    assert "reqPackageAccess" in run.err
    assert "nothing was sent" in run.err
    assert token not in run.out + run.err
    for owner in ("mine", "theirs"):
        assert gitea.packages_of(owner) == []
    gitea.ask("PUT", f"/teams/{gitea.ask('GET', '/orgs/theirs/teams')[0]['id']}/members/worker")
    run = program.run("publish", root, *addresses, "--pypi-username", "worker")
    assert run.code == 0, run.out + run.err
    assert [len(gitea.packages_of(owner)) for owner in ("mine", "theirs")] == [6, 6]


def test_files_of_ones_own_are_attached_and_a_draft_is_refused(
    gitea: Gitea, tmp_path: Path
) -> None:
    """R72: Gitea publishes drafts of tags that were pushed."""
    root = uv_workspace(tmp_path / "a workspace", PACKAGES)
    name = "extra/mono"
    (root / "program.txt").write_text("A program.\n")
    gitea.add_organization("extra")
    git(root, "remote", "add", "origin", gitea.url(name))
    (tmp_path / "home").mkdir()
    place = {"RELEASEKIT_FORGE": f"gitea:{gitea.origin}/{name}"}
    program = Program(tmp_path / "home", {**place, "RELEASEKIT_FORGE_TOKEN": gitea.token})

    def publish(options: str) -> Run:
        (root / "releasekit.toml").write_text(f"[announce]\n{options}")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Release")
        gitea.push(root, name, "HEAD:main")
        where = (f"--registry=dir:{tmp_path / 'registry'}", "--insecure-hosts")
        server = gitea.origin.partition("://")[2]
        return program.run("publish", root, *where, server, "--tag", "--announce")

    ended = publish("draft = true\n")
    assert ended.code == 2
    assert "keeps no drafts" in ended.err
    assert not (tmp_path / "registry").exists()
    ended = publish('extra-files = { "pypi:acme-cli" = ["program.txt"] }\n')
    assert ended.code == 0, ended.out + ended.err
    found = {each["tag_name"]: each for each in gitea.releases_of(name)}
    assert found.keys() == TAGS_OF_TWO
    assets = [[file["name"] for file in each["assets"]] for each in found.values()]
    assert sorted(assets) == [["checksums.txt"], ["checksums.txt", "program.txt"]]


class Requested:
    """A pull request of the branch `topic` of a repository with the workflow of the page that
    comments on it. Its base is a branch of its own.
    """

    def __init__(self, gitea: Gitea, owner: str, place: Path) -> None:
        self.gitea = gitea
        self.name = f"{owner}/mono"
        self.root = uv_workspace(place / "a workspace", PACKAGES)
        path = self.root / ".gitea/workflows/preview.yml"
        path.parent.mkdir(parents=True)
        (workflow,) = [
            block.text
            for block in blocks(PROJECT / "docs/gitea.md")
            if "mode: preview" in block.text
        ]
        action = "https://github.com/org/releasekit-action@v1"
        assert action in workflow
        path.write_text(workflow.replace(action, f"{gitea.origin}/{ACTION}@v1"))
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", "ci: preview")
        gitea.add_organization(owner)
        tags = [f"{name}-v1.0.0" for name in PACKAGES]
        for tag in tags:
            git(self.root, "tag", tag)
        gitea.push(self.root, self.name, "HEAD:main", *tags)
        git(self.root, "switch", "--quiet", "--create", "topic")
        (place / "home").mkdir()
        uv = require_tool("uv").parent
        path_variable = f"{uv}{os.pathsep}{os.environ['PATH']}"
        self.machine = Program(place / "home", {"PATH": path_variable}).full_environment

    def push(self, subject: str, branch: str = "topic") -> str:
        """To a branch; the commit."""
        module = self.root / "packages/acme-core/src/acme_core/__init__.py"
        module.write_text(f"{module.read_text()}# {subject}\n")
        git(self.root, "commit", "--quiet", "--all", "--message", subject)
        self.gitea.push(self.root, self.name, f"HEAD:{branch}")
        return git(self.root, "rev-parse", "HEAD").strip()

    def open(self) -> int:
        wanted = {"head": "topic", "base": "main", "title": "Of a person"}
        made = self.gitea.ask("POST", f"/repos/{self.name}/pulls", wanted)
        return int(made["number"])

    def comments(self, number: int) -> list[tuple[str, str]]:
        found = self.gitea.ask("GET", f"/repos/{self.name}/issues/{number}/comments")
        return [(each["user"]["login"], each["body"]) for each in found]


def test_one_comment_on_a_pull_request_is_brought_up_to_date(gitea: Gitea, tmp_path: Path) -> None:
    """R34: by two jobs, of which only the second one may write."""
    mark = "<!-- the preview of ReleaseKit -->"
    requested = Requested(gitea, "previewed", tmp_path)
    with gitea.runner(requested.machine) as runner:
        commit = requested.push("fix: count them")
        number = requested.open()
        somebody = {"body": f"{mark} is what I would have said"}
        gitea.ask("POST", f"/repos/{requested.name}/issues/{number}/comments", somebody)
        for _ in range(2):
            job = runner.run_job(requested.name)
            assert job.conclusion == "success", job.log
        (login, theirs), (bot, first) = requested.comments(number)
        assert (login, theirs, bot) == (OWNER, somebody["body"], "gitea-actions")
        assert first.startswith(
            f"{mark}\n### Merging this changes the next version of 2 packages\n"
        )
        assert "| 1.0.1 | fix: count them |" in first
        assert f"This is the preview of {commit}." in first

        git(requested.root, "switch", "--quiet", "--detach", "HEAD~")
        requested.push("feat: read them", "main")
        git(requested.root, "switch", "--quiet", "topic")
        commit = requested.push("feat: count all of them")
        for _ in range(2):
            job = runner.run_job(requested.name)
            assert job.conclusion == "success", job.log
        (_, unchanged), (_, second) = requested.comments(number)
        assert unchanged == theirs
        assert "| 1.1.0 | feat: count all of them |" in second
        assert "left out: 1 commit of the target branch" in second
        assert f"This is the preview of {commit}." in second

        settings = requested.root / "releasekit.toml"
        settings.write_text("unknown = 1\n")
        git(requested.root, "add", "--all")
        requested.push("fix: break it")
        assert [runner.run_job(requested.name).conclusion for _ in range(2)] == [
            "failure",
            "success",
        ]
        _, (_, third) = requested.comments(number)
        assert "**This cannot be previewed**; the log of the job says why." in third
