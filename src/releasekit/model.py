"""The values that flow from discovery to the report: frozen, free of effects, shared by all."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal, NamedTuple, Self

from msgspec import Struct, field

from releasekit.announced import Announcement, ForgeKind, Tag
from releasekit.attested import Attestation, ReleaseStatement
from releasekit.fields import Identity, Links, Mark
from releasekit.problems import Problem
from releasekit.spent import Spent


class PackageId(Struct, frozen=True, order=True):
    """`name` is in its ecosystem's canonical form (PEP 503 for pypi)."""

    ecosystem: Identity
    name: Identity

    def __str__(self) -> str:
        return f"{self.ecosystem}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self:
        ecosystem, _, name = text.partition(":")
        return cls(ecosystem, name)


class DependencyKind(StrEnum):
    RUNTIME = "runtime"
    INDIRECT = "indirect"  # needed at run time through another one, and named all the same
    OPTIONAL = "optional"
    PEER = "peer"  # users install this one beside the dependent
    ORDER = "order"  # not needed; it goes out first where that is possible
    DEV = "dev"  # needed only to develop the dependent
    BUILD = "build"  # the dependent cannot even be built before this one is
    EXTRA = "extra"  # declared in releasekit.toml, not in a manifest


# More than any tool reads as a manifest.
MAX_MANIFEST_BYTES: Final = 16 * 1024 * 1024
# Of why a version was withdrawn, which its publisher writes.
MAX_REASON_CHARS: Final = 200
ASKED_BY_NOBODY: Final = frozenset({DependencyKind.DEV, DependencyKind.ORDER})
_AT_RUN_TIME: Final = frozenset({DependencyKind.RUNTIME, DependencyKind.INDIRECT})


class Dependency(Struct, frozen=True, kw_only=True):
    """An edge to another package of the same workspace; `requirement` as its manifest spells it.

    A `soft` one gives way where it closes a cycle: its package can be built and published first.
    With an `exact` one, its manifest asks for one version only, and no other works beside it.
    Of a `visible_first` one, the registry has to show the version before its package is built.
    `private` says why what it leads to is never published, where another of that name is.
    """

    on: PackageId
    kind: DependencyKind = DependencyKind.RUNTIME
    requirement: Identity = ""
    soft: bool = False
    exact: bool = False
    visible_first: bool = False
    private: str = ""


class Artifact(Struct, frozen=True, kw_only=True):
    """One built file. `digests` maps algorithm to lowercase hex and always holds "sha256"; its
    `attestation`, once there is one, goes to the registry with it.
    """

    path: Path
    size: int
    digests: Annotated[Mapping[str, str], Mark.IDENTITY]
    attestation: Attestation | None = None

    @property
    def filename(self) -> str:
        return self.path.name

    @property
    def sha256(self) -> str:
        return self.digests["sha256"]


def map_digests(artifacts: Iterable[Artifact]) -> dict[str, str]:
    """The sha256 of each, by filename."""
    return {artifact.filename: artifact.sha256 for artifact in artifacts}


class Package(Struct, frozen=True, kw_only=True):
    """`directory` and `manifest` are absolute, resolved and inside the workspace.

    `unpublishable` holds the reason, as a sentence for the user, why this package never leaves the
    repository; it is empty for everything that is published. With `awaits_version`, its version
    alone is the reason. `elsewhere` are requirements on packages of this workspace that exclude its
    version here: users get another one from the registry, so these do not order the release; one
    without `requirement` takes any. `inherits` are the files outside `directory` that its manifest
    takes requirements from; they are pinned like it. `packaging` says what kind of file it mainly
    is, where that differs from package to package, as in Maven.
    `set_aside` are dependencies that do not order the release. `doubt` says what makes it unlikely
    that it is meant to be published, as the end of a sentence about it.
    `prebuilt` are files of it that were built elsewhere, where they were found. One that `follows`
    another package has always the version of that, and so neither a decision nor a tag of its own.
    """

    id: PackageId
    version: Identity
    directory: Path
    manifest: Path
    dependencies: tuple[Dependency, ...] = ()
    elsewhere: tuple[Dependency, ...] = ()
    unpublishable: str = ""
    awaits_version: bool = False
    inherits: tuple[Path, ...] = ()
    packaging: Identity = ""
    set_aside: tuple[Dependency, ...] = ()
    doubt: str = ""
    prebuilt: tuple[Artifact, ...] = ()
    follows: PackageId | None = None

    def __hash__(self) -> int:
        return hash((self.id, self.version))

    def __str__(self) -> str:
        return f"{self.id} {self.version}"

    @property
    def gets_version(self) -> bool:
        """Whether it is published, or would be with another version than it has, and a version is
        decided for it.
        """
        return self.follows is None and (self.awaits_version or not self.unpublishable)

    @property
    def needs(self) -> tuple[Dependency, ...]:
        """Everything that has to be there in the end, whatever goes out first."""
        return (*self.dependencies, *self.needed_late)

    @property
    def needed_late(self) -> tuple[Dependency, ...]:
        """What goes out after it, on a cycle, and what it does not work without."""
        return tuple(need for need in self.set_aside if need.kind in _AT_RUN_TIME)

    @property
    def asked_for(self) -> tuple[Dependency, ...]:
        """Everything that its users may ask for, extras and peers on a cycle included."""
        late = (need for need in self.set_aside if need.kind not in ASKED_BY_NOBODY)
        return (*self.dependencies, *late)

    @property
    def place(self) -> PurePosixPath:
        """Where its files lie, among those of all packages."""
        # Maven puts a colon between group and artifact, and no path of the journal may have one.
        return PurePosixPath(self.id.ecosystem, *self.id.name.split(":"), self.version)

    @property
    def manifests(self) -> tuple[Path, ...]:
        """Everything that says what it requires."""
        return (self.manifest, *self.inherits)


class Withdrawal(Struct, frozen=True, kw_only=True):
    """What a registry tells clients of a version that is there, and that it never takes again.

    `word` is what its users call that, `reason` what was said of it, in one line, and `cure` takes
    it back. Where it is in part, some of the files are as before. `others` are versions that
    clients of the package may take in its place.
    """

    word: Literal["yanked", "yanked in part", "deprecated", "retracted"]
    cure: Links
    reason: str = ""
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})" if self.reason else self.word

    @property
    def is_hidden(self) -> bool:
        """Whether clients pass over it wherever they may take another version."""
        return self.word == "yanked"


class Published(Struct, frozen=True, kw_only=True):
    """What a registry shows of one version. `files` maps each filename to its digest as
    "algorithm:value", in the registry's own algorithm. `complete` says whether a client of that
    registry finds everything a release of it normally has (a source distribution and a wheel, for
    instance); False means some files are still missing. `lacks` is what clients look for beside the
    files and do not find, such as a list of versions that names this one. `since` is when the first
    of the files came, where the registry tells. One with a `withdrawal` was taken back since.
    `asks` are its requirements by the names of packages, where a registry says them without a file.
    """

    files: Annotated[Mapping[str, str], Mark.IDENTITY]
    complete: bool = True
    url: Links = ""
    lacks: str = ""
    since: datetime | None = None
    withdrawal: Withdrawal | None = None
    asks: Mapping[str, str] = field(default_factory=dict)


class Staged(Struct, frozen=True, kw_only=True):
    """What a registry has accepted and hides until a person approves it.

    `id` is the registry's own name for it, empty where the identity of this run may not ask for
    it; `url` is where a person reviews it, and `tag` what it will be found under (a dist-tag).
    """

    id: Links = ""
    url: Links = ""
    tag: Links = ""


class WarningName(StrEnum):
    """What a warning is about; docs/warnings.md has a section for each."""

    CHANGED_WITHOUT_BUMP = "changed-without-bump"
    EMPTY_PACKAGE = "empty-package"
    ENDS_EARLY = "ends-early"
    EXCLUDED_SIBLING = "excluded-sibling"
    INVALID_METADATA = "invalid-metadata"
    LATE_CHANGE = "late-change"
    MISSING_FILES = "missing-files"
    MISSING_INTENT = "missing-intent"
    MISSING_README = "missing-readme"
    NEW_NAME = "new-name"
    OLDER_SIBLING = "older-sibling"
    OVER_LIMIT = "over-limit"
    PLATFORM_TAG = "platform-tag"
    REFUSED_BUT_THERE = "refused-but-there"
    UNCOMMITTED = "uncommitted"
    UNREAD_COMMIT = "unread-commit"
    UNREAD_MANIFEST = "unread-manifest"
    UNSANDBOXED = "unsandboxed"
    WITHDRAWN_SIBLING = "withdrawn-sibling"

    @property
    def problem(self) -> Problem:
        """Its id; both are in that section."""
        return Problem[self.name]


class PackageWarning(Struct, frozen=True, kw_only=True):
    """What a registry takes and users of the package will regret. `message` is a sentence that does
    not name it, for several may have the same trouble. An `error` ends the release of the package.
    """

    name: WarningName
    message: str
    error: bool = False


class Action(StrEnum):
    """What a run is going to do about one package."""

    PUBLISH = "publish"  # build, upload, confirm
    UPLOAD = "upload"  # the bytes of an earlier run are at hand: upload what is missing, confirm
    KEEP = "keep"  # there already
    AWAIT = "await"  # an earlier run has staged it: see whether it was approved
    REFUSE = "refuse"  # other bytes are there under this version: final


# What sends something to a registry.
SENT: Final = frozenset({Action.PUBLISH, Action.UPLOAD})
# The reason of a package whose registry could not be asked.
UNKNOWN: Final = "unknown whether it is published"


class PlannedPackage(Struct, frozen=True, kw_only=True):
    """One package of a plan. `artifacts` are the stored bytes of an earlier run, if there are any,
    and `built_from` is its commit; of those `claimed` it is unclear whether a run of ours built
    them; `begun` says that it may have sent some to this registry, however that ended (where nobody
    knows, its `HistoryEntry` is `uncertain`). `published` is what the registry showed while
    planning. `fingerprint` is the sha256 (hex) of everything that makes this package what it is:
    version, dependencies, manifest, registry. `staged` is where an earlier run has left it, to be
    approved. `shard` is the part of its ecosystem that one of several jobs publishes, `2/4`. Where
    it is to `attest`, no file is sent without one. This run makes its `tag` and `announcement`.
    """

    package: Package
    action: Action
    reason: str
    fingerprint: Identity = ""
    artifacts: Annotated[tuple[Artifact, ...], Mark.IDENTITY] = ()
    built_from: Identity = ""
    published: Published | None = None
    begun: bool = False
    claimed: Annotated[tuple[Artifact, ...], Mark.IDENTITY] = ()
    staged: Annotated[Staged | None, Mark.IDENTITY] = None
    warnings: tuple[PackageWarning, ...] = ()
    shard: Identity = ""
    attest: bool = False
    tag: Tag | None = None
    announcement: Announcement | None = None

    @property
    def is_built(self) -> bool:
        """Whether a run makes its files."""
        return self.action is Action.PUBLISH and not self.package.prebuilt


class Plan(Struct, frozen=True, kw_only=True):
    """Packages in publish order: dependencies first, ties by name.

    `commit` names the state of the sources: a git commit, with `+dirty.<hash>` behind it when
    tracked files differ from it, or empty outside git. `digest` is the sha256 (hex) over the commit
    and every package's fingerprint; it does not cover what the registries hold. `registries` maps
    each ecosystem to the URL its packages go to, `versions` ecosystem and canonical name to the
    version this workspace has, of packages outside the plan too. `notes` are sentences about what
    to expect, of time for instance. `foreign` are packages outside the plan that something in it
    waits for, and that another job is going to publish; `behind` says of packages that have more
    waiting behind them elsewhere than in the plan, how many one after the other. `provenance` and
    `announcing` say what will be signed, tagged and announced, and what keeps the rest from it.
    """

    packages: tuple[PlannedPackage, ...]
    private: tuple[Package, ...]
    commit: Identity
    digest: Identity
    registries: Annotated[Mapping[str, str], Mark.IDENTITY] = field(default_factory=dict)
    versions: Annotated[Mapping[str, Mapping[str, str]], Mark.IDENTITY] = field(
        default_factory=dict
    )
    notes: tuple[str, ...] = ()
    foreign: tuple[Package, ...] = ()
    behind: Mapping[PackageId, int] = field(default_factory=dict)
    provenance: str = ""
    announcing: str = ""

    def edges(self) -> dict[PackageId, frozenset[PackageId]]:
        """In-plan dependencies of every planned package."""
        known = {planned.package.id for planned in self.packages}
        return {
            planned.package.id: frozenset(
                dependency.on
                for dependency in planned.package.dependencies
                if dependency.on in known
            )
            for planned in self.packages
        }

    def kept(self) -> frozenset[PackageId]:
        """What there is nothing to do for."""
        return frozenset(
            planned.package.id for planned in self.packages if planned.action is Action.KEEP
        )

    def pending(self) -> dict[PackageId, frozenset[PackageId]]:
        """The others, each with what of them it depends on."""
        kept = self.kept()
        return {name: on - kept for name, on in self.edges().items() if name not in kept}


class Outcome(StrEnum):
    """How a package ends: exactly one of these for every package of a plan."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already-published"
    STAGED = "staged"
    FAILED = "failed"
    UNKNOWN = "unknown"
    BLOCKED = "blocked"
    REMOVED = "removed"
    # Of a dry run alone.
    WOULD_PUBLISH = "would-publish"
    CANCELLED = "cancelled"

    @property
    def done(self) -> bool:
        return self is Outcome.PUBLISHED or self is Outcome.ALREADY_PUBLISHED


Phase = Literal["build", "attest", "upload", "confirm", "approval", "follow-up", "wait", "hold"]


class Node(NamedTuple):
    """One task of a release, as text `upload pypi:acme-core`; of several, named by the first."""

    phase: Phase
    package: PackageId

    def __str__(self) -> str:
        return f"{self.phase} {self.package}"


class Span(Struct, frozen=True, kw_only=True):
    """One attempt at one phase; seconds since the run started."""

    phase: Phase
    start_s: float
    end_s: float


class Event(Struct, frozen=True, kw_only=True):
    """Something a watcher of the run may show; `at_s` is in seconds since the run started.

    `state` is "started" and "ended" for an attempt at a phase; "waiting" where the attempt only
    waits, for what `detail` says, and again, without one, when it goes on; "retrying" when it will
    be tried again after `delay_s`; and "settled", with `outcome`, when the package has come to its
    end.
    """

    package: PackageId
    state: Literal["started", "ended", "waiting", "retrying", "settled"]
    at_s: float
    phase: Phase | None = None
    attempt: int = 1
    delay_s: float = 0.0
    outcome: Outcome | None = None
    detail: str = ""


class Course(Struct, frozen=True, kw_only=True):
    """What becomes of the run as a whole from `at_s` on, in seconds since the run started.

    What is in flight goes on in any case: while "cancelling", to its end, or to `until_s`. `reason`
    says who or what asked for it.
    """

    name: Literal["running", "paused", "cancelling"]
    at_s: float = 0.0
    reason: str = ""
    until_s: float | None = None


class Result(Struct, frozen=True, kw_only=True):
    """What became of one package. `problem` is why it was not published, as users look it up;
    `log` holds the last lines of a failed build, redacted; `staged` is where it waits for a
    person's approval. `tag` and `announcement` follow where it is published.
    """

    package: Package
    outcome: Outcome
    reason: str
    hint: Links = ""
    problem: Problem | None = None
    attempts: int = 0
    duration_s: float = 0.0
    url: str = ""
    staged: Staged | None = None
    artifacts: tuple[Artifact, ...] = ()
    spans: tuple[Span, ...] = ()
    spent: Spent | None = None
    tag: Tag | None = None
    announcement: Announcement | None = None
    warnings: tuple[PackageWarning, ...] = ()
    log: Annotated[tuple[str, ...], Mark.LINKS] = ()


class Report(Struct, frozen=True, kw_only=True):
    """A finished run; `results` holds every planned package once, in publish order.

    `started_at` is UTC in ISO 8601. `builds` says what builds were kept from. `private` are the
    packages that are never published. `registries` maps each ecosystem to the URL its packages go
    to. What was `spent` is known of runs of this version. `project`, `repository`, `forge` and
    `run_url` are those of its `Origin`. `provenance` is what its plan said, `statement` what was
    signed about all files together.
    """

    run_id: Identity
    plan_digest: Identity
    commit: Identity
    started_at: Identity
    duration_s: float
    dry_run: bool = False
    builds: Annotated[str, Mark.SINCE] = ""
    project: Annotated[str, Mark.LINKS, Mark.SINCE] = ""
    repository: Annotated[str, Mark.LINKS, Mark.SINCE] = ""
    forge: Annotated[ForgeKind, Mark.SINCE] = "github"
    run_url: Annotated[str, Mark.LINKS, Mark.SINCE] = ""
    registries: Annotated[Mapping[str, str], Mark.LINKS, Mark.SINCE] = field(default_factory=dict)
    spent: Spent | None = None
    provenance: Annotated[str, Mark.SINCE] = ""
    statement: ReleaseStatement | None = None
    results: tuple[Result, ...] = ()
    private: tuple[Package, ...] = ()
    edges: Mapping[PackageId, frozenset[PackageId]] = field(default_factory=dict)
