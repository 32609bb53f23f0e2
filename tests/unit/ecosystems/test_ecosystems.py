"""What the ecosystems declare, and what is made of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from fakes import DECLARED
from releasekit.config.declaration import declared_by
from releasekit.ecosystems import ECOSYSTEMS, FOLDERS

if TYPE_CHECKING:
    from releasekit.config.declaration import EcosystemDeclaration


@pytest.mark.parametrize("ecosystem", ECOSYSTEMS.values(), ids=ECOSYSTEMS)
def test_what_it_declares_bears_its_name(ecosystem: EcosystemDeclaration) -> None:
    """So no two of them can mean the same input."""
    names = [declaration.name for declaration in ecosystem.declarations]
    assert all(name.startswith(f"{ecosystem.name}-") for name in names)
    assert len(set(names)) == len(names)
    assert ecosystem.folder == f"releasekit.ecosystems.{ecosystem.name}"
    assert len(declared_by(ecosystem.inputs)) == len(fields(ecosystem.inputs))


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
