"""Which Go modules a workspace holds, which versions they have, and how they need one another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.go import edit, gomod, paths, versions
from releasekit.ecosystems.shared.packages import unique_by_name
from releasekit.errors import ConfigError, ManifestError, MembersError, PlanError, map_all
from releasekit.graph import rings
from releasekit.host import durable
from releasekit.host.files import exists, inside, is_file
from releasekit.model import Dependency, DependencyKind, Package, PackageId
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from releasekit.ecosystems.go import Options
    from releasekit.ecosystems.go.gomod import GoMod, Replace

ECOSYSTEM: Final = "go"
MAX_DIRECTORIES: Final = 100_000
# The go command does not look into them either: https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
_IGNORED: Final = frozenset({"vendor", "node_modules"})
_FIXTURES: Final = "testdata"
_LANGUAGE: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """`directory` is absolute. `unpublishable` says why it is never published, if it is not."""

    mod: GoMod
    directory: Path
    version: str
    unpublishable: str = ""

    @property
    def path(self) -> str:
        return self.mod.module

    @property
    def name(self) -> str:
        return self.path

    @property
    def manifest(self) -> Path:
        return self.directory / "go.mod"


def modules(root: Path, options: Options) -> dict[str, Module]:
    """Every module below `root`, by path in order: those go.work uses, where there is one,
    else all; of those in a `testdata` the ones that others require, and what others require by a
    placeholder that a `replace` leads to.

    Raises ConfigError, also for two modules of one path.
    """
    directories, fixtures = _directories(root, options)
    found, _ = unique_by_name(
        map_all(lambda directory: _module(root, directory, options), directories),
        cure="leave its directory out with [go] exclude",
        private=lambda module: module.unpublishable,
    )
    of_work = _replaces_of_work(root)
    while required := _required(root, fixtures, found) | _tied(root, of_work, found, options):
        found |= {path: _module(root, directory, options) for path, directory in required.items()}
    known = {module.directory.relative_to(root).as_posix() for module in found.values()}
    if found:
        versions.refuse_unknown(options, known | found.keys())
    return dict(sorted(found.items()))


def packages(by_path: Mapping[str, Module]) -> list[Package]:
    """What modules of one cycle need of each other is soft: Go allows it, as long as no packages
    import one another. https://go.dev/wiki/Modules#can-two-modules-depend-on-each-other
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


def local_replaces(module: Module, by_path: Mapping[str, Module]) -> list[Replace]:
    """Its replacements that only say where this workspace has another of its modules, and those of
    what it does not require: nobody needs them once it is published.

    Raises PlanError for those that make what is published differ from what is built here: whoever
    requires a module sees none of its replacements.
    https://go.dev/ref/mod#go-mod-file-replace
    """
    local = []
    required = {require.path for require in module.mod.requires}
    for replace in module.mod.replaces:
        is_directory = gomod.is_directory(replace.target)
        at = (module.directory / replace.target).resolve() if is_directory else None
        other = by_path.get(replace.path)
        unused = is_directory and replace.path not in required and _is_complete(module.mod)
        if unused or (other is not None and at == other.directory):
            local.append(replace)
        elif other is not None or is_directory:
            raise PlanError(
                f"{module.manifest} replaces {replace.path} by {replace.target}, which nobody who "
                f"requires {module.path} would get",
                hint=f"Drop it: `go mod edit -dropreplace={replace.path}`; to work on both, list "
                f"both in a go.work, or publish {replace.path} from this workspace too.",
                problem=Problem.GO_REPLACED,
            )
    return local


def _is_complete(mod: GoMod) -> bool:
    """Whether it requires all that its packages need, directly or not.

    https://go.dev/ref/mod#graph-pruning
    """
    found = _LANGUAGE.match(mod.go)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 17)


def check(module: Module, text: str, planned: Mapping[str, str], by: Mapping[str, Module]) -> None:
    """Raises PlanError for a go.mod that cannot be published with these versions."""
    edit.check_requirements(gomod.parse_mod(text, str(module.manifest)), planned)
    local_replaces(module, by)


def _directories(root: Path, options: Options) -> tuple[list[Path], list[Path]]:
    """Those of modules, and those of what may be one or only the data of a test."""
    work = root / "go.work"
    listed = work.is_file()
    if listed:
        found = [
            _used(root, work, use)
            for use in gomod.used_directories(gomod.read_text(work), str(work))
        ]
    else:
        found = sorted(_nested(root))
    modules: list[Path] = []
    fixtures: list[Path] = []
    for directory in dict.fromkeys(found):
        where = directory.relative_to(root)
        if not _matches(where.as_posix(), options.exclude):
            only_data = _FIXTURES in where.parts and not listed
            (fixtures if only_data else modules).append(directory)
    return modules, fixtures


def _required(root: Path, fixtures: list[Path], found: Mapping[str, Module]) -> dict[str, Path]:
    """The fixtures that a module requires by the path that Go would find them by."""
    wanted = {require.path for module in found.values() for require in module.mod.requires}
    required = {}
    for directory in fixtures:
        manifest = directory / "go.mod"
        try:
            path = gomod.parse_mod(gomod.read_text(manifest), str(manifest)).module
        except ConfigError:
            continue  # a test may want it just like that
        where = PurePosixPath(directory.relative_to(root).as_posix())
        if path in wanted and path not in found and paths.is_at(path, where):
            required[path] = directory
    return required


def _replaces_of_work(root: Path) -> tuple[Replace, ...]:
    work = root / "go.work"
    if not work.is_file():
        return ()
    return gomod.replaces_of_work(gomod.read_text(work), str(work))


def _tied(
    root: Path, of_work: Sequence[Replace], found: Mapping[str, Module], options: Options
) -> dict[str, Path]:
    """What a module requires that only a replacement leads to, its own or that of go.work."""
    tied = {}
    for module in found.values():
        requires = module.mod.requires
        wanted = {each.path for each in requires if each.placeholder} - found.keys()
        places = [(module.directory, each) for each in module.mod.replaces if each.path in wanted]
        places += [(root, each) for each in of_work if each.path in wanted]
        for base, replace in places:
            directory = (base / replace.target).resolve()
            if gomod.is_directory(replace.target) and _holds(
                root, directory, replace.path, options
            ):
                tied[replace.path] = directory
    return tied


def _holds(root: Path, directory: Path, path: str, options: Options) -> bool:
    """Whether Go would find the module of this path in this directory of the workspace."""
    manifest = directory / "go.mod"
    if not (directory.is_relative_to(root) and is_file(manifest)):
        return False
    where = PurePosixPath(directory.relative_to(root).as_posix())
    if _matches(str(where), options.exclude) or not paths.is_at(path, where):
        return False
    return gomod.parse_mod(gomod.read_text(manifest), str(manifest)).module == path


def _used(root: Path, work: Path, use: str) -> Path:
    directory = inside(root, root / use, where=f"{work}: use {use}")
    if not is_file(directory / "go.mod"):
        raise MembersError(
            f"{work}: use {use}: there is no go.mod", hint=f"go work edit -dropuse={use}"
        )
    return directory


def _nested(root: Path) -> Iterator[Path]:
    for visited, (where, directories, files) in enumerate(durable.walk(root)):
        if visited > MAX_DIRECTORIES:
            raise MembersError(
                f"{root}: more than {MAX_DIRECTORIES} directories to look for go.mod in",
                hint="List the modules in a go.work.",
            )
        directories[:] = [
            name
            for name in directories
            # A directory with a .git of its own is another repository.
            if name[0] not in "._"
            and name not in _IGNORED
            # False for a path that is too long, too.
            and not exists(where / name / ".git")
        ]
        if "go.mod" in files:
            yield where.resolve()


def _module(root: Path, directory: Path, options: Options) -> Module:
    manifest = directory / "go.mod"
    mod = gomod.parse_mod(gomod.read_text(manifest), str(manifest))
    where = directory.relative_to(root).as_posix()
    private = _matches(where, options.private) or _matches(mod.module, options.private)
    reason = "releasekit.toml: [go] private names it" if private else ""
    reason = reason or paths.trouble_with_path(mod.module)
    version = "" if reason else versions.version_of(mod.module, directory, root, options)
    if not reason and not version:
        # The same for all of them: there may be a hundred.
        reason = (
            "nothing tells its version: write [go] version or version-file in releasekit.toml, or "
            'DIRECTORY = "1.2.3" below [go.versions]'
        )
    trouble = "" if reason else paths.trouble_with_version(mod.module, version)
    if trouble:
        raise ManifestError(
            f"{manifest}: {trouble}",
            hint=f"Or never publish it, in releasekit.toml: [go] private = [{where!r}].",
        )
    return Module(mod=mod, directory=directory, version=version, unpublishable=reason)


def _matches(text: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, str(PurePosixPath(glob))) for glob in globs)
