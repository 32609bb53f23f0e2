"""What the manifests of each ecosystem said of a version at another time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fakes import package
from releasekit.ecosystems.cargo.versioning import CargoVersioning
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.discover import PomProject
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.ecosystems.maven.versioning import MavenVersioning
from releasekit.ecosystems.npm.discover import Found
from releasekit.ecosystems.npm.versioning import NpmVersioning
from releasekit.ecosystems.pypi import PyPIOptions
from releasekit.ecosystems.pypi.versioning import PyPIVersioning
from releasekit.fields import replace
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Read = Callable[[Path], bytes | None]

ROOT = Path("/w")
of_cargo = CargoVersioning((), {}, ROOT, "auto").read_version
of_npm = NpmVersioning(Found({}, (), {}), "auto").read_version
of_pypi = PyPIVersioning({}, ROOT, PyPIOptions(), "auto").read_version


def at(ecosystem: str, name: str, manifest: str, *inherits: str) -> Package:
    path = ROOT / manifest
    return replace(
        package(name),
        id=PackageId(ecosystem, name),
        directory=path.parent,
        manifest=path,
        inherits=tuple(ROOT / each for each in inherits),
    )


def reading(files: Mapping[Path, bytes]) -> Read:
    def read(path: Path) -> bytes | None:
        return files.get(path)

    return read


CRATE = '[package]\nname = "a"\n'
SHARED = '[workspace.package]\nversion = "2.0.0"\n'
SIMPLE = [
    (of_pypi, "pypi", '[project]\nname = "A"\nversion = "1.0.0rc1"', "1.0.0rc1"),
    (of_pypi, "pypi", '[project]\nname = "a"\nversion = "v1.0-rc.1"', "1.0rc1"),
    (of_pypi, "pypi", '[project]\nname = "a"\ndynamic = ["version"]', ""),
    (of_pypi, "pypi", '[project]\nname = "b"\nversion = "1.0"', ""),
    (of_pypi, "pypi", '[project]\nname = "a"\nversion = "one"', ""),
    (of_pypi, "pypi", '[project]\nname = "a"\nversion = 1.0', ""),
    (of_pypi, "pypi", "project = 1", ""),
    (of_pypi, "pypi", "]", ""),
    (of_pypi, "pypi", '\ufeff[project]\nname = "a"\nversion = "1.0"', "1.0"),
    (of_npm, "npm", '\ufeff{"name": "a", "version": "1.0.0"}', "1.0.0"),
    (of_npm, "npm", '{"name": "b", "version": "1.0.0"}', ""),
    (of_npm, "npm", '{"name": "a", "version": 1}', ""),
    (of_npm, "npm", "[]", ""),
    (of_cargo, "cargo", f'\ufeff{CRATE}version = "1.0.0"', "1.0.0"),
    (of_cargo, "cargo", f"{CRATE}version.workspace = true", "2.0.0"),
    (of_cargo, "cargo", '[package]\nname = "b"\nversion = "1.0.0"', ""),
    (of_cargo, "cargo", "]", ""),
]


@pytest.mark.parametrize(("read_version", "ecosystem", "text", "version"), SIMPLE)
def test_what_a_manifest_said(
    read_version: Callable[[Package, Read], str], ecosystem: str, text: str, version: str
) -> None:
    found = at(ecosystem, "a", "a/manifest", *(["Cargo.toml"] if ecosystem == "cargo" else []))
    files = {ROOT / "a/manifest": text.encode(), ROOT / "Cargo.toml": SHARED.encode()}
    assert read_version(found, reading(files)) == version
    assert read_version(found, lambda _: None) == ""


DYNAMIC = '[project]\nname = "a"\ndynamic = ["version"]\n'


@pytest.mark.parametrize(
    ("told", "path", "text", "version"),
    [
        ('setuptools.dynamic]\nversion.attr = "a_b.__version__"', "a_b/__init__.py",
         'import os\n__version__ = "1.0"\n', "1.0"),
        ('setuptools.dynamic]\nversion = {attr = "a.about.VERSION"}', "src/a/about.py",
         "VERSION: str = '1.0'", "1.0"),
        ('setuptools.dynamic]\nversion.attr = "a.__version__"', "a.py",
         '__version__ = ".".join(parts)', ""),
        ('setuptools.dynamic]\nversion.file = "VERSION"', "VERSION", "1.0\n", "1.0"),
        ('setuptools.dynamic]\nversion.file = ["VERSION"]', "VERSION", "1.0\n", "1.0"),
        ('hatch.version]\npath = "src/a/__about__.py"', "src/a/__about__.py",
         '__version__ = "v1.0"', "1.0"),
        ('hatch.version]\npath = "a.py"\npattern = "x"', "a.py", '__version__ = "1.0"', ""),
        ('hatch.version]\nsource = "vcs"', "a.py", '__version__ = "1.0"', ""),
        ('hatch.version]\npath = "a.py"', "a.py", '__version__ = "\xff"', ""),
    ],
)  # fmt: skip
def test_a_version_of_python_may_be_written_in_a_file_that_the_manifest_names(
    told: str, path: str, text: str, version: str
) -> None:
    found = at("pypi", "a", "a/pyproject.toml")
    files = {
        ROOT / "a/pyproject.toml": f"{DYNAMIC}[tool.{told}\n".encode(),
        ROOT / "a" / path: text.encode("latin-1"),
    }
    assert of_pypi(found, reading(files)) == version


def test_the_root_of_a_cargo_workspace_may_be_a_crate() -> None:
    text = f"{CRATE}version.workspace = true\n{SHARED}".encode()
    assert of_cargo(at("cargo", "a", "Cargo.toml"), {ROOT / "Cargo.toml": text}.get) == "2.0.0"


def pom(artifact: str, more: str) -> str:
    model = "<modelVersion>4.0.0</modelVersion><groupId>g</groupId>"
    return f"<project>{model}<artifactId>{artifact}</artifactId>{more}</project>"


PARENT = "<parent><groupId>g</groupId><artifactId>up</artifactId><version>{}</version>{}</parent>"
UP = pom("up", "<version>${revision}</version><properties><revision>3</revision></properties>")


@pytest.mark.parametrize(
    ("text", "up", "version"),
    [
        (pom("a", "<version>1</version>"), UP, "1"),
        (pom("a", PARENT.format("2", "")), UP, "2"),
        (pom("a", PARENT.format("${revision}", "")), UP, "3"),
        (pom("a", PARENT.format("${revision}", "<relativePath>..</relativePath>")), UP, "3"),
        (pom("a", PARENT.format("${revision}", "<relativePath/>")), UP, ""),
        (pom("a", PARENT.format("${revision}", "")), pom("x", "<version>1</version>"), ""),
        (pom("a", "<version>${changelist}</version>"), UP, ""),
        (pom("b", "<version>1</version>"), UP, ""),
        ("<project", UP, ""),
    ],
)
def test_what_a_pom_said(text: str, up: str, version: str) -> None:
    today = pom("a", "<version>9</version>")
    parsed = parse_pom(parse_document(today.encode()), ROOT / "a/pom.xml")
    projects = {"g:a": PomProject(pom=parsed, top=ROOT, overrides={"changelist": "8"})}
    files = {ROOT / "a/pom.xml": text.encode(), ROOT / "pom.xml": up.encode()}
    found = at("maven", "g:a", "a/pom.xml")
    of_maven = MavenVersioning(projects, ROOT, MavenOptions(), ROOT, "auto").read_version
    assert of_maven(found, reading(files)) == version
    assert of_maven(found, lambda _: None) == ""


def test_a_pom_does_not_say_what_is_set_from_outside() -> None:
    """What stood in maven.config then is not known, and the POM has only a default."""
    parsed = parse_pom(parse_document(UP.encode()), ROOT / "pom.xml")
    projects = {"g:up": PomProject(pom=parsed, top=ROOT, overrides={"revision": "8"})}
    files = {ROOT / "pom.xml": UP.encode()}
    of_maven = MavenVersioning(projects, ROOT, MavenOptions(), ROOT, "auto").read_version
    assert of_maven(at("maven", "g:up", "pom.xml"), reading(files)) == ""
