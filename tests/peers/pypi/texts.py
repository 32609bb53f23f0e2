"""Requirements, versions and names of files in packaging's own tests, as it reads them and as
ReleaseKit does where it reads or edits them by itself.
"""

from __future__ import annotations

import functools
import tomllib
from typing import TYPE_CHECKING, Final

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidName,
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from peers.pypi.tables import read_texts
from peers.scenarios import EQUAL, Case, Verdict
from releasekit.ecosystems.pypi.manifest import is_requirement, parse_project, pin
from releasekit.ecosystems.pypi.simple_index import parse_filename
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PINNED: Final = "1.0"


def read_literals(checkout: Path) -> Iterator[Case]:
    judges: tuple[tuple[str, str, Callable[[str, Path], Verdict]], ...] = (
        ("test_requirements.py", "requirement", _judge_requirement),
        ("test_specifiers.py", "version", _judge_version),
        ("test_version.py", "version", _judge_version),
        ("test_utils.py", "name", _judge_name),
        ("test_utils.py", "file", _judge_file),
    )
    seen = set()
    for file, kind, judge in judges:
        for text in read_texts(checkout / "tests" / file):
            if len(text) < 100 and (kind, text) not in seen:
                seen.add((kind, text))
                yield Case(name=f"{kind} {text!r}", judge=functools.partial(judge, text))


def _judge_requirement(text: str, _directory: Path) -> Verdict:
    """Pinned, it differs in its specifier alone."""
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return Verdict("fault", "only ReleaseKit reads it") if is_requirement(text) else EQUAL
    name = canonicalize_name(wanted.name)
    document = {"project": {"name": "own", "dependencies": [text]}}
    pinned = tomllib.loads(pin(tomlkit.dumps(document), {name: _PINNED}, "exact"))
    (found,) = map(Requirement, pinned["project"]["dependencies"])
    if not wanted.url and wanted.specifier.contains(_PINNED, prereleases=True):
        wanted.specifier = Requirement(f"a=={_PINNED}").specifier
    return EQUAL if found == wanted else Verdict("fault", f"{found} is not {wanted}")


def _judge_version(text: str, directory: Path) -> Verdict:
    try:
        wanted = str(Version(text))
    except InvalidVersion:
        wanted = ""
    return _compare_project({"name": "own", "version": text}, "version", wanted, directory)


def _judge_name(text: str, directory: Path) -> Verdict:
    try:
        wanted: str = canonicalize_name(text, validate=True)
    except InvalidName:
        wanted = ""
    return _compare_project({"name": text, "version": "1"}, "name", wanted, directory)


def _compare_project(project: dict[str, str], field: str, wanted: str, directory: Path) -> Verdict:
    try:
        found = parse_project({"project": project}, directory / "pyproject.toml")
        said = getattr(found, field)
    except ConfigError:
        said = ""
    return EQUAL if said == wanted else Verdict("fault", f"{said!r} is not {wanted!r}")


def _judge_file(text: str, _directory: Path) -> Verdict:
    try:
        if text.endswith(".whl"):
            name, version, _, _ = parse_wheel_filename(text)
            wanted: object = name, version, "bdist_wheel"
        else:
            wanted = (*parse_sdist_filename(text), "sdist")
    except (InvalidWheelFilename, InvalidSdistFilename):
        wanted = None
    found = parse_filename(text)
    return EQUAL if found == wanted else Verdict("fault", f"{found} is not {wanted}")
