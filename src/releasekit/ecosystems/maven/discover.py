"""Which Maven packages a workspace holds, and how they depend on one another: the projects of each
reactor, with the properties that they inherit and the values of their expressions.

https://maven.apache.org/ref/3.9.9/maven-model-builder/ says how Maven builds its models. This
follows the rules that decide coordinates, as far as the files of the workspace reach. It ignores
parents on a registry. Of profiles it takes what those set that are active by default, what those
need that may be active for users, and what plugins that publish leave out.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.ecosystems.maven import versions
from releasekit.ecosystems.maven.document import read_document
from releasekit.ecosystems.maven.mvn import read_overrides
from releasekit.ecosystems.maven.pom import DEPLOY, EXCLUDED, PHASE, PORTAL, WITHHOLDING, read_pom
from releasekit.ecosystems.shared.packages import edge_meant
from releasekit.errors import ManifestError, MembersError
from releasekit.host.files import inside, is_file
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.ecosystems.maven.pom import (
        Parent,
        PluginSetting,
        Pom,
        PomReference,
        Use,
        Withholding,
    )
    from releasekit.model import Artifact


ECOSYSTEM: Final = "maven"
# The use that gives a reference its version if it names none.
_MANAGED: Final[Mapping[Use, Use]] = {"dependency": "managed", "plugin": "managed plugin"}
_STRENGTH: Final = (DependencyKind.ORDER, DependencyKind.OPTIONAL, DependencyKind.RUNTIME)
MAX_PROJECTS: Final = 10_000
MAX_PARENTS: Final = 50
# Properties may use each other: without a bound a small file could expand to gigabytes.
MAX_EXPRESSIONS: Final = 1_000
MAX_VALUE_CHARS: Final = 4_096
# Each is part of a file's name, and file systems bound names to this many bytes.
MAX_COORDINATE_CHARS: Final = 255
EXPRESSION: Final = re.compile(r"\$\{([^${}]+)\}")
# Expressions of directories of the build, which users do not have.
_HERE: Final = (
    *("${basedir}", "${project.basedir}", "${pom.basedir}", "${project.build."),
    "${maven.multiModuleProjectDirectory}",
)
_SHADE: Final = "maven-shade-plugin"
_RESOLVED: Final[frozenset[Use]] = frozenset({"dependency", "import", "relocation"})
# What gives a project another version or another model than its pom.xml has.
# https://github.com/jgitver/jgitver-maven-plugin
# https://github.com/qoomon/maven-git-versioning-extension
# https://github.com/takari/polyglot-maven
# https://tycho.eclipseprojects.io/doc/main/StructuredBuild.html
_REWRITING: Final = ("jgitver-maven-plugin", "maven-git-versioning-extension", "tycho-build")
_POLYGLOT: Final = "polyglot-"
# Coordinates become paths, URLs and arguments.
# https://maven.apache.org/ref/3.9.9/maven-model-builder/ (validation of identifiers)
COORDINATE: Final = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")


class PomProject(Struct, kw_only=True, eq=False):
    """A POM with its coordinates resolved. `top` is the directory of its reactor. `parent` is None
    for one outside of this workspace. `overrides` are set from outside, and beat what POMs say.
    `files` are those that another tool has published into `top`, none of a snapshot; None where a
    reactor is to build them.
    """

    pom: Pom
    top: Path
    overrides: Mapping[str, str]
    parent: PomProject | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    artifact: str = ""
    version: str = ""
    files: tuple[Artifact, ...] | None = None

    @property
    def name(self) -> str:
        return f"{self.group}:{self.artifact}"

    @property
    def manifest(self) -> Path:
        return self.pom.path

    @property
    def packaging(self) -> str:
        return self.resolve(self.pom.packaging)

    @property
    def parent_version(self) -> str:
        """As Maven has it: a range stays one."""
        wanted = self.pom.parent.version if self.pom.parent else ""
        return self.parent.version if self.parent and not versions.is_range(wanted) else wanted

    def ancestry(self) -> Iterator[PomProject]:
        """The project, its parent, and so on, within the workspace."""
        project: PomProject | None = self
        while project is not None:
            yield project
            project = project.parent

    def resolve(self, text: str) -> str:
        """`text` with its expressions replaced, except for undefined ones."""
        for _ in range(MAX_EXPRESSIONS):
            for expression in EXPRESSION.finditer(text):
                value = self._value(expression[1])
                if value is not None and expression[0] not in value:
                    text = text[: expression.start()] + value + text[expression.end() :]
                    break
            else:
                return text
            if len(text) > MAX_VALUE_CHARS:
                break
        raise ManifestError(f"{self.pom.path}: {text[:60]!r} never comes to an end")

    def resolve_name(self, reference: PomReference) -> str:
        """The group and the artifact that it names from here, as `name` has them."""
        return f"{self.resolve(reference.group)}:{self.resolve(reference.artifact)}"

    def _value(self, name: str) -> str | None:
        if name in self.overrides:
            return self.overrides[name]
        model = self.model()
        for prefix in ("project.", "pom."):
            if name.startswith(prefix) and name.removeprefix(prefix) in model:
                return model[name.removeprefix(prefix)]
        return self.properties[name] if name in self.properties else model.get(name)

    def model(self) -> dict[str, str]:
        """The values of `${project.…}`; coordinates are unresolved until they are set."""
        pom, inherited = self.pom, {}
        if pom.parent is not None:
            above = self.parent or pom.parent
            inherited = {
                "parent.groupId": above.group,
                "parent.artifactId": above.artifact,
                "parent.version": self.parent_version,
            }
        return {
            "groupId": self.group or pom.group or inherited.get("parent.groupId", ""),
            "artifactId": self.artifact or pom.artifact,
            "version": self.version or pom.version or inherited.get("parent.version", ""),
            "packaging": pom.packaging,
            **inherited,
        }


def load_projects(
    root: Path, options: MavenOptions, *, with_profiles: bool = False
) -> list[PomProject]:
    """The projects of the workspace's reactors, each once, in the order of the POMs; or also those
    that only a profile lists, which are else part of a reactor if a later one names them. Raises
    ConfigError for a module that does not exist, or leads out of `root`.
    """
    found: dict[Path, PomProject] = {}
    tops = _find_tops(root, options)
    for top in tops:
        reactor = _Reactor(root, top, options, with_profiles=with_profiles, named=tops)
        for project in reactor.projects():
            found.setdefault(project.pom.path, project)
    return [*found.values()]


def _find_tops(root: Path, options: MavenOptions) -> list[Path]:
    if not options.reactors:
        if options.directories:
            return []
        top = root / "pom.xml"
        return [inside(root, top, where=str(top)).parent] if top.is_file() else []
    tops = []
    for name in options.reactors:
        top = root / name / "pom.xml"
        where = f"{options.where()} reactors: {name!r}"
        if not is_file(top):
            raise MembersError(f"{where} has no pom.xml", hint="Name the directory that has one.")
        tops.append(inside(root, top, where=where).parent)
    return tops


class _Reactor:
    """The modules of one top POM, and the parents in the workspace that they inherit from."""

    def __init__(
        self,
        root: Path,
        top: Path,
        options: MavenOptions,
        *,
        with_profiles: bool,
        named: Sequence[Path],
    ) -> None:
        self._with_profiles, self._named = with_profiles, named
        self._root = root
        self._top = top
        self._overrides = read_overrides(root, top, options)
        self._poms: dict[Path, Pom] = {}
        self._by_key: dict[tuple[str, str], Path] = {}
        self._projects: dict[Path, PomProject] = {}

    def projects(self) -> list[PomProject]:
        pending = [self._top / "pom.xml"]
        listed: dict[Path, Pom] = {}
        while pending:
            path = pending.pop(0)
            if path not in listed:
                listed[path] = self._read(path)
                pending += self._find_modules(listed[path])
            if len(listed) > MAX_PROJECTS:
                raise MembersError(f"{self._top}: more than {MAX_PROJECTS} modules")
        self._by_key = {pom.key: path for path, pom in listed.items()}
        return [self._load_project(path, 0) for path in listed]

    def _read(self, path: Path) -> Pom:
        if path not in self._poms:
            self._poms[path] = read_pom(path)
        return self._poms[path]

    def _find_modules(self, pom: Pom) -> Iterator[Path]:
        own = PomProject(
            pom=pom, top=self._top, overrides=self._overrides, properties=pom.properties
        )
        for module in map(own.resolve, pom.modules):
            where = f"{pom.path}: module {clip(module, 200)!r}"
            path = find_pom(pom.path.parent / module)
            if path is None:
                raise MembersError(f"{where} has no pom.xml", hint="Remove it, or add its POM.")
            yield inside(self._root, path, where=where)
        for module in pom.modules_of_profiles if self._with_profiles or self._named[1:] else ():
            path = find_pom(pom.path.parent / own.resolve(module))
            if path is None or not (path := path.resolve()).is_relative_to(self._root):
                continue
            if self._with_profiles or path.parent in self._named:
                yield path

    def _load_project(self, path: Path, depth: int) -> PomProject:
        if depth > MAX_PARENTS:
            raise ManifestError(f"{path}: its parents never come to an end")
        if path not in self._projects:
            pom = self._read(path)
            project = PomProject(pom=pom, top=self._top, overrides=self._overrides)
            project.parent = self._find_parent(pom, depth)
            above = project.parent.properties if project.parent else {}
            project.properties = {**above, **pom.properties}
            self._set_coordinates(project)
            self._projects[path] = project
        return self._projects[path]

    def _find_parent(self, pom: Pom, depth: int) -> PomProject | None:
        """As Maven finds it: at the relative path, else among the modules."""
        wanted = pom.parent
        if wanted is None:
            return None
        near = wanted.relative_path and find_pom(pom.path.parent / wanted.relative_path)
        for candidate in (near or None, self._by_key.get((wanted.group, wanted.artifact))):
            if candidate is None or not (path := candidate.resolve()).is_relative_to(self._root):
                continue
            found = self._read(path)
            if path == pom.path or found.artifact != wanted.artifact:
                continue
            parent = self._load_project(path, depth + 1)
            # A range is held against no module: Maven asks a registry what it holds.
            is_held = is_named(wanted, parent, by_range=candidate is near)
            if is_held and parent.group == parent.resolve(wanted.group):
                return parent
        return None

    def _set_coordinates(self, project: PomProject) -> None:
        model = project.model()
        for tag in ("groupId", "artifactId", "version"):
            value = model[tag] = project.resolve(model[tag])
            if len(value) > MAX_COORDINATE_CHARS:
                raise ManifestError(
                    f"{project.pom.path}: its <{tag}> is longer than {MAX_COORDINATE_CHARS} "
                    f"characters: {value[:60]!r}",
                    hint="Write a shorter one: it becomes part of file names.",
                )
            if not COORDINATE.fullmatch(value) or ".." in value:
                raise ManifestError(
                    f"{project.pom.path}: its <{tag}> is {value[:100]!r}, which is no {tag}",
                    hint="What the files of the workspace do not define can be set in "
                    'releasekit.toml: [maven] properties = { name = "value" }.'
                    if "${" in value
                    else "Letters, digits, and _ . + - are what it may hold.",
                )
        project.group, project.artifact = model["groupId"], model["artifactId"]
        project.version = model["version"]


def is_named(wanted: Parent, parent: PomProject, *, by_range: bool = True) -> bool:
    """Whether a POM takes this version of its parent.

    https://github.com/apache/maven/blob/maven-3.9.9/maven-model-builder/src/main/java/org/apache/maven/model/building/DefaultModelBuilder.java
    (readParentLocally)
    """
    version = parent.resolve(wanted.version)
    if version == parent.version or not versions.is_range(version):
        return version == parent.version
    try:
        return by_range and versions.contains(version, parent.version)
    except ValueError:  # pinning the POM reports an invalid range
        return False


def find_pom(path: Path) -> Path | None:
    """The POM of a module or a parent, which may be named by its directory or by its file."""
    for candidate in (path / "pom.xml", path):
        if is_file(candidate):
            return candidate
    return None


def make_packages(
    by_name: Mapping[str, PomProject], twins: Sequence[PomProject] = ()
) -> list[Package]:
    packages = []
    meant = partial(edge_meant, home=lambda each: each.top, private=explain_unpublishable)
    for project in by_name.values():
        edges = find_dependencies(project, by_name)
        package = Package(
            id=PackageId(ECOSYSTEM, project.name),
            version=project.version,
            # The directories of a group may have any name, as `example`.
            directory=project.pom.path.parent if project.files is None else project.top,
            manifest=project.pom.path,
            dependencies=tuple(meant(edge, project, by_name, twins) for edge in edges),
            elsewhere=find_other_versions(project, by_name),
            unpublishable=explain_unpublishable(project),
            awaits_version=versions.is_snapshot(project.version) and not explain_private(project),
            packaging=project.packaging,
            prebuilt=project.files or (),
        )
        packages.append(package)
    return packages


def explain_unpublishable(project: PomProject) -> str:
    """Why a project is not published; empty for one that is."""
    if versions.is_snapshot(project.version):
        return f"its version {project.version} is a snapshot, not a release"
    return explain_private(project)


def explain_private(project: PomProject) -> str:
    """Why a project is never published, whatever version it has; empty for one that may be."""
    if project.files is not None:
        return "" if project.files else "the tool that built it gives it its versions"
    reasons = (_explain_withheld(project, plugin, how) for plugin, how in WITHHOLDING.items())
    return next(filter(None, reasons), "")


def _explain_withheld(project: PomProject, plugin: str, how: Withholding) -> str:
    """Why a plugin that publishes would not send a project: Maven takes the nearest value of each
    execution, and that of pluginManagement where none is nearer. Of lists each counts, as they
    may be joined.
    """
    settings = [each for each in _find_settings(project) if each.plugin == plugin]
    for each in settings:
        if each.name == EXCLUDED and project.resolve(each.value) == project.artifact:
            return f"{EXCLUDED} of {plugin} names it{_name_profile(each)}"
    given = _find_given(project, plugin, how.parameter, settings)
    if not given:
        is_lone = plugin == DEPLOY and not _has_other_plugin(project)
        return f"{plugin} is bound to no phase" if is_lone else ""
    texts = [project.resolve(each.value if each else f"${{{how.property}}}") for each in given]
    if not all(_is_skipped(text, project) for text in texts):
        return _explain_excluded(project) if plugin == PORTAL else ""
    if (first := given[0]) is None:
        return f"{how.property} is true"
    aside = _name_other_plugin(project, first) if plugin == DEPLOY else ""
    return f"{plugin} is configured to skip it{_name_profile(first)}{aside}"


def _find_given(
    project: PomProject, plugin: str, parameter: str, settings: Sequence[PluginSetting]
) -> list[PluginSetting | None]:
    """The `parameter` of each execution that is bound to a phase; empty if none of them is."""
    values = {(each.execution, each.name): each for each in reversed(settings) if each.value}
    executions = {each.execution for each in settings} - {""}
    if plugin == DEPLOY:
        executions.add("default-deploy")
    phases = {name: each.value for (name, key), each in values.items() if key == PHASE}
    bound = [name for name in sorted(executions) if project.resolve(phases.get(name, "")) != "none"]
    if executions and not bound:
        return []
    whole = values.get(("", parameter))
    return [values.get((name, parameter), whole) for name in bound or [""]]


def _explain_excluded(project: PomProject) -> str:
    names = project.resolve(f"${{{EXCLUDED}}}").split(",")
    return f"{EXCLUDED} names it" if project.artifact in map(str.strip, names) else ""


def _name_other_plugin(project: PomProject, skip: PluginSetting) -> str:
    """A POM that skips one plugin beside another that publishes may mean that the other one does
    it. ReleaseKit deploys by the one that is skipped.
    https://github.com/apache/maven-artifact-plugin/issues/173
    """
    for each in project.ancestry():
        if any(setting is skip for setting in each.pom.settings):
            others = (it.plugin for it in each.pom.settings if it.plugin != DEPLOY)
            if other := next(others, ""):
                return f"; if {other} publishes it, remove this <skip>: that plugin needs none"
    return ""


def _find_settings(project: PomProject) -> Iterator[PluginSetting]:
    """The nearest first."""
    for managed in (False, True):
        for each in project.ancestry():
            for setting in each.pom.settings:
                if setting.managed is managed and (each is project or setting.inherited):
                    yield setting


def _has_other_plugin(project: PomProject) -> bool:
    return any(each.plugin != DEPLOY and not each.managed for each in _find_settings(project))


def _name_profile(setting: PluginSetting) -> str:
    return f" in the profile {clip(setting.profile, 60)!r}" if setting.profile else ""


def _is_skipped(value: str, project: PomProject) -> bool:
    """https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#skip"""
    kind = "snapshots" if versions.is_snapshot(project.version) else "releases"
    return value.lower() == "true" or value == kind


def find_file_needed(project: PomProject, root: Path) -> PomReference | None:
    """A dependency whose `systemPath` leads into the workspace: Maven calls the POM of its users
    invalid then, and leaves out all that it depends on. A plugin may write another POM for them.

    https://maven.apache.org/guides/introduction/introduction-to-dependency-mechanism.html#system-dependencies
    """
    if any(each.pom.flattened for each in project.ancestry()):
        return None
    for reference in project.pom.references:
        path = project.resolve(reference.system_path)
        is_relative = bool(path) and not path.startswith(("/", "$", "\\")) and path[1:2] != ":"
        if is_relative or path.startswith((*_HERE, f"{root}/")):
            return reference
    return None


def find_rewriting(top: Path, root: Path) -> tuple[Path, str] | None:
    """The file that gives mvn an extension which may change the POMs of a reactor, and its name.
    Maven takes the nearest .mvn at or above the reactor.

    https://maven.apache.org/configure.html#mvn-extensions-xml-file
    """
    above = (each for each in (top, *top.parents) if each.is_relative_to(root))
    near = next((each / ".mvn" for each in above if (each / ".mvn").is_dir()), None)
    if near is None or not is_file(path := near / "extensions.xml"):
        return None
    for each in read_document(path).all("extension"):
        name = each.value("artifactId")
        if name in _REWRITING or name.startswith(_POLYGLOT):
            return path, name
    return None


def find_snapshots_needed(
    project: PomProject, by_name: Mapping[str, PomProject]
) -> Iterator[tuple[str, str]]:
    """Name and version of what users of a project resolve and only a repository of snapshots has:
    its parent, BOMs that it imports, what it is relocated to, and dependencies of scope compile and
    runtime. A plugin may write another POM for them; one that flattens keeps the dependencies.

    https://maven.apache.org/plugins/maven-shade-plugin/shade-mojo.html#createDependencyReducedPom
    https://www.mojohaus.org/flatten-maven-plugin/flatten-mojo.html#flattenMode
    """
    above = [*project.ancestry()]
    if any(map(_is_shading, above)):
        return
    is_flattened = any(each.pom.flattened for each in above)
    kept = _RESOLVED & {"dependency"} if is_flattened else _RESOLVED
    parent = project.pom.parent
    if project.parent is None and parent and not is_flattened:
        version = project.resolve(parent.version)
        if versions.is_snapshot(version):
            yield f"{parent.group}:{parent.artifact}", version
    for reference in project.pom.references:
        name = project.resolve_name(reference)
        if reference.needed and reference.use in kept and name not in by_name:
            version = find_requested_version(reference, project, name)
            if versions.is_snapshot(version):
                yield name, version


def _is_shading(project: PomProject) -> bool:
    return any(it.artifact == _SHADE and it.use == "plugin" for it in project.pom.references)


def is_selected(reference: PomReference, project: PomProject, target: PomProject) -> bool:
    """Whether Maven takes the version of the reactor: if none is requested, or the same, or a range
    that holds it. https://maven.apache.org/guides/mini/guide-multiple-modules.html
    """
    version = find_requested_version(reference, project, target.name)
    if not version or version == target.version or "${" in version:
        return True
    try:
        return versions.is_range(version) and versions.contains(version, target.version)
    except ValueError:
        return True  # pinning the POM reports an invalid range


def find_requested_version(reference: PomReference, project: PomProject, name: str) -> str:
    """Of the reference to `name`, else of the workspace's dependencyManagement or
    pluginManagement; empty if no POM of the workspace has one.
    """
    version = project.resolve(reference.version)
    if version or reference.use not in _MANAGED:
        return version
    use, artifact = _MANAGED[reference.use], name.rpartition(":")[2]
    for holder in project.ancestry():
        # A parent may manage a thousand artifacts, for a thousand modules that ask for ten each.
        managing = holder.pom.managing
        for managed in (*managing.get((use, artifact), ()), *managing.get((use, ""), ())):
            if project.resolve_name(managed) == name:
                return project.resolve(managed.version)
    return ""


def find_dependencies(
    project: PomProject, by_name: Mapping[str, PomProject]
) -> tuple[Dependency, ...]:
    """Edges to dependencies, the parent and imported BOMs.

    Packages in a BOM are published before the BOM, and plugins before the packages that they build,
    wherever possible: most parents manage the versions of their children. Maven also orders plugins
    second:
    https://github.com/apache/maven/blob/maven-3.8.7/maven-core/src/main/java/org/apache/maven/project/ProjectSorter.java
    """
    edges: dict[str, Dependency] = {}
    parent = project.parent
    if parent is not None and parent.name in by_name:
        edges[parent.name] = _make_edge(parent, project.parent_version, DependencyKind.RUNTIME)
    for reference, target in find_references(project, by_name):
        if reference.use in {"managed", "plugin"}:
            kind = DependencyKind.ORDER
        else:
            kind = DependencyKind.RUNTIME if reference.needed else DependencyKind.OPTIONAL
        known = edges.get(target.name)
        if known is None or _STRENGTH.index(kind) > _STRENGTH.index(known.kind):
            edges[target.name] = _make_edge(target, reference.version, kind)
    return tuple(edges.values())


def find_other_versions(
    project: PomProject, by_name: Mapping[str, PomProject]
) -> tuple[Dependency, ...]:
    """Dependencies whose users get another version than that of the workspace."""
    edges = []
    for reference, target in find_references(project, by_name, inside=False):
        if reference.needed:
            version = find_requested_version(reference, project, target.name)
            edges.append(_make_edge(target, version, DependencyKind.RUNTIME))
    return tuple(dict.fromkeys(edges))


def find_references(
    project: PomProject, by_name: Mapping[str, PomProject], *, inside: bool = True
) -> Iterator[tuple[PomReference, PomProject]]:
    for reference, target in find_siblings(project, by_name):
        is_read = reference.use != "managed plugin"
        if is_read and is_selected(reference, project, target) is inside:
            yield reference, target


def find_siblings(
    project: PomProject, by_name: Mapping[str, PomProject]
) -> Iterator[tuple[PomReference, PomProject]]:
    """The other projects that its POM names, in whatever version."""
    for reference in project.pom.references:
        target = by_name.get(project.resolve_name(reference))
        if target is not None and target is not project:
            yield reference, target


def _make_edge(target: PomProject, requirement: str, kind: DependencyKind) -> Dependency:
    return Dependency(
        on=PackageId(ECOSYSTEM, target.name),
        kind=kind,
        requirement=requirement,
        soft=kind is DependencyKind.ORDER,
    )
