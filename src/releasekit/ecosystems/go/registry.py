"""Where Go modules are published: a git remote takes their tags, and a module proxy shows them,
over HTTP or as plain files.

https://go.dev/ref/mod#goproxy-protocol
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Self, TypeVar

import httpx

from releasekit.aio import Resource, gather_all
from releasekit.ecosystems.directory import read_page
from releasekit.ecosystems.go import OFFICIAL, gomod, module_zip, paths
from releasekit.ecosystems.go.paths import parse_version
from releasekit.ecosystems.go.release import filenames, read_version_in, tag_name
from releasekit.ecosystems.go.source import path_in_repository
from releasekit.ecosystems.preflight import RightsFound
from releasekit.ecosystems.shared.answers import ResponseRules, refuse_page
from releasekit.ecosystems.shared.server import MAX_FILE_BYTES, RegistryClient
from releasekit.errors import (
    ConfigError,
    MissingCredentials,
    PackageError,
    PathError,
    Rejected,
    Transient,
)
from releasekit.fields import replace
from releasekit.git import objects
from releasekit.git.objects import TagBundle
from releasekit.git.remote import HINT, Remote
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.ci import JOB_BEARER
from releasekit.host.files import read_head, read_text, repository_of
from releasekit.host.scratch import scratch
from releasekit.http.client import MAX_RESPONSE_BYTES
from releasekit.http.origins import require_safe
from releasekit.model import MAX_REASON_CHARS, Published, Withdrawal
from releasekit.problems import Problem
from releasekit.text.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from releasekit.ecosystems.go import GoOptions
    from releasekit.ecosystems.interface import Services
    from releasekit.git.remote import RemoteTag
    from releasekit.model import Artifact, Package, PackageId
    from releasekit.provenance.bundle import Bundle


T = TypeVar("T")

# Has the hashes of all that the official proxy serves, so that nothing is downloaded.
# https://go.dev/ref/mod#checksum-database
SUM_DB: Final = "https://sum.golang.org/"
# Two lines, and a signed tree. https://go.dev/ref/mod#checksum-database
_MAX_SUMS_BYTES: Final = 64 * 1024
_MAX_ENV_BYTES: Final = 64 * 1024
# https://go.dev/ref/mod#go-sum-files
_HASH: Final = re.compile(r"h1:[A-Za-z0-9+/]{43}=")
ANSWERS: Final = ResponseRules(
    reading="ReleaseKit sends no credentials to a module proxy: name one in "
    "`go-proxy` that needs none."
)


def read_private(environment: Mapping[str, str]) -> str:
    """The patterns of modules that the go command asks no public proxy for. What `go env -w` has
    written counts for variables that are not set; the last line of each does.
    https://go.dev/ref/mod#private-modules, https://pkg.go.dev/cmd/go#hdr-Environment_variables
    """
    home = Path(environment.get("HOME", "/"))
    usual = environment.get("XDG_CONFIG_HOME") or home / ".config"
    if sys.platform == "darwin":
        usual = home / "Library" / "Application Support"
    place = environment.get("GOENV") or Path(usual, "go", "env")
    told: dict[str, str] = {}
    with contextlib.suppress(OSError):  # most people have none
        text = b"" if place == "off" else read_head(Path(place), _MAX_ENV_BYTES)
        told = dict(line.partition("=")[::2] for line in text.decode(errors="replace").splitlines())
    told |= {name: value for name, value in environment.items() if value}
    return told.get("GONOPROXY") or told.get("GOPRIVATE", "")


class TagRegistry(Resource):
    """Implements `interface.Registry` and `interface.Deployment`.

    After a push, all of its modules are looked up at once. A module is confirmed only after those
    that it needs, and a proxy fetches a module when it is first requested: one after the other,
    the waits would add up.
    """

    whole = False

    def __init__(
        self, proxy: str, root: Path, options: GoOptions, services: Services, *, at_a_time: int
    ) -> None:
        super().__init__(together=True)
        self._top = repository_of(root)
        self._processes = services.processes
        self._settings = services.git
        self._remote_name = options.remote
        self._at_a_time = at_a_time
        self._proxy = ModuleProxy(proxy, services) if options.proxy else None
        self._private = read_private(services.processes.environment)
        self.url = self._proxy.url if self._proxy else f"git remote {options.remote}"
        job_token = services.credentials.get(JOB_BEARER)
        self._remote = Remote(options.remote, services.git, job_token, services.retries)
        self._new: set[PackageId] = set()
        # The tags that were last looked at, and their versions by what stands before them.
        self._versions: tuple[Mapping[str, RemoteTag], Mapping[str, Sequence[str]]] = ({}, {})
        # The go.mod of the newest version of a module, by its path and that version.
        self._newest: dict[tuple[str, str], str] = {}
        # Started after the push, for the next lookup of each.
        self._looks: dict[PackageId, asyncio.Task[Published | None]] = {}

    async def __aenter__(self) -> Self:
        # Before the first build, which may change them.
        await self._settings.remember()
        return await super().__aenter__()

    def check_credentials(self) -> str:
        """Whether the push is permitted shows only when git pushes."""
        if self._processes.which("git") is None:
            raise MissingCredentials(
                "go: git is not installed, and tags are pushed by it", hint=HINT
            )
        return "git's own, which `publish` tries first"

    def is_private(self, package: PackageId) -> bool:
        """Whether the public proxy is told nothing of a module, as the go command tells it nothing:
        its tag on the remote is all there is to see.
        """
        asked = self._proxy is not None and self._proxy.url == OFFICIAL
        return asked and paths.is_private(package.name, self._private)

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup of a doubtful module found no tag of any version."""
        return package in self._new

    async def find_rights(self, packages: Sequence[Package], *, proving: bool) -> RightsFound:
        """Whether git's credentials may push, of one tag for all."""
        if not proving:
            return RightsFound()
        push = self._remote.try_push(self._tag(packages[0]))
        return await RightsFound.of_attempt(push, packages)

    async def lookup(self, package: Package) -> Published | None:
        look = self._looks.pop(package.id, None)
        if look is not None:
            await asyncio.wait((look,))
            found = None if look.cancelled() else look.result()
            if found is not None and found.complete:
                return found
        return await self._look(package)

    async def _look(self, package: Package) -> Published | None:
        name, tags = self._tag(package), await self._remote.list_tags()
        if name in tags:
            found = await self._ask_proxy(package, tag=tags[name].object)
            return replace(found, withdrawal=await self._find_retraction(package, tags))
        # A proxy would remember that the version does not exist.
        before = f"{name.removesuffix(package.version)}v"
        if package.doubt and not any(each.startswith(before) for each in tags):
            self._new.add(package.id)
        return None

    async def _ask_proxy(self, package: Package, *, tag: str) -> Published:
        """What the proxy shows of a package, whose tag on the remote is the object `tag`."""
        names = filenames(package.version)
        if self._proxy is None or self.is_private(package.id):
            return Published(files=dict.fromkeys(names, f"git:{tag}"))
        files = {names[0]: f"git:{tag}", **await self._proxy.read_digests(package)}
        url = self._proxy.address(package, names[1])
        if self._proxy.url == OFFICIAL:
            url = f"https://pkg.go.dev/{package.id.name}@{package.version}"
        return Published(files=files, complete=len(files) == len(names), url=url)

    async def _find_retraction(
        self, package: Package, tags: Mapping[str, RemoteTag]
    ) -> Withdrawal | None:
        """By the go.mod of the newest version, which is read where it may tell: of a newer one, and
        of this one where the go.mod here retracts it.
        """
        if self._proxy is None or self.is_private(package.id):
            return None
        if self._versions[0] is not tags:
            self._versions = tags, _group_versions(tags)
        directory = self._tag(package).removesuffix(package.version)
        newest = find_newest(package.id.name, self._versions[1].get(directory, ()))
        if newest == package.version:
            here = await asyncio.to_thread(read_text, package.manifest, max_bytes=gomod.MAX_BYTES)
            if find_retraction(here, package) is None:
                return None
        key = (package.id.name, newest)
        if key not in self._newest:
            self._newest[key] = await self._proxy.read_mod(package, newest)
        return find_retraction(self._newest[key], package)

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await self.deploy({package: artifacts})

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """One atomic push of all tags, which passes over those that are there, or of `[tag]
        at-a-time`: GitHub starts no workflow for more than three.
        """
        carried = [
            (package, artifact)
            for package, artifacts in release.items()
            for artifact in artifacts
            # Without a bundle, the tag is there; the proxy fetches what it still lacks.
            if artifact.filename == filenames(package.version)[0]
        ]
        bundles = await asyncio.to_thread(lambda: [self._read_bundle(*each) for each in carried])
        if not bundles:
            return
        package = next(iter(release))
        size = self._at_a_time or len(bundles)
        try:
            for start in range(0, len(bundles), size):
                await self._push(bundles[start : start + size], what=str(package))
        except PackageError:
            moved = await self._find_moved(bundles)
            if not moved:
                raise
            if len(release) > 1:
                raise Rejected(
                    f"git remote {self._remote_name} has {moved[0]} by now, and not ours",
                    problem=Problem.TAG_REFUSED,
                ) from None
            return  # of a single module, the caller compares
        if self._proxy is None:
            return  # the remote alone shows what is there
        # The remote has answered for each of these tags, so only the proxy is asked.
        looks = {each: partial(self._look, each) for each in release} | {
            each: partial(self._ask_proxy, each, tag=made.tag)
            for (each, _), made in zip(carried, bundles, strict=True)
        }
        self._looks = {each.id: self.group.start(_attempt(look)) for each, look in looks.items()}

    async def _find_moved(self, bundles: Sequence[TagBundle]) -> list[str]:
        there = await _attempt(self._remote.list_tags) or {}
        named = [each for each in bundles if each.name in there]
        return [each.name for each in named if there[each.name].object != each.tag]

    def _read_bundle(self, package: Package, artifact: Artifact) -> TagBundle:
        """Blocks. Raises Rejected, also for a module that the go command would not find."""
        with open_artifact(artifact) as file:
            data = file.read()
        try:
            bundle = TagBundle.from_bytes(data)
        except ValueError as error:
            raise Rejected(
                f"{package}: {artifact.path}: {error}", problem=Problem.TAG_REFUSED
            ) from error
        if bundle.name != self._tag(package):
            raise Rejected(
                f"{package}: its tag is to be {self._tag(package)}, and was built as {bundle.name}",
                problem=Problem.TAG_REFUSED,
            )
        if not paths.is_at(package.id.name, self._where(package)):
            raise Rejected(
                f"{package.id}: the go command would not look for it in {self._where(package)}",
                hint="A module path ends with the module's directory, from the repository's root: "
                "https://go.dev/ref/mod#vcs-find",
                problem=Problem.TAG_REFUSED,
            )
        return bundle

    async def _push(self, bundles: Sequence[TagBundle], *, what: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                place = await stack.enter_async_context(scratch(self._processes.environment))
                made = [each for bundle in bundles for each in bundle.objects]
                await asyncio.to_thread(objects.write_pack, made, place)
            except (OSError, PathError) as error:
                raise Rejected(
                    f"{what}: its tag cannot be made: {error}", problem=Problem.TAG_REFUSED
                ) from error
            tags = {bundle.name: bundle.tag for bundle in bundles}
            await self._remote.push(tags, objects=place, what=what)

    def own_tag(self, package: Package) -> str:
        """Empty outside of a git repository, where nothing is published."""
        return self._tag(package) if self._top is not None else ""

    def _tag(self, package: Package) -> str:
        return tag_name(package.id.name, package.version, self._where(package))

    def _where(self, package: Package) -> PurePosixPath:
        if self._top is None:
            raise Rejected(
                f"{package}: {package.directory} is in no git repository, and "
                "a Go module is published by a tag",
                problem=Problem.TAG_REFUSED,
            )
        return path_in_repository(package.directory, self._top)


def _group_versions(tags: Iterable[str]) -> Mapping[str, Sequence[str]]:
    found = defaultdict(list)
    for tag in tags:
        directory, slash, version = tag.rpartition("/")
        found[directory + slash].append(version)
    return found


async def _attempt(ask: Callable[[], Awaitable[T]]) -> T | None:
    """None where it fails: somebody asks again, or has an error that tells more."""
    with contextlib.suppress(PackageError):
        return await ask()
    return None


class ModuleProxy:
    """One GOPROXY. It is asked for a version only after the tag is pushed: proxies remember for up
    to half an hour that a version does not exist. https://proxy.golang.org
    """

    def __init__(self, url: str, services: Services) -> None:
        self.url = f"{url.rstrip('/')}/"
        where = require_safe(self.url, name="go-proxy", insecure=services.insecure)
        self._server = RegistryClient(where, ANSWERS, services)

    async def read_digests(self, package: Package) -> dict[str, str]:
        """Digests of its files by name; the first request makes the proxy fetch the version."""
        _, info, mod, zipped = filenames(package.version)
        answer = await self._get(self.address(package, info), package)
        if answer is None:
            return {}
        try:
            version = read_version_in(answer.content)
        except ValueError as error:
            raise Transient(
                f"{package}: {answer.url}: not what a module proxy says",
                problem=Problem.STRANGE_ANSWER,
            ) from error
        found = {info: f"version:{version}"}
        if self.url == OFFICIAL:
            return found | await self._read_sum_db(package)
        mod_data, zip_data = await gather_all(
            (
                self._get(self.address(package, mod), package),
                self._get(self.address(package, zipped), package, max_bytes=MAX_FILE_BYTES),
            )
        )
        if mod_data is not None:
            found[mod] = module_zip.hash_of_mod(mod_data.content)
        if zip_data is not None:
            try:
                found[zipped] = await asyncio.to_thread(module_zip.hash_of_zip, zip_data.content)
            except ValueError as error:
                raise Rejected(f"{package}: {zip_data.url}: {error}") from error
        return found

    async def read_mod(self, package: Package, version: str) -> str:
        """The go.mod of a version; empty where the proxy has none."""
        url = self.address(package, filenames(version)[2])
        answer = await self._get(url, package, max_bytes=gomod.MAX_BYTES)
        return answer.content.decode("utf-8", "replace") if answer else ""

    def address(self, package: Package, filename: str) -> str:
        path = paths.escape(package.id.name)
        return f"{self.url}{path}/@v/{paths.escape(filename)}"

    async def _read_sum_db(self, package: Package) -> dict[str, str]:
        version = package.version
        url = f"{SUM_DB}lookup/{paths.escape(package.id.name)}@{paths.escape(version)}"
        answer = await self._get(url, package, max_bytes=_MAX_SUMS_BYTES)
        # Always as UTF-8: some encodings of Python unpack their input, or take long.
        text = answer.content.decode("utf-8", "replace") if answer is not None else ""
        known = gomod.read_sums(text).get((package.id.name, version))
        if known and not all(map(_HASH.fullmatch, (known.zip, known.mod))):
            raise Transient(
                f"{package}: {url}: not the hashes of a module", problem=Problem.STRANGE_ANSWER
            )
        _, _, mod, zipped = filenames(version)
        return {mod: known.mod, zipped: known.zip} if known else {}

    async def _get(
        self, url: str, package: Package, *, max_bytes: int = MAX_RESPONSE_BYTES
    ) -> httpx.Response | None:
        """None for 404 and 410: the proxy has nothing there."""
        response = await self._server.read(httpx.URL(url), max_bytes=max_bytes)
        if response.status_code in {404, 410}:
            return None
        what = f"{package}: {url}"
        return refuse_page(self._server.check(response, what), what, "what a module proxy says")


class ProxyDirectory:
    """Implements `directory.Layout`: `<module>/@v/{list,V.info,V.mod,V.zip}`, and a bundle with the
    tag beside them. The go command uses it as `GOPROXY=file:///…`, and through any static web
    server.
    """

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        if filename not in filenames(package.version):
            return None
        return _directory(package) / paths.escape(filename)

    def attestation(self, package: Package, filename: str, bundle: Bundle) -> None:
        """Clients of a proxy do not look for attestations."""

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        versions = _find_versions(root / _directory(package))
        page = "".join(f"{version}\n" for version in sorted(versions, key=parse_version))
        yield _directory(package) / "list", page.encode()

    def lookup(self, root: Path, package: Package) -> Published | None:
        """The zip counts once the list names its version, because clients find it by the list."""
        directory = root / _directory(package)
        names = filenames(package.version)
        files = {
            name: _digest(data, name)
            for name in names
            if (data := read_page(directory / paths.escape(name))) is not None
        }
        listed = (read_page(directory / "list") or b"").decode().split()
        if package.version not in listed:
            files.pop(names[-1], None)
        if not files:
            return None
        newest = find_newest(package.id.name, listed)
        page = read_page(directory / f"{paths.escape(newest)}.mod") if newest else None
        return Published(
            files=files,
            complete=len(files) == len(names),
            url=f"{directory.as_uri()}/",
            withdrawal=find_retraction((page or b"").decode("utf-8", "replace"), package),
        )


def find_newest(module: str, versions: Iterable[str]) -> str:
    """The version whose go.mod says which ones are retracted, empty where there is none: stable
    ones first. https://go.dev/ref/mod#version-queries (@latest)
    """
    fitting = [each for each in versions if not paths.trouble_with_version(module, each)]
    parsed = {each: parse_version(each) for each in fitting}
    return max(fitting, key=lambda each: (not parsed[each].pre, parsed[each]), default="")


def find_retraction(text: str, package: Package) -> Withdrawal | None:
    """By the go.mod of its newest version. One that cannot be read retracts nothing: the go command
    cannot read it either.
    """
    if "retract" not in text:
        return None
    try:
        reason = gomod.find_retraction(gomod.parse_mod(text, "go.mod"), package.version)
    except ConfigError:
        return None
    if reason is None:
        return None
    cure = "publish a newer version whose go.mod does not retract this one"
    return Withdrawal(word="retracted", cure=cure, reason=one_line(reason, MAX_REASON_CHARS))


def _directory(package: Package) -> PurePosixPath:
    return PurePosixPath(paths.escape(package.id.name), "@v")


def _find_versions(directory: Path) -> list[str]:
    """Versions with all files that the go command requests."""
    names = durable.names(directory)
    stems = (name.removesuffix(".zip") for name in names if name.endswith(".zip"))
    return [
        _unescape(stem)
        for stem in stems
        if all(durable.is_file(directory / f"{stem}{end}") for end in (".info", ".mod"))
    ]


def _unescape(text: str) -> str:
    head, *rest = text.split("!")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _digest(data: bytes, name: str) -> str:
    if name.endswith(".info"):
        with contextlib.suppress(ValueError):
            return f"version:{read_version_in(data)}"
    if name.endswith(".mod"):
        return module_zip.hash_of_mod(data)
    if name.endswith(".zip"):
        return module_zip.hash_of_zip(data)
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
