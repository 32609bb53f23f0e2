"""What a Cargo.toml said at another time, and which files of its package count."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.cargo.roots import read_manifest
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.packed import Patterns, below, is_beside, spelled_out
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.model import Package


# Targets that no dependent builds. A file in there that `include` names itself is for the sources.
# https://doc.rust-lang.org/cargo/guide/project-layout.html
_UNUSED: Final = re.compile(r"(?:benches|examples|tests)/")


def version_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it: its own, or that of its workspace.

    https://doc.rust-lang.org/cargo/reference/workspaces.html#the-package-table
    """
    document = _parsed(read(package.manifest))
    said = table_in(document, "package")
    if text_in(said, "name") != package.id.name:
        return ""
    if table_in(said, "version").get("workspace") is not True:
        return text_in(said, "version")
    shared = _parsed(read(package.inherits[0])) if package.inherits else document
    return text_in(table_in(table_in(shared, "workspace"), "package"), "version")


def inherited_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it, but for what only its own tests need."""
    if not package.inherits:
        return ""
    document = _parsed(read(package.manifest))
    shared = table_in(_parsed(read(package.inherits[0])), "workspace")
    kinds = [
        table_in(table, kind)
        for table in (document, *table_in(document, "target").values())
        for kind in ("dependencies", "build-dependencies")
    ]
    taken = {
        f"{kind}.{key}": table_in(shared, kind).get(key)
        for kind, tables in (("package", [table_in(document, "package")]), ("dependencies", kinds))
        for table in tables
        for key in table
        if table_in(table, key).get("workspace") is True
    }
    return json.dumps(taken, default=str, sort_keys=True)


def offered_at(package: Package, read: Callable[[Path], bytes | None]) -> str:
    """As `interface.Target` has it: without what only its own tests need."""
    document = {**_parsed(read(package.manifest))}
    if not document:
        return ""
    targets = table_in(document, "target")
    document["target"] = {key: _without_tests(table) for key, table in targets.items()}
    return json.dumps(_without_tests(document), default=str, sort_keys=True)


def _without_tests(document: Mapping[str, object]) -> Mapping[str, object]:
    return {key: document[key] for key in document if key != "dev-dependencies"}


@functools.lru_cache(maxsize=64)
def _parsed(data: bytes | None) -> Mapping[str, object]:
    try:
        return parse_toml((data or b"").decode())
    except ValueError:
        return {}


def packs(package: Package, tracked: Collection[str]) -> Counts:
    """As `interface.Target` has it. A lock file is for those who install a program.

    https://doc.rust-lang.org/cargo/reference/manifest.html#the-exclude-and-include-fields
    """
    document = read_manifest(package.manifest)
    shared = read_manifest(package.inherits[0]) if package.inherits else document
    listed = _listed(document, shared, "include")
    included, spelled = Patterns.parse(listed), spelled_out(listed)
    excluded = Patterns.parse(_listed(document, shared, "exclude"))
    table = table_in(document, "package")
    named = {text_in(table, key).removeprefix("./") for key in ("build", "license-file", "readme")}
    always = {package.manifest.name, *named}
    elsewhere = below(package.manifest.name, tracked)
    is_program = "bin" in document or any(
        name == "src/main.rs" or name.startswith("src/bin/") for name in tracked
    )

    def counts(name: str) -> bool:
        if name in always or (name == "Cargo.lock" and is_program):
            return True
        if name == "Cargo.lock" or name.startswith(elsewhere):
            return False
        if name not in spelled and (is_beside(name, spelled) or _UNUSED.match(name)):
            return False
        return included.names(name) if included.globs else not excluded.names(name)

    return counts


def _listed(document: object, shared: object, key: str) -> list[object]:
    value = table_in(document, "package").get(key)
    if isinstance(value, dict):
        value = table_in(table_in(shared, "workspace"), "package").get(key)
    return value if isinstance(value, list) else []
