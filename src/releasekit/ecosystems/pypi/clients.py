"""What pip and uv take, and how uv gets a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from releasekit.ecosystems.clients import Clients, Trial
from releasekit.ecosystems.pypi.distribution import find_pinned_apart
from releasekit.ecosystems.pypi.environment import INTERFERING
from releasekit.ecosystems.pypi.manifest import is_pin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi.registry import PackageIndex
    from releasekit.model import Package


class PyPIClients(Clients):
    """`index` is None for a directory."""

    takes_hidden = staticmethod(is_pin)
    find_pinned_apart = staticmethod(find_pinned_apart)

    def __init__(self, uv: str = "uv", index: PackageIndex | None = None) -> None:
        self._uv = uv
        self._index = index

    def takes_instead(self, requirement: str, hidden: str, other: str) -> bool:
        """As pip: no prerelease, unless the requirement names one or has no final version to fit,
        of which a yanked one counts. uv counts none of those, so it takes the prerelease.

        https://packaging.pypa.io/en/stable/specifiers.html#packaging.specifiers.SpecifierSet.filter
        and https://docs.astral.sh/uv/concepts/resolution/#pre-release-handling
        """
        named = SpecifierSet(requirement).prereleases
        return bool(named or Version(hidden).is_prerelease) or not Version(other).is_prerelease

    async def read_asked(self, package: Package) -> Mapping[str, str]:
        return await self._index.read_asked(package) if self._index else {}

    def try_out(self, package: Package, shared: Path, /) -> Trial:
        """Wheels alone: to ask a source distribution can mean to build it."""
        # The extra index comes first, and of a name that it has, nothing else counts.
        # https://docs.astral.sh/uv/concepts/indexes/#searching-across-multiple-indexes
        index = self._index.index_url if self._index else ""
        lines = [f"--extra-index-url {index}", f"{package.id.name}=={package.version}"]
        asked = ("pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:")
        return Trial(
            argv=(self._uv, *asked, "requirements.in"),
            files={"requirements.in": "\n".join(lines)},
            env={**dict.fromkeys(INTERFERING), "UV_CACHE_DIR": str(shared)},
        )
