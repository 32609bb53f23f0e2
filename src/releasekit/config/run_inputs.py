"""What to publish and how: the inputs that have nothing to do with any one registry."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from releasekit.config.declaration import Command, Declaration, Place

ECOSYSTEMS: Final = ("pypi", "npm", "cargo", "go", "maven")

NOT_IN_FILE: Final = frozenset[Place]({"action", "flag"})
FLAG_ONLY: Final = frozenset[Place]({"flag"})
ALL: Final = frozenset[Command]({"plan", "publish", "report", "doctor"})
PUBLISH: Final = frozenset[Command]({"publish"})
REPORTS: Final = frozenset[Command]({"plan", "publish", "report"})


@dataclass(frozen=True, kw_only=True)
class RunInputs:
    """See `inputs.Inputs`."""

    mode: Annotated[
        Command,
        Declaration(
            "`plan` shows what would be published, `publish` publishes what is missing, "
            "`report` joins the results of several jobs into one summary.",
            "choice",
            choices=("plan", "publish", "report"),
            commands=frozenset(),
            places=frozenset({"action"}),
        ),
    ] = "plan"
    working_directory: Annotated[
        str,
        Declaration(
            "The root of the workspace.",
            "path",
            commands=ALL,
            places=NOT_IN_FILE,
        ),
    ] = "."
    config_file: Annotated[
        str,
        Declaration(
            "Default: `releasekit.toml` in the root, if it is there.",
            "path",
            commands=ALL,
            places=NOT_IN_FILE,
        ),
    ] = ""
    ecosystem: Annotated[
        tuple[str, ...],
        Declaration(
            "Only these ecosystems, separated by commas or line breaks: "
            f"{', '.join(f'`{name}`' for name in ECOSYSTEMS)}. Default: all that are found.",
            "names",
            choices=ECOSYSTEMS,
            commands=ALL,
        ),
    ] = ()
    packages: Annotated[
        tuple[str, ...],
        Declaration(
            "Only packages whose name matches one of these globs, one per line. "
            "A dependency that is left out must be on its registry already.",
            "names",
        ),
    ] = ()
    exclude_packages: Annotated[
        tuple[str, ...],
        Declaration(
            "No package whose name matches one of these globs, one per line.",
            "names",
        ),
    ] = ()
    plan_file: Annotated[
        str,
        Declaration(
            "Publish exactly what this plan of an earlier job says; refused when the sources "
            "differ. With `plan`, where to write it; with `report`, what has to be accounted for.",
            "path",
            commands=REPORTS,
            places=NOT_IN_FILE,
        ),
    ] = ""
    dry_run: Annotated[
        bool,
        Declaration(
            "Everything but the uploads, builds included.",
            "bool",
            commands=PUBLISH,
            places=NOT_IN_FILE,
        ),
    ] = False
    concurrency: Annotated[
        int,
        Declaration(
            "Uploads in flight.",
            "int",
            minimum=1,
            maximum=100,
        ),
    ] = 5
    build_concurrency: Annotated[
        int | None,
        Declaration(
            "Builds at the same time, `auto` for as many as there are CPUs.",
            "int",
            word="auto",
            minimum=1,
            maximum=256,
        ),
    ] = None
    max_retries: Annotated[
        int,
        Declaration(
            "How often a request that failed for a passing reason is tried again.",
            "int",
            minimum=0,
            maximum=20,
        ),
    ] = 3
    retry_base_delay: Annotated[
        float,
        Declaration(
            "The longest pause before the first retry; it doubles with each, up to 60s.",
            "duration",
            minimum=0,
            maximum=60,
        ),
    ] = 1.0
    task_timeout: Annotated[
        float,
        Declaration(
            "The longest that one attempt to build, upload or confirm one package may take.",
            "duration",
            minimum=1,
            maximum=86_400,
        ),
    ] = 600.0
    deadline: Annotated[
        float | None,
        Declaration(
            "The longest that the whole run may take; then nothing new starts. Default: none.",
            "duration",
            minimum=1,
            maximum=7 * 86_400,
        ),
    ] = None
    failure_policy: Annotated[
        Literal["skip-dependents", "stop"],
        Declaration(
            "After a failure, `skip-dependents` goes on with all that does not depend on it; "
            "`stop` starts nothing new.",
            "choice",
            choices=("skip-dependents", "stop"),
        ),
    ] = "skip-dependents"
    gate: Annotated[
        Literal["visible", "accepted"],
        Declaration(
            "What a dependent waits for: its dependency is `visible` on the registry, or only "
            "`accepted` by it.",
            "choice",
            choices=("visible", "accepted"),
        ),
    ] = "visible"
    pin: Annotated[
        Literal["auto", "exact", "none"],
        Declaration(
            "In-repo dependencies in what is built: `auto` pins those without a version, "
            "`exact` pins all, `none` pins nothing.",
            "choice",
            choices=("auto", "exact", "none"),
        ),
    ] = "auto"
    trusted_publishing: Annotated[
        Literal["auto", "always", "never"],
        Declaration(
            "Credentials by OIDC: `always`, `never`, or `auto` where there is no token and the "
            "job may ask for an identity.",
            "choice",
            choices=("auto", "always", "never"),
        ),
    ] = "auto"
