"""Which files of a project count for what is published of it, and what its pyproject.toml said at
another time.
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any, Final

from releasekit.ecosystems.interface import Composition
from releasekit.ecosystems.pypi import manifest
from releasekit.ecosystems.shared.crates import Crates
from releasekit.ecosystems.shared.documents import parse_loosely, table_in, text_in
from releasekit.ecosystems.shared.packed import is_below, is_irrelevant, spelled_out
from releasekit.host.files import is_file, read_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from releasekit.ecosystems.shared.packed import Counts
    from releasekit.git.versions import Read
    from releasekit.model import Package

# The tables that tell these backends about files; their others are about environments.
_OF_FILES: Final = (
    *(("flit",), ("hatch", "build"), ("hatch", "metadata"), ("hatch", "version"), ("pdm", "build")),
    *(("pdm", "version"), ("poetry",), ("setuptools",), ("uv", "build-backend")),
)
# Of these, the keys that name packages and modules of a wheel.
_OF_WHEELS: Final = (
    *(("hatch", "build", key) for key in ("include", "only-include", "packages")),
    *(
        ("hatch", "build", "targets", "wheel", key)
        for key in ("include", "only-include", "packages")
    ),
    *(("pdm", "build", "includes"), ("poetry", "packages"), ("setuptools", "packages")),
    *(("setuptools", "py-modules"), ("uv", "build-backend", "module-name")),
)
# Of all tables of backends, those that name files and directories, and not dependencies.
_OF_SOURCES: Final = (
    *(("flit",), ("hatch", "build"), ("hatch", "metadata"), ("hatch", "version"), ("maturin",)),
    *(("pdm", "build"), ("pdm", "version"), ("poetry", "build"), ("poetry", "include")),
    *(("poetry", "packages"), ("poetry", "readme"), ("polylith",), ("scikit-build",)),
    *(("setuptools",), ("setuptools-rust",), ("uv", "build-backend")),
)
# Of a build requirement, or of a backend in the tree of sources.
_OF_RUST: Final = re.compile(r"cargo|maturin|rust", re.IGNORECASE)
_CRATE: Final = re.compile(r"""["']([^"'\n\0]{0,1000}Cargo\.toml)["']""")
# https://www.maturin.rs/project_layout
_MATURIN_CRATES: Final = ("Cargo.toml", "rust/Cargo.toml", "native/Cargo.toml")
_DOTTED: Final = ("setuptools", "uv")
_ALWAYS: Final = re.compile(
    r"MANIFEST\.in|pyproject\.toml|setup\.(?:cfg|py)|(?:copying|licen[cs]e|notice|readme)(?:\..*)?",
    re.IGNORECASE,
)
# Backends that look below src, unless they are told otherwise or something at the top has the name
# of the project. https://hatch.pypa.io/latest/plugins/builder/wheel/#default-file-selection,
# https://docs.astral.sh/uv/concepts/build-backend/#modules, https://flit.pypa.io/en/stable/,
# https://setuptools.pypa.io/en/latest/userguide/package_discovery.html#src-layout,
# https://backend.pdm-project.org/build_config/, https://python-poetry.org/docs/pyproject/#packages
_TAKING_SRC: Final = (
    *("flit", "hatchling", "pdm.backend", "poetry", "setuptools.build_meta", "uv_build"),
)
# Where setuptools may have more settings.
_SETUP: Final = frozenset({"setup.cfg", "setup.py"})
# Names at the top that hold Python and are not packages.
# https://setuptools.pypa.io/en/latest/userguide/package_discovery.html#flat-layout
_RESERVED: Final = re.compile(
    r"(?:bin|ci|debian|documentation|exercises?|htmlcov|manpages|news|newsfragments|scripts|tasks"
    r"|tools)/|(?:dodo|fabfile|pavement|tasks)\.py$"
)


class PyPIComposition(Composition):
    def __init__(self, projects: Mapping[str, manifest.PyProject], root: Path) -> None:
        self._projects = projects
        self._crates = Crates(root)

    def make_filter(self, package: Package, tracked: Collection[str]) -> Counts:
        """By what goes into the wheel."""
        document = manifest.read_pyproject(package.manifest)
        backend = manifest.read_build_system(document, package.manifest).backend
        tool = table_in(document, "tool")
        takes_all = _may_take_all(backend, tool, tracked)
        tables: list[object] = [functools.reduce(table_in, keys, tool) for keys in _OF_FILES]
        project = table_in(document, "project")
        tables += [project.get(key) for key in ("license", "license-files", "readme")]
        said = {text.removeprefix("./").partition("/")[0] for text in _find_texts(tables)}
        module = package.id.name.replace("-", "_")
        tells_all = any(text in {"", "."} or "*" in text for text in said)
        in_src = backend.startswith(_TAKING_SRC) and not tells_all and _SETUP.isdisjoint(tracked)
        holding = _find_holding(module, tracked, in_src=in_src)
        named = spelled_out(
            f"{place}{name}{end}"
            for name in (module, *_find_wheel_names(tool))
            for place in ("", "src/")
            for end in ("", ".py")
        )
        taken = {*holding, *said, *(f"{text}.py" for text in said)}

        def counts(name: str) -> bool:
            if _ALWAYS.fullmatch(name):
                return True
            return not is_irrelevant(name, named) and (takes_all or name.partition("/")[0] in taken)

        return counts

    def list_outside(self, package: Package) -> Collection[Path]:
        """What tables of backends name further up; a crate stands for its directory."""
        text = read_text(package.manifest, max_bytes=manifest.MAX_BYTES)
        if ".." not in text:
            return ()
        document = manifest.read_pyproject(package.manifest)
        tool, project = table_in(document, "tool"), table_in(document, "project")
        tables: list[object] = [
            functools.reduce(table_in, keys[:-1], tool).get(keys[-1]) for keys in _OF_SOURCES
        ]
        tables += [project.get(key) for key in ("license", "license-files", "readme")]
        named = {text.removesuffix("/Cargo.toml") for text in _find_texts(tables, keys=True)}
        paths = [package.directory / text for text in named if ".." in text.split("/")]
        return [path for path in paths if not is_below(path, package.directory)]

    def list_compiled(self, package: Package) -> Collection[Path]:
        build = self._projects[package.id.name].build_system
        return self._crates.list_compiled(_list_crates(package, build))

    def read_offered(self, package: Package, read: Read) -> str:
        """Without the groups that only its developers install.
        https://packaging.python.org/en/latest/specifications/dependency-groups/
        """
        document = parse_loosely(read(package.manifest))
        offered = {key: document[key] for key in document if key != "dependency-groups"}
        return json.dumps(offered, default=str, sort_keys=True) if offered else ""


def _may_take_all(backend: str, tool: Mapping[str, object], tracked: Collection[str]) -> bool:
    """A build that compiles, or runs hooks, may take any file."""
    return (
        backend.startswith(manifest.COMPILING)
        or "hooks" in table_in(table_in(tool, "hatch"), "build")
        or any(name.endswith((".c", ".pyx", ".rs")) for name in tracked)
    )


def _find_holding(module: str, tracked: Collection[str], *, in_src: bool) -> set[str]:
    """What holds Python at the top; or src alone, unless the module itself is there."""
    holding = {
        name.partition("/")[0]
        for name in tracked
        # A submodule that is not checked out may have any.
        if name.endswith((".py", ".pyi", "/")) and not _RESERVED.match(name)
    }
    is_flat = not holding.isdisjoint({module, f"{module}.py"})
    return {"src"} if in_src and "src" in holding and not is_flat else holding


def _list_crates(package: Package, build: manifest.BuildSystem) -> list[Path]:
    """The manifests of the crates that a build compiles, by its tables and its setup.py.
    https://setuptools-rust.readthedocs.io/en/latest/reference.html (path)
    """
    if not any(map(_OF_RUST.search, (build.backend, *build.requires))):
        return []
    document, directory = manifest.read_pyproject(package.manifest), package.directory
    if build.backend.startswith("setuptools"):
        tables = table_in(document, "tool").get("setuptools-rust")
        named = [text for text in _find_texts(tables) if text.endswith("Cargo.toml")]
        if is_file(script := directory / "setup.py"):
            named += _CRATE.findall(read_text(script, max_bytes=manifest.MAX_BYTES))
        return [directory / each for each in ("Cargo.toml", *named)]
    crates = list_maturin_crates(document, directory)
    return [next((each for each in crates if is_file(each)), crates[0])]


def list_maturin_crates(document: Mapping[str, Any], directory: Path) -> list[Path]:
    """Where the Cargo.toml may be that maturin builds; the first that is there counts."""
    named = text_in(table_in(table_in(document, "tool"), "maturin"), "manifest-path")
    return [directory / each for each in ([named] if named else _MATURIN_CRATES)]


def _find_wheel_names(tool: Mapping[str, object]) -> Iterator[str]:
    for *keys, last in _OF_WHEELS:
        value = functools.reduce(table_in, keys, tool).get(last)
        for each in value if isinstance(value, list) else [value]:
            # An entry of Poetry with a format is for the sdist or the wheel alone.
            name = each.get("include") if isinstance(each, dict) and "format" not in each else each
            if isinstance(name, str):
                yield name.replace(".", "/") if keys[0] in _DOTTED else name.removeprefix("./")


def _find_texts(value: object, *, keys: bool = False) -> Iterator[str]:
    """All strings in it; with `keys` also those of tables, as some name files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        if keys and isinstance(value, dict):
            yield from value
        for each in value.values() if isinstance(value, dict) else value:
            yield from _find_texts(each, keys=keys)
