"""A real run that is killed at what it asks of a double, and started until it ends by itself."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.http_server import HangUp
from workspaces import kill

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path


@dataclass
class Killing:
    """`start` starts the run, in a session of its own, and `log` shows what it says; `workspace` is
    where it holds its locks. `killed` are the deaths so far, as moment and what was asked.
    """

    start: Callable[[], subprocess.Popen[bytes]]
    workspace: Path
    log: Callable[[], str] = str
    runs: int = 0
    killed: list[tuple[str, str]] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _starting: threading.Lock = field(default_factory=threading.Lock)

    def die(self, moment: str, what: str) -> None:
        """For the double, which asks "before" and "after" it acts: end the run that asks."""
        with self._starting:
            process = self._process
        assert process is not None
        if process.poll() is None:
            self.killed.append((moment, what))
            process.kill()
            process.wait()
        raise HangUp

    def die_once(self, moment: str, what: str) -> None:
        """Each run at the first thing that was not interrupted in this way yet."""
        if (moment, what) not in self.killed or self.is_over():
            self.die(moment, what)

    def is_over(self) -> bool:
        """Whether what asks is left from a run that was killed."""
        with self._starting:
            return self._process is not None and self._process.poll() is not None

    def run(self) -> int:
        """The exit status of one run, which only `die` may have killed."""
        with self._starting:
            self._process = process = self.start()
        self.runs += 1
        process.wait()
        kill(process, self.workspace)
        assert process.returncode in {0, -9}, self.log()
        return process.returncode

    def finish(self, *, most: int) -> None:
        """Run until a run ends well; `most` is how many there may be."""
        while self.run() != 0:
            assert self.runs < most, sorted(self.killed)
