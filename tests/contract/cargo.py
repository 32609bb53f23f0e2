from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contract.case import Place
from integration.crates import TOKEN, CrateServer
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member

_VERSIONS: Final = {"open": "", "fits": ', version = "1"', "excludes": ', version = "2"'}


class Cargo:
    """A workspace of libraries with inherited versions."""

    tools = ("cargo",)
    servers = ("alternate_crate_server",)
    upload = ("PUT", "/api/v1/crates/new")
    version = "1.0.0"
    table: Final = {"verify": False}

    def name(self, key: str) -> str:
        return f"demo-{key}"

    def write(self, root: Path, members: Sequence[Member]) -> None:
        require_tool("cargo")  # which reads the manifests, too
        (root / "Cargo.toml").write_text(
            '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n'
            f'[workspace.package]\nversion = "{self.version}"\nedition = "2021"\n'
        )
        for member in members:
            directory = root / "crates" / member.key
            (directory / "src").mkdir(parents=True)
            (directory / "src" / "lib.rs").write_text(f'pub const TEXT: &str = "{member.text}";\n')
            lines = [
                "[package]",
                f'name = "demo-{member.key}"',
                "version.workspace = true",
                "edition.workspace = true",
                'license = "MIT"',
                'description = "A demo"',
                "publish = false" if member.private else "",
                'readme = "nowhere.md"' if member.broken else "",
                "[dependencies]  # of this workspace",
                *(
                    f'demo-{key} = {{ path = "../{key}"{_VERSIONS[how]} }}'
                    for key, how in member.needs.items()
                ),
                "",
            ]
            (directory / "Cargo.toml").write_text("\n".join(lines))

    def place(self, server: object) -> Place:
        assert isinstance(server, CrateServer)
        return Place(
            registry=server.index_url,
            environment={"RELEASEKIT_CARGO_TOKEN": TOKEN},
            wrong_environment={"RELEASEKIT_CARGO_TOKEN": "wrong-horse"},
            recorder=server.recorder,
        )


CASE: Final = Cargo()
