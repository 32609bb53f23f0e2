"""The version that POMs said at another time."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING

from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pom import parse_pom
from releasekit.ecosystems.maven.workspace import MAX_PARENTS, PomProject
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.ecosystems.maven.pom import Pom
    from releasekit.model import Package

    Read = Callable[[Path], bytes | None]


def version_at(projects: Mapping[str, PomProject], package: Package, read: Read) -> str:
    """As `interface.Target` has it: of the POM, or of those that it inherits from by a relative
    path. What is set from outside the POMs counts as it is today: a version that comes from there
    is not said by any commit, so it is empty.
    """
    today = projects[package.id.name]
    try:
        pom = _pom(package.manifest, read)
        if pom is None or pom.artifact != today.pom.artifact:
            return ""
        project = _project(pom, today, read, 0)
        version = project.resolve(project.model()["version"])
    except (ValueError, ConfigError):
        return ""
    return "" if "${" in version else version


def _project(pom: Pom, today: PomProject, read: Read, depth: int) -> PomProject:
    project = PomProject(pom=pom, top=today.top, overrides={})
    wanted = pom.parent
    if wanted is not None and wanted.relative_path and depth < MAX_PARENTS:
        found = _parent(pom.path.parent / wanted.relative_path, read)
        if found is not None and found.artifact == wanted.artifact:
            above = _project(found, today, read, depth + 1)
            above.version = above.resolve(above.model()["version"])
            # Another version of it is on a registry.
            project.parent = above if above.version == above.resolve(wanted.version) else None
    inherited = project.parent.properties if project.parent else {}
    project.properties = {**inherited, **pom.properties}
    return project


def _parent(path: Path, read: Read) -> Pom | None:
    """A parent may be named by its directory or by its file."""
    place = Path(os.path.normpath(path))
    return _pom(place / "pom.xml", read) or _pom(place, read)


def _pom(path: Path, read: Read) -> Pom | None:
    data = read(path)
    return None if data is None else parse_pom(parse_document(data), path)
