"""A repository on GitHub or GitHub Enterprise Server, and its releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from releasekit.announce.forge import Asset, ForgeRelease, LookAgain
from releasekit.announce.forge_requests import (
    REFUSED,
    ForgeClient,
    check_tag,
    keep_page,
    list_pages,
    make_strange_error,
    parse_answer,
    write_json,
)
from releasekit.host.ci import API_URL
from releasekit.report.text import minutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    import httpx

    from releasekit.announce.forge import Draft, Upload
    from releasekit.errors import Rejected
    from releasekit.http.github import GitHub


_PER_PAGE: Final = 100
# "Only the first 10000 results are available."
# https://docs.github.com/en/rest/releases/releases#list-releases
_MAX_PAGES: Final = 100
# "In general", and of one user; GitHub Enterprise Server has no such limits by default.
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api (November 2026)
CREATED_IN_A_MINUTE: Final = 80
CREATED_IN_AN_HOUR: Final = 500
# https://docs.github.com/en/actions/security-for-github-actions/security-guides/automatic-token-authentication
_PERMISSION: Final = (
    "Give the job the permission `contents: write` (`permissions: contents: write`), or a "
    "`forge-token` that has it."
)
_WRONG_LOGIN: Final = (
    "`forge-token` has to be a token of this GitHub; leave it out for the job's own."
)


def describe_pace(releases: int, *, assets: int) -> str:
    """How long github.com takes for so many releases, each with so many assets; empty below its
    limits. A release is created, gets its assets, and is published: these limits come before that
    of a GITHUB_TOKEN, 1,000 requests in an hour.
    """
    requests = releases * (2 + assets)
    within, an_hour = CREATED_IN_A_MINUTE, CREATED_IN_AN_HOUR
    if requests <= within:
        return ""
    lasts_s = max((requests - 1) // within * 60.0, (requests - 1) // an_hour * 3600.0)
    return (
        f"announcing {releases} releases takes about {minutes(lasts_s)}: GitHub takes {within} "
        f"requests that create something in a minute, and {an_hour} in an hour. The next run makes "
        "what is missing"
    )


def make_cures(permission: str) -> dict[int, str]:
    """By the status of an answer; `permission` is what the job needs."""
    return {
        401: _WRONG_LOGIN,
        403: permission,
        404: f"Check {API_URL}, if it is set. GitHub says so too to those who may not see the "
        f"repository. {permission}",
        422: REFUSED,
    }


class GitHubRepository(ForgeClient, frozen=True):
    """`repository` is OWNER/NAME."""

    api: GitHub
    cures: ClassVar[Mapping[int, str]] = make_cures(_PERMISSION)

    def at(self, path: str) -> httpx.URL:
        return self.api.at(f"{self.repository}{path}")

    def has_changed(self, error: Rejected) -> bool:
        """https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api"""
        return error.status in {409, 422}


class GitHubReleases(GitHubRepository, frozen=True):
    """With `leaves_drafts`, others publish them.

    https://docs.github.com/en/rest/releases/releases
    """

    leaves_drafts: bool = False

    async def releases(self) -> tuple[ForgeRelease, ...]:
        """https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api"""

        def get(page: int) -> Awaitable[httpx.Response]:
            query = f"per_page={_PER_PAGE}&page={page}".encode()
            return self.ask("GET", self._at("").copy_with(query=query))

        what = "GitHub's list of releases"
        found = list_pages(get, what, size=_PER_PAGE, most=_MAX_PAGES)
        return tuple([parse_release(each) async for each in found])

    async def latest(self) -> str:
        """https://docs.github.com/en/rest/releases/releases#get-the-latest-release"""
        response = await self.ask("GET", self._at("/latest"), missing=True)
        return "" if response.status_code == 404 else parse_release(parse_answer(response)).tag

    async def require_tag(self, draft: Draft) -> None:
        """GitHub makes a tag that is missing, at the head of its default branch.

        https://docs.github.com/en/rest/git/refs#get-a-reference
        """
        url = self.at(f"/git/ref/tags/{quote(draft.tag)}")
        response = await self.ask("GET", url, missing=True)
        found = "" if response.status_code == 404 else _parse_tag(parse_answer(response))
        check_tag(draft, found, "GitHub", self.repository)

    async def create(self, draft: Draft) -> ForgeRelease:
        """Without `target_commitish`: the tag is there, and GitHub is to make none.

        https://docs.github.com/en/rest/releases/releases#create-a-release
        """
        content = {
            "tag_name": draft.tag,
            "name": draft.title,
            "body": draft.body,
            "draft": True,
            "prerelease": draft.prerelease,
        }
        response = await self.ask("POST", self._at(""), content=write_json(content))
        return parse_release(parse_answer(response))

    async def upload(self, release: ForgeRelease, upload: Upload) -> Asset:
        """https://docs.github.com/en/rest/releases/assets#upload-a-release-asset"""
        url = self.api.uploads_at(release.uploads).copy_merge_params({"name": upload.name})
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(upload.size)}
        response = await self.ask("POST", url, content=upload.content, headers=headers)
        asset = parse_asset(parse_answer(response))
        if not asset.finished or asset.digest not in {"", f"sha256:{upload.sha256}"}:
            raise LookAgain(f"{upload.name} has not arrived whole at GitHub")
        return asset

    async def drop_unfinished(self, _release: ForgeRelease, asset: Asset) -> None:
        """One of state `starter`, which "can be safely deleted".

        https://docs.github.com/en/rest/releases/assets#upload-a-release-asset
        """
        await self.ask("DELETE", self._at(f"/assets/{asset.id}"), missing=True)

    async def publish(self, release: ForgeRelease, *, latest: bool) -> ForgeRelease:
        """https://docs.github.com/en/rest/releases/releases#update-a-release"""
        content: dict[str, object] = {"body": release.body}
        if not self.leaves_drafts:
            content |= {"draft": False, "make_latest": "true" if latest else "false"}
        response = await self.ask("PATCH", self._at(f"/{release.id}"), content=write_json(content))
        published = parse_release(parse_answer(response))
        if published.draft != self.leaves_drafts:
            is_draft = "still a draft" if published.draft else "published"
            raise LookAgain(f"the release {release.tag} is {is_draft} at GitHub")
        return published

    @property
    def draft_hint(self) -> str:
        """https://cli.github.com/manual/gh_release_edit"""
        if not self.leaves_drafts:
            return ""
        return (
            "`gh release edit TAG --draft=false --latest=false` publishes it, or `--latest` as the "
            f'latest one. In the API: PATCH {self._at("/ID")} with {{"draft": false, '
            '"make_latest": "false"}.'
        )

    def _at(self, path: str) -> httpx.URL:
        return self.at(f"/releases{path}")


def _parse_tag(document: object) -> str:
    match document:
        case {"object": {"sha": str(oid)}}:
            return oid
        case _:
            raise make_strange_error("a tag")


def parse_release(document: object, forge: str = "GitHub") -> ForgeRelease:
    match document:
        case {
            "tag_name": str(tag),
            "id": int(number),
            "draft": bool(draft),
            "prerelease": bool(prerelease),
            "html_url": str(url),
            "upload_url": str(uploads),
            "assets": list(assets),
            **rest,
        }:
            body = rest.get("body")
            return ForgeRelease(
                tag=tag,
                id=number,
                draft=draft,
                prerelease=prerelease,
                body=body if isinstance(body, str) else "",
                url=keep_page(url),
                assets=tuple(parse_asset(each, forge) for each in assets),
                uploads=uploads,
                immutable=rest.get("immutable") is True,
            )
        case _:
            raise make_strange_error("a release", forge)


def parse_asset(document: object, forge: str = "GitHub") -> Asset:
    """`digest` is null for what was uploaded before GitHub had it; Gitea has neither that nor a
    `state`.

    https://github.blog/changelog/2025-06-03-releases-now-expose-digests-for-release-assets/
    """
    match document:
        case {"name": str(name), "id": int(number), "size": int(size), **rest}:
            digest = rest.get("digest")
            return Asset(
                name=name,
                digest=digest if isinstance(digest, str) else "",
                size=size,
                finished=rest.get("state", "uploaded") == "uploaded",
                id=number,
            )
        case _:
            raise make_strange_error("an asset", forge)
