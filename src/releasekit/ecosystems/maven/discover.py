"""Which Maven packages a workspace holds and how they depend on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import versions
from releasekit.graph import without_cycles
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.maven.pom import Reference
    from releasekit.ecosystems.maven.workspace import PomProject

ECOSYSTEM: Final = "maven"


def packages(projects: Sequence[PomProject]) -> list[Package]:
    """The projects as packages with their edges to one another."""
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.pom.path.parent,
            manifest=project.pom.path,
            dependencies=edges,
            unpublishable=unpublishable(project),
            packaging=project.packaging,
        )
        for project, edges in zip(projects, edges_of(projects), strict=True)
    ]


def unpublishable(project: PomProject) -> str:
    """Why it never leaves the repository; empty when it does."""
    if versions.is_snapshot(project.version):
        return f"its version {project.version} is a snapshot, which is no release"
    for each in project.ancestry():
        if each.pom.skip and (each is project or each.pom.skip_inherited):
            if project.resolve(each.pom.skip) == "true":
                return "maven-deploy-plugin is configured to skip it"
            return ""
    if project.resolve("${maven.deploy.skip}") == "true":
        return "maven.deploy.skip is true"
    return ""


def selected(reference: Reference, project: PomProject, target: PomProject) -> bool:
    """Whether Maven would take the reactor's version: any where a range or nothing is asked for,
    else the very one. https://maven.apache.org/guides/mini/guide-multiple-modules.html
    """
    version = project.resolve(reference.version)
    if not version and reference.use == "dependency":
        version = _managed(project, target.group, target.artifact)
    return not version or versions.is_range(version) or version == target.version or "${" in version


def _managed(project: PomProject, group: str, artifact: str) -> str:
    """The version that the workspace's dependencyManagement gives; empty when it gives none."""
    for holder in project.ancestry():
        for reference in holder.pom.references:
            if reference.use == "managed" and (
                project.resolve(reference.group),
                project.resolve(reference.artifact),
            ) == (group, artifact):
                return project.resolve(reference.version)
    return ""


def edges_of(projects: Sequence[PomProject]) -> list[tuple[Dependency, ...]]:
    """Of each project: a dependency is an edge, a parent is, and so is an imported BOM.

    What a BOM lists goes out before the BOM, and what a build uses before what uses it, wherever
    that is possible: most parents manage the versions of their own children. Maven too lets the
    uses of a plugin wait in second place:
    https://github.com/apache/maven/blob/maven-3.8.7/maven-core/src/main/java/org/apache/maven/project/ProjectSorter.java
    """
    by_name = {project.name: project for project in projects}
    edges = {project.name: _firm(project, by_name) for project in projects}
    loose: dict[tuple[str, str], Dependency] = {}
    for project in projects:
        for reference, target in _references(project, by_name):
            if reference.use in {"managed", "plugin"} and target.name not in edges[project.name]:
                edge = _edge(target, reference.version, needed=False)
                loose.setdefault((project.name, target.name), edge)
    for name, target_name in without_cycles(edges, loose):
        edges[name][target_name] = loose[name, target_name]
    return [tuple(edges[project.name].values()) for project in projects]


def _firm(project: PomProject, by_name: Mapping[str, PomProject]) -> dict[str, Dependency]:
    found: dict[str, Dependency] = {}
    if project.parent is not None and project.parent.name in by_name:
        found[project.parent.name] = _edge(project.parent, project.parent.version, needed=True)
    for reference, target in _references(project, by_name):
        if reference.use in {"dependency", "import"}:
            known = found.get(target.name)
            if known is None or known.kind is DependencyKind.OPTIONAL:
                found[target.name] = _edge(target, reference.version, needed=reference.needed)
    return found


def _references(
    project: PomProject, by_name: Mapping[str, PomProject]
) -> Iterator[tuple[Reference, PomProject]]:
    for reference in project.pom.references:
        name = f"{project.resolve(reference.group)}:{project.resolve(reference.artifact)}"
        target = by_name.get(name)
        if target is not None and target is not project and selected(reference, project, target):
            yield reference, target


def _edge(target: PomProject, requirement: str, *, needed: bool) -> Dependency:
    return Dependency(
        on=PackageId(ECOSYSTEM, target.name),
        kind=DependencyKind.RUNTIME if needed else DependencyKind.OPTIONAL,
        requirement=requirement,
    )
