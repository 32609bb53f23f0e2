"""A process that has imported everything, and forks for each case.

Requests and answers are pickles, over its standard input and a descriptor that it inherits.
A fork sets its own session, environment, directory and streams, runs `releasekit.__main__.main`,
and writes down what it took.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import ctypes
import faulthandler
import gc
import importlib
import io
import json
import os
import pickle
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import releasekit
from harness.calls import call_first
from hostile.workspaces_of import CRATES, GO, MAVEN, NPM, PNPM_WORKSPACE, PYPI
from releasekit.__main__ import main
from releasekit.text.output import ignore_write_errors
from watchdog import slowness

if TYPE_CHECKING:
    from collections.abc import Coroutine

# Far more than a judge allows: it ends what runs away.
CPU_S: Final = 300
DATA_BYTES: Final = 3 * 1024**3
BEAT_S: Final = 0.02
_SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
START: Final = Path(releasekit.__file__).parents[1] / "__main__.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    cwd_gone: bool
    streams: str  # the directory for out, err and measured.json
    closed: tuple[int, ...]
    uid: int | None
    executed: bool
    signals: tuple[tuple[str, int, int, int], ...]
    wall_s: float
    left_s: float
    breaks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`status` is as of `os.waitstatus_to_exitcode`; `left` are processes that outlived the run."""

    status: int
    timed_out: bool
    wall_s: float
    cpu_s: float
    peak_kb: int
    left: tuple[str, ...]


def serve(descriptor: int) -> None:
    """Answer on `descriptor` until standard input ends."""
    requests = sys.stdin.buffer
    answers = os.fdopen(descriptor, "wb")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    for module in pkgutil.walk_packages(releasekit.__path__, "releasekit."):
        # The worker of builds is a program, not a module.
        if not module.name.endswith((".__main__", ".worker")):
            importlib.import_module(module.name)
    _warm_up()
    gc.collect()
    gc.freeze()
    pickle.dump(slowness(), answers)
    answers.flush()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pid = os.fork()
        if not pid:
            os.close(answers.fileno())
            _become(request)
        pickle.dump(_awaited(pid, request), answers)
        answers.flush()


def _warm_up() -> None:
    """Import what runs import late: a fork as another user might not be allowed to read it."""
    for encoding in ("utf-16-le", "utf-8-sig", "idna"):
        codecs.lookup(encoding)
    importlib.import_module("importlib.readers")  # for the certificates of an HTTP client
    workspaces = (PYPI, NPM, PNPM_WORKSPACE, CRATES, GO, MAVEN, {"w/pyproject.toml": "x = = 1"})
    streams = sys.stdout, sys.stderr
    for files in workspaces:
        with tempfile.TemporaryDirectory(prefix="hostile-") as directory, io.StringIO() as said:
            for name, text in files.items():
                path = Path(directory, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            sys.stdout = sys.stderr = said
            main(["plan", f"{directory}/w", "--registry", f"dir:{directory}/registry"])
            sys.stdout, sys.stderr = streams


def _awaited(pid: int, request: Request) -> Answer:
    began = time.monotonic()
    fd = os.pidfd_open(pid)
    in_time = bool(select.select([fd], [], [], request.wall_s)[0])
    os.close(fd)
    if not in_time:
        os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return Answer(
        status=os.waitstatus_to_exitcode(status),
        timed_out=not in_time,
        wall_s=time.monotonic() - began,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_kb=usage.ru_maxrss,
        left=tuple(_reaped(request.left_s)),
    )


def _reaped(left_s: float) -> list[str]:
    """The names of what the run left running, which is ended here. Each process has some time: what
    was killed may not be gone yet, or has to notice that its pipes are closed.
    """
    found = []
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while pids := children.read_text().split():
        for pid in map(int, pids):
            fd = os.pidfd_open(pid)
            select.select([fd], [], [], left_s)
            os.close(fd)
            stat = Path(f"/proc/{pid}/stat").read_text()
            if stat.rpartition(")")[2].split()[0] != "Z":
                found.append(stat.partition("(")[2].rpartition(")")[0])
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return found


def _become(request: Request) -> None:
    """The run itself, in the fork; never returns."""
    status = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        _streams(request)
        if request.uid is not None and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(request.uid)
            os.setuid(request.uid)
        os.chdir(request.cwd)
        if request.cwd_gone:
            Path(request.cwd).rmdir()
        if request.executed:
            for fd in request.closed:
                os.close(fd)
            argv = [sys.executable, "-I", str(START), *request.argv]
            os.execve(argv[0], argv, request.environment)
        os.environ.clear()
        os.environ.update(request.environment)
        # As src/__main__.py has it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for plan in request.signals:
            _signal_at(*plan)
        if request.breaks:
            call_first("releasekit.cli.plan:refuse_links", lambda: exec(request.breaks, _SCOPE))
        status = _run(request)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(request: Request) -> int:
    watch = _Watch()
    asyncio.run = watch.run  # type: ignore[assignment]
    faulthandler.dump_traceback_later(max(request.wall_s - 5, 1), file=2)
    faulthandler.register(signal.SIGXCPU, file=2, chain=True)
    status: Any = 1
    try:
        status = main(request.argv)
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        faulthandler.cancel_dump_traceback_later()
        threading._shutdown()  # type: ignore[attr-defined]  # as at the end of an interpreter
        gc.collect()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        measured = {"stall_s": watch.longest_s, "peak_kb": usage.ru_maxrss}
        os.write(_measured, json.dumps(measured).encode())
    return int(status)


_measured = -1


def _streams(request: Request) -> None:
    global _measured  # noqa: PLW0603 - one run in this process
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for fd, name in ((1, "out"), (2, "err")):
        opened = os.open(f"{request.streams}/{name}", flags, 0o666)
        os.dup2(opened, fd)
        os.close(opened)
    _measured = os.open(f"{request.streams}/measured.json", flags, 0o666)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    if request.executed:
        return
    out = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    err = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace")
    sys.stdout, sys.stderr = ignore_write_errors(out), ignore_write_errors(err)


class _Watch:
    """The longest time for which the event loop of `run` could not act.

    The measure between two beats is the CPU time of the whole process, whichever thread took it: a
    thread that keeps the interpreter to itself leaves the loop deaf too, while other processes of a
    busy machine do not count.
    """

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._last = 0.0
        self._asyncio_run = asyncio.run

    def run(self, main: Coroutine[Any, Any, int], **options: Any) -> int:
        return self._asyncio_run(self._watched(main), **options)

    async def _watched(self, main: Coroutine[Any, Any, int]) -> int:
        loop = asyncio.get_running_loop()
        self._last = time.process_time()
        loop.call_later(BEAT_S, self._beat, loop)
        try:
            return await main
        finally:
            self._note()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._note()
        loop.call_later(BEAT_S, self._beat, loop)

    def _note(self) -> None:
        now = time.process_time()
        # What runs beside the loop between two beats that are in time is no stall.
        self.longest_s = max(self.longest_s, now - self._last - BEAT_S)
        self._last = now


_SCOPE: Final[dict[str, Any]] = {
    each.__name__: each for each in (base64, os, subprocess, sys, threading, time)
}


def _signal_at(where: str, number: int, nth: int, again: int) -> None:
    """Have the function send `number` to this process as it is called."""
    calls = 0

    def signalled() -> None:
        nonlocal calls
        calls += 1
        if nth <= calls <= nth + again:
            os.kill(os.getpid(), number)

    call_first(where, signalled)
