"""The command release-pr: what it takes, and what help says of it."""

from typing import Final

from releasekit.config.command import Command
from releasekit.config.inputs import EDITS, PROJECT, REQUESTS

COMMAND: Final = Command(
    name="release-pr",
    mode="keeps one pull request with the next versions",
    about="Open the pull request with the next versions, bring it up to date, or close it.",
    examples="""\
  releasekit release-pr                  open it, or bring it up to date
  releasekit release-pr --branch next    for releases from the branch next
  releasekit release-pr --ecosystem npm  leave the other ecosystems out
  releasekit release-pr --verbose        log every request
  releasekit release-pr --forge github:https://github.com/acme/kit
""",
    module="releasekit.cli.release_pr",
    exit_codes="""\
exit codes:
  0    the pull request is up to date, or there is none to open
  1    the forge refuses, or does not answer
  2    the configuration or an input is wrong
  3    a version cannot be decided or written, or a warning counts as an error
  4    another run holds the lock
  130  cancelled
""",
    summarizes_errors=True,
    takes=frozenset(
        {
            *("workspace", "registry", "registries", "reports"),
            *("verbose", "branch", "patience", "forge", "allow-events"),
        }
    ),
    words={**REQUESTS, "forge": PROJECT, "state-directory": EDITS},
)
