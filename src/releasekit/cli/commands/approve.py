"""The command approve: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs, Positional
from releasekit.config.declaration import Declaration, declare_flag
from releasekit.config.inputs import PROJECT, REQUESTS, STATE


class ApproveInputs(CommandInputs, frozen=True, kw_only=True):
    results_file: Annotated[
        Path | None,
        Declaration(
            "The results of the run that staged. Default: `results.json` in the state directory.",
            places=frozenset(),
        ),
    ] = None
    run: Annotated[
        str,
        declare_flag(
            "The address of the workflow run that staged the versions, instead of a file; GH_TOKEN"
            " reads its artifacts."
        ),
    ] = ""
    yes: Annotated[bool, declare_flag("Do not ask for confirmation.")] = False


COMMAND: Final = Command(
    name="approve",
    about="Review the staged versions of a release, and approve them, dependencies first.",
    examples="""\
  releasekit approve                  what the last run here has staged
  releasekit approve results.json     what another run has staged
  releasekit approve --ecosystem npm  leave the other ecosystems out
  releasekit approve --yes            do not ask for confirmation
  releasekit approve --run https://github.com/acme/kit/actions/runs/16
""",
    module="releasekit.cli.approve",
    positional=Positional(
        input="results-file",
        metavar="RESULTS",
        help="results.json of the run that staged; default: the one in the state directory",
        noun="file of results",
    ),
    credentials="""\
credentials, as variables:
  RELEASEKIT_NPM_TOKEN    default: the login of `npm login`
  RELEASEKIT_NPM_OTP      a one-time code, where no terminal can ask for it
  GH_TOKEN                for --run: reads the artifacts of the run
""",
    exit_codes="""\
exit codes:
  0    all of it is decided, or nothing waits
  1    something still waits, or is refused
  2    the configuration or an input is wrong
  3    credentials are missing
  130  cancelled
""",
    inputs=ApproveInputs,
    takes=frozenset(
        {
            *("workspace", "registries", "patience", "gate"),
            *("forge", "allow-events", "verbose", "personal-secrets"),
        }
    ),
    words={**REQUESTS, "forge": PROJECT, "state-directory": STATE},
    needs_destinations=True,
)
