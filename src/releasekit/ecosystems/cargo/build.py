"""`cargo package` for many crates in one call, and what to do when one of them breaks it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from releasekit.aio import uncancellable
from releasekit.ecosystems.cargo import crate_file, lock_file
from releasekit.ecosystems.cargo.metadata import INSTALL, complaint
from releasekit.ecosystems.shared.artifacts import copy_new, digested, staged
from releasekit.errors import BuildFailed, CommandFailed, PackageError
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.host.streams import TAIL_LINES, last_lines
from releasekit.model import PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.cargo.metadata import Crate
    from releasekit.ecosystems.cargo.mirror import Indexes, Mirror
    from releasekit.ecosystems.interface import Built
    from releasekit.host.process import Processes
    from releasekit.state.run_logs import Log, Logs

# After so many calls that each lost another crate, no single crate is to blame.
MAX_CALLS: Final = 20
# How much of its output is read to find out which crate it was.
_READ_BYTES: Final = 256 * 1024
_READ_LINES: Final = 10_000
# Thirty times that of the largest workspaces.
_MAX_LOCK_BYTES: Final = 16 * 1024 * 1024

# How cargo says which package it is at, and which it cannot find.
# https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs
_STEP: Final = re.compile(r"^ *(?:Packaging|Verifying) (\S+) v", re.MULTILINE)
_MANIFEST: Final = re.compile(r"manifest at `([^`]+)`")
_ABSENT: Final = re.compile(
    r"no matching package named `([^`]+)` found"
    r"|failed to select a version for the requirement `([^ `]+) ="
)

_ASKED_BY: Final = " required by package `"

OLD: Final = (
    "Cargo 1.90 or later is needed to package crates that need one another before they are "
    "published: https://doc.rust-lang.org/cargo/CHANGELOG.html#cargo-190-2025-09-18"
)
PATHLESS: Final = (
    "Cargo looks for it on the registry only. Write `path` beside its `version`, and cargo takes "
    "it from the workspace while it packages."
)
CIRCULAR: Final = (
    "A development dependency with a `version` has to be on the registry first. Leave its "
    "version out: cargo then leaves the dependency out of what is published."
)
LOGGED_OUT: Final = (
    "The index is private, and a build sees no token of ours: log cargo in beforehand, with "
    "`cargo login --registry NAME`."
)
OTHER_BYTES: Final = (
    "Cargo.lock has that version from a registry, for something that needs it from there: it was "
    "published before, with other contents, be it only the commit in its .cargo_vcs_info.json. "
    "Bump its version."
)
METADATA: Final = (
    "Write it into [package], or into [workspace.package] and inherit it: "
    "https://doc.rust-lang.org/cargo/reference/publishing.html"
)


@dataclass(slots=True)
class Batch:
    """Crates of one workspace on their way: `wanted` are to be published; `beside` are packaged
    with them, since those need them and no registry has them for cargo.
    """

    wanted: list[str]
    beside: set[str] = field(default_factory=set)
    failed: dict[str, BuildFailed] = field(default_factory=dict)
    calls: int = 0
    logs: int = 0

    @property
    def left(self) -> list[str]:
        return [name for name in self.wanted if name not in self.failed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packager:
    """What the calls of a run share. `crates` are all members; `edges` what each of them needs
    among the others; `stand_in` is the index of what stands in for crates.io; `indexes` are those
    that can be mirrored. `demanding` is said of a registry that, like crates.io, takes no crate
    without a description and a license. `lost` are those that other calls could not package.
    """

    processes: Processes
    crates: Mapping[str, Crate]
    edges: Mapping[str, Collection[str]]
    scratch: Path
    logs: Logs
    environment: Mapping[str, str]
    stand_in: str = ""
    indexes: Indexes | None = None
    verify: bool = False
    demanding: bool = False
    lost: dict[str, BuildFailed] = field(default_factory=dict)

    async def package(self, directories: Mapping[str, Path]) -> dict[str, Built]:
        """The crates of one workspace, each into the directory of its name."""
        names = list(directories)
        batch = Batch(names)
        if self.demanding:
            for name in names:
                if lacks := self.crates[name].lacks:
                    words = f"crates.io takes no crate without {' and '.join(lacks)}"
                    batch.failed[name] = BuildFailed(
                        f"cargo:{name}: {words}", hint=METADATA, problem=Problem.NOT_A_PACKAGE
                    )
        if self.processes.which("cargo") is None:
            error = BuildFailed("cargo is not on PATH", hint=INSTALL, problem=Problem.BUILD_TOOL)
            return {**dict.fromkeys(names, error), **batch.failed}
        for name in names:
            if culprits := sorted(self.lost.keys() & self._closure(name)):
                batch.failed[name] = _without(name, culprits[0], self.lost[culprits[0]].hint)
        # Of those that one call has lost, any tells what it did not find.
        calls = {error.log: (name, error) for name, error in self.lost.items()}
        for culprit, error in calls.values():
            for name in self._lacking_the_same(culprit, "\n".join(error.log), batch):
                batch.failed[name] = BuildFailed(
                    f"cargo:{name}{str(error).removeprefix(f'cargo:{culprit}')}",
                    log=error.log,
                    hint=error.hint,
                )
        try:
            async with self._mirror(batch) as mirror:
                while batch.left and not await self._packaged(batch, mirror):
                    batch.calls += 1
        except OSError as error:
            batch.failed |= {name: _unusable(name, error) for name in batch.left}
        # Those that cargo itself complained of, and not for want of another one.
        self.lost.update(
            (name, error)
            for name, error in batch.failed.items()
            if error.log and not error.premature
        )
        built: dict[str, Built] = dict(batch.failed)
        for name in batch.left:
            built[name] = await asyncio.to_thread(
                self._collect, self.crates[name], directories[name]
            )
        return built

    @contextlib.asynccontextmanager
    async def _mirror(self, batch: Batch) -> AsyncIterator[Mirror | None]:
        names = reachable(batch.left, lambda name: self.edges.get(name, ()))
        crates = [self.crates[name] for name in sorted(names)]
        indexes = self.indexes
        mirror = None if indexes is None else indexes.mirror(_named(crates), self._home(batch))
        if mirror is None:
            yield None
            return
        needs = {
            (need.registry, need.name)
            for crate in crates
            for need in crate.needs
            if not need.stripped
        }
        lock = await asyncio.to_thread(_read, _lock_of(self.crates[batch.wanted[0]])) or b""
        needs |= await asyncio.to_thread(lock_file.needed, lock, {name for _, name in needs})
        async with mirror:
            mirror.fetch(needs)
            yield mirror

    async def _packaged(self, batch: Batch, mirror: Mirror | None) -> bool:
        """Whether cargo packaged everything; if not, the batch has changed for the next call."""
        named = _named(self.crates[name] for name in (*batch.left, *batch.beside))
        if mirror is not None and not mirror.trouble and named <= {*mirror.names}:
            try:
                await self._call(batch, self._log(batch), mirror)
            except CommandFailed:
                pass  # what is wrong is said by a cargo that asks the registry itself
            else:
                return True
        log = self._log(batch)
        try:
            await self._call(batch, log)
        except CommandFailed:
            self._learn(batch, log)
            return False
        return True

    def _log(self, batch: Batch) -> Log:
        log = self.logs.fresh("build", PackageId("cargo", batch.wanted[0]), call=batch.logs)
        batch.logs += 1
        return log

    async def _call(self, batch: Batch, log: Log, mirror: Mirror | None = None) -> None:
        crate = self.crates[batch.left[0]]
        argv = ["cargo", "package", "--color", "never", "--allow-dirty"]
        argv += ["--target-dir", str(self.scratch)]
        argv += [] if self.verify else ["--no-verify"]
        argv += self._registry(batch, mirror)
        for name in sorted({*batch.left, *batch.beside}):
            argv += ["--package", name]
        env = {**self.environment, **(mirror.environment if mirror else {})}
        lock = _lock_of(crate)
        before = await asyncio.to_thread(_read, lock)
        try:
            await self.processes.run(argv, cwd=crate.workspace, env=env, log=log.path)
        finally:
            # Cargo brings a lock file up to date that is behind the manifests.
            if before is not None:
                await uncancellable(asyncio.to_thread(_restore, lock, before))

    def _registry(self, batch: Batch, mirror: Mirror | None) -> list[str]:
        """The index that in-repo dependencies are to be taken for part of: the one they name."""
        named = self._home(batch)
        # Cargo has to be told where another registry stands in for crates.io.
        # https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/registry/mod.rs
        if mirror is not None:
            return ["--index", mirror.address(named), *mirror.arguments()]
        index = named or self.stand_in
        return ["--index", index] if index else []

    def _home(self, batch: Batch) -> str:
        """The index that manifests name for what is packaged, empty for crates.io."""
        return min(
            (
                need.registry
                for name in (*batch.left, *batch.beside)
                for need in self.crates[name].needs
                if need.name in self.edges.get(name, ()) and need.registry
            ),
            default="",
        )

    def _learn(self, batch: Batch, log: Log) -> None:
        """Change the batch for the next call: without the crate that broke this one, or with those
        that were missing.
        """
        tail = last_lines(log.path, most=_READ_LINES, max_bytes=_READ_BYTES)
        text = "\n".join(tail)
        members = {*batch.left, *batch.beside}
        missing = self._missing(text) - members
        if missing:
            for name in missing:
                batch.beside |= {name, *self._closure(name)} - set(batch.left)
            return
        culprit = self._culprit(text)
        words = complaint(tail)
        if culprit not in members or batch.calls >= MAX_CALLS:
            for name in batch.left:
                batch.failed[name] = self._failure(name, words, log, tail)
            return
        broken = [culprit, *self._lacking_the_same(culprit, text, batch)]
        for name in broken:
            batch.failed[name] = self._failure(name, words.partition(_ASKED_BY)[0], log, tail)
        absent = {culprit} & batch.beside
        batch.beside -= absent
        for name in batch.left:
            closure = self._closure(name)
            for needed in [each for each in broken if each in closure][:1]:
                beside = ("is not there, and ", " beside it") if needed in absent else ("", "")
                reason = f"{needed}, which it needs, {'could not be packaged'.join(beside)}"
                batch.failed[name] = self._failure(name, reason, log, (), absent & {needed})

    def _lacking_the_same(self, culprit: str, text: str, batch: Batch) -> list[str]:
        """Those that need what cargo does not find for one of them: it names them one by one."""
        absent = {name for pair in _ABSENT.findall(text) for name in pair}

        def lacks(crate: str) -> set[tuple[str, str, str]]:
            needs = self.crates[crate].needs
            return {
                (each.name, each.requirement, each.registry)
                for each in needs
                if each.name in absent
            }

        return [
            name
            for name in batch.left
            if name != culprit and not lacks(name).isdisjoint(lacks(culprit))
        ]

    def _failure(
        self, name: str, words: str, log: Log, tail: Sequence[str], absent: Collection[str] = ()
    ) -> BuildFailed:
        hint = log.hint
        missing = {*absent, *self._missing("\n".join(tail))}
        if missing:
            hint = _cure(self.crates[name], missing)
        elif "no token found" in words:
            hint = LOGGED_OUT
        elif "changed between lock files" in words:
            hint = OTHER_BYTES
        return BuildFailed(
            f"cargo:{name} could not be packaged: {words}",
            log=tuple(tail[-TAIL_LINES:]),
            hint=hint,
            premature=bool(missing),
        )

    def _missing(self, text: str) -> set[str]:
        found = {name for pair in _ABSENT.findall(text) for name in pair}
        return {name for name in found if name in self.crates}

    def _culprit(self, text: str) -> str:
        by_manifest = {str(crate.manifest): name for name, crate in self.crates.items()}
        for path in _MANIFEST.findall(text):
            if path in by_manifest:
                return by_manifest[path]
        steps = _STEP.findall(text)
        return str(steps[-1]) if steps else ""

    def _closure(self, name: str) -> set[str]:
        return reachable(self.edges[name], self.edges.__getitem__)

    def _collect(self, crate: Crate, directory: Path) -> Built:
        filename = crate_file.filename(crate.name, crate.version)
        try:
            with staged(directory) as partial:
                copy_new(self.scratch / "package" / filename, partial / filename)
                with durable.reading(partial / filename) as file:
                    packed = crate_file.read_crate(file, crate.name, crate.version)
        except (PackageError, OSError) as error:
            return BuildFailed(f"cargo:{crate.name} could not be packaged: {error}")
        # The one digest that cargo's indexes know.
        artifact = digested(directory / filename, "sha256")
        if self.indexes is not None:
            self.indexes.packaged(packed, artifact.sha256)
        return (artifact,)


def _unusable(name: str, error: OSError) -> BuildFailed:
    return BuildFailed(
        f"cargo:{name} could not be packaged: {error.filename}: {error.strerror}",
        hint="Its workspace needs a Cargo.lock that is a regular file, or none.",
    )


def _without(name: str, culprit: str, hint: str) -> BuildFailed:
    words = f"{culprit}, which it needs, could not be packaged"
    return BuildFailed(f"cargo:{name} could not be packaged: {words}", hint=hint)


def _named(crates: Iterable[Crate]) -> set[str]:
    """The indexes that their manifests name."""
    return {need.registry for crate in crates for need in crate.needs if need.registry}


def _lock_of(crate: Crate) -> Path:
    return crate.workspace / "Cargo.lock"


def _read(lock: Path) -> bytes | None:
    """None where there is none; raises OSError for a link, and what is no file of that size."""
    try:
        return durable.read_file(lock, max_bytes=_MAX_LOCK_BYTES)
    except FileNotFoundError:
        return None


def _restore(lock: Path, before: bytes) -> None:
    """Whatever a build has put in its place goes. Raises OSError."""
    with contextlib.suppress(OSError):
        if _read(lock) == before:
            return
    with contextlib.suppress(FileNotFoundError):
        if not durable.is_file(lock):
            durable.remove_tree(lock)
    durable.replace(lock, before)


def _cure(crate: Crate, missing: Collection[str]) -> str:
    """What to do where cargo does not find members that the crate needs."""
    needs = [need for need in crate.needs if need.name in missing and not need.stripped]
    if any(need.path is None for need in needs):
        return PATHLESS
    return CIRCULAR if needs and all(need.kind == "dev" for need in needs) else OLD
