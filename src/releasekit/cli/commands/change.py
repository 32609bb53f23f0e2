"""The command change: what it takes, and what help says of it."""

from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import LOGS, Since


class ChangeInputs(CommandInputs, frozen=True, kw_only=True):
    package: Annotated[
        tuple[str, ...],
        declare_flag(
            "A package that the change concerns, and how much: `@acme/core=minor`. Repeatable; "
            "`major`, `minor`, `patch`, `none`, or a version.",
            "lines",
        ),
    ] = ()
    text: Annotated[
        str,
        declare_flag("What changed, for users of the package: one line of Markdown."),
    ] = ""
    check: Annotated[
        bool,
        declare_flag("Write nothing, and exit 1 if nothing speaks for a package that changes."),
    ] = False
    since: Since = ""


COMMAND: Final = Command(
    name="change",
    about="Write a change file: what a change asks of the next versions, and what it is.",
    examples="""\
  releasekit change          ask for packages, levels and text
  releasekit change --package core=minor --text 'Icons have titles.'
  releasekit change --package core --text 'Icons no longer flicker.'
  releasekit change --check  exit 1 if a change has no file
  releasekit change --check --since origin/main
""",
    module="releasekit.cli.change",
    exit_codes="""\
exit codes:
  0    the file is written, or with --check: none is missing
  1    with --check: nothing speaks for a package that changes
  2    a package is unknown, something is missing, or the configuration is wrong
  130  cancelled
""",
    inputs=ChangeInputs,
    takes=frozenset({"workspace", "registries"}),
    words={"state-directory": LOGS},
)
