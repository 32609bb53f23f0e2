"""Which tags of a real repository tell what was released of a package."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from releasekit.decided import Level
from releasekit.fields import replace
from versions.repositories import Repository, similar_tags, standing

if TYPE_CHECKING:
    from releasekit.model import Package

PATCH = Level.PATCH


def test_the_tag_of_one_package_is_that_of_all_whose_version_stands_in_one_place(
    repository: Repository,
) -> None:
    """As maven-release-plugin tags a reactor by the name of its parent."""
    for version in ("1.0.0", "1.1.0"):
        files: dict[str, str] = {}
        for place, name in ((".", "kit-parent"), ("core", "kit-core")):
            files |= repository.write(place, name, version)
        repository.commit("feat!: start", files | {"core/core.py": version})
        repository.git("tag", f"kit-parent-{version}")
    files = repository.write("late", "kit-late", "1.1.0")
    repository.commit("fix: one", files | {"core/core.py": "1"})
    together = [("kit-parent", "kit-core", "kit-late")]
    collected = repository.collect(together=together)
    released = {each.package.name: each.released for each in collected.standings}
    assert released == {"kit-parent": "1.1.0", "kit-core": "1.1.0", "kit-late": ""}
    asked = [each.source.title for each in collected.intents if each.package.name == "kit-core"]
    assert asked == ["fix: one"]
    apart = repository.collect()
    assert standing(apart, "kit-core").released == ""


def test_a_tag_may_have_the_name_of_the_directory_alone(repository: Repository) -> None:
    """As the monorepo example of python-semantic-release calls its tags."""
    repository.commit("feat: start", repository.write("packages/core", "acme-core", "1.1.0"))
    repository.git("tag", "core-v1.1.0")
    repository.git("tag", "core-v3.0.0")
    assert standing(repository.collect(), "acme-core").released == "1.1.0"


def test_the_higher_of_a_tag_of_its_own_and_a_shared_one_was_released(two: Repository) -> None:
    """As where packages went over to one version for all."""
    two.commit("Bump", two.write("packages/core", "acme-core", "2.0.0"))
    two.git("tag", "v2.0.0")
    collected = two.collect()
    assert standing(collected, "acme-core").released == "2.0.0"
    assert standing(collected, "acme-cli").released == "0.4.1"


def test_a_shared_tag_of_before_a_package_began_again_lower_was_not_its_last(
    two: Repository,
) -> None:
    """As where one version for all gives way to one of each, and one begins again at 0.1.0."""
    two.commit("Bump", two.write("packages/core", "acme-core", "2.0.0"))
    two.git("tag", "v2.0.0")
    two.commit("Begin again", two.write("packages/core", "acme-core", "0.1.0"))
    two.git("tag", "acme-core-v0.1.0")
    two.git("tag", "--delete", "acme-core-v1.2.0")
    assert standing(two.collect(), "acme-core").released == "0.1.0"


def test_a_shared_tag_counts_where_the_manifest_has_what_stands_for_a_version(
    repository: Repository,
) -> None:
    """As semantic-release leaves it."""
    repository.commit("feat: start", repository.write("a", "acme-a", "0.0.0-development"))
    repository.git("tag", "v1.2.3")
    repository.commit("feat: more", {"a/a.py": "1"})
    assert standing(repository.collect(), "acme-a").released == "1.2.3"


def test_a_shared_tag_is_none_of_what_stands_lower_where_another_package_was(
    repository: Repository,
) -> None:
    """As where a package moves out of the root, and a workspace that begins at 0.1.0 takes over."""
    repository.commit("feat: start", repository.write(".", "acme", "2.11.1"))
    repository.git("tag", "v2.11.1")
    moved = repository.write("packages/acme", "acme", "2.11.1")
    repository.commit("Move", moved | repository.write(".", "acme-dev", "0.1.0"))
    assert standing(repository.collect(), "acme-dev").released == ""


def test_a_tag_that_two_packages_of_one_directory_may_mean_is_compared_with_them(
    repository: Repository,
) -> None:
    files = repository.write("measure", "measure", "0.5.0")
    crate = repository.packages["measure"]
    beside = replace(
        crate,
        id=replace(crate.id, ecosystem="pypi"),
        version="2.0.0",
        manifest=crate.directory / "p.json",
    )
    repository.packages["beside"] = beside
    repository.commit(
        "feat: start", {**files, "measure/p.json": '{"name": "measure", "version": "2.0.0"}'}
    )
    repository.git("tag", "measure-v0.5.0")
    repository.git("tag", "measure-v2.0.0")
    released = {str(each.package): each.released for each in repository.collect().standings}
    assert released == {str(crate.id): "0.5.0", "pypi:measure": "2.0.0"}


def test_a_version_is_the_same_however_many_numbers_it_has(repository: Repository) -> None:
    files = repository.write("a", "a", "1.2")
    as_python(repository, "a")
    repository.commit("feat: start", files)
    repository.git("tag", "v1.2.0")
    assert standing(repository.collect(), "a").released == "1.2.0"


@pytest.mark.parametrize(
    ("ecosystem", "name", "tag"),
    [
        ("maven", "dev.acme:lib", "dev.acme.lib-v1.2.0"),  # release-please
        ("maven", "dev.acme:lib", "dev.acme.lib-1.2.0"),  # include-v-in-tag: false
        ("maven", "dev.acme:lib", "dev.acme-lib-1.2.0"),
        ("maven", "dev.acme:lib", "dev.acme/lib/v1.2.0"),
        ("maven", "dev.acme:lib", "lib-1.2.0"),  # maven-release-plugin
        ("npm", "@acme/core", "@acme/core@1.2.0"),  # changesets, lerna
        ("npm", "@acme/core", "@acme/core-v1.2.0"),  # semantic-release-monorepo
        ("npm", "@acme/core", "core-v1.2.0"),  # release-please
        ("npm", "@acme/core", "core@v1.2.0"),
        ("npm", "@acme/core", "core.v1.2.0"),
        ("npm", "@acme/core", "acme-core@1.2.0"),  # nx, after a project
        ("npm", "@acme/core", "acme/core/v1.2.0"),
        ("cargo", "acme-core", "acme-core-v1.2.0"),  # release-plz, cargo-release
        ("cargo", "acme-core", "acme-core/v1.2.0"),  # knope
        ("cargo", "acme-core", "acme_core-v1.2.0"),
        ("pypi", "acme-core", "acme_core-v1.2.0"),  # python-semantic-release
        ("pypi", "acme-core", "acme.core-1.2.0"),
        ("go", "example.com/acme/x", "x/v1.2.0"),
    ],
)
def test_tags_of_other_tools_are_read(
    repository: Repository, ecosystem: str, name: str, tag: str
) -> None:
    """R66, R68: whatever may mean another package is compared with the manifest."""
    for place, other in (("x", name), ("y", f"{name}-more")):
        repository.commit("feat: start", repository.write(place, other, "1.2.0"))
        found = repository.packages[place]
        identity = replace(found.id, ecosystem=ecosystem)
        version = f"v{found.version}" if ecosystem == "go" else found.version
        repository.packages[place] = replace(found, id=identity, version=version)
    repository.git("tag", tag)
    collected = repository.collect()
    assert standing(collected, name).released == "1.2.0"
    assert standing(collected, f"{name}-more").released == ""
    assert not similar_tags(collected)


def test_a_name_of_one_package_stays_that_where_another_one_is_like_it(
    repository: Repository,
) -> None:
    """R68: `acme-core` is no tag of @acme/core where a package is called so."""
    for place, name, version in (("x", "@acme/core", "1.2.0"), ("y", "acme-core", "2.0.0")):
        repository.commit("feat: start", repository.write(place, name, version))
    repository.git("tag", "acme-core-v2.0.0")
    repository.git("tag", "acme-core-v2.1.0")
    collected = repository.collect()
    assert standing(collected, "acme-core").released == "2.1.0"
    assert standing(collected, "@acme/core").released == ""


def test_tags_of_a_form_that_is_not_read_are_said(two: Repository) -> None:
    """R68: a package that seems new is told with what may be its tag, not taken for new."""
    two.commit("feat: more", two.write("packages/web", "acme-web", "0.3.0"))
    for tag in ("release-acme-web-0.3.0", "docker-1.0", "begin"):
        two.git("tag", tag)
    told = similar_tags(two.collect())
    assert [(each.name, tags) for each, tags in told.items()] == [
        ("acme-web", ["release-acme-web-0.3.0"])
    ]
    two.git("tag", "-d", "release-acme-web-0.3.0")
    told = similar_tags(two.collect())
    assert list(told.values()) == [["docker-1.0"]]
    two.git("tag", "acme-web-v0.3.0")
    assert not similar_tags(two.collect())


def test_tags_of_what_gets_no_version_are_not_taken_for_those_of_another(two: Repository) -> None:
    """R68: as those of Go modules whose versions nothing tells, beside a new package of Maven."""
    two.commit("feat: more", two.write("packages/web", "acme-web", "0.3.0"))
    two.write("tools/lint", "acme-lint", "2.0.0")
    two.git("tag", "acme-lint-v2.0.0")
    assert not similar_tags(two.collect(private=["tools/lint"]))


def as_python(repository: Repository, place: str) -> Package:
    found = repository.packages[place]
    repository.packages[place] = replace(found, id=replace(found.id, ecosystem="pypi"))
    return repository.packages[place]


def test_tags_on_merged_branches_take_no_process_each(two: Repository) -> None:
    counts = []
    for number in range(12):
        two.git("checkout", "--quiet", "-b", f"release/{number}")
        two.commit("Bump", two.write("packages/core", "acme-core", f"1.3.{number}"))
        two.git("tag", f"acme-core-v1.3.{number}")
        two.git("checkout", "--quiet", "main")
        two.git(
            *("-c", "user.name=R", "-c", "user.email=r@example.invalid"),
            *("merge", "--quiet", "--no-ff", "-m", "chore: back", f"release/{number}"),
        )
        if number in {1, 11}:
            count: Counter[str] = Counter()
            two.collect(count=count)
            counts.append(sum(count.values()))
    assert counts[0] == counts[1]


def test_shared_tags_that_nobody_had_take_few_processes(two: Repository) -> None:
    two.write("packages/new", "acme-new", "1.0.0")
    counts = []
    for number in range(20):
        two.git("tag", f"v3.{number}.0")
        if number in {1, 19}:
            count: Counter[str] = Counter()
            two.collect(count=count)
            counts.append(sum(count.values()))
    assert counts[1] <= counts[0] + 6


def test_a_trailer_of_anybody_reaches_back_to_the_release_before_at_most(two: Repository) -> None:
    root = two.git("rev-list", "--max-parents=0", "HEAD").strip()
    two.commit("feat: one", {"packages/core/a.py": "1"})
    two.commit("Bump", two.write("packages/core", "acme-core", "1.3.0"))
    two.git("tag", "acme-core-v1.3.0")
    two.commit("fix: two", {"packages/core/b.py": "1"})
    two.commit(f"Bump\n\nReleaseKit-Base: {root}", two.write("packages/core", "acme-core", "1.3.1"))
    two.git("tag", "acme-core-v1.3.1")
    assert two.levels() == {"acme-core": [("fix: two", PATCH, True)]}


def test_a_tag_that_leads_to_no_commit_is_none(two: Repository) -> None:
    two.git("tag", "acme-core-v3.0.0", "HEAD:packages/core/m.json")
    two.git("tag", "v3.0.0", "HEAD^{tree}")
    two.git("tag", "--annotate", "--message", "core", "acme-core-v1.4.0", "HEAD")
    assert standing(two.collect(), "acme-core").released == "1.4.0"


def test_the_first_commit_of_another_line_is_none_of_this_one(two: Repository) -> None:
    """As on a branch for fixes that begins right before the next release."""
    two.git("checkout", "--quiet", "-b", "release/1.x")
    two.git("checkout", "--quiet", "main")
    commit = two.commit("Bump", two.write("packages/core", "acme-core", "1.5.0"))
    two.git("tag", "acme-core-v1.5.0")
    two.git("checkout", "--quiet", "release/1.x")
    two.commit("fix: here", {"packages/core/a.py": "1"})
    found = standing(two.collect(), "acme-core")
    assert found.released == "1.2.0"
    assert found.taken["1.5.0"] == commit


def test_what_was_shared_and_then_skipped_is_free_for_the_next_version(
    repository: Repository,
) -> None:
    """The tag of a version that only another package had takes it from nobody else."""
    files = {**repository.write("a", "a", "1.0.0"), **repository.write("b", "b", "1.0.0")}
    repository.commit("feat: start", files)
    repository.git("tag", "v1.0.0")
    repository.commit("feat: b", repository.write("b", "b", "1.1.0"))
    repository.git("tag", "v1.1.0")
    repository.git("checkout", "--quiet", "-b", "next")
    repository.commit("feat: both")
    repository.git("tag", "v1.2.0")
    repository.git("checkout", "--quiet", "main")
    found = standing(repository.collect(), "a")
    assert (found.released, set(found.taken)) == ("1.0.0", {"1.2.0"})


@pytest.mark.parametrize("published", [False, True])
def test_a_version_that_was_published_and_not_tagged_is_released(
    two: Repository, published: bool
) -> None:
    """Else a change would go into a version that nobody publishes again."""
    two.commit("fix: one", {"packages/core/one": "1"})
    two.commit("chore: release", two.write("packages/core", "acme-core", "1.2.1"))
    two.commit("fix: two", {"packages/core/two": "2"})
    collected = two.collect(published=["acme-core"] if published else [])
    asked = [each.source.title for each in collected.intents if each.level]
    assert asked == (["fix: two"] if published else ["fix: two", "fix: one"])
    assert standing(collected, "acme-core").released == ("1.2.1" if published else "1.2.0")


def test_a_version_that_is_written_and_not_committed_asks_no_registry(two: Repository) -> None:
    for name, text in two.write("packages/core", "acme-core", "1.2.1").items():
        (two.root / name).write_text(text)
    assert standing(two.collect(published=["acme-core"]), "acme-core").released == "1.2.0"
