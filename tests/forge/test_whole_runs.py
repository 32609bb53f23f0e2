"""Tags and releases of whole runs: what stands in the way of each is one sentence, and is owed."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from forge.forges import GITHUB
from harness.github import REPOSITORY
from integration.tools import require_tool
from workspaces import Program, git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forge.forges import ForgeCase, World
    from workspaces import Run

PACKAGES: dict[str, tuple[str, ...]] = {"acme-core": (), "acme-cli": ("acme-core",)}
TAGS = {"acme-core-v1.0.0", "acme-cli-v1.0.0"}


class Place:
    """A workspace of two packages, whose remote is the forge."""

    def __init__(self, tmp_path: Path, world: World) -> None:
        self.root = uv_workspace(tmp_path / "a workspace", PACKAGES)
        git(self.root, "remote", "add", "origin", world.url)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        self.world: Any = world
        self.registry = tmp_path / "registry"
        home = tmp_path / "home"
        home.mkdir()
        path = f"{require_tool('uv').parent}{os.pathsep}{os.environ['PATH']}"
        self.program = Program(home, {**world.environment, "PATH": path})

    def run(self, *flags: str, command: str = "publish") -> Run:
        given = flags or ("--tag", "--announce")
        where = f"--pypi-registry=dir:{self.registry}"
        retries = ("--max-retries=1", "--retry-base-delay=0s")
        return self.program.run(command, self.root, where, *retries, *given)

    def toml(self, text: str) -> None:
        (self.root / "releasekit.toml").write_text(text)
        self.commit("Configure")

    def commit(self, message: str) -> str:
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", message)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        return git(self.root, "rev-parse", "HEAD").strip()


@pytest.fixture
def case() -> ForgeCase:
    return GITHUB


@pytest.fixture
def place(tmp_path: Path, case: ForgeCase) -> Iterator[Place]:
    with case.serving(tmp_path) as world:
        yield Place(tmp_path, world)
        assert world.defects == []


def statuses(run: Run, what: str) -> dict[str, str]:
    rows = run.results["packages"]
    return {row["name"]: row[what] and row[what]["status"] for row in rows}


def only(run: Run, what: str) -> dict[str, Any]:
    """What all packages have of it."""
    apart = dict.fromkeys(("name", "tag", "url", "object"), "")
    (found,) = {json.dumps({**row[what], **apart}) for row in run.results["packages"]}
    return dict(json.loads(found))


def test_a_plan_and_a_dry_run_say_what_would_be_made_and_make_nothing(place: Place) -> None:
    planned = place.run("--tag", "--announce", command="plan")
    assert planned.code == 0, planned.err
    assert "2 to tag, 2 to announce" in planned.out
    tried = place.run("--tag", "--announce", "--dry-run")
    assert tried.code == 0, tried.err
    assert statuses(tried, "tag") == dict.fromkeys(PACKAGES, "wanted")
    assert statuses(tried, "announcement") == dict.fromkeys(PACKAGES, "wanted")
    assert (place.world.tags, place.world.releases) == ({}, [])
    assert [each for each in place.world.writes if "main" not in each][1:] == []


PULL_REQUEST = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_REF": "refs/pull/7/merge"}
OF_PULL_REQUEST = "in a job of a pull request (pull_request at refs/pull/7/merge)"


def test_a_job_of_a_pull_request_tags_and_announces_nothing(place: Place) -> None:
    place.program = replace(
        place.program, environment={**place.program.environment, **PULL_REQUEST}
    )
    flags = ("--tag", "--announce")
    for given, names in ((flags[:1], "`tag` is"), (flags, "`tag` and `announce` are")):
        refused = place.run(*given)
        assert refused.code == 2
        assert f"{names} true {OF_PULL_REQUEST}" in refused.err
        for flag in given:
            condition = "${{ !startsWith(github.event_name, 'pull_request') }}"
            assert f"{flag[2:]}: {condition}" in refused.err
    assert not list((place.root.parent / "registry").rglob("*.whl"))
    assert (place.world.tags, place.world.releases) == ({}, [])
    for asked in (place.run(*flags, command="plan"), place.run(*flags, "--dry-run")):
        assert asked.code == 0, asked.err
        (line,) = [each for each in asked.out.splitlines() if OF_PULL_REQUEST in each]
        assert line.startswith("publish is going to refuse: ")
    published = place.run("--max-retries=1")
    assert published.code == 0, published.err


def test_a_token_that_may_only_read_keeps_all_back_before_the_first_upload(place: Place) -> None:
    """R38: with the right given, the same command publishes and tags. A plan needs no right."""
    place.world.read_only = True
    assert place.run("--tag", command="plan").code == 0
    first = place.run("--tag")
    assert first.code == 3
    assert "error: pypi:acme-core, pypi:acme-cli: git remote origin: " in first.err
    assert "denied to github-actions[bot]" in first.err
    assert "nothing was sent [RK-324]" in first.err
    assert "`permissions: contents: write`" in first.err
    assert not place.registry.exists()
    place.world.read_only = False
    assert place.run("--tag").code == 0
    assert set(place.world.tags) == TAGS
    place.world.read_only = True  # nothing is left to tag
    assert place.run("--tag").code == 0


def test_a_failure_of_tagging_changes_no_outcome_and_is_made_up_for(place: Place) -> None:
    """R15"""
    place.world.protect_tags()
    first = place.run()
    assert (first.code, set(first.outcomes.values())) == (1, {"published"})
    assert first.results["result"] == "partial"
    assert statuses(first, "announcement") == dict.fromkeys(PACKAGES, "owed")
    assert "2 tags are owed" in first.out
    place.world.release_tags()
    second = place.run()
    assert (second.code, second.results["result"]) == (0, "success")
    assert statuses(second, "tag") == dict.fromkeys(PACKAGES, "made")
    assert set(place.world.tags) == TAGS
    third = place.run()
    assert (third.code, third.results["result"]) == (0, "noop")


def test_protected_tags_are_owed_in_the_words_of_the_rule(place: Place) -> None:
    place.world.protect_tags()
    ended = place.run("--tag")
    tag = only(ended, "tag")
    assert (ended.code, tag["status"], tag["problem"]) == (1, "owed", "RK-130")
    assert "GH013" in tag["note"]
    assert "rule" in tag["hint"]
    assert set(ended.outcomes.values()) == {"published"}


def test_a_tag_of_somebody_else_is_named_with_both_ids_and_the_rest_goes_on(place: Place) -> None:
    before = git(place.root, "rev-parse", "HEAD").strip()
    git(place.root, "tag", "acme-core-v1.0.0")
    git(place.root, "push", "--quiet", "origin", "acme-core-v1.0.0")
    after = place.commit("Go on")
    ended = place.run()
    assert ended.code == 1
    foreign = ended.row("acme-core")["tag"]
    assert (foreign["status"], foreign["problem"]) == ("foreign", "RK-132")
    assert before in foreign["note"]
    assert after in foreign["note"]
    assert ended.row("acme-core")["announcement"]["status"] == "owed"
    assert ended.row("acme-cli")["announcement"]["status"] == "made"
    assert place.world.tags["acme-core-v1.0.0"] == before
    assert [each["tag_name"] for each in place.world.releases] == ["acme-cli-v1.0.0"]


def test_a_release_of_somebody_else_stays_and_is_no_failure(place: Place) -> None:
    place.world.add("acme-core-v1.0.0", body="By hand.")
    ended = place.run()
    assert ended.code == 0, ended.err
    row = ended.row("acme-core")["announcement"]
    assert row["status"] == "foreign"
    assert "left as it is" in row["note"]
    (theirs,) = [each for each in place.world.releases if each["tag_name"] == "acme-core-v1.0.0"]
    assert (theirs["body"], theirs["assets"]) == ("By hand.", [])


def test_immutable_releases_are_whole_before_they_are_published(place: Place) -> None:
    place.world.immutable = True
    place.toml('[announce]\nassets = ["checksums", "files", "report"]\n')
    ended = place.run()
    assert ended.code == 0, ended.err
    for release in place.world.releases:
        assert release["immutable"]
        assert len(release["assets"]) == 4
        assert {each["name"] for each in release["assets"]} >= {"checksums.txt", "report.html"}
    sums = next(iter(place.world.releases))["assets"][0]
    lines = place.world.contents[sums["id"]].decode().splitlines()
    assert all(re.fullmatch(r"SHA256 \(acme_\S+\) = [0-9a-f]{64}", line) for line in lines)


def test_that_later_jobs_can_add_nothing_is_said_where_it_shows(place: Place) -> None:
    """R72."""
    place.world.add("old-v1.0.0", body="Old.", immutable=True)
    ended = place.run("--tag", "--announce", command="plan")
    assert f"releases of {REPOSITORY} are immutable" in ended.out
    assert "`draft = true` below [announce] leaves them open" in ended.out
    place.toml("[announce]\ndraft = true\n")
    assert "immutable" not in place.run("--tag", "--announce", command="plan").out


@pytest.mark.parametrize(
    ("toml", "said", "of_plan"),
    [
        ('extra-files = ["README.md"]', "and there may be several releases", 0),
        ('extra-files = { "pypi:acme-cli" = ["b/*.gz"] }', '"b/*.gz" fits no file', 0),
        ('extra-files = { "pypi:acme-cli" = ["link/*"] }', "leads out of the workspace", 0),
        ('extra-files = { "pypi:acme-cl" = ["a"] }', "did you mean 'pypi:acme-cli'?", 2),
        ('latest = "pypi:acme-cl"', "latest names pypi:acme-cl, and no such package", 2),
    ],
)
def test_releases_that_cannot_be_made_as_told_keep_all_back(
    place: Place, toml: str, said: str, of_plan: int
) -> None:
    """R72."""
    (place.root / "link").symlink_to(place.registry.parent)
    (place.registry.parent / "app.txt").touch()
    place.toml(f"[announce]\n{toml}\n")
    ended = place.run()
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert not place.registry.exists()
    assert (place.world.tags, place.world.releases) == ({}, [])
    planned = place.run("--tag", "--announce", command="plan")
    assert (planned.code, said in planned.err + planned.out) == (of_plan, True)


def test_extra_files_of_another_commit_are_attached_to_no_tag(place: Place) -> None:
    """R15, R72: what was announced too late is owed, and is made where its tag is."""
    place.toml('[announce]\nextra-files = { "pypi:acme-cli" = ["app.txt"] }\n')
    (place.root / "app.txt").write_text("of the first commit\n")
    place.commit("Make the app")
    assert place.run("--tag").code == 0
    (place.root / "app.txt").unlink()  # which keeps nothing else back
    place.commit("Go on")
    later = place.run()
    assert later.code == 1
    assert statuses(later, "announcement") == {"acme-core": "made", "acme-cli": "owed"}
    assert "acme-cli-v1.0.0: its extra files would be those of another commit" in later.out
    git(place.root, "fetch", "--quiet", "--tags", "origin")
    git(place.root, "checkout", "--quiet", "acme-cli-v1.0.0")
    ended = place.run()
    assert ended.code == 0, ended.out
    assert b"of the first commit\n" in place.world.contents.values()


def test_one_release_for_all_that_share_a_version(place: Place) -> None:
    place.toml('[tag]\nname = "v{version}"\n[announce]\nreleases = "one"\n')
    (place.root / "CHANGELOG.md").write_text("# Changes\n\n## 1.0.0\n\n- Everything.\n")
    place.commit("Say what is new")
    ended = place.run()
    assert ended.code == 0, ended.err
    assert set(place.world.tags) == {"v1.0.0"}
    (release,) = place.world.releases
    assert release["name"] == "v1.0.0"
    assert "- Everything." in release["body"]
    assert place.world.latest == release["id"]


def test_one_release_wants_one_tag(place: Place) -> None:
    place.toml('[announce]\nreleases = "one"\n')
    ended = place.run()
    assert ended.code == 2
    assert 'Write [tag] name = "v{version}"' in ended.err
    assert place.world.releases == []


def test_without_a_token_nothing_is_published(place: Place) -> None:
    """R7: what can be known before is said before."""
    environment = {**place.program.environment}
    del environment["RELEASEKIT_FORGE_TOKEN"]
    place.program = Program(place.program.home, environment)
    ended = place.run()
    assert ended.code == 3
    assert "there is no token for GitHub" in ended.err
    assert "RELEASEKIT_FORGE_TOKEN" in ended.err
    assert not (place.root.parent / "registry").exists()
    planned = place.run("--tag", "--announce", command="plan")
    assert planned.code == 0, planned.err


def test_a_release_tells_of_the_commits_since_the_tag_before(place: Place) -> None:
    assert place.run().code == 0
    core = place.root / "packages/acme-core"
    (core / "src/acme_core/more.py").write_text("MORE = 1\n")
    place.commit("Add more for @everybody, fixes #1")
    manifest = core / "pyproject.toml"
    manifest.write_text(manifest.read_text().replace("1.0.0", "1.1.0"))
    place.commit("Bump the core")
    ended = place.run()
    assert ended.code == 0, ended.err
    body = place.world.releases[0]["body"]
    assert place.world.releases[0]["tag_name"] == "acme-core-v1.1.0"
    lines = [line for line in body.splitlines() if line.startswith("- ")]
    assert lines[0].startswith("- Bump the core (")
    assert len(lines) == 2
    assert "@everybody" not in body
    assert f"{place.world.origin}/{REPOSITORY}/commit/" in body
    assert place.world.latest == place.world.releases[0]["id"]


def test_the_text_alone(place: Place) -> None:
    (place.root / "packages/acme-core/CHANGELOG.md").write_text(
        "## 2.0.0\n\n- Two.\n\n## 1.0.0\n\n- One.\n"
    )
    place.commit("Say what is new")
    said = place.program.run("notes", "acme-core", "2.0.0", f"--working-directory={place.root}")
    assert (said.code, said.out) == (0, "- Two.\n"), said.err
    said = place.program.run("notes", "pypi:acme-cli", "1.0.0", f"--working-directory={place.root}")
    assert said.code == 0
    assert said.out == "acme-cli 1.0.0\n"
    missing = place.program.run("notes", "acme-cor", "1.0.0", f"--working-directory={place.root}")
    assert missing.code == 2
    assert "did you mean 'acme-core'" in missing.err
    unknown = place.program.run("notes", "acme-core", "9.9.9", f"--working-directory={place.root}")
    assert unknown.code == 2
    assert "pypi:acme-core has no version 9.9.9: its manifest has 1.0.0" in unknown.err
    alone = place.program.run("notes", "acme-core", f"--working-directory={place.root}")
    assert alone.code == 2
    assert "notes takes a package and a version" in alone.err
