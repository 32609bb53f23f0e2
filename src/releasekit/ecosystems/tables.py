"""An ecosystem's own table of releasekit.toml, read: each option is declared once, as a field."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # Key and value to what the option holds; ValueError says what to write instead.
    Read = Callable[[str, object], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The table of `ECOSYSTEM`, a key for each field. A field is read as its type says, or by the
    function in its metadata; an empty text or list leaves its default. Its keys are known ones.
    """

    ECOSYSTEM: ClassVar[str]

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> Self:
        """Raises ConfigError naming the key, its value, and what to write instead."""
        known = {option.name.replace("_", "-"): option for option in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in table.items():
            try:
                read = _reader(known[key])(key, value)
            except ValueError as error:
                raise ConfigError(f"{cls.where()} {key} is {value!r}", hint=str(error)) from error
            if read not in ("", ()):
                values[known[key].name] = read
        return cls(**values)

    @classmethod
    def where(cls) -> str:
        """How messages name the table."""
        return f"releasekit.toml: [{cls.ECOSYSTEM}]"


def string(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f'Write a string: {key} = "…".')  # noqa: TRY004 (about the file)
    return value


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


def one_of(*choices: str) -> Read:
    def read(_key: str, value: object) -> object:
        if value not in choices:
            raise ValueError(f"Write one of {', '.join(map(repr, choices))}.")
        return value

    return read


_READERS: Final[Mapping[object, Read]] = {
    "str": string,
    "bool": boolean,
    "tuple[str, ...]": strings,
    "Mapping[str, str]": mapping,
}


def _reader(option: Field[Any]) -> Read:
    read: Read = option.metadata.get("read") or _READERS[option.type]
    return read
