"""Where uv takes dependencies from. Nobody else knows these sources: with one that leads nowhere, a
package would be published that depends on whatever an index has under that name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from releasekit.ecosystems.pypi import discover, manifest
from releasekit.ecosystems.shared.documents import checked_table
from releasekit.errors import ConfigError
from releasekit.host.files import exists
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi import Options
    from releasekit.ecosystems.pypi.manifest import PyProject, Sources


def check_sources(by_name: Mapping[str, PyProject], root: Path, options: Options) -> None:
    """Raises ConfigError for a source of a dependency that names no member, or no path."""
    tops = {path: _sources(path) for path in discover.top_manifests(root, options)}
    left_out: frozenset[str] | None = None
    for project in by_name.values():
        for name, path, source in () if project.unpublishable else _used(project, tops):
            if source.get("workspace") is True and name not in by_name:
                if left_out is None:
                    left_out = frozenset(_names(root, replace(options, exclude=())))
                if name not in left_out:
                    raise _stranger(name, path)
            _refuse_nowhere(name, path, source)


def _used(
    project: PyProject, tops: Mapping[Path, Sources]
) -> Iterator[tuple[str, Path, Mapping[str, object]]]:
    """The sources of what it requires, each with the file it stands in. Those of a workspace's root
    hold for its members, each until a member has its own.

    https://docs.astral.sh/uv/concepts/projects/workspaces/#workspace-sources
    """
    places = [(project.manifest, project.sources)]
    places += [(path, tops[path]) for path in tops if path.parent == project.home]
    for name in sorted({need.name for need in project.requirements}):
        for path, sources in places:
            if name in sources:
                yield from ((name, path, source) for source in sources[name])
                break


def _sources(path: Path) -> Sources:
    return manifest.uv_sources(manifest.read_pyproject(path), path)


def _names(root: Path, options: Options) -> Iterator[str]:
    """Of all members there are."""
    for path in discover.manifests_of_workspaces(root, options):
        name = checked_table(manifest.read_pyproject(path), "project", path=path).get("name")
        yield canonicalize_name(str(name))


def _stranger(name: str, path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: tool.uv.sources.{name} is {{ workspace = true }}, and no member of the workspace "
        "has that name",
        hint="Add it to tool.uv.workspace.members, or drop the source to take it from an index.",
        problem=Problem.NO_SOURCE,
    )


def _refuse_nowhere(name: str, path: Path, source: Mapping[str, object]) -> None:
    place = source.get("path")
    if isinstance(place, str) and not exists(path.parent / place):
        raise ConfigError(
            f"{path}: tool.uv.sources.{name} is {{ path = {place!r} }}, and nothing is there",
            hint="Correct the path, or drop the source to take it from an index.",
            problem=Problem.NO_SOURCE,
        )
