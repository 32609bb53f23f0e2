"""Packages of a workspace: its roots, unique names, batches, conflicting versions, what is not a
package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from releasekit.errors import ConfigError, MembersError, PackageError, PlanError
from releasekit.fields import replace
from releasekit.host.files import inside, is_file
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.model import Dependency, Package


class NamedPackage(Protocol):
    """A package as an ecosystem reads it."""

    @property
    def name(self) -> str: ...

    @property
    def manifest(self) -> Path: ...


N = TypeVar("N", bound=NamedPackage)


def named_roots(
    root: Path, names: Iterable[str], manifests: Sequence[str], *, where: str
) -> list[Path]:
    """The roots of workspaces below `root` that the option at `where` names, resolved.

    Raises ConfigError for one that leads out of `root`, or has none of `manifests`.
    """
    found = []
    for name in names:
        directory = inside(root, root / name, where=f"{where}: {name!r}")
        if not any(is_file(directory / manifest) for manifest in manifests):
            raise MembersError(
                f"{where}: {name!r} has no {' or '.join(manifests)}",
                hint="Remove the entry, or correct the path.",
            )
        found.append(directory)
    return found


def unique_by_name(
    found: Iterable[N], *, cure: str, private: Callable[[N], object]
) -> tuple[dict[str, N], list[N]]:
    """By name, sorted: the published one of those that share a name; and the others, all `private`.
    Raises ConfigError, with `cure` in its hint, where two are to be published.
    """
    packages: dict[str, N] = {}
    twins: list[N] = []
    for package in found:
        first = packages.setdefault(package.name, package)
        if first.manifest == package.manifest:
            continue
        if private(package):
            twins.append(package)
        elif private(first):
            twins.append(first)
            packages[package.name] = package
        else:
            raise ConfigError(
                f"{package.manifest} and {first.manifest} are both named {package.name!r}",
                hint=f"Rename one of them, or {cure}.",
                problem=Problem.SAME_NAME,
            )
    return dict(sorted(packages.items())), twins


def twin_meant(
    needed: N, dependent: N, twins: Iterable[N], *, home: Callable[[N], object]
) -> N | None:
    """The twin that `dependent` means by the name of `needed`, if only the twin is in the same
    workspace.
    """
    if home(needed) == home(dependent):
        return None
    return next(
        (each for each in twins if each.name == needed.name and home(each) == home(dependent)), None
    )


def edge_meant(
    edge: Dependency,
    dependent: N,
    by_name: Mapping[str, N],
    twins: Iterable[N],
    *,
    home: Callable[[N], object],
    private: Callable[[N], str],
) -> Dependency:
    """`edge`, with why its target is never published, if `dependent` means a twin."""
    twin = twin_meant(by_name[edge.on.name], dependent, twins, home=home)
    return edge if twin is None else replace(edge, private=private(twin))


def batched(
    packages: Sequence[Package], together: Callable[[Package], object]
) -> list[list[Package]]:
    """One batch for all packages with the same value of `together`."""
    batches: dict[object, list[Package]] = {}
    for package in packages:
        batches.setdefault(together(package), []).append(package)
    return list(batches.values())


def not_a_package(message: str, hint: str = "") -> PackageError:
    return PackageError(message, hint=hint, problem=Problem.NOT_A_PACKAGE)


def conflict(owner: str, requirement: str, name: str, version: str) -> PlanError:
    """`owner`, ECOSYSTEM:NAME, can only be built with the `name` of the workspace, but requires
    another version.
    """
    return PlanError(
        f"{owner} requires {requirement}, but the workspace has {name} {version}",
        hint=f"Widen the requirement so that it holds {version}, or leave the package out: "
        f"`exclude-packages: {owner}`.",
        problem=Problem.EXCLUDES_VERSION,
    )
