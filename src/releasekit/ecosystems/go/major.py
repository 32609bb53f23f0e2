"""Moves Go modules to the paths of their next major versions: in go.mod, and in the imports of all
modules that are built with them here. https://go.dev/ref/mod#major-version-suffixes
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from releasekit.ecosystems.go import gomod, paths
from releasekit.ecosystems.go.discover import is_tied
from releasekit.errors import join_errors
from releasekit.host import durable
from releasekit.text.splice import splice
from releasekit.versioning.edits import refuse_edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.gomod import Line
    from releasekit.versioning.edits import Edits

    Span = tuple[int, int]

# https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_IGNORED: Final = frozenset({"vendor", "testdata"})
# Of a Go file as far as its imports go. https://go.dev/ref/spec#Source_file_organization
_TOKEN: Final = re.compile(
    r"""
      (?:\ufeff|\s|//[^\n]*|/\*.*?\*/)+
    | (?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    | (?P<word>\w+)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def find_moved(modules: Mapping[str, Module], versions: Mapping[str, str]) -> dict[str, str]:
    """The modules that have another path with their next version, each with that."""
    moved = {}
    for path, version in versions.items():
        base, suffix = paths.split_major(path)
        major = paths.parse_version(f"v{version}").release[0]
        wanted = f"v{major}" if major >= 2 else ""
        if path in modules and suffix != wanted and not path.startswith("gopkg.in/"):
            moved[path] = f"{base}/{wanted}".rstrip("/")
    return moved


def move_modules(
    moved: Mapping[str, str],
    versions: Mapping[str, str],
    modules: Mapping[str, Module],
    edits: Edits,
    root: Path,
) -> None:
    """Raises PlanError with all that cannot be moved."""
    refused = [*_refuse(moved, modules, root)]
    if refused:
        raise join_errors([refuse_edit(said, hint) for said, hint in refused])
    for module in modules.values():
        tied = {old: new for old, new in moved.items() if is_tied(module, modules[old], root)}
        if not tied:
            continue
        mod = gomod.parse_mod(edits.read(module.manifest) or "", str(module.manifest))
        edits.write(module.manifest, _edit_lines(mod.text, mod.lines, tied, versions))
        for path in _list_sources(module.directory):
            text = edits.read(path) or ""
            imports = [
                ((start + 1, start + 1 + len(old)), tied[old])
                for (start, _), imported in find_imports(text)
                if (old := _find_owner(imported, modules)) in tied
            ]
            if imports:
                edits.write(path, splice(text, imports))
    work = root / "go.work"
    of_work = edits.read(work) or ""
    lines = [each.line for each in gomod.replaces_of_work(of_work, str(work))]
    if moved and lines:
        edits.write(work, _edit_lines(of_work, lines, moved, versions))


def _refuse(
    moved: Mapping[str, str], modules: Mapping[str, Module], root: Path
) -> Iterator[tuple[str, str]]:
    by_hand = "Change the module path by hand first: in go.mod, and in all imports."
    for old, new in moved.items():
        module = modules[old]
        where = module.manifest.relative_to(root)
        if new in modules:
            yield f"{where}: {new} is the path of another module here", by_hand
        if module.directory.name == paths.split_major(old)[1]:
            yield f"{where}: its directory is named after its major version", by_hand
        for other in modules.values():
            if is_tied(other, module, root) and (other.directory / "vendor").is_dir():
                hint = f"{by_hand} Then run `go mod vendor`."
                yield (
                    f"{where}: {other.directory.relative_to(root)}/vendor has it by its path",
                    hint,
                )
    if moved and (root / "go.work").is_file() and (root / "vendor").is_dir():
        yield "vendor/ has modules by their paths", f"{by_hand} Then run `go work vendor`."


def _edit_lines(
    text: str, lines: Sequence[Line], moved: Mapping[str, str], versions: Mapping[str, str]
) -> str:
    """Of a go.mod or go.work; a requirement begins at the new version."""
    found: list[tuple[Span, str]] = []
    for line in lines:
        if line.verb not in {"module", "require", "replace"} or line.words[0] not in moved:
            continue
        path, *rest = line.arguments
        found.append(((path.start, path.end), moved[path.text]))
        if rest and rest[0].text != "=>":
            found.append(((rest[0].start, rest[0].end), f"v{versions[path.text]}"))
    return splice(text, found)


def _find_owner(imported: str, modules: Mapping[str, Module]) -> str:
    """The module here that has the package; empty where none has."""
    while imported and imported not in modules:
        imported = imported.rpartition("/")[0]
    return imported


def _list_sources(directory: Path) -> Iterator[Path]:
    """The Go files of a module: what the go command ignores, and other modules, are left out."""
    for here, directories, names in durable.walk(directory):
        if here != directory and "go.mod" in names:
            directories.clear()
            continue
        directories[:] = [
            each for each in directories if each not in _IGNORED and each[0] not in "._"
        ]
        yield from (here / name for name in sorted(names) if name.endswith(".go"))


def find_imports(source: str) -> Iterator[tuple[Span, str]]:
    """Where a Go file has the path of each package that it imports, quotes included."""
    expected: Literal["package", "name", "top", "import", "imports"] = "package"
    for found in _TOKEN.finditer(source):
        text, word, mark = found.group("text", "word", "mark")
        if text and expected in {"import", "imports"}:
            yield found.span(), text[1:-1]
            expected = "top" if expected == "import" else "imports"
        elif expected == "package" and word == "package":
            expected = "name"
        elif expected == "name" and word:
            expected = "top"
        elif expected == "top" and word == "import":
            expected = "import"
        elif expected == "import" and mark == "(":
            expected = "imports"
        elif expected == "imports" and mark == ")":
            expected = "top"
        elif mark not in {None, ";", "."} or (expected == "top" and (word or text)):
            return
