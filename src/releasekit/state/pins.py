"""Manifests pinned for the length of a build, and always restored byte for byte.

Before the first manifest changes, the originals of the whole set lie in one backup file, durably.
Pinning and restoring compare hashes, last of all right before the rename, and never overwrite what
was edited meanwhile; only an edit between these two system calls goes unseen. Beside the originals
lies what a tool may rewrite while it builds, which no hash tells beforehand. Each ecosystem has its
own backups, so a run that recovers under its lock cannot undo what a run of another ecosystem is
building from.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import hashlib
import hmac
import json
import os
import threading
from functools import cache
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import asdict

from releasekit.aio import uncancellable
from releasekit.errors import StateError
from releasekit.host import durable
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.problems import Problem
from releasekit.state import lock_order
from releasekit.state.directory import state_error, state_errors
from releasekit.state.lock_order import Kind
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from releasekit.state.seals import Seal

State = Literal["original", "pinned", "edited"]
# Whose backup it is while versions are written, under the locks of all ecosystems.
VERSIONS: Final = "version"
_PURPOSE: Final = b"originals of manifests, 1"
_HINT: Final = "Building with pinned versions keeps the originals there."
# Of two sets that are pinned at once, the second sees the first.
_SAVING: Final = threading.Lock()
# One backup, which is read as a whole: 10,000 manifests of three kilobytes each.
MAX_BYTES: Final = 48 * 1024 * 1024
_MAX_HEADER_BYTES: Final = 1024


class Original(Struct, frozen=True, kw_only=True):
    """One manifest as it was, None where there was none. `pinned` is the sha256 (hex) of its pinned
    bytes, empty where those are None, and None for a file that a tool may rewrite in place: `inode`
    is where that lay.
    """

    path: Path
    data: bytes | None
    pinned: str | None
    attributes: durable.Attributes | None = None
    times_ns: tuple[int, int] | None = None
    inode: int = 0


class _Edited(StateError):
    """A manifest is neither the original nor what it was pinned to."""


class EphemeralPin:
    """`with EphemeralPin(…)`: inside, every manifest of the set holds its new bytes. With `async
    with`, a thread does the work on the disk, and no cancellation cuts it short.

    A symbolic link is followed and stays one. A hard link is split: the other names keep the
    original bytes, and the manifest comes back as a separate file.
    """

    def __init__(
        self,
        state_directory: Path,
        manifests: Mapping[Path, bytes | None],
        *,
        rewritten: Collection[Path] = (),
        ecosystem: str,
        root: Path,
        seal: Seal | None = None,
    ) -> None:
        """`manifests` maps files inside `root` to their pinned bytes, None for those that go; the
        lock is held. Files that a tool may rewrite (`rewritten`) keep their bytes until then, and
        come back in the place of anything else; none of them is a link.
        """
        self._seal = seal
        self._directory = backup_directory(state_directory, ecosystem)
        self._manifests = manifests
        self._rewritten = rewritten
        self._root = root.resolve()
        self._originals: tuple[Original, ...] = ()
        self._pinned: dict[Path, bytes | None] = {}
        self._backup: Path | None = None
        self._hold: lock_order.Hold | None = None

    def __enter__(self) -> Self:
        """Raises StateError, with nothing changed, when one of them cannot be pinned."""
        self._examine()
        if self._take_turn():
            self._change()
        return self

    async def __aenter__(self) -> Self:
        """As `__enter__`."""
        if self._manifests or self._rewritten:
            await uncancellable(asyncio.to_thread(self._examine))
        if self._take_turn():
            await uncancellable(asyncio.to_thread(self._change))
        return self

    def _examine(self) -> None:
        pinned = {path.resolve(): data for path, data in self._manifests.items()}
        originals = [
            original
            for path, data in pinned.items()
            if (original := _examine(path, _sha256(data), self._root)).data != data
        ]
        for path in self._rewritten:
            place = path.parent.resolve() / path.name
            originals.append(_examine(place, None, self._root))
        self._originals = tuple(sorted(originals, key=attrgetter("path")))
        self._pinned = pinned

    def _take_turn(self) -> bool:
        """Take the lock in the context of the caller, whose later locks it orders; False without a
        file to pin or to keep.
        """
        if self._originals:
            self._hold = lock_order.take(Kind.PINS, str(self._originals[0].path))
        return bool(self._originals)

    def _change(self) -> None:
        try:
            with _SAVING:
                self._backup = _save(self._originals, self._directory, self._root, self._seal)
            for original in self._originals:
                if original.pinned is not None:
                    _put(original, self._pinned[original.path])
        except BaseException:
            self.close()
            raise

    def keep(self) -> None:
        """Leave the new bytes where they are, for good."""
        if self._backup is not None:
            durable.remove(self._backup)
            self._backup = None

    def close(self) -> None:
        """Idempotent. Raises StateError for manifests that were edited: they stay as they are."""
        try:
            if self._backup is not None:
                give_back(self._backup, root=self._root, seal=self._seal)
                self._backup = None
        finally:
            if self._hold is not None:
                self._hold.release()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aexit__(self, *_: object) -> None:
        if self._originals:
            await uncancellable(asyncio.to_thread(self.close))


@state_errors(_HINT)
def recover(
    state_directory: Path, ecosystems: Collection[str], *, root: Path, seal: Seal | None = None
) -> tuple[Path, ...]:
    """Restore what a killed run left pinned, and return those manifests; its locks are held.

    Raises StateError, after restoring all it can, when a manifest was edited since, or has to be
    restored from a backup without this seal. Without one, a checksum is enough.
    """
    recovered: list[Path] = []
    problems: list[StateError] = []
    for backup in backups(state_directory, [*ecosystems, VERSIONS]):
        try:
            recovered += give_back(backup, root=root.resolve(), seal=seal, later=True)
        except StateError as error:
            if backup.name in durable.names(backup.parent):  # else another run was quicker
                problems.append(error)
    for ecosystem in [*ecosystems, VERSIONS]:
        for unfinished in _files(backup_directory(state_directory, ecosystem), ".tmp"):
            durable.remove(unfinished)
    if problems:
        raise StateError(
            "; ".join(map(str, problems)), hint=problems[0].hint, problem=Problem.PINNED_MANIFEST
        )
    return tuple(recovered)


def backups(state_directory: Path, ecosystems: Collection[str]) -> Iterator[Path]:
    """The backup files of these ecosystems, each a set of manifests that may be pinned still."""
    for ecosystem in sorted(ecosystems):
        yield from _files(backup_directory(state_directory, ecosystem), ".json")


def _files(directory: Path, suffix: str) -> list[Path]:
    with state_errors(_HINT):
        return [directory / name for name in durable.names(directory) if name.endswith(suffix)]


def backup_directory(state_directory: Path, ecosystem: str) -> Path:
    return state_directory / "backup" / ecosystem


@state_errors(_HINT)
def give_back(
    backup: Path, *, root: Path, seal: Seal | None = None, later: bool = False
) -> tuple[Path, ...]:
    """Restore one set and drop its backup; with an edited manifest among them, keep both. A `later`
    run leaves alone what may not be what a tool has written.
    """
    originals = load(backup, root)
    # Whoever made the backup: these names are ours, and git would call the checkout changed.
    for each in originals:
        _remove_unfinished(each.path)
    if later:
        originals = tuple(each for each in originals if each.pinned is not None or _is_left(each))
    if seal is not None:
        header, body = _parts(backup)
        given = header.partition(b" ")[2]
        if not hmac.compare_digest(given, seal.of_bytes(_PURPOSE, body).encode()):
            # On another machine no manifest has to change.
            changed = [
                str(each.path)
                for each in originals
                if each.pinned is not None and state_of(each) != "original"
            ]
            if changed:
                raise StateError(
                    f"{', '.join(changed)}: not as in {backup}, and no seal shows who made that "
                    "backup",
                    hint="If a run was killed here, restore the manifests from version control. "
                    "Then delete that file.",
                    problem=Problem.PINNED_MANIFEST,
                )
            originals = ()
    edited = [str(original.path) for original in originals if not _restore(original)]
    if edited:
        raise StateError(
            f"{', '.join(edited)}: changed since it was pinned for a build, so it was left alone",
            hint=f"The original is in {backup}. Put the file right, then delete that backup.",
            problem=Problem.PINNED_MANIFEST,
        )
    durable.remove(backup)
    return tuple(original.path for original in originals)


def load(backup: Path, root: Path) -> tuple[Original, ...]:
    """Raises StateError when the backup is damaged, or names a file outside `root`."""
    try:
        header, body = _parts(backup)
    except OSError as error:
        raise _unusable(backup, error.strerror) from error
    digest = header.partition(b" ")[0]
    if digest != _sha256(body).encode():
        raise _unusable(backup, "its checksum is wrong")
    try:
        return tuple(_decode(fields, root) for fields in parse_json(body, max_bytes=MAX_BYTES))
    except (KeyError, TypeError, ValueError) as error:
        raise _unusable(backup, str(error)) from error


def _parts(backup: Path) -> tuple[bytes, bytes]:
    """Its first line and the rest. Raises OSError."""
    with durable.reading(backup) as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is longer than {MAX_BYTES} bytes", str(backup))
        return file.readline(_MAX_HEADER_BYTES).rstrip(b"\n"), file.read(MAX_BYTES)


def _unusable(backup: Path, reason: str | None) -> StateError:
    return StateError(
        f"{backup}: unusable, so no manifest is restored from it: {reason}",
        hint="Restore the manifests from version control, then delete that file.",
        problem=Problem.PINNED_MANIFEST,
    )


def state_of(original: Original) -> State:
    """What is in the manifest's place now; "edited" covers a file that is gone or elsewhere."""
    current: str | None
    try:
        current = _sha256(durable.read_file(original.path, max_bytes=MAX_MANIFEST_BYTES))
    except FileNotFoundError:
        current = ""
    except OSError:
        current = None
    if current == _sha256(original.data):
        return "original"
    return "pinned" if original.pinned is None or current == original.pinned else "edited"


def _is_left(original: Original) -> bool:
    """Whether a file still is as a tool may have left it that was killed. Cargo rewrites its lock
    file in place; git, and most editors, put another file there.

    https://github.com/rust-lang/cargo/blob/rust-1.95.0/src/cargo/ops/lockfile.rs
    """
    try:
        same = original.path.lstat().st_ino == original.inode
    except OSError:
        return False
    return same and state_of(original) == "pinned"


def _examine(path: Path, pinned: str | None, root: Path) -> Original:
    if not path.is_relative_to(root):
        raise StateError(f"{path}: is outside the workspace {root}, so it cannot be pinned")
    try:
        with durable.reading(path) as file:
            status, data = os.fstat(file.fileno()), file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        return Original(path=path, data=None, pinned=pinned)
    except OSError as error:
        raise StateError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_MANIFEST_BYTES:
        raise StateError(f"{path}: larger than {MAX_MANIFEST_BYTES} bytes, so it cannot be pinned")
    return Original(
        path=path,
        data=data,
        pinned=pinned,
        attributes=durable.Attributes.from_status(status),
        times_ns=(status.st_atime_ns, status.st_mtime_ns),
        inode=status.st_ino,
    )


def _save(originals: Sequence[Original], directory: Path, root: Path, seal: Seal | None) -> Path:
    with state_errors(_HINT):
        durable.make_directory(directory)
        _entered(directory)
    paths = {original.path for original in originals}
    for other in _files(directory, ".json"):
        if twice := paths.intersection(original.path for original in _still_in(other, root)):
            raise StateError(
                f"{min(twice)}: is pinned already, by {other}", problem=Problem.PINNED_MANIFEST
            )
    # Another set may have been given back since they were read.
    if changed := [original.path for original in originals if state_of(original) != "original"]:
        raise StateError(
            f"{changed[0]}: changed while it was being pinned for a build",
            hint="Let nothing change the manifests during a run, and run again.",
            problem=Problem.PINNED_MANIFEST,
        )
    backup = directory / f"{_sha256(os.fsencode(min(paths)))[:16]}.json"
    rows = [
        {
            "path": original.path.relative_to(root).as_posix(),
            "data": None
            if original.data is None
            else base64.b64encode(original.data).decode("ascii"),
            "pinned": original.pinned,
            "attributes": original.attributes and asdict(original.attributes),
            "times_ns": original.times_ns,
            "inode": original.inode,
        }
        for original in originals
    ]
    body = json.dumps(rows).encode()
    mark = f" {seal.of_bytes(_PURPOSE, body)}" if seal is not None else ""
    sealed = f"{_sha256(body)}{mark}\n".encode() + body
    if len(sealed) > MAX_BYTES:
        raise StateError(
            f"{directory}: the originals of {len(originals)} manifests take more than {MAX_BYTES} "
            "bytes",
            hint="Publish fewer packages at once, with `packages`.",
            problem=Problem.PINNED_MANIFEST,
        )
    with state_errors(_HINT):
        durable.replace(backup, sealed, temporary=backup.with_suffix(".tmp"))
    return backup


@cache
def _entered(directory: Path) -> None:
    """Make its names durable, once for a process: a killed run may have made the directories and
    not synced them.
    """
    for parent in (directory, *directory.parents[:2]):
        durable.fsync_directory(parent.parent)


def _still_in(backup: Path, root: Path) -> tuple[Original, ...]:
    """What a backup holds; nothing once it has been given back."""
    try:
        return load(backup, root)
    except StateError:
        if not durable.is_file(backup):
            return ()
        raise


def _put(
    original: Original, data: bytes | None, *, times_ns: tuple[int, int] | None = None
) -> None:
    """Raises _Edited, with the edit as it is."""

    def look() -> None:
        if state_of(original) == "edited":
            raise _Edited(f"{original.path}: changed while its bytes were exchanged")

    try:
        if data is None:
            look()
            durable.remove(original.path)
            return
        durable.replace(
            original.path,
            data,
            attributes=original.attributes,
            times_ns=times_ns,
            temporary=_temporary(original.path),
            last_look=look,
        )
    except OSError as error:
        raise state_error(
            error,
            f"{original.path}: cannot be replaced: {error.strerror}",
            "Building with pinned versions writes into the directory of every manifest.",
        ) from error


def _restore(original: Original) -> bool:
    """False when a manifest is neither the original nor what it was pinned to."""
    state = state_of(original)
    if state == "edited":
        return False
    if original.pinned is None and not durable.is_file(original.path):
        durable.remove_tree(original.path)  # a directory cannot be replaced
    if state == "pinned" or _differs(original):
        try:
            _put(original, original.data, times_ns=original.times_ns)
        except _Edited:
            return False
    return True


def _differs(original: Original) -> bool:
    if original.attributes is None or original.times_ns is None:
        return False
    status = original.path.lstat()
    mode_and_time = durable.Attributes.from_status(status).mode, status.st_mtime_ns
    return mode_and_time != (original.attributes.mode, original.times_ns[1])


def _temporary(path: Path) -> Path:
    """The same name in every run, so that the next one can remove what a killed run left."""
    return path.with_name(f".{path.name}.releasekit")


def _remove_unfinished(path: Path) -> None:
    """What a killed run was about to put at `path`; a link or a directory there is not ours."""
    unfinished = _temporary(path)
    with contextlib.suppress(OSError):
        if durable.is_file(unfinished):
            durable.remove(unfinished)


def _decode(fields: Mapping[str, Any], root: Path) -> Original:
    path = PurePosixPath(fields["path"])
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} is outside the workspace")
    if fields["data"] is None:
        return Original(path=root / path, data=None, pinned=fields["pinned"])
    accessed, modified = fields["times_ns"]
    return Original(
        path=root / path,
        data=base64.b64decode(fields["data"], validate=True),
        pinned=fields["pinned"],
        attributes=durable.Attributes(**fields["attributes"]),
        times_ns=(accessed, modified),
        inode=fields.get("inode", 0),
    )


def _sha256(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
