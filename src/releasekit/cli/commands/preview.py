"""The command preview: what it takes, and what help says of it."""

from typing import Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.inputs import LOGS, Since


class PreviewInputs(CommandInputs, frozen=True, kw_only=True):
    since: Since = ""


COMMAND: Final = Command(
    name="preview",
    mode="shows what merging a pull request would release",
    about="Show what merging a pull request, or the branch at hand, would release.",
    examples="""\
  releasekit preview                      what merging this branch would release
  releasekit preview --since origin/main  compare with a branch of your choice
  releasekit preview --branch next        as if the branch next released it
  releasekit preview --ecosystem cargo    leave the other ecosystems out
  releasekit preview path/to/repository   look at another clone
""",
    module="releasekit.cli.preview",
    exit_codes="""\
exit codes:
  0    it is shown
  2    the configuration or an input is wrong
  3    a version cannot be decided, or a warning counts as an error
  130  cancelled
""",
    summarizes_errors=True,
    inputs=PreviewInputs,
    takes=frozenset({"workspace", "registry", "registries", "reports", "branch"}),
    words={"state-directory": LOGS},
)
