"""Every input, declared once.

Flags, RELEASEKIT_* variables, the keys of releasekit.toml, action.yml and the README's table all
come from the fields of `Inputs`, or are compared with them by a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Final, Literal, Self

from releasekit.config.declaration import PREFIX, Declaration
from releasekit.config.registry_inputs import SECRETS, RegistryInputs
from releasekit.config.run_inputs import ALL, ECOSYSTEMS, FLAG_ONLY, NOT_IN_FILE, REPORTS
from releasekit.errors import ConfigError, did_you_mean

__all__ = ["DECLARED", "ECOSYSTEMS", "SECRETS", "Inputs", "from_environment"]


@dataclass(frozen=True, kw_only=True)
class Inputs(RegistryInputs):
    """What the user asked for, with defaults filled in.

    `given` maps the attribute of every value that is not a default to where it was written, for
    messages and because a path is relative to the directory of whoever wrote it.
    """

    state_directory: Annotated[
        str,
        Declaration(
            "Journal and built files. Carried to another runner as an artifact, the next run "
            "resumes there.",
            "path",
            commands=ALL,
        ),
    ] = ".releasekit"
    results_file: Annotated[
        str,
        Declaration(
            "The results as JSON. Default: `results.json` in the state directory.",
            "path",
            commands=REPORTS,
            places=FLAG_ONLY,
        ),
    ] = ""
    summary: Annotated[
        bool,
        Declaration(
            "Write the job summary.",
            "bool",
            commands=REPORTS,
        ),
    ] = True
    annotations: Annotated[
        bool,
        Declaration(
            "Annotate what failed.",
            "bool",
            commands=REPORTS,
        ),
    ] = True
    uv_path: Annotated[
        str,
        Declaration(
            "The uv that makes environments. Default: the one on PATH; without one, pip does.",
            "path",
            places=NOT_IN_FILE,
        ),
    ] = ""
    python_path: Annotated[
        str,
        Declaration(
            "The Python that ReleaseKit runs on, 3.11 or later. Default: the first on PATH.",
            "path",
            places=NOT_IN_FILE,
        ),
    ] = ""
    index_url: Annotated[
        str,
        Declaration(
            "The package index that ReleaseKit and build requirements are installed from.",
            "text",
            places=NOT_IN_FILE,
        ),
    ] = ""
    find_links: Annotated[
        tuple[str, ...],
        Declaration(
            "Directories or pages with more wheels to install from, one per line.",
            "lines",
            places=NOT_IN_FILE,
        ),
    ] = ()
    format: Annotated[
        Literal["table", "json", "mermaid"],
        Declaration(
            "How to print the plan.",
            "choice",
            choices=("table", "json", "mermaid"),
            commands=frozenset({"plan"}),
            places=FLAG_ONLY,
        ),
    ] = "table"
    fix: Annotated[
        bool,
        Declaration(
            "Repair what was found.",
            "bool",
            commands=frozenset({"doctor"}),
            places=FLAG_ONLY,
        ),
    ] = False
    given: Mapping[str, str] = field(default_factory=dict)

    def adding(self, texts: Mapping[str, str], labels: Mapping[str, str]) -> Self:
        """With the inputs of `texts` (name → text; empty means not given) on top.

        `labels` says of each name where it was written. Raises ConfigError for the first value
        that cannot be used.
        """
        written = {name: text for name, text in texts.items() if text.strip()}
        parsed = {
            DECLARED[name].attribute: DECLARED[name].parse(text.strip(), labels[name])
            for name, text in written.items()
        }
        given = {DECLARED[name].attribute: labels[name] for name in written}
        return replace(self, **parsed, given={**self.given, **given})  # type: ignore[arg-type]


def _declared() -> dict[str, Declaration]:
    found = {}
    for each in fields(Inputs):
        if each.name != "given":
            name = each.name.replace("_", "-")
            declaration: Declaration = each.type.__metadata__[0]  # type: ignore[union-attr]
            found[name] = replace(declaration, name=name, default=each.default)
    return found


DECLARED: Final = _declared()


def from_environment(environment: Mapping[str, str]) -> Inputs:
    """What the RELEASEKIT_* variables say; INPUT_* of the platform is never looked at.

    `environment` is the whole environment, so that a misspelt secret is noticed too; the values of
    secrets are not looked at.
    """
    known = {each.variable: each for each in (DECLARED | SECRETS).values()}
    texts = {}
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        if variable not in known:
            raise ConfigError(
                f"{variable} is no input{did_you_mean(variable, known)}",
                hint="Every variable that starts with RELEASEKIT_ is taken for one.",
            )
        declaration = known[variable]
        if declaration.kind != "secret":
            texts[declaration.name] = environment[variable]
    labels = {name: f"input {name} ({DECLARED[name].variable})" for name in texts}
    return Inputs().adding(texts, labels)
