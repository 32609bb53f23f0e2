"""`releasekit change`, by flags, and by a person at a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S
from releasekit.__main__ import main
from releasekit.decided import Level
from releasekit.versions.change_files import ChangeEntry, read_change_file
from workspaces import write_json, write_member

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two ecosystems, which share the name `measure`, and a private package."""
    root = tmp_path / "w"
    write_member(root / "packages" / "acme-core", "acme-core", version="1.2.0")
    write_member(root / "packages" / "measure", "measure", version="0.5.0")
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    write_json(root / "package.json", {"private": True, "name": "w", "workspaces": ["js/*"]})
    write_json(root / "js/icons/package.json", {"name": "@acme/icons", "version": "2.4.1"})
    write_json(root / "js/measure/package.json", {"name": "measure", "version": "0.5.0"})
    return root


def written(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((root / ".changeset").glob("*"))}


def test_flags_say_everything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--package", "@acme/icons=major", "--package=pypi:acme-core=2.0.0"]
    assert main(["change", str(root), *asked, "--text", "Icons are ES modules only."]) == 0
    path = root / ".changeset" / "icons-are-es-modules-only.md"
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text() == (
        '---\n"@acme/icons": major\n"acme-core": 2.0.0\n---\n\nIcons are ES modules only.\n'
    )
    assert not (root / ".releasekit").exists()


def test_a_name_of_two_ecosystems_is_written_with_its_own(root: Path) -> None:
    assert main(["change", str(root), "--package", "npm:measure=none", "--text", "Tidy"]) == 0
    assert written(root) == {"tidy.md": '---\n"npm:measure": none\n---\n\nTidy\n'}


def test_the_same_text_twice_makes_two_files(root: Path) -> None:
    for level in ("minor", "patch"):
        assert main(["change", str(root), f"--package=acme-core={level}", "--text=Read it"]) == 0
    assert list(written(root)) == ["read-it-2.md", "read-it.md"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([], "no package is named, and no terminal is there to ask for one"),
        (["--text=x"], "no package is named, and no terminal is there to ask for one"),
        (["--package=acme-core", "--text=x"], "acme-core has no level, and no terminal"),
        (["--package=acme-core=", "--text=x"], "acme-core has no level, and no terminal"),
        (["--package=acme-core=minor"], "the text is missing, and no terminal is there"),
        (["--package=acme-cor=minor", "--text=x"], "'acme-cor' here, did you mean 'acme-core'?"),
        (["--package=measure=minor", "--text=x"], "measure is a package of several ecosystems"),
        (["--package=w=minor", "--text=x"], "npm:w is never published, so it has no versions"),
        (["--package=acme-core=mjor", "--text=x"], "'mjor' is no level, did you mean 'major'?"),
        (["--package=acme-core=&x", "--text=x"], "'&x' is no level; write major, minor, patch"),
        (
            ["--package=acme-core=minor", "--package=pypi:acme-core=patch", "--text=x"],
            "--package names acme-core twice",
        ),
        (["--package=acme-core=minor", "--text=a\x1b[2J"], "holds a line break or a control"),
    ],
)
def test_what_is_missing_or_wrong_is_one_line_and_nothing_is_written(
    flags: list[str], says: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["change", str(root), *flags]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert says in errors[0]
    assert not (root / ".changeset").exists()


def test_no_link_is_followed_out_of_the_workspace(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".changeset").symlink_to(elsewhere)
    assert main(["change", str(root), "--package=acme-core=minor", "--text=x"]) == 2
    assert f"{root / '.changeset'}: is a symbolic link" in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_what_is_in_the_way_of_the_directory_is_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".changeset").write_text("mine")
    assert main(["change", str(root), "--package=acme-core=minor", "--text=x"]) == 2
    assert f"correct what is in the way of {root / '.changeset'}" in capsys.readouterr().err
    assert (root / ".changeset").read_text() == "mine"


class Conversation:
    """The command on a terminal of its own."""

    def __init__(self, root: Path, *flags: str) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "releasekit", "change", str(root), *flags],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""
        self._heard = 0

    def hear(self, text: str) -> None:
        """Wait until `text` is said, after all that was heard before."""
        while (found := self.said.find(text, self._heard)) < 0:
            assert self._read(), self.said
        self._heard = found + len(text)

    def answer(self, line: str) -> None:
        os.write(self._ours, line.encode())

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _read(self) -> bool:
        assert select.select([self._ours], [], [], PATIENCE_S)[0], self.said
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # the other end is closed
            return False
        self.said += data.decode().replace("\r\n", "\n")
        return bool(data)


@pytest.fixture
def conversation(root: Path) -> Iterator[Conversation]:
    found = Conversation(root)
    yield found
    found.close()


def test_a_person_is_asked_for_everything_and_again_where_it_is_wrong(
    conversation: Conversation, root: Path
) -> None:
    conversation.hear(
        "1  npm:@acme/icons 2.4.1\n"
        "2  npm:measure 0.5.0\n"
        "3  pypi:acme-core 1.2.0\n"
        "4  pypi:measure 0.5.0\n"
        "Packages, by number or name: "
    )
    conversation.answer("1, acme-cor\n")
    conversation.hear("there is no package 'acme-cor' here, did you mean 'acme-core'?")
    conversation.answer("measure\n")
    conversation.hear("measure is a package of several ecosystems\nWrite one of ")
    conversation.hear("Packages, by number or name: ")
    conversation.answer("5\n")
    conversation.hear("there is no package '5' here")
    conversation.answer(" , \n")
    conversation.hear("Packages, by number or name: ")
    conversation.answer("1,acme-core 3 4\n")
    conversation.hear("Level of @acme/icons (major, minor, patch, none, or a version): ")
    conversation.answer("huge\n")
    conversation.hear("'huge' is no level; write major, minor, patch, none, or a version")
    conversation.answer("major\n")
    conversation.hear("Level of acme-core (")
    conversation.answer("2.0.0\n")
    conversation.hear("Level of pypi:measure (")
    conversation.answer("none\n")
    conversation.hear("What changed, for its users: ")
    conversation.answer("Ic\x1b[Dons\n")
    conversation.hear("The answer holds a control character; write it again.")
    conversation.answer("Icons are ES modules only.\n")
    assert conversation.end() == 0
    path = root / ".changeset" / "icons-are-es-modules-only.md"
    assert conversation.said.endswith(f"{path}\n")
    found = read_change_file(path.name, path.read_text())
    assert found.text == "Icons are ES modules only."
    assert found.entries == (
        ChangeEntry(name="@acme/icons", level=Level.MAJOR, line=2),
        ChangeEntry(name="acme-core", exact="2.0.0", line=3),
        ChangeEntry(name="pypi:measure", level=Level.NONE, line=4),
    )


def test_a_person_is_asked_only_for_what_no_flag_says(root: Path) -> None:
    conversation = Conversation(root, "--package=acme-core=minor", "--package=@acme/icons")
    try:
        conversation.hear("Level of @acme/icons (")
        conversation.answer("patch\n")
        conversation.hear("What changed, for its users: ")
        conversation.answer("Read it\n")
        assert conversation.end() == 0
    finally:
        conversation.close()
    assert "Level of acme-core" not in conversation.said
    assert written(root) == {
        "read-it.md": '---\n"acme-core": minor\n"@acme/icons": patch\n---\n\nRead it\n'
    }


@pytest.mark.parametrize("answer", ["\n", "\x04"])
def test_no_answer_writes_nothing(conversation: Conversation, answer: str, root: Path) -> None:
    conversation.hear("Packages, by number or name: ")
    conversation.answer(answer)
    assert conversation.end() == 2
    assert "error: nothing was written, because an answer is missing" in conversation.said
    assert not (root / ".changeset").exists()


def test_ctrl_c_writes_nothing(conversation: Conversation, root: Path) -> None:
    """R28"""
    conversation.hear("Packages, by number or name: ")
    conversation.answer("1\n")
    conversation.hear("Level of @acme/icons (")
    conversation.process.send_signal(signal.SIGINT)
    assert conversation.end() == 130
    assert "error: cancelled" in conversation.said
    assert not (root / ".changeset").exists()
