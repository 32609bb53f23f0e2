"""The command version: what it takes, and what help says of it."""

from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import EDITS, PrintOnly


class VersionInputs(CommandInputs, frozen=True, kw_only=True):
    dry_run: PrintOnly = False
    check: Annotated[
        bool, declare_flag("As `--dry-run`, and exit 1 if there is something to write.")
    ] = False


COMMAND: Final = Command(
    name="version",
    mode="writes the versions that changes since the last release ask for",
    about="Write the versions that the changes since the last release ask for.",
    examples="""\
  releasekit version --dry-run         show the next versions, and write nothing
  releasekit version                   write them, with changelogs
  releasekit version --check           exit 1 if there is something to write
  releasekit version --set core=2.0.0  decide the version of one package by hand
  releasekit version --snapshot pr-97  write versions of this commit alone
""",
    module="releasekit.cli.version",
    exit_codes="""\
exit codes:
  0    the versions are written or shown, or there are none
  1    with --check: there is something to write
  2    the configuration or an input is wrong
  3    a version cannot be decided or written, or a warning counts as an error
  4    another run holds the lock
  130  cancelled
""",
    summarizes_errors=True,
    inputs=VersionInputs,
    takes=frozenset(
        {"workspace", "registry", "registries", "reports", "verbose", "branch", "set", "snapshot"}
    ),
    words={
        # Here and not above, so that the action's description names the mode.
        "set": "Versions that are decided by hand, one per line: `NAME=VERSION`, or "
        "`npm:@acme/core=2.0.0` if packages of two ecosystems share the name.",
        "snapshot": "Write versions of this commit alone, to be thrown away, with this label "
        "(`pr-97`), for all packages that would be released and those that need them. Changelogs "
        "stay as they are.",
        "state-directory": EDITS,
        "verbose": "Say what was left alone, and why.",
    },
)
