"""releasekit.toml: read, bounded, and taken apart into inputs and tables."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.config.inputs import DECLARED, ECOSYSTEMS, SECRETS
from releasekit.errors import ConfigError, did_you_mean
from releasekit.host.files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.declaration import Declaration

MAX_BYTES: Final = 1024 * 1024
_DEPENDENCIES: Final = "dependencies"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """`texts` maps the inputs that are set here to their values as a flag would have them."""

    texts: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_config(path: Path) -> ConfigFile:
    """Raises ConfigError that names the file and the key, or line and column."""
    where = path.name
    texts: dict[str, str] = {}
    tables: dict[str, Mapping[str, object]] = {}
    dependencies: Mapping[str, tuple[str, ...]] = {}
    for key, value in _parsed(path).items():
        if key == _DEPENDENCIES:
            dependencies = _dependencies(_table(key, value, where), where)
        elif key in ECOSYSTEMS:
            tables[key] = _table(key, value, where)
        else:
            texts[key] = _text(_declaration(key, where), value, where)
    return ConfigFile(texts=texts, tables=tables, dependencies=dependencies)


def _parsed(path: Path) -> Mapping[str, object]:
    content = read_file(path, max_bytes=MAX_BYTES)
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path.name}: line {line} is not UTF-8; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path.name}: nested too deeply; this is no configuration") from error


def _declaration(key: str, where: str) -> Declaration:
    if key in SECRETS:
        raise ConfigError(
            f"{where}: {key} is a secret and has no place in a file of the repository",
            hint=f"Revoke it if it was real. Set the variable {SECRETS[key].variable} instead.",
        )
    declaration = DECLARED.get(key)
    if declaration is None:
        known = [name for name, each in DECLARED.items() if "file" in each.places]
        near = did_you_mean(key, [*known, *ECOSYSTEMS, _DEPENDENCIES])
        raise ConfigError(f"{where}: unknown key {key!r}{near}")
    if "file" not in declaration.places:
        raise ConfigError(
            f"{where}: {key} says how one run goes; give it as a flag or an input, not here"
        )
    return declaration


def _text(declaration: Declaration, value: object, where: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case list() if declaration.kind in {"names", "lines"}:
            return "\n".join(_strings(value, f"{where}: {declaration.name}"))
    article = "a list" if declaration.kind in {"names", "lines"} else "one value"
    raise ConfigError(
        f"{where}: {declaration.name} is a {type(value).__name__} here; write {article}"
    )


def _strings(value: object, label: str) -> tuple[str, ...]:
    if isinstance(value, list):
        strings = tuple(item for item in value if isinstance(item, str))
        if len(strings) == len(value):
            return strings
    raise ConfigError(f'{label} is not a list of strings; write ["…", "…"]')


def _table(key: str, value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: {key} is not a table; write [{key}] and its keys below it")
    return value


def _dependencies(table: Mapping[str, object], where: str) -> dict[str, tuple[str, ...]]:
    found = {}
    for package, value in table.items():
        label = f'{where}: [{_DEPENDENCIES}] "{package}"'
        found[package] = _strings(value, label)
        for each in (package, *found[package]):
            ecosystem, colon, name = each.partition(":")
            if not (colon and name and ecosystem in ECOSYSTEMS):
                raise ConfigError(
                    f"{label}: {each!r} is no package; write ecosystem:name, "
                    f'like "{ECOSYSTEMS[0]}:acme-core"'
                )
    return found
