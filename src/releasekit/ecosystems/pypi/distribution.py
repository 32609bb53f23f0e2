"""What a built file says of itself: its core metadata, read without unpacking anything; and what is
wrong with it that an index takes all the same, or refuses too late.

https://packaging.python.org/en/latest/specifications/core-metadata/
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import IO, TYPE_CHECKING, Final, cast

from packaging.metadata import RawMetadata, parse_email
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from releasekit.ecosystems.dist_files import below
from releasekit.ecosystems.pypi.manifest import (
    MANIFEST,
    MAX_REQUIREMENT_CHARS,
    explain_unresolvable,
    is_exact,
    is_requirement,
    is_unpinned,
)
from releasekit.ecosystems.pypi.refused import (
    find_invalid,
    find_refused,
    find_refused_content,
    find_refused_name,
    is_platform,
)
from releasekit.ecosystems.pypi.simple_index import parse_filename
from releasekit.ecosystems.shared.archives import (
    BAD_ZIP,
    MAX_UNPACKED_BYTES,
    BadArchive,
    member_names,
    opened_archive,
    opened_entry,
    opened_zip,
)
from releasekit.ecosystems.shared.artifacts import find_too_large
from releasekit.ecosystems.shared.packages import not_a_package
from releasekit.errors import ConfigError, PackageError
from releasekit.host import durable
from releasekit.host.artifact_reader import open_artifact
from releasekit.host.files import inside, is_file, read_text
from releasekit.model import PackageWarning, WarningName
from releasekit.problems import DOCS, Problem
from releasekit.text.escape import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from releasekit.config.values import Dist
    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.model import Artifact, Package

MAX_METADATA_BYTES: Final = 8 * 1024 * 1024
# A tag of a wheel that one Python alone takes, without a stable ABI.
_ONE_PYTHON: Final = re.compile(r"[cp]p(\d)(\d+)")
# More than a Python ever had.
_PATCHES: Final = 50

# The standard knows thirty. https://packaging.python.org/en/latest/specifications/core-metadata/
_MAX_HEADERS: Final = 200
_MAX_HEADER_LINES: Final = 20_000
_MAX_LINES: Final = 200_000
_MAX_MARKS: Final = 100
# The headers that are parsed further, which takes up to the square of the length of one, and the
# limit of all of them together.
_PARSED: Final = frozenset(
    {b"description-content-type", b"license-expression", b"requires-dist", b"requires-python"}
)
_MAX_PARSED_BYTES: Final = 1024 * 1024
# Only a mail in parts, or encoded, has these.
_ENCODING: Final = frozenset({b"content-type", b"content-transfer-encoding"})
_UNREADABLE: Final = (*BAD_ZIP, BadArchive, OSError)

Form = dict[str, str | list[str]]

# The form's names where they differ from packaging's:
# https://github.com/pypi/warehouse/blob/main/warehouse/forklift/metadata.py
_FORM_NAMES: Final = {
    "platforms": "platform",
    "supported_platforms": "supported_platform",
    "license_files": "license_file",
    "import_names": "import_name",
    "import_namespaces": "import_namespace",
}


def make_form(artifact: Artifact, raw: RawMetadata) -> Form:
    """Every field of the upload form but the file itself.

    Raises PackageError for a file that is neither wheel nor sdist.
    """
    filename = artifact.filename
    release = parse_filename(filename)
    if release is None:
        raise not_a_package(f"{filename}: neither a wheel nor a source distribution (.tar.gz)")
    filetype = release[2]
    if not (raw.get("metadata_version") and raw.get("name") and raw.get("version")):
        raise not_a_package(f"{filename}: its metadata has no Metadata-Version, Name or Version")
    return {
        ":action": "file_upload",
        "protocol_version": "1",
        **_make_fields(raw),
        "filetype": filetype,
        # Of a wheel, the first part of the compatibility tag in its name: "py2.py3", "cp312".
        "pyversion": filename.split("-")[-3] if filetype == "bdist_wheel" else "source",
        "sha256_digest": artifact.sha256,
        "blake2_256_digest": artifact.digests["blake2b_256"],
    }


def _unreadable(filename: str, error: Exception) -> PackageError:
    return not_a_package(f"{filename}: not a readable archive ({error})")


def read_metadata(file: IO[bytes], filename: str) -> bytes:
    """METADATA of a wheel, PKG-INFO of a source distribution; blocks.

    Raises PackageError for a file that has none, or too much of it.
    """
    read = _read_wheel if filename.endswith(".whl") else _read_sdist
    try:
        text = read(file)
    except _UNREADABLE as error:
        raise _unreadable(filename, error) from error
    if text is None:
        raise not_a_package(f"{filename}: an archive without core metadata")
    if len(text) > MAX_METADATA_BYTES:
        raise not_a_package(f"{filename}: metadata over {MAX_METADATA_BYTES} bytes")
    if reason := explain_unparsable(text):
        raise not_a_package(f"{filename}: its metadata {reason}")
    return text


def list_names(dist: Sequence[Dist]) -> set[str]:
    """The names of the projects that files in `dist` are named after; blocks."""
    return {parsed[0] for path in _list_paths(dist) if (parsed := parse_filename(path.name))}


def _list_paths(dist: Sequence[Dist]) -> list[Path]:
    return [
        path
        for place in dist
        if place.owner.partition(":")[0] in {"", "pypi"}
        for path in below(place)
    ]


def read_dist_metadata(dist: Sequence[Dist], wanted: AbstractSet[str]) -> dict[str, str]:
    """By name, the metadata of those `wanted` that files in `dist` tell completely, so that no
    build hook has to be asked; blocks. An error in such a file is reported when it is taken.

    An sdist tells the fields that it does not list as Dynamic, from metadata version 2.2 on.
    https://packaging.python.org/en/latest/specifications/core-metadata/#dynamic-multiple-use
    """
    paths = _list_paths(dist if wanted else ())
    found: dict[str, str] = {}
    # A wheel comes last: its metadata is complete.
    for path in sorted(paths, key=lambda path: (path.suffix == ".whl", path)):
        name, *_ = parse_filename(path.name) or ("",)
        if name in wanted:
            with suppress(OSError, PackageError, ValueError):
                with durable.reading(path) as file:
                    text = read_metadata(file, str(path))
                raw, _ = parse_email(text)
                dynamic = {each.lower() for each in raw.get("dynamic", [])}
                complete = not dynamic & {"version", "requires-dist", "provides-extra"} and Version(
                    raw.get("metadata_version", "0")
                ) >= Version("2.2")
                if complete or path.suffix == ".whl":
                    found[name] = text.decode("utf-8", "replace")
    return found


def explain_unparsable(text: bytes) -> str:
    """Why the parsers of `packaging` and `email` would take minutes or gigabytes for it, or crash;
    empty for what they can read.
    """
    if text.count(b"\n") + text.count(b"\r") > _MAX_LINES:
        return f"has more than {_MAX_LINES} lines"
    lines = re.split(rb"\r?\n\r?\n", text, maxsplit=1)[0].splitlines()
    names: set[bytes] = set()
    name, size, parsed = b"", 0, 0
    for line in lines:
        if line[:1] not in {b" ", b"\t"}:
            name, size = line.partition(b":")[0].lower(), 0
            names.add(name)
        if max(line.count(b"("), line.count(b";")) > _MAX_MARKS:
            return f"has a line with more than {_MAX_MARKS} brackets or semicolons"
        if name in _PARSED:
            size += len(line)
            parsed += len(line)
            if size > MAX_REQUIREMENT_CHARS or parsed > _MAX_PARSED_BYTES:
                return f"has too long a {name.decode().title()}"
    if len(names) > _MAX_HEADERS or len(lines) > _MAX_HEADER_LINES:
        return (
            f"has more than {_MAX_HEADERS} kinds of headers, or {_MAX_HEADER_LINES} lines of them"
        )
    if found := names & _ENCODING:
        return f"has a {min(found).decode().title()}, which is that of a mail"
    return ""


def _make_fields(raw: RawMetadata) -> Form:
    fields: Form = {}
    values: Mapping[str, object] = dict(raw)
    for name, value in values.items():
        if name == "keywords":
            fields[name] = ", ".join(raw["keywords"])
        elif name == "project_urls":
            fields[name] = [f"{label}, {url}" for label, url in raw["project_urls"].items()]
        elif isinstance(value, str):
            fields[name] = value
        else:
            fields[_FORM_NAMES.get(name, name)] = cast("list[str]", value)
    if _is_older_than_2_4(raw["metadata_version"]):
        # setuptools wrote License-File before the standard had it; PyPI refuses the combination.
        # https://github.com/pypa/twine/blob/main/twine/package.py
        fields.pop("license_file", None)
    return fields


def _is_older_than_2_4(metadata_version: str) -> bool:
    """False for an invalid version."""
    try:
        return Version(metadata_version) < Version("2.4")
    except ValueError:  # InvalidVersion is one, and so is a number of thousands of digits
        return False


def _read_wheel(file: IO[bytes]) -> bytes | None:
    with opened_zip(file) as archive:
        for entry in archive.infolist():
            directory, _, name = entry.filename.partition("/")
            if name == "METADATA" and directory.endswith(".dist-info"):
                with opened_entry(archive, entry) as member:
                    return member.read(MAX_METADATA_BYTES + 1)
    return None


def _read_sdist(file: IO[bytes]) -> bytes | None:
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        for member in members:
            directory, _, name = member.name.removeprefix("./").partition("/")
            if name == "PKG-INFO" and directory:
                return member.read(MAX_METADATA_BYTES + 1)
    return None


# A wheel that was built on a Linux and never repaired says only that. The two that PyPI takes are
# from before there was a standard for them.
# https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
_PLAIN_LINUX: Final = re.compile(r"linux_(?!armv[67]l$).+")
# https://docs.pypi.org/project-management/storage-limits/ and
# https://github.com/pypi/warehouse/blob/main/warehouse/constants.py (August 2026)
MAX_UPLOAD_BYTES: Final = 100 * 1024**2
_LARGER: Final = (
    "PyPI takes of a file, unless it has agreed to more for this project: leave out files, or ask "
    "first: https://docs.pypi.org/project-management/storage-limits/"
)
_MAX_DIRECTORIES: Final = 100_000
_NO_MODULES: Final = re.compile(
    r"(?:^|/)(?:\.[^/]*|build|dist|docs?|examples?|node_modules|scripts|tests?)/"
    r"|(?:^|/)(?:conf|conftest|noxfile|setup|tasks)\.py$"
)


def find_warnings(
    package: Package,
    artifacts: Sequence[Artifact],
    *,
    on_pypi: bool,
    classifiers: Collection[str] = (),
    keep: Callable[[Artifact, RawMetadata], None] = lambda *_: None,
) -> Iterator[PackageWarning]:
    """Check what `twine check` does without a renderer, the core metadata, and the index's rules
    for platform tags; blocks. https://twine.readthedocs.io/en/stable/#twine-check

    `on_pypi` says that the files go to pypi.org or test.pypi.org, which takes `classifiers` if they
    are known; `keep` gets the metadata of each.
    Raises PackageError for a file that cannot be read, belongs to another package, or requires what
    no client can get.
    """
    if on_pypi:
        yield from find_too_large(artifacts, MAX_UPLOAD_BYTES, _LARGER)
    texts = []
    for artifact in artifacts:
        with open_artifact(artifact) as opened, opened.raw() as file:
            texts.append(read_metadata(file, artifact.filename))
            if not artifact.filename.endswith(".whl"):
                continue
            names = member_names(file)
        yield from _check_platform(artifact.filename, on_pypi=on_pypi)
        # A wheel without modules is intended where its sources have none either.
        if all(".dist-info/" in name for name in names) and _has_modules(package):
            yield PackageWarning(
                name=WarningName.EMPTY_PACKAGE,
                message=f"{artifact.filename} holds no modules, and {package.directory.name}/ "
                "does: tell the build backend which packages to include",
            )
    parsed = list(map(parse_email, texts))
    for artifact, (raw, _) in zip(artifacts, parsed, strict=True):
        _check_name(package, artifact, raw)
        _refuse_unresolvable(artifact, raw, on_pypi=on_pypi)
        keep(artifact, raw)
    refused: dict[str, None] = {}
    for artifact, (raw, _) in zip(artifacts, parsed, strict=True) if on_pypi else ():
        refused |= dict.fromkeys(_find_refused(artifact, _as_sent(raw), classifiers))
    for message in refused:
        yield _invalid(message, error=True)
    # The metadata of all files is the same.
    for raw, unparsed in parsed[:1]:
        yield from check_metadata(raw, unparsed, on_pypi=on_pypi)


def _check_platform(wheel: str, *, on_pypi: bool) -> Iterator[PackageWarning]:
    tags = wheel.removesuffix(".whl").split("-")[-1].split(".")
    if plain := next(filter(_PLAIN_LINUX.fullmatch, tags), ""):
        consequence = (
            "PyPI refuses it" if on_pypi else "it works only where the libraries are the same"
        )
        yield PackageWarning(
            name=WarningName.PLATFORM_TAG,
            message=f"{wheel} has the platform tag {plain}, and {consequence}: "
            "build it with cibuildwheel, or repair it with auditwheel",
            error=on_pypi,
        )
    elif on_pypi and (strange := next((tag for tag in tags if not is_platform(tag)), "")):
        yield PackageWarning(
            name=WarningName.PLATFORM_TAG,
            message=f"{wheel} has the platform tag {one_line(strange, 100)}, which PyPI does not "
            "know, and refuses",
            error=True,
        )


def _find_refused(
    artifact: Artifact, raw: RawMetadata, classifiers: Collection[str]
) -> Iterator[str]:
    """Why pypi.org refuses a file, in sentences."""
    for why in find_refused(raw, classifiers):
        yield f"it {why}, and PyPI refuses that"
    try:
        why = find_refused_name(artifact.filename, raw)
        if not why:
            with open_artifact(artifact) as opened, opened.raw() as file:
                why = find_refused_content(file, artifact.filename, raw)
    except _UNREADABLE as error:
        raise _unreadable(artifact.filename, error) from error
    if why:
        yield f"{artifact.filename} {why}, and PyPI refuses that"


def check_declared(project: PyProject, classifiers: Collection[str]) -> Iterator[PackageWarning]:
    """What pypi.org will refuse of files that are still to be built, as far as the manifest of the
    project tells. `classifiers` are those that it takes, if they are known.
    """
    for what in find_invalid(project.declared):
        yield _invalid(f"{project.manifest}: {what}, and PyPI refuses that", error=True)
    for why in find_refused(project.declared, classifiers):
        yield _invalid(f"{project.manifest}: it {why}, and PyPI refuses that", error=True)


# https://setuptools.pypa.io/en/latest/userguide/ext_modules.html, https://cffi.readthedocs.io
# https://scikit-build.readthedocs.io
_EXTENSIONS: Final = re.compile(
    r"(?m)^[^#\n]*\b(?:(?:cffi_modules|ext_modules|rust_extensions)\s*=|(?:from|import)\s+skbuild\b)"
)


def foresee_platform(project: PyProject) -> Iterator[PackageWarning]:
    """What PyPI will say of a wheel that is still to be built: no backend repairs one by itself.
    Blocks. https://github.com/PyO3/maturin/blob/main/maturin/__init__.py
    """
    compiler, setup = project.compiler, project.manifest.with_name("setup.py")
    if not compiler and is_file(setup):
        try:
            found = _EXTENSIONS.search(read_text(setup, max_bytes=MAX_METADATA_BYTES))
        except ConfigError:  # its build says why
            found = None
        compiler = f"setup.py (`{one_line(found[0].strip(), 60)}`)" if found else ""
    if compiler:
        yield PackageWarning(
            name=WarningName.PLATFORM_TAG,
            message=f"{compiler} compiles: a wheel that is built in this job is for this machine "
            "alone, and PyPI refuses linux_x86_64 and the like. Build wheels in jobs before this "
            f"one, and name their directory in `dist`: {DOCS}/prebuilt.md",
        )


def find_pinned_apart(artifacts: Sequence[Artifact], versions: Mapping[str, str]) -> list[str]:
    """The packages that users of these need in exactly one version, and in another than that of
    `versions`; none where the files cannot be read. Blocks.
    """
    try:
        text = _open_metadata(artifacts[0])  # that of all files
    except PackageError:
        return []
    raw, _ = parse_email(text)
    found: dict[str, None] = {}
    for wanted in map(Requirement, filter(is_requirement, raw.get("requires_dist", []))):
        version = versions.get(canonicalize_name(wanted.name), "")
        apart = version and not wanted.specifier.contains(version, prereleases=True)
        if apart and is_exact(wanted) and "extra" not in str(wanted.marker):
            found[canonicalize_name(wanted.name)] = None
    return [*found]


def list_required(metadata: bytes) -> dict[str, str]:
    """Which versions all users of a file need, by the canonical names of the projects."""
    raw, _ = parse_email(metadata)
    wanted = map(Requirement, filter(is_requirement, raw.get("requires_dist", [])))
    return {
        canonicalize_name(each.name): str(each.specifier)
        for each in wanted
        if "extra" not in str(each.marker)
    }


def _open_metadata(artifact: Artifact) -> bytes:
    with open_artifact(artifact) as opened, opened.raw() as file:
        return read_metadata(file, artifact.filename)


def _check_name(package: Package, artifact: Artifact, raw: RawMetadata) -> None:
    """An index goes by the metadata of a file, not by its name."""
    name, version = raw.get("name", ""), raw.get("version", "")
    try:
        same = (canonicalize_name(name), Version(version)) == (
            package.id.name,
            Version(package.version),
        )
    except ValueError:
        same = False
    if not same:
        raise not_a_package(
            f"{artifact.filename}: its metadata is that of {one_line(f'{name} {version}', 100)!r}, "
            f"not of {package.id.name} {package.version}",
            "Have the build backend take name and version from one place.",
        )


def _refuse_unresolvable(artifact: Artifact, raw: RawMetadata, *, on_pypi: bool) -> None:
    for wanted in map(Requirement, filter(is_requirement, raw.get("requires_dist", []))):
        if why := explain_unresolvable(wanted, on_pypi=on_pypi):
            raise PackageError(
                f"{artifact.filename} requires {one_line(str(wanted), 300)!r}, {why}",
                hint=f"Have the build backend require {wanted.name} by its name, with a version "
                "range.",
                problem=Problem.UNRESOLVABLE,
            )


def refuse_unpinned(artifact: Artifact, raw: RawMetadata, versions: Mapping[str, str]) -> None:
    """Raises PackageError where what was built does not require the packages in `versions` exactly
    so, as `pin: exact` has it: the build backend may take requirements from elsewhere.
    """
    for wanted in map(Requirement, filter(is_requirement, raw.get("requires_dist", []))):
        version = versions.get(canonicalize_name(wanted.name), "")
        if version and is_unpinned(wanted, version):
            raise PackageError(
                f"{artifact.filename} requires {one_line(str(wanted), 300)!r}, but `pin: exact` "
                f"requires {wanted.name}=={version}",
                hint=f"Write {wanted.name} into project.dependencies, where it is pinned, or have "
                "the build backend write the version; or use `pin: auto`.",
                problem=Problem.UNRESOLVABLE,
            )


def refuse_other_python(artifact: Artifact, raw: RawMetadata, pinned: str) -> None:
    """Raises PackageError for a wheel that fits one Python, which its own metadata excludes, so
    that nobody can install it; and where uv would have built with the Python that is `pinned`.
    https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
    """
    *_, pythons, abi, _ = f"--{artifact.filename}".split("-")
    fitting = [_ONE_PYTHON.fullmatch(each) for each in pythons.split(".")]
    if not artifact.filename.endswith(".whl") or abi.startswith("abi") or None in fitting:
        return
    named = [f"{each[1]}.{each[2]}" for each in fitting if each]
    with suppress(InvalidSpecifier):
        wanted = SpecifierSet(raw.get("requires_python", ""))
        if not any(
            wanted.contains(f"{each}.{patch}") for each in named for patch in range(_PATCHES)
        ):
            raise PackageError(
                f"{artifact.filename} is for Python {' and '.join(named)} alone, and its metadata "
                f"requires Python {one_line(str(wanted), 100)}: nobody could install it",
                hint="Run ReleaseKit with a Python that fits, or bring the wheel with `dist`.",
                problem=Problem.UNRESOLVABLE,
            )
    if pinned and pinned not in named:
        raise PackageError(
            f"{artifact.filename} is for Python {' and '.join(named)} alone, and .python-version "
            f"names {pinned}",
            hint=f"Run ReleaseKit with Python {pinned}, or bring the wheel with `dist`.",
            problem=Problem.BUILT_OTHERWISE,
        )


def find_pinned_python(directory: Path, root: Path) -> str:
    """The Python, such as 3.12, that uv builds a package with whose directory is in `root`; empty
    where no file names one. https://docs.astral.sh/uv/concepts/python-versions/#python-version-files
    """
    for each in (directory, *directory.parents):
        if not each.is_relative_to(root):
            break
        path = each / ".python-version"
        if is_file(path):
            text = read_text(inside(root, path, where=str(path)), max_bytes=MAX_METADATA_BYTES)
            found = re.search(r"^[^#\n]*?(\d+\.\d+)", text, re.MULTILINE)
            return found[1] if found else ""
    return ""


def _has_modules(package: Package) -> bool:
    """Modules of another project further down do not count."""
    for where, directories, files in islice(durable.walk(package.directory), _MAX_DIRECTORIES):
        directories[:] = [
            name
            for name in directories
            if not _NO_MODULES.search(f"{name}/") and not durable.is_file(where / name / MANIFEST)
        ]
        if any(name.endswith(".py") and not _NO_MODULES.search(name) for name in files):
            return True
    return False


def _as_sent(raw: RawMetadata) -> RawMetadata:
    """Without what is not sent with the file, or counts as not sent."""
    sent = {field: value for field, value in raw.items() if value not in ("", [""])}
    if _is_older_than_2_4(raw.get("metadata_version", "")):
        sent.pop("license_files", None)
    return cast("RawMetadata", sent)


def check_metadata(
    raw: RawMetadata, unparsed: Mapping[str, Sequence[str]], *, on_pypi: bool = False
) -> Iterator[PackageWarning]:
    """What is wrong with the metadata of a distribution."""
    raw = _as_sent(raw)
    for name in sorted(unparsed):
        yield _invalid(f"its metadata has {name} twice, or not as text")
    for what in find_invalid(raw):
        yield _invalid(f"its metadata is invalid: {what}", error=on_pypi)
    # setuptools wrote UNKNOWN where there was none.
    if raw.get("description", "").strip() in {"", "UNKNOWN"}:
        yield PackageWarning(
            name=WarningName.MISSING_README,
            message="it has no description, so its page is empty: name a `readme`",
        )
    elif not raw.get("description_content_type"):
        yield _invalid(
            "nothing says what its description is written in, so it is shown as "
            "reStructuredText: name a `readme` with a suffix"
        )


def _invalid(message: str, *, error: bool = False) -> PackageWarning:
    return PackageWarning(name=WarningName.INVALID_METADATA, message=message, error=error)
