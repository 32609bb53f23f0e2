"""Python repositories: what uv's lock files say of their packages, and projects of that shape."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
import zipfile
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from world.facts import Edges, Expected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MANIFEST: Final = "pyproject.toml"
SETTINGS: Final = "uv.toml"
_LIMITS: Final = ("build-constraint-dependencies", "exclude-newer", "exclude-newer-package")
# What a version that only git's tags would tell is taken for.
_UNTOLD: Final = "1.0.0"
_ASSIGNED: Final = re.compile(r"""^__version__ = ["'](.+)["']$""", re.MULTILINE)
_EXTRA: Final = re.compile(r"extra == '([^']+)'")
_POETRY: Final = "poetry.core.masonry.api"
_BACKEND: Final = Path(__file__).with_name("plain_backend.py")


@dataclass(frozen=True)
class Locked:
    """A package of the repository in a lock file; `virtual` is what uv does not build."""

    name: str
    directory: Path
    version: str
    virtual: bool
    requires: tuple[Mapping[str, Any], ...]

    def needs(self, extra: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
        """Name and extras of what is required always, or under an extra."""
        for each in self.requires:
            found = _EXTRA.search(each.get("marker", ""))
            if (found[1] if found else "") == extra:
                yield each["name"], tuple(each.get("extras", ()))

    @property
    def extras(self) -> set[str]:
        return set(_EXTRA.findall(" ".join(each.get("marker", "") for each in self.requires)))


def tool(_root: Path) -> list[str]:
    return ["uv", "--version"]


def distilled(root: Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], Expected]:
    members = sorted(
        {each.directory: each for each in _members(root, config)}.values(),
        key=lambda each: each.directory,
    )
    names = {each.name for each in members}
    manifests: dict[str, Any] = {}
    versions: dict[str, str] = {}
    private: set[str] = set()
    hard: Edges = set()
    soft: Edges = set()
    by_name = {each.name: each for each in members}
    for member in members:
        document = tomllib.loads((member.directory / MANIFEST).read_text())
        kept = _kept(document, names)
        where = member.directory.relative_to(root).as_posix()
        tag = _tag(document, member.directory, "--exact-match")
        # A lock file may be older than what the manifest says.
        version = kept["project"].get("version") or member.version
        version = str(Version(version or _in_tag(document, tag) or _told(document, root / where)))
        if "version" in kept["project"].get("dynamic", ()) and "vcs" not in kept:
            kept["version"] = version
        versions[member.name] = version
        between = "vcs" in kept and not tag
        excluded = any(fnmatch(where, pattern) for pattern in config.get("exclude", ()))
        if member.virtual or kept["project"].get("classifiers") or between or excluded:
            private.add(member.name)
        manifests[where] = kept
        hard |= {(member.name, on) for on in _needed(member, "", by_name)}
        for text in kept.get("build-system", {}).get("requires", ()):
            hard.add((member.name, canonicalize_name(Requirement(text).name)))
        for extra in member.extras:
            soft |= {(member.name, on) for on in _needed(member, extra, by_name)}
    if (root / MANIFEST).is_file() and "." not in manifests:
        manifests["."] = _kept(tomllib.loads((root / MANIFEST).read_text()), names)
    expected = Expected(
        versions=versions, private=frozenset(private), hard=frozenset(hard), soft=frozenset(soft)
    )
    shape: dict[str, Any] = {"manifests": dict(sorted(manifests.items()))}
    if any("vcs" in kept for kept in manifests.values()):
        shape["tags"] = _tags([each.directory for each in members])
    if (root / SETTINGS).is_file():
        shape[SETTINGS] = _limits(tomllib.loads((root / SETTINGS).read_text()))
    return shape, expected


def _members(root: Path, config: Mapping[str, Any]) -> Iterator[Locked]:
    """Those of the root's workspace, and those that releasekit.toml would name."""
    if (root / MANIFEST).is_file():
        yield from _locked(root)
    for pattern in config.get("packages", ()):
        for path in sorted(root.glob(f"{pattern}/{MANIFEST}")):
            yield from (each for each in _locked(path.parent) if each.directory == path.parent)


def _locked(directory: Path) -> Iterator[Locked]:
    lock = directory / "uv.lock"
    if not lock.is_file():
        yield _declared(directory)
        return
    for each in tomllib.loads(lock.read_text())["package"]:
        where = each["source"].get("editable", each["source"].get("virtual"))
        if where is not None:
            yield Locked(
                name=each["name"],
                directory=(directory / where).resolve(),
                version=each.get("version", ""),
                virtual="virtual" in each["source"],
                requires=tuple(each.get("metadata", {}).get("requires-dist", ())),
            )


def _declared(directory: Path) -> Locked:
    """As uv would lock it: locking it here would run its build."""
    project = tomllib.loads((directory / MANIFEST).read_text())["project"]
    requirements = map(Requirement, project.get("dependencies", ()))
    return Locked(
        name=project["name"],
        directory=directory,
        version=project.get("version", ""),
        virtual=False,
        requires=tuple(
            {"name": canonicalize_name(each.name), "extras": each.extras} for each in requirements
        ),
    )


def _needed(member: Locked, extra: str, by_name: Mapping[str, Locked]) -> set[str]:
    """What it takes to install it, with the extras that are asked for on the way."""
    found, pending = set(), list(member.needs(extra))
    seen: set[tuple[str, str]] = set()
    while pending:
        name, extras = pending.pop()
        if name in by_name:
            found.add(name)
            asked = {(name, each) for each in extras} - seen
            seen |= asked
            pending += [need for each in asked for need in by_name[name].needs(each[1])]
    return found


def _told(document: Mapping[str, Any], directory: Path) -> str:
    """The version in the file that hatchling would read it from."""
    path = document["tool"].get("hatch", {}).get("version", {}).get("path")
    found = _ASSIGNED.search((directory / path).read_text()) if path else None
    return found[1] if found else _UNTOLD


def _tags(directories: list[Path]) -> list[list[str]]:
    """The last ones of these packages: those of earlier commits, and those of this one."""
    last: set[str] = set()
    here: set[str] = set()
    for directory in directories:
        document = tomllib.loads((directory / MANIFEST).read_text())
        last.add(_tag(document, directory, "--abbrev=0"))
        here.add(_tag(document, directory, "--exact-match"))
    return [sorted(last - here - {""}), sorted(here - {""})]


def _tag(document: Mapping[str, Any], directory: Path, option: str) -> str:
    """What git says is the package's tag; empty where there is none."""
    version = _from_tags(document)
    command = version.get("raw-options", {}).get("git_describe_command")
    if command is None:
        return ""
    argv = [*shlex.split(command), option]
    done = subprocess.run(argv, cwd=directory, check=False, capture_output=True, text=True)
    return done.stdout.strip()


def _in_tag(document: Mapping[str, Any], tag: str) -> str:
    found = re.search(_from_tags(document)["tag-pattern"], tag) if tag else None
    return found["version"] if found else ""


def _from_tags(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """How hatch-vcs computes the version: https://github.com/ofek/hatch-vcs#version-source"""
    found: Mapping[str, Any] = document.get("tool", {}).get("hatch", {}).get("version", {})
    return found if found.get("source") == "vcs" else {}


def _limits(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of uv's settings those that limit what packages are built with."""
    return {key: settings[key] for key in _LIMITS if key in settings}


def _kept(document: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Of a manifest what has to do with the packages of the repository."""

    def own(requirements: list[str]) -> list[str]:
        return [
            text
            for text in requirements
            if canonicalize_name(re.split(r"[^\w.-]", text, maxsplit=1)[0]) in names
        ]

    kept: dict[str, Any] = {}
    if project := document.get("project"):
        keys = ("name", "version", "dynamic")
        kept["project"] = {key: project[key] for key in keys if key in project}
        private = [each for each in project.get("classifiers", ()) if each.startswith("Private")]
        extras = {key: own(each) for key, each in project.get("optional-dependencies", {}).items()}
        kept["project"] |= {
            key: value
            for key, value in {
                "classifiers": private,
                "dependencies": own(project.get("dependencies", [])),
                "optional-dependencies": {key: each for key, each in extras.items() if each},
            }.items()
            if value
        }
    if "build-system" in document:
        system = document["build-system"]
        kept["build-system"] = {"requires": own(system["requires"])}
        if "backend-path" in system:
            kept["build-system"]["backend-path"] = system["backend-path"]
    tool = document.get("tool", {})
    if document.get("build-system", {}).get("build-backend") == _POETRY:
        kept["poetry"] = _poetry(tool.get("poetry", {}), names)
    for hook in tool.get("hatch", {}).get("metadata", {}).get("hooks", {}).values():
        extras = {key: own(each) for key, each in hook.get("optional-dependencies", {}).items()}
        fields = {
            "dependencies": own(hook.get("dependencies", [])),
            "optional-dependencies": extras,
        }
        # Extras name one another, so that also those without a part in the order are needed.
        kept["computed"] = {key: value for key, value in fields.items() if value}
    kept["vcs"] = _from_tags(document)
    uv = tool.get("uv", {})
    kept["uv"] = {key: uv[key] for key in ("package", "managed", "workspace") if key in uv}
    kept["uv"] |= _limits(uv)
    kept["uv"]["sources"] = {
        key: value
        for key, value in uv.get("sources", {}).items()
        if canonicalize_name(key) in names
    }
    kept["uv"] = {key: value for key, value in kept["uv"].items() if value not in ({}, None)}
    empty = ("build-system", "poetry")
    return {key: value for key, value in kept.items() if value or key in empty}


def _poetry(table: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """https://python-poetry.org/docs/pyproject/"""
    kept = {key: table[key] for key in ("package-mode",) if key in table}
    groups = {
        name: {"dependencies": own}
        for name, group in table.get("group", {}).items()
        if (
            own := {
                key: value
                for key, value in group.get("dependencies", {}).items()
                if canonicalize_name(key) in names
            }
        )
    }
    return kept | ({"group": groups} if groups else {})


def write(root: Path, shape: Mapping[str, Any], _config: Mapping[str, Any]) -> None:
    """Everything is built by hatchling, but for what Poetry builds, or a backend in its tree."""
    for where, kept in shape["manifests"].items():
        directory = root / where
        directory.mkdir(parents=True, exist_ok=True)
        document = _document(directory, kept)
        (directory / MANIFEST).write_text(tomlkit.dumps(document))
    if SETTINGS in shape:
        (root / SETTINGS).write_text(tomlkit.dumps(shape[SETTINGS]))


def _document(directory: Path, kept: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    if "project" in kept:
        project = document["project"] = {**kept["project"], "requires-python": ">=3.11"}
        name = canonicalize_name(project["name"]).replace("-", "_")
        # Poetry looks for a module of the project's name.
        module = f"{name}.py" if "poetry" in kept else f"skeleton_{name}.py"
        (directory / module).write_text("")
        hatch: dict[str, Any] = {"build": {"targets": {"wheel": {"only-include": [module]}}}}
        if "version" in kept:
            (directory / "about.py").write_text(f'__version__ = "{kept["version"]}"\n')
            hatch["version"] = {"path": "about.py"}
        if "vcs" in kept:
            hatch["version"] = kept["vcs"]
        if "computed" in kept:
            hatch["metadata"] = {"hooks": {"custom": {"path": "computed.py"}}}
            (directory / "computed.py").write_text(_hook(kept["computed"], kept["version"]))
        document["tool"] = {"poetry": kept["poetry"]} if "poetry" in kept else {"hatch": hatch}
    if "poetry" in kept:
        document["build-system"] = {"requires": ["poetry-core"], "build-backend": _POETRY}
    elif "build-system" in kept:
        document["build-system"] = _build_system(directory, kept["build-system"])
        if "vcs" in kept:
            document["build-system"]["requires"].append("hatch-vcs")
    if "uv" in kept:
        document.setdefault("tool", {})["uv"] = kept["uv"]
    return document


def _build_system(directory: Path, kept: Mapping[str, Any]) -> dict[str, Any]:
    """With what is in the repository, where it takes that, even to build itself."""
    if "backend-path" in kept:
        (directory / kept["backend-path"][0]).mkdir(parents=True)
        shutil.copyfile(_BACKEND, directory / kept["backend-path"][0] / _BACKEND.name)
    if "backend-path" in kept or kept["requires"]:
        return {**kept, "build-backend": _BACKEND.stem}
    return {"requires": ["hatchling"], "build-backend": "hatchling.build"}


def _hook(computed: Mapping[str, Any], version: str) -> str:
    text = repr(dict(computed)).replace("{{ version }}", version)
    return (
        "from hatchling.metadata.plugin.interface import MetadataHookInterface\n\n\n"
        "class Computed(MetadataHookInterface):\n"
        f"    def update(self, metadata):\n        metadata.update({text})\n"
    )


def builders(registry: Path) -> dict[str, str]:
    """What each wheel in a directory says has built it.

    https://packaging.python.org/en/latest/specifications/binary-distribution-format/#file-contents
    """
    found = {}
    for path in registry.rglob("*.whl"):
        with zipfile.ZipFile(path) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/WHEEL"))
            fields = archive.read(name).decode().splitlines()
        found[path.name] = next(
            line.partition(": ")[2] for line in fields if line.startswith("Generator:")
        )
    return found


def forbidden(registry: Path, shape: Mapping[str, Any]) -> list[str]:
    """Wheels that were built with what the workspace's root excludes."""
    uv = shape["manifests"].get(".", {}).get("uv", {})
    limits = [Requirement(each) for each in uv.get("build-constraint-dependencies", ())]
    return [
        f"{wheel}: {builder}"
        for wheel, builder in builders(registry).items()
        for limit in limits
        if builder.partition(" ")[0] == limit.name
        and not limit.specifier.contains(builder.partition(" ")[2], prereleases=True)
    ]
