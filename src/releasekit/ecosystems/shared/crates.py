"""Which crates cargo compiles into another one, as their manifests say: packages of Python and npm
hold them too, and cargo need not be there where versions are decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.host.files import exists, find_top, follow, read_parsed
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MANIFEST: Final = "Cargo.toml"
MAX_BYTES: Final = 1024 * 1024
NORMAL: Final = ("dependencies", "build-dependencies", "build_dependencies")
DEV: Final = ("dev-dependencies", "dev_dependencies")
_SHARED: Final = frozenset({"patch", "workspace"})


class Crates:
    """Those of one repository, each read once."""

    def __init__(self, root: Path) -> None:
        self._top = find_top(root)
        self._documents: dict[Path, Mapping[str, object]] = {}
        self._needs: dict[Path, list[Path]] = {}

    def list_compiled(self, manifests: Iterable[Path]) -> list[Path]:
        """Those of crates, and of those that they depend on by a path: optional ones and those of
        one platform too, and not what only tests need. What lies outside of the repository is left
        out. Raises ConfigError for one that cannot be read; one that is missing may be in a
        submodule.
        """
        found: set[Path] = set()
        pending = [each.parent for each in manifests]
        while pending:
            directory = follow(pending.pop())
            if directory not in found and directory.is_relative_to(self._top):
                found.add(directory)
                if directory not in self._needs:
                    self._needs[directory] = [*self._list_needs(directory)]
                pending += self._needs[directory]
        return [each / MANIFEST for each in found]

    def _list_needs(self, directory: Path) -> Iterator[Path]:
        if not (document := self._read(directory)):
            return
        top = self._find_workspace(directory)
        shared = [*list_dependencies(self._read(top))]
        inherited = {where[-1]: value for where, value in shared if where[0] == "workspace"}
        for where, value in list_dependencies(document):
            if where[0] in _SHARED or where[-2] in DEV:
                continue
            said, home = value, directory
            if is_inherited(value):
                said, home = inherited.get(where[-1]), top
            if path := text_in(said, "path"):
                yield home / path
        # Only a lock file tells which crates of others have a dependency that is patched.
        # https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html#the-patch-section
        patched = (text_in(value, "path") for where, value in shared if where[0] == "patch")
        yield from (top / path for path in patched if path)

    def _find_workspace(self, directory: Path) -> Path:
        """https://doc.rust-lang.org/cargo/reference/manifest.html#the-workspace-field"""
        if named := text_in(table_in(self._read(directory), "package"), "workspace"):
            return follow(directory / named)
        above = (each for each in (directory, *directory.parents) if each.is_relative_to(self._top))
        return next((each for each in above if "workspace" in self._read(each)), directory)

    def _read(self, directory: Path) -> Mapping[str, object]:
        if directory not in self._documents:
            path = directory / MANIFEST
            self._documents[directory] = read_toml(path) if exists(path) else {}
        return self._documents[directory]


def read_toml(path: Path) -> Mapping[str, object]:
    return read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=MAX_BYTES)


def is_inherited(dependency: object) -> bool:
    """https://doc.rust-lang.org/cargo/reference/workspaces.html#the-dependencies-table"""
    return isinstance(dependency, dict) and dependency.get("workspace") is True


def list_dependencies(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each with the keys that lead to it, those of the workspace and patches too."""
    places: list[tuple[object, tuple[str, ...]]] = [(document, ())]
    places += [(each, ("target", name)) for name, each in table_in(document, "target").items()]
    tables = [(each, (*where, name)) for each, where in places for name in (*NORMAL, *DEV)]
    tables.append((table_in(document, "workspace"), ("workspace", "dependencies")))
    patches = table_in(document, "patch")
    tables += [(patches, ("patch", name)) for name in patches]
    for table, where in tables:
        for key, value in table_in(table, where[-1]).items():
            yield (*where, key), value
