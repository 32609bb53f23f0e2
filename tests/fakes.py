"""A workspace and a registry in memory, and the small values most tests need."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import virtual_time
from releasekit.cli.commands import COMMANDS
from releasekit.cli.commands.publish import PublishInputs
from releasekit.config import values
from releasekit.config.command import CommandInputs
from releasekit.config.config import Config
from releasekit.config.inputs import Declared
from releasekit.decided import Edge
from releasekit.ecosystems import ECOSYSTEMS
from releasekit.ecosystems.interface import Composition, Services, Target, Versioning
from releasekit.errors import BuildFailed, Denied, DigestMismatch, MissingCredentials
from releasekit.fields import replace
from releasekit.git.settings import GitSettings
from releasekit.host.ci import CI
from releasekit.host.scrub import NOTHING_SECRET, Redactor, ToolVariables
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import (
    Action,
    Artifact,
    Dependency,
    DependencyKind,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
    Published,
    Result,
    Staged,
)
from releasekit.plan.order import without_soft_cycles
from releasekit.release.polling import Polling
from releasekit.release.release import ReleaseRun
from releasekit.release.sources import Sources
from releasekit.state.directory import make_state_directory
from releasekit.state.journal import Journal
from releasekit.state.run_logs import Logs
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    import httpx

    from releasekit.config.values import Directory, Name, StageMode, Url
    from releasekit.decided import Carry
    from releasekit.ecosystems.interface import Registry, Workspace
    from releasekit.host.process import Processes
    from releasekit.release.attesting import Signing

URL = "https://registry.example/"
# What is built in one run is trusted in the next one.
SEAL = Seal(b"the same in every run")
DECLARED = Declared.of(COMMANDS, ECOSYSTEMS)
TOOL_VARIABLES = ToolVariables.of_all(each.variables for each in ECOSYSTEMS.values())


def package_id(name: str) -> PackageId:
    return PackageId("fake", name)


def extra_edge(dependent: str, on: str, carry: Carry = "patch") -> Edge:
    """An edge of the `[dependencies]` table."""
    return Edge(
        dependent=PackageId.parse(dependent),
        on=PackageId.parse(on),
        kind=DependencyKind.EXTRA,
        carry=carry,
    )


def package(
    name: str,
    *needs: str,
    version: str = "1.0",
    root: Path = Path("/workspace"),
    unpublishable: str = "",
    kind: DependencyKind = DependencyKind.RUNTIME,
) -> Package:
    return Package(
        id=package_id(name),
        version=version,
        directory=root / name,
        manifest=root / name / "manifest",
        dependencies=tuple(Dependency(on=package_id(need), kind=kind) for need in needs),
        unpublishable=unpublishable,
    )


def artifact(path: Path, content: bytes) -> Artifact:
    digests = {"sha256": hashlib.sha256(content).hexdigest()}
    return Artifact(path=path, size=len(content), digests=digests)


def logs(state_directory: Path, redact: Redactor = NOTHING_SECRET) -> Logs:
    return Logs(state_directory, "run", redact)


def ordered(packages: Mapping[str, Package]) -> dict[str, Package]:
    """Without the soft dependencies that a plan sets aside."""
    remaining, _ = without_soft_cycles({package.id: package for package in packages.values()})
    return {name: remaining[package.id] for name, package in packages.items()}


def services(config: Config, processes: object, redact: Redactor = NOTHING_SECRET) -> Services:
    """For ecosystems that ask no registry anything."""
    return Services(
        environment={},
        http=cast("httpx.AsyncClient", None),
        processes=cast("Processes", processes),
        credentials=Credentials(snapshot({}), mask=lambda _: None),
        logs=logs(config.state_directory, redact),
        retries=config.retry_policy(),
        ci=CI.of({}),
        git=GitSettings(config.root, cast("Processes", processes), {}),
        insecure=config.insecure_hosts,
    )


def make_services(
    config: Config, http: httpx.AsyncClient, processes: Processes, credentials: Credentials
) -> Services:
    """Those of a command, whose CI is that of the environment."""
    ci = CI.of(credentials.environment)
    return Services.of(config, http, processes, credentials, ci, logs(config.state_directory))


def config(root: Path, **changes: object) -> Config:
    mode = str(changes.pop("mode", "publish"))
    publishing = PublishInputs(dry_run=bool(changes.pop("dry_run", False)))
    settings: dict[str, object] = {
        "root": root,
        "command": COMMANDS[mode],
        "own_inputs": publishing if mode == "publish" else CommandInputs(),
        "known_ecosystems": tuple(ECOSYSTEMS),
        "build_concurrency": 2,
        "max_retries": 2,
        "retry_base_delay": 0.001,
        "task_timeout": 60.0,
        "state_directory": root / ".releasekit",
        "build_sandbox": "off",
        **changes,
    }
    return Config(**settings)  # type: ignore[arg-type]


def registries(**places: str) -> dict[str, Directory | Url | Name]:
    """For a Config, from what a user would write; what is empty is not given."""
    return {
        name: values.named_registry(place) if name == "cargo" else values.registry(place)
        for name, place in places.items()
        if place
    }


@dataclass
class FakeWorkspace:
    """Each package is one file, `NAME-VERSION.pkg`; a name in `broken` does not build, one in
    `premature` not yet.

    `pin` replaces `@NAME` by `NAME==VERSION`. `seen` holds every manifest as its build saw it.
    A build of what is in `touching` changes that file; one of what is `slow` lets everything else
    that may run go first.
    """

    packages: Sequence[Package] = ()
    broken: Iterable[str] = ()
    premature: Collection[str] = ()
    batch: bool = False
    built: list[str] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    touching: Mapping[str, Path] = field(default_factory=dict)
    slow: Collection[str] = ()
    hang: bool = False
    number: int = 0

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        for name, version in versions.items():
            manifest = manifest.replace(f"@{name}", f"{name}=={version}")
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [packages] if self.batch and packages else [[package] for package in packages]

    async def build(
        self, packages: Sequence[Package], into: Callable[[Package], Path]
    ) -> Mapping[PackageId, tuple[Artifact, ...] | BuildFailed]:
        if self.hang:
            await asyncio.Event().wait()
        if any(package.id.name in self.slow for package in packages):
            await asyncio.to_thread(time.sleep, 0.05)
        return {package.id: self._build(package, into(package)) for package in packages}

    def _build(self, package: Package, into: Path) -> tuple[Artifact, ...] | BuildFailed:
        name = package.id.name
        if package.manifest.exists():
            self.seen[name] = package.manifest.read_text()
        if name in self.touching:
            self.touching[name].write_text("changed")
        if name in self.broken or name in self.premature:
            premature = name in self.premature
            return BuildFailed(f"{name} does not build", log=("error: no",), premature=premature)
        self.built.append(name)
        self.number += 1  # no two builds are alike
        content = f"{name} {package.version} build {self.number}".encode()
        path = into / f"{name}-{package.version}.pkg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return (artifact(path, content),)


@dataclass
class FakeRegistry:
    """`faults` maps a name to what its next uploads raise, one each; `lost` to what its next upload
    raises after it has stored the files; `deaf` to what lookups raise once it has been uploaded;
    `lacks` to what is missing beside its files until an upload is accepted.
    `lag` counts the lookups that do not show it yet. `together` makes uploads wait for each other.
    """

    url: str = URL
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    faults: dict[str, list[Exception | None]] = field(default_factory=dict)
    lost: dict[str, Exception] = field(default_factory=dict)
    deaf: dict[str, Exception] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    lag: dict[str, int] = field(default_factory=dict)
    hang: set[str] = field(default_factory=set)
    uploads: list[str] = field(default_factory=list)
    in_flight: int = 0
    peak: int = 0
    together: asyncio.Barrier | None = None
    credentials: bool = True
    on_upload: Callable[[str], None] = lambda name: None
    on_lookup: Callable[[str], None] = lambda name: None

    def check_credentials(self) -> str:
        if not self.credentials:
            raise MissingCredentials(f"{self.url}: no token")
        return "a token"

    async def lookup(self, package: Package) -> Published | None:
        await asyncio.sleep(0)
        name = package.id.name
        self.on_lookup(name)
        if name in self.deaf and self.uploads.count(name):
            raise self.deaf[name]
        if self.lag.get(name, 0) > 0 and name in self.files:
            self.lag[name] -= 1
            return None
        files = self.files.get(name)
        if not files:
            return None
        url, lacks = f"{self.url}{name}", self.lacks.get(name, "")
        return Published(files=dict(files), url=url, lacks=lacks)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        name = package.id.name
        self.uploads.append(name)
        self.on_upload(name)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(0)
            if self.together is not None:
                await self.together.wait()
            if name in self.hang:
                await asyncio.Event().wait()
            fault = self.faults[name].pop(0) if self.faults.get(name) else None
            if fault is not None:
                raise fault
            self.store(name, artifacts)
            if name in self.lost:
                raise self.lost.pop(name)
            self.lacks.pop(name, None)
        finally:
            self.in_flight -= 1

    def store(self, name: str, artifacts: Iterable[Artifact]) -> None:
        held = self.files.setdefault(name, {})
        for file in artifacts:
            held.setdefault(file.filename, f"sha256:{file.sha256}")


@dataclass
class FakeStaging:
    """`waiting` is what nobody but a maintainer sees; `approve` shows it on the `registry`.

    `faults` and `lost` are as those of the registry; whoever is `blind` may stage and not look.
    What is `nameless` has no id.
    """

    registry: FakeRegistry
    mode: StageMode = "always"
    waiting: dict[str, tuple[Artifact, ...]] = field(default_factory=dict)
    faults: dict[str, list[Exception | None]] = field(default_factory=dict)
    lost: dict[str, Exception] = field(default_factory=dict)
    blind: bool = False
    nameless: bool = False
    calls: list[list[str]] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)
    together: asyncio.Barrier | None = None
    on_stage: Callable[[str], None] = lambda name: None

    async def stage(
        self, release: Mapping[Package, Sequence[Artifact]]
    ) -> Mapping[PackageId, Staged]:
        self.calls.append([package.id.name for package in release])
        await asyncio.sleep(0)
        if self.together is not None:
            await self.together.wait()
        for package, artifacts in release.items():
            name = package.id.name
            self.on_stage(name)
            fault = self.faults[name].pop(0) if self.faults.get(name) else None
            if fault is not None:
                raise fault
            before = self.waiting.setdefault(name, tuple(artifacts))
            if [each.sha256 for each in before] != [each.sha256 for each in artifacts]:
                raise DigestMismatch(f"{name} is staged with other bytes")
            if name in self.lost:
                raise self.lost.pop(name)
        return {package.id: self._where(package.id.name) for package in release}

    async def staged(self, package: Package, artifacts: Sequence[Artifact]) -> Staged | None:
        name = package.id.name
        self.looks.append(name)
        await asyncio.sleep(0)
        if self.blind:
            raise Denied(f"{self.registry.url}: who may stage may not look")
        if self.faults.get(name) and (fault := self.faults[name].pop(0)) is not None:
            raise fault
        return self._where(name) if name in self.waiting else None

    def _where(self, name: str) -> Staged:
        return Staged(tag="latest") if self.nameless else where_staged(name)

    def approve(self, name: str) -> None:
        self.registry.store(name, self.waiting.pop(name))


def where_staged(name: str) -> Staged:
    return Staged(id=f"id of {name}", url=f"{URL}staged/{name}", tag="latest")


class FakeTarget(Target):
    """With what is `given` in the place of the defaults; None leaves one as it is."""

    def __init__(self, workspace: Workspace, registry: Registry, **given: object) -> None:
        super().__init__(workspace, registry)
        self.composition, self.versioning = Composition(), Versioning()
        parts = (self, self.composition, self.versioning)
        for name, each in given.items():
            if each is not None and hasattr(self.preflight, name):
                self.preflight = replace(self.preflight, **{name: cast("Any", each)})
            elif each is not None and hasattr(self.clients, name):
                self.clients = replace(self.clients, **{name: cast("Any", each)})
            elif each is not None:
                vars(next(part for part in parts if hasattr(part, name)))[name] = each


def target(workspace: FakeWorkspace, registry: FakeRegistry) -> Mapping[str, Target]:
    return {"fake": Target(workspace, registry)}


def plan(*packages: Package, actions: Mapping[str, Action] | None = None) -> Plan:
    steps = tuple(
        PlannedPackage(
            package=p, action=(actions or {}).get(p.id.name, Action.PUBLISH), reason="because"
        )
        for p in packages
    )
    versions = {"fake": {p.id.name: p.version for p in packages}}
    return Plan(
        packages=steps,
        private=(),
        commit="c0ffee",
        digest="d" * 64,
        registries={"fake": URL},
        versions=versions,
    )


def placed(made: Plan, root: Path) -> Plan:
    """`made`, where each package has a manifest of its own below `root`."""
    steps = []
    for each in made.packages:
        manifest = root / f"{each.package.id.name}.toml"
        manifest.write_text("")
        steps.append(replace(each, package=replace(each.package, manifest=manifest)))
    return replace(made, packages=tuple(steps))


def released(
    root: Path,
    target: Target,
    made: Plan,
    during: Callable[[ReleaseRun], None] = lambda release: None,
    signing: Signing | None = None,
    owed: str = "",
    /,
    **changes: object,
) -> dict[str, Result]:
    """One run of `made` in `root`, with manifests that are there, and how each package ended. Its
    tags are `owed` for that reason, if any.
    """

    async def make_release() -> str:
        return owed

    async def main() -> dict[str, Result]:
        settings = config(root, **changes)
        make_state_directory(settings.state_directory)
        journal = Journal.open(settings.state_directory, run_id="run", seal=SEAL)
        journal.run_started(plan_digest="", commit="", tool="", started_at="", ecosystems=["fake"])
        release = ReleaseRun(
            there,
            {"fake": target},
            config=settings,
            journal=journal,
            watch=lambda _: None,
            sources=Sources(there, None),
            polling=Polling(),
            signing=signing,
            make_release=make_release,
        )
        during(release)
        await release.run()
        journal.close()
        return {result.package.id.name: result for result in release.results()}

    there = placed(made, root)
    return virtual_time.run(main())
