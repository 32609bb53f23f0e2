"""A real repository of packages, and what its history asks for."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fakes import package
from releasekit.config.version_options import VersionOptions
from releasekit.git.commits import Commits
from releasekit.host.process import Printed, Processes
from releasekit.versioning.intents import collect_intents
from workspaces import git

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from releasekit.decided import Level, Standing
    from releasekit.model import Package, PackageId
    from releasekit.versioning.intents import Collected


def version_at(found: Package, read: Callable[[Path], bytes | None]) -> str:
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
                public = [each for place, each in self.packages.items() if place not in private]
                return await collect_intents(
                    dict.fromkeys(public, version_at),
                    list(self.packages.values()),
                    Counted(self.root, processes),
                    self.root / self.workspace,
                    options or VersionOptions(),
                    packs=lambda _, path: not path.startswith(("scripts/", "tests/")),
                    templates=templates or {},
                    find_published=find_published,
                    together=[
                        [each.id for each in public if each.id.name in names] for names in together
                    ],
                    labels={each.id: label for each in self.packages.values() if label},
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
