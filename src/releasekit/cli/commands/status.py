"""The command status: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final

from releasekit.config import values
from releasekit.config.command import Command, CommandInputs, Positional
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import LOGS, PACKAGES, PROJECT, REQUESTS


class StatusInputs(CommandInputs, frozen=True, kw_only=True):
    release: Annotated[
        str | Path,
        declare_flag(
            "The release to look for: a version that all packages have, or results.json of a run. "
            "Default: the versions of the workspace.",
            into=values.version_or_path,
        ),
    ] = ""
    smoke: Annotated[
        bool,
        declare_flag(
            "Let the client of each ecosystem resolve what is there, in an empty directory: uv, "
            "npm or pnpm, cargo, go, mvn. Nothing of any package is executed."
        ),
    ] = False


COMMAND: Final = Command(
    name="status",
    about="Say what users can install now: what is there, missing, or needs what is missing.",
    examples="""\
  releasekit status                      whether users can install what is here
  releasekit status 1.4.0                whether they can install version 1.4.0
  releasekit status results.json         the same for what a run has published
  releasekit status --smoke              let uv, npm, cargo, go, mvn resolve it
  releasekit status --packages 'acme-*'  only these packages
""",
    module="releasekit.cli.status",
    positional=Positional(
        input="release",
        metavar="VERSION|RESULTS",
        help="a version that all packages have, or results.json of a run; default: the "
        "versions of the workspace",
        noun="release",
    ),
    exit_codes="""\
exit codes:
  0    everything is there; with --smoke: and each client resolves it
  1    something is missing, not resolved, or unknown
  2    the configuration or an input is wrong
  130  cancelled
""",
    inputs=StatusInputs,
    takes=frozenset(
        {
            *("workspace", "selection", "lookup", "patience"),
            *("forge", "registry", "registries", "verbose"),
        }
    ),
    words={
        **REQUESTS,
        "packages": PACKAGES,
        "concurrency": "How many packages to resolve at a time.",
        "forge": PROJECT,
        "state-directory": LOGS,
    },
    needs_destinations=True,
)
