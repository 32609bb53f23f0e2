"""Where the versions of packages stand, and how the next ones are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.decided import Edge, Ranges
    from releasekit.git.versions import Read
    from releasekit.host.edits import Edits
    from releasekit.model import Package, PackageId


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVersions:
    """`by_tag` are packages whose version no file says, as their tag does. What `moved` had no
    version decided, and moves along with others, to which version; it may be of any ecosystem.
    """

    by_tag: frozenset[PackageId] = frozenset()
    moved: Mapping[PackageId, str] = field(default_factory=dict)


class Versioning:
    """Of the packages of one ecosystem; it starts no process. An ecosystem overrides what it knows
    better.
    """

    def find_untold(self, _package: Package, _tagged: Iterable[str], /) -> str:
        """The version to tell of a package that is not published for want of one: the last of those
        `tagged`, or else the first that it can have. Empty for any other package.
        """
        return ""

    def find_own_tag(self, _package: Package, /) -> str | None:
        """The tag by which the registry itself publishes the package, with all of its bytes: empty
        where nothing is pushed for it, and None for a registry that goes by no tags.
        """
        return None

    def find_source_tag(self, _package: Package, /) -> str:
        """The tag by which users get the same version from its repository, past the registry."""
        return ""

    def read_version(self, _package: Package, _read: Read, /) -> str:
        """What its manifests said at another time; empty where they did not say."""
        return ""

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        """By the place where it stands, the packages that share a version."""
        return {}

    def list_edges(self, _released: Mapping[str, str], /) -> Iterable[Edge]:
        """What the published files of each package ask of others here, as their manifests and
        today's pins have it. `released` maps canonical names to the versions that were published,
        which pins named then. What is never published, or excludes what stands here, asks nothing.
        """
        return ()

    def edit(
        self, _versions: Mapping[str, str], _edits: Edits, _ranges: Ranges, /
    ) -> WrittenVersions:
        """Write the next versions of packages, by canonical name, and bring along what stands here:
        requirements on these packages that exclude them, and lock files.

        With `raise`, requirements of packages that get a version themselves begin at the new one;
        with `exact`, those that name a version name it alone. What excludes the version that stands
        here means another one, and stays. Raises PlanError for what cannot be written exactly, with
        the file, the place and what to do.
        """
        return WrittenVersions()
