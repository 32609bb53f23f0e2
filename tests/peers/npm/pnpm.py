"""What pnpm's tests pack and publish, beside `pnpm pack`."""

from __future__ import annotations

import functools
import itertools
import json
import posixpath
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import yaml

from peers.npm import packing
from peers.npm.reading import (
    MANIFEST,
    Event,
    Unreadable,
    is_unknown,
    read_events,
    without_undefined,
)
from peers.scenarios import Case, Files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from peers.npm.packing import Tarballs

_CALLS: Final = (
    "prepare",
    "preparePackages",
    "createExportableManifest",
    "writeYamlFileSync",
    "writeFileSync",
    "chdir",
    "symlinkSync",
)
_STARTS: Final = {"prepare", "preparePackages"}
_DEFAULTS: Final = {"name": "project", "version": "0.0.0"}
_WORKSPACE: Final = "pnpm-workspace.yaml"
_PNPM: Final = "pnpm@10"  # the newest for the oldest Node.js that npm itself still takes
_ALIAS: Final = re.compile(r"workspace:(@?[^@]+)@")
# What pnpm takes out, and what only it puts in: see the page on npm packages.
_DROPPED: Final = ("packageManager", "pnpm")
_SCRIPTS: Final = {
    "prepublishOnly", "prepack", "prepare", "postpack", "publish", "postpublish", "prepublish",
}  # fmt: skip


def read_packed(checkout: Path) -> Iterator[Case]:
    pack = functools.partial(_pack, packing.install("pnpm", _PNPM))
    releasing = checkout / "pnpm11/releasing"
    paths = [*releasing.glob("exportable-manifest/test/*.ts")]
    paths += releasing.glob("commands/test/publish/*.ts")
    events = read_events(paths, calls=_CALLS)
    for (path, test), group in itertools.groupby(events, lambda each: (each.file, each.test)):
        for number, steps in enumerate(_split([*group])):
            read = functools.partial(_read, steps)
            judge = functools.partial(packing.judge, read, pack, explain, plain)
            yield Case(name=f"{path.stem}::{test[:80]}#{steps[0].line}.{number}", judge=judge)


def _split(events: Sequence[Event]) -> Iterator[list[Event]]:
    """Each directory that a test makes, with what it writes there."""
    found: list[Event] = []
    for event in events:
        is_alone = event.call == "createExportableManifest" and not any(
            each.call in _STARTS for each in found
        )
        if found and (event.call in _STARTS or is_alone):
            yield found
            found = []
        if found or event.call in _STARTS or is_alone:
            found.append(event)
    if found:
        yield found


def _read(steps: Sequence[Event]) -> tuple[Files, str]:
    files: dict[str, str | bytes] = {}
    links: dict[str, str] = {}
    at = ""
    for step in steps:
        args = without_undefined(step.args)
        match step.call:
            case "prepare":
                _add(files, "", args[0] if args and args[0] != {"$": "undefined"} else {})
            case "createExportableManifest" if step is steps[0]:
                _add(files, "", args[1])
            case "preparePackages":
                for each in args[0]:
                    _add_package(files, each)
            case "chdir":
                at = posixpath.normpath(posixpath.join(at, _text(args[0])))
            case "writeYamlFileSync":
                if is_unknown(args[1]):
                    raise Unreadable("the test computes what it writes")
                files[_join(at, args[0])] = yaml.safe_dump(args[1])
            case "writeFileSync":
                files[_join(at, args[0])] = _text(args[1])
            case _:
                pass
    files["pnpm-lock.yaml"] = "lockfileVersion: '9.0'\n"
    if MANIFEST not in files:
        files[MANIFEST] = json.dumps({"name": "root", "private": True})
        files.setdefault(_WORKSPACE, yaml.safe_dump({"packages": ["**", "!store/**"]}))
    return Files(files=files, links=links), ""


def _join(at: str, path: object) -> str:
    return posixpath.normpath(posixpath.join(at, _text(path)))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unreadable("the test computes what it writes")
    return value


def _add_package(files: dict[str, str | bytes], given: Any) -> None:
    if not isinstance(given, dict) or is_unknown(given):
        raise Unreadable("the test computes what it writes")
    if isinstance(given.get("package"), dict):
        _add(files, f"{_text(given['location'])}/", given["package"])
    else:
        _add(files, f"{given.get('name', 'project')}/", given)


def _add(files: dict[str, str | bytes], at: str, document: Any) -> None:
    if not isinstance(document, dict) or is_unknown(document):
        raise Unreadable("the test computes what it writes")
    files[posixpath.normpath(f"{at}{MANIFEST}")] = json.dumps({**_DEFAULTS, **document})


def _pack(pnpm: Path, top: Path, directory: Path) -> Tarballs:
    """Each package of the workspace that is not private, as `pnpm publish --recursive` would."""
    into = directory / "theirs"
    into.mkdir()
    places = [each.parent for each in top.rglob(MANIFEST) if "node_modules" not in each.parts]
    documents = {place: packing.read_json(place / MANIFEST) for place in places}
    for place, document in documents.items():
        _link(place, document, documents)
    found: dict[str, bytes] = {}
    environment = packing.environment(directory / "home")
    for place, document in documents.items():
        if document.get("private") or not document.get("name") or not document.get("version"):
            continue
        argv = [str(pnpm), "pack", "--json", "--pack-destination", str(into)]
        done = subprocess.run(
            argv, cwd=place, env=environment, capture_output=True, text=True, check=True
        )
        name = json.loads(done.stdout)["filename"].rpartition("/")[2]
        found[name] = (into / name).read_bytes()
    for place in places:
        _unlink(place)
    return found


def _link(place: Path, document: dict[str, Any], documents: dict[Path, dict[str, Any]]) -> None:
    """As an installation would, since pnpm reads there which version a package has."""
    for field in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        for key, spec in document.get(field, {}).items():
            alias = _ALIAS.match(spec)
            if "workspace:" not in spec:
                continue
            path = spec.removeprefix("workspace:")
            target = next(
                (
                    other
                    for other, each in documents.items()
                    if (path.startswith(".") and other == (place / path).resolve())
                    or each.get("name") == (alias[1] if alias else key)
                ),
                None,
            )
            link = place / "node_modules" / key
            if target and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)


def _unlink(place: Path) -> None:
    for link in (place / "node_modules").glob("**/*"):
        if link.is_symlink():
            link.unlink()


def plain(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without what pnpm takes out."""
    found = {key: value for key, value in manifest.items() if key not in _DROPPED}
    if isinstance(scripts := found.get("scripts"), dict):
        found["scripts"] = {key: value for key, value in scripts.items() if key not in _SCRIPTS}
    return found


def explain(_top: Path, done: Any, what: str) -> str:
    """Rules of few words."""
    if "publishConfig.name" in done.error:
        return "limits.md: `publishConfig.name` of pnpm"
    if done.refuses("RK-221") and "npm drops build metadata" in done.error:
        return "limits.md: A version with build metadata"
    if done.refuses("RK-345"):
        return "limits.md: pnpm's hook `beforePacking`"
    if "ERR_PNPM_BUNDLED_DEPENDENCIES_WITHOUT_HOISTED" in what:
        return "npm.md: A package whose tarball does not contain its bundled dependencies fails"
    if re.search(r"peerDependencies is .* there$", what) and re.search(r"\d\.\./", what):
        return "npm.md: pnpm writes `1.2.0../core`"
    return ""
