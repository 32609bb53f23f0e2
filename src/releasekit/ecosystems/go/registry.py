"""Where Go modules are published: a git remote takes their tags, and a module proxy shows them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from releasekit.aio import Resource
from releasekit.ecosystems.go import paths
from releasekit.ecosystems.go.proxy import OFFICIAL, ModuleProxy
from releasekit.ecosystems.go.release import filenames, tag_name
from releasekit.ecosystems.go.source import path_in_repository
from releasekit.ecosystems.shared import artifacts
from releasekit.errors import MissingCredentials, PackageError, PathError, Rejected
from releasekit.git import objects
from releasekit.git.objects import TagBundle
from releasekit.git.remote import HINT, Remote
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.files import repository_of
from releasekit.model import Published
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path, PurePosixPath

    from releasekit.ecosystems.go import Options
    from releasekit.ecosystems.interface import Services
    from releasekit.model import Artifact, Package, PackageId


class TagRegistry(Resource):
    """Implements `interface.Registry` and `interface.Deployment`.

    After a push, all of its modules are looked up at once. A module is confirmed only after those
    that it needs, and a proxy fetches a module when it is first requested: one after the other,
    the waits would add up.
    """

    def __init__(
        self, proxy: str, root: Path, options: Options, services: Services, *, at_a_time: int
    ) -> None:
        super().__init__(together=True)
        self._top = repository_of(root)
        self._processes = services.processes
        self._remote_name = options.remote
        self._at_a_time = at_a_time
        self._proxy = ModuleProxy(proxy, services) if options.proxy else None
        self.url = self._proxy.url if self._proxy else f"git remote {options.remote}"
        self._remote = Remote(
            options.remote, self._top or root, services.processes, services.environment
        )
        self._new: set[PackageId] = set()
        # Started after the push, for the next lookup of each.
        self._looks: dict[PackageId, asyncio.Task[Published | None]] = {}

    def check_credentials(self) -> None:
        """Whether the push is permitted shows only when git pushes."""
        if self._processes.which("git") is None:
            raise MissingCredentials(
                "go: git is not installed, and tags are pushed by it", hint=HINT
            )

    def is_new(self, package: PackageId) -> bool:
        """Whether the last lookup of a doubtful module found no tag of any version."""
        return package in self._new

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
        tag = tags.get(name)
        if tag is None:
            # A proxy would remember that the version does not exist.
            before = f"{name.removesuffix(package.version)}v"
            if package.doubt and not any(each.startswith(before) for each in tags):
                self._new.add(package.id)
            return None
        names = filenames(package.version)
        if self._proxy is None:
            return Published(files=dict.fromkeys(names, f"git:{tag.object}"))
        files = {names[0]: f"git:{tag.object}"} | await self._proxy.digests_of(package)
        return Published(files=files, complete=len(files) == len(names), url=self._page(package))

    async def upload(self, package: Package, artifacts: Sequence[Artifact]) -> None:
        await self.deploy({package: artifacts})

    async def deploy(self, release: Mapping[Package, Sequence[Artifact]]) -> None:
        """One atomic push of all tags that the remote lacks, or of `[tag] at-a-time`: GitHub starts
        no workflow for more than three.
        """
        bundles = [
            await self._check_bundle(package, artifact)
            for package, artifacts in release.items()
            for artifact in artifacts
            # Without a bundle, the tag is there; the proxy fetches what it still lacks.
            if artifact.filename == filenames(package.version)[0]
        ]
        there = await self._remote.list_tags() if bundles else {}
        moved = [
            bundle.name
            for bundle in bundles
            if bundle.name in there and there[bundle.name].object != bundle.tag
        ]
        if moved and len(release) > 1:
            raise Rejected(
                f"git remote {self._remote_name} has {moved[0]} by now, and not ours",
                problem=Problem.TAG_REFUSED,
            )
        # For a single module, the caller compares.
        missing = [bundle for bundle in bundles if bundle.name not in there]
        if missing:
            package = next(iter(release))
            size = self._at_a_time or len(missing)
            for start in range(0, len(missing), size):
                await self._push(missing[start : start + size], what=str(package))
            self._looks = {each.id: self.group.start(self._first_look(each)) for each in release}

    async def _first_look(self, package: Package) -> Published | None:
        """None also after a failure: `lookup` then asks again."""
        with contextlib.suppress(PackageError):
            return await self._look(package)
        return None

    async def _check_bundle(self, package: Package, artifact: Artifact) -> TagBundle:
        """Raises Rejected for a module that the go command would not find."""
        bundle = await asyncio.to_thread(_read_bundle, artifact, package)
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
                scratch = await stack.enter_async_context(
                    artifacts.scratch(self._processes.environment)
                )
                for bundle in bundles:
                    await asyncio.to_thread(objects.write_loose, bundle.objects, scratch)
            except (OSError, PathError) as error:
                raise Rejected(
                    f"{what}: its tag cannot be made: {error}", problem=Problem.TAG_REFUSED
                ) from error
            tags = {bundle.name: bundle.tag for bundle in bundles}
            await self._remote.push(tags, objects=scratch, what=what)

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

    def _page(self, package: Package) -> str:
        if self._proxy is None or self._proxy.url != OFFICIAL:
            names = filenames(package.version)
            return self._proxy.address(package, names[1]) if self._proxy else ""
        return f"https://pkg.go.dev/{package.id.name}@{package.version}"


def _read_bundle(artifact: Artifact, package: Package) -> TagBundle:
    with open_artifact(artifact) as file:
        data = file.read()
    try:
        return TagBundle.from_bytes(data)
    except ValueError as error:
        raise Rejected(
            f"{package}: {artifact.path}: {error}", problem=Problem.TAG_REFUSED
        ) from error
