"""What the ecosystems declare, and what is made of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import fakes
from fakes import DECLARED
from releasekit.aio import Group
from releasekit.config.declaration import declared_by
from releasekit.ecosystems import ECOSYSTEMS, FOLDERS, folders
from releasekit.host.process import Processes
from releasekit.http.client import http_client
from releasekit.http.credentials import Credentials, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.config.declaration import EcosystemDeclaration
    from releasekit.ecosystems.interface import Registry, Target


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_what_it_declares_bears_its_name(ecosystem: EcosystemDeclaration) -> None:
    """So no two of them can mean the same input."""
    names = [declaration.name for declaration in ecosystem.declarations]
    assert all(name.startswith(f"{ecosystem.name}-") for name in names)
    assert len(set(names)) == len(names)
    assert ecosystem.folder == f"releasekit.ecosystems.{ecosystem.name}"
    assert len(declared_by(ecosystem.inputs)) == len(ecosystem.inputs.__struct_fields__)


def test_the_order_of_the_table_is_that_of_the_choices() -> None:
    assert tuple(ecosystem.folder for ecosystem in ECOSYSTEMS.values()) == FOLDERS
    assert DECLARED.inputs["ecosystem"].choices == tuple(ECOSYSTEMS)
    assert "`pypi`, `npm`, " in DECLARED.inputs["ecosystem"].help


def test_who_where_and_the_rest_is_the_order_of_the_inputs() -> None:
    assert [declaration.name for declaration in ECOSYSTEMS["pypi"].declarations] == [
        "pypi-username",
        "pypi-token",
        "pypi-registry",
        "pypi-index",
    ]


def test_declarations_are_quick_to_import() -> None:
    """For --help and a mistyped flag need nothing else, nor does the first line of a run."""
    code = "import sys, releasekit.__main__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())
    assert "releasekit.config.tables" in loaded
    assert not loaded & {"asyncio", "cryptography", "httpx", "tomlkit", "packaging", "rich", "yaml"}
    assert not {name for name in loaded if name.endswith((".target", ".registry"))}


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_one_that_is_not_discovered_is_what_its_discovery_would_find(
    tmp_path: Path, ecosystem: EcosystemDeclaration
) -> None:
    """Without a manifest and settings: no packages, and the registry that it declares."""

    async def main() -> tuple[Target, Registry]:
        config, environment = fakes.config(tmp_path), {"HOME": str(tmp_path)}
        credentials = Credentials(snapshot(environment), mask=lambda _: None)
        async with (
            Processes(environment=environment, variables=ecosystem.variables) as processes,
            http_client() as http,
            Group() as group,
        ):
            services = fakes.make_services(config, http, processes, credentials)
            discovery = await folders.discovery(ecosystem, config, services).opened_in(group)
            return await discovery.discover(tmp_path), discovery.registry

    target, registry = asyncio.run(main())
    assert not target.workspace.packages
    assert registry.url == ecosystem.default_registry


@pytest.mark.parametrize(
    ("name", "manifest", "text", "others"),
    [
        ("npm", "package.json", '{"name": "a", "version": "1.0.0"}', {"packaging", "tomlkit"}),
        ("pypi", "pyproject.toml", '[project]\nname = "a"\nversion = "1"', {"yaml"}),
    ],
)
def test_a_run_loads_the_ecosystems_that_it_finds(
    tmp_path: Path, name: str, manifest: str, text: str, others: set[str]
) -> None:
    """And of libraries, those that they need."""
    (tmp_path / manifest).write_text(text)
    code = (
        "import sys; from releasekit.__main__ import main; "
        "code = main(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
    )
    argv = [sys.executable, "-c", code, "plan", str(tmp_path), f"--{name}-registry", "dir:there"]
    done = subprocess.run(argv, capture_output=True, check=True, text=True, cwd=tmp_path)
    loaded = done.stdout.split()
    assert [each for each in FOLDERS if f"{each}.target" in loaded] == [ECOSYSTEMS[name].folder]
    assert others.isdisjoint(loaded)
