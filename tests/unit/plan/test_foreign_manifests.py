from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fakes
from releasekit.ecosystems.interface import Target, Versioning
from releasekit.plan.foreign_manifests import describe_foreign, suggest_directories

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("file", "text", "tool"),
    [
        ("build.gradle.kts", "", "Gradle"),
        ("settings.gradle", "", "Gradle"),
        ("build.sbt", "", "sbt"),
        ("build.mill", "", "Mill"),
        ("build.mill.scala", "", "Mill"),
        ("jsr.json", "{}", "JSR"),
        ("deno.jsonc", '{"name": "@acme/a", // why\n"version": "1.0.0"}', "Deno"),
        ("deno.json", '{"workspace": ["./a"]}', "Deno"),
        ("deno.json", '{"tasks": {"name": "deno run"}}', ""),
        ("composer.json", '{"name": "acme/a"}', "Composer"),
        ("composer.json", '{"authors": [{"name": "A"}], "require-dev": {}}', ""),
        ("a.gemspec", "", "RubyGems"),
        ("Gemfile", "", ""),
        ("pubspec.yaml", "name: a\n", "Dart"),
        ("pubspec.yaml", "name: a\npublish_to: 'none'\n", ""),
        ("Project.toml", '[deps]\nA = "1"\n', ""),
        ("mix.exs", "", "Mix"),
    ],
)
def test_a_manifest_of_another_tool_is_named(
    tmp_path: Path, file: str, text: str, tool: str
) -> None:
    """R66"""
    (tmp_path / file).write_text(text)
    said = describe_foreign(tmp_path, {})
    assert said.startswith(f"ReleaseKit does not read {file} ({tool}); see " if tool else "")
    assert bool(said) is bool(tool)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("settings.gradle.kts", 'gradle publishToMavenLocal "-Dmaven.repo.local=$PWD/build/repo"'),
        ("build.sbt", 'ThisBuild / publishTo := Some(MavenCache("repo", file("target/repo")))'),
        ("build.mill", "mill __.publishM2Local --m2RepoPath out/repo"),
        ("mix.exs", ""),
    ],
)
def test_a_tool_that_can_publish_into_a_directory_comes_with_the_lines_for_that(
    tmp_path: Path, file: str, words: str
) -> None:
    """R66: once a directory is named, nothing of it is left to say."""
    (tmp_path / file).touch()
    said = suggest_directories(tmp_path, {})
    assert f"`{words}`" in said or not words
    assert ('`maven.directories = ["' in said) is bool(words)

    class Elsewhere(Versioning):
        def describe_left_out(self) -> str:
            return "what other tools publish gets its versions from them"

    target = Target(fakes.FakeWorkspace(), fakes.FakeRegistry())
    target.versioning = Elsewhere()
    assert suggest_directories(tmp_path, {"maven": target}) == ""
    assert bool(describe_foreign(tmp_path, {"maven": target})) is not bool(words)


def test_each_tool_comes_with_its_lines_and_one_line_names_all_directories(tmp_path: Path) -> None:
    """R66: a key of releasekit.toml stands there once."""
    for name in ("build.gradle", "build.sbt", "mix.exs"):
        (tmp_path / name).touch()
    assert suggest_directories(tmp_path, {}) == (
        "To publish what Gradle builds, apply `maven-publish` with a publication in its build "
        'file, and run `gradle publishToMavenLocal "-Dmaven.repo.local=$PWD/build/repo"` '
        "before ReleaseKit. To publish what sbt builds, write `ThisBuild / publishTo := "
        'Some(MavenCache("repo", file("target/repo")))` in its build file, and run `sbt '
        "+publish` before ReleaseKit. Write `maven.directories = "
        '["build/repo", "target/repo"]` into releasekit.toml, above all tables.'
    )
