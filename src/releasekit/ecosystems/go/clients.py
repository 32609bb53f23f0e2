"""How the go command gets a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.clients import Clients, Trial

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.model import Package


class GoClients(Clients):
    """`environment` names the proxies to ask."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def try_out(self, package: Package, shared: Path, /) -> Trial:
        # Another toolchain would be fetched, and executed.
        own = {"GOFLAGS": "-modcacherw", "GOMODCACHE": str(shared), "GOTOOLCHAIN": "local"}
        return Trial(
            argv=("go", "get", f"{package.id.name}@{package.version}"),
            files={"go.mod": "module smoke.test/m\n"},
            env={**self._environment, **own},
        )
