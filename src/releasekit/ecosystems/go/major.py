"""Moves Go modules to the paths of their next major versions: in go.mod, and in the imports of all
modules that are built with them here. https://go.dev/ref/mod#major-version-suffixes
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from releasekit.ecosystems.go import gomod, paths
from releasekit.ecosystems.go.discover import find_tied
from releasekit.errors import join_errors
from releasekit.host import durable
from releasekit.host.files import is_file
from releasekit.text.escape import clip, visible
from releasekit.text.splice import splice
from releasekit.versioning.edits import refuse_edit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.go.discover import Module
    from releasekit.ecosystems.go.gomod import Line
    from releasekit.versioning.edits import Edits

    Span = tuple[int, int]

# https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_IGNORED: Final = frozenset({"vendor", "testdata"})
# Of a path; longer than any that a file system has a place for would take its time.
_MOST_CHARS: Final = 1_000
_MOST_SHOWN: Final = 200
# Of a Go file as far as its imports go. https://go.dev/ref/spec#Source_file_organization
_TOKEN: Final = re.compile(
    r"""
      \ufeff | \s+ | //[^\n]* | /\*.*?\*/
    | (?P<text>"[^"\\\n]*"|`[^`]*`)
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
) -> None:
    """Raises PlanError with all that cannot be moved."""
    root = edits.root
    refused = [*_refuse(moved, modules, root)]
    for module in modules.values():
        tied = {path: moved[path] for path in moved.keys() & find_tied(module, modules, root)}
        if not tied:
            continue
        mod = gomod.parse_mod(edits.read(module.manifest) or "", str(module.manifest))
        # A package may be of a module that lies elsewhere.
        known = modules.keys() | {each.path for each in mod.requires}
        edits.write(module.manifest, _edit_lines(mod.text, mod.lines, tied, versions, known))
        for path in _list_sources(module.directory):
            text = edits.read(path) or ""
            imports = []
            for (start, _), imported in find_imports(text):
                old = _find_owner(imported, known)
                if old not in tied:
                    continue
                imports.append(((start + 1, start + 1 + len(old)), tied[old]))
                if old != module.path and "internal" in imported[len(old) :].split("/"):
                    # https://pkg.go.dev/cmd/go#hdr-Internal_Directories
                    where, shown = path.relative_to(root), clip(visible(imported), _MOST_SHOWN)
                    said = f"{where}: imports {shown}, and only {tied[old]} itself could then"
                    refused.append((said, "Import what is public, or move that package."))
            if imports:
                edits.write(path, splice(text, imports))
    work = root / "go.work"
    of_work = edits.read(work) or ""
    lines = [each.line for each in gomod.replaces_of_work(of_work, str(work))]
    if moved and lines:
        edits.write(work, _edit_lines(of_work, lines, moved, versions, modules.keys()))
    if refused:
        raise join_errors([refuse_edit(said, hint) for said, hint in refused])


def _refuse(
    moved: Mapping[str, str], modules: Mapping[str, Module], root: Path
) -> Iterator[tuple[str, str]]:
    by_hand = "Change the module path by hand first: in go.mod, and in all imports."
    for old, new in moved.items():
        module = modules[old]
        where = module.manifest.relative_to(root)
        if new in modules or is_file(module.directory / paths.split_major(new)[1] / "go.mod"):
            yield f"{where}: there is another module for {new}", by_hand
        if module.directory.name == paths.split_major(old)[1]:
            yield f"{where}: its directory is named after its major version", by_hand
        if any(line.verb == "retract" for line in module.mod.lines):
            # https://go.dev/ref/mod#go-mod-file-retract
            said = f"{where}: retracts versions, and {new} has none of them"
            yield said, "Remove `retract`: it counts in what is published of the old path."
    for module in modules.values():
        needed = {each.path for each in module.mod.requires} & moved.keys()
        for old in sorted(needed & find_tied(module, modules, root)):
            if (module.directory / "vendor").is_dir():
                where = (module.directory / "vendor").relative_to(root)
                yield f"{where}: has {old} by its path", f"{by_hand} Then run `go mod vendor`."
    if moved and (root / "go.work").is_file() and (root / "vendor").is_dir():
        yield "vendor/ has modules by their paths", f"{by_hand} Then run `go work vendor`."


def _edit_lines(
    text: str,
    lines: Sequence[Line],
    moved: Mapping[str, str],
    versions: Mapping[str, str],
    known: Collection[str],
) -> str:
    """Of a go.mod or go.work; a requirement begins at the new version."""
    found: list[tuple[Span, str]] = []
    for line in lines:
        if line.verb not in {"module", "require", "replace", "tool"}:
            continue
        path, *rest = line.arguments
        # A tool is a package. https://go.dev/ref/mod#go-mod-file-tool
        old = _find_owner(path.text, known) if line.verb == "tool" else path.text
        if old not in moved:
            continue
        found.append(((path.start, path.end), f"{moved[old]}{path.text.removeprefix(old)}"))
        if rest and rest[0].text != "=>":
            found.append(((rest[0].start, rest[0].end), f"v{versions[old]}"))
    return splice(text, found)


def _find_owner(imported: str, known: Collection[str]) -> str:
    """The module that has the package; empty where none is known."""
    imported = imported[:_MOST_CHARS]
    while imported and imported not in known:
        imported = imported.rpartition("/")[0]
    return imported


def _list_sources(directory: Path) -> Iterator[Path]:
    """The Go files of a module: what the go command ignores, and other modules, are left out. So
    are links: what they lead to is edited in its place.
    """
    for here, directories, names in durable.walk(directory):
        if here != directory and "go.mod" in names:
            directories.clear()
            continue
        directories[:] = [
            each for each in directories if each not in _IGNORED and each[0] not in "._"
        ]
        sources = (here / name for name in sorted(names) if name.endswith(".go"))
        yield from filter(durable.is_file, sources)


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
