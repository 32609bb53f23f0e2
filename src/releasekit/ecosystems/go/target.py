"""Go modules, found and built from what git has committed, and the registries they go to."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.config.locations import FILENAME
from releasekit.config.values import Directory
from releasekit.ecosystems.go import OFFICIAL, discover, gomod, release
from releasekit.ecosystems.go.module_zip import GoComposition
from releasekit.ecosystems.go.registry import ProxyDirectory, TagRegistry
from releasekit.ecosystems.go.release import ModuleBatch
from releasekit.ecosystems.go.source import open_sources
from releasekit.ecosystems.go.verify import Verifier, find_go
from releasekit.ecosystems.go.versioning import GoVersioning
from releasekit.ecosystems.interface import Clients, Discovery, Services, Target, Trial
from releasekit.ecosystems.preflight import Preflight
from releasekit.errors import BuildFailed, PlanError
from releasekit.host.scratch import scratch
from releasekit.model import Action, PackageId
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.go import GoOptions
    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.release import Lookup
    from releasekit.ecosystems.interface import Built, Into, Registry
    from releasekit.model import Package, PlannedPackage

# https://go.dev/ref/mod#environment-variables
_GOPROXY: Final = f"{OFFICIAL.rstrip('/')},direct"
UNVERIFIED: Final = "go: `[go] verify` is false: no module is built before its tag is pushed"


def layout(_options: GoOptions, _inputs: object) -> Layout:
    return ProxyDirectory()


def target(
    config: PlanConfig, options: GoOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a proxy that cannot be used."""
    registry = directory or TagRegistry(
        config.registry_url("go", default=OFFICIAL).text,
        config.root,
        options,
        services,
        at_a_time=config.tagging.at_a_time,
    )
    goes_to = config.registries.get("go")
    proxy = goes_to.path.as_uri() if isinstance(goes_to, Directory) else str(goes_to or "")
    ecosystem = Go(
        options,
        services,
        registry.lookup,
        edits=config.pin != "none",
        build_concurrency=config.build_concurrency,
        proxy=proxy,
        config_file=config.config_file or Path(FILENAME),
    )
    return Discovery.joining(ecosystem, registry, GoTarget)


class GoTarget(Target):
    # The hash of a module covers the hashes of what it needs.
    builds_on_published = True
    builds_from_commit = True
    composition = GoComposition()

    def __init__(self, workspace: GoWorkspace, registry: Registry) -> None:
        super().__init__(workspace, registry)
        self._found = workspace
        self._go = workspace.go
        self._modules = workspace.modules
        self._tags = registry if isinstance(registry, TagRegistry) else None
        self.clients = Clients(try_out=self._try_out)
        config_file = workspace.root / workspace.go.config_file
        self.versioning = GoVersioning(workspace.modules, workspace.root, config_file, self._tags)
        if self._tags:
            self.deployment = self._tags
            self.preflight = Preflight(rights=self._tags, is_new=self._tags.is_new)

    async def find_tool(self, _packages: Sequence[Package], /) -> str:
        if not self._go.options.verify:
            return "git"
        return await find_go(self._go.processes, self._found.root)

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        built = [each.package for each in planned if each.action is Action.PUBLISH]
        replaced = discover.describe_replaced([self._modules[each.id.name] for each in built])
        unverified = UNVERIFIED if built and not self._go.options.verify else ""
        tags = self._tags
        private = [str(each.id) for each in built if tags and tags.is_private(each.id)]
        unasked = (
            f"go: GOPRIVATE or GONOPROXY names {few(private)}: ReleaseKit asks no proxy for "
            "it, and looks at its tag on the remote alone"
        )
        return ". ".join(filter(None, [unverified, replaced, unasked if private else ""]))

    def _try_out(self, package: Package, shared: Path) -> Trial:
        # Another toolchain would be fetched, and executed.
        own = {"GOFLAGS": "-modcacherw", "GOMODCACHE": str(shared), "GOTOOLCHAIN": "local"}
        return Trial(
            argv=("go", "get", f"{package.id.name}@{package.version}"),
            files={"go.mod": "module smoke.test/m\n"},
            env={**self._go.environment, **own},
        )


class Go:
    """Implements `interface.Ecosystem`. `lookup` finds the hashes of published modules; `edits`
    says whether what is published requires the versions it is released with; `proxy` has earlier
    versions of modules, empty where the go command knows where.
    """

    def __init__(
        self,
        options: GoOptions,
        services: Services,
        lookup: Lookup,
        *,
        edits: bool,
        build_concurrency: int = 1,
        proxy: str = "",
        config_file: Path = Path(FILENAME),
    ) -> None:
        self.config_file = config_file
        self.edits = edits
        self._build_concurrency = build_concurrency
        self.options = options
        self.services = services
        self.processes = services.processes
        self.lookup = lookup
        self._proxy = proxy

    @property
    def environment(self) -> dict[str, str]:
        """For a go outside of the workspace that also asks the proxy in use."""
        others = self.processes.environment.get("GOPROXY") or _GOPROXY
        proxies = {"GOPROXY": f"{self._proxy},{others}"} if self._proxy else {}
        return {"GOWORK": "off", **proxies}

    @contextlib.asynccontextmanager
    async def open_verifier(self) -> AsyncIterator[Verifier | None]:
        if not self.options.verify:
            yield None
            return
        async with scratch(self.processes.environment) as directory:
            yield Verifier(
                processes=self.processes,
                logs=self.services.logs,
                directory=directory,
                environment=self.environment,
                build_concurrency=self._build_concurrency,
            )

    async def discover(self, root: Path) -> GoWorkspace:
        modules = await asyncio.to_thread(discover.find_modules, root, self.options)
        packages = tuple(discover.make_packages(modules))
        return GoWorkspace(packages=packages, modules=modules, root=root, go=self)


class GoWorkspace(Struct, frozen=True, kw_only=True):
    """Implements `interface.Workspace`; `modules` are all there are, by path."""

    packages: tuple[Package, ...]
    modules: Mapping[str, Module]
    root: Path
    go: Go

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        """The same text: releases come from a commit, and the build pins their go.mod. Raises
        PlanError for requirements and replacements that cannot be published.
        """
        discover.check_module(gomod.parse_mod(manifest, "go.mod"), versions, self.modules)
        return manifest

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        return [packages] if packages else []

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        go, stored = self.go, {}
        for package in self.packages if go.edits else ():
            found = await asyncio.to_thread(release.read_stored, into(package), package.version)
            if found is not None:
                stored[package.id.name] = found
        before = (package for package in self.packages if package.id.name in stored)
        directories = [package.directory for package in (*packages, *before)]
        try:
            async with (
                open_sources(self.root, directories, go.processes) as sources,
                go.open_verifier() as verifier,
            ):
                batch = ModuleBatch(
                    sources=sources,
                    modules=self.modules,
                    packages={package.id.name: package for package in self.packages},
                    edits=go.edits,
                    lookup=go.lookup,
                    into=into,
                    stored={
                        path: tag
                        for path, (tag, commit) in stored.items()
                        if commit == sources.head.commit
                    },
                    verifier=verifier,
                )
                return await batch.build(packages)
        except BuildFailed as error:
            return dict.fromkeys((package.id for package in packages), error)
        except PlanError as error:  # git prints what is read in no other place
            failed = BuildFailed(str(error), hint=error.hint, problem=error.problem)
            return dict.fromkeys((package.id for package in packages), failed)
