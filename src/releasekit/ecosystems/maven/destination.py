"""Which repository a package is meant for, by its POMs and the arguments of mvn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.maven import CENTRAL
from releasekit.ecosystems.maven.pom import OF_RELEASES
from releasekit.ecosystems.shared.destinations import NamedRegistry
from releasekit.errors import ConfigError, map_all
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from releasekit.ecosystems.maven.discover import PomProject

# Of Central itself, and of the servers that publish to it.
# https://central.sonatype.org/publish/publish-portal-ossrh-staging-api/
_CENTRAL: Final = ("sonatype.com", "sonatype.org", "repo.maven.apache.org", "repo1.maven.org")


def find_named_registry(project: PomProject) -> NamedRegistry | None:
    """Another one than Maven Central that mvn would deploy to; None where no file of the workspace
    names one, or one of several is Central. What an expression stands for may be unknown.
    """
    if any(holder.pom.is_for_portal for holder in project.ancestry()):
        return None
    named = _list_named(project)
    return None if any(is_central(each.url) for each in named) else next(iter(named), None)


def is_central(url: str) -> bool:
    try:
        host = httpx.URL(url).host
    except (httpx.InvalidURL, UnicodeError):
        return False
    known = (*_CENTRAL, httpx.URL(CENTRAL).host)
    return any(host == each or host.endswith(f".{each}") for each in known)


def refuse_diverted(projects: Iterable[PomProject]) -> None:
    """Raises ConfigError where a build would deploy past ReleaseKit, which says by arguments of mvn
    where to: the configuration of a plugin is stronger.
    """
    diverted = {
        holder.pom.path: holder.pom.diverted
        for project in projects
        for holder in project.ancestry()
        if holder.pom.diverted
    }

    def refuse(path: Path) -> None:
        raise ConfigError(
            f"{path}: maven-deploy-plugin is configured with {diverted[path]}, so builds would "
            "deploy there",
            hint="Remove it and set `maven-registry` to its URL; distributionManagement may name "
            "it, too.",
            problem=Problem.REGISTRY_SETTINGS,
        )

    map_all(refuse, diverted)


def _list_named(project: PomProject) -> list[NamedRegistry]:
    """The strongest, or all of those of profiles where nothing else names one."""
    for name in OF_RELEASES:
        if url := _strip_name(project.resolve(project.overrides.get(name, ""))):
            return [NamedRegistry(str(project.top), f"-D{name}", url)]
    for name in OF_RELEASES:
        if url := _strip_name(project.resolve(project.properties.get(name, ""))):
            return [NamedRegistry(_find_home(project, name), name, url)]
    for holder in project.ancestry():
        if holder.pom.goes_to:
            return [
                NamedRegistry(str(holder.pom.path), "distributionManagement", project.resolve(url))
                for url in holder.pom.goes_to
            ]
    return []


def _find_home(project: PomProject, name: str) -> str:
    homes = (each.pom.path for each in project.ancestry() if name in each.pom.properties)
    return str(next(homes, project.pom.path))


def _strip_name(written: str) -> str:
    """The URL of `id::url`, or of `id::layout::url` as older versions have it."""
    return written.rpartition("::")[2]
