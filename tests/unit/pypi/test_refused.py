"""R63: what PyPI refuses is known before anything is sent. What PyPI's own code says of thousands
of these is compared by `make peers`.
"""

from __future__ import annotations

import asyncio
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING, Any, cast

import httpx
import pytest
from packaging.metadata import RawMetadata, parse_email

import distributions
import fakes
import registries
from releasekit.ecosystems.pypi import PyPIOptions, discover
from releasekit.ecosystems.pypi.distribution import check_declared, find_warnings
from releasekit.ecosystems.pypi.manifest import parse_project, read_pyproject
from releasekit.ecosystems.pypi.refused import (
    find_refused,
    find_refused_content,
    find_refused_name,
    is_platform,
    is_prohibited,
    read_declared,
)
from releasekit.ecosystems.pypi.target import PyPITarget, PyPIWorkspace

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import PackageWarning

KNOWN = frozenset({"Programming Language :: Python"})
BASE = "Metadata-Version: 2.4\nName: Acme.core\nVersion: 1.0\n"


def refused(lines: str) -> list[str]:
    raw, _ = parse_email(f"{BASE}{lines}\n")
    return [*find_refused(raw, KNOWN)]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("Summary: " + "a" * 512, ""),
        ("Summary: " + "a" * 513, "a summary of 513 characters"),
        ("Author-Email: A B <a.b+c@example.org>", ""),
        ("Author-Email: A B <>", ""),
        ("Author-Email: A B <müller@exämple.de>", ""),
        ("Author-Email: A B <a>", "'a' as the email address of its author"),
        ("Maintainer-Email: a@localhost", "of its maintainer"),
        # PyPI looks at none of several, whatever made them so.
        ("Maintainer-Email: a@localhost, b@acme.org", ""),
        ("Author-Email: Doe, Jane <jane@acme.org>", ""),
        ("Author-Email: a@" + "(" * 2_000, ""),
        # Its parser fails at a domain in brackets, and then there is no address.
        ("Author-Email: a@[127.0.0.1]", ""),
        ("Author-Email: a@[127.0.0.1]]", ""),
        ("Maintainer-Email: a@acme.local", "of its maintainer"),
        ("Maintainer-Email: a..b@acme.org", "of its maintainer"),
        ("Maintainer-Email: a@10.0.0.1", "of its maintainer"),
        ("Classifier: Programming Language :: Python", ""),
        ("Classifier: Programming Language :: Pythn", "unknown or deprecated"),
        ("Classifier: Private :: Do Not Upload", "unknown or deprecated"),
        ("Home-Page: https://example.org/a b", ""),
        ("Home-Page: example.org", "not an http or https URL"),
        ("Project-URL: Source, https://example.org:8080/", ""),
        ("Project-URL: Source, https://example.org:80800/", "not an http or https URL"),
        ("Project-URL: Source, git+https://example.org", "not an http or https URL"),
        ("Project-URL: Source, ", "not an http or https URL"),
        ("Project-URL: , https://example.org", "without a label"),
        (f"Project-URL: {'a' * 33}, https://example.org", "the limit is 32"),
        ("Provides-Dist: acme", ""),
        ("Provides-Dist: acme @ https://example.org", "not a valid project name"),
        ("Obsoletes-Dist: acme (dog)", "not a valid project name"),
        ("License: MIT\nLicense-Expression: MIT", "both a License and"),
    ],
)
def test_metadata_that_pypi_refuses_are_named(lines: str, says: str) -> None:
    """R63"""
    assert [says in each for each in refused(lines)] == [True] * bool(says)


def test_without_a_list_of_classifiers_none_is_judged() -> None:
    """R68"""
    raw, _ = parse_email(f"{BASE}Classifier: Topic :: New\n")
    assert [*find_refused(raw)] == []


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", ""),
        ('description = "two\\nlines"', ""),
        (f'description = "{"a" * 513}"', "summary"),
        ('authors = [{name = "A"}, {email = "a.example.org"}]', "a.example.org"),
        ('classifiers = ["Topic :: Nothing"]', "Topic :: Nothing"),
        ('urls.Source = "ssh://git@example.org/acme"', "Source"),
        ('urls." Source" = " https://example.org/acme"', ""),
        ('license = "Proprietary"', ""),
        ('readme = {file = "README", content-type = "text/html"}', "text/html"),
        ('description = 1\nauthors = "A"\nurls = 1\nreadme = 1', ""),
    ],
)
def test_the_plan_names_what_the_manifest_has_that_pypi_refuses(
    tmp_path: Path, lines: str, says: str
) -> None:
    """R63: as an error, which no level in releasekit.toml makes less of."""
    path = tmp_path / "pyproject.toml"
    path.write_text(
        f'[project]\nname = "acme"\nversion = "1"\n{lines}\n[build-system]\nrequires=[]'
    )
    project = parse_project(read_pyproject(path), path)
    found = [*check_declared(project, KNOWN)]
    assert [says in each.message for each in found] == [True] * bool(says)
    assert all(each.error and str(path) in each.message for each in found)


def test_what_a_build_hook_tells_is_left_to_the_built_files() -> None:
    """R68"""
    assert read_declared({"name": "acme", "dynamic": ["version", "classifiers"]}) == {
        "metadata_version": "2.4",
        "version": "0",
        "name": "acme",
    }


@pytest.mark.parametrize(
    ("filename", "says"),
    [
        ("acme_core-1.0.tar.gz", ""),
        ("acme_core-1.0-py3-none-any.whl", ""),
        ("acme_core-1.0-1-py3-none-any.whl", ""),
        ("acme-core-1.0.tar.gz", "is not named acme_core-1.0.tar.gz"),
        ("acme.core-1.0.tar.gz", "is not named acme_core-1.0.tar.gz"),
        ("acme_core-1.0.0.tar.gz", "is not named acme_core-1.0.tar.gz"),
        ("Acme_core-1.0-py3-none-any.whl", "does not begin with acme_core-"),
        ("acme.core-1.0-py3-none-any.whl", "does not begin with acme_core-"),
        ("acme_core-1.1-py3-none-any.whl", "the version 1.0"),
        ("acme_core-1.0-x-py3-none-any.whl", "a valid wheel file name"),
        ("acme_core-1.0-py3.py3-" + "a." * 200 + "a-any.x.whl", ""),
        ("acme_core-1.0-" + "-".join(["a." * 200 + "a"] * 3) + ".whl", "more than 10000 tags"),
    ],
)
def test_names_of_files_that_pypi_refuses_are_said(filename: str, says: str) -> None:
    """R63, PEP 625 and PEP 427"""
    raw = cast("RawMetadata", {"name": "Acme.core", "version": "1.0"})
    why = find_refused_name(filename, raw)
    assert says in why
    assert bool(says) is bool(why)


def zipped(**files: str | bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"acme-1.0.dist-info/{name}", content)
    return file


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, ""),
        ({"RECORD": b"\xff"}, "unreadable acme-1.0.dist-info/RECORD"),
        ({"entry_points.txt": "[console_scripts]\nacme.a-b = a:b\n[other]\na/b = c\n"}, ""),
        ({"entry_points.txt": "[gui_scripts]\n../acme = a:b\n"}, "the script name '../acme'"),
        ({"entry_points.txt": "[console_scripts]\nacme: b\n"}, "entry_points.txt that cannot be"),
        ({"entry_points.txt": b"\xff"}, "entry_points.txt that cannot be"),
    ],
)
def test_what_a_wheel_holds_that_pypi_refuses_is_said(
    files: dict[str, str | bytes], says: str
) -> None:
    """R63"""
    whole: dict[str, str | bytes] = {"METADATA": "", "RECORD": "", "WHEEL": "", **files}
    raw = cast("RawMetadata", {"name": "acme", "version": "1.0"})
    why = find_refused_content(zipped(**whole), "acme-1.0-py3-none-any.whl", raw)
    assert says in why
    assert bool(says) is bool(why)


@pytest.mark.parametrize("missing", ["METADATA", "RECORD", "WHEEL"])
def test_a_wheel_without_its_own_files_is_refused(missing: str) -> None:
    """R63"""
    file = zipped(**{each: "" for each in ("METADATA", "RECORD", "WHEEL") if each != missing})
    raw = cast("RawMetadata", {"name": "acme", "version": "1.0"})
    why = find_refused_content(file, "acme-1.0-py3-none-any.whl", raw)
    assert why == f"lacks acme-1.0.dist-info/{missing}"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["acme-1.0/PKG-INFO", "acme-1.0/LICENSE"], ""),
        (["acme-1.0/PKG-INFO"], "acme-1.0/LICENSE"),
        (["acme-1.0/PKG-INFO", "acme-1.0/LICENSE", "other/a"], "single top-level directory"),
        (["acme-1.0/LICENSE", "acme-1.0/a/PKG-INFO"], "single top-level directory"),
        ([], "single top-level directory"),
    ],
)
def test_what_an_sdist_lacks_is_said(names: list[str], says: str) -> None:
    """R63, PEP 639"""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    raw = {"name": "acme", "version": "1.0", "license_files": ["LICENSE"]}
    why = find_refused_content(file, "acme-1.0.tar.gz", cast("RawMetadata", raw))
    assert says in why
    assert bool(says) is bool(why)


def test_only_pypi_s_rules_make_errors_of_it(tmp_path: Path) -> None:
    """R63: other indexes take it."""
    package = distributions.package()
    file = distributions.sdist(tmp_path, package)
    renamed = distributions.artifact(file.path.rename(tmp_path / "acme-core-1.0.0.tar.gz"))
    wrong = distributions.metadata(package, "Description-Content-Type: text/html")
    other = distributions.sdist(tmp_path, package, info=wrong)
    for artifact, says in ((renamed, "is not named"), (other, "text/html")):
        assert not any(each.error for each in find_warnings(package, [artifact], on_pypi=False))
        errors = [each for each in find_warnings(package, [artifact], on_pypi=True) if each.error]
        assert [says in each.message for each in errors] == [True]


@pytest.mark.parametrize(
    ("tag", "taken"),
    [
        ("any", True),
        ("manylinux_2_28_riscv64", True),
        ("macosx_10_9_universal2", True),
        ("macosx_26_0_arm64", True),
        ("macosx_11_1_arm64", False),
        ("macosx_16_0_arm64", False),
        ("manylinux2014_riscv64", False),
        ("musllinux_1_2_ppc64", False),
        ("win_x86", False),
        ("anything", False),
    ],
)
def test_platforms_are_those_that_pypi_takes(tag: str, *, taken: bool) -> None:
    """R63"""
    assert is_platform(tag) is taken


@pytest.mark.parametrize("name", ["json", "http-client", "xml-etree-elementtree", "parser", "uu"])
def test_no_project_has_the_name_of_a_module_of_python(name: str) -> None:
    """R63: of this Python or of another one."""
    assert is_prohibited(name)
    assert not is_prohibited(f"acme-{name}")


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("Programming Language :: Python", ["Topic :: Nothing"]),
        ("a page of something else", ["did not say which classifiers it takes"]),
    ],
)
def test_the_plan_asks_pypi_for_its_classifiers(
    tmp_path: Path, listed: str, says: list[str]
) -> None:
    """R63, R68: before anything is built; without an answer, that is said."""
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[project]\nname = "acme"\nversion = "1"\nclassifiers = ["Topic :: Nothing"]\n'
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    )
    projects = {"acme": parse_project(read_pyproject(path), path)}
    (package,) = discover.make_packages(projects)
    nothing: Any = None
    workspace = PyPIWorkspace(
        packages=(package,), projects=projects, pins="auto", builder=nothing, wheels=nothing
    )
    answer = httpx.MockTransport(lambda _: httpx.Response(200, text=listed))

    async def find() -> list[PackageWarning]:
        place = "https://upload.pypi.org/legacy/"
        async with registries.opened(place, {}, transport=answer) as registry:
            target = PyPITarget(
                workspace,
                registry,
                config=fakes.config(tmp_path),
                options=PyPIOptions(),
                ecosystem=nothing,
            )
            return await target.find_warnings(package, ())

    found = asyncio.run(find())
    assert [text in each.message for text, each in zip(says, found, strict=True)] == [True]
    assert [each.error for each in found] == ["Nothing" in says[0]]
