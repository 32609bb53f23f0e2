"""What several commands take, and what ecosystems declare, joined with what each command takes by
itself: every input there is.

Flags, RELEASEKIT_* variables, the keys of releasekit.toml, action.yml and docs/inputs.md all
come from the annotated fields, or are compared with them by a test.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from releasekit.config import values
from releasekit.config.command import Command
from releasekit.config.declaration import (
    FLAG_ONLY,
    NOT_IN_FILE,
    PREFIX,
    Declaration,
    EcosystemDeclaration,
    declare_flag,
    declared_by,
)
from releasekit.config.values import (
    AttestationMode,
    Directory,
    Dist,
    PinMode,
    StageMode,
    TrustedPublishing,
    Url,
)
from releasekit.errors import ConfigError, did_you_mean
from releasekit.fields import replace
from releasekit.host.forges import ForgePlace
from releasekit.host.sandbox import Wanted
from releasekit.problems import Problem

if TYPE_CHECKING:
    from releasekit.http.client import RetryPolicy
    from releasekit.scheduler.retries import WaitBudget

STATE_KEY = Declaration.secret(
    "state-key",
    "The secret, at least 32 characters, that seals built files. Runs with the same key trust each"
    " other's state directory; without a key, only runs of one user on one machine do.",
)
FORGE_TOKEN = Declaration.secret(
    "forge-token",
    "The token that makes releases: at GitHub with `contents: write`, at GitLab with the scope "
    "`api`, at Gitea with `write:repository`. GitHub also gets the release statement with it "
    "(`attestations: write`). The release pull request also needs `pull-requests: write`; at "
    "GitLab it needs a project access token, as the job's own cannot open merge requests. Default: "
    "the job's own token.",
    default="${{ github.token }}",
)

# What commands that foresee a release, or make it, take.
FORESEEN: Final = frozenset(
    {
        *("workspace", "selection", "lookup", "planning", "stage", "trust-config"),
        *("forge", "registry", "registries"),
    }
)
# What some commands say of an input that they share.
PACKAGES: Final = (
    "Only packages whose name matches one of these globs, separated by commas or line breaks."
)
DIST: Final = (
    "Directories with package files that were built elsewhere, one per line: wheels, npm tarballs, "
    "crates, jars."
)
STATE: Final = "Directory of the journal and built files."
LOGS: Final = "Directory for the logs of builds, where packages get their versions from a build."
EDITS: Final = "Directory of the locks, and of the originals of files until all are written."
_FORGE: Final = (
    "as KIND:URL of the repository: `github:…`, `gitlab:…`, `gitea:…` (Forgejo, too). Default: the "
    "CI's own, else that of the git remote at github.com, gitlab.com or codeberg.org."
)
PROJECT: Final = f"Where the project is, {_FORGE}"
_MAX_WAIT: Final = "The longest pause that a server may ask for (`Retry-After`)."
REQUESTS: Final[Mapping[str, str]] = {
    "max-wait": _MAX_WAIT,
    "task-timeout": "Timeout of one request.",
}

# What a command declares for itself as another one does.
PrintOnly = Annotated[
    bool, Declaration("Print what would be written.", places=NOT_IN_FILE, often=True)
]
ResultsFile = Annotated[
    Path | None,
    Declaration(
        "The results as JSON. Default: `results.json` in the state directory.",
        writes="record",
        places=FLAG_ONLY,
        group="reports",
    ),
]
Since = Annotated[
    str,
    declare_flag(
        "The branch or commit that the changes at hand are to be merged into. Default: that of the "
        "pull request, else `origin/HEAD`."
    ),
]


# Nobody makes these parts of `Inputs` and of `Config`: without methods of their own, a start takes
# 9 ms of CPU less.
@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkspaceInputs:
    """What is released, and where a run keeps what it needs."""

    working_directory: Annotated[
        Path,
        Declaration(
            "The root of the workspace.",
            places=NOT_IN_FILE,
            group="machine",
            taken_with="workspace",
        ),
    ] = Path()
    config_file: Annotated[
        Path | None,
        Declaration(
            "The configuration file. Default: `releasekit.toml` in the root, if there is one.",
            places=NOT_IN_FILE,
            group="machine",
            taken_with="workspace",
        ),
    ] = None
    ecosystem: Annotated[
        tuple[str, ...],
        Declaration(
            "Only these ecosystems, separated by commas or line breaks: "
            "{ecosystems}. Default: all that are found.",
            "names",
            group="packages",
            often=True,
            taken_with="workspace",
        ),
    ] = ()
    state_directory: Annotated[
        Path,
        Declaration(
            f"{STATE} Carry it to another runner as an artifact, with the same `state-key`, to "
            "resume there.",
            group="machine",
            often=True,
            taken_with="workspace",
        ),
    ] = Path(".releasekit")

    def __replace__(self, **changes: Any) -> Self:  # each dataclass has one from Python 3.13 on
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SelectionInputs:
    """Which packages of it."""

    packages: Annotated[
        tuple[str, ...],
        Declaration(
            f"{PACKAGES} Dependencies that do not match must already be on their registry.",
            kind="names",
            group="packages",
            often=True,
            taken_with="selection",
        ),
    ] = ()
    exclude_packages: Annotated[
        tuple[str, ...],
        Declaration(
            "Leave out packages whose name matches one of these globs, separated by commas or line"
            " breaks.",
            "names",
            group="packages",
            often=True,
            taken_with="selection",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ReleaseInputs:
    """What becomes of them."""

    dist: Annotated[
        tuple[Dist, ...],
        Declaration(
            f"{DIST} ReleaseKit checks them, builds what is missing, and publishes in order.",
            kind="lines",
            into=lambda text: Dist(Path(text)),
            group="packages",
        ),
    ] = ()
    strict: Annotated[
        bool,
        Declaration(
            "Treat warnings as errors: a warning in the plan stops the run, and a warning about "
            "built files stops that package.",
        ),
    ] = False
    stage: Annotated[
        StageMode,
        Declaration(
            "Stage versions, so that a person has to approve them before users can install them: "
            "`always`, `never`, or `auto`, if this identity may only stage. Also a key of `[npm]` "
            "and `[maven]`.",
            taken_with="",
        ),
    ] = "auto"
    pin: Annotated[
        PinMode,
        Declaration(
            "Versions of in-repo dependencies in built packages: `auto` pins those without a "
            "version, `exact` pins all, `none` pins nothing."
        ),
    ] = "auto"
    tag: Annotated[
        bool,
        Declaration(
            "Tag every version that is on its registry, including those that earlier runs left "
            "untagged, and push the tags. The table `[tag]` has the options.",
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    announce: Annotated[
        bool,
        Declaration(
            "Create a release with notes at GitHub, GitLab or Gitea for every tagged version. The "
            "table `[announce]` has the options.",
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    shard: Annotated[
        str,
        Declaration(
            "The part of the plan that this job publishes (`2/4`), from its row of the matrix; "
            "needs `plan-file`.",
            places=NOT_IN_FILE,
            group="jobs",
            taken_with="publish",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PaceInputs:
    """How fast, how long, and what a failure ends."""

    concurrency: Annotated[
        int,
        Declaration(
            "How many packages to upload at a time.",
            minimum=1,
            maximum=100,
            group="pace",
            taken_with="lookup",
        ),
    ] = 5
    build_concurrency: Annotated[
        int | None,
        Declaration(
            "How many builds to run at a time; `auto`: the number of CPUs.",
            word="auto",
            minimum=1,
            maximum=256,
            group="pace",
        ),
    ] = None
    deadline: Annotated[
        float | None,
        Declaration(
            "Timeout of the whole run, planning included; after it, nothing new starts. Default: "
            "none.",
            minimum=1,
            maximum=7 * 86_400,
            group="pace",
        ),
    ] = None
    failure_policy: Annotated[
        Literal["skip-dependents", "stop"],
        Declaration(
            "After a failure, `skip-dependents` goes on with all packages that do not depend on "
            "the failed one; `stop` starts nothing new.",
            group="pace",
        ),
    ] = "skip-dependents"
    gate: Annotated[
        Literal["visible", "accepted"],
        Declaration(
            "What a dependent waits for: the registry shows its dependency (`visible`), or has "
            "only accepted it (`accepted`).",
            taken_with="",
        ),
    ] = "visible"
    start_uploads: Annotated[
        Literal["ready", "built"],
        Declaration(
            "When uploads start: each package as soon as its turn comes (`ready`), or none before "
            "all packages of the job are built, checked and signed (`built`); a failure before "
            "that leaves nothing published.",
        ),
    ] = "ready"
    wait_for_approval: Annotated[
        float,
        Declaration(
            "How long to wait for the approval of staged versions before publishing their "
            "dependents; `0s` leaves the dependents to a later run.",
            minimum=0,
            maximum=7 * 86_400,
            taken_with="publish",
        ),
    ] = 0.0
    wait: Annotated[
        float,
        Declaration(
            "How long to wait for a package of another job, once that package waits for none of "
            "this job; `0s` refuses packages that need one.",
            minimum=0,
            maximum=7 * 86_400,
            group="jobs",
        ),
    ] = 0.0
    results_directory: Annotated[
        Path | None,
        Declaration(
            "A directory with the state directories or results of all jobs of a release. Other "
            "jobs stop waiting for a package once its job has ended without publishing it.",
            group="jobs",
            taken_with="publish",
        ),
    ] = None
    max_retries: Annotated[
        int,
        Declaration(
            "How often to retry a request that failed for a temporary reason.",
            minimum=0,
            maximum=20,
            group="pace",
            taken_with="patience",
        ),
    ] = 3
    retry_base_delay: Annotated[
        float,
        Declaration(
            "The longest pause before the first retry; it doubles with each retry, up to 60s.",
            minimum=0,
            maximum=60,
            group="pace",
            taken_with="patience",
        ),
    ] = 1.0
    max_wait: Annotated[
        float,
        Declaration(
            f"{_MAX_WAIT} If it asks for more, the package fails at once, and the message says "
            "when to run again.",
            minimum=0,
            maximum=7 * 86_400,
            group="pace",
            taken_with="patience",
        ),
    ] = 3600.0
    task_timeout: Annotated[
        float,
        Declaration(
            "Timeout of one build, upload, confirmation or registry request (npmjs.com: at least "
            "45m to show a package).",
            minimum=1,
            maximum=86_400,
            group="pace",
            taken_with="patience",
        ),
    ] = 600.0

    def retry_policy(
        self, patience: "WaitBudget | None" = None, redact: Callable[[str], str] = str
    ) -> "RetryPolicy":
        # These bring httpx and asyncio, which the caller has imported; --help does without.
        from releasekit.http.client import RetryPolicy  # noqa: PLC0415
        from releasekit.scheduler.retries import PATIENT  # noqa: PLC0415

        return RetryPolicy(
            self.max_retries,
            self.retry_base_delay,
            deadline_s=self.task_timeout,
            patience=PATIENT if patience is None else patience,
            redact=redact,
        )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class IdentityInputs:
    """Who publishes, who signs, and where packages go."""

    trusted_publishing: Annotated[
        TrustedPublishing,
        Declaration(
            "Get credentials by OIDC: `always`, `never`, or `auto`, if no token is given and the "
            "job may request an identity.",
            group="trust",
        ),
    ] = "auto"
    attestations: Annotated[
        AttestationMode,
        Declaration(
            "Sign where files come from: `auto`, if this job has an identity and the registry "
            "accepts attestations; `required`, to publish nothing without; or `off`.",
            group="trust",
        ),
    ] = "auto"
    ask_steps: Annotated[
        bool,
        Declaration(
            "Run the `check` of each step although nothing is published, in the sandbox of builds "
            "and without secrets.",
            places=NOT_IN_FILE,
            group="trust",
            taken_with="lookup",
        ),
    ] = False
    trust_config: Annotated[
        Path | None,
        Declaration(
            "The client trust config of a private Sigstore instance. Default: the public one.",
            places=NOT_IN_FILE,
            group="trust",
            taken_with="",
        ),
    ] = None
    allow_events: Annotated[
        tuple[str, ...],
        Declaration(
            "Events on which ReleaseKit may publish or write, although the job has the secrets of "
            "the repository and may run a stranger's code, one per line: `workflow_run`, "
            "`issue_comment`, `pull_request_target`. Make sure that the job checks out no commit "
            "of a pull request and downloads no artifact of one.",
            "lines",
            places=NOT_IN_FILE,
            group="trust",
            taken_with="",
        ),
    ] = ()
    registry: Annotated[
        Directory | Url | None,
        Declaration(
            "`dir:PATH`: static directories (`PATH/pypi` for Python) in place of the registry of "
            "every ecosystem whose own registry input is not set.",
            "registry",
            group="places",
            often=True,
            taken_with="",
        ),
    ] = None
    insecure_hosts: Annotated[
        tuple[str, ...],
        Declaration(
            "Hosts in your network whose registries may use `http://`, one per line: "
            "`packages.lan` or `packages.lan:8081`. Anybody on the network path can read the token"
            " and change the packages.",
            "lines",
            places=NOT_IN_FILE,
            group="places",
            taken_with="lookup",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MachineInputs:
    """What builds run with."""

    uv_path: Annotated[
        str,
        Declaration(
            "The uv that creates environments. Default: the one on PATH, else pip.",
            "path",
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = ""
    python_path: Annotated[
        str,
        Declaration(
            "The Python, 3.11 or later, that runs ReleaseKit. Default: the first on PATH that "
            "builds cannot write to.",
            "path",
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = ""
    build_sandbox: Annotated[
        Wanted,
        Declaration(
            "Confine builds: they write only to the workspace and their tools' caches, and cannot "
            "read other processes. `auto`, if Linux supports it; `required`, to fail otherwise; or"
            " `off`.",
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = "auto"
    build_sandbox_paths: Annotated[
        tuple[Path, ...],
        Declaration(
            "Additional files and directories that builds may write to, one per line; `~` is the "
            "home directory.",
            "lines",
            into=Path,
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = ()
    index_url: Annotated[
        str,
        Declaration(
            "The package index from which to install ReleaseKit and build requirements.",
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = ""
    find_links: Annotated[
        tuple[str, ...],
        Declaration(
            "Directories or pages with additional wheels to install from, one per line.",
            "lines",
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class DecisionInputs:
    """Which versions are decided on, by `version` and by what shows them before."""

    branch: Annotated[
        str,
        Declaration(
            "The branch to release from: `branches` in [version] says which ones make prereleases. "
            "Default: that of the job, or of the pull request, else the one that is checked out.",
            places=FLAG_ONLY,
            into=values.branch,
            often=True,
            taken_with="",
        ),
    ] = ""
    set: Annotated[
        tuple[str, ...],
        Declaration(kind="lines", places=NOT_IN_FILE, often=True, taken_with=""),
    ] = ()
    snapshot: Annotated[
        str,
        Declaration(places=NOT_IN_FILE, into=values.snapshot_label, often=True, taken_with=""),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class JobInputs:
    """The job that this is, and what it writes for people and programs."""

    forge: Annotated[
        ForgePlace | None,
        Declaration(
            f"Where `announce` makes releases, {_FORGE}",
            places=FLAG_ONLY,
            into=values.forge,
            taken_with="",
        ),
    ] = None
    run_url: Annotated[
        str,
        Declaration(
            "The page of this run, for reports; a CI that ReleaseKit knows tells it.",
            places=FLAG_ONLY,
            into=values.web_address,
            group="reports",
            taken_with="",
        ),
    ] = ""
    outputs_file: Annotated[
        Path | None,
        Declaration(
            "A file for the outputs: `RK_RESULT=success` and the others, each on a line, as a "
            "shell reads them. Default on GitLab: `outputs.env` in the state directory.",
            places=FLAG_ONLY,
            group="reports",
            taken_with="",
        ),
    ] = None
    summary: Annotated[
        bool,
        Declaration(
            "Write the job summary.",
            group="reports",
            taken_with="reports",
        ),
    ] = True
    annotations: Annotated[
        bool,
        Declaration(
            "Annotate failures.",
            group="reports",
            taken_with="reports",
        ),
    ] = True
    verbose: Annotated[
        bool,
        Declaration(
            "Log everything: phases, requests, and what packages wait for; a job re-run with debug "
            "logging does so too.",
            places=NOT_IN_FILE,
            group="reports",
            often=True,
            taken_with="",
        ),
    ] = False


# As they are shown.
_SHOWN: Final = (
    *(WorkspaceInputs, SelectionInputs, ReleaseInputs, PaceInputs, IdentityInputs),
    *(DecisionInputs, MachineInputs, JobInputs),
)


@dataclass(frozen=True, kw_only=True)
class Inputs(
    WorkspaceInputs,
    MachineInputs,
    SelectionInputs,
    ReleaseInputs,
    PaceInputs,
    IdentityInputs,
    DecisionInputs,
    JobInputs,
):
    """What the user asked for, with defaults filled in; durations are in seconds.

    `mode` is the name of the command. `further` maps the names of those inputs of ecosystems and of
    single commands that were given to their values. `given` maps the attribute of every value that
    is not a default to where it was written, for messages and because a path is relative to the
    directory of the file that holds it.
    """

    mode: str = "plan"
    further: Mapping[str, object] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """All inputs, those of the ecosystems and of each command too, by name, in the order in which
    they are shown. `inputs` are those with a value, `secrets` the others.
    """

    commands: Mapping[str, Command]
    ecosystems: Mapping[str, EcosystemDeclaration]
    inputs: Mapping[str, Declaration]
    secrets: Mapping[str, Declaration]
    everything: Mapping[str, Declaration]

    @classmethod
    def of(
        cls, commands: Mapping[str, Command], ecosystems: Mapping[str, EcosystemDeclaration]
    ) -> Self:
        everything = {each.name: each for each in _list_all(commands, ecosystems)}
        return cls(
            commands=commands,
            ecosystems=ecosystems,
            inputs={name: each for name, each in everything.items() if each.kind != "secret"},
            secrets={name: each for name, each in everything.items() if each.kind == "secret"},
            everything=everything,
        )

    def adding(self, inputs: Inputs, texts: Mapping[str, str], labels: Mapping[str, str]) -> Inputs:
        """`inputs` with those of `texts` (name → text; empty means not given) on top.

        `labels` says of each name where it was written. Raises ConfigError for the first value
        that cannot be used.
        """
        written = {name: text for name, text in texts.items() if text.strip()}
        parsed = {
            name: self.inputs[name].parse(text.strip(), labels[name])
            for name, text in written.items()
        }
        given = {self.inputs[name].attribute: labels[name] for name in written}
        shared = {
            each.name: parsed.pop(name)
            for each in fields(Inputs)
            if (name := each.name.replace("_", "-")) in parsed
        }
        return replace(
            inputs,
            **shared,  # type: ignore[arg-type]
            further={**inputs.further, **parsed},
            given={**inputs.given, **given},
        )

    def from_environment(self, environment: Mapping[str, str]) -> Inputs:
        """What the RELEASEKIT_* variables say; INPUT_* of the platform is never looked at.

        `environment` is the whole environment, so that a misspelt secret is noticed too; the values
        of secrets are not looked at.
        """
        known = {each.variable: each for each in self.everything.values()}
        texts = {}
        for variable in sorted(name for name in environment if name.startswith(PREFIX)):
            if variable not in known:
                raise ConfigError(
                    f"{variable} is not an input{did_you_mean(variable, known)}",
                    hint="Every variable that starts with RELEASEKIT_ is taken for one.",
                    problem=Problem.UNKNOWN_NAME,
                )
            declaration = known[variable]
            if declaration.kind != "secret":
                texts[declaration.name] = environment[variable]
        labels = {name: f"input {name} ({self.inputs[name].variable})" for name in texts}
        return self.adding(Inputs(), texts, labels)


def _list_all(
    commands: Mapping[str, Command], ecosystems: Mapping[str, EcosystemDeclaration]
) -> Iterator[Declaration]:
    """Each with the commands that take it, and with what each of them says of it."""
    modes = [name for name in commands if commands[name].mode]
    # First what most jobs do.
    modes.sort(key=lambda name: name not in {"plan", "publish"})
    does = ", ".join(f"`{name}` {commands[name].mode}" for name in modes)
    yield Declaration(
        f"{does}.",
        "choice",
        name="mode",
        default="plan",
        choices=tuple(modes),
        places=frozenset({"action"}),
        meaning=f"{does}.",
    )
    own = {name: declared_by(command.inputs) for name, command in commands.items()}
    for each in _list_once([own["publish"], *own.values()], ecosystems):
        words: dict[str, str] = {}
        takers = set()
        for name, command in commands.items():
            itself = own[name].get(each.name)
            is_flag = itself is not None and "flag" in itself.places
            if is_flag or {each.name, each.taken_with} & command.takes:
                takers.add(name)
                said = (itself and itself.help) or command.words.get(each.name, "")
                if said and said != each.help:
                    words[name] = said
        meaning = " ".join(filter(None, [each.help, *_describe_modes(words, each.help, modes)]))
        yield replace(each, commands=frozenset(takers), words=words, meaning=meaning)


def _list_once(
    own: Iterable[Mapping[str, Declaration]], ecosystems: Mapping[str, EcosystemDeclaration]
) -> Iterator[Declaration]:
    """In the order in which they are shown. Of one that several commands declare, that of the first
    in `own` stands for all.
    """
    for shared in _SHOWN:
        for declaration in declared_by(shared).values():
            match declaration.name:
                case "ecosystem":
                    listed = ", ".join(f"`{name}`" for name in ecosystems)
                    help_ = declaration.help.format(ecosystems=listed)
                    yield replace(declaration, help=help_, choices=tuple(ecosystems))
                case "registry":
                    # It stands for the registries of all ecosystems, so it comes after them.
                    for ecosystem in ecosystems.values():
                        yield from ecosystem.declarations
                    yield declaration
                case _:
                    yield declaration
        if shared is SelectionInputs:
            once: dict[str, Declaration] = {}
            for declarations in own:
                once = {**once, **declarations, **once}
            yield from (replace(each, taken_with="") for each in once.values())
    yield from (STATE_KEY, FORGE_TOKEN)


def _describe_modes(words: Mapping[str, str], help_: str, modes: Iterable[str]) -> Iterator[str]:
    """What modes say of an input besides its `help_`, with those that say the same."""
    of: dict[str, list[str]] = {}
    for mode in modes:
        if (said := words.get(mode, "")) not in help_:
            of.setdefault(said, []).append(f"`{mode}`")
    for said, names in of.items():
        yield f"With {' or '.join(names)}: {said[0].lower()}{said[1:]}"
