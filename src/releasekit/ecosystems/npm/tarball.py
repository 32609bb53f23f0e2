"""A packed tarball with another package.json in it, everything else as it was."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MANIFEST: Final = "package/package.json"


def with_manifest(path: Path, change: Callable[[str], str]) -> None:
    """Rewrite the tarball where `change` makes another text of its manifest.

    The same bytes come of the same input: no time of writing is kept.
    """
    with tarfile.open(path, "r:gz") as packed:
        before = packed.extractfile(_MANIFEST)
        assert before is not None  # noqa: S101 (npm has just put it there)
        text = before.read().decode(errors="replace")
        changed = change(text)
        if changed == text:
            return
        partial = path.with_name(f"{path.name}.partial")
        with (
            partial.open("wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as repacked,
        ):
            for member in packed:
                data = packed.extractfile(member)
                if member.name == _MANIFEST:
                    member.size = len(changed.encode())
                    data = io.BytesIO(changed.encode())
                repacked.addfile(member, data)
    partial.replace(path)
