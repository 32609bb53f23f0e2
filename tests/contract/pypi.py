from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from contract.case import Place
from integration.servers import IndexServer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contract.case import Member

_SPECIFIERS: Final = {"open": "", "fits": ">=1", "excludes": ">=2"}


class PyPI:
    """A uv workspace of hatchling packages."""

    tools = ("uv",)
    servers = ("pypiserver", "devpi_index")
    upload = ("POST", ".*")
    version = "1.0.0"

    def name(self, key: str) -> str:
        return f"demo-{key}"

    def write(self, root: Path, members: Sequence[Member]) -> None:
        (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
        for member in members:
            directory = root / "packages" / member.key
            module = directory / "src" / f"demo_{member.key}"
            module.mkdir(parents=True)
            (module / "__init__.py").write_text(f'TEXT = "{member.text}"\n')
            needs = [f"demo-{key}{_SPECIFIERS[how]}" for key, how in member.needs.items()]
            lines = [
                "[project]",
                f'name = "demo-{member.key}"',
                f'version = "{self.version}"',
                f"dependencies = {json.dumps(needs)}  # of this workspace",
                'classifiers = ["Private :: Do Not Upload"]' if member.private else "",
                "[build-system]",
                'requires = ["hatchling"]',
                'build-backend = "hatchling.build"',
                "[tool.hatch.build]\nhooks = 7" if member.broken else "",
                "",
            ]
            (directory / "pyproject.toml").write_text("\n".join(lines))

    def place(self, server: object) -> Place:
        assert isinstance(server, IndexServer)
        user = server.environment["RELEASEKIT_PYPI_USERNAME"]
        return Place(
            registry=server.upload_url,
            environment={"RELEASEKIT_PYPI_TOKEN": server.password},
            wrong_environment={"RELEASEKIT_PYPI_TOKEN": "wrong-horse"},
            inputs={"username": user, "index": server.index_url},
            recorder=server.recorder,
        )


CASE: Final = PyPI()
