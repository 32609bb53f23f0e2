"""The command trust: what it takes, and what help says of it."""

from typing import Annotated, Final

from releasekit.config import values
from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import declare_flag
from releasekit.config.inputs import LOGS, PACKAGES


class TrustInputs(CommandInputs, frozen=True, kw_only=True):
    repository: Annotated[
        str,
        declare_flag(
            "The repository that publishes, OWNER/NAME at github.com or "
            "https://gitlab.com/GROUP/PROJECT. Default: that of the git remote.",
            into=values.repository,
        ),
    ] = ""
    workflow: Annotated[
        str,
        declare_flag(
            "The workflow that publishes: `release.yml`, or at GitLab its path. "
            "Default: the only one that runs ReleaseKit.",
            into=values.workflow,
        ),
    ] = ""
    check: Annotated[
        bool,
        declare_flag(
            "Show only packages that do not trust the workflow, and exit 1 if there are any."
        ),
    ] = False
    write: Annotated[
        bool, declare_flag("Make registries trust the workflow, where they let a program do that.")
    ] = False
    environment: Annotated[
        str,
        declare_flag(
            "The environment of the job that publishes; `-` for none. Default: that of the job in "
            "the workflow."
        ),
    ] = ""


COMMAND: Final = Command(
    name="trust",
    about="Say which packages let the workflow here publish without a token, and what is left.",
    examples="""\
  releasekit trust                      which packages let the workflow publish
  releasekit trust --check              exit 1 if one of them does not
  releasekit trust --write              add it where registries take it
  releasekit trust --packages 'acme-*'  only these packages
  releasekit trust --workflow release.yml --environment release
""",
    module="releasekit.cli.trust",
    credentials="""\
credentials, as variables:
  RELEASEKIT_CARGO_TOKEN  a token of an owner with the scope trusted-publishing
  RELEASEKIT_NPM_TOKEN    default: the login of `npm login`
""",
    exit_codes="""\
exit codes:
  0    it is shown; with --write: added where the registry lets a program do that
  1    with --check: a package does not trust the workflow, or cannot be asked about;
       with --write: a registry refuses
  2    the configuration or an input is wrong
  130  cancelled
""",
    inputs=TrustInputs,
    takes=frozenset({"workspace", "selection", "stage", "registries", "allow-events"}),
    words={
        "packages": PACKAGES,
        "stage": "As in the job that publishes: staging takes other rights.",
        "state-directory": LOGS,
    },
    needs_destinations=True,
)
