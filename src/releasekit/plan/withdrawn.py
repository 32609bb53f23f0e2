"""Versions that their publishers took back: yanked, deprecated, retracted. What may rest on one
goes by what the clients of its registry take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.errors import PlanError, map_all
from releasekit.model import ASKED_BY_NOBODY, DependencyKind, PackageWarning, WarningName
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from releasekit.decided import Edge
    from releasekit.ecosystems.interface import Clients, Target
    from releasekit.model import Package, PackageId, Published, Withdrawal

_NOT_ALWAYS = frozenset({DependencyKind.OPTIONAL, DependencyKind.PEER, DependencyKind.EXTRA})


class WithdrawnNeed(Struct, frozen=True, kw_only=True):
    """What `package` needs of its repository, in a version that was withdrawn. It is `fatal` where
    clients cannot install the package at all; `consequence` ends a sentence about that.
    """

    package: Package
    on: Package
    withdrawal: Withdrawal
    consequence: str
    fatal: bool = False

    def __str__(self) -> str:
        name = self.on.id.name
        if self.package.id.ecosystem != self.on.id.ecosystem:
            name = str(self.on.id)
        return f"needs {name} {self.on.version}, which is {self.withdrawal}{self.consequence}"

    @property
    def hint(self) -> str:
        cure = self.withdrawal.cure
        return f"Either {cure}, or bump the version of {self.on.id.name}"


def find_withdrawn_needs(
    packages: Iterable[Package],
    known: Mapping[PackageId, Package],
    published: Mapping[PackageId, Published | None],
    targets: Mapping[str, Target],
) -> Iterator[WithdrawnNeed]:
    """What these need of the `known` packages, one for each pair, the worst of it."""
    withdrawn = {
        id_: there.withdrawal
        for id_, there in published.items()
        if there is not None and there.withdrawal is not None and id_ in known
    }
    asking = [
        (package, on)
        for package in packages
        for on in dict.fromkeys(
            need.on for need in package.asked_for if need.kind not in ASKED_BY_NOBODY
        )
        if on in withdrawn
    ]
    edges: dict[tuple[PackageId, PackageId], list[Edge]] = {}
    # Reads all manifests of an ecosystem again, so only where it tells something.
    for name in sorted({package.id.ecosystem for package, _ in asking}):
        for edge in targets[name].versioning.list_edges({}):
            if edge.on in withdrawn:
                edges.setdefault((edge.dependent, edge.on), []).append(edge)
    for package, on in asking:
        withdrawal, clients = withdrawn[on], targets[package.id.ecosystem].clients
        version = known[on].version
        asked = [
            _judge(edge, withdrawal, version, clients) for edge in edges.get((package.id, on), ())
        ]
        fatal, consequence = max(asked, default=(False, ""), key=lambda it: (it[0], bool(it[1])))
        yield WithdrawnNeed(
            package=package,
            on=known[on],
            withdrawal=withdrawal,
            consequence=consequence,
            fatal=fatal,
        )


def _judge(edge: Edge, withdrawal: Withdrawal, hidden: str, clients: Clients) -> tuple[bool, str]:
    """Whether clients find nothing for a requirement, and what comes of it."""
    is_taken = clients.takes_hidden(edge.requirement) if withdrawal.is_hidden else None
    if is_taken is None:
        return False, ""
    asked = f"`{edge.requirement}`" if edge.requirement else "any version"
    if is_taken:
        return False, f": for {asked}, pip still installs it, but uv does not"
    others = [each for each in withdrawal.others if _admits(edge, each)]
    taken = [it for it in others if clients.takes_instead(edge.requirement, hidden, it)]
    if taken:
        return False, f": users get another version that fits {asked}, such as {taken[0]}"
    none = f": no other version fits {asked}"
    if others:
        none += f" except {others[0]}, a prerelease, which uv installs and pip does not"
    if edge.optional or edge.kind in _NOT_ALWAYS:
        return False, f"{none}, so users cannot install that optional part"
    return True, none


def _admits(edge: Edge, version: str) -> bool:
    try:
        return edge.admits(version)
    except ValueError:
        return False


def refuse_withdrawn(needs: Iterable[WithdrawnNeed], name_all: Callable[[PackageId], str]) -> None:
    """Raises PlanError for packages that nobody could install; `name_all` names one with what needs
    it.
    """

    def refuse(need: WithdrawnNeed) -> None:
        raise PlanError(
            f"{need.package.id} {need}, so its users could not install it",
            hint=f"{need.hint}, or leave {name_all(need.package.id)} out with `exclude-packages`.",
            problem=Problem.NEEDS_YANKED,
        )

    map_all(refuse, [need for need in needs if need.fatal])


def warn_of_withdrawn(needs: Iterable[WithdrawnNeed]) -> tuple[PackageWarning, ...]:
    return tuple(
        PackageWarning(name=WarningName.WITHDRAWN_SIBLING, message=f"it {need}. {need.hint}")
        for need in needs
        if not need.fatal
    )
