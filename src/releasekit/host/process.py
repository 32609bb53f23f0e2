"""The only place that starts processes: their environment, their output, and their end.

A child gets its own session, a scrubbed environment and the lock descriptors of the run; what it
prints goes, redacted, to a log file and to the tail that error messages show.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import shlex
import shutil
import signal
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from msgspec import Struct

from releasekit.aio import GroupClosed, Resource, uncancellable
from releasekit.errors import CommandFailed, PathError, PlanError
from releasekit.host.sandbox import UNCONFINED, Sandbox
from releasekit.host.scrub import Redactor, ToolVariables, overrule_git_settings
from releasekit.host.streams import MAX_OUTPUT, Output, Splitter, Stream, appending
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


class KillSchedule(Struct, frozen=True, kw_only=True):
    """How many seconds a group has to obey each of the signals that end it, and how many the rest
    of it then has to let go of its pipes.
    """

    signals: tuple[tuple[signal.Signals, float], ...] = (
        (signal.SIGINT, 2.0),
        (signal.SIGTERM, 2.0),
        (signal.SIGKILL, 5.0),
    )
    pipes_s: float = 0.5


T = TypeVar("T")

USUAL: Final = ToolVariables()
PATIENCE: Final = KillSchedule()
MAX_PLACE: Final = 200
# A line of a child that is talked to: the metadata of a package is the longest.
MAX_ANSWER: Final = 4 * 1024 * 1024
# No repository can ask for these: what a job may do to its runner, and our own settings.
_OF_THE_RUNNER: Final = re.compile(r"(ACTIONS|GITHUB|GITLAB|RELEASEKIT|RUNNER)_", re.IGNORECASE)


class Printed(str):
    """What a program at `path` has printed, started by this `argv`. A function that reads it raises
    ValueError, LookupError or TypeError for what another program prints: a wrapper may stand in for
    the one that was meant.
    """

    __slots__ = ("argv", "path")
    argv: Sequence[str]
    path: str

    def __new__(cls, text: str, argv: Sequence[str], path: str) -> Self:
        printed = super().__new__(cls, text)
        printed.argv, printed.path = argv, path
        return printed

    def parse(self, function: Callable[[str], T], part: str | None = None) -> T:
        """What the function makes of all of it, or of a `part`. Raises PlanError, which names the
        command and the line, where the function cannot read it.
        """
        text = self if part is None else part
        try:
            return function(text)
        except (ValueError, LookupError, TypeError) as error:
            line = clip(text.strip().partition("\n")[0], MAX_PLACE)
            path, name = visible(clip(self.path, MAX_PLACE)), posixpath.basename(self.argv[0])
            raise PlanError(
                f"{_show(self.argv)} prints '{visible(line)}', which ReleaseKit cannot read"
                if line
                else f"{_show(self.argv)} prints nothing that ReleaseKit can read",
                hint=f"ReleaseKit runs {path}. If that is a wrapper, put {name} itself before it "
                "on PATH.",
                problem=Problem.STRANGE_OUTPUT,
            ) from error

    def parse_rows(self, function: Callable[[str], T], end: str = "\n") -> list[T]:
        """The same of each row that is not empty."""
        return [self.parse(function, row) for row in self.split(end) if row]


class Completed(Struct, frozen=True, kw_only=True):
    """A child that ended with status 0. `stdout` is empty when the output went to a log."""

    stdout: Printed
    tail: tuple[str, ...]
    duration_s: float


class Processes(Resource):
    """Starts children; its group has a task for each, which ends it."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        secrets: Collection[str] = (),
        inherit_fds: Collection[int] = (),
        variables: ToolVariables = USUAL,
        patience: KillSchedule = PATIENCE,
        sandbox: Sandbox = UNCONFINED,
    ) -> None:
        """The caller may go on adding to `secrets` and `inherit_fds`: what children print is held
        against all secrets there are by then.
        """
        super().__init__(together=True)
        self._given = environment
        self._secrets = secrets
        self.redact = Redactor(secrets)
        self._inherit_fds = inherit_fds
        self._variables = variables
        self._patience = patience
        self.sandbox = sandbox
        self._outside: dict[str, str | None] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """What every child gets, before its own `env` is added."""
        return self._variables.scrub(self._given, self._secrets)

    def passing(self, names: Collection[str]) -> dict[str, str]:
        """Those of these variables that are set and show no sign of being secret, for `env`."""
        return {
            name: self._given[name]
            for name in names
            if name in self._given
            and not _OF_THE_RUNNER.match(name)
            and self._variables.harmless(name, self._given[name], self._secrets)
        }

    def which(self, program: str) -> str | None:
        """The path of `program` on the children's PATH."""
        return shutil.which(program, path=self._given.get("PATH", os.defpath))

    def outside(self, program: str) -> str | None:
        """The path of a program that runs outside of the sandbox, looked up once, before any build.

        Raises PathError where a build could put another program in its place.
        """
        if program not in self._outside:
            found = self.which(program)
            place = Path(found or os.sep).absolute()
            if self.sandbox.can_change(place):
                raise PathError(
                    f"{program} is {visible(clip(str(place), MAX_PLACE))}, where builds can write",
                    hint=f"Install {program} elsewhere, and put its directory first on PATH: it "
                    "runs outside of the sandbox.",
                )
            self._outside[program] = found and str(place)
        return self._outside[program]

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str | None] | None = None,
        timeout_s: float | None = None,
        log: Path | None = None,
        stdin: str | int | None = None,
        stdout: int | None = None,
        given: Collection[int] = (),
        secrets: Mapping[str, str] | None = None,
        outside: bool = False,
    ) -> Completed:
        """Run to the end; raises CommandFailed for any status but 0, or when time is up.

        `env` is added to the scrubbed environment; None takes a variable out of it.
        Without `log`, stdout is captured (at most 16 MiB); with it, both streams are appended to
        that file, redacted. A descriptor `stdout` gets it as it is instead. Without `stdin`, a text
        or a descriptor, there is nothing to read; it gets the descriptors `given`, too.

        A child that is to have `secrets`, variables too, gets few others but those of `env`; its
        program was looked up before any build, and no build can write in `cwd`. So does a program
        that acts for the user, which runs `outside` of the sandbox.
        """
        began = time.monotonic()
        with ExitStack() as stack:
            output = Output(self.redact)
            captured = bytearray()
            if log is not None:
                output.log = stack.enter_context(appending(log))
            streams = [Stream(output.splitter().feed)]
            if stdout is None:
                keep = captured if log is None else None
                streams.insert(0, Stream(output.splitter().feed, keep=keep))
            source = asyncio.subprocess.PIPE if isinstance(stdin, str) else stdin
            running = await self._spawn(
                argv,
                streams,
                cwd=cwd,
                env=env,
                source=source,
                sink=stdout,
                given=given,
                secrets=secrets,
                outside=outside,
            )
            life = await self._attend(running)
            if isinstance(stdin, str):
                running.feed(stdin)
            try:
                async with asyncio.timeout(timeout_s):
                    status = await life
            except TimeoutError:
                raise CommandFailed(
                    f"{_show(argv)} did not end within {timeout_s:g} s",
                    log=output.tail(),
                    problem=Problem.BUILD_TIMED_OUT,
                ) from None
        if status != 0:
            raise CommandFailed(
                f"{_show(argv)} {_describe_status(status)}",
                log=output.tail(),
                status=max(status, 0),
            )
        if len(captured) > MAX_OUTPUT:
            raise CommandFailed(f"{_show(argv)} printed more than {MAX_OUTPUT} bytes")
        return Completed(
            stdout=Printed(captured.decode(errors="replace"), argv, self.which(argv[0]) or argv[0]),
            tail=output.tail(),
            duration_s=time.monotonic() - began,
        )

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        receive: Callable[[str], None],
        ended: Callable[[tuple[str, ...]], None],
        env: Mapping[str, str | None] | None = None,
    ) -> Child:
        """Start a child to talk with, line by line.

        `receive` gets each line of its stdout, not redacted; `ended` is called once, with the
        last lines of its stderr, when it has closed both streams.
        """
        output = Output(self.redact)
        streams = (Stream(Splitter(receive, limit=MAX_ANSWER).feed), Stream(output.splitter().feed))
        running = await self._spawn(argv, streams, cwd=cwd, env=env, source=asyncio.subprocess.PIPE)

        still_open = {stream.closed for stream in streams}

        def closed(stream: asyncio.Future[None]) -> None:
            still_open.remove(stream)
            if not still_open:
                # It is dead or about to be; what it started and left behind is ended with it.
                running.kill()
                ended(output.tail())

        for stream in streams:
            stream.closed.add_done_callback(closed)
        return Child(running, await self._attend(running, ask=True))

    async def _spawn(
        self,
        argv: Sequence[str],
        streams: Sequence[Stream],
        *,
        cwd: Path,
        env: Mapping[str, str | None] | None,
        source: int | None = None,
        sink: int | None = None,
        given: Collection[int] = (),
        secrets: Mapping[str, str] | None = None,
        outside: bool = False,
    ) -> _Running:
        """`streams` are of its stdout, unless `sink` gets that, and of its stderr."""
        apart = outside or secrets is not None
        sandbox = UNCONFINED if outside else self.sandbox
        usual = self.sandbox.outside(self.environment) if apart else self.environment
        several = {**usual, **(env or {}), **(secrets or {})}
        environment = {k: v for k, v in several.items() if v is not None}
        if argv[0] == "git":
            environment = overrule_git_settings(environment)
        if apart:
            argv = [self._find_outside(argv, cwd), *argv[1:]]
        with ExitStack() as ours:
            ends = [await stream.open(ours) for stream in streams]
            launch: _LaunchPipe | None = None
            command, passed = argv, {*self._inherit_fds, *given}
            if sandbox.abi:
                launch = ours.enter_context(_LaunchPipe())
                command = sandbox.command(argv, environment, launch.theirs)
                passed.add(launch.theirs)
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    cwd=cwd,
                    env=self.sandbox.trusted(environment),
                    stdin=asyncio.subprocess.DEVNULL if source is None else source,
                    stdout=ends[0] if sink is None else sink,
                    stderr=ends[-1],
                    pass_fds=tuple(passed),
                    start_new_session=True,
                )
            except OSError as error:
                for stream in streams:
                    stream.close()
                raise CommandFailed(
                    f"{_show(argv)} cannot be started: {error}", problem=Problem.CANNOT_START
                ) from error
            running = _Running(process, streams, self._patience)
            if launch is not None:
                try:
                    await launch.require_start(_show(argv), argv[0])
                except BaseException:
                    await running.end_now()
                    raise
        return running

    def _find_outside(self, argv: Sequence[str], cwd: Path) -> str:
        """The program. Raises where builds can write what is started, or where it starts."""
        if self.sandbox.can_change(cwd):
            place = visible(clip(str(cwd), MAX_PLACE))
            raise PathError(f"{argv[0]} would start in {place}, which builds can write to")
        program = self.outside(argv[0])
        if program is None:
            raise CommandFailed(
                f"{_show(argv)} cannot be started: {argv[0]} is not on PATH",
                problem=Problem.CANNOT_START,
            )
        return program

    async def _attend(self, running: _Running, *, ask: bool = False) -> asyncio.Task[int]:
        try:
            life = self.group.start(running.attend(ask=ask))
        except GroupClosed:
            await running.end_now()  # it closed while the child was being started
            raise
        # A task that is cancelled before its first step would not end the child.
        await uncancellable(running.attended.wait())
        return life


class Child:
    """A long-lived child that is talked to in lines."""

    def __init__(self, running: _Running, life: asyncio.Task[int]) -> None:
        self._running = running
        self._life = life
        self._closing = False

    def send(self, line: str) -> None:
        """Write one line to its stdin; if it is gone, `ended` says so, not this."""
        self._running.write(line)

    def close(self) -> None:
        """Close its stdin, which asks it to end, and start making sure that it does."""
        if not self._closing:  # a second cancellation would mean at once
            self._closing = True
            self._life.cancel()

    async def aclose(self) -> None:
        """As `close`, and wait; when this is cancelled too, at once."""
        self.close()
        try:
            await asyncio.wait((self._life,))
        except asyncio.CancelledError:
            self._running.kill()
            raise


class _Running:
    """One process with its group and the read ends of its streams."""

    def __init__(
        self, process: asyncio.subprocess.Process, streams: Sequence[Stream], patience: KillSchedule
    ) -> None:
        self._process = process
        self._streams = streams
        self._patience = patience
        self.attended = asyncio.Event()

    def write(self, line: str) -> None:
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(line.encode() + b"\n")

    def feed(self, text: str) -> None:
        """All there is to read on its stdin."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(text.encode())
            self._process.stdin.close()

    async def attend(self, *, ask: bool) -> int:
        """Wait for its status. When cancelled, end the whole group, after closing its stdin where
        that asks it to end; when cancelled again, end it at once.
        """
        self.attended.set()
        try:
            status = await self._process.wait()
            await self._drain()
        except asyncio.CancelledError:
            try:
                await self._end(ask=ask)
            except asyncio.CancelledError:
                await self.end_now()
            raise
        self._let_go()
        return status

    async def end_now(self) -> None:
        self.kill()
        await uncancellable(self._ended_within(self._patience.signals[-1][1]))
        self._let_go()

    def _let_go(self) -> None:
        self._close_stdin()
        for stream in self._streams:
            stream.close()

    def _close_stdin(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def _end(self, *, ask: bool) -> None:
        self._close_stdin()
        if ask:
            await self._ended_within(self._patience.signals[0][1])
        for number, patience_s in self._patience.signals:
            if self._process.returncode is None:
                self._signal(number)
                await self._ended_within(patience_s)
        await self._drain()
        self._let_go()

    async def _ended_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()

    async def _drain(self) -> None:
        """Read what is left; then end those of the group that still hold a pipe."""
        closed = [stream.closed for stream in self._streams]
        _, open_still = await asyncio.wait(closed, timeout=self._patience.pipes_s)
        if open_still:
            self.kill()
            await asyncio.wait(open_still, timeout=self._patience.pipes_s)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # A child that starts its own session, as ours do, leads a group with its own pid as id.
        # macOS answers EPERM for a group of zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class _LaunchPipe:
    """The pipe over which a launcher says why it did not become the child; a context."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ours)
        self.close_theirs()

    def close_theirs(self) -> None:
        """The launcher has its end now."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    async def require_start(self, command: str, program: str) -> None:
        """Wait until the program has taken over; raises CommandFailed if it does not."""
        self.close_theirs()
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._ours, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._ours)
        step, _, number = os.read(self._ours, 100).decode().partition(" ")
        if not step:
            return
        error = OSError(int(number), os.strerror(int(number)), program)
        if step == "start":
            raise CommandFailed(
                f"{command} cannot be started: {error}", problem=Problem.CANNOT_START
            ) from error
        raise CommandFailed(
            f"{command} cannot be sandboxed: {error.strerror}",
            hint="`build-sandbox: off` runs builds without.",
            problem=Problem.CANNOT_START,
        ) from error


def _show(argv: Sequence[str]) -> str:
    command = shlex.join(argv)
    return f"`{command if len(command) <= 200 else command[:197] + '...'}`"


def _describe_status(status: int) -> str:
    if status >= 0:
        return f"failed with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:  # one of the real-time signals, of which two have names
        return f"was killed by signal {-status}"
