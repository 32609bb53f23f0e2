"""What one input is: its name, the values it takes, where and for which commands it is given."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Final, Literal, assert_never, get_args, get_origin, get_type_hints

from msgspec import Struct, field

from releasekit.config import values
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host.scrub import ToolVariables
from releasekit.host.secret_encodings import is_token_like

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.config.tables import OptionTable
    from releasekit.host.output_path import Written
    from releasekit.host.sandbox import Cache


PREFIX: Final = "RELEASEKIT_"
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_USERINFO: Final = re.compile(r"//[^/]*@")
_QUERY: Final = re.compile(r"(://[^?#]*[?#]).*", re.DOTALL)  # it may hold a token, too

Kind = Literal[
    "text",
    "choice",
    "bool",
    "int",
    "duration",
    "names",
    "lines",
    "path",
    "registry",
    "named-registry",
    "index",
    "secret",
]
Place = Literal["action", "flag", "file"]
# Of an input that states none, the type of its field says the kind.
_KINDS: Final[Mapping[object, Kind]] = {bool: "bool", int: "int", float: "duration", Path: "path"}

Group = Literal["", "packages", "jobs", "trust", "pace", "places", "reports", "machine"]
# What help calls them, in this order; the first is what a command is for.
GROUPS: Final[Mapping[Group, str]] = {
    "": "What it does",
    "packages": "Which packages",
    "jobs": "Several jobs",
    "trust": "Who publishes, and who signs",
    "pace": "How fast, how long, and what a failure ends",
    "places": "Where packages go",
    "reports": "What it writes for people and programs",
    "machine": "The workspace, and the machine",
}

# Names that stand for several inputs in what a command takes: all that are `taken_with` it.
Together = Literal[
    "",
    "workspace",
    "selection",
    "lookup",
    "planning",
    "publish",
    "patience",
    "registries",
    "reports",
    "secrets",
    "personal-secrets",
]

NOT_IN_FILE: Final = frozenset[Place]({"action", "flag"})
FLAG_ONLY: Final = frozenset[Place]({"flag"})


class Declaration(Struct, frozen=True):
    """`minimum` and `maximum` of a duration are in seconds. `word` is a value that stands for None:
    the program decides. An "index" is a URL that belongs to the registry of its ecosystem. A path,
    or each line, becomes a value by `into`; a path that a command `writes` may not lie anywhere.
    Commands that take it by its name, or what it is `taken_with`, are its `commands`; `words` are
    those of commands for which `help` does not hold, and `meaning` is both, for all modes of the
    action: `Declared` fills these in. What is used `often` is in their short help.
    """

    help: str = ""
    kind: Kind = "text"
    name: str = ""
    default: object = ""
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = 0
    word: str = ""
    into: Callable[[str], object] = str
    writes: Written | None = None
    taken_with: Together = "planning"
    commands: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    meaning: str = ""
    group: Group = ""
    often: bool = False
    places: frozenset[Place] = frozenset({"action", "flag", "file"})

    @classmethod
    def registry(
        cls,
        name: str,
        help: str,  # noqa: A002 (as the field is called)
        *,
        named: bool = False,
    ) -> Declaration:
        """Where the packages of an ecosystem go; registries may be `named` in files of its tool."""
        kind: Kind = "named-registry" if named else "registry"
        return cls(help, kind, name=name, taken_with="registries", group="places", often=True)

    @classmethod
    def secret(cls, name: str, help: str, *, default: str = "") -> Declaration:  # noqa: A002
        """Its value never passes through the inputs: `credentials` takes it from the environment,
        and no process sees it. `default` is what the action sets.
        """
        places = frozenset[Place]({"action"})
        return cls(help, "secret", name=name, default=default, taken_with="secrets", places=places)

    @classmethod
    def personal_secret(cls, name: str, help: str) -> Declaration:  # noqa: A002
        """As `secret`, of the person who decides, so that no workflow is given it."""
        return cls(help, "secret", name=name, taken_with="personal-secrets", places=frozenset())

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
        return self._with_default(self.meaning)

    def describe(self, command: str) -> str:
        """For one command, as text for a terminal."""
        return self._with_default(self.words.get(command, self.help)).replace("`", "")

    def _with_default(self, text: str) -> str:
        if self.kind == "path" and self.shown == ".":
            return f"{text} Default: the current directory."
        # What the action gives a secret is an expression, which only a default may hold.
        told = self.shown and self.kind != "secret"
        return text + (f" Default: `{self.shown}`." if told else "")

    def parse(self, text: str, label: str) -> object:
        """The value of `text`; raises ConfigError that names `label`, where it was written."""
        try:
            undecided = bool(self.word) and text == self.word
            return None if undecided else self._value(values.bounded(text))
        except values.InvalidValue as error:
            raise ConfigError(f'{label} = "{_shown(text)}" {error}') from error

    def _value(self, text: str) -> object:
        match self.kind:
            case "secret":
                return values.text(text)
            case "text" | "path":
                return self.into(values.text(text))
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
                return tuple(self.into(item) for item in values.items(text, r"\n"))
            case "registry" | "index":
                return values.registry(text)
            case "named-registry":
                return values.named_registry(text)
            case _:
                assert_never(self.kind)


# Of an input of one command, that people use.
declare_flag: Final = partial(Declaration, places=FLAG_ONLY, often=True)


def declared_by(kind: type, prefix: str = "") -> dict[str, Declaration]:
    """Name to declaration, of those fields of `kind` that are annotated with one.

    `prefix` goes before the names. What a declaration leaves open comes from the type of its field:
    the kind, what paths become, and the choices of a Literal ("" stands for none that is made).
    Raises TypeError for a number without a `maximum`, which would take none above 0.
    """
    unset, found = kind(), {}
    for attribute, annotation in get_type_hints(kind, include_extras=True).items():
        for declaration in getattr(annotation, "__metadata__", ()):
            name = prefix + attribute.replace("_", "-")
            declared = replace(declaration, name=name, default=getattr(unset, attribute))
            hint = annotation.__origin__
            if get_origin(hint) is Literal:
                choices = declared.choices or tuple(filter(None, get_args(hint)))
                declared = replace(declared, kind="choice", choices=choices)
            elif declared.kind == "text":
                # Of an optional value, the type comes before its None.
                hint = get_args(hint)[0] if NoneType in get_args(hint) else hint
                into = Path if hint is Path else declared.into
                declared = replace(declared, kind=_KINDS.get(hint, "text"), into=into)
            if declared.kind in {"int", "duration"} and not declared.maximum:
                raise TypeError(f"{name} takes a number, and its declaration has no maximum")
            found[name] = declared
    return found


def _shown(text: str) -> str:
    """Short, on one line, and without what may be the credentials of a URL, or a token."""
    if is_token_like(text):
        return "***"
    shown = _QUERY.sub(r"\1***", _USERINFO.sub("//***@", text))
    shown = shown if len(shown) <= 80 else shown[:79] + "…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]


class NoInputs(Struct, frozen=True):
    """Of an ecosystem that has none besides its registry and its secrets."""


class Tool(Struct, frozen=True, kw_only=True):
    """The program that packs packages of this ecosystem, the oldest `version` that does, and what
    to do where it is missing or too old. It tells its version when it is `asked`.

    Without it, `make demo` leaves the ecosystem behind, and `followers` among the example's
    packages of other ecosystems too.
    """

    program: str
    version: str
    install: str
    asked: str = "--version"
    followers: tuple[str, ...] = ()

    def admits(self, version: str) -> bool:
        """Of a version as `read_version` reads it."""
        own, wanted = (tuple(map(int, each.split("."))) for each in (version, self.version))
        return own >= wanted


def read_version(text: str) -> str:
    """The first number with a point in it, such as 1.24 of `go version go1.24rc1 linux/amd64`;
    empty where there is none.
    """
    found = _VERSION.search(text)
    return found[0] if found else ""


class Setup(Struct, frozen=True, kw_only=True):
    """What `init` writes for an ecosystem: `steps` of the job before the action, `inputs` of the
    action, and `options` of releasekit.toml, all as lines without their indentation. Its registry
    `trusts` the job, or the job `pushes` tags. What to do once, for a package like `{name}`, is
    `first`. `installs` are commands that build what is published, by the file in the root of the
    workspace that tells them, empty for one without any.
    """

    first: str
    steps: str = ""
    inputs: str = ""
    options: str = ""
    installs: Mapping[str, str] = field(default_factory=dict)
    trusts: bool = False
    pushes: bool = False


class Manifests(Struct, frozen=True, kw_only=True):
    """What a package or a workspace of this ecosystem is known by: the names of files.

    `workspaces` and `packages` are the options that take in a workspace below the root, and a
    package that is in none; a workspace inside another is its member where they are `nested`.
    `foreign` are files of packages that only other tools read: these are told, and never planned.
    """

    names: tuple[str, ...]
    workspaces: str
    packages: str
    nested: bool = False
    foreign: tuple[str, ...] = ()


class EcosystemDeclaration(Struct, frozen=True, kw_only=True):
    """`folder` is the package that declares it. Its module `target` has `layout`, how its `dir:`
    registries lie in files, and `target`, which does the work (`ecosystems.folders`). With
    `manifests`, its module `roots` tells workspaces and packages from one another; where none of
    them is found and nothing is configured, it has no packages and goes to `default_registry`.
    `pages` are hosts that people read, with the addresses there, or instead, that take uploads: the
    first is the one to write.
    Where a registry of it `approves` what waits, its module `approval` has `approval`, which makes
    that happen.

    The annotated fields of `inputs` are its inputs, named behind its name. `options` is the
    dataclass that its table of releasekit.toml becomes; an underscore is a hyphen there. `suffixes`
    are what the names of its built files end with; `caches`, what its tools write outside of the
    workspace.
    """

    name: str
    folder: str
    title: str
    registry: Declaration
    default_registry: str = ""
    pages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    secrets: tuple[Declaration, ...] = ()
    inputs: type[Struct] = NoInputs
    options: type[OptionTable]
    variables: ToolVariables = field(default_factory=ToolVariables)
    caches: tuple[Cache, ...] = ()
    tool: Tool | None = None
    setup: Setup | None = None
    suffixes: tuple[str, ...] = ()
    manifests: Manifests | None = None
    approves: bool = False

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """In the order in which they are shown: as whom, where to, and the rest."""
        own = declared_by(self.inputs, f"{self.name}-")
        username = own.pop(f"{self.name}-username", None)
        return (*([username] if username else []), *self.secrets, self.registry, *own.values())

    @property
    def option_keys(self) -> tuple[str, ...]:
        return self.options.option_keys()
