"""Versions of Python packages written where they stand, and judged by uv."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from packaging.specifiers import SpecifierSet

from harness.act import UV
from releasekit.ecosystems.pypi import Options, discover
from releasekit.ecosystems.pypi.edit import edit_specifier, edit_versions
from releasekit.errors import PlanError
from releasekit.versioning.edits import Edits
from unit.pypi.test_pypi_discover import HATCHLING, project, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def edit(root: Path, **versions: str) -> set[str]:
    """The files it edits; those whose version a tag says begin with `by tag:`."""
    projects, _ = discover.read_projects(root, Options())
    edits = Edits(root)
    by_tag = edit_versions(projects, versions, edits, raise_ranges=True)
    for path, data in edits.list_changes().items():
        assert data is not None
        path.write_bytes(data)
    named = {path.relative_to(root).as_posix() for path in edits.list_changes()}
    return named | {f"by tag: {name}" for name in by_tag}


@pytest.mark.parametrize(
    ("specifier", "old", "new", "raised", "kept"),
    [
        (">=1.2,<2", "1.2.0", "1.3.0", ">=1.3,<2", ">=1.2,<2"),
        (">= 1.2 , < 2", "1.2.0", "2.0.0", ">= 2.0 , < 3", ">= 1.2 , < 3"),
        (">=1.2.0", "1.2.0", "1.2.1", ">=1.2.1", ">=1.2.0"),
        ("==1.2.0", "1.2.0", "1.3.0", "==1.3.0", "==1.3.0"),
        ("==1.2", "1.2.0", "1.2.1", "==1.2.1", "==1.2.1"),
        ("==1.2.*", "1.2.0", "1.3.0", "==1.3.*", "==1.3.*"),
        ("===1.2.0", "1.2.0", "1.3.0", "===1.3.0", "===1.3.0"),
        ("~=1.2", "1.2.0", "1.3.0", "~=1.3", "~=1.2"),
        ("~=1.2.0", "1.2.0", "1.3.0", "~=1.3.0", "~=1.3.0"),
        ("<=1.2.0", "1.2.0", "1.3.0", "<=1.3.0", "<=1.3.0"),
        ("<1.3,>=1.2", "1.2.0", "1.3.0", "<1.4,>=1.3", "<1.4,>=1.2"),
        ("<2.0.0", "1.2.0", "2.1.0", "<3.0.0", "<3.0.0"),
        (">1.0", "1.2.0", "1.3.0", ">1.0", ">1.0"),
        ("!=1.2.5,>=1.2", "1.2.0", "1.3.0", "!=1.2.5,>=1.3", "!=1.2.5,>=1.2"),
        ("<1.2", "1.2.0", "1.3.0", "<1.2", "<1.2"),  # another one is meant
        ("", "1.2.0", "1.3.0", "", ""),
        ("==1!1.2.0", "1!1.2.0", "1!1.3.0", "==1!1.3.0", "==1!1.3.0"),
        (">=1!1.2", "1!1.2.0", "1!1.3.0", ">=1!1.3", ">=1!1.2"),
        (">=1.2", "1.2.0", "1.3.0rc1", ">=1.3.0rc1", ">=1.2"),
    ],
)
def test_a_requirement_keeps_its_shape(
    specifier: str, old: str, new: str, raised: str, kept: str
) -> None:
    assert edit_specifier(specifier, old, new, raises=True) == raised
    assert edit_specifier(specifier, old, new, raises=False) == kept
    if SpecifierSet(specifier).contains(old):
        assert SpecifierSet(raised).contains(new, prereleases=True)
        assert edit_specifier(raised, new, new, raises=True) == raised


MEMBER = "[tool.uv.sources]\nacme-core = { workspace = true }\n"
WEB = f"""\
{HATCHLING}
[project]
name = "acme-web"  # the site
version = '0.3.0'
requires-python = ">=3.11"
dependencies = [
    "acme-core[fast] >=1.2,<1.3 ; python_version >= '3.9'",  # core 1.2.0
]
[project.optional-dependencies]
old = ["Acme.Core==1.2.0"]
[dependency-groups]
dev = ["acme_core ~= 1.2.0", {{ include-group = "more" }}]
more = []
{MEMBER}"""
WORKSPACE = {
    ".": '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
    "packages/core": project(
        "acme-core",
        'requires-python = ">=3.11"',
        "[project.optional-dependencies]",
        "fast = []",
        version="1.2.0",
    ),
    "packages/web": WEB,
    "packages/aside": project(
        "aside",
        'requires-python = ">=3.11"',
        'dependencies = ["acme-core>=1.2"]',
        *MEMBER.splitlines(),
        version="2.0",
    ),
}


@pytest.fixture
def offline(tmp_path: Path) -> Mapping[str, str]:
    """uv with an empty cache, and nowhere to ask."""
    return {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_OFFLINE": "1"}


def uv(root: Path, environment: Mapping[str, str], *arguments: str) -> None:
    done = subprocess.run(
        [UV, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_uv_agrees_with_the_lock_and_writes_the_same(
    tmp_path: Path, offline: Mapping[str, str]
) -> None:
    root = write(tmp_path / "w", WORKSPACE)
    uv(root, offline, "lock")
    web = (root / "packages/web/pyproject.toml").read_text()
    edited = edit(root, **{"acme-core": "1.3.0", "acme-web": "0.3.1"})
    assert edited == {
        "packages/core/pyproject.toml",
        "packages/web/pyproject.toml",
        "uv.lock",
    }
    changed = web.replace("'0.3.0'", "'0.3.1'").replace(">=1.2,<1.3 ;", ">=1.3,<1.4 ;")
    changed = changed.replace("==1.2.0", "==1.3.0").replace("~= 1.2.0", "~= 1.3.0")
    assert (root / "packages/web/pyproject.toml").read_text() == changed
    lock = (root / "uv.lock").read_bytes()
    uv(root, offline, "lock", "--check")
    (root / "uv.lock").unlink()
    uv(root, offline, "lock")
    assert (root / "uv.lock").read_bytes() == lock
    assert edit(root, **{"acme-core": "1.3.0", "acme-web": "0.3.1"}) == set()


def test_a_lock_is_brought_up_to_date_and_one_that_lacks_a_package_is_refused(
    tmp_path: Path, offline: Mapping[str, str]
) -> None:
    root = write(tmp_path / "w", {".": project("alone", 'requires-python = ">=3.11"')})
    uv(root, offline, "lock")
    (root / "pyproject.toml").write_text(
        (root / "pyproject.toml").read_text().replace("1.0", "1.1")
    )
    assert edit(root) == {"uv.lock"}
    uv(root, offline, "lock", "--check")
    (root / "uv.lock").write_text('version = 1\nrevision = 3\nrequires-python = ">=3.11"\n')
    with pytest.raises(PlanError, match=r"^uv\.lock: lacks alone$") as caught:
        edit(root, alone="1.2")
    assert caught.value.hint == "Run `uv lock`, and commit it."
    (root / "uv.lock").write_text("version = 2\n")
    with pytest.raises(PlanError, match=r"^uv\.lock: has an unknown format$"):
        edit(root, alone="1.2")


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff[project]\r\nname = "a"\r\nversion = "1.2.0" # as uv writes it\r\n',
        "[project]\nname='a'\nversion='''1.2.0'''",
        '[project]\nname = "a"\n"version" = "1.2\\u002e0"\n# version = "1.2.0"\n',
        'project.name = "a"\nproject.version="1.2.0"\n',
    ],
)
def test_everything_else_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(text.encode())
    root = tmp_path.resolve()
    assert edit(root, a="1.3.0") == {"pyproject.toml"}
    now = (tmp_path / "pyproject.toml").read_bytes().decode()
    old = "1.2\\u002e0" if "\\u002e" in text else "1.2.0"
    assert now == text.replace(old, "1.3.0", 1)
    assert edit(root, a="1.3.0") == set()


BUILDS = {
    "hatchling": ('path = "a.py"', "tool.hatch.version", '__version__ = "1.2.0"\n'),
    "setuptools.build_meta": (
        'version = { attr = "a.__version__" }',
        "tool.setuptools.dynamic",
        "__version__: str = '1.2.0'\n",
    ),
    "pdm.backend": (
        'source = "file"\npath = "a.py"',
        "tool.pdm.version",
        '__version__ = "1.2.0"\n',
    ),
    "flit_core.buildapi": ("", "tool.flit", '"""A."""\n__version__ = "1.2.0"\n'),
}


@pytest.mark.parametrize("backend", BUILDS)
def test_a_version_is_written_where_the_build_takes_it_from(tmp_path: Path, backend: str) -> None:
    lines, table, source = BUILDS[backend]
    text = (
        f'[build-system]\nrequires = ["x"]\nbuild-backend = "{backend}"\n'
        f'[project]\nname = "a"\ndynamic = ["version"]\n[{table}]\n{lines}\n'
    )
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "a.py").write_text(source)
    assert edit(tmp_path.resolve(), a="1.3.0") == {"a.py"}
    assert (tmp_path / "a.py").read_text() == source.replace("1.2.0", "1.3.0")


def test_maturin_takes_it_from_the_crate(tmp_path: Path) -> None:
    text = (
        '[build-system]\nrequires = ["maturin"]\nbuild-backend = "maturin"\n'
        '[project]\nname = "a"\ndynamic = ["version"]\n'
    )
    crate = '[workspace]\n[package]\nname = "a"\nversion = "1.2.0"\n[dependencies]\nb = "1.2.0"\n'
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "Cargo.toml").write_text(crate)
    assert edit(tmp_path.resolve(), a="1.3.0") == {"Cargo.toml"}
    assert (tmp_path / "Cargo.toml").read_text() == crate.replace("1.2.0", "1.3.0", 1)


@pytest.mark.parametrize(
    "needs", ['"hatchling", "hatch-vcs"', '"setuptools>=80", "setuptools_scm[toml]>=8"']
)
def test_a_version_that_a_tag_says_is_written_nowhere(tmp_path: Path, needs: str) -> None:
    text = f'[build-system]\nrequires = [{needs}]\n[project]\nname = "a"\ndynamic = ["version"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    assert edit(tmp_path.resolve(), a="1.3.0") == {"by tag: a"}


def test_a_version_that_a_build_computes_is_refused_with_the_cure(tmp_path: Path) -> None:
    text = (
        '[build-system]\nrequires = ["setuptools"]\n[project]\nname = "a"\ndynamic = ["version"]\n'
    )
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(PlanError, match=r"^pyproject\.toml: its version is computed by") as caught:
        edit(tmp_path.resolve(), a="1.3.0")
    assert 'version = "1.3.0"' in caught.value.hint


def test_all_requirements_that_cannot_be_edited_are_named(tmp_path: Path) -> None:
    files = {
        ".": '[tool.uv.workspace]\nmembers = ["*"]\n',
        "core": project("core", version="1.2.0"),
        "a": project("a", 'dependencies = ["core!=1.3.0,>=1"]'),
        "b": project("b", '[dependency-groups]\ndev = ["core >=1, !=1.3.*"]'),
    }
    root = write(tmp_path, files)
    with pytest.raises(PlanError) as caught:
        edit(root, core="1.3.0")
    told = [str(each) for each in (caught.value, *caught.value.others)]
    refused = "cannot admit 1.3.0 in this form"
    assert told == [
        f"a/pyproject.toml: project.dependencies: 'core!=1.3.0,>=1' {refused}",
        f"b/pyproject.toml: dependency-groups.dev: 'core >=1, !=1.3.*' {refused}",
    ]


def test_a_lock_of_another_tool_is_not_left_stale(tmp_path: Path) -> None:
    files = {
        ".": '[tool.uv.workspace]\nmembers = ["*"]\n',
        "core": project("core", version="1.2.0"),
        "a": project("a", 'dependencies = ["core==1.2.0"]'),
    }
    root = write(tmp_path, files)
    (root / "a/poetry.lock").touch()
    with pytest.raises(PlanError, match=r"^a/poetry\.lock: follows the requirements beside it"):
        edit(root, core="1.3.0")
