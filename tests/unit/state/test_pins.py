from __future__ import annotations

import contextlib
import json
import os
from contextvars import Context
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from releasekit.errors import StateError
from releasekit.host import durable
from releasekit.state import pins
from releasekit.state.pins import EphemeralPin, recover
from releasekit.state.seals import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

OLD = b"\xef\xbb\xbfdependencies = ['b>=1']\r\n# no newline at the end"
NEW = OLD.replace(b">=1", b"==2.0")
TIME_NS = 10**18 + 7


class Workspace:
    """Two manifests, and what a pin of them looks like from outside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".releasekit"
        self.first = self.manifest("a/pyproject.toml")
        self.second = self.manifest("b/pyproject.toml")

    def manifest(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir()
        path.write_bytes(OLD)
        path.chmod(0o640)
        os.utime(path, ns=(TIME_NS, TIME_NS))
        return path

    def pin(self, *manifests: Path, data: bytes = NEW) -> EphemeralPin:
        return EphemeralPin(
            self.state, dict.fromkeys(manifests, data), ecosystem="pypi", root=self.root
        )

    def recover(self) -> tuple[Path, ...]:
        return recover(self.state, ["npm", "pypi"], root=self.root)

    @property
    def backups(self) -> list[Path]:
        return list(pins.backups(self.state, ["npm", "pypi"]))

    def untouched(self, *manifests: Path) -> bool:
        return all(
            (path.read_bytes(), path.stat().st_mode & 0o7777, path.stat().st_mtime_ns)
            == (OLD, 0o640, TIME_NS)
            and [path.name] == [beside.name for beside in path.parent.iterdir()]
            for path in manifests
        )


@pytest.fixture(name="workspace")
def _workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_manifests_are_pinned_inside_and_as_before_outside(workspace: Workspace) -> None:
    """R22, R25"""
    with workspace.pin(workspace.first, workspace.second):
        for path in (workspace.first, workspace.second):
            assert path.read_bytes() == NEW
            assert path.stat().st_mode & 0o7777 == 0o640
    assert workspace.untouched(workspace.first, workspace.second)
    assert workspace.backups == []


def test_an_error_inside_restores_and_stays_the_error(workspace: Workspace) -> None:
    def build() -> None:
        with workspace.pin(workspace.first):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    assert workspace.untouched(workspace.first)


def test_nothing_is_written_where_nothing_needs_a_pin(workspace: Workspace) -> None:
    """R24"""
    inode = workspace.first.stat().st_ino
    with workspace.pin(workspace.first, data=OLD):
        assert workspace.first.stat().st_ino == inode
        assert not workspace.state.exists()
    assert workspace.recover() == ()


@pytest.mark.parametrize("entered", [False, True])
def test_close_is_idempotent(workspace: Workspace, entered: bool) -> None:
    pin = workspace.pin(workspace.first)
    if entered:
        pin.__enter__()
    pin.close()
    pin.close()
    assert workspace.untouched(workspace.first)


def test_recovery_gives_back_what_a_killed_run_left(workspace: Workspace) -> None:
    """R22"""
    workspace.pin(workspace.first, workspace.second).__enter__()
    workspace.first.with_name(".pyproject.toml.releasekit").write_bytes(b"half")
    workspace.backups[0].with_name("0123.tmp").write_bytes(b"half")
    assert workspace.recover() == (workspace.first, workspace.second)
    assert workspace.untouched(workspace.first, workspace.second)
    assert list(pins.backup_directory(workspace.state, "pypi").iterdir()) == []
    assert workspace.recover() == ()


def test_recovery_restores_mode_and_time_of_a_file_whose_bytes_are_back(
    workspace: Workspace,
) -> None:
    """R22: as `git checkout` leaves it."""
    workspace.pin(workspace.first).__enter__()
    workspace.first.write_bytes(OLD)
    workspace.first.chmod(0o600)
    workspace.recover()
    assert workspace.untouched(workspace.first)


def _edit(path: Path) -> None:
    path.write_bytes(b"edited")


def _delete(path: Path) -> None:
    path.unlink()


def _move_away(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


@pytest.mark.parametrize("change", [_edit, _delete, _move_away])
def test_a_manifest_changed_since_is_never_overwritten(
    workspace: Workspace, change: object
) -> None:
    """R22: and the others come back all the same."""
    assert callable(change)
    workspace.pin(workspace.first, workspace.second).__enter__()
    change(workspace.first)
    before = [(path.name, path.is_symlink()) for path in workspace.first.parent.iterdir()]
    for _ in range(2):
        with pytest.raises(StateError, match=r"a/pyproject\.toml: changed since it was") as caught:
            workspace.recover()
        assert str(workspace.backups[0]) in caught.value.hint
        assert before == [(p.name, p.is_symlink()) for p in workspace.first.parent.iterdir()]
        assert workspace.untouched(workspace.second)
    workspace.backups[0].unlink()
    assert workspace.recover() == ()


def test_a_manifest_edited_during_the_build_is_kept(workspace: Workspace) -> None:
    with (
        pytest.raises(StateError, match="changed since it was pinned"),
        workspace.pin(workspace.first, workspace.second),
    ):
        workspace.first.write_bytes(b"edited")
    assert workspace.first.read_bytes() == b"edited"
    assert workspace.untouched(workspace.second)


@pytest.mark.parametrize("moment", ["pinning", "restoring"])
def test_an_edit_while_the_new_bytes_are_written_is_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """R22: the last look comes after the write that takes long."""
    pin = workspace.pin(workspace.first, workspace.second)
    if moment == "restoring":
        pin.__enter__()
    fsync = os.fsync

    def editing(descriptor: int) -> None:
        fsync(descriptor)
        if workspace.second.with_name(".pyproject.toml.releasekit").exists():
            workspace.second.write_bytes(b"edited")

    monkeypatch.setattr(os, "fsync", editing)
    with pytest.raises(StateError, match=r"b/pyproject\.toml: changed since it was pinned"):
        pin.close() if moment == "restoring" else pin.__enter__()
    assert workspace.second.read_bytes() == b"edited"
    assert workspace.untouched(workspace.first)
    assert len(workspace.backups) == 1


def test_pinned_bytes_are_never_taken_for_an_original(workspace: Workspace) -> None:
    """R22: a second pin before recovery would back up what the first one wrote."""
    workspace.pin(workspace.first).__enter__()
    with (
        pytest.raises(StateError, match="is pinned already"),
        workspace.pin(workspace.first, workspace.second, data=b"other"),
    ):
        pass
    assert workspace.untouched(workspace.second)
    workspace.recover()
    assert workspace.untouched(workspace.first)


def test_a_set_that_is_given_back_meanwhile_is_not_mistaken_either(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R22: between the look at the manifests and the backup of what they were."""
    earlier = workspace.pin(workspace.first)
    Context().run(earlier.__enter__)  # by another task

    @contextlib.contextmanager
    def meanwhile() -> Iterator[None]:
        earlier.close()
        yield

    monkeypatch.setattr(pins, "_SAVING", meanwhile())
    with (
        pytest.raises(StateError, match=r"a/pyproject\.toml: changed while it was being pinned"),
        workspace.pin(workspace.first, data=b"other"),
    ):
        pass
    assert workspace.untouched(workspace.first)


def test_two_sets_may_be_pinned_at_once(workspace: Workspace) -> None:
    with workspace.pin(workspace.first):
        with workspace.pin(workspace.second):
            assert len(workspace.backups) == 2
        assert workspace.first.read_bytes() == NEW
    assert workspace.untouched(workspace.first, workspace.second)


def test_each_ecosystem_recovers_its_own_manifests_only(workspace: Workspace) -> None:
    """R22, R26: a run of npm must not undo what a run of pypi builds from."""
    with workspace.pin(workspace.first):
        assert recover(workspace.state, ["npm"], root=workspace.root) == ()
        assert workspace.first.read_bytes() == NEW


def test_a_symbolic_link_is_followed_and_stays_one(workspace: Workspace) -> None:
    """R22"""
    link = workspace.root / "linked.toml"
    link.symlink_to(workspace.first)
    with workspace.pin(link, workspace.first):
        assert workspace.first.read_bytes() == NEW
        assert link.is_symlink()
    assert link.is_symlink()
    assert workspace.untouched(workspace.first)


def test_another_hard_link_keeps_the_original(workspace: Workspace) -> None:
    twin = workspace.root / "twin"
    twin.hardlink_to(workspace.first)
    with workspace.pin(workspace.first):
        assert twin.read_bytes() == OLD
    assert twin.read_bytes() == OLD
    assert workspace.untouched(workspace.first)


def test_a_read_only_manifest_is_pinned_and_read_only_again(workspace: Workspace) -> None:
    workspace.first.chmod(0o400)
    with workspace.pin(workspace.first):
        assert workspace.first.read_bytes() == NEW
    assert workspace.first.stat().st_mode & 0o7777 == 0o400


def test_a_manifest_outside_the_workspace_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    """R36: after symbolic links are resolved."""
    outside = tmp_path.parent / "outside.toml"
    outside.write_bytes(OLD)
    link = workspace.root / "link.toml"
    link.symlink_to(outside)
    with pytest.raises(StateError, match="is outside the workspace"), workspace.pin(link):
        pass
    assert outside.read_bytes() == OLD


@pytest.fixture(name="edits")
def _edits(workspace: Workspace) -> dict[Path, bytes | None]:
    """One file is edited, one is new, and one goes."""
    return {workspace.first: NEW, workspace.first.with_name("NEWS"): b"new", workspace.second: None}


def edit(workspace: Workspace, edits: Mapping[Path, bytes | None]) -> EphemeralPin:
    return EphemeralPin(workspace.state, edits, ecosystem=pins.VERSIONS, root=workspace.root)


def read(edits: Iterable[Path]) -> list[bytes | None]:
    return [path.read_bytes() if path.exists() else None for path in edits]


def test_files_may_be_new_and_may_go(
    workspace: Workspace, edits: Mapping[Path, bytes | None]
) -> None:
    with edit(workspace, edits):
        assert read(edits) == [NEW, b"new", None]
    assert workspace.untouched(workspace.first, workspace.second)


def test_what_is_kept_is_never_given_back(
    workspace: Workspace, edits: Mapping[Path, bytes | None]
) -> None:
    with edit(workspace, edits) as pin:
        pin.keep()
    assert workspace.recover() == ()
    assert read(edits) == [NEW, b"new", None]


@pytest.mark.parametrize("changes", range(4))
def test_any_run_gives_back_what_was_half_written(
    workspace: Workspace,
    edits: Mapping[Path, bytes | None],
    monkeypatch: pytest.MonkeyPatch,
    changes: int,
) -> None:
    """Killed after each number of changes of files."""
    left = changes
    change = pins._put

    def put(original: pins.Original, data: bytes | None, **options: Any) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        change(original, data, **options)

    monkeypatch.setattr(pins, "_put", put)
    monkeypatch.setattr(EphemeralPin, "close", lambda _: None)
    with contextlib.suppress(KeyboardInterrupt):
        Context().run(edit(workspace, edits).__enter__)
    monkeypatch.undo()
    assert sum(1 for was, now in zip([OLD, None, OLD], read(edits), strict=True) if was != now) == (
        changes
    )
    workspace.recover()
    assert workspace.untouched(workspace.first, workspace.second)
    assert workspace.backups == []


def test_a_directory_that_cannot_be_written_undoes_the_whole_set(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = durable.replace

    def refuse_second(path: Path, data: bytes, **options: object) -> None:
        if path == workspace.second:
            raise PermissionError(13, "Permission denied")
        replace(path, data, **options)  # type: ignore[arg-type] # handed through

    monkeypatch.setattr(durable, "replace", refuse_second)
    with pytest.raises(
        StateError, match=r"b/pyproject\.toml: cannot be replaced: Permission denied"
    ):
        workspace.pin(workspace.first, workspace.second).__enter__()
    assert workspace.untouched(workspace.first, workspace.second)
    assert workspace.backups == []


def _seal(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode() + b"\n" + body


def _with_path(path: str) -> bytes:
    fields = {"path": path, "data": "", "pinned": "", "attributes": {}, "times_ns": [1, 2]}
    return _seal(json.dumps([fields]).encode())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "its checksum is wrong"),
        (b"00\n[]", "its checksum is wrong"),
        (_seal(b"{"), "Expecting property name"),
        (_seal(b"[1]"), "not subscriptable"),
        (_seal(b"[" * 100_000), "nested too deeply"),
        (_with_path("../../etc/passwd"), "is outside the workspace"),
        (_with_path("/etc/passwd"), "is outside the workspace"),
    ],
)
def test_a_backup_that_is_no_backup_is_refused(
    workspace: Workspace, content: bytes, problem: str
) -> None:
    """R36: whoever may write the state directory may not write anywhere by it."""
    workspace.pin(workspace.first).__enter__()
    workspace.backups[0].write_bytes(content)
    with pytest.raises(StateError, match=problem):
        workspace.recover()
    assert workspace.first.read_bytes() == NEW


def test_a_backup_that_cannot_be_read_is_one_clear_line(workspace: Workspace) -> None:
    directory = pins.backup_directory(workspace.state, "pypi")
    (directory / "x.json").mkdir(parents=True)
    with pytest.raises(StateError, match=r"x\.json: unusable, .*: Is a directory"):
        workspace.recover()


@pytest.mark.parametrize("given_back", ["build", "start"])
def test_a_link_that_takes_the_place_of_the_backups_is_one_clear_line(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, given_back: str
) -> None:
    """R52: just when the manifests are back; and they are."""
    pin = workspace.pin(workspace.first)
    pin.__enter__()
    directory = workspace.backups[0].parent
    remove = durable.remove

    def swapping(path: Path) -> None:
        if path.parent == directory and path.suffix == ".json":
            directory.rename(directory.with_name("taken"))
            directory.symlink_to("taken")
        remove(path)

    monkeypatch.setattr(durable, "remove", swapping)
    with pytest.raises(StateError, match=f"^{directory}: is a symbolic link"):
        pin.close() if given_back == "build" else workspace.recover()
    assert workspace.untouched(workspace.first)
    assert len(list(directory.iterdir())) == 1


def test_every_damaged_set_is_named_and_the_others_come_back(workspace: Workspace) -> None:
    workspace.pin(workspace.first).__enter__()
    workspace.pin(workspace.second).__enter__()
    damaged = pins.backup_directory(workspace.state, "pypi") / "damaged.json"
    damaged.write_bytes(b"")
    with pytest.raises(StateError, match=r"damaged\.json"):
        workspace.recover()
    assert workspace.untouched(workspace.first, workspace.second)


def test_fsyncs_of_a_pin_are_bounded(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    fsync = os.fsync

    def counting(descriptor: int) -> None:
        calls.append(descriptor)
        fsync(descriptor)

    workspace.state.mkdir()
    monkeypatch.setattr(os, "fsync", counting)
    with workspace.pin(workspace.first, workspace.second):
        pass
    assert len(calls) <= 4 * 2 + 8


SEAL, OTHER = Seal(b"of this machine"), Seal(b"of another")


def keep(workspace: Workspace, seal: Seal | None = None) -> EphemeralPin:
    """The first manifest is pinned, and a tool may rewrite the second file."""
    return EphemeralPin(
        workspace.state,
        {workspace.first: NEW},
        rewritten=[workspace.second],
        ecosystem="pypi",
        root=workspace.root,
        seal=seal,
    )


def _put_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change", [_edit, _delete, _move_away, _put_a_directory, lambda path: path.chmod(0o600)]
)
def test_what_a_tool_may_rewrite_comes_back_whatever_is_in_its_place(
    workspace: Workspace, change: Callable[[Path], None]
) -> None:
    """R25: a build that has moved it away keeps what it moved."""
    with keep(workspace):
        assert workspace.second.read_bytes() == OLD
        change(workspace.second)
    workspace.second.with_name("moved").unlink(missing_ok=True)
    assert workspace.untouched(workspace.first, workspace.second)
    assert workspace.backups == []


def test_what_no_tool_has_rewritten_is_not_written(workspace: Workspace) -> None:
    inode = workspace.second.stat().st_ino
    with keep(workspace):
        pass
    assert workspace.second.stat().st_ino == inode


@pytest.mark.parametrize("seal", [None, SEAL])
def test_recovery_gives_back_what_a_tool_had_rewritten(
    workspace: Workspace, seal: Seal | None
) -> None:
    """R22"""
    Context().run(keep(workspace, seal).__enter__)
    _edit(workspace.second)  # in place, as cargo does it
    found = recover(workspace.state, ["pypi"], root=workspace.root, seal=seal)
    assert found == (workspace.first, workspace.second)
    assert workspace.untouched(workspace.first, workspace.second)


def _replace(path: Path) -> None:
    durable.replace(path, b"of another commit")


def _leave(_: Path) -> None:
    pass


@pytest.mark.parametrize("change", [_replace, _delete, _move_away, _leave])
def test_recovery_leaves_alone_what_is_not_as_a_tool_left_it(
    workspace: Workspace, change: Callable[[Path], None]
) -> None:
    """R22: a checkout of another commit may have come in between, and needs no remedy."""
    Context().run(keep(workspace).__enter__)
    change(workspace.second)
    before = {path.name: path.lstat().st_ctime_ns for path in workspace.second.parent.iterdir()}
    assert workspace.recover() == (workspace.first,)
    after = {path.name: path.lstat().st_ctime_ns for path in workspace.second.parent.iterdir()}
    assert after == before
    assert workspace.backups == []


def test_what_a_tool_may_have_rewritten_on_another_machine_is_left_alone(
    workspace: Workspace,
) -> None:
    """R52: no seal shows who made the backup, and a commit may have changed the file."""
    Context().run(keep(workspace, OTHER).__enter__)
    workspace.first.write_bytes(OLD)
    _edit(workspace.second)
    assert recover(workspace.state, ["pypi"], root=workspace.root, seal=SEAL) == ()
    assert workspace.second.read_bytes() == b"edited"
    assert workspace.backups == []


@pytest.mark.parametrize("seal", [None, OTHER])
def test_nothing_is_restored_from_a_backup_that_nobody_vouches_for(
    workspace: Workspace, seal: Seal | None
) -> None:
    """R22, R52: a state directory that was carried here could change any manifest."""
    pin = EphemeralPin(
        workspace.state, {workspace.first: NEW}, ecosystem="pypi", root=workspace.root, seal=seal
    )
    Context().run(pin.__enter__)
    backup, *_ = workspace.backups
    with pytest.raises(StateError, match="no seal shows who made that backup") as error:
        recover(workspace.state, ["pypi"], root=workspace.root, seal=SEAL)
    assert str(workspace.first) in str(error.value)
    assert workspace.first.read_bytes() == NEW
    assert backup.exists()
    workspace.first.write_bytes(OLD)  # from version control
    before = workspace.first.stat()
    assert recover(workspace.state, ["pypi"], root=workspace.root, seal=SEAL) == ()
    assert workspace.backups == []
    assert workspace.first.stat() == before


def test_what_a_run_killed_elsewhere_has_not_finished_is_no_change_of_the_sources(
    workspace: Workspace,
) -> None:
    """R22, R52: once the manifests are back as git has them, nothing else is left beside them."""
    Context().run(keep(workspace, OTHER).__enter__)
    places = (workspace.first, workspace.second)
    unfinished = [path.with_name(".pyproject.toml.releasekit") for path in places]
    for path in unfinished:
        path.write_bytes(b"half")
    for path in places:
        path.write_bytes(OLD)
    recover(workspace.state, ["pypi"], root=workspace.root, seal=SEAL)
    assert not any(path.exists() for path in unfinished)


def test_a_sealed_backup_is_restored(workspace: Workspace) -> None:
    """R22"""
    pin = EphemeralPin(
        workspace.state, {workspace.first: NEW}, ecosystem="pypi", root=workspace.root, seal=SEAL
    )
    Context().run(pin.__enter__)
    found = recover(workspace.state, ["pypi"], root=workspace.root, seal=SEAL)
    assert found == (workspace.first,)
    assert workspace.untouched(workspace.first)
    with pin:
        assert workspace.first.read_bytes() == NEW
    assert workspace.untouched(workspace.first)
