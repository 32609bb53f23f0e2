"""A package index: files go in by the legacy upload API, and show in the simple index.

https://docs.pypi.org/api/upload/ and
https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import IO, TYPE_CHECKING, Final, Literal, cast

import httpx
from msgspec import Struct
from packaging.metadata import parse_email

from releasekit.aio import gather_all, uncancellable
from releasekit.attested import Obstacle
from releasekit.ecosystems.preflight import RightsFound, TrustState
from releasekit.ecosystems.pypi import PyPIInputs, login, macaroon, simple_index
from releasekit.ecosystems.pypi.distribution import (
    MAX_METADATA_BYTES,
    explain_unparsable,
    list_required,
    make_form,
    read_metadata,
)
from releasekit.ecosystems.pypi.refused import is_prohibited
from releasekit.ecosystems.pypi.simple_index import PUBLIC_HOSTS
from releasekit.ecosystems.shared.answers import (
    ResponseRules,
    all_stored,
    hints_by_status,
    most_telling,
)
from releasekit.ecosystems.shared.artifacts import read_attestation
from releasekit.ecosystems.shared.login import OidcAuth, TokenAuth, describe_untold, pair
from releasekit.ecosystems.shared.rights import find_rights_at_gitea
from releasekit.ecosystems.shared.server import (
    MAX_PAGE_BYTES,
    UPLOAD_TIMEOUT,
    RegistryClient,
    below,
)
from releasekit.errors import Denied, PackageError, PlanError, Rejected
from releasekit.fields import replace
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.secret_encodings import is_token_like
from releasekit.http.answers import message_of
from releasekit.http.origins import is_safe, require_safe, same_origin
from releasekit.model import SENT, Action, PackageWarning, WarningName
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from packaging.metadata import RawMetadata

    from releasekit.config.values import TrustedPublishing, Url
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.preflight import Publisher
    from releasekit.ecosystems.pypi.distribution import Form
    from releasekit.host.artifact_reader import ArtifactReader
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage, Published
    from releasekit.provenance.job import Job

    # Sends one file; whether that stored it, as `Answers.accept` says.
    Send = Callable[[], Awaitable[bool]]

_INDEXES: Final = {
    "https://upload.pypi.org/legacy/": "https://pypi.org/simple/",
    "https://test.pypi.org/legacy/": "https://test.pypi.org/simple/",
}
# How the address of an index is derived from that of uploads; after any other one, it is `simple/`.
# https://learn.microsoft.com/en-us/azure/devops/artifacts/quickstarts/python-packages
_ENDS: Final = {"/legacy/": "/simple/", "/pypi/upload/": "/pypi/simple/"}
# How it was found, in words.
_FOUND: Final = {
    "given": "as `pypi-index` says",
    "derived": "derived from `pypi-registry`",
    "devpi": "as devpi has it",
}
# Most packages have an sdist and a wheel.
FILES_AT_ONCE: Final = 2
# How long pypi.org and test.pypi.org take files for a version that has some.
# https://blog.pypi.org/posts/2026-07-22-releases-now-reject-new-files-after-14-days/
# https://github.com/pypi/warehouse/pull/19727
CLOSED_AFTER: Final = timedelta(days=14)
# One address may create 40. Projects that begin as a pending trusted publisher do not count.
# https://github.com/pypi/warehouse/blob/main/warehouse/config.py (August 2026:
# PROJECT_CREATE_USER_RATELIMIT_STRING)
NEW_PROJECTS_AN_HOUR: Final = 20
# One that has been in the list from the beginning: https://pypi.org/classifiers/
_A_CLASSIFIER: Final = "Programming Language :: Python"
# Uploads follow builds closely; where they do not, metadata with a long readme would fill memory.
_KEPT: Final = 128
# The pieces of a body that are sent at once; the body of a smaller file is one.
_PIECE_BYTES: Final = 64 * 1024

_WIDER: Final = (
    "Give a token for all of them, or for the whole account, as RELEASEKIT_PYPI_TOKEN (input "
    "`pypi-token`); or leave it out and register this workflow as their trusted publisher: "
    "https://docs.pypi.org/trusted-publishers/"
)
_RENAME: Final = "PyPI never takes it: rename the package, or leave it out with `exclude-packages`."
# A pending publisher is known by the workflow's file and the environment, so there is one at a
# time: https://github.com/pypi/warehouse/blob/main/warehouse/oidc/models/github.py
_TRUST: Final = (
    "Register this workflow as a trusted publisher of each of these projects: "
    "https://docs.pypi.org/trusted-publishers/adding-a-publisher/. For a new one it has to be a "
    "pending publisher, which PyPI keeps one of for a workflow and an environment: register it, "
    "publish that package with `packages`, and go on with the next; or create new projects with "
    "`pypi-token`."
)
# https://github.com/pypi/warehouse/blob/main/warehouse/oidc/models/github.py
_PENDING: Final = (
    "at {site}/account/publishing/, enter {values}; PyPI Project Name: one of these at a time, as "
    "PyPI keeps one pending publisher for a workflow and an environment. Publish it with "
    "`packages`, then enter the next"
)

# What an answer to an upload means; often the wording is the only signal. Each is from the source
# of the server, or of twine.
# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py
_HINTS: Final = {
    "previously used by a file that has since been deleted": (
        "A filename is never taken twice, deleted or not: publish under another version."
    ),
    "Uploading new files to releases older than": (
        "The release can no longer be completed: publish under another version."
    ),
    "Too many new projects created": (
        "The registry limits how many projects one user creates in an hour. Run again later: "
        "what is published stays. Projects that begin as a pending trusted publisher are not "
        "limited: "
        "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
    ),
    "Non-user identities cannot create new projects": (
        "Add a pending trusted publisher for exactly this project name: "
        "https://docs.pypi.org/trusted-publishers/creating-a-project-through-oidc/"
    ),
    "OIDC scoped token is not valid for project": (
        "Add this workflow as a trusted publisher of this project too: "
        "https://docs.pypi.org/trusted-publishers/adding-a-publisher/"
    ),
    "Invalid or non-existent authentication information": (
        "RELEASEKIT_PYPI_TOKEN must hold the whole token, `pypi-` included, and one made on "
        "this very registry: pypi.org and test.pypi.org do not share accounts."
    ),
    # https://github.com/pypi/warehouse/blob/main/warehouse/attestations/services.py
    "only supported when using Trusted Publishing": (
        "Register this workflow as a trusted publisher of the project and leave out `pypi-token`; "
        "or set `attestations: off`. https://docs.pypi.org/trusted-publishers/adding-a-publisher/"
    ),
    "Attestations are not currently supported with": (
        "PyPI takes attestations of jobs of GitHub and GitLab, and none of this publisher: set "
        "`attestations: off`."
    ),
    "Could not verify the uploaded artifact": (
        "What was signed names another repository, workflow or file than PyPI expects: its trusted "
        "publisher has to be exactly this repository and this workflow file, and no reusable "
        "workflow. `attestations: off` publishes without."
    ),
    "Invalid attestations supplied": (
        "Publish without them, by `attestations: off`, and report this: PyPI should take what is "
        "sent."
    ),
    "File too large": (
        "Leave out unneeded files, or ask for a higher limit: "
        "https://docs.pypi.org/project-management/storage-limits/"
    ),
    "Project size too large": (
        "Delete files of old releases, or ask for a higher limit: "
        "https://docs.pypi.org/project-management/storage-limits/"
    ),
    "too similar to an existing project": (
        "Give the project another name: https://pypi.org/help/#project-name"
    ),
    "local versions": (
        "A version with `+` in it never goes to a public index: leave out `+` and what follows. "
        "https://packaging.python.org/en/latest/specifications/version-specifiers/"
        "#local-version-identifiers"
    ),
    "failed to render": (
        "Check the README with `twine check`, and that `readme` in pyproject.toml names its kind: "
        "https://pypi.org/help/#description-content-type"
    ),
    # https://gitlab.com/gitlab-org/gitlab/-/issues/444304
    "is too long (maximum is": "Shorten that field in pyproject.toml: this registry has a limit.",
    "allowed to upload to project": (
        "The token belongs to somebody who does not maintain this project, or is limited to "
        "another one."
    ),
    "isn't allowed": "Give the project another name: https://pypi.org/help/#project-name",
}
ANSWERS: Final = ResponseRules(
    # https://github.com/pypa/twine/blob/main/twine/commands/upload.py (skip_upload)
    exists=(
        (400, "already exist"),  # PyPI, which says so by nothing else, and Google's registry
        (400, "updating asset"),  # Nexus
        (400, "already been taken"),  # GitLab
        (403, "overwrite artifact"),  # Artifactory
    ),
    hints=_HINTS,
    by_status=hints_by_status(
        denied="Check RELEASEKIT_PYPI_TOKEN (input `pypi-token`), and `pypi-username` if the "
        "registry wants a user and a password.",
        wrong_place="`pypi-registry` is the address that takes uploads (https://HOST/legacy/ on "
        "many servers), `pypi-index` the one that pip installs from.",
    )
    | {
        400: "The usual causes are a field or classifier that the registry does not know, a "
        "version with `+`, a name that is taken or forbidden, and a file that is too large. "
        "https://packaging.python.org/en/latest/specifications/core-metadata/ and "
        "https://docs.pypi.org/project-management/storage-limits/",
    },
    reading="The index is for those with a login only, for a plan as well: give a token that may "
    "read it as RELEASEKIT_PYPI_TOKEN (input `pypi-token`), with `pypi-username` if the registry "
    "wants a user and a password.",
    moved="pypi-registry",
)


def derive_index(registry: str) -> str:
    """The simple index that belongs to an upload URL."""
    address = registry.rstrip("/") + "/"
    end = next((each for each in _ENDS if address.endswith(each)), "/")
    derived = address.removesuffix(end) + _ENDS.get(end, "/simple/")
    return _INDEXES.get(address, derived)


class PackageIndex:
    """PyPI, or a server with the same API. Implements `interface.Registry`."""

    def __init__(
        self,
        goes_to: Url,
        inputs: PyPIInputs,
        services: Services,
        *,
        trusted_publishing: TrustedPublishing,
        concurrency: int,
    ) -> None:
        insecure, index = services.insecure, inputs.index or derive_index(goes_to.text)
        self._upload_url = require_safe(goes_to.text, name="pypi-registry", insecure=insecure)
        self.index_url = require_safe(index, name="pypi-index", insecure=insecure)
        self._index_is: Literal["given", "derived", "devpi"] = (
            "given" if inputs.index else "derived"
        )
        self.url = str(self._upload_url)
        self._server = RegistryClient(self._upload_url, ANSWERS, services)
        self._index = RegistryClient(self.index_url, ANSWERS, services)
        self._login = login.make_login(trusted_publishing, services, goes_to)
        has_token = isinstance(self._login, TokenAuth)
        self._user = inputs.username if has_token else login.TOKEN_USER
        # A package takes one upload slot, and its files go out side by side; a concurrency of 1
        # means one request at a time.
        self._one_by_one = concurrency == 1
        self._slots = asyncio.Semaphore(1 if self._one_by_one else FILES_AT_ONCE * concurrency)
        self._unknown: set[str] = set()
        self._asking = asyncio.Lock()
        self._classifiers: frozenset[str] | None = None
        self._metadata: dict[str, RawMetadata] = {}

    def check_credentials(self) -> str:
        """With what a token says of itself."""
        told, limits = self._login.check(), self.token_limits
        if limits.names is not None:
            told += f", for {few(sorted(limits.names))} only"
        return f"{told}, until {limits.end}" if limits.end else told

    @property
    def token_limits(self) -> macaroon.TokenLimits:
        """Of a token that is given; none where one is minted when it is needed."""
        token = self._login.for_reading()
        return macaroon.read_limits(token) if token else macaroon.TokenLimits()

    @property
    def is_pypi(self) -> bool:
        """Whether it is pypi.org or test.pypi.org."""
        return f"{self.url.rstrip('/')}/" in _INDEXES

    @property
    def is_trusting(self) -> bool:
        """Whether uploads are made as this job, by trusted publishing."""
        return isinstance(self._login, OidcAuth)

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no project of that name."""
        return package.name in self._unknown

    async def find_rights(self, packages: Sequence[Package], *, proving: bool) -> RightsFound:
        """By the names that PyPI lets nobody take, and by what a token says of itself."""
        denied = Denied("a module of Python's standard library has its name", hint=_RENAME)
        new = [each.id for each in packages if self.is_pypi and self.is_new(each.id)]
        named = await asyncio.to_thread(lambda: [each for each in new if is_prohibited(each.name)])
        prohibited = dict.fromkeys(named, denied)
        found = await self._find_login_rights(packages, proving=proving)
        return replace(found, denied={**found.denied, **prohibited})

    async def _find_login_rights(
        self, packages: Sequence[Package], *, proving: bool
    ) -> RightsFound:
        if isinstance(self._login, TokenAuth):
            found = self._find_outside(packages)
            if self.is_pypi or found.denied:
                return found
            headers = {"Authorization": self._make_basic(await self._login.get(packages[0]))}
            return await find_rights_at_gitea(
                self._server, "POST", self._upload_url, headers, packages, proving=proving
            )
        if not self.is_trusting or not proving:
            return RightsFound()
        # A token is for the projects that trust this job. To mint one makes the project of one
        # pending publisher.
        # https://github.com/pypi/warehouse/blob/main/warehouse/oidc/views.py
        new = [each.id.name for each in packages if self.is_new(each.id)]
        trusted = -1
        while True:
            token = await self._login.get(packages[0])
            ids = macaroon.read_limits(token).ids
            if ids is None or len(ids) >= len(packages):
                return RightsFound()
            if not new or len(ids) <= trusted:
                break
            trusted = len(ids)
            self._login.renew(token)
        told = (
            f"{self._upload_url.host} lets this job publish {len(ids)} of {len(packages)} projects"
        )
        denied = Denied(f"{told}; {few(new)} did not exist" if new else told, hint=_TRUST)
        return RightsFound({each.id: denied for each in packages})

    def _find_outside(self, packages: Sequence[Package]) -> RightsFound:
        limits = self.token_limits
        if limits.expires is not None and limits.expires <= time.time():
            denied = Denied(f"the token has expired at {limits.end}", hint=_WIDER)
            return RightsFound({each.id: denied for each in packages})
        names = limits.names
        if names is None:
            return RightsFound(note=describe_untold(self._upload_url.host))
        denied = Denied(f"the token is for {few(sorted(names))} only", hint=_WIDER)
        return RightsFound({each.id: denied for each in packages if each.id.name not in names})

    def find_excess(self, packages: Sequence[PlannedPackage]) -> Mapping[PackageId, PackageWarning]:
        """The new projects that are more than pypi.org lets a user create in an hour."""
        if not self.is_pypi or self.is_trusting:
            return {}
        sent = [each.package.id for each in packages if each.action in SENT]
        new = [each for each in sent if self.is_new(each)]
        message = (
            f"it is one of {len(new)} new projects, and {self._upload_url.host} lets a user create "
            f"{NEW_PROJECTS_AN_HOUR} in an hour: run again an hour later for the rest"
        )
        warning = PackageWarning(name=WarningName.OVER_LIMIT, message=message)
        return dict.fromkeys(new[NEW_PROJECTS_AN_HOUR:], warning)

    async def find_classifiers(self) -> frozenset[str]:
        """Those that it takes; none where it does not tell. Deprecated ones are not among them.
        https://github.com/pypi/warehouse/blob/main/warehouse/legacy/api/pypi.py
        """
        async with self._asking:
            if self._classifiers is None:
                site = f"https://{self._upload_url.host.removeprefix('upload.')}"
                self._classifiers = frozenset()
                with contextlib.suppress(PackageError):
                    url = httpx.URL(f"{site}/pypi?%3Aaction=list_classifiers")
                    answer = await self._index.read(url, {}, max_bytes=MAX_PAGE_BYTES)
                    lines = frozenset(answer.text.splitlines())
                    if answer.is_success and _A_CLASSIFIER in lines:
                        self._classifiers = lines
            return self._classifiers

    async def find_trust(self, package: Package) -> TrustState:
        """PyPI has no API for it. https://docs.pypi.org/trusted-publishers/"""
        is_new = self.is_new(package.id)
        return TrustState(is_new=is_new, unknown="PyPI tells owners only", hidden=True)

    async def add_trust(self, package: Package, job: Publisher) -> bool:  # noqa: ARG002
        return False

    def explain_trust(self, package: Package, job: Publisher, *, is_new: bool) -> tuple[str, str]:
        owner, _, name = job.repository.partition("/")
        values = f"Owner: {owner}; Repository name: {name}; Workflow name: {job.workflow}"
        values += f"; Environment name: {job.environment}" if job.environment else ""
        site = f"https://{self._upload_url.host.removeprefix('upload.')}/manage"
        if is_new:
            return _PENDING.format(site=site, values=values), package.id.name
        return f"enter {values}, at", f"{site}/project/{package.id.name}/settings/publishing/"

    def describe_lookups(self) -> tuple[str, str]:
        """As in `Target`."""
        if self.is_pypi:
            return self.url, ""
        parts = str(self.index_url).split("/")
        shown = "/".join("***" if is_token_like(each) else each for each in parts)
        cure = "If pip installs from another address, `pypi-index` has to name that."
        return f"{shown}, {_FOUND[self._index_is]}", cure

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """The versions that pypi.org no longer takes files for; of another server, where its index
        is. Raises PlanError for a version that pypi.org refuses.
        https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers
        """
        if not self.is_pypi:
            where, _ = self.describe_lookups()
            note = f"pypi: what is published is looked up at {where}"
            if packages and all(self.is_new(each.package.id) for each in packages):
                note += (
                    ". It has none of these packages: they are new, or pip installs from another "
                    "address, and `pypi-index` has to name that"
                )
            return note
        closed = []
        for planned in packages:
            package, since = planned.package, planned.published and planned.published.since
            if since and planned.action in SENT and datetime.now(UTC) - since > CLOSED_AFTER:
                closed.append(f"{package.id.name} {package.version}")
            if planned.action is not Action.KEEP and "+" in package.version:
                raise PlanError(
                    f"{package.manifest}: {package.id.name} {package.version} has a local version, "
                    f"{package.version.partition('+')[2]!r}, which {self.url} never takes",
                    hint="Release from a tagged commit without changes, or have the tool that "
                    'makes the version leave that out (setuptools-scm: local_scheme = "no-local-'
                    'version"; hatch-vcs: the same in raw-options). Where the manifest itself says '
                    "it, write it without, or leave the package out with `exclude-packages`.",
                    problem=Problem.NEVER_TAKEN,
                )
        if not closed:
            return ""
        return (
            f"{few(closed)}: {self.url} has a part of it that is older than {CLOSED_AFTER.days} "
            "days, and takes no more files for such a version: publish a higher one"
        )

    async def lookup(self, package: Package) -> Published | None:
        is_derived = self._index_is == "derived"  # when it is asked; another lookup may change it
        response = await self._get_page(package)
        is_devpi = "X-DEVPI-API-VERSION" in response.headers
        if response.status_code == 404 and is_devpi and is_derived:
            # It has its index at another path: https://devpi.net/docs/
            self.index_url = below(self._upload_url, "+simple/")
            self._index_is = "devpi"
            response = await self._get_page(package)
        index, name = self.index_url, package.id.name
        # Private indexes redirect to pypi.org for packages that they do not have.
        # https://docs.gitlab.com/user/packages/pypi_repository/#forward-requests-to-pypiorg
        is_elsewhere = response.url.host in PUBLIC_HOSTS and index.host not in PUBLIC_HOSTS
        if response.status_code == 404 or is_elsewhere:
            self._unknown.add(name)
            return None
        self._unknown.discard(name)
        url = str(below(index, f"{name}/"))
        if index.host in PUBLIC_HOSTS:
            url = f"https://{index.host}/project/{name}/{package.version}/"

        def read() -> Published | None:
            kind = response.headers.get("Content-Type", "")
            listed = simple_index.parse_page(response.content, kind)
            return simple_index.find_published(listed, package, url=url)

        what = f"{package}: {response.request.url}"
        return await self._index.parse(response, what, read, form="a page of a simple index")

    async def read_asked(self, package: Package) -> Mapping[str, str]:
        """As in `Clients`, where the index has the metadata of a wheel beside it."""
        try:
            page = await self._get_page(package)
            kind = page.headers.get("Content-Type", "")
            listed = simple_index.parse_page(page.content, kind)
            url = page.url.join(simple_index.find_metadata(listed, package))
            if url == page.url or not (is_safe(url) or same_origin(url, page.url)):
                return {}
            token = self._login.for_reading() if same_origin(url, self._upload_url) else None
            headers = {"Authorization": self._make_basic(token)} if token is not None else {}
            answer = await self._index.read(url, headers, max_bytes=MAX_METADATA_BYTES)
            text = answer.content if answer.is_success else b""
            return {} if explain_unparsable(text) else list_required(text)
        except (PackageError, ValueError, httpx.InvalidURL):
            return {}

    def keep_metadata(self, artifact: Artifact, metadata: RawMetadata) -> None:
        """For the upload of a file that was read after its build; of a few, as it may be long."""
        if len(self._metadata) < _KEPT:
            self._metadata[artifact.sha256] = metadata

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        token = await self._login.get(package)
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(open_artifact(artifact)) for artifact in artifacts]
            known = [self._metadata.pop(each.sha256, None) for each in artifacts]
            making = map(make_attested_form, files, known)
            if None in known or any(each.attestation for each in artifacts):
                # Beside the loop, and to its end, as the descriptor is closed afterwards.
                forms = await uncancellable(asyncio.to_thread(list, making))
            else:
                forms = list(making)
            sends = [
                partial(self._send, package, file, form, token)
                for file, form in zip(files, forms, strict=True)
            ]
            if self.is_pypi or self._one_by_one:
                await send_first_alone(sends)
            else:
                await send_side_by_side(sends)

    async def _send(
        self, package: Package, file: ArtifactReader, form: Form, token: Secret
    ) -> bool:
        response = await self._post(file, form, token)
        if is_token_stale(response) and self._login.renew(token):
            response = await self._post(file, form, await self._login.get(package))
        return self._server.accept(response, f"{package}: {file.artifact.filename}")

    async def _post(self, file: ArtifactReader, form: Form, token: Secret) -> httpx.Response:
        filename = file.artifact.filename
        request = self._server.http.build_request(
            "POST",
            self._upload_url,
            data=form,
            files={"content": (filename, cast("IO[bytes]", file), "application/octet-stream")},
            headers={"Authorization": self._make_basic(token)},
            timeout=UPLOAD_TIMEOUT,
        )
        if file.artifact.size <= _PIECE_BYTES:
            request.stream = httpx.ByteStream(
                b"".join(cast("httpx.SyncByteStream", request.stream))
            )
        else:
            request.stream = BatchedStream(request.stream)
        async with self._slots:
            return await self._server.send_once(request)

    async def _get_page(self, package: Package) -> httpx.Response:
        index, headers = self.index_url, dict(simple_index.HEADERS)
        # The index may be private too; but only the server of the uploads gets the credentials:
        # the index of pypi.org does not.
        token = self._login.for_reading()
        if token is not None and same_origin(index, self._upload_url):
            headers["Authorization"] = self._make_basic(token)
        url = below(index, f"{package.id.name}/")
        return await self._index.read(url, headers, max_bytes=MAX_PAGE_BYTES)

    def _make_basic(self, token: Secret) -> str:
        return f"Basic {pair(self._user, token)}"


class IndexAttesting(Struct, frozen=True):
    """Implements `interface.Attesting`; without an `index`, for a directory. `private` says that
    the user's Sigstore instance signs.
    """

    index: PackageIndex | None = None
    private: bool = False

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:  # noqa: ARG002 (as all)
        # The rules of other indexes are not known.
        if self.index is None or not self.index.is_pypi:
            return None
        if self.private:
            return Obstacle(
                condition="PyPI takes attestations of Sigstore's public instance only, and "
                "`trust-config` names another one",
                cure="Leave out `trust-config`, or set `attestations: off`.",
            )
        if not self.index.is_trusting:
            return Obstacle(
                condition="PyPI takes attestations with trusted publishing only, and this run "
                "does not use it",
                cure="Register this workflow as the project's trusted publisher, and leave out "
                "`pypi-token`: https://docs.pypi.org/trusted-publishers/adding-a-publisher/",
            )
        if job.is_reusable:
            return Obstacle(
                condition="PyPI takes no attestations from a reusable workflow",
                cure=f"Move the job that publishes into {job.workflow_name}, which calls it, and "
                "register that one as the trusted publisher.",
            )
        return None

    def wish(self, package: Package) -> bool | None:  # noqa: ARG002 (no manifest says anything)
        return None

    def statement(self, package: Package, artifact: Artifact, job: Job) -> bytes:  # noqa: ARG002
        """About the name of the upload, which PyPI compares as it parses file names:
        https://github.com/pypi/warehouse/issues/18128
        """
        from releasekit.provenance.statement import Subject, publish  # noqa: PLC0415 - only to sign

        return publish(Subject(name=artifact.filename, digests={"sha256": artifact.sha256}))


def is_token_stale(response: httpx.Response) -> bool:
    """Whether the same request may pass with a new token."""
    if response.status_code != 403:
        return response.status_code == 401
    words = message_of(response)
    return "Invalid or non-existent authentication" in words or "token is expired" in words


def make_attested_form(contents: ArtifactReader, metadata: RawMetadata | None) -> Form:
    """`make_form`, with the attestation of the file if there is one; blocks for one, and where the
    `metadata` has to be read.
    """
    if metadata is None:
        with contents.raw() as file:
            metadata, _ = parse_email(read_metadata(file, contents.artifact.filename))
    form = make_form(contents.artifact, metadata)
    if bundle := read_attestation(contents.artifact):
        form["attestations"] = json.dumps([bundle.pep740()])
    return form


async def send_first_alone(sends: Sequence[Send]) -> None:
    """For pypi.org, which makes the project and the release with their first file.

    That transaction lasts until the file is in the object store. A second file would find neither,
    wait for the commit of the first, and break a unique constraint: nothing is gained, and it may
    end as HTTP 500, or as 409 for a new project.
    https://github.com/pypi/warehouse/blob/main/warehouse/forklift/legacy.py (file_upload)
    https://github.com/pypi/warehouse/blob/main/warehouse/db.py
    """
    first, *others = sends
    await first()
    await all_stored(send() for send in others)


async def send_side_by_side(sends: Sequence[Send]) -> None:
    """All at once. A server may refuse one only because another was making the release: those that
    were refused beside a stored one are sent once more, one by one.

    Raises one error for all, once all have ended.
    """

    async def try_sending(send: Send) -> bool | PackageError:
        try:
            return await send()
        except PackageError as error:
            return error

    answers = await gather_all(map(try_sending, sends))
    if True in answers:
        for place, answer in enumerate(answers):
            if answer is False or (isinstance(answer, Rejected) and not isinstance(answer, Denied)):
                answers[place] = await try_sending(sends[place])
    errors = [answer for answer in answers if isinstance(answer, PackageError)]
    if errors:
        raise most_telling(errors)


class BatchedStream(httpx.AsyncByteStream):
    """A body in larger pieces: a form yields two for each field, each a system call."""

    def __init__(self, stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        self._stream = cast("httpx.AsyncByteStream", stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        gathered = bytearray()
        async for piece in self._stream:
            gathered += piece
            if len(gathered) >= _PIECE_BYTES:
                yield bytes(gathered)
                gathered.clear()
        if gathered:
            yield bytes(gathered)

    async def aclose(self) -> None:
        await self._stream.aclose()
