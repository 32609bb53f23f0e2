"""Units of real histories: what merges bring along, what is taken back, whose trailers count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.config.version_options import VersionOptions
from releasekit.decided import Level
from releasekit.errors import PlanError
from releasekit.problems import Problem
from versions.repositories import Repository, standing, unclear
from watchdog import assert_no_worse_than_linear
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path

PATCH, MINOR, NONE = Level.PATCH, Level.MINOR, Level.NONE
AS_SOMEBODY = ("-c", "user.name=R", "-c", "user.email=r@example.invalid")


def merge(two: Repository, message: str, branch: str = "topic") -> str:
    two.git("checkout", "--quiet", "main")
    two.git(*AS_SOMEBODY, "merge", "--quiet", "--no-ff", "-m", message, branch)
    return two.git("rev-parse", "HEAD").strip()


def begin_branch(two: Repository, name: str = "topic") -> None:
    two.git("checkout", "--quiet", "-b", name)


def revert(commit: str, subject: str) -> str:
    return f'Revert "{subject}"\n\nThis reverts commit {commit}.\n'


def titles(two: Repository) -> dict[str, set[str]]:
    return {name: {title for title, _, _ in rows} for name, rows in two.levels().items()}


def test_the_revert_of_a_squash_takes_back_all_that_it_lists(two: Repository) -> None:
    two.commit("Topic (#7)\n\n* feat: one\n\n* fix: two\n", {"packages/core/one.py": "1"})
    two.commit('Revert "Topic" (#8)\n\nReverts acme/acme#7', {"packages/core/one.py": None})
    assert two.levels() == {}


def test_a_squash_that_says_to_take_itself_back_is_read_in_linear_time(two: Repository) -> None:
    """R51. It takes nothing back: each of its lines counts."""

    def read(count: int) -> None:
        two.git("tag", "--force", "acme-core-v1.2.0")
        (two.root / "message").write_text("Revert (#5)\n\nReverts #5\n" + "* fix: a\n" * count)
        with (two.root / "packages/core/a.py").open("a") as file:
            file.write("1")
        two.git("add", "packages")
        two.git(*AS_SOMEBODY, "commit", "--quiet", "--file=message")
        assert len(two.levels()["acme-core"]) == count

    assert_no_worse_than_linear(read, 4_000)


@pytest.mark.parametrize("by_number", [False, True])
def test_the_revert_of_a_merge_takes_back_all_that_it_brought(
    two: Repository, *, by_number: bool
) -> None:
    begin_branch(two)
    two.commit("feat: one", {"packages/core/one.py": "1"})
    two.commit("fix: two", {"packages/cli/two.py": "1"})
    merged = merge(two, "Merge pull request #9 from acme/topic")
    taken_back = f"This reverts commit {merged}, reversing\nchanges made to {'1' * 40}."
    taken_back = "Reverts acme/acme#9" if by_number else taken_back
    two.commit(
        f'Revert "Topic"\n\n{taken_back}',
        {"packages/core/one.py": None, "packages/cli/two.py": None},
    )
    assert two.levels() == {}


def test_the_revert_of_what_came_late_is_a_change(two: Repository) -> None:
    """It was in the released version, whoever decided on that."""
    base = two.git("rev-parse", "HEAD").strip()
    late = two.commit("feat: late", {"packages/core/a.py": "1"})
    two.commit(
        f"chore: release\n\nReleaseKit-Base: {base}",
        two.write("packages/core", "acme-core", "1.2.1"),
    )
    two.git("tag", "acme-core-v1.2.1")
    two.commit(revert(late, "feat: late"), {"packages/core/a.py": None})
    assert two.levels() == {
        "acme-core": [('Revert "feat: late"', PATCH, False), ("feat: late", MINOR, True)]
    }


def test_a_revert_counts_where_it_changes_more_than_it_takes_back(two: Repository) -> None:
    feature = two.commit("feat: one", {"packages/core/one.py": "1"})
    two.commit(
        revert(feature, "feat: one"), {"packages/core/one.py": None, "packages/cli/a.py": "1"}
    )
    assert two.levels() == {"acme-cli": [('Revert "feat: one"', PATCH, False)]}


@pytest.mark.parametrize("base", ["0" * 40, "HEAD"])
def test_a_trailer_that_names_no_commit_before_it_silences_nobody(
    two: Repository, base: str
) -> None:
    """Anybody may write it into the description of a pull request."""
    if base == "HEAD":
        begin_branch(two, "elsewhere")
        base = two.commit("fix: elsewhere")
        two.git("checkout", "--quiet", "main")
    two.commit(f"feat: one\n\nReleaseKit-Base: {base}", {"packages/core/a.py": "1"})
    assert titles(two) == {"acme-core": {"feat: one"}}


def test_a_commit_that_wrote_versions_states_nothing_whichever_way_it_was_merged(
    two: Repository,
) -> None:
    base = two.git("rev-parse", "HEAD").strip()
    message = f"Release core 1.3.0\n\nReleaseKit-Base: {base}"
    begin_branch(two)
    two.commit(message, two.write("packages/core", "acme-core", "1.3.0"))
    merge(two, "Merge pull request #3 from acme/topic")
    assert (two.collect().intents, unclear(two.collect())) == ([], {})


def test_what_a_merged_line_had_released_is_not_released_again(two: Repository) -> None:
    """The merge's own commits are those of a released version of one package, and new for the
    other.
    """
    begin_branch(two, "release/1.x")
    two.commit("fix: there", {"packages/core/a.py": "1", "packages/cli/a.py": "1"})
    two.commit("Bump", two.write("packages/core", "acme-core", "1.2.1"))
    two.git("tag", "acme-core-v1.2.1")
    two.commit("fix: after it", {"packages/core/b.py": "1"})
    two.git("checkout", "--quiet", "main")
    two.commit("feat: meanwhile", {"packages/core/c.py": "1"})
    merge(two, "Merge branch 'release/1.x'", "release/1.x")
    assert standing(two.collect(), "acme-core").released == "1.2.1"
    assert titles(two) == {
        "acme-core": {"feat: meanwhile", "fix: after it"},
        "acme-cli": {"fix: there"},
    }


def test_commits_of_a_merged_line_speak_although_its_last_one_released_it(two: Repository) -> None:
    begin_branch(two, "release/1.x")
    base = two.commit("fix: there", {"packages/core/a.py": "1"})
    two.commit(f"Release\n\nReleaseKit-Base: {base}", {"packages/core/CHANGELOG.md": "1"})
    two.git("checkout", "--quiet", "main")
    merge(two, "Merge branch 'release/1.x'", "release/1.x")
    assert titles(two) == {"acme-core": {"fix: there"}}
    assert unclear(two.collect()) == {}


def test_the_commit_of_a_release_says_nothing_once_its_branch_was_updated(two: Repository) -> None:
    """As the button "Update branch" of GitHub merges `main` into it."""
    base = two.commit("fix: decided", {"packages/core/a.py": "1"})
    begin_branch(two, "releasekit")
    two.commit(
        f"chore: release\n\nReleaseKit-Base: {base}",
        {**two.write("packages/core", "acme-core", "1.2.1"), "packages/core/CHANGELOG.md": "x"},
    )
    two.git("checkout", "--quiet", "main")
    two.commit("feat: late", {"packages/core/b.py": "1"})
    two.git("checkout", "--quiet", "releasekit")
    two.git(*AS_SOMEBODY, "merge", "--quiet", "--no-ff", "-m", "Merge main", "main")
    title = "chore: release acme-core 1.2.1"
    merge(two, f"Merge pull request #5 from acme/releasekit\n\n{title}", "releasekit")
    two.git("tag", "acme-core-v1.2.1")
    assert two.levels() == {"acme-core": [("feat: late", MINOR, True)]}


def test_a_clone_that_ends_before_the_base_of_a_decision_is_refused(
    two: Repository, tmp_path: Path
) -> None:
    base = two.git("rev-parse", "HEAD").strip()
    two.commit("feat: late", {"packages/core/a.py": "1"})
    files = {
        **two.write("packages/core", "acme-core", "1.2.1"),
        **two.write("packages/cli", "acme-cli", "0.4.2"),
    }
    two.commit(f"chore: release\n\nReleaseKit-Base: {base}", files)
    two.git("tag", "acme-core-v1.2.1")
    two.git("tag", "acme-cli-v0.4.2")
    with pytest.raises(PlanError) as caught:
        clone(two, tmp_path, depth=1).collect()
    assert caught.value.problem is Problem.SHALLOW_HISTORY
    assert clone(two, tmp_path, depth=3).collect().intents == two.collect().intents


def test_a_clone_that_cuts_a_merged_branch_off_is_refused(two: Repository, tmp_path: Path) -> None:
    """git shows where it was cut as a commit that adds all files."""
    begin_branch(two)
    for number in range(3):
        two.commit(f"feat: {number}", {f"packages/core/{number}.py": "1"})
    two.git("checkout", "--quiet", "main")
    two.git("tag", "--force", "acme-core-v1.2.0")
    merge(two, "Merge branch 'topic'")
    with pytest.raises(PlanError) as caught:
        clone(two, tmp_path, depth=2).collect()
    assert caught.value.problem is Problem.SHALLOW_HISTORY


def test_a_clone_that_reaches_back_to_the_tags_is_enough(two: Repository, tmp_path: Path) -> None:
    two.commit("fix: it", {"packages/core/a.py": "1"})
    assert clone(two, tmp_path, depth=2).collect().intents == two.collect().intents


def clone(two: Repository, tmp_path: Path, *, depth: int) -> Repository:
    root = tmp_path / f"shallow{depth}"
    git(tmp_path, "clone", "--quiet", f"--depth={depth}", f"file://{two.root}", root.name)
    found = Repository(root.resolve())
    for place, each in two.packages.items():
        found.write(place, each.id.name, each.version)
    return found


def test_names_of_files_do_not_move_what_is_read_of_others(two: Repository) -> None:
    """R51: a name with a line of its own stands before the others."""
    text = '---\n"acme-core": minor\n---\nText.\n'
    two.commit("chore: add", {".changeset/b.md": text, ".changeset/a\nx.md": text})
    two.commit("Bump", two.write("packages/core", "acme-core", "1.3.0"))
    two.git("tag", "acme-core-v1.3.0")
    two.commit("chore: more", {".changeset/c.md": text})
    added = {each.source.path: each.source.commit for each in two.collect().intents}
    assert added[".changeset/b.md"] == two.git("rev-parse", "HEAD~2").strip()
    assert added[".changeset/c.md"] == two.git("rev-parse", "HEAD").strip()


def test_a_directory_that_was_moved_counts_through_paths(two: Repository) -> None:
    two.commit("feat: in the old place", {"old/core/a.py": "1"})
    two.git("mv", "old/core/a.py", "packages/core/a.py")
    two.commit("refactor: move")
    options = VersionOptions(paths={"acme-core": ("old/core/**",)})
    assert {title for title, _, _ in two.levels(options)["acme-core"]} == {
        "feat: in the old place",
        "refactor: move",
    }


def test_a_workspace_below_the_top_reads_its_own_change_files(repository: Repository) -> None:
    repository.commit("feat: start", repository.write("work/a", "a", "1.0.0"))
    repository.git("tag", "a-v1.0.0")
    text = '---\n"a": minor\n---\nText.\n'
    repository.commit("feat!: used", {"work/.changeset/a.md": text, "work/a/a.py": "1"})
    repository.commit("fix: outside", {"a/a.py": "1", ".changeset/b.md": "no change file"})
    repository.workspace = "work"
    assert repository.levels() == {"a": [("a: Text.", MINOR, False)]}


def test_messages_too_long_for_one_process_are_read_by_several(two: Repository) -> None:
    for number in range(4):
        (two.root / "message").write_text(f"fix: number {number}\n\n" + "long line " * 500_000)
        (two.root / f"packages/core/{number}.py").write_text("1")
        two.git("add", "packages")
        two.git(*AS_SOMEBODY, "commit", "--quiet", "--file=message")
    assert [title for title, _, _ in two.levels()["acme-core"]] == [
        f"fix: number {number}" for number in reversed(range(4))
    ]


def test_a_merged_branch_that_was_merged_into_before_is_read_once(two: Repository) -> None:
    """Criss-cross: what came from the line with a merge into the branch is not the branch's."""
    begin_branch(two)
    two.commit("feat: one", {"packages/core/one.py": "1"})
    merge(two, "Merge branch 'topic'")
    two.commit("fix: on the line", {"packages/cli/a.py": "1"})
    two.git("checkout", "--quiet", "topic")
    two.git(*AS_SOMEBODY, "merge", "--quiet", "--no-ff", "-m", "Merge branch 'main'", "main")
    two.commit("fix: two", {"packages/core/two.py": "1"})
    merge(two, "Merge branch 'topic' again")
    assert two.levels() == {
        "acme-core": [("fix: two", PATCH, False), ("feat: one", MINOR, False)],
        "acme-cli": [("fix: on the line", PATCH, False)],
    }
    assert unclear(two.collect()) == {}
