"""Small POMs on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.maven import MavenOptions, discover

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.maven.discover import PomProject
    from releasekit.model import Package


def write(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        f"<modelVersion>4.0.0</modelVersion>\n{body}\n</project>\n"
    )
    return path


def gav(artifact: str, version: str = "1.0", group: str = "g") -> str:
    return (
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    )


def modules(*names: str) -> str:
    listed = "".join(f"<module>{name}</module>" for name in names)
    return f"<packaging>pom</packaging><modules>{listed}</modules>"


def child(artifact: str, version: str = "1.0") -> str:
    return f"<parent>{gav('top', version)}</parent><artifactId>{artifact}</artifactId>"


def needs(artifact: str, version: str = "${project.version}", more: str = "") -> str:
    return f"<dependencies><dependency>{gav(artifact, version)}{more}</dependency></dependencies>"


def projects(root: Path, **options: object) -> dict[str, PomProject]:
    found = discover.load_projects(root.resolve(), MavenOptions(**options))  # type: ignore[arg-type]
    return {project.artifact: project for project in found}


def packages(root: Path, **options: object) -> dict[str, Package]:
    found = discover.make_packages({each.name: each for each in projects(root, **options).values()})
    return {package.id.name.partition(":")[2]: package for package in found}


def edges(package: Package) -> dict[str, str]:
    """Artifact to kind."""
    return {it.on.name.partition(":")[2]: str(it.kind) for it in package.dependencies}
