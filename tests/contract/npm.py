from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from contract.case import Place
from integration.verdaccio import Verdaccio

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member

_RANGES: Final = {"open": "*", "fits": "^1.0.0", "excludes": "^2.0.0"}


class Npm:
    """npm workspaces, one scope."""

    tools = ("node", "npm")
    servers = ("npm_registry",)
    upload = ("PUT", r"/@demo%2f.*")
    version = "1.0.0"

    def name(self, key: str) -> str:
        return f"@demo/{key}"

    def write(self, root: Path, members: Sequence[Member]) -> None:
        top = {"private": True, "workspaces": ["packages/*"]}
        (root / "package.json").write_text(json.dumps(top))
        for member in members:
            directory = root / "packages" / member.key
            directory.mkdir(parents=True)
            (directory / "index.js").write_text(f"module.exports = {member.text!r}\n")
            document = {
                "name": self.name(member.key),
                "version": self.version,
                "dependencies": {self.name(key): _RANGES[how] for key, how in member.needs.items()},
                **({"private": True} if member.private else {}),
                **({"scripts": {"prepack": "exit 7"}} if member.broken else {}),
            }
            (directory / "package.json").write_text(json.dumps(document, indent=2) + "\n")

    def place(self, server: object) -> Place:
        assert isinstance(server, Verdaccio)
        return Place(
            registry=server.url,
            environment=server.environment,
            wrong_environment={"RELEASEKIT_NPM_TOKEN": "npm_wrong-horse"},
            recorder=server.recorder,
        )


CASE: Final = Npm()
