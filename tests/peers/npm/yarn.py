"""What tests of npm and pnpm pack, in workspaces of yarn, beside `yarn pack`."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from peers.npm import packing
from peers.npm.packing import pack_by_npm
from peers.npm.reading import MANIFEST, is_own
from peers.scenarios import Case, Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peers.npm.packing import Tarballs

# All of yarn is in this one package. https://www.npmjs.com/package/@yarnpkg/cli-dist
_YARN: Final = "@yarnpkg/cli-dist@4"
_SETTINGS: Final = "enableNetwork: false\nenableTelemetry: false\nenableScripts: false\n"
# Of the tools that they were written for.
_OF_OTHERS: Final = frozenset({"package-lock.json", "pnpm-lock.yaml", "npm-shrinkwrap.json"})
_WORKSPACE: Final = "pnpm-workspace.yaml"
_FILE: Final = re.compile(r"(\S+): only (ReleaseKit|the tool) packs (.*)")


def read_with(read: Callable[[Path], Iterator[Case]], checkout: Path) -> Iterator[Case]:
    """Cases of another tool, whose judge is a partial of `packing.judge`."""
    pack = functools.partial(_pack, packing.install("yarn", _YARN))
    for case in read(checkout):
        assert isinstance(case.judge, functools.partial)
        files = functools.partial(_read, case.judge.args[0])
        judge = functools.partial(packing.judge, files, pack, explain, plain)
        yield Case(name=case.name, judge=judge)


def _read(read: Callable[[], tuple[Files, str]]) -> tuple[Files, str]:
    found, at = read()
    top = f"{at}/".removeprefix("/")
    files = {name: text for name, text in found.files.items() if name not in _OF_OTHERS}
    settings = files.pop(f"{top}{_WORKSPACE}", None)
    manifest = f"{top}{MANIFEST}"
    if settings is not None and manifest in files:
        members = (yaml.safe_load(settings) or {}).get("packages", [])
        files[manifest] = json.dumps({**json.loads(files[manifest]), "workspaces": members})
    # For these, yarn wants an installation. Neither side runs them.
    for path in filter(is_own, files):
        files[path] = _without_scripts(files[path])
    files |= {f"{top}.yarnrc.yml": _SETTINGS, f"{top}yarn.lock": ""}
    return Files(files=files, links=found.links), at


def _without_scripts(text: str | bytes) -> str | bytes:
    try:
        document = json.loads(text)
    except ValueError:
        return text
    if isinstance(document, dict) and isinstance(scripts := document.get("scripts"), dict):
        kept = {name: each for name, each in scripts.items() if name not in {"prepack", "postpack"}}
        return json.dumps({**document, "scripts": kept})
    return text


def _pack(yarn: Path, top: Path, directory: Path) -> Tarballs:
    """Each package of the workspace that is not private."""
    into = directory / "theirs"
    into.mkdir()
    run = functools.partial(
        subprocess.run,
        env=packing.environment(directory / "home"),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, bytes] = {}
    listed = run([str(yarn), "workspaces", "list", "--json"], cwd=top).stdout
    for line in listed.splitlines():
        place = top / json.loads(line)["location"]
        document = packing.read_json(place / MANIFEST)
        name, version = document.get("name"), document.get("version")
        if document.get("private") or not (isinstance(name, str) and isinstance(version, str)):
            continue
        filename = f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
        run([str(yarn), "pack", "--out", str(into / filename)], cwd=place)
        found[filename] = (into / filename).read_bytes()
    return found


def plain(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without what only tools read that publish."""
    return {key: value for key, value in manifest.items() if key != "publishConfig"}


def explain(top: Path, done: Any, what: str) -> str:
    """A file that both treat otherwise counts if npm treats it as ReleaseKit does."""
    lines = [_FILE.fullmatch(line) for line in what.splitlines()]
    if "rk-119" in done.out:
        return "npm.md: A package whose tarball does not contain its bundled dependencies fails"
    if done.refuses("RK-221"):
        return "limits.md: A name, version or table that npm corrects when it publishes"
    if re.fullmatch(r"\S+: \S+bin.js is 0o111 here, and 0o0 there", what):
        return "npm.md: those of `publishConfig.bin` in both"
    if "No local workspace found for this range" in what:
        return "npm.md: `workspace:../core`, yarn's `workspace:packages/core`"
    if "jsr:" in what:
        return "npm.md: in `peerDependencies` too, where yarn leaves `jsr:`"
    if not all(lines):
        return ""
    npm: Tarballs = {}
    for path in top.rglob(MANIFEST):
        if is_own(path.relative_to(top).as_posix()) and not packing.read_json(path).get("private"):
            scratch = Path(tempfile.mkdtemp(dir=top.parent))
            with contextlib.suppress(subprocess.CalledProcessError):
                npm |= pack_by_npm(path.parent, scratch, alone=True)
    packed = {name: packing.contents(data) for name, data in npm.items()}
    for found in filter(None, lines):
        tarball, who, name = found.groups()
        if (name in packed.get(tarball, {})) != (who == "ReleaseKit"):
            return ""
    return "npm.md: Exactly what `npm pack`, with the npm on PATH (9 or later), would put there"
