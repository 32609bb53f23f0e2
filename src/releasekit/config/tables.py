"""An ecosystem's own table of releasekit.toml, read: each option is declared once, as a field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.text.toml_value import show_toml

if TYPE_CHECKING:
    from releasekit.decided import Edge

# Key and value to what the option holds; ValueError says what to write instead.
Reader = Callable[[str, object], object]


class Option(Struct, frozen=True):
    """What a field of a table is annotated with: `help`, which says in Markdown what it does, and
    the function that reads it, where its type does not say how.
    """

    help: str
    read: Reader | None = None


class OptionTable(Struct, frozen=True, kw_only=True):
    """The table called `TABLE`, with a key for each field; where it is `NAMED`, each of its keys is
    a name instead, with such a table. An empty text or list leaves its default, where it is not one
    that `MAY_BE_EMPTY`. Its keys are known.
    """

    TABLE: ClassVar[str]
    NAMED: ClassVar[bool] = False
    MAY_BE_EMPTY: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_table(cls, table: object, name: str = "") -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        assert isinstance(table, Mapping)  # noqa: S101 (as its keys are known)
        known, values = cls.declared(), dict[str, Any]()
        for key, value in table.items():
            kind, option, _ = known[key]
            try:
                read = (option.read or _reader(kind))(key, value)
            except ValueError as error:
                raise ConfigError(
                    f"{cls.where(name)} {key} is {show_toml(value)}", hint=str(error)
                ) from error
            if read not in ("", ()) or key in cls.MAY_BE_EMPTY:
                values[key.replace("-", "_")] = read
        return cls(**values)

    @classmethod
    def declared(cls) -> dict[str, tuple[object, Option, object]]:
        """Key to the type, the declaration and the default of its option."""
        hints = get_type_hints(cls, include_extras=True)
        unset = cls()
        return {
            name.replace("_", "-"): (*get_args(hints[name]), getattr(unset, name))
            for name in cls.__struct_fields__
        }

    @classmethod
    def option_keys(cls) -> tuple[str, ...]:
        return tuple(name.replace("_", "-") for name in cls.__struct_fields__)

    @classmethod
    def list_edges(cls, _table: Mapping[str, object], /) -> Iterable[Edge]:
        """List the edges that the table asks for, as `[dependencies]` has them. Raises ConfigError
        for a table that cannot be used.
        """
        return ()

    @classmethod
    def where(cls, name: str = "") -> str:
        """How messages name the table, or the one of that name."""
        return f"releasekit.toml: [{cls.TABLE}{f'.{name}' if name else ''}]"


def string(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'Write a string: {key} = "…".')  # noqa: TRY004 (about the file)
    return value


def remote_name(key: str, value: object) -> str:
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


def _reader(kind: object) -> Reader:
    if get_origin(kind) is not Literal:
        return _READERS[kind]
    choices = get_args(kind)

    def choose(_key: str, value: object) -> object:
        if value not in choices:
            raise ValueError(f"Write one of {', '.join(map(show_toml, filter(None, choices)))}.")
        return value

    return choose
