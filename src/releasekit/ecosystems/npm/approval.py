"""What npm holds back until a maintainer approves it, seen and decided as that maintainer.

https://docs.npmjs.com/staged-publishing and
https://github.com/npm/api-documentation/blob/main/api/registry.npmjs.com/stage.yaml
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Any, Final

import httpx

from releasekit import __version__
from releasekit.config.values import Directory
from releasekit.ecosystems.approval import Contents, Waiting
from releasekit.ecosystems.npm import NPMJS, NpmInputs
from releasekit.ecosystems.npm.answers import ANSWERS
from releasekit.ecosystems.npm.hidden import DECIDED, find_staged
from releasekit.ecosystems.npm.login import authorize, make_user_login
from releasekit.ecosystems.npm.registry import ABBREVIATED, NpmRegistry
from releasekit.ecosystems.npm.tarball import DIGESTS, get_filename, read_artifact
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, RegistryClient
from releasekit.errors import (
    CodeWanted,
    ConfigError,
    DigestMismatch,
    Rejected,
    Transient,
    UnderReview,
)
from releasekit.http.answers import make_error, retry_after
from releasekit.http.origins import is_safe, require_safe, same_origin
from releasekit.problems import Problem
from releasekit.text.json_text import parse_json, read_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.config.values import Url
    from releasekit.ecosystems.interface import Services
    from releasekit.model import Artifact, Package, Result


_ID: Final = re.compile(r"[0-9A-Za-z-]{8,64}")
# "… can't be approved yet because automated review hasn't finished."
_REVIEWED: Final = re.compile(r"review|validat|(?:can't|cannot) be approved yet", re.IGNORECASE)
_LOGIN: Final = (
    "Run `npm login`, or set RELEASEKIT_NPM_TOKEN: only a maintainer of the package may see and "
    "approve what waits, and trusted publishing may not."
)
# As npm's own client does, which is the only one that npm offers its page to sign in at.
# https://github.com/npm/npm-registry-fetch/blob/main/lib/index.js (getHeaders)
_AS_NPM: Final = {
    "User-Agent": f"npm/11.15.0 releasekit-action/{__version__}",
    "npm-auth-type": "web",
    "npm-command": "stage",
    "Accept": "application/json",
}
_LONGEST_PAUSE_S: Final = 10.0
_CODE: Final = "Run it in a terminal, or set RELEASEKIT_NPM_OTP to the code of an authenticator."
# Names that can stand in an address unescaped; npm takes no others.
_NAME: Final = re.compile(r"(?:@[\w.~-]+/)?[\w.~-]+", re.ASCII)
_MAX_PAGE_CHARS: Final = 2_000
# They run on the machine of each user.
# https://docs.npmjs.com/cli/v11/using-npm/scripts#npm-install
_INSTALL_SCRIPTS: Final = ("preinstall", "install", "postinstall")
# The version that npm may show of a package that has staged versions only.
_PLACEHOLDER: Final = "0.0.0-stage"


def approval(config: PlanConfig, services: Services) -> NpmApproval:
    """Raises ConfigError for a registry that holds nothing back."""
    if isinstance(config.registries.get("npm"), Directory):
        raise ConfigError(
            "npm-registry: a directory holds nothing back; name a registry",
            problem=Problem.REGISTRY_SETTINGS,
        )
    goes_to = config.registry_url("npm", default=NPMJS)
    return NpmApproval(goes_to, services, root=config.root, inputs=config.own(NpmInputs))


class NpmApproval:
    """Implements `approval.Approval`."""

    def __init__(
        self,
        registry: Url,
        services: Services,
        *,
        root: Path,
        inputs: NpmInputs,
        first_pause_s: float = 1.0,
    ) -> None:
        url = require_safe(registry.text, name="npm-registry", insecure=services.insecure)
        self.url = str(url)
        self._server = RegistryClient(url, ANSWERS, services)
        self._login = make_user_login(
            root, services.credentials, registry, services.processes.sandbox
        )
        self.check_credentials = self._login.check
        self._adopt = services.credentials.adopt
        public = PublicVersions(url, services, self._login, inputs=inputs)
        self.is_visible, self.last_published = public.is_visible, public.last_published
        self._first_pause_s = first_pause_s

    async def waiting(self, recorded: Result) -> Waiting | None:
        package = recorded.package
        try:
            Version.parse(package.version)
            usual = _NAME.fullmatch(package.id.name) and len(recorded.artifacts) == 1
        except ValueError:
            usual = None
        if not usual:
            raise Rejected(
                f"{package}: not a name, a version and one tarball of npm's",
                hint="Take results.json as the run that staged the release has written it.",
                problem=Problem.CANNOT_APPROVE,
            )
        wanted = recorded.staged.id if recorded.staged else ""
        if wanted and not _ID.fullmatch(wanted):
            raise Rejected(
                f"{package}: {wanted[:80]!r} is not an id of npm", problem=Problem.CANNOT_APPROVE
            )
        if wanted:
            response = await self._ask(self._server.at(f"-/stage/{wanted}"))
            if response.status_code != httpx.codes.NOT_FOUND:
                item = await self._server.document(response, f"{package}: {wanted}")
                return _parse_waiting(item)
        found = await find_staged(self._server, package, self._ask)
        return _parse_waiting(found) if found is not None else None

    async def files(self, recorded: Result, waiting: Waiting, into: Path) -> Sequence[Artifact]:
        most = max((artifact.size for artifact in recorded.artifacts), default=0)
        artifact = await self._server.fetch(
            self._server.at(f"-/stage/{waiting.id}/tarball"),
            self._authorize(),
            into / get_filename(recorded.package).replace("/", "-"),
            max_bytes=max(most, MAX_FILE_BYTES),
            algorithms=DIGESTS,
        )
        return [artifact]

    def contents(self, recorded: Result, artifacts: Sequence[Artifact]) -> Contents:
        return read_contents(recorded.package.version, artifacts[0], str(recorded.package))

    async def approve(self, waiting: Waiting, code: str) -> None:
        await self._decide("POST", f"-/stage/{waiting.id}/approve", waiting, code)

    async def reject(self, waiting: Waiting, code: str) -> None:
        await self._decide("DELETE", f"-/stage/{waiting.id}", waiting, code)

    async def _decide(self, method: str, path: str, waiting: Waiting, code: str) -> None:
        headers = {**self._authorize(), **_AS_NPM}
        if code and not (code.isascii() and code.isprintable()):
            raise CodeWanted("a one-time code has nothing but digits or letters in it", hint=_CODE)
        if code:
            headers["npm-otp"] = code
        request = self._server.http.build_request(method, self._server.at(path), headers=headers)
        response = await self._server.send_once(request)
        what = f"{waiting.name} {waiting.version}"
        if response.is_success:
            if "html" in response.headers.get("Content-Type", ""):
                raise Transient(
                    f"{what}: {self.url} answers with a page for people",
                    problem=Problem.STRANGE_ANSWER,
                )
            return
        words = self._server.words(response)
        # The token is known, since it may look. What is missing is the proof that its owner is
        # there, even where the answer has no "WWW-Authenticate: OTP".
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise self._explain_code(response, what, code)
        if response.status_code == httpx.codes.CONFLICT and _REVIEWED.search(words):
            raise UnderReview(f"{what}: {words}", retry_after=retry_after(response))
        self._server.check(response, what)

    def _explain_code(self, response: httpx.Response, what: str, code: str) -> CodeWanted:
        try:
            answer: Any = parse_json(response.content)
        except ValueError:
            answer = {}
        page, done = text_in(answer, "authUrl"), text_in(answer, "doneUrl")
        # Where a person is sent.
        url = _parse_url(page) if page.isprintable() and len(page) <= _MAX_PAGE_CHARS else None
        is_page = url is not None and is_safe(url) and not url.userinfo
        # The answer to "are you there?" is worth a code, so only the registry itself may give it.
        ours = _parse_url(done)
        if not (is_page and ours and same_origin(ours, self._server.url)):
            page = done = ""
        asks = "does not take this one-time code (any longer)" if code else "asks for a code"
        return CodeWanted(f"{what}: npm {asks}", page=page, answer=done, hint=_CODE)

    async def confirmed(self, wanted: CodeWanted) -> str:
        """https://github.com/npm/npm-profile/blob/main/lib/index.js (webAuthCheckLogin)"""
        while True:
            response = await self._server.read(
                httpx.URL(wanted.answer), {**self._authorize(), **_AS_NPM}
            )
            if response.status_code != httpx.codes.ACCEPTED:
                break
            asked_s = retry_after(response)
            pause_s = self._first_pause_s if asked_s is None else asked_s
            await asyncio.sleep(min(pause_s, _LONGEST_PAUSE_S))
        answer = await self._server.document(response, "signing in on the web")
        token = text_in(answer, "token")
        if not token or not token.isascii() or not token.isprintable():
            raise Rejected(
                "signing in on the web: npm's answer has no code", problem=Problem.STRANGE_ANSWER
            )
        self._adopt(token)
        return token

    def _authorize(self) -> dict[str, str]:
        self._login.check()
        return authorize(self._login.for_reading())

    async def _ask(self, url: httpx.URL) -> httpx.Response:
        headers = {**self._authorize(), "Accept": "application/json"}
        response = await self._server.read(url, headers)
        if response.status_code in {401, 403}:
            raise make_error(response, self.url, self._server.words(response), hint=_LOGIN)
        return response


def _parse_url(text: str) -> httpx.URL | None:
    try:
        return httpx.URL(text)
    except httpx.InvalidURL:
        return None


def _parse_waiting(item: object) -> Waiting | None:
    if text_in(item, "status") in DECIDED:
        return None
    found = text_in(item, "id")
    if not _ID.fullmatch(found):
        raise Rejected(
            f"npm shows something that waits, without an id: {found[:80]!r}",
            problem=Problem.STRANGE_ANSWER,
        )
    return Waiting(
        id=found,
        name=text_in(item, "packageName"),
        version=text_in(item, "version"),
        tag=text_in(item, "tag"),
        by=text_in(item, "actor"),
    )


class PublicVersions(NpmRegistry):
    """What everybody sees of a package, for a maintainer who may approve another version."""

    async def is_visible(self, recorded: Result, into: Path) -> bool:
        package = recorded.package
        found = await self.lookup(package)
        if found is None:
            return False
        (shown,) = found.files.values()
        algorithm, _, theirs = shown.partition(":")
        (artifact,) = recorded.artifacts
        ours = artifact.digests.get(algorithm)
        if ours is None:
            # Files that this machine never had are recorded with sha256 alone, which npm does not
            # show.
            dists = await self._read_dists(package)
            fetched = await self._fetch(package, package.version, dists, into)
            algorithm, ours, theirs = "sha256", artifact.sha256, fetched.sha256
        if ours != theirs:
            raise DigestMismatch(
                f"{package}: {self.url} shows {algorithm}:{theirs}, and {algorithm}:{ours} was "
                "built",
                hint="Somebody else published this version. Bump it, and release it again.",
            )
        return True

    async def _find_first(self, package: Package) -> object:
        """An approval plans nothing, and asks for one version repeatedly."""
        return await self._find_entry(package)

    async def last_published(self, recorded: Result, into: Path) -> Contents | None:
        package = recorded.package
        dists = await self._read_dists(package)
        before = await asyncio.to_thread(_find_before, package.version, dists)
        if not before:
            return None
        artifact = await self._fetch(package, before, dists, into)
        return await asyncio.to_thread(read_contents, before, artifact, f"{package.id} {before}")

    async def _read_dists(self, package: Package) -> Mapping[str, Mapping[str, Any]]:
        """By version, its `dist`, which names the tarball; empty without such a package."""
        response = await self._read(package, headers=ABBREVIATED)
        if response.status_code == httpx.codes.NOT_FOUND:
            return {}

        def parse_dists() -> dict[str, Mapping[str, Any]]:
            found = read_entries(response.content, {"versions"})
            return {name: table_in(value, "dist") for _, name, value in found if name is not None}

        what = f"{package}: {response.request.url}"
        return await self.server.parse(response, what, parse_dists, form="a packument")

    async def _fetch(
        self, package: Package, version: str, dists: Mapping[str, Mapping[str, Any]], into: Path
    ) -> Artifact:
        name = package.id.name
        url = self.server.at(f"{name}/-/{name.rpartition('/')[2]}-{version}.tgz")
        told = _parse_url(text_in(dists.get(version, {}), "tarball"))
        if told is not None and same_origin(told, self.server.url):
            url = told
        return await self.server.fetch(
            url,
            authorize(self._login.for_reading()),
            into / "published.tgz",
            max_bytes=MAX_FILE_BYTES,
            algorithms=DIGESTS,
        )


def read_contents(version: str, artifact: Artifact, what: str) -> Contents:
    """Blocks; raises PackageError for a file that is not the tarball of an npm package."""
    found = read_artifact(artifact, what)
    scripts = table_in(found.manifest, "scripts")
    return Contents(
        version=version,
        size=artifact.size,
        names=found.names,
        scripts={name: str(scripts[name]) for name in _INSTALL_SCRIPTS if scripts.get(name)},
    )


def _find_before(version: str, known: Iterable[str]) -> str:
    """The greatest one below `version`; before a release, a release where there is one."""
    ours = Version.parse(version)
    below = []
    for text in known:
        with contextlib.suppress(ValueError):
            if text != _PLACEHOLDER and (parsed := Version.parse(text)) < ours:
                below.append((not parsed.pre or bool(ours.pre), parsed, text))
    return max(below, default=(False, ours, ""))[2]
