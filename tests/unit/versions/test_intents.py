"""Real repositories, and what their history asks for: tags, commits, merges, reverts, files."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from releasekit.config.version_options import VersionOptions
from releasekit.decided import Level
from releasekit.errors import ConfigError, PlanError, told_of
from releasekit.fields import replace
from versions.repositories import Repository, guessed, standing, unclear
from workspaces import git

if TYPE_CHECKING:
    from pathlib import Path


PATCH, MINOR, MAJOR, NONE = Level.PATCH, Level.MINOR, Level.MAJOR, Level.NONE


def test_a_commit_asks_for_the_packages_whose_files_it_changes(two: Repository) -> None:
    two.commit("feat: read parquet (#41)", {"packages/core/a.py": "1", "README.md": "x"})
    two.commit("fix: exit 1", {"packages/cli/a.py": "1", "packages/core/b.py": "1"})
    two.commit("docs: typo", {"packages/cli/README.md": "1"})
    assert two.levels() == {
        "acme-core": [("fix: exit 1", PATCH, False), ("feat: read parquet (#41)", MINOR, False)],
        "acme-cli": [("docs: typo", NONE, False), ("fix: exit 1", PATCH, False)],
    }
    collected = two.collect()
    assert standing(collected, "acme-core").released == "1.2.0"
    (feature,) = (each.source for each in collected.intents if each.level is MINOR)
    assert (feature.text, feature.type, feature.pull_request) == ("read parquet", "feat", 41)
    assert feature.commit == two.git("rev-parse", "HEAD~2").strip()


def test_nothing_since_the_tags_is_nothing(two: Repository) -> None:
    assert two.collect().intents == []


@pytest.mark.parametrize("breaking", ["feat!: gone", "refactor: gone\n\nBREAKING CHANGE: gone"])
def test_what_breaks_is_major_whatever_its_type(two: Repository, breaking: str) -> None:
    two.commit(breaking, {"packages/core/a.py": "1"})
    assert [level for _, level, _ in two.levels()["acme-core"]] == [MAJOR]


@pytest.mark.parametrize(
    "path",
    [
        "packages/core/tests/test_a.py",
        "packages/core/scripts/deploy.py",
        ".github/workflows/release.yml",
        "elsewhere/a.py",
    ],
)
def test_what_users_do_not_get_asks_for_nothing(two: Repository, path: str) -> None:
    two.commit("fix: it", {path: "1"})
    assert two.collect().intents == []


def test_options_say_whose_files_count(two: Repository) -> None:
    two.commit(
        "fix: it",
        {"packages/core/gen/a.py": "1", "proto/a.proto": "1", "packages/cli/tests/data.py": "1"},
    )
    options = VersionOptions(
        ignore=("packages/*/gen/**", "!packages/cli/tests/data.py"),
        paths={"fake:acme-cli": ("proto/**",)},
    )
    assert set(two.levels(options)) == {"acme-cli"}
    assert set(two.levels()) == {"acme-core"}
    with pytest.raises(ConfigError, match="'acme-cor' is no package here, did you mean"):
        two.collect(VersionOptions(paths={"acme-cor": ("a",)}))


def test_the_deepest_directory_owns_a_file_also_that_of_a_private_package(
    repository: Repository,
) -> None:
    files = {
        **repository.write(".", "root", "1.0.0"),
        **repository.write("plugins/one", "one", "1.0.0"),
        **repository.write("plugins/one/tool", "tool", "0.0.0"),
    }
    repository.commit("feat: start", files)
    repository.git("tag", "v1.0.0")
    repository.commit("fix: a", {"plugins/one/tool/a.py": "1"})
    repository.commit("fix: b", {"plugins/one/b.py": "1"})
    repository.commit("fix: c", {"c.py": "1"})
    collected = repository.collect(private=["plugins/one/tool"])
    asked = {(each.package.name, each.source.text) for each in collected.intents}
    assert asked == {("one", "b"), ("root", "c")}


def merge(two: Repository, how: str) -> None:
    """A branch of a feature and a fix, into main."""
    two.git("checkout", "--quiet", "-b", "topic")
    two.commit("feat: one", {"packages/core/one.py": "1"})
    two.commit("fix: two", {"packages/cli/two.py": "1"})
    two.git("checkout", "--quiet", "main")
    two.commit("chore: meanwhile", {"packages/core/README.md": "1"})
    settings = ["-c", "user.name=R", "-c", "user.email=r@example.invalid"]
    if how == "merge":
        two.git(*settings, "merge", "--quiet", "--no-ff", "-m", "Merge branch 'topic'", "topic")
    elif how == "squash":
        two.git("merge", "--quiet", "--squash", "topic")
        two.commit("Topic (#7)\n\n* feat: one\n\n* fix: two\n")
    else:
        two.git("checkout", "--quiet", "topic")
        two.git(*settings, "rebase", "--quiet", "main")
        two.git("checkout", "--quiet", "main")
        two.git("merge", "--quiet", "--ff-only", "topic")


@pytest.mark.parametrize("how", ["merge", "rebase"])
def test_merged_or_rebased_the_commits_of_a_branch_speak(two: Repository, how: str) -> None:
    merge(two, how)
    assert {name: set(rows) for name, rows in two.levels().items()} == {
        "acme-core": {("chore: meanwhile", NONE, False), ("feat: one", MINOR, False)},
        "acme-cli": {("fix: two", PATCH, False)},
    }


def test_a_squash_lists_what_it_holds(two: Repository) -> None:
    """Whose lines they are is not known: each asks for all that it touches."""
    merge(two, "squash")
    levels = {name: {level for _, level, _ in rows} for name, rows in two.levels().items()}
    assert levels == {"acme-core": {NONE, PATCH, MINOR}, "acme-cli": {PATCH, MINOR}}


def test_the_title_of_a_merged_pull_request_is_final(two: Repository) -> None:
    two.git("checkout", "--quiet", "-b", "topic")
    two.commit("feat: one", {"packages/core/one.py": "1"})
    two.git("checkout", "--quiet", "main")
    message = "Merge pull request #9 from acme/topic\n\nfix: only this"
    settings = ["-c", "user.name=R", "-c", "user.email=r@example.invalid"]
    two.git(*settings, "merge", "--quiet", "--no-ff", "-m", message, "topic")
    assert two.levels() == {"acme-core": [("fix: only this", PATCH, False)]}
    assert two.collect().intents[0].source.pull_request == 9


def test_a_commit_that_says_nothing_is_unread(two: Repository) -> None:
    two.commit("Update stuff", {"packages/core/a.py": "1", "packages/cli/a.py": "1"})
    two.commit("runtime: faster", {"packages/core/b.py": "1"})
    two.commit("No package", {"README.md": "1"})
    collected = two.collect()
    assert collected.intents == []
    assert unclear(collected) == {
        "acme-core": ["runtime: faster", "Update stuff"],
        "acme-cli": ["Update stuff"],
    }


def test_types_of_the_configuration_speak_with_their_scopes(two: Repository) -> None:
    two.commit("build(deps): raise", {"packages/core/a.py": "1"})
    two.commit("runtime: faster", {"packages/core/b.py": "1"})
    options = VersionOptions(types={"build(deps)": PATCH, "runtime": MINOR})
    assert [level for _, level, _ in two.levels(options)["acme-core"]] == [MINOR, PATCH]


def revert(commit: str, subject: str) -> str:
    return f'Revert "{subject}"\n\nThis reverts commit {commit}.\n'


def test_reverts_cancel_what_was_not_released(two: Repository) -> None:
    feature = two.commit("feat: one", {"packages/core/one.py": "1"})
    taken_back = two.commit(revert(feature, "feat: one"), {"packages/core/one.py": None})
    assert two.collect().intents == []
    two.commit(revert(taken_back, "Revert"), {"packages/core/one.py": "1"})
    assert two.levels() == {"acme-core": [("feat: one", MINOR, False)]}


def test_the_revert_of_a_pull_request_cancels_it(two: Repository) -> None:
    two.commit("feat: one (#12)", {"packages/core/one.py": "1"})
    two.commit('Revert "feat: one" (#13)\n\nReverts acme/acme#12', {"packages/core/one.py": None})
    assert two.collect().intents == []


def test_to_take_back_what_was_released_is_a_patch(two: Repository) -> None:
    start = two.git("rev-parse", "HEAD").strip()
    two.commit(revert(start, "feat: start"), {"packages/core/x.py": "1"})
    assert two.levels() == {"acme-core": [('Revert "feat: start"', PATCH, False)]}
    two.commit(revert("0" * 40, "feat: unknown"), {"packages/cli/x.py": "1"})
    assert two.levels()["acme-cli"] == [('Revert "feat: unknown"', PATCH, False)]


FILE = '---\n"acme-core": minor\n---\nParquet files are read.\n'


def test_a_change_file_speaks_alone_for_the_commit_that_adds_it(two: Repository) -> None:
    commit = two.commit(
        "feat!: parquet (#41)",
        {".changeset/one.md": FILE, "packages/core/a.py": "1", "packages/cli/a.py": "1"},
    )
    assert two.levels() == {"acme-core": [("one: Parquet files are read.", MINOR, False)]}
    (intent,) = two.collect().intents
    assert (intent.source.commit, intent.source.pull_request) == (commit, 41)
    assert intent.source.path == ".changeset/one.md"
    assert two.levels(VersionOptions(changes="commits"))["acme-cli"][0][1] is MAJOR
    two.commit("fix: more", {"packages/cli/b.py": "1"})
    assert "acme-cli" not in two.levels(VersionOptions(changes="files"))


def test_a_file_that_is_there_counts_though_a_tagged_commit_has_it(two: Repository) -> None:
    """R68, as `changeset status` and `knope release` see it: deciding takes files away."""
    commit = two.commit(
        "feat: parquet (#7)", {".changeset/one.md": FILE, "packages/core/a.py": "1"}
    )
    two.commit("chore: release", two.write("packages/core", "acme-core", "1.3.0"))
    two.git("tag", "acme-core-v1.3.0")
    assert two.levels() == {"acme-core": [("one: Parquet files are read.", MINOR, False)]}
    (intent,) = two.collect(label="rc").intents
    assert (intent.source.commit, intent.source.pull_request, intent.fresh) == (commit, 7, True)
    two.commit("chore: release", {".changeset/one.md": None})
    assert two.levels() == {}


def test_a_file_speaks_in_place_of_a_commit(two: Repository) -> None:
    commit = two.commit("feat: one (#12)", {"packages/core/one.py": "1"})
    text = f'---\n"acme-core": none\n---\ncommit: {commit[:9]}\nNot yet.\n'
    two.commit("chore: reword", {".changeset/reword.md": text})
    assert [level for _, level, _ in two.levels()["acme-core"]] == [NONE]


def test_files_that_no_commit_has_count_and_links_do_not_lead_out(
    two: Repository, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text(FILE)
    (two.root / ".changeset").mkdir()
    (two.root / ".changeset/new.md").write_text(FILE)
    (two.root / ".changeset/README.md").write_text("Not one.")
    assert two.levels() == {"acme-core": [("new: Parquet files are read.", MINOR, False)]}
    (two.root / ".changeset/link.md").symlink_to(secret)
    with pytest.raises(PlanError, match=r"\.changeset/link\.md cannot be read"):
        two.collect()


def test_a_file_in_a_subdirectory_is_refused_by_name(two: Repository) -> None:
    """R68: changesets ends there as well."""
    files = {".changeset/templates/change.md": "# Not one\n", ".changeset/a/b/deep.md": FILE}
    two.commit("docs: words", files)
    with pytest.raises(PlanError, match=r"\.changeset/a/b/deep\.md lies in a subdirectory"):
        two.collect()


def test_all_files_that_cannot_be_used_are_told_at_once(two: Repository) -> None:
    two.commit(
        "fix: a",
        {
            ".changeset/a.md": FILE.replace("minor", "minr"),
            ".changeset/b.md": FILE.replace("minor", "big"),
        },
    )
    with pytest.raises(PlanError) as caught:
        two.collect()
    assert [str(each).partition(":")[0] for each in told_of(caught.value)] == [
        ".changeset/a.md",
        ".changeset/b.md",
    ]


@pytest.mark.parametrize("is_merged", [False, True])
def test_what_went_in_after_the_decision_came_late(two: Repository, *, is_merged: bool) -> None:
    """Decided at one commit, written by a squash or a merge with a trailer, and tagged behind
    another: suffering 5.
    """
    base = two.commit("fix: decided", {"packages/core/a.py": "1"})
    two.commit("feat: late", {"packages/core/b.py": "1"})
    if is_merged:
        two.git("checkout", "--quiet", "-b", "releasekit", base)
    two.commit(
        f"chore: release (#50)\n\nText.\nReleaseKit-Base: {base}\n",
        {**two.write("packages/core", "acme-core", "1.2.1"), "packages/core/CHANGELOG.md": "x"},
    )
    if is_merged:
        two.git("checkout", "--quiet", "main")
        settings = ["-c", "user.name=R", "-c", "user.email=r@example.invalid"]
        two.git(*settings, "merge", "--quiet", "--no-ff", "-m", "Merge", "releasekit")
    two.git("tag", "acme-core-v1.2.1")
    two.commit("fix: after", {"packages/core/c.py": "1"})
    assert two.levels() == {
        "acme-core": [("fix: after", PATCH, False), ("feat: late", MINOR, True)]
    }


@pytest.mark.parametrize("base", ["0" * 40, "HEAD~1"])
def test_a_trailer_counts_where_it_names_a_commit_before_it(two: Repository, base: str) -> None:
    """Somebody else's branch is none."""
    if base != "0" * 40:
        two.git("checkout", "--quiet", "--orphan", "other")
        base = two.commit("feat: another history")
        two.git("checkout", "--quiet", "main")
    two.commit("fix: decided", {"packages/core/a.py": "1"})
    two.commit(
        f"chore: release\n\nReleaseKit-Base: {base}",
        two.write("packages/core", "acme-core", "1.2.1"),
    )
    two.git("tag", "acme-core-v1.2.1")
    assert two.levels() == {}


def test_a_trailer_counts_on_the_commit_that_is_tagged(two: Repository) -> None:
    """As publishing tags the commit that a version begins with."""
    base = two.git("rev-parse", "HEAD").strip()
    two.commit("feat: late", {"packages/core/a.py": "1"})
    two.commit(
        f"chore: release\n\nReleaseKit-Base: {base}",
        two.write("packages/core", "acme-core", "1.2.1"),
    )
    two.commit("fix: more", {"packages/core/b.py": "1"})
    two.git("tag", "acme-core-v1.2.1")
    assert two.levels() == {}


def test_a_trailer_of_an_earlier_release_is_none_of_the_last_one(two: Repository) -> None:
    base = two.git("rev-parse", "HEAD").strip()
    two.commit("feat: late", {"packages/core/a.py": "1"})
    two.commit(
        f"chore: release\n\nReleaseKit-Base: {base}",
        two.write("packages/core", "acme-core", "1.2.1"),
    )
    two.git("tag", "acme-core-v1.2.1")
    two.commit("Bump by hand", two.write("packages/core", "acme-core", "1.3.0"))
    two.git("tag", "acme-core-v1.3.0")
    assert two.levels() == {}


def test_a_written_version_that_no_tag_has_is_pending(two: Repository) -> None:
    two.commit("feat: one", {"packages/core/a.py": "1"})
    two.commit("Bump", two.write("packages/core", "acme-core", "1.2.1"))
    collected = two.collect()
    found = standing(collected, "acme-core")
    assert (found.written, found.released) == ("1.2.1", "1.2.0")
    assert {each.level for each in collected.intents} == {MINOR}


def test_without_a_tag_the_registry_says_whether_it_was_released(repository: Repository) -> None:
    repository.commit("feat: start", repository.write("a", "a", "1.0.0"))
    repository.commit("feat: more", {"a/more.py": "1"})
    there = repository.collect(published=["a"])
    assert standing(there, "a").released == "1.0.0"
    assert [each.source.text for each in there.intents] == ["more"]
    assert guessed(there) == ["1.0.0"]
    new = repository.collect()
    assert standing(new, "a").released == ""
    assert [each.source.text for each in new.intents] == ["more", "start"]


def test_no_tag_is_missed_where_a_prerelease_has_one(repository: Repository) -> None:
    repository.commit("feat: start", repository.write("a", "a", "1.0.0-rc.1"))
    repository.git("tag", "a-v1.0.0-rc.1")
    collected = repository.collect(published=["a"])
    assert standing(collected, "a").released == ""
    assert standing(collected, "a").last == "1.0.0-rc.1"
    assert guessed(collected) == []


def test_what_is_out_as_a_prerelease_alone_counts_from_the_first_one(
    repository: Repository,
) -> None:
    """R61: without tags, a registry says whether the one that is written is out."""
    repository.commit("feat: start", repository.write("a", "a", "0.9.0"))
    repository.commit("feat: one", {"a/one": "1"})
    repository.commit("chore: first", repository.write("a", "a", "1.0.0-rc.0"))
    repository.commit("feat: two", {"a/two": "1"})
    file = {".changeset/a.md": '---\n"a": minor\n---\nThree.\n'}
    repository.commit("chore: second", repository.write("a", "a", "1.0.0-rc.1") | file)
    repository.commit("fix: four", {"a/four": "1"})
    collected = repository.collect(published=["a"], label="rc")
    told = {each.source.title: each.fresh for each in collected.intents if each.level}
    assert told == {"a: Three.": False, "feat: two": False, "fix: four": True}
    assert standing(collected, "a").last == "1.0.0-rc.1"
    assert guessed(collected) == ["1.0.0-rc.1"]
    assert standing(repository.collect(), "a").last == ""


def test_a_shared_tag_counts_for_those_that_had_its_version(repository: Repository) -> None:
    files = {**repository.write("a", "a", "1.0.0"), **repository.write("b", "b", "0.3.0")}
    repository.commit("feat: start", files)
    repository.git("tag", "v0.3.0")
    repository.git("tag", "v1.0.0")
    repository.commit("fix: it", {"a/x.py": "1", "b/x.py": "1"})
    collected = repository.collect()
    assert standing(collected, "a").released == "1.0.0"
    assert standing(collected, "b").released == "0.3.0"


@pytest.mark.parametrize(
    ("tag", "released"),
    [
        ("acme-core/v1.9.0", "1.9.0"),
        ("packages/core/1.9.0", "1.9.0"),
        ("releases/acme-core_1.9.0", "1.9.0"),
        ("acme-core-2-v1.9.0", "1.2.0"),
        ("acme-core-v1.9.0rc1", "1.2.0"),
        ("acme-core-vnext", "1.2.0"),
        ("acme-cor-v1.9.0", "1.2.0"),
    ],
)
def test_tags_are_those_of_a_package_by_their_form(
    two: Repository, tag: str, released: str
) -> None:
    two.git("tag", tag)
    templates = {two.packages["packages/core"].id: "releases/acme-core_\0"}
    assert standing(two.collect(templates=templates), "acme-core").released == released


def test_a_tag_elsewhere_is_taken_and_not_released(two: Repository) -> None:
    two.git("checkout", "--quiet", "-b", "other")
    commit = two.commit("feat: other", {"packages/core/o.py": "1"})
    two.commit("feat: more", {"packages/core/p.py": "1"})
    two.git("tag", "acme-core-v1.5.0")
    two.git("checkout", "--quiet", "main")
    found = standing(two.collect(), "acme-core")
    assert found.released == "1.2.0"
    assert set(found.taken) == {"1.2.0", "1.5.0"}
    assert found.taken["1.5.0"] != commit


def test_a_tag_on_top_of_a_commit_of_ours_counts_as_its(repository: Repository) -> None:
    """As publishing makes them for Go modules."""
    repository.commit("feat: start", repository.write("sdk", "example.com/sdk", "v1.2.0"))
    place = repository.packages["sdk"]
    repository.packages["sdk"] = replace(place, id=replace(place.id, ecosystem="go"))
    repository.git("checkout", "--quiet", "--detach")
    repository.commit("Complete go.sum", {"sdk/go.sum": "x"})
    repository.git("tag", "sdk/v1.2.0")
    repository.git("checkout", "--quiet", "main")
    repository.commit("fix: it", {"sdk/a.go": "1"})
    collected = repository.collect()
    assert standing(collected, "example.com/sdk").released == "1.2.0"
    assert [each.source.text for each in collected.intents] == ["it"]


def test_a_tag_of_a_branch_that_was_merged_counts_from_where_it_left(two: Repository) -> None:
    two.git("checkout", "--quiet", "-b", "release/1.x")
    two.commit("Bump", two.write("packages/core", "acme-core", "1.2.1"))
    two.git("tag", "acme-core-v1.2.1")
    two.git("checkout", "--quiet", "main")
    two.commit("feat: on main", {"packages/core/m.py": "1"})
    settings = ["-c", "user.name=R", "-c", "user.email=r@example.invalid"]
    two.git(*settings, "merge", "--quiet", "--no-ff", "-m", "chore: back", "release/1.x")
    assert standing(two.collect(), "acme-core").released == "1.2.1"
    assert ("feat: on main", MINOR, False) in two.levels()["acme-core"]


def test_a_shallow_clone_without_its_tags_is_refused(two: Repository, tmp_path: Path) -> None:
    two.commit("fix: it", {"packages/core/a.py": "1"})
    url = f"file://{two.root}"
    git(tmp_path, "clone", "--quiet", "--depth=1", url, "shallow")
    clone = Repository((tmp_path / "shallow").resolve())
    clone.write("packages/core", "acme-core", "1.2.0")
    with pytest.raises(PlanError, match="the clone is shallow") as caught:
        clone.collect()
    assert "fetch-depth: 0" in caught.value.hint


def test_messages_and_paths_may_hold_anything(two: Repository) -> None:
    """R51."""
    name = 'packages/core/"quoted"\nline\x01.py'
    two.commit("fix: \x1b[31mred\x01 \u202e@everyone", {name: "1"})
    message = b"feat: latin \xe9\n\ncommit " + b"a" * 40 + b"\nM\n"
    (two.root / "packages/core/b.py").write_text("1")
    two.git("add", "--all")
    subprocess.run(
        [
            *("git", "-c", "user.name=R", "-c", "user.email=r@example.invalid"),
            *("-c", "i18n.commitEncoding=latin-1", "commit", "--quiet", "--file=-"),
        ],
        cwd=two.root,
        input=message,
        check=True,
    )
    levels = [level for _, level, _ in two.levels()["acme-core"]]
    assert levels == [MINOR, PATCH]


def test_few_processes_read_long_histories_of_many_packages(repository: Repository) -> None:
    """As many as for a short history of one package; twice the commits, twice the work."""
    packages = 200
    for number in range(packages):
        repository.write(f"p/{number}", f"p{number}", "1.0.0")
    counts = []
    for commits in (50, 400):
        stream = ["reset refs/heads/main\n"]
        files = "".join(
            f'M 100644 inline p/{n}/m.json\ndata <<E\n{{"name": "p{n}", "version": "1.0.0"}}\nE\n'
            for n in range(packages)
        )
        for number in range(commits):
            who = f"R <r@example.invalid> {1_700_000_000 + number} +0000"
            changed = f"M 100644 inline p/{number % packages}/a.py\ndata 3\n{number:03}\n"
            body = files if number == 0 else changed
            subject = f"fix: number {number}"
            stream.append(
                f"commit refs/heads/main\nmark :{number + 1}\ncommitter {who}\n"
                f"data {len(subject)}\n{subject}\n{body}"
            )
        stream += [f"reset refs/tags/p{n}-v1.0.0\nfrom :1\n\n" for n in range(packages)]
        subprocess.run(
            ["git", "fast-import", "--quiet", "--force"],
            cwd=repository.root,
            input="".join(stream).encode(),
            check=True,
        )
        count: Counter[str] = Counter()
        collected = repository.collect(count=count)
        assert len(collected.intents) == commits - 1
        counts.append(sum(count.values()))
    assert counts[0] == counts[1] <= 10
