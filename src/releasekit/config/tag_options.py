"""The tables `[tag]` and `[announce]`: what published versions get besides a place on their
registries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from releasekit.config import tables
from releasekit.config.tables import Option, OptionTable
from releasekit.model import PackageId

# Patterns of the only release, or those of packages by their names.
ExtraFiles = tuple[str, ...] | Mapping[str, tuple[str, ...]]
Latest = PackageId | Literal["highest", "none"]
FIELDS: Final = ("name", "component", "version", "ecosystem", "directory")
ASSETS: Final = ("checksums", "files", "provenance", "report")
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
# GitHub starts no workflow for more of them at once; a number above that is as good as all.
# https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#push
_MOST_AT_A_TIME: Final = 1_000


def _name(key: str, value: object) -> str:
    name = tables.string(key, value)
    known = ", ".join(f"{{{each}}}" for each in FIELDS)
    if set("{}") & set(_FIELD.sub("", name)):
        raise ValueError(f"Braces are those of fields here; write any of {known}.")
    found = _FIELD.findall(name)
    if unknown := [each for each in found if each not in FIELDS]:
        raise ValueError(f"It has no field {{{unknown[0]}}}; write any of {known}.")
    if name and "version" not in found:
        raise ValueError(
            f'A tag is that of a version, so write {{version}} into it: {key} = "v{{version}}".'
        )
    return name


def _extra_files(key: str, value: object) -> ExtraFiles:
    example = f'{key} = {{ "npm:@acme/app" = ["build/app-*.tar.gz"] }}'
    if not isinstance(value, dict):
        return _patterns(key, value, example)
    for owner in value:
        if not PackageId.parse(owner).name:
            raise ValueError(f"{owner!r} is no package: {example}.")
    return {owner: _patterns(key, patterns, example) for owner, patterns in value.items()}


def _patterns(key: str, value: object, example: str) -> tuple[str, ...]:
    patterns = tables.strings(key, value)
    for pattern in patterns:
        if "\\" in pattern or pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f'Write paths relative to the root, without "..": {example}.')
    return patterns


def _latest(key: str, value: object) -> Latest:
    match tables.string(key, value):
        case "highest" | "none" as word:
            return word
        case text:
            package = PackageId.parse(text)
            if not package.ecosystem or not package.name:
                raise ValueError(f'Write "highest", "none" or a package: {key} = "npm:@acme/app".')
            return package


def _at_a_time(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST_AT_A_TIME:
        raise ValueError(f"Write how many tags one push has, or 0 for all at once: {key} = 3.")
    return value


def _assets(key: str, value: object) -> tuple[str, ...]:
    names = tables.strings(key, value)
    if not set(names) <= set(ASSETS):
        known = ", ".join(f'"{each}"' for each in ASSETS)
        raise ValueError(f"Write a list of any of {known}; [] for none.")
    return tuple(dict.fromkeys(names))


class TagOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "tag"

    name: Annotated[
        str,
        Option(
            "The name of each tag, with `{version}` and any of `{name}`, `{component}`, "
            "`{ecosystem}` and `{directory}`. Without name, component and directory, packages of "
            "one version share a tag.",
            _name,
        ),
    ] = "{name}-v{version}"
    remote: Annotated[
        str, Option("The git remote that tags are pushed to.", tables.remote_name)
    ] = "origin"
    at_a_time: Annotated[int, Option("How many tags go with one push; `0`: all.", _at_a_time)] = 0


class AnnounceOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "announce"
    MAY_BE_EMPTY: ClassVar[frozenset[str]] = frozenset({"assets"})

    releases: Annotated[
        Literal["changed", "one", "none"],
        Option("A release for each tag, `one` for each version that packages share, or none."),
    ] = "changed"
    assets: Annotated[
        tuple[str, ...],
        Option("What releases hold: any of `checksums`, `files`, `provenance`, `report`.", _assets),
    ] = ("checksums", "provenance")
    extra_files: Annotated[
        ExtraFiles,
        Option(
            "Files of your own for releases, as patterns below the root: a list for the only "
            'release, or lists by package: `{ "npm:@acme/app" = ["build/app-*.tar.gz"] }`.',
            _extra_files,
        ),
    ] = ()
    draft: Annotated[
        bool, Option("Leave releases as drafts, for a later job to add to and to publish.")
    ] = False
    latest: Annotated[
        Latest,
        Option(
            "What becomes the latest release: the `highest` stable version, that of a package, "
            "such as `npm:@acme/app`, or `none`.",
            _latest,
        ),
    ] = "highest"
