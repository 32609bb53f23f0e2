"""A project on GitLab, and its releases. GitLab has no drafts: the files come first, as a generic
package for each tag, and then one request makes the release with links to them. A run that is
killed on the way leaves nothing that anybody sees, and the next one goes on with its files.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote, urlencode

from msgspec import field

from releasekit.announce.forge import Asset, ForgeRelease, LookAgain
from releasekit.announce.forge_requests import (
    ForgeClient,
    check_tag,
    keep_page,
    list_pages,
    make_strange_error,
    parse_answer,
    write_json,
)
from releasekit.config.inputs import FORGE_TOKEN
from releasekit.errors import Rejected
from releasekit.http.forge_api import ForgeApi
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    import httpx

    from releasekit.announce.forge import Draft, Upload

# https://docs.gitlab.com/api/rest/#offset-based-pagination
_PER_PAGE: Final = 100
# "an offset limit that defaults to 50,000"
_MAX_PAGES: Final = 500
# The generic package that holds the files of releases; its versions are the tags.
PACKAGE: Final = "releases"
# A version has none but these, and no two dots together, which tags have not either.
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/gitlab/regex/packages.rb
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")
_MAX_VERSION: Final = 200
# What GitLab takes as the path of a permanent link.
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/models/releases/link.rb
_LINKED: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{1,124}[A-Za-z0-9]")
# What a second request meets whose first one was not answered yet.
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/app/models/release.rb
# https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/api/generic_packages.rb
_TAKEN: Final = re.compile(r"already been taken|Duplicate package is not allowed")
# https://docs.gitlab.com/user/project/repository/#repository-path-changes
MOVED: Final = "The project has another path now: correct the URL of the git remote, or `forge`."
_OTHERS: Final = f"{FORGE_TOKEN.variable} to a project access token with the scope `api`"
_CURES: Final = {
    301: MOVED,
    401: f"Set {_OTHERS}, or leave it out for the token of a job.",
    # https://docs.gitlab.com/user/project/protected_tags/
    403: "A job may do what the user who started it may: let somebody start it who has the role "
    f"Developer at least, and may create this tag if it is protected; or set {_OTHERS}.",
    # https://docs.gitlab.com/ci/jobs/ci_job_token/#troubleshooting
    404: "GitLab says so too to those who may not see the project. Check `forge`, and in *Settings "
    "> General > Visibility* that releases and the package registry are on; or set "
    f"{_OTHERS}.",
}


class GitLab(ForgeApi, frozen=True, kw_only=True):
    """`is_of_job` for the token of a job of GitLab CI/CD."""

    is_of_job: bool = False

    def log_in(self) -> dict[str, str]:
        """https://docs.gitlab.com/api/rest/authentication/"""
        name = "JOB-TOKEN" if self.is_of_job else "PRIVATE-TOKEN"
        return {
            name: self.token.reveal() if self.token else "",
            "Content-Type": "application/json",
        }


class GitLabReleases(ForgeClient, frozen=True):
    """Of the project `repository`, GROUP/…/NAME. `_drafts` are those that `create` was asked for.

    https://docs.gitlab.com/api/releases/
    """

    cures: ClassVar[Mapping[int, str]] = _CURES
    repeatable: ClassVar[frozenset[str]] = frozenset({"GET"})
    _drafts: dict[str, Draft] = field(default_factory=dict)

    def has_changed(self, error: Rejected) -> bool:
        """Or the tag is not there yet."""
        is_taken = error.status == 400 and _TAKEN.search(str(error)) is not None
        return is_taken or error.status in {409, 422}

    async def releases(self) -> tuple[ForgeRelease, ...]:
        """GitLab remembers for five minutes what the list shows of a release, but not which there
        are, and anew once a release is changed.

        https://gitlab.com/gitlab-org/gitlab/-/blob/master/lib/api/releases.rb
        """
        found = await self._list("/releases", "releases")
        return tuple(map(_parse_release, found))

    async def latest(self) -> str:
        """GitLab shows the newest release as the latest one, whatever its version.

        https://docs.gitlab.com/user/project/releases/#permanent-link-to-latest-release
        """
        return ""

    async def require_tag(self, draft: Draft) -> None:
        """GitLab would refuse a release without a tag. A job token may list tags, and not ask for
        one; upper and lower case are the same to a search.

        https://docs.gitlab.com/api/tags/#list-all-project-repository-tags
        """
        listed = await self._list("/repository/tags", "tags", search=f"^{draft.tag}$")
        found = dict(map(_parse_tag, listed)).get(draft.tag, "")
        check_tag(draft, found, "GitLab", self.repository)

    async def create(self, draft: Draft) -> ForgeRelease:
        """Nothing yet; its assets are the files that an earlier attempt has uploaded."""
        there = await self._list_files(draft.tag) if draft.assets else {}
        for each in draft.assets:
            asset = there.get(each.name)
            if asset and not each.by_name and asset.digest != f"sha256:{each.sha256}":
                raise Rejected(
                    f"the package {PACKAGE} {name_version(draft.tag)} of {self.repository} has "
                    f"another file as {each.name}",
                    hint="Delete that package in *Deploy > Package registry*; the next run uploads "
                    "its files again.",
                    problem=Problem.OTHER_BYTES,
                )
        self._drafts[draft.tag] = draft
        return ForgeRelease(
            tag=draft.tag,
            id=0,
            draft=True,
            prerelease=draft.prerelease,
            body=draft.body,
            url="",
            assets=tuple(there[each.name] for each in draft.assets if each.name in there),
        )

    async def upload(self, release: ForgeRelease, upload: Upload) -> Asset:
        """A second upload of a name would be a second file, so none is repeated blindly.

        https://docs.gitlab.com/user/packages/generic_packages/#publish-a-single-file
        """
        url = self._file(release.tag, upload.name).copy_with(query=b"select=package_file")
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(upload.size)}
        response = await self.ask("PUT", url, content=upload.content, headers=headers)
        asset = _parse_file(parse_answer(response, "GitLab"))
        if asset.digest != f"sha256:{upload.sha256}":
            raise LookAgain(f"{upload.name} has not arrived whole at GitLab")
        return asset

    async def drop_unfinished(self, _release: ForgeRelease, _asset: Asset) -> None:
        """GitLab shows no file before it is whole."""

    async def publish(self, release: ForgeRelease, *, latest: bool) -> ForgeRelease:  # noqa: ARG002
        """Without `ref`: the tag is there, and GitLab is to make none.

        https://docs.gitlab.com/api/releases/#create-a-release
        """
        draft = self._drafts[release.tag]
        content = {
            "tag_name": draft.tag,
            "name": draft.title,
            "description": release.body,
            "assets": {"links": [self._link(draft.tag, each.name) for each in draft.assets]},
        }
        response = await self.ask("POST", self._at("/releases"), content=write_json(content))
        return _parse_release(parse_answer(response, "GitLab"))

    def _link(self, tag: str, name: str) -> dict[str, str]:
        """With the path of a permanent link, `…/-/releases/TAG/downloads/NAME`, where GitLab takes
        it as one.
        """
        link = {"name": name, "url": str(self._file(tag, name)), "link_type": "package"}
        return link | ({"direct_asset_path": f"/{name}"} if _LINKED.fullmatch(name) else {})

    async def _list_files(self, tag: str) -> dict[str, Asset]:
        """By name, the newest of each, which is what GitLab gives to those who ask for it.

        https://docs.gitlab.com/api/packages/
        """
        version = name_version(tag)
        # Names are searched for, and versions compared, since GitLab 16.6.
        query = {"package_type": "generic", "package_name": PACKAGE, "package_version": version}
        packages = dict(map(_parse_package, await self._list("/packages", "packages", **query)))
        number = packages.get((PACKAGE, version))
        if number is None:
            return {}
        files = await self._list(f"/packages/{number}/package_files", "files")
        assets = sorted(map(_parse_file, files), key=lambda asset: asset.id)
        return {asset.name: asset for asset in assets}

    async def _list(self, path: str, what: str, **query: str) -> list[object]:
        def get(page: int) -> Awaitable[httpx.Response]:
            asked = urlencode({**query, "per_page": _PER_PAGE, "page": page}, quote_via=quote)
            return self.ask("GET", self._at(path).copy_with(query=asked.encode()))

        found = list_pages(get, f"GitLab's list of {what}", size=_PER_PAGE, most=_MAX_PAGES)
        return [each async for each in found]

    def _file(self, tag: str, name: str) -> httpx.URL:
        return self._at(f"/packages/generic/{PACKAGE}/{name_version(tag)}/{quote(name)}")

    def _at(self, path: str) -> httpx.URL:
        return self.api.at(f"projects/{quote(self.repository, safe='')}{path}")


def name_version(tag: str) -> str:
    """The version of the package with the files of this tag; one that was changed ends with a hash
    of the tag, so that no two tags share one.
    """
    safe = _UNSAFE.sub("-", tag)[:_MAX_VERSION]
    return safe if safe == tag else f"{safe}-{hashlib.sha256(tag.encode()).hexdigest()[:8]}"


def _parse_tag(document: object) -> tuple[str, str]:
    """Its name and the tag object, or the commit of a lightweight one."""
    match document:
        case {"name": str(name), "target": str(oid)}:
            return name, oid
        case _:
            raise make_strange_error("a tag", "GitLab")


def _parse_release(document: object) -> ForgeRelease:
    match document:
        case {"tag_name": str(tag), "_links": {"self": str(url)}, **rest}:
            body = rest.get("description")
            return ForgeRelease(
                tag=tag,
                id=0,
                draft=False,
                prerelease=False,
                body=body if isinstance(body, str) else "",
                url=keep_page(url),
            )
        case _:
            raise make_strange_error("a release", "GitLab")


def _parse_package(document: object) -> tuple[tuple[str, str], int]:
    """Its name and version, and its id."""
    match document:
        case {"name": str(name), "version": str(version), "id": int(number)}:
            return (name, version), number
        case _:
            raise make_strange_error("a package", "GitLab")


def _parse_file(document: object) -> Asset:
    """https://docs.gitlab.com/api/packages/#list-package-files"""
    match document:
        case {
            "id": int(number),
            "file_name": str(name),
            "size": int(size),
            "file_sha256": str(sha256),
        }:
            return Asset(name=name, digest=f"sha256:{sha256}", size=size, finished=True, id=number)
        case _:
            raise make_strange_error("a file", "GitLab")
