"""What a forge is: releases, each of one tag, made as drafts, filled, and published last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from releasekit.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.http.client import RetryPolicy
    from releasekit.model import Artifact


class LookAgain(Transient):
    """What was asked for may have happened, or somebody else was faster: the forge knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file of a release. `digest` is "sha256:…", empty where the forge tells none; one that is
    not `finished` is a name without a file.
    """

    name: str
    digest: str
    size: int
    finished: bool
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeRelease:
    """As the forge has it. `uploads` is where it takes assets."""

    tag: str
    id: int
    draft: bool
    prerelease: bool
    body: str
    url: str
    assets: tuple[Asset, ...] = ()
    uploads: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One file to be shown. With `by_name` another of that name will do, whatever is in it."""

    name: str
    content: bytes | Artifact
    sha256: str
    size: int
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What is to be said of a tag. `body` has no marker yet; `object` is the id of the tag."""

    tag: str
    title: str
    body: str
    prerelease: bool
    version: str = ""
    object: str = ""
    assets: tuple[Upload, ...] = ()


class Forge(Protocol):
    """Each raises PackageError. What may have happened without an answer raises LookAgain; what a
    forge limits is waited for, as `policy` says.
    """

    @property
    def policy(self) -> RetryPolicy: ...

    async def releases(self) -> Sequence[ForgeRelease]:
        """All of them, drafts too where whoever asks may write."""

    async def latest(self) -> str:
        """The tag of the release that is shown first; empty without one."""

    async def require_tag(self, draft: Draft) -> None:
        """Raises where the forge does not have the tag, or another one of that name: it would make
        one of its own, or tell of something else.
        """

    async def create(self, draft: Draft) -> ForgeRelease:
        """As a draft, which nobody sees."""

    async def upload(self, release: ForgeRelease, upload: Upload) -> Asset: ...

    async def drop_unfinished(self, release: ForgeRelease, asset: Asset) -> None:
        """An upload that broke off keeps the name that it was for."""

    async def publish(self, release: ForgeRelease, *, latest: bool) -> ForgeRelease: ...
