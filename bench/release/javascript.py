"""The tools that publish npm workspaces, each with the files that it wants to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bench.release.measure import spending
from bench.release.workspaces import commit, json_text, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bench.release.place import Place


@dataclass(frozen=True)
class Tool:
    commands: Callable[[Place], Sequence[Sequence[str | Path]]]
    prepare: Callable[[Place], None] = lambda _: None
    slots: int = 16


def _lerna(*flags: str) -> Callable[[Place], list[list[str | Path]]]:
    return lambda place: [
        [*place.peers.js("lerna", "dist/cli.js"), "publish", "from-package", "--yes", *flags]
    ]


def _for_lerna(place: Place) -> None:
    json_text(
        place.root / "lerna.json",
        {"version": "independent", "npmClient": "npm", "packages": ["packages/*"]},
    )
    commit(place.root)


def _yarn(*flags: str) -> Callable[[Place], list[list[str | Path]]]:
    each = ("workspaces", "foreach", "-Ap", "--no-private", *flags, "npm", "publish")
    return lambda place: [[*place.peers.js("@yarnpkg/cli-dist", "bin/yarn.js"), *each]]


def _for_yarn(place: Place) -> None:
    """It publishes what is installed only."""
    (place.root / "yarn.lock").touch()
    run = [*place.peers.js("@yarnpkg/cli-dist", "bin/yarn.js"), "install"]
    spending(run, where=place.root, environment=place.environment)


def _pnpm(*flags: str) -> Callable[[Place], list[list[str | Path]]]:
    """With a timeout it waits for each package, as the registry shows it, before the next level.

    https://pnpm.io/cli/publish
    """
    return lambda place: [[*place.peers.pnpm, "-r", *flags, "publish", "--no-git-checks"]]


def _for_pnpm(place: Place) -> None:
    text(place.root / "pnpm-workspace.yaml", "packages:\n  - packages/*\n")
    commit(place.root)


def _for_changesets(place: Place) -> None:
    json_text(place.root / ".changeset" / "config.json", {"access": "public", "baseBranch": "main"})
    # By this it knows whose workspace it is.
    json_text(
        place.root / "package-lock.json",
        {"name": "bench", "version": "0.0.0", "lockfileVersion": 3, "packages": {}},
    )
    commit(place.root)


def _for_nx(place: Place) -> None:
    release = {"projects": ["packages/*"], "projectsRelationship": "independent"}
    json_text(
        place.root / "nx.json", {"release": release, "plugins": ["@nx/js"], "analytics": False}
    )
    (place.root / "node_modules").symlink_to(place.peers.modules)
    commit(place.root)


TOOLS: Final[Mapping[str, Tool]] = {
    "`yarn npm publish -Ap -j16`": Tool(_yarn("-j", "16"), _for_yarn),
    "`lerna publish -c16`": Tool(_lerna("--concurrency", "16"), _for_lerna),
    "`lerna publish`": Tool(_lerna(), _for_lerna),
    "`yarn npm publish -Ap`": Tool(_yarn(), _for_yarn),
    "`pnpm -r publish`, concurrency 16": Tool(_pnpm("--workspace-concurrency=16"), _for_pnpm),
    "`pnpm -r publish`, concurrency 16, waiting": Tool(
        _pnpm("--workspace-concurrency=16", "--publish-wait-timeout=60000"), _for_pnpm
    ),
    "`pnpm -r publish`": Tool(_pnpm(), _for_pnpm),
    "`changeset publish`": Tool(
        lambda place: [[*place.peers.js("@changesets/cli", "bin.js"), "publish"]], _for_changesets
    ),
    "`nx release publish`": Tool(
        lambda place: [[*place.peers.js("nx", "dist/bin/nx.js"), "release", "publish"]], _for_nx
    ),
    "`npm publish --workspaces`": Tool(
        lambda _: [["npm", "publish", "--workspaces", "--silent"]], slots=1
    ),
}
