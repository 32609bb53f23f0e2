"""What an ecosystem and a registry are: the only things the publish line knows about either."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from functools import cached_property
from typing import IO, TYPE_CHECKING, Literal, Protocol, Self, TypeVar

from msgspec import Struct, field

from releasekit.aio import Resource, uncancellable
from releasekit.ecosystems.preflight import Preflight
from releasekit.git.settings import GitSettings
from releasekit.host.files import find_top
from releasekit.scheduler.retries import PATIENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    import httpx

    from releasekit.aio import Group
    from releasekit.attested import Obstacle
    from releasekit.config.config import Config
    from releasekit.config.values import StageMode
    from releasekit.decided import Edge, Ranges
    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.errors import BuildFailed
    from releasekit.git.versions import Read
    from releasekit.host.ci import CI
    from releasekit.host.edits import Edits
    from releasekit.host.process import Processes
    from releasekit.http.client import RetryPolicy
    from releasekit.http.credentials import Credentials
    from releasekit.model import (
        Artifact,
        Dependency,
        Package,
        PackageId,
        PackageWarning,
        PlannedPackage,
        Published,
        Staged,
    )
    from releasekit.provenance.job import Job
    from releasekit.scheduler.retries import WaitBudget
    from releasekit.state.run_logs import Logs

    # The files of a package, or why there are none.
    Built = tuple[Artifact, ...] | BuildFailed
    # Where the files of a package go, and where an earlier build has left them.
    Into = Callable[[Package], Path]


# What the files of a workspace's root say of a directory; nothing where that is empty.
Standing = Literal["member", "excluded", ""]
Membership = Callable[["Path"], Standing]


class Roots(Struct, frozen=True):
    """What manifests tell of a directory before anything is discovered, without a process.

    `workspace_at` is None where there is no root of a workspace; `publishable_at` says whether the
    directory has a package that may leave the repository. `may_list` says of a workspace whether it
    lists a directory of which nothing is known, or one below that: with False, not by a `**`. All
    raise ConfigError for a manifest that cannot be read.
    """

    workspace_at: Callable[[Path], Membership | None]
    publishable_at: Callable[[Path], bool]
    may_list: Callable[[Path, Path, bool], bool]


class Workspace(Protocol):
    """What an ecosystem has found below one directory, and what can be done with that.

    It stays what it is, whatever is discovered later.
    """

    @property
    def packages(self) -> Sequence[Package]:
        """All of them, publishable or not, in any order; none where the ecosystem is not used.

        `dependencies` hold in-repo packages only. What is never published has edges too; nothing
        that they ask for raises an error.
        """

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        """`manifest`, one of its packages', with requirements on in-repo packages pinned as the
        options ask.

        `versions` maps canonical names to planned versions. Everything else is kept to the byte;
        the same text comes back when nothing needs a pin. Raises PlanError where a requirement
        excludes the planned version, and the ecosystem's own tool would take no other.
        """

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """`packages` split into what one `build` call should get: singly where each build stands
        alone, all at once where one tool invocation serves them all.
        """

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """Build one batch; `into` tells where the files of a package go, and where those are that
        an earlier build has left.

        Manifests are already pinned. In-repo build dependencies were built by earlier calls (or
        are on the registry). One entry per package: what was built, or why not.
        """


W = TypeVar("W", bound=Workspace)
W_co = TypeVar("W_co", bound=Workspace, covariant=True)


class Ecosystem(Protocol[W_co]):
    """Files and tools, never the network of a registry. A Resource where it holds something open,
    as worker processes, for whatever it finds; of that it remembers nothing.
    """

    async def discover(self, root: Path) -> W_co:
        """What there is below `root` (absolute, resolved). Raises ConfigError naming file, key and
        value.
        """


class Registry(Protocol):
    """One registry at one URL; every method may be called again after any failure. A Resource where
    it holds something open, as tokens.
    """

    @property
    def url(self) -> str:
        """For messages and the report; never holds credentials."""

    def check_credentials(self) -> str:
        """What authenticates an upload, in a few words. Raises MissingCredentials when nothing
        does, and UnnamedRegistry when it must not: no input names this registry. No network.
        """

    async def lookup(self, package: Package) -> Published | None:
        """What a client of the registry sees now; None only when the version is surely absent.

        Retries by itself (`request_with_retry`); raises Transient, Denied or Rejected on doubt.
        """

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Send these files; returns when all are accepted, "already exists" included (the caller
        compares bytes). One attempt: raises Transient (retry_after, ambiguous), Denied, Rejected.
        """


class Deployment(Protocol):
    """How files get to a registry that takes several packages at once, or none of them."""

    @property
    def whole(self) -> bool:
        """Whether it takes the whole release at once; else each package in its turn, with all that
        is built and needs nothing but what is visible or goes along.
        """

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """As `Registry.upload`, for all of them: they become visible together, so that none waits
        for another one. Called again after a failure, also by a later run, with what is missing.
        """


class Staging(Protocol):
    """How a registry takes what it hides until a person approves it; how that person does
    so is an `approval.Approval`.
    """

    @property
    def mode(self) -> StageMode:
        """With `auto`, `Registry.upload` raises StageOnly for an identity that may only stage."""

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        """As `Registry.upload` and `Deployment.deploy`, and none of it can be installed yet; in
        any order, whatever depends on what. What waits there already counts as accepted. Raises
        DigestMismatch where that is known to be other bytes than these.
        """

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        """What waits under this version; None when surely nothing does, as after a rejection.

        Raises Denied for an identity that may stage and not look, DigestMismatch for other bytes.
        """


class Contained(Struct, frozen=True, kw_only=True):
    """What a built file says of itself: `name`, canonical, and `version` of its package, and what
    that needs of the same workspace.
    """

    name: str
    version: str
    dependencies: tuple[Dependency, ...] = ()


class Prebuilt(Protocol):
    """How files that were built elsewhere become those of a package, its `prebuilt` ones."""

    @property
    def algorithms(self) -> Sequence[str]:
        """The digests that a registry may show, and sha256."""

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        """Of the file at `path`; blocks. Raises PlanError or PackageError, naming it, for one that
        is damaged, or that no client would look for under its name.
        """

    def admits(self, requirement: str, version: str) -> bool:
        """Whether a version fits what a dependency asks for; raises ValueError for nonsense."""

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """As `Workspace.build`, for one batch: their prebuilt files, and what a release of each
        has besides, built as if there were nothing.
        """


class Attesting(Protocol):
    """How a registry takes attestations, one for each file of a package. An upload finds that of a
    file as `Artifact.attestation`.
    """

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:
        """Why it would refuse those of this package from this job; without asking anybody."""

    def wish(self, package: Package) -> bool | None:
        """What the package itself says, as `publishConfig.provenance` does; None for nothing."""

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:
        """What is to be signed about a built file; may read it, which blocks."""


class Trial(Struct, frozen=True, kw_only=True):
    """How the client of an ecosystem resolves one version and all that this needs, with nothing
    executed of any package: a command, in a new directory with these `files`. Of those that are
    `alone`, one runs at a time.
    """

    argv: Sequence[str]
    files: Mapping[str, str]
    env: Mapping[str, str | None] = field(default_factory=dict)
    alone: bool = False


class Clients(Struct, frozen=True, kw_only=True):
    """What the tools of users do with what was published.

    `try_out` is how a user gets a package from this registry, which is no directory. Downloads go
    into the given directory, which is new in each run, so that nothing from before counts.

    `takes_hidden` tells whether a requirement still gets a hidden version, such as a yanked one;
    None where that is not known, or no version is ever hidden. `takes_instead` tells whether a
    requirement, in place of a hidden version, gets another one that it admits.

    `read_asked` reads what the published version requires, by the names of packages, where
    `Published.asks` is empty; also empty where nothing tells. `find_pinned_apart` lists those of
    the given packages that the files require in one version only, and not in the given one. It
    blocks; empty where the files are gone, and None where files do not tell.
    """

    try_out: Callable[[Package, Path], Trial] | None = None
    takes_hidden: Callable[[str], bool | None] = lambda _: None
    takes_instead: Callable[[str, str, str], bool] = lambda *_: True
    read_asked: Callable[[Package], Awaitable[Mapping[str, str]]] | None = None
    find_pinned_apart: Callable[[Sequence[Artifact], Mapping[str, str]], Sequence[str] | None] = (
        lambda *_: None
    )


class Composition:
    """Which files go into what is published of a package, and so which packages a change is about.

    It reads manifests, and starts no process; an ecosystem overrides what it knows better. What is
    `tracked` are the files that git has below the directory of a package, relative to it.
    """

    def make_filter(self, _package: Package, _tracked: Collection[str], /) -> Counts:
        """Return what tells whether a tracked file counts: it is published, or something published
        is made of it, and it is more than a test or a note. A name that ends with a slash is a
        directory of which nothing more is known; it counts where one of its files may.
        """
        return lambda _: True

    def follows_links(self, _package: Package, _tracked: Collection[str], /) -> bool:
        """Return whether a tracked symbolic link stands for what it leads to."""
        return True

    def find_unbuilt(self, _package: Package, _names: Collection[str], /) -> str:
        """Return a file that its manifest leads users to and that is none of these, if any."""
        return ""

    def list_outside(self, _package: Package, /) -> Collection[Path]:
        """List the files and directories outside its directory that are published with it, by its
        manifests or by a rule of the ecosystem. They need not exist.
        """
        return ()

    def list_compiled(self, _package: Package, /) -> Collection[Path]:
        """List the manifests of what is compiled into it, packages here or not, wherever they lie.
        Each stands for the files below its directory, without those of packages further down, or
        below another manifest of that name. They need not exist.
        """
        return ()

    def find_parts(self, _package: Package, /) -> Mapping[Package, Collection[Package]]:
        """Find the packages here whose files may be published as part of it, by manifests alone,
        each with the packages that may take it in.
        """
        return {}

    def follow_imports(
        self, _package: Package, _part: Package, _tracked: Callable[[Package], Sequence[str]], /
    ) -> Counts | None:
        """Return which files of such a part the sources of the package lead to; None where they
        lead to none. `tracked` lists the files of a package.
        """
        return None

    def read_offered(self, _package: Package, _read: Read, /) -> str:
        """Read what its manifest itself said to users at another time, as text to compare; empty
        where there was no manifest.
        """
        return ""

    def read_inherited(self, _package: Package, _read: Read, /) -> str:
        """Read what its manifest took from other files at another time, as text to compare."""
        return ""


class WrittenVersions(Struct, frozen=True, kw_only=True):
    """`by_tag` are the packages whose version stands in no file, as their tag says it. `moved` are
    those that got a version along with others, without a decision; they may be of any ecosystem.
    """

    by_tag: frozenset[PackageId] = frozenset()
    moved: Mapping[PackageId, str] = field(default_factory=dict)


class Versioning:
    """Where the versions of packages stand, and how the next ones are written. It starts no
    process; an ecosystem overrides what it knows better.
    """

    def suggest_version(self, _package: Package, _tagged: Iterable[str], /) -> str:
        """Suggest a version for a package that is not published because it has none: the last of
        those `tagged`, or else the first that it can have. Empty for any other package.
        """
        return ""

    def find_registry_tag(self, _package: Package, /) -> str | None:
        """Return the tag that publishes the package, where a registry takes packages as tags: empty
        where nothing is pushed for it, and None for any other registry.
        """
        return None

    def find_source_tag(self, _package: Package, /) -> str:
        """Return the tag by which users get this version from git, past the registry, if any."""
        return ""

    def read_version(self, _package: Package, _read: Read, /) -> str:
        """Read what its manifests said at another time; empty where they did not say."""
        return ""

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        """The packages that share a version, by the place where it stands."""
        return {}

    def describe_left_out(self) -> str:
        """What is published from here and gets no version here, and what to do: a sentence, or
        nothing.
        """
        return ""

    def list_edges(self, _released: Mapping[str, str], /) -> Iterable[Edge]:
        """List what the published files of packages require of others here, by their manifests and
        today's pins. `released` maps canonical names to the versions that pins named then. Neither
        a package that is never published nor a requirement that excludes what stands here counts.
        """
        return ()

    def edit(
        self, _versions: Mapping[str, str], _edits: Edits, _ranges: Ranges, /
    ) -> WrittenVersions:
        """Write the next versions of packages, by canonical name, and bring along what stands here:
        requirements on these packages that exclude them, and lock files.

        With `raise`, ranges in packages that get a version themselves begin at the new one; with
        `exact`, requirements that name a version name the new one alone. What excludes the version
        that stands here means another one, and stays. Raises PlanError for what cannot be written
        exactly, with the file, the place and what to do.
        """
        return WrittenVersions()


class Target:
    """What was found of an ecosystem, and the registry its packages go to. It asks for nothing
    special; an ecosystem overrides what it knows better.
    """

    # Takes the packages in the place of `registry.upload`.
    deployment: Deployment | None = None
    # None where no files could have been built elsewhere.
    prebuilt: Prebuilt | None = None
    # None where the registry shows what it accepts without an approval.
    staging: Staging | None = None
    # None where the registry takes no attestations, as far as is known.
    attesting: Attesting | None = None
    # The registry has to show dependencies that another job publishes before a dependent is built.
    builds_on_published: bool = False
    # A batch that waits for no registry is built after those that hold what it needs.
    builds_in_turn: bool = False
    # What is published is what the commit has, whatever files differ from it.
    builds_from_commit: bool = False
    # Whether an upload may be repeated without asking first, as the registry takes a version once
    # and shows its bytes. If not, `lookup` decides before each upload, and after one of unclear end
    # only in time; nothing that was sent before binds a run, and files only stand for a package.
    is_repeatable = True
    # Packages that are published once all others are tagged and announced.
    after_release: Collection[PackageId] = frozenset()
    # Packages whose files name another registry than this one, which knows nothing of them.
    elsewhere: Collection[PackageId] = frozenset()
    preflight: Preflight = Preflight()
    clients: Clients = Clients()
    composition: Composition = Composition()
    versioning: Versioning = Versioning()

    def __init__(self, workspace: Workspace, registry: Registry) -> None:
        self.workspace = workspace
        self.registry = registry

    def join(self, _others: Mapping[str, Target], /) -> Target:
        """Called once all ecosystems are discovered: return the target with what its packages take
        from others. Raises ConfigError and PlanError.
        """
        return self

    def receive_files(
        self, _package: Package, _needed: Mapping[PackageId, Sequence[Artifact] | None], /
    ) -> None:
        """Take the files of what a package needs before it is uploaded, None where this run does
        not have them.
        """

    @property
    def single_upload(self) -> bool:
        """Whether the whole release goes out in one upload."""
        return self.deployment is not None and self.deployment.whole

    def split_singly(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """As the workspace's `batches`, where nothing of another ecosystem is built: those that
        wait for one tool then take all slots.
        """
        return self.workspace.batches(packages)

    def list_pinned(
        self, packages: Sequence[Package], _sent: Sequence[Package], /
    ) -> Sequence[Package]:
        """All whose manifests are pinned while these are built. Of all that the run sends, others
        may have to be packaged beside them.
        """
        return packages

    def list_rewritten(self, _packages: Sequence[Package], /) -> Collection[Path]:
        """The files beside manifests that its tool may rewrite, in place, while it builds these;
        they are given back.
        """
        return ()

    async def find_tool(self, _packages: Sequence[Package], /) -> str:
        """What builds these on this machine, with its version; empty where all were built
        elsewhere. Raises ConfigError where it is missing and PlanError where it is too old, with
        the version wanted and how to get it.
        """
        return f"Python {platform.python_version()}"

    def plan_notes(self, _planned: Sequence[PlannedPackage], /) -> str:
        """What the user should expect of these, once all packages were looked up: a sentence, or
        nothing. Raises PlanError for what the registry would never take.
        """
        return ""

    def describe_lookups(self) -> tuple[str, str]:
        """Where uploads are looked for, and what to do if clients do not find them there: a
        sentence, or nothing.
        """
        return self.registry.url, ""

    async def find_warnings(
        self, _package: Package, _artifacts: Sequence[Artifact], /
    ) -> list[PackageWarning]:
        """What the users of the package would regret, read from what was built of it, and what can
        be foreseen of what is still to be built.
        """
        return []

    async def differing(self, _package: Package, _artifact: Artifact, /) -> list[str]:
        """What is not the same in our file and in the published one of its name, as far as that can
        be told.
        """
        return []

    def due(self, _package: Package, /) -> str:
        """What the package does by itself once it is published, as the subject of a sentence; empty
        where there is nothing to do. It stays published whatever comes of it.
        """
        return ""

    async def follow_up(self, _package: Package, /) -> None:
        """Do what is `due`, after it is confirmed; nothing waits for it. Called at most once for a
        version, by the run that published it, for one package at a time: an earlier call may have
        had its effect. Raises BuildFailed.
        """


async def list_warnings(
    find: Callable[[Package, Sequence[Artifact]], Iterable[PackageWarning]],
    package: Package,
    artifacts: Sequence[Artifact],
) -> list[PackageWarning]:
    """What `find` says, beside the loop, and to its end: it reads whole archives."""
    if not artifacts:
        return []
    return await uncancellable(asyncio.to_thread(lambda: list(find(package, artifacts))))


class Discovery(Struct, frozen=True):
    """An ecosystem and a registry that can be used, before anybody has looked what there is."""

    ecosystem: Ecosystem[Workspace]
    registry: Registry
    discover: Callable[[Path], Awaitable[Target]]

    @classmethod
    def joining(
        cls,
        ecosystem: Ecosystem[W],
        registry: Registry,
        target: Callable[[W, Registry], Target] = Target,
    ) -> Self:
        """`target` says how what is found goes to the registry."""

        async def discover(root: Path) -> Target:
            return target(await ecosystem.discover(root), registry)

        return cls(ecosystem, registry, discover)

    async def opened_in(self, group: Group) -> Self:
        """Where registry or ecosystem are Resources, they are open from now on, until it closes."""
        for part in (self.registry, self.ecosystem):
            if isinstance(part, Resource):
                await group.enter(part)
        return self


class Services(Struct, frozen=True):
    """What every target shares for the length of one run.

    `environment` is the snapshot taken at the start, secrets removed. Hosts that are `insecure`
    are reached without encryption.
    """

    environment: Mapping[str, str]
    http: httpx.AsyncClient
    processes: Processes
    credentials: Credentials
    logs: Logs
    retries: RetryPolicy
    ci: CI
    git: GitSettings
    insecure: Collection[str] = ()

    @classmethod
    def of(
        cls,
        config: Config,
        http: httpx.AsyncClient,
        processes: Processes,
        credentials: Credentials,
        ci: CI,
        logs: Logs,
        patience: WaitBudget = PATIENT,
    ) -> Self:
        return cls(
            credentials.environment,
            http,
            processes,
            credentials,
            logs,
            config.retry_policy(patience, credentials.redact),
            ci,
            GitSettings(find_top(config.root), processes, credentials.environment),
            config.insecure_hosts,
        )
