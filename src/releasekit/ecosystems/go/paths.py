"""Module paths, versions and file names: which are allowed, and how tags and proxies spell them.

https://go.dev/ref/mod#module-path, https://go.dev/ref/mod#versions and
https://pkg.go.dev/golang.org/x/mod/module
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from pathlib import PurePosixPath
from typing import Final

from releasekit.ecosystems.shared.semver import Version
from releasekit.text.semver import BUILD, NUMBER, PRE

_ELEMENT: Final = re.compile(r"[A-Za-z0-9._~-]+")
_HOST: Final = re.compile(r"[a-z0-9.-]+")
_SUFFIX: Final = re.compile(r"(?P<prefix>.*)/(?P<major>v[0-9.]+)")
_GOPKG_IN: Final = re.compile(r"gopkg\.in/.*\.v(?P<major>0|[1-9][0-9]*)(?:-unstable)?")
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?", re.IGNORECASE)
# A path may have none of the short names of Windows, such as `longpa~1`.
_SHORT: Final = re.compile(r"[^.]*~[0-9]+(?:\..*)?")
# https://pkg.go.dev/golang.org/x/mod/semver: what is missing is zero.
_SEMVER: Final = re.compile(
    rf"v(?P<major>{NUMBER})(?:\.{NUMBER}(?:\.{NUMBER}(?:-{PRE})?(?:\+(?P<build>{BUILD}))?)?)?"
)
_PUNCTUATION: Final = frozenset("!#$%&()+,-.=@[]^_{}~ ")
# https://go.dev/ref/mod#pseudo-versions
_PSEUDO: Final = re.compile(r".*[.-](?:[0-9]+\.)*[0-9]{14}-[0-9A-Fa-f]{12}")
# Of patterns: an end of a range, and what stands for a character or for more.
_END: Final = r"(?:\\.|[^\]\\-])"
_ATOM: Final = re.compile(rf"\[\^?+(?:{_END}(?:-{_END})?)+\]|\\.|[^\[\\]", re.DOTALL)
_GLOB: Final = re.compile(rf"(?>(?:{_ATOM.pattern})*)", re.DOTALL)
_RANGE: Final = re.compile(rf"({_END})(?:-({_END}))?", re.DOTALL)
_NONE: Final = Version((-1, 0, 0))


def parse_version(version: str) -> Version:
    """For sorting and comparing, by precedence; anything but a version comes first."""
    try:
        return Version.parse(version.removeprefix("v")) if version.startswith("v") else _NONE
    except ValueError:
        return _NONE


def is_private(path: str, patterns: str) -> bool:
    """Whether GOPRIVATE, or a list like it, names a module or a directory above it.

    https://pkg.go.dev/golang.org/x/mod/module#MatchPrefixPatterns
    """
    elements = path.split("/")
    for glob in patterns.split(","):
        named = glob.removesuffix("/")
        count = named.count("/") + 1
        if named and count <= len(elements):
            with contextlib.suppress(ValueError):  # the go command leaves it out
                if re.fullmatch(_translate(named), "/".join(elements[:count])):
                    return True
    return False


def _translate(glob: str) -> str:
    """A regular expression for a pattern of Go, in which only ranges match a slash, and what a star
    has passed is never tried again. Raises ValueError for one that is malformed.

    https://pkg.go.dev/path#Match
    """
    if not _GLOB.fullmatch(glob):
        raise ValueError(f"{glob!r} is no pattern")
    chunks = [""]
    for atom in _ATOM.findall(glob):
        if atom == "*":
            chunks.append("")
        elif atom == "?":
            chunks[-1] += "[^/]"
        elif len(atom) > 2:
            inside = atom[1:-1].removeprefix("^")
            ends = [(low[-1], high[-1:] or low[-1]) for low, high in _RANGE.findall(inside)]
            ranges = "".join(f"{re.escape(a)}-{re.escape(b)}" for a, b in ends if a <= b)
            either = f"[{ranges}]" if ranges else "(?!)"
            chunks[-1] += f"(?!{either})(?s:.)" if atom.startswith("[^") else either
        else:
            chunks[-1] += re.escape(atom[-1])
    first, *middle = chunks
    last = f"[^/]*{middle.pop()}" if middle else ""
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle) + last


def is_release_version(version: str) -> bool:
    """Whether a tag may have this version: no build metadata, no pseudo-version."""
    parsed = parse_version(version)
    return parsed is not _NONE and not parsed.build and _PSEUDO.fullmatch(version) is None


def split_major(path: str) -> tuple[str, str]:
    """The path without its major version suffix, and that suffix: "", "v2", "v3"…

    https://go.dev/ref/mod#major-version-suffixes
    """
    match = _SUFFIX.fullmatch(path)
    if match and not path.startswith("gopkg.in/"):
        return match["prefix"], match["major"]
    return path, ""


def with_major(path: str, major: int) -> str:
    """The path that the module has in a major version; paths of gopkg.in have other forms."""
    prefix = split_major(path)[0]
    return f"{prefix}/v{major}" if major >= 2 else prefix


def trouble_with_path(path: str) -> str:
    """Why no module could be required by this path; empty if one could."""
    elements = path.split("/")
    if "." not in elements[0]:
        return (
            f"the first element of its module path {path!r} has no dot, so the go command cannot "
            "fetch it"
        )
    if not _HOST.fullmatch(elements[0]) or path.startswith("-"):
        return f"its module path {path!r} does not start with a host name"
    for element in elements:
        if not _ELEMENT.fullmatch(element) or element[0] == "." or element[-1] == ".":
            return f"its module path {path!r} has an element {element!r} that Go does not allow"
        if _RESERVED.fullmatch(element):
            return f"its module path {path!r} has an element that Windows reserves, {element!r}"
        if _SHORT.fullmatch(element):
            return (
                f"its module path {path!r} has an element that ends in `~` and digits, {element!r}"
            )
    if path.startswith("gopkg.in/") and not _GOPKG_IN.fullmatch(path):
        example = "such as `.v3` in gopkg.in/yaml.v3"
        return f"its module path {path!r} does not end in a major version, {example}"
    suffix = split_major(path)[1]
    if suffix and not re.fullmatch(r"v[1-9][0-9]*", suffix):
        return f"its module path {path!r} ends in {suffix!r}, which is not a major version"
    if suffix == "v1":
        return f"its module path {path!r} ends in /v1, which Go never uses"
    return ""


def trouble_with_version(path: str, version: str) -> str:
    """What to write instead if path and version do not fit together; empty if they do."""
    if not is_release_version(version):
        return f"{version!r} cannot be the version of a tag; write one like v1.2.3 or v1.2.3-rc.1"
    major = parse_version(version).release[0]
    if gopkg := _GOPKG_IN.fullmatch(path):
        if gopkg["major"] == str(major):
            return ""
        return f"{version} does not belong to {path}; write a version of v{gopkg['major']}"
    fitting, suffix = with_major(path, major), split_major(path)[1]
    if path == fitting:
        return ""
    instead = f"a version of {suffix}" if suffix else "a version of v0 or v1"
    return f"{version} does not belong to {path}; write {instead}, or `module {fitting}` in go.mod"


def trouble_with_requirement(path: str, version: str) -> str:
    """What to write instead of a requirement that go refuses to read; empty if it does not.

    https://pkg.go.dev/golang.org/x/mod/module#CheckPathMajor
    """
    found = _SEMVER.fullmatch(version)
    if found is None:
        finding = f"To find the version that {version} stands for, run `go get {path}@{version}`."
        return f"Write a version such as v1.2.3. {finding}"
    gopkg = _GOPKG_IN.fullmatch(path)
    # Early versions of go took such pseudo-versions for those of v1.
    if gopkg and gopkg["major"] == "1" and version.startswith("v0.0.0-"):
        return ""
    prefix, suffix = split_major(path)
    wanted = gopkg["major"] if gopkg else suffix.removeprefix("v")
    if found["major"] == wanted or (not wanted and found["major"] in {"0", "1"}):
        return ""
    if not wanted and found["build"] == "incompatible":
        return ""
    if wanted:
        return f"Write a v{wanted} version: {version} does not match the major version of {path}."
    major = f"{prefix}/v{found['major']}"
    return (
        f"Write {major} {version}, or {path} {version}+incompatible if that version has no go.mod."
    )


def find_first(path: str) -> str:
    """The first version that a module of this path can have, without its `v`."""
    gopkg = _GOPKG_IN.fullmatch(path)
    major = gopkg["major"] if gopkg else split_major(path)[1].removeprefix("v")
    return f"{major}.0.0" if major.strip("0") else "0.1.0"


def tag_prefix(path: str, directory: PurePosixPath) -> str:
    """The prefix of the version in the tags of a module: "", or its directory and a slash.

    `directory` is relative to the root of the repository. The tag leaves out a directory that is
    named after the major version. https://go.dev/ref/mod#vcs-version
    """
    suffix = split_major(path)[1]
    if suffix and directory.name == suffix:
        directory = directory.parent
    return "" if directory == PurePosixPath() else f"{directory}/"


def is_at(path: str, directory: PurePosixPath) -> bool:
    """Whether the go command looks for a module of this path in this directory."""
    base = split_major(path)[0]
    where = tag_prefix(path, directory).rstrip("/")
    return not where or base.endswith(f"/{where}")


def escape(text: str) -> str:
    """A path or version as proxies spell it. https://go.dev/ref/mod#goproxy-protocol"""
    return re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", text)


def trouble_with_file(name: str) -> str:
    """Why a module cannot hold a file of this name; empty when it can.

    https://pkg.go.dev/golang.org/x/mod/module#CheckFilePath
    """
    for element in name.split("/"):
        if not element or not element.strip("."):
            return f"invalid path element {element!r}"
        if element.endswith("."):
            return "trailing dot in path element"
        for character in element:
            if not _is_allowed(character):
                return f"invalid char {character!r}"
        if _RESERVED.fullmatch(element):
            return f"{element!r} is reserved on Windows"
    return ""


def _is_allowed(character: str) -> bool:
    if character.isascii():
        return character.isalnum() or character in _PUNCTUATION
    return unicodedata.category(character).startswith("L")
