"""A release on a terminal of its own: keys that are pressed, a window that changes its size, a
connection that breaks off.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from functools import partial
from typing import TYPE_CHECKING

import pytest

from processes import PATIENCE_S, wait_until
from screens import Cutting
from workspaces import Program, git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# The terminal becomes the controlling one; a hang-up may be ignored from the start, also of tests.
LAUNCH = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "nohup" else signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def seconds(rows: list[str]) -> str:
    """How long the release has been at work, as the live part says it."""
    found = re.search(r"([\w ]+) elapsed", " ".join(rows))
    return found[1] if found else ""


def tells_other_seconds(before: str, rows: list[str]) -> bool:
    now = seconds(rows)
    return bool(now) and now != before and rows[-1].startswith("keys:")


class Site:
    """Two packages, one built with a pin on the other; that build waits until it is let go."""

    def __init__(self, tmp_path: Path) -> None:
        self.home = tmp_path / "home"
        self.home.mkdir()
        self.begun, self.go = tmp_path / "begun", tmp_path / "go"
        packages: dict[str, tuple[str, ...]] = {"demo-a": (), "demo-b": ("demo-a",)}
        self.workspace = uv_workspace(tmp_path / "workspace", packages)
        self.manifest = self.workspace / "packages" / "demo-b" / "pyproject.toml"
        self.manifest.with_name("hatch_build.py").write_text(
            "import time\n"
            "from pathlib import Path\n"
            "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n"
            "class Slow(BuildHookInterface):\n"
            "    def initialize(self, version, build_data):\n"
            f"        Path({str(self.begun)!r}).touch()\n"
            f"        while not Path({str(self.go)!r}).exists():\n"
            "            time.sleep(0.02)\n"
        )
        with self.manifest.open("a") as manifest:
            manifest.write("[tool.hatch.build.hooks.custom]\n")
        git(self.workspace, "add", "--all")
        git(self.workspace, "commit", "--quiet", "--message", "Build slowly")
        self.original = self.manifest.read_bytes()
        self.program = Program(self.home)
        self.registry = tmp_path / "registry"

    @property
    def where(self) -> tuple[Path | str, ...]:
        return self.workspace, "--pypi-registry", f"dir:{self.registry}"

    @property
    def arguments(self) -> list[str]:
        return self.program.argv("publish", *self.where)

    @property
    def outcomes(self) -> dict[str, str]:
        packages = json.loads((self.home / "results.json").read_text())["packages"]
        return {row["name"]: row["outcome"] for row in packages}


class Window:
    """A terminal with a release in it; what goes to standard error goes to a file."""

    def __init__(self, site: Site, *, columns: int = 100, rows: int = 24, how: str = "") -> None:
        self.site = site
        self.master, screen = os.openpty()
        self.screen = Cutting(columns, rows)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._resize(columns, rows)
        self.errors = site.home / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, how, *site.arguments],
                env={**site.program.full_environment, "TERM": "xterm-256color"},
                stdin=screen,
                stdout=screen,
                stderr=errors,
                start_new_session=True,
            )
        os.close(screen)

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """Read what is written until the screen is as it should be."""
        while not seen(self.screen.shown):
            # The live part tells the seconds, so only a run that hangs writes nothing.
            assert select.select([self.master], [], [], PATIENCE_S)[0], self.told
            try:
                self.screen.take(self._decoder.decode(os.read(self.master, 65_536)))
            except OSError:
                assert seen(self.screen.shown), self.told
        return self.screen.shown

    def shows(self, text: str) -> list[str]:
        return self.until(lambda rows: any(text in row for row in rows))

    def hears_keys(self) -> bool:
        """Whether the terminal no longer echoes them."""
        return not termios.tcgetattr(self.master)[3] & termios.ECHO

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        self._resize(columns, rows)

    def _resize(self, columns: int, rows: int) -> None:
        """The kernel tells the release by SIGWINCH."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def begins_the_build(self) -> None:
        self.shows("demo-b")
        wait_until(self.site.begun.exists, self.process, lambda: self.told)

    @property
    def told(self) -> str:
        return "\n".join([*self.screen.shown, self.errors.read_text()])

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1

    def close(self) -> None:
        if self.master >= 0:
            self.hang_up()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.go.touch()


def test_keys_show_what_they_did(site: Site) -> None:
    """R10, R41: also those that are pressed while the run plans, which do not show."""
    with contextlib.closing(Window(site)) as window:
        wait_until(window.hears_keys, window.process, lambda: window.told)
        window.press("p")
        rows = window.shows("keys: r resume")
        assert "p" not in rows
        window.press("r")
        window.begins_the_build()
        window.shows("✓ pypi:demo-a 1.0.0")
        window.shows("keys: p pause, q cancel")
        window.press("p")
        rows = window.shows("keys: r resume")
        assert any("pypi:demo-b  build" in row for row in rows)
        assert rows[-1] == "keys: r resume, q cancel"
        window.press("r")
        window.shows("Resumed after a pause")
        window.press("q")
        rows = window.shows("Cancelling, by the key q: what is built goes out next time")
        assert any("pypi:demo-b  build" in row for row in rows)
        site.go.touch()
        rows = window.shows("1 of 2 packages published, 1 cancelled")
        assert not any("elapsed" in row or "keys:" in row for row in rows)
        assert window.process.wait(PATIENCE_S) == 130, window.told
    assert site.outcomes == {"demo-a": "published", "demo-b": "cancelled"}
    assert any("it is built, and the next run uploads it" in row for row in rows), rows
    again = site.program.run(*site.arguments[1:])
    assert "1 to upload as built before, 1 already published" in again.out
    assert again.code == 0, again.out + again.err


def test_a_signal_shows_the_seconds_that_are_left(site: Site) -> None:
    """R28"""
    with contextlib.closing(Window(site)) as window:
        window.begins_the_build()
        window.process.send_signal(signal.SIGUSR1)
        window.shows("Paused: ")
        window.press("\x03")  # the terminal makes it a SIGINT
        window.shows("by Ctrl-C")
        assert window.process.wait(PATIENCE_S) == 130, window.told


def test_a_window_that_changes_its_size_has_one_table(site: Site) -> None:
    """R40"""
    with contextlib.closing(Window(site, columns=120)) as window:
        window.begins_the_build()
        window.shows("✓ pypi:demo-a")
        for columns, rows in ((60, 24), (44, 12), (100, 30), (50, 24)):
            window.resize(columns, rows)
            for _ in range(2):  # one may have been on its way
                window.until(partial(tells_other_seconds, seconds(window.screen.shown)))
            shown = window.screen.shown
            live = shown[next(n for n, row in enumerate(shown) if "✓" in row) :]
            assert max(map(len, live)) < columns
            for text in ("elapsed", "keys:", "pypi:demo-b  build", "✓ pypi:demo-a"):
                assert sum(text in row for row in shown) == 1, window.told
        site.go.touch()
        window.shows("Both packages are published")
        assert window.process.wait(PATIENCE_S) == 0, window.told


def test_a_terminal_that_hangs_up_ends_the_release_in_order(site: Site) -> None:
    """R22, R28: a laptop that is closed, a connection that breaks off"""
    with contextlib.closing(Window(site)) as window:
        window.begins_the_build()
        assert site.manifest.read_bytes() != site.original  # pinned
        window.hang_up()
        assert window.process.wait(PATIENCE_S) == 130
        assert "Traceback" not in window.errors.read_text()
    assert site.outcomes["demo-b"] == "cancelled"
    assert site.manifest.read_bytes() == site.original
    assert site.program.run("check", *site.where).code == 0
    site.go.touch()
    again = site.program.run(*site.arguments[1:])
    assert again.code == 0, again.out + again.err


def test_under_nohup_the_release_goes_on_without_its_terminal(site: Site) -> None:
    with contextlib.closing(Window(site, how="nohup")) as window:
        window.begins_the_build()
        window.hang_up()
        site.go.touch()
        assert window.process.wait(PATIENCE_S) == 0
        assert "Traceback" not in window.errors.read_text()
    assert site.outcomes == {"demo-a": "published", "demo-b": "published"}
