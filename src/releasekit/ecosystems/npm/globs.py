"""Which directories the globs of a workspace name, as npm's map-workspaces does it: links are not
followed, and node_modules is not looked into. https://github.com/npm/map-workspaces
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared import globs as shared
from releasekit.ecosystems.shared.globs import Glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

MANIFEST: Final = "package.json"
_SEARCH: Final = shared.Search(
    marker=MANIFEST,
    skipped=frozenset({"node_modules", "bower_components", ".git", ".releasekit"}),
)
_BRACES: Final = re.compile(r"\{([^{},]*+,[^{}]*+)\}")


def parse(patterns: Iterable[str], *, where: str) -> list[Glob]:
    """One glob for each alternative of their braces; raises ConfigError for one that leads out."""
    return [
        Glob.parse(text.removeprefix("!"), where=where, negated=text.startswith("!"))
        for text in _without_braces(patterns, where=where)
    ]


def directories(root: Path, globs: Sequence[Glob], *, where: str) -> list[Path]:
    """Directories with a package.json that the globs name, the last one that fits deciding."""
    positive = [glob for glob in globs if not glob.negated]
    found = _SEARCH.directories(root, positive, where=where)
    return [path for path in found if _is_chosen(globs, path.relative_to(root).parts)]


def _is_chosen(globs: Sequence[Glob], parts: Sequence[str]) -> bool:
    fitting = [glob for glob in globs if glob.matches(parts)]
    return not fitting[-1].negated


def _without_braces(patterns: Iterable[str], *, where: str) -> list[str]:
    pending = [*patterns][::-1]
    plain: list[str] = []
    while pending:
        shared.refuse_too_many([*pending, *plain], where=where)
        pattern = pending.pop()
        found = _BRACES.search(pattern)
        if found is None:
            plain.append(pattern)
            continue
        before, after = pattern[: found.start()], pattern[found.end() :]
        pending += [f"{before}{text}{after}" for text in reversed(found[1].split(","))]
    return plain
