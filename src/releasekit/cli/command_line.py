"""The command line: flags made from the declared inputs, `--help`, `--version`."""

from __future__ import annotations

import argparse
import re
import sys
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Final, NoReturn

from releasekit import __version__
from releasekit.cli.completion import write_bash_completion
from releasekit.cli.help import EVERYTHING, write_help, write_overview
from releasekit.errors import ConfigError, closest, did_you_mean
from releasekit.fields import replace
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.config.command import Command
    from releasekit.config.inputs import Declared, Inputs

_FLAG: Final = re.compile(r"--[a-z]+(?:-[a-z]+)*")
# A longer one may be a secret that stands in the wrong place.
_MOST_SHORT: Final = 2
_SHORT: Final = re.compile(r"[a-z]{1,16}(?:-[a-z]{1,16})?")
# A directory may be written so, but is more often the value of a flag with a longer name.
_BARE: Final = re.compile(r"\w[\w-]*", re.ASCII)
_VALUE: Final = re.compile(r"ignored explicit argument .*", re.DOTALL)
_EXAMPLES: Final[Mapping[str, str]] = {
    "duration": "10m",
    "index": "https://pypi.org/simple/",
    "int": "4",
    "named-registry": "dir:./registry",
    "names": "NAME,NAME",
    "path": "PATH",
    "registry": "dir:./registry",
}


def parse_command_line(
    argv: Sequence[str], environment: Mapping[str, str], declared: Declared
) -> Inputs:
    """What the arguments (without the program's name), then the RELEASEKIT_* variables say.

    Without arguments this is the action, and `mode` comes from RELEASEKIT_MODE; on a terminal,
    where nothing sets that, it is `--help`. `--help` and `--version` print and raise SystemExit(0).
    Raises ConfigError for everything else.
    """
    if not argv and ("RELEASEKIT_MODE" in environment or not sys.stdout.isatty()):
        return declared.from_environment(environment)
    argv = argv or ["--help"]
    if argv[0] == "completion":
        _print_completion(argv[1:], declared)
    command = _command(argv[0], declared.commands)
    given = {*takewhile(lambda word: word != "--", argv[1:])}
    if given & {"-h", "--help", EVERYTHING}:
        print(write_help(command, declared, everything=EVERYTHING in given), end="")  # noqa: T201
        raise SystemExit(0)
    parser, words = _parser(command, declared), [*_spelled_out(argv[1:], declared)]
    positional = declared.commands[command].positional
    parse = parser.parse_known_intermixed_args if positional.several else parser.parse_known_args
    # Since Python 3.13, argparse takes -hX as -h.
    # https://github.com/python/cpython/pull/114180
    flags = takewhile(lambda word: word != "--", words)
    if joined := [word for word in flags if word.startswith("-h") and word != "-h"]:
        raise _not_understood(joined, command, declared, argv)
    found, unknown = parse(words)
    if unknown:
        raise _not_understood(unknown, command, declared, argv)
    texts = dict(_texts(vars(found)))
    labels = {name: f"--{name}" for name in texts}
    if found.place:
        name = positional.input
        if name in texts:
            raise ConfigError(
                f"{positional.metavar} and --{name} are the same input; write one of them",
                problem=Problem.COMMAND_LINE,
            )
        texts[name] = "\n".join(found.place) if positional.several else found.place
        labels[name] = positional.metavar
    inputs = declared.from_environment(environment)
    return replace(declared.adding(inputs, texts, labels), mode=command)


def _print_completion(shells: Sequence[str], declared: Declared) -> NoReturn:
    if list(shells) != ["bash"]:
        raise ConfigError(
            "completion takes the name of a shell, and bash is the one that it knows",
            hint="Write releasekit completion bash; zsh reads that after bashcompinit.",
            problem=Problem.COMMAND_LINE,
        )
    print(write_bash_completion(declared), end="")  # noqa: T201 (what was asked for)
    raise SystemExit(0)


def _command(word: str, commands: Mapping[str, Command]) -> str:
    if word in {"-h", "--help", EVERYTHING, "help"}:
        print(write_overview(commands), end="")  # noqa: T201 (what was asked for)
        raise SystemExit(0)
    if word in {"-V", "--version"}:
        print(f"releasekit {__version__}")  # noqa: T201
        raise SystemExit(0)
    if word in commands:
        return word
    # Names that other tools have for it, or earlier versions: others are nearer by their letters.
    known = (*commands, "completion", "--version")
    near = {"release": "publish", "doctor": "check"}.get(word) or closest(word, known)
    if word.startswith("-"):
        what = "the command comes before its flags"
    elif re.fullmatch(r"[A-Za-z]+" if near else _SHORT, word):
        what = f"there is no command {word!r}"
    else:  # it may be a token in the wrong place
        what = "the first argument is not a command"
    raise ConfigError(
        what + (f", did you mean {near!r}?" if near else ""),
        hint=f"Write releasekit {' | '.join(commands)}; releasekit --help explains them.",
        problem=Problem.COMMAND_LINE,
    )


class _Parser(argparse.ArgumentParser):
    """`examples` has a value of each flag that takes one."""

    examples: Mapping[str, str]

    def error(self, message: str) -> NoReturn:
        # Of a flag that takes none, argparse shows the value.
        what = _VALUE.sub("takes no value", message.removeprefix("argument "))
        flag, _, rest = what.partition(": ")
        if rest == "expected one argument":
            what = f"{flag} needs a value: write {flag} {self.examples[flag]}, for example"
        raise ConfigError(
            what, hint=f"{self.prog} {EVERYTHING} lists the flags.", problem=Problem.COMMAND_LINE
        )


def _parser(command: str, declared: Declared) -> _Parser:
    parser = _Parser(prog=f"releasekit {command}", add_help=False, allow_abbrev=False)
    parser.examples = {
        each.flag: each.choices[0] if each.choices else _EXAMPLES.get(each.kind, "VALUE")
        for each in declared.inputs.values()
    }
    parser.add_argument(
        "place", nargs="*" if declared.commands[command].positional.several else "?"
    )
    for each in declared.inputs.values():
        if command not in each.commands:
            continue
        if each.kind == "bool":
            parser.add_argument(each.flag, action=argparse.BooleanOptionalAction, default=None)
        else:
            action = "append" if each.kind in {"names", "lines"} else "store"
            parser.add_argument(each.flag, action=action)
    return parser


def _spelled_out(argv: Sequence[str], declared: Declared) -> Iterator[str]:
    """`--dry-run=false` becomes `--no-dry-run`: argparse knows no value for such a flag. Raises
    ConfigError for `--dry-run false`, as YAML would have it, and for `--tag next`, which would
    take `next` for a directory where `--npm-tag next` is meant.
    """
    flags = [each.flag for each in declared.inputs.values() if each.kind != "bool"]
    switches = {each.flag: each for each in declared.inputs.values() if each.kind == "bool"}
    for argument, following in zip_longest(argv, argv[1:]):
        flag, equals, text = argument.partition("=")
        if flag not in switches:
            yield argument
        elif equals:
            yield flag if switches[flag].parse(text, flag) else f"--no-{flag[2:]}"
        elif following in {"true", "false"}:
            written = flag if following == "true" else f"--no-{flag[2:]}"
            raise ConfigError(
                f"{flag} is a switch, and takes no {following!r} behind it; write {written}",
                problem=Problem.COMMAND_LINE,
            )
        elif _BARE.fullmatch(following or "") and (
            namesake := next((f for f in flags if f.endswith(flag[1:]) and f != flag), None)
        ):
            raise ConfigError(
                f"{flag} is a switch and takes no value; write {namesake} {following}, or "
                f"./{following} if it is a directory",
                problem=Problem.COMMAND_LINE,
            )
        else:
            yield argument


def _texts(found: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for attribute, value in found.items():
        name = attribute.replace("_", "-")
        match value:
            case bool():
                yield name, str(value).lower()
            case str() if name != "place":
                yield name, value
            case list() if name != "place":
                yield name, "\n".join(value)
            case _:  # not given
                pass


def _not_understood(
    unknown: Sequence[str], command: str, declared: Declared, argv: Sequence[str]
) -> ConfigError:
    """The error for the first of them, without its value, which may be a secret; and without what
    may be one instead of a flag.
    """
    hint, problem = f"releasekit {command} {EVERYTHING} lists the flags.", Problem.COMMAND_LINE
    word = next((word for word in unknown if word.startswith("-")), unknown[0])
    flag = word.partition("=")[0]
    name = flag.removeprefix("--")
    position = [*argv, word].index(word) + 1
    elsewhere = {
        each.flag: " and ".join(sorted(each.commands))
        for each in declared.inputs.values()
        if each.commands
    }
    known = [each.flag for each in declared.inputs.values() if command in each.commands]
    if not word.startswith("-"):
        noun = declared.commands[command].positional.noun
        takes = f"releasekit {command} takes one {noun}, and flags"
        what = f"argument {position} is one too many: {takes}"
    elif not _FLAG.fullmatch(flag):
        shown = f"argument {position}" if len(word) > _MOST_SHORT else word
        what = f"{shown} is not a flag: write two hyphens and a word, such as --verbose"
    elif name in declared.secrets:
        what = f"{flag} is a secret, and arguments can be read by every process of the machine"
        hint = f"Set the variable {declared.secrets[name].variable} instead."
        problem = Problem.SECRET_IN_THE_OPEN
    elif flag in elsewhere:
        near = closest(flag, known, cutoff=0.9)
        meant = f", did you mean {near!r}?" if near else ""
        what = f"{flag} works with {elsewhere[flag]}, not with {command}{meant}"
    else:
        meant = did_you_mean(flag, known)
        if not meant and (near := closest(flag, elsewhere, cutoff=0.8)):
            meant = f", and {near} works with {elsewhere[near]}, not with {command}"
        what, problem = f"{flag} is not a flag{meant}", Problem.UNKNOWN_NAME
    return ConfigError(what, hint=hint, problem=problem)
