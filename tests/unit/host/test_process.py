from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, SupportsIndex

import pytest

from fakes import TOOL_VARIABLES
from full_disks import files_of_at_most
from processes import IMPATIENT, PATIENCE_S, ended
from releasekit.errors import CommandFailed
from releasekit.host import process, streams
from releasekit.host.process import KillSchedule, Processes
from releasekit.host.scrub import Redactor
from releasekit.host.streams import Splitter

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine
    from pathlib import Path

    from releasekit.host.process import Completed

SECRET = "canary-3f9a"
ONE_MINUTE = KillSchedule(signals=((signal.SIGINT, 60.0),))
# Waits for a signal or for its stdin to be closed, after it has said where it is.
PATIENT = "import sys; print('ready', flush=True); sys.stdin.read()"
STUBBORN = """\
import signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print('ready', flush=True)
while True:
    time.sleep(60)
"""


def processes(secrets: Collection[str] = (), **environment: str) -> Processes:
    given = {"PATH": os.defpath, **environment}
    return Processes(environment=given, secrets=secrets, variables=TOOL_VARIABLES)


def ended_by(patience: KillSchedule, secrets: Collection[str] = ()) -> Processes:
    return Processes(environment={"PATH": os.defpath}, secrets=secrets, patience=patience)


def python(code: str, cwd: Path, under: Processes | None = None, **options: object) -> Completed:
    async def main() -> Completed:
        async with under or processes() as started:
            return await started.run(
                [sys.executable, "-I", "-c", code],
                cwd=cwd,
                **options,  # type: ignore[arg-type]
            )

    return asyncio.run(main())


def test_stdout_is_captured_and_the_tail_holds_both_streams(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    completed = python(code, tmp_path)
    assert completed.stdout == "out\n"
    assert sorted(completed.tail) == ["err", "out"]
    assert completed.duration_s > 0


def test_a_child_runs_in_its_directory_without_stdin_in_its_own_session(tmp_path: Path) -> None:
    code = (
        "import os, sys; print(os.getcwd()); print(sys.stdin.read(), os.getsid(0) == os.getpid())"
    )
    assert python(code, tmp_path).stdout.split() == [str(tmp_path.resolve()), "True"]


def test_a_status_other_than_zero_raises_with_command_status_and_tail(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"-c .*failed with exit code 3") as caught:
        python("print(*range(100), sep='\\n'); raise SystemExit(3)", tmp_path)
    assert caught.value.log == tuple(map(str, range(60, 100)))


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_a_signal_is_named(tmp_path: Path, number: int, name: str) -> None:
    """R53: also one that has no name, of which there are thirty."""
    with pytest.raises(CommandFailed, match=f"was killed by {name}$"):
        python(f"import os; os.kill(os.getpid(), {number})", tmp_path)


def test_a_long_command_is_shortened_in_messages(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed) as caught:
        python(f"raise SystemExit(1)  # {'x' * 1000}", tmp_path)
    assert len(str(caught.value)) < 250


def test_a_missing_program_is_one_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with processes() as started:
            await started.run(["no-such-program"], cwd=tmp_path)

    with pytest.raises(CommandFailed, match="`no-such-program` cannot be started"):
        asyncio.run(main())


def test_with_a_log_everything_is_appended_to_it(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "build.log"
    for _ in range(2):
        assert python("print('hello')", tmp_path, log=log).stdout == ""
    assert log.read_text() == "hello\nhello\n"


def test_a_full_log_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    monkeypatch.setattr(streams, "MAX_LOG", 10)
    python("print('12345678'); print('12345678'); print('more')", tmp_path, log=tmp_path / "log")
    assert (tmp_path / "log").read_text() == "12345678\n[the log is cut here: it is full]\n"


@pytest.mark.parametrize("lines", [1, 9_999])
def test_a_log_that_the_disk_refuses_is_named_and_holds_nobody_up(
    tmp_path: Path, lines: int
) -> None:
    """R40: the child prints on, to a reader."""
    log = tmp_path / "logs" / "build.log"
    with (
        pytest.raises(CommandFailed, match=f"^{log}: File too large$") as caught,
        files_of_at_most(10),
    ):
        python(f"for _ in range({lines}): print('a line of the build')", tmp_path, log=log)
    assert "Make room" in caught.value.hint


def test_output_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R40"""
    for module in (process, streams):
        monkeypatch.setattr(module, "MAX_OUTPUT", 1000)
    with pytest.raises(CommandFailed, match="printed more than 1000 bytes"):
        python("print('x' * 5000)", tmp_path)


def test_secrets_are_neither_in_the_log_nor_in_the_tail(tmp_path: Path) -> None:
    """R34"""
    log = tmp_path / "log"
    code = f"print('token={SECRET}!'); raise SystemExit(1)"
    with pytest.raises(CommandFailed) as caught:
        python(code, tmp_path, processes(secrets=[SECRET]), log=log)
    assert caught.value.log == ("token=***!",)
    assert log.read_text() == "token=***!\n"


def test_redaction_prefers_the_longer_secret() -> None:
    assert processes(secrets=["abc", "abcdef", ""]).redact("abcdef abc") == "*** ***"
    assert processes().redact("abc") == "abc"


def test_a_secret_across_the_cut_of_an_endless_line_is_redacted() -> None:
    """R34"""
    lines: list[str] = []
    under = processes(secrets=[SECRET])
    splitter = Splitter(lines.append, redact=under.redact)
    text = "x" * (streams.MAX_LINE - 3) + SECRET + "y" * streams.MAX_LINE
    for start in range(0, len(text), 1000):
        splitter.feed(text[start : start + 1000].encode())
    splitter.feed(b"")
    assert SECRET not in "".join(lines)
    assert "".join(lines) == text.replace(SECRET, "***")
    assert max(map(len, lines)) <= streams.MAX_LINE + 1000


def test_half_a_character_at_the_cut_of_an_endless_line_is_kept() -> None:
    """R50: a secret with that character would not be recognized."""
    lines: list[str] = []
    splitter = Splitter(lines.append, redact=Redactor(["geheimnisträger"]))
    text = ("x" * (streams.MAX_LINE - 9) + "geheimnisträger" + "y" * 9).encode()
    splitter.feed(text[: streams.MAX_LINE + 2])  # in the middle of the umlaut
    splitter.feed(text[streams.MAX_LINE + 2 :])
    splitter.feed(b"")
    assert "".join(lines) == "x" * (streams.MAX_LINE - 9) + "***" + "y" * 9


def test_a_secret_of_any_length_is_redacted_across_cuts() -> None:
    """R50"""
    lines: list[str] = []
    secret = "".join(f"{number:x}." for number in range(30_000))
    splitter = Splitter(lines.append, redact=Redactor([secret]))
    text = ("x" * 70_000 + secret + "y" * 300_000).encode()
    for start in range(0, len(text), 4096):
        splitter.feed(text[start : start + 4096])
    splitter.feed(b"")
    assert "".join(lines) == "x" * 70_000 + "***" + "y" * 300_000


def test_what_becomes_a_secret_while_a_child_runs_is_redacted(tmp_path: Path) -> None:
    """R50: the tokens of trusted publishing are made after builds have begun."""
    secrets: list[str] = []
    log = tmp_path / "log"

    async def main() -> None:
        async with processes(secrets=secrets) as started:
            fifo = tmp_path / "go"
            os.mkfifo(fifo)
            code = f"open({str(fifo)!r}).read(); print('token={SECRET}')"
            run = started.run([sys.executable, "-I", "-c", code], cwd=tmp_path, log=log)
            running = asyncio.ensure_future(run)
            # Opened only once the child reads.
            opened = await asyncio.to_thread(os.open, fifo, os.O_WRONLY)
            secrets.append(SECRET)
            os.close(opened)
            await running

    asyncio.run(main())
    assert log.read_text() == "token=***\n"


@pytest.mark.parametrize("secret", ["abcd", "a" * 11, "b" * 12, "0123456789abcdef" * 5])
@pytest.mark.parametrize("before", range(20))
def test_a_secret_is_found_wherever_it_stands(secret: str, before: int) -> None:
    """R50"""
    redact = Redactor([secret, "0123456789ab" * 2])
    assert redact("x" * before + secret + "y") == "x" * before + "***y"


class CountedPieces(str):
    """A text that knows how many pieces of it were taken."""

    __slots__ = ("taken",)
    taken: int

    def __getitem__(self, key: SupportsIndex | slice, /) -> str:
        self.taken += 1
        return super().__getitem__(key)


@pytest.mark.parametrize(
    ("secrets", "pieces"), [([], 0), (["short"], 0), (["a" * 12], 1), (["b" * 12], 100)]
)
def test_no_more_pieces_are_taken_than_are_looked_for(secrets: list[str], pieces: int) -> None:
    """Those of 16 MB, all of them at once, took a gigabyte, even where nothing was secret."""
    text = CountedPieces("a" * 900)
    text.taken = 0
    assert Redactor(secrets)(text).replace("***", "a" * 12) == "a" * 900
    assert text.taken == pieces


def test_lines_are_put_together_from_any_chunks() -> None:
    lines: list[str] = []
    splitter = Splitter(lines.append)
    for chunk in (b"a", b"b\r\n", b"\nc", b"\xff\n", b"d", b""):
        splitter.feed(chunk)
    splitter.feed(b"")
    assert lines == ["ab", "", "c\ufffd", "d"]


def test_the_environment_is_scrubbed_and_the_callers_is_added(tmp_path: Path) -> None:
    """R34 R39: of what is set, only what is known to be harmless."""
    under = processes(
        secrets=[SECRET],
        HOME="/home/me",
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="t",
        ACTIONS_ID_TOKEN_REQUEST_URL="https://example.org",
        GITHUB_TOKEN="t",
        GITHUB_ENV="/env",
        RELEASEKIT_PYPI_TOKEN="t",
        UV_PUBLISH_TOKEN="t",
        UV_INDEX_URL="https://user:pass@example.org/simple",
        UV_EXTRA_INDEX_URL="https://example.org/simple",
        PIP_INDEX_URL=f"https://example.org/{SECRET}/simple",
        HTTPS_PROXY="http://me:pw@proxy:3128",
        NO_PROXY="localhost",
        DEPLOY="anything",
    )
    code = "import os; print('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))"
    given = python(code, tmp_path, under, env={"EXTRA": "1", "NO_PROXY": None}).stdout.splitlines()
    assert {line for line in given if not line.startswith("LC_CTYPE=")} == {
        f"PATH={os.defpath}",
        "HOME=/home/me",
        "UV_EXTRA_INDEX_URL=https://example.org/simple",
        "EXTRA=1",
    }


def test_each_tool_sees_its_own_variables_and_nothing_that_begins_like_them() -> None:
    """R34"""
    seen = ("UV_CACHE_DIR", "npm_config_cache", "CARGO_HOME", "RUSTFLAGS", "GOFLAGS", "JAVA_HOME")
    kept = ("UV_PUBLISH_URL", "GOOGLE_PROJECT", "npm_config__auth", "CARGO_REGISTRY_TOKEN", "XCC")
    under = processes(**dict.fromkeys((*seen, *kept), "x"))
    assert set(under.environment) == {"PATH", *seen}
    assert under.passing(["UV_PUBLISH_URL", "GOOGLE_PROJECT"]) == {"GOOGLE_PROJECT": "x"}
    assert set(Processes(environment=dict.fromkeys(seen, "x")).environment) == set()


def test_variables_are_passed_on_request_unless_they_look_like_secrets() -> None:
    """R34"""
    under = processes(
        secrets=[SECRET], DEPLOY="x", MY_TOKEN="t", URL=f"a{SECRET}", SITE="http://u@h"
    )
    names = ["DEPLOY", "MY_TOKEN", "URL", "SITE", "UNSET"]
    assert under.passing(names) == {"DEPLOY": "x"}


@pytest.mark.parametrize(
    "name",
    ["GITHUB_ENV", "GITLAB_ENV", "RUNNER_TRACKING_ID", "ACTIONS_CACHE_URL", "MYSQL_PWD", "SSHPASS"],
)
def test_what_no_build_may_have_is_not_passed_to_one_that_asks(name: str) -> None:
    """R50"""
    under = Processes(environment={name: "x"})
    assert under.passing([name]) == {}


def test_programs_are_found_on_the_childrens_path(tmp_path: Path) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert Processes(environment={"PATH": str(tmp_path)}).which("tool") == str(program)
    assert Processes(environment={"PATH": str(tmp_path)}).which("other") is None


def test_children_inherit_the_lock_descriptors_and_nothing_else(tmp_path: Path) -> None:
    """R27"""
    code = "import os; print(*sorted(map(int, os.listdir('/dev/fd'))))"
    with (tmp_path / "lock").open("w") as lock, (tmp_path / "other").open("w") as other:
        under = Processes(environment={}, inherit_fds=[lock.fileno()])
        fds = set(map(int, python(code, tmp_path, under).stdout.split()))
        assert lock.fileno() in fds
        assert other.fileno() not in fds or other.fileno() == max(fds)


@pytest.mark.parametrize("code", [PATIENT, STUBBORN])
def test_time_is_up_ends_the_child(tmp_path: Path, code: str) -> None:
    """R27: SIGINT, then SIGTERM, then SIGKILL."""
    code = f"import os; os.dup2(os.pipe()[0], 0)\n{code}"
    with pytest.raises(CommandFailed, match=r"did not end within 0.2 s"):
        python(code, tmp_path, ended_by(IMPATIENT), timeout_s=0.2)


def test_a_grandchild_that_holds_the_pipes_is_ended_with_the_child(tmp_path: Path) -> None:
    """R27 R29"""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid)"
    )
    pid = int(python(code, tmp_path, ended_by(IMPATIENT)).stdout)
    assert ended(pid)


def test_a_daemon_that_left_the_group_does_not_hold_up_the_run(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-c', 'import time; time.sleep(600)'],\n"
        "    start_new_session=True)\n"
        "print(child.pid)"
    )
    pid = int(python(code, tmp_path, ended_by(IMPATIENT)).stdout)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [PATIENT, STUBBORN])
def test_an_outer_timeout_ends_the_child_and_is_not_swallowed(tmp_path: Path, code: str) -> None:
    """R27 R29"""

    async def main() -> None:
        async with ended_by(IMPATIENT) as started:
            argv = [sys.executable, "-I", "-c", f"import os; os.dup2(os.pipe()[0], 0)\n{code}"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await started.run(argv, cwd=tmp_path)
            assert not started.group._children

    asyncio.run(main())


def test_a_second_cancellation_kills_at_once(tmp_path: Path) -> None:
    """R28: the second signal means now."""
    os.mkfifo(tmp_path / "fifo")
    code = STUBBORN.replace("print('ready', flush=True)", "open('fifo', 'w').close()")

    async def main() -> None:
        async with ended_by(ONE_MINUTE) as started:
            run = asyncio.ensure_future(
                started.run([sys.executable, "-I", "-c", code], cwd=tmp_path)
            )
            await asyncio.to_thread((tmp_path / "fifo").read_bytes)
            # The child may be faster than the news of its start.
            while not started.group._children:  # noqa: ASYNC110
                await asyncio.sleep(0)
            run.cancel()
            for _ in range(100):  # the time that the first one takes to arrive, and more
                await asyncio.sleep(0)
            assert not run.done()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run

    talk(main())


def test_a_cancellation_ends_a_child_that_nobody_attends_to_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R28: between its start and the first step of the task that waits for it."""
    spawned: list[asyncio.subprocess.Process] = []
    spawn = asyncio.create_subprocess_exec

    async def noticed(*argv: str, **options: Any) -> asyncio.subprocess.Process:
        spawned.append(await spawn(*argv, **options))
        return spawned[0]

    async def main() -> None:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", noticed)
        async with ended_by(IMPATIENT) as started:
            start = started.group.start

            def start_and_cancel(coroutine: Coroutine[object, object, Any]) -> asyncio.Task[Any]:
                task = start(coroutine)
                run.cancel()
                return task

            monkeypatch.setattr(started.group, "start", start_and_cancel)
            code = "import time; time.sleep(600)"
            run = asyncio.ensure_future(
                started.run([sys.executable, "-I", "-c", code], cwd=tmp_path)
            )
            with pytest.raises(asyncio.CancelledError):
                await run
            assert ended(spawned[0].pid)

    talk(main())


class Conversation:
    def __init__(self) -> None:
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        self.tail: asyncio.Future[tuple[str, ...]] = asyncio.get_running_loop().create_future()


def talk(coroutine: Coroutine[object, object, None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await coroutine

    asyncio.run(main())


def test_a_descriptor_gets_the_bytes_as_they_are(tmp_path: Path) -> None:
    code = f"import os; os.write(1, b'{SECRET}\\xff'); os.write(2, b'said')"
    with (tmp_path / "printed").open("w+b") as file:
        done = python(code, tmp_path, processes([SECRET]), stdout=file.fileno())
    assert (tmp_path / "printed").read_bytes() == SECRET.encode() + b"\xff"
    assert (done.stdout, done.tail) == ("", ("said",))


def test_a_child_is_talked_to_in_lines_and_ends_with_its_stdin(tmp_path: Path) -> None:
    async def main() -> None:
        said = Conversation()
        code = (
            "import sys\n"
            "for line in sys.stdin:\n"
            "    print(line.upper(), end='', flush=True)\n"
            "print('bye', file=sys.stderr)"
        )
        async with ended_by(ONE_MINUTE, secrets=["bye"]) as started:
            child = await started.start(
                [sys.executable, "-I", "-c", code],
                cwd=tmp_path,
                receive=said.lines.put_nowait,
                ended=said.tail.set_result,
            )
            child.send("hello")
            child.send("world")
            assert [await said.lines.get() for _ in range(2)] == ["HELLO", "WORLD"]
            await child.aclose()
            assert await said.tail == ("***",)
            child.send("too late")
            assert not started.group._children

    talk(main())


@pytest.mark.parametrize("closing", ["cancelled", "twice"])
def test_a_child_is_closed_once_and_at_once_where_that_is_cancelled(
    tmp_path: Path, closing: str
) -> None:
    """R28"""
    interrupted_s = 60.0 if closing == "cancelled" else 0.1
    patience = KillSchedule(signals=((signal.SIGINT, interrupted_s), (signal.SIGKILL, PATIENCE_S)))

    async def main() -> None:
        said = Conversation()
        async with ended_by(patience) as started:
            child = await started.start(
                [sys.executable, "-I", "-c", STUBBORN],
                cwd=tmp_path,
                receive=said.lines.put_nowait,
                ended=said.tail.set_result,
            )
            await said.lines.get()
            ends = [asyncio.ensure_future(child.aclose()) for _ in range(2)]
            await asyncio.sleep(0)
            if closing == "cancelled":
                assert ends[0].cancel()
            await asyncio.wait(ends)
            assert [end.cancelled() for end in ends] == [closing == "cancelled", False]
            await said.tail

    talk(main())


def test_the_end_of_a_child_is_told_once(tmp_path: Path) -> None:
    """Also when both of its streams close in one turn of the loop."""
    ends: list[tuple[str, ...]] = []

    def until_it_is_gone(line: str) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, int(line), os.WEXITED | os.WNOWAIT)

    async def main() -> None:
        async with processes() as started:
            child = await started.start(
                [sys.executable, "-I", "-c", "import os; print(os.getpid(), flush=True)"],
                cwd=tmp_path,
                receive=until_it_is_gone,
                ended=ends.append,
            )
            await child.aclose()

    talk(main())
    assert ends == [()]


def test_leaving_the_block_ends_every_child(tmp_path: Path) -> None:
    """R27 R29: no task and no process outlives the run."""

    async def main() -> None:
        conversations = [Conversation(), Conversation()]
        with contextlib.suppress(ZeroDivisionError):
            async with ended_by(IMPATIENT) as started:
                for code, said in zip((PATIENT, STUBBORN), conversations, strict=True):
                    await started.start(
                        [sys.executable, "-I", "-c", code],
                        cwd=tmp_path,
                        receive=said.lines.put_nowait,
                        ended=said.tail.set_result,
                    )
                    assert await said.lines.get() == "ready"
                raise ZeroDivisionError
        for said in conversations:
            await said.tail

    talk(main())
