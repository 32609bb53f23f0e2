"""Which Python packages a workspace holds and how they depend on one another."""

from __future__ import annotations

import configparser
import contextlib
import json
import os.path
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.destination import UvSettings, find_named_registry
from releasekit.ecosystems.pypi.manifest import ECOSYSTEM, MANIFEST, UnreadSetting, is_exact
from releasekit.ecosystems.pypi.roots import (
    find_manifests,
    find_named_manifests,
    find_top_manifests,
    find_workspace_manifests,
)
from releasekit.ecosystems.shared.documents import checked_table, table_in, text_in
from releasekit.ecosystems.shared.packages import edge_meant, unique_by_name
from releasekit.errors import ConfigError, ManifestError, PlanError, map_all
from releasekit.fields import replace
from releasekit.graph import reachable
from releasekit.host.files import exists, inside, read_text
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem
from releasekit.text.toml_value import show_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from releasekit.ecosystems.pypi import PyPIOptions
    from releasekit.ecosystems.pypi.manifest import DeclaredRequirement, PyProject, Sources


def read_projects(
    root: Path,
    options: PyPIOptions,
    brought: AbstractSet[str] = frozenset(),
    *,
    is_set: bool = False,
    has_index: bool = False,
) -> tuple[dict[str, PyProject], list[PyProject]]:
    """Every project of the workspace, by name in order, and private ones whose name another has;
    raises ConfigError when two that are published share one. Files of those `brought` were built
    elsewhere. Where a registry `is_set`, no file is asked for one, and where the run `has_index`
    for build requirements, none is asked for theirs.

    The root's own project, the members of its uv workspace and of those that `options.workspaces`
    names, and what `options.packages` names.
    """
    find_settings = cache(partial(_find_uv_settings, root))
    limits = cache(
        lambda directory: manifest.parse_limits(*find_settings(directory), has_index=has_index)
    )
    homes = find_workspace_manifests(root, options)
    found = find_manifests(root, options)
    named = find_named_manifests(root, options)

    def read_project(path: Path) -> PyProject | None:
        document = manifest.read_pyproject(path)
        if not manifest.is_managed(document, path):
            return None
        if not manifest.is_project(document):
            raise ManifestError(
                f"{path} has no [project] table", hint="Add one, or exclude the directory."
            )
        own = canonicalize_name(text_in(table_in(document, "project"), "name"))
        is_wanted = path in named or own in brought
        project = manifest.parse_project(document, path, is_wanted=is_wanted)
        if path in named and project.unpublishable == manifest.OF_POETRY:
            place = path.parent.relative_to(root).as_posix()
            raise ManifestError(
                f"releasekit.toml: pypi.packages names {place!r}, but {project.unpublishable}",
                hint="Do that, or remove the entry.",
            )
        if project.unpublishable in {manifest.APPLICATION, manifest.UNBUILT}:
            place = json.dumps(path.parent.relative_to(root).as_posix())
            reason = f"{project.unpublishable}; `packages = [{place}]` below [pypi] publishes it"
            project = replace(project, unpublishable=reason)
        home = homes.get(path, path.parent)
        settings = find_settings(home)
        project = replace(
            project,
            home=found[path],
            limits=limits(home),
            config_settings=manifest.read_config_settings(*settings),
            unread=manifest.find_unread(*settings, name=project.name)
            | _find_version_tag(document, project),
        )
        if is_set:
            return project
        goes_to = find_named_registry(document, path, settings, home, root)
        return replace(project, goes_to=goes_to)

    return unique_by_name(
        [project for project in map_all(read_project, found) if project],
        cure="exclude its directory",
        private=lambda project: project.unpublishable,
    )


def _find_version_tag(
    document: Mapping[str, object], project: PyProject
) -> dict[str, UnreadSetting]:
    """What setuptools adds to the version that the manifest has.
    https://setuptools.pypa.io/en/latest/userguide/distribution.html
    """
    is_static = project.version and "version" not in project.dynamic
    if not (is_static and project.build_system.backend.startswith("setuptools.")):
        return {}
    distutils = table_in(table_in(document, "tool"), "distutils")
    path = project.manifest.with_name("setup.cfg")
    settings = configparser.RawConfigParser()
    # What cannot be read fails the build.
    with contextlib.suppress(ConfigError, configparser.Error):
        if exists(path):
            settings.read_string(read_text(path, max_bytes=manifest.MAX_BYTES))
    for where, table in (
        (f"{project.manifest}: tool.distutils.egg_info", table_in(distutils, "egg_info")),
        (f"{project.manifest}: tool.distutils.egg-info", table_in(distutils, "egg-info")),
        (f"{path}: egg_info", settings["egg_info"] if settings.has_section("egg_info") else {}),
    ):
        for key, value in table.items():
            name, text = key.replace("-", "_"), str(value)
            if (name == "tag_build" and text) or (
                name == "tag_date" and text.lower() not in {"0", "false", "f", "n", "no", "off", ""}
            ):
                what = f"{where}.{key} is {show_toml(value)}, which setuptools adds to the version"
                cure = "Remove it, or write the whole version into project.version."
                return {"": UnreadSetting(f"{what} {project.version} that is planned", cure)}
    return {}


def _find_uv_settings(root: Path, directory: Path) -> UvSettings:
    """As uv finds them: in the root of a workspace, else in the nearest directory. A uv.toml hides
    the `tool.uv` of a pyproject.toml beside it.
    https://docs.astral.sh/uv/concepts/configuration-files/
    """
    for each in (directory, *directory.parents):
        if not each.is_relative_to(root):
            break
        path = each / "uv.toml"
        if path.is_file():
            document = manifest.read_uv_settings(inside(root, path, where=str(path)))
            return UvSettings(document, path, "")
        path = each / MANIFEST
        document = manifest.read_pyproject(path) if path.is_file() else {}
        if "uv" in checked_table(document, "tool", path=path):
            settings = checked_table(document, "tool", "uv", path=path)
            return UvSettings(settings, path, "tool.uv.")
    return UvSettings({}, directory / MANIFEST, "tool.uv.")


def resolve_sources(
    by_name: Mapping[str, PyProject], root: Path, options: PyPIOptions
) -> dict[str, PyProject]:
    """The projects with the sources of their build requirements that ReleaseKit does not take them
    from, as `unread`.

    Raises ConfigError for a `tool.uv.sources` of a dependency that names no member, or no path:
    only uv reads these sources. With one that leads nowhere, the published package would depend on
    even if an index has that name.
    """
    tops = {
        path: manifest.read_uv_sources(manifest.read_pyproject(path), path)
        for path in find_top_manifests(root, options)
    }
    unread = {path: _find_unread_sources(tops[path], path, by_name) for path in tops}
    read_members = cache(lambda: _read_names(root, replace(options, exclude=())))
    resolved = {}
    for project in by_name.values():
        # The sources of a workspace's root hold for its members, each until a member has its own.
        # https://docs.astral.sh/uv/concepts/projects/workspaces/#workspace-sources
        own = _find_unread_sources(project.sources, project.manifest, by_name)
        places = [(project.manifest, project.sources)]
        for path, sources in tops.items():
            if path.parent == project.home:
                places.append((path, sources))
                rest = {name: unread[path][name] for name in unread[path].keys() - project.sources}
                own = {**rest, **own}
        resolved[project.name] = replace(project, unread={**own, **project.unread})
        if project.unpublishable:
            continue
        for name in sorted({need.name for need in project.requirements}):
            path, sources = next((each for each in places if name in each[1]), places[0])
            for source in sources.get(name, ()):
                in_workspace = source.get("workspace") is True
                if in_workspace and name not in by_name and name not in read_members():
                    raise _no_source(
                        f"{path}: tool.uv.sources.{name} is {{ workspace = true }}, and no "
                        "member of the workspace has that name",
                        "Add it to tool.uv.workspace.members, or drop the source",
                    )
                place = source.get("path")
                if isinstance(place, str) and not exists(path.parent / place):
                    raise _no_source(
                        f"{path}: tool.uv.sources.{name} is {{ path = {place!r} }}, and nothing is "
                        f"at {os.path.normpath(path.parent / place)}",
                        "Correct the path, or drop the source",
                    )
    return resolved


def _find_unread_sources(
    sources: Sources, path: Path, by_name: Mapping[str, PyProject]
) -> dict[str, UnreadSetting]:
    """Where a build requirement would come from something else than its source. Sources for an
    extra or a group are not for builds.
    """
    found = {}
    for name, source in ((of, each) for of, listed in sources.items() for each in listed):
        place = source.get("path")
        directory = os.path.normpath(path.parent / place) if isinstance(place, str) else ""
        is_member = source.get("workspace") is True or (
            name in by_name and directory == str(by_name[name].manifest.parent)
        )
        if {"extra", "group"} & source.keys() or (is_member and name in by_name):
            continue
        cure = "Drop the source"
        if directory or is_member:
            cure = f"Have {name} built here: name its directory in `packages` below [pypi]"
        elif "index" in source:
            cure += ", and `explicit` of its index: uv then asks this index before the default one"
        found[name] = UnreadSetting(
            f"{path}: tool.uv.sources.{name} is {show_toml(source)}, and ReleaseKit takes build "
            "requirements from the workspace and from indexes that are not explicit",
            f"{cure}; or bring the built files with `dist`.",
        )
    return found


def _read_names(root: Path, options: PyPIOptions) -> set[str]:
    """The names of all members."""
    names = set()
    for path in find_workspace_manifests(root, options):
        name = checked_table(manifest.read_pyproject(path), "project", path=path).get("name")
        names.add(str(canonicalize_name(str(name))))
    return names


def _no_source(message: str, cure: str) -> ConfigError:
    return ConfigError(message, hint=f"{cure} to take it from an index.", problem=Problem.NO_SOURCE)


def check_build_order(by_name: Mapping[str, PyProject]) -> None:
    """Raises PlanError where a package would have to be built before itself, of those that are
    published and of what their builds need.
    """

    def list_needs(name: str) -> list[str]:
        return list_build_needs(by_name[name], by_name)

    public = [project.name for project in by_name.values() if not project.unpublishable]
    order = TopologicalSorter({name: list_needs(name) for name in reachable(public, list_needs)})
    try:
        order.prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise PlanError(
            f"build-system.requires form a cycle: {cycle}",
            hint="Build one of them with a backend in its own source tree (backend-path).",
            problem=Problem.CYCLE,
        ) from error


def mark_between_tags(
    projects: Sequence[PyProject], is_chosen: Callable[[PyProject], bool]
) -> list[PyProject]:
    """Mark the projects whose version a build computes for a commit between two tags, where others
    of this run have a tag here: they belong to other releases, as a -SNAPSHOT of Maven does.
    https://setuptools-scm.readthedocs.io/en/latest/usage/#default-versioning-scheme
    """
    public = [project for project in projects if not project.unpublishable]
    drafts = {project.name for project in public if project.is_draft}
    if all(project.name in drafts for project in [*filter(is_chosen, public)] or public):
        return [*projects]
    return [
        replace(
            project,
            between_tags=True,
            unpublishable="its version, computed for this commit, is a development or local one, "
            "and others here are to be released",
        )
        if project.name in drafts
        else project
        for project in projects
    ]


def with_elsewhere(project: PyProject, by_name: Mapping[str, PyProject]) -> PyProject:
    """The project with the requirements set apart that exclude the version of this workspace: users
    get another one from the index. uv locks and builds such a workspace in spite
    of `tool.uv.sources`.
    """

    def leads_out(need: DeclaredRequirement) -> bool:
        ours = by_name.get(need.name)
        if ours is None or not ours.version:
            return False
        specifier = need.requirement.specifier
        return ours.between_tags or not specifier.contains(ours.version, prereleases=True)

    elsewhere = [need for need in project.requirements if leads_out(need)]
    if not elsewhere:
        return project
    rest = tuple(need for need in project.requirements if need not in elsewhere)
    return replace(project, requirements=rest, elsewhere=(*project.elsewhere, *elsewhere))


def make_packages(
    by_name: Mapping[str, PyProject], twins: Sequence[PyProject] = ()
) -> list[Package]:
    """The projects, versions known, as packages with their edges to one another."""
    return [
        Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            directory=project.manifest.parent,
            manifest=project.manifest,
            dependencies=tuple(
                edge_meant(
                    edge,
                    project,
                    by_name,
                    twins,
                    home=lambda each: each.home,
                    private=lambda each: each.unpublishable,
                )
                for edge in _list_edges(project, by_name)
            ),
            # Without a range, any version that users get satisfies the requirement.
            elsewhere=tuple(
                _edge(each.name, each.kind, each.text if each.requirement.specifier else "")
                for each in project.elsewhere
            ),
            unpublishable=project.unpublishable,
        )
        for project in by_name.values()
    ]


def _list_edges(project: PyProject, by_name: Mapping[str, PyProject]) -> list[Dependency]:
    """The project's in-repo edges, in the order of its manifest.

    An extra that names the project itself makes no edge. A build needs what its requirements need
    at run time. Extras are soft: where a framework's extra names a plugin that needs the
    framework, the plugin goes last, as only the framework works without the other.
    """
    edges = [
        _edge(need.name, need.kind, need.text, exact=is_exact(need.requirement))
        for need in project.requirements
        if need.name in by_name
    ]
    edges += [
        _edge(name, need.kind)
        for need in project.requirements
        for name in sorted(_resolve_extras(need, by_name))
    ]
    edges += [_edge(name, DependencyKind.BUILD) for name in list_build_needs(project, by_name)]
    spelled = {(edge.on, edge.kind) for edge in edges if edge.requirement}
    return [
        edge
        for edge in dict.fromkeys(edges)
        if edge.on.name != project.name
        and (edge.requirement or (edge.on, edge.kind) not in spelled)
    ]


def _edge(
    name: str, kind: DependencyKind, requirement: str = "", *, exact: bool = False
) -> Dependency:
    return Dependency(
        on=PackageId(ECOSYSTEM, name),
        kind=kind,
        requirement=requirement,
        soft=kind is DependencyKind.OPTIONAL,
        exact=exact and kind is DependencyKind.RUNTIME,
    )


def list_build_needs(project: PyProject, by_name: Mapping[str, PyProject]) -> list[str]:
    """The other in-repo packages that the project's build environment must hold, sorted."""

    def find_needs(of: PyProject, kind: DependencyKind) -> set[str]:
        declared = [need for need in of.requirements if need.kind is kind]
        names = {need.name for need in declared}.union(
            *(_resolve_extras(need, by_name) for need in declared)
        )
        return (names & by_name.keys()) - {project.name}

    return sorted(
        reachable(
            find_needs(project, DependencyKind.BUILD),
            lambda name: find_needs(by_name[name], DependencyKind.RUNTIME),
        )
    )


def _resolve_extras(wanted: DeclaredRequirement, by_name: Mapping[str, PyProject]) -> set[str]:
    """The in-repo packages that the extras in `acme[cli]` need, with the extras these ask for."""

    def list_under(name: str, extra: str) -> list[DeclaredRequirement]:
        project = by_name.get(name)
        return [need for need in project.requirements if extra in need.under] if project else []

    asked = reachable(
        [(wanted.name, extra) for extra in wanted.extras],
        lambda asked: [(need.name, extra) for need in list_under(*asked) for extra in need.extras],
    )
    return {need.name for name, extra in asked for need in list_under(name, extra)} & by_name.keys()
