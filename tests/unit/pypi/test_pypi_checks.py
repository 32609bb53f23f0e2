from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import parse_email

import distributions
import fakes
from releasekit.ecosystems.pypi import distribution
from releasekit.ecosystems.pypi.distribution import (
    check_metadata,
    find_pinned_apart,
    find_pinned_python,
    find_warnings,
    foresee_platform,
    refuse_other_python,
    refuse_unpinned,
)
from releasekit.ecosystems.pypi.manifest import parse_project, read_pyproject
from releasekit.errors import PackageError
from releasekit.fields import replace
from releasekit.problems import Problem

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata

    from releasekit.model import Artifact, Package

README = ("Description-Content-Type: text/markdown",)


def wheel(directory: Path, package: Package, tags: str, *more: str) -> Artifact:
    """Without modules; `more` are files."""
    stem = package.id.name.replace("-", "_")
    path = directory / f"{stem}-{package.version}-{tags}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        info = f"{stem}-{package.version}.dist-info"
        archive.writestr(f"{info}/METADATA", distributions.metadata(package, *README))
        for name in (*more, f"{info}/RECORD", f"{info}/WHEEL"):
            archive.writestr(name, "")
    return distributions.artifact(path)


def test_what_a_published_file_is_pinned_to_is_read_there(tmp_path: Path) -> None:
    """R49: what users of it can install no other version beside."""
    package = distributions.package()
    needs = ["a", "b==1", "c==2.0", "d<2", "e==1; extra == 'e'", "F.f==1; python_version > '3'"]
    file = distributions.wheel(tmp_path, package, requires=needs)
    versions = dict.fromkeys(["a", "b", "c", "d", "e", "f-f"], "2.0.0")
    assert find_pinned_apart([file], versions) == ["b", "f-f"]
    file.path.unlink()
    assert find_pinned_apart([file], versions) == []


def found(package: Package, *artifacts: Artifact, on_pypi: bool = False) -> dict[str, str]:
    return {
        warning.name.value: warning.message
        for warning in find_warnings(package, artifacts, on_pypi=on_pypi)
    }


@pytest.mark.parametrize(
    ("tags", "refused"),
    [
        ("cp312-cp312-linux_x86_64", True),
        ("cp312-cp312-manylinux_2_17_x86_64.linux_x86_64", True),
        ("py3-none-linux_aarch64", True),
        ("cp312-cp312-linux_armv7l", False),
        ("cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", False),
        ("cp312-cp312-musllinux_1_2_x86_64", False),
        ("cp312-cp312-macosx_11_0_arm64", False),
        ("cp312-cp312-win_amd64", False),
        ("py3-none-any", False),
    ],
)
def test_wheels_that_were_never_repaired_are_said(
    tmp_path: Path, tags: str, *, refused: bool
) -> None:
    """R49"""
    package = distributions.package()
    file = wheel(tmp_path, package, tags, "acme_core.so")
    assert ("platform-tag" in found(package, file)) is refused


LEGACY = 'requires = ["setuptools"]'


@pytest.mark.parametrize(
    ("system", "setup", "compiler"),
    [
        ('requires = ["maturin"]\nbuild-backend = "maturin"', "", "build backend maturin"),
        ('requires = []\nbuild-backend = "mesonpy"', "", "build backend mesonpy"),
        ('requires = []\nbuild-backend = "scikit_build_core.build"', "", "build backend scikit_"),
        ('requires = ["setuptools", "Cython>=3"]', "", "build requirement Cython co"),
        ('requires = ["setuptools-rust"]', "", "build requirement setuptools-rust"),
        (f"{LEGACY}\n[tool.cibuildwheel]", "", "[tool.cibuildwheel]"),
        (f"{LEGACY}\n[[tool.setuptools.ext-modules]]", "", "[tool.setuptools] ext-modules"),
        (LEGACY, "setup(\n    ext_modules=[1])", "setup.py (`ext_modules=`)"),
        (LEGACY, "from skbuild import setup", "setup.py (`from skbuild`)"),
        (LEGACY, "# ext_modules = []\nsetup()", ""),
        (LEGACY, "\0\xff", ""),
        ('requires = ["cythonize-not", "mypy-x"]', "", ""),
        (LEGACY, "", ""),
    ],
)
def test_a_wheel_for_one_machine_is_foreseen(
    tmp_path: Path, system: str, setup: str, compiler: str
) -> None:
    """R63: PyPI refuses it, and the plan says so before it is built."""
    path = tmp_path / "pyproject.toml"
    path.write_text(f'[project]\nname = "acme"\nversion = "1"\n[build-system]\n{system}\n')
    if setup:
        (tmp_path / "setup.py").write_bytes(setup.encode("latin-1"))
    said = [each.message for each in foresee_platform(parse_project(read_pyproject(path), path))]
    assert [each.startswith(f"{compiler}") for each in said] == [True] * bool(compiler)


@pytest.mark.parametrize("on_pypi", [True, False])
def test_a_file_that_is_larger_than_pypi_takes_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_pypi: bool
) -> None:
    """R49: it may have agreed to more for the project, so it is no error."""
    package = distributions.package()
    file = distributions.wheel(tmp_path, package)
    monkeypatch.setattr(distribution, "MAX_UPLOAD_BYTES", file.size)
    assert "over-limit" not in found(package, file, on_pypi=on_pypi)
    monkeypatch.setattr(distribution, "MAX_UPLOAD_BYTES", file.size - 1)
    said = found(package, file, on_pypi=on_pypi)
    assert ("over-limit" in said) is on_pypi
    assert said.get("over-limit", file.filename).startswith(file.filename)


def test_what_pypi_refuses_is_an_error_there(tmp_path: Path) -> None:
    """R49: before the source distribution is gone."""
    package = distributions.package()
    file = wheel(tmp_path, package, "cp312-cp312-linux_x86_64", "acme_core.so")
    for on_pypi, says in ((True, "PyPI refuses it"), (False, "only where the libraries")):
        (warning,) = find_warnings(package, [file], on_pypi=on_pypi)
        assert warning.error is on_pypi
        assert says in warning.message


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("src/acme_core/__init__.py", True),
        ("acme_core.py", True),
        ("tests/test_a.py", False),
        ("setup.py", False),
        ("build/lib/acme_core.py", False),
        (".venv/lib/a.py", False),
        ("packages/core/src/acme_core/__init__.py", False),
    ],
)
def test_a_wheel_without_the_modules_there_are_is_said(
    tmp_path: Path, source: str, *, missing: bool
) -> None:
    """R49: a package of requirements alone has none to begin with."""
    directory = tmp_path / "core"
    (directory / source).parent.mkdir(parents=True)
    (directory / source).write_text("")
    (directory / "packages/core").mkdir(parents=True, exist_ok=True)
    (directory / "packages/core/pyproject.toml").write_text("")
    package = replace(distributions.package(), directory=directory)
    empty = wheel(tmp_path, package, "py3-none-any")
    assert ("empty-package" in found(package, empty)) is missing
    full = wheel(tmp_path, package, "py3-none-any", "acme_core/__init__.py")
    assert "empty-package" not in found(package, full)


HEAD = "Metadata-Version: 2.4\nName: acme\nVersion: 1.0\n"
OLDER = HEAD.replace("2.4", "2.2")
DESCRIBED = "Description-Content-Type: text/markdown\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{HEAD}{DESCRIBED}\n# Acme\n", []),
        (f"{OLDER}{DESCRIBED}License-File: LICENSE\n\n# Acme\n", []),
        (f"{HEAD}{DESCRIBED}\n", [("missing-readme", "it has no description")]),
        (f"{HEAD}\nUNKNOWN\n", [("missing-readme", "it has no description")]),
        (f"{HEAD}\n# Acme\n", [("invalid-metadata", "nothing says what its description is")]),
        (
            f"{HEAD}{DESCRIBED}License-Expression: No Such License\n\n# Acme\n",
            [("invalid-metadata", "its metadata is invalid: 'No Such License'")],
        ),
        (
            f"{HEAD}{DESCRIBED}Summary: a\nSummary: b\n\n# Acme\n",
            [("invalid-metadata", "its metadata has summary twice")],
        ),
        (
            f"{HEAD}Description-Content-Type: text/html\n\n# Acme\n",
            [("invalid-metadata", "its metadata is invalid: ")],
        ),
    ],
)
def test_metadata_as_twine_checks_it(text: str, expected: list[tuple[str, str]]) -> None:
    """R49"""
    warnings = list(check_metadata(*parse_email(text)))
    assert [each.name.value for each in warnings] == [name for name, _ in expected]
    for warning, (_, message) in zip(warnings, expected, strict=True):
        assert warning.message.startswith(message)


def test_a_wheel_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    package = distributions.package()
    file = wheel(tmp_path, package, "py3-none-any")
    file.path.write_bytes(b"PK")
    with pytest.raises(PackageError, match="none-any"):
        found(package, distributions.artifact(file.path))


@pytest.mark.parametrize("other", ["other", "acme-core 6.6.6", ""])
def test_metadata_of_another_package_is_refused(tmp_path: Path, other: str) -> None:
    """R17, R40: an index would file it under that name."""
    package = distributions.package()
    name, _, version = other.partition(" ")
    info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version or package.version}\n"
    artifact = distributions.sdist(tmp_path, package, info=info.encode())
    with pytest.raises(PackageError, match="its metadata is that of"):
        found(package, artifact)


@pytest.mark.parametrize(
    ("requirement", "anywhere", "on_pypi"),
    [
        ("core @ file:///tmp/x/core", "exists only on this machine", "exists only on this machine"),
        ("core @ ../core", "exists only on this machine", "exists only on this machine"),
        ("core @ git+file:///srv/core", "exists only on this machine", "exists only on"),
        ("core @ {env:CORE}", "exists only on this machine", "exists only on this machine"),
        (
            "x @ git+https://x.y/z ; extra == 'all'",
            "",
            "a direct reference, which pypi.org refuses",
        ),
        ("x @ https://x.y/x-1-py3-none-any.whl", "", "a direct reference"),
        ("x @ git+ssh://git@x.y/z", "", "a direct reference"),
        ("core>=1", "", ""),
    ],
)
def test_what_no_index_gives_is_refused(
    tmp_path: Path, requirement: str, anywhere: str, on_pypi: str
) -> None:
    """R63: read from what was built, in each file."""
    package = distributions.package()
    file = distributions.wheel(tmp_path, package, requires=[requirement])
    for is_pypi, says in ((False, anywhere), (True, on_pypi)):
        if not says:
            found(package, file, on_pypi=is_pypi)
            continue
        with pytest.raises(PackageError, match=re.escape(says)) as caught:
            found(package, file, on_pypi=is_pypi)
        assert caught.value.problem is Problem.UNRESOLVABLE
        assert str(caught.value).startswith(f"{file.filename} requires ")


@pytest.mark.parametrize(
    ("requirement", "refused"),
    [
        *(("core", True), ("Core>=1", True), ("core==1.2.*", True), ("core; extra == 'x'", True)),
        *(("core==1.2", False), ("core===1.2.0", False), ("core>=2", False), ("other", False)),
    ],
)
def test_what_was_to_be_pinned_is_pinned_in_what_was_built(
    requirement: str, *, refused: bool
) -> None:
    """R63: what excludes the version here means another one."""
    package = distributions.package()
    raw, _ = parse_email(distributions.metadata(package, f"Requires-Dist: {requirement}"))
    artifact = fakes.artifact(Path("acme-1.0.whl"), b"")
    if not refused:
        refuse_unpinned(artifact, raw, {"core": "1.2.0"})
        return
    with pytest.raises(PackageError, match=r"`pin: exact` requires [Cc]ore==1.2.0"):
        refuse_unpinned(artifact, raw, {"core": "1.2.0"})


@pytest.mark.parametrize(
    ("tags", "wanted", "pinned", "said"),
    [
        ("cp311-cp311-linux_x86_64", ">=3.12", "", "requires Python >=3.12: nobody could install"),
        ("cp311-cp311-linux_x86_64", "<3.11.0", "", "requires Python <3.11.0: nobody could"),
        ("pp310-pypy310_pp73-any", ">=3.11", "", "is for Python 3.10 alone"),
        ("cp310.cp311-none-any", ">=3.12", "", "is for Python 3.10 and 3.11 alone"),
        ("cp311-cp311-linux_x86_64", ">=3.11.7", "", ""),
        ("cp311-cp311-linux_x86_64", "", "", ""),
        ("cp311-cp311-linux_x86_64", "not a range", "", ""),
        ("cp310.cp311-none-any", ">=3.11", "", ""),
        ("cp39-abi3-linux_x86_64", ">=3.12", "3.13", ""),
        ("py3-none-any", ">=3.12", "3.13", ""),
        ("py311-none-any", ">=3.12", "3.13", ""),
        ("cp311-cp311-linux_x86_64", ">=3.9", "3.12", ".python-version names 3.12"),
        ("cp311-cp311-linux_x86_64", ">=3.9", "3.11", ""),
    ],
)
def test_a_wheel_fits_the_python_that_its_metadata_and_uv_mean(
    tmp_path: Path, tags: str, wanted: str, pinned: str, said: str
) -> None:
    """R63: what ran the build had another Python than users may have."""
    artifact = wheel(tmp_path, distributions.package(), tags)
    raw: RawMetadata = {"requires_python": wanted}
    if not said:
        refuse_other_python(artifact, raw, pinned)
        return
    with pytest.raises(PackageError, match=re.escape(said)):
        refuse_other_python(artifact, raw, pinned)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3.12\n", "3.12"),
        ("# the newest: 3.14\n\ncpython-3.12.1-linux\n3.11\n", "3.12"),
        ("3\n", ""),
        ("venv-of-mine\n", ""),
    ],
)
def test_a_file_pins_the_python_of_what_is_below_it(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / ".python-version").write_text("3.9")
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    assert not find_pinned_python(root / "a" / "b", root)
    (root / ".python-version").write_text(text)
    assert find_pinned_python(root / "a" / "b", root) == found
    (root / "a" / ".python-version").write_text("3.13")
    assert find_pinned_python(root / "a" / "b", root) == "3.13"
