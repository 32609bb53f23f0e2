"""What the tag of a version is called, and which of the tags that are there came before it.

Templates are as `config.after` lets them through.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.notes.versions import is_stable, order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.model import Package

_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]")
_VERSION: Final = r"v?[0-9][0-9A-Za-z.!+_-]*"
# "core-2-v1.0.0" is a version of "core-2", and none of "core".
_ANOTHER_INSIDE: Final = re.compile(r"-v?[0-9]+\.[0-9]")
_SEMVER: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+-.*")
# A file name has 255 bytes at most, and git writes `NAME.lock` before it writes `NAME`.
_MAX_ELEMENT_BYTES: Final = 250
_MAX_BYTES: Final = 255


def is_shared(template: str) -> bool:
    """Whether packages that have the same version have one tag for all of them."""
    return not {"name", "directory"} & {*_FIELD.findall(template)}


def tag_name(template: str, package: Package, root: Path) -> str:
    """Its tag, by `template`; at the root, `{directory}/` is nothing at all. The versions of Go
    begin with the `v` that most templates have.
    """
    version = package.version
    if "v{version}" in template:
        version = version.removeprefix("v")
    return _filled(template, {**_values(package, root), "version": version})


def previous_tag(template: str, package: Package, root: Path, tags: Iterable[str]) -> str:
    """The tag of the version before, "" where there is none.

    That of a stable version is the one of the stable version before it, if there is any: whoever
    installs it comes from there, and not from a release candidate.
    """
    version = _pattern(template, package, root)
    own = order(package.version)
    earlier = [
        (found["version"], name)
        for name in tags
        if (found := version.fullmatch(name))
        and _is_version(found["version"])
        and order(found["version"]) < own
    ]
    if is_stable(package.version):
        earlier = [each for each in earlier if is_stable(each[0])] or earlier
    return max(earlier, key=lambda each: (order(each[0]), each[1]), default=("", ""))[1]


def trouble_with_name(name: str) -> str:
    """Why git or GitHub takes no such tag, as the end of a sentence; empty where they do.

    https://git-scm.com/docs/git-check-ref-format
    """
    if found := _FORBIDDEN.search(name):
        return f"has {_spelled(found[0])} in it"
    for sequence in ("..", "@{", "//"):
        if sequence in name:
            return f"has {sequence!r} in it"
    if not name or name in {"@", "HEAD"}:
        return "means something else to git" if name else "is empty"
    if name[0] in "-/" or name[-1] in "./":
        return f"starts with {name[0]!r}" if name[0] in "-/" else f"ends in {name[-1]!r}"
    for element in name.split("/"):
        if element.startswith(".") or element.endswith(".lock"):
            where = "starts with '.'" if element.startswith(".") else "ends in '.lock'"
            return f"has a part {element!r} that {where}"
    return _trouble_at_the_remote(name)


def _trouble_at_the_remote(name: str) -> str:
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        return "is no text in UTF-8"
    if len(encoded) > _MAX_BYTES or max(map(len, encoded.split(b"/"))) > _MAX_ELEMENT_BYTES:
        return "is too long"
    # https://docs.github.com/en/get-started/using-git/dealing-with-special-characters-in-branch-and-tag-names
    if name.startswith("refs/"):
        return "starts with 'refs/', which GitHub does not take"
    if re.fullmatch(r"[0-9a-fA-F]{40}", name):
        return "looks like a commit, which GitHub does not take"
    if not name.isprintable():
        return "has a character in it that is not shown"
    return ""


def _spelled(char: str) -> str:
    return "a space" if char == " " else repr(char)


def _values(package: Package, root: Path) -> dict[str, str]:
    directory = package.directory.relative_to(root).as_posix()
    return {
        "name": package.id.name.rpartition(":")[2],
        "ecosystem": package.id.ecosystem,
        "directory": "" if directory == "." else directory,
    }


def _filled(template: str, values: Mapping[str, str]) -> str:
    if not values["directory"]:
        template = template.replace("{directory}/", "")
    return _FIELD.sub(lambda field: values[field[1]], template)


def _pattern(template: str, package: Package, root: Path) -> re.Pattern[str]:
    """What matches the tags of all versions of `package`."""
    values = _values(package, root)
    # No other field holds a NUL, for it is in no manifest and no path.
    text = _filled(template, {**values, "version": "\0"})
    first, *others = map(re.escape, text.split("\0"))
    return re.compile(f"{first}(?P<version>{_VERSION})" + "(?P=version)".join(others))


def _is_version(text: str) -> bool:
    return not _ANOTHER_INSIDE.search(text) or bool(_SEMVER.fullmatch(text))
