"""Go modules of one repository: what `go mod edit` says of them, and a repository of that shape."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

from world.facts import Expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_MAJOR: Final = re.compile(r".*/v(\d+)")
_RELEASE: Final = re.compile(r"v\d+\.\d+\.\d+(?:-(?!0\.|\d{14})[0-9A-Za-z.]+)?")


def tool(_root: Path) -> list[str]:
    return ["go", "version"]


def distilled(root: Path, config: dict[str, Any]) -> tuple[dict[str, Any], Expected]:
    """Each module's version is the highest that another one requires, or else the first there can
    be of its path: go.mod does not tell it. The versions are written into `config`.
    """
    documents = {
        path.parent.relative_to(root).as_posix(): _edit(path, "mod")
        for path in _manifests(root, config)
    }
    paths = {document["Module"]["Path"]: where for where, document in documents.items()}
    versions = {path: _version(path, documents.values()) for path in paths}
    modules = _Modules(paths, versions)
    shape: dict[str, Any] = {
        "modules": {path: modules.kept(documents[where], where) for path, where in paths.items()}
    }
    if (root / "go.work").is_file():
        work = _edit(root / "go.work", "work")
        shape["work"] = {
            "use": [each["DiskPath"] for each in work["Use"] or ()],
            "replace": [_replace(each) for each in work["Replace"] or () if modules.own(each)],
        }
    private = frozenset(path for path in paths if "." not in path.split("/")[0])
    config["versions"] = {
        where: versions[path] for path, where in sorted(paths.items()) if path not in private
    }
    edges = frozenset(
        (path, require["Path"])
        for path, where in paths.items()
        for require in documents[where]["Require"] or ()
        if require["Path"] in paths
    )
    return shape, Expected(versions=versions, private=private, soft=edges)


class _Modules:
    """Shortens what hundreds of lines say alike: modules are known by their place, a version is
    left out where it is the module's own, and so is the target of a replacement that only says
    where the module lies.
    """

    def __init__(self, paths: Mapping[str, str], versions: Mapping[str, str]) -> None:
        self._paths = paths
        self._versions = versions
        self._places = {path: at for at, path in enumerate(paths)}

    def own(self, replace: Mapping[str, Any]) -> bool:
        return replace["Old"]["Path"] in self._paths or "Version" not in replace["New"]

    def kept(self, document: Mapping[str, Any], where: str) -> dict[str, Any]:
        """`direct` and `indirect` requirements, `local` and other replacements."""
        kept: dict[str, Any] = {"at": where}
        for require in document["Require"] or ():
            if require["Path"] in self._paths:
                place = self._places[require["Path"]]
                entry: object = place
                if require["Version"] != self._versions[require["Path"]]:
                    entry = [place, require["Version"]]
                key = "indirect" if require.get("Indirect") else "direct"
                kept.setdefault(key, []).append(entry)
        for replace in filter(self.own, document["Replace"] or ()):
            old, new = _replace(replace)
            if old in self._paths and new == _relative(self._paths[old], where):
                kept.setdefault("local", []).append(self._places[old])
            else:
                kept.setdefault("replace", []).append([old, new])
        return kept


def _relative(directory: str, start: str) -> str:
    """As go.mod spells it."""
    path: str = posixpath.relpath(directory, start)
    return path if path.startswith("..") else f"./{path}"


def _manifests(root: Path, config: Mapping[str, Any]) -> list[Path]:
    """What the go command takes for modules, and those among the data of tests that it would find
    by the path that another one requires.

    https://go.dev/ref/mod#go-work-file-use, https://pkg.go.dev/cmd/go#hdr-Package_lists_and_patterns
    """
    if (root / "go.work").is_file():
        used = _edit(root / "go.work", "work")["Use"] or ()
        return [root / each["DiskPath"] / "go.mod" for each in used]
    excluded = set(config.get("exclude", ()))
    found: list[Path] = []
    data: list[Path] = []
    for path in sorted(root.rglob("go.mod")):
        parts = path.relative_to(root).parts[:-1]
        ignored = {"vendor", "node_modules"} & {*parts} or any(part[0] in "._" for part in parts)
        if not ignored and "/".join(parts) not in excluded:
            (data if "testdata" in parts else found).append(path)
    documents = [_edit(path, "mod") for path in found]
    required = {each["Path"] for document in documents for each in document["Require"] or ()}
    return [*found, *(path for path in data if _edit(path, "mod")["Module"]["Path"] in required)]


def _edit(path: Path, kind: str) -> dict[str, Any]:
    argv = ["go", kind, "edit", "-json", path.name]
    done = subprocess.run(argv, cwd=path.parent, check=True, capture_output=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _replace(replace: Mapping[str, Any]) -> list[str]:
    sides = (replace["Old"], replace["New"])
    return [" ".join(filter(None, (side["Path"], side.get("Version")))) for side in sides]


def _version(path: str, documents: Iterable[Mapping[str, Any]]) -> str:
    required = {
        each["Version"]
        for document in documents
        for each in document["Require"] or ()
        if each["Path"] == path and _RELEASE.fullmatch(each["Version"])
    }
    major = _MAJOR.fullmatch(path)
    first = f"v{major[1]}.0.0" if major else "v0.1.0"
    return str(max({*required, first}, key=_precedence))


def _precedence(version: str) -> tuple[list[int], bool, str]:
    release, _, prerelease = version.removeprefix("v").partition("-")
    return [int(each) for each in release.split(".")], not prerelease, prerelease


def write(root: Path, shape: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    modules = shape["modules"]
    paths = [*modules]
    versions = {path: config["versions"].get(modules[path]["at"], "v0.1.0") for path in paths}
    for path, kept in modules.items():
        where = kept["at"]
        directory = root / where
        directory.mkdir(parents=True, exist_ok=True)
        lines = [f"module {path}", "", "go 1.21", ""]
        for key, mark in (("direct", ""), ("indirect", " // indirect")):
            for entry in kept.get(key, ()):
                place, version = entry if isinstance(entry, list) else (entry, "")
                other = paths[place]
                lines.append(f"require {other} {version or versions[other]}{mark}")
        for place in kept.get("local", ()):
            other = paths[place]
            lines.append(f"replace {other} => {_relative(modules[other]['at'], where)}")
        lines += [f"replace {old} => {new}" for old, new in kept.get("replace", ())]
        (directory / "go.mod").write_text("\n".join([*lines, ""]))
        (directory / "skeleton.go").write_text("package skeleton\n")
    if work := shape.get("work"):
        lines = ["go 1.21", "", *(f"use {use}" for use in work["use"])]
        lines += [f"replace {old} => {new}" for old, new in work["replace"]]
        (root / "go.work").write_text("\n".join([*lines, ""]))
