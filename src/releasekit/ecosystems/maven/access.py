"""How a Maven repository is spoken to: as whom, what its answers mean, and what it holds, asked
file by file, since there is no listing that all of them have.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.ecosystems.maven import Inputs, layout
from releasekit.ecosystems.maven.document import MAX_BYTES
from releasekit.ecosystems.shared.answers import Answers, hints_by_status
from releasekit.ecosystems.shared.artifacts import MAX_BYTES as MAX_BUILT_BYTES
from releasekit.ecosystems.shared.login import explain_unnamed, pair
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES
from releasekit.errors import MissingCredentials, Transient
from releasekit.host import durable
from releasekit.model import Published
from releasekit.problems import Problem
from releasekit.state.directory import built_directory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path, PurePosixPath

    from releasekit.config.config import Config
    from releasekit.config.values import Url
    from releasekit.ecosystems.shared.server import Server
    from releasekit.http.credentials import Credentials, Secret
    from releasekit.model import Package, PackageId

ANSWERS: Final = Answers(
    # 409 is GitHub Packages' and GitLab's word for a file that is there; WebDAV's other meaning of
    # it is told apart before. 412 is that of a server which heeds If-None-Match.
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
        402: "A licence of the repository has run out (Nexus says so by 402): ask whoever runs it.",
        413: "The file is larger than the repository takes, or a proxy in front of it, such as "
        "nginx with its `client_max_body_size`: leave out what nobody needs, or have it raised.",
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
_ABSENT: Final = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Login:
    """A user and a password, as every Maven repository takes them, for this one; without a
    password, nothing is ever sent, nor to one that no input names.
    """

    registry: Url
    username: str
    password: Secret | None

    def check(self) -> None:
        """Raises MissingCredentials, or UnnamedRegistry; no network."""
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

    def header(self, scheme: str = "Basic") -> dict[str, str]:
        """The portal wants the same pair as Bearer."""
        if self.password is None or explain_unnamed("maven", self.registry):
            return {}
        return {"Authorization": f"{scheme} {pair(self.username, self.password)}"}


def login_for(config: Config, credentials: Credentials, registry: Url) -> Login:
    username = config.own(Inputs).username
    credentials.adopt_user(username)
    return Login(registry, username, credentials.get("RELEASEKIT_MAVEN_PASSWORD"))


class Reader:
    """Reads the repository at the URL of `server`; without a login, as anybody."""

    def __init__(self, server: Server, login: Login | None, state_directory: Path) -> None:
        self._server = server
        self._login = login
        self._state = state_directory
        self._new: dict[PackageId, bool] = {}

    def is_new(self, package: PackageId) -> bool:
        """Whether no version of one that is hardly meant was there at its first lookup."""
        return self._new.get(package, False)

    async def lookup(self, package: Package) -> Published | None:
        """The files of a release: the POM, the main artifact, and whatever else was built here;
        where nothing was, sources and documentation.

        Where nothing was built here, the POM decides: nobody finds a version without one. What an
        upload has left of such a version, the next upload finds.
        """
        ours = self._built(package)
        main = layout.main_names(package)
        if ours:
            known = main if ours.keys().isdisjoint(main) else ()
            names = dict.fromkeys((layout.pom_name(package), *known, *ours), True)
            files = await self._shown(package, names)
            await asyncio.to_thread(_drop_unfinished, files, ours)
        else:
            files = await self._found(package)
        if not files:
            if package.doubt and package.id not in self._new:
                # One request more, which all others are spared.
                metadata = layout.artifact_directory(package) / layout.METADATA
                self._new[package.id] = await self.is_absent(metadata)
            return None
        complete = layout.is_complete(package, files)
        url = f"{self._server.at(str(layout.version_directory(package)))}/"
        return Published(files=files, complete=complete, url=url)

    async def _found(self, package: Package) -> dict[str, str]:
        pom = layout.pom_name(package)
        page = await self.get(package, layout.version_directory(package) / pom)
        if page is None:
            return {}
        names = dict.fromkeys(layout.main_names(package), True)
        names |= dict.fromkeys(layout.usual_names(package), False)
        return {pom: _sha256(page)} | await self._shown(package, names)

    async def held(self, package: Package, names: Iterable[str]) -> dict[str, str]:
        """Those of the files that are there, with a digest; one request for each that is not."""

        async def digest_of(name: str) -> str:
            if await self.is_absent(layout.version_directory(package) / name):
                return ""
            return await self._digest(package, name, whole=True)

        return await _by_name(names, digest_of)

    async def _shown(self, package: Package, names: Mapping[str, bool]) -> dict[str, str]:
        """As `held`: of what is there with its checksum, one request for each. Those that are not
        wanted as a `whole` count as absent without it.
        """
        return await _by_name(names, lambda name: self._digest(package, name, whole=names[name]))

    async def get(
        self, package: Package, path: PurePosixPath, *, max_bytes: int = MAX_BYTES
    ) -> bytes | None:
        """A file's bytes; None when it is surely absent. Raises Transient, Denied, Rejected."""
        url = self._server.at(str(path))
        response = await self._server.read(url, self._headers(), max_bytes=max_bytes)
        if response.status_code in _ABSENT:
            return None
        return self._server.explain(response, f"{package}: {url}").content

    async def is_absent(self, path: PurePosixPath) -> bool:
        """Whether the server says of a file that it is not there."""
        response = await self._server.read(
            self._server.at(str(path)), self._headers(), method="HEAD"
        )
        return response.status_code in _ABSENT

    def _headers(self) -> dict[str, str]:
        # The repository may be private too. What was cached on the way would hide what is there.
        login = self._login.header() if self._login else {}
        return {**login, "Cache-Control": "no-cache, max-age=0"}

    async def _digest(self, package: Package, name: str, *, whole: bool) -> str:
        """That of the checksum beside it, else that of its bytes; empty where there is none."""
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
        return "" if data is None else await asyncio.to_thread(_sha256, data)

    def _built(self, package: Package) -> dict[str, Path]:
        """The files of it that this run or an earlier one has built, by name."""
        where = built_directory(package, self._state)
        return {name: where / name for name in durable.names(where)}


def _sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


async def _by_name(
    names: Iterable[str], digest_of: Callable[[str], Awaitable[str]]
) -> dict[str, str]:
    names = tuple(names)
    digests = await gather_all(map(digest_of, names))
    return {name: digest for name, digest in zip(names, digests, strict=True) if digest}


def _drop_unfinished(files: dict[str, str], ours: Mapping[str, Path]) -> None:
    """A file of ours without its checksum: the upload that brought it never ended. Blocks."""
    for name, path in ours.items():
        if layout.has_checksums(name) and files.get(name, "").startswith("sha256:"):
            digest = durable.sha256_of(path, max_bytes=MAX_BUILT_BYTES)
            if files[name] == f"sha256:{digest}":
                del files[name]
