"""The versions of Maven packages, read and written where they stand, with what siblings require of
them.

A version may be put together of properties, so it is traced to the texts that it comes from. Each
use of a text wants it to be something, and where two uses differ, nothing can be written.
"""

from __future__ import annotations

import os.path
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.decided import Edge
from releasekit.ecosystems.interface import Versioning, WrittenVersions
from releasekit.ecosystems.maven import mvn, versions
from releasekit.ecosystems.maven.discover import (
    ECOSYSTEM,
    EXPRESSION,
    MAX_PARENTS,
    PomProject,
    explain_private,
    find_references,
    find_requested_version,
    find_siblings,
    is_named,
    load_projects,
)
from releasekit.ecosystems.maven.document import parse_document
from releasekit.ecosystems.maven.pom import find_properties, parse_pom
from releasekit.errors import ConfigError, PlanError, raise_all
from releasekit.host.edits import Edits, refuse_edit
from releasekit.model import DependencyKind, PackageId
from releasekit.report.text import few
from releasekit.text.escape import clip
from releasekit.text.splice import splice
from releasekit.text.toml_text import find_strings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from releasekit.config.values import PinMode
    from releasekit.decided import Ranges
    from releasekit.ecosystems.maven import MavenOptions
    from releasekit.ecosystems.maven.document import Element
    from releasekit.ecosystems.maven.pom import Pom
    from releasekit.git.versions import Read
    from releasekit.model import Package

    # A file, and offsets in it, in bytes.
    Place = tuple[Path, tuple[int, int]]

# Of plugins that name no group.
_PLUGINS: Final = "org.apache.maven.plugins"
# What plugins resolve. Other coordinates in a configuration may be those of an earlier release.
_RESOLVED: Final = frozenset({"annotationProcessorPaths", "artifactItems"})
MAX_PIECES: Final = 20


class MavenVersioning(Struct, Versioning, frozen=True, dict=True):
    """Versions may stand in `config_file`."""

    projects: Mapping[str, PomProject]
    root: Path
    options: MavenOptions
    config_file: Path
    pins: PinMode

    def read_version(self, package: Package, read: Read) -> str:
        """Of the POM, or of those that it inherits from by a relative path. Empty for a version
        that is set from outside of the POMs: no commit has it.
        """
        today = self.projects.get(package.id.name)
        if today is None:  # another tool has published it
            return ""
        try:
            pom = _read_pom(package.manifest, read)
            if pom is None or pom.artifact != today.pom.artifact:
                return ""
            project = _make_project(pom, today, read)
            version = project.resolve(project.model()["version"])
        except (ValueError, ConfigError):
            return ""
        return "" if "${" in version else version

    def describe_left_out(self) -> str:
        names = few([*self.options.directories])
        said = "gets its versions from these tools; set them in their build files"
        return f"what other tools publish into {names} {said}" if names else ""

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        """A POM that requires a sibling in its own version, as `${project.version}`, says that the
        two share one, wherever that of the sibling stands. POMs that are never published count
        too, as the BOM of a profile, since versions are written there.
        """
        by_name, root, projects = self.projects, self.root, self._list_projects()
        members: dict[str, list[PackageId]] = {}
        places: dict[str, str] = {}
        for project in projects:
            place = places[project.name] = _find_version_place(project, root)
            ids = members.setdefault(place, [])
            if project.name in by_name and not explain_private(project):
                ids.append(PackageId(ECOSYSTEM, project.name))
        first = {place: place for place in members}  # the place that stands for each
        for project in projects:
            for reference, target in find_siblings(project, by_name):
                is_equal = project.resolve(reference.version) == target.version
                for place in _list_places(project, reference.version, root) if is_equal else ():
                    into, own = first.get(place), first.get(places.get(target.name, ""))
                    if into and own and into != own:
                        members[into] += members.pop(own)
                        first |= {each: into for each, it in first.items() if it == own}
        return {place: ids for place, ids in members.items() if len(ids) > 1}

    def _list_projects(self) -> list[PomProject]:
        """With those that only a profile lists."""
        projects = [*self.projects.values()]
        if any(each.pom.modules_of_profiles for each in projects):
            loaded = load_projects(self.root, self.options, with_profiles=True)
            projects += [each for each in loaded if each.name not in self.projects]
        return projects

    def list_edges(self, released: Mapping[str, str]) -> Iterator[Edge]:
        """A POM names its parent and the BOMs that it imports in one version, and what it manages
        for others.
        """
        by_name = self.projects
        for project in by_name.values():
            if explain_private(project):
                continue
            asked: dict[tuple[str, str], DependencyKind] = {}
            parent = project.parent
            if parent is not None and parent.name in by_name:
                asked[parent.name, project.parent_version] = DependencyKind.RUNTIME
            for reference, target in find_references(project, by_name):
                if reference.needed or reference.use == "managed":
                    wanted = find_requested_version(reference, project, target.name)
                    kind = (
                        DependencyKind.ORDER
                        if reference.use == "managed"
                        else DependencyKind.RUNTIME
                    )
                    asked.setdefault((target.name, wanted or target.version), kind)
            for (name, wanted), kind in asked.items():
                if explain_private(by_name[name]):
                    continue
                there = by_name[name].version
                is_pinned = wanted == there or (self.pins == "exact" and versions.is_range(wanted))
                requirement = released.get(name, there) if is_pinned else wanted
                yield Edge(
                    dependent=PackageId(ECOSYSTEM, project.name),
                    on=PackageId(ECOSYSTEM, name),
                    kind=kind,
                    requirement=requirement,
                    admits=partial(_admits, requirement),
                )

    def edit(self, versions: Mapping[str, str], edits: Edits, _ranges: Ranges) -> WrittenVersions:
        """Whatever `ranges` asks, no range is raised: it names all versions that will do."""
        wanted = VersionEdits(self.options, self.config_file, edits)
        moved = wanted.collect(self.projects, versions)
        wanted.write()
        return WrittenVersions(moved=moved)


class Piece(Struct, frozen=True):
    """A text, and where it stands; no place for one that cannot be edited."""

    text: str
    place: Place | None = None

    def cut(self, start: int, end: int) -> Piece:
        if self.place is None:
            return Piece(self.text[start:end])
        path, (first, _) = self.place
        span = first + len(self.text[:start].encode()), first + len(self.text[:end].encode())
        return Piece(self.text[start:end], (path, span))


class VersionEdits:
    """The files that versions come from, and what their texts are going to be."""

    def __init__(self, options: MavenOptions, config_file: Path, edits: Edits) -> None:
        self._root = edits.root
        self._options = options
        self._config_file = config_file
        self._edits = edits
        self._files: dict[Path, bytes] = {}
        self._poms: dict[Path, tuple[Element, Mapping[str, Element]]] = {}
        self._overrides: dict[tuple[Path, str], Place] = {}
        # Each text that a place is to have, and a use that wants it.
        self._wanted: dict[Place, dict[str, str]] = {}
        self._refused: list[PlanError] = []

    def collect(
        self, known: Mapping[str, PomProject], wanted: Mapping[str, str]
    ) -> Mapping[PackageId, str]:
        """`known` are the projects of the packages, by name. POMs that only a profile lists are
        edited with theirs, and keep versions of their own. Returns what moves along.
        """
        by_path = self._load_projects()
        named = {name: by_path[project.pom.path] for name, project in known.items()}
        decided = {*wanted, *(name for name, it in named.items() if not explain_private(it))}
        for name, project in named.items():
            if name in decided:
                new = wanted.get(name, project.version)
                self._want(project, name, self._trace_version(project), new)
        by_name = {each.name: each for each in by_path.values()} | named
        uses = list(self._find_uses(by_path.values(), by_name))
        self._move_along(by_name, uses, decided)
        followed = frozenset(self._wanted)  # by all that names them
        became = {name: self._tell(self._trace_version(each)) for name, each in by_name.items()}
        for project, name, pieces in uses:
            old, target = _join(pieces), by_name.get(name)
            if target is not None and _selects(old, target.version):
                self._want(project, name, pieces, became[name])
            elif followed.isdisjoint(piece.place for piece in pieces):
                self._want(project, name, pieces, old)
        return {
            PackageId(ECOSYSTEM, name): version
            for name, version in became.items()
            if name not in wanted and version != by_name[name].version
        }

    def _load_projects(self) -> Mapping[Path, PomProject]:
        """By path, with the parents of each."""
        loaded = load_projects(self._root, self._options, with_profiles=True)
        for top in {each.top for each in loaded}:
            self._find_overrides(top)
        return {each.pom.path: each for project in loaded for each in project.ancestry()}

    def _find_uses(
        self, projects: Iterable[PomProject], by_name: Mapping[str, PomProject]
    ) -> Iterator[tuple[PomProject, str, Sequence[Piece]]]:
        """Each project with a name that its POM gives a version, and what that comes from."""
        for project in projects:
            for element in _find_coordinates(self._read_pom(project.pom.path)[0]):
                version = element.child("version")
                if version is None:
                    continue
                name = _name_target(project, element)
                if name in by_name or "${" in version.text:
                    yield (
                        project,
                        name,
                        self._trace(project, self._find_text(project.pom.path, version)),
                    )

    def _move_along(
        self,
        by_name: Mapping[str, PomProject],
        uses: Sequence[tuple[PomProject, str, Sequence[Piece]]],
        decided: Collection[str],
    ) -> None:
        """Give what has no version decided that of a parent whose version it repeats, unless a
        range of that admits the new one, and that of what names it by a version that moves. The
        first is what updateMatchingVersions says of
        https://www.mojohaus.org/versions/versions-maven-plugin/set-mojo.html
        """
        free = {
            name: self._trace_version(it) for name, it in by_name.items() if name not in decided
        }
        given = [
            (name, self._trace_version(parent), project.resolve(project.pom.parent.version))
            for name, project in by_name.items()
            if name in free
            and (parent := project.parent) is not None
            and by_name.get(parent.name) is parent
            and project.pom.parent is not None
        ]
        given += [(name, pieces, _join(pieces)) for _, name, pieces in uses if name in free]
        given += [  # what requires another one in its own version, as by `${project.version}`
            (project.name, self._trace_version(by_name[name]), _join(pieces))
            for project, name, pieces in uses
            if name in by_name and [*free.get(project.name, ())] == [*pieces]
        ]
        given = [it for it in given if _join(it[1]) == by_name[it[0]].version]
        moved = True
        while moved:
            moved = False
            for name, pieces, asked in given:
                new, old = self._tell(pieces), by_name[name].version
                if new != old == self._tell(free[name]) and not _selects(asked, new):
                    self._want(by_name[name], name, free[name], new)
                    moved = self._tell(free[name]) != old or moved

    def write(self) -> None:
        """Raises PlanError for all that cannot be as it is wanted."""
        edits: dict[Path, list[tuple[tuple[int, int], bytes]]] = {}
        for (path, span), texts in self._wanted.items():
            old, (new, *others) = self._files[path][slice(*span)], texts
            if new.encode() != old:
                edits.setdefault(path, []).append((span, new.encode()))
            for other in others[:1]:
                self._refuse(
                    f"{path.relative_to(self._root)}: {old.decode()!r} has to be {new!r} for "
                    f"{texts[new]} and {other!r} for {texts[other]}",
                    "Write a version, or a property, for each of them.",
                )
        raise_all(self._refused)
        for path, found in edits.items():
            text = splice(self._files[path], found).decode("utf-8", "surrogateescape")
            self._edits.write(path, text)

    def _want(self, project: PomProject, name: str, pieces: Sequence[Piece], version: str) -> None:
        """What a POM requires of `name` is to be `version`, or a range that holds it."""
        old = _join(pieces)
        is_range = versions.is_range(old) and not versions.is_range(version)
        if not pieces or (is_range and _selects(old, version)):
            return
        texts = _divide(pieces, versions.widen(old, version) if is_range else version)
        where = f"{project.pom.path.relative_to(self._root)}: the version of {clip(name, 200)}"
        if not texts:
            self._refuse(
                f"{where} is {old[:100]!r}, and has to {'hold' if is_range else 'be'} {version}",
                "It cannot be edited as it is written; write it by hand.",
            )
        for piece, text in zip(pieces, texts, strict=False):
            if piece.place:
                self._wanted.setdefault(piece.place, {}).setdefault(text, where)

    def _refuse(self, message: str, hint: str) -> None:
        self._refused.append(refuse_edit(message, hint))

    def _tell(self, pieces: Sequence[Piece]) -> str:
        """What they are going to be."""
        return "".join(
            next(iter(self._wanted.get(piece.place, ())), piece.text) if piece.place else piece.text
            for piece in pieces
        )

    def _trace_version(self, project: PomProject) -> Sequence[Piece]:
        """What the version of a project comes from."""
        own = self._read_pom(project.pom.path)[0].child("version")
        if own is not None and own.text.strip():
            return self._trace(project, self._find_text(project.pom.path, own))
        if project.parent is not None:
            return self._trace_version(project.parent)
        return [Piece(project.version)]  # a registry has its parent

    def _trace(self, project: PomProject, piece: Piece) -> Sequence[Piece]:
        """What its expressions come to, as `PomProject.resolve` replaces them."""
        whole = project.resolve(piece.text)  # refuses what never comes to an end
        pending, found = [piece], list[Piece]()
        while pending:
            piece = pending.pop()
            expression = EXPRESSION.search(piece.text)
            meant = self._find_meaning(project, expression[1]) if expression else None
            if expression is None or meant is None:
                found += [piece] if piece.text else []
            else:
                pending.append(piece.cut(expression.end(), len(piece.text)))
                pending += reversed(meant)
                pending.append(piece.cut(0, expression.start()))
        return found if _join(found) == whole else [Piece(whole)]

    def _find_meaning(self, project: PomProject, name: str) -> Sequence[Piece] | None:
        """None for what is undefined, or holds itself."""
        key, model = name.removeprefix("project.").removeprefix("pom."), project.model()
        if name in project.overrides:
            value, place = project.overrides[name], self._overrides.get((project.top, name))
            is_there = place and self._files[place[0]][slice(*place[1])] == value.encode()
            return [Piece(value, place if is_there else None)]
        if name in project.properties and (key == name or key not in model):
            holders = (each for each in project.ancestry() if name in each.pom.properties)
            path = next(holders).pom.path
            found = self._find_text(path, self._read_pom(path)[1][name])
            return None if f"${{{name}}}" in found.text else [found]
        if key == "version":
            return self._trace_version(project)
        if key == "parent.version" and project.parent is not None:
            named = self._read_pom(project.pom.path)[0].child("parent", "version")
            if named is not None and versions.is_range(model[key]):
                return [self._find_text(project.pom.path, named)]
            return self._trace_version(project.parent)
        return [Piece(model[key])] if key in model else None

    def _find_overrides(self, top: Path) -> None:
        """What arguments and options set in a reactor; options win."""
        if path := mvn.find_maven_config(self._root, top):
            for name, span in mvn.find_arguments(self._read(path)).items():
                self._overrides[top, name] = path, span
        keys = [("maven", "properties", name) for name in self._options.properties]
        text = self._read(self._config_file).decode() if keys else ""
        for (*_, key), (start, end) in find_strings(text, keys).items():
            span = len(text[:start].encode()), len(text[:end].encode())
            self._overrides[top, str(key)] = self._config_file, span

    def _read(self, path: Path) -> bytes:
        if path not in self._files:
            text = self._edits.read(path) or ""
            self._files[path] = text.encode("utf-8", "surrogateescape")
        return self._files[path]

    def _read_pom(self, path: Path) -> tuple[Element, Mapping[str, Element]]:
        if path not in self._poms:
            root = parse_document(self._read(path))
            self._poms[path] = root, find_properties(root)
        return self._poms[path]

    def _find_text(self, path: Path, element: Element) -> Piece:
        """Of an element; no place for one that has entities, or the same in a comment, or is
        encoded in another way than UTF-8 would.
        """
        text = element.text.strip()
        encoded, raw = text.encode(), self._read(path)[element.start : element.end]
        start = element.start + raw.find(encoded)
        place = path, (start, start + len(encoded))
        return Piece(text, place if raw.count(encoded) == 1 else None)


def _divide(pieces: Sequence[Piece], wanted: str) -> Sequence[str]:
    """What the pieces have to be for this, with one of them changed; empty if that cannot be.

    Besides, what makes a snapshot of a version goes with it.
    """
    texts = [piece.text for piece in pieces]
    last = pieces[-1]
    if last.text.upper() == "-SNAPSHOT" and last.place and not versions.is_snapshot(wanted):
        texts[-1] = ""
    for number, piece in enumerate(pieces[:MAX_PIECES]):
        before, after = "".join(texts[:number]), "".join(texts[number + 1 :])
        middle = wanted.removeprefix(before).removesuffix(after)
        if wanted and before + middle + after == wanted and (piece.place or middle == piece.text):
            return [*texts[:number], middle, *texts[number + 1 :]]
    return []


def _name_target(project: PomProject, element: Element) -> str:
    group = project.resolve(element.value("groupId"))
    artifact = project.resolve(element.value("artifactId"))
    if element.tag == "relocation":  # what it leaves open stays as it is
        return f"{group or project.group}:{artifact or project.artifact}"
    return f"{group or _PLUGINS}:{artifact}"


def _find_coordinates(element: Element) -> Iterator[Element]:
    """The elements below it that name a project."""
    for child in element.children:
        if element.tag != "configuration" or child.tag in _RESOLVED:
            if child.child("artifactId") or child.tag == "relocation":
                yield child
            yield from _find_coordinates(child)


def _join(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _selects(requested: str, version: str) -> bool:
    try:
        is_held = versions.is_range(requested) and versions.contains(requested, version)
    except ValueError:  # pinning the POM reports an invalid range
        return False
    return is_held or requested == version


def _make_project(pom: Pom, today: PomProject, read: Read, depth: int = 0) -> PomProject:
    project = PomProject(pom=pom, top=today.top, overrides={})
    wanted = pom.parent
    if wanted is not None and wanted.relative_path and depth < MAX_PARENTS:
        # It may name the directory or the file.
        place = Path(os.path.normpath(pom.path.parent / wanted.relative_path))
        found = _read_pom(place / "pom.xml", read) or _read_pom(place, read)
        if found is not None and found.artifact == wanted.artifact:
            above = _make_project(found, today, read, depth + 1)
            above.version = above.resolve(above.model()["version"])
            # A registry has any other version.
            project.parent = above if is_named(wanted, above) else None
    inherited = project.parent.properties if project.parent else {}
    project.properties = {
        name: text
        for name, text in {**inherited, **pom.properties}.items()
        if name not in today.overrides
    }
    return project


def _read_pom(path: Path, read: Read) -> Pom | None:
    data = read(path)
    return None if data is None else parse_pom(parse_document(data), path)


def _admits(requirement: str, version: str) -> bool:
    """Maven takes another version than the one that is named, if something nearer names that; but
    nothing else brings it to the users of a dependent.
    """
    if versions.is_range(requirement):
        return versions.contains(requirement, version)
    return versions.compare(requirement, version) == 0


def _list_places(project: PomProject, text: str, root: Path) -> Iterator[str]:
    """The POMs and elements that an expression leads to, one after another."""
    while (name := EXPRESSION.fullmatch(text)) is not None:
        if name[1] in project.overrides:
            yield name[0]
            return
        own = name[1].removeprefix("project.").removeprefix("pom.")
        # As where it is resolved: no property changes what `project.` says.
        is_fixed = own != name[1] and own in project.model()
        holders = (each for each in project.ancestry() if name[1] in each.pom.properties)
        holder = None if is_fixed else next(holders, None)
        if holder is None:
            if own == "version":
                yield _find_version_place(project, root)
            return
        yield f"{holder.pom.path.relative_to(root).as_posix()}: {name[0]}"
        text = holder.pom.properties[name[1]]


def _find_version_place(project: PomProject, root: Path) -> str:
    """The POM and the element in it that the version of `project` comes from.

    https://maven.apache.org/guides/mini/guide-maven-ci-friendly.html
    """
    for holder in project.ancestry():
        text = holder.pom.version
        if not text and holder.parent is not None:
            continue
        where = holder.pom.path.relative_to(root).as_posix()
        name = EXPRESSION.search(text)
        if name is None:
            return f"{where}: {'version' if text else 'parent.version'}"
        if name[1] in holder.overrides:
            return name[0]
        for above in holder.ancestry():
            if name[1] in above.pom.properties:
                return f"{above.pom.path.relative_to(root).as_posix()}: {name[0]}"
        if name[1] not in {"project.parent.version", "parent.version"}:
            return f"{where}: {name[0]}"
    return str(project.pom.path)
