"""What PyPI refuses, as warehouse's own code says it of what its tests send, and of addresses and
URLs that its libraries are tested with.
"""

from __future__ import annotations

import functools
import io
import re
import tarfile
import zipfile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from packaging.metadata import parse_email
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

import distributions
from peers.pypi import tools
from peers.pypi.tables import read_rows, read_texts
from peers.scenarios import EQUAL, Case, Verdict
from releasekit.ecosystems.pypi.distribution import find_warnings, make_form, read_metadata
from releasekit.ecosystems.pypi.refused import is_platform, is_prohibited
from releasekit.errors import ReleasekitError
from releasekit.model import Package, PackageId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_FORM: Final = {
    "summary": "Summary", "description": "", "home_page": "Home-Page", "keywords": "Keywords",
    "download_url": "Download-URL", "author": "Author", "author_email": "Author-Email",
    "maintainer": "Maintainer", "maintainer_email": "Maintainer-Email", "license": "License",
    "license_expression": "License-Expression", "license_file": "License-File",
    "classifiers": "Classifier", "requires_dist": "Requires-Dist", "dynamic": "Dynamic",
    "requires_python": "Requires-Python", "project_urls": "Project-URL", "name": "Name",
    "provides_dist": "Provides-Dist", "obsoletes_dist": "Obsoletes-Dist", "version": "Version",
    "provides_extra": "Provides-Extra", "metadata_version": "Metadata-Version",
    "description_content_type": "Description-Content-Type", "import_name": "Import-Name",
    "import_namespace": "Import-Namespace", "platform": "Platform",
}  # fmt: skip
_BASE: Final = "Metadata-Version: 2.1\nName: spam\nVersion: 2.0\n"
# Each field of https://packaging.python.org/en/latest/specifications/core-metadata/, but a licence.
_EVERY: Final = """\
Metadata-Version: 2.5
Name: Spam.one
Version: 2.0
Dynamic: Requires-Dist
Platform: Linux
Platform: BeOS
Supported-Platform: RedHat 7.2
Summary: A summary: short
Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM
Keywords: dog,cat puppy
Home-Page: https://example.com/home
Download-URL: https://example.com/file
Author: Ana
Author-Email: Ana <ana@example.com>
Maintainer: Ben
Maintainer-Email: ben@example.com
Classifier: Topic :: Utilities
Classifier: Environment :: Console
Requires-Dist: eggs (>=1)
Requires-Dist: ham[x] ; extra == "more"
Requires-Python: >=3.8
Requires-External: libpng (>=1.5)
Project-URL: Docs, https://example.com/a,b
Project-URL: Code, https://example.com/code
Provides-Extra: more
Provides-Dist: other
Obsoletes-Dist: older
Requires: sys
Provides: email
Obsoletes: gmail
Import-Name: spam
Import-Name: spam.one
Import-Namespace: acme
"""
_BODY: Final = "\n# Spam\n\nTwo *lines*.\n"
_TAG: Final = re.compile(r"(?:any|win|linux|many|musl|macos|ios|android|pyemscripten)\w*")
_ADDRESS: Final = re.compile(r"[^\s,<>()\"]+@[^\s,<>()\"]+")
_URL: Final = re.compile(r"[a-zA-Z][\w+.-]*:[^\n]+")


def read_forms(warehouse: Path) -> Iterator[Case]:
    """Metadata that warehouse's tests send."""
    tools.prepare()
    sent = [
        (name, given["text"] if "text" in given else _write_email(given["form"]))
        for name, given in tools.ask("harvest", warehouse=str(warehouse))["given"]
    ]
    for name, row in read_rows(warehouse / "tests/unit/forklift/test_legacy.py"):
        if isinstance(row.get("post_data"), dict):
            sent.append((name, _write_email([*row["post_data"].items()])))
    for number, (name, text) in enumerate(sent):
        yield Case(
            name=f"{name}#{number}", judge=functools.partial(_judge_text, str(warehouse), text)
        )


def read_addresses(warehouse: Path, validator: Path) -> Iterator[Case]:
    tools.prepare()
    found: dict[str, None] = {}
    for path in sorted(validator.glob("tests/test_*.py")):
        found |= dict.fromkeys(filter(_ADDRESS.fullmatch, read_texts(path)))
    for number, address in enumerate(found):
        text = f"{_BASE}Author-Email: {address}\n"
        judge = functools.partial(_judge_text, str(warehouse), text)
        yield Case(name=f"email-validator#{number}", judge=judge)


def read_urls(warehouse: Path, rfc3986: Path) -> Iterator[Case]:
    tools.prepare()
    found: dict[str, None] = {}
    for path in sorted(rfc3986.glob("tests/*.py")):
        found |= dict.fromkeys(filter(_URL.fullmatch, read_texts(path)))
    for number, url in enumerate(found):
        judge = functools.partial(_judge_text, str(warehouse), f"{_BASE}Project-URL: Home, {url}\n")
        yield Case(name=f"rfc3986#{number}", judge=judge)


def read_files(warehouse: Path) -> Iterator[Case]:
    """Names and contents of files that warehouse's tests send."""
    tools.prepare()
    for number, (test, row) in enumerate(
        read_rows(warehouse / "tests/unit/forklift/test_legacy.py")
    ):
        version = row.get("version", "1.2.3" if "wrong_filename_version" in test else "1.0")
        project = row.get("project_name", "some.thing")
        names: list[str] = []
        if isinstance(row.get("filename"), str) and "upload" in test:
            names = [row["filename"].replace("{version}", str(version))]
            stem = names[0].partition("-")[0]
            project = row.get("project_name", stem)
        elif isinstance(row.get("plat"), str):
            names = [f"{project.replace('.', '_')}-{version}-cp34-none-{row['plat']}.whl"]
        elif isinstance(row.get("project_name"), str):
            stem = row.get("filename_prefix", project)
            names = [f"{stem}-{version}-py3-none-any.whl", f"{stem}-{version}.tar.gz"]
        for name in names:
            if "/" not in name and name.endswith((".whl", ".tar.gz")):
                text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
                judge = functools.partial(_judge_file, str(warehouse), name, text)
                yield Case(name=f"{test}#{number}: {name}", judge=judge)
    for name, content in _list_broken():
        judge = functools.partial(_judge_broken, str(warehouse), content)
        yield Case(name=f"content: {name}", judge=judge)


def read_tags(warehouse: Path, packaging: Path) -> Iterator[Case]:
    """Platform tags in the tests of both."""
    tools.prepare()
    paths = [warehouse / "tests/unit/forklift/test_legacy.py", packaging / "tests/test_tags.py"]
    paths.append(packaging / "tests/test_utils.py")
    found = {tag for path in paths for text in read_texts(path) for tag in _TAG.findall(text)}
    for tag in sorted(found):
        yield Case(name=tag, judge=functools.partial(_judge_tag, str(warehouse), tag))


def read_names(warehouse: Path) -> Iterator[Case]:
    tools.prepare()
    for test, row in read_rows(warehouse / "tests/unit/forklift/test_legacy.py"):
        if test == "test_fails_with_stdlib_names":
            judge = functools.partial(_judge_names, str(warehouse), [row["name"]])
            yield Case(name=f"{test}: {row['name']}", judge=judge)
    yield Case(name="all modules", judge=functools.partial(_judge_names, str(warehouse), []))


# What our pages say of what is left to PyPI.
_ADDRESSES: Final = (
    "warnings.md: ReleaseKit does not check addresses that have non-ASCII characters, or `--` in "
    "the domain."
)
_PLATFORMS: Final = "warnings.md: versions of macOS that are still to come are left to PyPI."
_MODULES: Final = "problems.md: modules in packages are known of the Python that runs ReleaseKit"


def _judge_tag(warehouse: str, tag: str, _directory: Path) -> Verdict:
    theirs = bool(tools.ask("platforms", warehouse=warehouse, tags=[tag])["valid"])
    if theirs == is_platform(tag):
        return EQUAL
    if not theirs and tag.startswith("macosx"):
        return Verdict("explained", _PLATFORMS)
    return Verdict("fault", f"PyPI {'takes' if theirs else 'refuses'} the platform tag {tag}")


def _judge_names(warehouse: str, names: Sequence[str], _directory: Path) -> Verdict:
    prohibited = set(tools.ask("names", warehouse=warehouse)["prohibited"])
    asked = [canonicalize_name(each) for each in names] or sorted(prohibited)
    wrong = [each for each in asked if (each in prohibited) != is_prohibited(each)]
    if wrong and all("-" in each for each in wrong):
        return Verdict("explained", _MODULES)
    return Verdict("fault", f"{len(wrong)}: {wrong}") if wrong else EQUAL


def _write_email(form: Sequence[Sequence[str]]) -> str:
    lines, body = [], ""
    for key, value in form:
        if key == "description":
            body = value
        elif key in _FORM:
            lines.append(f"{_FORM[key]}: {value}")
    return "\n".join([*lines, "", body])


def _judge_text(warehouse: str, text: str, directory: Path) -> Verdict:
    raw, _ = parse_email(text)
    try:
        stem = canonicalize_name(raw.get("name", "")).replace("-", "_")
        version = str(Version(raw.get("version", "")))
    except InvalidVersion:
        stem, version = "spam", raw.get("version", "")
    licenses = [each for each in raw.get("license_files", []) if "/" not in each]
    path = directory / f"{stem}-{version}-py3-none-any.whl"
    if "/" in path.name[:-4]:
        return Verdict("unusable", "no file can be named like that")
    return _judge(warehouse, _write_wheel(path, text, licenses), text)


def _judge_file(warehouse: str, name: str, text: str, directory: Path) -> Verdict:
    path = directory / name
    if name.endswith(".whl"):
        _write_wheel(path, text, [])
    else:
        _write_sdist(path, text)
    return _judge(warehouse, path, text)


def _judge_broken(
    warehouse: str, write: Callable[[Path], tuple[Path, str]], directory: Path
) -> Verdict:
    path, text = write(directory)
    return _judge(warehouse, path, text)


def _judge(warehouse: str, path: Path, text: str) -> Verdict:
    ours = find_refusals([path], text)
    try:
        theirs = refuse_upload(warehouse, path)
    except ReleasekitError as error:
        theirs = str(error)
    if bool(ours) == bool(theirs):
        wrong = "" if ours else compare_form(path)
        return Verdict("fault", f"{wrong}\n{text}") if wrong else EQUAL
    if "is not a valid email address" in theirs and (not theirs.isascii() or "--" in theirs):
        return Verdict("explained", _ADDRESSES)
    if "unsupported platform tag 'macosx" in theirs:
        return Verdict("explained", _PLATFORMS)
    if theirs:
        return Verdict("fault", f"PyPI refuses it, and ReleaseKit would send it: {theirs}\n{text}")
    return Verdict("fault", f"PyPI takes it, and ReleaseKit refuses it: {ours}\n{text}")


def find_refusals(paths: Sequence[Path], text: str) -> list[str]:
    """Why ReleaseKit would not send these files of a package to PyPI."""
    raw, _ = parse_email(text)
    name, version = canonicalize_name(raw.get("name", "")), raw.get("version", "")
    artifacts = [distributions.artifact(path) for path in paths]
    directory = paths[0].parent / "none"
    package = Package(
        id=PackageId("pypi", name),
        version=version,
        directory=directory,
        manifest=directory / "pyproject.toml",
    )
    if "+" in version:
        return ["it has a local version"]  # as the plan says, before anything is built
    try:
        found = find_warnings(package, artifacts, on_pypi=True, classifiers=_list_classifiers())
        return [each.message for each in found if each.error]
    except ReleasekitError as error:
        return [str(error)]


def refuse_upload(warehouse: str, path: Path) -> str:
    """Why PyPI would refuse what ReleaseKit would send for a file."""
    form = _make_form(path)
    why: str = tools.ask("refused", warehouse=warehouse, path=str(path), form=form)["why"]
    return why


def compare_form(path: Path) -> str:
    """Where ReleaseKit would send another form with a file than twine, which takes it."""
    theirs = [*map(tuple, tools.ask("form", path=str(path))["form"])]
    # https://docs.pypi.org/api/upload/
    theirs += [(":action", "file_upload"), ("protocol_version", "1")] if theirs else []
    own, wanted = (sorted(each, key=itemgetter(0)) for each in (_make_form(path), theirs))
    return f"{path.name}: {own} is sent, not {wanted}" if theirs and own != wanted else ""


def _make_form(path: Path) -> list[tuple[str, str]]:
    artifact = distributions.artifact(path)
    with path.open("rb") as file:
        raw, _ = parse_email(read_metadata(file, path.name))
    return [
        (key, each)
        for key, value in make_form(artifact, raw).items()
        for each in (value if isinstance(value, list) else [value])
    ]


@functools.cache
def _list_classifiers() -> frozenset[str]:
    from trove_classifiers import sorted_classifiers  # noqa: PLC0415 - of the group for tests

    return frozenset(sorted_classifiers)


def _write_wheel(path: Path, text: str, licenses: Sequence[str], **others: str | None) -> Path:
    stem = "-".join(path.name.split("-")[:2])
    files: dict[str, str | None] = {"METADATA": text, "WHEEL": "Wheel-Version: 1.0\n"}
    files |= {f"licenses/{each}": "" for each in licenses} | {"RECORD": ""} | others
    files = {f"{stem}.dist-info/{name}": each for name, each in files.items() if each is not None}
    if files.get(f"{stem}.dist-info/RECORD") == "":
        files[f"{stem}.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content or "")
    return path


def _write_sdist(path: Path, text: str, *names: str, top: str = "") -> Path:
    top = top or path.name.removesuffix(".tar.gz")
    names = (f"{top}/README", *names)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {f"{top}/PKG-INFO": text, **dict.fromkeys(names, "")}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content.encode())
            archive.addfile(entry, io.BytesIO(content.encode()))
    return path


def _stem_of(text: str) -> str:
    return canonicalize_name(parse_email(text)[0]["name"]).replace("-", "_")


def _list_broken() -> Iterator[tuple[str, Callable[[Path], tuple[Path, str]]]]:
    """Of each check of contents in warehouse's `file_upload`, one that breaks it."""
    with_license = "Metadata-Version: 2.4\nName: spam\nVersion: 2.0\nLicense-File: LICENSE\n"

    def of_wheel(text: str = _BASE, **others: Any) -> Callable[[Path], tuple[Path, str]]:
        def write(directory: Path) -> tuple[Path, str]:
            path = directory / f"{_stem_of(text)}-2.0-py3-none-any.whl"
            return _write_wheel(path, text, [], **others), text

        return write

    def of_sdist(text: str, *names: str, top: str = "") -> Callable[[Path], tuple[Path, str]]:
        def write(directory: Path) -> tuple[Path, str]:
            path = directory / f"{_stem_of(text)}-2.0.tar.gz"
            return _write_sdist(path, text, *names, top=top), text

        return write

    points = "entry_points.txt"
    yield "wheel", of_wheel()
    yield "wheel without RECORD", of_wheel(RECORD=None)
    yield "wheel without WHEEL", of_wheel(WHEEL=None)
    yield "wheel without its license", of_wheel(with_license)
    yield "script", of_wheel(**{points: "[console_scripts]\na.b-c = d:e\n"})
    yield "script with a path", of_wheel(**{points: "[console_scripts]\na/b = d:e\n"})
    yield "scripts that are none", of_wheel(**{points: "a = b\n"})
    yield "scripts twice", of_wheel(**{points: "[gui_scripts]\na = b:c\na = b:d\n"})
    yield "script with a colon", of_wheel(**{points: "[console_scripts]\na: b\n"})
    yield "plugin with a path", of_wheel(**{points: "[acme]\na/b = d:e\n"})
    for field in ("License: MIT", "License-Expression: MIT\nLicense-File: LICENSE"):
        text = f"{_EVERY}{field}\n{_BODY}"
        yield f"wheel with {field.partition(':')[0]}", of_wheel(text, **{"licenses/LICENSE": "MIT"})
        yield f"sdist with {field.partition(':')[0]}", of_sdist(text, "spam_one-2.0/LICENSE")
    yield "sdist", of_sdist(_BASE)
    yield "sdist without its license", of_sdist(with_license)
    yield "sdist with its license", of_sdist(with_license, "spam-2.0/LICENSE")
    yield "sdist with two directories", of_sdist(_BASE, "other/README")
    yield "sdist with another directory", of_sdist(_BASE, top="other")
