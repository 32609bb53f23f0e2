"""The files of a checkout as they are going to be, collected before any of them is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import PathError, PlanError
from releasekit.host.files import exists, inside, read_file
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Edits:
    """Reads what was edited before, and writes nothing to the disk.

    Text is UTF-8; other bytes, a byte order mark and line ends pass through unchanged. A link is
    followed and stays one. Raises ConfigError for a path that leads out of `root`, or into
    `.git`: what a commit says would become settings of git.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._places: dict[Path, Path] = {}
        self._before: dict[Path, bytes | None] = {}
        self._after: dict[Path, bytes | None] = {}

    def read(self, path: Path) -> str | None:
        """None where the file does not exist."""
        data = self._after[self._load(path)]
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def write(self, path: Path, text: str) -> None:
        """Edit a file, or make one in a directory that is there."""
        self._after[self._load(path)] = text.encode("utf-8", "surrogateescape")

    def remove(self, path: Path) -> None:
        self._after[self._load(path)] = None

    def list_changes(self) -> Mapping[Path, bytes | None]:
        """Files that differ from those on the disk, by their places; None for one that goes."""
        return {
            path: data for path, data in sorted(self._after.items()) if data != self._before[path]
        }

    def _load(self, path: Path) -> Path:
        if path in self._places:
            return self._places[path]
        place = inside(self.root, path, where=str(path))
        if ".git" in place.relative_to(self.root).parts:
            raise PathError(f"{place}: no version is written into the directory of git")
        self._places[path] = place
        if place not in self._after:
            data = read_file(place, max_bytes=MAX_MANIFEST_BYTES) if exists(place) else None
            self._before[place] = self._after[place] = data
        return place


def refuse_edit(message: str, hint: str = "") -> PlanError:
    """Of what cannot be written exactly."""
    return PlanError(message, hint=hint, problem=Problem.CANNOT_WRITE)
