"""Which changed files count for a version, by what each ecosystem packs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import package
from releasekit.ecosystems.cargo.composition import CargoComposition
from releasekit.ecosystems.go.module_zip import GoComposition
from releasekit.ecosystems.maven.roots import MavenComposition
from releasekit.ecosystems.npm.composition import NpmComposition
from releasekit.ecosystems.npm.discover import Found
from releasekit.ecosystems.npm.roots import PNPM, WorkspaceFiles
from releasekit.ecosystems.pypi.composition import PyPIComposition
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

    Packs = Callable[[Package, Collection[str]], Counts]
    Outside = Callable[[Package], Collection[Path]]

cargo, go, maven = CargoComposition(), GoComposition(), MavenComposition()
npm, pypi = NpmComposition(Found({}, (), {}), (), Path("/")), PyPIComposition({}, Path("/"))


def at(root: Path, manifest: str, text: str) -> Package:
    (root / manifest).write_text(text)
    return replace(package("core"), directory=root, manifest=root / manifest)


def counted(packs: Packs, found: Package, names: str) -> str:
    tracked = names.split()
    counts = packs(found, tracked)
    return " ".join(name for name in tracked if counts(name))


def test_a_crate_counts_what_cargo_packs(tmp_path: Path) -> None:
    """R49"""
    plain = at(tmp_path, "Cargo.toml", '[package]\nname = "core"\n')
    names = "Cargo.toml src/lib.rs src/test.rs build.rs data/x.json Cargo.lock fuzz/Cargo.toml"
    names += " fuzz/run.rs tests/x.rs src/a/tests.rs benches/b.rs .rustfmt.toml CHANGELOG.md"
    kept = "Cargo.toml src/lib.rs src/test.rs build.rs data/x.json"
    assert counted(cargo.make_filter, plain, names) == kept
    assert counted(cargo.make_filter, plain, "src/main.rs Cargo.lock") == "src/main.rs Cargo.lock"
    listed = '[package]\ninclude = ["src/**/*", "*.txt", "!src/no.rs"]\nreadme = "docs/R.md"\n'
    named = at(tmp_path, "Cargo.toml", listed)
    names = "Cargo.toml src/a/b.rs src/no.rs deep/x.txt build.rs docs/R.md docs/other.md"
    kept = "Cargo.toml src/a/b.rs deep/x.txt docs/R.md"
    assert counted(cargo.make_filter, named, names) == kept
    without = at(tmp_path, "Cargo.toml", '[package]\nexclude = ["/data", "*.png"]\n')
    names = "src/lib.rs data/x.json src/data/x.json src/a.png"
    assert counted(cargo.make_filter, without, names) == "src/lib.rs src/data/x.json"


def test_a_crate_takes_what_its_workspace_leaves_out(tmp_path: Path) -> None:
    shared = tmp_path / "root.toml"
    shared.write_text('[workspace.package]\nexclude = ["/data"]\n')
    text = '[package]\nname = "core"\nexclude.workspace = true\n'
    member = replace(at(tmp_path, "Cargo.toml", text), inherits=(shared,))
    assert counted(cargo.make_filter, member, "src/lib.rs data/x.json") == "src/lib.rs"


def test_an_npm_package_counts_what_npm_packs(tmp_path: Path) -> None:
    """R49"""

    def manifest(**keys: object) -> Package:
        return at(tmp_path, "package.json", json.dumps({"name": "core", **keys}))

    names = "package.json README.md lib/a.js lib/a.test.js bin/x.js scripts/run.js .eslintrc"
    source = manifest(files=["lib/", "/data/*.json"], bin={"x": "./bin/x.js"})
    names += " data/x.json yarn.lock"
    kept = "package.json README.md lib/a.js bin/x.js data/x.json"
    assert counted(npm.make_filter, source, names) == kept
    everything = manifest()
    kept = "package.json README.md lib/a.js bin/x.js scripts/run.js data/x.json"
    assert counted(npm.make_filter, everything, names) == kept
    (tmp_path / ".npmignore").write_text("scripts\n# no\n*.json\n")
    kept = ".npmignore package.json README.md lib/a.js bin/x.js"
    assert counted(npm.make_filter, everything, f".npmignore {names}") == kept


@pytest.mark.parametrize(
    "keys",
    [
        {"files": ["dist"]},
        {"files": ["src"], "main": "dist/index.js"},
        {"files": ["src"], "exports": {".": {"types": "./dist/index.d.ts"}}},
        {"files": ["src"], "publishConfig": {"directory": "dist"}},
    ],
)
def test_what_is_built_of_a_package_may_be_made_of_all_there_is(
    tmp_path: Path, keys: Mapping[str, object]
) -> None:
    """R49"""
    built = at(tmp_path, "package.json", json.dumps({"name": "core", **keys}))
    names = "src/index.ts styles/a.css tsconfig.json vite.config.ts vitest.config.ts NOTES.md"
    names += " src/index.test.ts src/__tests__/a.ts test/a.ts CHANGELOG.md"
    kept = "src/index.ts styles/a.css tsconfig.json vite.config.ts"
    assert counted(npm.make_filter, built, names) == kept


def test_a_project_counts_what_its_wheel_is_made_of(tmp_path: Path) -> None:
    """R49"""
    names = "pyproject.toml setup.py README.md LICENSE demo/a.py demo/py.typed demo/tests/test_a.py"
    names += " extra.py scripts/x.py noxfile.py pydoc/c.yml assets/x.css docker-compose.yml uv.lock"
    flat = at(tmp_path, "pyproject.toml", '[project]\nname = "core"\n')
    kept = "pyproject.toml setup.py README.md LICENSE demo/a.py demo/py.typed extra.py"
    assert counted(pypi.make_filter, flat, names) == kept
    forced = '[project]\nname = "core"\n[tool.hatch.build.targets.wheel]\nforce-include = '
    hatch = at(tmp_path, "pyproject.toml", f'{forced}{{ "a" = "x" }}\ninclude = ["./assets/*"]\n')
    assert counted(pypi.make_filter, hatch, "assets/x.css pydoc/c.yml") == "assets/x.css"
    compiled = '[build-system]\nrequires = ["maturin"]\nbuild-backend = "maturin"\n'
    rust = at(tmp_path, "pyproject.toml", compiled)
    assert counted(pypi.make_filter, rust, "src/lib.rs Cargo.lock tests/t.py uv.lock") == (
        "src/lib.rs Cargo.lock"
    )
    hook = at(tmp_path, "pyproject.toml", "[tool.hatch.build.hooks.custom]\n")
    assert counted(pypi.make_filter, hook, "ui/package.json ui/a.ts") == "ui/package.json ui/a.ts"


@pytest.mark.parametrize(
    ("backend", "tables", "names", "kept"),
    [
        ("hatchling.build", "", "src/a/b.py dev/run.py dev/go.mod", "src/a/b.py"),
        ("uv_build", "", "src/core/b.py src/core/x.txt dev/run.py", "src/core/b.py src/core/x.txt"),
        ("setuptools.build_meta", "", "src/a/b.py dev/run.py", "src/a/b.py"),
        # What is called as the project goes first with some of them, and tables may name it.
        ("hatchling.build", "", "core/b.py src/a.py", "core/b.py src/a.py"),
        ("flit_core.buildapi", "", "core.py src/a.py", "core.py src/a.py"),
        (
            "hatchling.build",
            '[tool.hatch.build.targets.wheel]\npackages = ["src/a", "dev"]',
            "src/a/b.py dev/run.py other/x.py",
            "src/a/b.py dev/run.py",
        ),
        (
            "setuptools.build_meta",
            '[tool.setuptools]\npy-modules = ["extra"]',
            "src/a/b.py extra.py dev/run.py",
            "src/a/b.py extra.py",
        ),
        ("uv_build", '[tool.uv.build-backend]\nmodule-root = ""', "a/b.py src/c.py", ""),
        (
            "hatchling.build",
            '[tool.hatch.build]\ninclude = ["**/*.py"]',
            "src/a/b.py dev/run.py",
            "",
        ),
        # A setup.py says what it likes, and so do backends that nobody here knows.
        ("setuptools.build_meta", "", "setup.py src/a/b.py dev/run.py", ""),
        ("own_backend", "", "src/a/b.py dev/run.py", ""),
    ],
)
def test_what_lies_beside_src_is_in_no_wheel(
    tmp_path: Path, backend: str, tables: str, names: str, kept: str
) -> None:
    """R49: tools written in Python, and whatever else lies with them."""
    text = f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n'
    project = at(tmp_path, "pyproject.toml", f'{text}[project]\nname = "core"\n{tables}\n')
    assert counted(pypi.make_filter, project, names) == (kept or names)


def test_a_maven_module_counts_its_main_sources(tmp_path: Path) -> None:
    """R49"""
    text = "<project><build><resources><resource><directory>extra/</directory></resource>"
    module = at(tmp_path, "pom.xml", text)
    names = "pom.xml src/main/java/org/test/A.java src/main/docs/x src/test/java/A.java"
    names += " src/integrationTest/java/A.java src/it/x src/site/x.md extra/a.txt README.md other/x"
    kept = "pom.xml src/main/java/org/test/A.java src/main/docs/x extra/a.txt"
    assert counted(maven.make_filter, module, names) == kept
    names = "src/changes/changes.xml src/conf/x.xml"
    assert counted(maven.make_filter, module, names) == "src/conf/x.xml"


def test_a_maven_parent_counts_its_pom_and_what_assemblies_are_made_of(tmp_path: Path) -> None:
    """R49: nothing else of it is deployed."""
    text = "<project><packaging>pom</packaging><build><resources><resource>extra/</resource>"
    parent = replace(at(tmp_path, "pom.xml", text), packaging="pom")
    names = "pom.xml extra/a.txt src/conf/pmd.xml src/changes/changes.xml src/site/x.md"
    names += " src/main/assembly/dist.xml src/assembly/bin.xml src/main/resources/checks.xml"
    kept = "pom.xml src/main/assembly/dist.xml src/assembly/bin.xml src/main/resources/checks.xml"
    assert counted(maven.make_filter, parent, names) == kept


def test_a_go_module_counts_its_zip(tmp_path: Path) -> None:
    """R49"""
    module = at(tmp_path, "go.mod", "module example.com/core\n")
    names = "go.mod go.sum a.go a_test.go testing/a.go vendor/x.go testdata/x example/go.mod"
    names += " sub/go.mod sub/a.go asset.txt docs/x.md"
    assert counted(go.make_filter, module, names) == "go.mod go.sum a.go testing/a.go asset.txt"


def test_what_a_release_writes_for_other_packages_changes_none(tmp_path: Path) -> None:
    """R64: releasekit.toml has the versions of all Go modules, and lies in the zip of the root."""
    module = at(tmp_path, "go.mod", "module example.com/core\n")
    assert counted(go.make_filter, module, "a.go releasekit.toml a/releasekit.toml") == (
        "a.go a/releasekit.toml"
    )
    crate = at(tmp_path, "Cargo.toml", '[package]\nname = "core"\n')
    assert counted(cargo.make_filter, crate, "src/lib.rs releasekit.toml") == "src/lib.rs"


def outside(list_outside: Outside, root: Path, manifest: str, text: str) -> set[str]:
    home = root / "home"
    home.mkdir(exist_ok=True)
    found = at(home, manifest, text)
    return {Path(os.path.relpath(path, root)).as_posix() for path in list_outside(found)}


def test_a_crate_takes_files_of_its_workspace(tmp_path: Path) -> None:
    """R64: those that cargo copies to the top of a crate."""
    text = '[package]\nreadme = "../docs/R.md"\nlicense-file = "LICENSE"\n'
    assert outside(cargo.list_outside, tmp_path, "Cargo.toml", text) == {"docs/R.md"}
    shared = tmp_path / "Cargo.toml"
    shared.write_text('[workspace.package]\nreadme = "R.md"\nlicense-file = "L"\n')
    text = "[package]\nreadme.workspace = true\nlicense-file.workspace = true\n"
    member = replace(at(tmp_path / "home", "Cargo.toml", text), inherits=(shared,))
    assert set(cargo.list_outside(member)) == {tmp_path / "R.md", tmp_path / "L"}
    none = at(tmp_path / "home", "Cargo.toml", "[package]\nreadme = false\n")
    assert not cargo.list_outside(replace(none, inherits=(shared,)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('[project]\nreadme = "../README.md"\n', {"README.md"}),
        ('[project]\nreadme = { file = "../README.md" }\n', {"README.md"}),
        ('[tool.hatch.build.targets.wheel.force-include]\n"../a/b" = "b"\n', {"a/b"}),
        ('[tool.setuptools]\npackage-dir = { "" = "../src" }\n', {"src"}),
        ('[tool.maturin]\nmanifest-path = "../rs/Cargo.toml"\n', {"rs"}),
        ('[tool.polylith.bricks]\n"../../bases/x" = "x"\n', {"../bases/x"}),
        ('[tool.poetry]\npackages = [{ include = "x", from = "../x" }]\n', {"x"}),
        ('[tool.poetry.dependencies]\ncore = { path = "../core" }\n', set()),
        ('[tool.uv.sources]\ncore = { path = "../core" }\n', set()),
        ('[tool.hatch.version]\npath = "src/../x.py"\n', set()),
    ],
)
def test_a_python_project_takes_what_its_backend_names(
    tmp_path: Path, text: str, found: set[str]
) -> None:
    """R64: and not the directories of its dependencies."""
    assert outside(pypi.list_outside, tmp_path, "pyproject.toml", text) == found


def test_a_maven_module_takes_what_its_pom_names(tmp_path: Path) -> None:
    """R64: and no other POM."""
    pom = (
        "<project><parent><relativePath>../parent/pom.xml</relativePath></parent><modules>"
        "<module>../app</module></modules><build><resources><resource><directory>"
        "${project.basedir}/../res</directory></resource></resources><sourceDirectory>"
        "../src/java/</sourceDirectory></build></project>"
    )
    assert outside(maven.list_outside, tmp_path, "pom.xml", pom) == {"res", "src/java"}


def test_a_go_module_takes_the_licence_of_its_repository(tmp_path: Path) -> None:
    """R64: where it has none."""
    (tmp_path / ".git").mkdir()
    assert outside(go.list_outside, tmp_path, "go.mod", "module example.com/a\n") == {"LICENSE"}
    assert not go.list_outside(at(tmp_path, "go.mod", "module example.com/a\n"))
    (tmp_path / "home/LICENSE").write_text("")
    assert outside(go.list_outside, tmp_path, "go.mod", "module example.com/a\n") == set()


@pytest.mark.parametrize(
    ("keys", "follows"),
    [({}, False), ({"files": ["a.js"]}, False), ({"files": ["dist"]}, True)],
)
def test_an_npm_package_follows_links_where_it_is_built(
    tmp_path: Path, keys: dict[str, object], *, follows: bool
) -> None:
    """R64: npm packs none."""
    found = at(tmp_path, "package.json", json.dumps({"name": "core", **keys}))
    assert npm.follows_links(found, ["a.js", "package.json"]) is follows


@pytest.mark.parametrize(
    ("packs", "manifest", "text", "kept"),
    [
        (cargo.make_filter, "Cargo.toml", '[package]\nexclude = ["vendor"]\n', False),
        (cargo.make_filter, "Cargo.toml", '[package]\nexclude = ["vendor/*"]\n', False),
        (cargo.make_filter, "Cargo.toml", '[package]\nexclude = ["*.md"]\n', True),
        (cargo.make_filter, "Cargo.toml", '[package]\ninclude = ["src/**"]\n', False),
        (cargo.make_filter, "Cargo.toml", '[package]\ninclude = ["vendor/a/**/*.c"]\n', True),
        (npm.make_filter, "package.json", "{}", True),
        (npm.make_filter, "package.json", '{"files": ["a.js"]}', False),
        (npm.make_filter, "package.json", '{"files": ["vendor"]}', True),
        (npm.make_filter, "package.json", '{"files": ["a.js", "vendor/*.c"]}', True),
        (pypi.make_filter, "pyproject.toml", "", True),
        (maven.make_filter, "pom.xml", "<project><a>vendor</a></project>", True),
        (maven.make_filter, "pom.xml", "<project/>", False),
    ],
)
def test_a_directory_of_unknown_content_counts_where_a_file_in_it_could(
    tmp_path: Path, packs: Packs, manifest: str, text: str, *, kept: bool
) -> None:
    """R64: such as a submodule that is not checked out."""
    found = at(tmp_path, manifest, text)
    assert counted(packs, found, f"{manifest} a.js vendor/").endswith("vendor/") is kept
    assert "tests/" not in counted(packs, found, f"{manifest} a.js tests/data/")


@pytest.mark.parametrize(
    ("packs", "name", "text", "names", "kept"),
    [
        (
            npm.make_filter,
            "package.json",
            '{"files": ["eslint.config.js", "fixtures", "samples/*.json", ".config/", "!docs"]}',
            (
                "eslint.config.js jest.config.js fixtures/a.js fixtures/a.test.js samples/a.json"
                " samples/tests/a.json .config/x .github/x docs/a.js"
            ),
            "eslint.config.js fixtures/a.js samples/a.json .config/x",
        ),
        (
            npm.make_filter,
            "package.json",
            (
                '{"main": "./test/utils/a.js", "bin": {"x": "e2e/x.js"}, "exports": '
                '{"./p": "./prettier.config.mjs", "./d/*": "./docs/*"}}'
            ),
            (
                "test/utils/a.js test/utils/b.js test/utils/b.test.js test/c.js e2e/x.js docs/a.md"
                " prettier.config.mjs vitest.config.mjs"
            ),
            "test/utils/a.js test/utils/b.js e2e/x.js docs/a.md prettier.config.mjs",
        ),
        (
            npm.make_filter,
            "package.json",
            '{"files": ["src", "CHANGELOG.md"], "main": "src/a.js"}',
            "src/a.js src/a.spec.js src/tests/a.js src/docs/a.js docs/a.js CHANGELOG.md",
            "src/a.js src/docs/a.js",
        ),
        (
            cargo.make_filter,
            "Cargo.toml",
            '[package]\ninclude = ["src", "docs/guide.md", "tests", "examples/data.txt"]\n',
            (
                "src/lib.rs src/tests.rs docs/guide.md docs/x.md tests/a.rs tests/a.txt"
                " examples/data.txt"
            ),
            "src/lib.rs docs/guide.md examples/data.txt",
        ),
        (
            go.make_filter,
            "go.mod",
            "module example.com/core\n",
            "docs/a.go docs/a_test.go docs/a.md samples/a.go test/utils/a.go testdata/a.go",
            "docs/a.go samples/a.go test/utils/a.go",
        ),
        (
            pypi.make_filter,
            "pyproject.toml",
            '[tool.setuptools]\npackages = ["benchmarks", "docs.api"]\npy-modules = ["test_x"]\n',
            "benchmarks/a.py benchmarks/tests/a.py docs/a.py docs/api/a.py test_x.py test_y.py",
            "benchmarks/a.py docs/api/a.py test_x.py",
        ),
        (
            pypi.make_filter,
            "pyproject.toml",
            (
                '[[tool.poetry.packages]]\ninclude = "samples"\n'
                '[[tool.poetry.packages]]\ninclude = "tests"\nformat = "sdist"\n'
            ),
            "samples/a.py tests/a.py",
            "samples/a.py",
        ),
        (
            pypi.make_filter,
            "pyproject.toml",
            (
                '[tool.hatch.build.targets.wheel]\npackages = ["src/tests"]\n'
                '[tool.hatch.build.targets.sdist]\ninclude = ["docs"]\n'
            ),
            "src/tests/a.py src/tests/test_a.py docs/a.py",
            "src/tests/a.py",
        ),
    ],
)
def test_what_a_manifest_names_counts_whatever_it_is_called(
    tmp_path: Path, packs: Packs, name: str, text: str, names: str, kept: str
) -> None:
    """But for tests further down."""
    assert counted(packs, at(tmp_path, name, text), names) == kept


def test_too_many_patterns_count_everything(tmp_path: Path) -> None:
    """Each would be held against each name."""
    listed = [f"lib/{number}" for number in range(1_000)]
    text = json.dumps({"name": "core", "files": listed})
    many = at(tmp_path, "package.json", text)
    names = [f"lib/{number}" for number in range(1_000)]
    assert npm.make_filter(many, names)("other.js")
    assert not npm.make_filter(many, names[:-900])("other.md")


def told(files: Mapping[Path, str]) -> Callable[[Path], bytes | None]:
    return lambda path: files[path].encode() if path in files else None


def test_a_crate_tells_what_it_takes_from_its_workspace(tmp_path: Path) -> None:
    """R49"""
    shared = tmp_path / "root.toml"
    text = """
[package]
name = "core"
edition.workspace = true
[dependencies]
serde = { workspace = true, features = ["derive"] }
[target."cfg(unix)".build-dependencies]
cc.workspace = true
[dev-dependencies]
rand.workspace = true
"""
    member = replace(at(tmp_path, "Cargo.toml", text), inherits=(shared,))

    def taken(edition: str = "2021", serde: str = "1", cc: str = "1", rand: str = "0.9") -> str:
        root = f'[workspace.package]\nedition = "{edition}"\nversion = "{rand}"\n'
        root += f'[workspace.dependencies]\nserde = "{serde}"\ncc = "{cc}"\nrand = "{rand}"\n'
        return cargo.read_inherited(member, told({member.manifest: text, shared: root}))

    assert taken() == taken(rand="0.10") != ""
    assert len({taken(), taken("2024"), taken(serde="2"), taken(cc="2")}) == 4
    assert cargo.read_inherited(replace(member, inherits=()), told({})) == ""
    assert cargo.read_inherited(member, told({shared: "["})) == "{}"


def test_an_npm_package_tells_what_it_takes_from_catalogs(tmp_path: Path) -> None:
    """R49"""
    text = json.dumps(
        {
            "dependencies": {"a": "catalog:", "b": "catalog:old", "c": "^1"},
            "devDependencies": {"d": "catalog:"},
        }
    )
    member = at(tmp_path, "package.json", text)
    found = Found({}, (), {tmp_path: WorkspaceFiles(tmp_path, "pnpm")})
    composition = NpmComposition(found, (), tmp_path)

    def taken(a: str = "^1", b: str = "^1", d: str = "^1", manifest: str = text) -> str:
        settings = f'catalog: {{a: "{a}", d: "{d}"}}\ncatalogs: {{old: {{b: "{b}"}}}}\n'
        files = {member.manifest: manifest, tmp_path / PNPM: settings}
        return composition.read_inherited(member, told(files))

    assert taken() == taken(d="^2") != ""
    assert len({taken(), taken("^2"), taken(b="^2")}) == 3
    assert taken(manifest="{}") == taken(manifest="[") == ""


@pytest.mark.parametrize(
    ("read_offered", "name", "text", "same", "other"),
    [
        (
            npm.read_offered,
            "package.json",
            '{"name": "core", "devDependencies": {"a": "1"}, "dependencies": {"b": "1"}}',
            '{"name": "core", "dependencies": {"b": "1"}}',
            '{"name": "core", "dependencies": {"b": "2"}}',
        ),
        (
            npm.read_offered,
            "package.json",
            '{"exports": {"import": "./a", "default": "./b"}}',
            '{"exports": {"import": "./a", "default": "./b"}, "devDependencies": {"a": "1"}}',
            '{"exports": {"default": "./b", "import": "./a"}}',
        ),
        (
            pypi.read_offered,
            "pyproject.toml",
            '[project]\nname = "core"\n[dependency-groups]\ntest = ["pytest"]\n',
            '[project]\nname = "core"\n',
            '[project]\nname = "core"\ndependencies = ["httpx"]\n',
        ),
        (
            cargo.read_offered,
            "Cargo.toml",
            '[package]\nname = "core"\n[target."cfg(unix)".dev-dependencies]\na = "1"\n',
            '[package]\nname = "core"\n[target."cfg(unix)"]\n[dev-dependencies]\nb = "1"\n',
            '[package]\nname = "core"\n[target."cfg(unix)".dependencies]\na = "1"\n',
        ),
    ],
)
def test_what_only_those_who_work_on_it_need_is_no_offer(
    tmp_path: Path,
    read_offered: Callable[[Package, Callable[[Path], bytes | None]], str],
    name: str,
    text: str,
    same: str,
    other: str,
) -> None:
    found = at(tmp_path, name, text)
    said = [read_offered(found, told({found.manifest: each})) for each in (text, same, other)]
    assert said[0] == said[1] != said[2]
    assert all(said)
    assert read_offered(found, told({})) == read_offered(found, told({found.manifest: "["})) == ""
