"""Projects and workspaces that uv's tests write, read out of their source."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from peers import ours
from peers.pypi import tools
from peers.scenarios import EQUAL, Case, Files, Verdict
from world import facts
from world.test_world import differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TEST: Final = re.compile(r"^\s*(?:async )?fn (\w+)\(\) ", re.MULTILINE)
_PLACE: Final = (
    r"(?P<{0}base>context\s*\.temp_dir|[a-z_]\w*)"
    r'(?P<{0}below>(?:\s*\.(?:child|join)\(\s*"[^"]*"\s*\))*)'
)
_TEXT: Final = (
    r'(?:&?(?:indoc::)?(?:indoc|formatdoc)!\s*[({{]\s*)?(?:r(?P<h>#*)"(?P<raw>.*?)"(?P=h)'
    r'|"(?P<plain>(?:[^"\\]|\\.)*)")'
)
_EVENT: Final = re.compile(
    r"let (?:mut )?(?P<name>\w+) = &?"
    + _PLACE.format("d")
    + r";|"
    + _PLACE.format("w")
    + r"\s*\.(?:write_str\(\s*(?:"
    + _TEXT.replace("{{", "{")
    + r")?|(?P<touch>touch\(\)))"
    + r"|(?P<shot>uv_snapshot!|\.assert\(\))",
    re.DOTALL,
)
_BELOW: Final = re.compile(r'\(\s*"([^"]*)"\s*\)')


def read_workspaces(checkout: Path) -> Iterator[Case]:
    tools.prepare()
    seen = set()
    for folder in ("lock", "project", "sync", "workspace", "build", "it"):
        for path in sorted(checkout.glob(f"crates/uv/tests/{folder}/*.rs")):
            for name, files in _read_suite(path):
                text = str(sorted((files or Files(files={})).files.items()))
                if "[tool.uv.workspace]" in text and text not in seen:
                    seen.add(text)
                    yield Case(name=f"uv {name}", judge=functools.partial(_judge, files))


def _read_suite(path: Path) -> Iterator[tuple[str, Files | None]]:
    """What lies there at each command of each test, where that has changed; None for what a test
    computes. Of many thousand single projects, which are all alike, none is taken.
    """
    text = path.read_text()
    starts = [*_TEST.finditer(text)]
    ends = [*(each.start() for each in starts[1:]), *[len(text)][: len(starts)]]
    for test, end in zip(starts, ends, strict=True):
        known: dict[str, str] = {"context.temp_dir": "."}
        files: dict[str, str] | None = {}
        number, is_new = 0, False
        for event in _EVENT.finditer(text, test.end(), end):
            if event["name"]:
                if (base := "".join(event["dbase"].split())) in known:
                    known[event["name"]] = _join(known[base], event["dbelow"])
            elif event["shot"]:
                manifest = files is None or "pyproject.toml" in files
                if is_new and manifest:
                    yield (
                        f"{path.stem}::{test[1]}#{number}",
                        None if files is None else Files(files={**files}),
                    )
                    number, is_new = number + 1, False
            elif (base := "".join(event["wbase"].split())) in known and files is not None:
                place = _join(known[base], event["wbelow"])
                content = "" if event["touch"] else _value(event)
                is_new = True
                if content is not None:
                    files[place] = content
                elif place.endswith((".toml", ".py")):
                    files = None


def _join(base: str, below: str) -> str:
    return PurePosixPath(base, *_BELOW.findall(below)).as_posix()


def _value(event: re.Match[str]) -> str | None:
    if event["raw"] is not None:
        return None if "format" in event[0].partition("r#")[0] else textwrap.dedent(event["raw"])
    if event["plain"] is not None and "\\" not in event["plain"]:
        return event["plain"]
    return None


def _judge(files: Files | None, directory: Path) -> Verdict:
    """Members, versions and edges, beside `uv workspace list`."""
    if files is None:
        return Verdict("unusable", "the test computes what it writes")
    root = directory / "repository"
    try:
        files.write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    ours.commit(root)
    argv = [sys.executable, "-m", "uv", "workspace", "list", "--paths"]
    listed = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    planned = ours.plan(root)
    if listed.returncode:
        if planned.refuses("RK-210") and "[project]" in str(files.files):
            return Verdict("fault", f"uv refuses it, and ReleaseKit finds nothing\n{planned.error}")
        if planned.code or not planned.packages:
            return EQUAL
        if "was requested as both `editable" in listed.stderr:
            return Verdict("explained", "pypi.md: Development dependency groups are not published")
        return Verdict("fault", f"uv refuses it\n{listed.stderr}{planned.out[:500]}")
    members = [Path(line) for line in listed.stdout.splitlines()]
    try:
        expected = _read_members(members)
    except ValueError as error:
        if planned.code and not planned.refuses("RK-101"):
            return _explain(planned) or Verdict("fault", f"{error!r}\n{planned.error}")
        return Verdict("unusable", f"no build backend is asked here: {error!r}")
    if planned.refuses("RK-210") and not expected.versions.keys() - expected.private:
        return EQUAL  # there is nothing to publish
    if planned.code:
        return _explain(planned) or Verdict("fault", f"only ReleaseKit refuses\n{planned.error}")
    document = {"ecosystem": "pypi", "at": ".", "config": {}, "shape": {}}
    world = facts.read("uv", {**document, "expected": expected.document()})
    wrong = differences(planned.packages, world)
    return Verdict("fault", f"{wrong}\n{planned.error}") if wrong else EQUAL


def _explain(planned: ours.Ran) -> Verdict | None:
    if planned.refuses("RK-223"):
        return Verdict("explained", "problems.md: An entry names a directory without a manifest")
    if planned.refuses("RK-346"):
        return Verdict("explained", "pypi.md: Refuses to build such a package")
    if planned.refuses("RK-304"):
        return Verdict(
            "explained", "problems.md: A package depends on one that is never published."
        )
    return None


def _read_members(members: list[Path]) -> facts.Expected:
    documents = [tomllib.loads((each / "pyproject.toml").read_text()) for each in members]
    projects = {str(canonicalize_name(each["project"]["name"])): each for each in documents}
    versions = {name: _find_version(each["project"]) for name, each in projects.items()}
    hard, soft, idle = set(), set(), set()
    for name, document in projects.items():
        project = document["project"]
        for text in project.get("dependencies", []):
            hard |= _edges(name, text, versions)
            # Of which extra, and with what it asks for in turn, is not followed here.
            for _, on in _edges(name, text, versions) if "[" in text else ():
                extras = projects[on]["project"].get("optional-dependencies", {}).values()
                idle |= {
                    edge for each in extras for one in each for edge in _edges(name, one, versions)
                }
        for text in document.get("build-system", {}).get("requires", []):
            hard |= _edges(name, text, versions)
        for texts in project.get("optional-dependencies", {}).values():
            for text in texts:
                soft |= _edges(name, text, versions)
    private = {name for name, each in projects.items() if _is_private(each)}
    return facts.Expected(
        versions={name: each or "0" for name, each in versions.items()},
        private=frozenset(private),
        hard=frozenset(hard),
        soft=frozenset(soft),
        idle=frozenset(idle),
    )


def _find_version(project: Mapping[str, Any]) -> str:
    if computed := {"dependencies", "version"} & {*project.get("dynamic", ())}:
        raise ValueError(f"a backend computes {computed}")
    return str(Version(project["version"])) if "version" in project else ""


def _edges(name: str, text: str, versions: Mapping[str, str]) -> set[tuple[str, str]]:
    """None where another version is required: an index has that."""
    wanted = Requirement(text)
    on = canonicalize_name(wanted.name)
    if on == name or on not in versions:
        return set()
    is_ours = wanted.specifier.contains(versions[on] or "0", prereleases=True)
    return {(name, on)} if is_ours else set()


def _is_private(document: Mapping[str, Any]) -> bool:
    """https://docs.astral.sh/uv/concepts/projects/config/#project-packaging"""
    package = document.get("tool", {}).get("uv", {}).get("package")
    classifiers = document["project"].get("classifiers", ())
    if any(each.startswith("Private ::") for each in classifiers):
        return True
    return package is False or (package is None and "build-system" not in document)
