from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provenance import sigstore_double

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from provenance.sigstore_double import Sigstore


@pytest.fixture
def sigstore(tmp_path: Path) -> Iterator[Sigstore]:
    """Sigstore's double, with an empty log, and a job of acme/widgets that may identify itself."""
    with sigstore_double.serving(tmp_path / "sigstore") as served:
        yield served
