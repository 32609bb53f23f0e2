"""Versions of Go modules, which stand in version files and in releasekit.toml, and in tags."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct

from releasekit.decided import Edge
from releasekit.ecosystems.go import paths
from releasekit.ecosystems.go.discover import ECOSYSTEM, UNTOLD, find_in_file, spell_place, with_v
from releasekit.ecosystems.go.release import tag_name
from releasekit.ecosystems.go.source import path_in_repository
from releasekit.ecosystems.interface import Versioning, WrittenVersions
from releasekit.errors import ManifestError, raise_all
from releasekit.host.edits import Edits, refuse_edit
from releasekit.host.files import repository_of
from releasekit.model import PackageId
from releasekit.text.splice import splice
from releasekit.text.toml_text import find_strings, find_value, parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.decided import Ranges
    from releasekit.ecosystems.go.discover import Module, Place
    from releasekit.ecosystems.go.registry import TagRegistry
    from releasekit.errors import PlanError
    from releasekit.git.versions import Read
    from releasekit.model import Package


class GoVersioning(Struct, Versioning, frozen=True, dict=True):
    """`modules` are by path. Versions may stand in the `config_file`; `tags` is the registry where
    that goes by tags.
    """

    modules: Mapping[str, Module]
    root: Path
    config_file: Path
    tags: TagRegistry | None = None

    def suggest_version(self, package: Package, tagged: Iterable[str]) -> str:
        module = self.modules[package.id.name]
        if module.unpublishable != UNTOLD:
            return ""
        fitting = [
            each for each in tagged if not paths.trouble_with_version(module.path, f"v{each}")
        ]
        stable = [each for each in fitting if "-" not in each]
        return max(
            stable or fitting,
            key=lambda each: paths.parse_version(f"v{each}"),
            default=paths.find_first(module.path),
        )

    def find_registry_tag(self, package: Package) -> str | None:
        return self.tags.own_tag(package) if self.tags else None

    def find_source_tag(self, package: Package) -> str:
        """https://go.dev/ref/mod#vcs-version"""
        top = repository_of(package.directory)
        if self.tags or top is None:
            return ""
        where = path_in_repository(package.directory, top)
        return tag_name(package.id.name, package.version, where)

    def read_version(self, package: Package, read: Read) -> str:
        """With its `v`."""
        place = self.modules[package.id.name].version_place
        path = place if isinstance(place, Path) else self.config_file
        data = read(path) if place else None
        if data is None:
            return ""
        try:
            text = data.decode()
            if isinstance(place, Path):
                return with_v(text[slice(*find_in_file(text, path))])
            found = find_value(parse_toml(text), place)
            return with_v(found) if isinstance(found, str) else ""
        except (ValueError, ManifestError):
            return ""

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        members: dict[Place, list[PackageId]] = {}
        for module in self.modules.values():
            if not module.unpublishable:
                members.setdefault(module.version_place, []).append(
                    PackageId(ECOSYSTEM, module.path)
                )
        return {spell_place(it, self.root): ids for it, ids in members.items() if len(ids) > 1}

    def list_edges(self, _released: Mapping[str, str]) -> Iterator[Edge]:
        """A requirement is a minimum, and another major version has another path.
        https://go.dev/ref/mod#major-version-suffixes
        """
        for module in self.modules.values():
            for require in module.mod.requires if not module.unpublishable else ():
                other = self.modules.get(require.path)
                if other is None or other is module or other.unpublishable or require.indirect:
                    continue
                yield Edge(
                    dependent=PackageId(ECOSYSTEM, module.path),
                    on=PackageId(ECOSYSTEM, require.path),
                    requirement=require.version,
                )

    def edit(self, versions: Mapping[str, str], edits: Edits, _ranges: Ranges) -> WrittenVersions:
        """A requirement is a minimum, which publishing raises."""
        modules, config_file = self.modules, self.config_file
        wanted: dict[Place, str] = {
            modules[path].version_place: versions[path] for path in versions
        }
        keys = [place for place in wanted if isinstance(place, tuple)]
        text = (edits.read(config_file) or "") if keys else ""
        spans = find_strings(text, keys)
        refused = [*self._find_refused(versions, wanted, edits.root)]
        for key in keys:
            if key not in spans:
                said = f"{spell_place(key, edits.root)} is not spelled plainly"
                refused.append(refuse_edit(said, f'Write "{wanted[key]}" there by hand.'))
        raise_all(refused)
        if keys:
            edits.write(config_file, _replace(text, {spans[key]: wanted[key] for key in keys}))
        for place, version in wanted.items():
            if isinstance(place, Path):
                text = edits.read(place) or ""
                edits.write(place, _replace(text, {find_in_file(text, place): version}))
        return WrittenVersions()

    def _find_refused(
        self, versions: Mapping[str, str], wanted: Mapping[Place, str], root: Path
    ) -> Iterator[PlanError]:
        for path, module in self.modules.items():
            where = module.manifest.relative_to(root)
            place, version = module.version_place, versions.get(path, "")
            spelled = spell_place(place, root)
            if version and (trouble := paths.trouble_with_version(path, f"v{version}")):
                yield refuse_edit(f"{where}: {trouble}", _advise(path, version, where, spelled))
            if not version and place in wanted:
                moves = f"{spelled} is going to be {wanted[place]}"
                hint = "Release both, or give one a version of its own below [go.versions]."
                yield refuse_edit(f"{where}: keeps {module.version}, and {moves}", hint)


def _advise(path: str, version: str, where: Path, place: str) -> str:
    """How the module gets the path of another major version.
    https://go.dev/ref/mod#major-version-suffixes
    """
    if path.startswith("gopkg.in/"):
        return "Change the module path by hand: in go.mod, and in all imports."
    new = paths.with_major(path, paths.parse_version(f"v{version}").release[0])
    command = f"go mod edit -module={quote(new)} {quote(where.as_posix())}"
    return f"Run `{command}`, write {new} in all imports, and {version} in {place}."


def _replace(text: str, versions: Mapping[tuple[int, int], str]) -> str:
    """With a `v` before each of them where there was one."""
    found = {span: "v" if text.startswith("v", span[0]) else "" for span in versions}
    return splice(text, ((span, f"{v}{versions[span]}") for span, v in found.items()))
