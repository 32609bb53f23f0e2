"""The versions of Python projects, read and written where they are declared, and what a new one
brings along: requirements on these packages, and lock files.
"""

from __future__ import annotations

import os
import re
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from releasekit.decided import Edge
from releasekit.ecosystems.interface import Versioning, WrittenVersions
from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.pypi.composition import list_maturin_crates
from releasekit.ecosystems.pypi.roots import find_lock_directories
from releasekit.ecosystems.shared.documents import checked_table, parse_loosely, table_in, text_in
from releasekit.errors import ConfigError, map_all
from releasekit.host.edits import Edits, refuse_edit
from releasekit.model import PackageId
from releasekit.text import semver
from releasekit.text.splice import splice
from releasekit.text.toml_text import edit_strings, find_value, parse_toml, put_string

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.config.values import PinMode
    from releasekit.decided import Ranges
    from releasekit.ecosystems.pypi import PyPIOptions
    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.git.versions import Read
    from releasekit.model import Package
    from releasekit.text.toml_text import Edit, Where

    # By who requires which package, and how: what becomes of the specifier as it is spelled.
    Rewrites = dict[tuple[str, str, SpecifierSet], Callable[[str], str]]

_CLAUSE: Final = re.compile(
    r"(?P<operator>===|[=~!<>]=|[<>])(?P<blanks>\s*)"
    r"(?P<numbers>v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*)(?P<rest>[^\s,;)]*)"
)
# What uv.lock says: the name of each package; the version of one whose sources are here, below its
# name or, where a name has several, beside it; what one requires by its manifest.
_LOCKED: Final = re.compile(
    r'^name = "(?P<package>[^"\n]*)"'
    r'|(?:version = "(?P<version>[^"\n]*)"(?:, |\r?\n))?'
    r'source = \{ (?:directory|editable|virtual) = "(?P<place>[^"\\\x00-\x1f]*)"'
    r'|\{ name = "(?P<needed>[^"\n]*)"[^{}\n]*, specifier = "(?P<specifier>[^"\n]*)"',
    re.MULTILINE,
)
_INDEXED: Final = re.compile(
    r'^name = "([^"\n]*)"\r?\nversion = "[^"\n]*"\r?\nsource = \{ registry = ', re.MULTILINE
)
_LOCKED_CRATE: Final = re.compile(
    r'^name = "([^"\n]*)"\r?\nversion = "([^"\n]*)"\r?\n(?!source = )', re.MULTILINE
)
_PRE: Final = {"a": "alpha", "b": "beta", "rc": "rc", ".dev": "dev"}
# Sources and plugins that take the version from a tag.
_FROM_TAG: Final = re.compile(
    r"scm|vcs|git|versioneer|versioningit|dynamic-versioning|dunamai|\Apbr\Z"
)
# The default pattern of hatchling.
# https://hatch.pypa.io/latest/plugins/version-source/regex/
_HATCH: Final = re.compile(
    r"^(?:__version__|VERSION)(?: ?: ?str)? *= *['\"]v?([^'\"\n]+)['\"]",
    re.IGNORECASE | re.MULTILINE,
)
# Its options that say something else.
_HATCH_OWN: Final = frozenset({"expression", "pattern", "search-paths"})


class PyPIVersioning(Struct, Versioning, frozen=True, dict=True):
    projects: Mapping[str, PyProject]
    root: Path
    options: PyPIOptions
    pins: PinMode

    def read_version(self, package: Package, read: Read) -> str:
        """Empty where only a build computes it."""
        path = package.manifest
        document = parse_loosely(read(path))
        try:
            said = checked_table(document, "project", path=path)
            if canonicalize_name(str(said.get("name"))) != package.id.name:
                return ""
            version = said.get("version")
            if version is None:
                place = find_version(document, path.parent, lambda it: (read(it) or b"").decode())
                version = place[1][1] if place else ""
            return (
                manifest.normalize_version(version, path=path) if isinstance(version, str) else ""
            )
        except (ValueError, ConfigError):
            return ""

    @cached_property
    def groups(self) -> Mapping[str, Sequence[PackageId]]:
        """Those whose builds take the version from one file."""
        edits = Edits(self.root)
        sharing: dict[Path, list[PackageId]] = {}
        for project in self.projects.values():
            if "version" in project.dynamic and not project.unpublishable:
                document = manifest.read_pyproject(project.manifest)
                if found := find_version(document, project.manifest.parent, edits.read):
                    package = PackageId(manifest.ECOSYSTEM, project.name)
                    sharing.setdefault(found[0].resolve(), []).append(package)
        return {
            path.relative_to(self.root).as_posix(): packages
            for path, packages in sharing.items()
            if len(packages) > 1
        }

    def list_edges(self, released: Mapping[str, str]) -> Iterator[Edge]:
        """What a build needs is no part of what users install beside the package, so it asks
        nothing of them.
        """
        for project in self.projects.values():
            for need in project.requirements if not project.unpublishable else ():
                needed = self.projects.get(need.name)
                if needed is None or needed is project or needed.unpublishable:
                    continue
                if need.kind not in manifest.PUBLISHED or need.requirement.url is not None:
                    continue
                # What a build hook tells is published as it is.
                mode = "none" if manifest.PUBLISHED[need.kind] in project.dynamic else self.pins
                version = released.get(need.name, needed.version)
                specifier = manifest.pinned_specifier(need.requirement, version, mode)
                yield Edge(
                    dependent=PackageId(manifest.ECOSYSTEM, project.name),
                    on=PackageId(manifest.ECOSYSTEM, need.name),
                    kind=need.kind,
                    requirement=specifier,
                    admits=partial(SpecifierSet(specifier).contains, prereleases=True),
                )

    def edit(self, versions: Mapping[str, str], edits: Edits, ranges: Ranges) -> WrittenVersions:
        # All manifests, each with the directory whose lock holds for it.
        homes = find_lock_directories(self.root, self.options)
        new = {name: Version(version) for name, version in versions.items()}
        owners = {project.manifest: project for project in self.projects.values()}
        places = {
            str(each.manifest.parent): str(new.get(name, each.version))
            for name, each in self.projects.items()
        }
        locks = {home: edits.read(home / "uv.lock") or "" for home in set(homes.values())}
        indexed = {home: new.keys() & _INDEXED.findall(lock) for home, lock in locks.items()}
        members: dict[Path, set[str]] = {home: set() for home in locks}
        writing = _Writing(self.projects, new, edits, ranges)

        def edit_manifest(path: Path) -> None:
            own = owners.get(path)
            if own and own.name in new:
                members[homes[path]].add(str(path.parent))
            writing.edit_manifest(path, own, indexed[homes[path]])

        def edit_lock(home: Path) -> None:
            if locks[home]:
                path, rewrites = home / "uv.lock", writing.rewrites
                edits.write(path, _move_lock(path, locks[home], places, rewrites, members[home]))

        map_all(edit_manifest, homes)
        map_all(edit_lock, locks)
        writing.move_private(owners[path] for path in homes if path in owners)
        return WrittenVersions(by_tag=frozenset(writing.by_tag), moved=writing.moved)


class _Writing(Struct):
    """What is written so far. `now` are the projects, and `new` the versions decided for them. A
    tag says the version of those `by_tag`; `moved` ones have another one, undecided as they are.
    """

    now: Mapping[str, PyProject]
    new: Mapping[str, Version]
    edits: Edits
    ranges: Ranges
    rewrites: Rewrites = field(default_factory=dict)
    by_tag: set[PackageId] = field(default_factory=set)
    moved: dict[PackageId, str] = field(default_factory=dict)

    def edit_manifest(self, path: Path, own: PyProject | None, indexed: Collection[str]) -> None:
        """`indexed` are the packages that its lock takes from an index."""
        edits, text = self.edits, self.edits.read(path) or ""
        version = self.new.get(own.name) if own else None
        document = parse_toml(text)
        # These locks have a hash of all requirements.
        hashed = any(edits.read(path.parent / each) for each in ("pdm.lock", "poetry.lock"))
        fixed = self.new.keys() if hashed else indexed
        ranges = self.ranges if version or self.ranges == "exact" else "keep"
        changes = self._move_requirements(path, document, fixed, ranges)
        if own and version and Version(own.version) != version:
            changes |= self._write_version(document, own, str(version))
        if changes:
            edits.write(path, edit_strings(text, changes, wanted=document, of=str(path)))

    def _move_requirements(
        self, path: Path, document: Mapping[str, Any], fixed: Collection[str], ranges: Ranges
    ) -> dict[Where, Edit]:
        """The edits of requirements in a manifest, after which it says what `document` then does. A
        lock keeps those on `fixed` packages as they are: only an index tells what else it may hold.
        """
        changes: dict[Where, Edit] = {}
        owner = canonicalize_name(text_in(table_in(document, "project"), "name"))
        for where, text in manifest.list_requirements(document):
            need = Requirement(text)
            name, specifier = canonicalize_name(need.name), need.specifier
            if name not in self.new or need.url:
                continue
            old, version = self.now[name].version, self.new[name]
            # What excludes the version that stands here means another one.
            if not specifier.contains(old, prereleases=True):
                continue
            # No lock has what builds need: an index has it, and nothing new before the release.
            is_locked = where[0] != "build-system"
            stays = is_locked and name in fixed
            write: Callable[[str], str] = partial(move_specifier, new=version, raises=False)
            if is_locked and not stays:
                write = _choose_move(specifier, version, self.new.get(owner), ranges)
            moved = manifest.with_specifier(text, write)
            if moved == text and specifier.contains(version, prereleases=True):
                continue
            if stays or not Requirement(moved).specifier.contains(version, prereleases=True):
                raise refuse_edit(
                    f"{path}: {'.'.join(map(str, where[:-1]))} has {text!r}, which excludes "
                    f"{name} {version}{', and its lock needs an index to follow' if stays else ''}",
                    f'Write a range that admits both, such as "{name}>={old}"'
                    f"{', lock again,' if stays else ''} and commit it.",
                )
            find_value(document, where[:-1])[where[-1]] = moved
            changes[where] = partial(manifest.replace_specifier, write)
            self.rewrites[owner, name, specifier] = write
        return changes

    def _write_version(
        self, document: Mapping[str, Any], project: PyProject, new: str
    ) -> dict[Where, Edit]:
        """The edit of the manifest, as in `_move_requirements`. Files that it names are edited."""
        edits = self.edits
        build, directory = project.build_system, project.manifest.parent
        tables: list[Where] = [("project",)]
        if build.backend == manifest.POETRY_BACKEND and "version" in project.dynamic:
            tables.append(("tool", "poetry"))
        for where in tables:
            if text_in(find_value(document, where), "version"):
                find_value(document, where)["version"] = new
                return {(*where, "version"): partial(put_string, new)}
        found = find_version(document, directory, edits.read)
        hatch = find_value(document, ("tool", "hatch", "version"))
        if found is None and (named := text_in(hatch, "path")):
            # Its pattern may take any time.
            once = re.compile(rf"(?<![\w.])({re.escape(project.version)})(?![\w.])")
            spots = list(once.finditer(edits.read(directory / named) or ""))
            found = (directory / named, spots[0]) if len(spots) == 1 else None
        pdm = find_value(document, ("tool", "pdm", "version"))
        sources = [text_in(hatch, "source"), text_in(pdm, "source")]
        sources += [canonicalize_name(Requirement(each).name) for each in build.requires]
        if found is not None:
            path, spot = found
            edits.write(path, splice(spot.string, [(spot.span(1), new)]))
        elif build.backend == "maturin":
            try:
                self.moved.update(_write_crate(document, project, new, edits))
            except ValueError as error:
                raise refuse_edit(
                    f"{project.manifest}: the Cargo.toml of its crate is not valid TOML",
                    f'Correct it, or write version = "{new}" in [project].',
                ) from error
        elif any(map(_FROM_TAG.search, sources)):
            self.by_tag.add(PackageId(manifest.ECOSYSTEM, project.name))
        else:
            raise refuse_edit(
                f"{project.manifest}: project.dynamic has version, and {project.version} is not "
                "found as text in a file that declares it",
                f'Write version = "{new}" in [project], and take it out of project.dynamic.',
            )
        return {}

    def move_private(self, projects: Iterable[PyProject]) -> None:
        """Private ones may take a version from the files of others."""
        changed = self.edits.list_changes()
        for project in projects:
            if project.unpublishable and "version" in project.dynamic:
                document = parse_toml(self.edits.read(project.manifest) or "")
                found = find_version(document, project.manifest.parent, self.edits.read)
                if found and found[0].resolve() in changed:
                    self.moved[PackageId(manifest.ECOSYSTEM, project.name)] = found[1][1]


def find_version(
    document: Mapping[str, Any], directory: Path, read: Callable[[Path], str | None]
) -> tuple[Path, re.Match[str]] | None:
    """The file from which setuptools, hatchling, flit or pdm takes the version, and where it is in
    there, as the first group; None unless it is a literal. No Python runs.
    https://setuptools.pypa.io/en/latest/userguide/pyproject_config.html#dynamic-metadata
    https://flit.pypa.io/en/stable/pyproject_toml.html, https://backend.pdm-project.org/metadata/
    """
    tool = table_in(document, "tool")
    setuptools, hatch = table_in(tool, "setuptools"), table_in(table_in(tool, "hatch"), "version")
    dynamic = table_in(table_in(setuptools, "dynamic"), "version")
    pdm = table_in(table_in(tool, "pdm"), "version")
    attribute, file = text_in(dynamic, "attr"), dynamic.get("file")
    if isinstance(file, list) and len(file) == 1:
        file = file[0]
    if text_in(table_in(document, "build-system"), "build-backend").startswith("flit_core"):
        module = text_in(table_in(table_in(tool, "flit"), "module"), "name")
        name = text_in(table_in(document, "project"), "name").replace("-", "_")
        attribute = f"{module or name}.__version__"
    if attribute:
        module, _, name = attribute.rpartition(".")
        tops = dict.fromkeys(["", "src/", f"{text_in(table_in(setuptools, 'package-dir'), '')}/"])
        place = module.replace(".", "/")
        paths = [f"{top}{place}{end}" for top in tops for end in (".py", "/__init__.py")]
        written = _assigned(name)
    elif isinstance(file, str):
        paths, written = [file], re.compile(r"\A\s*(\S+)\s*\Z")
    elif pdm.get("source") == "file":
        paths, written = [text_in(pdm, "path")], _assigned("__version__")
    elif hatch.get("source", "regex") in ("regex", "code") and not hatch.keys() & _HATCH_OWN:
        paths, written = [text_in(hatch, "path")], _HATCH
    else:
        return None
    for path in map(directory.joinpath, filter(None, paths)):
        if match := written.search(read(path) or ""):
            return path, match
    return None


def _assigned(name: str) -> re.Pattern[str]:
    return re.compile(rf"^{re.escape(name)} *(?::[^=\n]*)?= *['\"]([^'\"\n]+)['\"]", re.MULTILINE)


def move_specifier(specifier: str, *, new: Version, raises: bool) -> str:
    """As it is spelled, but what excludes the new version moved to it, where that is possible, and
    the lower bound too if this `raises` them.
    """
    return _CLAUSE.sub(partial(_move_clause, new, raises), specifier)


def _move_clause(new: Version, raises: bool, clause: re.Match[str]) -> str:
    def fits(text: str) -> bool:
        return Specifier(clause["operator"] + text).contains(new, prereleases=True)

    numbers, rest = Version(clause["numbers"]).release, clause["rest"]
    admits = fits(clause["numbers"] + rest)
    if admits and not (raises and clause["operator"] in {">=", "~="}):
        return clause[0]
    padded = [*new.release, *[0] * (len(numbers) - len(new.release))]
    shaped = padded[: len(numbers)]
    if clause["operator"] == "<":
        # The number that the bound is about is the last one that is not 0.
        last = max((place for place, number in enumerate(numbers) if number), default=0)
        shaped[last:] = [shaped[last] + 1, *[0] * (len(numbers) - last - 1)]
    elif rest != ".*":
        rest = ""
    epoch = f"{new.epoch}!" if new.epoch else ""
    whole = epoch + ".".join(map(str, padded)) + new.public.removeprefix(new.base_version)
    for text in (epoch + ".".join(map(str, shaped)) + rest, whole):
        if fits(text):
            stands = admits and Version(text) <= Version(clause["numbers"] + clause["rest"])
            return clause[0] if stands else f"{clause['operator']}{clause['blanks']}{text}"
    return clause[0]


def _choose_move(
    specifier: SpecifierSet, new: Version, owner: Version | None, ranges: Ranges
) -> Callable[[str], str]:
    """What rewrites one that may change. `owner` is the new version of the project that has it."""
    if ranges == "exact" and specifier:
        return partial(re.sub, r"(?s).+", f"=={new}")
    # A stable version asks for no prerelease.
    may = not new.is_prerelease or (owner is not None and owner.is_prerelease)
    leaves = owner is not None and specifier.prereleases and not new.is_prerelease
    return partial(move_specifier, new=new, raises=may and bool(ranges == "raise" or leaves))


def _write_crate(
    document: Mapping[str, Any], project: PyProject, new: str, edits: Edits
) -> dict[PackageId, str]:
    """Write the version of the crate that maturin builds, and the one in its lock. Returns the
    crate, where that moves.
    """
    crates = list_maturin_crates(document, project.manifest.parent)
    crate = next((each for each in crates if edits.read(each)), crates[0])
    above = [each for each in crate.parents if each.is_relative_to(edits.root)]
    path, where, text = _find_crate_version(crate, above, edits)
    cargo = parse_toml(text)
    old = text_in(find_value(cargo, where), "version")
    wanted = re.sub(r"(a|b|rc|\.dev)(?=[0-9])", lambda found: f"-{_PRE[found[1]]}.", new)
    if old == wanted:
        return {}
    name = find_value(parse_toml(edits.read(crate) or ""), ("package", "name"))
    home = next((each for each in above if edits.read(each / "Cargo.lock")), edits.root)
    lock = home / "Cargo.lock"
    locked = list(_LOCKED_CRATE.finditer(edits.read(lock) or ""))
    others = [each[1] for each in locked if each[2] == old and each[1] != name]
    if not old or not semver.VERSION.fullmatch(wanted) or (len(where) > 1 and others):
        raise refuse_edit(
            f"{path}: version is {old!r}, and {new} cannot be written there for {name} alone",
            f"Write version in the [project] of {project.manifest}.",
        )
    find_value(cargo, where)["version"] = wanted
    change: dict[Where, Edit] = {(*where, "version"): partial(put_string, wanted)}
    edits.write(path, edit_strings(text, change, wanted=cargo, of=str(path)))
    if spans := [(each.span(2), wanted) for each in locked if each[1] == name]:
        edits.write(lock, splice(locked[0].string, spans))
    # Whatever cargo's own packages are, this one moves along, unless a version was decided for it.
    return {PackageId("cargo", str(name)): wanted}


def _find_crate_version(
    crate: Path, above: Sequence[Path], edits: Edits
) -> tuple[Path, Where, str]:
    """The manifest that has it, the keys of its table there, and the text of the manifest."""
    places: list[tuple[Path, Where]] = [(crate, ("package",))]
    places += [(each / "Cargo.toml", ("workspace", "package")) for each in above]
    for path, where in places:
        text = edits.read(path) or ""
        if text_in(find_value(parse_toml(text), where), "version"):
            return path, where, text
    return crate, (), ""


def _move_lock(
    path: Path, lock: str, places: Mapping[str, str], rewrites: Rewrites, members: set[str]
) -> str:
    """What uv makes of a lock that has all `members`, once the manifests are edited. `places` are
    directories, each with the version of its package.
    """
    package, found, spans = "", set(), []
    for each in _LOCKED.finditer(lock):
        if each["package"] is not None:
            package = each["package"]
        elif each["place"] is not None:
            place = os.path.realpath(path.parent / each["place"])
            found.add(place)
            if each["version"] and places.get(place, ""):
                spans.append((each.span("version"), places[place]))
        elif manifest.is_requirement(f"x{each['specifier']}"):
            key = (package, each["needed"], SpecifierSet(each["specifier"]))
            if write := rewrites.get(key):
                spans.append((each.span("specifier"), write(each["specifier"])))
    known = re.match(r"version = 1\r?\n", lock)
    if not known or members - found:
        lacks = f"it lacks {min(members - found)}" if known else "it is not in format 1"
        raise refuse_edit(f"{path}: {lacks}", "Run `uv lock`, and commit it.")
    return splice(lock, spans)
