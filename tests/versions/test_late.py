"""What publishing says of changes that came after the versions of a release were decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from versions.test_version_command import (
    PYTHON,
    PYTHON_TAGS,
    bare_environment,
    commit,
    member,
    repository,
)
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["bare_environment"]

NAMES = ("core", "cli", "web", "free")
SOURCES = {f"packages/{name}/src/acme_{name}/__init__.py": "\n" for name in NAMES}
SOURCES["packages/free/pyproject.toml"] = member("acme-free", "1.0.0")


class Place:
    """A fix was decided upon for core, and something else for it lands before that is merged."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys
        commit(root, "fix: count (#40)", {"packages/core/src/acme_core/count.py": "1\n"})

    def run(self, *command: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = main([command[0], str(self.root), *command[1:]])
        said = self._capsys.readouterr()
        return code, said.out + said.err

    def merge(self, late: str, files: Mapping[str, str], how: str = "merge") -> None:
        base = git(self.root, "rev-parse", "HEAD").strip()
        git(self.root, "switch", "--quiet", "--create", "release")
        assert self.run("version")[0] == 0
        title = "chore: release acme-core 1.2.1"
        commit(self.root, f"{title}\n\nReleaseKit-Base: {base}", {})
        git(self.root, "switch", "--quiet", "main")
        commit(self.root, late, files)
        if how == "rebase":
            git(self.root, "cherry-pick", "release")
        elif how == "squash":
            git(self.root, "merge", "--quiet", "--squash", "release")
            commit(self.root, f"{title} (#57)\n\nReleaseKit-Base: {base}", {})
        else:
            git(self.root, "merge", "--quiet", "--no-ff", "--message", "Merge", "release")


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    root = repository(tmp_path / "w", PYTHON | SOURCES, *PYTHON_TAGS, "acme-free-v1.0.0")
    assert main(["publish", str(root)]) == 0
    (root / ".gitignore").write_text(".releasekit\n")
    return Place(root, capsys)


FEATURE = {"packages/core/src/acme_core/parquet.py": "1\n"}


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_what_would_have_raised_a_version_refuses_it(place: Place, how: str) -> None:
    place.merge("feat: read parquet files (#41)", FEATURE, how)
    said = (
        "feat: read parquet files (#41) came after 1.2.1 was decided, and asks for 1.3.0: merge "
        "the next release pull request, which writes that"
    )
    code, out = place.run("plan")
    assert said in out
    code, out = place.run("publish")
    assert code == 1
    assert f"{said} [RK-513]" in out
    assert place.run("version")[0] == 0
    commit(place.root, "chore: release acme-core 1.3.0", {})
    code, out = place.run("publish")
    assert (code, "came after" in out) == (0, False), out


def test_others_go_out(place: Place) -> None:
    base = git(place.root, "rev-parse", "HEAD").strip()
    assert place.run("version", "--set", "acme-free=1.0.1")[0] == 0
    commit(place.root, f"chore: release\n\nReleaseKit-Base: {base}", {})
    commit(place.root, "feat: read parquet files (#41)", FEATURE)
    code, out = place.run("publish")
    assert code == 1
    assert "1 of 4 packages published, 1 already there, 1 failed, 1 blocked" in out


def test_what_raises_nothing_is_a_warning(place: Place) -> None:
    place.merge("fix: close files (#42)", FEATURE)
    code, out = place.run("publish")
    assert code == 0
    said = "fix: close files (#42) came after 1.2.1 was decided, and goes out with it"
    assert said in out
    git(place.root, "tag", "acme-core-v1.2.1")
    assert place.run("version", "--check")[0] == 0


def test_nothing_is_missed_where_no_changelog_tells_of_it(place: Place) -> None:
    commit(
        place.root, "chore: tell nothing", {"releasekit.toml": '[version]\nchangelog = "none"\n'}
    )
    place.merge("fix: close files (#42)", FEATURE)
    code, out = place.run("plan")
    assert (code, "came after" in out) == (0, False), out


def test_a_prerelease_goes_out_with_what_only_makes_the_next_one(place: Place) -> None:
    config = '[version]\nbranches = { "*" = "rc" }\n'
    commit(place.root, "chore: candidates", {"releasekit.toml": config})
    place.merge("fix: close files (#42)", FEATURE)
    code, out = place.run("publish")
    assert code == 0
    assert "fix: close files (#42) came after 1.2.1rc1 was decided, and goes out with it" in out
    git(place.root, "tag", "acme-core-v1.2.1rc1")
    assert "acme-core  1.2.0 → 1.2.1rc2  patch  fix: close" in place.run("version", "--dry-run")[1]


def test_a_prerelease_of_a_lower_version_is_refused(place: Place) -> None:
    config = '[version]\nbranches = { "*" = "rc" }\n'
    commit(place.root, "chore: candidates", {"releasekit.toml": config})
    place.merge("feat: read parquet files (#41)", FEATURE)
    assert "came after 1.2.1rc1 was decided, and asks for 1.3.0rc1" in place.run("plan")[1]


def test_a_level_says_what_it_comes_to(place: Place) -> None:
    place.merge("feat: read parquet files (#41)", FEATURE)
    (place.root / "releasekit.toml").write_text('[warnings]\nlate-change = "ignore"\n')
    code, out = place.run("publish")
    assert (code, "came after" in out) == (0, False), out


def test_a_version_that_somebody_wrote_by_hand_goes_out(place: Place) -> None:
    assert place.run("version")[0] == 0
    commit(place.root, "chore: release acme-core 1.2.1", {})
    commit(place.root, "feat: read parquet files (#41)", FEATURE)
    code, out = place.run("publish")
    assert (code, "came after" in out) == (0, False), out


def test_a_branch_that_was_updated_is_judged_too(place: Place) -> None:
    """A button of GitHub merges the base branch into that of a pull request."""
    base = git(place.root, "rev-parse", "HEAD").strip()
    git(place.root, "switch", "--quiet", "--create", "release")
    assert place.run("version")[0] == 0
    commit(place.root, f"chore: release acme-core 1.2.1\n\nReleaseKit-Base: {base}", {})
    git(place.root, "switch", "--quiet", "main")
    commit(place.root, "feat: read parquet files (#41)", FEATURE)
    git(place.root, "switch", "--quiet", "release")
    git(place.root, "merge", "--quiet", "--no-ff", "--message", "Merge branch 'main'", "main")
    git(place.root, "switch", "--quiet", "main")
    git(place.root, "merge", "--quiet", "--no-ff", "--message", "Merge", "release")
    assert "feat: read parquet files (#41) came after 1.2.1 was decided" in place.run("plan")[1]
    git(place.root, "tag", "acme-core-v1.2.1")
    commit(place.root, "fix: close files (#42)", {"packages/core/src/acme_core/close.py": "1\n"})
    assert place.run("version")[0] == 0
    changelog = (place.root / "packages/core/CHANGELOG.md").read_text()
    assert "- read parquet files (#41) *(already in 1.2.1)*" in changelog


def test_a_base_that_the_history_lacks_says_nothing(place: Place) -> None:
    """As on a branch for fixes, to which a release of another one was picked."""
    assert place.run("version")[0] == 0
    commit(place.root, f"chore: release acme-core 1.2.1\n\nReleaseKit-Base: {'1' * 40}", {})
    commit(place.root, "feat: read parquet files (#41)", FEATURE)
    code, out = place.run("plan")
    assert (code, "came after" in out) == (0, False), out


def test_a_shallow_clone_says_what_it_cannot_know(place: Place, tmp_path: Path) -> None:
    place.merge("feat: read parquet files (#41)", FEATURE, "squash")
    git(tmp_path, "clone", "--quiet", "--depth=1", place.root.as_uri(), "shallow")
    place.root = tmp_path / "shallow"
    said = "it is unknown what came after these versions were decided: the clone is shallow"
    assert said in place.run("plan")[1]
