"""What an ecosystem and a registry are: the only things the publish line knows about either."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, Protocol, Self, TypeVar

from releasekit.aio import Resource, uncancellable
from releasekit.host.ci import CI
from releasekit.scheduler.retries import PATIENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    import httpx

    from releasekit.aio import Group
    from releasekit.attested import Obstacle
    from releasekit.config.config import Config
    from releasekit.config.values import StageMode
    from releasekit.errors import BuildFailed, ConfigError
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


@dataclass(frozen=True, slots=True)
class Roots:
    """What manifests tell of a directory before anything is discovered, without a process.

    `workspace_at` is None for what is no root of a workspace; `publishable_at` says whether the
    directory has a package that may leave the repository. Both raise ConfigError for a manifest
    that cannot be read.
    """

    workspace_at: Callable[[Path], Membership | None]
    publishable_at: Callable[[Path], bool]


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
        ...

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        """`manifest`, one of its packages', with requirements on in-repo packages pinned as the
        options ask.

        `versions` maps canonical names to planned versions. Everything else is kept to the byte;
        the same text comes back when nothing needs a pin. Raises PlanError where a requirement
        excludes the planned version, and the ecosystem's own tool would take no other.
        """
        ...

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """`packages` split into what one `build` call should get: singly where each build stands
        alone, all at once where one tool invocation serves them all.
        """
        ...

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """Build one batch; `into` tells where the files of a package go, and where those are that
        an earlier build has left.

        Manifests are already pinned. In-repo build dependencies were built by earlier calls (or
        are on the registry). One entry per package: what was built, or why not.
        """
        ...


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
        ...


class Registry(Protocol):
    """One registry at one URL; every method may be called again after any failure. A Resource where
    it holds something open, as tokens.
    """

    @property
    def url(self) -> str:
        """For messages and the report; never holds credentials."""
        ...

    def check_credentials(self) -> None:
        """Raises MissingCredentials when an upload could not be authenticated, and UnnamedRegistry
        when it must not be: no input names this registry. No network.
        """
        ...

    async def lookup(self, package: Package) -> Published | None:
        """What a client of the registry sees now; None only when the version is surely absent.

        Retries by itself (`request_with_retry`); raises Transient, Denied or Rejected on doubt.
        """
        ...

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Send these files; returns when all are accepted, "already exists" included (the caller
        compares bytes). One attempt: raises Transient (retry_after, ambiguous), Denied, Rejected.
        """
        ...


class Deployment(Protocol):
    """How files get to a registry that takes several packages at once, or none of them."""

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """As `Registry.upload`, for all of them: they become visible together, so that none waits
        for another one. Called again after a failure, also by a later run, with what is missing.
        """
        ...


class Staging(Protocol):
    """How a registry takes what it shows nobody before a person approves it; how that person does
    so is an `approval.Approval`.
    """

    @property
    def mode(self) -> StageMode:
        """With `auto`, `Registry.upload` raises StageOnly for an identity that may only stage."""
        ...

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        """As `Registry.upload` and `Deployment.deploy`, and nobody can install any of it yet; in
        any order, whatever depends on what. What waits there already counts as accepted. Raises
        DigestMismatch where that is known to be other bytes than these.
        """
        ...

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        """What waits under this version; None when surely nothing does, as after a rejection.

        Raises Denied for an identity that may stage and not look, DigestMismatch for other bytes.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contained:
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
        ...

    def contained(self, file: IO[bytes], path: Path) -> Contained:
        """Of the file at `path`; blocks. Raises PlanError or PackageError, naming it, for one that
        is damaged, or that no client would look for under its name.
        """
        ...

    def admits(self, requirement: str, version: str) -> bool:
        """Whether a version fits what a dependency asks for; raises ValueError for nonsense."""
        ...

    async def complete(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        """As `Workspace.build`, for one batch: their prebuilt files, and what a release of each
        has besides, built as if there were nothing.
        """
        ...


class Attesting(Protocol):
    """How a registry takes attestations, one for each file of a package. An upload finds that of a
    file as `Artifact.attestation`.
    """

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:
        """Why it would refuse those of this package from this job; without asking anybody."""
        ...

    def wish(self, package: Package) -> bool | None:
        """What the package itself says, as `publishConfig.provenance` does; None for nothing."""
        ...

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:
        """What is to be signed about a built file; may read it, which blocks."""
        ...


class FollowUp(Protocol):
    """What packages do by themselves once they are published; they stay so whatever comes of it."""

    def due(self, package: Package) -> str:
        """What that is, as the subject of a sentence; empty where there is nothing to do."""
        ...

    async def follow_up(self, package: Package) -> None:
        """Called at most once for a version, by the run that published it, for one package at a
        time: an earlier call may have had its effect. Raises BuildFailed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """What was found of an ecosystem, and the registry its packages go to.

    With a `deployment`, all packages go out by that, and `registry.upload` is not used: the whole
    release at once, or, where it is not `whole`, each in its turn with all that is built and needs
    nothing but what is visible or goes along.
    `plan_notes` tells, once all packages were looked up, what the user should expect of them: a
    sentence, or nothing; it raises PlanError for what the registry would never take. `follow_up`
    comes after a package is confirmed; nobody waits for it. `warnings_of` reads what was built of a
    package, which blocks, for what its users would regret. `pinned_apart` reads
    there which of some packages its users need in one version only, and in another than is given;
    it blocks, and names none where the files are gone. `is_new` says of one that was looked up
    whether its registry has no package of that name; None where that tells nobody anything.
    `differing` names what is not the same in a file of ours and in the published one of that name,
    as far as that can be told. Without `prebuilt`, it has no files that could have been built
    elsewhere; without `staging`, its registry needs nobody to show what it accepts. It may take
    `shows_within_s` for that, where that is longer than the time for a package. `singly` takes the
    place of the workspace's `batches` where nothing of another ecosystem is built: those that wait
    for one tool then take all slots.
    Where it `builds_on_published` dependencies, the registry has to show those that another job
    publishes before a dependent is built. Where it `builds_in_turn`, a batch that waits for no
    registry is built after those that hold what it needs. `missing_tool` says why none of some
    packages could be built on this machine, with the version wanted and what to do, without
    starting anything.
    Where nothing is `attesting`, the registry takes no attestations, as far as is known.
    `version_at` is the version that the manifests of a package said at another time, read by a
    function from a path of today to its bytes, or None where there was no such file; empty where
    they did not say. `packs` takes all files that git tracks below the directory of a package, by
    names relative to it, and tells whether a file goes into what is published of it, or makes it,
    and is more than a test or a note; every file does without it. `inherited_at` is what a manifest
    took for its package from files outside its directory, as text to compare, and `offered_at` what
    it said itself that users get, empty where it was none; they read as `version_at` does.
    `compiled_in` are the packages here whose files may go into what is published of another one, by
    the manifests alone, each with those that may take it in, and `takes_in` tells of such a pair,
    by what git tracks below the directory of a package, which files of the second the sources of
    the first lead to; it is None where they lead to none. `own_tag` is the name of the tag by which
    the registry itself publishes a package, with all of its bytes; empty where nothing is pushed
    for it.
    """

    workspace: Workspace
    registry: Registry
    deployment: Deployment | None = None
    whole: bool = True
    plan_notes: Callable[[Sequence[PlannedPackage]], str] | None = None
    follow_up: FollowUp | None = None
    warnings_of: Callable[[Package, Sequence[Artifact]], Iterable[PackageWarning]] | None = None
    pinned_apart: Callable[[Sequence[Artifact], Mapping[str, str]], Sequence[str]] | None = None
    is_new: Callable[[PackageId], bool] | None = None
    differing: Callable[[Package, Artifact], Awaitable[list[str]]] | None = None
    prebuilt: Prebuilt | None = None
    staging: Staging | None = None
    shows_within_s: float = 0.0
    singly: Callable[[Sequence[Package]], Sequence[Sequence[Package]]] | None = None
    builds_on_published: bool = False
    builds_in_turn: bool = False
    missing_tool: Callable[[Sequence[Package]], ConfigError | None] | None = None
    attesting: Attesting | None = None
    version_at: Callable[[Package, Callable[[Path], bytes | None]], str] | None = None
    packs: Callable[[Package, Collection[str]], Callable[[str], bool]] | None = None
    inherited_at: Callable[[Package, Callable[[Path], bytes | None]], str] | None = None
    offered_at: Callable[[Package, Callable[[Path], bytes | None]], str] | None = None
    compiled_in: Callable[[Package], Mapping[Package, Collection[Package]]] | None = None
    takes_in: (
        Callable[
            [Package, Package, Callable[[Package], Sequence[str]]], Callable[[str], bool] | None
        ]
        | None
    ) = None
    own_tag: Callable[[Package], str] | None = None

    async def examined(
        self, package: Package, artifacts: Sequence[Artifact]
    ) -> list[PackageWarning]:
        """What `warnings_of` says, beside the loop, and to its end: it reads whole archives."""
        if self.warnings_of is None:
            return []
        warnings_of = self.warnings_of
        return await uncancellable(asyncio.to_thread(lambda: list(warnings_of(package, artifacts))))

    @property
    def single_upload(self) -> bool:
        """Whether the whole release goes out in one upload."""
        return self.deployment is not None and self.whole


@dataclass(frozen=True, slots=True)
class Discovery:
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


@dataclass(frozen=True, slots=True)
class Services:
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
    insecure: Collection[str] = ()

    @classmethod
    def of(
        cls,
        config: Config,
        http: httpx.AsyncClient,
        processes: Processes,
        credentials: Credentials,
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
            config.insecure_hosts,
        )

    @property
    def ci(self) -> CI:
        return CI.of(self.environment)
