"""Which files of a package count for what is published of it, as its Cargo.toml says, and what that
said at another time; read without cargo.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.interface import Composition
from releasekit.ecosystems.shared.crates import MAX_BYTES, read_toml
from releasekit.ecosystems.shared.documents import parse_loosely, table_in, text_in
from releasekit.ecosystems.shared.packed import below, is_below, is_irrelevant, spelled_out
from releasekit.host.files import read_text
from releasekit.text.globs import Patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.git.versions import Read
    from releasekit.model import Package

# What a manifest may name of the directories above it.
_COPIED: Final = ("license-file", "readme")
# Targets that no dependent builds. A file there that `include` names itself belongs to the sources.
# https://doc.rust-lang.org/cargo/guide/project-layout.html
_UNUSED: Final = re.compile(r"(?:benches|examples|tests)/")
_PROGRAM: Final = re.compile(r"src/(?:main\.rs\Z|bin/)")


class CargoComposition(Composition):
    def make_filter(self, package: Package, tracked: Collection[str]) -> Counts:
        """A lock file matters to those who install a program.

        https://doc.rust-lang.org/cargo/reference/manifest.html#the-exclude-and-include-fields
        """
        document = read_toml(package.manifest)
        shared = read_toml(package.inherits[0]) if package.inherits else document
        listed = _read_patterns(document, shared, "include")
        included, spelled = Patterns.parse(listed), spelled_out(listed)
        excluded = Patterns.parse(_read_patterns(document, shared, "exclude"))
        table = table_in(document, "package")
        named = {
            text_in(table, key).removeprefix("./") for key in ("build", "license-file", "readme")
        }
        always = {package.manifest.name, *named}
        further_down = below(package.manifest.name, tracked)
        is_program = "bin" in document or any(map(_PROGRAM.match, tracked))

        def counts(name: str) -> bool:
            if name in always or (name == "Cargo.lock" and is_program):
                return True
            if name == "Cargo.lock" or name.startswith(further_down):
                return False
            if name not in spelled and (is_irrelevant(name, spelled) or _UNUSED.match(name)):
                return False
            if included.globs:
                return included.names(name) or (
                    name.endswith("/") and included.may_name_below(name)
                )
            return not excluded.names(name)

        return counts

    def list_outside(self, package: Package) -> Collection[Path]:
        """Cargo copies its license file and its readme to the top of a crate.

        https://doc.rust-lang.org/cargo/reference/manifest.html#the-readme-field
        """
        text = read_text(package.manifest, max_bytes=MAX_BYTES)
        if not any(key in text for key in _COPIED):
            return ()
        table = table_in(parse_loosely(text.encode()), "package")
        found = [(package.directory, table, key) for key in _COPIED]
        for above in package.inherits:
            document = parse_loosely(read_text(above, max_bytes=MAX_BYTES).encode())
            shared = table_in(table_in(document, "workspace"), "package")
            taken = [key for key in _COPIED if table_in(table, key).get("workspace") is True]
            found += [(above.parent, shared, key) for key in taken]
        paths = {
            directory / text_in(said, key) for directory, said, key in found if text_in(said, key)
        }
        return [path for path in paths if not is_below(path, package.directory)]

    def read_offered(self, package: Package, read: Read) -> str:
        """Without what only its own tests need."""
        document = {**parse_loosely(read(package.manifest))}
        if not document:
            return ""
        targets = table_in(document, "target")
        document["target"] = {key: _without_tests(table) for key, table in targets.items()}
        return json.dumps(_without_tests(document), default=str, sort_keys=True)

    def read_inherited(self, package: Package, read: Read) -> str:
        """Without what only its own tests need."""
        if not package.inherits:
            return ""
        document = parse_loosely(read(package.manifest))
        shared = table_in(parse_loosely(read(package.inherits[0])), "workspace")
        kinds = [
            table_in(table, kind)
            for table in (document, *table_in(document, "target").values())
            for kind in ("dependencies", "build-dependencies")
        ]
        taken = {
            f"{kind}.{key}": table_in(shared, kind).get(key)
            for kind, tables in (
                ("package", [table_in(document, "package")]),
                ("dependencies", kinds),
            )
            for table in tables
            for key in table
            if table_in(table, key).get("workspace") is True
        }
        return json.dumps(taken, default=str, sort_keys=True)


def _without_tests(document: Mapping[str, object]) -> Mapping[str, object]:
    return {key: document[key] for key in document if key != "dev-dependencies"}


def _read_patterns(document: object, shared: object, key: str) -> list[object]:
    value = table_in(document, "package").get(key)
    if isinstance(value, dict):
        value = table_in(table_in(shared, "workspace"), "package").get(key)
    return value if isinstance(value, list) else []
