"""Runs of the real program that take a tenth of a second: forks of a process that has imported
everything, and that waits for whatever a run leaves behind. It answers each `Order` with an `End`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import pkgutil
import signal
import sys
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import releasekit
from harness.calls import call_first
from harness.forking import ForkServer
from releasekit import fields
from releasekit.__main__ import main

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_TESTS: Final = Path(__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class Order:
    """One run. It gets `number` as the function `where` ("module:Class.name") is called for the
    `nth` time; how often each of `counted` is called, it writes to `counts`, one a line. A registry
    that may have taken something is asked for `window_s`.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: str
    log: str
    window_s: float
    where: str = ""
    nth: int = 0
    number: int = signal.SIGKILL
    counted: tuple[str, ...] = ()
    counts: str = ""


@dataclass(frozen=True)
class End:
    """`status` is as of `os.waitstatus_to_exitcode`."""

    status: int


class Forks(ForkServer):
    """The process that forks."""

    def __init__(self) -> None:
        super().__init__("crash.forks")

    def run(self, order: Order) -> int:
        """The status, once nothing of the run is left."""
        self.begin(order)
        return self.end()

    def begin(self, order: Order) -> None:
        self.send(order)

    def end(self) -> int:
        return self.receive(End).status


def serve(descriptor: int) -> None:
    answers = os.fdopen(descriptor, "wb")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for module in pkgutil.walk_packages(releasekit.__path__, "releasekit."):
        if not module.name.endswith((".__main__", ".worker")):
            importlib.import_module(module.name)
    while True:
        try:
            order = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pid = os.fork()
        if not pid:
            os.close(answers.fileno())
            _become(order)
        _, status = os.waitpid(pid, 0)
        # What it had started is ours now.
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        pickle.dump(End(os.waitstatus_to_exitcode(status)), answers)
        answers.flush()


def _become(order: Order) -> None:
    """The run itself, in the fork; never returns."""
    status: Any = 1
    try:
        os.setsid()
        for fd, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
            path = order.log if fd else os.devnull
            opened = os.open(path, flags | (os.O_CREAT | os.O_APPEND if fd else 0), 0o666)
            os.dup2(opened, fd)
            os.close(opened)
        os.chdir(order.cwd)
        os.environ.clear()
        os.environ.update(order.environment)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _hurry(order.window_s)
        counts: Counter[str] = Counter()
        for where in {*order.counted, *filter(None, [order.where])}:
            _watch(where, order, counts)
        status = main(order.argv)
        if order.counts:
            text = "".join(f"{where} {counts[where]}\n" for where in order.counted)
            Path(order.counts).write_text(text)
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(status))


def _hurry(window_s: float) -> None:
    """Pauses as of a registry that answers at once."""
    module: Any = importlib.import_module("releasekit.release.release")
    hurried = fields.replace(
        module.POLLING, first_pause_s=0.01, longest_pause_s=0.02, ambiguity_window_s=window_s
    )
    module.POLLING = hurried
    module.ReleaseRun.__init__.__kwdefaults__.update(polling=hurried)


def _watch(where: str, order: Order, counts: Counter[str]) -> None:
    def count() -> None:
        counts[where] += 1
        if where == order.where and counts[where] == order.nth:
            os.kill(os.getpid(), order.number)

    call_first(where, count)
