"""What a test expects to be raised, by the id that users look up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from releasekit.errors import ReleasekitError

if TYPE_CHECKING:
    from releasekit.problems import Problem


def raises(problem: Problem, *, match: str | None = None) -> pytest.RaisesExc[ReleasekitError]:
    """As `pytest.raises`, of whichever class it is."""
    return pytest.raises(ReleasekitError, match=match, check=lambda error: error.problem is problem)
