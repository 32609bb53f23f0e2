"""A target of one ecosystem on one workspace, and the steps of a run on it without the run."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import fakes
from releasekit.aio import Group
from releasekit.ecosystems import FOLDERS, folders
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.plan.make import make_plan, planned_versions
from releasekit.plan.order import in_order
from releasekit.release.building import make_pins
from releasekit.state.directory import built_directory, make_state_directory
from releasekit.state.history import History
from releasekit.state.pins import EphemeralPin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from contract.case import Case, Place
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Discovery, Registry, Target, Workspace
    from releasekit.errors import BuildFailed
    from releasekit.model import Artifact, Package, PackageId, Plan

# With one more than there are: what the suite asks is all that an ecosystem has to do.
# Steps are made of no sources and into no bytes: tests/unit/step and tests/crash have these.
FILES = [each for each in FOLDERS if not each.endswith(".step")]
TABLE = folders.table((*FILES, "sixth.bundle"))
Built = dict["PackageId", "tuple[Artifact, ...] | BuildFailed"]


@dataclass(frozen=True)
class Workbench:
    name: str
    config: Config
    discovery: Discovery
    target: Target

    @property
    def workspace(self) -> Workspace:
        return self.target.workspace

    @property
    def registry(self) -> Registry:
        return self.target.registry

    @property
    def packages(self) -> list[Package]:
        """Sorted by name."""
        return sorted(self.workspace.packages, key=lambda package: package.id)

    @property
    def publishable(self) -> list[Package]:
        """Dependencies first."""
        return in_order([package for package in self.packages if not package.unpublishable])

    def pinned(self, texts: Sequence[str]) -> list[str]:
        """Manifests, for the versions that are there."""
        versions = planned_versions(self.publishable).get(self.name, {})
        return [self.workspace.pin(text, versions) for text in texts]

    async def build(self, packages: Sequence[Package]) -> Built:
        """As a run does it: batch by batch, with pinned manifests."""
        state = self.config.state_directory
        make_state_directory(state)
        into = partial(built_directory, state_directory=state)
        versions = planned_versions(packages).get(self.name, {})
        built: Built = {}
        for batch in self.workspace.batches(packages):
            pins = make_pins(self.workspace, batch, versions)
            with EphemeralPin(
                state,
                pins,
                rewritten=self.target.list_rewritten(batch),
                ecosystem=self.name,
                root=self.config.root,
            ):
                built.update(await self.workspace.build(batch, into))
        return built

    async def plan(self) -> Plan:
        """Without a journal: what the registry alone tells."""
        return await make_plan(self.config, {self.name: self.target}, History(), commit="")


def files(root: Path) -> dict[Path, bytes]:
    """All but what the program keeps for itself."""
    return {
        path.relative_to(root): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] != ".releasekit"
    }


@contextlib.asynccontextmanager
async def opened(
    name: str, case: Case, root: Path, place: Place | None = None, **changes: object
) -> AsyncIterator[Workbench]:
    """Reads are tried once. Without `place`, nothing of a registry is asked for."""
    ecosystem = TABLE[name]
    values: dict[str, object] = {"max_retries": 0, "retry_base_delay": 0.0}
    values["ecosystem_tables"] = {name: getattr(case, "table", {})}
    environment = dict(os.environ)
    if place is not None:
        values["registries"] = fakes.registries(**{name: place.registry})
        values["ecosystem_inputs"] = [ecosystem.inputs(**place.inputs)]
        environment |= place.environment
    config = fakes.config(root, **values, **changes)
    taken = snapshot(environment, {each.variable for each in ecosystem.secrets})
    credentials = Credentials(taken, mask=lambda _: None)
    async with (
        Processes(
            environment=taken.environment,
            secrets=credentials.values,
            variables=ecosystem.variables,
        ) as processes,
        http_client() as http,
        Group() as group,
    ):
        services = fakes.make_services(config, http, processes, credentials)
        discovery = await folders.discovery(ecosystem, config, services).opened_in(group)
        yield Workbench(name, config, discovery, await discovery.discover(config.root))
