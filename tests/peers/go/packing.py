"""What ReleaseKit publishes of modules, beside the zip that x/mod makes of the same commit."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peers import ours
from peers.go.asking import ELSEWHERE, ask
from peers.go.tags import download, find_root
from peers.scenarios import EQUAL, Verdict
from releasekit.ecosystems.go.module_zip import hash_of_zip
from releasekit.ecosystems.go.paths import escape
from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Module:
    """`below` is its directory in the repository, `.` for the root."""

    path: str
    version: str
    below: str


def options(versions: Mapping[str, str]) -> str:
    """releasekit.toml: nothing is compiled, since fixtures need what no proxy here has."""
    rows = "".join(f"{_quote(key)} = {_quote(value)}\n" for key, value in versions.items())
    return f"[go]\nverify = false\n\n[go.versions]\n{rows}"


def _quote(text: str) -> str:
    escaped = "".join(
        each if each.isprintable() and each not in '"\\' else f"\\U{ord(each):08x}" for each in text
    )
    return f'"{escaped}"'


def judge(root: Path, config: Path, modules: Iterable[Module], program: Path) -> Verdict:
    """What each of the modules of HEAD holds, and its h1, without an edit of ours."""
    registry = root.parent / "registry"
    ran = ours.run(
        "publish",
        root,
        *("--config-file", config, "--registry", f"dir:{registry}", "--pin", "none"),
        *("--state-directory", root.parent / "state", "--build-sandbox", "off"),
    )
    asked = [
        {
            "Root": str(root),
            "Revision": "HEAD",
            "Below": "" if each.below == "." else each.below,
            "Path": each.path,
            "Version": each.version,
        }
        for each in modules
    ]
    wrong, published = [], {}
    for module, theirs in zip(modules, ask(program, "zip", questions=asked), strict=True):
        at = registry / "go" / escape(module.path) / "@v" / f"{escape(module.version)}.zip"
        if theirs["Error"]:
            if at.is_file():
                wrong.append(f"{module}: x/mod refuses it: {theirs['Error']}")
            continue
        if not at.is_file():
            wrong.append(f"{module}: not published")
            continue
        wrong += _compare(module, at, theirs, root)
        wrong += _compare_pages(module, at, root)
        published[module] = at
    wrong += _compare_tags(root, published)
    return Verdict("fault", f"{wrong}\n{ran.out}{ran.error}") if wrong else EQUAL


def _compare_tags(root: Path, published: Mapping[Module, Path]) -> Iterator[str]:
    """Of modules whose paths end with their directories, so that the go command looks there."""
    roots = {each: above for each in published if (above := find_root(each.path, each.below))}
    # A repository has one address.
    root_path, _ = next(iter(Counter(roots.values()).most_common()), ("", 0))
    there = [each for each, above in roots.items() if above == root_path]
    for module in there:
        bundle = published[module].with_suffix(".bundle")
        git(root, "fetch", "--quiet", str(bundle), "refs/tags/*:refs/tags/*")
    queries = [f"{each.path}@{each.version}" for each in there]
    found = download(root, root_path, queries) if there else ()
    for module, theirs in zip(there, found, strict=True):
        if (why := theirs.get("Error")) and not ELSEWHERE.search(why):
            yield f"{module}: go does not find it: {why}"
        elif not why and theirs["Sum"] != hash_of_zip(published[module].read_bytes()):
            yield f"{module}: its tag has other files"


def _compare_pages(module: Module, at: Path, root: Path) -> list[str]:
    """What the go command reads before the zip: https://go.dev/ref/mod#goproxy-protocol"""
    place = "" if module.below == "." else f"{module.below}/"
    argv = ["git", "-C", str(root), "show", f"HEAD:{place}go.mod"]
    wanted = subprocess.run(argv, capture_output=True, check=True).stdout
    stem = at.name.removesuffix(".zip")
    info = json.loads((at.parent / f"{stem}.info").read_bytes())
    wrong = {
        "go.mod": (at.parent / f"{stem}.mod").read_bytes() != wanted,
        "version": info["Version"] != module.version,
        "list": (at.parent / "list").read_text().split() != [module.version],
    }
    return [f"{module}: other {each}" for each, is_wrong in wrong.items() if is_wrong]


def _compare(module: Module, at: Path, theirs: Mapping[str, object], root: Path) -> list[str]:
    with zipfile.ZipFile(at) as archive:
        own = {
            each.filename: hashlib.sha256(archive.read(each)).hexdigest()
            for each in archive.infolist()
        }
    files = dict(theirs["Files"])  # type: ignore[call-overload]
    licence = f"{module.path}@{module.version}/LICENSE"
    # The go command adds it where it makes the same zip: https://go.dev/ref/mod#vcs-license
    if module.below != "." and licence not in files and (root / "LICENSE").is_file():
        files[licence] = hashlib.sha256((root / "LICENSE").read_bytes()).hexdigest()
    elif hash_of_zip(at.read_bytes()) != theirs["H1"]:
        return [f"{module}: other h1: {sorted(own.items() ^ files.items())}"]
    return [f"{module}: other files: {each}" for each in sorted(own.items() ^ files.items())]
