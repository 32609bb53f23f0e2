"""What a POM says of the directories it lists as its modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.maven import Options
from releasekit.ecosystems.maven.discover import unpublishable
from releasekit.ecosystems.maven.pom import read_pom
from releasekit.ecosystems.maven.workspace import load_projects, pom_at

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


def workspace_at(directory: Path) -> Membership | None:
    path = directory / "pom.xml"
    modules = read_pom(path).modules if path.is_file() else ()
    if not modules:
        return None
    poms = [pom_at(directory / module) for module in modules]
    listed = {pom.resolve().parent for pom in poms if pom is not None}

    def standing(below: Path) -> Standing:
        return "member" if below in listed else ""

    return standing


def publishable_at(directory: Path) -> bool:
    """As its files and the parents above it have it, within the repository."""
    path = (directory / "pom.xml").resolve()
    outermost = _outermost(path.parent)
    where = path.parent.relative_to(outermost).as_posix()
    projects = load_projects(outermost, Options(reactors=(where,)))
    return any(each.pom.path == path and not unpublishable(each) for each in projects)


def _outermost(directory: Path) -> Path:
    """The highest directory of the repository that has a POM; without a repository, this one."""
    found = directory
    for above in (directory, *directory.parents):
        found = above if (above / "pom.xml").is_file() else found
        if (above / ".git").exists():
            return found
    return directory
