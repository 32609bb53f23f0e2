"""The command plan: what it takes, and what help says of it."""

from pathlib import Path
from typing import Annotated, Final, Literal

from releasekit.config.command import Command, CommandInputs
from releasekit.config.declaration import NOT_IN_FILE, Declaration, declare_flag
from releasekit.config.inputs import DIST, FORESEEN, REQUESTS, STATE


class PlanInputs(CommandInputs, frozen=True, kw_only=True):
    plan_file: Annotated[
        Path | None,
        Declaration(
            "The file to write.",
            writes="record",
            places=NOT_IN_FILE,
            group="jobs",
            often=True,
        ),
    ] = None
    shards: Annotated[
        tuple[str, ...],
        Declaration(
            "Split the packages of each ecosystem (`4`), or of some (`pypi=4,npm=2`), over that "
            "many jobs of the matrix, with equal work for each. The publishing jobs need `wait`.",
            "names",
            group="jobs",
        ),
    ] = ()
    format: Annotated[
        Literal["table", "json", "mermaid"],
        declare_flag("How to print the plan."),
    ] = "table"


COMMAND: Final = Command(
    name="plan",
    mode="shows what would be published",
    about="Show what would be published, and in which order. Changes nothing.",
    examples="""\
  releasekit plan                        show what would be published from here
  releasekit plan --packages 'acme-*'    only these packages
  releasekit plan --format mermaid       show it as a graph
  releasekit plan --plan-file plan.json  write it for the publishing jobs
  releasekit plan --registry dir:./registry
""",
    module="releasekit.cli.plan",
    exit_codes="""\
exit codes:
  0    it is shown
  2    the configuration or an input is wrong
  3    it is impossible: a cycle, an unknown dependency, no credentials, a tool
       that is too old; or one of its warnings counts as an error
  130  cancelled
""",
    summarizes_errors=True,
    inputs=PlanInputs,
    takes=FORESEEN | {"gate", "patience", "reports", "outputs-file", "results-file", "verbose"},
    words={
        **REQUESTS,
        "dist": DIST,
        "failure-policy": "Only `publish` goes by it.",
        "tag": "Show what `publish` would tag, too.",
        "announce": "Show what `publish` would announce at GitHub, GitLab or Gitea, too.",
        "state-directory": STATE,
    },
    needs_destinations=True,
)
