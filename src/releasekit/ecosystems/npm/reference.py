"""What one dependency of a package.json asks for: a range, the workspace's own, a path, …"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from releasekit.ecosystems.npm.ranges import Range

Kind = Literal["workspace", "catalog", "range", "path", "elsewhere"]
_ALIAS: Final = re.compile(r"(?P<name>@?[^@/]+(?:/[^@/]+)?)@(?P<rest>.*)", re.DOTALL)
_PATH: Final = re.compile(r"(?:file|link|portal):(?P<path>.*)", re.DOTALL)
_RELATIVE: Final = re.compile(r"\.{1,2}(?:/.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reference:
    """`name` is the package it leads to (empty where only its path says), `wanted` the range, the
    marker (`^`, `~`, `*`), the catalog's name or the path.
    """

    kind: Kind
    name: str
    wanted: str

    @classmethod
    def parse(cls, key: str, spec: str) -> Reference:
        """https://pnpm.io/workspaces#workspace-protocol-workspace, https://pnpm.io/catalogs,
        https://docs.npmjs.com/cli/using-npm/package-spec
        """
        spec = spec.strip()
        if spec.startswith("catalog:"):
            return cls("catalog", key, spec.removeprefix("catalog:").strip() or "default")
        if spec.startswith("workspace:"):
            return cls._workspace(key, spec.removeprefix("workspace:").strip())
        if path := _PATH.fullmatch(spec):
            return cls("path", "", path["path"])
        if spec.startswith("npm:"):
            name, wanted = _alias(key, spec.removeprefix("npm:"))
            return cls("range" if is_range(wanted) else "elsewhere", name, wanted)
        if is_range(spec):
            return cls("range", key, spec)
        # A dist-tag of this package, or a URL or a repository of whatever it is.
        return cls("elsewhere", "" if re.search(r"[:/]", spec) else key, spec)

    @classmethod
    def _workspace(cls, key: str, wanted: str) -> Reference:
        if _RELATIVE.fullmatch(wanted):
            return cls("path", "", wanted)
        name, wanted = _alias(key, wanted, bare=False)
        wanted = wanted or "*"
        # Yarn takes anything else for a path from the root, and publishes the version there:
        # https://github.com/yarnpkg/berry/blob/master/packages/plugin-pack/sources/index.ts
        known = wanted in {"^", "~"} or is_range(wanted)
        return cls("workspace", name, wanted if known else "*")


def is_range(text: str) -> bool:
    try:
        Range.parse(text)
    except ValueError:
        return False
    return True


def _alias(key: str, text: str, *, bare: bool = True) -> tuple[str, str]:
    """Name and range of "name@range"; `bare`: a lone word is a name."""
    if found := _ALIAS.fullmatch(text):
        return found["name"], found["rest"]
    return (text, "*") if bare else (key, text)
