"""Which Maven packages a workspace holds and how they depend on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import versions
from releasekit.ecosystems.shared.packages import edge_meant
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.maven.pom import Reference, Use
    from releasekit.ecosystems.maven.workspace import PomProject

ECOSYSTEM: Final = "maven"
# What gives a reference its version where it names none.
_MANAGED: Final[Mapping[Use, Use]] = {"dependency": "managed", "plugin": "managed plugin"}
_STRENGTH: Final = (DependencyKind.ORDER, DependencyKind.OPTIONAL, DependencyKind.RUNTIME)


def packages(by_name: Mapping[str, PomProject], twins: Sequence[PomProject] = ()) -> list[Package]:
    """The projects as packages with their edges to one another."""
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.pom.path.parent,
            manifest=project.pom.path,
            dependencies=tuple(
                edge_meant(
                    edge,
                    project,
                    by_name,
                    twins,
                    home=lambda each: each.top,
                    private=unpublishable,
                )
                for edge in dependencies(project, by_name)
            ),
            elsewhere=elsewhere(project, by_name),
            unpublishable=unpublishable(project),
            packaging=project.packaging,
        )
        for project in by_name.values()
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
    """Whether Maven would take the reactor's version: where nothing is asked for, or a range that
    holds it, or the very one. https://maven.apache.org/guides/mini/guide-multiple-modules.html
    """
    version = _asked_for(reference, project, target)
    if not version or version == target.version or "${" in version:
        return True
    try:
        return versions.is_range(version) and versions.contains(version, target.version)
    except ValueError:
        return True  # what is no range is told of when the POM is pinned


def _asked_for(reference: Reference, project: PomProject, target: PomProject) -> str:
    """Empty where nothing in the workspace says a version."""
    version = project.resolve(reference.version)
    if not version and reference.use in _MANAGED:
        version = _managed(project, target, _MANAGED[reference.use])
    return version


def _managed(project: PomProject, target: PomProject, use: Use) -> str:
    """The version that the workspace's dependencyManagement or pluginManagement gives; empty when
    it gives none.
    """
    for holder in project.ancestry():
        for reference in holder.pom.references:
            if reference.use == use and (
                project.resolve(reference.group),
                project.resolve(reference.artifact),
            ) == (target.group, target.artifact):
                return project.resolve(reference.version)
    return ""


def dependencies(project: PomProject, by_name: Mapping[str, PomProject]) -> tuple[Dependency, ...]:
    """A dependency is an edge, a parent is, and so is an imported BOM.

    What a BOM lists goes out before the BOM, and what a build uses before what uses it, wherever
    that is possible: most parents manage the versions of their own children. Maven too lets the
    uses of a plugin wait in second place:
    https://github.com/apache/maven/blob/maven-3.8.7/maven-core/src/main/java/org/apache/maven/project/ProjectSorter.java
    """
    edges: dict[str, Dependency] = {}
    if project.parent is not None and project.parent.name in by_name:
        edges[project.parent.name] = _edge(
            project.parent, project.parent.version, DependencyKind.RUNTIME
        )
    for reference, target in _references(project, by_name):
        if reference.use in {"managed", "plugin"}:
            kind = DependencyKind.ORDER
        else:
            kind = DependencyKind.RUNTIME if reference.needed else DependencyKind.OPTIONAL
        known = edges.get(target.name)
        if known is None or _STRENGTH.index(kind) > _STRENGTH.index(known.kind):
            edges[target.name] = _edge(target, reference.version, kind)
    return tuple(edges.values())


def elsewhere(project: PomProject, by_name: Mapping[str, PomProject]) -> tuple[Dependency, ...]:
    """What its users get in another version than the workspace has."""
    return tuple(
        dict.fromkeys(
            _edge(target, _asked_for(reference, project, target), DependencyKind.RUNTIME)
            for reference, target in _references(project, by_name, inside=False)
            if reference.needed
        )
    )


def _references(
    project: PomProject, by_name: Mapping[str, PomProject], *, inside: bool = True
) -> Iterator[tuple[Reference, PomProject]]:
    for reference in project.pom.references:
        name = f"{project.resolve(reference.group)}:{project.resolve(reference.artifact)}"
        target = by_name.get(name)
        if target is None or target is project or reference.use == "managed plugin":
            continue
        if selected(reference, project, target) is inside:
            yield reference, target


def _edge(target: PomProject, requirement: str, kind: DependencyKind) -> Dependency:
    return Dependency(
        on=PackageId(ECOSYSTEM, target.name),
        kind=kind,
        requirement=requirement,
        soft=kind is DependencyKind.ORDER,
    )
