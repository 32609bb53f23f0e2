"""The repositories that scripts of the go command write: what it says of their modules, and what
x/mod packs of them. https://go.dev/src/cmd/go/testdata/script/README
"""

from __future__ import annotations

import functools
import posixpath
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

from peers import ours
from peers.go import packing, txtar
from peers.go.asking import ELSEWHERE, ask, build, run_go
from peers.scenarios import EQUAL, Case, Files, Verdict
from world import facts, go
from world.test_world import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from peers.ours import Ran

_MODULE: Final = re.compile(rb"^[ \t]*module[ \t]+(\S+)", re.MULTILINE)
_GO: Final = re.compile(rb"^go 1\.(\d+)", re.MULTILINE)
_NEWEST: Final = 26
_EXPLAINED: Final = {
    r"\[RK-314\]": "go.md: a `replace` by a directory, or by another module under the name of one "
    "of this repository, because users of a module do not see its replacements.",
    r"is never published: its version is unknown": "go.md: A module that one of these requires as "
    "`v0.0.0`, or as `v0.0.0-00010101000000-000000000000`, counts too where a `replace`",
    r"go refuses it: .*(?s:.*)godebug": "go.md: a `godebug` that this go does not know.",
}


def read_scripts(checkout: Path, mod: Path) -> Iterator[Case]:
    program = build(mod)
    for path in sorted((checkout / "script").glob("*.txt")):
        _, files = txtar.read(path.read_bytes())
        for root in _list_roots(files):
            below = {
                name.removeprefix(f"{root}/"): data
                for name, data in files.items()
                if root == "." or name.startswith(f"{root}/")
            }
            judge = functools.partial(_judge_script, below, program)
            yield Case(name=f"{path.stem}::{root}", judge=judge)


def _list_roots(files: Mapping[str, bytes]) -> list[str]:
    """All of a script is one repository, unless it has two modules of one path, or workspaces below
    the root: then each of its outermost modules is one.
    """
    found = {
        posixpath.dirname(name) or ".": posixpath.basename(name)
        for name in sorted(files)
        if posixpath.basename(name) in {"go.mod", "go.work"}
    }
    if not found:
        return []
    named = [_MODULE.search(data) for name, data in files.items() if name.endswith("go.mod")]
    said = [each[1] for each in named if each]
    works = {directory for directory, name in found.items() if name == "go.work"}
    if "." in works or (not works and len(said) == len({*said})):
        return ["."]
    return [
        each
        for each in found
        if not any(each != other and each.startswith(f"{other}/") for other in found)
    ]


def _judge_script(files: Mapping[str, bytes], program: Path, directory: Path) -> Verdict:
    root = directory / "repository"
    root.mkdir()
    try:
        Files(files=files).write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    ours.commit(root)
    at = directory / "releasekit.toml"
    try:
        shape, expected = go.distilled(root, {})
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        said = error.stderr.decode() if isinstance(error, subprocess.CalledProcessError) else error
        if _is_newer(files):
            return Verdict("unusable", f"only a newer go could read it: {said}")
        return _judge_refusal(ours.plan(root), str(said))
    modules, versions = shape["modules"], expected.versions
    refusals = ask(program, "path", questions=[*versions])
    private = frozenset(path for path, why in zip(versions, refusals, strict=True) if why)
    public = {path: versions[path] for path in versions if path not in private}
    at.write_text(packing.options({modules[path]["at"]: public[path] for path in public}))
    planned = ours.plan(root, "--config-file", at)
    if refused := _ask_go(root, shape):
        return _judge_refusal(planned, refused)
    if planned.refuses("RK-210") and not modules:
        return EQUAL  # a go.work that uses nothing
    if planned.code:
        return _explain(planned.error)
    expected = facts.Expected(
        versions=versions, private=private, hard=expected.hard, soft=expected.soft
    )
    document = {"ecosystem": "go", "at": ".", "config": {}, "shape": shape}
    world = facts.read("go", {**document, "expected": expected.document()})
    if wrong := differences(planned.packages, world):
        return Verdict("fault", f"{wrong}\n{planned.error}")
    packed = [
        packing.Module(path=path, version=version, below=modules[path]["at"])
        for path, version in public.items()
    ]
    return packing.judge(root, at, packed, program) if packed else EQUAL


def _is_newer(files: Mapping[str, bytes]) -> bool:
    found = (_GO.search(data) for name, data in files.items() if name.endswith("go.mod"))
    return any(each and int(each[1]) > _NEWEST for each in found)


def _judge_refusal(planned: Ran, said: str) -> Verdict:
    if planned.code:
        return EQUAL
    return _explain(f"go refuses it: {said}\n{planned.out}{planned.error}")


def _explain(said: str) -> Verdict:
    for pattern, sentence in _EXPLAINED.items():
        if re.search(pattern, said):
            return Verdict("explained", sentence)
    return Verdict("fault", said)


def _ask_go(root: Path, shape: Mapping[str, Any]) -> str:
    """Why the go command refuses the workspace, or one of its modules."""
    places = ["."] if "work" in shape else [kept["at"] for kept in shape["modules"].values()]
    for place in places:
        done = run_go(root / place, "list", "-m", "-json")
        if done.returncode and not ELSEWHERE.search(done.stderr):
            return done.stderr
    return ""
