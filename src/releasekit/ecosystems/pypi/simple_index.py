"""The simple index, read: PEP 691 (JSON) where the server has it, else PEP 503 (HTML).

https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name, parse_sdist_filename
from packaging.version import Version

from releasekit.errors import Rejected
from releasekit.model import Published
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from releasekit.model import Package

HEADERS: Final = {
    # As pip asks, so that every index pip can read answers in a form it knows:
    # https://github.com/pypa/pip/blob/main/src/pip/_internal/index/collector.py
    "Accept": (
        "application/vnd.pypi.simple.v1+json, "
        "application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"
    ),
    # A page cached on the way would hide a release that is there, or show one that is not.
    "Cache-Control": "no-cache, max-age=0",
}

# A tag or a comment. What has been matched is not given back, so that no page takes long.
_OPENING: Final = re.compile(r"<(?:!--|(?P<tag>[A-Za-z][^\s/>]*+))")
_ATTRIBUTE: Final = re.compile(
    r"[\s/]*+(?P<name>[^\s/>=]++)(?:\s*+=\s*+"
    r"""(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<bare>[^\s>"'][^\s>]*+)))?+"""
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of an index page; `digest` is "algorithm:hex", empty where the page has none."""

    filename: str
    digest: str


def parse_page(body: bytes, content_type: str) -> tuple[Listed, ...]:
    """The files of one project's page. Raises ValueError for what is no such page."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return tuple(_from_json(body))
    if kind.endswith("html"):
        return tuple(_from_html(body))
    raise ValueError(f"a page of type {kind or 'unknown'!r}")


def published(listed: Iterable[Listed], package: Package, *, url: str) -> Published | None:
    """Those of the files that belong to this version of the package; None when there are none."""
    version = Version(package.version)
    files: dict[str, str] = {}
    kinds: set[str] = set()
    for file in listed:
        release = release_of(file.filename)
        if release is None or release[:2] != (package.id.name, version):
            continue
        if not file.digest:
            raise Rejected(
                f"{package}: {url} lists {file.filename} without a digest, so "
                "nobody can tell which bytes it holds",
                hint="Have the index show sha256 digests, or name another one in pypi-index.",
            )
        files[file.filename] = file.digest
        kinds.add(release[2])
    return Published(files=files, complete=len(kinds) == 2, url=url) if files else None


def release_of(filename: str) -> tuple[str, Version, str] | None:
    """Canonical name, version and "bdist_wheel" or "sdist"; None for any other file."""
    parts = filename.removesuffix(".whl").split("-")
    try:
        if filename.endswith(".whl") and len(parts) in {5, 6}:
            # Not by parse_wheel_filename: tags of a few kilobytes stand for billions of others.
            return canonicalize_name(parts[0]), Version(parts[1]), "bdist_wheel"
        name, version = parse_sdist_filename(filename)
    except ValueError:
        return None
    return name, version, "sdist"


def _digest(hashes: dict[str, str]) -> str:
    for algorithm in ("sha256", *sorted(hashes)):
        if value := hashes.get(algorithm):
            return f"{algorithm}:{value.lower()}"
    return ""


def _from_json(body: bytes) -> Iterable[Listed]:
    page = parse_json(body)
    if not isinstance(page, dict) or not isinstance(page.get("files"), list):
        raise ValueError("JSON without a list of files")  # noqa: TRY004 (about the page)
    for file in page["files"]:
        if not isinstance(file, dict) or not isinstance(file.get("filename"), str):
            raise ValueError("a file without a filename")  # noqa: TRY004
        hashes = file.get("hashes")
        known = hashes.items() if isinstance(hashes, dict) else ()
        yield Listed(
            file["filename"],
            _digest({str(name): value for name, value in known if isinstance(value, str)}),
        )


def _from_html(body: bytes) -> Iterable[Listed]:
    for target in _links(body.decode("utf-8", "replace")):
        # The text of a link is for people: where it leads to is what a client downloads.
        parts = urlsplit(target)
        algorithm, separator, value = parts.fragment.partition("=")
        filename = unquote(parts.path).rpartition("/")[2]
        yield Listed(filename, _digest({algorithm: value}) if separator else "")


def _links(text: str) -> Iterable[str]:
    """Where the links of a page lead, in one pass: html.parser starts over for each tag or comment
    that has no end. https://html.spec.whatwg.org/multipage/parsing.html#tokenization
    """
    position = 0
    while position >= 0 and (opening := _OPENING.search(text, position)):
        if opening["tag"] is None:
            position = text.find("-->", opening.start() + 2)
            continue
        position, target = opening.end(), ""
        while attribute := _ATTRIBUTE.match(text, position):
            position = attribute.end()
            if attribute["name"].lower() == "href":
                value = attribute["double"] or attribute["single"] or attribute["bare"]
                target = target or value or ""
        position = text.find(">", position)
        if target and opening["tag"].lower() == "a" and position >= 0:
            yield html.unescape(target)
