"""A command as its module in `cli.commands` declares it: how it is called, what it takes, and what
carries it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXIT_CODES: Final = """\
exit codes:
  0    every package is published or was before, or is staged for approval
  1    at least one package failed, is blocked, or is unknown
  2    the configuration or an input is wrong, or a tool is missing
  3    the plan is impossible: a cycle, an unknown dependency, no credentials,
       a tool that is too old; or one of its warnings counts as an error
  4    another run holds the lock
  130  cancelled
"""


class CommandInputs(Struct, frozen=True, kw_only=True):
    """The inputs of one command alone: its subclass declares each as an annotated field."""

    @property
    def is_uploading(self) -> bool:
        return False


class Positional(Struct, frozen=True, kw_only=True):
    """The input that needs no flag: its name, what help calls it, and what an error calls one of
    it. Of `several`, some may stand behind a flag.
    """

    input: str
    metavar: str
    help: str
    noun: str
    several: bool = False


_ROOT: Final = Positional(
    input="working-directory",
    metavar="ROOT",
    help="the workspace; default: here",
    noun="workspace",
)


class Command(Struct, frozen=True, kw_only=True):
    """`module` has `run`, from a Config and a Session to an exit code. Besides its own `inputs` it
    `takes` those of these names, and those that are `taken_with` one of them; `words` are its own
    help of them. Without "workspace", releasekit.toml is not read. What it does as a `mode` of the
    action goes on after its name; empty for a command of the terminal alone.

    `credentials` is the part of its long help about them; by default, help lists the secrets among
    its inputs. Where it `summarizes_errors`, the job summary tells of one that ends it early; for
    the other commands, that of an earlier job does. It `needs_destinations` where a package that
    would go to a wrong place ends it.
    """

    name: str
    about: str
    module: str
    mode: str = ""
    examples: str = ""
    positional: Positional = _ROOT
    credentials: str = ""
    exit_codes: str = _EXIT_CODES
    inputs: type[CommandInputs] = CommandInputs
    takes: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)
    summarizes_errors: bool = False
    needs_destinations: bool = False
