"""A cargo registry: its web API takes crates, and its sparse index shows them.

https://doc.rust-lang.org/cargo/reference/registry-web-api.html and
https://doc.rust-lang.org/cargo/reference/registry-index.html
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx
from msgspec import Struct

from releasekit.aio import Resource, uncancellable
from releasekit.ecosystems.cargo import crate_file, login, rates, sparse_index
from releasekit.ecosystems.cargo.rates import NEW_CRATES, NEW_VERSIONS, Limit, Pace
from releasekit.ecosystems.cargo.sparse_index import Home, request_body
from releasekit.ecosystems.preflight import Publisher, RightsFound, TrustState
from releasekit.ecosystems.shared.answers import ResponseRules, hints_by_status
from releasekit.ecosystems.shared.documents import text_in
from releasekit.ecosystems.shared.login import OidcAuth, TokenAuth, describe_untold
from releasekit.ecosystems.shared.rights import find_rights_at_gitea
from releasekit.ecosystems.shared.server import (
    MAX_FILE_BYTES,
    MAX_PAGE_BYTES,
    UPLOAD_TIMEOUT,
    RegistryClient,
    below,
)
from releasekit.errors import ConfigError, Denied, PackageError, Rejected, Transient
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.origins import describe_request, require_safe
from releasekit.model import SENT
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.shards import Shard
    from releasekit.config.values import TrustedPublishing
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.interface import Services
    from releasekit.host.artifact_reader import ArtifactReader
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage, Published

# https://doc.rust-lang.org/cargo/reference/publishing.html
_TOO_LARGE: Final = (
    "The crate is larger than the registry takes (crates.io: 10 MiB), or a proxy in front of it: "
    "leave out unneeded files, by `exclude` or `include` in [package]; `cargo package --list` "
    "shows what goes in."
)
_HINTS: Final = {
    "verified email address": "Verify one at https://crates.io/settings/profile; nothing was "
    "published.",
    "too many new crates": "crates.io takes 5 new crates, then one every 10 minutes. Ask "
    "help@crates.io for more: https://crates.io/docs/rate-limits",
    "too many updates": "crates.io takes 30 new versions, then one a minute: "
    "https://crates.io/docs/rate-limits",
    "not be an owner": "Have an owner invite you: cargo owner --add USER CRATE.",
    "an owner": "The token belongs to somebody who does not own this crate.",
    "missing or empty metadata": "Write what is missing into [package], or [workspace.package]: "
    "https://doc.rust-lang.org/cargo/reference/publishing.html",
    "max upload size": _TOO_LARGE,
    "Trusted Publishing tokens do not support creating new crates": "Use cargo-token once.",
}


ANSWERS: Final = ResponseRules(
    exists=((0, "is already uploaded"), (0, "already exists")),
    hints=_HINTS,
    by_status=hints_by_status(
        denied="Check RELEASEKIT_CARGO_TOKEN (input `cargo-token`): it needs the scopes "
        "publish-new and publish-update, for these crates; Gitea wants it as `Bearer TOKEN`.",
        wrong_place="`cargo-registry` is the URL of a sparse index (https://index.crates.io/).",
    )
    | {
        400: "The usual causes are a missing license or description, a category or keyword that "
        "the registry does not know, and a dependency that it does not have: "
        "https://doc.rust-lang.org/cargo/reference/publishing.html",
        413: _TOO_LARGE,
    },
    reading="The index is for those with a token only, for a plan as well: give one that may read "
    "it as RELEASEKIT_CARGO_TOKEN (input `cargo-token`), `Bearer ` in front if the server wants "
    "that.",
    moved="`api` in config.json of the index",
    said=login.error_text,
)
_FIRST: Final = (
    "Publish their first versions with a token that has the scope publish-new (input "
    "`cargo-token`), then register this workflow for each: "
    "https://crates.io/docs/trusted-publishing"
)
_TRUSTING_ONLY: Final = (
    'Leave out `cargo-token` and register this workflow for each, or take back "Require Trusted '
    'Publishing" in the settings of the crate.'
)
_OWNERS: Final = (
    "crates.io tells owners only: set RELEASEKIT_CARGO_TOKEN to a token with the scope "
    "trusted-publishing"
)
_NO_API: Final = (
    "Only a registry with an `api` takes uploads. A directory that is served is published to as "
    "`dir:PATH`."
)
_PUBLISH_FIRST: Final = "publish the first version with `cargo-token`, then "
# What one page has at most.
_LISTED: Final = 100
# A more exact message is worth no longer wait.
_COMPARING_S: Final = 30.0
_UNLIMITED: Final = Limit(0, 0.0)
# https://doc.rust-lang.org/cargo/reference/registry-web-api.html#publish
_UPLOADS: Final = "api/v1/crates/new"
# The largest file of crates.io's index is under 2 MB, nearly all are below 100 kB.
_MAX_KEPT_BYTES: Final = 512 * 1024


class CargoEndpoints(Struct, frozen=True):
    """`api` is None for an index that only serves downloads, as plain files do. `private` says that
    the index, too, requires a token.
    """

    api: httpx.URL | None
    private: bool


class SparseRegistry(Resource):
    """crates.io, or a server with the same API. Implements `interface.Registry`.

    Revokes tokens that were made for this run. Puts into `seen` what a public index last had at a
    URL, None for nothing.
    """

    def __init__(
        self,
        services: Services,
        destination: Destination,
        seen: dict[str, bytes | None],
        *,
        trusted_publishing: TrustedPublishing,
        shard: Shard,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._destination = destination
        self._index = RegistryClient(httpx.URL(destination.index), ANSWERS, services)
        self._insecure = services.insecure
        uploads = httpx.URL(destination.api or destination.index)
        self._server = RegistryClient(uploads, ANSWERS, services)
        self._login = login.make_login(trusted_publishing, services, destination, group=self.group)
        self.check_credentials = self._login.check
        self.url = destination.index
        # Where the API is known, config.json need not be read.
        self._endpoints = CargoEndpoints(uploads, private=False) if destination.api else None
        self._asking = asyncio.Lock()
        self._new: set[str] = set()
        limits = (NEW_CRATES, NEW_VERSIONS) if destination.is_crates_io else (_UNLIMITED,) * 2
        new, known = (
            Pace(limit.share(shard.count), limit.interval_s * (shard.number - 1))
            for limit in limits
        )
        self._paces = {True: new, False: known}
        self._jobs = shard.count

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no crate of that name."""
        return package.name in self._new

    def find_earliest(self, packages: Sequence[PlannedPackage]) -> Mapping[PackageId, float]:
        """By the limits of crates.io, and what the lookups have found."""
        if not self._destination.is_crates_io:
            return {}
        sent = [each.package.id for each in packages if each.action in SENT]
        new = [each for each in sent if self.is_new(each)]
        known = [each for each in sent if not self.is_new(each)]
        # The two limits apply at the same time. The other jobs send as many, and share them.
        return {
            each: limit.duration_s(number * self._jobs)
            for limit, some in ((NEW_CRATES, new), (NEW_VERSIONS, known))
            for number, each in enumerate(some, 1)
        }

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """The least time that the limits of crates.io allow."""
        return rates.plan_note(max(self.find_earliest(packages).values(), default=0.0))

    async def find_rights(
        self,
        packages: Sequence[Package],
        *,
        proving: bool,
    ) -> RightsFound:
        """Whether the registry takes uploads at all, and what crates.io tells of crates without a
        login. What a token may do, it tells nobody.
        https://github.com/rust-lang/crates.io/blob/main/src/controllers/krate/publish.rs
        """
        if not self._destination.is_crates_io:
            # The lookups have read it.
            if self._endpoints is None:
                return RightsFound()
            if (api := self._endpoints.api) is not None:
                url, headers = below(api, _UPLOADS), self._authorize()
                return await find_rights_at_gitea(
                    self._server, "PUT", url, headers, packages, proving=proving
                )
            denied = Denied(
                f"config.json of {self.url} has no `api`, so it takes no uploads", hint=_NO_API
            )
            return RightsFound({each.id: denied for each in packages})
        if isinstance(self._login, OidcAuth):
            denied = Denied("trusted publishing creates no crate on crates.io", hint=_FIRST)
            return RightsFound({each.id: denied for each in packages if self.is_new(each.id)})
        if not isinstance(self._login, TokenAuth):
            return RightsFound()
        known = [each.id for each in packages if not self.is_new(each.id)]
        denied = Denied("crates.io takes them by trusted publishing only", hint=_TRUSTING_ONLY)
        found: dict[PackageId, Denied] = {}
        for at in range(0, len(known), _LISTED):
            some = known[at : at + _LISTED]
            only = await self._list_trusting_only([each.name for each in some])
            found |= {each: denied for each in some if each.name in only}
        return RightsFound(found, describe_untold("crates.io"))

    async def _list_trusting_only(self, names: Sequence[str]) -> set[str]:
        """https://crates.io/api/openapi.json (GET /api/v1/crates)"""
        query = {"ids[]": names, "per_page": str(_LISTED)}
        url = below(self._server.url, "api/v1/crates").copy_with(params=query)
        response = await self._server.read(url, max_bytes=MAX_PAGE_BYTES)
        document = await self._server.document(response, describe_request(response.request))
        listed = document.get("crates")
        return {
            str(each.get("id"))
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict) and each.get("trustpub_only") is True
        }

    async def find_trust(self, package: Package) -> TrustState:
        """https://github.com/rust-lang/crates.io/tree/main/src/controllers/trustpub/github_configs"""
        if self.is_new(package.id):
            return TrustState(is_new=True)
        if not (authorization := self._authorize()):
            return TrustState(unknown=_OWNERS)
        url = self._trusted_at.copy_with(params={"crate": package.id.name})
        response = await self._server.read(url, authorization)
        # A crate has five at most, and a page ten.
        listed = (await self._server.document(response, str(package))).get("github_configs")
        if not isinstance(listed, list):
            raise Transient(f"{package}: no list", problem=Problem.STRANGE_ANSWER)
        names = ("repository_owner", "repository_name", "workflow_filename", "environment")
        texts = [[text_in(each, name) for name in names] for each in listed]
        return TrustState(publishers=tuple(Publisher(f"{o}/{n}", *rest) for o, n, *rest in texts))

    async def add_trust(self, package: Package, job: Publisher) -> bool:
        owner, _, name = job.repository.partition("/")
        config = {
            "crate": package.id.name,
            "repository_owner": owner,
            "repository_name": name,
            "workflow_filename": job.workflow,
            "environment": job.environment or None,
        }
        response = await self._server.send_paced(
            lambda: self._server.http.build_request(
                "POST", self._trusted_at, json={"github_config": config}, headers=self._authorize()
            )
        )
        self._server.check(response, str(package))
        return True

    def explain_trust(self, package: Package, job: Publisher, *, is_new: bool) -> tuple[str, str]:
        owner, _, name = job.repository.partition("/")
        values = f"Publisher: GitHub; Repository owner: {owner}; Repository name: {name}; "
        values += f"Workflow filename: {job.workflow}"
        values += f"; Environment name: {job.environment}" if job.environment else ""
        page = below(self._server.url, f"crates/{package.id.name}/settings/new-trusted-publisher")
        return f"{_PUBLISH_FIRST if is_new else ''}enter {values}, at", str(page)

    @property
    def _trusted_at(self) -> httpx.URL:
        return below(self._server.url, "api/v1/trusted_publishing/github_configs")

    def _authorize(self) -> dict[str, str]:
        token = self._login.for_reading()
        return {} if token is None else {"Authorization": token.reveal()}

    async def lookup(self, package: Package) -> Published | None:
        what = str(package)
        endpoints = await self._find_endpoints(what)
        path = sparse_index.index_path(package.id.name)
        token = self._login.for_reading() if endpoints.private else None
        response = await self._get(path, token=token)
        absent = response.status_code in sparse_index.ABSENT
        if not endpoints.private and (absent or response.status_code == 200):
            url = f"{self._destination.index}{path}"
            self._seen.pop(url, None)
            if absent or len(response.content) <= _MAX_KEPT_BYTES:
                self._seen[url] = None if absent else response.content
        if absent:
            self._new.add(package.id.name)
            return None
        what = f"{what}: {response.request.url}"
        self._index.check(response, what)
        self._new.discard(package.id.name)
        find = partial(
            sparse_index.find_published,
            response.content,
            package,
            url=f"{self._destination.api}/crates/{package.id.name}/{package.version}"
            if self._destination.is_crates_io
            else str(endpoints.api or self._destination.index),
            unyank=self._spell_unyank(package),
        )
        return await self._index.parse(response, what, find, form="a file of a sparse index")

    def _spell_unyank(self, package: Package) -> str:
        """https://doc.rust-lang.org/cargo/commands/cargo-yank.html"""
        to = self._destination.name
        option = "" if self._destination.is_crates_io else f" --registry {to or 'NAME'}"
        return f"run `cargo yank --undo{option} {package.id.name}@{package.version}`"

    async def differing(self, package: Package, artifact: Artifact) -> list[str]:
        """As `Target.differing`; empty too where the index is private."""
        with contextlib.suppress(PackageError, ConfigError, OSError, ValueError, httpx.InvalidURL):
            if (await self._find_endpoints(str(package))).private:
                return []
            document = await self._index.document(
                await self._get("config.json", token=None), str(package)
            )
            url = require_safe(
                sparse_index.download_url(
                    str(document.get("dl") or ""), package.id.name, package.version, artifact.sha256
                ),
                name=f"{self.url}config.json: dl",
                insecure=self._insecure,
            )
            async with asyncio.timeout(_COMPARING_S):
                response = await self._index.read(url, max_bytes=MAX_FILE_BYTES)
            theirs = io.BytesIO(self._index.check(response, str(package)).content)
            with open_artifact(artifact) as file, file.raw() as raw:
                comparison = asyncio.to_thread(crate_file.find_differences, raw, theirs)
                return await uncancellable(comparison)
        return []

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        what = str(package)
        api = (await self._find_endpoints(what)).api
        if api is None:
            raise Rejected(
                f"{what}: {self.url} takes no uploads", hint=_NO_API, problem=Problem.WRONG_ADDRESS
            )
        pace = self._paces[self.is_new(package.id)]
        clock = asyncio.get_running_loop().time
        if wait_s := pace.wait_s(package.id.name, clock()):
            raise Transient(
                f"{what}: {self.url} takes only so many in a while, and it is not its turn yet",
                retry_after=wait_s,
                asked_s=pace.asked_s(clock()),
                problem=Problem.RATE_LIMITED,
            )
        for artifact in artifacts:
            response = await self._send(package, artifact, api)
            try:
                self._server.accept(response, f"{what}: {artifact.filename}")
            except Transient as error:
                if response.status_code != 429:
                    raise
                asked_s = error.retry_after or 0.0
                wait_s = pace.record_refusal(package.id.name, clock(), asked_s)
                raise error.with_(retry_after=wait_s, asked_s=asked_s) from error.__cause__
        pace.record_acceptance(package.id.name)

    async def _send(self, package: Package, artifact: Artifact, api: httpx.URL) -> httpx.Response:
        home = Home.for_package(self._destination.manifest_index, package)
        with open_artifact(artifact) as file:
            # The thread reads the descriptor, which must stay open until it is done.
            body = await uncancellable(asyncio.to_thread(_make_body, file, package, home))
        token = await self._login.get(package)
        response = await self._put(api, body, token)
        if response.status_code in {401, 403} and self._login.renew(token):
            response = await self._put(api, body, await self._login.get(package))
        return response

    async def _put(self, api: httpx.URL, body: bytes, token: Secret) -> httpx.Response:
        request = self._server.http.build_request(
            "PUT",
            below(api, _UPLOADS),
            content=body,
            headers={
                "Authorization": token.reveal(),
                "Accept": "application/json",
                "Content-Type": "application/octet-stream",
            },
            timeout=UPLOAD_TIMEOUT,
        )
        return await self._server.send_once(request)

    async def _find_endpoints(self, what: str) -> CargoEndpoints:
        """What config.json says; read once, and never from crates.io.

        https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
        """
        async with self._asking:
            if self._endpoints is None:
                self._endpoints = await self._read_endpoints(what)
            return self._endpoints

    async def _read_endpoints(self, what: str) -> CargoEndpoints:
        response = await self._get("config.json", token=None)
        if response.status_code == 401:
            response = await self._get("config.json", token=self._login.for_reading())
        what = f"{what}: {response.request.url}"
        document = await self._index.document(response, what)
        is_private = document.get("auth-required") is True
        # https://doc.rust-lang.org/cargo/reference/registry-index.html#index-configuration
        if not (api := document.get("api")):
            return CargoEndpoints(None, private=is_private)
        try:
            url = require_safe(str(api), name="api", insecure=self._insecure)
        except ConfigError as error:
            raise Rejected(
                f"{what}: {error}", hint=error.hint or _NO_API, problem=Problem.WRONG_ADDRESS
            ) from error
        return CargoEndpoints(url, private=is_private)

    async def _get(self, path: str, *, token: Secret | None) -> httpx.Response:
        # A page cached on the way may hide a release, or show one that is gone.
        headers = {"Cache-Control": "no-cache", "Accept": "text/plain, application/json"}
        if token is not None:
            headers["Authorization"] = token.reveal()
        url = httpx.URL(f"{self._destination.index}{path}")
        return await self._index.read(url, headers, max_bytes=MAX_PAGE_BYTES)


def _make_body(file: ArtifactReader, package: Package, home: Home) -> bytes:
    data = file.read()
    with file.raw() as raw:
        crate = crate_file.read_crate(raw, package.id.name, package.version)
    return request_body(crate, data, home)
