from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from staging import registry as double

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def registry() -> Iterator[double.Registry]:
    """npmjs.com's double, empty."""
    with double.serving() as served:
        yield served
