"""The command report: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import NOT_IN_FILE, Declaration
from releasekit.config.inputs import ResultsFile


class ReportInputs(CommandInputs, frozen=True, kw_only=True):
    plan_file: Annotated[
        Path | None,
        Declaration(
            "The plan whose packages need results.",
            places=NOT_IN_FILE,
            group="jobs",
            often=True,
        ),
    ] = None
    results_file: ResultsFile = None


COMMAND: Final = Command(
    name="report",
    mode="joins the results of several jobs into one summary",
    about="Join the results of several jobs into one summary.",
    examples="""\
  releasekit report                              join results in .releasekit
  releasekit report --state-directory artifacts  where the artifacts of jobs are
  releasekit report --plan-file plan.json        name packages without results
  releasekit report --results-file joined.json   write the results there
  releasekit report --no-summary                 write no job summary
""",
    module="releasekit.cli.report",
    inputs=ReportInputs,
    takes=frozenset({"workspace", "reports", "outputs-file", "run-url"}),
    words={"state-directory": "The directory with the state directories or results of all jobs."},
)
