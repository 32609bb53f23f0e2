"""What a POM says, read without Maven: of the directories that it lists as modules, and which files
count for what is published of its package.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.interface import Composition
from releasekit.ecosystems.maven import MavenOptions
from releasekit.ecosystems.maven.discover import explain_private, find_pom, load_projects
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.maven.pom import read_pom
from releasekit.ecosystems.shared.packed import is_below, is_irrelevant
from releasekit.host.files import follow, read_file

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing
    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

_NAMES: Final = re.compile(r"[\w.-]+")
# What leads out of the directory of a POM, except to other POMs.
_OUTSIDE: Final = re.compile(
    r"<(?:module|relativePath)>[^<]*<"
    r"|(?:\$\{(?:project\.)?basedir\}/)?((?:\.\./)+[^<>${}\s,*\"']+)"
)
# Source sets of tests, benchmarks, the site and its notes on changes.
_OF_TESTS: Final = re.compile(r"(?:changes|it|jmh|site|(?:\w*[Tt])est\w*|\w+Test)/")
# Source sets of which plugins make files for a POM without a jar.
_ATTACHED: Final = re.compile(r"(?:main|assembly)/")


def workspace_at(directory: Path) -> Membership | None:
    path = directory / "pom.xml"
    # Few of a thousand POMs list modules, and to parse one takes longer than to read it.
    if not path.is_file() or "modules" not in read_loosely(path):
        return None
    modules = read_pom(path).modules
    if not modules:
        return None
    poms = [find_pom(directory / module) for module in modules]
    listed = {pom.resolve().parent for pom in poms if pom is not None}

    def standing(below: Path) -> Standing:
        return "member" if below in listed else ""

    return standing


def may_list(top: Path, place: Path, _at_any_depth: bool) -> bool:
    """A POM, or one of its modules, may have its parent there as well."""
    pending, seen = [top], set()
    while pending:
        path = find_pom(pending.pop())
        if path is None or path in seen:
            continue
        seen.add(path)
        # Few of a thousand name it or list modules, and to parse one takes longer than to read it.
        text = read_loosely(path)
        if place.name not in text and "modules" not in text:
            continue
        pom = read_pom(path)
        modules = [follow(path.parent / each) for each in pom.modules]
        parent = pom.parent.relative_path if pom.parent else ""
        named = [*modules, *([follow(path.parent / parent)] if parent else ())]
        if any(each.is_relative_to(place) for each in named):
            return True
        pending += modules
    return False


def read_loosely(path: Path) -> str:
    """Of any encoding, the names in ASCII."""
    data = read_file(path, max_bytes=MAX_BYTES)
    return data.replace(b"\0", b"").decode("utf-8", "replace")


def publishable_at(directory: Path) -> bool:
    """By its POM and the parents above it, within the repository. A snapshot counts: `version` is
    what makes a release of it.
    """
    path = (directory / "pom.xml").resolve()
    outermost = _find_outermost(path.parent)
    where = path.parent.relative_to(outermost).as_posix()
    projects = load_projects(outermost, MavenOptions(reactors=(where,)))
    return any(each.pom.path == path and not explain_private(each) for each in projects)


def _find_outermost(directory: Path) -> Path:
    """The highest directory of the repository with a POM; without a repository, this one."""
    found = directory
    for above in (directory, *directory.parents):
        found = above if (above / "pom.xml").is_file() else found
        if (above / ".git").exists():
            return found
    return directory


class MavenComposition(Composition):
    def make_filter(self, package: Package, _tracked: Collection[str]) -> Counts:
        """Sources count, and directories whose names the POM has.

        https://maven.apache.org/guides/introduction/introduction-to-the-standard-directory-layout.html
        """
        names_in_pom = set(_NAMES.findall(read_loosely(package.manifest)))
        is_pom = package.packaging == "pom"

        def counts(name: str) -> bool:
            top, _, below = name.partition("/")
            if name == package.manifest.name:
                return True
            if top == "src" and below:
                return bool(_ATTACHED.match(below) if is_pom else not _OF_TESTS.match(below))
            return not is_pom and top in names_in_pom and not is_irrelevant(name)

        return counts

    def list_outside(self, package: Package) -> Collection[Path]:
        """Directories of sources and resources, and other files.

        https://maven.apache.org/pom.html#Resources
        """
        text = read_loosely(package.manifest)
        named = {match[1] for match in _OUTSIDE.finditer(text) if match[1]} if "../" in text else ()
        paths = [package.directory / name.rstrip("/") for name in sorted(named)]
        return [path for path in paths if not is_below(path, package.directory)]
