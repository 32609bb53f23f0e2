"""The simple index, read: PEP 691 (JSON) where the server has it, else PEP 503 (HTML).

https://packaging.python.org/en/latest/specifications/simple-repository-api/
"""

from __future__ import annotations

import codecs
import contextlib
import html
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from packaging.utils import canonicalize_name, parse_sdist_filename
from packaging.version import Version

from releasekit.ecosystems.shared.answers import is_page
from releasekit.ecosystems.shared.documents import known_digest, table_in, text_in
from releasekit.errors import Rejected
from releasekit.model import MAX_REASON_CHARS, Published, Withdrawal
from releasekit.problems import Problem
from releasekit.text.escape import clip, one_line
from releasekit.text.json_text import read_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from releasekit.model import Package

HEADERS: Final = {
    # As pip asks, so that every index pip can read answers in a form it knows:
    # https://github.com/pypa/pip/blob/main/src/pip/_internal/index/collector.py
    "Accept": (
        "application/vnd.pypi.simple.v1+json, "
        "application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"
    ),
    # A cached page would hide a new release, or show one that was removed.
    "Cache-Control": "no-cache, max-age=0",
}

# No file system and no client takes half as much.
MAX_NAME_CHARS: Final = 8 * 1024
MAX_LINK_CHARS: Final = 16 * 1024
# Of a page, and of its attributes: the largest pages have three for each link.
MAX_TAGS: Final = 1_000_000
# Of one version; the largest known have some hundred wheels.
MAX_FILES: Final = 10_000

PUBLIC_HOSTS: Final = frozenset({"pypi.org", "test.pypi.org"})
_PIECE: Final = 1024 * 1024
# What only a page of an index has, besides links to files. Nearly all servers write the title that
# PyPI had, and web servers that list a directory one of the others.
# https://packaging.python.org/en/latest/specifications/simple-repository-api/#versioning-pypi-s-simple-api
_INDEX_PAGE: Final = re.compile(
    r"pypi:repository-version|"
    r"<title[^<>]{0,99}>[^<]{0,500}(?:links for|simple index|index of|directory listing)",
    re.IGNORECASE,
)

# Name, version, perhaps the number of a build, and three sets of tags.
# https://packaging.python.org/en/latest/specifications/binary-distribution-format/#file-name-convention
_TAGS: Final = r"[^\W\d]\w*+(?:\.\w++)*"
_WHEEL: Final = re.compile(
    rf"((?:[^\W_]|[.]|_(?!_))+)-([^-]++)(?:-\d[^-]*+)?-{_TAGS}-{_TAGS}-{_TAGS}"
)
# A tag or a comment. Possessive, so that no page takes long.
_OPENING: Final = re.compile(r"<(?:!--|(?P<tag>[A-Za-z][^\s/>]*+))")
_ATTRIBUTE: Final = re.compile(
    r"[\s/]*+(?P<name>[^\s/>=]++)(?>(?:\s*+=\s*+"
    r"""(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)'|(?P<bare>[^\s>"'][^\s>]*+)))?)"""
)


class ListedFile(Struct, frozen=True):
    """A file of an index page; `digest` is "algorithm:hex". `digest` and `uploaded` are empty where
    the page has none. https://peps.python.org/pep-0700/ `yanked` is why clients pass over it,
    which may be empty, and None where they do not. https://peps.python.org/pep-0592/ `url` may be
    relative to that of the page.
    """

    filename: str
    digest: str
    uploaded: str = ""
    yanked: str | None = None
    url: str = ""


def parse_page(body: bytes, content_type: str) -> Iterator[ListedFile]:
    """The files of one project's page. Raises ValueError for anything else."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind.endswith("json"):
        return _parse_json(body)
    if kind.endswith("html"):
        return _parse_html(body)
    raise ValueError(f"a page of type {clip(kind or 'unknown', 60)!r}")


def find_published(listed: Iterable[ListedFile], package: Package, *, url: str) -> Published | None:
    """The files of this version of the package; None when there are none.

    Raises ValueError for more files than any version has.
    """
    version = Version(package.version)
    files: dict[str, str] = {}
    kinds: set[str] = set()
    times: list[datetime] = []
    yanked: list[str] = []
    others: dict[Version, None] = {}
    for file in listed:
        release = parse_filename(file.filename)
        if release is None or release[0] != package.id.name:
            continue
        if release[1] != version:
            if file.yanked is None:
                others[release[1]] = None
            continue
        if len(files) >= MAX_FILES:
            raise ValueError(f"more than {MAX_FILES} files of {version}")
        if not file.digest:
            raise Rejected(
                f"{package}: {url} lists {file.filename} without a digest, so "
                "its bytes cannot be compared",
                hint="Have the index show sha256 digests, or name another one in pypi-index.",
                problem=Problem.STRANGE_ANSWER,
            )
        files[file.filename] = file.digest
        kinds.add(release[2])
        if file.yanked is not None:
            yanked.append(file.yanked)
        with contextlib.suppress(ValueError):
            times.append(datetime.fromisoformat(file.uploaded).astimezone(UTC))
    if not files:
        return None
    withdrawal = None
    if yanked:
        withdrawal = Withdrawal(
            word="yanked" if len(yanked) == len(files) else "yanked in part",
            cure=_spell_unyank(package, url),
            reason=one_line(max(yanked, key=len), MAX_REASON_CHARS),
            others=tuple(map(str, others)),
        )
    return Published(
        files=files,
        complete=len(kinds) == 2,
        url=url,
        since=min(times, default=None),
        withdrawal=withdrawal,
    )


def find_metadata(listed: Iterable[ListedFile], package: Package) -> str:
    """The address of the metadata of this version, as the page has it; empty where there is none.
    https://packaging.python.org/en/latest/specifications/simple-repository-api/#serve-distribution-metadata
    """
    wanted = package.id.name, Version(package.version), "bdist_wheel"
    urls = (it.url for it in listed if it.url and parse_filename(it.filename) == wanted)
    return next((f"{url}.metadata" for url in urls), "")


def _spell_unyank(package: Package, url: str) -> str:
    """https://docs.pypi.org/project-management/yanking/"""
    host = urlsplit(url).hostname
    if host in PUBLIC_HOSTS:
        return f"un-yank it at https://{host}/manage/project/{package.id.name}/releases/"
    return "un-yank its files on the index"


def parse_filename(filename: str) -> tuple[str, Version, str] | None:
    """Canonical name, version and "bdist_wheel" or "sdist"; None for any other file."""
    if len(filename) > MAX_NAME_CHARS:
        return None
    try:
        # Not by parse_wheel_filename: tags of a few kilobytes expand to billions of others.
        if filename.endswith(".whl"):
            wheel = _WHEEL.fullmatch(filename.removesuffix(".whl"))
            return wheel and (canonicalize_name(wheel[1]), Version(wheel[2]), "bdist_wheel")
        name, version = parse_sdist_filename(filename)
    except ValueError:
        return None
    return name, version, "sdist"


def _find_digest(hashes: Mapping[str, object]) -> str:
    for algorithm in ("sha256", *sorted(hashes)):
        if digest := known_digest(algorithm, hashes.get(algorithm)):
            return digest
    return ""


def _parse_json(body: bytes) -> Iterator[ListedFile]:
    listed = False
    for _, name, file in read_entries(body, {"files"}):
        if name is None:
            listed = isinstance(file, list)
        elif listed:
            if not text_in(file, "filename"):
                raise ValueError("a file without a filename")
            uploaded, yanked = text_in(file, "upload-time"), file.get("yanked")
            # Any value that is true: https://peps.python.org/pep-0691/#project-detail
            why = (yanked if isinstance(yanked, str) else "") if yanked else None
            digest = _find_digest(table_in(file, "hashes"))
            yield ListedFile(file["filename"], digest, uploaded, why, text_in(file, "url"))
    if not listed:
        raise ValueError("JSON without a list of files")


def _parse_html(body: bytes) -> Iterator[ListedFile]:
    # Piece by piece, so that other threads can run.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = (body[start : start + _PIECE] for start in range(0, len(body), _PIECE))
    text = "".join([*map(decoder.decode, pieces), decoder.decode(b"", final=True)])
    is_index = not is_page(body) or _INDEX_PAGE.search(text) is not None
    for target, yanked in _find_links(text):
        # The text of a link is for people; a client downloads its target.
        parts = urlsplit(target)
        algorithm, separator, value = parts.fragment.partition("=")
        filename = unquote(parts.path).rpartition("/")[2]
        digest = _find_digest({algorithm: value}) if separator else ""
        is_index = is_index or bool(digest) or parse_filename(filename) is not None
        yield ListedFile(filename, digest, yanked=yanked, url=target.partition("#")[0])
    if not is_index:
        raise ValueError("a web page without a link to a file")


def _find_links(text: str) -> Iterator[tuple[str, str | None]]:
    """The targets of a page's links, each with its `data-yanked`."""
    for tag, target, yanked in _find_tags(text):
        if target and tag == "a":
            if len(target) > MAX_LINK_CHARS:
                raise ValueError(f"a link of more than {MAX_LINK_CHARS} characters")
            yield html.unescape(target), None if yanked is None else html.unescape(yanked)


def _find_tags(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Each with `href` and `data-yanked`, in one pass: html.parser starts over for each tag or
    comment without an end. https://html.spec.whatwg.org/multipage/parsing.html#tokenization
    """
    if text.count("<") > MAX_TAGS:
        raise ValueError(f"more than {MAX_TAGS} tags")
    position = attributes = 0
    # A search for more than the first character would block other threads for as long as the page
    # has no tag.
    while position >= 0 and (position := text.find("<", position)) >= 0:
        opening = _OPENING.match(text, position)
        if opening is None:
            position += 1
            continue
        if opening["tag"] is None:
            position = text.find("-->", opening.start() + 2)
            continue
        position, target, yanked = opening.end(), "", None
        while attribute := _ATTRIBUTE.match(text, position):
            position = attribute.end()
            attributes += 1
            if attributes > MAX_TAGS:
                raise ValueError(f"more than {MAX_TAGS} attributes")
            name = attribute["name"].lower()
            if name in {"href", "data-yanked"}:
                value = attribute["double"] or attribute["single"] or attribute["bare"] or ""
                if name == "href":
                    target = target or value
                elif yanked is None:
                    yanked = value
        position = text.find(">", position)
        if position >= 0:
            yield opening["tag"].lower(), target, yanked
