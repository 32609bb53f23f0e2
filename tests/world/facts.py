"""What one repository of the world is like, as distil.py has put it down, and what its own tools
say of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from releasekit.graph import reachable

if TYPE_CHECKING:
    from collections.abc import Mapping

DIRECTORY: Final = Path(__file__).parent / "facts"
Edges = set[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class World:
    """`shape` is what skeleton.py writes manifests from, `config` what releasekit.toml has to say.

    `at` is where in its repository the workspace lies.

    `packages` maps what is published to its version. Of the edges between these a release cannot do
    without the `hard` ones; `soft` ones give way where they close a cycle, and nobody minds whether
    `idle` ones are there.
    """

    name: str
    ecosystem: str
    at: str
    config: Mapping[str, Any]
    shape: Mapping[str, Any]
    packages: Mapping[str, str]
    private: tuple[str, ...]
    hard: Mapping[str, frozenset[str]]
    soft: Mapping[str, frozenset[str]]
    idle: Mapping[str, frozenset[str]]
    expected: Mapping[str, Any]

    @property
    def required(self) -> dict[str, frozenset[str]]:
        """The edges that order a release: all but the soft ones that lie on a cycle."""
        rings = self._rings()
        return {name: self.hard[name] | (self.soft[name] - rings[name]) for name in self.packages}

    @property
    def allowed(self) -> dict[str, frozenset[str]]:
        """All edges that a plan may have. What goes out together waits for what any of it needs."""
        rings = self._rings()
        return {
            name: self.idle[name].union(
                *(self.hard[each] | self.soft[each] for each in {name, *rings[name]})
            )
            for name in self.packages
        }

    def _rings(self) -> dict[str, set[str]]:
        """What each package lies on a cycle with."""
        behind = {
            name: reachable([name], lambda each: self.hard[each] | self.soft[each])
            for name in self.packages
        }
        return {
            name: {on for on in behind[name] if on != name and name in behind[on]}
            for name in self.packages
        }

    @property
    def options(self) -> Mapping[str, Any]:
        """What releasekit.toml says of the ecosystem."""
        found: Mapping[str, Any] = self.config.get(self.ecosystem, {})
        return found


def load(path: Path) -> World:
    return read(path.stem, json.loads(path.read_text()))


def read(name: str, document: Mapping[str, Any]) -> World:
    expected = document["expected"]
    return World(
        name=name,
        ecosystem=document["ecosystem"],
        at=document["at"],
        config=document["config"],
        shape=document["shape"],
        packages=expected["packages"],
        private=tuple(expected["private"]),
        hard=_edges(expected, "hard"),
        soft=_edges(expected, "soft"),
        idle=_edges(expected, "idle"),
        expected=expected,
    )


def _edges(expected: Mapping[str, Any], key: str) -> dict[str, frozenset[str]]:
    names, found = [*expected["packages"]], expected[key]
    return {name: frozenset(names[at] for at in found.get(name, ())) for name in names}


def all_worlds() -> list[World]:
    return [load(path) for path in sorted(DIRECTORY.glob("*.json"))]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the tools say: every package with its version, what of that is never published, and
    edges by their kind, as in World.
    """

    versions: Mapping[str, str]
    private: frozenset[str]
    hard: frozenset[tuple[str, str]] = frozenset()
    soft: frozenset[tuple[str, str]] = frozenset()
    idle: frozenset[tuple[str, str]] = frozenset()

    def document(self) -> dict[str, Any]:
        """Of what is published only, each edge once; it leads to the place of its end among the
        packages.
        """
        public = {name: self.versions[name] for name in sorted(self.versions.keys() - self.private)}
        place = {name: at for at, name in enumerate(public)}

        def edges(chosen: frozenset[tuple[str, str]]) -> dict[str, list[int]]:
            found: dict[str, list[int]] = {}
            for name, on in sorted(chosen):
                if name in public and on in public and name != on:
                    found.setdefault(name, []).append(place[on])
            return found

        return {
            "packages": public,
            "private": sorted(self.private),
            "hard": edges(self.hard),
            "soft": edges(self.soft - self.hard),
            "idle": edges(self.idle - self.soft - self.hard),
        }
