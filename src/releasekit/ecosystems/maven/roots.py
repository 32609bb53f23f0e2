"""What POMs say, read without Maven: of the directories that one lists as modules, of a package at
another commit, and which changed files count for it.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import Options
from releasekit.ecosystems.maven.discover import (
    MAX_PARENTS,
    PomProject,
    explain_private,
    find_pom,
    is_named,
    load_projects,
)
from releasekit.ecosystems.maven.document import MAX_BYTES, parse_document
from releasekit.ecosystems.maven.pom import parse_pom, read_pom
from releasekit.ecosystems.shared.packed import is_below, is_beside
from releasekit.errors import ConfigError
from releasekit.host.files import follow, read_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from releasekit.ecosystems.interface import Membership, Read, Standing
    from releasekit.ecosystems.maven.pom import Pom
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
    if not path.is_file() or "modules" not in _read_loosely(path):
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
        text = _read_loosely(path)
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


def _read_loosely(path: Path) -> str:
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
    projects = load_projects(outermost, Options(reactors=(where,)))
    return any(each.pom.path == path and not explain_private(each) for each in projects)


def _find_outermost(directory: Path) -> Path:
    """The highest directory of the repository with a POM; without a repository, this one."""
    found = directory
    for above in (directory, *directory.parents):
        found = above if (above / "pom.xml").is_file() else found
        if (above / ".git").exists():
            return found
    return directory


def version_at(projects: Mapping[str, PomProject], package: Package, read: Read) -> str:
    """Of the POM, or of those that it inherits from by a relative path. Empty for a version that is
    set from outside of the POMs: no commit has it.
    """
    today = projects[package.id.name]
    try:
        pom = _read_pom(package.manifest, read)
        if pom is None or pom.artifact != today.pom.artifact:
            return ""
        project = _make_project(pom, today, read)
        version = project.resolve(project.model()["version"])
    except (ValueError, ConfigError):
        return ""
    return "" if "${" in version else version


def _make_project(pom: Pom, today: PomProject, read: Read, depth: int = 0) -> PomProject:
    project = PomProject(pom=pom, top=today.top, overrides={})
    wanted = pom.parent
    if wanted is not None and wanted.relative_path and depth < MAX_PARENTS:
        # It may name the directory or the file.
        place = Path(os.path.normpath(pom.path.parent / wanted.relative_path))
        found = _read_pom(place / "pom.xml", read) or _read_pom(place, read)
        if found is not None and found.artifact == wanted.artifact:
            above = _make_project(found, today, read, depth + 1)
            above.version = above.resolve(above.model()["version"])
            # A registry has any other version.
            project.parent = above if is_named(wanted, above) else None
    inherited = project.parent.properties if project.parent else {}
    project.properties = {
        name: text
        for name, text in {**inherited, **pom.properties}.items()
        if name not in today.overrides
    }
    return project


def _read_pom(path: Path, read: Read) -> Pom | None:
    data = read(path)
    return None if data is None else parse_pom(parse_document(data), path)


def packs(package: Package, _tracked: Collection[str]) -> Counts:
    """Sources count, and directories whose names the POM has.

    https://maven.apache.org/guides/introduction/introduction-to-the-standard-directory-layout.html
    """
    names_in_pom = set(_NAMES.findall(_read_loosely(package.manifest)))
    is_pom = package.packaging == "pom"

    def counts(name: str) -> bool:
        top, _, below = name.partition("/")
        if name == package.manifest.name:
            return True
        if top == "src" and below:
            return bool(_ATTACHED.match(below) if is_pom else not _OF_TESTS.match(below))
        return not is_pom and top in names_in_pom and not is_beside(name)

    return counts


def list_outside(package: Package) -> Collection[Path]:
    """As `interface.Target` has it: directories of sources and resources, and other files.

    https://maven.apache.org/pom.html#Resources
    """
    text = _read_loosely(package.manifest)
    named = {match[1] for match in _OUTSIDE.finditer(text) if match[1]} if "../" in text else ()
    paths = [package.directory / name.rstrip("/") for name in sorted(named)]
    return [path for path in paths if not is_below(path, package.directory)]
