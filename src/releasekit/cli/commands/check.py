"""The command check: what it takes, and what help says of it."""

from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import DIST, FORESEEN, PACKAGES, STATE


class CheckInputs(CommandInputs, frozen=True, kw_only=True):
    fix: Annotated[bool, declare_flag("First repair what earlier runs left behind.")] = False


COMMAND: Final = Command(
    name="check",
    mode="says what a release would need",
    about="Say what a release from here needs, and what earlier runs left. Asks no registry.",
    examples="""\
  releasekit check                    say what a release from here still needs
  releasekit check --fix              first repair what earlier runs left behind
  releasekit check --tag --announce   include what tags and releases need
  releasekit check --ecosystem cargo  leave the other ecosystems out
  releasekit check --registry dir:./registry
""",
    module="releasekit.cli.check",
    exit_codes="""\
exit codes, of what stands first among the things to do:
  0    nothing is missing
  1    an earlier run left something behind
  2    a tool is missing, or the configuration or an input is wrong
  3    a tool is too old, or credentials are missing
  4    with --fix: another run holds the lock
  130  cancelled
""",
    inputs=CheckInputs,
    takes=FORESEEN | {"secrets"},
    words={
        "packages": PACKAGES,
        "dist": DIST,
        "deadline": "Only `plan` and `publish` go by it.",
        "failure-policy": "Only `publish` goes by it.",
        "tag": "Say what the tags of a release need, too.",
        "announce": "Say what releases at GitHub, GitLab or Gitea need, too.",
        "state-directory": STATE,
    },
    needs_destinations=True,
)
