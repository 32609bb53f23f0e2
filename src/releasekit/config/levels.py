"""Which warnings are shown, and which end a release: `strict`, and the `[warnings]` table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct, field

from releasekit.errors import ConfigError, did_you_mean
from releasekit.fields import replace
from releasekit.model import WarningName
from releasekit.problems import Problem
from releasekit.text.toml_value import show_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.model import PackageWarning

TABLE: Final = "warnings"


class WarningLevel(StrEnum):
    IGNORE = "ignore"
    WARN = "warn"
    ERROR = "error"


class Levels(Struct, frozen=True):
    """`given` are those that differ from `warn`; with `strict`, that is `error`."""

    given: Mapping[WarningName, WarningLevel] = field(default_factory=dict)
    strict: bool = False

    @classmethod
    def from_table(cls, table: Mapping[str, object], where: str) -> Self:
        """Raises ConfigError naming `where` (the file), the key, and what to write instead."""
        given: dict[WarningName, WarningLevel] = {}
        known = list(map(str, WarningName))
        choices = ", ".join(f'"{level}"' for level in WarningLevel)
        for key, value in table.items():
            if key not in known:
                raise ConfigError(
                    f"{where}: [{TABLE}] has an unknown key {key!r}{did_you_mean(key, known)}",
                    hint=f"Known: {', '.join(known)}.",
                    problem=Problem.UNKNOWN_NAME,
                )
            try:
                given[WarningName(key)] = WarningLevel(str(value))
            except ValueError:
                raise ConfigError(
                    f"{where}: [{TABLE}] {key} is {show_toml(value)}",
                    hint=f"Write one of {choices}.",
                ) from None
        return cls(given)

    def find(self, name: WarningName) -> WarningLevel:
        return self.given.get(name, WarningLevel.ERROR if self.strict else WarningLevel.WARN)

    def find_way_out(self, names: Iterable[WarningName]) -> str:
        """What to do about warnings that are errors. Where no setting makes one of them an error,
        it is one that the registry would refuse, or a name that is hardly meant.
        """
        names = set(names)
        raised = [name for name in names if self.find(name) is WarningLevel.ERROR]
        if not raised and WarningName.NEW_NAME in names:
            return "Correct it in one of the ways that the message names."
        if not raised:
            return "Correct it: no setting lets the registry take it."
        drops = "" if self.given.keys() >= set(raised) else "drop `strict`, or "
        return (
            f"Correct it. If the registry would take the package anyway, {drops}give the warning "
            f"another level below [{TABLE}] in releasekit.toml."
        )

    def apply(self, warnings: Iterable[PackageWarning]) -> tuple[PackageWarning, ...]:
        """Without those to ignore, each with whether it is an error; what is one already, because
        the registry will refuse it, stays so.
        """
        levels = [(warning, self.find(warning.name)) for warning in warnings]
        return tuple(
            replace(warning, error=warning.error or level is WarningLevel.ERROR)
            for warning, level in levels
            if warning.error or level is not WarningLevel.IGNORE
        )
