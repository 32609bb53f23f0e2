"""An npm registry: it takes one document with manifest and tarball, and shows it in the packument.

https://github.com/npm/registry/blob/main/docs/REGISTRY-API.md
"""

from __future__ import annotations

import asyncio
import shlex
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from msgspec import Struct

from releasekit.aio import gather_all, uncancellable
from releasekit.attested import Obstacle
from releasekit.ecosystems.npm import NPMJS_HOST, NpmInputs, document
from releasekit.ecosystems.npm.answers import (
    ANSWERS,
    STAGES_ONLY,
    WAITS,
    is_for_stage_only_token,
    is_held_already,
    may_only_stage,
    maybe_stored,
)
from releasekit.ecosystems.npm.document import REUSED_FOR_S, Packument, escape, is_aged
from releasekit.ecosystems.npm.hidden import find_hidden
from releasekit.ecosystems.npm.login import PackageTokens, authorize
from releasekit.ecosystems.npm.manifest import Hosted
from releasekit.ecosystems.npm.tarball import get_filename, read_artifact
from releasekit.ecosystems.preflight import Publisher, RightsFound, TrustState
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.login import TokenAuth, describe_untold
from releasekit.ecosystems.shared.rights import find_rights_at_gitea
from releasekit.ecosystems.shared.semver import Version
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES, RegistryClient
from releasekit.errors import Denied, PackageError, Rejected, StageOnly, Transient
from releasekit.fields import replace
from releasekit.http.identity import text_of
from releasekit.http.origins import describe_request
from releasekit.model import Published
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.escape import clip, redact_urls, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.document import Command
    from releasekit.ecosystems.npm.hidden import HiddenVersion
    from releasekit.ecosystems.shared.login import Login
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage
    from releasekit.provenance.job import Job

# A document cached on the way would hide a version that is there.
_FRESH: Final = {"Cache-Control": "no-cache", "Accept": "application/json"}
# Versions, tags and digests, and nothing else; servers that know no such form send everything.
# https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md
ABBREVIATED: Final = {
    "Cache-Control": "no-cache",
    "Accept": "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8",
}
_MAX_SHOWN: Final = 100
_STAGE: Final = "createStagedPackage"
# https://github.com/npm/cli/blob/latest/lib/commands/access.js
_WRITABLE: Final = frozenset({"write", "read-write"})


class NpmRegistry:
    """npmjs.com, or a server that speaks as it does. Implements `interface.Registry`."""

    def __init__(
        self,
        url: httpx.URL,
        services: Services,
        login: Login,
        *,
        inputs: NpmInputs,
        gate: Literal["visible", "accepted"] = "visible",
        stages: bool = False,
    ) -> None:
        self.url = str(url)
        self._stages = stages
        self._inputs = inputs
        self._gate = gate
        self.server = RegistryClient(url, ANSWERS, services)
        self._login = login
        self.check_credentials = self._login.check
        # What the settings of its workspace say where the `publishConfig` of a package does not.
        self.usual: Mapping[str, Mapping[str, str]] = {}
        # The last packument of each package.
        self._packuments: dict[str, Packument] = {}
        # What the registry said when it refused to let this token publish.
        self._stage_only = ""
        # The dist-tag of each package whose upload was refused.
        self._refused_tags: dict[str, str] = {}

    @property
    def is_npmjs(self) -> bool:
        return self.server.url.host == NPMJS_HOST

    @property
    def access(self) -> str:
        """What the user says about who may see packages; empty where the user says nothing."""
        return self._inputs.access

    def is_shown_to_all(self, package: PackageId) -> bool:
        """Whether the last lookup, made without a token, found a package of that name."""
        known = self._packuments.get(package.name)
        return known is not None and known.exists and self._login.for_reading() is None

    @property
    def has_token(self) -> bool:
        """Whether uploads depend on a given token, rather than on the identity of this job."""
        return isinstance(self._login, TokenAuth)

    def plan_notes(self, _packages: Sequence[PlannedPackage]) -> str:
        """The file of the token, where it comes from there and not from an input."""
        source = self._login.source if isinstance(self._login, TokenAuth) else ""
        return f"npm: the token for {self.url} is that of {source}" if source else ""

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no package of that name."""
        known = self._packuments.get(package.name)
        return known is not None and not known.exists

    async def find_rights(self, packages: Sequence[Package], *, proving: bool) -> RightsFound:
        """By the token that npm makes for each, or what it says of the one that is given."""
        if isinstance(self._login, PackageTokens):
            return RightsFound(await _find_untrusted(packages, self._login) if proving else {})
        token = self._login.for_reading()
        if not self.is_npmjs:
            url = self.server.at(escape(packages[0].id.name))
            return await find_rights_at_gitea(
                self.server, "PUT", url, authorize(token), packages, proving=proving
            )
        if token is None:
            return RightsFound()
        response = await self.server.read(self.server.at("-/whoami"), authorize(token))
        if response.status_code == 401:
            denied = Denied(f"{self.url} does not know the token", hint=ANSWERS.by_status[401])
            return RightsFound({each.id: denied for each in packages})
        user = text_of(response, "username") or ""
        known = [each.id.name for each in packages if not self.is_new(each.id)]
        closed = await self._list_closed(user, token, known) if user and known else []
        if not closed:
            return RightsFound(note=describe_untold(self.server.url.host))
        return RightsFound(
            note=f"as far as npm tells, {user} may not publish {few(closed)}: see `npm access list "
            f"packages {user}`"
        )

    async def _list_closed(self, user: str, token: Secret, names: Sequence[str]) -> list[str]:
        """Those of `names` that npm does not list as writable for a user; none where it does not
        list them for this token. It says that it lists all, and of tokens for automation it did
        not, so nothing is refused for it, nor for an answer that cannot be used.

        https://docs.npmjs.com/cli/v11/commands/npm-access and
        https://github.com/npm/cli/blob/latest/workspaces/libnpmaccess/lib/index.js
        """
        url = self.server.at(f"-/user/{quote(user, safe='')}/package")
        try:
            response = await self.server.read(url, authorize(token), max_bytes=MAX_PAGE_BYTES)
            if response.status_code != 200:
                return []
            listed = await self.server.document(response, describe_request(response.request))
        except PackageError:
            return []
        return [name for name in names if text_in(listed, name) not in _WRITABLE]

    async def find_trust(self, package: Package) -> TrustState:
        """https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/trust.yaml"""
        if self.is_new(package.id):
            return TrustState(is_new=True)
        if authorization := authorize(self._login.for_reading()):
            response = await self.server.read(self._trusted_at(package), authorization)
            if response.status_code not in {401, 403}:
                parse = partial(_parse_publishers, response.content, stages=self._stages)
                found = await self.server.parse(response, str(package), parse, form="publishers")
                return TrustState(publishers=found)
        return TrustState(unknown="npm tells a person only, by a second factor", hidden=True)

    async def add_trust(self, package: Package, job: Publisher) -> bool:
        config = {
            "type": "github",
            "claims": {
                "repository": job.repository,
                "workflow_ref": {"file": job.workflow},
                **({"environment": job.environment} if job.environment else {}),
            },
            "permissions": [_STAGE if self._stages else "createPackage"],
        }
        headers = authorize(self._login.for_reading())
        response = await self.server.send_paced(
            lambda: self.server.http.build_request(
                "POST", self._trusted_at(package), json=[config], headers=headers
            )
        )
        if response.status_code == 401:
            return False
        self.server.check(response, str(package))
        return True

    def explain_trust(self, package: Package, job: Publisher, *, is_new: bool) -> tuple[str, str]:
        """https://docs.npmjs.com/cli/commands/npm-trust"""
        words = ["npm", "trust", "github", package.id.name, "--file", job.workflow]
        words += ["--repository", job.repository]
        words += ["--environment", job.environment] if job.environment else []
        words += ["--allow-stage-publish" if self._stages else "--allow-publish", "--yes"]
        first = "publish the first version with `npm-token`; then " if is_new else ""
        return f"{first}run, after `npm login`,", shlex.join(words)

    def _trusted_at(self, package: Package) -> httpx.URL:
        return self.server.at(f"-/package/{escape(package.id.name)}/trust")

    async def lookup(self, package: Package) -> Published | None:
        """The first lookup, for a plan, reads the packument, which tells all that a plan needs.
        Later ones read the document of the version, which stays small and appears as early.
        """
        is_first = package.id.name not in self._packuments
        entry = await (self._find_first if is_first else self._find_entry)(package)
        if not isinstance(entry, dict):
            return None
        digest = document.find_digest(table_in(entry, "dist"))
        if not digest:
            raise Rejected(
                f"{package}: {self.url} shows it without a digest, so its bytes cannot be compared",
                problem=Problem.STRANGE_ANSWER,
            )
        name = package.id.name
        url = f"https://www.npmjs.com/package/{name}/v/{package.version}"
        if not self.is_npmjs:
            url = str(self.server.at(name))
        found = Published(
            files={get_filename(package): digest},
            url=url,
            withdrawal=document.find_deprecation(entry, package),
            asks=document.list_requirements(entry),
        )
        tag = self._refused_tags.get(name)
        return replace(found, lacks=await self._find_lack(package, tag)) if tag else found

    async def _find_lack(self, package: Package, tag: str) -> str:
        """What is missing after a refused upload: a registry may store, then refuse the tag."""
        try:
            known = await self._read_packument(package)
        except PackageError:
            return ""  # the refusal itself is reported anyway
        if tag in known.tags:
            return ""
        add = f"npm dist-tag add {package.id.name}@{package.version} {tag}"
        return f"there is no dist-tag {tag} (`{add}` makes it)"

    async def _find_first(self, package: Package) -> object:
        try:
            packument = await self._read_packument(package)
        except Rejected:
            # One that is too large, for instance.
            if found := await self._read_version(package):
                return found
            raise
        entry = packument.entries.get(package.version)
        # What a cache on the way has kept may be older than the version.
        return await self._read_version(package) if entry is None and packument.aged else entry

    async def _find_entry(self, package: Package) -> object:
        found = await self._read_version(package)
        # Not every server can be asked for one version, and a refusal may be temporary.
        return found or (await self._read_packument(package)).entries.get(package.version)

    async def _read_version(self, package: Package) -> object:
        """None for every answer but a success."""
        response = await self._read(package, package.version, headers=_FRESH)
        if response.status_code != 200:
            return None
        return await self.server.document(response, f"{package}: {response.request.url}")

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        (artifact,) = artifacts  # a package is one tarball
        if self._stage_only:
            raise StageOnly(f"{package}: {self._stage_only}", hint=STAGES_ONLY)
        response, tag = await self.send_tarball(package, artifact, "publish")
        words = self.server.words(response)
        if response.status_code in {403, 409} and is_held_already(words):
            with maybe_stored():
                await self._resolve_hidden(package, artifact, words)
        elif response.status_code == 409:
            # It does not prove that the version exists: npmjs answers so while it saves something
            # else of the package, and verdaccio where a refused upload left its tarball behind.
            with maybe_stored():
                if await self.lookup(package) is None:
                    raise Transient(f"{package}: HTTP 409 {words}")
        else:
            try:
                self.server.accept(response, str(package))
            except Rejected as error:
                if isinstance(error, Denied) and may_only_stage(response, package.id.name):
                    raise self._make_stage_only(package, response, error) from error
                self._refused_tags[package.id.name] = tag
                raise

    async def send_tarball(
        self, package: Package, artifact: Artifact, command: Command
    ) -> tuple[httpx.Response, str]:
        """The answer, success or not, and the dist-tag that was sent along."""
        token = await self._login.get(package)
        what = f"{package}: {artifact.filename}"
        contents = await uncancellable(asyncio.to_thread(read_artifact, artifact, what))
        tag = await self._choose_tag(package, contents.manifest)
        request = await document.build_request(
            self.server,
            package,
            artifact,
            contents,
            command=command,
            token=token,
            tag=tag,
            access=self.access,
            usual=text_in(self.usual.get(package.id.name, {}), "access"),
        )
        return await self.server.send_once(request), tag

    async def find_hidden(self, package: Package) -> HiddenVersion | None:
        """What waits for approval under this version. Raises Denied where the identity of this run
        may not ask.
        """
        token = self._login.for_reading()
        if token is None:
            # https://docs.npmjs.com/trusted-publishers#limitations-and-future-improvements
            raise Denied(
                f"{package}: there is no token to ask {self.url} what is staged; trusted "
                "publishing may stage, and not ask"
            )
        return await find_hidden(self.server, token, package)

    async def check_hidden(self, package: Package, artifact: Artifact) -> HiddenVersion | None:
        """As `find_hidden`; None where this run may not ask. Raises Rejected and DigestMismatch
        where it never becomes this file.
        """
        try:
            found = await self.find_hidden(package)
        except Denied:
            return None
        if found is not None:
            found.refuse_dropped(package, self.url)
            found.check_digest(package, [artifact])
        return found

    def _make_stage_only(
        self, package: Package, response: httpx.Response, error: Denied
    ) -> StageOnly:
        hint = error.hint
        if is_for_stage_only_token(response, package.id.name):
            hint = STAGES_ONLY
            if self.has_token:
                # Other packages need not be sent to get the same answer.
                words = self.server.words(response)
                self._stage_only = f"HTTP {response.status_code} {words}".rstrip()
        return StageOnly(str(error), hint=hint)

    async def _resolve_hidden(self, package: Package, artifact: Artifact, words: str) -> None:
        """The registry has bytes of this version. If they are published and still being scanned,
        they become visible by themselves and count as accepted. With `gate: accepted`, dependents
        would start on that, so it has to be known.
        """
        if await self.lookup(package) is not None:
            return
        found = await self.check_hidden(package, artifact)
        if found is not None and found.status == "staged":
            raise StageOnly(f"{package}: {words}", hint=WAITS)
        if found is None and self._gate == "accepted":
            raise Transient(f"{package}: {words}")

    async def _choose_tag(self, package: Package, manifest: Mapping[str, Any]) -> str:
        usual = text_in(self.usual.get(package.id.name, {}), "tag")
        given = document.find_given_tag(self._inputs.tag, manifest, where=str(package), usual=usual)
        is_prerelease = bool(Version.parse(package.version).pre)
        # In a manifest, it is said of all versions, snapshots among them.
        is_usual = given == document.LATEST and not self._inputs.tag and is_prerelease
        if given and not is_usual:
            return given
        if is_prerelease and not is_usual:
            return document.choose_tag(package.version, latest="")
        known = self._packuments.get(package.id.name)
        if known is None or asyncio.get_running_loop().time() - known.asked_s > REUSED_FOR_S:
            try:
                known = await self._read_packument(package, known)
            except Transient as error:
                # A lookup that fails has uploaded nothing.
                raise error.with_(ambiguous=False) from error.__cause__
        if is_usual and not document.is_below(package.version, known.latest):
            return given
        return document.choose_tag(package.version, latest=known.latest)

    async def _read_packument(self, package: Package, known: Packument | None = None) -> Packument:
        """Where `known` is still current, the registry answers in fewer bytes."""
        asked_s = asyncio.get_running_loop().time()
        unless = {"If-None-Match": known.etag} if known and known.etag else {}
        response = await self._read(package, headers={**ABBREVIATED, **unless})
        if response.status_code == 304 and known and unless:
            found = replace(known, asked_s=asked_s)
        elif response.status_code == 404:
            found = Packument(asked_s=asked_s, aged=is_aged(response))
        else:
            what = f"{package}: {response.request.url}"
            parse = partial(Packument.from_response, response, package.version, asked_s=asked_s)
            found = await self.server.parse(response, what, parse, form="a packument")
        self._packuments[package.id.name] = found
        return found

    async def _read(
        self, package: Package, *path: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        sent = {**headers, **authorize(self._login.for_reading())}
        url = self.server.at("/".join([escape(package.id.name), *path]))
        return await self.server.read(url, sent, max_bytes=MAX_PAGE_BYTES)


async def _find_untrusted(
    packages: Sequence[Package], login: PackageTokens
) -> Mapping[PackageId, Denied]:
    async def find(package: Package) -> Denied | None:
        try:
            await login.prove(package)
        except Denied as error:
            return error
        return None

    answers = zip(packages, await gather_all(map(find, packages)), strict=True)
    return {package.id: denied for package, denied in answers if denied}


def _parse_publishers(content: bytes, *, stages: bool) -> tuple[Publisher, ...]:
    """With `stages`, one that may not stage is no match. Raises ValueError."""
    listed, found = parse_json(content), []
    if not isinstance(listed, list):
        raise ValueError("no list")  # noqa: TRY004 (as all that cannot be parsed)
    for each in listed:
        claims, kind = table_in(each, "claims"), text_in(each, "type")
        workflow = text_in(claims.get("workflow_ref"), "file")
        allowed = each.get("permissions") if isinstance(each, dict) else None
        if stages and not (isinstance(allowed, list) and _STAGE in allowed):
            workflow += " (not to stage)"
        texts = [text_in(claims, "repository"), workflow, text_in(claims, "environment")]
        found.append(Publisher(*texts) if kind == "github" else Publisher(kind, "a job"))
    return tuple(found)


class NpmAttesting(Struct, frozen=True):
    """Implements `interface.Attesting`; without a `registry`, for a directory. `private` says that
    the user's own Sigstore instance signs. https://docs.npmjs.com/generating-provenance-statements
    """

    found: Found
    registry: NpmRegistry | None = None
    private: bool = False

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:
        # What registries other than npmjs.com ask for is unknown.
        if self.registry is None or not self.registry.is_npmjs:
            return None
        if self.private:
            return Obstacle(
                condition="npm takes provenance of Sigstore's public instance only, and "
                "`trust-config` names another one",
                cure="Leave out `trust-config`, or set `attestations: off`.",
            )
        if job.runner_environment != f"{job.kind}-hosted":
            maker, example = (
                ("GitHub", "`runs-on: ubuntu-latest` is")
                if job.kind == "github"
                else ("GitLab", "`tags: [saas-linux-small-amd64]` asks for")
            )
            return Obstacle(
                condition=f"npm takes provenance from {maker}-hosted runners only, and this job "
                "runs on another one",
                cure=f"Move the job that publishes to one of those, as {example}.",
            )
        if job.visibility != "public":
            return Obstacle(
                condition="npm takes provenance from public repositories only, and this one is "
                f"{clip(visible(job.visibility), _MAX_SHOWN)}",
                cure="Publish from a public repository, or set `attestations: off`.",
            )
        own = self.found.by_name[package.id.name]
        access = self.registry.access or self.found.find_access(own)
        if access == "restricted":
            return Obstacle(
                condition="npm takes provenance of public packages only, and its access is "
                "`restricted`",
                cure="Set `npm-access: public`, or publishConfig.access in its package.json, where "
                "everybody may see it; or `attestations: off`.",
            )
        # A package without a scope is always public, and so is one that everybody can see. npm
        # asks the registry about others, and takes a new one for private:
        # https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
        scoped = package.id.name.startswith("@")
        if access != "public" and scoped and not self.registry.is_shown_to_all(package.id):
            return Obstacle(
                condition="npm takes provenance of public packages only, and nothing says that it "
                "is public",
                cure='Set `npm-access: public`, or publishConfig.access to "public" in its '
                "package.json.",
            )
        hosted = Hosted.parse(own.repository)
        # Capitals count, though not for GitHub: https://github.com/npm/documentation/pull/1123
        if hosted is not None and hosted.page == job.repository_url:
            return None
        shown = clip(visible(redact_urls(own.repository)), _MAX_SHOWN)
        found = f"is {shown!r}, not this repository" if own.repository else "is missing"
        return Obstacle(
            condition=f"`repository.url` in its package.json {found}",
            cure=f'Set it to "git+{job.repository_url}.git", which npm compares with where the job '
            "runs, capitals included.",
        )

    def wish(self, package: Package) -> bool | None:
        """https://docs.npmjs.com/cli/using-npm/config#provenance"""
        wish = self.found.by_name[package.id.name].publish_config.get("provenance")
        return wish if isinstance(wish, bool) else None

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:
        from releasekit.provenance.statement import Subject, npm_provenance  # noqa: PLC0415 - only to sign

        # As npm's clients expect it: https://github.com/npm/npm-package-arg (toPurl)
        name = f"pkg:npm/{package.id.name.replace('@', '%40')}@{package.version}"
        subject = Subject(name=name, digests={"sha512": artifact.digests["sha512"]})
        return npm_provenance(subject, job)
