"""Packages of a workspace: told apart by name, split into batches, held against requirements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from releasekit.errors import ConfigError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from releasekit.model import Package


class Named(Protocol):
    """What an ecosystem read of one package."""

    @property
    def name(self) -> str: ...

    @property
    def manifest(self) -> Path: ...


N = TypeVar("N", bound=Named)


def unique_by_name(found: Iterable[N], *, cure: str) -> dict[str, N]:
    """Sorted by name. Raises ConfigError, with `cure` for a hint, where two manifests share one."""
    packages: dict[str, N] = {}
    for package in found:
        first = packages.setdefault(package.name, package)
        if first.manifest != package.manifest:
            raise ConfigError(
                f"{package.manifest} and {first.manifest} are both named {package.name!r}",
                hint=f"Rename one of them, or {cure}.",
            )
    return dict(sorted(packages.items()))


def batched(
    packages: Sequence[Package], together: Callable[[Package], object]
) -> list[list[Package]]:
    """One batch for all packages of which `together` says the same."""
    batches: dict[object, list[Package]] = {}
    for package in packages:
        batches.setdefault(together(package), []).append(package)
    return list(batches.values())


def conflict(owner: str, requirement: str, name: str, version: str) -> PlanError:
    """Of `owner`, ECOSYSTEM:NAME, which can only be built with the `name` of the workspace, and
    requires another version.
    """
    return PlanError(
        f"{owner} requires {requirement}, but the workspace has {name} {version}",
        hint=f"Widen the requirement so that it holds {version}, or leave the package out: "
        f"`exclude-packages: {owner}`.",
    )
