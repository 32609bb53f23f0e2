from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member, Place

_NEEDS: Final = {"open": "*", "fits": "1.0", "excludes": "2"}


class Bundle:
    """Directories beside one another; there are no servers for bundles."""

    tools = ("sh",)
    servers = ()
    upload = ("", "")
    version = "1.0.0"

    def name(self, key: str) -> str:
        return key

    def write(self, root: Path, members: Sequence[Member]) -> None:
        for member in members:
            directory = root / member.key
            directory.mkdir()
            (directory / "text").write_text(member.text)
            document = {
                "name": member.key,
                "version": self.version,
                "private": member.private,
                "needs": {key: _NEEDS[how] for key, how in member.needs.items()},
                "prepare": ["sh", "-c", "exit 7"] if member.broken else [],
            }
            (directory / "bundle.json").write_text(json.dumps(document, indent=2) + "\n")

    def place(self, server: object) -> Place:
        raise NotImplementedError


CASE: Final = Bundle()
