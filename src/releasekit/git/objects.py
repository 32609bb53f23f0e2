"""Git objects made without touching a repository, and bundles that carry them elsewhere.

https://git-scm.com/book/en/v2/Git-Internals-Git-Objects and
https://git-scm.com/docs/gitformat-bundle, https://git-scm.com/docs/gitformat-pack
"""

from __future__ import annotations

import hashlib
import zlib
from bisect import bisect
from itertools import accumulate
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.host import durable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

Kind = Literal["commit", "tree", "blob", "tag"]

_CODES: Final[dict[Kind, int]] = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_KINDS: Final[dict[int, Kind]] = {code: kind for kind, code in _CODES.items()}
_SIGNATURE: Final = b"# v2 git bundle\n"
TREE_MODE: Final = "40000"
FILE_MODE: Final = "100644"
# Of a bundle, and of all that it unpacks to: two manifests, and the directories they are in.
MAX_BUNDLE_BYTES: Final = 64 * 1024 * 1024
_MAX_OBJECTS: Final = 10_000
_PIECE_BYTES: Final = 64 * 1024


class Object(Struct, frozen=True):
    kind: Kind
    content: bytes

    @property
    def id(self) -> str:
        """40 hex digits."""
        raw = f"{self.kind} {len(self.content)}\0".encode() + self.content
        return hashlib.sha1(raw, usedforsecurity=False).hexdigest()


class TreeEntry(Struct, frozen=True):
    """One line of a tree; `mode` as git stores it, without a leading zero."""

    mode: str
    id: str


class Signature(Struct, frozen=True):
    """Who and when (seconds since 1970, UTC)."""

    name: str
    email: str
    time_s: int

    def __str__(self) -> str:
        return f"{self.name} <{self.email}> {self.time_s} +0000"


def make_tree(entries: Mapping[str, TreeEntry]) -> Object:
    def order(name: str) -> bytes:
        # Directories sort as if their names ended in a slash.
        return f"{name}/".encode() if entries[name].mode == TREE_MODE else name.encode()

    content = b"".join(
        f"{entries[name].mode} {name}\0".encode() + bytes.fromhex(entries[name].id)
        for name in sorted(entries, key=order)
    )
    return Object("tree", content)


def make_commit(root: str, parent: str, by: Signature, message: str) -> Object:
    text = f"tree {root}\nparent {parent}\nauthor {by}\ncommitter {by}\n\n{message}\n"
    return Object("commit", text.encode())


def make_tag(name: str, on: str, by: Signature, message: str) -> Object:
    text = f"object {on}\ntype commit\ntag {name}\ntagger {by}\n\n{message}\n"
    return Object("tag", text.encode())


class TagBundle(Struct, frozen=True):
    """A tag, and the objects it needs besides those of the commit `prerequisite`."""

    name: str
    prerequisite: str
    objects: Sequence[Object]

    @property
    def tag(self) -> str:
        """The id of the tag object, the last one."""
        return self.objects[-1].id

    def to_bytes(self) -> bytes:
        """A file for `git fetch` and `git bundle unbundle`."""
        head = f"-{self.prerequisite} \n{self.tag} refs/tags/{self.name}\n\n"
        return _SIGNATURE + head.encode() + _pack([_pack_object(each) for each in self.objects])

    @classmethod
    def from_bytes(cls, data: bytes) -> TagBundle:
        """From a file that `to_bytes` made; raises ValueError for anything else."""
        head, separator, pack = data.partition(b"\n\n")
        lines = head.removeprefix(_SIGNATURE).decode().splitlines()
        if not separator or not head.startswith(_SIGNATURE) or len(lines) != 2:
            raise ValueError("not a bundle of one tag")
        prerequisite, (oid, _, ref) = lines[0][1:].strip(), lines[1].partition(" ")
        try:
            objects = tuple(_unpack(pack))
        except (LookupError, zlib.error) as error:
            raise ValueError(f"its pack is damaged ({error})") from error
        if not objects:
            raise ValueError("it holds no tag")
        bundle = cls(ref.removeprefix("refs/tags/"), prerequisite, objects)
        if bundle.tag != oid:
            raise ValueError(f"its tag is {bundle.tag}, not {oid}")
        return bundle


def write_pack(objects: Iterable[Object], directory: Path) -> None:
    """Write them, as one pack, to a directory that git is told to look for objects in; several may
    be the same. Not durable.
    """
    packed = {each.id: _pack_object(each) for each in objects}
    names, pack = sorted(packed), _pack(packed.values())
    starts = dict(zip(packed, accumulate(map(len, packed.values()), initial=12), strict=False))
    numbers = [
        *(bisect(names, f"{first:02x}~") for first in range(256)),  # "~" is behind all digits
        *(zlib.crc32(packed[name]) for name in names),
        *(starts[name] for name in names),
    ]
    fields = [number.to_bytes(4, "big") for number in numbers]
    ids = map(bytes.fromhex, names)
    index = b"".join([b"\xfftOc\0\0\0\2", *fields[:256], *ids, *fields[256:], pack[-20:]])
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    durable.make_directory(directory / "pack", sync=False)
    for ending, data in (("pack", pack), ("idx", index)):
        with durable.writing(directory / "pack" / f"pack-{pack[-20:].hex()}.{ending}") as file:
            file.write(data)


def _pack_object(each: Object) -> bytes:
    size = len(each.content)
    byte = _CODES[each.kind] << 4 | size & 0x0F
    size >>= 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    head.append(byte)
    return bytes(head) + zlib.compress(each.content)


def _pack(packed: Collection[bytes]) -> bytes:
    head = b"PACK" + (2).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    body = b"".join([head, *packed])
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _unpack(pack: bytes) -> Iterator[Object]:
    body, check = pack[:-20], pack[-20:]
    if body[:8] != b"PACK\0\0\0\2" or hashlib.sha1(body, usedforsecurity=False).digest() != check:
        raise ValueError("its pack is damaged")
    position, room, count = 12, MAX_BUNDLE_BYTES, int.from_bytes(body[8:12], "big")
    if count > _MAX_OBJECTS:
        raise ValueError(f"its pack holds more than {_MAX_OBJECTS} objects")
    for _ in range(count):
        byte = body[position]
        kind = _KINDS[byte >> 4 & 0x07]
        position += 1
        while byte & 0x80:
            byte = body[position]
            position += 1
        inflate = zlib.decompressobj()
        content = bytearray()
        # In pieces: what follows an object is copied with each.
        while not inflate.eof:
            piece = body[position : position + _PIECE_BYTES]
            if not piece:
                raise ValueError("its pack is damaged")
            content += inflate.decompress(piece, room + 1 - len(content))
            if len(content) > room:
                raise ValueError(f"its pack unpacks to more than {MAX_BUNDLE_BYTES} bytes")
            position += len(piece) - len(inflate.unused_data)
        room -= len(content)
        yield Object(kind, bytes(content))
