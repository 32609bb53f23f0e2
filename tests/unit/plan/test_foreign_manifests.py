from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.plan.foreign_manifests import describe_foreign

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
    said = describe_foreign(tmp_path)
    assert said.startswith(f"ReleaseKit does not read {file} ({tool}); see " if tool else "")
    assert bool(said) is bool(tool)
