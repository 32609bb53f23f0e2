"""Put a case's files into a directory of its own, run it in a fork of the template, and see what it
did.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.forking import ForkServer
from hostile.case import Fifo, Folder, Link, Sparse, environment_of
from hostile.template import Answer, Request
from outside import make_outside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hostile.case import Case, Content

_TESTS: Final = Path(__file__).parents[1]
_PLACES: Final = ("w", "home", "tmp", "runner", "registry", "canary/inside", "streams")
_READ_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """What is at one path; a directory's time is not part of it."""

    mode: int
    size: int
    mtime_ns: int
    content: str  # a digest, or the target of a link
    inode: int = field(default=0, compare=False)  # of some, it may be another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended. `before` and `after` map paths relative to the root to what was there;
    `written` are the bytes of all files that are new or changed, the streams among them.
    """

    root: Path
    code: int
    out: str
    err: str
    timed_out: bool
    cpu_s: float
    wall_s: float
    peak_mb: float
    stall_s: float
    slowness: float
    left: tuple[str, ...]
    before: Mapping[str, Entry]
    after: Mapping[str, Entry]
    written: Mapping[str, bytes] = field(repr=False)
    results: Mapping[str, str]

    @property
    def streams(self) -> str:
        return f"{self.out}\n{self.err}"


class Template(ForkServer):
    """The process that forks; one serves a whole session of tests."""

    def __init__(self) -> None:
        super().__init__("hostile.template")
        self.slowness = self.receive(float)

    def ask(self, request: Request) -> Answer:
        self.send(request)
        return self.receive(Answer)


@contextlib.contextmanager
def carried_out(case: Case, template: Template) -> Iterator[Ended]:
    """The run, in a directory that is removed afterwards."""
    with contextlib.ExitStack() as stack:
        place = make_outside("case") if case.sandboxed else None
        if place and case.uid is not None:
            place.chmod(0o711)
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="hostile-", dir=place, ignore_cleanup_errors=True)
        )
        root = Path(directory).resolve()
        values = {"{root}": str(root)}
        if case.server:
            values["{server}"] = stack.enter_context(case.server())
        _lay_out(case, root, values)
        before = snapshot(root)
        answer = template.ask(_request(case, root, values))
        yield _ended(answer, root, before, template.slowness)


def _lay_out(case: Case, root: Path, values: Mapping[str, str]) -> None:
    for place in _PLACES:
        (root / place).mkdir(parents=True)
    (root / "canary/precious").write_bytes(b"precious")
    (root / "canary/inside/pyproject.toml").write_bytes(b"precious too")
    for name in ("output", "summary"):
        (root / "runner" / name).touch()
    for name, content in case.files.items():
        _put(root / _filled(name, values), content, values)
    if case.prepare:
        case.prepare(root)
    if case.uid is not None and os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            if "canary" not in path.relative_to(root).parts:
                os.chown(path, case.uid, case.uid, follow_symlinks=False)
        root.chmod(0o755)


def _put(path: Path, content: Content, values: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.is_file() or content is None:
        path.unlink(missing_ok=True)
    match content:
        case bytes():
            path.write_bytes(content)
        case str():
            path.write_bytes(_filled(content, values).encode("utf-8", "surrogateescape"))
        case Link(target):
            path.symlink_to(_filled(target, values))
        case Fifo():
            os.mkfifo(path)
        case Sparse(size):
            with path.open("wb") as file:
                file.truncate(size)
        case Folder(mode):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
        case None:
            pass
        case _:
            path.write_bytes(content())


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _request(case: Case, root: Path, values: Mapping[str, str]) -> Request:
    return Request(
        argv=tuple(_filled(each, values) for each in case.argv),
        environment={
            name: _filled(value, values) for name, value in environment_of(case, root).items()
        },
        cwd=str(root / case.cwd),
        cwd_gone=case.cwd_gone,
        streams=str(root / "streams"),
        closed=case.closed,
        uid=case.uid,
        executed=case.executed,
        signals=tuple((at.where, at.number, at.nth, at.again) for at in case.signals),
        wall_s=case.wall_s,
        left_s=case.left_s,
        breaks=case.breaks,
    )


def snapshot(root: Path) -> dict[str, Entry]:
    """Everything below `root`, links not followed."""
    found = {}
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = os.path.join(directory, name)  # noqa: PTH118 - a name may be no text
            found[os.path.relpath(path, root)] = _entry(path)
    return found


def _entry(path: str) -> Entry:
    state = os.lstat(path)
    content = ""
    if stat.S_ISLNK(state.st_mode):
        content = os.readlink(path)  # noqa: PTH115 - as above
    elif not os.access(path, os.R_OK):
        content = "out of reach"  # of whoever is not root, what a case has locked
    elif stat.S_ISREG(state.st_mode) and state.st_size <= _READ_BYTES:
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    still = not stat.S_ISDIR(state.st_mode)
    size, mtime_ns = (state.st_size, state.st_mtime_ns) if still else (0, 0)
    return Entry(state.st_mode, size, mtime_ns, content, state.st_ino)


def _ended(answer: Answer, root: Path, before: dict[str, Entry], slowness: float) -> Ended:
    after = snapshot(root)
    written = {
        name: (root / name).read_bytes()
        for name, entry in after.items()
        if before.get(name) != entry and stat.S_ISREG(entry.mode) and entry.size <= _READ_BYTES
    }
    text = written.get("streams/measured.json", b"")
    measured = json.loads(text) if text else {}
    return Ended(
        root=root,
        code=answer.status,
        out=written.get("streams/out", b"").decode("utf-8", "replace"),
        err=written.get("streams/err", b"").decode("utf-8", "replace"),
        timed_out=answer.timed_out,
        cpu_s=answer.cpu_s,
        wall_s=answer.wall_s,
        peak_mb=measured.get("peak_kb", answer.peak_kb) / 1024,
        stall_s=measured.get("stall_s", 0.0),
        slowness=slowness,
        left=answer.left,
        before=before,
        after=after,
        written=written,
        results=_results(written.get("w/.releasekit/results.json", b"")),
    )


def _results(text: bytes) -> dict[str, str]:
    if not text:
        return {}
    # A build may have put something else there.
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return {row["name"]: row["outcome"] for row in json.loads(text)["packages"]}
    return {}
