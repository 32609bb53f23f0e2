"""One pyproject.toml, read: what it says of its package, before anyone asks a build hook."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from email.parser import HeaderParser
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name, is_normalized_name
from packaging.version import InvalidVersion, Version

from releasekit.ecosystems.shared.documents import checked_table
from releasekit.errors import ManifestError
from releasekit.host.files import read_parsed
from releasekit.model import DependencyKind
from releasekit.text.bounds import parse_toml
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    # By canonical name; several where markers tell them apart.
    Sources = Mapping[str, tuple[Mapping[str, object], ...]]

MAX_BYTES: Final = 1024 * 1024
MAX_REQUIREMENTS: Final = 10_000
# Files are named by both, and no file system takes more than 255 bytes for a name.
MAX_NAME_CHARS: Final = 200
MAX_REQUIREMENT_CHARS: Final = 4_000
# PEP 517: what a source tree without a build system, or without a named backend, is built with.
# https://peps.python.org/pep-0517/#source-trees
LEGACY_REQUIRES: Final = ("setuptools>=40.8.0",)
LEGACY_BACKEND: Final = "setuptools.build_meta:__legacy__"
POETRY_BACKEND: Final = "poetry.core.masonry.api"
# The fields that matter here and that a build hook may have to tell.
COMPUTED: Final = frozenset({"version", "dependencies", "optional-dependencies"})
# As `packaging` spells a marker, whatever the quotes and spaces in the file.
_EXTRA: Final = re.compile(r'\bextra == "([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSystem:
    requires: tuple[str, ...] = LEGACY_REQUIRES
    backend: str = LEGACY_BACKEND
    backend_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What `uv build` holds build requirements to besides themselves: the lines of a constraints
    file, and uv's own options on how new they may be. `place` is the file that says so.
    """

    place: str = ""
    constraints: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()


UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True)
class Declared:
    """A requirement, where it stands and how it is spelled there.

    `under` are the extras that ask for it, their names canonical.
    """

    kind: DependencyKind
    text: str
    requirement: Requirement
    under: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def extras(self) -> frozenset[str]:
        """The extras of `name` that it asks for."""
        return frozenset(map(canonicalize_name, self.requirement.extras))


@dataclass(frozen=True, slots=True, kw_only=True)
class PyProject:
    """`version` is normalised, and empty when a build hook has to tell it.

    `requirements` are those of `project.dependencies`, of the extras, and of the build system;
    `dynamic` are the fields a build hook fills in. `elsewhere` are requirements that exclude the
    version this workspace has. What is `between_tags` has the version of a commit that none is
    released from. `home` is the root of its workspace, `sources` where uv takes what from, and
    `limits` what it builds with.
    """

    name: str
    version: str
    manifest: Path
    build_system: BuildSystem
    requirements: tuple[Declared, ...]
    dynamic: frozenset[str]
    unpublishable: str
    elsewhere: tuple[Declared, ...] = ()
    between_tags: bool = False
    home: Path | None = None
    sources: Sources = field(default_factory=dict)
    limits: Limits = UNLIMITED


def read_pyproject(path: Path) -> dict[str, object]:
    """The parsed file; raises ConfigError when it is too large, not UTF-8, or not TOML."""
    return read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_BYTES)


def strings(parent: Mapping[str, object], key: str, *, path: Path, where: str) -> tuple[str, ...]:
    value = parent.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ManifestError(f"{path}: {where} is {value!r}", hint="Write a list of strings.")
    return tuple(value)


def is_project(document: Mapping[str, object]) -> bool:
    """Whether it is about a package; one that Poetry alone understands is never published."""
    return "project" in document or _poetry_name(document) != ""


def _poetry_name(document: Mapping[str, object]) -> str:
    """https://python-poetry.org/docs/pyproject/#package-mode"""
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    if not isinstance(poetry, dict) or poetry.get("package-mode") is False:
        return ""
    name = poetry.get("name")
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARS:
        return ""
    return name if is_normalized_name(canonicalize_name(name)) else ""


def parse_project(document: Mapping[str, object], path: Path) -> PyProject:
    """What the `[project]` and `[build-system]` tables say; raises ConfigError naming the key."""
    if "project" not in document and (name := _poetry_name(document)):
        return PyProject(
            name=canonicalize_name(name),
            version="",
            manifest=path,
            build_system=BuildSystem(),
            requirements=(),
            dynamic=frozenset(),
            unpublishable="its pyproject.toml has [tool.poetry] and no [project], where names, "
            "versions and dependencies are read from: move them there, as Poetry 2 has them",
        )
    metadata = checked_table(document, "project", path=path)
    name = _name(metadata, path)
    dynamic = frozenset(strings(metadata, "dynamic", path=path, where="project.dynamic"))
    unpublishable = _unpublishable(document, path)
    return PyProject(
        name=name,
        version=_version(metadata, dynamic, path, required=not unpublishable),
        manifest=path,
        build_system=build_system(document, path),
        requirements=_requirements(document, path, lenient=bool(unpublishable)),
        dynamic=dynamic,
        unpublishable=unpublishable,
        sources=uv_sources(document, path),
    )


def uv_sources(document: Mapping[str, object], path: Path) -> Sources:
    """https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources"""
    found = {}
    for name, value in checked_table(document, "tool", "uv", "sources", path=path).items():
        tables = value if isinstance(value, list) else [value]
        found[str(canonicalize_name(name))] = tuple(
            table for table in tables if isinstance(table, dict)
        )
    return found


def with_computed_fields(project: PyProject, metadata: str) -> PyProject:
    """The project with its dynamic fields filled in from the METADATA of its wheel.

    https://packaging.python.org/en/latest/specifications/core-metadata/
    """
    path, fields = project.manifest, HeaderParser().parsestr(metadata)
    declared = list(project.requirements)
    for text in fields.get_all("Requires-Dist", []):
        wanted = parse_requirement(text, path=path, where="the built METADATA")
        extras = frozenset(map(canonicalize_name, _EXTRA.findall(str(wanted.marker))))
        field = "optional-dependencies" if extras else "dependencies"
        if field in project.dynamic:
            kind = DependencyKind.OPTIONAL if extras else DependencyKind.RUNTIME
            declared.append(Declared(kind, text, wanted, extras))
    version = project.version or canonical_version(fields.get("Version", ""), path=path)
    return replace(project, version=version, requirements=tuple(declared))


def build_system(document: Mapping[str, object], path: Path) -> BuildSystem:
    """The `[build-system]` table with the defaults of PEP 517 and 518."""
    if "build-system" not in document:
        return BuildSystem()
    given = checked_table(document, "build-system", path=path)
    backend = given.get("build-backend", LEGACY_BACKEND)
    if not isinstance(backend, str) or not backend:
        raise ManifestError(f"{path}: build-system.build-backend is {backend!r}, not a string")
    if "requires" not in given:
        raise ManifestError(
            f"{path}: build-system.requires is missing", hint="Name the build backend's package."
        )
    requires = strings(given, "requires", path=path, where="build-system.requires")
    return BuildSystem(
        requires=requires,
        backend=backend,
        backend_path=strings(given, "backend-path", path=path, where="build-system.backend-path"),
    )


def is_requirement(text: str) -> bool:
    if len(text) > MAX_REQUIREMENT_CHARS:
        return False
    try:
        Requirement(text)
    except (InvalidRequirement, RecursionError):
        return False
    return True


def parse_requirement(text: str, *, path: Path, where: str) -> Requirement:
    if len(text) > MAX_REQUIREMENT_CHARS:
        raise ManifestError(
            f"{path}: {where} holds one of more than {MAX_REQUIREMENT_CHARS} characters"
        )
    try:
        return Requirement(text)
    except RecursionError as error:
        raise ManifestError(f"{path}: {where} holds {text!r}: it is nested too deeply") from error
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        raise ManifestError(f"{path}: {where} holds {text!r}: {reason}") from error


def canonical_version(text: str, *, path: Path) -> str:
    try:
        return str(Version(text if len(text) <= MAX_NAME_CHARS else ""))
    except InvalidVersion as error:
        raise ManifestError(
            f"{path}: project.version is {text!r}",
            hint='Write a version as PEP 440 has it: version = "1.2.3".',
        ) from error


def _name(metadata: Mapping[str, object], path: Path) -> str:
    name = metadata.get("name")
    if not isinstance(name, str):
        raise ManifestError(f"{path}: project.name is missing", hint='Write name = "…".')
    try:
        return canonicalize_name(name if len(name) <= MAX_NAME_CHARS else "", validate=True)
    except InvalidName as error:
        raise ManifestError(
            f"{path}: project.name is {name!r}",
            hint="Use letters, digits, '-', '_' and '.', with a letter or digit at both ends.",
        ) from error


def _version(
    metadata: Mapping[str, object], dynamic: frozenset[str], path: Path, *, required: bool
) -> str:
    version = metadata.get("version")
    if isinstance(version, str):
        return canonical_version(version, path=path)
    if version is None and ("version" in dynamic or not required):
        return ""
    raise ManifestError(
        f"{path}: project.version is {'missing' if version is None else repr(version)}",
        hint='Write version = "1.2.3", or list it in project.dynamic.',
    )


def _requirements(
    document: Mapping[str, object], path: Path, *, lenient: bool
) -> tuple[Declared, ...]:
    """`lenient`: those that are none are left out."""
    metadata = checked_table(document, "project", path=path)
    extras = checked_table(document, "project", "optional-dependencies", path=path)
    declared = [
        (DependencyKind.RUNTIME, metadata, "dependencies", "project.dependencies"),
        *(
            (DependencyKind.OPTIONAL, extras, extra, f"project.optional-dependencies.{extra}")
            for extra in extras
        ),
    ]
    if "build-system" in document:
        build = checked_table(document, "build-system", path=path)
        declared.append((DependencyKind.BUILD, build, "requires", "build-system.requires"))
    found = (
        Declared(
            kind,
            text,
            parse_requirement(text, path=path, where=where),
            frozenset({canonicalize_name(key)} if kind is DependencyKind.OPTIONAL else ()),
        )
        for kind, parent, key, where in declared
        for text in strings(parent, key, path=path, where=where)
        if not lenient or is_requirement(text)
    )
    requirements = tuple(islice(found, MAX_REQUIREMENTS + 1))
    if len(requirements) > MAX_REQUIREMENTS:
        raise ManifestError(f"{path} has more than {MAX_REQUIREMENTS} requirements")
    return requirements


def parse_limits(settings: Mapping[str, object], path: Path, where: str) -> Limits:
    """`settings` are a uv.toml, or `tool.uv`, which is `where` then.

    https://docs.astral.sh/uv/reference/settings/#build-constraint-dependencies
    """
    key = f"{where}build-constraint-dependencies"
    value = settings.get("build-constraint-dependencies", [])
    if not isinstance(value, list):
        raise ManifestError(f"{path}: {key} is {value!r}", hint="Write a list of requirements.")
    newest = settings.get("exclude-newer")
    if not isinstance(newest, str | None):
        raise ManifestError(
            f"{path}: {where}exclude-newer is {newest}",
            hint='Write a date or a duration, such as "2026-11-01" or "7 days", with its quotes.',
        )
    options = [f"--exclude-newer={newest}"] if newest else []
    for name, until in checked_table(settings, "exclude-newer-package", path=path).items():
        date = "false" if until is False else until
        options.append(f"--exclude-newer-package={name}={date}")
    constraints = tuple(_constraint(each, f"{path}: {key}") for each in value)
    place = str(path) if constraints or options else ""
    return Limits(place=place, constraints=constraints, newest=tuple(options))


def _constraint(entry: object, where: str) -> str:
    """A line of a constraints file. An entry may be a table with hashes, which uv verifies."""
    table: Mapping[str, Any] = entry if isinstance(entry, dict) else {"requirement": entry}
    text, hashes = table.get("requirement"), table.get("hashes", [])
    known = isinstance(hashes, list) and all(
        isinstance(each, str) and re.fullmatch(r"\w+:[0-9a-fA-F]+", each) for each in hashes
    )
    if not isinstance(text, str) or not known or not is_requirement(text):
        raise ManifestError(
            f"{where} has {visible(repr(entry))}",
            hint='Write a requirement, such as "hatchling<2", or a table of it and its hashes: '
            '{ requirement = "hatchling==1.27.0", hashes = ["sha256:…"] }.',
        )
    return " ".join([str(Requirement(text)), *(f"--hash={each}" for each in hashes)])


def _unpublishable(document: Mapping[str, object], path: Path) -> str:
    metadata = checked_table(document, "project", path=path)
    uv = checked_table(document, "tool", "uv", path=path)
    # PyPI refuses every classifier that begins so.
    # https://packaging.python.org/en/latest/guides/writing-pyproject-toml/#classifiers
    for classifier in strings(metadata, "classifiers", path=path, where="project.classifiers"):
        if classifier.startswith("Private ::"):
            return f"its classifier {classifier!r} says so"
    packaged = uv.get("package")
    if packaged is False:
        return "tool.uv.package is false"
    # poetry-core refuses to build it then. https://python-poetry.org/docs/pyproject/#package-mode
    backend = checked_table(document, "build-system", path=path).get("build-backend")
    poetry = checked_table(document, "tool", "poetry", path=path)
    if backend == POETRY_BACKEND and poetry.get("package-mode") is False:
        return "tool.poetry.package-mode is false"
    # https://docs.astral.sh/uv/concepts/projects/config/#project-packaging
    if packaged is None and "build-system" not in document:
        return "it has no [build-system], so it is not built as a package"
    return ""
