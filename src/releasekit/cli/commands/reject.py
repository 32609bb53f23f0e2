"""The command reject: what it takes, and what help says of it."""

from typing import Final

from releasekit.cli.commands import approve
from releasekit.fields import replace

COMMAND: Final = replace(
    approve.COMMAND,
    name="reject",
    about="Reject the staged versions of a release.",
    examples="""\
  releasekit reject                  what the last run here has staged
  releasekit reject results.json     what another run has staged
  releasekit reject --ecosystem npm  leave the other ecosystems out
  releasekit reject --yes            do not ask for confirmation
  releasekit reject --run https://github.com/acme/kit/actions/runs/16
""",
    takes=approve.COMMAND.takes - {"gate"},
)
