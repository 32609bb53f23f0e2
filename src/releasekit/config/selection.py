"""The first inputs of a run: what it does, where, and with which packages."""

from dataclasses import dataclass
from typing import Annotated

from releasekit.config.declaration import (
    ALL,
    NOT_IN_FILE,
    PUBLISH,
    REPORTS,
    Command,
    Declaration,
)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What the user chose, with defaults filled in."""

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
        str, Declaration("The root of the workspace.", "path", commands=ALL, places=NOT_IN_FILE)
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
            "{ecosystems}. Default: all that are found.",
            "names",
            commands=ALL,
        ),
    ] = ()
    packages: Annotated[
        tuple[str, ...],
        Declaration(
            "Only packages whose name matches one of these globs, separated by commas or "
            "line breaks. A dependency that is left out must be on its registry already.",
            "names",
        ),
    ] = ()
    exclude_packages: Annotated[
        tuple[str, ...],
        Declaration(
            "No package whose name matches one of these globs, separated by commas or line breaks.",
            "names",
        ),
    ] = ()
    dist: Annotated[
        tuple[str, ...],
        Declaration(
            "Directories with package files that were built elsewhere, one per line: wheels, npm "
            "tarballs, crates, jars. They are checked, completed and published in order.",
            "lines",
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
