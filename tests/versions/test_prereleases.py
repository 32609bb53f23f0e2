"""Prereleases by the name of a branch: entering, counting on, and leaving them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from versions.test_version_command import (
    PYTHON,
    PYTHON_TAGS,
    bare_environment,
    commit,
    lines,
    member,
    repository,
)
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["bare_environment"]

# Example C: a wheel around a crate, on the branch next.
CRATE = '[package]\nname = "acme-measure"\nversion = "0.5.0"\nedition = "2021"\n'
BENCH = (
    '[package]\nname = "acme-bench"\nversion = "0.1.0"\nedition = "2021"\npublish = false\n'
    '[dependencies]\nacme-measure = { path = "../measure", version = "0.5" }\n'
)
WHEEL = (
    '[project]\nname = "acme-measure"\nversion = "0.5.0"\n'
    '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
)
CONFIG = """
[dependencies]
"pypi:acme-measure" = [{ on = "cargo:acme-measure", bump = "same" }]
[version]
branches = { next = "rc", "beta/*" = "beta", "beta/stable" = "" }
"""
FILES = {
    "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n',
    "crates/measure/Cargo.toml": CRATE,
    "crates/measure/src/lib.rs": "",
    "crates/bench/Cargo.toml": BENCH,
    "crates/bench/src/lib.rs": "",
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["python/*"]\n',
    "python/measure/pyproject.toml": WHEEL,
    "releasekit.toml": CONFIG,
}


class Place:
    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        self.said: list[str] = []

    def decide(self, *flags: str) -> dict[str, str]:
        """The next version of each package."""
        lines(self._capsys)
        code = main(["version", str(self.root), "--dry-run", *flags])
        self.said = lines(self._capsys)
        assert code == 0, self.said
        rows = [line.split() for line in self.said if " → " in line]
        return {row[0]: row[row.index("→") + 1] for row in rows}

    def write(self) -> None:
        """And commit it."""
        assert main(["version", str(self.root)]) == 0
        self.commit("chore: release", {})
        assert main(["version", str(self.root), "--check"]) == 0

    def release(self, **tags: str) -> None:
        self.write()
        for name, version in tags.items():
            git(self.root, "tag", f"{name.replace('_', '-')}-v{version}")

    def commit(self, message: str, files: Mapping[str, str]) -> None:
        commit(self.root, message, files)

    def switch(self, branch: str, *flags: str) -> None:
        git(self.root, "switch", "--quiet", *flags, branch)


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    root = repository(tmp_path / "w", FILES)
    git(root, "tag", "v0.5.0")
    return Place(root, capsys)


def test_a_branch_says_whether_versions_are_prereleases(place: Place) -> None:
    place.commit("feat!: return errors (#88)", {"crates/measure/src/lib.rs": "// 1\n"})
    stable = {"cargo:acme-measure": "0.6.0", "pypi:acme-measure": "0.6.0"}
    assert place.decide() == stable
    place.switch("next", "--create")
    candidate = {"cargo:acme-measure": "0.6.0-rc.1", "pypi:acme-measure": "0.6.0rc1"}
    assert place.decide() == candidate
    assert place.decide("--branch", "main") == place.decide("--branch", "beta/stable") == stable
    beta = {"cargo:acme-measure": "0.6.0-beta.1", "pypi:acme-measure": "0.6.0b1"}
    assert place.decide("--branch", "beta/2") == beta
    place.write()
    assert 'version = "0.6.0-rc.1"' in (place.root / "crates/measure/Cargo.toml").read_text()
    bench = (place.root / "crates/bench/Cargo.toml").read_text()
    assert 'path = "../measure", version = "0.6.0-rc.1"' in bench
    assert 'version = "0.6.0rc1"' in (place.root / "python/measure/pyproject.toml").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ["version", "--dry-run"],
        ["version", "--dry-run", "--snapshot", "pr-97"],
        ["preview", "--since", "HEAD~"],
    ],
    ids=" ".join,
)
def test_nothing_is_decided_where_the_branch_is_unknown(
    command: list[str],
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R68: a commit that is checked out is of no branch, and a job may name another one."""
    place.commit("feat!: return errors (#88)", {"crates/measure/src/lib.rs": "// 1\n"})
    git(place.root, "branch", "next")
    git(place.root, "switch", "--quiet", "--detach")
    run = [*command, str(place.root)]
    queued = "gh-readonly-queue/main/pr-7-0c1d2e3f"
    for name, value in (
        ("", ""),
        ("BUILDKITE_TAG", "v1"),
        ("CIRCLE_PR_NUMBER", "12"),
        ("BITBUCKET_BRANCH", queued),
    ):
        with monkeypatch.context() as patch:
            if name:
                patch.setenv(name, value)
            assert main(run) == 3
            told = " ".join(capsys.readouterr().err.split())
            assert "RK-339" in told
            assert "--branch main" in told
            assert value in told
    assert main([*run, "--branch", "main"]) == 0
    # Whether what a change asks for is a prerelease does not matter to who asks.
    assert main(["change", str(place.root), "--check", "--since", "HEAD~"]) == 0
    (place.root / "releasekit.toml").write_text("")
    assert main(run) == 0  # every branch is stable


def test_a_job_says_its_branch_where_a_commit_is_checked_out(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68"""
    place.commit("feat!: return errors (#88)", {"crates/measure/src/lib.rs": "// 1\n"})
    place.switch("next", "--create")
    monkeypatch.setenv("BITBUCKET_BRANCH", "main")
    assert main(["version", str(place.root), "--dry-run"]) == 3
    told = " ".join(capsys.readouterr().err.split())
    assert "this is a job of main, but next is checked out" in told
    assert place.decide("--branch", "main")["cargo:acme-measure"] == "0.6.0"
    place.switch("other", "--create")  # as stable as main
    assert place.decide()["cargo:acme-measure"] == "0.6.0"
    monkeypatch.setenv("BITBUCKET_BRANCH", "next")
    git(place.root, "switch", "--quiet", "--detach")
    assert place.decide()["cargo:acme-measure"] == "0.6.0-rc.1"


UI = {
    "package.json": '{"private": true, "workspaces": ["packages/*"]}',
    "packages/core/package.json": '{"name": "core", "version": "1.2.0"}',
    "packages/ui/package.json": '{"name": "ui", "version": "2.0.0", "dependencies": '
    '{"core": "^1.2.0"}}',
    "packages/far/package.json": '{"name": "far", "version": "3.0.0"}',
    "releasekit.toml": '[version]\nbranches = { next = "rc" }\n',
}
POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>acme</groupId><artifactId>kit</artifactId><version>{}</version></project>\n"
)
UI_TAGS = ("core-v1.2.0", "ui-v2.0.0", "far-v3.0.0")


@pytest.fixture
def ui(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    place = Place(repository(tmp_path / "w", UI, *UI_TAGS), capsys)
    place.switch("next", "--create")
    place.commit("feat: one (#1)", {"packages/core/one.js": "1\n"})
    place.release(core="1.3.0-rc.1", ui="2.0.1-rc.1")
    return place


def read(place: Place, name: str) -> dict[str, object]:
    text = (place.root / f"packages/{name}/package.json").read_text()
    return dict(json.loads(text))


def test_a_number_needs_something_new(ui: Place) -> None:
    """What needs it comes along where its published range takes no prerelease, as ^1.2.0 does."""
    assert read(ui, "ui")["dependencies"] == {"core": "^1.3.0-rc.1"}
    assert ui.decide() == {}
    ui.commit("docs: more", {"README.md": "1\n"})
    assert ui.decide() == {}
    ui.commit("fix: two (#2)", {"packages/core/two.js": "1\n"})
    assert ui.decide() == {"core": "1.3.0-rc.2"}
    ui.commit("fix: three (#3)", {"packages/far/three.js": "1\n"})
    assert ui.decide() == {"core": "1.3.0-rc.2", "far": "3.0.1-rc.1"}
    ui.write()
    text = (ui.root / "packages/core/CHANGELOG.md").read_text()
    newest, _, older = text.partition("## 1.3.0-rc.1")
    assert ("two" in newest, "one" in newest, "one" in older) == (True, False, True)


def test_one_that_is_written_and_not_tagged_keeps_its_number(ui: Place) -> None:
    ui.commit("fix: two (#2)", {"packages/core/two.js": "1\n"})
    ui.write()
    assert ui.decide() == {"core": "1.3.0-rc.2"}
    assert main(["version", str(ui.root), "--check"]) == 0
    ui.commit("fix: three (#3)", {"packages/core/three.js": "1\n"})
    assert ui.decide() == {"core": "1.3.0-rc.3"}


def test_one_that_no_commit_has_keeps_its_number(ui: Place) -> None:
    ui.commit("fix: two (#2)", {"packages/core/two.js": "1\n"})
    file = ui.root / ".changeset/a.md"
    file.parent.mkdir()
    file.write_text('---\n"far": minor\n---\nFurther.\n')
    for _ in range(2):
        assert main(["version", str(ui.root)]) == 0
        assert [read(ui, name)["version"] for name in ("core", "far")] == [
            "1.3.0-rc.2",
            "3.1.0-rc.1",
        ]


def test_one_goes_on_whose_dependency_was_tagged_before_the_run_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"releasekit.toml": '[version]\nbranches = { main = "rc" }\n'}
    place = Place(repository(tmp_path / "w", {**PYTHON, **config}, *PYTHON_TAGS), capsys)
    place.commit("feat: one", {"packages/core/one.py": "1\n"})
    place.release(acme_core="1.3.0rc1")
    assert place.decide() == {"acme-web": "0.3.1rc1"}
    assert place.said[1].endswith("when packed, 0.3.0 requires acme-core==1.2.0")


def test_a_first_one_passes_over_numbers_that_are_tagged(ui: Place) -> None:
    git(ui.root, "tag", "--delete", "far-v3.0.0")
    elsewhere = git(ui.root, "commit-tree", "-m", "x", "HEAD^{tree}").strip()
    git(ui.root, "tag", "far-v3.0.0-rc.4", elsewhere)
    ui.commit("fix: two (#2)", {"packages/far/two.js": "1\n"})
    ui.decide()
    assert ui.said[0].startswith("far  3.0.0-rc.5 ")


def test_what_holds_the_place_of_a_version_is_no_prerelease(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What came before 1.3.0-SNAPSHOT was written is in no release candidate for that."""
    config = '[version]\nbranches = { main = "rc" }\n'
    files = {"pom.xml": POM.format("1.2.0"), "releasekit.toml": config}
    place = Place(repository(tmp_path / "w", files, "kit-v1.2.0"), capsys)
    place.commit("feat: one", {"src/main/java/One.java": "1\n"})
    place.release(kit="1.3.0-rc.1")
    place.commit("fix: two", {"src/main/java/Two.java": "1\n"})
    place.commit("chore: go on", {"pom.xml": POM.format("1.3.0-SNAPSHOT")})
    assert place.decide() == {"acme:kit": "1.3.0-rc.2"}


def test_numbers_begin_again_where_more_is_asked_for(ui: Place) -> None:
    ui.commit("feat!: two (#2)", {"packages/core/two.js": "1\n"})
    assert ui.decide() == {"core": "2.0.0-rc.1", "ui": "2.0.1-rc.2"}


def test_a_number_that_another_branch_has_tagged_is_passed_over(ui: Place) -> None:
    git(ui.root, "tag", "core-v1.3.0-rc.7", "main")
    ui.commit("fix: two (#2)", {"packages/core/two.js": "1\n"})
    assert ui.decide()["core"] == "1.3.0-rc.8"


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_merged_into_a_stable_branch_it_is_as_if_there_had_been_none(ui: Place, how: str) -> None:
    ui.commit("fix: two (#2)", {"packages/core/two.js": "1\n"})
    ui.release(core="1.3.0-rc.2", ui="2.0.1-rc.2")
    ui.switch("main")
    if how == "squash":
        git(ui.root, "merge", "--quiet", "--squash", "next")
        git(ui.root, "commit", "--quiet", "--message", "feat: one and two (#9)")
    else:
        flag = "--no-ff" if how == "merge" else "--ff-only"
        git(ui.root, "merge", "--quiet", "--no-edit", flag, "next")
    assert ui.decide() == {"core": "1.3.0", "ui": "2.0.1"}
    ui.release(core="1.3.0", ui="2.0.1")
    assert read(ui, "ui")["dependencies"] == {"core": "^1.3.0"}
    text = (ui.root / "packages/core/CHANGELOG.md").read_text()
    assert text.index("## 1.3.0 ") < text.index("## 1.3.0-rc.2") < text.index("## 1.3.0-rc.1")
    assert ui.decide() == {}
    if how == "squash":
        git(ui.root, "switch", "--quiet", "--force-create", "next", "main")
    else:
        ui.switch("next")
        git(ui.root, "merge", "--quiet", "--no-edit", "main")
    assert ui.decide() == {}
    ui.commit("fix: four (#4)", {"packages/core/four.js": "1\n"})
    assert ui.decide()["core"] == "1.3.1-rc.1"


@pytest.mark.parametrize(
    ("ecosystem", "manifest", "text", "zeroth", "first"),
    [
        (
            "npm",
            "package.json",
            '{"name": "acme", "version": "1.2.0"}\n',
            "1.3.0-rc.0",
            "1.3.0-rc.1",
        ),
        (
            "pypi",
            "pyproject.toml",
            WHEEL.replace("-measure", "").replace("0.5.0", "1.2.0"),
            "1.3.0rc0",
            "1.3.0rc1",
        ),
    ],
)
def test_a_prerelease_that_another_tool_numbered_0_counts(
    ecosystem: str,
    manifest: str,
    text: str,
    zeroth: str,
    first: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """changesets, lerna and nx begin at 0: what such a version has is not decided again (R64)."""
    files = {manifest: text, "releasekit.toml": '[version]\nbranches = { next = "rc" }\n'}
    place = Place(repository(tmp_path / "w", files, "acme-v1.2.0"), capsys)
    place.switch("next", "--create")
    place.commit(
        "chore: prerelease",
        {
            ".changeset/a.md": f'---\n"{ecosystem}:acme": minor\n---\nA.\n',
            manifest: text.replace("1.2.0", zeroth),
        },
    )
    assert place.decide() == {"acme": zeroth}
    git(place.root, "tag", f"acme-v{zeroth}")
    assert place.decide() == {}
    place.commit("fix: two", {"acme/two.py": "2\n"})
    assert place.decide() == {"acme": first}
    place.switch("main")
    git(place.root, "merge", "--quiet", "--no-edit", "next")
    assert place.decide() == {"acme": "1.3.0"}


def test_change_files_stay_until_a_stable_version_has_them(ui: Place) -> None:
    file = ".changeset/a.md"
    ui.commit("chore: change", {file: '---\n"far": minor\n---\nFurther.\n'})
    assert ui.decide() == {"far": "3.1.0-rc.1"}
    ui.release(far="3.1.0-rc.1")
    assert (ui.root / file).exists()
    assert ui.decide() == {}
    ui.switch("main")
    git(ui.root, "merge", "--quiet", "--no-edit", "next")
    assert ui.decide()["far"] == "3.1.0"
    ui.write()
    assert not (ui.root / file).exists()
    assert "Further." in (ui.root / "packages/far/CHANGELOG.md").read_text()


@pytest.mark.parametrize("how", ["merge", "squash"])
def test_a_preview_says_what_merging_a_branch_of_prereleases_releases(
    ui: Place, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """R61: without it, the branch that it is merged into is as it stands."""

    def preview() -> tuple[dict[str, tuple[str, ...]], list[str]]:
        lines(capsys)
        assert main(["preview", str(ui.root), "--since", "main", "--branch", "main"]) == 0
        said = lines(capsys)
        rows = [line.split() for line in said if line.startswith(("core", "ui", "far"))]
        return {row[0]: tuple(row[1:4]) for row in rows}, said

    ui.commit("chore: change", {".changeset/a.md": '---\n"far": minor\n---\nFurther.\n'})
    told, said = preview()
    assert told == {
        "core": ("1.2.0", "-", "1.3.0"),
        "ui": ("2.0.0", "-", "2.0.1"),
        "far": ("3.0.0", "-", "3.1.0"),
    }
    assert "left out" not in "\n".join(said)
    ui.switch("main")
    ui.commit("fix: here (#2)", {"packages/far/here.js": "1\n"})
    without = ui.decide()
    ui.switch("next")
    assert "left out: 1 commit of the target branch" in "\n".join(preview()[1])
    git(ui.root, "merge", "--quiet", "--no-edit", "main")
    told, _ = preview()
    ui.switch("main")
    if how == "squash":
        git(ui.root, "merge", "--quiet", "--squash", "next")
        ui.commit("Release next (#3)", {})
    else:
        git(ui.root, "merge", "--quiet", "--no-ff", "--no-edit", "next")
    assert {name: row[2] for name, row in told.items()} == ui.decide()
    assert {name: row[1] for name, row in told.items() if row[1] != "-"} == without


FIRST = {
    "releasekit.toml": '[version]\nbranches = { next = "rc" }\n[go]\nversion-file = "VERSION"\n',
    "package.json": '{"private": true, "workspaces": ["js"]}',
    "pyproject.toml": '[tool.uv.workspace]\nmembers = ["py"]\n',
    "Cargo.toml": '[workspace]\nmembers = ["crate"]\nresolver = "2"\n',
    "js/package.json": '{"name": "js", "version": "1.0.0-rc.1"}',
    "py/pyproject.toml": WHEEL.replace("acme-measure", "py").replace("0.5.0", "1.0.0rc1"),
    "crate/Cargo.toml": CRATE.replace("acme-measure", "crate").replace("0.5.0", "1.0.0-rc.1"),
    "crate/src/lib.rs": "",
    "mod/go.mod": "module example.com/acme/mod\n\ngo 1.22\n",
    "mod/VERSION": "1.0.0-rc.1\n",
    "pom.xml": POM.format("1.0.0-RC1"),
}
ALL = ("npm:js", "pypi:py", "cargo:crate", "go:example.com/acme/mod", "maven:acme:kit")


def test_change_files_stay_while_there_was_no_stable_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R61: what a first stable version brings is what came since there are prereleases of it."""
    place = Place(repository(tmp_path / "w", FIRST), capsys)
    file = "---\n" + "".join(f'"{name}": minor\n' for name in ALL) + "---\n{}.\n"
    place.switch("next", "--create")
    # The commit that wrote the version is older than the one that is tagged.
    place.commit("chore: change", {".changeset/a.md": file.format("Early")})
    tags = ("js-v1.0.0-rc.1", "py-v1.0.0rc1", "crate-v1.0.0-rc.1", "kit@1.0.0-RC1")
    for tag in (*tags, "mod/v1.0.0-rc.1"):
        git(place.root, "tag", tag)
    assert place.decide() == {}
    assert place.decide("--verbose") == {}
    assert "never released" not in "\n".join(place.said)
    place.commit("chore: change", {".changeset/b.md": file.format("Late")})
    assert set(place.decide().values()) == {"1.0.0-rc.2", "1.0.0rc2", "v1.0.0-rc.2"}
    place.write()
    logs = ("js", "py", "crate", "mod", ".")
    for each in logs:
        text = (place.root / each / "CHANGELOG.md").read_text()
        assert "First release" not in text
        assert "Late." in text
        assert "Early." not in text
    assert {each.name for each in (place.root / ".changeset").iterdir()} == {"a.md", "b.md"}
    place.switch("main")
    git(place.root, "merge", "--quiet", "--no-edit", "next")
    assert set(place.decide().values()) == {"1.0.0", "v1.0.0"}
    place.write()
    assert list((place.root / ".changeset").iterdir()) == []
    for each in logs:
        text = (place.root / each / "CHANGELOG.md").read_text().partition("## 1.0.0")[2]
        assert "First release" not in text
        assert text.index("Early.") < text.index("Late.") < text.index("rc")


def test_some_packages_may_be_prereleases_on_every_branch(
    ui: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    ui.switch("main")
    ui.commit(
        "feat: lab (#5)",
        {"releasekit.toml": '[version.prerelease]\n"f*" = "alpha"\n', "packages/far/a.js": "1\n"},
    )
    assert ui.decide() == {"far": "3.1.0-alpha.1"}
    ui.commit("chore: typo", {"releasekit.toml": '[version.prerelease]\n"fra*" = "alpha"\n'})
    assert main(["version", str(ui.root), "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert "[version] prerelease: 'fra*' matches no package that gets a version" in said


def test_a_stable_package_requires_no_prerelease(
    ui: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    ui.switch("main")
    config = '[version.prerelease]\ncore = "alpha"\n'
    ui.commit("feat: lab (#5)", {"releasekit.toml": config, "packages/core/a.js": "1\n"})
    assert main(["version", str(ui.root)]) == 3
    said = capsys.readouterr().err
    assert "npm:ui: it is stable, and would have to require npm:core 1.3.0-alpha.1 [RK-331]" in said
    assert 'prerelease = { "ui" = "alpha" }' in said


def test_requirements_of_a_stable_package_begin_at_no_prerelease(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where they admit the stable version as well as the prerelease, they stay."""
    both = "^1.2.0 || ^1.2.1-alpha.0"
    config = '[version.prerelease]\ncore = "alpha"\nacme-core = "alpha"\nacme-web = "alpha"\n'
    files = {
        **PYTHON,
        "package.json": '{"private": true, "workspaces": ["js/*"]}',
        "js/core/package.json": UI["packages/core/package.json"],
        "js/ui/package.json": UI["packages/ui/package.json"].replace("^1.2.0", both),
        "releasekit.toml": config,
    }
    place = Place(repository(tmp_path / "w", files, *PYTHON_TAGS, *UI_TAGS), capsys)
    places = ("packages/core/a.py", "packages/cli/a.py", "js/core/a.js", "js/ui/a.js")
    place.commit("fix: one", dict.fromkeys(places, "1\n"))
    assert place.decide() == {
        "acme-core": "1.2.1a1",
        "acme-cli": "0.4.2",
        "acme-web": "0.3.1a1",
        "core": "1.2.1-alpha.1",
        "ui": "2.0.1",
    }
    place.write()
    assert '"acme-core>=1.2,<2"' in (place.root / "packages/cli/pyproject.toml").read_text()
    assert f'"core": "{both}"' in (place.root / "js/ui/package.json").read_text()


@pytest.mark.parametrize("ranges", ["raise", "keep"])
def test_a_stable_version_leaves_no_prerelease_in_requirements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ranges: str
) -> None:
    """Not in a range of peers, which is otherwise as wide as it can be."""
    crates = ("crates/core", "crates/cli")
    files = {
        **PYTHON,
        "packages/cli/pyproject.toml": member("acme-cli", "0.4.1", "acme-core~=1.2.0"),
        "package.json": '{"private": true, "workspaces": ["js/*"]}',
        "js/core/package.json": UI["packages/core/package.json"],
        "js/ui/package.json": UI["packages/ui/package.json"].replace("dep", "peerDep"),
        "Cargo.toml": f"[workspace]\nmembers = {json.dumps(crates)}\nresolver = '2'\n",
        "crates/core/Cargo.toml": CRATE.replace("measure", "crate"),
        "crates/core/src/lib.rs": "",
        "crates/cli/Cargo.toml": CRATE.replace("measure", "tool")
        + '[dependencies]\nacme-crate = { path = "../core", version = "0.5" }\n',
        "crates/cli/src/lib.rs": "",
        "releasekit.toml": f'[version]\nbranches = {{ next = "rc" }}\nranges = "{ranges}"\n',
    }
    tags = (*PYTHON_TAGS, *UI_TAGS, "acme-crate-v0.5.0", "acme-tool-v0.5.0")
    place = Place(repository(tmp_path / "w", files, *tags), capsys)
    place.switch("next", "--create")
    changed = ("packages/core/a.py", "js/core/a.js", "crates/core/src/a.rs")
    place.commit("feat: one (#1)", dict.fromkeys(changed, "//\n"))
    place.write()
    places = (
        ("packages/cli/pyproject.toml", r'"acme-core([^"]+)"'),
        ("js/ui/package.json", r'"core": "([^"]+)"'),
        ("crates/cli/Cargo.toml", r'core", version = "([^"]+)"'),
    )

    def list_requirements() -> list[str]:
        found = (re.search(pattern, (place.root / path).read_text()) for path, pattern in places)
        return [each[1] if each else "" for each in found]

    assert list_requirements() == ["~=1.3.0rc1", "^1.3.0-rc.1", "0.5.1-rc.1"]
    place.switch("main")
    git(place.root, "merge", "--quiet", "--no-edit", "next")
    place.write()
    assert list_requirements() == ["~=1.3.0", "^1.3.0", "0.5.1"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('branches = { next = "rc!" }', 'next is "rc!"; write a word such as rc, or "" for none'),
        ('branches = ["next"]', "Write a table of strings"),
    ],
)
def test_a_label_is_a_word(
    ui: Place, config: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ui.commit("chore: config", {"releasekit.toml": f"[version]\n{config}\n"})
    assert main(["version", str(ui.root)]) == 2
    assert said in capsys.readouterr().err


def test_python_has_labels_of_its_own(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG.replace('"rc"', '"canary"')
    place.commit("feat!: more", {"releasekit.toml": config, "crates/measure/src/lib.rs": "// 1\n"})
    assert main(["version", str(place.root), "--branch", "next"]) == 2
    said = capsys.readouterr().err
    assert "pypi:acme-measure the label 'canary'" in said
    assert "a prerelease is called one of rc, beta, b, alpha, a, dev" in said


def test_what_the_last_prerelease_requires_is_what_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R65: npm and cargo take ^1.1.0-beta.2 for ^1.1.0-beta.1, and not 1.0.0 of before."""
    linked = {"version": "1.0.0", "private": False}
    root = repository(
        tmp_path / "w",
        {
            "package.json": json.dumps({"name": "root", "private": True}),
            "pnpm-workspace.yaml": "packages: ['js/*']\n",
            "js/core/package.json": json.dumps({"name": "core", **linked}),
            "js/peer/package.json": json.dumps(
                {"name": "peer", **linked, "peerDependencies": {"core": "workspace:^"}}
            ),
            "js/user/package.json": json.dumps(
                {"name": "user", **linked, "dependencies": {"core": "workspace:^"}}
            ),
            "js/pinned/package.json": json.dumps(
                {"name": "pinned", **linked, "dependencies": {"core": "workspace:*"}}
            ),
            "releasekit.toml": '[version]\nbranches = { next = "beta" }\n',
        },
    )
    names = ("core", "peer", "pinned", "user")
    for name in names:
        git(root, "tag", f"{name}@1.0.0")
    place = Place(root, capsys)
    place.switch("next", "--create")
    place.commit("feat: more", {"js/core/a.js": "1\n"})
    first = {"core": "1.1.0-beta.1", **dict.fromkeys(names[1:], "1.0.1-beta.1")}
    assert place.decide() == first
    place.write()
    for name, version in first.items():
        git(root, "tag", f"{name}@{version}")
    assert place.decide() == {}
    place.commit("fix: again", {"js/core/a.js": "2\n"})
    assert place.decide() == {"core": "1.1.0-beta.2", "pinned": "1.0.1-beta.2"}
    assert "when packed, 1.0.1-beta.1 requires core 1.1.0-beta.1" in "\n".join(place.said)
    place.write()
    assert place.decide() == {"core": "1.1.0-beta.2", "pinned": "1.0.1-beta.2"}
    place.commit("feat!: other", {"js/core/a.js": "3\n"})
    assert place.decide()["peer"] == "1.0.1-beta.2"
    place.switch("main")
    git(root, "merge", "--quiet", "--no-edit", "next")
    assert place.decide() == {"core": "2.0.0", **dict.fromkeys(names[1:], "1.0.1")}
