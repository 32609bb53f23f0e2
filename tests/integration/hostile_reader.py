"""Reads the answers of a hostile server, one after the other, in a process whose memory tells what
that took: `python hostile_reader.py ECOSYSTEM URL CASE…` prints a line of JSON for each.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import httpx

import fakes
from processes import PATIENCE_S
from releasekit.ecosystems import ECOSYSTEMS, folders
from releasekit.ecosystems.go.registry import ModuleProxy
from releasekit.ecosystems.maven import layout
from releasekit.ecosystems.maven.repository import ANSWERS, RepositoryReader
from releasekit.ecosystems.npm import NpmInputs
from releasekit.ecosystems.npm.registry import NpmRegistry
from releasekit.ecosystems.shared.login import NoAuth
from releasekit.ecosystems.shared.server import RegistryClient
from releasekit.errors import MissingCredentials, ReleasekitError
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot
from releasekit.model import Package, PackageId
from watchdog import LONGEST_STALL_S, TRIES, slowness, watched

if TYPE_CHECKING:
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services

NAMES = {"go": "example.org/acme", "maven": "org.acme:acme"}


def peak_mb() -> int:
    """Of this process alone; what getrusage says may be that of the one it was forked from."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) // 1024


async def look_up(ecosystem: str, url: str, http: httpx.AsyncClient) -> None:
    config = fakes.config(
        Path("/workspace"),
        max_retries=0,
        task_timeout=PATIENCE_S,
        registries=fakes.registries(**{ecosystem: url}),
    )
    version = "v1.0.0" if ecosystem == "go" else "1.0"
    version = "1.0.0" if ecosystem in {"npm", "cargo"} else version
    package = Package(
        id=PackageId(ecosystem, NAMES.get(ecosystem, "acme")),
        version=version,
        directory=Path("/workspace"),
        manifest=Path("/workspace/manifest"),
        packaging="jar" if ecosystem == "maven" else "",
    )
    taken = snapshot({})
    services = fakes.make_services(
        config,
        http,
        Processes(environment=taken.environment),
        Credentials(taken, mask=lambda _secret: None),
    )
    if ecosystem == "npm":
        await NpmRegistry(
            httpx.URL(url), services, NoAuth(MissingCredentials("")), inputs=NpmInputs()
        ).lookup(package)
        return
    if ecosystem == "go":
        await ModuleProxy(url, services).read_digests(package)
        return
    if ecosystem == "maven":
        await listed(package, url, config, services)
    registry = folders.discovery(ECOSYSTEMS[ecosystem], config, services).registry
    await registry.lookup(package)


async def listed(package: Package, url: str, config: Config, services: Services) -> None:
    """As before a release is added to maven-metadata.xml."""
    server = RegistryClient(httpx.URL(url), ANSWERS, services)
    reader = RepositoryReader(server, None, config.state_directory)
    page = await reader.get(package, PurePosixPath("org/acme/maven-metadata.xml"))
    if page is not None:
        try:
            await asyncio.to_thread(layout.list_versions, page)
        except ValueError as error:
            raise ReleasekitError(str(error)) from error


async def main(ecosystem: str, server: str, cases: list[str]) -> None:
    async with http_client() as http:
        with contextlib.suppress(ReleasekitError):
            await look_up(ecosystem, f"{server}/no-http/", http)  # all is imported from then on
    for case in cases:
        stall_s, said = math.inf, ""
        for _ in range(TRIES):
            async with http_client() as http, watched() as dog:
                try:
                    await look_up(ecosystem, f"{server}/{case}/", http)
                except ReleasekitError as error:
                    said = f"{type(error).__name__}: {error}"
            stall_s = min(stall_s, round(dog.longest_s / slowness(), 3))
            if stall_s < LONGEST_STALL_S:
                break
        found = {"case": case, "said": said, "stall_s": stall_s, "mb": peak_mb()}
        sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
