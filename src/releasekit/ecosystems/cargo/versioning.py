"""The versions of crates, read from manifests, and written into these and lock files.

Every Cargo.toml below the root counts, those of examples and excluded crates too: cargo loads no
path whose version the requirement beside it excludes.
https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html#multiple-locations
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from releasekit.decided import Edge
from releasekit.ecosystems.cargo.discover import ECOSYSTEM, KINDS
from releasekit.ecosystems.cargo.requirements import Requirement, edit_requirement
from releasekit.ecosystems.interface import Versioning, WrittenVersions
from releasekit.ecosystems.shared.crates import MANIFEST, list_dependencies, read_toml
from releasekit.ecosystems.shared.documents import parse_loosely, table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import ConfigError, PlanError, map_all
from releasekit.host import durable
from releasekit.host.edits import Edits, refuse_edit
from releasekit.host.files import exists, inside
from releasekit.model import PackageId
from releasekit.text.splice import splice
from releasekit.text.toml_text import Where, edit_strings, find_value, parse_toml, put_string

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.decided import Ranges
    from releasekit.ecosystems.cargo.discover import Crate, Need
    from releasekit.git.versions import Read
    from releasekit.model import Package

    # Of a package in a lock file: name, version and source, which is empty for a path.
    Locked = tuple[str, str, str]
    # A requirement as it is going to be, behind its manifest and its keys there.
    Moved = tuple[Path, Where, str]

# In other repositories, and in what tools have made: https://bford.info/cachedir/
_FOREIGN: Final = (".git", "CACHEDIR.TAG")
_FORMAT: Final = re.compile(r"^version = [34]\r?$", re.MULTILINE)
_LOCKED: Final = re.compile(
    r'\[\[(?:package|patch\.unused)\]\]\r?\nname = "([^"\r\n]+)"\r?\n'
    r'version = "([^"\r\n]+)"(?:\r?\nsource = "([^"\r\n]+)")?'
)
_LISTED: Final = re.compile(r'(?<=\n ")[^"\r\n]+')
_OWN: Final = ("package", "version")
_SHARED: Final = ("workspace", "package", "version")
_MEND: Final = "run `cargo update --workspace`, and commit it"


class CargoVersioning(Struct, Versioning, frozen=True, dict=True):
    """`crates` are those of the `packages`, by name."""

    packages: Sequence[Package]
    crates: Mapping[str, Crate]
    root: Path
    pins: PinMode

    def read_version(self, package: Package, read: Read) -> str:
        """Its own, or that of its workspace.

        https://doc.rust-lang.org/cargo/reference/workspaces.html#the-package-table
        """
        document = parse_loosely(read(package.manifest))
        table = table_in(document, "package")
        if text_in(table, "name") != package.id.name:
            return ""
        if not _inherits_version(table):
            return text_in(table, "version")
        shared = parse_loosely(read(package.inherits[0])) if package.inherits else document
        return text_in(table_in(table_in(shared, "workspace"), "package"), "version")

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        """https://doc.rust-lang.org/cargo/reference/workspaces.html#the-package-table"""
        members: dict[Path, list[PackageId]] = {}
        for package in self.packages:
            said = {} if package.unpublishable else read_toml(package.manifest)
            if _inherits_version(table_in(said, "package")):
                members.setdefault(self.crates[package.id.name].workspace, []).append(package.id)
        return {
            f"{(at / MANIFEST).relative_to(self.root).as_posix()}: workspace.package.version": ids
            for at, ids in members.items()
            if len(ids) > 1
        }

    def list_edges(self, released: Mapping[str, str]) -> Iterator[Edge]:
        packages, crates = self.packages, self.crates
        public = {package.id for package in packages if not package.unpublishable}
        for package in packages:
            meant = {edge.on for edge in package.dependencies if not edge.private}
            needed = {on.name for on in meant & public}
            for need in crates[package.id.name].needs if not package.unpublishable else ():
                if need.kind == "dev" or need.name not in needed:
                    continue
                there = crates[need.name].version
                if not Requirement.parse(need.requirement).matches(there):
                    continue
                asked = _pinned(need, released.get(need.name, there), self.pins)
                yield Edge(
                    dependent=package.id,
                    on=PackageId(ECOSYSTEM, need.name),
                    kind=KINDS[need.kind],
                    requirement=asked,
                    admits=Requirement.parse(asked).matches,
                    optional=need.optional,
                )

    def edit(self, versions: Mapping[str, str], edits: Edits, ranges: Ranges) -> WrittenVersions:
        if not versions:
            return WrittenVersions()
        tree = _read_tree(self.crates.values(), edits)
        decided = {
            tree.places[at]: versions[crate.name]
            for at, crate in tree.crates.items()
            if crate.name in versions
        }
        # Private crates share the version of a workspace too, undecided as they are.
        new = {at: decided[place] for at, place in tree.places.items() if place in decided}
        values: dict[Path, dict[Where, str]] = {at: {} for at in tree.documents}
        for (at, keys), version in decided.items():
            values[at][keys] = version
        for at, keys, requirement in _move_needs(tree, new, edits, ranges):
            values[at][keys] = requirement
        for at, wanted in values.items():
            _edit_manifest(edits, at / MANIFEST, tree.documents[at], wanted)
        _edit_locks(tree, new, edits)
        moved = {
            PackageId(ECOSYSTEM, tree.crates[at].name): version
            for at, version in new.items()
            if tree.crates[at].name not in versions and version != tree.crates[at].version
        }
        return WrittenVersions(moved=moved)


class _Tree(Struct, frozen=True):
    """All manifests, where each directory stands for the Cargo.toml in it: the workspaces of crates
    and the `places` of their versions, and the directory that each of `needs` names, if it is here.
    """

    crates: Mapping[Path, Crate]
    homes: Mapping[Path, Path]
    places: Mapping[Path, tuple[Path, Where]]
    documents: Mapping[Path, dict[str, Any]]
    needs: Sequence[tuple[Path, Where, Any, Path | None]]


def _read_tree(crates: Iterable[Crate], edits: Edits) -> _Tree:
    here = {crate.manifest.parent.resolve(): crate for crate in crates}
    homes = {at: crate.workspace.resolve() for at, crate in here.items()}
    documents = _read_manifests({*homes, *homes.values()}, edits)
    places: dict[Path, tuple[Path, Where]] = {
        at: (home, _SHARED) if _inherits_version(table_in(documents[at], "package")) else (at, _OWN)
        for at, home in homes.items()
    }
    needs = [
        (at, where, need, _follow(edits.root, at, need))
        for at, document in documents.items()
        for where, need in list_dependencies(document)
    ]
    return _Tree(here, homes, places, documents, needs)


def _move_needs(tree: _Tree, new: dict[Path, str], edits: Edits, ranges: Ranges) -> Iterable[Moved]:
    """The requirements on what gets a `new` version, as they are from then on."""
    homes, needs = tree.homes, tree.needs
    patches = {(at, _name(*it)): path for at, *it, path in needs if it[0][0] == "patch"}
    # What a workspace lists is raised for any crate that takes it from there.
    raised = {
        (homes[at], where[-1])
        for at, where, need, _ in needs
        if at in new and find_value(need, ("workspace",)) is True
    }

    def move(at: Path, where: Where, need: object, path: Path | None) -> Moved | None:
        # Without a path it means what a registry has, unless something is patched in for that.
        meant = path or patches.get((homes.get(at, at), _name(where, need)))
        requirement = need if isinstance(need, str) else text_in(need, "version")
        if meant not in new or not requirement:
            return None
        raises = (at, where[-1]) in raised if where[0] == "workspace" else at in new
        keys = where if need is requirement else (*where, "version")
        old, version = tree.crates[meant].version, new[meant]
        leaves = bool(Version.parse(old).pre) and not Version.parse(version).pre
        raises = raises and (ranges == "raise" or leaves)
        exact = ranges == "exact"
        try:
            edited = edit_requirement(requirement, old, version, raises=raises, exact=exact)
        except ValueError as error:
            said = f"{'.'.join(map(str, keys))}: {error}; write {version!r}"
            raise _refuse(edits, at / MANIFEST, said) from error
        return at, keys, edited

    return filter(None, map_all(lambda each: move(*each), needs))


def _edit_locks(tree: _Tree, new: Mapping[Path, str], edits: Edits) -> None:
    here = tree.crates
    locks: dict[Path, dict[str, str]] = {home: {} for home in tree.homes.values()}
    for at, crate in here.items():
        locks[tree.homes[at]][crate.name] = new.get(at, crate.version)
    # What is in no workspace locks the crates that it, or what lies below it, needs by path.
    leading = {at for at, _, _, path in tree.needs if path in here and at not in here}
    above = {place for at in leading for place in (at, *at.parents)} & tree.documents.keys()
    locks |= {at: {} for at in above - here.keys() - locks.keys()}
    changes = {(here[at].name, here[at].version): version for at, version in new.items()}

    def edit_lock(path: Path) -> None:
        text = edits.read(path)
        if text is not None:
            try:
                edits.write(path, _move_locked(text, locks[path.parent], changes))
            except ValueError as error:
                raise _refuse(edits, path, str(error)) from error

    map_all(edit_lock, [at / "Cargo.lock" for at in sorted(locks)])


def _inherits_version(table: Mapping[str, object]) -> bool:
    return table_in(table, "version").get("workspace") is True


def _pinned(need: Need, version: str, pins: PinMode) -> str:
    """What `requirements.pin` leaves of it: a path goes, and a version stands in its place."""
    if need.path is None or pins == "none" or (need.has_version and pins == "auto"):
        return need.requirement
    return f"^{version}" if pins == "auto" else f"={version}"


def _refuse(edits: Edits, path: Path, what: str) -> PlanError:
    place = path.relative_to(edits.root).as_posix()
    return refuse_edit(f"{place}: {what}")


def _read_manifests(wanted: Collection[Path], edits: Edits) -> Mapping[Path, dict[str, Any]]:
    """By directory: the `wanted` ones, and all others that can be read."""
    found = {}
    for at in dict.fromkeys([*sorted(wanted), *_walk(edits.root)]):
        try:
            found[at] = parse_toml(edits.read(at / MANIFEST) or "")
        except (ConfigError, ValueError) as error:
            # Others may be templates, or lead out of the workspace.
            if at in wanted:
                raise _refuse(edits, at / MANIFEST, f"cannot be read: {error}") from error
    return found


def _walk(root: Path) -> Iterator[Path]:
    for where, directories, files in durable.walk(root):
        directories[:] = [
            name
            for name in directories
            if name[0] != "."
            and name != "node_modules"
            and not any(exists(where / name / mark) for mark in _FOREIGN)
        ]
        if MANIFEST in files:
            yield where


def _name(where: Where, need: object) -> str:
    return text_in(need, "package") or str(where[-1])


def _follow(root: Path, at: Path, need: object) -> Path | None:
    """The directory that a dependency names, if that is here."""
    path = text_in(need, "path")
    with suppress(ConfigError):
        return inside(root, at / path, where=path) if path else None
    return None


def _edit_manifest(
    edits: Edits, path: Path, document: dict[str, Any], values: Mapping[Where, str]
) -> None:
    changed = {keys: value for keys, value in values.items() if find_value(document, keys) != value}
    for keys, value in changed.items():
        table = find_value(document, keys[:-1])
        if keys[-1] not in table:
            raise _refuse(edits, path, f"has no {'.'.join(map(str, keys))}: write {value!r}")
        table[keys[-1]] = value
    strings = {keys: partial(put_string, value) for keys, value in changed.items()}
    if strings:
        text = edits.read(path) or ""
        try:
            edits.write(path, edit_strings(text, strings, wanted=document, of="cargo"))
        except PlanError as error:
            said = "its versions cannot be told apart; put the tables of each kind together"
            raise _refuse(edits, path, said) from error


def _move_locked(
    text: str, members: Mapping[str, str], changes: Mapping[tuple[str, str], str]
) -> str:
    """`text` with these versions of `members`, and `changes` of others, by name and version. Raises
    ValueError where that is not all that cargo would change.

    https://github.com/rust-lang/cargo/blob/master/src/cargo/core/resolver/encode.rs
    """
    if not _FORMAT.search(text):
        raise ValueError(f"its format is neither 3 nor 4: {_MEND}")
    blocks = re.split(r"(?<=\n)(?=\[)", text)
    found = {at: each for at, block in enumerate(blocks) if (each := _LOCKED.match(block))}
    before = [(each[1], each[2], each[3] or "") for each in found.values()]
    own = Counter(name for name, _, source in before if not source)
    after = []
    for name, version, source in before:
        new = changes.get((name, version), version)
        if own[name] == 1:
            new = members.get(name, new)
        after.append((name, version if source else new, source))
    lacking = members.items() - {(name, version) for name, version, source in after if not source}
    if lacking:
        raise ValueError(f"lacks {' and '.join(sorted(name for name, _ in lacking))}: {_MEND}")
    shown = [*_spell(before)]
    _refuse_excluding(found.values(), after, shown)
    edit_block = partial(_edit_block, dict(zip(shown, _spell(after), strict=True)))
    bodies = [*map(edit_block, found.values(), after)]
    # Packages of one name stand in the order of their versions.
    if before == sorted(before, key=_rank):
        bodies = [body for _, body in sorted(zip(map(_rank, after), bodies, strict=True))]
    for at, body in zip(found, bodies, strict=True):
        blocks[at] = body + blocks[at][len(blocks[at].rstrip()) :]
    return "".join(blocks)


def _refuse_excluding(
    found: Collection[re.Match[str]], after: Sequence[Locked], shown: Sequence[str]
) -> None:
    """Raises ValueError for a package from elsewhere that may exclude a new version."""
    lost = {
        name
        for name, each, (_, new, _) in zip(shown, found, after, strict=True)
        if each[2] != new and not Requirement.parse(each[2]).matches(new)
    }
    for each in found:
        if each[3] and not lost.isdisjoint(_LISTED.findall(each.string)):
            raise ValueError(
                f"{each[1]} {each[2]} comes from elsewhere, and may exclude a version that "
                "`[patch]` gives it: write that by hand, and run `cargo update --workspace`"
            )


def _edit_block(spelled: Mapping[str, str], found: re.Match[str], after: Locked) -> str:
    """What is locked of a package, with the names that it lists as they are `spelled` then."""
    listed = {each.span(): each[0] for each in _LISTED.finditer(found.string)}
    names = [spelled.get(name, name) for name in listed.values()]
    if names != [*listed.values()]:
        names.sort(key=str.split)
    parts = [(found.span(2), after[1]), *zip(listed, names, strict=True)]
    return splice(found.string, parts).rstrip()


def _rank(each: Locked) -> tuple[str, Version, str]:
    name, version, source = each
    return name, Version.parse(version), source


def _spell(packages: Sequence[Locked]) -> Iterator[str]:
    """What others name each of these: no more than it takes to tell it from the rest."""
    same = Counter((name, version) for name, version, _ in packages)
    versions = Counter(name for name, _ in same)
    for name, version, source in packages:
        is_twin = same[name, version] > 1
        shown = version if is_twin or versions[name] > 1 else ""
        origin = f"({source.partition('#')[0]})" if is_twin and source else ""
        yield " ".join(filter(None, (name, shown, origin)))
