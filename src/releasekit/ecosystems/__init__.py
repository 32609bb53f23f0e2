"""The ecosystems releasekit knows: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems import cargo, go, maven, npm, pypi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services, Target

TARGETS: Mapping[str, Callable[[Config, Services], Target]] = {
    "pypi": pypi.target,
    "npm": npm.target,
    "cargo": cargo.target,
    "go": go.target,
    "maven": maven.target,
}
