"""A forge, such as GitHub: releases of tags, created as drafts, filled, and published last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from releasekit.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.http.client import RetryPolicy
    from releasekit.model import Artifact, PackageId


class LookAgain(Transient):
    """The request may have taken effect, or something else was faster: ask the forge."""


class Asset(Struct, frozen=True, kw_only=True):
    """One file of a release. `digest` is "sha256:…", or empty where the forge does not tell. An
    asset that is not `finished` is a name without a file.
    """

    name: str
    digest: str
    size: int
    finished: bool
    id: int


class ForgeRelease(Struct, frozen=True, kw_only=True):
    """A release as the forge has it. `uploads` is the URL that takes its assets. Of one that is
    `immutable`, nothing changes any more but its texts.
    """

    tag: str
    id: int
    draft: bool
    prerelease: bool
    body: str
    url: str
    assets: tuple[Asset, ...] = ()
    uploads: str = ""
    immutable: bool = False


class Upload(Struct, frozen=True, kw_only=True):
    """One file to upload. With `by_name`, any existing file of that name will do, or of the name
    that such files had `formerly`.
    """

    name: str
    content: bytes | Artifact
    sha256: str
    size: int
    by_name: bool = False
    formerly: str = ""


class Draft(Struct, frozen=True, kw_only=True):
    """A release to create, of these `packages`. `body` has no marker yet; `object` is the id of the
    tag object.
    """

    tag: str
    title: str
    body: str
    prerelease: bool
    version: str = ""
    object: str = ""
    assets: tuple[Upload, ...] = ()
    packages: frozenset[PackageId] = frozenset()


class Forge(Protocol):
    """Every method raises PackageError, and LookAgain where a request may have taken effect without
    an answer. Rate limits are waited for as `policy` says.
    """

    @property
    def policy(self) -> RetryPolicy: ...

    @property
    def repository(self) -> str: ...

    @property
    def draft_hint(self) -> str:
        """How others publish the drafts that are left to them; empty where none are."""

    async def releases(self) -> Sequence[ForgeRelease]:
        """All releases, with drafts where the token may write."""

    async def latest(self) -> str:
        """The tag of the release marked as latest; empty without one."""

    async def require_tag(self, draft: Draft) -> None:
        """Raises where the forge lacks the tag or has another of that name: it would create another
        tag, or announce something else.
        """

    async def create(self, draft: Draft) -> ForgeRelease:
        """As a draft, visible to maintainers only."""

    async def upload(self, release: ForgeRelease, upload: Upload) -> Asset: ...

    async def drop_unfinished(self, release: ForgeRelease, asset: Asset) -> None:
        """An upload that broke off still occupies its name."""

    async def digest_of(self, release: ForgeRelease, asset: Asset) -> str:
        """As in `Asset`, of one that is there already; a forge may have to read the file."""

    async def publish(self, release: ForgeRelease, *, latest: bool) -> ForgeRelease:
        """With its body as it is here. Where drafts are left to others, only that changes."""
