"""What tags are called: by one template, and never as git would refuse."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Final

from releasekit.notes.versions import order

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.model import Package

FIELDS: Final = ("name", "version", "ecosystem", "directory")
_MAX_BYTES: Final = 200
# https://git-scm.com/docs/git-check-ref-format
_NEVER: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_shared(template: str) -> bool:
    """Whether packages of one version have one tag."""
    return not {"name", "directory"} & {field for _, field, _, _ in Formatter().parse(template)}


def tag_name(template: str, package: Package, root: Path) -> str:
    """Of Maven's names, the artifact's: no tag can have a colon."""
    return template.format(**_fields(package, root), version=package.version)


def _fields(package: Package, root: Path) -> dict[str, str]:
    directory = package.directory.relative_to(root).as_posix()
    return {
        "name": package.id.name.rpartition(":")[2],
        "ecosystem": package.id.ecosystem,
        "directory": "" if directory == "." else directory,
    }


def trouble_with_name(name: str) -> str:
    """Why git would have no tag of that name, as the end of a sentence; empty if it would.

    https://git-scm.com/docs/git-check-ref-format
    """
    if len(name.encode()) > _MAX_BYTES:
        return f"git keeps tags as files, whose names have an end: at most {_MAX_BYTES} bytes here"
    if found := _NEVER.search(name):
        return f"no tag may have {found[0]!r} in it"
    if name.startswith("-"):
        return "no tag may begin with '-'"
    for part in name.split("/"):
        if not part:
            return "no tag may begin or end with '/'"
        if part.startswith(".") or part.endswith((".", ".lock")):
            return f"no part of a tag may be {part!r}"
    return "no tag may be '@'" if name == "@" else ""


def previous_tag(template: str, package: Package, root: Path, tags: Iterable[str]) -> str:
    """The tag of the highest version of the package below its own; empty where there is none. That
    of a stable version is a stable one.
    """
    mark = "\x00"
    head, _, tail = template.format(**_fields(package, root), version=mark).partition(mark)
    ours = order(package.version)
    found = []
    for tag in tags:
        if not (tag.startswith(head) and tag.endswith(tail) and len(tag) > len(head + tail)):
            continue
        version = tag[len(head) : len(tag) - len(tail)]
        theirs = order(version)
        if theirs is not None and ours is not None and theirs < ours:
            if ours.is_stable and not theirs.is_stable:
                continue
            found.append((theirs, tag))
    return max(found)[1] if found else ""
