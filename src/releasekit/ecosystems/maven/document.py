"""XML, read with bounds: elements, their text, and its offsets in the file.

A document type is refused, so that XML's five entities are the only ones, and nothing is fetched
(https://docs.python.org/3/library/xml.html#xml-security). A POM has no use for either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

from releasekit.host.files import read_parsed

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


@dataclass(slots=True)
class Element:
    """`tag` is without its namespace. `start` and `end` are the offsets of its text in bytes, which
    are equal without a text.
    """

    tag: str
    text: str = ""
    children: list[Element] = field(default_factory=list)
    start: int = 0
    end: int = 0

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
    return _XmlReader().read(data)


def read_document(path: Path) -> Element:
    """The root element of a file; raises ConfigError with its name."""
    return read_parsed(
        path,
        lambda text: parse_document(text.encode()),
        complaint="is not a POM",
        max_bytes=MAX_BYTES,
    )


class _XmlReader:
    def __init__(self) -> None:
        # As UTF-8, even if the XML declares another encoding: `read_document` accepts nothing else.
        self._parser = expat.ParserCreate("UTF-8")
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._open
        self._parser.EndElementHandler = self._close
        self._parser.CharacterDataHandler = self._characters
        self._top = Element("")
        self._open_elements = [self._top]
        self._texts: list[list[str]] = [[]]
        self._count = 0

    def read(self, data: bytes) -> Element:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            raise ValueError(str(error)) from error
        return self._top.children[0]

    def _refuse(self, *_: object) -> None:
        raise ValueError("it has a document type (<!DOCTYPE …>), which is not accepted")

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
        if not element.text:
            element.start = element.end
