"""What lies below the root and belongs to no workspace there: packages that a release would miss in
silence. Nothing of it is published unless an option says so, or the root holds nothing else.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.config.package_filter import concerns, consulted
from releasekit.ecosystems import folders
from releasekit.errors import CommandFailed, ConfigError
from releasekit.host import durable, files
from releasekit.report.text import few, packages

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.config.declaration import EcosystemDeclaration, Manifests
    from releasekit.ecosystems.interface import Membership, Roots, Target
    from releasekit.host.process import Processes

MAX_DIRECTORIES: Final = 20_000
MAX_MANIFESTS: Final = 10_000
# How far down a workspace is looked for that takes the place of a root without anything.
_NEAR: Final = 2
# So many packages beside one another are named by a glob.
_MANY: Final = 3
_SHOWN: Final = 10
# What is here is read, tried and copied, but not published, unless a workspace lists it.
ASIDE: Final = frozenset(
    {
        *("test", "tests", "__tests__", "testdata", "fixture", "fixtures", "__fixtures__"),
        *("example", "examples", "sample", "samples", "template", "templates"),
        *("demo", "demos", "playground", "playgrounds", "sandbox", "sandboxes"),
    }
)
TESTS: Final = re.compile(r".+[-_]tests")
# Likewise of single packages: nobody publishes a website, or what tests alone need.
_BESIDE: Final = re.compile(r"docs?|website|site|www|it|e2e|bench(es|marks?)?|.+[-_]tests?")
# Somebody else's, or made by a build.
_FOREIGN: Final = frozenset({"node_modules", "vendor", "third_party", "target", "dist", "build"})


@dataclass(frozen=True, slots=True)
class Below:
    """A workspace below the root, or a package in none. `where` is its directory, relative to the
    root; `packages` are those that may leave the repository, absolute.
    """

    ecosystem: str
    where: str
    packages: tuple[Path, ...]
    is_workspace: bool


async def found_below(
    config: Config, ecosystems: Mapping[str, EcosystemDeclaration], processes: Processes
) -> list[Below]:
    """Of the ecosystems that the run is about or consults; what git ignores is not looked at."""
    wanted = {
        name: each.manifests
        for name, each in ecosystems.items()
        if each.manifests is not None
        and each.manifests.workspaces
        and (concerns(config, name) or name in consulted(config))
    }
    names = {name for manifests in wanted.values() for name in manifests.names}
    if not names:
        return []
    listed = await _listed(config, names, processes)
    return await asyncio.to_thread(_classified, config, ecosystems, wanted, listed)


def taking_in(
    config: Config, ecosystems: Mapping[str, EcosystemDeclaration], below: Sequence[Below]
) -> tuple[Config, str]:
    """Where the root holds no manifest at all, and no option names another: the config with the
    workspaces that are near below it, and a note that says so; else the same config.
    """
    chosen = [each for each in below if each.is_workspace and Path(each.where).parts[_NEAR:] == ()]
    if not chosen or not all(_says_nothing(config, each) for each in ecosystems.values()):
        return config, ""
    tables = {name: dict(table) for name, table in config.ecosystem_tables.items()}
    for name, own in groupby(chosen, key=lambda each: each.ecosystem):
        manifests = ecosystems[name].manifests
        assert manifests is not None  # noqa: S101 (it was found by them)
        tables.setdefault(name, {})[manifests.workspaces] = [each.where for each in own]
    where = few([f"{each.where} ({each.ecosystem})" for each in chosen])
    note = f"the root has no manifest, so the workspaces below it are planned: {where}"
    return replace(config, ecosystem_tables=tables), note


def _says_nothing(config: Config, ecosystem: EcosystemDeclaration) -> bool:
    """Neither a manifest in the root nor an option."""
    manifests = ecosystem.manifests
    if manifests is None:
        return True
    keys = {manifests.workspaces, manifests.packages}
    return not keys & config.ecosystem_tables.get(ecosystem.name, {}).keys() and not any(
        (config.root / name).exists() for name in manifests.names
    )


def missed(below: Iterable[Below], targets: Mapping[str, Target]) -> list[Below]:
    """What of it discovery did not come to; a directory may hold a package of more than one
    ecosystem, as those of maturin and napi do.
    """
    known = {
        (name, package.directory)
        for name, target in targets.items()
        for package in target.workspace.packages
    }
    return [
        each
        for each in below
        if known.isdisjoint((each.ecosystem, package) for package in each.packages)
    ]


def told(
    found: Sequence[Below], config: Config, ecosystems: Mapping[str, EcosystemDeclaration]
) -> list[str]:
    """A sentence for each ecosystem: what lies where, and which option takes it in."""
    sentences = []
    for name, each in groupby(found, key=lambda one: one.ecosystem):
        own = list(each)
        manifests = ecosystems[name].manifests
        if concerns(config, name) and manifests is not None:
            lines = " and ".join(f"`{line}`" for line in _lines(own, manifests, config))
            sentences.append(
                f"{name} packages in no workspace here: {few([_shown(one) for one in own])}; "
                f"to plan them too, write {lines} in releasekit.toml"
            )
    return sentences


def standing(
    left: Sequence[Below], config: Config, ecosystems: Mapping[str, EcosystemDeclaration]
) -> list[str]:
    """Which lines keep what was taken in, once releasekit.toml takes in more of what is `left`; the
    lines for those of the same kind have it already.
    """
    extended = {each.ecosystem for each in left if each.is_workspace}
    lines = [
        f"`[{name}] {key} = {_toml(there)}`"
        for name, ecosystem in ecosystems.items()
        if name not in extended
        and ecosystem.manifests is not None
        and (key := ecosystem.manifests.workspaces)
        and (there := _list(config, name, key))
    ]
    sentence = (
        f"beside any such line write {' and '.join(lines)} too: what is planned now is planned by "
        "itself only while releasekit.toml has none"
    )
    return [sentence] if left and lines else []


def _shown(found: Below) -> str:
    return f"{found.where} ({packages(len(found.packages))})" if found.is_workspace else found.where


def _lines(found: Sequence[Below], manifests: Manifests, config: Config) -> Iterator[str]:
    """Of releasekit.toml, with the name of the table, and with what stands there already."""
    name = found[0].ecosystem
    by_key: dict[str, list[str]] = {}
    for each in found:
        key = manifests.workspaces if each.is_workspace else manifests.packages
        by_key.setdefault(key, []).append(each.where)
    for key, directories in by_key.items():
        values = directories if key == manifests.workspaces else _with_globs(directories)
        there = _list(config, name, key)
        # Such an option takes the place of the root too.
        at_root = any((config.root / file).is_file() for file in manifests.names)
        first = ["."] if manifests.nested and at_root and not there else there
        more = ["…"] if len(values) > _SHOWN else []
        yield f"[{name}] {key} = {_toml([*first, *values[:_SHOWN], *more])}"


def _list(config: Config, ecosystem: str, key: str) -> list[str]:
    """What releasekit.toml says there; discovery tells what is wrong with anything else."""
    value = config.ecosystem_tables.get(ecosystem, {}).get(key)
    return [str(each) for each in value] if isinstance(value, list) else []


def _toml(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _with_globs(directories: Sequence[str]) -> list[str]:
    """Many in one directory are named by a glob."""
    named = []
    for parent, names in groupby(directories, key=lambda name: name.rpartition("/")[0]):
        beside = list(names)
        named += [f"{parent}/*"] if parent and len(beside) >= _MANY else beside
    return named


async def _listed(config: Config, names: Collection[str], processes: Processes) -> list[Path]:
    """The manifests below the root, relative to it."""
    if files.repository_of(config.root) is not None:
        specs = [f":(glob)**/{name}" for name in sorted(names)]
        argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *specs]
        with suppress(CommandFailed):
            listing = await processes.run(argv, cwd=config.root, timeout_s=60.0)
            return sorted({Path(name) for name in listing.stdout.split("\0") if name})
    return await asyncio.to_thread(_walked, config.root, names)


def _walked(root: Path, names: Collection[str]) -> list[Path]:
    found = []
    for visited, (where, directories, others) in enumerate(durable.walk(root)):
        if visited > MAX_DIRECTORIES:
            break
        directories[:] = sorted(name for name in directories if not _is_foreign(name))
        found += [(where / name).relative_to(root) for name in names if name in others]
    return sorted(found)


def _is_foreign(name: str) -> bool:
    return name.startswith((".", "_")) or name in _FOREIGN


def _classified(
    config: Config,
    ecosystems: Mapping[str, EcosystemDeclaration],
    wanted: Mapping[str, Manifests],
    listed: Sequence[Path],
) -> list[Below]:
    found = []
    for name, manifests in wanted.items():
        without = _list(config, name, "exclude")
        meant = (
            config.root / path.parent
            for path in listed
            if path.name in manifests.names
            and not any(map(_is_foreign, path.parts[:-1]))
            and not any(fnmatchcase(path.parent.as_posix(), glob) for glob in without)
            and files.is_file(config.root / path)
        )
        directories = set(islice(meant, MAX_MANIFESTS))
        own = folders.roots(ecosystems[name])
        survey = _Survey(config.root, own, manifests, directories - {config.root})
        survey.claim(config.root)
        for where, of_it, is_workspace in survey.groups():
            relative = where.relative_to(config.root).as_posix()
            found.append(Below(name, relative, of_it, is_workspace))
    return found


@dataclass(slots=True)
class _Survey:
    """The directories with a manifest, below `root`, that no workspace has claimed yet."""

    root: Path
    roots: Roots
    manifests: Manifests
    left: set[Path]

    def groups(self) -> Iterator[tuple[Path, tuple[Path, ...], bool]]:
        """Each workspace, from the top, with what of it may be published; then single packages."""
        near_first = sorted(self.left, key=lambda each: (len(each.parts), each))
        for directory in filter(self._is_meant, near_first):
            if directory in self.left and self._workspace_at(directory) is not None:
                members = self.claim(directory)
                self.left.discard(directory)
                public = tuple(filter(self._is_public, sorted({directory, *members})))
                if public:
                    yield directory, public, True
        for directory in filter(self._is_meant, sorted(self.left)):
            beside = directory.relative_to(self.root).parts
            if not any(map(_BESIDE.fullmatch, beside)) and self._is_public(directory):
                yield directory, (directory,), False

    def claim(self, top: Path) -> set[Path]:
        """The members of the workspace at `top`; they, and what it excludes, are left no more."""
        members: set[Path] = set()
        pending = [top]
        while pending:
            membership = self._workspace_at(pending.pop())
            if membership is None:
                continue
            standing = {each: membership(each) for each in self.left}
            new = {each for each, said in standing.items() if said == "member"}
            self.left -= {each for each, said in standing.items() if said}
            members |= new
            pending += new if self.manifests.nested else ()
        return members

    def _is_meant(self, directory: Path) -> bool:
        return ASIDE.isdisjoint(directory.relative_to(self.root).parts)

    def _workspace_at(self, directory: Path) -> Membership | None:
        with suppress(ConfigError):
            return self.roots.workspace_at(directory)
        return None

    def _is_public(self, directory: Path) -> bool:
        with suppress(ConfigError):
            return self.roots.publishable_at(directory)
        return False
