"""One pyproject.toml: what it says of its package before a build hook is asked, and its in-repo
requirements, pinned to the planned versions.
"""

from __future__ import annotations

import json
import re
import tomllib
from email.parser import HeaderParser
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field
from packaging.metadata import RawMetadata
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidName, canonicalize_name, is_normalized_name
from packaging.version import InvalidVersion, Version

from releasekit.ecosystems.pypi.refused import read_declared
from releasekit.ecosystems.shared.documents import checked_table, table_in, text_in
from releasekit.errors import ManifestError, Unreadable
from releasekit.fields import replace
from releasekit.host.files import read_parsed
from releasekit.model import DependencyKind
from releasekit.text import toml_text
from releasekit.text.bounds import parse_toml
from releasekit.text.escape import visible
from releasekit.text.toml_value import show_toml, write_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.shared.destinations import NamedRegistry
    from releasekit.text.toml_text import Edit, Span, Where

    # By canonical name; several where markers tell them apart.
    Sources = Mapping[str, tuple[Mapping[str, object], ...]]

ECOSYSTEM: Final = "pypi"
MANIFEST: Final = "pyproject.toml"
MAX_BYTES: Final = 1024 * 1024
MAX_REQUIREMENTS: Final = 10_000
# Files are named by both, and no file system takes more than 255 bytes for a name.
MAX_NAME_CHARS: Final = 200
MAX_REQUIREMENT_CHARS: Final = 4_000
# PEP 517: what a source tree without a build system, or without a named backend, is built with.
# https://peps.python.org/pep-0517/#source-trees
LEGACY_REQUIRES: Final = ("setuptools>=40.8.0",)
LEGACY_BACKEND: Final = "setuptools.build_meta:__legacy__"
# Backends that pack other files than Python, and may take any file to make them.
COMPILING: Final = ("maturin", "mesonpy", "scikit_build_core", "setuptools_rust")
# What builds beside setuptools or hatchling require to compile.
_COMPILERS: Final = re.compile(
    r"(?i)(?:cffi|cython|hatch[-_.]mypyc|mypy|nanobind|pybind11|scikit[-_.]build|setuptools[-_.]rust)"
    r"(?![\w.-]*\w)"
)
POETRY_BACKEND: Final = "poetry.core.masonry.api"
# What a person can overrule: PyPI and the build backend take such a project.
APPLICATION: Final = "tool.uv.package is false"
UNBUILT: Final = "it has no [build-system], so uv does not treat it as a package"
OF_POETRY: Final = (
    "its pyproject.toml has [tool.poetry] and no [project], where names, versions and dependencies "
    "are read from: move them there, as Poetry 2 has them"
)
# The fields whose requirements users get.
PUBLISHED: Final = {
    DependencyKind.RUNTIME: "dependencies",
    DependencyKind.OPTIONAL: "optional-dependencies",
}
# The fields that matter here and that a build hook may have to tell.
COMPUTED: Final = frozenset({"version", "dependencies", "optional-dependencies"})
# The name that a requirement begins with. https://packaging.python.org/en/latest/specifications/name-normalization/
_REQUIRED: Final = re.compile(r"[A-Za-z0-9][\w.-]*")
# As `packaging` spells a marker, with any quotes and spaces in the file.
_EXTRA: Final = re.compile(r'\bextra == "([^"]+)"')


# What pip fetches from a server. https://pip.pypa.io/en/stable/topics/vcs-support/
_REMOTE: Final = re.compile(r"https?://|(?:bzr|git|hg|svn)\+(?!file:)[a-z-]+:", re.IGNORECASE)
# What hatchling fills in when it builds. https://hatch.pypa.io/latest/config/context/
_FROM_ENVIRONMENT: Final = "{env:"


class BuildSystem(Struct, frozen=True, kw_only=True):
    requires: tuple[str, ...] = LEGACY_REQUIRES
    backend: str = LEGACY_BACKEND
    backend_path: tuple[str, ...] = ()


class BuildLimits(Struct, frozen=True, kw_only=True):
    """What `uv build` limits build requirements by: the lines of a constraints file, uv's options
    on how new they may be, and a uv.toml that says which indexes they come from. `place` is the
    file that says so.
    """

    place: str = ""
    constraints: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    indexes: str = ""


UNLIMITED: Final = BuildLimits()
# Besides indexes, what says where uv takes packages from, and how.
# https://docs.astral.sh/uv/reference/settings/
_FROM_WHERE: Final = (
    "no-index", "find-links", "index-strategy", "keyring-provider", "allow-insecure-host",
    "extra-index-url", "index-url", "index",
)  # fmt: skip
_PLACES: Final = ("find-links", "extra-index-url", "index-url", "index")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
# With these, `uv build` installs other packages for a build than `build-system.requires` names.
_OTHER_REQUIREMENTS: Final = (
    "no-build-isolation", "no-build-isolation-package", "extra-build-dependencies"
)  # fmt: skip


class UnreadSetting(NamedTuple):
    """A setting of uv that ReleaseKit does not apply, in one line, and what to do about it."""

    what: str
    cure: str


class DeclaredRequirement(Struct, frozen=True):
    """A requirement, the field that holds it, and its text there.

    `under` are the extras that ask for it, by canonical names.
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


class PyProject(Struct, frozen=True, kw_only=True):
    """`version` is normalised, and empty when a build hook has to tell it.

    `requirements` are those of `project.dependencies`, of the extras, and of the build system;
    `dynamic` are the fields a build hook fills in. `elsewhere` are requirements that exclude the
    version of this workspace. A project `between_tags` has the version of a commit that is not
    released. `home` is the root of its workspace, `sources` is where uv takes dependencies from,
    and `limits` apply to its build requirements; uv gives `config_settings` to its build backend.
    `unread` are settings that forbid to install a build requirement, by its name, or any, without
    one. Of a project that `is_inert`, a build runs no code, unless a hatch.toml says so. `goes_to`
    is another registry than PyPI that its files name.
    `compiler` is what its manifest names that compiles a part of it; a setup.py may do so, too.
    `declared` is what its [project] table says about it, as core metadata.
    """

    name: str
    version: str
    manifest: Path
    build_system: BuildSystem
    requirements: tuple[DeclaredRequirement, ...]
    dynamic: frozenset[str]
    unpublishable: str
    elsewhere: tuple[DeclaredRequirement, ...] = ()
    between_tags: bool = False
    home: Path | None = None
    sources: Sources = field(default_factory=dict)
    limits: BuildLimits = UNLIMITED
    config_settings: Mapping[str, object] = field(default_factory=dict)
    unread: Mapping[str, UnreadSetting] = field(default_factory=dict)
    is_inert: bool = False
    goes_to: NamedRegistry | None = None
    compiler: str = ""
    declared: RawMetadata = field(default_factory=RawMetadata)

    @property
    def is_draft(self) -> bool:
        """Whether a build computes its version, and that is a development or local one."""
        if "version" not in self.dynamic or not self.version:
            return False
        version = Version(self.version)
        return version.is_devrelease or bool(version.local)

    def find_unread(self, requires: Iterable[str]) -> UnreadSetting | None:
        """The setting that forbids to build it in an environment with these requirements."""
        found = [_REQUIRED.match(text.strip()) for text in requires] if self.unread else []
        names = ["", *(canonicalize_name(each[0]) for each in found if each)]
        return next((self.unread[name] for name in names if name in self.unread), None)


def read_pyproject(path: Path) -> dict[str, object]:
    """The parsed file; raises ConfigError when it is too large, not UTF-8, or not the TOML that pip
    and build backends read.
    """
    parse = partial(_parse_pyproject, path)
    return read_parsed(path, parse, complaint="is not valid TOML", max_bytes=MAX_BYTES)


def _parse_pyproject(path: Path, text: str) -> dict[str, object]:
    """As Python's own parser does, which they use. uv reads more than most of them.

    https://docs.python.org/3.15/library/tomllib.html
    """
    try:
        return parse_toml(text, loads=tomllib.loads)
    except ValueError as error:
        parse_toml(text)
        raise Unreadable(
            f"{path} is TOML 1.1, which pip and build backends cannot read before Python 3.15: "
            f"{error}",
            hint="Write it as TOML 1.0: an inline table on one line without a trailing comma, "
            " `\\u001b` and `\\u0041` in place of `\\e` and `\\x41`, times with seconds.",
        ) from error


def read_uv_settings(path: Path) -> dict[str, object]:
    """As `read_pyproject`, of a uv.toml, which only uv reads."""
    return read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_BYTES)


def read_strings(
    parent: Mapping[str, object], key: str, *, path: Path, where: str
) -> tuple[str, ...]:
    value = parent.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ManifestError(f"{path}: {where} is {value!r}", hint="Write a list of strings.")
    return tuple(value)


def is_project(document: Mapping[str, object]) -> bool:
    """Whether it describes a package; one that only Poetry understands is never published."""
    return "project" in document or _read_poetry_name(document) != ""


def is_managed(document: Mapping[str, object], path: Path) -> bool:
    """https://docs.astral.sh/uv/reference/settings/#managed"""
    return checked_table(document, "tool", "uv", path=path).get("managed") is not False


def _read_poetry_name(document: Mapping[str, object]) -> str:
    """https://python-poetry.org/docs/pyproject/#package-mode"""
    poetry = table_in(table_in(document, "tool"), "poetry")
    name = text_in(poetry, "name")
    if poetry.get("package-mode") is False or len(name) > MAX_NAME_CHARS:
        return ""
    return name if is_normalized_name(canonicalize_name(name)) else ""


def parse_project(
    document: Mapping[str, object], path: Path, *, is_wanted: bool = False
) -> PyProject:
    """What the `[project]` and `[build-system]` tables say; raises ConfigError naming the key.

    One that `is_wanted` is published although uv takes it for an application.
    """
    if "project" not in document and (name := _read_poetry_name(document)):
        return PyProject(
            name=canonicalize_name(name),
            version="",
            manifest=path,
            build_system=BuildSystem(),
            requirements=(),
            dynamic=frozenset(),
            unpublishable=OF_POETRY,
        )
    metadata = checked_table(document, "project", path=path)
    given = metadata.get("name")
    if not isinstance(given, str):
        raise ManifestError(f"{path}: project.name is missing", hint='Write name = "…".')
    try:
        name = canonicalize_name(given if len(given) <= MAX_NAME_CHARS else "", validate=True)
    except InvalidName as error:
        raise ManifestError(
            f"{path}: project.name is {given!r}",
            hint="Use letters, digits, '-', '_' and '.', with a letter or digit at both ends.",
        ) from error
    dynamic = frozenset(read_strings(metadata, "dynamic", path=path, where="project.dynamic"))
    unpublishable = _explain_unpublishable(document, path, is_wanted=is_wanted)
    version = metadata.get("version")
    if isinstance(version, str):
        version = normalize_version(version, path=path)
    elif version is not None or not ("version" in dynamic or unpublishable):
        raise ManifestError(
            f"{path}: project.version is {'missing' if version is None else repr(version)}",
            hint='Write version = "1.2.3", or list it in project.dynamic.',
        )
    system = read_build_system(document, path)
    # What could run is a hook, or what tells the version: https://hatch.pypa.io/latest/plugins/about/
    settings = str(checked_table(document, "tool", "hatch", path=path))
    is_data = not ("'hooks'" in settings or "'source'" in settings)
    return PyProject(
        name=name,
        version=version or "",
        manifest=path,
        build_system=system,
        is_inert=is_data and (system.backend, system.backend_path) == ("hatchling.build", ()),
        requirements=_read_requirements(document, path, lenient=bool(unpublishable)),
        dynamic=dynamic,
        unpublishable=unpublishable,
        sources=read_uv_sources(document, path),
        compiler=_find_compiler(document, system),
        declared=read_declared(metadata),
    )


def _find_compiler(document: Mapping[str, object], system: BuildSystem) -> str:
    """https://setuptools.pypa.io/en/latest/userguide/ext_modules.html,
    https://setuptools-rust.readthedocs.io, https://cibuildwheel.pypa.io/en/stable/options/
    """
    tool = table_in(document, "tool")
    for name in COMPILING:
        if system.backend.startswith(name):
            return f"build backend {name}"
    if "ext-modules" in table_in(tool, "setuptools"):
        return "[tool.setuptools] ext-modules"
    for name in ("setuptools-rust", "cibuildwheel"):
        if name in tool:
            return f"[tool.{name}]"
    found = filter(None, map(_COMPILERS.match, system.requires))
    return next((f"build requirement {each[0]}" for each in found), "")


def read_uv_sources(document: Mapping[str, object], path: Path) -> Sources:
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
            declared.append(DeclaredRequirement(kind, text, wanted, extras))
    version = project.version or normalize_version(fields.get("Version", ""), path=path)
    return replace(project, version=version, requirements=tuple(declared))


def read_build_system(document: Mapping[str, object], path: Path) -> BuildSystem:
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
    requires = read_strings(given, "requires", path=path, where="build-system.requires")
    in_tree = read_strings(given, "backend-path", path=path, where="build-system.backend-path")
    return BuildSystem(requires=requires, backend=backend, backend_path=in_tree)


def is_requirement(text: str) -> bool:
    if len(text) > MAX_REQUIREMENT_CHARS:
        return False
    try:
        Requirement(text)
    except (InvalidRequirement, RecursionError):
        return False
    return True


def is_exact(requirement: Requirement) -> bool:
    """Whether it asks for one version only, as it is spelled."""
    return is_pin(requirement.specifier)


def is_pin(specifier: SpecifierSet | str) -> bool:
    """Whether pip takes a yanked version for it; uv never does, unless the user names the version.
    https://peps.python.org/pep-0592/ and
    https://github.com/astral-sh/uv/blob/main/crates/uv-resolver/src/yanks.rs
    """
    return any(
        each.operator in {"==", "==="} and not each.version.endswith(".*")
        for each in SpecifierSet(str(specifier))
    )


def is_taken_instead(specifier: str, yanked: str, other: str) -> bool:
    """Whether pip takes `other` in place of a yanked version: no prerelease, unless the specifier
    names one or has no final version to fit, of which a yanked one counts. uv counts none of those,
    so it takes the prerelease.
    https://packaging.pypa.io/en/stable/specifiers.html#packaging.specifiers.SpecifierSet.filter and
    https://docs.astral.sh/uv/concepts/resolution/#pre-release-handling
    """
    named = SpecifierSet(specifier).prereleases
    return bool(named or Version(yanked).is_prerelease) or not Version(other).is_prerelease


def explain_unresolvable(requirement: Requirement, *, on_pypi: bool, is_built: bool = True) -> str:
    """Why nobody could get it from an index, as the end of a sentence about it; empty where some
    client can. pypi.org refuses what names a URL, also below an extra.
    https://github.com/pypi/warehouse/blob/main/warehouse/forklift/metadata.py
    """
    url = requirement.url
    if url is None:
        return ""
    if not _REMOTE.match(url) and (is_built or not url.startswith(_FROM_ENVIRONMENT)):
        return "a path that exists only on this machine"
    return "a direct reference, which pypi.org refuses" if on_pypi else ""


def is_unpinned(requirement: Requirement, version: str) -> bool:
    """Whether it admits `version`, and others too."""
    if requirement.url is not None or is_exact(requirement):
        return False
    return requirement.specifier.contains(version, prereleases=True)


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


def normalize_version(text: str, *, path: Path) -> str:
    try:
        return str(Version(text if len(text) <= MAX_NAME_CHARS else ""))
    except InvalidVersion as error:
        raise ManifestError(
            f"{path}: project.version is {text!r}",
            hint='Write a version as PEP 440 has it: version = "1.2.3".',
        ) from error


def _read_requirements(
    document: Mapping[str, object], path: Path, *, lenient: bool
) -> tuple[DeclaredRequirement, ...]:
    """With `lenient`, invalid ones are left out."""
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
        DeclaredRequirement(
            kind,
            text,
            parse_requirement(text, path=path, where=where),
            frozenset({canonicalize_name(key)} if kind is DependencyKind.OPTIONAL else ()),
        )
        for kind, parent, key, where in declared
        for text in read_strings(parent, key, path=path, where=where)
        if not lenient or is_requirement(text)
    )
    requirements = tuple(islice(found, MAX_REQUIREMENTS + 1))
    if len(requirements) > MAX_REQUIREMENTS:
        raise ManifestError(f"{path} has more than {MAX_REQUIREMENTS} requirements")
    return requirements


def parse_limits(
    settings: Mapping[str, object], path: Path, where: str, *, has_index: bool = False
) -> BuildLimits:
    """`settings` are a uv.toml, or `tool.uv`, which is `where` then. Where the run `has_index`, an
    input has taken the place of their indexes.
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
    constraints = tuple(_parse_constraint(each, f"{path}: {key}") for each in value)
    indexes = "" if has_index else _write_indexes(settings, path, where)
    place = str(path) if constraints or options or indexes else ""
    return BuildLimits(place=place, constraints=constraints, newest=tuple(options), indexes=indexes)


def _write_indexes(settings: Mapping[str, object], path: Path, where: str) -> str:
    """A uv.toml for any directory. An explicit index is for what has it as its source; it counts
    where it takes the place of the default one.
    https://docs.astral.sh/uv/concepts/indexes/#pinning-a-package-to-an-index
    """

    def resolve(value: object) -> object:
        match value:
            case str() if not _SCHEME.match(value):
                return str(path.parent / value)
            case list():
                return [*map(resolve, value)]
            case dict():
                return value | {"url": resolve(value.get("url"))}
            case _:
                return value

    found = {key: settings[key] for key in _FROM_WHERE if key in settings}
    listed = found.pop("index", [])
    if not isinstance(listed, list) or not all(
        isinstance(each, dict) and isinstance(each.get("url"), str) for each in listed
    ):
        raise ManifestError(
            f"{path}: {where}index is {show_toml(listed)}",
            hint='Write a list of tables: [[tool.uv.index]] with name = "…" and url = "…".',
        )
    listed = [each for each in listed if each.get("explicit") is not True or each.get("default")]
    found |= {"index": listed} if listed else {}
    found |= {key: resolve(found[key]) for key in _PLACES if key in found}
    return "".join(f"{key} = {write_toml(value)}\n" for key, value in found.items())


def read_config_settings(
    settings: Mapping[str, object], path: Path, where: str
) -> dict[str, object]:
    """What `uv build` gives to every hook of a build backend.
    https://docs.astral.sh/uv/reference/settings/#config-settings
    """
    found = checked_table(settings, "config-settings", path=path)
    for key, value in found.items():
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in texts):
            raise ManifestError(
                f"{path}: {where}config-settings.{key} is {show_toml(value)}",
                hint="Write a string, or a list of strings.",
            )
    return {**found}


def find_unread(
    settings: Mapping[str, object], path: Path, where: str, *, name: str
) -> dict[str, UnreadSetting]:
    """https://docs.astral.sh/uv/concepts/projects/config/#build-isolation"""
    for key in _OTHER_REQUIREMENTS:
        value = settings.get(key)
        if isinstance(value, list):
            is_meant = name in [canonicalize_name(str(each)) for each in value]
        elif isinstance(value, dict):
            is_meant = any(each for of, each in value.items() if canonicalize_name(of) == name)
        else:
            is_meant = value is True
        if is_meant:
            what = (
                f"{path}: {where}{key} is {show_toml(value)}, but ReleaseKit builds {name} with "
                "what build-system.requires names, and nothing else"
            )
            cure = "Write what the build needs into build-system.requires and drop the setting"
            return {"": UnreadSetting(what, f"{cure}, or bring the built files with `dist`.")}
    return {}


def _parse_constraint(entry: object, where: str) -> str:
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


def _explain_unpublishable(document: Mapping[str, object], path: Path, *, is_wanted: bool) -> str:
    metadata = checked_table(document, "project", path=path)
    uv = checked_table(document, "tool", "uv", path=path)
    # PyPI refuses every classifier that begins so.
    # https://packaging.python.org/en/latest/guides/writing-pyproject-toml/#classifiers
    for classifier in read_strings(metadata, "classifiers", path=path, where="project.classifiers"):
        if classifier.startswith("Private ::"):
            return f"its classifier {classifier!r} says so"
    # `hatch publish` sends none of it then, unless somebody confirms.
    # https://hatch.pypa.io/latest/plugins/publisher/package-index/#confirmation-prompt
    index = checked_table(document, "tool", "hatch", "publish", "index", path=path)
    if index.get("disable") is True:
        return "tool.hatch.publish.index.disable is true"
    # poetry-core refuses to build it then. https://python-poetry.org/docs/pyproject/#package-mode
    backend = checked_table(document, "build-system", path=path).get("build-backend")
    poetry = checked_table(document, "tool", "poetry", path=path)
    if backend == POETRY_BACKEND and poetry.get("package-mode") is False:
        return "tool.poetry.package-mode is false"
    # Such a project is an application to uv, which installs what it needs and not itself; `uv
    # build` in its directory builds it all the same.
    # https://docs.astral.sh/uv/concepts/projects/config/#project-packaging
    packaged = uv.get("package")
    if not is_wanted and packaged is False:
        return APPLICATION
    if not is_wanted and packaged is None and "build-system" not in document:
        return UNBUILT
    return ""


# The part of a requirement before its specifier.
# https://packaging.python.org/en/latest/specifications/dependency-specifiers/
_HEAD: Final = re.compile(r"\s*[A-Za-z0-9._-]+(?:\s*\[[^\]]*\])?")


def pinned_specifier(wanted: Requirement, version: str, mode: PinMode) -> str:
    """The specifier that is published for it; of a URL, none is."""
    specifier = wanted.specifier
    if mode == "none" or wanted.url or not specifier.contains(version, prereleases=True):
        return str(specifier)
    return f"=={version}" if mode == "exact" or not specifier else str(specifier)


def pin(manifest: str, versions: Mapping[str, str], mode: PinMode = "auto") -> str:
    """`manifest` with its requirements on the packages in `versions` pinned as `mode` says.

    Only requirement strings change, and none that excludes the planned version.
    """
    if mode == "none":
        return manifest
    document = toml_text.parse_toml(manifest)
    own = canonicalize_name(document["project"]["name"])
    edits: dict[Where, Edit] = {}
    for where, text in list_requirements(document):
        wanted = Requirement(text)
        name = canonicalize_name(wanted.name)
        # Others do not end up in what is built.
        is_built = where[0] in {"project", "build-system"}
        if not is_built or name == own or name not in versions or wanted.url is not None:
            continue
        exact = pinned_specifier(wanted, versions[name], mode)
        if str(wanted.specifier) != exact:
            write = partial(_write_exact, versions[name])
            toml_text.find_value(document, where[:-1])[where[-1]] = with_specifier(text, write)
            edits[where] = partial(replace_specifier, write)
    return (
        toml_text.edit_strings(manifest, edits, wanted=document, of=f"pypi:{own}")
        if edits
        else manifest
    )


def list_requirements(document: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    """Each with the keys and the index that lead to it."""
    extras = table_in(table_in(document, "project"), "optional-dependencies")
    for place in (
        *(("project", "dependencies"), ("build-system", "requires")),
        *(("project", "optional-dependencies", extra) for extra in extras),
        *(("dependency-groups", group) for group in table_in(document, "dependency-groups")),
        ("tool", "uv", "dev-dependencies"),
    ):
        texts = toml_text.find_value(document, place)
        for index, text in enumerate(texts if isinstance(texts, list) else ()):
            if isinstance(text, str) and is_requirement(text):
                yield (*place, index), text


def _write_exact(version: str, specifier: str) -> str:
    return f"=={version}{specifier[len(specifier.rstrip()) :]}"


def replace_specifier(write: Callable[[str], str], manifest: str, span: Span) -> tuple[Span, str]:
    """The string literal with another specifier; its quotes and the rest stay as they are."""
    literal = manifest[slice(*span)]
    quote = literal[:3] if literal[:3] in {'"""', "'''"} else literal[0]
    inner = literal[len(quote) : -len(quote)]
    if quote[0] == '"' and "\\" in inner.partition(";")[0]:
        # Escapes before the marker are rare: it is written anew, as JSON, which is TOML too.
        text = with_specifier(toml_text.parse_toml(f"text = {literal}")["text"], write)
        return span, json.dumps(text, ensure_ascii=False)
    return span, f"{quote}{with_specifier(inner, write)}{quote}"


def with_specifier(requirement: str, write: Callable[[str], str]) -> str:
    """`write` is given the specifier as it is spelled, with the blanks and brackets around it."""
    head = _HEAD.match(requirement)
    if head is None:  # pragma: no cover - Requirement() accepted it
        raise ValueError(requirement)
    specifier, semicolon, marker = requirement[head.end() :].partition(";")
    return f"{head[0]}{write(specifier)}{semicolon}{marker}"
