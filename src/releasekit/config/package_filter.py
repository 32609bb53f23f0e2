"""What a run is about: which ecosystems and packages, and the edges that releasekit.toml adds."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from releasekit.errors import ConfigError, PlanError, UnknownDependency, closest
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem
from releasekit.text.commands import spelled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from releasekit.config.config import Config

# A file of the workspace may hold longer ones, and a pattern takes its time to compile.
_MAX_PATTERN_CHARS: Final = 1_000


def matches(package: PackageId, patterns: Iterable[str]) -> bool:
    """Whether any glob fits NAME or ECOSYSTEM:NAME; one that is longer than any name fits none."""
    return any(
        fnmatchcase(package.name, pattern) or fnmatchcase(str(package), pattern)
        for pattern in patterns
        if len(pattern) <= _MAX_PATTERN_CHARS
    )


def concerns(config: Config, ecosystem: str) -> bool:
    return not config.ecosystems or ecosystem in config.ecosystems


def will_build(config: Config, ecosystem: str) -> bool:
    """Whether what builds take is worth preparing while the plan is made. With `dist`, most likely
    nothing is built, and what is makes its own preparations.
    """
    return config.mode == "publish" and concerns(config, ecosystem) and not config.dist


def chosen(config: Config, package: PackageId) -> bool:
    """Whether the run publishes `package`, if there is one of that name."""
    return (
        concerns(config, package.ecosystem)
        and (not config.packages or matches(package, config.packages))
        and not matches(package, config.exclude_packages)
    )


def consulted(config: Config) -> tuple[str, ...]:
    """Ecosystems that `ecosystem` leaves out, with packages that a chosen one has to follow: they
    are looked up, and never published.
    """
    needed = {
        PackageId.parse(on).ecosystem
        for dependent, needs in config.extra_dependencies.items()
        if chosen(config, PackageId.parse(dependent))
        for on in needs
    }
    return tuple(sorted(name for name in needed if not concerns(config, name)))


def with_extra(
    packages: Sequence[Package], extra: Mapping[str, Sequence[str]], ecosystems: Collection[str]
) -> list[Package]:
    """`packages`, all there are of `ecosystems`, with the edges of the `[dependencies]` table.

    Edges from and to other ecosystems are left out: they cannot be checked here.
    """
    known = {str(package.id): package for package in packages}
    for dependent, dependencies in extra.items():
        names = [dependent, *dependencies]
        if PackageId.parse(dependent).ecosystem not in ecosystems:
            continue
        names = [name for name in names if PackageId.parse(name).ecosystem in ecosystems]
        if unknown := [name for name in names if name not in known]:
            raise _unknown(unknown[0], known)
        edges = tuple(
            Dependency(on=known[name].id, kind=DependencyKind.EXTRA) for name in names[1:]
        )
        package = known[dependent]
        known[dependent] = replace(package, dependencies=package.dependencies + edges)
    return list(known.values())


def _unknown(name: str, known: Collection[str]) -> PlanError:
    near = closest(name, known)
    instead = f"did you mean {near!r}?" if near else "use ECOSYSTEM:NAME."
    return UnknownDependency(
        f"releasekit.toml: [dependencies] names {name!r}, which is not a package here",
        hint=f"{instead[0].upper()}{instead[1:]} {spelled('plan')} lists them.",
    )


def select(public: Mapping[PackageId, Package], config: Config) -> list[Package]:
    """The packages to publish.

    Raises ConfigError for a pattern that matches nothing: a typo must not shrink a release.
    """
    ours = {package for package in public if concerns(config, package.ecosystem)}
    picked = set(ours)
    if config.packages:
        picked = set().union(*(_matching(pattern, "packages", ours) for pattern in config.packages))
    for pattern in config.exclude_packages:
        # What names an ecosystem that is left out is not a typo: it is left out already.
        ecosystem = pattern.partition(":")[0]
        if concerns(config, ecosystem) or ecosystem not in config.known_ecosystems:
            picked -= _matching(pattern, "exclude-packages", ours)
    return [package for package in public.values() if package.id in picked]


def _matching(pattern: str, key: str, public: Collection[PackageId]) -> set[PackageId]:
    ids = {package for package in public if matches(package, [pattern])}
    if not ids:
        near = closest(pattern, [each.name for each in public])
        raise ConfigError(
            f"{key}: {pattern!r} matches no package that can be published",
            hint=f"Did you mean {near!r}?" if near else f"{spelled('plan')} lists them.",
            problem=Problem.NOTHING_MATCHES,
        )
    return ids
