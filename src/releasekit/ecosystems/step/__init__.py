"""Steps, declared: commands of the user's own that publish what no other ecosystem does."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Final, Literal, Self

from releasekit.config.declaration import Declaration, EcosystemDeclaration
from releasekit.config.tables import Option, OptionTable, string, strings
from releasekit.config.version_options import FurtherFile, read_file
from releasekit.decided import Edge
from releasekit.errors import ConfigError
from releasekit.host.secret_encodings import is_token_like
from releasekit.model import DependencyKind, PackageId
from releasekit.problems import Problem

ECOSYSTEM: Final = "step"
# What stands for their registries, which are whatever they publish to.
PLACE: Final = "where steps publish"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# What belongs to the job, to ReleaseKit, or to the places where steps run.
_WITHHELD: Final = re.compile(
    r"PATH|HOME|TMPDIR|(?:BASH_)?ENV|NODE_OPTIONS|PYTHON\w+"
    r"|(?:ACTIONS_ID_TOKEN|GIT|LD|RELEASEKIT|STEP)_\w+",
    re.IGNORECASE,
)
# Not a variable of a shell, nor a script of awk.
FIELD: Final = re.compile(r"(?<!\$)\{([A-Za-z_]+)\}")
FIELDS: Final = ("version", "name", "tag")
# What a shell takes as it stands, and what it would read elsewhere.
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_OF_SHELL: Final = re.compile(r"[|&;<>`]+|\$[({]?[A-Za-z_]\w*")
_EXAMPLE: Final = (
    '"npm:@acme/core", or { path = "Chart.yaml", match = "^version: (.+)$" } for its own'
)


def _read_command(key: str, value: object) -> str:
    text = string(key, value)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"Write words as for a shell: {error}.") from error
    if found := _OF_SHELL.search(_QUOTED.sub("", text)):
        raise ValueError(f"No shell reads {found[0]}: write a script that does this, or quote it.")
    for field in (each for word in words for each in FIELD.findall(word)):
        if field not in FIELDS:
            known = ", ".join(f"{{{each}}}" for each in FIELDS)
            raise ValueError(f"{{{field[:40]}}} stands for nothing; known are {known}.")
    return text if words and words[0] else ""


def _read_version(key: str, value: object) -> PackageId | FurtherFile:
    example = f"{key} = {_EXAMPLE}"
    if isinstance(value, dict):
        file = read_file(value, example)
        if file.match is None:
            raise ValueError(f"Write {example}.")
        _read_place(key, file.path)
        return file
    return _read_package(string(key, value), example)


def _read_needs(key: str, value: object) -> tuple[PackageId, ...]:
    example = f'{key} = ["npm:@acme/core", "step:image"]'
    return tuple(_read_package(each, example) for each in strings(key, value))


def _read_package(text: str, example: str) -> PackageId:
    package = PackageId.parse(text)
    if not package.ecosystem or not package.name:
        raise ValueError(f"Write {example}.")
    return package


def _read_secrets(key: str, value: object) -> tuple[str, ...]:
    names = strings(key, value)
    for name in names:
        if is_token_like(name):
            raise ConfigError(
                f"{StepOptions.where()}: one of the `secrets` looks like a token",
                hint="Revoke it if it was real. Write the name of the variable that has it.",
                problem=Problem.SECRET_IN_THE_OPEN,
            )
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"Write names of variables; {name[:40]!r} is none, and no value.")
        if _WITHHELD.fullmatch(name):
            raise ValueError(
                f"{name} is not given to a step. Write the variable of another secret; "
                "`identity` asks for an ID token."
            )
    return names


def _read_place(key: str, value: object) -> str:
    name = string(key, value)
    parts = PurePosixPath(name).parts
    if "\\" in name or name.startswith("/") or ".." in parts or ".git" in parts:
        raise ValueError('Write a path relative to the root, without "..".')
    return name


class StepOptions(OptionTable, frozen=True, kw_only=True):
    """One step. `version`, `check` and `publish` have to be given, which `of_table` sees to."""

    TABLE: ClassVar[str] = "steps"
    NAMED: ClassVar[bool] = True

    version: Annotated[
        PackageId | FurtherFile | None,
        Option(
            "The package whose version it has, or the file of the repository that says its own: "
            '`{ path = "Chart.yaml", match = "^version: (.+)$" }`.',
            _read_version,
        ),
    ] = None
    needs: Annotated[
        tuple[PackageId, ...],
        Option("What it waits for besides the package whose version it has.", _read_needs),
    ] = ()
    check: Annotated[
        str,
        Option(
            "The command that says whether this version is there: exit status 0 for yes, 10 for "
            "no, and any other for not known.",
            _read_command,
        ),
    ] = ""
    publish: Annotated[
        str,
        Option("The command that publishes it, run only after `check` said no.", _read_command),
    ] = ""
    after: Annotated[
        Literal["", "release"],
        Option("`release` runs it once all packages are tagged and announced."),
    ] = ""
    directory: Annotated[
        str, Option("Where both commands start. Default: the root.", _read_place)
    ] = ""
    secrets: Annotated[
        tuple[str, ...],
        Option("Variables of the job that these commands see, and nothing else.", _read_secrets),
    ] = ()
    identity: Annotated[
        str,
        Option("The audience of an ID token that `publish` gets as `STEP_ID_TOKEN`."),
    ] = ""

    @classmethod
    def of_table(cls, table: Mapping[str, object]) -> dict[str, Self]:
        """All steps, by name. Raises ConfigError."""
        found = {name: cls.from_table(own, name) for name, own in table.items()}
        for name, step in found.items():
            _refuse_unusable(name, step, found)
        return found

    @classmethod
    def list_edges(cls, table: Mapping[str, object], /) -> Iterable[Edge]:
        for name, step in cls.of_table(table).items():
            of = [step.version] if isinstance(step.version, PackageId) else []
            for on in dict.fromkeys([*of, *step.needs]):
                dependent = PackageId(ECOSYSTEM, name)
                yield Edge(dependent=dependent, on=on, kind=DependencyKind.EXTRA)


def _refuse_unusable(name: str, step: StepOptions, steps: Mapping[str, StepOptions]) -> None:
    where = step.where(name)
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{step.where()} {name[:80]!r} is not the name of a step",
            hint="Write letters from a to z, digits and hyphens: [steps.docker-image].",
        )
    if missing := [key for key in ("version", "check", "publish") if not getattr(step, key)]:
        raise ConfigError(
            f"{where} has no `{missing[0]}`",
            hint=f"Write whose `version` it has ({_EXAMPLE}), the command that publishes it, and "
            "one that exits with 0 where it is there and with 10 where it is not: nobody else can "
            "tell.",
        )
    if isinstance(step.version, PackageId) and step.version.ecosystem == ECOSYSTEM:
        other = steps.get(step.version.name)
        if other is None or isinstance(other.version, PackageId):
            raise ConfigError(
                f"{where} version: {step.version} has no version of its own",
                hint="Write the package whose version that has, and the step into `needs`.",
            )
    elif step.after and not isinstance(step.version, PackageId):
        raise ConfigError(
            f"{where} after: a step with a version of its own has a tag, and cannot come after it",
            hint="Leave `after` out, or give it the version of a package.",
        )


DECLARATION: Final = EcosystemDeclaration(
    name=ECOSYSTEM,
    folder=__name__,
    title="Steps",
    registry=Declaration(
        "`dir:PATH` runs no step: what would be published is noted there. Default: each step "
        "publishes where its command does.",
        "registry",
        name="step-registry",
        taken_with="registries",
        group="places",
    ),
    default_registry=PLACE,
    options=StepOptions,
)
