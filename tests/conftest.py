"""What holds for every test."""

from __future__ import annotations

import pytest
from hypothesis import settings

from releasekit.state import lock_order

# A busy machine is no failure. Counterexamples are printed as code, so no database is kept.
settings.register_profile("releasekit", deadline=None, database=None, print_blob=True)
settings.load_profile("releasekit")

pytest_plugins = ["integration.fixtures"]


@pytest.fixture(autouse=True)
def _nothing_held() -> None:
    """A test that fails may leave locks in its traceback; the next one holds none of them."""
    lock_order._held.set(())


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Archives hold the second they were made in, and all processes have to name a test alike."""
    return argname if isinstance(val, bytes) else None
