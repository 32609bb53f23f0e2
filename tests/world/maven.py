"""Maven reactors: what Maven makes of their POMs, and reactors of that shape."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from world.facts import Edges, Expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Element = ET.Element

_SPACE: Final = "{http://maven.apache.org/POM/4.0.0}"
_EXPRESSION: Final = re.compile(r"\$\{([^}]+)\}")
_DEPLOY: Final = "maven-deploy-plugin"
# Where in a POM dependencies, plugins and the like are listed, and what they are called here.
_LISTS: Final = {
    "dependencies": ("dependencies/dependency",),
    "managed": ("dependencyManagement/dependencies/dependency",),
    "plugins": ("build/plugins/plugin", "build/plugins/plugin/dependencies/dependency"),
    "managedPlugins": ("build/pluginManagement/plugins/plugin",),
}
_REFERENCE: Final = ("groupId", "artifactId", "version", "scope", "optional")
_OWN: Final = ("groupId", "artifactId", "version", "packaging")


def tool(_root: Path) -> list[str]:
    return ["mvn", "--batch-mode", "--version"]


def distilled(root: Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], Expected]:
    effective = {_name(each): each for each in _effective(root, config.get("args", ()))}
    poms = {path.relative_to(root).as_posix(): _parsed(path) for path in _listed(root)}
    names = {_text(each, "artifactId").rpartition(":")[2] for each in poms.values()}
    shape = {where: _kept(pom, names) for where, pom in poms.items()}
    defined = {key for kept in shape.values() for key in kept.get("properties", ())}
    above = _missing(shape, defined, next(iter(effective.values())))
    if above:
        shape["pom.xml"]["properties"] = above | shape["pom.xml"].get("properties", {})
    for kept in shape.values():
        wanted = _wanted(shape)
        kept["properties"] = {
            key: value for key, value in kept.get("properties", {}).items() if key in wanted
        }
    shape = {where: {k: v for k, v in kept.items() if v} for where, kept in shape.items()}
    return {"poms": shape}, _expected(effective, shape)


def _effective(root: Path, args: Sequence[str]) -> Iterator[Element]:
    """https://maven.apache.org/plugins/maven-help-plugin/effective-pom-mojo.html"""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "effective.xml")
        argv = ["mvn", "--batch-mode", "--quiet", *args, "help:effective-pom", f"-Doutput={path}"]
        subprocess.run(argv, cwd=root, check=True, stdout=subprocess.DEVNULL)
        top = _parsed(path)
    yield from [top] if top.tag == "project" else top.findall("project")


def _parsed(path: Path) -> Element:
    top = ET.parse(path).getroot()
    for element in top.iter():
        if isinstance(element.tag, str):
            element.tag = re.sub(r"^\{[^}]*\}", "", element.tag)
    return top


def _listed(root: Path) -> list[Path]:
    """The POMs of the reactor, profiles left out."""
    pending, found = [root / "pom.xml"], []
    while pending:
        path = pending.pop(0)
        found.append(path)
        for module in _parsed(path).findall("modules/module"):
            below = path.parent / (module.text or "").strip()
            pending.append(below / "pom.xml" if below.is_dir() else below)
    return found


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _name(project: Element) -> str:
    return f"{_text(project, 'groupId')}:{_text(project, 'artifactId')}"


def _kept(pom: Element, names: set[str]) -> dict[str, Any]:
    """Of a POM what has to do with the projects of the reactor; texts as they stand there."""
    kept: dict[str, Any] = {key: _text(pom, key) for key in _OWN}
    parent = pom.find("parent")
    if parent is not None:
        where = parent.find("relativePath")
        coordinates = {key: _text(parent, key) for key in _OWN[:3]}
        if coordinates["artifactId"] in names:
            relative = {} if where is None else {"relativePath": (where.text or "").strip()}
            kept["parent"] = coordinates | relative
        else:
            kept |= {key: kept[key] or coordinates[key] for key in ("groupId", "version")}
    kept["modules"] = [(each.text or "").strip() for each in pom.findall("modules/module")]
    for key, paths in _LISTS.items():
        entries = [
            [*filter(None, (_named(each, tag) for tag in _REFERENCE))]
            for path in paths
            for each in pom.findall(path)
            if _text(each, "artifactId") in names or "${" in _text(each, "artifactId")
        ]
        kept[key] = [*map(list, dict.fromkeys(map(tuple, entries)))]
    default = [
        each
        for each in pom.findall("profiles/profile")
        if _text(each, "activation/activeByDefault") == "true"
    ]
    for path in ("build/plugins/plugin", "build/pluginManagement/plugins/plugin"):
        for plugin in (each for layer in (pom, *default) for each in layer.findall(path)):
            skip = _text(plugin, "configuration/skip")
            if _text(plugin, "artifactId") == _DEPLOY and skip:
                kept["skip"] = [skip, _text(plugin, "inherited") or "true"]
    properties = pom.find("properties")
    kept["properties"] = {
        str(each.tag): (each.text or "").strip()
        for each in (properties if properties is not None else ())
        if isinstance(each.tag, str)
    }
    return kept


def _named(element: Element, tag: str) -> str:
    """As `tag=text`, so that what is left out takes no room."""
    text = _text(element, tag)
    return f"{tag}={text}" if text else ""


def _wanted(shape: Mapping[str, Any]) -> set[str]:
    """The properties that what is kept makes use of."""
    values = {
        key: value for kept in shape.values() for key, value in kept.get("properties", {}).items()
    }
    texts = [repr({**kept, "properties": {}}) for kept in shape.values()]
    pending = {"maven.deploy.skip", *_EXPRESSION.findall(" ".join(texts))}
    found: set[str] = set()
    while pending:
        found |= pending
        used = " ".join(values.get(key, "") for key in pending)
        pending = {*_EXPRESSION.findall(used)} - found
    return found


def _missing(shape: Mapping[str, Any], defined: set[str], top: Element) -> dict[str, str]:
    """What a parent outside of the repository, or a profile, defines of them."""
    told = top.find("properties")
    known = {
        str(each.tag): (each.text or "").strip() for each in (told if told is not None else ())
    }
    return {
        key: known[key]
        for key in sorted(_wanted(shape) - defined)
        if key in known and not key.startswith(("project.", "os."))
    }


def _expected(effective: Mapping[str, Element], shape: Mapping[str, Any]) -> Expected:
    """Maven orders a reactor by parents and by dependencies of every scope; BOMs and plugins come
    second. What a parent has passed on is the parent's to wait for.
    """
    by_artifact = {name.partition(":")[2]: name for name in effective}
    declared = {
        by_artifact[kept["artifactId"]]: _Declared(kept)
        for kept in shape.values()
        if kept["artifactId"] in by_artifact
    }
    hard: Edges = set()
    soft: Edges = set()
    idle: Edges = set()
    for name, project in effective.items():
        own = declared.get(name, _Declared({}))
        parents = {_name(each) for each in project.findall("parent")}
        imported = {by_artifact[each] for each in own.imported if each in by_artifact}
        hard |= {(name, on) for on in (parents | imported) & effective.keys()}
        for key, paths in _LISTS.items():
            if key == "managedPlugins":
                continue
            for each in (each for path in paths for each in project.findall(path)):
                kind = hard if key == "dependencies" else soft
                inherited = _text(each, "artifactId") not in own.artifacts(key)
                (idle if inherited else kind).add((name, _name(each)))
    return Expected(
        versions={name: _text(project, "version") for name, project in effective.items()},
        private=frozenset(name for name, project in effective.items() if _skipped(project)),
        hard=frozenset(hard),
        soft=frozenset(soft),
        idle=frozenset(idle),
    )


@dataclass(frozen=True)
class _Declared:
    """What one POM says itself."""

    kept: Mapping[str, Any]

    def artifacts(self, key: str) -> set[str]:
        entries = [dict(each.split("=", 1) for each in entry) for entry in self.kept.get(key, ())]
        found = {each["artifactId"] for each in entries}
        return {self._resolved(artifact) for artifact in found}

    @property
    def imported(self) -> set[str]:
        return {
            dict(each.split("=", 1) for each in entry)["artifactId"]
            for entry in self.kept.get("managed", ())
            if "scope=import" in entry
        }

    def _resolved(self, artifact: str) -> str:
        return artifact.replace("${project.artifactId}", self.kept["artifactId"])


def _skipped(project: Element) -> bool:
    """https://maven.apache.org/plugins/maven-deploy-plugin/deploy-mojo.html#skip"""
    for plugin in project.findall("build/plugins/plugin"):
        if _text(plugin, "artifactId") == _DEPLOY and _text(plugin, "configuration/skip"):
            return _text(plugin, "configuration/skip") == "true"
    return _text(project, "properties/maven.deploy.skip") == "true"


def write(root: Path, shape: Mapping[str, Any], _config: Mapping[str, Any]) -> None:
    for where, kept in shape["poms"].items():
        path = root / where
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_pom(kept))


def _pom(kept: Mapping[str, Any]) -> str:
    own = {key: kept[key] for key in _OWN if key in kept}
    if own.get("packaging", "jar") not in {"jar", "pom"}:
        own["packaging"] = "jar"  # what is there to be packed as anything else
    lines = [f"<project xmlns={_SPACE[1:-1]!r}>", "<modelVersion>4.0.0</modelVersion>"]
    if "parent" in kept:
        lines += _element("parent", kept["parent"])
    lines += _fields(own)
    lines += _wrapped("properties", _fields(kept.get("properties", {})))
    modules = [f"<module>{escape(each)}</module>" for each in kept.get("modules", ())]
    lines += _wrapped("modules", modules)
    managed = _wrapped("dependencies", _references("dependency", kept.get("managed", ())))
    lines += _wrapped("dependencyManagement", managed)
    needs = _references("dependency", kept.get("dependencies", ()))
    lines += _wrapped("dependencies", needs)
    plugins = _references("plugin", kept.get("plugins", ()))
    if "skip" in kept:
        skip, inherited = kept["skip"]
        plugins += [
            f"<plugin><artifactId>{_DEPLOY}</artifactId><inherited>{inherited}</inherited>",
            f"<configuration><skip>{escape(skip)}</skip></configuration></plugin>",
        ]
    managed = _wrapped("plugins", _references("plugin", kept.get("managedPlugins", ())))
    build = [*_wrapped("plugins", plugins), *_wrapped("pluginManagement", managed)]
    lines += _wrapped("build", build)
    return "\n".join([*lines, "</project>", ""])


def _references(tag: str, entries: Iterable[list[str]]) -> list[str]:
    found = []
    for entry in entries:
        fields = dict(each.split("=", 1) for each in entry)
        if fields.get("scope") == "import":
            fields["type"] = "pom"
        if tag == "plugin":
            fields = {key: fields[key] for key in _OWN[:3] if key in fields}
        found += _element(tag, fields)
    return found


def _element(tag: str, fields: Mapping[str, str]) -> list[str]:
    return [f"<{tag}>", *_fields(fields), f"</{tag}>"]


def _fields(fields: Mapping[str, str]) -> list[str]:
    return [f"<{key}>{escape(value)}</{key}>" for key, value in fields.items()]


def _wrapped(tag: str, lines: list[str]) -> list[str]:
    return [f"<{tag}>", *lines, f"</{tag}>"] if lines else []
