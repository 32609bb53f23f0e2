"""The results that a run has left, as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.host.files import read_text
from releasekit.report import load_results

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Report

RESULTS: Final = "results.json"
# Results of 10,000 packages are some 20 MB, with the last lines of each build.
MAX_RESULTS_BYTES: Final = 256 * 1024 * 1024


def loaded(path: Path) -> Report:
    """Raises ConfigError naming the file."""
    return load_results(read_text(path, max_bytes=MAX_RESULTS_BYTES), where=str(path))
