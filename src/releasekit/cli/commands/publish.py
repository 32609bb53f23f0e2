"""The command publish: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import NOT_IN_FILE, Declaration
from releasekit.config.inputs import FORESEEN, ResultsFile


class PublishInputs(CommandInputs, frozen=True, kw_only=True):
    plan_file: Annotated[
        Path | None,
        Declaration(
            "Publish exactly what this plan of an earlier job says, or fail if the sources differ.",
            places=NOT_IN_FILE,
            group="jobs",
            often=True,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Declaration(
            "Do everything except the uploads; builds run.",
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    results_file: ResultsFile = None

    @property
    def is_uploading(self) -> bool:
        return not self.dry_run


COMMAND: Final = Command(
    name="publish",
    mode="publishes what is missing",
    about="Publish every package that is not published yet, dependencies first.",
    examples="""\
  releasekit publish --dry-run             build everything, and upload nothing
  releasekit publish --registry dir:./out  publish into directories
  releasekit publish --packages 'acme-*'   only these packages
  releasekit publish --tag --announce      then tag, and create releases
  RELEASEKIT_PYPI_TOKEN=... releasekit publish
""",
    module="releasekit.cli.publish",
    summarizes_errors=True,
    inputs=PublishInputs,
    takes=FORESEEN
    | {
        "publish",
        "gate",
        "patience",
        "secrets",
        "reports",
        "outputs-file",
        "run-url",
        "verbose",
        "allow-events",
    },
    needs_destinations=True,
)
