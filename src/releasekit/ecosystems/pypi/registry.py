"""A package index: files go in by the legacy upload API, and show in the simple index.

https://docs.pypi.org/api/upload/ and
https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import IO, TYPE_CHECKING, Final, cast

from releasekit.aio import uncancellable
from releasekit.attested import Obstacle
from releasekit.ecosystems.pypi import Inputs, login, simple_index
from releasekit.ecosystems.pypi.answers import ANSWERS, says_token_is_stale
from releasekit.ecosystems.pypi.distribution import form_of
from releasekit.ecosystems.pypi.sending import Gathered, first_alone, side_by_side
from releasekit.ecosystems.shared.login import Trusted, pair
from releasekit.ecosystems.shared.server import MAX_PAGE_BYTES, UPLOAD_TIMEOUT, Server, below
from releasekit.errors import PlanError, Transient
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.origins import require_safe, same_origin
from releasekit.model import Action
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.pypi.distribution import Form
    from releasekit.ecosystems.pypi.sending import Send
    from releasekit.host.artifact_reader import ArtifactReader
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package, PackageId, PlannedPackage, Published
    from releasekit.provenance.job import Job


PYPI: Final = "https://upload.pypi.org/legacy/"
_INDEXES: Final = {
    "https://upload.pypi.org/legacy/": "https://pypi.org/simple/",
    "https://test.pypi.org/legacy/": "https://test.pypi.org/simple/",
}
# Of a package, on average: the usual sdist and wheel.
FILES_AT_ONCE: Final = 2
# How long pypi.org and test.pypi.org take files for a version that has some.
# https://blog.pypi.org/posts/2026-07-22-releases-now-reject-new-files-after-14-days/
# https://github.com/pypi/warehouse/pull/19727
CLOSED_AFTER: Final = timedelta(days=14)
_SENT: Final = frozenset({Action.PUBLISH, Action.UPLOAD})
_PUBLIC: Final = frozenset({"pypi.org", "test.pypi.org"})


@dataclass(frozen=True, slots=True)
class Endpoints:
    """`index_given` is False for an index derived from the upload URL."""

    upload: httpx.URL
    index: httpx.URL
    index_given: bool

    @classmethod
    def configured(cls, config: Config) -> Endpoints:
        """Raises ConfigError for a URL that cannot be used."""
        registry = config.registry_url("pypi", default=PYPI).text
        index = config.own(Inputs).index
        insecure = config.insecure_hosts
        upload = require_safe(registry, name="pypi-registry", insecure=insecure)
        read = index or derived_index(registry)
        return cls(upload, require_safe(read, name="pypi-index", insecure=insecure), bool(index))


def derived_index(registry: str) -> str:
    """The simple index that belongs to an upload URL."""
    address = registry.rstrip("/") + "/"
    return _INDEXES.get(address) or address.removesuffix("/legacy/").rstrip("/") + "/simple/"


class PackageIndex:
    """PyPI, or a server that speaks as it does. Implements `interface.Registry`."""

    def __init__(self, config: Config, services: Services) -> None:
        self._endpoints = endpoints = Endpoints.configured(config)
        self.url = str(endpoints.upload)
        self._server = Server(endpoints.upload, ANSWERS, config, services)
        self._index = Server(endpoints.index, ANSWERS, config, services)
        goes_to = config.registry_url("pypi", default=PYPI)
        self._login = login.login_for(config, services, goes_to)
        self.check_credentials = self._login.check
        self._user = login.user_of(config, self._login)
        # A package takes one upload slot, and its files go out side by side; with one slot there
        # is one request at a time.
        self._one_by_one = config.concurrency == 1
        self._slots = asyncio.Semaphore(
            1 if self._one_by_one else FILES_AT_ONCE * config.concurrency
        )
        self._unknown: set[str] = set()

    @property
    def is_pypi(self) -> bool:
        """Whether it is pypi.org or test.pypi.org."""
        return f"{self.url.rstrip('/')}/" in _INDEXES

    @property
    def is_trusting(self) -> bool:
        """Whether uploads are made as this job, by trusted publishing."""
        return isinstance(self._login, Trusted)

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup found no project of that name."""
        return package.name in self._unknown

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """Which versions pypi.org is known to complete no more. Raises PlanError for one that it is
        known to refuse.

        https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers
        """
        if not self.is_pypi:
            return ""
        closed = [
            f"{planned.package.id.name} {planned.package.version}"
            for planned in packages
            if planned.action in _SENT and _is_closed(planned.published)
        ]
        for planned in packages:
            package = planned.package
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
        asked = self._endpoints
        response = await self._page(package, asked.index)
        if response.status_code == 404 and _is_devpi(response) and not asked.index_given:
            # Its index is not where others have theirs: https://devpi.net/docs/
            index = below(asked.upload, "+simple/")
            self._endpoints = replace(asked, index=index, index_given=True)
            response = await self._page(package, index)
        if response.status_code == 404 or self._is_elsewhere(response):
            self._unknown.add(package.id.name)
            return None
        self._unknown.discard(package.id.name)
        what = f"{package}: {response.request.url}"
        self._index.explain(response, what)
        try:
            # Beside the loop: there are pages of a hundred thousand files.
            return await asyncio.to_thread(
                _published, response, package, url=self._project_url(package)
            )
        except ValueError as error:
            raise Transient(
                f"{what}: not a page of a simple index ({error})", problem=Problem.STRANGE_ANSWER
            ) from error

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        token = await self._login.get(package)
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(open_artifact(artifact)) for artifact in artifacts]
            # Beside the loop, and never left behind with a descriptor closed under it. One after
            # the other, so that with one upload at a time every run is the same.
            forms = [
                await uncancellable(asyncio.to_thread(attested_form_of, file)) for file in files
            ]
            sends = [
                self._store(package, file, form, token)
                for file, form in zip(files, forms, strict=True)
            ]
            if self.is_pypi or self._one_by_one:
                await first_alone(sends)
            else:
                await side_by_side(sends)

    def _store(self, package: Package, file: ArtifactReader, form: Form, token: Secret) -> Send:
        what = f"{package}: {file.artifact.filename}"

        async def store() -> bool:
            response = await self._post(file, form, token)
            if says_token_is_stale(response) and self._login.renew(token):
                response = await self._post(file, form, await self._login.get(package))
            return self._server.accept(response, what)

        return store

    async def _post(self, file: ArtifactReader, form: Form, token: Secret) -> httpx.Response:
        request = self._server.http.build_request(
            "POST",
            self._endpoints.upload,
            data=form,
            files={
                "content": (
                    file.artifact.filename,
                    cast("IO[bytes]", file),
                    "application/octet-stream",
                )
            },
            headers={"Authorization": self._basic(token)},
            timeout=UPLOAD_TIMEOUT,
        )
        request.stream = Gathered(request.stream)
        async with self._slots:
            return await self._server.send(request)

    async def _page(self, package: Package, index: httpx.URL) -> httpx.Response:
        headers = dict(simple_index.HEADERS)
        # The index may be private too; but no other server than the one they are for ever sees
        # the credentials, pypi.org's own index included.
        token = self._login.for_reading()
        if token is not None and same_origin(index, self._endpoints.upload):
            headers["Authorization"] = self._basic(token)
        url = below(index, f"{package.id.name}/")
        return await self._index.read(url, headers, max_bytes=MAX_PAGE_BYTES)

    def _basic(self, token: Secret) -> str:
        return f"Basic {pair(self._user, token)}"

    def _is_elsewhere(self, response: httpx.Response) -> bool:
        """Private indexes send those who ask for what they do not have on to pypi.org.

        https://docs.gitlab.com/user/packages/pypi_repository/#forward-requests-to-pypiorg
        """
        return response.url.host in _PUBLIC and self._endpoints.index.host not in _PUBLIC

    def _project_url(self, package: Package) -> str:
        index = self._endpoints.index
        if index.host in _PUBLIC:
            return f"https://{index.host}/project/{package.id.name}/{package.version}/"
        return str(below(index, f"{package.id.name}/"))


def _is_closed(published: Published | None) -> bool:
    since = published.since if published else None
    return since is not None and datetime.now(UTC) - since > CLOSED_AFTER


def _published(response: httpx.Response, package: Package, *, url: str) -> Published | None:
    kind = response.headers.get("Content-Type", "")
    return simple_index.published(simple_index.parse_page(response.content, kind), package, url=url)


def _is_devpi(response: httpx.Response) -> bool:
    return "X-DEVPI-API-VERSION" in response.headers


@dataclass(frozen=True, slots=True)
class IndexAttesting:
    """Implements `interface.Attesting`; without an `index`, for a directory. `private` says that a
    Sigstore instance of the user's own signs.
    """

    index: PackageIndex | None = None
    private: bool = False

    def obstacle(self, package: Package, job: Job) -> Obstacle | None:  # noqa: ARG002 (as all)
        # What others than PyPI ask for, nobody knows.
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
        """About the name that it is uploaded under, which PyPI compares as it reads file names:
        https://github.com/pypi/warehouse/issues/18128
        """
        from releasekit.provenance.statement import Subject, publish  # noqa: PLC0415 - likewise

        return publish(Subject(name=artifact.filename, digests={"sha256": artifact.sha256}))


def attested_form_of(contents: ArtifactReader) -> Form:
    """`form_of`, with the attestation of the file if there is one."""
    form = form_of(contents)
    attestation = contents.artifact.attestation
    if attestation is not None:
        from releasekit.provenance.bundle import read  # noqa: PLC0415 - only what is signed

        form["attestations"] = json.dumps([read(attestation).pep740()])
    return form
