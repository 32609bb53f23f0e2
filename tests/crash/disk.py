"""A disk that loses power: of what was not made durable in time, any part may be missing.

Built from the system calls of a real process. Nothing is assumed about the order in which unsynced
changes reach the disk, nor that a write arrives whole: POSIX promises neither, and file systems
differ (https://www.usenix.org/conference/osdi14/technical-sessions/presentation/pillai).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from crash.strace import Call


@dataclass(frozen=True)
class Change:
    """One change of one object (a file's contents or attributes, or the names in a directory)."""

    target: int
    kind: Literal["entry", "remove", "rename", "write", "truncate", "attributes", "sync", "said"]
    name: str = ""
    other: int = 0
    new_name: str = ""
    offset: int = 0
    data: bytes = b""


@dataclass
class Node:
    """A file or a directory."""

    names: dict[str, int] | None = None
    data: bytearray = field(default_factory=bytearray)
    mode: int = 0o644
    times_ns: tuple[int, int] | None = None


class Disk:
    """What was there at first, and every change since, in the order of the calls."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ids = count(1)
        self._first: dict[int, Node] = {}
        self._names: dict[str, int] = {}  # of every path as the process sees it
        self._modes: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._descriptors: dict[int, tuple[int, bool]] = {}
        self.changes: list[Change] = []
        self._scan(root)

    def replay(self, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.result >= 0:
                getattr(self, f"_{call.name}")(call)

    def crash(self, at: int, rng: random.Random, into: Path) -> list[str]:
        """Make `into` what the disk may hold after `at` changes; what was said until then."""
        nodes = {
            node_id: Node(
                names=None if node.names is None else dict(node.names),
                data=bytearray(node.data),
                mode=node.mode,
                times_ns=node.times_ns,
            )
            for node_id, node in self._first.items()
        }
        durable: set[int] = set()
        kept: list[tuple[Change, bool]] = []
        for change in reversed(self.changes[:at]):
            if change.kind == "sync":
                durable.add(change.target)
            elif change.kind != "said":
                kept.append((change, change.target in durable))
        for change, safe in reversed(kept):
            if safe or rng.random() < 0.5:
                _apply(nodes, change, None if safe else rng)
        _write_out(nodes, self._names[str(self._root)], into)
        return [change.name for change in self.changes[:at] if change.kind == "said"]

    def _scan(self, path: Path) -> int:
        node_id = self._names[str(path)] = next(self._ids)
        status = path.stat()
        if path.is_dir():
            names = {child.name: self._scan(child) for child in path.iterdir()}
            self._first[node_id] = Node(names=names, mode=status.st_mode & 0o7777)
        else:
            self._first[node_id] = Node(
                data=bytearray(path.read_bytes()),
                mode=status.st_mode & 0o7777,
                times_ns=(status.st_atime_ns, status.st_mtime_ns),
            )
            self._sizes[node_id] = status.st_size
        return node_id

    def _split(self, path: bytes) -> tuple[int, str] | None:
        folder, name = os.path.split(path.decode())
        return (self._names[folder], name) if folder in self._names else None

    def _add(self, *changes: Change) -> None:
        self.changes.extend(changes)

    def _openat(self, call: Call) -> None:
        path = call.texts[0].decode()
        place = self._split(call.texts[0])
        if path not in self._names and place is None:
            self._descriptors.pop(call.result, None)
            return
        if path not in self._names:
            assert place is not None
            node_id = self._names[path] = next(self._ids)
            mode = re.search(r", (0\d+)$", call.arguments)
            self._modes[node_id] = int(mode[1], 8) if mode else 0o644
            self._sizes[node_id] = 0
            self._add(Change(place[0], "entry", name=place[1], other=node_id))
        node_id = self._names[path]
        self._descriptors[call.result] = (node_id, "O_APPEND" in call.arguments)
        if "O_TRUNC" in call.arguments:
            self._sizes[node_id] = 0
            self._add(Change(node_id, "truncate"))

    _openat2 = _openat

    def _mkdir(self, call: Call) -> None:
        place = self._split(call.texts[0])
        if place is not None:
            node_id = self._names[call.texts[0].decode()] = next(self._ids)
            self._add(Change(place[0], "entry", name=place[1], other=-node_id))

    _mkdirat = _mkdir

    def _close(self, call: Call) -> None:
        self._descriptors.pop(call.descriptor, None)

    def _write(self, call: Call) -> None:
        if call.descriptor == 1:
            self._add(Change(0, "said", name=call.texts[0].decode().strip()))
        elif call.descriptor in self._descriptors:
            node_id, _ = self._descriptors[call.descriptor]
            data = call.texts[0][: call.result]
            self._add(Change(node_id, "write", offset=self._sizes[node_id], data=data))
            self._sizes[node_id] += len(data)

    def _ftruncate(self, call: Call) -> None:
        node_id, _ = self._descriptors[call.descriptor]
        size = int(call.arguments.rpartition(", ")[2])
        self._sizes[node_id] = size
        self._add(Change(node_id, "truncate", offset=size))

    def _fsync(self, call: Call) -> None:
        if call.descriptor in self._descriptors:
            self._add(Change(self._descriptors[call.descriptor][0], "sync"))

    _fdatasync = _fsync

    def _fchown(self, call: Call) -> None:
        """To the owner it has already, here."""

    def _fchmod(self, call: Call) -> None:
        node_id, _ = self._descriptors[call.descriptor]
        mode = int(call.arguments.rpartition(", ")[2], 8)
        self._add(Change(node_id, "attributes", offset=mode))

    def _utimensat(self, call: Call) -> None:
        node_id, _ = self._descriptors[call.descriptor]
        stamps = re.findall(r"tv_sec=(\d+), tv_nsec=(\d+)", call.arguments)
        times = ",".join(f"{seconds}{int(nanoseconds):09}" for seconds, nanoseconds in stamps)
        self._add(Change(node_id, "attributes", name=times))

    def _rename(self, call: Call) -> None:
        old, new = self._split(call.texts[0]), self._split(call.texts[1])
        assert old is not None
        assert new is not None
        assert old[0] == new[0], "only within one directory is a rename sure to be atomic"
        node_id = self._names.pop(call.texts[0].decode())
        self._names[call.texts[1].decode()] = node_id
        self._add(Change(old[0], "rename", name=old[1], other=node_id, new_name=new[1]))

    _renameat = _rename

    def _unlink(self, call: Call) -> None:
        place = self._split(call.texts[0])
        if place is not None:
            del self._names[call.texts[0].decode()]
            self._add(Change(place[0], "remove", name=place[1]))

    _unlinkat = _unlink


def _apply(nodes: dict[int, Node], change: Change, rng: random.Random | None) -> None:
    """Do it; with `rng` not wholly, if it can be torn."""
    node = nodes.setdefault(change.target, Node())
    match change.kind:
        case "entry":
            nodes.setdefault(abs(change.other), Node())
            if change.other < 0 and nodes[-change.other].names is None:
                nodes[-change.other].names = {}
            _names(node)[change.name] = abs(change.other)
        case "remove":
            _names(node).pop(change.name, None)
        case "rename":
            _names(node).pop(change.name, None)
            nodes.setdefault(change.other, Node())
            _names(node)[change.new_name] = change.other
        case "write":
            data = change.data if rng is None else _torn(change.data, rng)
            node.data.extend(bytes(max(0, change.offset - len(node.data))))
            node.data[change.offset : change.offset + len(data)] = data
        case "truncate":
            del node.data[change.offset :]
        case "attributes" if change.name:
            accessed, modified = map(int, change.name.split(","))
            node.times_ns = (accessed, modified)
        case "attributes":
            node.mode = change.offset
        case "sync" | "said":
            raise AssertionError(change)


def _names(node: Node) -> dict[str, int]:
    if node.names is None:
        node.names = {}
    return node.names


def _torn(data: bytes, rng: random.Random) -> bytes:
    cut = rng.randrange(len(data) + 1)
    hole = bytes(cut)
    return rng.choice(
        [data, data[:cut], hole, hole + data[cut:], data[:cut] + bytes(len(data) - cut)]
    )


def _write_out(nodes: dict[int, Node], root: int, into: Path) -> None:
    into.mkdir()
    for name, node_id in (nodes[root].names or {}).items():
        node = nodes[node_id]
        path = into / name
        if node.names is not None:
            _write_out(nodes, node_id, path)
        else:
            path.write_bytes(node.data)
            path.chmod(node.mode)
            if node.times_ns is not None:
                os.utime(path, ns=node.times_ns)
