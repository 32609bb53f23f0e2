from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, cast

import pytest
from packaging.version import Version

import fakes
from integration.tools import require_tool
from releasekit.ecosystems.pypi import PyPIOptions, discover
from releasekit.ecosystems.pypi.target import PyPITarget, PyPIWorkspace
from releasekit.ecosystems.pypi.versioning import move_specifier
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.model import Package, PackageId
from releasekit.problems import Problem
from versions.writing import write_versions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.interface import Target


def put(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root.resolve()


def find(root: Path, *, packages: tuple[str, ...] = (), **computed: str) -> Target:
    """What is there, with the versions that builds have `computed`."""
    options = PyPIOptions(packages=packages)
    read, twins = discover.read_projects(root, options)
    projects = {
        name: replace(each, version=each.version or computed.get(name.replace("-", "_"), ""))
        for name, each in read.items()
    }
    nothing = cast("Any", None)  # is built
    workspace = PyPIWorkspace(
        packages=tuple(discover.make_packages(projects, twins)),
        projects=projects,
        pins="auto",
        builder=nothing,
        wheels=nothing,
    )
    config = fakes.config(root)
    return PyPITarget(
        workspace, fakes.FakeRegistry(), config=config, options=options, ecosystem=nothing
    )


def project(name: str, version: str, *lines: str, backend: str = "uv_build") -> str:
    return "\n".join(
        [
            f'[build-system]\nrequires = ["{backend}"]\nbuild-backend = "{backend}"',
            f'[project]\nname = "{name}"\nversion = "{version}"\nrequires-python = ">=3.11"',
            *lines,
            "",
        ]
    )


def run_uv(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With nothing in its cache, and no network."""
    return subprocess.run(
        [require_tool("uv"), *arguments, "--offline", "--no-config", "--no-python-downloads"],
        cwd=root,
        env={"PATH": os.environ["PATH"], "UV_CACHE_DIR": str(root.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("written", "new", "moved", "raised"),
    [
        (">=1.2,<2", "1.3.0", "", ">=1.3,<2"),
        (">=1.2,<2", "1.2.1", "", ""),
        (">=1.2.0 , <2", "1.3.1", "", ">=1.3.1 , <2"),
        (">=1.2,<2", "2.0.0", ">=1.2,<3", ">=2.0,<3"),
        ("<1.3.0", "1.3.2", "<1.4.0", "<1.4.0"),
        ("<2.0.dev0,>=1", "2.1.0", "<3.0.dev0,>=1", "<3.0.dev0,>=2"),
        ("==1.2.0", "1.3.0", "==1.3.0", "==1.3.0"),
        ("== 1.2", "1.3.0", "== 1.3", "== 1.3"),
        ("==1.2", "1.2.1", "==1.2.1", "==1.2.1"),
        ("===1.2.0", "1.3.0", "===1.3.0", "===1.3.0"),
        ("==1.2.*", "1.3.0rc1", "==1.3.*", "==1.3.*"),
        ("~=1.2", "2.0.1", "~=2.0", "~=2.0"),
        ("~=1.2.0", "1.2.3", "", "~=1.2.3"),
        (" (>=1.2, <2) ", "2.0.0", " (>=1.2, <3) ", " (>=2.0, <3) "),
        (">=1.2", "1.3.0rc1", "", ">=1.3.0rc1"),
        ("~=1.2", "2rc1", "~=2.0rc1", "~=2.0rc1"),
        ("<=1.9", "2.1.3", "<=2.1.3", "<=2.1.3"),
        (">=1.2.0", "1.3", "", ">=1.3.0"),
        (">=1!1.2,<1!2", "1!2.0", ">=1!1.2,<1!3", ">=1!2.0,<1!3"),
        (">1.1,!=1.2.5", "1.3.0", "", ""),
        ("!=1.3.0", "1.3.0", "", ""),
        (">=1.2,<1.3,!=1.2.5", "2.0.0", ">=1.2,<2.1,!=1.2.5", ">=2.0,<2.1,!=1.2.5"),
        ("", "1.3.0", "", ""),
    ],
)
def test_a_specifier_keeps_its_shape(written: str, new: str, moved: str, raised: str) -> None:
    """Empty where it stays. What has moved, stays."""
    for raises, expected in ((False, moved or written), (True, raised or written)):
        found = move_specifier(written, new=Version(new), raises=raises)
        assert found == expected
        assert move_specifier(found, new=Version(new), raises=raises) == found


WORKSPACE = {
    "pyproject.toml": "# dev\n[dependency-groups]\n"
    'dev = ["acme-core==1.2.0", {include-group = "more"}]\nmore = ["acme-web", "outside~=1.5.0"]\n'
    '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
    "[tool.uv.sources]\nacme-core = {workspace = true}\nacme-web = { workspace = true }\n"
    'outside = { path = "outside", editable = true }\n',
    "packages/core/pyproject.toml": project(
        *("acme-core", "1.2.0"),
        "[project.optional-dependencies]\nfast = []",
        'all = ["Acme.Core[fast] == 1.2.0"]  # itself',
    ),
    "packages/cli/pyproject.toml": "\ufeff"
    + project(
        *("acme_cli", "0.4.1", "dependencies = [", '\t"acme-core >= 1.2,<2" , # needed'),
        '\t\'acme-web[all]>=0.3 ; os_name == "nt"\', "acme-web<0.3",\n]',
    ).replace("\n", "\r\n"),
    "packages/web/pyproject.toml": project(
        *("acme-web", "0.3.0", 'dependencies = ["acme-core>=1,<2"]\noptional-dependencies.all = []')
    ).replace('["uv_build"]', '["uv_build", "acme-core==1.2.*"]'),
    "outside/pyproject.toml": project("outside", "1.5.0", 'dependencies = ["acme-core<2"]')
    + '[tool.uv.sources]\nacme-core = { path = "../packages/core", editable = true }',
}


def test_a_workspace_and_its_lock_follow(tmp_path: Path) -> None:
    """uv writes the same lock, and finds nothing to do for ours."""
    root = put(tmp_path / "here", WORKSPACE)
    for place in (root, root / "outside"):
        done = run_uv(place, "lock")
        assert done.returncode == 0, done.stderr
    before = {path: (root / path).read_bytes().decode() for path in WORKSPACE}
    versions = {"acme-core": "2.0.0", "acme-cli": "0.5.0rc1", "outside": "1.6.1"}
    written = write_versions(root, find(root, packages=("outside",)), versions)
    changed = {
        (path, old.strip("\ufeff\r"), new.strip("\ufeff\r"))
        for path in WORKSPACE
        for old, new in zip(
            before[path].split("\n"), (root / path).read_bytes().decode().split("\n"), strict=True
        )
        if old != new
    }
    cli, core, web = (f"packages/{name}/pyproject.toml" for name in ("cli", "core", "web"))
    assert changed == {
        (cli, 'version = "0.4.1"', 'version = "0.5.0rc1"'),
        (cli, '\t"acme-core >= 1.2,<2" , # needed', '\t"acme-core >= 2.0,<3" , # needed'),
        (core, 'version = "1.2.0"', 'version = "2.0.0"'),
        (
            core,
            'all = ["Acme.Core[fast] == 1.2.0"]  # itself',
            'all = ["Acme.Core[fast] == 2.0.0"]  # itself',
        ),
        (
            web,
            'requires = ["uv_build", "acme-core==1.2.*"]',
            'requires = ["uv_build", "acme-core==2.0.*"]',
        ),
        (web, 'dependencies = ["acme-core>=1,<2"]', 'dependencies = ["acme-core>=1,<3"]'),
        ("outside/pyproject.toml", 'version = "1.5.0"', 'version = "1.6.1"'),
        (
            "outside/pyproject.toml",
            'dependencies = ["acme-core<2"]',
            'dependencies = ["acme-core<3"]',
        ),
        (
            "pyproject.toml",
            'dev = ["acme-core==1.2.0", {include-group = "more"}]',
            'dev = ["acme-core==2.0.0", {include-group = "more"}]',
        ),
        (
            "pyproject.toml",
            'more = ["acme-web", "outside~=1.5.0"]',
            'more = ["acme-web", "outside~=1.6.1"]',
        ),
    }
    assert written == {path for path, _, _ in changed} | {"uv.lock", "outside/uv.lock"}
    for place in (root, root / "outside"):
        lock = (place / "uv.lock").read_bytes()
        assert run_uv(place, "lock", "--check").returncode == 0
        assert run_uv(place, "lock").returncode == 0
        assert (place / "uv.lock").read_bytes() == lock
    assert write_versions(root, find(root, packages=("outside",)), versions) == set()


@pytest.mark.parametrize(
    ("given", "level"), [("1!1.2", "patch"), ("0.4.1rc2", "minor"), ("v1.2.0", "major")]
)
def test_a_version_is_written_as_uv_does(tmp_path: Path, given: str, level: str) -> None:
    text = project("acme", given).replace(f'"{given}"', f'  "{given}"   # now')
    ours, theirs = (put(tmp_path / it, {"pyproject.toml": text}) for it in ("ours", "theirs"))
    done = run_uv(theirs, "version", "--bump", level, "--frozen", "--short")
    assert done.returncode == 0, done.stderr
    write_versions(ours, find(ours), {"acme": done.stdout.strip()})
    assert (ours / "pyproject.toml").read_bytes() == (theirs / "pyproject.toml").read_bytes()


def test_a_requirement_on_itself_is_in_the_lock_as_in_the_manifest(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": project(
            *("acme", "1.2.0", "[project.optional-dependencies]\nfast = []"),
            'all = ["acme[fast] >=1.2,  <2"]',
        )
    }
    root = put(tmp_path / "here", files)
    assert run_uv(root, "lock").returncode == 0
    assert write_versions(root, find(root), {"acme": "2.0"}) == {"pyproject.toml", "uv.lock"}
    lock = (root / "uv.lock").read_text()
    assert 'specifier = ">=2.0,<3"' in lock
    assert run_uv(root, "lock", "--check").returncode == 0
    assert run_uv(root, "lock").returncode == 0
    assert (root / "uv.lock").read_text() == lock


def dynamic(backend: str, *lines: str) -> str:
    """A pyproject.toml that leaves the version to its backend."""
    text = project("ac-me", "1.2.0", *lines, backend=backend)
    return text.replace('version = "1.2.0"', 'dynamic = ["version"]')


@pytest.mark.parametrize(
    ("manifest", "path", "text"),
    [
        (
            dynamic("setuptools", '[tool.setuptools.dynamic]\nversion = {attr = "ac.me.VERSION"}'),
            "src/ac/me/__init__.py",
            "X = 1\r\nVERSION: Final[str] = '@' # 1.2.0\r\n",
        ),
        (
            dynamic(
                *("setuptools", '[tool.setuptools]\npackage-dir = {"" = "lib"}'),
                '[tool.setuptools.dynamic]\nversion = {attr = "acme.__version__"}',
            ),
            *("lib/acme.py", '__version__ = "@"'),
        ),
        (
            dynamic("setuptools", '[tool.setuptools.dynamic]\nversion = {file = ["VERSION"]}'),
            *("VERSION", " @\n\n"),
        ),
        (
            dynamic("hatchling", '[tool.hatch.version]\npath = "a.py"\nscheme = "standard"'),
            *("a.py", "# 1.2.0\n__version__ = 'v@'\n"),
        ),
        (
            dynamic("hatchling", "[tool.hatch.version]\npath = \"a.h\"\npattern = '(a+)+ V(.*)'"),
            *("a.h", '// since 11.2.0\n#define V "@"\n'),
        ),
        (dynamic("flit_core.buildapi"), "src/ac_me.py", '"""x"""\n__version__ = "@"\n'),
        (
            dynamic("flit_core.buildapi", '[tool.flit.module]\nname = "a.b"'),
            *("a/b/__init__.py", '__version__ = "@"\n'),
        ),
        (
            dynamic("pdm.backend", '[tool.pdm.version]\nsource = "file"\npath = "a.py"'),
            *("a.py", '__version__ = "@"  # now\n'),
        ),
        (dynamic("maturin"), "Cargo.toml", '[package]\nname = "m"\nversion = "@" # now\n'),
        (
            dynamic("maturin", '[tool.maturin]\nmanifest-path = "rs/Cargo.toml"'),
            *("rs/Cargo.toml", '[package]\nname = "m"\nversion = "@"\n'),
        ),
    ],
)
def test_the_file_that_declares_a_version_is_edited(
    tmp_path: Path, manifest: str, path: str, text: str
) -> None:
    root = put(tmp_path, {"pyproject.toml": manifest, path: text.replace("@", "1.2.0")})
    package = Package(
        id=PackageId("pypi", "ac-me"), version="", directory=root, manifest=root / "pyproject.toml"
    )
    read_version = find(root, ac_me="1.2.0").versioning.read_version
    told = read_version(package, lambda path: path.read_bytes() if path.exists() else None)
    assert told == ("" if "pattern" in manifest or "maturin" in manifest else "1.2.0")
    assert write_versions(root, find(root, ac_me="1.2.0"), {"ac-me": "1.3.0"}) == {path}
    assert (root / path).read_bytes().decode() == text.replace("@", "1.3.0")


@pytest.mark.parametrize(
    "lines",
    [
        ("hatchling", '[tool.hatch.version]\nsource = "vcs"'),
        ("setuptools_scm", ""),
        ("pdm.backend", '[tool.pdm.version]\nsource = "scm"'),
    ],
)
def test_nothing_is_written_where_the_version_comes_from_a_tag(
    tmp_path: Path, lines: tuple[str, str]
) -> None:
    root = put(tmp_path, {"pyproject.toml": dynamic(*lines)})
    assert write_versions(root, find(root, ac_me="1.2.0"), {"ac-me": "1.3.0"}) == set()


def test_poetry_declares_versions_in_a_table_of_its_own(tmp_path: Path) -> None:
    text = dynamic("poetry.core.masonry.api", "[tool.poetry]\nversion = '1.2.0'")
    root = put(tmp_path, {"pyproject.toml": text})
    write_versions(root, find(root, ac_me="1.2.0"), {"ac-me": "1.3.0"})
    assert (root / "pyproject.toml").read_text() == text.replace("1.2.0", "1.3.0")


@pytest.mark.parametrize(("place", "shared"), [("package", False), ("workspace.package", True)])
@pytest.mark.parametrize(
    ("version", "as_cargo"), [("1.3.0rc1", "1.3.0-rc.1"), ("1.3.0.dev20", "1.3.0-dev.20")]
)
def test_cargo_finds_nothing_to_lock_beside_a_wheel(
    tmp_path: Path, place: str, shared: bool, version: str, as_cargo: str
) -> None:
    root = put(
        tmp_path / "here",
        {
            "Cargo.toml": '[workspace]\nmembers = ["py", "old"]\nresolver = "2"\n'
            + ('[workspace.package]\nversion = "1.2.0"\n' if shared else ""),
            "old/Cargo.toml": '[package]\nname = "old"\nversion = "0.1.0"\n',
            "old/src/lib.rs": "",
            "py/Cargo.toml": '[package]\nname = "m"\n'
            + ("version.workspace = true\n" if shared else 'version = "1.2.0"\n'),
            "py/src/lib.rs": "",
            "py/pyproject.toml": dynamic("maturin"),
        },
    )
    cargo = [str(require_tool("cargo")), "metadata", "--offline", "--format-version=1"]
    subprocess.run(cargo, cwd=root, check=True, capture_output=True)
    found = find(root, packages=("py",), ac_me="1.2.0")
    edited = write_versions(root, found, {"ac-me": version})
    assert edited == {"Cargo.toml" if shared else "py/Cargo.toml", "Cargo.lock"}
    assert f'version = "{as_cargo}"' in (root / "Cargo.lock").read_text()
    subprocess.run([*cargo, "--locked"], cwd=root, check=True, capture_output=True)


LOCK = """\
version = 1
revision = 3

[[package]]
name = "acme-core"
version = "1.2.0"
source = {{ {core} }}

[[package]]
name = "web"
version = "0.3.0"
source = {{ editable = "." }}
dependencies = [
    {{ name = "acme-core" }},
]

[package.metadata]
requires-dist = [{{ name = "acme-core", specifier = ">=1.2,<2" }}]
"""


def test_what_a_lock_takes_from_an_index_stays_as_long_as_it_can(tmp_path: Path) -> None:
    """The index has no other version of it yet."""
    root = put(
        tmp_path,
        {
            "core/pyproject.toml": project("acme-core", "1.2.0"),
            "web/pyproject.toml": project("web", "0.3.0", 'dependencies = ["acme-core>=1.2,<2"]'),
            "web/uv.lock": LOCK.format(core='registry = "https://pypi.org/simple"'),
        },
    )
    target = find(root, packages=("*",))
    write_versions(root, target, {"acme-core": "1.3.0", "web": "0.4.0"})
    assert ">=1.2,<2" in (root / "web/pyproject.toml").read_text()
    lock = (root / "web/uv.lock").read_text()
    assert lock == LOCK.format(core='registry = "https://pypi.org/simple"').replace(
        "0.3.0", "0.4.0"
    )
    with pytest.raises(
        PlanError, match=r"web/pyproject\.toml: project\.dependencies has"
    ) as refused:
        write_versions(root, target, {"acme-core": "2.0.0"})
    assert refused.value.problem is Problem.CANNOT_WRITE
    assert "lock again" in refused.value.hint


def test_a_lock_says_what_the_manifest_of_each_package_says(tmp_path: Path) -> None:
    """Here `web` comes with sources for `acme-core`, and the lock of `web` itself has none."""
    indexed = LOCK.format(core='registry = "https://pypi.org/simple"')
    elsewhere = LOCK.format(core='editable = "core"').replace('"."', '"web"')
    elsewhere += '[x]\ny = [{ name = "web", version = "0.3.0", source = { editable = "web" } }]\n'
    lines = '[tool.uv.workspace]\nmembers = ["core"]\n'
    root = put(
        tmp_path,
        {
            "pyproject.toml": lines,
            "uv.lock": elsewhere.replace("\n", "\r\n"),
            "core/pyproject.toml": project("acme-core", "1.2.0"),
            "web/pyproject.toml": project("web", "0.3.0", 'dependencies = ["acme-core>=1.2,<2"]'),
            "web/uv.lock": indexed,
        },
    )
    write_versions(root, find(root, packages=("web",)), {"acme-core": "1.3.0", "web": "0.4.0"})
    expected = elsewhere.replace("0.3.0", "0.4.0").replace("1.2.0", "1.3.0")
    assert (root / "uv.lock").read_bytes().decode() == expected.replace("\n", "\r\n")
    assert (root / "web/uv.lock").read_text() == indexed.replace("0.3.0", "0.4.0")


def test_a_build_needs_no_version_that_is_not_there_yet(tmp_path: Path) -> None:
    """No lock says anything of builds, so that none stands against one that has to move."""
    text = project("acme", "1.2.0").replace('["uv_build"]', '["core>=1", "core<2"]')
    files = {
        "pyproject.toml": text,
        "poetry.lock": "# written by Poetry",
        "core/pyproject.toml": project("core", "1.2.0"),
    }
    root = put(tmp_path, files)
    write_versions(root, find(root, packages=("core",)), {"core": "2.0.0", "acme": "1.3.0"})
    expected = text.replace("1.2.0", "1.3.0").replace("<2", "<3")
    assert (root / "pyproject.toml").read_text() == expected


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"pyproject.toml": project("acme", "1.2.0", 'optional-dependencies.a = ["acme!=1.3"]')},
            ["pyproject.toml: project.optional-dependencies.a has 'acme!=1.3'", "acme>=1.2.0"],
        ),
        (
            {"pyproject.toml": project("acme", "1.2.0"), "uv.lock": "version = 1\n"},
            ["uv.lock: it lacks ", "Run `uv lock`, and commit it."],
        ),
        (
            {
                "pyproject.toml": project("acme", "1.2.0"),
                "uv.lock": 'version = 2\nsource = { virtual = "." }\n',
            },
            ["uv.lock: it is not in format 1", "uv lock"],
        ),
        (
            {
                "pyproject.toml": project(
                    "acme", "1.2.0", 'optional-dependencies.a = ["acme<1.3"]'
                ),
                "poetry.lock": "# written by Poetry",
            },
            ["excludes acme 1.3.0, and its lock needs an index", "lock again"],
        ),
        (
            {"pyproject.toml": dynamic("mesonpy").replace("ac-me", "acme")},
            ["project.dynamic has version, and 1.2.0 is not found", 'Write version = "1.3.0"'],
        ),
        (
            {
                "pyproject.toml": dynamic(
                    "hatchling", '[tool.hatch.version]\npath = "a"\npattern = "."'
                ).replace("ac-me", "acme"),
                "a": "1.2.0 1.2.0",
            },
            ["project.dynamic has version, and 1.2.0 is not found", "Write version"],
        ),
        (
            {
                "pyproject.toml": dynamic("maturin").replace("ac-me", "acme"),
                "Cargo.toml": '[package]\nname = "m"\nversion.workspace = true\n'
                '[workspace.package]\nversion = "1.2.0"\n',
                "Cargo.lock": '[[package]]\nname = "m"\nversion = "1.2.0"\n\n'
                '[[package]]\nname = "n"\nversion = "1.2.0"\n\n',
            },
            ["Cargo.toml: version is '1.2.0', and 1.3.0 cannot be written there for m", "project"],
        ),
        (
            {
                "pyproject.toml": dynamic("maturin").replace("ac-me", "acme"),
                "Cargo.toml": "package = {\n\n",
            },
            ["the Cargo.toml of its crate is not valid TOML", "Correct it"],
        ),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, files: Mapping[str, str], words: list[str]
) -> None:
    root = put(tmp_path, files)
    with pytest.raises(PlanError) as refused:
        write_versions(root, find(root, acme="1.2.0"), {"acme": "1.3.0"})
    assert refused.value.problem is Problem.CANNOT_WRITE
    for word, said in zip(words, (str(refused.value), refused.value.hint), strict=True):
        assert word in said
    assert {path.name: path.read_text() for path in root.iterdir()} == files


def test_what_is_meant_for_another_version_or_place_stays(tmp_path: Path) -> None:
    needs = '["core<1", "core @ https://example.com/core.whl", "core", "core>=1; os_name==\'x\'"]'
    text = project("web", "0.3.0", f"dependencies = {needs}\n[dependency-groups]\nx = [1, '?']")
    files = {"pyproject.toml": text, "core/pyproject.toml": project("core", "1.2.0")}
    root = put(tmp_path, files)
    target = find(root, packages=("core",))
    versions = {"core": "2.0.0", "web": "0.4.0"}
    assert write_versions(root, target, versions, ranges="keep") == {*files}
    assert (root / "pyproject.toml").read_text() == text.replace("0.3.0", "0.4.0")


def test_a_stable_version_keeps_no_requirement_of_a_prerelease(tmp_path: Path) -> None:
    """Installers take prereleases of what one is asked of, also later ones."""
    needs = 'dependencies = ["core>=1.3.0rc1,<2"]\n[dependency-groups]\nx = ["core>=1.2"]'
    text = project("web", "0.4.0rc1", needs)
    files = {"pyproject.toml": text, "core/pyproject.toml": project("core", "1.3.0rc2")}
    root = put(tmp_path, files)
    target = find(root, packages=("core",))
    write_versions(root, target, {"core": "1.3.0", "web": "0.4.0"}, ranges="keep")
    after = text.replace("0.4.0rc1", "0.4.0").replace("1.3.0rc1", "1.3.0")
    assert (root / "pyproject.toml").read_text() == after
