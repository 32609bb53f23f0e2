"""npm, pnpm and yarn workspaces: what their tools say of them, and workspaces of that shape."""

from __future__ import annotations

import itertools
import json
import os
import posixpath
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from workspaces import write_json
from world.facts import Edges, Expected

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MANIFEST: Final = "package.json"
PNPM: Final = "pnpm-workspace.yaml"
YARN: Final = ".yarnrc.yml"
_PNPM: Final = ("npx", "--yes", "--package", "pnpm@10.34.9", "--", "pnpm")
_YARN: Final = ("npx", "--yes", "--package", "@yarnpkg/cli-dist@4.17.0", "--", "yarn")
_FIELDS: Final = ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies")
_SINGLE: Final = ("name", "version", "private")
_CONFIG: Final = ("directory", "tag")
# Links by directory: those of a package lead to other directories.
Links = dict[str, set[str]]


def tool(root: Path) -> list[str]:
    if (root / PNPM).is_file():
        return [*_PNPM, "--version"]
    return [*_YARN, "--version"] if (root / YARN).is_file() else ["npm", "--version"]


def distilled(root: Path, config: Mapping[str, Any]) -> tuple[dict[str, Any], Expected]:
    if (root / PNPM).is_file():
        links = _pnpm_links(root)
    elif (root / YARN).is_file():
        links = _yarn_links(root)
    else:
        links = _npm_links(root)
    documents = {
        where: json.loads((root / where / MANIFEST).read_text(encoding="utf-8-sig"))
        for where in links
    }
    names = {where: document.get("name", "") for where, document in documents.items()}
    own = set(names.values()) - {""}
    shape: dict[str, Any] = {
        "manifests": {where: _kept(each, own) for where, each in sorted(documents.items())}
    }
    shape["manifests"]["."] |= {
        key: documents["."][key] for key in ("workspaces",) if key in documents["."]
    }
    for name in (PNPM, YARN):
        if (root / name).is_file():
            shape[name] = _settings(yaml.safe_load((root / name).read_text()), own)
    private = {
        names[where]
        for where, document in documents.items()
        if document.get("private") or "version" not in document
    }
    hard: Edges = set()
    soft: Edges = set()
    for where, document in documents.items():
        linked = {names[other] for other in links[where]} & own
        for field in _FIELDS[:3]:
            # A lock file links what is needed to develop; peers are in it for that only.
            for key in document.get(field, {}).keys() - _bundled(document):
                target = key if key in own else _alias(document[field][key])
                if target in (linked if field != "peerDependencies" else own):
                    kinds = hard if field == "dependencies" else soft
                    kinds.add((names[where], target))
    versions = {names[where]: str(each.get("version", "")) for where, each in documents.items()}
    versions.pop("", None)
    return shape, Expected(
        versions=versions,
        private=frozenset(private - {""}),
        hard=frozenset(hard),
        soft=frozenset(soft),
    )


def _alias(spec: str) -> str:
    return spec.removeprefix("workspace:").removeprefix("npm:").rpartition("@")[0]


def _pnpm_links(root: Path) -> Links:
    """Members as `pnpm ls` has them, links as its lock file."""
    argv = [*_PNPM, "ls", "--recursive", "--json", "--depth", "-1"]
    environment = {**os.environ, "npm_config_manage_package_manager_versions": "false"}
    done = subprocess.run(argv, cwd=root, check=True, stdout=subprocess.PIPE, env=environment)
    # One list, or one for each package that has a lock file of its own.
    listed = json.loads(f"[{done.stdout.decode().replace('][', '],[')}]".replace("]\n[", "],["))
    members = {
        Path(each["path"]).resolve().relative_to(root).as_posix()
        for each in itertools.chain.from_iterable(listed)
    }
    importers = _importers(root)
    links: Links = {}
    for where in members:
        links[where] = set()
        locked = importers.get(where) or _importers(root / where).get(".", {})
        for field in _FIELDS:
            for entry in locked.get(field, {}).values():
                if entry["version"].startswith("link:"):
                    path = posixpath.join(where, entry["version"].removeprefix("link:"))
                    links[where].add(posixpath.normpath(path))
    return {where: found & members for where, found in links.items()}


def _importers(directory: Path) -> dict[str, Any]:
    """https://github.com/pnpm/spec/blob/master/lockfile/9.0.md"""
    lock = directory / "pnpm-lock.yaml"
    # A second document in it would be about pnpm itself.
    documents = [*yaml.safe_load_all(lock.read_text())] if lock.is_file() else [{}]
    return dict(documents[-1].get("importers", {}))


def _yarn_links(root: Path) -> Links:
    argv = [*_YARN, "workspaces", "list"]
    environment = {**os.environ, "YARN_IGNORE_PATH": "1", "YARN_ENABLE_TELEMETRY": "0"}
    done = subprocess.run(
        [*argv, "--json", "--verbose"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {each["location"]: set(each["workspaceDependencies"]) for each in found}


def _npm_links(root: Path) -> Links:
    """https://docs.npmjs.com/cli/configuring-npm/package-lock-json"""
    packages = json.loads((root / "package-lock.json").read_text())["packages"]
    linked = {
        path.removeprefix("node_modules/"): each["resolved"]
        for path, each in packages.items()
        if each.get("link") and path.startswith("node_modules/")
    }
    links: Links = {}
    for where in (".", *linked.values()):
        entry = packages["" if where == "." else where]
        names = {key for field in _FIELDS for key in entry.get(field, {})}
        nested = {key for key in names if f"{where}/node_modules/{key}" in packages}
        links[where] = {linked[key] for key in (names - nested) & linked.keys()}
    return links


def _kept(document: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Of a manifest what has to do with the packages of the repository."""
    kept = {key: document[key] for key in _SINGLE if key in document}
    if document.get("private"):
        return kept  # what it needs has no part in a release
    for field in _FIELDS:
        needs = {
            key: spec
            for key, spec in document.get(field, {}).items()
            if key in own or _alias(spec) in own
        }
        if field == "devDependencies":
            # They order nothing: a few are enough to see that.
            needs = dict([*needs.items()][:2])
        kept |= {field: needs} if needs else {}
    meta = {
        key: {"optional": True}
        for key, each in document.get("peerDependenciesMeta", {}).items()
        if key in own and each.get("optional")
    }
    config = document.get("publishConfig", {})
    chosen = {key: config[key] for key in _CONFIG if key in config}
    names = sorted(_bundled(document) & {*own})
    for key, value in (
        ("peerDependenciesMeta", meta),
        ("publishConfig", chosen),
        ("bundleDependencies", names),
    ):
        kept |= {key: value} if value else {}
    return kept


def _bundled(document: Mapping[str, Any]) -> set[str]:
    """They travel in the tarball: https://docs.npmjs.com/cli/configuring-npm/package-json"""
    named = document.get("bundleDependencies", document.get("bundledDependencies", []))
    return {*document["dependencies"]} if named is True else {*named}


def _settings(document: Mapping[str, Any] | None, own: Collection[str]) -> dict[str, Any]:
    document = document or {}
    kept = {key: document[key] for key in ("packages",) if key in document}
    catalogs = {"default": document.get("catalog") or {}, **(document.get("catalogs") or {})}
    for name, table in catalogs.items():
        entries = {key: spec for key, spec in table.items() if key in own}
        if entries and name == "default":
            kept["catalog"] = entries
        elif entries:
            kept.setdefault("catalogs", {})[name] = entries
    return kept


def write(root: Path, shape: Mapping[str, Any], _config: Mapping[str, Any]) -> None:
    for where, kept in shape["manifests"].items():
        write_json(root / where / MANIFEST, {**kept, "files": ["index.js"]})
        (root / where / "index.js").write_text("")
        for name in kept.get("bundleDependencies", ()):
            write_json(root / where / "node_modules" / name / MANIFEST, {"name": name})
        if directory := kept.get("publishConfig", {}).get("directory"):
            write_json(root / where / directory / MANIFEST, kept)
    for name in (PNPM, YARN):
        if name in shape:
            (root / name).write_text(yaml.safe_dump(shape[name]))
