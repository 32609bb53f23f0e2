"""Which deployments of a portal hold what, in the state directory: the portal itself is asked by an
id only, and tells nobody which one a release has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.maven.deployments import is_id
from releasekit.host import durable
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME: Final = "maven-deployment.json"
_MAX_BYTES: Final = 1024 * 1024
# Releases that wait, and those that have been published meanwhile.
_KEPT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """`release` is the digest of all its files, `packages` that of each package's, by its id;
    `automatic` ones are published by the portal itself.
    """

    id: str
    release: str
    automatic: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """Of the portal at the URL `portal`."""

    directory: Path
    portal: str

    def of_release(self, digest: str) -> Deployment | None:
        """The last that was made of it."""
        found = (each for each in reversed(self._read()) if each.release == digest)
        return next(found, None)

    def around(self, packages: Mapping[str, str]) -> Deployment | None:
        """The last one that has these packages with these files, and perhaps others."""
        found = (
            each for each in reversed(self._read()) if packages.items() <= each.packages.items()
        )
        return next(found, None)

    def of_package(self, package: str, digest: str) -> Deployment | None:
        """The last one that has these files of a package."""
        found = (each for each in reversed(self._read()) if each.packages.get(package) == digest)
        return next(found, None)

    def add(self, deployment: Deployment) -> None:
        rows = [
            {
                "deployment": each.id,
                "release": each.release,
                "automatic": each.automatic,
                "packages": dict(each.packages),
            }
            for each in [*self._read(), deployment][-_KEPT:]
        ]
        record = {"portal": self.portal, "deployments": rows}
        durable.replace(self.directory / NAME, json.dumps(record).encode() + b"\n")

    def _read(self) -> list[Deployment]:
        """Nothing of what is no record, or one of another portal."""
        try:
            record = parse_json(durable.read_file(self.directory / NAME, max_bytes=_MAX_BYTES))
        except (OSError, ValueError):
            return []
        if not isinstance(record, dict) or record.get("portal") != self.portal:
            return []
        # The record of an earlier version is that of one deployment.
        rows = record.get("deployments", [record])
        found = [_parsed(row) for row in rows if isinstance(row, dict)] if rows else []
        return [each for each in found if is_id(each.id)]


def _parsed(row: dict[str, Any]) -> Deployment:
    packages = row.get("packages")
    return Deployment(
        id=str(row.get("deployment") or ""),
        release=str(row.get("release")),
        automatic=row.get("automatic") is True,
        packages=packages if isinstance(packages, dict) else {},
    )
