"""What a run is about: which ecosystems and packages, and the edges that releasekit.toml adds."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.errors import ConfigError, UnknownDependency, closest, did_you_mean
from releasekit.fields import replace
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem
from releasekit.text.commands import spell
from releasekit.text.escape import visible
from releasekit.text.globs import MAX_CHARS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.decided import Edge


def matches(package: PackageId, patterns: Iterable[str]) -> bool:
    """Whether any glob fits NAME or ECOSYSTEM:NAME; one that is longer than any name fits none."""
    return any(
        fnmatchcase(package.name, pattern) or fnmatchcase(str(package), pattern)
        for pattern in patterns
        # A file of the workspace may hold longer ones, and a pattern takes its time to compile.
        if len(pattern) <= MAX_CHARS
    )


class PackageFilter(Struct, frozen=True, kw_only=True):
    """Which packages a run is about: those of `only` these ecosystems, or of all `known` ones,
    whose names fit one of `packages` and none of `exclude_packages`, which are globs.
    """

    known: tuple[str, ...]
    only: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    exclude_packages: tuple[str, ...] = ()

    @property
    def ecosystems(self) -> tuple[str, ...]:
        return self.only or self.known

    def has_ecosystem(self, name: str) -> bool:
        return not self.only or name in self.only

    def has_package(self, package: PackageId) -> bool:
        """Whether the run publishes `package`, if there is one of that name."""
        return (
            self.has_ecosystem(package.ecosystem)
            and (not self.packages or matches(package, self.packages))
            and not self.is_excluded(package)
        )

    def is_excluded(self, package: PackageId) -> bool:
        return matches(package, self.exclude_packages)

    def find_consulted(self, extra: Iterable[Edge]) -> tuple[str, ...]:
        """Ecosystems that `ecosystem` leaves out, with packages that a chosen one has to follow,
        says `extra`: they are looked up, and never published.
        """
        needed = {edge.on.ecosystem for edge in extra if self.has_package(edge.dependent)}
        return tuple(sorted(name for name in needed if not self.has_ecosystem(name)))

    def select(self, public: Mapping[PackageId, Package]) -> list[Package]:
        """The packages to publish.

        Raises ConfigError for a pattern that matches nothing: a typo must not shrink a release; and
        where all that `packages` names is excluded.
        """
        ours = {package for package in public if self.has_ecosystem(package.ecosystem)}
        picked = set(ours)
        if self.packages:
            picked = set().union(
                *(_matching(pattern, "packages", ours) for pattern in self.packages)
            )
        for pattern in self.exclude_packages:
            # The name of an ecosystem that is left out is not a typo: it is left out already.
            ecosystem = pattern.partition(":")[0]
            if self.has_ecosystem(ecosystem) or ecosystem not in self.known:
                picked -= _matching(pattern, "exclude-packages", ours)
        if self.packages and not picked:
            raise ConfigError(
                f"packages: {','.join(self.packages)!r} names only packages that "
                f"`exclude-packages: {','.join(self.exclude_packages)}` leaves out",
                hint="Take them out of `exclude-packages`, which releasekit.toml may set.",
                problem=Problem.NOTHING_MATCHES,
            )
        return [package for package in public.values() if package.id in picked]


def with_extra(
    packages: Sequence[Package], extra: Iterable[Edge], ecosystems: Collection[str]
) -> list[Package]:
    """`packages`, all there are of `ecosystems`, with the edges of the `[dependencies]` table.

    Edges from and to other ecosystems are left out: they cannot be checked here.
    """
    known = {package.id: package for package in packages}
    needed: dict[PackageId, list[Dependency]] = {}
    for edge in extra:
        if edge.dependent.ecosystem not in ecosystems:
            continue
        for name in (edge.dependent, edge.on):
            if name.ecosystem in ecosystems and name not in known:
                near = closest(str(name), map(str, known))
                instead = f"Did you mean {near!r}?" if near else "Use ECOSYSTEM:NAME."
                raise UnknownDependency(
                    f"releasekit.toml names {str(name)!r}, which is not a package here",
                    hint=f"{instead} {spell('plan')} lists them.",
                )
        if edge.on in known:
            found = Dependency(on=edge.on, kind=DependencyKind.EXTRA)
            needed.setdefault(edge.dependent, []).append(found)
    return [
        replace(each, dependencies=(*each.dependencies, *needed[each.id]))
        if each.id in needed
        else each
        for each in known.values()
    ]


def _matching(pattern: str, key: str, public: Collection[PackageId]) -> set[PackageId]:
    ids = {package for package in public if matches(package, [pattern])}
    if not ids:
        near = closest(pattern, [each.name for each in public])
        hint = f"Did you mean {near!r}?" if near else f"{spell('plan')} lists them."
        if " " in pattern:  # which no name holds
            hint = f"Write commas between names: {','.join(pattern.split())}"
        raise ConfigError(
            f"{key}: {pattern!r} matches no package that can be published",
            hint=hint,
            problem=Problem.NOTHING_MATCHES,
        )
    return ids


def find_package(name: str, packages: Sequence[Package], aside: str = "") -> Package:
    """By the whole id, or by a name that one package alone has. Raises ConfigError with `aside`."""
    ids = {str(each.id): each for each in packages}
    if name in ids:
        return ids[name]
    found = [each for each in packages if each.id.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"{visible(name)} is a package of several ecosystems",
            hint=f"Write one of {', '.join(str(each.id) for each in found)}.",
        )
    near = did_you_mean(name, [*ids, *(each.id.name for each in packages)])
    raise ConfigError(
        f"there is no package {visible(name)!r} here{near}{aside and '; '}{aside}",
        hint=f"{spell('plan')} lists them all.",
    )
