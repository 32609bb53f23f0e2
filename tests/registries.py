"""A registry as a run would make it, without the run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import fakes
from releasekit.ecosystems import ECOSYSTEMS, folders
from releasekit.ecosystems.pypi import PyPIInputs
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import httpx

    from releasekit.ecosystems.interface import Registry
    from releasekit.host.process import Processes

_NOTHING: Mapping[str, object] = MappingProxyType({})


@contextlib.asynccontextmanager
async def opened(
    place: str,
    environment: Mapping[str, str],
    changes: Mapping[str, object] = _NOTHING,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    masked: list[str] | None = None,
) -> AsyncIterator[Registry]:
    """The pypi registry at `place`. Reads are tried once unless `changes` to the Config say more;
    `masked` receives every secret.
    """
    taken = snapshot(environment)
    values: dict[str, object] = {
        "registries": fakes.registries(pypi=place),
        "ecosystem_inputs": (
            PyPIInputs(username=environment.get("RELEASEKIT_PYPI_USERNAME", "__token__")),
        ),
        "max_retries": 0,
        "retry_base_delay": 0.0,
        **changes,
    }
    config = fakes.config(Path("/workspace"), **values)
    seen: list[str] = [] if masked is None else masked
    async with http_client(transport=transport) as http:
        services = fakes.make_services(
            config, http, cast("Processes", None), Credentials(taken, mask=seen.append)
        )
        yield folders.discovery(ECOSYSTEMS["pypi"], config, services).registry
