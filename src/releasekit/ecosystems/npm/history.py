"""What a package.json said at another time, and which files of its package count."""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.npm.discover import Catalogs
from releasekit.ecosystems.npm.entry_points import (
    ALWAYS_PACKED,
    entry_points,
    missing_files,
    too_many_patterns,
)
from releasekit.ecosystems.npm.manifest import FIELDS, MAX_BYTES, parse_manifest, read_manifest
from releasekit.ecosystems.npm.reference import Reference
from releasekit.ecosystems.npm.workspace import PNPM, YARN, catalogs_in
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.packed import Patterns, below, is_beside, spelled_out
from releasekit.host.files import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package

_IGNORING: Final = ".npmignore"


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it."""
    data = read(package.manifest)
    try:
        document = parse_manifest((data or b"").decode())
    except ValueError:
        return ""
    is_this = text_in(document, "name") == package.id.name
    return text_in(document, "version") if is_this else ""


def inherited_at(found: Found, package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it: from catalogs, but for what only those who work on it need."""
    try:
        document = parse_manifest((read(package.manifest) or b"").decode())
    except ValueError:
        return ""
    references = [
        reference
        for key in FIELDS
        if key != "devDependencies"
        for name, spec in table_in(document, key).items()
        if (reference := Reference.parse(name, str(spec))).kind == "catalog"
    ]
    if not references:
        return ""
    home = found.places[package.directory]
    path = home.root / (YARN if home.tool == "yarn" else PNPM)
    catalogs = Catalogs(catalogs_in((read(path) or b"").decode(), path))
    return json.dumps([(each.name, catalogs.spec(each)) for each in references])


def offered_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it: without what only those who work on it install."""
    try:
        document = parse_manifest((read(package.manifest) or b"").decode())
    except ValueError:
        return ""
    # In its order, which decides among `exports`.
    return json.dumps({key: document[key] for key in document if key != "devDependencies"})


def packs(package: Package, tracked: Collection[str]) -> Counts:
    """As `interface.Target` has it. Where the package promises files that git does not have, it is
    built, and may be made of all there is.
    """
    document = read_manifest(package.manifest)
    listed = document.get("files")
    files = Patterns.parse(listed if isinstance(listed, list) else (), rooted=True)
    wanted = [Patterns((glob,)) for glob in files.globs if not glob[0].negated]
    is_built = (
        "directory" in table_in(document, "publishConfig")
        or too_many_patterns(document, tracked) > 0
        or files.too_many_for(tracked)
        or len(missing_files(document, tracked)) > 0
        or not all(any(map(each.names, tracked)) for each in wanted)
    )
    leading = [*_named(document), *entry_points(document.get("exports"))]
    # What lies beside an entry is there to be imported by it.
    named = spelled_out([*(listed if isinstance(listed, list) else ()), *leading])
    named |= spelled_out(posixpath.dirname(path) for path in leading)
    always = {text.removeprefix("./") for text in _named(document)}
    ignored = Patterns.parse(
        read_text(package.directory / _IGNORING, max_bytes=MAX_BYTES).splitlines()
        # Those further down may take back what it says.
        if _IGNORING in tracked and not below(_IGNORING, tracked) and not files.globs
        else ()
    )

    def counts(name: str) -> bool:
        if ALWAYS_PACKED.fullmatch(name):
            return True
        if is_beside(name, named) or name.startswith("src/test/"):
            return False
        if name in always or (files.globs and files.names(name)):
            return True
        if is_built:
            return not name.endswith(".md")
        return not files.globs and not ignored.names(name)

    return counts


def _named(document: dict[str, Any]) -> list[str]:
    """What is packed whatever `files` says."""
    commands = document.get("bin")
    named = [document.get("main"), document.get("browser"), commands]
    named += commands.values() if isinstance(commands, dict) else []
    return [each for each in named if isinstance(each, str)]
