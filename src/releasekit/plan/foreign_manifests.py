"""What other tools publish from a root: a plan says only that their manifests are there."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from releasekit.host import files
from releasekit.problems import DOCS
from releasekit.report.text import few
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target

_FOREIGN_HELP: Final = f"{DOCS}/limits.md#other-tools"
# What other tools publish by, in a root: a name with at most one `*`, the tool, and what tells a
# package from mere tooling, where the file shows that. https://docs.gradle.org/current/userguide/,
# https://getcomposer.org/doc/04-schema.md#name, https://docs.deno.com/runtime/fundamentals/workspaces/,
# https://dart.dev/tools/pub/pubspec#publish_to
_FOREIGN_MANIFESTS: Final = (
    ("settings.gradle*", "Gradle", ""),
    ("build.gradle*", "Gradle", ""),
    ("build.sbt", "sbt", ""),
    ("build.mill", "Mill", ""),
    ("build.mill.*", "Mill", ""),
    ("build.sc", "Mill", ""),
    ("project.clj", "Leiningen", ""),
    ("jsr.json", "JSR", ""),
    ("deno.json*", "Deno", r'"name"\s*:\s*"@[^"/]+/|"workspace"\s*:'),
    ("*.gemspec", "RubyGems", ""),
    ("composer.json", "Composer", r'"name"\s*:\s*"[^"/]+/'),
    ("*.sln", ".NET", ""),
    ("*.slnx", ".NET", ""),
    ("*.csproj", ".NET", ""),
    ("*.fsproj", ".NET", ""),
    ("*.vbproj", ".NET", ""),
    ("Package.swift", "Swift", ""),
    ("*.podspec", "CocoaPods", ""),
    ("pubspec.yaml", "Dart", r"(?ms)\A(?!.*^publish_to:\s*['\"]?none\b)"),
    ("mix.exs", "Mix", ""),
    ("rebar.config", "rebar3", ""),
    ("gleam.toml", "Gleam", ""),
    ("*.cabal", "Cabal", ""),
    ("*.opam", "opam", ""),
    ("dune-project", "Dune", ""),
    ("Project.toml", "Julia", r"(?m)^uuid\s*="),
    ("DESCRIPTION", "R", r"(?m)^Package:"),
    ("*.rockspec", "LuaRocks", ""),
    ("*.nimble", "Nimble", ""),
    ("shard.yml", "Shards", ""),
    ("dub.json", "Dub", ""),
    ("dub.sdl", "Dub", ""),
    ("build.zig.zon", "Zig", ""),
    ("Chart.yaml", "Helm", ""),
)
_MAX_HEAD_BYTES: Final = 256 * 1024
# How these publish into a directory in Maven's layout: what the build file takes, the command, and
# the directory. https://docs.gradle.org/current/userguide/publishing_maven.html,
# https://www.scala-sbt.org/1.x/docs/Publishing.html,
# https://mill-build.org/mill/javalib/publishing.html
_INTO_DIRECTORIES: Final = {
    "Gradle": (
        "apply `maven-publish` with a publication",
        'gradle publishToMavenLocal "-Dmaven.repo.local=$PWD/build/repo"',
        "build/repo",
    ),
    "sbt": (
        'write `ThisBuild / publishTo := Some(MavenCache("repo", file("target/repo")))`',
        "sbt +publish",
        "target/repo",
    ),
    "Mill": ("extend `PublishModule`", "mill __.publishM2Local --m2RepoPath out/repo", "out/repo"),
}


def describe_foreign(root: Path, targets: Mapping[str, Target]) -> str:
    """What publishes packages from this very directory and is not read here; empty where nothing
    does, or where one of the targets takes what is built by it.
    """
    named = [f"{visible(name)} ({tool})" for tool, name in _find_foreign(root, targets).items()]
    return f"ReleaseKit does not read {few(named)}; see {_FOREIGN_HELP}" if named else ""


def suggest_directories(root: Path, targets: Mapping[str, Target]) -> str:
    """What publishes the packages of such tools all the same, or nothing."""
    told, places = "", []
    for tool in filter(_INTO_DIRECTORIES.get, _find_foreign(root, targets)):
        change, command, place = _INTO_DIRECTORIES[tool]
        told += f"To publish what {tool} builds, {change} in its build file, and run `{command}` "
        told += "before ReleaseKit. "
        places.append(place)
    key = f"maven.directories = {json.dumps(places)}"
    return told and f"{told}Write `{key}` into releasekit.toml, above all tables."


def list_publishing(root: Path) -> Iterator[str]:
    """The commands by which its tools publish into directories; of a wrapper that lies there."""
    for tool in filter(_INTO_DIRECTORIES.get, _find_foreign(root, {})):
        program, _, words = _INTO_DIRECTORIES[tool][1].partition(" ")
        near = (each for each in (f"{program}w", program) if files.is_file(root / each))
        yield f"{next((f'./{each}' for each in near), program)} {words}"


def _find_foreign(root: Path, targets: Mapping[str, Target]) -> Mapping[str, str]:
    """The first file of each tool."""
    is_taken = any(each.versioning.describe_left_out() for each in targets.values())
    try:
        names = sorted(os.listdir(root))  # noqa: PTH208 (as many names as there are)
    except OSError:
        return {}
    found: dict[str, str] = {}
    for pattern, tool, wanted in _FOREIGN_MANIFESTS:
        if is_taken and tool in _INTO_DIRECTORIES:
            continue
        head, star, tail = pattern.partition("*")
        for name in names:
            is_meant = name.startswith(head) and name.endswith(tail) if star else name == pattern
            if tool in found or not is_meant or not files.is_file(root / name):
                continue
            text = b""
            if wanted:
                with suppress(OSError):
                    text = files.read_head(root / name, _MAX_HEAD_BYTES)
            if re.search(wanted.encode(), text):
                found[tool] = name
    return found
