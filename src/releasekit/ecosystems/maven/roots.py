"""Which directories a POM lists as modules, and whether a directory is a package to publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.maven import Options
from releasekit.ecosystems.maven.discover import find_pom, load_projects, unpublishable
from releasekit.ecosystems.maven.pom import read_pom

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


def workspace_at(directory: Path) -> Membership | None:
    path = directory / "pom.xml"
    modules = read_pom(path).modules if path.is_file() else ()
    if not modules:
        return None
    poms = [find_pom(directory / module) for module in modules]
    listed = {pom.resolve().parent for pom in poms if pom is not None}

    def standing(below: Path) -> Standing:
        return "member" if below in listed else ""

    return standing


def publishable_at(directory: Path) -> bool:
    """By its POM and the parents above it, within the repository."""
    path = (directory / "pom.xml").resolve()
    outermost = _find_outermost(path.parent)
    where = path.parent.relative_to(outermost).as_posix()
    projects = load_projects(outermost, Options(reactors=(where,)))
    return any(each.pom.path == path and not unpublishable(each) for each in projects)


def _find_outermost(directory: Path) -> Path:
    """The highest directory of the repository with a POM; without a repository, this one."""
    found = directory
    for above in (directory, *directory.parents):
        found = above if (above / "pom.xml").is_file() else found
        if (above / ".git").exists():
            return found
    return directory
