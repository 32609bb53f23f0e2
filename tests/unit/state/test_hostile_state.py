"""A repository that commits links where the state directory will be (R36, R52)."""

from __future__ import annotations

import os
from contextvars import Context
from typing import TYPE_CHECKING

import pytest

from releasekit.__main__ import main
from releasekit.errors import JournalUnwritable, StateError
from releasekit.state import pins
from releasekit.state.directory import JOURNAL
from releasekit.state.journal import Journal
from releasekit.state.locks import acquire
from releasekit.state.seals import seal_for

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    ".gitignore",
    "journal.jsonl",
    ".journal.jsonl.tmp",
    "lock.pypi",
    "plan.json",
    "results.json",
    "logs/build-pypi-acme.log",
    "backup/pypi/0123.json",
    "dist/pypi/acme/1.0/acme-1.0.tar.gz",
)
DIRECTORIES = (
    "backup",
    "backup/pypi",
    "dist",
    "dist/pypi",
    "dist/pypi/acme",
    "dist/pypi/acme/1.0",
    "dist/pypi/acme/.1.0.building",
    "logs",
    "work",
    "work/maven",
)
COMMANDS = (
    ["plan"],
    ["publish", "--registry", "dir:registry"],
    ["report"],
    ["check"],
    ["check", "--fix"],
)


class Trap:
    """A workspace with one package, and beside it what no command may touch."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "workspace"
        self.elsewhere = directory / "elsewhere"
        self.state = self.root / ".releasekit"
        self.elsewhere.mkdir()
        self.root.mkdir()
        (self.elsewhere / "precious").write_bytes(b"precious")
        (self.elsewhere / "inside").mkdir()
        self.before = self.contents()
        (self.root / "pyproject.toml").write_text('[project]\nname = "acme"\nversion = "1.0"\n')

    def plant(self, name: str, target: str) -> Path:
        link = self.state / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(self.elsewhere / target, link.parent))
        return link

    def contents(self) -> dict[str, tuple[bytes, int]]:
        return {
            str(path): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
            for path in sorted(self.elsewhere.rglob("*"))
        }


@pytest.fixture(name="trap")
def _trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trap:
    trap = Trap(tmp_path)
    monkeypatch.chdir(trap.root)
    return trap


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "precious") for name in FILES),
        *((name, "missing") for name in FILES),
        *((name, "inside") for name in DIRECTORIES),
    ],
)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_link_in_the_state_directory_is_refused_and_not_followed(
    trap: Trap, capsys: pytest.CaptureFixture[str], command: list[str], name: str, target: str
) -> None:
    """R52"""
    link = trap.plant(name, target)
    assert main(command) == (1 if command[0] == "check" and command != COMMANDS[-1] else 3)
    said = "".join(capsys.readouterr())
    assert f"{link}: is a symbolic link" in said
    assert "Delete it" in said
    assert trap.contents() == trap.before
    assert link.is_symlink()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_state_directory_that_the_repository_made_a_link_is_refused(
    trap: Trap, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """R52: also where it leads to another directory of the workspace."""
    (trap.root / "sources").mkdir()
    trap.state.symlink_to("sources")
    assert main(command) == 2
    assert f"{trap.state} is a symbolic link" in capsys.readouterr().err
    assert list((trap.root / "sources").iterdir()) == []


def test_a_link_that_the_user_names_is_followed(trap: Trap) -> None:
    """Whoever gives a flag may mean another disk by it."""
    chosen = trap.elsewhere.parent / "chosen"
    chosen.symlink_to(trap.elsewhere / "inside")
    assert main(["check", "--registry", "dir:registry", "--state-directory", str(chosen)]) == 0


def test_a_link_made_while_a_run_goes_on_is_not_followed(trap: Trap) -> None:
    """R52: what was looked at before may have changed since."""
    with acquire(trap.state, ["pypi"]):
        log = Journal.open(trap.state, run_id="run")
        log.close()
        (trap.state / JOURNAL).unlink()
        trap.plant(JOURNAL, "precious")
        with pytest.raises(JournalUnwritable, match="is a symbolic link"):
            Journal.open(trap.state, run_id="next")
        trap.plant("backup", "inside")
        pin = pins.EphemeralPin(
            trap.state,
            {trap.root / "pyproject.toml": b"pinned"},
            ecosystem="pypi",
            root=trap.root,
        )
        with pytest.raises(StateError, match="backup: is a symbolic link"), pin:
            pass
    assert trap.contents() == trap.before


def test_what_is_restored_is_named_in_one_line(
    trap: Trap, capsys: pytest.CaptureFixture[str]
) -> None:
    """R36: a repository may name its directories, and commit a backup, as it likes."""
    manifest = trap.root / "member\n::warning::planted" / "pyproject.toml"
    manifest.parent.mkdir(parents=True)
    manifest.write_bytes(b"# original")
    acquire(trap.state, ["pypi"]).close()
    killed = pins.EphemeralPin(
        trap.state,
        {manifest: b"# pinned"},
        ecosystem="pypi",
        root=trap.root.resolve(),
        seal=seal_for("", os.environ, make=True),
    )
    Context().run(killed.__enter__)
    assert main(["publish", "--ecosystem", "pypi"]) == 0
    assert manifest.read_bytes() == b"# original"
    said = capsys.readouterr().out
    assert "which a killed run had left changed" in said
    assert not any(line.startswith("::warning") for line in said.splitlines())
