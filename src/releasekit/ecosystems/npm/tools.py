"""What npm packages are packed by, looked for before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.documents import text_in
from releasekit.errors import ConfigError
from releasekit.host.files import read_head
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.host.process import Processes
    from releasekit.model import Package

# Since npm 9 a list of files comes from a tree:
# https://github.com/npm/npm-packlist/releases/tag/v6.0.0
OLDEST: Final = 9
_MAX_BYTES: Final = 1024 * 1024
INSTALL: Final = (
    f"npm packages are packed by npm's own rules: install Node.js with npm {OLDEST} or later "
    "(actions/setup-node does), or leave npm out with `ecosystem`."
)


def missing_tool(packages: Sequence[Package], processes: Processes) -> ConfigError | None:
    """Why none of `packages` could be packed; reads a file at most."""
    if all(package.prebuilt for package in packages):
        return None
    for tool in ("node", "npm"):
        if processes.which(tool) is None:
            return ConfigError(f"npm: {tool} is not on PATH", hint=INSTALL)
    version = _version_of(Path(processes.which("npm") or ""))
    major = version.partition(".")[0]
    if major.isdecimal() and int(major) < OLDEST:
        return ConfigError(f"npm: the npm on PATH is {version}, too old to pack with", hint=INSTALL)
    return None


def _version_of(npm: Path) -> str:
    """Of the package that the program belongs to; empty where it lies elsewhere, as with shims."""
    try:
        manifest = npm.resolve().parents[1] / "package.json"
        document = parse_json(read_head(manifest, _MAX_BYTES))
    except (OSError, ValueError, IndexError):
        return ""
    return text_in(document, "version") if text_in(document, "name") == "npm" else ""
