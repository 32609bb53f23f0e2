from __future__ import annotations

from typing import TYPE_CHECKING, Final

from go_workspaces import PLACEHOLDER, write_module
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member, Place

_VERSIONS: Final = {"open": PLACEHOLDER, "fits": "v1.0.0", "excludes": "v1.5.0"}


class Go:
    """Modules in directories of one git repository, without a go.work.

    Its servers are git remotes, whose credentials are git's own: what the suite asks of a registry
    with accounts is in tests/integration/test_go_remote.py.
    """

    tools = ("git",)
    servers = ()
    upload = ("POST", ".*/git-receive-pack")
    version = "v1.0.0"
    table: Final = {"version": version, "private": ["internal"], "verify": False}

    def name(self, key: str) -> str:
        return f"github.com/acme/mono/{key}"

    def write(self, root: Path, members: Sequence[Member]) -> None:
        for member in members:
            required = {key: _VERSIONS[how] for key, how in member.needs.items()}
            directory = root / member.key
            write_module(directory, member.key, text=member.text, required=required)
            if member.broken:
                # Nobody could unpack it on Windows, so Go refuses it everywhere.
                (directory / "aux.go").write_text(f"package {member.key}\n")
        git(root, "init", "--quiet")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Start")

    def place(self, server: object) -> Place:
        raise NotImplementedError


CASE: Final = Go()
