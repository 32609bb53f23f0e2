"""Which Go modules a workspace holds, which versions they have, and how they need one another.

A go.mod has no place for the version of its module: options and version files tell it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.ecosystems.go import gomod, paths
from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.errors import ConfigError, ManifestError, MembersError, PlanError, map_all
from releasekit.graph import rings
from releasekit.host import durable
from releasekit.host.files import exists, follow, inside, is_file
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.globs import matches_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from releasekit.ecosystems.go import GoOptions
    from releasekit.ecosystems.go.gomod import GoMod, Replace

ECOSYSTEM: Final = "go"
# The same words for all modules: there may be a hundred.
UNTOLD: Final = (
    "its version is unknown: write [go] version or version-file in releasekit.toml, or "
    'DIRECTORY = "1.2.3" below [go.versions]'
)
MAX_DIRECTORIES: Final = 100_000
# A version file, or keys of releasekit.toml.
Place = Path | tuple[str, ...]
# The go command ignores them, too: https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_IGNORED: Final = frozenset({"vendor", "node_modules"})
_FIXTURES: Final = "testdata"
# What others call them: a module counts there, and a go.mod that none can be read from is data.
_LIKE_FIXTURES: Final = frozenset({"fixture", "fixtures", "__fixtures__"})
_LANGUAGE: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
# `const Version = "1.2.3"`, `"version": "1.2.3"`, `version = "1.2.3"`.
_ASSIGNED: Final = re.compile(
    r"""\bversion["']?\s*(?::=|=|:)\s*["'`](v?[0-9]+\.[0-9]+\.[0-9][0-9A-Za-z.+-]*)["'`]""",
    re.IGNORECASE,
)


class Module(Struct, frozen=True, kw_only=True):
    """`directory` is absolute. `unpublishable` says why it is never published. `version_place` is
    where its version stands, empty for one that has none.
    """

    mod: GoMod
    directory: Path
    version: str
    unpublishable: str = ""
    version_place: Place = ()

    @property
    def path(self) -> str:
        return self.mod.module

    @property
    def name(self) -> str:
        return self.path

    @property
    def manifest(self) -> Path:
        return self.directory / "go.mod"


def find_modules(root: Path, options: GoOptions) -> dict[str, Module]:
    """The modules below `root`, sorted by path: those that go.work uses, where there is one, else
    all. Those in a `testdata` count if others require them, as does what others require by a
    placeholder that a `replace` leads to.

    Raises ConfigError, also for two modules of one path.
    """
    directories, fixtures = _find_directories(root, options)
    work = root / "go.work"
    is_listed = work.is_file()
    found, _ = unique_by_name(
        map_all(lambda directory: _read_module(root, directory, options), directories),
        cure="leave its directory out with [go] exclude",
        # Go takes no go.work that lists two modules of one path, whoever publishes them.
        private=lambda module: "" if is_listed else module.unpublishable,
    )
    of_work = gomod.replaces_of_work(gomod.read_text(work), str(work)) if is_listed else ()
    while required := (
        _find_required_fixtures(root, fixtures, found)
        | _find_replacements(root, of_work, found, options)
    ):
        found |= {
            path: _read_module(root, directory, options) for path, directory in required.items()
        }
    known = {module.directory.relative_to(root).as_posix() for module in found.values()}
    for key in options.versions if found else ():
        # A typo must not leave a module unpublished.
        if key not in known and key not in found:
            raise ConfigError(
                f"{options.where()} versions names {key!r}, which is not a module here",
                hint='Write its directory, "." for the root, or its module path.',
                problem=Problem.UNKNOWN_NAME,
            )
    return dict(sorted(found.items()))


def make_packages(by_path: Mapping[str, Module]) -> list[Package]:
    """Dependencies within a cycle are soft: Go allows the cycle as long as no packages import one
    another. https://go.dev/wiki/Modules#can-two-modules-depend-on-each-other
    """
    needs = {
        path: [r for r in module.mod.requires if r.path in by_path and r.path != path]
        for path, module in by_path.items()
    }
    edges = {path: {r.path for r in requires} for path, requires in needs.items()}
    ring_of = {path: ring for ring in rings(edges) for path in ring}
    return [
        Package(
            id=PackageId(ECOSYSTEM, module.path),
            version=module.version,
            directory=module.directory,
            manifest=module.manifest,
            dependencies=tuple(
                Dependency(
                    on=PackageId(ECOSYSTEM, require.path),
                    kind=DependencyKind.INDIRECT if require.indirect else DependencyKind.RUNTIME,
                    requirement=require.version,
                    soft=require.path in ring_of.get(module.path, ()),
                )
                for require in needs[module.path]
            ),
            unpublishable=module.unpublishable,
        )
        for module in by_path.values()
    ]


def spell_place(place: Place, root: Path) -> str:
    if isinstance(place, tuple):
        return f"releasekit.toml: {'.'.join(place)}"
    return place.relative_to(root).as_posix()


def find_local_replaces(module: Module, by_path: Mapping[str, Module]) -> list[Replace]:
    """Its replacements that only say where this workspace has another module, and those of what it
    does not require: a published module needs neither.

    Raises PlanError for those that make the published module differ from the one that is built
    here: a module that requires it ignores its replacements.
    https://go.dev/ref/mod#go-mod-file-replace
    """
    local = []
    required = {require.path for require in module.mod.requires}
    # From Go 1.17 on, a go.mod requires all that its packages need, directly or not.
    # https://go.dev/ref/mod#graph-pruning
    language = _LANGUAGE.match(module.mod.go)
    is_complete = language is not None and (int(language[1]), int(language[2])) >= (1, 17)
    for replace in module.mod.replaces:
        is_directory = gomod.is_directory(replace.target)
        at = follow(module.directory / replace.target) if is_directory else None
        other = by_path.get(replace.path)
        unused = is_directory and replace.path not in required and is_complete
        if unused or (other is not None and at == other.directory):
            local.append(replace)
        elif other is not None or is_directory:
            raise PlanError(
                f"{module.manifest} replaces {replace.path} by {replace.target}, which users "
                f"of {module.path} would not get",
                hint=f"Drop it: `go mod edit -dropreplace={replace.path}`; to work on both, list "
                f"both in a go.work, or publish {replace.path} from this workspace too.",
                problem=Problem.GO_REPLACED,
            )
    return local


def describe_replaced(modules: Iterable[Module]) -> str:
    """What they replace by modules from elsewhere; empty where nothing. It is allowed, as many
    repositories build something that they require in another version.

    https://go.dev/ref/mod#go-install
    """
    replaced = [
        f"{module.path} ({', '.join(dict.fromkeys(names))})"
        for module in modules
        if (names := [e.path for e in module.mod.replaces if not gomod.is_directory(e.target)])
    ]
    if not replaced:
        return ""
    return (
        "go: users do not get the replacements of these modules, and `go install` refuses them: "
        f"{few(replaced)}"
    )


def check_module(mod: GoMod, planned: Mapping[str, str], by_path: Mapping[str, Module]) -> None:
    """Raises PlanError for a go.mod that cannot be published with these versions."""
    gomod.check_requirements(mod, planned)
    find_local_replaces(by_path[mod.module], by_path)


def _find_directories(root: Path, options: GoOptions) -> tuple[list[Path], list[Path]]:
    """The directories of modules, and those of fixtures: modules, or only the data of a test."""
    work = root / "go.work"
    listed = work.is_file()
    found = [] if listed else sorted(_walk(root))
    for use in gomod.used_directories(gomod.read_text(work), str(work)) if listed else ():
        directory = inside(root, root / use, where=f"{work}: use {use}")
        if not is_file(directory / "go.mod"):
            raise MembersError(
                f"{work}: use {use}: there is no go.mod", hint=f"go work edit -dropuse={use}"
            )
        found.append(directory)
    modules: list[Path] = []
    fixtures: list[Path] = []
    for directory in dict.fromkeys(found):
        where = directory.relative_to(root)
        if not matches_path(where.as_posix(), options.exclude):
            only_data = not listed and (
                _FIXTURES in where.parts
                or (not _LIKE_FIXTURES.isdisjoint(where.parts) and not _is_module(directory))
            )
            (fixtures if only_data else modules).append(directory)
    return modules, fixtures


def _is_module(directory: Path) -> bool:
    try:
        gomod.parse_mod(gomod.read_text(directory / "go.mod"), "")
    except ConfigError:
        return False
    return True


def _find_required_fixtures(
    root: Path, fixtures: list[Path], found: Mapping[str, Module]
) -> dict[str, Path]:
    """The fixtures that a module requires by the path that Go would find them by."""
    wanted = {require.path for module in found.values() for require in module.mod.requires}
    required = {}
    for directory in fixtures:
        manifest = directory / "go.mod"
        try:
            path = gomod.parse_mod(gomod.read_text(manifest), str(manifest)).module
        except ConfigError:
            continue  # a test may need an invalid go.mod
        where = PurePosixPath(directory.relative_to(root).as_posix())
        if path in wanted and path not in found and paths.is_at(path, where):
            required[path] = directory
    return required


def _find_replacements(
    root: Path, of_work: Sequence[Replace], found: Mapping[str, Module], options: GoOptions
) -> dict[str, Path]:
    """What a module requires and finds only by a replacement, its own or that of go.work."""
    replaced = {}
    for module in found.values():
        requires = module.mod.requires
        wanted = {each.path for each in requires if each.is_placeholder} - found.keys()
        places = [(module.directory, each) for each in module.mod.replaces]
        for base, replace in (*places, *((root, each) for each in of_work)):
            if replace.path in wanted and gomod.is_directory(replace.target):
                directory = follow(base / replace.target)
                if _holds(root, directory, replace.path, options):
                    replaced[replace.path] = directory
    return replaced


def _holds(root: Path, directory: Path, path: str, options: GoOptions) -> bool:
    """Whether Go would find the module of this path in this directory of the workspace."""
    manifest = directory / "go.mod"
    if not (directory.is_relative_to(root) and is_file(manifest)):
        return False
    where = PurePosixPath(directory.relative_to(root).as_posix())
    if matches_path(str(where), options.exclude) or not paths.is_at(path, where):
        return False
    return gomod.parse_mod(gomod.read_text(manifest), str(manifest)).module == path


def _walk(root: Path) -> Iterator[Path]:
    for visited, (where, directories, files) in enumerate(durable.walk(root)):
        if visited > MAX_DIRECTORIES:
            raise MembersError(
                f"{root}: more than {MAX_DIRECTORIES} directories to look for go.mod in",
                hint="List the modules in a go.work.",
            )
        directories[:] = [
            name
            for name in directories
            # A directory with its own .git is another repository.
            if name[0] not in "._"
            and name not in _IGNORED
            # Also false for a path that is too long.
            and not exists(where / name / ".git")
        ]
        if "go.mod" in files:
            yield where.resolve()


def _read_module(root: Path, directory: Path, options: GoOptions) -> Module:
    manifest = directory / "go.mod"
    where = directory.relative_to(root).as_posix()
    try:
        mod = gomod.parse_mod(gomod.read_text(manifest), str(manifest))
        gomod.refuse_strange(mod, str(manifest))
    except ConfigError as error:
        hint = error.hint or (
            f"Correct it, or leave it out, in releasekit.toml: [go] exclude = [{where!r}]."
        )
        raise error.with_(hint=hint) from error.__cause__
    private = matches_path(where, options.private) or matches_path(mod.module, options.private)
    reason = "releasekit.toml: [go] private names it" if private else ""
    reason = reason or paths.trouble_with_path(mod.module)
    version, place = ("", ()) if reason else find_version(mod.module, directory, root, options)
    if not reason and not version:
        reason = UNTOLD
    trouble = "" if reason else paths.trouble_with_version(mod.module, version)
    if trouble:
        raise ManifestError(
            f"{manifest}: {trouble}",
            hint=f"Or never publish it, in releasekit.toml: [go] private = [{where!r}].",
        )
    return Module(
        mod=mod, directory=directory, version=version, unpublishable=reason, version_place=place
    )


def find_version(module: str, directory: Path, root: Path, options: GoOptions) -> tuple[str, Place]:
    """The version of a module with its `v`, from releasekit.toml or a version file, and where it
    stands; empty where neither has one. Raises ConfigError for a version file without a version.
    """
    for key in (directory.relative_to(root).as_posix(), module):
        if named := options.versions.get(key):
            return with_v(named), ("go", "versions", key)
    if options.version_file:
        levels = [each for each in (directory, *directory.parents) if each.is_relative_to(root)]
        for path in (level / options.version_file for level in levels):
            if path.is_file():
                return with_v(read_version(path)), path
    return with_v(options.version), ("go", "version")


def read_version(path: Path) -> str:
    text = gomod.read_text(path)
    return text[slice(*find_in_file(text, path))]


def find_in_file(text: str, path: Path) -> tuple[int, int]:
    """Where a version file holds a version: in its only line, or the first value of a `version`."""
    line = text.strip()
    if paths.is_release_version(with_v(line)):
        return text.index(line), text.index(line) + len(line)
    match = _ASSIGNED.search(text)
    if match is None:
        raise ManifestError(
            f"{path} holds no version",
            hint='Write one line like 1.2.3, or an assignment like `const Version = "1.2.3"`.',
        )
    return match.span(1)


def with_v(version: str) -> str:
    return f"v{version}" if version and version[0].isdigit() else version
