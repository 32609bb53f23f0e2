"""What cargo takes, and how it gets a crate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from releasekit.ecosystems.cargo import CRATES_IO_INDEX
from releasekit.ecosystems.cargo.destination import CRATES_IO_NAME, SPARSE
from releasekit.ecosystems.clients import Clients, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.model import Package


class CargoClients(Clients):
    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    def takes_hidden(self, _requirement: str) -> bool:
        """Only by a Cargo.lock that has it already.
        https://doc.rust-lang.org/cargo/commands/cargo-yank.html
        """
        return False

    def try_out(self, package: Package, _shared: Path, /) -> Trial:
        """Cargo asks a sparse index again each time, so that its own cache does no harm."""
        destination = self._destination
        # In quotes, since .cargo/config.toml may name it. Cargo takes any letters for a name.
        index = json.dumps(f"{SPARSE}{destination.index}", ensure_ascii=False)
        argv, wanted = ["cargo", "generate-lockfile", "--quiet"], f'version = "={package.version}"'
        if not destination.holds(""):
            wanted += f", registry-index = {index}"
        elif destination.index != CRATES_IO_INDEX:
            argv += ["--config", f'source.{CRATES_IO_NAME}.replace-with = "releasekit"']
            argv += ["--config", f"source.releasekit.registry = {index}"]
        manifest = (
            'package = { name = "releasekit-smoke", version = "0.0.0", edition = "2021" }\n'
            f'workspace = {{}}\ndependencies."{package.id.name}" = {{ {wanted} }}\n'
        )
        return Trial(argv=argv, files={"Cargo.toml": manifest, "src/lib.rs": ""})
