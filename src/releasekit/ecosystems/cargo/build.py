"""`cargo package` for many crates in one call: which go together, and what happens when one of them
breaks the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.ecosystems.cargo import TOOL, crate_file
from releasekit.ecosystems.cargo.destination import CRATES_IO
from releasekit.ecosystems.cargo.discover import extract_error
from releasekit.ecosystems.shared.artifacts import copy_new, digested, staged
from releasekit.ecosystems.shared.documents import text_in
from releasekit.errors import BuildFailed, CommandFailed, PackageError, describe_os_error
from releasekit.graph import reachable
from releasekit.host import durable
from releasekit.host.streams import TAIL_LINES, last_lines
from releasekit.model import PackageId
from releasekit.problems import Problem
from releasekit.text.bounds import parse_toml
from releasekit.text.cause import find_cause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.cargo.discover import Crate
    from releasekit.ecosystems.cargo.mirror import Indexes, Mirror
    from releasekit.ecosystems.interface import Built
    from releasekit.host.process import Processes
    from releasekit.model import Package
    from releasekit.state.run_logs import Log, Logs


MAX_CALLS: Final = 20
# How much of cargo's output is searched for the crate that broke a call.
_READ_BYTES: Final = 256 * 1024
_READ_LINES: Final = 10_000
# Thirty times the lock file of the largest workspaces.
_MAX_LOCK_BYTES: Final = 16 * 1024 * 1024
# Cargo reads the whole workspace for each call, so each has twice as many as the one before.
MOST_IN_FIRST: Final = 16

# How cargo names the package at work, and those that it cannot find.
# https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs
_STEP: Final = re.compile(r"^ *(?:Packaging|Verifying) (\S+) v", re.MULTILINE)
_MANIFEST: Final = re.compile(r"manifest at `([^`]+)`")
_ABSENT: Final = re.compile(
    r"no matching package named `([^`]+)` found"
    r"|failed to select a version for the requirement `([^ `]+) ="
)
_ASKED_BY: Final = " required by package `"

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
# All that cargo says at the end where rustc has said the rest above.
# https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/ops/cargo_package/mod.rs
_UNVERIFIED: Final = "failed to verify package tarball"
_NOT_COMPILED: Final = "it does not compile: "
VERIFY_OFF: Final = (
    "If it compiles on other machines or with other features only, `[cargo] verify = false` "
    "publishes crates without compiling them."
)


class CrateBatch(Struct):
    """Crates of one workspace that are being packaged: `wanted` are to be published; `beside` are
    packaged with them, because those need them and cargo finds them in no registry.
    """

    wanted: list[str]
    beside: set[str] = field(default_factory=set)
    failed: dict[str, BuildFailed] = field(default_factory=dict)
    calls: int = 0
    logs: int = 0

    @property
    def left(self) -> list[str]:
        return [name for name in self.wanted if name not in self.failed]


class Packager(Struct, frozen=True, kw_only=True):
    """What the calls of a run share. `crates` are all members; `edges` what each of them needs
    among the others; `stand_in` is the index of what stands in for crates.io; `indexes` are those
    that can be mirrored. `lost` are the crates that other calls could not package.
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
    lost: dict[str, BuildFailed] = field(default_factory=dict)

    async def package(self, directories: Mapping[str, Path]) -> dict[str, Built]:
        """The crates of one workspace, each into the directory of its name."""
        names = list(directories)
        batch = CrateBatch(names)
        if self.processes.which("cargo") is None:
            error = BuildFailed(
                "cargo is not on PATH", hint=TOOL.install, problem=Problem.BUILD_TOOL
            )
            return dict.fromkeys(names, error)
        for name in names:
            if culprits := sorted(self.lost.keys() & self._closure(name)):
                batch.failed[name] = BuildFailed(
                    f"cargo:{name} could not be packaged: {culprits[0]}, which it needs, could not "
                    "be packaged",
                    hint=self.lost[culprits[0]].hint,
                    premature=True,
                )
        # All crates that one call has lost have the same log, so one of them is enough.
        calls = {error.log: (name, error) for name, error in self.lost.items()}
        for culprit, error in calls.values():
            for name in self._find_lacking_the_same(culprit, "\n".join(error.log), batch):
                batch.failed[name] = BuildFailed(
                    f"cargo:{name}{str(error).removeprefix(f'cargo:{culprit}')}",
                    log=error.log,
                    hint=error.hint,
                )
        try:
            lock = await asyncio.to_thread(_read, self.crates[names[0]].lock_file)
            async with self._mirror(batch, lock) as mirror:
                while batch.left and not await self._try_to_package(batch, mirror):
                    batch.calls += 1
        except OSError as error:
            for name in batch.left:
                batch.failed[name] = BuildFailed(
                    f"cargo:{name} could not be packaged: {describe_os_error(error)}",
                    hint="Its workspace needs a Cargo.lock that is a regular file, or none.",
                )
        # Those that cargo itself complained of, other than for the lack of another crate.
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
    async def _mirror(self, batch: CrateBatch, lock: bytes) -> AsyncIterator[Mirror | None]:
        names = reachable(batch.left, lambda name: self.edges.get(name, ()))
        crates = [self.crates[name] for name in sorted(names)]
        named, home = _find_indexes(crates), self._find_home(batch)
        indexes = self.indexes
        # A cargo that compiles also downloads what it needs, into the directory that it uses
        # outside of ReleaseKit too, so it reads the registries itself where these have everything.
        if self.verify and not any(map(self._lacks_member, batch.left)):
            indexes = None
        mirror = indexes.mirror(named, home, downloads=self.verify) if indexes else None
        if mirror is None:
            yield None
            return
        needs = {
            (need.registry, need.name)
            for crate in crates
            for need in crate.needs
            if not need.is_stripped
        }
        needs |= await asyncio.to_thread(read_lock_needs, lock, {name for _, name in needs})
        async with mirror:
            mirror.fetch(needs)
            yield mirror

    def _lacks_member(self, name: str) -> bool:
        """Whether cargo looks for another member on a registry that is not that of this release: it
        packages what has a path beside it, unless that closes a cycle.
        """
        destination = self.indexes.destination if self.indexes else None
        return destination is not None and any(
            need.name in self.edges[name]
            and not need.is_stripped
            and not destination.is_read_by_cargo(need.registry)
            and (need.path is None or name in self._closure(need.name))
            for need in self.crates[name].needs
        )

    async def _try_to_package(self, batch: CrateBatch, mirror: Mirror | None) -> bool:
        """Whether cargo packaged everything; if not, changes the batch for the next call."""
        named = _find_indexes(self.crates[name] for name in (*batch.left, *batch.beside))
        if mirror is not None and not mirror.trouble and named <= {*mirror.names}:
            log = self._new_log(batch)
            try:
                await self._call(batch, log, mirror)
            except CommandFailed:
                # Without the mirror, cargo would only miss the other members.
                if self.verify and not mirror.trouble:
                    self._learn(batch, log)
                    return False
                # The next call asks the registry itself, and reports what is wrong.
            else:
                return True
        log = self._new_log(batch)
        try:
            await self._call(batch, log)
        except CommandFailed:
            self._learn(batch, log)
            return False
        return True

    def _new_log(self, batch: CrateBatch) -> Log:
        log = self.logs.fresh("build", PackageId("cargo", batch.wanted[0]), call=batch.logs)
        batch.logs += 1
        return log

    async def _call(self, batch: CrateBatch, log: Log, mirror: Mirror | None = None) -> None:
        crate = self.crates[batch.left[0]]
        argv = ["cargo", "package", "--color", "never", "--allow-dirty"]
        argv += ["--target-dir", str(self.scratch)]
        argv += [] if self.verify else ["--no-verify"]
        # The index that in-repo dependencies belong to: the one that manifests name for them. Where
        # another registry stands in for crates.io, cargo has to be told of it.
        # https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/registry/mod.rs
        home = self._find_home(batch)
        if mirror is not None:
            argv += ["--index", mirror.address(home), *mirror.arguments()]
        elif index := home or self.stand_in:
            argv += ["--index", index]
        for name in sorted({*batch.left, *batch.beside}):
            argv += ["--package", name]
        env = {**self.environment, **(mirror.environment if mirror else {})}
        await self.processes.run(argv, cwd=crate.workspace, env=env, log=log.path)

    def _find_home(self, batch: CrateBatch) -> str:
        """The index that manifests name for the packaged crates, empty for crates.io."""
        return min(
            (
                need.registry
                for name in (*batch.left, *batch.beside)
                for need in self.crates[name].needs
                if need.name in self.edges.get(name, ()) and need.registry
            ),
            default="",
        )

    def _learn(self, batch: CrateBatch, log: Log) -> None:
        """Takes out of the batch what broke this call, or takes in the crates that it lacked."""
        tail = last_lines(log.path, most=_READ_LINES, max_bytes=_READ_BYTES)
        text = "\n".join(tail)
        members = {*batch.left, *batch.beside}
        if missing := self._find_missing(text) - members:
            for name in missing:
                batch.beside |= {name, *self._closure(name)} - set(batch.left)
            return
        culprit = self._find_culprit(text)
        words = extract_error(tail)
        if words == _UNVERIFIED:
            words = f"{_NOT_COMPILED}{find_cause(tail) or 'rustc names no error'}"
        # After so many calls that each lost another crate, no single crate is to blame.
        if culprit not in members or batch.calls >= MAX_CALLS:
            for name in batch.left:
                batch.failed[name] = self._make_failure(name, words, log, tail)
            return
        broken = [culprit, *self._find_lacking_the_same(culprit, text, batch)]
        for name in broken:
            batch.failed[name] = self._make_failure(name, words.partition(_ASKED_BY)[0], log, tail)
        absent = {culprit} & batch.beside
        batch.beside -= absent
        for name in batch.left:
            closure = self._closure(name)
            needed = next((each for each in broken if each in closure), None)
            if needed is not None:
                beside = ("is not there, and ", " beside it") if needed in absent else ("", "")
                reason = f"{needed}, which it needs, {'could not be packaged'.join(beside)}"
                batch.failed[name] = self._make_failure(
                    name, reason, log, absent=absent & {needed}, blamed=needed
                )

    def _find_lacking_the_same(self, culprit: str, text: str, batch: CrateBatch) -> list[str]:
        """Those that need what cargo does not find for the culprit: it names only one at a time."""
        absent = {name for pair in _ABSENT.findall(text) for name in pair}

        def lacks(crate: str) -> set[tuple[str, str, str]]:
            needs = [need for need in self.crates[crate].needs if need.name in absent]
            return {(need.name, need.requirement, need.registry) for need in needs}

        return [name for name in batch.left if name != culprit and lacks(name) & lacks(culprit)]

    def _make_failure(
        self,
        name: str,
        words: str,
        log: Log,
        tail: Sequence[str] = (),
        *,
        absent: Collection[str] = (),
        blamed: str = "",
    ) -> BuildFailed:
        """`blamed` is the crate that is at fault, empty for its own."""
        hint = log.hint
        missing = {*absent, *self._find_missing("\n".join(tail))}
        if missing:
            needs = [need for need in self.crates[name].needs if need.name in missing]
            needs = [need for need in needs if not need.is_stripped]
            if any(need.path is None for need in needs):
                hint = PATHLESS
            elif needs and all(need.kind == "dev" for need in needs):
                hint = CIRCULAR
        elif "no token found" in words:
            hint = LOGGED_OUT
        elif "changed between lock files" in words:
            hint = OTHER_BYTES
        elif words.startswith(_NOT_COMPILED):
            hint = f"{log.hint} {VERIFY_OFF}"
        return BuildFailed(
            f"cargo:{name} could not be packaged: {words}",
            log=tuple(tail[-TAIL_LINES:]),
            hint=hint,
            premature=bool(missing or blamed),
        )

    def _find_missing(self, text: str) -> set[str]:
        found = {name for pair in _ABSENT.findall(text) for name in pair}
        return {name for name in found if name in self.crates}

    def _find_culprit(self, text: str) -> str:
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
        # The only digest in cargo's indexes.
        artifact = digested(directory / filename, "sha256")
        if self.indexes is not None:
            self.indexes.add_packaged(packed, artifact)
        return (artifact,)


def _find_indexes(crates: Iterable[Crate]) -> set[str]:
    """The indexes that their manifests name."""
    return {need.registry for crate in crates for need in crate.needs if need.registry}


def _read(lock: Path) -> bytes:
    """Empty where it does not exist; raises OSError for a link, and for one that is too large."""
    try:
        return durable.read_file(lock, max_bytes=_MAX_LOCK_BYTES)
    except FileNotFoundError:
        return b""


def split_into_chunks(packages: Sequence[Package]) -> list[list[Package]]:
    """`packages`, in publish order, in several calls of cargo: the first crates are uploaded while
    later ones are packaged. What needs none of the others comes first.
    """
    ids = {package.id for package in packages}
    first: list[Package] = []
    later: list[Package] = []
    for package in packages:
        waits = any(need.on in ids for need in package.dependencies)
        (later if waits else first).append(package)
    ordered, size = [*first, *later], min(len(first), MOST_IN_FIRST)
    chunks = []
    while ordered and size:
        chunks.append(ordered[:size])
        ordered, size = ordered[size:], 2 * size
    return [*chunks, ordered] if ordered else chunks


def read_lock_needs(lock: bytes, names: Iterable[str]) -> set[tuple[str, str]]:
    """What a Cargo.lock has of `names` and their needs from registries: the index, as manifests
    name it and empty for crates.io, and the name. Empty for an invalid file: cargo complains of it.

    https://doc.rust-lang.org/cargo/guide/cargo-toml-vs-cargo-lock.html
    """
    try:
        packages = parse_toml(lock.decode()).get("package")
    except ValueError:
        return set()
    edges: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for package in packages if isinstance(packages, list) else []:
        name, source = text_in(package, "name"), text_in(package, "source")
        if name and source:
            # "NAME", "NAME VERSION" or "NAME VERSION (SOURCE)".
            needs = package.get("dependencies") or []
            edges.setdefault(name, set()).update(str(need).partition(" ")[0] for need in needs)
            sources.setdefault(name, set()).add("" if source == f"registry+{CRATES_IO}" else source)
    return {
        (source, name)
        for name in reachable(names, lambda name: edges.get(name, ()))
        for source in sources.get(name, ())
        if not source.startswith("registry+")
    }
