"""A Maven repository: files and their checksums go in by PUT and come out by GET, one by one, since
repositories have no listing in common.

https://maven.apache.org/repository/layout.html
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.ecosystems.maven import PROOF, layout
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.shared.answers import (
    ResponseRules,
    all_stored,
    hints_by_status,
    refuse_page,
)
from releasekit.ecosystems.shared.artifacts import MAX_BYTES as MAX_BUILT_BYTES
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.ecosystems.shared.login import explain_unnamed, pair
from releasekit.ecosystems.shared.rights import find_rights_at_gitea
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, UPLOAD_TIMEOUT, RegistryClient
from releasekit.errors import MissingCredentials, Rejected, Transient
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.http.answers import PASSING
from releasekit.http.origins import require_safe
from releasekit.model import Published
from releasekit.problems import Problem
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Mapping,
        Sequence,
    )
    from pathlib import Path, PurePosixPath

    import httpx

    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.ecosystems.preflight import RightsFound
    from releasekit.host.artifact_reader import ArtifactReader
    from releasekit.http.credentials import Credentials, Secret
    from releasekit.model import Artifact, Package, PackageId


ANSWERS: Final = ResponseRules(
    # GitHub Packages and GitLab answer 409 for a file that they have; `_put` tells WebDAV's other
    # meaning of 409 apart. A server that heeds If-None-Match answers 412.
    # https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
    taken=frozenset({409, 412}),
    exists=(
        # https://github.com/sonatype/nexus-public (StorageFacet, "write policy")
        (400, "updating asset"),
        # https://jfrog.com/help/r/artifactory-how-to-resolve-403-forbidden-errors
        (403, "overwrite"),
        (403, "delete permission"),
    ),
    by_status=hints_by_status(
        denied="Check `maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`), and "
        "whether this user may deploy there.",
        wrong_place="`maven-registry` is the address of a repository for releases, the one that "
        "distributionManagement names, and not that of a group or a mirror.",
    )
    # https://www.rfc-editor.org/rfc/rfc4918#section-9.3.1
    | {
        409: "`maven-registry` has to be a directory of the WebDAV server that is there.",
        # https://support.sonatype.com/hc/en-us/articles/213464668
        400: "The usual causes are a repository for snapshots where releases are sent, and one "
        "that takes no version twice: name the one for releases as `maven-registry`. "
        "https://support.sonatype.com/hc/en-us/articles/213464668",
        402: "A licence of the repository has expired (Nexus answers 402): ask its operator.",
        413: "The file is larger than the repository takes, or a proxy in front of it, such as "
        "nginx with its `client_max_body_size`: leave out unneeded files, or raise the limit.",
        # https://github.com/orgs/community/discussions/26328
        422: "On GitHub Packages an artifactId has no capital letters, and a version is never "
        "replaced: "
        "https://docs.github.com/packages/working-with-a-github-packages-registry/"
        "working-with-the-apache-maven-registry",
    },
    reading="The repository is for those with a login only, for a plan as well: give "
    "`maven-username` and RELEASEKIT_MAVEN_PASSWORD (input `maven-password`) of a user who may "
    "read it.",
    moved="maven-registry",
)
# https://nginx.org/en/docs/http/ngx_http_dav_module.html#create_full_put_path
_NO_DIRECTORY: Final = (
    "nginx answers so where a directory is missing: set `create_full_put_path on;` there. "
)
_ANSWERS: Final = replace(
    ANSWERS, by_status={**ANSWERS.by_status, 500: f"{_NO_DIRECTORY}Else: {PASSING}"}
)
_ABSENT: Final = frozenset({404, 410})
# 405 is the answer for a collection that exists. https://www.rfc-editor.org/rfc/rfc4918#section-9.3.1
_EXISTING: Final = frozenset({HTTPStatus.CREATED, HTTPStatus.OK, HTTPStatus.METHOD_NOT_ALLOWED})
# The answers of servers without MKCOL.
_NO_WEBDAV: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED})
_CHUNK: Final = 1024 * 1024
# Of a package, as many as Maven itself sends by default: `aether.connector.basic.threads` in
# https://maven.apache.org/resolver/configuration.html
_FILES_AT_ONCE: Final = 5


class MavenLogin(Struct, frozen=True):
    """A user and a password; they are sent only where an input names the repository."""

    registry: Url
    username: str
    password: Secret | None

    def check(self) -> str:
        """What it is, in words. Raises MissingCredentials, or UnnamedRegistry; no network."""
        if self.password and (error := explain_unnamed("maven", self.registry)):
            raise error
        values = {
            "RELEASEKIT_MAVEN_USERNAME": self.username,
            "RELEASEKIT_MAVEN_PASSWORD": self.password,
        }
        missing = [name for name, value in values.items() if not value]
        if missing:
            raise MissingCredentials(
                f"maven: no credentials for {self.registry}: {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not set",
                hint="Set them to a user and its password, or to the two halves of a token "
                "(inputs `maven-username` and `maven-password`); settings.xml is not read.",
            )
        return " and ".join(values)

    def header(self, scheme: str = "Basic") -> dict[str, str]:
        """The portal wants the same pair as Bearer."""
        if self.password is None or explain_unnamed("maven", self.registry):
            return {}
        return {"Authorization": f"{scheme} {pair(self.username, self.password)}"}


def make_login(username: str, credentials: Credentials, registry: Url) -> MavenLogin:
    credentials.adopt_user(username)
    return MavenLogin(registry, username, credentials.get("RELEASEKIT_MAVEN_PASSWORD"))


class RepositoryReader:
    """Reads the repository at the URL of `server`; anonymously without a login."""

    def __init__(
        self, server: RegistryClient, login: MavenLogin | None, state_directory: Path
    ) -> None:
        self._server = server
        self._login = login
        self._state = state_directory
        self._new: dict[PackageId, bool] = {}

    def is_new(self, package: PackageId) -> bool:
        """Whether a package in `doubt` had no version at its first lookup."""
        return self._new.get(package, False)

    async def lookup(self, package: Package) -> Published | None:
        """The POM, the main artifact, and the other files that this run or an earlier one built.

        Without built files it is the POM, the main artifact, sources and documentation, and those
        of other tools. Then the POM decides, since clients find no version without it; the next
        upload finds what an earlier one left of such a version.
        """
        where = built_directory(package, self._state)
        ours = {name: where / name for name in durable.names(where)}
        main = layout.main_names(package)
        pom = layout.pom_name(package)
        files: dict[str, str] = {}
        if ours:
            known = main if ours.keys().isdisjoint(main) else ()
            names = dict.fromkeys((pom, *known, *ours), True)
            files = await self._read_digests(package, names)
            await asyncio.to_thread(_drop_unfinished, files, ours)
        elif (page := await self.get(package, layout.version_directory(package) / pom)) is not None:
            given = {it.filename for it in package.prebuilt if layout.has_checksums(it.filename)}
            names = dict.fromkeys(layout.usual_names(package), False)
            names |= dict.fromkeys((*main, *sorted(given - {pom})), True)
            files = {pom: _hash(page)} | await self._read_digests(package, names)
        if not files:
            if package.doubt and package.id not in self._new:
                # Only a package in doubt costs this request.
                metadata = layout.artifact_directory(package) / layout.METADATA
                self._new[package.id] = await self.is_absent(metadata)
            return None
        complete = layout.is_complete(package, files)
        url = f"{self._server.at(str(layout.version_directory(package)))}/"
        return Published(files=files, complete=complete, url=url)

    async def find_held(self, package: Package, names: Iterable[str]) -> dict[str, str]:
        """The digests of the files that exist; each that does not costs one request."""

        async def digest_of(name: str) -> str:
            if await self.is_absent(layout.version_directory(package) / name):
                return ""
            return await self._read_digest(package, name, whole=True)

        return await _gather_digests(names, digest_of)

    async def _read_digests(self, package: Package, names: Mapping[str, bool]) -> dict[str, str]:
        """As `find_held`, but each file that has a checksum costs one request. `names` say whether
        a file without a checksum is read whole; otherwise it counts as absent.
        """
        return await _gather_digests(
            names, lambda name: self._read_digest(package, name, whole=names[name])
        )

    async def get(
        self, package: Package, path: PurePosixPath, *, max_bytes: int = MAX_BYTES
    ) -> bytes | None:
        """The bytes of a file; None if it does not exist. Raises Transient, Denied, Rejected."""
        url = self._server.at(str(path))
        response = await self._server.read(url, self._headers(), max_bytes=max_bytes)
        if response.status_code in _ABSENT:
            return None
        what = f"{package}: {url}"
        return refuse_page(
            self._server.check(response, what), what, "a file of a repository"
        ).content

    async def is_absent(self, path: PurePosixPath) -> bool:
        response = await self._server.read(
            self._server.at(str(path)), self._headers(), method="HEAD"
        )
        return response.status_code in _ABSENT

    def _headers(self) -> dict[str, str]:
        # The repository may be private. A cache on the way would hide a new file.
        login = self._login.header() if self._login else {}
        return {**login, "Cache-Control": "no-cache, max-age=0"}

    async def _read_digest(self, package: Package, name: str, *, whole: bool) -> str:
        """The digest in the checksum file, else of the bytes of the file; empty without a file."""
        path = layout.version_directory(package) / name
        if layout.has_checksums(name):
            page = await self.get(package, path.with_name(f"{name}.sha1"))
            if page is not None:
                try:
                    return f"sha1:{layout.parse_checksum(page)}"
                except ValueError as error:
                    raise Transient(
                        f"{package}: {name}.sha1 on {self._server.url} is {error}",
                        problem=Problem.STRANGE_ANSWER,
                    ) from error
        data = await self.get(package, path, max_bytes=MAX_FILE_BYTES) if whole else None
        return "" if data is None else await asyncio.to_thread(_hash, data)


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


async def _gather_digests(
    names: Iterable[str], digest_of: Callable[[str], Awaitable[str]]
) -> dict[str, str]:
    names = tuple(names)
    digests = await gather_all(map(digest_of, names))
    return {name: digest for name, digest in zip(names, digests, strict=True) if digest}


def _drop_unfinished(files: dict[str, str], ours: Mapping[str, Path]) -> None:
    """Drop files that we built and that lack a checksum: their upload never ended. Blocks."""
    for name, path in ours.items():
        if layout.has_checksums(name) and files.get(name, "").startswith("sha256:"):
            digest = durable.sha256_of(path, max_bytes=MAX_BUILT_BYTES)
            if files[name] == f"sha256:{digest}":
                del files[name]


class Repository:
    """Implements `interface.Registry`."""

    def __init__(
        self,
        registry: Url,
        options: MavenOptions,
        services: Services,
        *,
        username: str,
        state_directory: Path,
        concurrency: int,
    ) -> None:
        url = require_safe(registry.text, name="maven-registry", insecure=services.insecure)
        self._server = RegistryClient(url, _ANSWERS, services)
        self.url = str(self._server.url)
        self._login = make_login(username, services.credentials, registry)
        self.check_credentials = self._login.check
        self._reader = RepositoryReader(self._server, self._login, state_directory)
        self.is_new = self._reader.is_new
        self._checksums = options.checksums
        self._looks_first = not options.immutable
        # A package takes one upload slot, and its files go out side by side; a concurrency of 1
        # means one request at a time.
        self._slots = asyncio.Semaphore(1 if concurrency == 1 else _FILES_AT_ONCE * concurrency)
        # Packages that this run has listed in their maven-metadata.xml.
        self._listed: set[PackageId] = set()

    async def find_rights(
        self,
        packages: Sequence[Package],
        *,
        proving: bool,
    ) -> RightsFound:
        """By a path that no file of a package has."""
        url, headers = self._server.at("releasekit"), self._login.header()
        return await find_rights_at_gitea(
            self._server, "PUT", url, headers, packages, proving=proving
        )

    async def lookup(self, package: Package) -> Published | None:
        """As the reader's, and what the metadata lacks, which no file tells."""
        found = await self._reader.lookup(package)
        if found is None or not found.complete or package.id in self._listed:
            return found
        return replace(found, lacks=await self._find_lacking(package))

    async def _find_lacking(self, package: Package) -> str:
        """What the metadata lacks: this version, or its own checksum."""
        path = layout.artifact_directory(package) / layout.METADATA
        checksum = path.with_name(f"{path.name}.{PROOF}")
        page, told = await gather_all(self._reader.get(package, each) for each in (path, checksum))
        fault = await asyncio.to_thread(layout.find_fault, page or b"", told, package)
        return f"{path.name} {fault}" if fault else ""

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        """Send the POM as the last file, then the metadata, and each checksum after its file.

        Clients find no version without its POM, and none in the metadata before its files are
        there. Wherever an upload was interrupted, a later run finds what is missing.

        A file that exists is not sent again, because a plain file server would replace it. If one
        has other bytes, nothing is sent; for an `immutable` repository, which does the comparing,
        the POM is not sent.
        """
        held: Mapping[str, str] = {}
        if self._looks_first:
            names = [artifact.filename for artifact in artifacts]
            held = await self._reader.find_held(package, names)
        for artifact in artifacts:
            self._refuse_others(package, artifact, held.get(artifact.filename))
        new = [artifact for artifact in artifacts if artifact.filename not in held]
        name = layout.pom_name(package)
        await all_stored(self._store(package, each) for each in new if each.filename != name)
        beside = [
            self._put_checksums(package, layout.path_for(package, each.filename), each.digests)
            for each in artifacts
            if each.filename != name and layout.has_checksums(each.filename)
        ]
        pom = next((artifact for artifact in artifacts if artifact.filename == name), None)
        if pom is None:
            await all_stored(beside)
            return
        listed = layout.artifact_directory(package) / layout.METADATA
        page: bytes | None = None

        async def read_metadata() -> None:
            nonlocal page
            page = await self._reader.get(package, listed)

        storing = [self._store(package, pom)] if pom in new else []
        await all_stored([*beside, *storing, read_metadata()])
        await self._list_version(package, listed, page, pom)

    def _refuse_others(self, package: Package, artifact: Artifact, held: str | None) -> None:
        """`held` is the digest of the file of this name in the repository."""
        algorithm, _, digest = (held or "").partition(":")
        if held and artifact.digests.get(algorithm) != digest:
            raise Rejected(f"{package}: {self.url} holds {artifact.filename} with {held}")

    async def _store(self, package: Package, artifact: Artifact) -> None:
        """Raises Rejected if other bytes were stored meanwhile."""
        name = artifact.filename
        with open_artifact(artifact) as file:
            stored = await self._put(package, layout.path_for(package, name), file)
        if not stored:
            held = await self._reader.find_held(package, [name])
            if name not in held:
                raise Transient(
                    f"{package}: {self.url} says that it has {name}, and does not show it",
                    ambiguous=True,
                )
            self._refuse_others(package, artifact, held[name])

    async def _list_version(
        self, package: Package, path: PurePosixPath, known: bytes | None, pom: Artifact
    ) -> None:
        """Merge this version into the artifact's maven-metadata.xml, which was read as `known`, and
        send the checksums of the POM beside it.
        """
        try:
            # In a thread, because the page lists all versions that ever were.
            page = await asyncio.to_thread(
                layout.add_version, known, package, now=datetime.now(UTC)
            )
        except ValueError as error:
            raise Rejected(
                f"{package}: {self.url}{path} is not Maven metadata ({error})",
                hint="Repair or delete that file: releases have to be added to it.",
                problem=Problem.STRANGE_ANSWER,
            ) from error
        # Also for a page that lists the version: the run that wrote it may have ended there.
        sums = digests(io.BytesIO(page or known or b""), *self._checksums)
        # In parallel: page and checksums do not match until both are stored.
        storing = [] if page is None else [self._put(package, path, page, replace=True)]
        proving = self._put_checksums(package, layout.path_for(package, pom.filename), pom.digests)
        await all_stored([*storing, self._put_checksums(package, path, sums), proving])
        self._listed.add(package.id)

    async def _put_checksums(
        self, package: Package, path: PurePosixPath, digests: Mapping[str, str]
    ) -> None:
        """sha1 comes last, which proves that the others exist; clients look for it first."""

        def put(name: str) -> Coroutine[None, None, bool]:
            page = digests[name].encode()
            return self._put(package, path.with_name(f"{path.name}.{name}"), page, replace=True)

        await all_stored(put(name) for name in self._checksums if name != PROOF)
        await put(PROOF)

    async def _put(
        self,
        package: Package,
        path: PurePosixPath,
        body: ArtifactReader | bytes,
        *,
        replace: bool = False,
    ) -> bool:
        """Whether this request stored the file."""
        what = f"{package}: {path.name}"
        make_request = partial(self._make_request, path, body, replace=replace)
        async with self._slots:
            response = await self._server.send_paced(make_request)
            if response.status_code == HTTPStatus.CONFLICT and await self._reader.is_absent(path):
                # No file is in the way: a WebDAV server wants the directory first.
                # https://www.rfc-editor.org/rfc/rfc4918#section-9.7.1
                if await self._make_collections(path.parent, what):
                    response = await self._server.send_paced(make_request)
                if response.status_code == HTTPStatus.CONFLICT:
                    words = self._server.words(response)
                    raise Transient(f"{what}: HTTP 409 {words}", ambiguous=True)
        return self._server.accept(response, what)

    async def _make_collections(self, directory: PurePosixPath, what: str) -> bool:
        """Make the collections of WebDAV that `directory` lacks, below the address of the server.

        Whether it may exist now: False for a server without WebDAV. Raises Transient, Denied or
        Rejected.
        """

        async def status_of(collection: PurePosixPath, *, orphaned: bool) -> int:
            # Some servers take a name without the slash for a file.
            url = self._server.at(f"{collection}/")
            headers = self._login.header()
            request = self._server.http.build_request("MKCOL", url, headers=headers)
            response = await self._server.send_once(request)
            # 409: the collection above is missing too.
            known = {*_EXISTING, *_NO_WEBDAV} | ({HTTPStatus.CONFLICT} if orphaned else set())
            if response.status_code not in known:
                self._server.check(response, f"{what}: MKCOL {url}")
            return response.status_code

        *above, top = [directory, *directory.parents][: len(directory.parts)]
        missing = []
        for collection in above:
            status = await status_of(collection, orphaned=True)
            if status in _NO_WEBDAV:
                return False
            if status in _EXISTING:
                break
            missing.append(collection)
        else:
            missing.append(top)
        for collection in reversed(missing):
            if await status_of(collection, orphaned=False) in _NO_WEBDAV:
                return False
        return True

    def _make_request(
        self, path: PurePosixPath, body: ArtifactReader | bytes, *, replace: bool
    ) -> httpx.Request:
        size = len(body) if isinstance(body, bytes) else body.artifact.size
        return self._server.http.build_request(
            "PUT",
            self._server.at(str(path)),
            content=body if isinstance(body, bytes) else _read_chunks(body),
            headers={
                **self._login.header(),
                **({} if replace else {"If-None-Match": "*"}),
                "Content-Length": str(size),
                "Content-Type": "application/octet-stream",
            },
            timeout=UPLOAD_TIMEOUT,
        )


async def _read_chunks(file: ArtifactReader) -> AsyncIterator[bytes]:
    file.seek(0)
    while chunk := await asyncio.to_thread(file.read, _CHUNK):
        yield chunk
