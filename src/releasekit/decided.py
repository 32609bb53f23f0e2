"""Values: what changes ask of versions, and the versions that are decided."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, Literal

from msgspec import Struct, field

from releasekit.model import DependencyKind, PackageId
from releasekit.problems import Problem


class Level(IntEnum):
    """How much a change asks of its users; ordered."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


# What stands in the title of a release pull request for the packages.
TITLE_FIELD: Final = "{packages}"
Zero = Literal["shift", "minor", "literal"]
Propagate = Literal["needed", "always", "never"]
# What becomes of requirements on packages that get a new version.
Ranges = Literal["raise", "keep", "exact"]
Carry = Literal["", "patch", "same", "none"]


class Source(Struct, frozen=True, kw_only=True):
    """Where an intent is stated: in the message of a commit, or in a change file.

    `commit` states it, also one that was merged, or added the file: empty for a file that no commit
    has, and a beginning where a file names one that nothing is known of. `path` is that of the
    file, from the root of the workspace, empty for a commit. `title` is for one line: a subject as
    it was written, or the name of the file and its first line. `type` is that of a conventional
    commit, `text` what a changelog says of it, which is Markdown where there is a `path`. `time_s`
    is when it was committed, in seconds since 1970.
    """

    title: str
    text: str = ""
    type: str = ""
    breaking: bool = False
    commit: str = ""
    path: str = ""
    pull_request: int = 0
    time_s: int = 0


class VersionIntent(Struct, frozen=True, kw_only=True):
    """What one source asks for one package since its last stable release.

    `exact` is a version in place of a level. A `late` one was in the released version already,
    which was decided without it. One that is not `fresh` was in a prerelease already.
    """

    package: PackageId
    level: Level
    source: Source
    exact: str = ""
    late: bool = False
    fresh: bool = True


class Standing(Struct, frozen=True, kw_only=True):
    """One package as it stands.

    `written` is what its manifest says, `released` the highest stable version of this line, empty
    where there was none; the ecosystem's own spelling, without Go's `v`. `taken` are versions that
    have a tag anywhere, among them all higher ones, each with its commit. `label` is what its next
    version is a prerelease by, empty for a stable one. `prerelease` is the highest one that is out
    of a package that has released nothing else.
    """

    package: PackageId
    written: str
    released: str
    taken: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    prerelease: str = ""

    @property
    def last(self) -> str:
        """What is out; empty before a first release."""
        return self.released or self.prerelease


class Edge(Struct, frozen=True, kw_only=True):
    """What the published files of `dependent` ask of `on`: `requirement`, as published, `admits` a
    version or not. What releasekit.toml declares has no requirement, and a `carry`, unless it
    `only_orders`. Of an `optional` one, the dependent can be used without it. `packed` is the
    prerelease of the dependent whose files these are, empty where its last stable version counts.
    Two that ask the same are equal.
    """

    dependent: PackageId
    on: PackageId
    kind: DependencyKind = DependencyKind.RUNTIME
    requirement: str = ""
    admits: Callable[[str], bool] = lambda _: True
    carry: Carry = ""
    optional: bool = False
    packed: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edge) and self.asked == other.asked

    def __hash__(self) -> int:
        return hash(self.asked)

    @property
    def asked(self) -> tuple[PackageId, PackageId, DependencyKind, str, Carry]:
        return self.dependent, self.on, self.kind, self.requirement, self.carry

    @property
    def only_orders(self) -> bool:
        return self.kind is DependencyKind.EXTRA and not self.carry


class VersionGroup(Struct, frozen=True, kw_only=True):
    """Packages that share a version: all of them (`fixed`), or those that are released (`linked`).

    `place` is the file and key where a version of several packages stands, empty for a group that
    releasekit.toml declares.
    """

    name: str
    packages: tuple[PackageId, ...]
    kind: Literal["fixed", "linked"] = "fixed"
    place: str = ""


class Rules(Struct, frozen=True, kw_only=True):
    zero: Zero = "shift"
    propagate: Propagate = "needed"
    groups: tuple[VersionGroup, ...] = ()


class Reason(Struct, frozen=True, kw_only=True):
    """Why a package has the level it has, or none: exactly one of source, edge and group, or `rule`
    alone, a sentence of what was considered and left alone.
    """

    package: PackageId
    level: Level = Level.NONE
    source: Source | None = None
    edge: Edge | None = None
    group: VersionGroup | None = None
    rule: str = ""


class Bump(Struct, frozen=True, kw_only=True):
    """`level` is the highest that is asked for; below 1.0.0 less may come of it."""

    package: PackageId
    old: str
    new: str
    level: Level
    reasons: tuple[Reason, ...]


class Trouble(Struct, frozen=True, kw_only=True):
    """Why the version of a package cannot be decided or written, and what to do."""

    package: PackageId
    problem: Problem
    message: str
    hint: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    """Bumps in publish order: dependencies first, ties by name."""

    bumps: tuple[Bump, ...] = ()
    left_alone: tuple[Reason, ...] = ()
    troubles: tuple[Trouble, ...] = ()
