"""Every input: those of a run, declared here once, and those that the folders of the ecosystems
declare.

Flags, RELEASEKIT_* variables, the keys of releasekit.toml, action.yml and docs/inputs.md all
come from the annotated fields, or are compared with them by a test.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from releasekit.config import values
from releasekit.config.commands import (
    ALL,
    CHANGE,
    CHECK,
    DECIDE,
    FORESEES,
    LOOKUPS,
    NOTES,
    OF_THE_ACTION,
    PREVIEW,
    PUBLISH,
    RELEASE_PR,
    REPORTS,
    RUNS,
    STATUS,
    STEPS,
    TRUST,
    VERIFY,
    VERSION,
    Command,
)
from releasekit.config.declaration import (
    FLAG_ONLY,
    NOT_IN_FILE,
    PREFIX,
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
from releasekit.host.forges import ForgePlace
from releasekit.host.sandbox import Wanted
from releasekit.problems import Problem

STATE_KEY = Declaration.secret(
    "state-key",
    "The secret, at least 32 characters, that seals built files. Runs with the same key trust each"
    " other's state directory; without a key, only runs of one user on one machine do.",
)
FORGE_TOKEN = Declaration.secret(
    "forge-token",
    "The token that makes releases: at GitHub with `contents: write`, at GitLab with the scope "
    "`api`, at Gitea with `write:repository`. GitHub also gets the release statement with it "
    "(`attestations: write`) and the release pull request (`pull-requests: write`). Default: the "
    "job's own token.",
    default="${{ github.token }}",
)

# What more than one command says of an input.
_PACKAGES: Final = (
    "Only packages whose name matches one of these globs, separated by commas or line breaks."
)
_DIST: Final = (
    "Directories with package files that were built elsewhere, one per line: wheels, npm tarballs, "
    "crates, jars."
)
_MAX_WAIT: Final = "The longest pause that a server may ask for (`Retry-After`)."
_STATE: Final = "Directory of the journal and built files."
_LOGS: Final = "Directory for the logs of builds, where packages get their versions from a build."
_EDITS: Final = "Directory of the locks, and of the originals of files until all are written."
_FORGE: Final = (
    "as KIND:URL of the repository: `github:…`, `gitlab:…`, `gitea:…` (Forgejo, too). Default: the "
    "CI's own, else that of the git remote at github.com, gitlab.com or codeberg.org."
)

_verify_flag = partial(Declaration, commands=VERIFY, places=FLAG_ONLY)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What the user asked for, with defaults filled in; durations are in seconds.

    `files` are paths and URLs. `repository` is OWNER/NAME or a page, `workflow` the name of a file,
    and `ref` begins with refs/. `ecosystem_values` maps the names of those inputs of ecosystems
    that were given to their values. `given` maps the attribute of every value that is not a default
    to where it was written, for messages and because a path is relative to the directory of the
    file that holds it.
    """

    files: Annotated[
        tuple[Path | Url, ...],
        _verify_flag(
            "Files, directories with releases, and addresses of files on registries, one per line.",
            "lines",
            into=values.path_or_url,
            often=True,
        ),
    ] = ()
    repository: Annotated[
        str,
        Declaration(
            "The repository, OWNER/NAME at github.com or https://gitlab.com/GROUP/PROJECT, whose "
            "workflow must have signed; required.",
            words={
                "trust": "The repository that publishes, OWNER/NAME at github.com or "
                "https://gitlab.com/GROUP/PROJECT. Default: that of the git remote."
            },
            commands=VERIFY | TRUST,
            places=FLAG_ONLY,
            into=values.repository,
            often=True,
        ),
    ] = ""
    workflow: Annotated[
        str,
        Declaration(
            "The workflow of that repository that must have signed: `release.yml`, or at GitLab "
            "its path, `.gitlab-ci.yml`. Default: any.",
            words={
                "trust": "The workflow that publishes: `release.yml`, or at GitLab its path. "
                "Default: the only one that runs ReleaseKit."
            },
            commands=VERIFY | TRUST,
            places=FLAG_ONLY,
            into=values.workflow,
            often=True,
        ),
    ] = ""
    ref: Annotated[
        str,
        _verify_flag(
            "The branch or tag whose run must have signed, in full: `refs/heads/main`, "
            "`refs/tags/v1.2` (`main` could be either). Default: any except a pull request's.",
            often=True,
        ),
    ] = ""
    event: Annotated[
        str,
        _verify_flag(
            "The event that must have started the signing run (`push`). Default: any except a pull"
            " request's.",
            often=True,
        ),
    ] = ""
    bundle: Annotated[
        Path | None,
        _verify_flag(
            "The file with the attestations, instead of those beside the files or on the registry.",
            often=True,
        ),
    ] = None
    mode: Annotated[
        Command,
        Declaration(
            "`plan` shows what would be published, `publish` publishes what is missing, "
            "`check` says what a release would need, `version` writes the versions that changes "
            "since the last release ask for, `preview` shows what merging a pull request would "
            "release, `release-pr` keeps one pull request with the next versions, `report` joins "
            "the results of several jobs into one summary.",
            choices=OF_THE_ACTION,
            commands=frozenset(),
            places=frozenset({"action"}),
        ),
    ] = "plan"
    working_directory: Annotated[
        Path,
        Declaration(
            "The root of the workspace.", commands=ALL, places=NOT_IN_FILE, group="machine"
        ),
    ] = Path()
    config_file: Annotated[
        Path | None,
        Declaration(
            "The configuration file. Default: `releasekit.toml` in the root, if there is one.",
            commands=ALL,
            places=NOT_IN_FILE,
            group="machine",
        ),
    ] = None
    ecosystem: Annotated[
        tuple[str, ...],
        Declaration(
            "Only these ecosystems, separated by commas or line breaks: "
            "{ecosystems}. Default: all that are found.",
            "names",
            commands=ALL,
            group="packages",
            often=True,
        ),
    ] = ()
    packages: Annotated[
        tuple[str, ...],
        Declaration(
            f"{_PACKAGES} Dependencies that do not match must already be on their registry.",
            words=dict.fromkeys(STATUS | TRUST | {"check"}, _PACKAGES),
            kind="names",
            commands=LOOKUPS | TRUST,
            group="packages",
            often=True,
        ),
    ] = ()
    exclude_packages: Annotated[
        tuple[str, ...],
        Declaration(
            "Leave out packages whose name matches one of these globs, separated by commas or line"
            " breaks.",
            "names",
            commands=LOOKUPS | TRUST,
            group="packages",
            often=True,
        ),
    ] = ()
    dist: Annotated[
        tuple[Dist, ...],
        Declaration(
            f"{_DIST} ReleaseKit checks them, builds what is missing, and publishes in order.",
            words=dict.fromkeys(("plan", "check"), _DIST),
            kind="lines",
            into=lambda text: Dist(Path(text)),
            group="packages",
        ),
    ] = ()
    plan_file: Annotated[
        Path | None,
        Declaration(
            "Publish exactly what this plan of an earlier job says, or fail if the sources differ.",
            words={
                "plan": "The file to write.",
                "report": "The plan whose packages need results.",
            },
            commands=REPORTS,
            places=NOT_IN_FILE,
            group="jobs",
            often=True,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Declaration(
            "Do everything except the uploads; builds run.",
            words=dict.fromkeys(VERSION | {"init"}, "Print what would be written."),
            commands=PUBLISH | VERSION | {"init"},
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    concurrency: Annotated[
        int,
        Declaration(
            "How many packages to upload at a time.",
            words=dict.fromkeys(STATUS, "How many packages to resolve at a time."),
            minimum=1,
            maximum=100,
            commands=LOOKUPS,
            group="pace",
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
    max_retries: Annotated[
        int,
        Declaration(
            "How often to retry a request that failed for a temporary reason.",
            minimum=0,
            maximum=20,
            commands=RUNS | RELEASE_PR,
            group="pace",
        ),
    ] = 3
    retry_base_delay: Annotated[
        float,
        Declaration(
            "The longest pause before the first retry; it doubles with each retry, up to 60s.",
            minimum=0,
            maximum=60,
            commands=RUNS | RELEASE_PR,
            group="pace",
        ),
    ] = 1.0
    max_wait: Annotated[
        float,
        Declaration(
            f"{_MAX_WAIT} If it asks for more, the package fails at once, and the message says "
            "when to run again.",
            words=dict.fromkeys((RUNS - PUBLISH) | RELEASE_PR, _MAX_WAIT),
            minimum=0,
            maximum=7 * 86_400,
            commands=RUNS | RELEASE_PR,
            group="pace",
        ),
    ] = 3600.0
    task_timeout: Annotated[
        float,
        Declaration(
            "Timeout of one build, upload, confirmation or registry request (npmjs.com: at least "
            "45m to show a package).",
            words=dict.fromkeys((RUNS - PUBLISH) | RELEASE_PR, "Timeout of one request."),
            minimum=1,
            maximum=86_400,
            commands=RUNS | RELEASE_PR,
            group="pace",
        ),
    ] = 600.0
    deadline: Annotated[
        float | None,
        Declaration(
            "Timeout of the whole run, planning included; after it, nothing new starts. Default: "
            "none.",
            words={"check": "Only `plan` and `publish` go by it."},
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
            words=dict.fromkeys(("plan", "check"), "Only `publish` goes by it."),
            group="pace",
        ),
    ] = "skip-dependents"
    strict: Annotated[
        bool,
        Declaration(
            "Treat warnings as errors: a warning in the plan stops the run, and a warning about "
            "built files stops that package.",
        ),
    ] = False
    gate: Annotated[
        Literal["visible", "accepted"],
        Declaration(
            "What a dependent waits for: the registry shows its dependency (`visible`), or has "
            "only accepted it (`accepted`).",
            commands=RUNS - {"reject", "status"},
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
    stage: Annotated[
        StageMode,
        Declaration(
            "Stage versions, so that a person has to approve them before users can install them: "
            "`always`, `never`, or `auto`, if this identity may only stage. Also a key of `[npm]` "
            "and `[maven]`.",
            words={"trust": "As in the job that publishes: staging takes other rights."},
            commands=TRUST | {"plan", "publish", "check"},
        ),
    ] = "auto"
    wait_for_approval: Annotated[
        float,
        Declaration(
            "How long to wait for the approval of staged versions before publishing their "
            "dependents; `0s` leaves the dependents to a later run.",
            minimum=0,
            maximum=7 * 86_400,
            commands=PUBLISH,
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
    shards: Annotated[
        tuple[str, ...],
        Declaration(
            "Split the packages of each ecosystem (`4`), or of some (`pypi=4,npm=2`), over that "
            "many jobs of the matrix, with equal work for each. The publishing jobs need `wait`.",
            "names",
            commands=frozenset({"plan"}),
            group="jobs",
        ),
    ] = ()
    shard: Annotated[
        str,
        Declaration(
            "The part of the plan that this job publishes (`2/4`), from its row of the matrix; "
            "needs `plan-file`.",
            commands=PUBLISH,
            places=NOT_IN_FILE,
            group="jobs",
        ),
    ] = ""
    results_directory: Annotated[
        Path | None,
        Declaration(
            "A directory with the state directories or results of all jobs of a release. Other "
            "jobs stop waiting for a package once its job has ended without publishing it.",
            commands=PUBLISH,
            group="jobs",
        ),
    ] = None
    pin: Annotated[
        PinMode,
        Declaration(
            "Versions of in-repo dependencies in built packages: `auto` pins those without a "
            "version, `exact` pins all, `none` pins nothing."
        ),
    ] = "auto"
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
    trust_config: Annotated[
        Path | None,
        Declaration(
            "The client trust config of a private Sigstore instance. Default: the public one.",
            commands=VERIFY | {"plan", "publish", "check"},
            places=NOT_IN_FILE,
            group="trust",
        ),
    ] = None
    tag: Annotated[
        bool,
        Declaration(
            "Tag every version that is on its registry, including those that earlier runs left "
            "untagged, and push the tags. The table `[tag]` has the options.",
            words={
                "plan": "Show what `publish` would tag, too.",
                "check": "Say what the tags of a release need, too.",
            },
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    announce: Annotated[
        bool,
        Declaration(
            "Create a release with notes at GitHub, GitLab or Gitea for every tagged version. The "
            "table `[announce]` has the options.",
            words={
                "plan": "Show what `publish` would announce at GitHub, GitLab or Gitea, too.",
                "check": "Say what releases at GitHub, GitLab or Gitea need, too.",
            },
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = False
    forge: Annotated[
        ForgePlace | None,
        Declaration(
            f"Where `announce` makes releases, {_FORGE}",
            words=dict.fromkeys(
                (RUNS | NOTES | RELEASE_PR) - {"plan", "publish"}, f"Where the project is, {_FORGE}"
            ),
            commands=RUNS | NOTES | CHECK | RELEASE_PR,
            places=FLAG_ONLY,
            into=values.forge,
        ),
    ] = None
    run_url: Annotated[
        str,
        Declaration(
            "The page of this run, for reports; a CI that ReleaseKit knows tells it.",
            commands=PUBLISH | {"report"},
            places=FLAG_ONLY,
            into=values.web_address,
            group="reports",
        ),
    ] = ""
    outputs_file: Annotated[
        Path | None,
        Declaration(
            "A file for the outputs: `RK_RESULT=success` and the others, each on a line, as a "
            "shell reads them. Default on GitLab: `outputs.env` in the state directory.",
            commands=REPORTS,
            places=FLAG_ONLY,
            group="reports",
        ),
    ] = None
    registry: Annotated[
        Directory | Url | None,
        Declaration(
            "`dir:PATH`: static directories (`PATH/pypi` for Python) in place of the registry of "
            "every ecosystem whose own registry input is not set.",
            "registry",
            commands=VERSION | PREVIEW | RELEASE_PR | LOOKUPS | {"init"},
            group="places",
            often=True,
        ),
    ] = None
    insecure_hosts: Annotated[
        tuple[str, ...],
        Declaration(
            "Hosts in your network whose registries may use `http://`, one per line: "
            "`packages.lan` or `packages.lan:8081`. Anybody on the network path can read the token"
            " and change the packages.",
            "lines",
            commands=LOOKUPS,
            places=NOT_IN_FILE,
            group="places",
        ),
    ] = ()
    allow_events: Annotated[
        tuple[str, ...],
        Declaration(
            "Events on which ReleaseKit may publish or write, although the job has the secrets of "
            "the repository and may run a stranger's code, one per line: `workflow_run`, "
            "`issue_comment`, `pull_request_target`. Make sure that the job checks out no commit "
            "of a pull request and downloads no artifact of one.",
            "lines",
            commands=PUBLISH | DECIDE | RELEASE_PR | TRUST,
            places=NOT_IN_FILE,
            group="trust",
        ),
    ] = ()
    state_directory: Annotated[
        Path,
        Declaration(
            f"{_STATE} Carry it to another runner as an artifact, with the same `state-key`, to "
            "resume there.",
            words={
                **dict.fromkeys(ALL - PUBLISH, _LOGS),
                **dict.fromkeys(FORESEES | DECIDE, _STATE),
                **dict.fromkeys(VERSION | RELEASE_PR, _EDITS),
                "report": "The directory with the state directories or results of all jobs.",
            },
            commands=ALL,
            group="machine",
            often=True,
        ),
    ] = Path(".releasekit")
    results_file: Annotated[
        Path | None,
        Declaration(
            "The results as JSON. Default: `results.json` in the state directory.",
            commands=REPORTS,
            places=FLAG_ONLY,
            group="reports",
        ),
    ] = None
    summary: Annotated[
        bool,
        Declaration("Write the job summary.", commands=STEPS, group="reports"),
    ] = True
    annotations: Annotated[
        bool, Declaration("Annotate failures.", commands=STEPS, group="reports")
    ] = True
    verbose: Annotated[
        bool,
        Declaration(
            "Log everything: phases, requests, and what packages wait for; a job re-run with debug "
            "logging does so too.",
            words={"version": "Say what was left alone, and why."},
            commands=RUNS | VERSION | RELEASE_PR,
            places=NOT_IN_FILE,
            group="reports",
            often=True,
        ),
    ] = False
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
    set: Annotated[
        tuple[str, ...],
        Declaration(
            words={
                "version": "Versions that are decided by hand, one per line: `NAME=VERSION`, or "
                "`npm:@acme/core=2.0.0` if packages of two ecosystems share the name."
            },
            kind="lines",
            commands=VERSION,
            places=NOT_IN_FILE,
            often=True,
        ),
    ] = ()
    snapshot: Annotated[
        str,
        Declaration(
            words={
                "version": "Write versions of this commit alone, to be thrown away, with this "
                "label (`pr-97`), for all packages that would be released and those that need "
                "them. Changelogs stay as they are."
            },
            commands=VERSION,
            places=NOT_IN_FILE,
            into=values.snapshot_label,
            often=True,
        ),
    ] = ""
    branch: Annotated[
        str,
        Declaration(
            "The branch to release from: `branches` in [version] says which ones make prereleases. "
            "Default: that of the job, or of the pull request, else the one that is checked out.",
            commands=VERSION | PREVIEW | RELEASE_PR,
            places=FLAG_ONLY,
            into=values.branch,
            often=True,
        ),
    ] = ""
    since: Annotated[
        str,
        Declaration(
            "The branch or commit that the changes at hand are to be merged into. Default: that of "
            "the pull request, else `origin/HEAD`.",
            commands=PREVIEW | CHANGE,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ""
    check: Annotated[
        bool,
        Declaration(
            words={
                "version": "As `--dry-run`, and exit 1 if there is something to write.",
                "change": "Write nothing, and exit 1 if nothing speaks for a package that changes.",
                "trust": "Show only packages that do not trust the workflow, and exit 1 if there "
                "are any.",
            },
            commands=VERSION | CHANGE | TRUST,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = False
    write: Annotated[
        bool,
        Declaration(
            "Make registries trust the workflow, where they let a program do that.",
            commands=TRUST,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = False
    environment: Annotated[
        str,
        Declaration(
            "The environment of the job that publishes; `-` for none. Default: that of the job in "
            "the workflow.",
            commands=TRUST,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ""
    format: Annotated[
        Literal["table", "json", "mermaid"],
        Declaration(
            "How to print the plan.", commands=frozenset({"plan"}), places=FLAG_ONLY, often=True
        ),
    ] = "table"
    fix: Annotated[
        bool,
        Declaration(
            "First repair what earlier runs left behind.",
            commands=CHECK,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = False
    run: Annotated[
        str,
        Declaration(
            "The address of the workflow run that staged the versions, instead of a file; GH_TOKEN"
            " reads its artifacts.",
            commands=DECIDE,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ""
    yes: Annotated[
        bool,
        Declaration("Do not ask for confirmation.", commands=DECIDE, places=FLAG_ONLY, often=True),
    ] = False
    subject: Annotated[
        tuple[str, ...],
        Declaration(
            "The package and the version to describe, one per line.",
            "lines",
            commands=NOTES,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ()
    release: Annotated[
        str | Path,
        Declaration(
            "The release to look for: a version that all packages have, or results.json of a run. "
            "Default: the versions of the workspace.",
            commands=STATUS,
            places=FLAG_ONLY,
            into=values.version_or_path,
            often=True,
        ),
    ] = ""
    smoke: Annotated[
        bool,
        Declaration(
            "Let the client of each ecosystem resolve what is there, in an empty directory: uv, "
            "npm or pnpm, cargo, go, mvn. Nothing of any package is executed.",
            commands=STATUS,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = False
    package: Annotated[
        tuple[str, ...],
        Declaration(
            "A package that the change concerns, and how much: `@acme/core=minor`. Repeatable; "
            "`major`, `minor`, `patch`, `none`, or a version.",
            "lines",
            commands=CHANGE,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ()
    text: Annotated[
        str,
        Declaration(
            "What changed, for users of the package: one line of Markdown.",
            commands=CHANGE,
            places=FLAG_ONLY,
            often=True,
        ),
    ] = ""
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
                    f"{variable} is not an input{did_you_mean(variable, known)}",
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
