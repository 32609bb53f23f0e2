"""What makes Maven refuse a POM whatever other POMs say: its build would fail, after packages of
other ecosystems have gone out; and a POM of `dist` has no build.

https://github.com/apache/maven/blob/maven-3.9.9/maven-model-builder/src/main/java/org/apache/maven/model/validation/DefaultModelValidator.java
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from releasekit.ecosystems.maven.document import Element

# Maven 4 has a model 4.1.0 beside it, which lists modules and inherits in other ways.
# https://maven.apache.org/whatsnewinmaven4.html
_MODEL: Final = "4.0.0"
# https://maven.apache.org/ref/3.9.9/maven-model/maven.html
_OF_PROJECTS: Final = frozenset(
    (
        *("modelVersion", "parent", "groupId", "artifactId", "version", "packaging", "name"),
        *("description", "url", "inceptionYear", "organization", "licenses", "developers"),
        *("contributors", "mailingLists", "prerequisites", "modules", "scm", "issueManagement"),
        *("ciManagement", "distributionManagement", "properties", "dependencyManagement"),
        *("dependencies", "repositories", "pluginRepositories", "build", "reports", "reporting"),
        "profiles",
    )
)
_ID: Final = re.compile(r"[A-Za-z0-9_.-]*")
_NOT_IN_VERSIONS: Final = frozenset('\\/:"<>|?*')
_COORDINATES: Final = ("groupId", "artifactId", "version")
_OF_PLUGINS: Final = frozenset({"", "compile", "runtime", "system"})
_LISTED: Final = {"repositories": "repository", "pluginRepositories": "pluginRepository"}


def find_faults(root: Element) -> Iterator[str]:
    """Each as the end of a sentence about the file."""
    if (model := root.value("modelVersion")) != _MODEL:
        said = f"has the modelVersion {clip(model, 60)!r}" if model else "has no <modelVersion>"
        yield f"{said}: write <modelVersion>{_MODEL}</modelVersion>, which is what ReleaseKit reads"
    for tag in {each.tag: None for each in root.children if each.tag not in _OF_PROJECTS}:
        yield f"has <{clip(tag, 60)}> in <project>, which Maven does not know: remove it"
    if root.child("packaging") is not None and not root.value("packaging"):
        yield "has an empty <packaging>: remove it, or write <packaging>jar</packaging>"
    for each in root.all("parent"):
        yield from _find_missing(each, "its <parent>", *_COORDINATES)
    if root.value("distributionManagement", "status"):
        yield "has a <status> in <distributionManagement>, which only repositories write: remove it"
    for each in root.all("reporting", "plugins", "plugin"):
        yield from _find_missing(each, "a plugin in <reporting>", "artifactId")
    # Those of a profile count where it is active.
    modules = [each.text.strip() for each in root.all("modules", "module")]
    if "" in modules:
        yield "lists a <module> without a path: remove it"
    yield from _find_twins(filter(None, modules), "modules")
    yield from _find_in_dependencies(root)
    yield from _find_in_plugins(root)
    profiles = [*root.all("profiles", "profile")]
    yield from _find_twins((each.value("id") or "default" for each in profiles), "profiles")
    for layer in (root, *profiles):
        yield from _find_in_layer(layer)


def _find_in_layer(layer: Element) -> Iterator[str]:
    yield from _find_repeated(layer)
    for each in layer.all("build"):
        yield from _find_repeated(each)
    for kind, tag in _LISTED.items():
        found = [*layer.all(kind, tag)]
        for each in found:
            yield from _find_missing(each, f"<{tag}>", "id", "url")
        yield from _find_twins((each.value("id") for each in found), f"<{kind}>")
    for where in (("build",), ("build", "pluginManagement")):
        for plugin in layer.all(*where, "plugins", "plugin"):
            named = f"the plugin {clip(plugin.value('artifactId') or '?', 60)}"
            yield from _find_missing(plugin, named, "artifactId")
            for tag in ("groupId", "version"):
                if plugin.child(tag) is not None:
                    yield from _find_missing(plugin, named, tag)
            executions = plugin.all("executions", "execution")
            ids = (each.value("id") or "default" for each in executions)
            yield from _find_twins(ids, f"executions of {named}")


def _find_in_dependencies(root: Element) -> Iterator[str]:
    """Only those of the POM itself: profiles may never be active."""
    own = {tag: root.value(tag) or root.value("parent", tag) for tag in _COORDINATES}
    for each in root.all("dependencies", "dependency"):
        yield from _find_missing(each, "a dependency", "groupId", "artifactId")
        yield from _find_repeated(each)
        for tag in _COORDINATES[:2]:
            if "${" not in (text := each.value(tag)) and not _ID.fullmatch(text):
                said = f"has a dependency with the <{tag}> {clip(text, 60)!r}"
                yield f"{said}, which is not a valid {tag}"
        is_jar = each.value("type") in {"", "jar"} and not each.value("classifier")
        if is_jar and all(each.value(tag) == text for tag, text in own.items()):
            yield "depends on itself: remove that dependency"
        version = each.value("version")
        if "${" not in version and _NOT_IN_VERSIONS.intersection(version):
            said = f"depends on version {clip(version, 60)!r} of {_name(each)}"
            yield f"{said}, which is not a valid version"
    for each in root.all("dependencyManagement", "dependencies", "dependency"):
        yield from _find_missing(each, "a managed dependency", "groupId", "artifactId")


def _find_in_plugins(root: Element) -> Iterator[str]:
    for plugin in root.all("build", "plugins", "plugin"):
        if (version := plugin.value("version")) in {"LATEST", "RELEASE"}:
            yield f"uses the version {version} of the plugin {_name(plugin)}: write a fixed version"
        for each in plugin.all("dependencies", "dependency"):
            yield from _find_missing(each, "a dependency of a plugin", "groupId", "artifactId")
            if "${" not in (scope := each.value("scope")) and scope not in _OF_PLUGINS:
                yield (
                    f"depends on {_name(each)} for a plugin in the scope {clip(scope, 60)!r}: "
                    "write compile, runtime or system"
                )


def _find_missing(element: Element, named: str, *tags: str) -> Iterator[str]:
    for tag in tags:
        if not element.value(tag):
            yield f"has no <{tag}> in {named}: add it"


def _find_twins(names: Iterable[str], kind: str) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"has {count} {kind} named {clip(name, 60)!r}: remove or rename all but one"


def _find_repeated(element: Element) -> Iterator[str]:
    """Only the first of them would be read."""
    for tag, count in Counter(each.tag for each in element.children).items():
        if count > 1:
            yield f"has <{clip(tag, 60)}> {count} times in <{element.tag}>: keep only one"


def _name(element: Element) -> str:
    return clip(element.value("artifactId"), 60)
