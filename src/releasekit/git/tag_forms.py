"""How tools name the tags of versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.model import Package

# How tools name the tag of one package among several: changesets and lerna, release-plz and
# release-please, the release plugin of Maven, Go's own rule for a module below the root.
# https://github.com/changesets/changesets/blob/main/docs/command-line-options.md#git-tags
# https://release-plz.dev/docs/config#the-git_tag_name-field
# https://github.com/googleapis/release-please/blob/main/docs/manifest-releaser.md
# https://maven.apache.org/maven-release/maven-release-plugin/prepare-mojo.html#tagNameFormat
# https://go.dev/ref/mod#vcs-version
OWN_TAGS: Final = ("@", "@v", "-v", "-", "/v", "/", "_v", "_", ".v")
SHARED_TAGS: Final = ("v", "")
FIELD: Final = re.compile(r"\{([^{}]*)\}")
_ANOTHER_INSIDE: Final = re.compile(r"-v?[0-9]+\.[0-9]")
_SEMVER: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+-.*")


def list_names(package: Package, root: Path) -> list[str]:
    """As a tag may have it: whole, without its scope or group, or where it lies. No tag has a colon
    in it: git refuses that.
    """
    directory = package.directory.relative_to(root).as_posix()
    name = package.id.name
    whole = [name.replace(":", joint) for joint in (".", "/", "-")] if ":" in name else [name]
    last = re.split(r"[/:]", name)[-1]
    return list(dict.fromkeys([*whole, last, *([directory] if directory != "." else [])]))


def list_like_names(package: Package) -> list[str]:
    """As a tag may have it, and may mean another package by it: without `@`, as names of nx and of
    npm's own archives are, and with another one of `-`, `_` and `.`.
    """
    name = package.id.name
    if name.startswith("@"):
        return [name[1:], name[1:].replace("/", "-")]
    if package.id.ecosystem in {"pypi", "cargo"}:
        return [each for joint in "-_." if (each := re.sub(r"[-_.]", joint, name)) != name]
    return []


def is_version_of_another(text: str) -> bool:
    """Of what stands behind "core": "-2-v1.0.0" is a version of "core-2", and none of "core"."""
    return bool(_ANOTHER_INSIDE.search(text)) and not _SEMVER.fullmatch(text)


def tag_name(template: str, package: Package, root: Path) -> str:
    """The tag that `template` gives the version. At the root, `{directory}/` is empty. The versions
    of Go modules already begin with the `v` that most templates have.
    """
    version = package.version
    if "v{version}" in template:
        version = version.removeprefix("v")
    return fill_in(template, {**template_values(package, root), "version": version})


def template_values(package: Package, root: Path) -> dict[str, str]:
    directory = package.directory.relative_to(root).as_posix()
    return {
        "name": package.id.name.rpartition(":")[2],
        "component": package.id.name.rpartition(":")[2].rpartition("/")[2],
        "ecosystem": package.id.ecosystem,
        "directory": "" if directory == "." else directory,
    }


def fill_in(template: str, values: Mapping[str, str]) -> str:
    if not values["directory"]:
        template = template.replace("{directory}/", "")
    return FIELD.sub(lambda field: values[field[1]], template)
