"""The Ecosystem of npm packages: discovery, pins and tarballs behind one door."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from releasekit.aio import Resource
from releasekit.config.package_filter import will_build
from releasekit.ecosystems.npm import discover, publish_config, tarball
from releasekit.ecosystems.npm.packing import Packer
from releasekit.ecosystems.npm.pin import Pins, name_in
from releasekit.ecosystems.npm.workspace import licenses_in
from releasekit.ecosystems.shared.artifacts import digested, staged_aside
from releasekit.errors import BuildFailed, ConfigError, PackageError, PlanError, map_all
from releasekit.model import Action
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Built, Into, Services
    from releasekit.ecosystems.npm import Options
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.manifest import NpmPackage
    from releasekit.model import Package, PackageId, PlannedPackage
    from releasekit.state.run_logs import Log


# What a packument shows, and what files are known by here.
DIGESTS: Final = ("sha256", "sha512", "sha1")


class Npm(Resource):
    """Implements `interface.Ecosystem`."""

    def __init__(self, config: Config, options: Options, services: Services) -> None:
        super().__init__()
        self.config = config
        self.options = options
        self.logs = services.logs
        passed = services.processes.passing(options.pass_env)
        self.packer = Packer(services.processes, root=config.root, env=passed, group=self.group)

    async def discover(self, root: Path) -> NpmWorkspace:
        found = await asyncio.to_thread(self._discovered, root)
        if will_build(self.config, "npm") and found.contents:
            # The plan will take a while, and so does node.
            self.packer.start()
        return found

    def _discovered(self, root: Path) -> NpmWorkspace:
        found = discover.found_below(root, self.options)
        public = [package for package in found.by_name.values() if not package.unpublishable]
        contents = {
            package.name: publish_config.packed_directory(
                package.publish_config, package.manifest, found.home(package).tool
            )
            for package in public
        }
        if "npm" not in self.config.registries:
            for package in public:
                _refuse_other_registry(package)
        return NpmWorkspace(
            packages=tuple(discover.packages(found)), found=found, contents=contents, npm=self
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NpmWorkspace:
    """Implements `interface.Workspace`; and `FollowUp`, for the scripts `npm publish` runs last.

    `contents` are the directories that are packed of each package that is published, where that is
    not its own.
    """

    packages: tuple[Package, ...]
    found: Found
    contents: Mapping[str, str]
    npm: Npm

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        pins = Pins(self.found, versions, self.npm.config.pin)
        pinned = pins.pin(manifest)
        own = self.found.by_name.get(name_in(manifest))
        if own is None:
            return pinned
        return publish_config.with_publish_config(pinned, self.found.home(own).tool)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """Singly: one process packs them all, and what is packed can leave at once."""
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {package.id: await self._build(package, into(package)) for package in packages}

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """What a plan says of scripts that run outside a build, and of files that come from the
        workspace.
        """
        sent = [each.package for each in packages if each.action is not Action.KEEP]
        notes: list[str] = []
        map_all(self._refuse_publishing, sent)
        notes += filter(None, map_all(self._without_platforms, sent))
        if names := [package.id.name for package in sent if self._following(package)]:
            notes.append(
                f"npm: `publish` and `postpublish` scripts of {few(names)} run "
                "once the registry shows the package, without secrets, and never a second time"
            )
        given = {
            package.id.name: self._licenses(package)
            for package in sent
            if self._licenses(package) and not licenses_in(package.directory)
        }
        if given:
            files = sorted({file for files in given.values() for file in files})
            notes.append(
                f"npm: {few(files)} of the workspace goes into {few(list(given))}, without "
                "a license of their own, as with pnpm and lerna"
            )
        return ". ".join(notes)

    def _refuse_publishing(self, package: Package) -> None:
        own = self.found.by_name.get(package.id.name)
        if not own or not own.publishing or self.npm.options.ignore_scripts or package.prebuilt:
            return
        raise PlanError(
            f"{own.manifest}: the script {own.publishing} runs `napi prepublish`, which publishes "
            "the packages of the platforms by itself, and names them in package.json when the plan "
            "is made already",
            hint=f"(1) Call the script `platforms` instead of `{own.publishing}`, with "
            "`napi prepublish -t npm --skip-optional-publish --no-gh-release`; (2) let the "
            "workflow run it behind `napi artifacts`, before this action: `- run: npm run "
            "platforms`; "
            '(3) write `packages = ["npm/*"]` below [npm] in releasekit.toml.',
            problem=Problem.PUBLISHES_ITSELF,
        )

    def _without_platforms(self, package: Package) -> str:
        """What a plan says of a napi package that names none of its platforms; a run refuses it."""
        own = self.found.by_name.get(package.id.name)
        if not own or not own.platforms or package.prebuilt:
            return ""
        platforms = [
            each.name
            for each in self.found.by_name.values()
            if each.platform and not each.unpublishable and each.name.startswith(own.platforms)
        ]
        named = {each.key for each in own.declared if each.field != "devDependencies"}
        if not platforms or not named.isdisjoint(platforms):
            return ""
        what = (
            f"names none of {few(platforms, 3)} in its optionalDependencies: whoever installs it "
            "would get no binary"
        )
        todo = (
            "let the workflow run `napi prepublish -t npm --skip-optional-publish "
            "--no-gh-release`, which writes them, before this action"
        )
        config = self.npm.config
        if config.mode == "publish" and not config.dry_run:
            raise PlanError(
                f"{own.manifest}: {package.id.name} {what}",
                hint=f"{todo[0].upper()}{todo[1:]}.",
                problem=Problem.PUBLISHES_ITSELF,
            )
        return f"npm: {package.id.name} {what}, so `publish` refuses it; {todo}"

    def due(self, package: Package) -> str:
        scripts = self._following(package)
        return f"its {' and '.join(scripts)} script{'s' * (len(scripts) > 1)}" if scripts else ""

    async def follow_up(self, package: Package) -> None:
        log = self.npm.logs.fresh("publish", package.id)
        try:
            async with log.piped() as pipe:
                await self.npm.packer.follow_up(
                    {
                        "directory": str(package.directory),
                        "root": str(self._root(package)),
                        "log": str(pipe),
                        "events": self._following(package),
                    }
                )
        except BuildFailed as error:
            raise log.failure(f"but {error}", error) from error

    def _root(self, package: Package) -> Path:
        """Of its own workspace."""
        return self.found.places[package.directory].root

    def _following(self, package: Package) -> tuple[str, ...]:
        # npm runs none of them for a tarball.
        # https://github.com/npm/cli/blob/latest/lib/commands/publish.js
        if self.npm.options.ignore_scripts or package.prebuilt:
            return ()
        return self.found.by_name[package.id.name].following

    async def _build(self, package: Package, into: Path) -> Built:
        log: Log | None = None
        try:
            async with staged_aside(into) as partial:
                request = self._request(package, partial)
                packed = await self.npm.packer.pack_quietly(request)
                if packed is None:
                    log = self.npm.logs.fresh("build", package.id)
                    async with log.piped() as pipe:
                        packed = await self.npm.packer.pack({**request, "log": str(pipe)})
                _check(packed, package)
                if self.contents[package.id.name]:
                    # Nobody has pinned that manifest: what is built is not there before it is.
                    await asyncio.to_thread(
                        tarball.rewrite_manifest,
                        partial / filename(package),
                        lambda text: self.pin(text, {}),
                    )
        except (PackageError, PlanError) as error:
            message = f"{package.id}: it could not be packed: {error}"
            if log is None:
                lines = error.log if isinstance(error, BuildFailed) else ()
                return BuildFailed(message, log=lines, hint=error.hint, problem=error.problem)
            return log.failure(message, error)
        return (await asyncio.to_thread(digested, into / filename(package), *DIGESTS),)

    def _request(self, package: Package, into: Path) -> Mapping[str, object]:
        root = self._root(package)
        contents = self.contents[package.id.name]
        return {
            "directory": str(package.directory),
            "contents": contents,
            "into": str(into / filename(package)),
            "root": str(root),
            "workspaces": [str(each) for each in self._members(package, root, contents)],
            "licenses": self._licenses(package),
            "ignoreScripts": self.npm.options.ignore_scripts,
        }

    def _licenses(self, package: Package) -> tuple[str, ...]:
        home = self.found.places.get(package.directory)
        if home is None or home.root == package.directory or package.prebuilt:
            return ()
        return home.licenses

    def _members(self, package: Package, root: Path, contents: str) -> list[Path]:
        """Of the workspace, those that it makes a difference to: all of them to its root alone."""
        if package.directory == root:
            members = [each.directory for each in self.found.by_name.values()]
        else:
            members = [*{package.directory, package.directory / contents}]
        places = self.found.places
        return [each for each in members if each in places and places[each].root == root != each]


def filename(package: Package) -> str:
    """As `npm pack` names it; no registry shows it, but everybody knows it.

    https://docs.npmjs.com/cli/commands/npm-pack
    """
    return filename_of(package.id.name, package.version)


def filename_of(name: str, version: str) -> str:
    return f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"


def _check(packed: tuple[str, str], package: Package) -> None:
    if packed != (package.id.name, package.version):
        raise BuildFailed(
            f"its scripts made it {'@'.join(packed)}, but {package.version} was planned",
            problem=Problem.BUILT_OTHERWISE,
        )


def _refuse_other_registry(package: NpmPackage) -> None:
    registry = package.publish_config.get("registry")
    if isinstance(registry, str) and "registry.npmjs.org" not in registry:
        raise ConfigError(
            f"{package.manifest}: publishConfig.registry is {registry!r}, and everything goes to "
            "registry.npmjs.org here",
            hint=f"Say so as `npm-registry: {registry}`; what belongs on another registry is left "
            "out with `exclude-packages`, and published by a run of its own.",
            problem=Problem.REGISTRY_SETTINGS,
        )
