"""The command init: what it takes, and what help says of it."""

from typing import Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.inputs import LOGS, PrintOnly


class InitInputs(CommandInputs, frozen=True, kw_only=True):
    dry_run: PrintOnly = False


COMMAND: Final = Command(
    name="init",
    about="Write the workflow that releases this repository, and say what comes next.",
    examples="""\
  releasekit init                       write the workflow for what is here
  releasekit init --dry-run             print what would be written
  releasekit init path/to/repository    write it in another directory
  releasekit init --ecosystem npm,pypi  leave the other ecosystems out
  releasekit init --npm-registry https://npm.example.org/
""",
    module="releasekit.cli.init",
    exit_codes="""\
exit codes:
  0    the files are written, or were there
  2    the configuration or an input is wrong
  130  cancelled
""",
    inputs=InitInputs,
    takes=frozenset({"workspace", "registry", "registries"}),
    words={"state-directory": LOGS},
)
