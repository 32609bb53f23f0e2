"""What one input is: its name, the values it takes, where and for which commands it is given."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import Final, Literal, assert_never

from releasekit.config import values
from releasekit.errors import ConfigError

PREFIX: Final = "RELEASEKIT_"
_USERINFO: Final = re.compile(r"//[^/]*@")

Kind = Literal[
    "text", "choice", "bool", "int", "duration", "names", "lines", "path", "registry", "secret"
]
Command = Literal["plan", "publish", "report", "doctor"]
Place = Literal["action", "flag", "file"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """`minimum` and `maximum` of a duration are in seconds. `word` is a value that stands for None:
    the program decides.
    """

    help: str
    kind: Kind
    _: KW_ONLY
    name: str = ""
    default: object = ""
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 0
    word: str = ""
    commands: frozenset[Command] = frozenset({"plan", "publish"})
    places: frozenset[Place] = frozenset({"action", "flag", "file"})

    @property
    def variable(self) -> str:
        return PREFIX + self.name.replace("-", "_").upper()

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")

    @property
    def shown(self) -> str:
        """The default as a user would write it; empty when there is none to write."""
        match self.default:
            case bool():
                return str(self.default).lower()
            case float():
                return f"{self.default:g}s"
            case None | ():
                return self.word
            case _:
                return str(self.default)

    @property
    def description(self) -> str:
        return self.help + (f" Default: `{self.shown}`." if self.shown else "")

    def parse(self, text: str, label: str) -> object:
        """The value of `text`; raises ConfigError that names `label`, where it was written."""
        try:
            undecided = bool(self.word) and text == self.word
            return None if undecided else self._value(values.bounded(text))
        except values.InvalidValue as error:
            raise ConfigError(f'{label} = "{_shown(text)}" {error}') from error

    def _value(self, text: str) -> object:
        match self.kind:
            case "text" | "path" | "secret":
                return values.text(text)
            case "choice":
                return values.choice(text, self.choices)
            case "bool":
                return values.boolean(text)
            case "int":
                return values.integer(text, int(self.minimum), int(self.maximum))
            case "duration":
                return values.duration(text, self.minimum, self.maximum)
            case "names":
                return values.items(text, r"[,\n]", self.choices)
            case "lines":
                return values.items(text, r"\n")
            case "registry":
                return values.registry(text)
            case _:
                assert_never(self.kind)


def _shown(text: str) -> str:
    """Short, on one line, and without what may be the credentials of a URL."""
    shown = _USERINFO.sub("//***@", text)
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]
