"""Which directories a glob of workspace members names, as uv does it."""

from __future__ import annotations

import re
from fnmatch import translate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared import globs
from releasekit.errors import ConfigError
from releasekit.host.files import inside

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST: Final = "pyproject.toml"
_SEARCH: Final = globs.Search(marker=MANIFEST, links=True)
_WILDCARD: Final = re.compile(r"[*?\[]")


def members(
    root: Path, patterns: tuple[str, ...], exclude: tuple[str, ...], *, where: str
) -> list[Path]:
    """The directories with a pyproject.toml that the globs name, resolved, sorted.

    `where` is the file and key the globs stand in, for messages. Raises ConfigError for a glob or
    a symbolic link that leaves `root`, and for one without wildcards that names no package.
    """
    globs.refuse_too_many((*patterns, *exclude), where=where)
    parsed = [globs.Glob.parse(pattern, where=where) for pattern in patterns]
    # uv matches `exclude` against the whole path, where a `*` also matches a slash.
    # https://docs.rs/glob/latest/glob/struct.MatchOptions.html (require_literal_separator)
    excluded = [re.compile(translate(str(PurePosixPath(pattern)))) for pattern in exclude]

    def is_excluded(directory: Path) -> bool:
        relative = directory.relative_to(root).as_posix()
        return any(pattern.fullmatch(relative) for pattern in excluded)

    for pattern in patterns:
        if not _WILDCARD.search(pattern):
            _check_literal(root / pattern, is_excluded(root / pattern), f"{where}: {pattern!r}")
    found = _SEARCH.directories(root, parsed, where=where)
    return sorted({inside(root, path, where=where) for path in found if not is_excluded(path)})


def _check_literal(directory: Path, excluded: bool, where: str) -> None:
    if directory.is_dir() and (excluded or (directory / MANIFEST).is_file()):
        return
    what = "has no pyproject.toml" if directory.is_dir() else "is not a directory"
    raise ConfigError(f"{where} {what}", hint="Remove the entry, or correct the path.")
