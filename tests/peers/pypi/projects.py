"""Projects that the tests of build backends have on disk or write, beside what the backend itself
makes of them: names, versions, metadata, files.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import shutil
import tarfile
import textwrap
import tomllib
import zipfile
from email.parser import HeaderParser
from typing import TYPE_CHECKING, Any, Final

import tomlkit
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from tomlkit.exceptions import TOMLKitError

from peers import ours
from peers.pypi import tools, wire
from peers.pypi.tables import read_texts
from peers.scenarios import EQUAL, Case, Files, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LEGACY: Final = "setuptools.build_meta:__legacy__"
# What a literal without a build system is built with, by the project whose tests write it.
_DEFAULTS: Final = {
    "poetry-core": {"requires": ["poetry-core"], "build-backend": "poetry.core.masonry.api"},
    "hatch": {"requires": ["hatchling"], "build-backend": "hatchling.build"},
    "setuptools": {"requires": ["setuptools"], "build-backend": "setuptools.build_meta"},
    "setuptools-scm": {"requires": ["setuptools"], "build-backend": "setuptools.build_meta"},
}
# Pages that say where ReleaseKit differs, by a part of what it says.
_READ: Final = "limits.md: Names, versions and dependencies are read as the standard has them."
_PAGES: Final = (
    ("has [tool.poetry] and no [project]", _READ),
    ("ReleaseKit reads only [project] in", _READ),
    ("a path that exists only on this machine", "pypi.md: the plan refuses URLs that users could"),
    ("so uv does not treat it as a package", "pypi.md: is published only if `packages`"),
    ("tool.uv.package is false", "pypi.md: is published only if `packages`"),
    ("its classifier 'Private ::", "pypi.md: A package is never published if it has a classifier"),
    (
        "and no member of the workspace has that name",
        "problems.md: `tool.uv.sources` names the workspace or a path",
    ),
    (
        "which setuptools adds to the version",
        "problems.md: make setuptools build another version than",
    ),
    ("tool.poetry.package-mode is false", "pypi.md: A package is never published if"),
    ("publish.index.disable is true", "pypi.md: A package is never published if"),
)


def read_fixtures(name: str, pattern: str, checkout: Path) -> Iterator[Case]:
    tools.prepare()
    for path in sorted(checkout.glob(pattern)):
        place = path.parent.relative_to(checkout).as_posix()
        judge = functools.partial(_judge_fixture, path.parent, _DEFAULTS.get(name))
        yield Case(name=f"{name}: {place}", judge=judge)


def read_literals(name: str, pattern: str, checkout: Path) -> Iterator[Case]:
    """Manifests that tests write as one text, or give as one dictionary."""
    tools.prepare()
    for path in sorted(checkout.glob(pattern)):
        place = path.relative_to(checkout).as_posix()
        found = [*_list_texts(path), *_list_dictionaries(path)]
        for number, document in enumerate(found):
            if "build-system" not in document:
                document["build-system"] = _DEFAULTS.get(name)
            if document["build-system"]:
                judge = functools.partial(_judge_literal, document)
                yield Case(name=f"{name}: {place}#{number}", judge=judge)


def _list_texts(path: Path) -> Iterator[dict[str, Any]]:
    for text in read_texts(path):
        if "[project]" in text:
            try:
                document = tomllib.loads(textwrap.dedent(text))
            except tomllib.TOMLDecodeError:
                continue
            if isinstance(document.get("project"), dict):
                yield document


def _list_dictionaries(path: Path) -> Iterator[dict[str, Any]]:
    """Without name or version, they get some: what is tested is another field."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            try:
                document = ast.literal_eval(node)
            except ValueError:
                continue
            if isinstance(document.get("project"), dict):
                project = document["project"]
                project.setdefault("name", "foo")
                if "version" not in str(project.get("dynamic")):
                    project.setdefault("version", "1.0")
                yield document


def _judge_fixture(source: Path, system: object, directory: Path) -> Verdict:
    """A `system` is what a manifest without one is built with by the tests that it is of."""
    root = directory / "repository"
    shutil.copytree(source, root, symlinks=True)
    path = root / "pyproject.toml"
    with contextlib.suppress(ValueError, KeyError, TypeError, TOMLKitError):
        document: Any = tomlkit.parse(path.read_text())
        if system:
            document.setdefault("build-system", system)
        # Both sides build with what is there: old projects exclude the newest backend.
        wanted = map(Requirement, document["build-system"]["requires"])
        document["build-system"]["requires"] = [each.name for each in wanted]
        path.write_text(tomlkit.dumps(document))
    return _judge(root, directory, packs=True)


def _judge_literal(document: Mapping[str, Any], directory: Path) -> Verdict:
    root = directory / "repository"
    try:
        text = tomlkit.dumps(document)
    except Exception as error:  # noqa: BLE001 # whatever TOML has no value for
        return Verdict("unusable", f"TOML cannot hold it: {error}")
    name = document["project"].get("name")
    module = canonicalize_name(name).replace("-", "_") if isinstance(name, str) else "foo"
    files = {"pyproject.toml": text, f"{module or 'foo'}/__init__.py": '__version__ = "1.0"\n'}
    try:
        Files(files={**files, "README.md": "A readme.\n", "LICENSE": "A license.\n"}).write(root)
    except ValueError as error:
        return Verdict("unusable", str(error))
    return _judge(root, directory)


def _judge(root: Path, directory: Path, *, packs: bool = False) -> Verdict:
    """`packs` says that there is more to pack than a module that was made up."""
    if (root / ".git").exists() or (root / "releasekit.toml").exists():
        return Verdict("unusable", "it is a repository already")
    ours.commit(root)
    planned = ours.plan(root)
    if planned.refuses("RK-210") and _has_project(root):
        return Verdict("fault", planned.error)
    # The backend is not asked about what a page says, which saves most of the time.
    if planned.code and (page := _explain(planned)):
        return page
    if "there is no package here" in planned.error and not _has_project(root):
        return Verdict("explained", _READ)
    told = _ask_backend(root)
    if planned.code:
        if isinstance(told, str):
            return EQUAL
        # All backends are in one environment of the judge, and may find each other there.
        if "cannot be installed" in planned.error or "No module named" in planned.error:
            return Verdict("unusable", f"its build needs what is not here: {planned.error}")
        return Verdict("fault", f"only ReleaseKit refuses\n{planned.error}")
    if not planned.packages:
        shown = ours.run("plan", root, "--registry", f"dir:{directory / 'none'}")
        return _explain(shown) or Verdict("fault", f"nothing is published\n{shown.out}")
    if isinstance(told, str) and not packs:
        return EQUAL  # each build of ReleaseKit calls the same hook
    if not isinstance(told, str):
        (package,) = planned.packages
        wanted: tuple[str, str]
        try:
            wanted = canonicalize_name(told["Name"]), str(Version(told["Version"]))
        except InvalidVersion:
            wanted = told["Name"], told["Version"]
        if (package["name"], package["version"]) != wanted:
            why = f"{package['name']} {package['version']} is planned, not {wanted}"
            return Verdict("fault", why)
    if not packs:
        return EQUAL
    registry = directory / "published"
    published = ours.run(
        "publish", root, "--registry", f"dir:{registry}", "--build-sandbox", "off",
        "--state-directory", directory / "state",
    )  # fmt: skip
    if isinstance(told, str):
        if published.code:
            return EQUAL
        return Verdict("fault", f"the backend refuses, ReleaseKit publishes\n{told[-1500:]}")
    return _compare_files(root, directory, registry, published)


def _has_project(root: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return "project" in tomllib.loads((root / "pyproject.toml").read_text())
    return False


def _ask_backend(root: Path) -> Mapping[str, str] | str:
    """The headers of its METADATA, or why there are none."""
    try:
        request = _find_backend(root)
        return dict(HeaderParser().parsestr(tools.ask("metadata", **request)["metadata"]))
    except ValueError as error:
        return str(error)


def _find_backend(root: Path) -> dict[str, Any]:
    """Raises ValueError where its manifest names none."""
    path = root / "pyproject.toml"
    system = tomllib.loads(path.read_text()).get("build-system", {})
    uses_git = "scm" in str(system) or "vcs" in str(system)
    return {
        "more": [str(tools.PLUGINS)] if uses_git else [],
        "source": str(root),
        "backend": system.get("build-backend", _LEGACY),
        "path": system.get("backend-path", []),
    }


def _compare_files(root: Path, directory: Path, registry: Path, published: ours.Ran) -> Verdict:
    theirs = directory / "theirs"
    theirs.mkdir()
    try:
        request = {**_find_backend(root), "into": str(theirs)}
        sdist = theirs / tools.ask("sdist", **request)["file"]
        tools.ask("wheel", **request, sdist=str(sdist))
    except ValueError as error:
        if published.code:
            return EQUAL
        return Verdict("fault", f"only the backend fails to build\n{str(error)[-1500:]}")
    if published.code:
        said = published.out + published.error
        if "cannot be installed" in said:
            return Verdict("unusable", f"its build needs what is not here: {said[-1000:]}")
        # All backends are in one environment of the judge.
        backend = request["backend"].partition(".")[0]
        system = tomllib.loads((root / "pyproject.toml").read_text()).get("build-system", {})
        requires = system.get("requires", ["setuptools"])
        if f"No module named '{backend}'" in said and backend not in map(_module_of, requires):
            return Verdict("unusable", "its build system does not require its own backend")
        return Verdict("fault", f"only ReleaseKit fails to build\n{said[-3000:]}")
    made = {path.name: path for path in registry.rglob("*") if _is_package(path)}
    wanted = {path.name: path for path in theirs.iterdir() if _is_package(path)}
    if made.keys() != wanted.keys():
        return Verdict("fault", f"{sorted(made)} are built, not {sorted(wanted)}")
    wrong = []
    for name, path in made.items():
        names, metadata = _read(path)
        their_names, their_metadata = _read(wanted[name])
        wrong += [f"{name}: {each}" for each in sorted(names ^ their_names)]
        if metadata != their_metadata:
            wrong.append(f"{name}: {metadata!r} is not {their_metadata!r}")
    return Verdict("fault", "\n".join(wrong)) if wrong else _judge_wire(made, metadata_of(made))


def _module_of(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name).replace("-", "_")


def _judge_wire(made: Mapping[str, Path], text: str) -> Verdict:
    """What twine refuses of it, ReleaseKit refuses too."""
    said = tools.ask("twine", paths=[*map(str, made.values())])["why"]
    refused = wire.find_refusals([*made.values()], text)
    if "ERROR" in said and not refused and "long_description" not in said:
        return Verdict("fault", f"twine refuses it, and ReleaseKit would send it\n{said}")
    wrong = "\n".join(filter(None, map(wire.compare_form, made.values())))
    return Verdict("fault", wrong) if wrong else EQUAL


def metadata_of(made: Mapping[str, Path]) -> str:
    return next((_read(path)[1] for path in made.values()), "")


def _is_package(path: Path) -> bool:
    return path.name.endswith((".whl", ".tar.gz"))


def _read(path: Path) -> tuple[set[str], str]:
    """The names of the files, and the core metadata."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            found = [each for each in names if each.endswith(".dist-info/METADATA")]
            return names, archive.read(found[0]).decode()
    with tarfile.open(path) as tar:
        members = {member.name: member for member in tar.getmembers() if not member.isdir()}
        top = path.name.removesuffix(".tar.gz")
        file = tar.extractfile(members[f"{top}/PKG-INFO"])
        return set(members), file.read().decode() if file else ""


def _explain(ran: ours.Ran) -> Verdict | None:
    said = ran.out + ran.error
    return next((Verdict("explained", page) for part, page in _PAGES if part in said), None)
