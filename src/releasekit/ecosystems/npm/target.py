"""npm packages and their registries, as the Target of a release: what is found, how it is pinned
and packed, and where it goes.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.aio import Resource
from releasekit.config.values import Directory
from releasekit.ecosystems.directory import DirectoryRegistry
from releasekit.ecosystems.interface import (
    Clients,
    Discovery,
    Services,
    Target,
    Trial,
    list_warnings,
)
from releasekit.ecosystems.npm import NPMJS, NpmInputs, discover, document, pin, tarball
from releasekit.ecosystems.npm.composition import NpmComposition
from releasekit.ecosystems.npm.destination import find_named_registry, is_same_registry
from releasekit.ecosystems.npm.directory_layout import PackumentDirectory
from releasekit.ecosystems.npm.entry_points import find_warnings
from releasekit.ecosystems.npm.login import make_login
from releasekit.ecosystems.npm.manifest import find_name_fault
from releasekit.ecosystems.npm.packing import Packer, find_npm
from releasekit.ecosystems.npm.registry import NpmAttesting, NpmRegistry
from releasekit.ecosystems.npm.staging import NpmStaging
from releasekit.ecosystems.npm.tarball import DIGESTS, PrebuiltTarballs, get_filename
from releasekit.ecosystems.npm.versioning import NpmVersioning
from releasekit.ecosystems.preflight import Preflight
from releasekit.ecosystems.shared.artifacts import digested, staged_aside
from releasekit.ecosystems.shared.destinations import find_elsewhere
from releasekit.errors import BuildFailed, ManifestError, PackageError, PlanError, map_all
from releasekit.graph import levels_above
from releasekit.http.origins import require_safe
from releasekit.model import SENT, Action, PackageId
from releasekit.problems import Problem
from releasekit.report.text import few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.directory import Layout
    from releasekit.ecosystems.interface import Built, Into, Registry
    from releasekit.ecosystems.npm import NpmOptions
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.manifest import NpmPackage
    from releasekit.ecosystems.npm.roots import WorkspaceFiles
    from releasekit.ecosystems.shared.destinations import NamedRegistry
    from releasekit.model import Artifact, Package, PackageWarning, PlannedPackage
    from releasekit.state.run_logs import Log

# npmjs.com scans what it takes before it shows it: for 5 minutes as a rule, for 15 or more at peak
# times, and for 55 of them once.
# https://github.blog/changelog/2026-07-28-npm-publish-time-malware-scanning-and-dual-use-metadata/
# https://github.com/apache/maka/pull/5328
_SCANNED_WITHIN_S: Final = 45 * 60.0
_SCAN_MIN: Final = (5, 15)


def layout(options: NpmOptions, inputs: NpmInputs) -> Layout:
    return PackumentDirectory(tag=inputs.tag, url=options.directory_url or NPMJS)


def target(
    config: PlanConfig, options: NpmOptions, services: Services, directory: Registry | None
) -> Discovery:
    """Raises ConfigError for a tag or a registry that cannot be used."""
    inputs = config.own(NpmInputs)
    document.check_tag(inputs.tag, where="npm-tag")
    registry = directory
    if registry is None:
        goes_to = config.registry_url("npm", default=NPMJS)
        url = require_safe(goes_to.text, name="npm-registry", insecure=services.insecure)
        login = make_login(config.trusted_publishing, config.root, services, goes_to)
        stage = options.stage or config.stage
        registry = NpmRegistry(
            url, services, login, inputs=inputs, gate=config.gate, stages=stage == "always"
        )
    make = partial(NpmTarget, config=config, options=options)
    return Discovery.joining(Npm(config, options, services), registry, make)


class NpmTarget(Target):
    def __init__(
        self,
        workspace: NpmWorkspace,
        registry: Registry,
        *,
        config: PlanConfig,
        options: NpmOptions,
    ) -> None:
        super().__init__(workspace, registry)
        self._workspace = workspace
        self._given_tag = config.own(NpmInputs).tag
        self.clients = Clients(try_out=self._try_out)
        self.composition = NpmComposition(workspace.found, workspace.packages, config.root)
        self.versioning = NpmVersioning(workspace.found, config.pin)
        self.elsewhere = workspace.elsewhere
        self.prebuilt = PrebuiltTarballs(workspace.found.by_name)
        self._notes: list[Callable[[Sequence[PlannedPackage]], str]]
        self._notes = [workspace.plan_notes, self._refuse_unaccepted]
        attests, takes = True, None
        taker = registry.layout if isinstance(registry, DirectoryRegistry) else registry
        if isinstance(taker, NpmRegistry | PackumentDirectory):
            found = workspace.found
            taker.usual = {name: found.home(own).usual for name, own in found.by_name.items()}
        if isinstance(registry, NpmRegistry):
            self.staging = staging = NpmStaging(registry, options.stage or config.stage)
            self._notes += [staging.plan_notes, registry.plan_notes]
            waits = registry.is_npmjs and config.gate == "visible" and staging.mode != "always"
            if waits:
                self._notes.append(describe_scans)
            self.preflight = Preflight(
                rights=registry,
                trust=registry if registry.is_npmjs else None,
                is_new=registry.is_new,
                shows_after_s=_SCAN_MIN[0] * 60.0 if waits else 0.0,
                shows_within_s=_SCANNED_WITHIN_S if registry.is_npmjs else 0.0,
            )
            attests, takes = registry.is_npmjs or config.attestations == "required", registry
        if attests:
            private = config.trust_config is not None
            self.attesting = NpmAttesting(workspace.found, takes, private)

    async def find_tool(self, packages: Sequence[Package], /) -> str:
        npm = self._workspace.npm
        return await find_npm(packages, npm.processes, npm.config.root)

    def _refuse_unaccepted(self, planned: Sequence[PlannedPackage]) -> str:
        """What npm refuses to send, and what npmjs.com refuses to take."""

        def refuse(package: Package) -> None:
            own, registry = self._workspace.found.by_name[package.id.name], self.registry
            key, tag = own.tag
            if not self._given_tag:
                document.check_tag(tag, where=f"{own.manifest}: {key}")
            if not isinstance(registry, NpmRegistry):
                return
            # https://github.com/npm/cli/blob/latest/workspaces/libnpmpublish/lib/publish.js
            if (
                registry.access or self._workspace.found.find_access(own)
            ) == "restricted" and not own.name.startswith("@"):
                raise ManifestError(
                    f"{own.manifest}: {own.name} has no scope, and its access (`npm-access`, "
                    "publishConfig, or the settings of its workspace) is restricted, which npm "
                    "takes for packages with a scope only",
                    hint=f'Name it "@scope/{own.name}", or set its access to "public".',
                )
            fault = find_name_fault(own.name)
            if fault and registry.is_npmjs and registry.is_new(package.id):
                raise ManifestError(
                    f"{own.manifest}: name is {own.name!r}, which {fault}, and npmjs.com takes no "
                    "new package of such a name",
                    hint='Write another one, such as "acme-core" or "@acme/core".',
                )

        map_all(refuse, (each.package for each in planned if each.action in SENT))
        return ""

    def plan_notes(self, planned: Sequence[PlannedPackage], /) -> str:
        return ". ".join(filter(None, (notes(planned) for notes in self._notes)))

    async def find_warnings(
        self, package: Package, artifacts: Sequence[Artifact], /
    ) -> list[PackageWarning]:
        return await list_warnings(find_warnings, package, artifacts)

    def _try_out(self, package: Package, shared: Path) -> Trial:
        """By pnpm where the workspace is its own. npm reads the manifests of git dependencies, and
        packs none for a lock file alone: https://github.com/npm/pacote/blob/main/lib/git.js
        """
        url, found = self.registry.url, self._workspace.found
        public = [each for each in found.by_name.values() if not each.unpublishable]
        scopes = {each.name.partition("/")[0] for each in public if each.name.startswith("@")}
        # What belongs to others comes from where the configuration of the user says.
        is_scoped = all(each.name.startswith("@") for each in public)
        everywhere = [] if is_scoped else ["--registry", url]
        if found.home(found.by_name[package.id.name]).tool == "pnpm":
            argv = ["pnpm", "install", "--lockfile-only", "--ignore-workspace"]
            argv += [f"--config.cache-dir={shared}"]
        else:
            argv = ["npm", "install", "--package-lock-only", "--no-audit", "--no-fund"]
            argv += ["--cache", str(shared)]
        manifest = {"private": True, "dependencies": {package.id.name: package.version}}
        return Trial(
            argv=[*argv, "--ignore-scripts", *everywhere],
            files={
                "package.json": json.dumps(manifest),
                ".npmrc": "".join(f"{scope}:registry={url}\n" for scope in sorted(scopes)),
            },
        )

    def due(self, package: Package, /) -> str:
        return self._workspace.due(package)

    async def follow_up(self, package: Package, /) -> None:
        await self._workspace.follow_up(package)


def describe_scans(packages: Sequence[PlannedPackage]) -> str:
    """How long a release waits for the scans of npmjs.com, level after level."""
    sent = {
        each.package.id: {need.on for need in each.package.dependencies}
        for each in packages
        if each.action in SENT
    }
    levels = 1 + max(levels_above(sent).values(), default=-1)
    if not levels:
        return ""
    least, most = (minutes * levels for minutes in _SCAN_MIN)
    note = f"npm: npmjs.com scans each version before it shows it: expect {least} to {most} minutes"
    if levels == 1:
        return note
    return (
        f"{note}, since these packages form {levels} levels, and each waits until the one "
        "below is there. With `gate: accepted` all are scanned at once, and for some minutes a "
        "package may be there before what it needs"
    )


class Npm(Resource):
    """Implements `interface.Ecosystem`."""

    def __init__(self, config: PlanConfig, options: NpmOptions, services: Services) -> None:
        super().__init__()
        self.config = config
        self.options = options
        self.logs = services.logs
        self.processes = services.processes
        passed = services.processes.passing(options.pass_env)
        self.packer = Packer(services.processes, root=config.root, env=passed, group=self.group)

    async def discover(self, root: Path) -> NpmWorkspace:
        workspace = await asyncio.to_thread(self._read, root)
        if self.config.will_build("npm") and workspace.contents:
            # Node starts slowly, and the plan takes a while.
            self.packer.start_early()
        return workspace

    def _read(self, root: Path) -> NpmWorkspace:
        found = discover.find_packages(root, self.options)
        public = [package for package in found.by_name.values() if not package.unpublishable]
        contents = {
            package.name: pin.find_packed_directory(
                package.publish_config, package.manifest, found.home(package)
            )
            for package in public
        }
        is_forced = self.config.own(NpmInputs).force_registry
        elsewhere = find_elsewhere(
            () if is_forced else self._list_elsewhere(found),
            self.config,
            here=str(self.config.registries.get("npm") or NPMJS),
            setting="npm-registry",
            cure="npm-force-registry: true",
        )
        return NpmWorkspace(
            packages=tuple(discover.make_packages(found)),
            found=found,
            contents=contents,
            elsewhere=elsewhere,
            npm=self,
        )

    def _list_elsewhere(self, found: Found) -> Iterator[tuple[PackageId, NamedRegistry]]:
        """A directory stands for all registries."""
        goes_to = self.config.registries.get("npm")
        for package in found.by_name.values() if not isinstance(goes_to, Directory) else ():
            named = find_named_registry(package, found.home(package), is_set=goes_to is not None)
            if (
                named
                and not package.unpublishable
                and not is_same_registry(named.url, str(goes_to or NPMJS))
            ):
                yield PackageId("npm", package.name), named


class NpmWorkspace(Struct, frozen=True, kw_only=True):
    """Implements `interface.Workspace`, and follows up with the scripts `npm publish` runs last.

    `contents` are the directories that are packed of each package that is published, where that is
    not its own, and `elsewhere` those that are meant for another registry.
    """

    packages: tuple[Package, ...]
    found: Found
    contents: Mapping[str, str]
    elsewhere: frozenset[PackageId]
    npm: Npm

    def pin(self, manifest: str, versions: Mapping[str, str]) -> str:
        pinned = pin.Pins(self.found, versions, self.npm.config.pin).pin(manifest)
        own = self.found.by_name.get(pin.read_name(manifest))
        if own is None:
            return pinned
        return pin.apply_publish_config(pinned, self.found.home(own).tool)

    def batches(self, packages: Sequence[Package]) -> Sequence[Sequence[Package]]:
        """Singly: one process packs them all, and each can be published as soon as it is packed."""
        return [[package] for package in packages]

    async def build(self, packages: Sequence[Package], into: Into) -> Mapping[PackageId, Built]:
        return {package.id: await self._build(package, into(package)) for package in packages}

    def plan_notes(self, packages: Sequence[PlannedPackage]) -> str:
        """What the user should know about scripts that run outside of a build, and about files that
        come from the workspace.
        """
        sent = [each.package for each in packages if each.action is not Action.KEEP]
        notes: list[str] = []
        map_all(self._refuse_publishing, sent)
        notes += filter(None, map_all(self._find_missing_platforms, sent))
        if names := [package.id.name for package in sent if self._list_scripts(package)]:
            notes.append(
                f"npm: `publish` and `postpublish` scripts of {few(names)} run "
                "once the registry shows the package, without secrets, and never a second time"
            )
        notes += [
            f"npm: the scripts of {few(names)} do not run, as {where} is set"
            for where, names in self._find_silenced(sent).items()
        ]
        given = {
            package.id.name: [path.name for path in paths]
            for package in sent
            if (paths := self.found.list_given_licenses(package))
        }
        if given:
            files = sorted({file for files in given.values() for file in files})
            notes.append(
                f"npm: {few(files)} of the workspace goes into {few(list(given))}, without "
                "a license of their own, as with pnpm and lerna"
            )
        return ". ".join(notes)

    def _find_silenced(self, packages: Sequence[Package]) -> Mapping[str, list[str]]:
        silenced: dict[str, list[str]] = {}
        for package in packages if not self.npm.options.ignore_scripts else ():
            own = self.found.by_name.get(package.id.name)
            if own and not package.prebuilt and (own.scripts or own.following):
                silenced.setdefault(self.found.home(own).scriptless, []).append(own.name)
        silenced.pop("", None)
        return silenced

    def _refuse_settings(self, home: WorkspaceFiles) -> None:
        document.check_tag(home.usual.get("tag", ""), where=f"{home.root}: the setting tag")
        if home.repacks:
            raise PlanError(
                f"{home.repacks}, which ReleaseKit does not apply: it would pack something else",
                hint="Pack with the tool that does, and give the tarballs to this run by the input "
                "`dist`; or remove it. In place of lerna's `contents`, write "
                "`publishConfig.directory` into each package.json.",
                problem=Problem.OTHER_PACKER,
            )

    def _refuse_publishing(self, package: Package) -> None:
        own = self.found.by_name.get(package.id.name)
        if not own or package.prebuilt:
            return
        self._refuse_settings(self.found.home(own))
        if not own.publishing or self._ignores_scripts(own):
            return
        raise PlanError(
            f"{own.manifest}: the script {own.publishing} runs `napi prepublish`, which publishes "
            "the packages of the platforms itself, and names them in package.json only after the "
            "plan is made",
            hint=f"(1) Call the script `platforms` instead of `{own.publishing}`, with "
            "`napi prepublish -t npm --skip-optional-publish --no-gh-release`; (2) let the "
            "workflow run it behind `napi artifacts`, before this action: `- run: npm run "
            "platforms`; "
            '(3) write `packages = ["npm/*"]` below [npm] in releasekit.toml.',
            problem=Problem.PUBLISHES_ITSELF,
        )

    def _find_missing_platforms(self, package: Package) -> str:
        """The note on a napi package that names none of its platforms, which a run refuses."""
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
            f"names none of {few(platforms, 3)} in its optionalDependencies: its users would get "
            "no binary"
        )
        todo = (
            "let the workflow run `napi prepublish -t npm --skip-optional-publish "
            "--no-gh-release`, which writes them, before this action"
        )
        if self.npm.config.is_uploading:
            raise PlanError(
                f"{own.manifest}: {package.id.name} {what}",
                hint=f"{todo[0].upper()}{todo[1:]}.",
                problem=Problem.PUBLISHES_ITSELF,
            )
        return f"npm: {package.id.name} {what}, so `publish` refuses it; {todo}"

    def due(self, package: Package) -> str:
        scripts = self._list_scripts(package)
        return f"its {' and '.join(scripts)} script{'s' * (len(scripts) > 1)}" if scripts else ""

    async def follow_up(self, package: Package) -> None:
        log = self.npm.logs.fresh("publish", package.id)
        try:
            async with log.piped() as pipe:
                await self.npm.packer.follow_up(
                    {
                        "directory": str(package.directory),
                        "root": str(self.found.places[package.directory].root),
                        "log": str(pipe),
                        "events": self._list_scripts(package),
                    }
                )
        except BuildFailed as error:
            raise log.failure(f"but {error}", error) from error

    def _list_scripts(self, package: Package) -> tuple[str, ...]:
        """Those that run once the package is published; npm runs none of them for a tarball.
        https://github.com/npm/cli/blob/latest/lib/commands/publish.js
        """
        own = self.found.by_name[package.id.name]
        return () if package.prebuilt or self._ignores_scripts(own) else own.following

    def _ignores_scripts(self, own: NpmPackage) -> bool:
        return self.npm.options.ignore_scripts or bool(self.found.home(own).scriptless)

    async def _build(self, package: Package, into: Path) -> Built:
        log: Log | None = None
        filename = get_filename(package)
        try:
            async with staged_aside(into) as directory:
                request = self._make_request(package, directory / filename)
                packed = await self.npm.packer.pack(request)
                if packed.get("takesLog"):
                    log = self.npm.logs.fresh("build", package.id)
                    async with log.piped() as pipe:
                        packed = await self.npm.packer.pack({**request, "log": str(pipe)})
                name, version = packed.get("name"), packed.get("version")
                if (name, version) != (package.id.name, package.version):
                    raise BuildFailed(
                        f"its scripts made it {name}@{version}, but {package.version} was planned",
                        problem=Problem.BUILT_OTHERWISE,
                    )
                if self.contents[package.id.name]:
                    # A manifest that the build makes exists only now, so it is not pinned yet.
                    await asyncio.to_thread(
                        tarball.rewrite_manifest,
                        directory / filename,
                        lambda text: self.pin(text, {}),
                    )
        except (PackageError, PlanError) as error:
            message = f"{package.id}: it could not be packed: {error}"
            if log is None:
                lines = error.log if isinstance(error, BuildFailed) else ()
                return BuildFailed(message, log=lines, hint=error.hint, problem=error.problem)
            return log.failure(message, error)
        return (await asyncio.to_thread(digested, into / filename, *DIGESTS),)

    def _make_request(self, package: Package, into: Path) -> Mapping[str, object]:
        home = self.found.places[package.directory]
        contents = self.contents[package.id.name]
        # All members matter to the packing of the root; to that of a member, only itself.
        if package.directory == home.root:
            candidates = [each.directory for each in self.found.by_name.values()]
        else:
            candidates = [*{package.directory, package.directory / contents}]
        # Ignore files between the root and a package count for members that npm knows. It reads no
        # pnpm-workspace.yaml, and pnpm packs each package by itself, too.
        # https://github.com/npm/npm-packlist/blob/main/lib/index.js
        members = [
            each
            for each in candidates
            if home.tool != "pnpm" and each != home.root and home.find_standing(each) == "member"
        ]
        return {
            "directory": str(package.directory),
            "contents": contents,
            "into": str(into),
            "root": str(home.root),
            "workspaces": [*map(str, members)],
            "licenses": self.found.find_licenses(package),
            "tool": home.tool,
            "ignoreScripts": self.npm.options.ignore_scripts or bool(home.scriptless),
        }
