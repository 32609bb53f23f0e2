"""What `--help` prints: the overview, and of each command what it is for and what it takes.

The short help has the options that people use, by the first sentence of what is said of each;
`--help-all` has everything.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from releasekit.config.declaration import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.config.command import Command
    from releasekit.config.declaration import Declaration
    from releasekit.config.inputs import Declared

EVERYTHING: Final = "--help-all"
_FORESEEING: Final = frozenset({"plan", "check"})
_WIDTH: Final = 80
# Where the words begin, behind a flag that is not longer.
_COLUMN: Final = 28
_OVERVIEW: Final = """\
usage: releasekit COMMAND [ROOT | RESULTS | FILE ...] [--FLAG ...]

{about}

commands (`releasekit COMMAND -h` has examples and the flags):
{commands}

  --help           this text
  --version        the version of ReleaseKit
  completion bash  a script for the Tab key: eval "$(releasekit completion bash)"

examples:
  releasekit check                               say what a release from here still needs
  releasekit plan                                show what would be published from here
  releasekit plan --format mermaid               show it as a graph
  releasekit publish --registry dir:./registry   publish into a directory, for pip
  RELEASEKIT_PYPI_TOKEN=... releasekit publish   publish to pypi.org
  releasekit approve results.json                approve what a run has staged
  releasekit verify dist --repository acme/kit   check that files come from there

Every flag is also an input of the action and a variable (--max-retries, RELEASEKIT_MAX_RETRIES),
and most are keys of releasekit.toml. Secrets are variables only. A flag overrides a variable, and
a variable overrides releasekit.toml. Without a command, RELEASEKIT_MODE names it, as in the action.

{exit_codes}"""


def write_overview(commands: Mapping[str, Command]) -> str:
    """What `releasekit --help` prints."""
    width = max(map(len, commands)) + 2
    listed = "\n".join(f"  {name:<{width}}{commands[name].about}" for name in commands)
    about = "Publishes every package of a monorepo in dependency order, each version exactly once."
    return _OVERVIEW.format(about=about, commands=listed, exit_codes=commands["publish"].exit_codes)


def write_help(command: str, declared: Declared, *, everything: bool) -> str:
    row = declared.commands[command]
    taken = [each for each in declared.inputs.values() if command in each.commands]
    grouped = [each for each in _group(command, taken, declared) if each[1]]
    place = _write_entry(row.positional.metavar, row.positional.help)
    several = " ..." if row.positional.several else ""
    parts = [
        f"usage: releasekit {command} [{row.positional.metavar}{several}] [--FLAG ...]\n",
        textwrap.fill(row.about, _WIDTH) + "\n",
        *([f"examples:\n{row.examples}"] if row.examples else []),
    ]
    if everything:
        parts += [place, *(_write_group(*each, command) for each in grouped)]
        secrets = [each.variable for each in declared.secrets.values() if command in each.commands]
        listed = "secrets, in variables, never as flags:\n  " + "\n  ".join(secrets) + "\n"
        parts += [row.credentials or listed] if row.credentials or secrets else []
        parts += [row.exit_codes]
    else:
        short = [each for _, inputs in grouped for each in inputs if each.often]
        entries = [
            _write_entry(_spell(each), _shorten(each.describe(command)))
            for each in short
            if each.name != row.positional.input
        ]
        rest = f"{EVERYTHING} has all {len(taken)} options in full, and exit codes.\n"
        parts += [f"options:\n{place}{''.join(entries)}", f"releasekit {command} {rest}"]
    return "\n".join(parts)


def _group(
    command: str, taken: Sequence[Declaration], declared: Declared
) -> Iterator[tuple[str, Sequence[Declaration]]]:
    """What each group is called, and what is in it."""
    of_ecosystems = {
        ecosystem.title: {each.name for each in ecosystem.declarations}
        for ecosystem in declared.ecosystems.values()
    }
    theirs = set().union(*of_ecosystems.values())
    for group, title in GROUPS.items():
        own = [each for each in taken if each.group == group and each.name not in theirs]
        foresees = not group and command in _FORESEEING
        about_release = [each for each in own if foresees and "publish" in each.commands]
        yield title, [each for each in own if each not in about_release]
        yield "What the release would do", about_release
        if group == "places":
            for ecosystem, names in of_ecosystems.items():
                yield ecosystem, [each for each in taken if each.name in names]


def _write_group(title: str, inputs: Iterable[Declaration], command: str) -> str:
    entries = [_write_entry(_spell(it, both=True), it.describe(command)) for it in inputs]
    return f"{title}:\n{''.join(entries)}"


def _spell(declaration: Declaration, *, both: bool = False) -> str:
    """With what it takes; `both` ways of a switch."""
    flag = declaration.flag
    if declaration.kind == "bool":
        return f"{flag}, --no-{declaration.name}" if both else flag
    metavar = declaration.kind.removeprefix("named-").upper()
    return f"{flag} {'|'.join(declaration.choices) or metavar}"


def _shorten(words: str) -> str:
    """The first sentence."""
    first, end, _ = words.partition(". ")
    return first + end.rstrip()


def _write_entry(flag: str, words: str) -> str:
    lines = textwrap.wrap(words, _WIDTH - _COLUMN, break_on_hyphens=False)
    head = f"  {flag:<{_COLUMN - 4}}  "
    if len(head) > _COLUMN:
        lines.insert(0, "")
    return "".join(
        f"{head if not at else ' ' * _COLUMN}{line}".rstrip() + "\n"
        for at, line in enumerate(lines)
    )
