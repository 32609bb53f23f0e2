"""An ecosystem's own table of releasekit.toml, read: each option is declared once, as a field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal, Self, get_args, get_origin, get_type_hints

from releasekit.errors import ConfigError

# Key and value to what the option holds; ValueError says what to write instead.
Reader = Callable[[str, object], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The table of `ECOSYSTEM`, a key for each field. A field is read as its type says, or by the
    function it is annotated with; an empty text or list leaves its default, where it is not one
    that `MAY_BE_EMPTY`. Its keys are known.
    """

    ECOSYSTEM: ClassVar[str]
    MAY_BE_EMPTY: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        hints = get_type_hints(cls, include_extras=True)
        known = {option.name.replace("_", "-"): option.name for option in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in table.items():
            try:
                read = _reader(hints[known[key]])(key, value)
            except ValueError as error:
                raise ConfigError(f"{cls.where()} {key} is {value!r}", hint=str(error)) from error
            if read not in ("", ()) or key in cls.MAY_BE_EMPTY:
                values[known[key]] = read
        return cls(**values)

    @classmethod
    def option_keys(cls) -> tuple[str, ...]:
        return tuple(option.name.replace("_", "-") for option in fields(cls))

    @classmethod
    def where(cls) -> str:
        """How messages name the table."""
        return f"releasekit.toml: [{cls.ECOSYSTEM}]"


def string(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'Write a string: {key} = "…".')  # noqa: TRY004 (about the file)
    return value


def remote(key: str, value: object) -> str:
    name = string(key, value)
    # git would take it for an option, or for another repository than the one of its settings.
    if name.startswith("-") or any(character in name for character in ":/ "):
        raise ValueError("Write the name of a remote: `git remote`.")
    return name


def boolean(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"Write {key} = true, or false.")  # noqa: TRY004
    return value


def strings(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f'Write a list of strings: {key} = ["…"].')
    return tuple(value)


def mapping(key: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ValueError(f'Write a table of strings: {key} = {{ a = "b" }}.')
    return value


_READERS: Final[Mapping[object, Reader]] = {
    str: string,
    bool: boolean,
    tuple[str, ...]: strings,
    Mapping[str, str]: mapping,
}


def _reader(annotation: object) -> Reader:
    choices = get_args(annotation)
    if get_origin(annotation) is not Literal:
        read: Reader = _READERS.get(annotation) or choices[1]
        return read

    def choose(_key: str, value: object) -> object:
        if value not in choices:
            raise ValueError(f"Write one of {', '.join(map(repr, filter(None, choices)))}.")
        return value

    return choose
