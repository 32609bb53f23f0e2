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
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
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
# Cargo reads the whole workspace for each call. So small levels are joined until a call has a
# sixteenth of all crates where there are more than so many, and the most that a call has doubles.
FEW_CALLS: Final = 16
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
    packaged with them, because those need them and cargo finds them in no registry. `is_mirrored`
    until a mirror was of no use.
    """

    wanted: list[str]
    is_mirrored: bool = True
    beside: set[str] = field(default_factory=set)
    failed: dict[str, BuildFailed] = field(default_factory=dict)
    calls: int = 0
    logs: int = 0

    @property
    def left(self) -> list[str]:
        return [name for name in self.wanted if name not in self.failed]


class Packager(Struct, frozen=True, kw_only=True):
    """What the calls of a run share. `crates` are all members; `edges` what each of them needs
    among the others; `whole` are those of one workspace that this run builds, which one call
    packages where it has no mirror, and `kept` says where the files of members lie that earlier
    runs have built. `packaged` are the SHA-256 of crates that other calls packaged beside theirs,
    and `lost` are those that they could not package.
    """

    processes: Processes
    crates: Mapping[str, Crate]
    edges: Mapping[str, Collection[str]]
    scratch: Path
    logs: Logs
    environment: Mapping[str, str]
    indexes: Indexes
    open_mirror: Callable[[Iterable[str], str], Awaitable[Mirror | None]]
    verify: bool = False
    whole: Collection[str] = ()
    kept: Mapping[str, Path] = field(default_factory=dict)
    packaged: dict[str, str] = field(default_factory=dict)
    lost: dict[str, BuildFailed] = field(default_factory=dict)

    async def package(self, directories: Mapping[str, Path]) -> dict[str, Built]:
        """The crates of one workspace, each into the directory of its name."""
        names = list(directories)
        batch = CrateBatch([name for name in names if name not in self.packaged])
        if self.processes.which("cargo") is None:
            error = BuildFailed(
                "cargo is not on PATH", hint=TOOL.install, problem=Problem.BUILD_TOOL
            )
            return dict.fromkeys(names, error)
        if batch.wanted:
            await self._package(batch)
        # Those that cargo itself complained of, other than for the lack of another crate.
        self.lost.update(
            (name, error)
            for name, error in batch.failed.items()
            if error.log and not error.premature
        )
        built: dict[str, Built] = {**batch.failed}
        for name in names:
            if name not in built:
                crate, directory = self.crates[name], directories[name]
                built[name] = await asyncio.to_thread(self._collect, crate, directory)
        return built

    async def _package(self, batch: CrateBatch) -> None:
        for name in batch.wanted:
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
            lock = await asyncio.to_thread(_read, self.crates[batch.wanted[0]].lock_file)
        except OSError as error:
            for name in batch.left:
                batch.failed[name] = BuildFailed(
                    f"cargo:{name} could not be packaged: {describe_os_error(error)}",
                    hint="Its workspace needs a Cargo.lock that is a regular file, or none.",
                )
            return
        mirror = await self._open_mirror(batch, lock)
        while batch.left and not await self._try_to_package(batch, mirror):
            batch.calls += 1
        for name in batch.beside if batch.left else ():
            if sha256 := await asyncio.to_thread(self._show, name, self.scratch / "package"):
                self.packaged[name] = sha256

    async def _open_mirror(self, batch: CrateBatch, lock: bytes) -> Mirror | None:
        """One that fetches ahead what cargo will ask for; None where cargo has to ask itself."""
        workspace = find_members(self.crates, batch.wanted[0])
        mirror = await self.open_mirror(find_indexes(workspace), self._find_home(workspace))
        if mirror is not None:
            needed = reachable(batch.left, lambda name: self.edges.get(name, ()))
            needs = {
                (need.registry, need.name)
                for name in needed
                for need in self.crates[name].needs
                if not need.is_stripped
            }
            needs |= await asyncio.to_thread(read_lock_needs, lock, {name for _, name in needs})
            mirror.fetch(needs)
        return mirror

    async def _try_to_package(self, batch: CrateBatch, mirror: Mirror | None) -> bool:
        """Whether cargo packaged everything; if not, changes the batch for the next call."""
        if mirror is not None and batch.is_mirrored and not mirror.trouble:
            batch.beside |= await asyncio.to_thread(self._find_unseen, batch, mirrored=True)
            log = self._new_log(batch)
            try:
                await self._call(batch, log, mirror)
            except CommandFailed:
                if not mirror.trouble and self._learn(batch, log, mirrored=True):
                    return False
            else:
                return True
        # Cargo asks the registry itself, and says what is wrong. Nor does it find there what is to
        # be uploaded, so it packages everything in one call, as without ReleaseKit.
        batch.is_mirrored = False
        batch.beside |= await asyncio.to_thread(self._find_unseen, batch, mirrored=False)
        batch.beside |= self._find_whole(batch)
        log = self._new_log(batch)
        try:
            await self._call(batch, log)
        except CommandFailed:
            _ = self._learn(batch, log)
            return False
        return True

    def _find_whole(self, batch: CrateBatch) -> set[str]:
        """What one call may package as well: all but what needs a crate that could not be."""
        return {
            name
            for name in self.whole
            if name not in self.packaged
            and name not in batch.left
            and batch.failed.keys().isdisjoint({name, *self._closure(name)})
        }

    def _find_unseen(self, batch: CrateBatch, *, mirrored: bool) -> set[str]:
        """Other members of the workspace that cargo would not find, or only as an earlier version:
        it packages them beside those that need them. Not those on a circle: cargo cannot.
        """
        workspace = {crate.name for crate in find_members(self.crates, batch.wanted[0])}
        needed = reachable(batch.left, lambda name: self.edges.get(name, ())) & workspace
        unseen = {
            name
            for name in needed.difference(batch.left)
            if name not in self._closure(name)
            and not self.indexes.may_have(name, self.crates[name].version, mirrored=mirrored)
        }
        if mirrored:
            unseen -= {
                name for name in unseen & self.kept.keys() if self._show(name, self.kept[name])
            }
        return unseen

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
        home = self._find_home(find_members(self.crates, batch.wanted[0]))
        if mirror is not None:
            argv += ["--index", mirror.address(home), *mirror.arguments()]
        elif index := home or self.indexes.stand_in:
            argv += ["--index", index]
        for name in sorted({*batch.left, *batch.beside}):
            argv += ["--package", name]
        env = {**self.environment, **(mirror.environment if mirror else {})}
        await self.processes.run(argv, cwd=crate.workspace, env=env, log=log.path)

    def _find_home(self, crates: Iterable[Crate]) -> str:
        """The index that manifests name for the packaged crates, empty for crates.io."""
        return min(
            (
                need.registry
                for crate in crates
                for need in crate.needs
                if need.name in self.edges.get(crate.name, ()) and need.registry
            ),
            default="",
        )

    def _learn(self, batch: CrateBatch, log: Log, *, mirrored: bool = False) -> bool:
        """Takes out of the batch what broke this call, or takes in the crates that it lacked. False
        where a call with a mirror may have failed for other reasons than its crates: it may be
        offline, or find no room for what it downloads.
        """
        tail = last_lines(log.path, most=_READ_LINES, max_bytes=_READ_BYTES)
        text = "\n".join(tail)
        members = {*batch.left, *batch.beside}
        if missing := self._find_missing(text) - members:
            for name in missing:
                batch.beside |= {name, *self._closure(name)} - set(batch.left)
            return True
        culprit = self._find_culprit(text)
        words = extract_error(tail)
        if words == _UNVERIFIED:
            words = f"{_NOT_COMPILED}{find_cause(tail) or 'rustc names no error'}"
        elif mirrored:
            return False
        # After so many calls that each lost another crate, no single crate is to blame.
        if culprit not in members or batch.calls >= MAX_CALLS:
            for name in batch.left:
                batch.failed[name] = self._make_failure(name, words, log, tail)
            return True
        broken = [culprit, *self._find_lacking_the_same(culprit, text, batch)]
        for name in broken:
            batch.failed[name] = self._make_failure(name, words.partition(_ASKED_BY)[0], log, tail)
        absent = {culprit} & batch.beside
        batch.beside -= {
            name for name in batch.beside if not {name, *self._closure(name)}.isdisjoint(broken)
        }
        for name in batch.left:
            closure = self._closure(name)
            needed = next((each for each in broken if each in closure), None)
            if needed is not None:
                beside = ("is not there, and ", " beside it") if needed in absent else ("", "")
                reason = f"{needed}, which it needs, {'could not be packaged'.join(beside)}"
                batch.failed[name] = self._make_failure(
                    name, reason, log, absent=absent & {needed}, blamed=needed
                )
        return True

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
                packed = self._read_packaged(partial / filename, crate)
        except (PackageError, OSError) as error:
            return BuildFailed(f"cargo:{crate.name} could not be packaged: {error}")
        # The only digest in cargo's indexes.
        artifact = digested(directory / filename, "sha256")
        self.indexes.add_packaged(packed, artifact)
        return (artifact,)

    def _read_packaged(self, path: Path, crate: Crate) -> crate_file.CrateFile:
        """Raises OSError, and PackageError for anything but what cargo has packaged."""
        with durable.reading(path) as file:
            packed = crate_file.read_crate(file, crate.name, crate.version)
        expected = self.packaged.get(crate.name)
        if expected is not None and digested(path, "sha256").sha256 != expected:
            raise BuildFailed("a build has changed it since")
        return packed

    def _show(self, name: str, directory: Path) -> str:
        """In mirrors, the crate of this name that lies there: its SHA-256, empty for none."""
        crate = self.crates[name]
        path = directory / crate_file.filename(crate.name, crate.version)
        with contextlib.suppress(PackageError, OSError):
            packed, artifact = self._read_packaged(path, crate), digested(path, "sha256")
            self.indexes.add_packaged(packed, artifact)
            return artifact.sha256
        return ""


def find_members(crates: Mapping[str, Crate], name: str) -> list[Crate]:
    """All of the cargo workspace that the crate of this name is in."""
    top = crates[name].workspace
    return [crate for crate in crates.values() if crate.workspace == top]


def find_indexes(crates: Iterable[Crate]) -> set[str]:
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
    later ones are packaged. Where possible, no crate needs another of its own call: cargo would
    compile that one twice, once from this call, and once from the mirror for a later one.
    """
    level: dict[PackageId, int] = {}
    for package in packages:
        needs = [level[need.on] for need in package.dependencies if need.on in level]
        level[package.id] = max(needs, default=-1) + 1
    is_deep = max(level.values(), default=0) >= FEW_CALLS
    least, most = -(-len(packages) // FEW_CALLS) if is_deep else 1, MOST_IN_FIRST
    chunks: list[list[Package]] = []
    chunk: list[Package] = []
    for package in sorted(packages, key=lambda package: level[package.id]):
        is_next_level = bool(chunk) and level[chunk[-1].id] < level[package.id]
        if len(chunk) == most or (is_next_level and len(chunk) >= least):
            chunks.append(chunk)
            chunk, most = [], 2 * most
        chunk.append(package)
    return [*chunks, chunk] if chunk else chunks


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
