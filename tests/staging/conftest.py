from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.npm import registry as double
from integration import verdaccio
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.verdaccio import Verdaccio


@pytest.fixture
def registry() -> Iterator[double.Registry]:
    """npmjs.com's double, empty."""
    with double.serving() as served:
        yield served


@pytest.fixture(scope="session")
def _staging_verdaccio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdaccio]:
    require_tool("npm")
    with verdaccio.verdaccio(tmp_path_factory.mktemp("staging"), staging=True) as server:
        yield server


@pytest.fixture
def staging_verdaccio(_staging_verdaccio: Verdaccio) -> Verdaccio:
    """Another registry that stages, empty. It asks for no codes and takes names it has not seen,
    and a version that is staged can be published directly all the same.
    """
    _staging_verdaccio.empty()
    return _staging_verdaccio
