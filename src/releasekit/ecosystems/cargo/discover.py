"""Which crates a workspace holds and how they depend on one another.

`cargo metadata` reads the manifests: globs, inheritance, renames and default members are not
interpreted again here. https://doc.rust-lang.org/cargo/commands/cargo-metadata.html
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from releasekit.ecosystems.cargo import TOOL, crates_io
from releasekit.ecosystems.cargo.destination import CRATES_IO
from releasekit.ecosystems.cargo.requirements import Requirement
from releasekit.ecosystems.shared.crates import (
    MANIFEST,
    MAX_BYTES,
    is_inherited,
    list_dependencies,
    read_toml,
)
from releasekit.ecosystems.shared.documents import table_in
from releasekit.ecosystems.shared.packages import named_roots, unique_by_name
from releasekit.errors import CommandFailed, ConfigError, Unreadable
from releasekit.fields import replace
from releasekit.graph import rings, stuck
from releasekit.host.files import follow, inside, read_text
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem
from releasekit.text.escape import one_line
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.config.values import PinMode
    from releasekit.ecosystems.cargo.crates_io import Refusal
    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.host.process import Processes

ECOSYSTEM: Final = "cargo"
# Of several dependencies on one package, the first counts.
KINDS: Final = {
    "normal": DependencyKind.RUNTIME,
    "build": DependencyKind.BUILD,
    "dev": DependencyKind.DEV,
}
TIMEOUT_S: Final = 120.0
_WILD: Final = re.compile(r"""["']\s*[*xX]\s*["']""")
_LINKED: Final = frozenset({"cdylib", "staticlib"})
_USED: Final = frozenset({"lib", "rlib", "dylib", "proc-macro", "bin"})
# What stable ones say from that version on, and nightlies before it where `-Z build-dir` asks them.
# https://github.com/rust-lang/cargo/pull/15377, https://github.com/rust-lang/cargo/pull/15833
_OF_RECENT: Final = "build_directory"
_RECENT: Final = "1.91"
_CAUSED: Final = re.compile(r"\s*\nCaused by:\n\s*")
# Cargo reports an error in a manifest above its place, and both above its last lines.
_PLACED: Final = re.compile(
    r"^error: (?P<what>.+(?:\n(?!error: |warning: ).+){0,2}?)\n *--> (?P<place>.+\.toml:\d+:\d+)$",
    re.MULTILINE,
)


class Need(Struct, frozen=True, kw_only=True):
    """A dependency. `requirement` is "*" where no version is written; it `is_wild` where the
    manifest says so. `path` is None where the manifest has none, and `registry` is the URL of its
    index, empty for crates.io; `git` is the URL of a repository that it comes from here.
    """

    name: str
    path: Path | None
    requirement: str
    kind: Literal["normal", "build", "dev"]
    registry: str = ""
    optional: bool = False
    git: str = ""
    is_wild: bool = False

    @property
    def has_version(self) -> bool:
        return self.is_wild or self.requirement != "*"

    @property
    def is_stripped(self) -> bool:
        """Cargo leaves it out of what is published.

        https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#development-dependencies
        """
        return self.kind == "dev" and not self.has_version


class Crate(Struct, frozen=True, kw_only=True):
    """One member. `publish` is None for anywhere, else the names of the registries it may go to;
    `refused` is what crates.io, but no other registry, refuses. A crate that `is_foreign` is linked
    by other languages only, as those of maturin and napi are. `tool` is the cargo of the workspace,
    where it is known to be recent enough.
    """

    name: str
    version: str
    manifest: Path
    workspace: Path
    publish: tuple[str, ...] | None
    needs: tuple[Need, ...]
    refused: tuple[Refusal, ...] = ()
    is_foreign: bool = False
    tool: str = ""

    @property
    def lock_file(self) -> Path:
        return self.workspace / "Cargo.lock"


async def read_metadata(directory: Path, processes: Processes) -> list[Crate]:
    """The members of the workspace of `directory / "Cargo.toml"`. Raises ConfigError with cargo's
    own words, and where cargo is not installed.
    """
    program = processes.which("cargo")
    if program is None:
        raise ConfigError(
            f"{directory / 'Cargo.toml'}: cargo is not on PATH",
            hint=TOOL.install,
            problem=Problem.TOOL_MISSING,
        )
    # With --no-deps cargo reads manifests only: no network, no lock file.
    argv = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    try:
        done = await processes.run(argv, cwd=directory, timeout_s=TIMEOUT_S)
    except CommandFailed as error:
        raise Unreadable(
            f"{directory / 'Cargo.toml'}: cargo cannot read it: {extract_error(error.log)}"
        ) from error
    if "\\u0000" in done.stdout:
        raise Unreadable(f"{directory / 'Cargo.toml'}: holds a NUL character")
    return await asyncio.to_thread(done.stdout.parse, partial(parse_metadata, directory=directory))


def parse_metadata(text: str, directory: Path) -> list[Crate]:
    """The packages of `cargo metadata --no-deps` in `directory`. Raises ValueError for any other
    text.
    """
    document = parse_json(text, max_bytes=None)
    if not isinstance(document, dict) or not document.keys() >= {"workspace_root", "packages"}:
        raise ValueError("neither a workspace nor its packages")
    workspace = Path(document["workspace_root"])
    # Elsewhere another toolchain may be asked for.
    is_recent = _OF_RECENT in document and workspace == directory and TOOL.admits(_RECENT)
    crates = []
    for package in document["packages"]:
        publish, needs = package["publish"], tuple(_parse_needs(package, workspace))
        asked = zip(package["dependencies"], needs, strict=True)
        published = [entry for entry, need in asked if not need.is_stripped]
        # https://doc.rust-lang.org/reference/linkage.html
        kinds = {kind for target in package.get("targets", ()) for kind in target["kind"]}
        crate = Crate(
            name=package["name"],
            version=package["version"],
            manifest=Path(package["manifest_path"]),
            workspace=workspace,
            publish=None if publish is None else tuple(publish),
            needs=needs,
            refused=crates_io.find_refusals(package, published),
            is_foreign=bool(kinds & _LINKED) and kinds.isdisjoint(_USED),
            tool=f"{TOOL.program} {_RECENT} or later" if is_recent else "",
        )
        crates.append(crate)
    return crates


def _parse_needs(package: dict[str, Any], workspace: Path) -> Iterator[Need]:
    """Cargo says "*" too where no version is written: only the manifest tells them apart."""
    own = Path(package["manifest_path"])
    wild: Collection[tuple[str, ...]] = ()
    dependencies = package["dependencies"]
    if any(it["req"] == "*" and (it.get("path") or it.get("source")) for it in dependencies):
        wild = find_wildcards(own, workspace / MANIFEST)
    for each in dependencies:
        kind = each["kind"] or "normal"
        key = _squeeze(each.get("target") or ""), kind, each.get("rename") or each["name"]
        yield _parse_need(each, is_wild=key in wild)


def find_wildcards(manifest: Path, shared: Path) -> set[tuple[str, str, str]]:
    """The target, kind and key of each dependency whose version is written as "*", here or in the
    manifest of the workspace.
    """
    # Most siblings have a path alone: a file without a wildcard is not parsed.
    every = {manifest, shared}
    if not any(_WILD.search(read_text(path, max_bytes=MAX_BYTES)) for path in every):
        return set()
    inherited = table_in(table_in(read_toml(shared), "workspace"), "dependencies")
    found = set()
    for where, value in list_dependencies(read_toml(manifest)):
        if where[0] in {"workspace", "patch"}:
            continue
        table = inherited.get(where[-1]) if is_inherited(value) else value
        version = table.get("version") if isinstance(table, dict) else table
        if isinstance(version, str) and version.strip() in {"*", "x", "X"}:
            target = _squeeze(where[1]) if where[0] == "target" else ""
            kind = where[-2].replace("_", "-").removesuffix("dependencies").removesuffix("-")
            found.add((target, kind or "normal", where[-1]))
    return found


def _squeeze(target: str) -> str:
    """Cargo writes `cfg(any(a,b))` with its own spaces."""
    return "".join(target.split())


def _parse_need(dependency: dict[str, Any], *, is_wild: bool) -> Need:
    path, source = dependency.get("path"), dependency.get("source") or ""
    return Need(
        name=dependency["name"],
        path=Path(path) if path else None,
        requirement=dependency["req"],
        kind=dependency["kind"] or "normal",
        registry=dependency["registry"] or "",
        optional=bool(dependency.get("optional")),
        git=source if source.startswith("git+") else "",
        is_wild=is_wild and dependency["req"] == "*",
    )


def explain_unpublishable_need(
    need: Need, crates: Mapping[str, Crate], *, on_crates_io: bool, pins: PinMode
) -> str:
    """Why no crate can go out with it, as the end of a sentence about it; empty where one can.

    Cargo publishes neither paths nor repositories, but the version beside them.
    https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#multiple-locations
    """
    if need.is_stripped:
        return ""
    if not need.has_version and (need.git or (need.path and need.name not in crates)):
        place = need.git.removeprefix("git+") or str(need.path)
        return f"comes from {place} and has no version, but cargo publishes only the version"
    if not need.has_version and need.path and pins == "none":
        return "has a path and no version, and `pin: none` writes none"
    # https://github.com/rust-lang/crates.io/blob/main/src/controllers/krate/publish.rs
    is_pinned = need.path and need.name in crates and (pins == "exact" or not need.is_wild)
    if on_crates_io and need.requirement == "*" and not is_pinned:
        return 'is "*", which crates.io refuses'
    if on_crates_io and need.registry not in {"", CRATES_IO}:
        return (
            f"comes from {need.registry}, but crates.io accepts no dependency from another registry"
        )
    return ""


def extract_error(log: tuple[str, ...]) -> str:
    """Cargo's error in one line, without warnings; with its place if it is in a manifest."""
    text = "\n" + "\n".join(log)
    if placed := _PLACED.search(text):
        return one_line(f"{placed['place']}: {placed['what']}")
    words = _CAUSED.sub(": ", text.rpartition("\nerror: ")[2])
    return one_line(words) or "it says nothing"


def find_directories(root: Path, workspaces: tuple[str, ...]) -> list[Path]:
    """Where to run cargo: the root, if it has a Cargo.toml, and what the options name."""
    found = [root] if (root / MANIFEST).is_file() else []
    found += named_roots(root, workspaces, [MANIFEST], where="releasekit.toml: cargo.workspaces")
    return list(dict.fromkeys(found))


def merge_crates(
    root: Path, found: Iterable[Crate], destination: Destination
) -> tuple[dict[str, Crate], list[Crate]]:
    """The crates by name, and those that share the name of one that goes to `destination`. Raises
    ConfigError for two of one name that both go there, and for members outside `root`.
    """
    crates = sorted(found, key=lambda crate: crate.manifest)
    for crate in crates:
        inside(root, crate.workspace, where=f"the workspace of {crate.manifest}")
        inside(root, crate.manifest, where=str(crate.manifest))
    return unique_by_name(
        crates,
        cure="take its workspace out of cargo.workspaces",
        private=lambda crate: explain_unpublishable(crate, destination),
    )


def make_packages(
    crates: Mapping[str, Crate], destination: Destination, twins: Sequence[Crate] = ()
) -> tuple[Package, ...]:
    """All crates with their edges; those that may not go to `destination` say why."""
    # Private ones that share the name of a crate are meant by their paths only.
    by_directory = {each.manifest.parent.resolve(): each for each in (*crates.values(), *twins)}
    found = {
        name: _find_dependencies(crate, crates, by_directory, destination)
        for name, crate in crates.items()
    }
    edges = _soften_rings(found, crates)
    # Of the crates that cargo packages in one call, one may need another if that has a path and can
    # go first. Cargo does not find a dependency with a version only, or in a cycle: its dependents,
    # direct and indirect, have to wait for the registry.
    # https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs (do_package)
    needs = {name: {edge.on.name for edge in edges[name]} for name in crates}
    for name in crates:
        if any(edge.visible_first for edge in edges[name]):
            needs[name].add(name)
    alone = stuck(needs)
    packages = []
    for crate in crates.values():
        manifest = crate.manifest.resolve()
        # The manifest of its workspace may declare its dependencies.
        shared = (crate.workspace / MANIFEST).resolve()
        package = Package(
            id=PackageId(ECOSYSTEM, crate.name),
            version=crate.version,
            directory=crate.manifest.parent.resolve(),
            manifest=manifest,
            dependencies=tuple(
                replace(edge, visible_first=crate.name in alone) for edge in edges[crate.name]
            ),
            unpublishable=explain_unpublishable(crate, destination),
            doubt=_explain_doubt(crate),
            inherits=() if shared == manifest else (shared,),
        )
        packages.append(package)
    return tuple(packages)


def find_alone(packages: Iterable[Package]) -> set[str]:
    """Those that cargo packages in a separate call, once the registry has all that each needs."""
    return {
        package.id.name
        for package in packages
        if any(dependency.visible_first for dependency in package.dependencies)
    }


def _explain_doubt(crate: Crate) -> str:
    if crate.is_foreign:
        return "is a library for other languages alone, which no crate can use"
    # The layout of maturin and setuptools-rust, with an rlib for tests.
    if (crate.manifest.parent / "pyproject.toml").is_file():
        return "shares its directory with a Python package, which is built of it"
    return ""


def _find_dependencies(
    crate: Crate,
    by_name: Mapping[str, Crate],
    by_directory: Mapping[Path, Crate],
    destination: Destination,
) -> tuple[Dependency, ...]:
    """Its edges to other members, each once.

    Every kind counts, optional and target-specific ones too, because a registry refuses a package
    with any dependency that it does not know; cargo strips only some development dependencies. In a
    cycle, a development dependency gives way: cargo publishes such a pair one after the other.
    https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs (local_deps)
    """
    edges: dict[str, Dependency] = {}
    for need in sorted(crate.needs, key=lambda need: [*KINDS].index(need.kind)):
        if need.path is None:
            other = _find_published(need, by_name, destination)
        else:
            other = by_directory.get(follow(need.path))
        if other is None or other.name == crate.name or need.is_stripped:
            continue
        is_released = by_name[other.name] is other
        edge = Dependency(
            on=PackageId(ECOSYSTEM, other.name),
            kind=KINDS[need.kind],
            requirement=need.requirement if need.has_version else "",
            soft=need.kind == "dev",
            private="" if is_released else explain_unpublishable(other, destination),
            # Another version of the same major has no place in the same build.
            # https://doc.rust-lang.org/cargo/reference/resolver.html
            exact=need.kind == "normal" and need.requirement.startswith("="),
            visible_first=need.path is None or other.workspace != crate.workspace,
        )
        first = edges.setdefault(other.name, edge)
        if edge.visible_first:
            edges[other.name] = replace(first, visible_first=True)
    return tuple(edges.values())


def _find_published(
    need: Need, by_name: Mapping[str, Crate], destination: Destination
) -> Crate | None:
    """What the registry will have by the name of a need without a path, if the version fits:
    `[patch]` puts the member in its place within the workspace only.

    https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html
    """
    other = by_name.get(need.name)
    if other is None or not need.has_version or not destination.holds(need.registry):
        return None
    fits = Requirement.parse(need.requirement).matches(other.version)
    return other if fits and not explain_unpublishable(other, destination) else None


def _soften_rings(
    edges: Mapping[str, tuple[Dependency, ...]], crates: Mapping[str, Crate]
) -> dict[str, tuple[Dependency, ...]]:
    """A crate may need an older release of one that needs it. Cargo takes a dependency without a
    path from the registry, so in a cycle such an edge only says what goes first if possible.
    """
    hard = {
        name: {edge.on.name for edge in found if not edge.soft} for name, found in edges.items()
    }
    ring_of = {name: ring for ring in rings(hard) for name in ring}

    def soften(name: str, edge: Dependency) -> Dependency:
        needs = [need for need in crates[name].needs if need.name == edge.on.name]
        has_path = any(need.path is not None and need.kind != "dev" for need in needs)
        if edge.soft or has_path or edge.on.name not in ring_of.get(name, ()):
            return edge
        return replace(edge, kind=DependencyKind.ORDER, soft=True)

    return {name: tuple(soften(name, edge) for edge in found) for name, found in edges.items()}


def explain_unpublishable(crate: Crate, destination: Destination) -> str:
    """https://doc.rust-lang.org/cargo/reference/manifest.html#the-publish-field"""
    if crate.publish is not None and not crate.publish:
        return "its `publish` is false"
    if crate.publish is not None and destination.name not in crate.publish:
        goes_to = destination.name or "a registry that cargo has no name for"
        return f"its `publish` allows {', '.join(crate.publish)} only, and this is {goes_to}"
    return ""
