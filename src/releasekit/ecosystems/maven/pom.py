"""One POM as it is written: nothing inherited, no expression resolved.

https://maven.apache.org/ref/3.9.9/maven-model/maven.html
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from releasekit.ecosystems.maven.document import read_document
from releasekit.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.maven.document import Element

# What a reference is for; "managed" says which version others would get, "import" brings a BOM.
Use = Literal["dependency", "managed", "import", "plugin", "managed plugin"]
_BY_DEFAULT: Final = "activeByDefault"
_COORDINATES: Final = (
    *("groupId", "artifactId", "version"),
    *("parent.groupId", "parent.artifactId", "parent.version"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Coordinates as they stand in a POM; empty where it leaves them open.

    `span` holds the offsets of the version in the file, in bytes. `needed` is False for what users
    of the package never resolve: optional, provided and test dependencies.
    """

    use: Use
    group: str
    artifact: str
    version: str = ""
    span: tuple[int, int] = (0, 0)
    needed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """`relative_path` is where Maven looks first; empty for one that is only on a registry."""

    group: str
    artifact: str
    version: str
    relative_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pom:
    """`spans` are the offsets of what coordinates hold, by their path, in bytes.

    `skip` is what the deploy plugin's configuration says about itself; `skip_inherited` whether
    that holds for the modules below too.
    """

    path: Path
    group: str
    artifact: str
    version: str
    packaging: str
    parent: Parent | None
    properties: Mapping[str, str]
    modules: tuple[str, ...]
    references: tuple[Reference, ...]
    skip: str = ""
    skip_inherited: bool = True
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Which POM of the workspace this is, whatever else of it has been changed."""
        return self.group or (self.parent.group if self.parent else ""), self.artifact


def read_pom(path: Path) -> Pom:
    """Raises ConfigError naming the file for what is no POM."""
    return parse_pom(read_document(path), path)


def parse_pom(root: Element, path: Path) -> Pom:
    """The POM in the XML of a file."""
    if root.tag != "project":
        raise ManifestError(f"{path}: not a POM: its root is <{root.tag}>, not <project>")
    artifact = root.value("artifactId")
    parent = _parent(root)
    for tag, value in (
        ("artifactId", artifact),
        ("groupId", root.value("groupId") or (parent and parent.group)),
        ("version", root.value("version") or (parent and parent.version)),
    ):
        if not value:
            raise ManifestError(f"{path}: has no <{tag}>", hint="Every POM has one, or a parent's.")
    layers = list(_layers(root))
    skip, inherited = _skip(layers)
    return Pom(
        path=path,
        group=root.value("groupId"),
        artifact=artifact,
        version=root.value("version"),
        packaging=root.value("packaging") or "jar",
        parent=parent,
        properties={
            child.tag: child.text.strip()
            for layer in layers
            if (found := layer.child("properties")) is not None
            for child in found.children
        },
        modules=tuple(
            filter(None, (module.text.strip() for module in root.all("modules", "module")))
        ),
        references=tuple(_references(root)),
        skip=skip,
        skip_inherited=inherited,
        spans={
            path: (found.start, found.end)
            for path in _COORDINATES
            if (found := root.child(*path.split("."))) is not None
        },
    )


def _parent(root: Element) -> Parent | None:
    found = root.child("parent")
    if found is None:
        return None
    where = found.child("relativePath")
    return Parent(
        group=found.value("groupId"),
        artifact=found.value("artifactId"),
        version=found.value("version"),
        relative_path="../pom.xml" if where is None else where.text.strip(),
    )


def _layers(root: Element) -> Iterator[Element]:
    """The POM, and its profiles that are active by default: they are unless another profile of the
    same POM is, so a POM where another could be active by itself has none. Modules and dependencies
    that a profile adds stay out: releases turn such profiles off.

    https://maven.apache.org/guides/introduction/introduction-to-profiles.html
    """
    yield root
    conditional = [each for each in root.all("profiles", "profile") if each.child("activation")]
    default = [each for each in conditional if each.value("activation", _BY_DEFAULT) == "true"]
    if len(default) == len(conditional):
        yield from default


def _references(root: Element) -> Iterator[Reference]:
    for element in root.all("dependencies", "dependency"):
        hidden = element.value("scope") in {"test", "provided", "system"}
        optional = element.value("optional") == "true"
        yield _reference(element, "dependency", needed=not optional and not hidden)
    for element in root.all("dependencyManagement", "dependencies", "dependency"):
        imported = element.value("scope") == "import"
        yield _reference(element, "import" if imported else "managed", needed=imported)
    for element in root.all("build", "plugins", "plugin"):
        yield _reference(element, "plugin", needed=False)
        for inner in element.all("dependencies", "dependency"):
            yield _reference(inner, "plugin", needed=False)
    for element in root.all("build", "pluginManagement", "plugins", "plugin"):
        yield _reference(element, "managed plugin", needed=False)
    for element in root.all("build", "extensions", "extension"):
        yield _reference(element, "plugin", needed=False)


def _reference(element: Element, use: Use, *, needed: bool) -> Reference:
    version = element.child("version")
    group = element.value("groupId")
    return Reference(
        use=use,
        group=group or ("org.apache.maven.plugins" if use.endswith("plugin") else ""),
        artifact=element.value("artifactId"),
        version=version.text.strip() if version else "",
        span=(version.start, version.end) if version else (0, 0),
        needed=needed,
    )


def _skip(layers: Sequence[Element]) -> tuple[str, bool]:
    """What the POM's own configuration of the deploy plugin says, the last layer's first.

    https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#skip
    """
    for where in (("build",), ("build", "pluginManagement")):
        for plugin in (
            each for one in reversed(layers) for each in one.all(*where, "plugins", "plugin")
        ):
            skip = plugin.value("configuration", "skip")
            if plugin.value("artifactId") == "maven-deploy-plugin" and skip:
                return skip, plugin.value("inherited") != "false"
    return "", True
