"""go.mod and go.sum as they are published: text to text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from releasekit.ecosystems.go import gomod
from releasekit.ecosystems.go.versions import parse_version
from releasekit.errors import PlanError
from releasekit.problems import Problem
from releasekit.text.splice import spliced

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from releasekit.ecosystems.go.gomod import GoMod, Replace
    from releasekit.ecosystems.shared.semver import Version


@dataclass(frozen=True, slots=True)
class Sums:
    """The two hashes go.sum has of a module, as `h1:…`. https://go.dev/ref/mod#go-sum-files"""

    zip: str
    mod: str


def check_requirements(mod: GoMod, versions: Mapping[str, str]) -> None:
    """Raises PlanError for a requirement that nothing satisfies: one above the planned version, or
    a placeholder for what has none.
    """
    for require in mod.requires:
        planned = versions.get(require.path)
        if planned is None and gomod.is_zero_version(require.version):
            raise PlanError(
                f"go:{mod.module} requires {require.path} {require.version}, a placeholder, and "
                "no such module is published from here",
                hint=f"Require a published version: `go get {require.path}@latest`.",
                problem=Problem.GO_REPLACED,
            )
        if planned is not None and parse_version(require.version) > parse_version(planned):
            raise PlanError(
                f"go:{mod.module} requires {require.path} {require.version}, but the workspace has "
                f"{planned}",
                hint="A requirement is a lower bound: release that version first, or lower it.",
                problem=Problem.EXCLUDES_VERSION,
            )


def go_mod(
    mod: GoMod, versions: Mapping[str, str], *, needed: Iterable[str], local: Iterable[Replace]
) -> str:
    """The go.mod with its requirements at the planned `versions`, with requirements on the `needed`
    modules that it does not name, and without the `local` replacements.

    Everything else is kept to the byte.
    """
    edits = [
        ((require.at.start, require.at.end), versions[require.path])
        for require in mod.requires
        if require.path in versions and require.version != versions[require.path]
    ]
    dropped = {(replaced.path, replaced.target) for replaced in local}
    lines = {each.line.start for each in mod.replaces if (each.path, each.target) in dropped}
    edits += [(span, "") for span in _removed(mod, lines)]
    missing = sorted(set(needed) - {require.path for require in mod.requires})
    return _with_requirements(spliced(mod.text, edits), {path: versions[path] for path in missing})


def _removed(mod: GoMod, starts: set[int]) -> set[tuple[int, int]]:
    """The spans of these lines; of a block that only has such lines, the whole."""
    blocks: dict[tuple[int, int], set[int]] = {}
    for line in mod.lines:
        if line.block is not None:
            blocks.setdefault(line.block, set()).add(line.start)
    whole = {block for block, lines in blocks.items() if lines <= starts}
    return {
        line.block if line.block in whole else (line.start, line.end)
        for line in mod.lines
        if line.start in starts
    }


def _with_requirements(text: str, versions: Mapping[str, str]) -> str:
    if not versions:
        return text
    end = "\r\n" if "\r\n" in text else "\n"
    lines = [f"\t{path} {version} // indirect{end}" for path, version in versions.items()]
    block = [f"{end}require ({end}", *lines, f"){end}"]
    return text + ("" if text.endswith("\n") else end) + "".join(block)


def go_sum(text: str, sums: Mapping[tuple[str, str], Sums | None]) -> str:
    """`text` with the hashes of these modules (path and version), in go's own order; without any
    of those that nobody knows yet.
    """
    kept = []
    for line in filter(str.strip, text.splitlines()):
        words = line.split()
        if len(words) != 3 or (words[0], words[1].removesuffix("/go.mod")) not in sums:
            kept.append(line)
    for (path, version), hashes in sums.items():
        if hashes is None:
            continue
        kept += [f"{path} {version} {hashes.zip}", f"{path} {version}/go.mod {hashes.mod}"]
    return "".join(f"{line}\n" for line in sorted(kept, key=_order))


def known_sums(text: str) -> dict[tuple[str, str], Sums]:
    """Modules (path and version) of which a go.sum has both hashes."""
    lines = (line.split() for line in text.splitlines())
    found = {(words[0], words[1]): words[2] for words in lines if len(words) == 3}
    return {
        (path, version): Sums(value, found[path, f"{version}/go.mod"])
        for (path, version), value in found.items()
        if (path, f"{version}/go.mod") in found
    }


def raised_requirements(
    mod: GoMod, needed: Iterable[tuple[GoMod, str]], ours: Collection[str]
) -> dict[str, tuple[str, Sums | None]]:
    """Modules from elsewhere that one of the `needed` modules (go.mod and go.sum) requires at a
    higher version than this go.mod: that version, which counts for both, and its hashes.

    The go command builds nothing until go.mod says so. https://go.dev/ref/mod#minimal-version-selection
    """
    versions = {require.path: require.version for require in mod.requires}
    raised: dict[str, tuple[str, Sums | None]] = {}
    for other, sums in needed:
        known = known_sums(sums)
        for path, version in ((require.path, require.version) for require in other.requires):
            if path not in versions or path in ours:
                continue
            if parse_version(version) > parse_version(versions[path]):
                versions[path] = version
                raised[path] = version, known.get((path, version))
    return raised


def _order(line: str) -> tuple[str, Version, str]:
    path, version, *_ = [*line.split(), "", ""]
    base, slash, name = version.partition("/")
    return path, parse_version(base), slash + name
