"""The versions of npm packages; the next ones are written as text into manifests, requirements,
catalogs and lock files.

A lock file repeats what manifests say, and that is edited; nothing is resolved. It also tells which
requirements lead to the registry although the version here would fit: these stay as they are.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from releasekit.ecosystems.interface import Versioning, WrittenVersions
from releasekit.ecosystems.npm import manifest, roots
from releasekit.ecosystems.npm.composition import read_manifest_by
from releasekit.ecosystems.npm.discover import find_catalog_spec, find_needed
from releasekit.ecosystems.npm.manifest import FIELDS, NpmPackage
from releasekit.ecosystems.npm.pin import Keys, Pins, find_strings, replace_strings
from releasekit.ecosystems.npm.reference import Range, Reference, is_range, respell
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.ecosystems.shared.semver import Version
from releasekit.errors import map_all
from releasekit.host.edits import Edits, refuse_edit
from releasekit.text.semver import VERSION
from releasekit.text.splice import splice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from releasekit.config.values import PinMode
    from releasekit.decided import Edge, Ranges
    from releasekit.ecosystems.npm.discover import Found
    from releasekit.ecosystems.npm.manifest import DeclaredDependency
    from releasekit.git.versions import Read
    from releasekit.model import Package
    from releasekit.text.toml_text import Span

# A file, and the keys that lead to a string in it. In a manifest these are ("version",) or a table
# and a name; for a catalog ("catalogs", its name, a name).
Place = tuple[Path, Keys]
_VERSION: Final = ("version",)
# The tables that a lock file may have put together in one.
_MIXED: Final = ("devDependencies", "optionalDependencies", "dependencies", "peerDependencies")
# `__metadata.version` of yarn 4, which writes `npm:` before ranges; that of yarn 3 is 6.
_YARN_4: Final = 8
# A key and its value on one line, as locks are written.
_LINE: Final = re.compile(
    r"""^([ ]*+)("[^"\r\n]*+"|'[^'\r\n]*+'|[^\s"'#:-][^:\r\n]*+):(?>(?:[ \t]++([^\r\n]++))?)\r?$""",
    re.MULTILINE,
)
# A string, or a comma that JSON does not allow; the last string may lack its end.
_TRAILING_COMMA: Final = re.compile(r'("(?>(?:[^"\\]|\\.)*)"?)|,(?=\s*+[}\]])')
_SCALAR: Final = re.compile(
    r""""([^"\\\r\n]*+)"|'([^'\r\n]*+)'|([^\s"'#]\S*+(?>(?:[ ]++[^\s#]\S*+)*))"""
)


class Asked(Struct):
    """What a place says of a package whose version changes from `old` to `new`: `spec`, and
    `edited` from then on. It `raises` where the package that asks gets a version too.
    """

    spec: str
    old: str
    new: str
    edited: str
    raises: bool = False


class Lock(Struct):
    """`repeats` are what it repeats of other places: where that is, the text, and its span here.

    `members` are the manifests of packages in it, `elsewhere` what they need of the registry: a
    manifest and a name. Yarn's `entries` have a key each, where it stands, and the manifest of a
    member or, for what is from the registry, the path of the lock file.
    """

    path: Path
    text: str
    is_known: bool = False
    repeats: list[tuple[Place, str, Span]] = field(default_factory=list)
    members: set[Path] = field(default_factory=set)
    elsewhere: set[tuple[Path, str]] = field(default_factory=set)
    entries: list[tuple[str, Span, Path]] = field(default_factory=list)

    def manifest_at(self, where: str) -> Path:
        return Path(normpath(self.path.parent / where), roots.MANIFEST)


class NpmVersioning(Struct, Versioning, frozen=True):
    found: Found
    pins: PinMode

    def read_version(self, package: Package, read: Read) -> str:
        document = read_manifest_by(package, read)
        is_this = text_in(document, "name") == package.id.name
        return text_in(document, "version") if is_this else ""

    def list_edges(self, released: Mapping[str, str]) -> Iterable[Edge]:
        return Pins(self.found, released, self.pins).list_edges()

    def edit(self, versions: Mapping[str, str], edits: Edits, ranges: Ranges) -> WrittenVersions:
        locks = _read_locks(self.found, edits)
        elsewhere = {each for own in locks.values() for lock in own for each in lock.elsewhere}
        asked = _find_asked(self.found, versions, elsewhere, ranges=ranges)
        map_all(lambda place: _respell(place, asked[place], exact=ranges == "exact"), asked)
        files: defaultdict[Path, dict[Keys, Asked]] = defaultdict(dict)
        locked: dict[Path, tuple[Lock, list[Place]]] = {}
        for (path, keys), each in asked.items():
            if each.edited != each.spec:
                files[path][keys] = each
                for lock in locks.get(path.parent, ()):
                    locked.setdefault(lock.path, (lock, []))[1].append((path, keys))
        map_all(lambda path: _edit_file(path, files[path], edits), files)
        map_all(lambda item: _edit_lock(*item, asked, edits), locked.values())
        return WrittenVersions()


def _find_asked(
    found: Found, versions: Mapping[str, str], elsewhere: set[tuple[Path, str]], *, ranges: Ranges
) -> dict[Place, Asked]:
    """The versions of all packages, and what is asked of those that change."""
    asked: dict[Place, Asked] = {}
    packages = {each.directory: each for each in (*found.by_name.values(), *found.twins)}
    for directory, home in found.places.items():
        path = directory / roots.MANIFEST
        package = packages.get(directory)
        if package is None:  # it has no name, as many roots
            declared = manifest.list_declared(manifest.read_manifest(path), path)
            package = NpmPackage(name="", version="", manifest=path, declared=declared)
        new = versions.get(package.name) if package is found.by_name.get(package.name) else None
        if now := package.version:
            asked[path, _VERSION] = Asked(now, now, new or now, edited=new or now)
        for each in package.declared:
            needed = _find_moved(each, package, found, versions)
            if needed is None:
                continue
            # The same name may lead there by another table, and `workspace:` never does.
            is_here = found.resolve(each, package).kind == "workspace"
            if (path, each.key) in elsewhere and not is_here:
                continue
            place: Place = path, (each.field, each.key)
            spec = each.spec
            written = Reference.parse(each.key, spec)
            if written.kind == "catalog":
                spec = find_catalog_spec(home.catalogs, written)
                place = home.catalogs_file, ("catalogs", written.wanted, each.key)
            fresh = Asked(spec, needed.version, versions[needed.name], edited=spec)
            one = asked.setdefault(place, fresh)
            is_peer = each.field == "peerDependencies"
            one.raises |= _is_raised(fresh, new, ranges="keep" if is_peer else ranges)
    return asked


def _find_moved(
    declared: DeclaredDependency, package: NpmPackage, found: Found, versions: Mapping[str, str]
) -> NpmPackage | None:
    """The package here that a dependency leads to by a range, if its version changes."""
    reference = found.resolve(declared, package)
    needed = found.by_name.get(reference.name)
    if reference.kind not in {"workspace", "range"} or needed is None or needed is package:
        return None
    moves = versions.get(needed.name, needed.version) != needed.version
    return needed if moves and needed is find_needed(declared, package, found) else None


def _is_raised(asked: Asked, by: str | None, *, ranges: Ranges) -> bool:
    """Whether the range begins with the new version from then on; `by` is the new version of the
    package that asks. A stable version asks for no prerelease.
    """
    is_stable = not Version.parse(asked.new).pre
    leaves = is_stable and bool(Version.parse(asked.old).pre)
    may = by and (is_stable or Version.parse(by).pre)
    return bool(may) and (leaves or ranges == "raise")


def _respell(place: Place, asked: Asked, *, exact: bool) -> None:
    """Sets `edited` of a requirement; raises PlanError."""
    path, keys = place
    reference, old = Reference.parse(keys[-1], asked.spec), Version.parse(asked.old)
    wanted = reference.wanted
    # Of a prerelease, yarn takes `*` for one of the registry.
    is_open = Range.parse(wanted).is_open and not (exact and wanted and reference.kind == "range")
    if keys == _VERSION or is_open or old not in Range.parse(wanted):
        return
    before, is_whole, after = asked.spec.rpartition(wanted)
    if not is_whole:  # `workspace:` also stands before another alternative than the first
        before, after = "workspace:", ""
    try:
        new = asked.new if exact else respell(wanted, old, asked.new, raises=asked.raises)
        asked.edited = before + new + after
    except ValueError as error:
        raise refuse_edit(
            f"{path}: {'.'.join(keys)} is {asked.spec!r}, a form that cannot hold {asked.new}",
            f'Write a range with all three numbers, such as "{before}^{asked.old}".',
        ) from error


def _edit_file(path: Path, changes: Mapping[Keys, Asked], edits: Edits) -> None:
    """A manifest, in which Bun has its catalogs, or the settings of pnpm with its own."""
    text = edits.read(path) or ""
    if path.name == roots.MANIFEST:

        def change(keys: Keys, value: str) -> str:
            each = changes.get(_find_place(keys))
            return each.edited if each and each.spec == value else value

        edits.write(path, replace_strings(text, change))
        return
    spans = {}
    for keys, span, value, _ in _scan(text) if path.name == roots.PNPM else ():
        place = _find_place(keys)
        if place in changes and changes[place].spec == value:
            spans[place] = span, changes[place].edited
    for place in changes.keys() - spans.keys():
        raise refuse_edit(
            f"{path}: {'.'.join(place)} is {changes[place].spec!r}, and cannot be edited there",
            "Write `workspace:^` in the manifests that name the catalog.",
        )
    edits.write(path, splice(text, spans.values()))


def _find_place(keys: Keys) -> Keys:
    """What a place of a file is called in a `Place`."""
    match keys:
        case ("workspaces", "catalog" | "catalogs", *_):
            return _find_place(keys[1:])
        case ("catalog", *rest):
            return ("catalogs", "default", *rest)
        case _:
            return keys


def _read_locks(found: Found, edits: Edits) -> dict[Path, list[Lock]]:
    """Those that count for the package of each directory: the workspace's, or else its own."""
    read: dict[Path, list[Lock]] = {}
    locks: dict[Path, list[Lock]] = {}
    for directory, home in found.places.items():
        for top in {home.root, directory} - read.keys():
            read[top] = []
            for name, (_, read_into, _) in _LOCKS.items():
                text = edits.read(top / name)
                # That of yarn 1 says nothing of a workspace.
                if text is None or "# yarn lockfile v1" in text[:200]:
                    continue
                # Bun reads this one only where the other is not there.
                if name != "bun.lockb" or edits.read(top / "bun.lock") is None:
                    read[top].append(lock := Lock(top / name, text))
                    read_into(lock)
        is_member = home.find_standing(directory) == "member"
        locks[directory] = (read[home.root] if is_member else []) or read[directory]
    return locks


def _read_npm(lock: Lock) -> None:
    """https://docs.npmjs.com/cli/configuring-npm/package-lock-json"""
    try:
        document = manifest.parse_manifest(lock.text)
    except ValueError:
        return
    packages, tree = table_in(document, "packages"), table_in(document, "dependencies")
    ours = {where: lock.manifest_at(where) for where in packages if "node_modules" not in where}
    lock.members.update(ours.values())
    lock.is_known = document.get("lockfileVersion") in {2, 3}
    for keys, (start, end) in find_strings(lock.text) if lock.is_known else ():
        match keys:
            case ("version",):
                place: Place = lock.manifest_at(""), _VERSION
            case ("packages", where, "version") if where in ours:
                place = ours[where], _VERSION
            case ("packages", where, table, key) if where in ours and table in FIELDS:
                place = ours[where], (table, key)
                inner = f"{where}/node_modules/{key}".lstrip("/")
                installed = table_in(packages, inner) or table_in(packages, f"node_modules/{key}")
                if installed and not installed.get("link"):
                    lock.elsewhere.add((ours[where], key))
            case ("dependencies", name, "requires", key):  # the tree that npm 6 reads
                where = text_in(tree.get(name), "version").removeprefix("file:")
                place = lock.manifest_at(where), ("dependencies", key)
            case _:
                continue
        lock.repeats.append((place, json.loads(lock.text[start:end]), (start + 1, end - 1)))


def _read_pnpm(lock: Lock) -> None:
    """https://github.com/pnpm/spec/blob/master/lockfile/9.0.md"""
    settings = lock.path.with_name(roots.PNPM)
    for keys, span, value, _ in _scan(lock.text):
        match keys:
            case ("lockfileVersion",):
                lock.is_known = value.startswith("9.")
            case ("importers", where):
                lock.members.add(lock.manifest_at(where))
            case ("importers", where, table, key, "specifier"):
                lock.repeats.append(((lock.manifest_at(where), (table, key)), value, span))
            case ("importers", where, _, key, "version"):
                if not value.startswith(("link:", "file:")):
                    lock.elsewhere.add((lock.manifest_at(where), key))
            case ("catalogs", _, _, "specifier"):
                lock.repeats.append(((settings, keys[:3]), value, span))
            case ("catalogs", _, _, "version"):
                lock.repeats.append(((settings, keys), value, span))
            case _:
                pass


def _read_yarn(lock: Lock) -> None:
    span_of_key, path = (0, 0), lock.path
    registry: set[str] = set()
    for keys, span, value, place_of_key in _scan(lock.text):
        match keys:
            case ("__metadata", "version"):
                # It writes a key of more than 1024 characters on a line without a colon.
                lock.is_known = value.isdigit() and int(value) >= _YARN_4 and "\n?" not in lock.text
            case (_,):
                span_of_key = place_of_key
            case (entry, "resolution"):
                _, is_member, where = value.rpartition("@workspace:")
                path = lock.manifest_at(where) if is_member else lock.path
                lock.members.add(path)
                lock.entries.append((entry, span_of_key, path))
                registry.update(() if is_member else entry.split(", "))
            case (_, "dependencies" | "peerDependencies" as table, key):
                bare = value.removeprefix("npm:")
                spec = bare if is_range(bare) else value
                place = path, (table, key)
                lock.repeats.append((place, spec, (span[1] - len(spec), span[1])))
            case _:
                pass
    lock.elsewhere = {
        (path, keys[1])
        for (path, keys), spec, _ in lock.repeats
        if keys[0] == "dependencies" and _describe(keys[1], spec) in registry
    }


def _read_bun(lock: Lock) -> None:
    """https://bun.sh/docs/pm/lockfile; what its versions differ in, of which 0 also has the
    dependencies of members among the packages, is in
    https://github.com/oven-sh/bun/blob/main/src/install/lockfile/bun.lock.rs (enum Version)
    """
    try:
        document = manifest.parse_manifest(_TRAILING_COMMA.sub(r"\1", lock.text))
    except ValueError:
        return
    members, packages = table_in(document, "workspaces"), table_in(document, "packages")
    lock.members.update(map(lock.manifest_at, members))
    lock.is_known = str(document.get("lockfileVersion")) in {"1", "2", "3"}
    # Nothing of what it writes last is a repetition.
    own, _, _ = lock.text.partition('\n  "packages": ')
    for keys, (start, end) in find_strings(own) if lock.is_known else ():
        match keys:
            case ("workspaces", where, "version"):
                place: Place = lock.manifest_at(where), _VERSION
            case ("workspaces", where, table, key) if table in FIELDS:
                place = lock.manifest_at(where), (table, key)
                inner = f"{text_in(members.get(where), 'name')}/{key}"
                entry = (packages.get(inner) if where else None) or packages.get(key)
                resolved = str(entry[0]) if isinstance(entry, list) and entry else ""
                if resolved and not re.search("@(?:workspace|root):", resolved):
                    lock.elsewhere.add((place[0], key))
            case ("catalog", _) | ("catalogs", _, _):
                place = lock.manifest_at(""), _find_place(keys)
            case _:
                continue
        lock.repeats.append((place, json.loads(lock.text[start:end]), (start + 1, end - 1)))


def _edit_lock(
    lock: Lock, changed: Sequence[Place], asked: Mapping[Place, Asked], edits: Edits
) -> None:
    """`changed` is what is new in the files that it should repeat."""
    command, read_into, has_versions = _LOCKS[lock.path.name]
    repeated = {path for path, keys in changed if has_versions or keys != _VERSION}
    if repeated and not lock.is_known:
        raise refuse_edit(
            f"{lock.path} is not in a format that can be edited",
            f"Have it written by `{command}` of a newer version, and commit it.",
        )
    for path in repeated - lock.members:
        if path.name != roots.MANIFEST:
            continue
        # Bun passes over members without a name.
        name = manifest.parse_manifest(edits.read(path) or "").get("name")
        if name or read_into is not _read_bun:
            raise refuse_edit(
                f"{lock.path} lacks {path.parent}", f"Run `{command}`, and commit it."
            )
    edited = [_renew(place, text, asked) for place, text, _ in lock.repeats]
    spans = [
        (_find_scalar(lock, span, new), new)
        for (_, _, span), new in zip(lock.repeats, edited, strict=True)
    ]
    keys = list(_edit_keys(lock, edited, asked)) if lock.entries else []
    text = splice(lock.text, [*spans, *keys])
    edits.write(lock.path, _sort_entries(text) if keys else text)


def _find_scalar(lock: Lock, span: Span, new: str) -> Span:
    """With its quotes where YAML has none around what stands there from now on, a lone version."""
    start, end = span
    quotes = lock.text[start - 1 : start] + lock.text[end : end + 1]
    is_yaml = lock.path.name in {"pnpm-lock.yaml", "yarn.lock"}
    stays = not is_yaml or quotes not in {'""', "''"} or not VERSION.fullmatch(new)
    return span if stays else (start - 1, end + 1)


def _renew(place: Place, text: str, asked: Mapping[Place, Asked]) -> str:
    """What stands at a place from now on, where a lock file says `text` of it."""
    path, keys = place
    if keys == _VERSION:
        return asked[place].edited if place in asked else text
    if len(keys) == 4:  # the version that an entry of a catalog leads to
        one = asked.get((path, keys[:3]))
        return one.new if one and one.old == text else text
    tables = keys[:1] if keys[0] in {"catalogs", "peerDependencies"} else (keys[0], *_MIXED)
    for table in tables:
        one = asked.get((path, (table, *keys[1:])))
        if one and one.spec == text:
            return one.edited
    return text


def _describe(key: str, spec: str) -> str:
    """What yarn resolves, as it stands in the keys of its lock file."""
    return f"{key}@npm:{spec}" if is_range(spec) else f"{key}@{spec}"


def _edit_keys(
    lock: Lock, edited: Sequence[str], asked: Mapping[Place, Asked]
) -> Iterator[tuple[Span, str]]:
    """The key of each member of yarn's names all that leads to it."""
    moves: defaultdict[str, set[str]] = defaultdict(set)
    outside: dict[str, str] = {}
    for ((path, (table, key)), spec, _), new in zip(lock.repeats, edited, strict=True):
        if table == "dependencies":
            moves[_describe(key, spec)].add(_describe(key, new))
            if path == lock.path and is_range(spec):
                outside[_describe(key, spec)] = spec
    for entry, span, path in lock.entries:
        if path == lock.path:
            continue
        names = entry.split(", ")
        for each in outside.keys() & names if (path, _VERSION) in asked else ():
            version = asked[path, _VERSION].new
            if Version.parse(version) not in Range.parse(outside[each]):
                raise refuse_edit(
                    f"{lock.path}: a package of the registry needs {each}, which excludes "
                    f"{version}",
                    "Set `enableTransparentWorkspaces: false` in .yarnrc.yml, write `workspace:^` "
                    f"for what leads here, run `{_LOCKS[lock.path.name][0]}`, and commit all.",
                )
        after = sorted({new for each in names for new in moves.get(each, {each})})
        if after != names:
            yield span, f'"{", ".join(after)}":'


def _sort_entries(text: str) -> str:
    """As yarn writes them."""
    blank = "\r\n\r\n" if "\r\n" in text else "\n\n"
    head, metadata, *entries = text.rstrip().split(blank)
    entries.sort(key=lambda entry: entry.split('"')[1])
    return blank.join([head, metadata, *entries]) + blank[: len(blank) // 2]


def _scan(text: str) -> Iterator[tuple[Keys, Span, str, Span]]:
    """Of each line of YAML with a key: the keys that lead there, the place of its value without
    quotes, that value, and the place of the key with its colon.
    """
    above: list[tuple[int, str]] = []
    for line in _LINE.finditer(text):
        indent = len(line[1])
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, line[2].strip("\ufeff \"'")))
        value = _SCALAR.match(text, line.start(3)) if line[3] else None
        span = value.span(value.lastindex or 0) if value else (0, 0)
        yield (
            tuple(key for _, key in above),
            span,
            text[slice(*span)],
            (line.start(2), line.end(2) + 1),
        )


# The lock files: what writes each anew, what reads it, and whether versions of packages are in it.
_LOCKS: Final[Mapping[str, tuple[str, Callable[[Lock], None], bool]]] = {
    "package-lock.json": ("npm install --package-lock-only", _read_npm, True),
    "npm-shrinkwrap.json": ("npm install --package-lock-only", _read_npm, True),
    "pnpm-lock.yaml": ("pnpm install --lockfile-only", _read_pnpm, False),
    "yarn.lock": ("yarn install --mode=update-lockfile", _read_yarn, False),
    "bun.lock": ("bun install --lockfile-only", _read_bun, True),
    # https://bun.sh/docs/pm/lockfile#text-based-lockfile
    "bun.lockb": (
        "bun install --save-text-lockfile --frozen-lockfile --lockfile-only",
        lambda _: None,
        True,
    ),
}
