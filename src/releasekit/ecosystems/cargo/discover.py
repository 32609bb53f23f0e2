"""Which crates a workspace holds and how they depend on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.ecosystems.shared.roots import named_roots
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.metadata import Crate

ECOSYSTEM: Final = "cargo"
MANIFEST: Final = "Cargo.toml"


def directories(root: Path, workspaces: tuple[str, ...]) -> list[Path]:
    """Where to ask cargo: the root, if it has a Cargo.toml, and what the options name."""
    found = [root] if (root / MANIFEST).is_file() else []
    found += named_roots(root, workspaces, [MANIFEST], where="releasekit.toml: cargo.workspaces")
    return list(dict.fromkeys(found))


def merged(
    root: Path, found: Iterable[Crate], destination: Destination
) -> tuple[dict[str, Crate], list[Crate]]:
    """By name, sorted, and those that share the name of one that goes to `destination`; raises
    ConfigError for two of one name that do, and for members outside `root`.
    """
    crates = sorted(found, key=lambda crate: crate.manifest)
    for crate in crates:
        inside(root, crate.workspace, where=f"the workspace of {crate.manifest}")
        inside(root, crate.manifest, where=str(crate.manifest))
    return unique_by_name(
        crates,
        cure="take its workspace out of cargo.workspaces",
        private=lambda crate: unpublishable(crate, destination),
    )


def packages(
    crates: Mapping[str, Crate], destination: Destination, twins: Sequence[Crate] = ()
) -> list[Package]:
    """All of them, with their edges; those that may not go to `destination` say why."""
    known = (*crates.values(), *twins)
    by_directory = {crate.manifest.parent.resolve(): crate for crate in known}
    private = {id(crate): unpublishable(crate, destination) for crate in twins}
    return [
        Package(
            id=PackageId(ECOSYSTEM, crate.name),
            version=crate.version,
            directory=crate.manifest.parent.resolve(),
            manifest=crate.manifest.resolve(),
            dependencies=dependencies(crate, by_directory, private),
            unpublishable=unpublishable(crate, destination),
            inherits=inherited(crate),
        )
        for crate in crates.values()
    ]


def dependencies(
    crate: Crate, by_directory: Mapping[Path, Crate], private: Mapping[int, str]
) -> tuple[Dependency, ...]:
    """Its edges to other members, each once. `private` says of twins, by identity, why they are.

    The same that cargo orders a workspace by: every kind, optional and target-specific ones too,
    for a registry refuses a package with any dependency it does not know; only what cargo strips
    is no edge.
    https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs (local_deps)
    """
    edges: dict[str, Dependency] = {}
    for need in crate.needs:
        other = by_directory.get(need.path.resolve())
        if other is None or other.name == crate.name or need.stripped:
            continue
        requirement = need.requirement if need.versioned else ""
        edge = Dependency(
            on=PackageId(ECOSYSTEM, other.name),
            kind=DependencyKind.RUNTIME,
            requirement=requirement,
            private=private.get(id(other), ""),
        )
        edges.setdefault(other.name, edge)
    return tuple(edges.values())


def inherited(crate: Crate) -> tuple[Path, ...]:
    """The manifest of its workspace, where its dependencies may stand."""
    root = (crate.workspace / MANIFEST).resolve()
    return () if root == crate.manifest.resolve() else (root,)


def unpublishable(crate: Crate, destination: Destination) -> str:
    """https://doc.rust-lang.org/cargo/reference/manifest.html#the-publish-field"""
    if crate.publish is not None and not crate.publish:
        return "its `publish` is false"
    if crate.publish is not None and destination.name not in crate.publish:
        goes_to = destination.name or "a registry that cargo has no name for"
        return f"its `publish` allows {', '.join(crate.publish)} only, and this is {goes_to}"
    return ""
