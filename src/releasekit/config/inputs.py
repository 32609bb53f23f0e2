"""Every input: those of a run, declared here once, and those that the folders of the ecosystems
declare.

Flags, RELEASEKIT_* variables, the keys of releasekit.toml, action.yml and docs/inputs.md all
come from the annotated fields, or are compared with them by a test.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from releasekit.config import values
from releasekit.config.declaration import (
    ALL,
    DECIDE,
    FLAG_ONLY,
    NOT_IN_FILE,
    NOTES,
    PREFIX,
    PUBLISH,
    REPORTS,
    RUNS,
    VERIFY,
    Command,
    Declaration,
    EcosystemDeclaration,
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
from releasekit.host.sandbox import Wanted
from releasekit.problems import Problem

STATE_KEY = Declaration.secret(
    "state-key",
    "The secret, of 32 characters at least, that seals what is built. Runs that have the same one "
    "trust each other's state directory; without it, only runs of one user on one machine do.",
)
FORGE_TOKEN = Declaration.secret(
    "forge-token",
    "What GitHub is sent releases with, where the job has `contents: write`, and the release "
    "statement, where it has `attestations: write`. Default: the job's own token.",
    default="${{ github.token }}",
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
        Path,
        Declaration(
            "The root of the workspace.", "path", into=Path, commands=ALL, places=NOT_IN_FILE
        ),
    ] = Path()
    config_file: Annotated[
        Path | None,
        Declaration(
            "Default: `releasekit.toml` in the root, if it is there.",
            "path",
            into=Path,
            commands=ALL,
            places=NOT_IN_FILE,
        ),
    ] = None
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
        tuple[Dist, ...],
        Declaration(
            "Directories with package files that were built elsewhere, one per line: wheels, npm "
            "tarballs, crates, jars. They are checked, completed and published in order.",
            "lines",
            into=values.dist_directory,
        ),
    ] = ()
    plan_file: Annotated[
        Path | None,
        Declaration(
            "Publish exactly what this plan of an earlier job says; refused when the sources "
            "differ. With `plan`, where to write it; with `report`, what has to be accounted for.",
            "path",
            into=Path,
            commands=REPORTS,
            places=NOT_IN_FILE,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Declaration(
            "Everything but the uploads, builds included.",
            "bool",
            commands=PUBLISH,
            places=NOT_IN_FILE,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Verification:
    """`files` are paths and URLs. `repository` is OWNER/NAME, and `workflow` the name of a file.
    `ref` begins with refs/.
    """

    files: Annotated[
        tuple[Path | Url, ...],
        Declaration(
            "Files, directories with releases, and addresses of files on registries, one per line.",
            "lines",
            into=values.path_or_url,
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ()
    repository: Annotated[
        str,
        Declaration(
            "The repository, OWNER/NAME at github.com, whose workflows must have signed; required.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    workflow: Annotated[
        str,
        Declaration(
            "The workflow of that repository that must have signed (`release.yml`). Default: any.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    ref: Annotated[
        str,
        Declaration(
            "The branch or tag whose run must have signed, in full: `refs/heads/main`, "
            "`refs/tags/v1.2` (`main` could be either). Default: any, but none of a pull request.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    event: Annotated[
        str,
        Declaration(
            "The event that must have started the run that signed (`push`). Default: any, but "
            "none of a pull request.",
            "text",
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = ""
    bundle: Annotated[
        Path | None,
        Declaration(
            "The attestations, in place of what lies beside the files or on the registry.",
            "path",
            into=Path,
            commands=VERIFY,
            places=FLAG_ONLY,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Inputs(Selection, Verification):
    """What the user asked for, with defaults filled in; durations are in seconds.

    `ecosystem_values` maps the names of those inputs of ecosystems that were given to their values.
    `given` maps
    the attribute of every value that is not a default to where it was written, for messages and
    because a path is relative to the directory of whoever wrote it.
    """

    concurrency: Annotated[
        int, Declaration("Packages uploaded at a time.", "int", minimum=1, maximum=100)
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
            commands=RUNS,
        ),
    ] = 3
    retry_base_delay: Annotated[
        float,
        Declaration(
            "The longest pause before the first retry; it doubles with each, up to 60s.",
            "duration",
            minimum=0,
            maximum=60,
            commands=RUNS,
        ),
    ] = 1.0
    max_wait: Annotated[
        float,
        Declaration(
            "The longest pause that a registry may ask for (`Retry-After`). Where one asks for "
            "more, nobody waits: the package fails, and the message says when to come back.",
            "duration",
            minimum=0,
            maximum=7 * 86_400,
            commands=RUNS,
        ),
    ] = 3600.0
    task_timeout: Annotated[
        float,
        Declaration(
            "The longest that one attempt to build, upload or confirm one package may take, and "
            "the longest that one question to a registry may. npmjs.com has 45m at least to show a "
            "package.",
            "duration",
            minimum=1,
            maximum=86_400,
            commands=RUNS,
        ),
    ] = 600.0
    deadline: Annotated[
        float | None,
        Declaration(
            "The longest that the whole run may take, planning included; then nothing new starts. "
            "Default: none.",
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
        ),
    ] = "skip-dependents"
    strict: Annotated[
        bool,
        Declaration(
            "Warnings are errors: nothing is published of a plan with one, and no package whose "
            "files have one.",
            "bool",
        ),
    ] = False
    gate: Annotated[
        Literal["visible", "accepted"],
        Declaration(
            "What a dependent waits for: its dependency is `visible` on the registry, or only "
            "`accepted` by it.",
            "choice",
            commands=RUNS - {"reject"},
        ),
    ] = "visible"
    stage: Annotated[
        StageMode,
        Declaration(
            "Versions that nobody can install before a person approves them: `always`, `never`, or "
            "`auto` where the registry lets this identity do nothing else. A key of `[npm]` and "
            "`[maven]` too.",
            "choice",
        ),
    ] = "auto"
    wait_for_approval: Annotated[
        float,
        Declaration(
            "How long to wait for the approval of what was staged, and then go on with what needs "
            "it; with `0s`, a later run does.",
            "duration",
            minimum=0,
            maximum=7 * 86_400,
            commands=PUBLISH,
        ),
    ] = 0.0
    wait: Annotated[
        float,
        Declaration(
            "How long to wait for a package that another job is going to publish, once nothing of "
            "this one keeps it back; with `0s`, a package that needs it is refused.",
            "duration",
            minimum=0,
            maximum=7 * 86_400,
        ),
    ] = 0.0
    shards: Annotated[
        tuple[str, ...],
        Declaration(
            "Over how many jobs of the matrix to split the packages of each ecosystem, `4`, or of "
            "some, `pypi=4,npm=2`; into parts of equal work. The publishing jobs have to `wait`.",
            "names",
            commands=frozenset({"plan"}),
        ),
    ] = ()
    shard: Annotated[
        str,
        Declaration(
            "The part of the plan that this job publishes, `2/4`, from a row of the matrix; with "
            "`plan-file`.",
            "text",
            commands=PUBLISH,
            places=NOT_IN_FILE,
        ),
    ] = ""
    results_directory: Annotated[
        Path | None,
        Declaration(
            "A directory that the jobs of a release share, with their state directories or results "
            "below it: what a job has ended without publishing is no longer waited for.",
            "path",
            into=Path,
            commands=PUBLISH,
        ),
    ] = None
    pin: Annotated[
        PinMode,
        Declaration(
            "In-repo dependencies in what is built: `auto` pins those without a version, "
            "`exact` pins all, `none` pins nothing.",
            "choice",
        ),
    ] = "auto"
    trusted_publishing: Annotated[
        TrustedPublishing,
        Declaration(
            "Credentials by OIDC: `always`, `never`, or `auto` where there is no token and the "
            "job may ask for an identity.",
            "choice",
        ),
    ] = "auto"
    attestations: Annotated[
        AttestationMode,
        Declaration(
            "Sign where files come from: `auto` where this job has an identity and the registry "
            "takes it, `required` to publish nothing without, or `off`.",
            "choice",
        ),
    ] = "auto"
    trust_config: Annotated[
        Path | None,
        Declaration(
            "The client trust config of a private Sigstore instance. Default: the public one.",
            "path",
            into=Path,
            commands=VERIFY | {"plan", "publish"},
            places=NOT_IN_FILE,
        ),
    ] = None
    tag: Annotated[
        bool,
        Declaration(
            "Tag every version that is on its registry, and push the tags; also those that an "
            "earlier run has left untagged. The table `[tag]` says how.",
            "bool",
            places=NOT_IN_FILE,
        ),
    ] = False
    announce: Annotated[
        bool,
        Declaration(
            "Make a GitHub Release for every version whose tag is there, with its notes. The table "
            "`[announce]` says how.",
            "bool",
            places=NOT_IN_FILE,
        ),
    ] = False
    registry: Annotated[
        Directory | Url | None,
        Declaration(
            "`dir:PATH`: static directories, `PATH/pypi` for Python, for every ecosystem that "
            "has no registry of its own here.",
            "registry",
        ),
    ] = None
    insecure_hosts: Annotated[
        tuple[str, ...],
        Declaration(
            "Hosts of your own network whose registries are reached by `http://`, one per line: "
            "`packages.lan` or `packages.lan:8081`. Whoever is on the way reads the token and can "
            "change what is published.",
            "lines",
            places=NOT_IN_FILE,
        ),
    ] = ()
    state_directory: Annotated[
        Path,
        Declaration(
            "Journal and built files. Carried to another runner as an artifact, with one "
            "`state-key`, the next run resumes there.",
            "path",
            into=Path,
            commands=ALL,
        ),
    ] = Path(".releasekit")
    results_file: Annotated[
        Path | None,
        Declaration(
            "The results as JSON. Default: `results.json` in the state directory.",
            "path",
            into=Path,
            commands=REPORTS,
            places=FLAG_ONLY,
        ),
    ] = None
    summary: Annotated[bool, Declaration("Write the job summary.", "bool", commands=REPORTS)] = True
    annotations: Annotated[bool, Declaration("Annotate what failed.", "bool", commands=REPORTS)] = (
        True
    )
    verbose: Annotated[
        bool,
        Declaration(
            "A log of everything: phases, requests, and why packages wait. So is that of a job "
            "that is run again with debug logging. With `doctor`, all locks in their order.",
            "bool",
            commands=RUNS | {"doctor"},
            places=NOT_IN_FILE,
        ),
    ] = False
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
            "The Python that ReleaseKit runs on, 3.11 or later. Default: the first on PATH that "
            "lies in no place of builds.",
            "path",
            places=NOT_IN_FILE,
        ),
    ] = ""
    build_sandbox: Annotated[
        Wanted,
        Declaration(
            "Builds write only to the workspace and their tools' caches, and see into no other "
            "process: `auto` where Linux can do it, `required` to fail elsewhere, or `off`.",
            "choice",
            places=NOT_IN_FILE,
        ),
    ] = "auto"
    build_sandbox_paths: Annotated[
        tuple[Path, ...],
        Declaration(
            "Further files and directories that builds may write to, one per line; `~` is the "
            "home directory.",
            "lines",
            into=Path,
            places=NOT_IN_FILE,
        ),
    ] = ()
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
            commands=frozenset({"plan"}),
            places=FLAG_ONLY,
        ),
    ] = "table"
    fix: Annotated[
        bool,
        Declaration(
            "Repair what was found.", "bool", commands=frozenset({"doctor"}), places=FLAG_ONLY
        ),
    ] = False
    run: Annotated[
        str,
        Declaration(
            "The address of the workflow run whose results are to be decided about, in place of a "
            "file; GH_TOKEN reads its artifacts.",
            "text",
            commands=DECIDE,
            places=FLAG_ONLY,
        ),
    ] = ""
    yes: Annotated[
        bool,
        Declaration("Decide without being asked.", "bool", commands=DECIDE, places=FLAG_ONLY),
    ] = False
    subject: Annotated[
        tuple[str, ...],
        Declaration(
            "The package and the version to tell of, one per line.",
            "lines",
            commands=NOTES,
            places=FLAG_ONLY,
        ),
    ] = ()
    ecosystem_values: Mapping[str, object] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """All inputs, those of the ecosystems too, by name, in the order in which they are shown.
    `inputs` are those with a value, `secrets` the others.
    """

    ecosystems: Mapping[str, EcosystemDeclaration]
    inputs: Mapping[str, Declaration]
    secrets: Mapping[str, Declaration]
    everything: Mapping[str, Declaration]

    @classmethod
    def for_ecosystems(cls, ecosystems: Mapping[str, EcosystemDeclaration]) -> Self:
        everything = {each.name: each for each in _everything(ecosystems.values())}
        return cls(
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
        of_the_run = {
            declaration.attribute: parsed.pop(name)
            for name, declaration in _OF_THE_RUN.items()
            if name in parsed
        }
        return replace(
            inputs,
            **of_the_run,  # type: ignore[arg-type]
            ecosystem_values={**inputs.ecosystem_values, **parsed},
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
                    f"{variable} is no input{did_you_mean(variable, known)}",
                    hint="Every variable that starts with RELEASEKIT_ is taken for one.",
                    problem=Problem.UNKNOWN_NAME,
                )
            declaration = known[variable]
            if declaration.kind != "secret":
                texts[declaration.name] = environment[variable]
        labels = {name: f"input {name} ({self.inputs[name].variable})" for name in texts}
        return self.adding(Inputs(), texts, labels)


_OF_THE_RUN = declared_by(Inputs)


def _everything(ecosystems: Collection[EcosystemDeclaration]) -> Iterator[Declaration]:
    names = tuple(each.name for each in ecosystems)
    for declaration in _OF_THE_RUN.values():
        match declaration.name:
            case "ecosystem":
                listed = ", ".join(f"`{name}`" for name in names)
                help_ = declaration.help.format(ecosystems=listed)
                yield replace(declaration, help=help_, choices=names)
            case "registry":
                # It stands for the registries of all ecosystems, so it comes after them.
                for ecosystem in ecosystems:
                    yield from ecosystem.declarations
                yield declaration
            case "state-directory":
                yield declaration
                yield STATE_KEY
            case "trust-config":
                yield declaration
                yield FORGE_TOKEN
            case _:
                yield declaration
