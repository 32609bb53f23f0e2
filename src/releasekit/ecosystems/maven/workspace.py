"""The projects of a reactor, with what they inherit and what their expressions stand for.

https://maven.apache.org/ref/3.9.9/maven-model-builder/ says how Maven builds its models. Of these
rules only those are followed that decide coordinates, and only as far as the files of the workspace
reach: profiles are left out but for what those say of properties and of deployment that are active
by default, and so is what a parent on a registry defines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven import settings
from releasekit.ecosystems.maven.pom import read_pom
from releasekit.errors import ManifestError, MembersError
from releasekit.host.files import inside, is_file
from releasekit.text.escape import clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.maven import Options
    from releasekit.ecosystems.maven.pom import Pom

MAX_PROJECTS: Final = 10_000
MAX_PARENTS: Final = 50
# Properties may use each other: without a bound a small file could stand for gigabytes.
MAX_EXPRESSIONS: Final = 1_000
MAX_VALUE_CHARS: Final = 4_096
# Each is part of a file's name, of which file systems take so many bytes.
MAX_COORDINATE_CHARS: Final = 255
_EXPRESSION: Final = re.compile(r"\$\{([^${}]+)\}")
# What coordinates may hold. They become paths, URLs and arguments.
# https://maven.apache.org/ref/3.9.9/maven-model-builder/ (validation of identifiers)
_COORDINATE: Final = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")


@dataclass(slots=True, kw_only=True, eq=False)
class PomProject:
    """A POM with its coordinates resolved. `top` is the directory of its reactor.

    `parent` is None when the parent is not in this workspace. `overrides` are the properties set
    from outside, which beat what POMs say.
    """

    pom: Pom
    top: Path
    overrides: Mapping[str, str]
    parent: PomProject | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    artifact: str = ""
    version: str = ""

    @property
    def name(self) -> str:
        return f"{self.group}:{self.artifact}"

    @property
    def manifest(self) -> Path:
        return self.pom.path

    @property
    def packaging(self) -> str:
        return self.resolve(self.pom.packaging)

    def ancestry(self) -> Iterator[PomProject]:
        """The project itself, its parent, and so on, as far as they are in the workspace."""
        project: PomProject | None = self
        while project is not None:
            yield project
            project = project.parent

    def resolve(self, text: str) -> str:
        """`text` with its expressions replaced; those that nothing here defines stay."""
        for _ in range(MAX_EXPRESSIONS):
            for expression in _EXPRESSION.finditer(text):
                value = self._value(expression[1])
                if value is not None and expression[0] not in value:
                    text = text[: expression.start()] + value + text[expression.end() :]
                    break
            else:
                return text
            if len(text) > MAX_VALUE_CHARS:
                break
        raise ManifestError(f"{self.pom.path}: {text[:60]!r} never comes to an end")

    def _value(self, name: str) -> str | None:
        if name in self.overrides:
            return self.overrides[name]
        model = self.model()
        for prefix in ("project.", "pom."):
            if name.startswith(prefix) and name.removeprefix(prefix) in model:
                return model[name.removeprefix(prefix)]
        if name in self.properties:
            return self.properties[name]
        return model.get(name)

    def model(self) -> dict[str, str]:
        """What `${project.…}` stands for; the coordinates are unresolved until they are set."""
        pom, inherited = self.pom, {}
        if pom.parent is not None:
            above = self.parent or pom.parent
            inherited = {
                "parent.groupId": above.group,
                "parent.artifactId": above.artifact,
                "parent.version": above.version,
            }
        return {
            "groupId": self.group or pom.group or inherited.get("parent.groupId", ""),
            "artifactId": self.artifact or pom.artifact,
            "version": self.version or pom.version or inherited.get("parent.version", ""),
            "packaging": pom.packaging,
            **inherited,
        }


def load_projects(root: Path, options: Options) -> list[PomProject]:
    """Every project of the workspace's reactors, each once, in the order they are listed.

    Raises ConfigError for a module that is not there, or leads out of `root`.
    """
    found: list[PomProject] = []
    for top in _tops(root, options):
        found += _Reactor(root, top, options).projects()
    return list({project.pom.path: project for project in found}.values())


def _tops(root: Path, options: Options) -> list[Path]:
    if not options.reactors:
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

    def __init__(self, root: Path, top: Path, options: Options) -> None:
        self._root = root
        self._top = top
        self._overrides = settings.overrides(root, top, options)
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
                pending += self._modules(listed[path])
            if len(listed) > MAX_PROJECTS:
                raise MembersError(f"{self._top}: more than {MAX_PROJECTS} modules")
        self._by_key = {pom.key: path for path, pom in listed.items()}
        return [self._project(path, 0) for path in listed]

    def _read(self, path: Path) -> Pom:
        if path not in self._poms:
            self._poms[path] = read_pom(path)
        return self._poms[path]

    def _modules(self, pom: Pom) -> Iterator[Path]:
        own = PomProject(
            pom=pom, top=self._top, overrides=self._overrides, properties=pom.properties
        )
        for module in map(own.resolve, pom.modules):
            where = f"{pom.path}: module {clip(module, 200)!r}"
            path = pom_at(pom.path.parent / module)
            if path is None:
                raise MembersError(f"{where} has no pom.xml", hint="Remove it, or add its POM.")
            yield inside(self._root, path, where=where)

    def _project(self, path: Path, depth: int) -> PomProject:
        if depth > MAX_PARENTS:
            raise ManifestError(f"{path}: its parents never come to an end")
        if path not in self._projects:
            pom = self._read(path)
            project = PomProject(pom=pom, top=self._top, overrides=self._overrides)
            project.parent = self._parent(pom, depth)
            above = project.parent.properties if project.parent else {}
            project.properties = {**above, **pom.properties}
            self._complete(project)
            self._projects[path] = project
        return self._projects[path]

    def _parent(self, pom: Pom, depth: int) -> PomProject | None:
        """Where Maven finds it: at the relative path, else among the modules."""
        wanted = pom.parent
        if wanted is None:
            return None
        candidates = [self._by_key.get((wanted.group, wanted.artifact))]
        if wanted.relative_path:
            candidates.insert(0, pom_at(pom.path.parent / wanted.relative_path))
        for candidate in candidates:
            if candidate is None or not (path := candidate.resolve()).is_relative_to(self._root):
                continue
            found = self._read(path)
            if path == pom.path or found.artifact != wanted.artifact:
                continue
            parent = self._project(path, depth + 1)
            if (parent.group, parent.version) == (
                parent.resolve(wanted.group),
                parent.resolve(wanted.version),
            ):
                return parent
        return None

    def _complete(self, project: PomProject) -> None:
        model = project.model()
        for tag in ("groupId", "artifactId", "version"):
            value = model[tag] = project.resolve(model[tag])
            if len(value) > MAX_COORDINATE_CHARS:
                raise ManifestError(
                    f"{project.pom.path}: its <{tag}> is longer than {MAX_COORDINATE_CHARS} "
                    f"characters: {value[:60]!r}",
                    hint="Write a shorter one: it becomes part of file names.",
                )
            if not _COORDINATE.fullmatch(value) or ".." in value:
                raise ManifestError(
                    f"{project.pom.path}: its <{tag}> is {value[:100]!r}, which is no {tag}",
                    hint="What the files of the workspace do not define can be set in "
                    'releasekit.toml: [maven] properties = { name = "value" }.'
                    if "${" in value
                    else "Letters, digits, and _ . + - are what it may hold.",
                )
        project.group, project.artifact = model["groupId"], model["artifactId"]
        project.version = model["version"]


def pom_at(path: Path) -> Path | None:
    """A module or a parent may be named by its directory or by its file."""
    for candidate in (path / "pom.xml", path):
        if is_file(candidate):
            return candidate
    return None
