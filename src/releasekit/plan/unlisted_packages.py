"""Packages below the root that no workspace lists, which a release would miss in silence, and files
that could be such packages and cannot be read. They are published only where an option names them,
or the root holds nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os.path
import re
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.config.values import Directory
from releasekit.ecosystems import folders
from releasekit.errors import ConfigError
from releasekit.host import durable, files
from releasekit.model import WarningName
from releasekit.problems import mark
from releasekit.report.text import few, packages
from releasekit.text.commands import spell
from releasekit.text.escape import clip, visible
from releasekit.text.globs import matches_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.config.declaration import EcosystemDeclaration, Manifests
    from releasekit.ecosystems.interface import Membership, Roots, Target
    from releasekit.plan.holdings import Tree

    # The tables of the ecosystems in releasekit.toml.
    Tables = Mapping[str, Mapping[str, object]]

MAX_DIRECTORIES: Final = 20_000
MAX_MANIFESTS: Final = 10_000
# How far down a workspace is looked for that takes the place of a root without anything.
_NEAR: Final = 2
# So many packages beside one another are named by a glob.
_MANY: Final = 3
# What is to be copied is whole up to here.
_MAX_LINE: Final = 4_000
# So many files that cannot be read are named, each with so much of the reason.
_FEW: Final = 3
_MAX_WHY: Final = 300
_LEADS_NOWHERE: Final = "is a broken symbolic link"
# Packages here are examples and fixtures: only a workspace that lists them publishes them.
ASIDE: Final = frozenset(
    {
        *("test", "tests", "__tests__", "testdata", "fixture", "fixtures", "__fixtures__"),
        *("example", "examples", "sample", "samples", "template", "templates"),
        "archetype-resources",  # https://maven.apache.org/archetype/maven-archetype-plugin/
        *("demo", "demos", "playground", "playgrounds", "sandbox", "sandboxes"),
    }
)
TESTS: Final = re.compile(r".+[-_]tests")
_LIKE_ASIDE: Final = re.compile(rf"{TESTS.pattern}|.+[-_]examples?")
# Likewise single packages: websites, what only tests need, and directories whose names are filled
# in. https://cookiecutter.readthedocs.io/en/stable/overview.html
_BESIDE: Final = re.compile(
    r"docs?|website|site|www|it|e2e|bench(es|marks?)?|.+[-_]tests?|.*\{[{%].*"
)
# Vendored code, or output of a build.
_FOREIGN: Final = frozenset({"node_modules", "vendor", "third_party", "target", "dist", "build"})


class NestedPackages(Struct, frozen=True):
    """A workspace below the root, or a package in no workspace. `where` is its directory, relative
    to the root; `packages` are the directories of those that may be published, absolute.
    """

    ecosystem: str
    where: str
    packages: tuple[Path, ...]
    is_workspace: bool


class UnreadManifest(Struct, frozen=True):
    """A file that could be a package, and `why` that is not known, which names it."""

    ecosystem: str
    why: str


async def find_nested(
    root: Path,
    tables: Tables,
    ecosystems: Mapping[str, EcosystemDeclaration],
    listed: Sequence[Path],
) -> tuple[list[NestedPackages], list[UnreadManifest]]:
    """Those of `ecosystems`, by their manifests as `list_manifests` tells them."""
    wanted = {
        name: each.manifests
        for name, each in ecosystems.items()
        if each.manifests is not None and each.manifests.workspaces
    }
    return await asyncio.to_thread(_classify, root, tables, ecosystems, wanted, listed)


def find_absent(
    config: PlanConfig, ecosystems: Iterable[EcosystemDeclaration], listed: Sequence[Path]
) -> frozenset[str]:
    """The names of those that discovery would find nothing of: nothing is configured for them, and
    no manifest is where one would count without that. A directory to publish into tells of none.
    """
    tables, below = config.ecosystem_tables, {path.name for path in listed}
    return frozenset(
        each.name
        for each in ecosystems
        if (each.options.NAMED and not tables.get(each.name))
        or (
            each.manifests is not None
            and (each.manifests.workspaces or below.isdisjoint(each.manifests.names))
            and _is_unconfigured(config.root, tables, each)
            and not tables.get(each.name)
            and isinstance(config.registries.get(each.name), Directory | None)
            and config.own(each.inputs) == each.inputs()
            and not config.dist
        )
    )


def include_workspaces(
    root: Path,
    tables: Tables,
    ecosystems: Mapping[str, EcosystemDeclaration],
    nested: Sequence[NestedPackages],
) -> tuple[Tables, str]:
    """`tables` of releasekit.toml with the workspaces near below the root, and a note that says so,
    where the root holds no manifest at all and no option names another; else the same.
    """
    chosen = [each for each in nested if each.is_workspace and Path(each.where).parts[_NEAR:] == ()]
    if not chosen or not all(_is_unconfigured(root, tables, each) for each in ecosystems.values()):
        return tables, ""
    extended = {name: dict(table) for name, table in tables.items()}
    for name, own in groupby(chosen, key=lambda each: each.ecosystem):
        manifests = ecosystems[name].manifests
        assert manifests is not None  # noqa: S101 (it was found by them)
        extended.setdefault(name, {})[manifests.workspaces] = [each.where for each in own]
    where = few([f"{each.where} ({each.ecosystem})" for each in chosen])
    note = f"the root has no manifest, so the workspaces below it are planned: {where}"
    return extended, note


def _is_unconfigured(root: Path, tables: Tables, ecosystem: EcosystemDeclaration) -> bool:
    """Whether the root has no manifest of it, and no option names one."""
    manifests = ecosystem.manifests
    if manifests is None:
        return True
    keys = {manifests.workspaces, manifests.packages, "directories"}
    return not keys & tables.get(ecosystem.name, {}).keys() and not any(
        (root / name).exists() for name in manifests.names
    )


def find_unlisted(
    nested: Iterable[NestedPackages], targets: Mapping[str, Target]
) -> list[NestedPackages]:
    """Those that discovery did not find. A directory may hold packages of several ecosystems, as
    those of maturin and napi do.
    """
    known = {
        (name, package.directory)
        for name, target in targets.items()
        for package in target.workspace.packages
    }
    return [
        each
        for each in nested
        if known.isdisjoint((each.ecosystem, package) for package in each.packages)
    ]


def describe_unlisted(
    found: Sequence[NestedPackages],
    root: Path,
    tables: Tables,
    ecosystems: Mapping[str, EcosystemDeclaration],
) -> list[str]:
    """A sentence for each ecosystem: what lies where, and which option includes it."""
    sentences = []
    for name, each in groupby(found, key=lambda one: one.ecosystem):
        own = list(each)
        manifests = ecosystems[name].manifests
        if manifests is not None:
            lines = " and ".join(_option_lines(own, manifests, root, tables))
            places = [
                f"{one.where} ({packages(len(one.packages))})" if one.is_workspace else one.where
                for one in own
            ]
            sentences.append(
                f"{name} packages in no workspace here: {few(places, 3)}; "
                f"to plan them too, write {lines} in releasekit.toml"
            )
    return sentences


def describe_unread(own: Sequence[UnreadManifest]) -> list[str]:
    """One sentence, or none: some of them, how many more, and what to do."""
    if not own:
        return []
    key = f'{WarningName.UNREAD_MANIFEST} = "ignore"'
    files, they = ("file", "it") if len(own) == 1 else ("files", "them")
    more = [f"and {len(own) - _FEW} more"] if len(own) > _FEW else []
    told = " | ".join([*(each.why for each in own[:_FEW]), *more])
    cure = f"correct {they}, or write `{key}` below [warnings] in releasekit.toml"
    count = f"ReleaseKit cannot read {len(own)} {files} that may belong to packages"
    return [f"{count}: {told}; {cure}"]


def mark_unread(sentence: str) -> str:
    """As a warning, with its name and its id, which an error has of its own."""
    name = WarningName.UNREAD_MANIFEST
    return f"warning: {name}: {sentence}{mark(name.problem)}"


def describe_included(
    left: Sequence[NestedPackages], tables: Tables, ecosystems: Mapping[str, EcosystemDeclaration]
) -> list[str]:
    """The lines that keep the included workspaces once releasekit.toml includes more of what is
    `left`; lines for the same ecosystem name them already.
    """
    extended = {
        (each.ecosystem, manifests.workspaces if each.is_workspace else manifests.packages)
        for each in left
        if (manifests := ecosystems[each.ecosystem].manifests) is not None
    }
    lines = [
        f"`[{name}] {key} = {write_list(there)}`"
        for name, ecosystem in ecosystems.items()
        if ecosystem.manifests is not None
        and (key := ecosystem.manifests.workspaces)
        and (name, key) not in extended
        and (there := read_list(tables, name, key))
    ]
    sentence = (
        f"beside any such line write {' and '.join(lines)} too: ReleaseKit finds these "
        "itself only while releasekit.toml has no such line"
    )
    return [sentence] if left and lines else []


def _option_lines(
    found: Sequence[NestedPackages], manifests: Manifests, root: Path, tables: Tables
) -> Iterator[str]:
    """What to write in releasekit.toml: the table, the key, and its values, those there already
    too; `init` writes what is too long for a line.
    """
    name = found[0].ecosystem
    for key, (there, values) in list_options(found, manifests, root, tables).items():
        line = f"`[{name}] {key} = {write_list([*there, *values])}`"
        is_short = len(line) <= _MAX_LINE
        yield line if is_short else f"`[{name}] {key}` as {spell('init')} does"


def list_options(
    found: Sequence[NestedPackages], manifests: Manifests, root: Path, tables: Tables
) -> dict[str, tuple[list[str], list[str]]]:
    """The options that include what was found, all of one ecosystem: what each has to go on
    naming, and what it has to name besides.
    """
    name = found[0].ecosystem
    by_key: dict[str, list[str]] = {}
    for each in found:
        key = manifests.workspaces if each.is_workspace else manifests.packages
        by_key.setdefault(key, []).append(each.where)
    options = {}
    for key, directories in by_key.items():
        values = directories if key == manifests.workspaces else _with_globs(directories)
        there = read_list(tables, name, key)
        # Such an option takes the place of the root too.
        at_root = any((root / file).is_file() for file in manifests.names)
        options[key] = (["."] if manifests.nested and at_root and not there else there), values
    return options


def read_list(tables: Tables, ecosystem: str, key: str) -> list[str]:
    """What releasekit.toml says there; discovery tells what is wrong with anything else."""
    value = tables.get(ecosystem, {}).get(key)
    return [str(each) for each in value] if isinstance(value, list) else []


def write_list(values: Sequence[str]) -> str:
    """As TOML has it, which takes this one character of a JSON string only escaped."""
    return json.dumps(values, ensure_ascii=False).replace("\x7f", r"\u007f")


def _with_globs(directories: Sequence[str]) -> list[str]:
    """With a glob in place of many in one directory, where others may lie between them."""
    beside: dict[str, list[str]] = {}
    for name in directories:
        beside.setdefault(name.rpartition("/")[0], []).append(name)
    return [
        each
        for parent, names in beside.items()
        for each in ([f"{parent}/*"] if parent and len(names) >= _MANY else names)
    ]


def is_aside(directory: str) -> bool:
    """Whether a directory of this name holds what hardly anybody means to publish."""
    return directory in ASIDE or _LIKE_ASIDE.fullmatch(directory) is not None


async def list_manifests(
    root: Path, ecosystems: Iterable[EcosystemDeclaration], tree: Tree
) -> list[Path]:
    """The manifests of these at or below the root, relative to it, apart from those that git
    ignores.
    """
    manifests = [each.manifests for each in ecosystems if each.manifests]
    names = {name for each in manifests for name in (*each.names, *each.foreign)}
    if not names:
        return []
    if tree.untracked is None:
        return await asyncio.to_thread(_walk, root, names)
    others = tuple(f"{each}/" for each in tree.submodules)
    return sorted(
        Path(name)
        for name in (*tree.files, *tree.untracked)
        if name.rpartition("/")[2] in names and not name.startswith(others)
    )


def _walk(root: Path, names: Collection[str]) -> list[Path]:
    found = []
    for visited, (where, directories, others) in enumerate(durable.walk(root)):
        if visited > MAX_DIRECTORIES:
            break
        directories[:] = sorted(name for name in directories if not _is_foreign(name))
        found += [(where / name).relative_to(root) for name in names if name in others]
    return sorted(found)


def _is_foreign(name: str) -> bool:
    return name.startswith((".", "_")) or name in _FOREIGN


def _classify(
    root: Path,
    tables: Tables,
    ecosystems: Mapping[str, EcosystemDeclaration],
    wanted: Mapping[str, Manifests],
    listed: Sequence[Path],
) -> tuple[list[NestedPackages], list[UnreadManifest]]:
    found, unread = [], []
    for name, manifests in wanted.items():
        without = read_list(tables, name, "exclude")
        own = [
            path
            for path in listed
            if path.name in (*manifests.names, *manifests.foreign)
            and not any(map(_is_foreign, path.parts[:-1]))
            and not matches_path(path.parent.as_posix(), without)
        ]
        candidates = [path for path in own if path.name in manifests.names]
        foreign = {root / path.parent for path in own if path.name in manifests.foreign}
        # A link that leads nowhere is no file either, and somebody means it to be one.
        meant = (
            root / path.parent
            for path in candidates
            if files.is_file(root / path) or _is_broken(root / path)
        )
        directories = set(islice(meant, MAX_MANIFESTS))
        below = directories - {root}
        unread += [UnreadManifest(name, why) for why in _list_unreadable(root, candidates)]
        if not below and not foreign:
            continue  # what its roots import takes long
        unclaimed = _Unclaimed(root, folders.roots(ecosystems[name]), manifests, below)
        unclaimed.note(islice(sorted(foreign), MAX_MANIFESTS))
        unclaimed.claim(root)
        for where, of_it, is_workspace in unclaimed.groups():
            relative = where.relative_to(root).as_posix()
            found.append(NestedPackages(name, relative, of_it, is_workspace))
        unread += [UnreadManifest(name, why) for _, why in sorted(unclaimed.unread.items())]
    return found, unread


def _list_unreadable(root: Path, candidates: Sequence[Path]) -> Iterator[str]:
    for path in candidates:
        if len(path.parts) == 1 and _is_broken(root / path):
            yield f"{path} {_LEADS_NOWHERE}"
    # A sparse checkout leaves them out, or somebody has removed them.
    for path in candidates:
        is_beside = any(is_aside(part) or _BESIDE.fullmatch(part) for part in path.parts)
        if not is_beside and not os.path.lexists(root / path):
            yield clip(visible(f"{path} is in git, but not checked out"), _MAX_WHY)


def _is_broken(path: Path) -> bool:
    return os.path.islink(path) and not files.exists(path)  # noqa: PTH114 (Path.is_link raises)


class _Unclaimed(Struct):
    """The directories with a manifest, below `root`, that no workspace has claimed yet, and why
    those that could not be read are `unread`.
    """

    root: Path
    roots: Roots
    manifests: Manifests
    left: set[Path]
    unread: dict[Path, str] = field(default_factory=dict)

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

    def note(self, foreign: Iterable[Path]) -> None:
        """Note packages that only other tools read. That a workspace leaves them out says nothing:
        it cannot have them. https://docs.astral.sh/uv/concepts/projects/workspaces/
        """
        for directory in filter(self._is_meant, foreign):
            self._is_public(directory)

    def claim(self, top: Path) -> set[Path]:
        """The members of the workspace at `top`; they, and what it excludes, are left no more."""
        members: set[Path] = set()
        pending = [top]
        while pending:
            membership = self._workspace_at(pending.pop())
            if membership is None:
                continue
            said_of = {each: membership(each) for each in self.left}
            new = {each for each, said in said_of.items() if said == "member"}
            self.left -= {each for each, said in said_of.items() if said}
            members |= new
            pending += new if self.manifests.nested else ()
        return members

    def _is_meant(self, directory: Path) -> bool:
        return not any(map(is_aside, directory.relative_to(self.root).parts))

    def _workspace_at(self, directory: Path) -> Membership | None:
        # Discovery reads that of the root.
        with self._noting(directory) if directory != self.root else suppress(ConfigError):
            return self.roots.workspace_at(directory)
        return None

    def _is_public(self, directory: Path) -> bool:
        with self._noting(directory):
            return self.roots.publishable_at(directory)
        return False

    @contextmanager
    def _noting(self, directory: Path) -> Iterator[None]:
        try:
            yield
        except ConfigError as error:
            where = directory.relative_to(self.root)
            if not any(map(_BESIDE.fullmatch, where.parts)):
                links = (where / name for name in self.manifests.names)
                broken = next((each for each in links if _is_broken(self.root / each)), None)
                said = str(error).replace(f"{self.root}/", "").replace("; ", ", ")
                why = f"{broken} {_LEADS_NOWHERE}" if broken else said
                self.unread.setdefault(directory, clip(visible(why), _MAX_WHY))
