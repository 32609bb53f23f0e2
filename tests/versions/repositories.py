"""A real repository of packages, and what its history asks for."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fakes import package
from releasekit.config.version_options import VersionOptions
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.host.process import Printed, Processes
from releasekit.plan.places import Places
from releasekit.versions.candidates import Candidate
from releasekit.versions.intents import collect_intents
from releasekit.versions.owners import Owners
from workspaces import git

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.decided import Level, Standing
    from releasekit.model import Package, PackageId
    from releasekit.versions.intents import Collected


def read_version(found: Package, read: Callable[[Path], bytes | None]) -> str:
    said = json.loads(read(found.manifest) or b"{}")
    return str(said["version"]) if said.get("name") == found.id.name else ""


@dataclass
class Repository:
    """`packages` are those at HEAD, by where they lie; the workspace is below `root`, or `root`."""

    root: Path
    packages: dict[str, Package] = field(default_factory=dict)
    workspace: str = ""

    def commit(self, message: str, files: Mapping[str, str | None] | None = None) -> str:
        for name, text in (files or {}).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def write(self, place: str, name: str, version: str) -> dict[str, str]:
        directory = (self.root / place).resolve()
        self.packages[place] = replace(
            package(name),
            version=version,
            directory=directory,
            manifest=directory / "m.json",
        )
        file = f"{place}/m.json".removeprefix("./")
        return {file: json.dumps({"name": name, "version": version})}

    def collect(
        self,
        options: VersionOptions | None = None,
        *,
        private: Sequence[str] = (),
        published: Collection[str] = (),
        templates: Mapping[PackageId, str] | None = None,
        label: str = "",
        together: Sequence[Collection[str]] = (),
        count: Counter[str] | None = None,
    ) -> Collected:
        class Counted(Commits):
            async def run_git(self, *arguments: str, stdin: str | None = None) -> Printed:
                if count is not None:
                    count[" ".join(arguments)] += 1
                return await super().run_git(*arguments, stdin=stdin)

        async def find_published(asked: Sequence[Package]) -> dict[PackageId, bool | None]:
            return {each.id: each.id.name in published for each in asked}

        async def main() -> Collected:
            async with Processes(environment=dict(os.environ)) as processes:
                packages, root = list(self.packages.values()), self.root / self.workspace
                chosen = options or VersionOptions()
                owners = Owners(
                    packages,
                    self.root,
                    root,
                    packs=lambda _, path: not path.startswith(("scripts/", "tests/")),
                    ignore=chosen.ignore,
                    paths=chosen.paths,
                    places=Places(packages, root),
                )
                return await collect_intents(
                    [
                        Candidate(
                            package=each,
                            read_version=read_version,
                            tag=(templates or {}).get(each.id, "\0"),
                            label=label,
                            shared=next(
                                (
                                    replace(each.id, name=f"\0{number}")
                                    for number, names in enumerate(together)
                                    if each.id.name in names
                                ),
                                None,
                            ),
                        )
                        for place, each in self.packages.items()
                        if place not in private
                    ],
                    packages,
                    Counted(self.root, processes),
                    owners,
                    chosen,
                    root,
                    find_published=find_published,
                )

        return asyncio.run(main())

    def levels(
        self, options: VersionOptions | None = None
    ) -> dict[str, list[tuple[str, Level, bool]]]:
        """What is asked for each package: title, level, and whether it came late."""
        found: dict[str, list[tuple[str, Level, bool]]] = {}
        for each in self.collect(options).intents:
            row = (each.source.title, each.level, each.late)
            found.setdefault(each.package.name, []).append(row)
        return found


def standing(collected: Collected, name: str) -> Standing:
    return next(each for each in collected.standings if each.package.name == name)


def unclear(collected: Collected) -> dict[str, list[str]]:
    """The titles of commits that do not say what they ask for."""
    return {
        each.id.name: [it.title for it in each.unclear]
        for each in collected.candidates.values()
        if each.unclear
    }


def similar_tags(collected: Collected) -> dict[PackageId, Sequence[str]]:
    return {
        it.id: it.release.similar_tags
        for it in collected.candidates.values()
        if it.release.similar_tags
    }


def guessed(collected: Collected) -> list[str]:
    """The versions that no tag names."""
    return [it.standing.last for it in collected.candidates.values() if it.release.guessed]
