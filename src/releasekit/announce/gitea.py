"""A repository on Gitea or Forgejo, and its releases. Their API is made after GitHub's."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from releasekit.announce.forge import LookAgain
from releasekit.announce.forge_requests import (
    ForgeClient,
    check_tag,
    list_pages,
    make_strange_error,
    parse_answer,
    write_json,
)
from releasekit.announce.github import parse_asset, parse_release
from releasekit.announce.releases import read_state
from releasekit.fields import replace
from releasekit.http.forge_api import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    import httpx

    from releasekit.announce.forge import Asset, Draft, ForgeRelease, Upload

# "MAX_RESPONSE_ITEMS: 50", and a server may have less.
# https://docs.gitea.com/administration/config-cheat-sheet#api-api
_PER_PAGE: Final = 50
_MAX_PAGES: Final = 1_000
# https://docs.gitea.com/usage/actions/permissions
_PERMISSION: Final = (
    "Give the job the permission `contents: write` (`permissions: contents: write`), or a "
    "`forge-token` with the scope `write:repository` of somebody who may write to it."
)


class GiteaReleases(ForgeClient, frozen=True):
    """Of `repository`, OWNER/NAME.

    Gitea looks at a pushed tag later, once it has answered, and publishes a draft that it finds
    there. So what tells a draft of ours from a release is its marker too.
    https://github.com/go-gitea/gitea/blob/v1.26.0/services/repository/push.go (pushUpdateAddTags)

    https://docs.gitea.com/api/1.26/#tag/repository/operation/repoCreateRelease
    """

    cures: ClassVar[Mapping[int, str]] = {
        401: "`forge-token` has to be a token of this server; leave it out for the job's own.",
        403: _PERMISSION,
        404: "Check `forge`, if it is set. It is said too to those who may not see the repository. "
        f"{_PERMISSION}",
    }

    async def releases(self) -> tuple[ForgeRelease, ...]:
        """How many a page has is for the server to say, so the last page is an empty one."""

        def get(page: int) -> Awaitable[httpx.Response]:
            query = f"limit={_PER_PAGE}&page={page}".encode()
            return self.ask("GET", self._at("").copy_with(query=query))

        found = list_pages(get, f"{self._name}'s list of releases", size=1, most=_MAX_PAGES)
        return tuple([self._parse(each) async for each in found])

    async def latest(self) -> str:
        """The newest one."""
        response = await self.ask("GET", self._at("/latest"), missing=True)
        return "" if response.status_code == 404 else self._read(response).tag

    async def require_tag(self, draft: Draft) -> None:
        """Gitea makes a tag that is missing, of its default branch."""
        url = self.api.at(f"repos/{self.repository}/tags/{quote(draft.tag)}")
        response = await self.ask("GET", url, missing=True)
        found = ""
        if response.status_code != 404:
            match parse_answer(response, self._name):
                case {"id": str(found)}:  # of the tag object
                    pass
                case _:
                    raise make_strange_error("a tag", self._name)
        check_tag(draft, found, self._name, self.repository)

    async def create(self, draft: Draft) -> ForgeRelease:
        """Without `target_commitish`: the tag is there, and Gitea is to make none."""
        content = {
            "tag_name": draft.tag,
            "name": draft.title,
            "body": draft.body,
            "draft": True,
            "prerelease": draft.prerelease,
        }
        return self._read(await self.ask("POST", self._at(""), content=write_json(content)))

    async def upload(self, release: ForgeRelease, upload: Upload) -> Asset:
        url = self._at(f"/{release.id}/assets").copy_merge_params({"name": upload.name})
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(upload.size)}
        response = await self.ask("POST", url, content=upload.content, headers=headers)
        asset = parse_asset(parse_answer(response, self._name), self._name)
        if asset.size != upload.size:
            raise LookAgain(f"{upload.name} has not arrived whole at {self._name}")
        return asset

    async def drop_unfinished(self, release: ForgeRelease, asset: Asset) -> None:
        """Gitea shows no file before it is whole, but may have two of one name."""
        await self.ask("DELETE", self._at(f"/{release.id}/assets/{asset.id}"), missing=True)

    async def digest_of(self, release: ForgeRelease, asset: Asset) -> str:
        """Gitea tells none, so this reads the file; empty for a very large one."""
        if asset.size > MAX_BYTES:
            return ""
        url = self._at(f"/{release.id}/assets/{asset.id}")
        match parse_answer(await self.ask("GET", url), self._name):
            case {"uuid": str(uuid)}:
                pass
            case _:
                raise make_strange_error("an asset", self._name)
        file = self.api.at(f"../../attachments/{quote(uuid, safe='')}")
        return f"sha256:{hashlib.sha256((await self.ask('GET', file)).content).hexdigest()}"

    async def publish(self, release: ForgeRelease, *, latest: bool) -> ForgeRelease:  # noqa: ARG002
        """Of files that two runs have uploaded, the first ones stay."""
        content = write_json({"draft": False, "body": release.body})
        published = self._read(await self.ask("PATCH", self._at(f"/{release.id}"), content=content))
        if published.draft:
            raise LookAgain(f"{self._name} has left the release {release.tag} a draft")
        first: dict[str, Asset] = {}
        for each in sorted(published.assets, key=lambda asset: asset.id):
            if first.setdefault(each.name, each) is not each:
                await self.drop_unfinished(release, each)
        return published

    @property
    def _name(self) -> str:
        return self.api.at("").host

    def _at(self, path: str) -> httpx.URL:
        return self.api.at(f"repos/{self.repository}/releases{path}")

    def _read(self, response: httpx.Response) -> ForgeRelease:
        return self._parse(parse_answer(response, self._name))

    def _parse(self, document: object) -> ForgeRelease:
        found = parse_release(document, self._name)
        return replace(found, draft=found.draft or read_state(found.body) == "draft")
