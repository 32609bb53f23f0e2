"""What the tag of a version is called."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from releasekit.announce.tag_names import (
    is_shared,
    previous_tag,
    trouble_with_name,
)
from releasekit.git.tag_forms import tag_name
from releasekit.model import Package, PackageId

ROOT = Path("/work")


def package(name: str, version: str = "1.2.3", where: str = "packages/core") -> Package:
    directory = ROOT / where
    return Package(
        id=PackageId.parse(name),
        version=version,
        directory=directory,
        manifest=directory / "manifest",
    )


@pytest.mark.parametrize(
    ("template", "id_", "where", "name"),
    [
        ("{name}-v{version}", "npm:@acme/core", "packages/core", "@acme/core-v1.2.3"),
        ("{name}@{version}", "npm:@acme/core", "packages/core", "@acme/core@1.2.3"),
        ("{component}-v{version}", "npm:@acme/core", "packages/core", "core-v1.2.3"),
        ("{component}-v{version}", "npm:core", "packages/core", "core-v1.2.3"),
        ("{component}-v{version}", "maven:com.acme:core", "core", "core-v1.2.3"),
        ("{name}-{version}", "maven:com.acme:core", "core", "core-1.2.3"),
        ("v{version}", "pypi:core", "core", "v1.2.3"),
        ("{ecosystem}/{name}/{version}", "cargo:core", "core", "cargo/core/1.2.3"),
        ("{directory}/v{version}", "pypi:core", "packages/core", "packages/core/v1.2.3"),
        ("{directory}/v{version}", "pypi:core", ".", "v1.2.3"),
        ("{name}-v{version}", "npm:{version}", "core", "{version}-v1.2.3"),
    ],
)
def test_a_tag_is_named_after_its_package(template: str, id_: str, where: str, name: str) -> None:
    assert tag_name(template, package(id_, where=where), ROOT) == name


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{name}-v{version}", "example.com/core-v1.2.3"),
        ("{name}/{version}", "example.com/core/v1.2.3"),
    ],
)
def test_a_version_of_go_brings_no_second_v(template: str, name: str) -> None:
    module = package("go:example.com/core", "v1.2.3")
    assert tag_name(template, module, ROOT) == name
    before = name.replace("3", "2")
    assert previous_tag(template, module, ROOT, [before]) == before


def test_a_name_without_the_package_is_shared() -> None:
    assert is_shared("v{version}")
    assert is_shared("{ecosystem}-{version}")
    assert not is_shared("{name}-v{version}")
    assert not is_shared("{component}-v{version}")
    assert not is_shared("{directory}/v{version}")


@pytest.mark.parametrize(
    ("version", "tags", "previous"),
    [
        ("1.2.30", "core-v1.2.3 core-v1.2.4 core-v1.2.30 core-v1.3.0", "core-v1.2.4"),
        ("1.2.3", "core-v1.2.30 core-v1.2.3-rc.1 core-v1.2.3", "core-v1.2.3-rc.1"),
        ("1.2.3", "core-v1.2.2 core-v1.2.3-rc.1", "core-v1.2.2"),
        ("1.2.3-rc.2", "core-v1.2.2 core-v1.2.3-rc.1", "core-v1.2.3-rc.1"),
        ("10.0.0", "core-v9.0.0 core-v2.0.0", "core-v9.0.0"),
        ("2.0.0", "core-2-v1.0.0 corex-v1.0.0 xcore-v1.0.0 v1.0.0 core-vnext", ""),
        ("3.0.0", "core-v2-v1.0.0 core-v1.0.0", "core-v1.0.0"),
        ("1.0.0", "", ""),
    ],
)
def test_the_tag_before_is_that_of_the_version_before(
    version: str, tags: str, previous: str
) -> None:
    found = previous_tag("{name}-v{version}", package("npm:core", version), ROOT, tags.split())
    assert found == previous


def test_a_version_may_stand_in_a_name_twice() -> None:
    tags = ["1.0/core-1.0", "1.1/core-1.0"]
    assert (
        previous_tag("{version}/{name}-{version}", package("npm:core", "2.0"), ROOT, tags)
        == "1.0/core-1.0"
    )


REFUSED = (
    *("", "@", "-v1", "/v1", "v1/", "v1.", "a..b", "a//b", "a@{b", "v 1", "v~1", "v^1", "v:1"),
    *("v?1", "v*1", "v[1", "v\\1", "v\x7f", "v\n", ".v1", "a/.v1", "v1.lock", "v1.lock/a"),
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_git_refuses_is_refused(name: str) -> None:
    git = subprocess.run(["git", "check-ref-format", f"refs/tags/{name}"], check=False)
    assert git.returncode or name in {"@", "-v1"}
    assert trouble_with_name(name)


@pytest.mark.parametrize(
    "name", ["a" * 256, "a" * 251, "refs/v1", "0a" * 20, "v\u202e1", "v\udcff"]
)
def test_what_a_remote_refuses_is_refused(name: str) -> None:
    assert trouble_with_name(name)


@pytest.mark.parametrize(
    "name", ["v1.2.3", "@acme/core@1.2.3", "core-v1!2.0+build", "a/b/v1.0.0-rc.1", "größe-v1"]
)
def test_what_git_takes_is_no_trouble(name: str) -> None:
    subprocess.run(["git", "check-ref-format", f"refs/tags/{name}"], check=True)
    assert not trouble_with_name(name)
