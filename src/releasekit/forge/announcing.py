"""Releases at a forge, one after another: look what is there, and do what is missing."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from releasekit.announced import Announcement, Status
from releasekit.errors import Denied, PackageError, Rejected, Transient
from releasekit.forge.interface import LookAgain
from releasekit.http.client import retry
from releasekit.notes.versions import is_stable, order
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from releasekit.forge.interface import Draft, Forge, ForgeRelease

# At the end of a body. Whoever edits the text keeps it, and the release stays ours.
_MARKER: Final = re.compile(r"<!-- releasekit: [^\s<>]+ sha256:[0-9a-f]{64} -->\s*\Z")
_VERSION_AT: Final = re.compile(r"(?:^|[-/@_]|(?<=[a-z])(?=\d))v?(\d+(?:\.\d+)+.*)\Z")


def marked(draft: Draft) -> Draft:
    """With the end of the body by which the next run knows it."""
    sha256 = hashlib.sha256(draft.body.encode()).hexdigest()
    name = draft.object or quote(draft.tag, safe="/@+.")
    body = f"{draft.body.rstrip()}\n\n<!-- releasekit: {name} sha256:{sha256} -->\n"
    return replace(draft, body=body)


def standing(tag: str, releases: Sequence[ForgeRelease]) -> Announcement:
    """What the forge has of a tag: what is published counts first, then a draft of ours."""
    release = _of(tag, releases)
    if release is None or (release.draft and is_ours(release)):
        return Announcement(tag=tag, status=Status.WANTED)
    if is_ours(release):
        return Announcement(tag=tag, status=Status.THERE, url=release.url)
    kind = "a draft" if release.draft else "a release"
    return Announcement(
        tag=tag,
        status=Status.FOREIGN,
        url=release.url,
        note=f"{kind} of the tag {tag} is there that ReleaseKit has not made; it is left as it is",
        hint="Nothing has to be done. Delete it, and the next run makes one of its own.",
    )


def is_ours(release: ForgeRelease) -> bool:
    return _MARKER.search(release.body[-1_000:]) is not None


def _of(tag: str, releases: Sequence[ForgeRelease]) -> ForgeRelease | None:
    """The first of those of this tag: a forge may have several drafts of one."""
    same = [each for each in releases if each.tag == tag]
    return min(same, key=lambda each: (each.draft, not is_ours(each), each.id), default=None)


async def announce(
    drafts: Sequence[Draft], forge: Forge, *, tell: Callable[[str], None]
) -> dict[str, Announcement]:
    """What became of each, by its tag; nothing is raised for one that is owed."""
    done: dict[str, Announcement] = {}
    try:
        announcing = _Announcing(forge, await forge.releases(), await _highest(drafts, forge))
    except PackageError as error:
        return {each.tag: _owed(each, error) for each in drafts}
    denied: PackageError | None = None
    for draft in drafts:
        if denied is not None:
            done[draft.tag] = _owed(draft, denied)
            continue
        try:
            attempt = partial(announcing.finish, marked(draft))
            done[draft.tag] = await retry(attempt, forge.policy)
        except PackageError as error:
            # Nor is a limit there for one release alone: it is asked for no other meanwhile.
            limited = isinstance(error, Transient) and error.limited
            denied = error if limited or isinstance(error, Denied) else None
            done[draft.tag] = _owed(draft, error)
        status = done[draft.tag].status
        tell(f"{'announced' if status.done else status.value} {draft.tag}")
    return done


def _owed(draft: Draft, error: PackageError) -> Announcement:
    return Announcement(
        tag=draft.tag,
        status=Status.OWED,
        note=str(error).rstrip("."),
        hint=error.hint,
        problem=Problem.NOT_ANNOUNCED,
    )


async def _highest(drafts: Sequence[Draft], forge: Forge) -> str:
    """The tag of the one that is to be the latest; empty where that is a release already there."""
    stable = [each for each in drafts if not each.prerelease and is_stable(each.version)]
    if not stable:
        return ""
    highest = max(stable, key=lambda each: order(each.version))
    before = _VERSION_AT.search(await forge.latest())
    if before and order(before[1]) > order(highest.version):
        return ""
    return highest.tag


@dataclass(slots=True)
class _Announcing:
    """`known` is what the forge had when it was asked last; empty where it has to be asked."""

    forge: Forge
    known: Sequence[ForgeRelease] | None
    latest: str

    async def finish(self, draft: Draft) -> Announcement:
        """Everything that is missing of one. Raises LookAgain where it is to be called again."""
        try:
            return await self._finish(draft)
        except Transient as error:
            # Whoever asked has tried it again for as long as it is worth.
            if isinstance(error, LookAgain) or error.limited:
                raise
            return _owed(draft, error)

    async def _finish(self, draft: Draft) -> Announcement:
        releases, self.known = self.known, None
        if releases is None:
            releases = await self.forge.releases()
        found = standing(draft.tag, releases)
        if found.status is Status.WANTED:
            found = await self._make(draft, _of(draft.tag, releases))
        self.known = releases
        return found

    async def _make(self, draft: Draft, release: ForgeRelease | None) -> Announcement:
        await self.forge.require_tag(draft)
        if release is None:
            release = await self.forge.create(draft)
        there = {each.name: each for each in release.assets}
        for upload in draft.assets:
            asset = there.get(upload.name)
            if asset is not None and not asset.finished:
                await self.forge.drop_unfinished(release, asset)
                asset = None
            if asset is None:
                await self.forge.upload(release, upload)
            elif not upload.by_name and (
                asset.digest not in {"", f"sha256:{upload.sha256}"} or asset.size != upload.size
            ):
                raise Rejected(
                    f"the draft of {draft.tag} has another file as {upload.name}",
                    hint="Delete that draft; the next run makes it again.",
                    problem=Problem.OTHER_BYTES,
                )
        published = await self.forge.publish(release, latest=draft.tag == self.latest)
        return Announcement(tag=draft.tag, status=Status.MADE, url=published.url)
