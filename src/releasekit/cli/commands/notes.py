"""The command notes: what it takes, and what help says of it."""

from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs, Positional
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import LOGS, PROJECT


class NotesInputs(CommandInputs, frozen=True, kw_only=True):
    subject: Annotated[
        tuple[str, ...],
        declare_flag(
            "The package and the version to describe, one per line.",
            "lines",
        ),
    ] = ()


COMMAND: Final = Command(
    name="notes",
    about="Print the release notes of a version: its section of the CHANGELOG, or its commits.",
    examples="""\
  releasekit notes npm:@acme/core 1.2.0    its section of the changelog
  releasekit notes acme-core 1.2.0         where one package has that name
  releasekit notes acme-core 1.2.0 >notes  for a release that you create
  releasekit notes --subject acme-core --subject 1.2.0
  releasekit notes acme-core 1.2.0 --forge gitlab:https://gitlab.com/acme/kit
""",
    module="releasekit.cli.notes",
    positional=Positional(
        input="subject",
        metavar="PACKAGE VERSION",
        help="the package and its version: npm:@acme/core 1.2.0",
        noun="package",
        several=True,
    ),
    exit_codes="""\
exit codes:
  0    they are printed
  2    the configuration or an input is wrong, or there is no such package
  130  cancelled
""",
    summarizes_errors=True,
    inputs=NotesInputs,
    takes=frozenset({"workspace", "forge"}),
    words={"forge": PROJECT, "state-directory": LOGS},
)
