"""releasekit.toml: read, bounded, and taken apart into inputs and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from releasekit.config import levels
from releasekit.config.levels import Levels
from releasekit.config.tag_options import AnnounceOptions, TagOptions
from releasekit.config.version_options import VersionOptions
from releasekit.decided import Edge
from releasekit.errors import ConfigError, did_you_mean
from releasekit.host.files import read_parsed
from releasekit.model import DependencyKind, PackageId
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from releasekit.text.toml_value import show_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from releasekit.config.declaration import Declaration
    from releasekit.config.inputs import Declared
    from releasekit.config.tables import OptionTable
    from releasekit.decided import Carry

MAX_BYTES: Final = 1024 * 1024
_DEPENDENCIES: Final = "dependencies"
_OF_DEPENDENCY: Final = ("on", "bump")
_DIST: Final = "dist"
_TABLES: Final = (
    *(_DEPENDENCIES, levels.TABLE),
    *(TagOptions.TABLE, AnnounceOptions.TABLE, VersionOptions.TABLE),
)
# What the name of a secret ends in, and of nothing else.
_SECRET: Final = frozenset({"password", "token"})


class ConfigFile(Struct, frozen=True, kw_only=True):
    """`texts` maps the inputs that are set here to their values as a flag would have them. `dist`
    maps an ecosystem, or one of its packages, to directories. `written` are the keys of
    `[version]`, and "tag" where `[tag]` names tags.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    dependencies: tuple[Edge, ...] = ()
    levels: Levels = field(default_factory=Levels)
    dist: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tagging: TagOptions = field(default_factory=TagOptions)
    announcing: AnnounceOptions = field(default_factory=AnnounceOptions)
    versioning: VersionOptions = field(default_factory=VersionOptions)
    written: frozenset[str] = frozenset()


def read_config(path: Path, declared: Declared) -> ConfigFile:
    """Raises ConfigError that names the file and the key, or line and column."""
    document = read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_BYTES)
    return take_apart(document, path.name, declared)


def take_apart(document: Mapping[str, Any], where: str, declared: Declared) -> ConfigFile:
    """What a file of this name would say. Raises ConfigError that names it, and the key."""
    texts: dict[str, str] = {}
    tables: dict[str, Mapping[str, object]] = {}
    dependencies: tuple[Edge, ...] = ()
    given = Levels()
    dist: Mapping[str, tuple[str, ...]] = {}
    tagging, announcing, versioning = TagOptions(), AnnounceOptions(), VersionOptions()
    written: set[str] = set()
    by_table = {each.options.TABLE: each for each in declared.ecosystems.values()}
    for key, value in document.items():
        if key == _DEPENDENCIES:
            dependencies += _dependencies(_table(key, value, where), where, declared.ecosystems)
        elif key == levels.TABLE:
            given = Levels.from_table(_table(key, value, where), where)
        elif key == _DIST and isinstance(value, dict):
            dist = _dist(value, where, declared.ecosystems)
        elif key == TagOptions.TABLE:
            own = _options(TagOptions, value, where, declared)
            tagging = TagOptions.from_table(own)
            if "name" in own:
                written.add("tag")
        elif key == AnnounceOptions.TABLE:
            announcing = AnnounceOptions.from_table(
                _options(AnnounceOptions, value, where, declared)
            )
        elif key == VersionOptions.TABLE:
            own = _options(VersionOptions, value, where, declared)
            versioning = VersionOptions.from_table(own)
            written.update(own)
        elif key in by_table:
            ecosystem = by_table[key]
            tables[ecosystem.name] = _options(ecosystem.options, value, where, declared)
            dependencies += tuple(ecosystem.options.list_edges(tables[ecosystem.name]))
        else:
            texts[key] = _text(_declaration(key, where, declared), value, where)
    return ConfigFile(
        texts=texts,
        tables=tables,
        dependencies=dependencies,
        dist=dist,
        levels=given,
        tagging=tagging,
        announcing=announcing,
        versioning=versioning,
        written=frozenset(written),
    )


def _declaration(key: str, where: str, declared: Declared) -> Declaration:
    declaration = declared.inputs.get(key)
    if declaration is None:
        _refuse_secret(key, key, where, declared)
        known = [name for name, each in declared.inputs.items() if "file" in each.places]
        tables = (each.options.TABLE for each in declared.ecosystems.values())
        near = did_you_mean(key, [*known, *tables, *_TABLES])
        raise ConfigError(f"{where}: unknown key {key!r}{near}", problem=Problem.UNKNOWN_NAME)
    if "file" not in declaration.places:
        raise ConfigError(
            f"{where}: {key} says how one run goes; give it as a flag or an input, not here",
            problem=Problem.UNKNOWN_NAME,
        )
    return declaration


def _refuse_secret(key: str, name: str, where: str, declared: Declared) -> None:
    """Raises ConfigError where a key that is no setting must be meant as a secret, the one called
    `name` or any that ends in the same word.
    """
    name = name.lower().replace("_", "-")
    word = name.rpartition("-")[2]
    meant = [
        each.variable
        for secret, each in declared.secrets.items()
        if secret == name
        or (name not in declared.secrets and word in _SECRET and secret.endswith(f"-{word}"))
    ]
    if meant:
        which = "one of these variables" if len(meant) > 1 else "the variable"
        raise ConfigError(
            f"{where}: {key} is a secret and has no place in a file of the repository",
            hint=f"Revoke it if it was real. Set {which} instead: {', '.join(meant)}.",
            problem=Problem.SECRET_IN_THE_OPEN,
        )


def _text(declaration: Declaration, value: object, where: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case list() if declaration.kind in {"names", "lines"}:
            return "\n".join(_strings(value, f"{where}: {declaration.name}"))
    # Not the value: it may be the address of an index, with a password.
    what = "table" if isinstance(value, dict) else type(value).__name__
    article = "a list" if declaration.kind in {"names", "lines"} else "one value"
    raise ConfigError(f"{where}: {declaration.name} is a {what} here; write {article}")


def _strings(value: object, label: str) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ConfigError(f'{label} is not a list of strings; write ["…", "…"]')


def _table(key: str, value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: {key} is not a table; write [{key}] and its keys below it")
    return value


def _options(
    kind: type[OptionTable], value: object, where: str, declared: Declared
) -> Mapping[str, object]:
    """Its keys are checked here, whether the run is about this ecosystem or not."""
    table = _table(kind.TABLE, value, where)
    if not kind.NAMED:
        return _check_keys(kind, kind.TABLE, table, where, declared)
    for name, named in table.items():
        each = f"{kind.TABLE}.{name}"
        _check_keys(kind, each, _table(each, named, where), where, declared)
    return table


def _check_keys(
    kind: type[OptionTable],
    name: str,
    table: Mapping[str, object],
    where: str,
    declared: Declared,
) -> Mapping[str, object]:
    known = kind.option_keys()
    for key in table:
        if key not in known:
            _refuse_secret(f"[{name}] {key}", f"{name}-{key}", where, declared)
            near = did_you_mean(key, known)
            raise ConfigError(
                f"{where}: [{name}] has an unknown key {key!r}{near}",
                hint=f"Known: {', '.join(sorted(known))}.",
                problem=Problem.UNKNOWN_NAME,
            )
    return table


def _dependencies(
    table: Mapping[str, object], where: str, ecosystems: Collection[str]
) -> tuple[Edge, ...]:
    found = []
    for package, value in table.items():
        label = f'{where}: [{_DEPENDENCIES}] "{package}"'
        if not isinstance(value, list):
            raise ConfigError(f'{label} is not a list of packages; write ["…", "…"]')
        entries = [_dependency(each, package, label) for each in value]
        for each in (package, *(on for on, _ in entries)):
            if not _names_package(each, ecosystems):
                raise ConfigError(
                    f"{label}: {each!r} is not a package; write ecosystem:name, "
                    f'like "{next(iter(ecosystems))}:acme-core"'
                )
        if not value:
            raise ConfigError(f"{label} is empty; write what it needs, or take the line out")
        dependent = PackageId.parse(package)
        found += [
            Edge(
                dependent=dependent,
                on=PackageId.parse(on),
                kind=DependencyKind.EXTRA,
                carry=carry,
            )
            for on, carry in entries
        ]
    return tuple(found)


def _dependency(entry: object, package: str, label: str) -> tuple[str, Carry]:
    match entry:
        case str():
            return entry, _choose_carry(package, entry)
        case {"on": str(on), **rest} if rest.keys() <= {"bump"}:
            match rest.get("bump"):
                case None:
                    return on, _choose_carry(package, on)
                case "patch" | "same" | "none" as carry:
                    return on, carry
                case other:
                    raise ConfigError(
                        f"{label}: the bump for {on!r} is {show_toml(other)}; write one of "
                        '"patch", "same", "none"'
                    )
        case {"on": str(), **rest}:
            key = next(str(key) for key in rest if key not in _OF_DEPENDENCY)
            raise ConfigError(
                f"{label} has an unknown key {key!r}{did_you_mean(key, _OF_DEPENDENCY)}",
                hint=f"Known: {', '.join(_OF_DEPENDENCY)}.",
                problem=Problem.UNKNOWN_NAME,
            )
        case _:
            pass
    raise ConfigError(
        f"{label} has {show_toml(entry)}; write a package, or "
        '{ on = "ecosystem:name", bump = "same" }'
    )


def _choose_carry(package: str, on: str) -> Carry:
    """Across ecosystems it depends on what the package contains."""
    return "patch" if PackageId.parse(package).ecosystem == PackageId.parse(on).ecosystem else ""


def _dist(
    table: Mapping[str, object], where: str, ecosystems: Collection[str]
) -> dict[str, tuple[str, ...]]:
    found = {}
    for owner, value in table.items():
        label = f'{where}: [{_DIST}] "{owner}"'
        if owner not in ecosystems and not _names_package(owner, ecosystems):
            raise ConfigError(
                f"{label} is neither an ecosystem nor a package; write one of "
                f'{", ".join(ecosystems)}, or "{next(iter(ecosystems))}:acme-core"',
                problem=Problem.UNKNOWN_NAME,
            )
        found[owner] = (value,) if isinstance(value, str) else _strings(value, label)
        if not found[owner]:
            raise ConfigError(f"{label} is empty; write where its files are, or take the line out")
    return found


def _names_package(text: str, ecosystems: Collection[str]) -> bool:
    ecosystem, _, name = text.partition(":")
    return bool(name) and ecosystem in ecosystems
