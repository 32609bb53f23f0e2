"""What lies below the root is planned, or named with the option that takes it in; never missed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fakes
from fakes import FakeRegistry, FakeWorkspace, package, target
from releasekit.config.levels import Levels, WarningLevel
from releasekit.config.values import Dist
from releasekit.decided import Edge
from releasekit.ecosystems import ECOSYSTEMS, maven
from releasekit.errors import ConfigError, PlanError, UnknownDependency
from releasekit.fields import replace
from releasekit.host.process import Processes
from releasekit.model import PackageId, WarningName
from releasekit.plan.foreign_manifests import describe_foreign
from releasekit.plan.holdings import read_tree
from releasekit.plan.make import Survey, collect_packages, make_plan
from releasekit.plan.unlisted_packages import (
    NestedPackages,
    UnreadManifest,
    describe_unlisted,
    describe_unread,
    find_absent,
    find_nested,
    find_unlisted,
    include_workspaces,
    list_manifests,
    mark_unread,
)
from releasekit.state.journal import History

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.model import Plan

POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId>"
    "<artifactId>{}</artifactId><version>1</version>{}</project>"
)


def uv(name: str) -> str:
    return f'[project]\nname = "{name}"\nversion = "1"\n[build-system]\nrequires = []\n'


def uv_root(*globs: str) -> str:
    return f"[tool.uv.workspace]\nmembers = {json.dumps(globs)}\n"


def js(name: str, **more: object) -> str:
    return json.dumps({"name": name, "version": "1.0.0", **more})


def crate(name: str) -> str:
    return f'[package]\nname = "{name}"\nversion = "1.0.0"\n'


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root.resolve()


def found(root: Path, **changes: object) -> list[NestedPackages]:
    return surveyed(root, **changes)[0]


def surveyed(root: Path, **changes: object) -> tuple[list[NestedPackages], list[UnreadManifest]]:
    async def main() -> tuple[list[NestedPackages], list[UnreadManifest]]:
        environment = {"PATH": os.environ["PATH"]}
        async with Processes(environment=environment, variables=fakes.TOOL_VARIABLES) as processes:
            settings = fakes.config(root, **changes)
            names = settings.ecosystems_to_discover
            wanted = {name: each for name, each in ECOSYSTEMS.items() if name in names}
            listed = await list_manifests(root, wanted.values(), await read_tree(root, processes))
            return await find_nested(root, settings.ecosystem_tables, wanted, listed)

    return asyncio.run(main())


def shown(below: list[NestedPackages]) -> list[tuple[str, str, int]]:
    """Ecosystem, directory, and how many packages of a workspace; 0 for a package alone."""
    return [
        (each.ecosystem, each.where, len(each.packages) if each.is_workspace else 0)
        for each in below
    ]


POLYGLOT = {
    "js/package.json": '{"workspaces": ["*"]}',
    "js/a/package.json": js("a"),
    "js/b/package.json": js("b"),
    "js/private/package.json": js("private", private=True),
    "deep/in/py/pyproject.toml": uv_root("libs/*"),
    "deep/in/py/libs/c/pyproject.toml": uv("c"),
    "rust/Cargo.toml": '[workspace]\nmembers = ["x"]',
    "rust/x/Cargo.toml": crate("x"),
    "java/pom.xml": POM.format("top", "<modules><module>mid</module></modules>"),
    "java/mid/pom.xml": POM.format("mid", "<modules><module>leaf</module></modules>"),
    "java/mid/leaf/pom.xml": POM.format("leaf", ""),
    "tool/package.json": js("tool"),
}


@pytest.mark.parametrize("git", [False, True])
def test_workspaces_and_single_packages_of_every_ecosystem_are_found(
    tmp_path: Path, git: bool
) -> None:
    root = write(tmp_path, POLYGLOT)
    if git:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert shown(found(root)) == [
        ("pypi", "deep/in/py", 1),
        ("npm", "js", 2),
        ("npm", "tool", 0),
        ("cargo", "rust", 1),
        ("maven", "java", 3),
    ]
    assert shown(found(root, ecosystem=("cargo",))) == [("cargo", "rust", 1)]


ASIDE = {
    "examples/a/package.json": js("a"),
    "pkg/tests/fixtures/b/pyproject.toml": uv("b"),
    "templates/package.json": '{"workspaces": ["*"]}',
    "templates/c/package.json": js("c"),
    "docs/package.json": js("website"),
    "src/it/jetty/pyproject.toml": uv("it"),
    "pyodide_test/package.json": js("wasm"),
    "acme-example/package.json": '{"workspaces": ["*"]}',
    "acme-example/app/package.json": js("app"),
    "js-examples/package.json": js("shown"),
    "playground/package.json": js("play"),
    "node_modules/d/package.json": js("d"),
    ".venv/e/pyproject.toml": uv("e"),
    "target/package/f/Cargo.toml": crate("f"),
    "g/package.json": js("g", private=True),
    "h/package.json": "{",
    "i/pyproject.toml": "[tool.ruff]",
}


@pytest.mark.parametrize("git", [False, True])
def test_what_nobody_means_to_publish_is_not_named(tmp_path: Path, git: bool) -> None:
    root = write(tmp_path, ASIDE)
    if git:
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert found(root) == []


def test_a_workspace_of_the_documentation_may_have_a_theme(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"docs/package.json": '{"workspaces": ["*"]}', "docs/theme/package.json": js("theme")},
    )
    assert shown(found(root)) == [("npm", "docs", 1)]


def test_a_path_that_is_too_long_for_a_name_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R53: a build can make one, a directory at a time."""
    root = write(tmp_path, {"out/package.json": js("a")})
    long = Path(*["n" * 200] * 30, "package.json")
    monkeypatch.setattr(
        "releasekit.plan.unlisted_packages._walk", lambda *_: [long, Path("out/package.json")]
    )
    assert shown(found(root)) == [("npm", "out", 0)]


def test_what_git_ignores_is_not_named(tmp_path: Path) -> None:
    root = write(tmp_path, {".gitignore": "out/\n", "out/package.json": js("a")})
    assert shown(found(root)) == [("npm", "out", 0)]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert found(root) == []


def test_what_is_installed_does_not_hide_what_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of it is committed."""
    monkeypatch.setattr("releasekit.plan.unlisted_packages.MAX_MANIFESTS", 2)
    files = {f"node_modules/{name}/package.json": js(name) for name in "abc"}
    root = write(tmp_path, {**files, "web/package.json": js("web")})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert shown(found(root)) == [("npm", "web", 0)]


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": '{"workspaces": ["*", "!b"]}', "b/package.json": js("b")},
        {"pyproject.toml": '[tool.uv.workspace]\nexclude = ["b"]', "b/pyproject.toml": uv("b")},
        {"Cargo.toml": '[workspace]\nexclude = ["b"]', "b/Cargo.toml": crate("b")},
        {
            "pom.xml": POM.format("top", "<modules><module>b</module></modules>"),
            "b/pom.xml": POM.format("b", ""),
        },
    ],
    ids=["npm", "pypi", "cargo", "maven"],
)
def test_what_the_root_lists_or_leaves_out_is_not_named(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    assert found(write(tmp_path, files)) == []


@pytest.mark.parametrize("exclude", ["site/*", "site/a", "site/a/", "./site/a"])
def test_what_an_option_leaves_out_is_not_named(tmp_path: Path, exclude: str) -> None:
    root = write(tmp_path, {"site/a/package.json": js("a"), "b/package.json": js("b")})
    assert shown(found(root, ecosystem_tables={"npm": {"exclude": [exclude]}})) == [("npm", "b", 0)]


def test_a_root_without_anything_is_planned_by_its_workspaces(tmp_path: Path) -> None:
    """The near ones, each as if it were named in releasekit.toml; never a package alone."""
    root = write(tmp_path, POLYGLOT)
    below = found(root)
    tables, note = include_workspaces(root, {}, ECOSYSTEMS, below)
    assert tables == {
        "npm": {"workspaces": ["js"]},
        "cargo": {"workspaces": ["rust"]},
        "maven": {"reactors": ["java"]},
    }
    assert note == (
        "the root has no manifest, so the workspaces below it are planned: "
        "js (npm), rust (cargo), java (maven)"
    )


@pytest.mark.parametrize(
    ("files", "tables"),
    [
        ({"package.json": "{}"}, {}),
        ({"go.mod": "module x.org/a"}, {}),
        ({}, {"pypi": {"packages": ["libs/*"]}}),
        ({}, {"cargo": {"workspaces": []}}),
        ({}, {"maven": {"directories": ["build/repo"]}}),
    ],
)
def test_whoever_says_what_is_meant_gets_no_more_than_that(
    tmp_path: Path, files: Mapping[str, str], tables: Mapping[str, Mapping[str, object]]
) -> None:
    root = write(tmp_path, {**POLYGLOT, **files})
    assert include_workspaces(root, tables, ECOSYSTEMS, found(root)) == (tables, "")


def test_the_option_that_takes_it_in_can_be_copied(tmp_path: Path) -> None:
    files = {f"libs/{name}/pyproject.toml": uv(name) for name in "abc"}
    root = write(tmp_path, {**POLYGLOT, **files, "pom.xml": POM.format("own", "")})
    tables = {"pypi": {"packages": ["x"]}}
    lines = describe_unlisted(found(root), root, tables, ECOSYSTEMS)
    ends = [line.partition("write ")[2].partition(" in releasekit.toml")[0] for line in lines]
    assert ends == [
        '`[pypi] workspaces = ["deep/in/py"]` and `[pypi] packages = ["x", "libs/*"]`',
        '`[npm] workspaces = ["js"]` and `[npm] packages = ["tool"]`',
        '`[cargo] workspaces = ["rust"]`',
        '`[maven] reactors = [".", "java"]`',
    ]
    assert lines[1].startswith("npm packages in no workspace here: js (2 packages), tool; ")


def test_a_glob_is_named_once(tmp_path: Path) -> None:
    """R68: also where others lie between the packages that it fits."""
    names = ["a", "b", "b/inner", "c", "d"]
    root = write(tmp_path, {f"libs/{name}/pyproject.toml": uv(name[-1]) for name in names})
    (line,) = describe_unlisted(found(root), root, {}, ECOSYSTEMS)
    assert '`[pypi] packages = ["libs/*", "libs/b/inner"]`' in line


def planned(root: Path, survey: Survey, unpublishable: str = "", **given: object) -> Plan:
    one = replace(
        package("core", unpublishable=unpublishable),
        manifest=root / "core",
        directory=root / "here",
    )
    one.manifest.touch()
    targets = target(FakeWorkspace(packages=[one]), FakeRegistry())
    config = fakes.config(root, **given)
    return asyncio.run(make_plan(config, targets, History(), commit="", survey=survey))


UNREADABLE = {
    "a/package.json": ('{ // why\n"name": "a"}', "a/package.json is not valid JSON: "),
    "b/package.json": ('{"name": "b", "version": "one"}', "b/package.json: version is 'one'"),
    "c/package.json": ("x" * 1_100_000, "c/package.json: larger than 1048576 bytes"),
    "d/Cargo.toml": ("[package", "d/Cargo.toml is not valid TOML: "),
    "e/pyproject.toml": ("[project", "e/pyproject.toml is not valid TOML: "),
    "f/pom.xml": ("<project>", "f/pom.xml"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_could_be_a_package_and_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    """R66"""
    text, why = UNREADABLE[name]
    below, (unread,) = surveyed(write(tmp_path, {name: text}))
    assert below == []
    assert unread.why.startswith(why)
    for aside in ("tests", "fixtures", "examples", "e2e"):
        (tmp_path / name).parent.rename(tmp_path / aside)
        assert surveyed(tmp_path.resolve()) == ([], [])
        (tmp_path / aside).rename((tmp_path / name).parent)


SETUP = "from setuptools import setup\nsetup()\n"
CFG = "[metadata]\nversion = 1\nname = a\n"
FLIT = "[tool.flit.metadata]\nmodule = 'a'\n"
MESON = "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n"
FOREIGN = {
    "setup.py": ({"a/setup.py": SETUP}, "a/setup.py"),
    "beside a linter": ({"a/setup.py": SETUP, "a/setup.cfg": "[flake8]\n"}, "a/setup.py"),
    "setup.cfg": ({"a/setup.cfg": CFG}, "a/setup.cfg"),
    "both": ({"a/setup.py": SETUP, "a/setup.cfg": CFG}, "a/setup.cfg"),
    "a build system": ({"a/pyproject.toml": "[build-system]\n", "a/setup.cfg": CFG}, "a/setup.cfg"),
    "flit": ({"a/pyproject.toml": FLIT}, "a/pyproject.toml: tool.flit.metadata"),
    "meson": ({"a/pyproject.toml": MESON}, "a/meson.build"),
    "root": ({"setup.py": SETUP, "pyproject.toml": "[tool.ruff]\n"}, "setup.py"),
    "a member": ({"pyproject.toml": uv_root("*"), "a/setup.py": SETUP}, "a/setup.py"),
    "left out": (
        {"pyproject.toml": f'{uv_root("*")}exclude = ["a"]\n', "a/setup.py": SETUP},
        "a/setup.py",
    ),
    "Latin-1": ({"a/setup.py": SETUP}, "a/setup.py"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_package_that_only_setuptools_or_flit_reads_is_named(tmp_path: Path, name: str) -> None:
    """R66: uv takes it into no workspace, so that one leaves it out says nothing."""
    files, place = FOREIGN[name]
    root = write(tmp_path, files)
    if name == "Latin-1":
        (root / "a/setup.py").write_bytes(f"# \xe9\n{SETUP}".encode("latin-1"))
    below, (unread,) = surveyed(root)
    assert below == []
    assert unread.why.startswith(
        f"{place} describes a package, but ReleaseKit reads only [project]"
    )
    assert describe_foreign(root, {}) == ""  # or a plan names it twice
    left_out = {"pypi": {"exclude": ["." if name == "root" else "a"]}}
    assert surveyed(root, ecosystem_tables=left_out) == ([], [])


NO_PACKAGE = {
    "with [project]": {"pyproject.toml": uv("a"), "setup.py": SETUP, "setup.cfg": CFG},
    "a linter": {"setup.cfg": "[flake8]\n[metadata]\n[tool]\nname = a\n"},
    "a module": {"a/setup.py": "def setup(): ...\n", "b/setup.py": "import setuptools\n"},
    "managed by hand": {"pyproject.toml": "[tool.uv]\nmanaged = false\n", "setup.py": SETUP},
    "tests": {"tests/a/setup.py": SETUP, "vendor/a/setup.py": SETUP, "docs/setup.py": SETUP},
}


@pytest.mark.parametrize("files", NO_PACKAGE.values(), ids=NO_PACKAGE)
def test_setup_files_of_no_package_are_not_named(tmp_path: Path, files: dict[str, str]) -> None:
    """R66"""
    assert surveyed(write(tmp_path, files)) == ([], [])


NEVER_PUBLISHED = {
    "a path of an older Node": {"a/package.json": '{"name": "@acme/a/errors", "main": "../a.js"}'},
    "cookiecutter": {"make/{{cookiecutter.name}}/pyproject.toml": "{% if a %}"},
    "copier": {"make/{% if a %}a{% endif %}/package.json": "{{ a }}"},
}


@pytest.mark.parametrize("files", NEVER_PUBLISHED.values(), ids=NEVER_PUBLISHED)
def test_what_nobody_can_publish_is_not_named(tmp_path: Path, files: dict[str, str]) -> None:
    """R66: `npm publish` wants a version, and names that are filled in are of a template."""
    assert surveyed(write(tmp_path, files)) == ([], [])


def test_a_package_that_a_sparse_checkout_leaves_out_is_named(tmp_path: Path) -> None:
    """R66: its workspace's globs find it nowhere."""
    manifests = {f"{name}/package.json": f'{{"name": "{name}"}}' for name in ("a", "b", "tests")}
    root = write(tmp_path, {"package.json": '{"workspaces": ["*"]}', **manifests})
    for argv in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=x", "-c", "user.email=x@x.example", "commit", "--quiet", "-m", "begin"],
        ["sparse-checkout", "set", "a"],
    ):
        subprocess.run(["git", *argv], cwd=root, check=True)
    _, unread = surveyed(root)
    assert [each.why for each in unread] == ["b/package.json is in git, but not checked out"]


@pytest.mark.parametrize("where", ["", "a/"])
@pytest.mark.parametrize("name", ["package.json", "pyproject.toml", "Cargo.toml", "pom.xml"])
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, where: str, name: str) -> None:
    """R66"""
    (tmp_path / where).mkdir(exist_ok=True)
    (tmp_path / where / name).symlink_to("nowhere")
    below, (unread,) = surveyed(tmp_path.resolve())
    assert below == []
    assert unread.why == f"{where}{name} is a broken symbolic link"


def test_manifests_that_are_read_are_found_however_they_are_written(tmp_path: Path) -> None:
    """R66: TOML 1.1, as cargo reads it, and a byte order mark, as npm does."""
    toml = crate("a") + "[dependencies]\nb = {\n  version = '1', # why\n}\n"
    files = {"a/Cargo.toml": toml, "b/package.json": f"\ufeff{js('b')}"}
    below, unread = surveyed(write(tmp_path, files))
    assert shown(below) == [("npm", "b", 0), ("cargo", "a", 0)]
    assert unread == []


def test_one_line_names_a_few_and_says_how_to_silence_it(tmp_path: Path) -> None:
    """R66"""
    unread = [UnreadManifest("npm", f"{number}/package.json is odd") for number in range(5)]
    (line,) = describe_unread(unread)
    told = "0/package.json is odd | 1/package.json is odd | 2/package.json is odd | and 2 more; "
    assert told in line
    assert 'write `unread-manifest = "ignore"` below [warnings]' in line
    assert mark_unread(line).endswith("[RK-520]")
    (line,) = describe_unread(unread[:1])
    assert (
        "ReleaseKit cannot read 1 file that may belong to packages: "
        "0/package.json is odd; correct it" in line
    )
    survey = Survey(ECOSYSTEMS, unread=unread[:1])
    assert planned(tmp_path, survey).notes == (mark_unread(line),)
    for levels in (Levels(strict=True), Levels({WarningName.UNREAD_MANIFEST: WarningLevel.ERROR})):
        with pytest.raises(PlanError, match="0/package") as caught:
            planned(tmp_path, survey, levels=levels)
        assert caught.value.problem == "RK-310"


def test_a_plan_names_what_it_misses_and_what_it_takes_in(tmp_path: Path) -> None:
    below = [
        NestedPackages("fake", "here", (tmp_path / "here",), is_workspace=False),
        NestedPackages("npm", "js", (tmp_path / "js" / "a",), is_workspace=True),
    ]
    notes = planned(tmp_path, Survey(ECOSYSTEMS, below, "and so on")).notes
    told_of_js = (
        "npm packages in no workspace here: js (1 package); to plan them too, write "
        '`[npm] workspaces = ["js"]` in releasekit.toml'
    )
    assert notes == ("and so on", told_of_js)


def test_a_line_to_copy_costs_nothing_that_is_planned(tmp_path: Path) -> None:
    """What was taken in by itself is so only as long as releasekit.toml names no workspace."""
    root = write(
        tmp_path, {"js/package.json": js("web", workspaces=["a"]), "js/a/package.json": js("a")}
    )
    more = {
        name: NestedPackages(name, "deep", (root / "deep",), is_workspace=True)
        for name in ("npm", "cargo")
    }
    tables, note = include_workspaces(root, {}, ECOSYSTEMS, found(root))
    settings = fakes.config(root, ecosystem_tables=tables)

    def said(*below: NestedPackages) -> list[str]:
        return Survey(ECOSYSTEMS, below, note).describe_unlisted(settings, {})

    _, too = said(more["cargo"])
    assert too.startswith('beside any such line write `[npm] workspaces = ["js"]` too: ')
    (of_npm,) = said(more["npm"])
    assert '`[npm] workspaces = ["js", "deep"]`' in of_npm
    assert said() == []


@pytest.mark.parametrize(
    ("name", "files", "lines"),
    [
        ("cargo", {"a/Cargo.toml": "[workspace]", "b/Cargo.toml": crate("b")}, 1),
        ("maven", {"a/pom.xml": "<modules>", "b/pom.xml": POM.format("b", "")}, 1),
        ("npm", {"a/package.json": js("a", workspaces=["x"]), "b/package.json": js("b")}, 2),
        ("pypi", {"a/pyproject.toml": uv_root("x"), "b/pyproject.toml": uv("b")}, 2),
    ],
)
def test_no_line_to_copy_names_a_key_that_another_one_has(
    tmp_path: Path, name: str, files: Mapping[str, str], lines: int
) -> None:
    """R66: one key of cargo and of Maven takes in a workspace and a package that is in none."""
    root = write(tmp_path, files)
    below = [NestedPackages(name, "b", (root / "b",), is_workspace=False)]
    key = "reactors" if name == "maven" else "workspaces"
    survey = Survey(ECOSYSTEMS, below, "and so on")
    settings = fakes.config(root, ecosystem_tables={name: {key: ["a"]}})
    sentences = survey.describe_unlisted(settings, {})
    assert len(sentences) == lines


def test_a_release_of_nothing_beside_packages_is_an_error(tmp_path: Path) -> None:
    survey = Survey(
        ECOSYSTEMS, [NestedPackages("npm", "js", (tmp_path / "js",), is_workspace=True)]
    )
    words = "no package to publish here: never published: fake:core: it says so; npm packages in"
    with pytest.raises(ConfigError, match=words) as caught:
        planned(tmp_path, survey, unpublishable="it says so")
    assert "\n" not in str(caught.value)
    assert '`[npm] workspaces = ["js"]` in releasekit.toml' in caught.value.hint
    assert planned(tmp_path, Survey(ECOSYSTEMS), unpublishable="it says so").packages == ()


@pytest.mark.parametrize("count", [20, 1000])
def test_what_is_to_be_written_is_whole(tmp_path: Path, count: int) -> None:
    """A line with an ellipsis cannot be pasted; one that is too long for a message is what `init`
    writes (R65).
    """
    below = [
        NestedPackages("npm", f"p{number}", (tmp_path / f"p{number}",), is_workspace=False)
        for number in range(count)
    ]
    with pytest.raises(ConfigError) as caught:
        planned(tmp_path, Survey(ECOSYSTEMS, below), unpublishable="it says so")
    assert str(caught.value).endswith(f"p0, p1, p2 and {count - 3} more")
    names = json.dumps([f"p{number}" for number in range(count)])
    line = f"`[npm] packages = {names}`"
    assert (line in caught.value.hint) == (count == 20)
    assert ("`[npm] packages` as `releasekit init` (" in caught.value.hint) == (count == 1000)
    assert "…" not in caught.value.hint


def test_what_was_discovered_is_not_missed(tmp_path: Path) -> None:
    below = [NestedPackages("fake", "core", (fakes.package("core").directory,), is_workspace=False)]
    assert (
        find_unlisted(below, target(FakeWorkspace(packages=[package("core")]), FakeRegistry()))
        == []
    )


def test_a_directory_of_another_ecosystem_s_package_is_named(tmp_path: Path) -> None:
    """R1: a crate that is never published lies beside the pyproject.toml of maturin."""
    own = package("core")
    targets = target(FakeWorkspace(packages=[own]), FakeRegistry())
    below = [
        NestedPackages(each, "core", (own.directory,), is_workspace=False)
        for each in ("fake", "pypi")
    ]
    assert find_unlisted(below, targets) == below[1:]


ALONE = {"package.json": js("a")}


@pytest.mark.parametrize(
    ("files", "given", "absent"),
    [
        (ALONE, {}, {"pypi", "cargo", "go", "maven", "step"}),
        ({"a/pom.xml": POM.format("a", "")}, {}, {"pypi", "npm", "cargo", "go", "maven", "step"}),
        ({**ALONE, "pom.xml": POM.format("a", "")}, {}, {"pypi", "cargo", "go", "step"}),
        ({**ALONE, "a/b/go.mod": "module x.org/a"}, {}, {"pypi", "cargo", "maven", "step"}),
        (ALONE, {"ecosystem": ("npm", "go")}, {"go"}),
        (
            ALONE,
            {"ecosystem_tables": {"pypi": {"exclude": ["x"]}}},
            {"cargo", "go", "maven", "step"},
        ),
        (
            ALONE,
            {"registries": fakes.registries(go="https://x.example", maven="dir:x")},
            {"pypi", "cargo", "maven", "step"},
        ),
        (
            ALONE,
            {"ecosystem_inputs": (maven.MavenInputs(username="me"),)},
            {"pypi", "cargo", "go", "step"},
        ),
        (ALONE, {"dist": (Dist(Path("dist")),)}, {"step"}),
    ],
)
def test_an_ecosystem_is_absent_where_neither_files_nor_settings_tell_of_it(
    tmp_path: Path, files: Mapping[str, str], given: Mapping[str, object], absent: set[str]
) -> None:
    config = fakes.config(write(tmp_path, files), **given)
    chosen = [ECOSYSTEMS[name] for name in config.package_filter.ecosystems]
    assert find_absent(config, chosen, [Path(name) for name in files]) == absent
    assert {*config.ecosystems_to_discover} == {each.name for each in chosen}
    assert absent.isdisjoint(replace(config, absent=frozenset(absent)).ecosystems_to_discover)


def test_an_absent_ecosystem_keeps_its_registry_and_its_name(tmp_path: Path) -> None:
    """In what is reported; and the edges of releasekit.toml still refuse a package of it."""
    survey, absent = Survey(ECOSYSTEMS), frozenset({"go"})
    made = planned(tmp_path, survey, absent=absent)
    assert made.registries["go"] == "https://proxy.golang.org/"
    edge = Edge(dependent=PackageId("go", "x.org/a"), on=PackageId("pypi", "a"))
    with pytest.raises(UnknownDependency, match="names 'go:x"):
        planned(tmp_path, survey, absent=absent, extra_edges=(edge,))


def test_other_tools_take_one_line_for_the_root_alone(tmp_path: Path) -> None:
    """R66"""
    for name in ("build.gradle", "settings.gradle", "mix.exs"):
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "build.sbt").touch()
    (tmp_path / "a.sln").mkdir()
    (tmp_path / "setup.py").touch()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\n')
    (line,) = planned(tmp_path, Survey(ECOSYSTEMS)).notes
    assert line.startswith("ReleaseKit does not read settings.gradle (Gradle), mix.exs (Mix); ")
    assert planned(tmp_path, Survey({})).notes == ()


def test_a_root_of_another_tool_is_told_from_an_empty_one(tmp_path: Path) -> None:
    """R66"""
    (tmp_path / "build.gradle.kts").touch()
    with pytest.raises(
        ConfigError, match=r"here \(.*\); ReleaseKit does not read build.gradle.kts \(Gradle\)"
    ) as caught:
        collect_packages({}, tmp_path, fakes.config(tmp_path).package_filter)
    assert '`maven.directories = ["build/repo"]`' in caught.value.hint
    unlisted = ["maven packages in no workspace here: a; write this"]
    with pytest.raises(ConfigError, match=r"no workspace here: a; ReleaseKit does not") as caught:
        collect_packages({}, tmp_path, fakes.config(tmp_path).package_filter, unlisted)
    assert '`maven.directories = ["build/repo"]`' in caught.value.hint
