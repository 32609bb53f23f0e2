"""A package that may get a version, with what each stage of the decision finds of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from releasekit.decided import Standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.decided import Source, VersionIntent
    from releasekit.git.versions import Reader
    from releasekit.model import Package, PackageId


class LastRelease(Struct, frozen=True, kw_only=True):
    """`version` is canonical, and empty before the first release. Its changes are those of the
    first `base` commits of the line; those from `tagged` on were in the released version already,
    and so was what `beside` has, the commit of a tag on a branch that was merged since. `taken` are
    versions that have a tag, among them all higher ones, each with its commit. A `guessed` one has
    no tag. What the first `fresh` commits of the line have is in no prerelease yet; -1 where one is
    written that no commit has. `prerelease` is the highest one of a package that had nothing else.
    `similar_tags` may be of one that seems new.
    """

    version: str = ""
    base: int = 0
    tagged: int = 0
    beside: str = ""
    taken: Mapping[str, str] = field(default_factory=dict)
    guessed: bool = False
    fresh: int = 0
    prerelease: str = ""
    similar_tags: Sequence[str] = ()


class Candidate(Struct, frozen=True, kw_only=True):
    """`read_version` reads its version off another commit. `tag` is the name of its tags, with NUL
    in the place of the version, and `label` that of its next version, empty for a stable one.
    `shared` is a name of no package, for all whose version stands in one place.

    `release` is known after `find_releases`. `intents` are what is asked of it since then, those of
    change files first; `unclear` are the commits that change it and do not say what they ask for,
    the newest first.
    """

    package: Package
    read_version: Reader
    tag: str = "\0"
    label: str = ""
    shared: PackageId | None = None
    release: LastRelease = LastRelease()
    intents: Sequence[VersionIntent] = ()
    unclear: Sequence[Source] = ()

    @property
    def id(self) -> PackageId:
        return self.package.id

    @property
    def standing(self) -> Standing:
        mark = "v" if self.id.ecosystem == "go" else ""
        return Standing(
            package=self.id,
            written=self.package.version.removeprefix(mark),
            released=self.release.version,
            prerelease=self.release.prerelease,
            taken=self.release.taken,
            label=self.label,
        )
