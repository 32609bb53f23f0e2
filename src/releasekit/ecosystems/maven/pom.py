"""One POM as it is written, without inheritance and expressions: read, checked, pinned on request,
and filled in where it leaves coordinates open.

https://maven.apache.org/ref/3.9.9/maven-model/maven.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct, field

from releasekit.ecosystems.maven.document import read_document
from releasekit.ecosystems.maven.validity import find_faults
from releasekit.errors import ManifestError
from releasekit.fields import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.maven.document import Element


# What a reference is for; "managed" gives others their version, "import" brings a BOM, and
# "relocation" names what Maven takes in place of the package.
Use = Literal["dependency", "managed", "import", "plugin", "managed plugin", "relocation"]
# https://maven.apache.org/guides/mini/guide-maven-ci-friendly.html
CI_FRIENDLY: Final = ("revision", "sha1", "changelist")
_BY_DEFAULT: Final = "activeByDefault"
_COORDINATES: Final = (
    *("groupId", "artifactId", "version"),
    *("parent.groupId", "parent.artifactId", "parent.version"),
)


class Withholding(Struct, frozen=True):
    """Of one plugin: the goal that publishes, the parameter that keeps a project from it, and the
    property that the parameter has by default.
    """

    goal: str
    parameter: str
    property: str


# What keeps a project from going out, by the plugin that would send it.
# https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html
# https://central.sonatype.org/publish/publish-portal-maven/#plugin-configuration-options
# https://github.com/sonatype/nexus-maven-plugins/blob/main/staging/maven-plugin/README.md
# `skipStaging`, `skipLocalStaging` and `skipRemoteStaging` of the last one only say how it goes.
WITHHOLDING: Final[Mapping[str, Withholding]] = {
    "maven-deploy-plugin": Withholding("deploy", "skip", "maven.deploy.skip"),
    "central-publishing-maven-plugin": Withholding("publish", "skipPublishing", "skipPublishing"),
    "nexus-staging-maven-plugin": Withholding(
        "deploy", "skipNexusStagingDeployMojo", "skipNexusStagingDeployMojo"
    ),
}
DEPLOY: Final = "maven-deploy-plugin"
# What a POM of Maven Central has to say; of the scm the portal asks for the URL.
# https://central.sonatype.org/publish/requirements/
# https://github.com/cdapio/cdap-build/pull/535
REQUIRED: Final = {
    **{f"<{tag}>": (tag,) for tag in ("name", "description", "url")},
    "<licenses>": ("licenses", "license"),
    "<developers>": ("developers", "developer"),
    "<scm> with a <url>": ("scm", "url"),
}
PORTAL: Final = "central-publishing-maven-plugin"
# The stronger one first, and all before distributionManagement.
# https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html
OF_RELEASES: Final = ("altReleaseDeploymentRepository", "altDeploymentRepository")
ALTERNATIVES: Final = (*OF_RELEASES, "altSnapshotDeploymentRepository")
EXCLUDED: Final = "excludeArtifacts"
PHASE: Final = "phase"


class PomReference(Struct, frozen=True, kw_only=True):
    """Coordinates as a POM has them; empty where it leaves them open.

    `span` holds the offsets of the version in the file, in bytes. `needed` is False for those that
    users of the package never resolve: optional, provided and test dependencies.
    """

    use: Use
    group: str
    artifact: str
    version: str = ""
    span: tuple[int, int] = (0, 0)
    needed: bool = True
    system_path: str = ""


class PluginSetting(Struct, frozen=True, kw_only=True):
    """A value that a POM gives to a plugin of `WITHHOLDING`; `execution` is empty where it is for
    all of them. `managed` is one in pluginManagement, which gives way. `inherited` is whether the
    modules below have it too. `profile` names the one that it is in.
    """

    plugin: str
    execution: str
    name: str
    value: str
    managed: bool
    inherited: bool
    profile: str = ""


class Parent(Struct, frozen=True, kw_only=True):
    """Maven looks at `relative_path` first, which is empty for a parent that a registry has."""

    group: str
    artifact: str
    version: str
    relative_path: str


class Pom(Struct, frozen=True, kw_only=True):
    """`spans` are the offsets of the coordinates in the file, by their path, in bytes. `managing`
    has those of `references` that give others their version, by use and artifact; the artifact is
    empty where it has an expression. Of `settings`, the first of a name counts. `flattened` is
    whether a plugin here writes another POM for users, and one that `is_for_portal` has the plugin
    of Maven Central. `goes_to` are the repositories of
    distributionManagement; several where only profiles name them. `diverted` is what of
    `ALTERNATIVES` configures maven-deploy-plugin, which no argument of mvn overrides. One that
    `offers_snapshots` names a repository of them, which mvn asks for its users too. `described` is
    what of `REQUIRED` it has itself, and `stray` is as the document has it.
    """

    path: Path
    group: str
    artifact: str
    version: str
    packaging: str
    parent: Parent | None
    properties: Mapping[str, str]
    modules: tuple[str, ...]
    modules_of_profiles: tuple[str, ...]
    references: tuple[PomReference, ...]
    managing: Mapping[tuple[Use, str], Sequence[PomReference]]
    settings: tuple[PluginSetting, ...] = ()
    flattened: bool = False
    offers_snapshots: bool = False
    described: frozenset[str] = frozenset()
    stray: int = 0
    is_for_portal: bool = False
    goes_to: tuple[str, ...] = ()
    diverted: str = ""
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """The group and the artifact, which tell the POMs of a workspace apart."""
        return self.group or (self.parent.group if self.parent else ""), self.artifact


def read_pom(path: Path) -> Pom:
    """Raises ConfigError naming a file that is not a POM."""
    return parse_pom(read_document(path), path)


def parse_pom(root: Element, path: Path) -> Pom:
    if root.tag != "project":
        raise ManifestError(f"{path}: not a POM: its root is <{root.tag}>, not <project>")
    _refuse_incomplete(root, path)
    for fault in find_faults(root):
        raise ManifestError(f"{path}: {fault}")
    references = (*_parse_references(root), *_parse_relocation(root))
    return Pom(
        path=path,
        group=root.value("groupId"),
        artifact=root.value("artifactId"),
        version=root.value("version"),
        packaging=root.value("packaging") or "jar",
        parent=_parse_parent(root),
        properties={name: each.text.strip() for name, each in find_properties(root).items()},
        modules=_list_modules(root),
        modules_of_profiles=tuple(
            module for each in root.all("profiles", "profile") for module in _list_modules(each)
        ),
        references=references,
        managing=_find_managing(references),
        settings=tuple(_find_settings(root)),
        is_for_portal=any(it.artifact == PORTAL and it.use == "plugin" for it in references),
        goes_to=tuple(_list_repositories(root)),
        diverted=next(_find_diversions(root), ""),
        # https://maven.apache.org/ref/3.9.9/maven-model/maven.html#class_snapshots
        offers_snapshots=any(
            each.value("snapshots", "enabled") != "false"
            for layer in _find_layers(root)
            for each in layer.all("repositories", "repository")
        ),
        described=frozenset(
            tag for tag, path in REQUIRED.items() if any(map(_has_content, root.all(*path)))
        ),
        stray=root.stray,
        flattened=any(each.artifact == "flatten-maven-plugin" for each in references),
        spans={
            path: (found.start, found.end)
            for path in _COORDINATES
            if (found := root.child(*path.split("."))) is not None
        },
    )


def _refuse_incomplete(root: Element, path: Path) -> None:
    for tag in ("artifactId", "groupId", "version"):
        inherited = root.value("parent", tag) if tag != "artifactId" else ""
        if not (root.value(tag) or inherited):
            raise ManifestError(f"{path}: has no <{tag}>", hint="Every POM has one, or a parent's.")


def _find_managing(references: Iterable[PomReference]) -> dict[tuple[Use, str], list[PomReference]]:
    managing: dict[tuple[Use, str], list[PomReference]] = {}
    for each in references:
        if each.use in {"managed", "managed plugin"}:
            name = "" if "${" in each.artifact else each.artifact
            managing.setdefault((each.use, name), []).append(each)
    return managing


def _has_content(element: Element) -> bool:
    return bool(element.text.strip() or element.children)


def _parse_parent(root: Element) -> Parent | None:
    found = root.child("parent")
    if found is None:
        return None
    where = found.child("relativePath")
    return Parent(
        group=found.value("groupId"),
        artifact=found.value("artifactId"),
        version=found.value("version"),
        relative_path="../pom.xml" if where is None else _read_path(where),
    )


def _find_layers(root: Element) -> Iterator[Element]:
    """The POM, and its profiles that are active by default, if no other profile of the same POM can
    be active already and so turn them off. Modules of profiles do not count: releases turn such
    profiles off.

    https://maven.apache.org/guides/introduction/introduction-to-profiles.html
    """
    yield root
    conditional = [each for each in root.all("profiles", "profile") if each.child("activation")]
    default = [each for each in conditional if each.value("activation", _BY_DEFAULT) == "true"]
    if len(default) == len(conditional):
        yield from default


def find_properties(root: Element) -> dict[str, Element]:
    """Those of the POM that count, by name; the last layer wins."""
    return {
        child.tag: child
        for layer in _find_layers(root)
        if (found := layer.child("properties")) is not None
        for child in found.children
    }


def _list_modules(layer: Element) -> tuple[str, ...]:
    return tuple(text for each in layer.all("modules", "module") if (text := _read_path(each)))


def _read_path(element: Element) -> str:
    """Maven takes the separators of Windows on all systems.
    https://issues.apache.org/jira/browse/MNG-4464
    """
    return element.text.strip().replace("\\", "/")


def _parse_references(root: Element) -> Iterator[PomReference]:
    """Also of the profiles that may be active for users; not all of them need what those add that
    are active under conditions.
    """
    layers = list(_find_layers(root))
    for layer in layers:
        yield from _parse_layer(layer)
    active = {id(layer) for layer in layers}
    for profile in root.all("profiles", "profile"):
        if profile.child("activation") and id(profile) not in active:
            for each in _parse_layer(profile):
                # A file that users lack spoils the POM where it is only managed, too.
                if each.use in {"dependency", "plugin"} or each.system_path:
                    yield replace(each, needed=False)


def _parse_layer(root: Element) -> Iterator[PomReference]:
    for element in root.all("dependencies", "dependency"):
        hidden = element.value("scope") in {"test", "provided", "system"}
        optional = element.value("optional") == "true"
        yield _parse_reference(element, "dependency", needed=not optional and not hidden)
    for element in root.all("dependencyManagement", "dependencies", "dependency"):
        imported = element.value("scope") == "import"
        yield _parse_reference(element, "import" if imported else "managed", needed=imported)
    for element in root.all("build", "plugins", "plugin"):
        yield _parse_reference(element, "plugin", needed=False)
        for inner in element.all("dependencies", "dependency"):
            yield _parse_reference(inner, "plugin", needed=False)
    for element in root.all("build", "pluginManagement", "plugins", "plugin"):
        yield _parse_reference(element, "managed plugin", needed=False)
    for element in root.all("build", "extensions", "extension"):
        yield _parse_reference(element, "plugin", needed=False)


def _parse_reference(element: Element, use: Use, *, needed: bool) -> PomReference:
    version = element.child("version")
    group = element.value("groupId")
    return PomReference(
        use=use,
        group=group or ("org.apache.maven.plugins" if use.endswith("plugin") else ""),
        artifact=element.value("artifactId"),
        version=version.text.strip() if version else "",
        span=(version.start, version.end) if version else (0, 0),
        needed=needed,
        system_path=element.value("systemPath") if element.value("scope") == "system" else "",
    )


def _parse_relocation(root: Element) -> Iterator[PomReference]:
    """What users get in place of this; what it leaves open is that of the POM.

    https://maven.apache.org/guides/mini/guide-relocation.html
    """
    found = root.child("distributionManagement", "relocation")
    if found is not None:
        own = {tag: root.value(tag) or root.value("parent", tag) for tag in _COORDINATES[:3]}
        yield replace(
            _parse_reference(found, "relocation", needed=True),
            group=found.value("groupId") or own["groupId"],
            artifact=found.value("artifactId") or own["artifactId"],
            version=found.value("version") or own["version"],
        )


def _find_settings(root: Element) -> Iterator[PluginSetting]:
    """Of the last layer first. A plugin that only publishes counts in each profile: releases turn
    its profile on, and no POM says which one that is.
    """
    layers = list(_find_layers(root))
    active = {id(layer) for layer in layers}
    others = [each for each in root.all("profiles", "profile") if id(each) not in active]
    for layer in reversed([root, *others, *layers[1:]]):
        for where in (("build",), ("build", "pluginManagement")):
            for plugin in layer.all(*where, "plugins", "plugin"):
                name = plugin.value("artifactId")
                if name in WITHHOLDING and (name != DEPLOY or id(layer) in active):
                    place = "" if id(layer) in active else layer.value("id")
                    for execution, key, value, inherited in _read_plugin(plugin, name):
                        yield PluginSetting(
                            plugin=name,
                            execution=execution,
                            name=key,
                            value=value,
                            managed=len(where) > 1,
                            inherited=inherited,
                            profile=place,
                        )


def _read_plugin(plugin: Element, name: str) -> Iterator[tuple[str, str, str, bool]]:
    """Execution, name and value of each setting, and whether it is inherited; a phase for each,
    which may be empty, tells that they are there.
    """
    goal, parameter = WITHHOLDING[name].goal, WITHHOLDING[name].parameter
    executions = [
        each
        for each in plugin.all("executions", "execution")
        if each.value("id") == f"default-{goal}"
        or any(found.text.strip() == goal for found in each.all("goals", "goal"))
    ]
    for each in (plugin, *executions):
        execution = "" if each is plugin else each.value("id") or "default"
        is_inherited = (each.value("inherited") or plugin.value("inherited")) != "false"
        yield execution, PHASE, each.value(PHASE), is_inherited
        if value := each.value("configuration", parameter):
            yield execution, parameter, value, is_inherited
        excluded = each.child("configuration", EXCLUDED)
        for artifact in excluded.children if excluded is not None else ():
            yield execution, EXCLUDED, artifact.text.strip(), is_inherited


def _list_repositories(root: Element) -> Iterator[str]:
    """Those of profiles count where nothing else names one: releases turn their profile on, and no
    POM says which one that is.
    """
    path = ("distributionManagement", "repository", "url")
    found = [url for layer in _find_layers(root) if (url := layer.value(*path))]
    if found:
        yield found[-1]
        return
    yield from (url for each in root.all("profiles", "profile") if (url := each.value(*path)))


def _find_diversions(root: Element) -> Iterator[str]:
    """In whatever profile: arguments turn them on."""
    for layer in (root, *root.all("profiles", "profile")):
        for where in (("build",), ("build", "pluginManagement")):
            for plugin in layer.all(*where, "plugins", "plugin"):
                if plugin.value("artifactId") == DEPLOY:
                    for each in (plugin, *plugin.all("executions", "execution")):
                        names = (it for it in ALTERNATIVES if each.value("configuration", it))
                        yield from names
