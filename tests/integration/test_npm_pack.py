"""Odd packages, each packed to the very bytes that the real `npm pack` makes of it."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import subprocess
import tarfile
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import fakes
from integration.tools import require_tool
from javascript import write
from processes import PATIENCE_S
from releasekit.ecosystems.npm import NpmOptions
from releasekit.ecosystems.npm.composition import NpmComposition
from releasekit.ecosystems.npm.discover import Found
from releasekit.ecosystems.npm.tarball import make_filename
from releasekit.ecosystems.npm.target import Npm
from releasekit.ecosystems.shared.packed import is_irrelevant
from releasekit.errors import BuildFailed
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BIG = random.Random(7)
NOISE = "".join(BIG.choices("abcdefghij \n", k=700_000))
ENTRIES = ("cli", "main", "module", "other")
SCRIPT = "#!/usr/bin/env node\n"
FILES = {"index.js": "1\n", "lib/a.js": "2\n", "lib/b.ts": "3\n", "test/t.js": "4\n"}
SORTED = [
    "B.js",
    "a.js",
    "A.JS",
    "b.JS",
    "é.js",
    "z",
    "10.js",
    "9.js",
    "x/z.js",
    "Z/a.js",
    "a.b.js",
    "README",
    "_x.js",
]
LONG = "/".join(f"{letter * 60}" for letter in "abcde")

# Name → what its package.json says besides, and its files.
CORPUS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, object]]] = {
    "plain": ({}, FILES),
    "@scope/name": ({"main": "lib/a.js"}, FILES),
    "files-globs": (
        {"files": ["lib/**/*.js", "*.md", "!lib/skip.js"]},
        {**FILES, "lib/skip.js": "", "x.md": "", "lib/deep/c.js": ""},
    ),
    "files-directory": ({"files": ["lib/", "./test", "/index.js", "gone", "nope/*"]}, FILES),
    "files-negated-first": ({"files": ["!lib/a.js", "lib"]}, FILES),
    "files-star": ({"files": ["*", "!test"]}, FILES),
    "files-empty": ({"files": []}, FILES),
    "files-in-directory": (
        {"files": ["lib/*"]},
        {**FILES, "lib/deep/.npmignore": "x", "lib/deep/x": "", "lib/deep/y": ""},
    ),
    "npmignore-nested": (
        {},
        {
            **FILES,
            ".npmignore": "test\n*.ts\n",
            "lib/.npmignore": "a.js\n!b.ts\n",
            ".gitignore": "index.js\n",
        },
    ),
    "gitignore-nested": (
        {},
        {**FILES, ".gitignore": "lib/*.ts\n", "test/.gitignore": "*\n!keep\n", "test/keep": ""},
    ),
    "ignored-with-crlf": ({}, {**FILES, ".npmignore": "test\r\nlib/b.ts\r\n# no\r\n"}),
    "ignored-but-main": (
        {"main": "dist/main.js", "browser": "dist/browser.js"},
        {
            **FILES,
            ".gitignore": "dist\n",
            "dist/main.js": "",
            "dist/browser.js": "",
            "dist/more.js": "",
        },
    ),
    "main-outside-files": (
        {"main": "./other/entry", "files": ["lib"]},
        {**FILES, "other/entry.js": "", "other/entry": ""},
    ),
    "browser-table": ({"browser": {"./lib/a.js": "./lib/b.ts"}, "files": ["test"]}, FILES),
    "bin-text": ({"bin": "./cli.js"}, {**FILES, "cli.js": SCRIPT}),
    "bin-table": (
        {"bin": {"one": "bin/one.js", "two": "./bin/two.js", "bad": 7}, "files": ["lib"]},
        {**FILES, "bin/one.js": SCRIPT, "bin/two.js": SCRIPT, "bin/three.js": SCRIPT},
    ),
    "bin-directory": (
        {"directories": {"bin": "commands"}},
        {"commands/x": SCRIPT, "commands/y": SCRIPT},
    ),
    "bin-executable": ({}, {"run.sh": "#!/bin/sh\n", "not.sh": "#!/bin/sh\n"}),
    "readmes": (
        {"files": ["lib"]},
        {
            "readme": "",
            "ReadMe.txt": "",
            "README.md~": "",
            "LICENCE": "",
            "LICENSE.MIT": "",
            "COPYING.x": "",
            "CHANGELOG.md": "",
            "lib/README.md": "",
            "lib/LICENSE": "",
            "NOTICE": "",
        },
    ),
    "left-behind": (
        {},
        {
            **FILES,
            ".DS_Store": "",
            "a.orig": "",
            ".x.swp": "",
            "._y": "",
            ".npmrc": "",
            "package-lock.json": "{}",
            "yarn.lock": "",
            "pnpm-lock.yaml": "",
            "bun.lockb": "",
            "npm-debug.log": "",
            "CVS/x": "",
            ".hg/x": "",
            "lib/.npmrc": "",
            ".lock-wscript": "",
            "build/config.gypi": "",
            "archived-packages/x": "",
            "npm-shrinkwrap.json": "{}",
        },
    ),
    "dot-files": (
        {"files": [".config", "lib"]},
        {".config/a": "", ".config/.b": "", ".eslintrc": "", **FILES},
    ),
    "crlf": ({}, {"index.js": "one\r\ntwo\r\n", "lib/a.js": "\ufeffthree"}),
    "not-ascii": (
        {"files": ["zażółć", "日本語.js", "é.txt"]},
        {"zażółć/gęślą.js": "", "日本語.js": "", "é.txt": "", "e\u0301.txt": ""},
    ),
    "long-paths": (
        {},
        {
            f"{LONG}/file.js": "x",
            f"{'n' * 101}.js": "y",
            f"{'d' * 150}/{'f' * 110}.js": "z",
            f"{'p' * 90}/{'q' * 90}.js": "",
            f"{'ü' * 80}.js": "",
        },
    ),
    "sorted": ({}, dict.fromkeys(SORTED, "")),
    "odd-names": (
        {},
        {
            "a*b.js": "",
            "a?b.js": "",
            "a b.js": "",
            "[x].js": "",
            "{y}.js": "",
            "a\\b.js": "",
            "#c.js": "",
            "!d.js": "",
            "-e.js": "",
            "$f.js": "",
        },
    ),
    "nested-package": (
        {},
        {**FILES, "inner/package.json": '{"files": ["x"]}', "inner/x": "", "inner/y": ""},
    ),
    "node-modules": (
        {"dependencies": {"dep": "1.0.0"}},
        {
            **FILES,
            "node_modules/dep/package.json": '{"name": "dep", "version": "1.0.0"}',
            "lib/node_modules/in/package.json": '{"name": "in", "version": "1.0.0"}',
        },
    ),
    "bundle-list": (
        {"dependencies": {"one": "1.0.0", "two": "1.0.0"}, "bundleDependencies": ["one"]},
        {
            "node_modules/one/package.json": '{"name": "one", "version": "1.0.0", "files": ["x"],'
            ' "dependencies": {"deep": "1.0.0"}}',
            "node_modules/one/x": "",
            "node_modules/one/y": "",
            "node_modules/deep/package.json": '{"name": "deep", "version": "1.0.0"}',
            "node_modules/deep/index.js": "",
            "node_modules/two/package.json": '{"name": "two", "version": "1.0.0"}',
        },
    ),
    "bundle-all": (
        {"dependencies": {"one": "1.0.0"}, "bundledDependencies": True},
        {
            "node_modules/one/package.json": '{"name": "one", "version": "1.0.0"}',
            "node_modules/one/.npmignore": "x",
            "node_modules/one/x": "",
        },
    ),
    "bundle-none": (
        {"dependencies": {"one": "1.0.0"}, "bundleDependencies": False},
        {"node_modules/one/package.json": '{"name": "one", "version": "1.0.0"}'},
    ),
    "workspaces-inside": (
        {"workspaces": ["inner"]},
        {
            "inner/package.json": '{"name": "inner", "version": "1.0.0", "files": ["x"]}',
            "inner/x": "",
            "inner/y": "",
            # A list of what to ignore, to npm.
            "lib/package.json": "[\n1\n]",
            "lib/1": "",
            **FILES,
        },
    ),
    "patched": (
        {
            "dependencies": {"one": "1.0.0"},
            "patchedDependencies": {"one@1.0.0": "patches/one.patch"},
        },
        {"patches/one.patch": "", "patches/more": "", **FILES},
    ),
    "underscores": (
        {
            "_private": 1,
            "funding": "https://x.example",
            "contributors": ["A <a@x.example>"],
            "repository": "a/b",
            "keywords": "a, b",
            "files": ["lib"],
        },
        FILES,
    ),
    "authors": (
        {},
        {"AUTHORS": "A <a@x.example>\n", "server.js": "", "binding.gyp": "{}", "man/x.1": ""},
    ),
    "empty-things": ({}, {"empty/.gitkeep": "", "nothing.js": ""}),
    "larger-than-what-is-tarred-at-once": ({}, {"a.txt": NOISE, "b.txt": NOISE[::-1], "c.js": "x"}),
    "of-some-size": (
        {},
        {"a.txt": NOISE[:300_000], "b.txt": NOISE[:16_384], "c.txt": NOISE[:65_536]},
    ),
}


def corpus(root: Path) -> Path:
    """Ignored by what lies between the root and its members, too."""
    files: dict[str, object] = {
        "package.json": {"name": "root", "version": "1.0.0", "workspaces": ["*/*"]},
        ".npmignore": "*.secret\n",
        "packages/.gitignore": "*.log\n",
    }
    for number, (name, (says, holds)) in enumerate(CORPUS.items()):
        place = f"packages/{number:02}"
        files |= {f"{place}/{path}": content for path, content in holds.items()}
        files[f"{place}/x.secret"] = files[f"{place}/x.log"] = ""
        document = json.dumps({"name": name, "version": f"1.0.{number}", **says}, indent=1)
        files[f"{place}/package.json"] = f"\ufeff{document}" if name == "crlf" else document
    write(root, files)
    hollow = root / "packages" / f"{list(CORPUS).index('empty-things'):02}"
    (hollow / "hollow" / "hollow").mkdir(parents=True)
    (hollow / "link.js").symlink_to("nothing.js")
    (hollow / "linked").symlink_to("empty")
    (hollow / "loose").symlink_to("nowhere")
    os.mkfifo(hollow / "pipe")
    script = root / "packages" / f"{list(CORPUS).index('bin-executable'):02}" / "run.sh"
    script.chmod(0o4751)
    (script.parent / "not.sh").chmod(0o600)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root.resolve()


async def packed(
    root: Path, into: Path, table: Mapping[str, object] | None = None
) -> dict[str, bytes | str]:
    """By package, the bytes of what the program makes of it, or why it makes nothing."""
    config = fakes.config(root)
    variables = fakes.TOOL_VARIABLES
    async with Processes(environment=dict(os.environ), variables=variables) as processes:
        services = fakes.services(config, processes, processes.redact)
        async with Npm(config, NpmOptions.from_table(table or {}), services) as npm:
            workspace = await npm.discover(root)
            place = partial(built_directory, state_directory=into)
            batches = workspace.batches([p for p in workspace.packages if not p.unpublishable])
            answers = await asyncio.gather(*(workspace.build(batch, place) for batch in batches))
    return {
        package.name: str(built) if isinstance(built, BuildFailed) else built[0].path.read_bytes()
        for answer in answers
        for package, built in answer.items()
    }


def test_what_is_packed_is_what_npm_packs_to_the_byte(tmp_path: Path) -> None:
    """Bundled, linked, ignored, executable, long, strange: what was tried is what is published."""
    require_tool("npm")
    root, theirs = corpus(tmp_path / "a workspace"), tmp_path / "theirs"
    theirs.mkdir()
    where = ["--pack-destination", str(theirs), "--cache", str(tmp_path / "cache")]
    argv = ["npm", "pack", "--loglevel=error", *where, "--workspaces", "--include-workspace-root"]
    subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True)
    ours = asyncio.run(packed(root, tmp_path / "ours"))
    assert ours.keys() == {*CORPUS, "root"}
    for number, name in enumerate(CORPUS):
        expected = (theirs / make_filename(name, f"1.0.{number}")).read_bytes()
        assert ours[name] == expected, name
    assert ours["root"] == (theirs / make_filename("root", "1.0.0")).read_bytes()
    for number, name in enumerate(CORPUS):
        directory = root / "packages" / f"{number:02}"
        assert uncounted(directory, theirs / make_filename(name, f"1.0.{number}")) == [], name


def test_what_npm_does_not_know_as_a_workspace_is_packed_by_itself(tmp_path: Path) -> None:
    """R64: nor does pnpm heed ignore files of its root; what a package is made of may be ignored
    there, as what a compiler makes is.
    """
    require_tool("npm")
    member = {"name": "member", "version": "1.0.0"}
    beside = {"name": "beside", "version": "1.0.0"}
    root = write(
        tmp_path / "workspace",
        {
            "pnpm-workspace.yaml": "packages: ['packages/*']\n",
            "package.json": {"name": "root", "version": "1.0.0"},
            ".gitignore": "dist\n*.tgz\n",
            ".npmignore": "tsconfig*.json\n*.tgz\n",
            "packages/a/package.json": member,
            "packages/a/tsconfig.json": "{}",
            "packages/a/dist/index.js": "",
            "else/b/package.json": beside,
            "else/b/tsconfig.json": "{}",
        },
    )
    ours = asyncio.run(packed(root, tmp_path / "ours", {"packages": ["else/*"]}))
    places = {"member": "packages/a", "root": ".", "beside": "else/b"}
    assert ours.keys() == places.keys()
    for name, place in places.items():
        argv = [
            "npm",
            "pack",
            "--loglevel=error",
            "--ignore-scripts",
            "--cache",
            str(tmp_path / "cache"),
        ]
        argv += ["--pack-destination", str(tmp_path)]
        subprocess.run(argv, cwd=root / place, check=True, capture_output=True)
        assert ours[name] == (tmp_path / f"{name}-1.0.0.tgz").read_bytes(), name


def test_licenses_of_the_workspace_go_into_a_package_of_any_size(tmp_path: Path) -> None:
    """More files than node-tar reads at a time, and more licenses."""
    require_tool("npm")
    licenses = {f"LICENSE.{number}": NOISE[: 40_000 + number] for number in range(6)}
    files = {f"{number}.txt": NOISE[number : number + 300_000] for number in range(6)}
    core = {"package.json": json.dumps({"name": "core", "version": "1.0.0"}), **files}
    root = tmp_path / "a workspace"
    write(root, {"pnpm-workspace.yaml": "packages: ['packages/*']\n", "package.json": "{}"})
    write(root, {**licenses, **{f"packages/core/{name}": text for name, text in core.items()}})
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    made = asyncio.run(
        asyncio.wait_for(packed(root.resolve(), tmp_path / "ours"), timeout=PATIENCE_S)
    )
    tarball = made["core"]
    assert isinstance(tarball, bytes)
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        files_in = {it.name: archive.extractfile(it) for it in archive}
        held = {name: file.read().decode() for name, file in files_in.items() if file}
    assert held == {f"package/{name}": text for name, text in {**core, **licenses}.items()}


@pytest.mark.parametrize(
    ("tool", "modes"),
    [
        ("npm@11.0.0", {"listed.sh": 0o644, "lib/cli.js": 0o644}),
        ("pnpm@10.34.9", {"listed.sh": 0o755, "lib/cli.js": 0o755, "lib/main.js": 0o644}),
        (
            "yarn@4.18.1",
            {
                "listed.sh": 0o755,
                "lib/cli.js": 0o755,
                "lib/main.js": 0o644,
                "lib/module.js": 0o644,
            },
        ),
        ("bun@1.4.5", {"listed.sh": 0o644, "lib/cli.js": 0o755}),
    ],
    ids=["npm", "pnpm", "yarn", "bun"],
)
def test_entry_points_and_their_modes(tmp_path: Path, tool: str, modes: dict[str, int]) -> None:
    """R64: npm packs a `main` with "./" only where `files` lists it, and programs as they are."""
    require_tool("npm")
    fields = {
        "main": "./lib/main.js", "module": "./lib/module.js", "bin": {"a": "./lib/cli.js"},
        "files": ["listed.sh"], "publishConfig": {"executableFiles": ["./listed.sh"]},
    }  # fmt: skip
    files = dict.fromkeys(["listed.sh", "other.sh", *map("lib/{}.js".format, ENTRIES)], SCRIPT)
    document = {"name": "a", "version": "1.0.0", "packageManager": tool, **fields}
    root = write(tmp_path / "w", {"package.json": document, **files})
    made = asyncio.run(packed(root.resolve(), tmp_path / "ours"))["a"]
    assert isinstance(made, bytes)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        found = {each.name.removeprefix("package/"): each.mode for each in archive}
    assert found == {"package.json": 0o644, **modes}


@pytest.mark.parametrize("tool", ["pnpm@10.34.9", "yarn@4.18.1"])
@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"module": "", "browser": "./", "files": ["b.js"]}, {"b.js"}),
        ({"module": "!a.js", "main": "./lib", "files": ["b.js"]}, {"b.js"}),
        ({"main": "../outside.js", "bin": {"a": "link/x.js"}, "files": ["b.js"]}, {"b.js"}),
        ({"main": "./lib/a.js"}, {".env", "a.js", "b.js", "pkg/c.js"}),
        ({"main": "./pkg/c.js", "files": ["b.js"]}, {"b.js", "pkg/c.js"}),
    ],
)
def test_entry_points_that_bring_nothing_else_along(
    tmp_path: Path, tool: str, fields: dict[str, object], kept: set[str]
) -> None:
    """R64: what ignore files name, and what is no file of the package."""
    require_tool("npm")
    document = {"name": "a", "version": "1.0.0", "packageManager": tool, **fields}
    files = {".env": "x", "a.js": "", "b.js": "", "lib/a.js": "", "lib/secret": "", "pkg/c.js": ""}
    ignored = {".npmignore": "lib\n", "pkg/.gitignore": "*\n" if "files" in fields else ""}
    root = write(tmp_path / "w", {"package.json": document, **files, **ignored})
    write(tmp_path, {"outside.js": "", "elsewhere/x.js": ""})
    (root / "link").symlink_to(tmp_path / "elsewhere")
    made = asyncio.run(packed(root.resolve(), tmp_path / "ours"))["a"]
    assert isinstance(made, bytes)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        found = {name.removeprefix("package/") for name in archive.getnames()}
    assert found - {"package.json", ".npmignore", "pkg/.gitignore"} == kept


@pytest.mark.parametrize("tool", ["npm@11.0.0", "yarn@4.18.1"])
@pytest.mark.parametrize("listed", [False, True])
def test_yarn_packs_nothing_of_its_own(tmp_path: Path, tool: str, listed: bool) -> None:
    """R64: npm knows .npmrc alone, so that a token in a .yarnrc.yml, and each archive that was
    installed, went along with a package at the root of a repository of yarn.
    """
    require_tool("npm")
    own = (
        *(".yarnrc.yml", "lib/.yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs", ".yarn/cache/a.zip"),
        *(".yarn/install-state.gz", ".yarn/releases/yarn.cjs", ".yarn/unplugged/b/index.js"),
    )
    others = (".yarn/patches/a.patch", "lib/.yarn/cache/a.js", "lib/a.js", "a.yarnrc.yml")
    document = {"name": "a", "version": "1.0.0", "packageManager": tool}
    fields = {"files": [".yarn", ".pnp*", "lib", "a.yarnrc.yml", ".yarnrc.yml"]} if listed else {}
    root = write(
        tmp_path / "w", {"package.json": {**document, **fields}, **dict.fromkeys(own + others, "")}
    )
    made = asyncio.run(packed(root.resolve(), tmp_path / "ours"))["a"]
    assert isinstance(made, bytes)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        found = {name.removeprefix("package/") for name in archive.getnames()}
    kept = {"package.json", *others}
    assert found == (kept if tool.startswith("yarn") else kept | {*own})


@pytest.mark.parametrize("tool", ["npm@11.0.0", "bun@1.4.5"])
@pytest.mark.parametrize(
    "named", [[], ["**"], ["lib", "bunfig.toml", "./lib/.env.production", "bun.lock"]]
)
def test_bun_packs_no_settings_that_files_does_not_name(
    tmp_path: Path, tool: str, named: list[str]
) -> None:
    """R64: bunfig.toml may hold a token, too."""
    require_tool("npm")
    own = {*("bunfig.toml", "lib/bunfig.toml", ".env.production", "lib/.env.production")}
    others = {*("lib/bun.lock", "lib/a.js", "a.bunfig.toml")}
    fields = {"files": named} if named else {}
    document = {"name": "a", "version": "1.0.0", "packageManager": tool, **fields}
    files = dict.fromkeys([*own, *others, "bun.lock"], "")
    root = write(tmp_path / "w", {"package.json": document, **files})
    made = asyncio.run(packed(root.resolve(), tmp_path / "ours"))["a"]
    assert isinstance(made, bytes)
    with tarfile.open(fileobj=io.BytesIO(made)) as archive:
        found = {name.removeprefix("package/") for name in archive.getnames()}
    if tool.startswith("npm"):
        assert found > {"bunfig.toml", "lib/bunfig.toml", "lib/.env.production"}
    else:
        kept = {"bunfig.toml", "lib/.env.production"} if "lib" in named else {"a.bunfig.toml"}
        assert found == {"package.json", "lib/bun.lock", "lib/a.js"} | kept


def uncounted(directory: Path, tarball: Path) -> list[str]:
    """What is packed, and would change without a word; its tests and notes may."""
    manifest = directory / "package.json"
    package = replace(fakes.package("any"), directory=directory, manifest=manifest)
    tracked = [
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    ]
    counts = NpmComposition(Found({}, (), {}), (), directory).make_filter(package, tracked)
    with tarfile.open(tarball) as archive:
        names = [name.removeprefix("package/") for name in archive.getnames()]
    bundled = "node_modules/"
    return [
        name
        for name in names
        if not counts(name) and not is_irrelevant(name) and not name.startswith(bundled)
    ]
