"""Which crates a workspace holds and how they depend on one another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from releasekit.ecosystems.cargo.requirement import Requirement
from releasekit.ecosystems.shared.globs import named_roots
from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.ecosystems.shared.semver import Version
from releasekit.graph import rings, stuck
from releasekit.host.files import inside
from releasekit.model import Dependency, DependencyKind, Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.cargo.destination import Destination
    from releasekit.ecosystems.cargo.metadata import Crate, Need

ECOSYSTEM: Final = "cargo"
MANIFEST: Final = "Cargo.toml"
# Of several dependencies on one package, the first counts.
_KINDS: Final = {
    "normal": DependencyKind.RUNTIME,
    "build": DependencyKind.BUILD,
    "dev": DependencyKind.DEV,
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`alone` are the names of those that cargo packages in a call of their own, once all that they
    depend on is on the registry.
    """

    packages: tuple[Package, ...]
    alone: frozenset[str]


def packages(
    crates: Mapping[str, Crate],
    destination: Destination,
    twins: Sequence[Crate] = (),
) -> Found:
    """All of them, with their edges; those that may not go to `destination` say why."""
    members = Members.of(crates, destination, twins)
    edges = _without_rings({n: members.dependencies(crate) for n, crate in crates.items()}, crates)
    alone = frozenset(_packaged_alone(edges))
    return Found(
        packages=tuple(
            Package(
                id=PackageId(ECOSYSTEM, crate.name),
                version=crate.version,
                directory=crate.manifest.parent.resolve(),
                manifest=crate.manifest.resolve(),
                dependencies=tuple(
                    replace(edge, visible_first=crate.name in alone) for edge in edges[crate.name]
                ),
                unpublishable=unpublishable(crate, destination),
                doubt=_doubt(crate),
                inherits=inherited(crate),
            )
            for crate in crates.values()
        ),
        alone=alone,
    )


def _doubt(crate: Crate) -> str:
    if crate.is_foreign:
        return "is a library for other languages alone, which no crate can use"
    # As maturin and setuptools-rust lay it out, with an rlib beside for tests.
    if (crate.manifest.parent / "pyproject.toml").is_file():
        return "shares its directory with a Python package, which is built of it"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Who a dependency may be on: the crates of the release, and `twins`, which are private and
    share the name of one.
    """

    by_name: Mapping[str, Crate]
    by_directory: Mapping[Path, Crate]
    destination: Destination

    @classmethod
    def of(
        cls,
        crates: Mapping[str, Crate],
        destination: Destination,
        twins: Sequence[Crate],
    ) -> Self:
        known = (*crates.values(), *twins)
        by_directory = {crate.manifest.parent.resolve(): crate for crate in known}
        return cls(by_name=crates, by_directory=by_directory, destination=destination)

    def dependencies(self, crate: Crate) -> tuple[Dependency, ...]:
        """Its edges to other members, each once.

        Every kind counts, optional and target-specific ones too, for a registry refuses a package
        with any dependency it does not know; only what cargo strips is no edge. What is needed for
        development gives way in a cycle: cargo publishes such a pair, one after the other.
        https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs
        (local_deps)
        """
        edges: dict[str, Dependency] = {}
        for need in sorted(crate.needs, key=lambda need: [*_KINDS].index(need.kind)):
            other = self._meant(need)
            if other is None or other.name == crate.name or need.stripped:
                continue
            edge = Dependency(
                on=PackageId(ECOSYSTEM, other.name),
                kind=_KINDS[need.kind],
                requirement=need.requirement if need.versioned else "",
                soft=need.kind == "dev",
                private=self._private(other),
                exact=need.kind == "normal" and _pins(need),
                visible_first=need.path is None or other.workspace != crate.workspace,
            )
            first = edges.setdefault(other.name, edge)
            if edge.visible_first:
                edges[other.name] = replace(first, visible_first=True)
        return tuple(edges.values())

    def _private(self, crate: Crate) -> str:
        """Why a twin is never published."""
        is_twin = self.by_name[crate.name] is not crate
        return unpublishable(crate, self.destination) if is_twin else ""

    def _meant(self, need: Need) -> Crate | None:
        """Without a path it is what the registry will have by that name, if the version fits:
        `[patch]` puts the member into its place in the workspace, and nowhere else.

        https://doc.rust-lang.org/cargo/reference/overriding-dependencies.html
        """
        if need.path is not None:
            return self.by_directory.get(need.path.resolve())
        other = self.by_name.get(need.name)
        if other is None or not need.versioned or not self.destination.holds(need.registry):
            return None
        fits = Requirement.parse(need.requirement).matches(Version.parse(other.version))
        return other if fits and not unpublishable(other, self.destination) else None


def _pins(need: Need) -> bool:
    """Whether the crate works beside one version only; the others of its major have no place in
    the same build. https://doc.rust-lang.org/cargo/reference/resolver.html
    """
    return need.versioned and need.requirement.startswith("=")


def _without_rings(
    edges: Mapping[str, tuple[Dependency, ...]], crates: Mapping[str, Crate]
) -> dict[str, tuple[Dependency, ...]]:
    """A crate may need an older release of one that needs it: for cargo, what has no path is on the
    registry, so on a cycle a version alone only says what goes first if that is possible.
    """
    hard = {
        name: {edge.on.name for edge in found if not edge.soft} for name, found in edges.items()
    }
    ring_of = {name: ring for ring in rings(hard) for name in ring}

    def given_way(name: str, edge: Dependency) -> Dependency:
        needs = [need for need in crates[name].needs if need.name == edge.on.name]
        has_path = any(need.path is not None and need.kind != "dev" for need in needs)
        if edge.soft or has_path or edge.on.name not in ring_of.get(name, ()):
            return edge
        return replace(edge, kind=DependencyKind.ORDER, soft=True)

    return {name: tuple(given_way(name, edge) for edge in found) for name, found in edges.items()}


def _packaged_alone(edges: Mapping[str, tuple[Dependency, ...]]) -> set[str]:
    """Where cargo packages several crates, one may need another if that has a path, and can go
    first. It does not find what has a version only, or is on a cycle: that, and all that needs it,
    has to wait for the registry.

    https://github.com/rust-lang/cargo/blob/master/src/cargo/ops/cargo_package/mod.rs (do_package)
    """
    needs = {name: {edge.on.name for edge in found} for name, found in edges.items()}
    for name, found in edges.items():
        if any(edge.visible_first for edge in found):
            needs[name].add(name)
    return stuck(needs)


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
