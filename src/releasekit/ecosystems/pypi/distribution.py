"""What the upload form says about a file: its core metadata, read without unpacking anything.

https://packaging.python.org/en/latest/specifications/core-metadata/
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final, cast

from packaging.metadata import RawMetadata, parse_email
from packaging.version import Version

from releasekit.ecosystems.dist_files import below
from releasekit.ecosystems.pypi.manifest import MAX_REQUIREMENT_CHARS
from releasekit.ecosystems.pypi.simple_index import release_of
from releasekit.ecosystems.shared.archives import (
    BAD_ZIP,
    MAX_UNPACKED_BYTES,
    BadArchive,
    opened_archive,
    opened_entry,
    opened_zip,
)
from releasekit.errors import PackageError
from releasekit.host import durable
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from releasekit.config.values import Dist
    from releasekit.host.artifact_reader import ArtifactReader

MAX_METADATA_BYTES: Final = 8 * 1024 * 1024

# The standard knows thirty. https://packaging.python.org/en/latest/specifications/core-metadata/
_MAX_HEADERS: Final = 200
_MAX_HEADER_LINES: Final = 20_000
_MAX_LINES: Final = 200_000
_MAX_MARKS: Final = 100
# The headers that are parsed further, which takes the square of the length of one at worst, and
# what all of them may have together.
_PARSED: Final = frozenset(
    {b"description-content-type", b"license-expression", b"requires-dist", b"requires-python"}
)
_MAX_PARSED_BYTES: Final = 1024 * 1024
# Of a mail in parts, or in a code.
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


def form_of(contents: ArtifactReader) -> Form:
    """Every field of the upload form but the file itself; blocks while it reads and hashes.

    Raises PackageError for a file that is no wheel and no sdist, or not what was built.
    """
    filename = contents.artifact.filename
    release = release_of(filename)
    if release is None:
        raise PackageError(
            f"{filename}: neither a wheel nor a source distribution (.tar.gz)",
            problem=Problem.NOT_A_PACKAGE,
        )
    filetype = release[2]
    blake2 = contents.digest("blake2_256")
    with contents.raw() as file:
        text = metadata_of(file, filename)
    raw, _ = parse_email(text)
    if not (raw.get("metadata_version") and raw.get("name") and raw.get("version")):
        raise PackageError(
            f"{filename}: its metadata has no Metadata-Version, Name or Version",
            problem=Problem.NOT_A_PACKAGE,
        )
    return {
        ":action": "file_upload",
        "protocol_version": "1",
        **_metadata_fields(raw),
        "filetype": filetype,
        "pyversion": _python_tag(filename) if filetype == "bdist_wheel" else "source",
        "sha256_digest": contents.artifact.sha256,
        "blake2_256_digest": blake2,
    }


def names_in(file: IO[bytes], filename: str) -> list[str]:
    """What a wheel holds; raises PackageError for what is no wheel. Blocks."""
    try:
        with opened_zip(file) as archive:
            return archive.namelist()
    except _UNREADABLE as error:
        raise unreadable(filename, error) from error


def unreadable(filename: str, error: Exception) -> PackageError:
    return PackageError(
        f"{filename}: not a readable archive ({error})", problem=Problem.NOT_A_PACKAGE
    )


def metadata_of(file: IO[bytes], filename: str) -> bytes:
    """METADATA of a wheel, PKG-INFO of a source distribution; blocks.

    Raises PackageError for a file that has none, or too much of it.
    """
    try:
        text = _of_wheel(file) if filename.endswith(".whl") else _of_sdist(file)
    except _UNREADABLE as error:
        raise unreadable(filename, error) from error
    if text is None:
        raise PackageError(
            f"{filename}: an archive without core metadata", problem=Problem.NOT_A_PACKAGE
        )
    if len(text) > MAX_METADATA_BYTES:
        raise PackageError(
            f"{filename}: metadata over {MAX_METADATA_BYTES} bytes", problem=Problem.NOT_A_PACKAGE
        )
    if reason := unusual(text):
        raise PackageError(f"{filename}: its metadata {reason}", problem=Problem.NOT_A_PACKAGE)
    return text


def metadata_told(dist: Sequence[Dist], wanted: AbstractSet[str]) -> dict[str, str]:
    """By name, the metadata of those `wanted` that files in `dist` tell all of, so that no build
    hook has to be asked; blocks. What is wrong with such a file is said when it is taken.

    An sdist tells what is not Dynamic there, from version 2.2 of its metadata on.
    https://packaging.python.org/en/latest/specifications/core-metadata/#dynamic-multiple-use
    """
    paths = [
        path
        for place in (dist if wanted else ())
        if place.owner.partition(":")[0] in {"", "pypi"}
        for path in below(place)
    ]
    told: dict[str, str] = {}
    # The wheel's has it all.
    for path in sorted(paths, key=lambda path: (path.suffix == ".whl", path)):
        name, *_ = release_of(path.name) or ("",)
        if name in wanted:
            with suppress(OSError, PackageError, ValueError):
                with (
                    durable.opened(path, os.O_RDONLY) as descriptor,
                    open(descriptor, "rb", closefd=False) as file,
                ):
                    text = metadata_of(file, str(path))
                raw, _ = parse_email(text)
                left = {each.lower() for each in raw.get("dynamic", [])}
                complete = not left & {"version", "requires-dist", "provides-extra"} and Version(
                    raw.get("metadata_version", "0")
                ) >= Version("2.2")
                if complete or path.suffix == ".whl":
                    told[name] = text.decode("utf-8", "replace")
    return told


def unusual(text: bytes) -> str:
    """What the parsers of `packaging` and `email` would take minutes or gigabytes for, or not
    survive; empty for what they can read.
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


def _metadata_fields(raw: RawMetadata) -> Form:
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
    if older_than_2_4(raw["metadata_version"]):
        # setuptools wrote License-File before the standard had it; PyPI refuses the combination.
        # https://github.com/pypa/twine/blob/main/twine/package.py
        fields.pop("license_file", None)
    return fields


def older_than_2_4(metadata_version: str) -> bool:
    """Also False for what is no version."""
    try:
        return Version(metadata_version) < Version("2.4")
    except ValueError:  # InvalidVersion is one, and so is a number of thousands of digits
        return False


def _python_tag(filename: str) -> str:
    """The first part of the compatibility tag as the filename has it: "py2.py3", "cp312"."""
    return filename.removesuffix(".whl").split("-")[-3]


def _of_wheel(file: IO[bytes]) -> bytes | None:
    with opened_zip(file) as archive:
        for entry in archive.infolist():
            directory, _, name = entry.filename.partition("/")
            if name == "METADATA" and directory.endswith(".dist-info"):
                with opened_entry(archive, entry) as member:
                    return member.read(MAX_METADATA_BYTES + 1)
    return None


def _of_sdist(file: IO[bytes]) -> bytes | None:
    with opened_archive(file, max_bytes=MAX_UNPACKED_BYTES) as members:
        for member in members:
            directory, _, name = member.name.removeprefix("./").partition("/")
            if name == "PKG-INFO" and directory:
                return member.read(MAX_METADATA_BYTES + 1)
    return None
