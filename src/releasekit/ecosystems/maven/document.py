"""XML, read with bounds: elements, their text, and its offsets in the file.

As Maven does, this takes the encodings that a document can name, a document type, of which it
obeys nothing, and the entities of HTML 4. No entity that a document declares is replaced, and
nothing is fetched (https://docs.python.org/3/library/xml.html#xml-security).
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, lookup
from contextlib import suppress
from html.entities import name2codepoint
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

from msgspec import Struct, field

from releasekit.errors import Unreadable
from releasekit.host.files import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The largest POM of the projects on Maven Central is some 300 kB.
MAX_BYTES: Final = 8 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_ELEMENTS: Final = 200_000
MAX_ATTRIBUTES: Final = 20_000
# Only a tag of this length may have more attributes, which take expat longer than all other bytes.
# A tag holds no other "<". https://www.w3.org/TR/xml/#NT-AttValue
_LONG: Final = re.compile(rb"<[^<]{65536,}+")
# https://www.w3.org/TR/xml/#sec-guessing
_BY_START: Final = {
    b"\xff\xfe": "utf-16-le",
    b"<\0": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"\0<": "utf-16-be",
}
_DECLARED: Final = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
# Maven's parser takes no other: https://github.com/codehaus-plexus/plexus-utils (MXParser)
_NOT_1_0: Final = re.compile(rb"""<\?xml\s+version\s*=\s*["'](?!1\.0["'])""")
# What edits write has to be the same in each encoding that a declaration may name.
_ASCII: Final = "<${a-1}>"
# Of one byte in every encoding, taken by expat, and in no name of XML.
_BLANK: Final = "\x7f"
_LOST: Final = "\ufffd"
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_ENCODING: Final = "ReleaseKit cannot read the encoding {!r}: save it as UTF-8"


class Element(Struct):
    """`tag` is without its namespace. `start` and `end` are the offsets of its text in bytes, which
    are equal without a text. Of a root, `stray` is the first line with a byte that is not of its
    encoding, or 0.
    """

    tag: str
    text: str = ""
    children: list[Element] = field(default_factory=list)
    start: int = 0
    end: int = 0
    stray: int = 0

    def child(self, *path: str) -> Element | None:
        """The first element down this path, each step the first child of that name."""
        found: Element | None = self
        for tag in path:
            if found is None:
                return None
            found = next((child for child in found.children if child.tag == tag), None)
        return found

    def all(self, *path: str) -> Iterator[Element]:
        """Every element of the last name below the first of each name before it."""
        *above, last = path
        holder = self.child(*above)
        if holder is not None:
            yield from (child for child in holder.children if child.tag == last)

    def value(self, *path: str) -> str:
        """The text of a child without white space around it; empty without a child."""
        found = self.child(*path)
        return found.text.strip() if found is not None else ""


def parse_document(data: bytes) -> Element:
    """The root element. Raises ValueError for invalid XML, and beyond the bounds."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"more than {MAX_BYTES} bytes")
    if any(found[0].count(b"=") > MAX_ATTRIBUTES for found in _LONG.finditer(data)):
        raise ValueError(f"a tag with more than {MAX_ATTRIBUTES} attributes")
    if _NOT_1_0.match(data.removeprefix(BOM_UTF8)):
        raise ValueError('Maven reads only XML 1.0: write <?xml version="1.0"?> in the first line')
    return _XmlReader(data).read()


def read_document(path: Path) -> Element:
    """The root element of a file; raises ConfigError with its name."""
    data = read_file(path, max_bytes=MAX_BYTES)
    try:
        return parse_document(data)
    except ValueError as error:
        raise Unreadable(f"{path} is not a POM: {error}") from error


def encode(text: str, document: bytes) -> bytes:
    """`text` as it would stand in this document, which can be parsed."""
    return text.encode(_find_encoding(document), "xmlcharrefreplace")


def _find_encoding(document: bytes) -> str:
    """The codec, which adds no byte order mark; raises ValueError for an unknown one."""
    if document.startswith(BOM_UTF8):  # which says more than the declaration does
        return "utf-8"
    if encoding := _BY_START.get(document[:2]):
        return encoding
    declared = _DECLARED.match(document)
    name = declared[1].decode() if declared else "utf-8"
    with suppress(LookupError, ValueError):
        if _ASCII.encode(name) == _ASCII.encode():
            return lookup(name).name
    raise ValueError(_ENCODING.format(name))


def _blank_strays(data: bytes, encoding: str) -> bytes:
    """`data` with _BLANK for each byte that is not of its encoding. Maven reads such as U+FFFD, and
    expat none. Raises ValueError for encodings that expat cannot read.
    """
    # What is in ASCII alone is so in every encoding of several bytes, which expat cannot read.
    if data.isascii() or data[:2] in _BY_START:
        return data
    if encoding == "utf-8":
        return _ESCAPED.sub(_BLANK, data.decode("utf-8", "surrogateescape")).encode()
    known = ""
    with suppress(LookupError):  # a codec of something else than text
        known = bytes(range(256)).decode(encoding, "replace")
    if len(known) != 256:
        raise ValueError(_ENCODING.format(encoding))
    return data.translate(bytes(ord(_BLANK) if it == _LOST else at for at, it in enumerate(known)))


class _XmlReader:
    def __init__(self, data: bytes) -> None:
        encoding = _find_encoding(data)
        is_utf8 = encoding == "utf-8" or data.isascii()
        self._data, self._stray = _blank_strays(data, encoding), 0
        if self._data != data:
            lines = zip(data.split(b"\n"), self._data.split(b"\n"), strict=True)
            self._stray = next(number for number, (old, new) in enumerate(lines, 1) if old != new)
        self._parser = expat.ParserCreate("UTF-8" if is_utf8 else None)
        # So undeclared entities are no errors; and with a default handler, it gets all of them
        # instead of their text: https://libexpat.github.io/doc/api/latest/#XML_SetDefaultHandler
        self._parser.UseForeignDTD(True)
        self._parser.DefaultHandler = self._default
        self._parser.EntityDeclHandler = self._declare
        self._parser.AttlistDeclHandler = self._refuse
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.CharacterDataHandler = self._characters
        self._top = Element("")
        self._open_elements = [self._top]
        self._texts: list[list[str]] = [[]]
        self._count = 0
        self._declared = 0
        self._references = data.count(b"&")

    def read(self) -> Element:
        try:
            self._parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise ValueError(str(error)) from error
        root = self._top.children[0]
        root.stray = self._stray
        return root

    def _default(self, text: str) -> None:
        """Of references, mvn takes those of HTML 4, and none that a document declares:
        https://codehaus-plexus.github.io/modello/modello-plugins/modello-plugin-xpp3/
        """
        if text[0] == "&":
            name = text[1:-1]
            if name not in name2codepoint:
                raise ValueError(
                    f"neither ReleaseKit nor Maven resolves {text[:60]}: write the text itself"
                )
            self._characters(chr(name2codepoint[name]))

    def _declare(self, _name: str, _is_parameter: object, value: str | None, *_: object) -> None:
        """In attributes, expat replaces entities all the same."""
        self._declared += len(value or "")
        if "&" in (value or "") or self._declared * self._references > MAX_BYTES:
            raise ValueError("the entities that it declares may expand too far: remove them")

    def _refuse(self, *_: object) -> None:
        raise ValueError("its document type declares attributes (<!ATTLIST …>): remove them")

    def _open(self, name: str, _attributes: object) -> None:
        self._count += 1
        if self._count > MAX_ELEMENTS or len(self._open_elements) > MAX_DEPTH:
            raise ValueError("it has too many elements, or they are nested too deeply")
        # Without its prefix; expat would put the whole URL of its namespace before each tag.
        element = Element(name.rpartition(":")[2])
        self._open_elements[-1].children.append(element)
        self._open_elements.append(element)
        self._texts.append([])

    def _characters(self, text: str) -> None:
        if not self._texts[-1]:
            self._open_elements[-1].start = self._parser.CurrentByteIndex
        self._texts[-1].append(text)

    def _close(self, _name: str) -> None:
        element = self._open_elements.pop()
        element.end = self._parser.CurrentByteIndex
        element.text = "".join(self._texts.pop())
        if self._stray:
            element.text = element.text.replace(_BLANK, _LOST)
        if not element.text:
            element.start = element.end
