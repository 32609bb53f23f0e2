"""What the clients of a registry do with what was published there: those of its users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Artifact, Package


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the client of an ecosystem resolves one version and all that this needs, with nothing
    executed of any package: a command, in a new directory with these `files`. Of those that are
    `alone`, one runs at a time.
    """

    argv: Sequence[str]
    files: Mapping[str, str]
    env: Mapping[str, str | None] = field(default_factory=dict)
    alone: bool = False


class Clients:
    """Of one ecosystem, which overrides what it knows better."""

    def takes_hidden(self, _requirement: str, /) -> bool | None:
        """Whether they take a version that is hidden, as a yanked one, for a requirement; None
        where that is not known, or no version is ever hidden.
        """
        return None

    def takes_instead(self, _requirement: str, _hidden: str, _other: str, /) -> bool:
        """Whether they take another version, which the requirement admits, in place of a hidden
        one.
        """
        return True

    async def read_asked(self, _package: Package, /) -> Mapping[str, str]:
        """What the version that is there requires, by the names of packages, where
        `Published.asks` has nothing; empty where nothing tells.
        """
        return {}

    def find_pinned_apart(
        self, _artifacts: Sequence[Artifact], _versions: Mapping[str, str], /
    ) -> Sequence[str] | None:
        """Which of some packages those who use these files need in one version only, and in another
        than is given; blocks. Empty where the files are gone, and None where files do not tell.
        """
        return None

    def try_out(self, package: Package, shared: Path, /) -> Trial:
        """How a user gets the package from this registry, which is no directory. What clients fetch
        goes into `shared`, a directory of this run, so that nothing from before counts.
        """
        raise NotImplementedError
