"""A package index as plain files: `simple/NAME/index.html` (PEP 503), `index.json` (PEP 691).

pip and uv install from it through any static web server; core metadata lies beside the wheels
(PEP 658), and the provenance of a file beside that (PEP 740).
https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import hashlib
import html
import json
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from packaging.metadata import parse_email
from packaging.version import Version

from releasekit.ecosystems.directory import page_there
from releasekit.ecosystems.pypi import simple_index
from releasekit.ecosystems.pypi.distribution import list_required, read_metadata
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.errors import PackageError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.text.json_text import format_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from releasekit.model import Package, Published
    from releasekit.provenance.bundle import Bundle

_META: Final = {"api-version": "1.3"}
_PAGE: Final = """\
<!DOCTYPE html>
<html>
  <head>
    <meta charset="utf-8">
    <meta name="pypi:repository-version" content="1.3">
    <title>{title}</title>
  </head>
  <body>
{links}
  </body>
</html>
"""

_PROVENANCE: Final = ".provenance"

# One file as PEP 691 describes it.
FileEntry = dict[str, Any]


class SimpleDirectory:
    """Implements `directory.Layout`.

    `url` is where the directory will be served. The address of an attestation must be absolute:
    clients reject the whole page otherwise (https://github.com/jwodder/pypi-simple). Without `url`,
    the page does not name the attestation beside its file.
    """

    def __init__(self, url: str = "") -> None:
        self._url = url.rstrip("/")

    def path_for(self, package: Package, filename: str) -> PurePosixPath | None:
        release = simple_index.parse_filename(filename)
        wanted = (package.id.name, Version(package.version))
        if release is None or release[:2] != wanted or PurePosixPath(filename).name != filename:
            return None
        return _files_of(package) / filename

    def attestation(
        self, package: Package, filename: str, bundle: Bundle
    ) -> tuple[PurePosixPath, bytes]:
        """https://packaging.python.org/en/latest/specifications/index-hosted-attestations/"""
        from releasekit.provenance.certificate import (  # noqa: PLC0415 - cryptography
            describe_publisher,
        )

        publisher = describe_publisher(bundle.certificate)
        attested = {"publisher": publisher, "attestations": [bundle.pep740()]}
        text = json.dumps({"version": 1, "attestation_bundles": [attested]})
        return _files_of(package) / f"{filename}{_PROVENANCE}", text.encode() + b"\n"

    def pages(self, root: Path, package: Package) -> Iterable[tuple[PurePosixPath, bytes]]:
        name, simple = package.id.name, PurePosixPath("simple")
        known = _read_entries(root / simple / name)
        entries: list[FileEntry] = []
        versions: set[str] = set()
        here = root / _files_of(package)
        there = frozenset(durable.names(here))
        for path in [here / name for name in sorted(there)]:
            release = simple_index.parse_filename(path.name)
            if release is None:
                continue
            entry = known.get(path.name)
            if entry is None:
                entry, metadata = _describe(path, is_wheel=release[2] == "bdist_wheel")
                if "core-metadata" in entry:
                    yield _files_of(package) / f"{path.name}.metadata", metadata
            # The address of the directory may have changed since the page was written.
            entry.pop("provenance", None)
            provenance = f"{path.name}{_PROVENANCE}"
            if self._url and provenance in there:
                entry["provenance"] = f"{self._url}/{_files_of(package)}/{quote(provenance)}"
            entries.append(entry)
            versions.add(str(release[1]))
        projects = sorted({*durable.directories(root / simple), name})
        yield simple / "index.json", _make_json({"projects": [{"name": each} for each in projects]})
        tops = (f'<a href="{quote(each)}/">{html.escape(each)}</a>' for each in projects)
        yield simple / "index.html", _make_page("Simple index", tops)
        document = {"name": name, "versions": sorted(versions), "files": entries}
        yield simple / name / "index.json", _make_json(document)
        # The last one: what a lookup finds in it is left alone from then on.
        links = map(_make_link, entries)
        yield simple / name / "index.html", _make_page(f"Links for {name}", links)

    def lookup(self, root: Path, package: Package) -> Published | None:
        page = root / "simple" / package.id.name / "index.html"
        listed = simple_index.parse_page(page_there(page), "text/html")
        found = simple_index.find_published(listed, package, url=page.parent.as_uri() + "/")
        if found is None or not any(need.exact for need in package.dependencies):
            return found
        name = next(iter(found.files))
        try:
            with durable.reading(root / _files_of(package) / name) as file:
                return replace(found, asks=list_required(read_metadata(file, name)))
        except (OSError, PackageError):
            return found


def _files_of(package: Package) -> PurePosixPath:
    return PurePosixPath("files", package.id.name)


def _read_entries(where: Path) -> dict[str, FileEntry]:
    """The entries of the present page, so that no file is hashed twice, and what either form of it
    says is yanked stays so.
    """
    try:
        document = parse_json(page_there(where / "index.json"), max_bytes=None)
        entries = {
            entry["filename"]: entry
            for entry in document["files"]
            if isinstance(entry["hashes"]["sha256"], str) and _make_link(entry)
        }
        listed = simple_index.parse_page(page_there(where / "index.html"), "text/html")
        for file in listed:
            if file.yanked is not None and file.filename in entries:
                entries[file.filename].setdefault("yanked", file.yanked or True)
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return {}
    return entries


def _describe(path: Path, *, is_wheel: bool) -> tuple[FileEntry, bytes]:
    with durable.reading(path) as file:
        entry: FileEntry = {
            "filename": path.name,
            "url": f"../../files/{path.parent.name}/{quote(path.name)}",
            "hashes": digests(file, "sha256"),
            "size": file.tell(),
        }
        file.seek(0)
        try:
            metadata = read_metadata(file, path.name)
        except PackageError:
            # It is served as it is.
            return entry, b""
    if requires := parse_email(metadata)[0].get("requires_python"):
        entry["requires-python"] = requires
    if is_wheel:
        entry["core-metadata"] = {"sha256": hashlib.sha256(metadata).hexdigest()}
    return entry, metadata


def _make_json(document: Mapping[str, object]) -> bytes:
    return format_json({"meta": _META, **document}).encode() + b"\n"


def _make_page(title: str, links: Iterable[str]) -> bytes:
    body = "\n".join(f"    {link}<br>" for link in links)
    return _PAGE.format(title=html.escape(title), links=body).encode()


def _make_link(entry: FileEntry) -> str:
    attributes = [f'href="{html.escape(str(entry["url"]))}#{_format_digest(entry["hashes"])}"']
    if requires := entry.get("requires-python"):
        attributes.append(f'data-requires-python="{html.escape(str(requires))}"')
    if metadata := entry.get("core-metadata"):
        attributes.append(f'data-core-metadata="{_format_digest(metadata)}"')
    if yanked := entry.get("yanked"):
        reason = html.escape(yanked) if isinstance(yanked, str) else ""
        attributes.append(f'data-yanked="{reason}"')
    if provenance := entry.get("provenance"):
        attributes.append(f'data-provenance="{html.escape(str(provenance))}"')
    return f"<a {' '.join(attributes)}>{html.escape(str(entry['filename']))}</a>"


def _format_digest(hashes: Mapping[str, object]) -> str:
    return f"sha256={html.escape(str(hashes['sha256']))}"
