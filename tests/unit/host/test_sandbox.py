"""What a sandbox holds, where it is to be had, and which places it leaves open."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from integration.tools import require_access_for_others, require_closed, require_landlock
from processes import IMPATIENT, ended
from releasekit.errors import CommandFailed, ConfigError, PathError
from releasekit.fields import replace
from releasekit.host import launcher, sandbox
from releasekit.host.process import Processes
from releasekit.host.sandbox import HINT, UNCONFINED, Cache, Sandbox, chosen, landlock, outermost
from releasekit.model import Outcome, Package, PackageId, Result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NOBODY = 65534
# Each line is a number of an error, 0 for none.
PROBE = """\
import ctypes, fcntl, os, pathlib, resource, signal, sys
victim, given, pid = *map(pathlib.Path, sys.argv[1:3]), int(sys.argv[3])
def tried(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno
    return 0
def attach():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, pid, None, None) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")
print("written", tried((given / "file").touch))
print("moved", tried(lambda: [(given / "a").mkdir(), (given / "file").rename(given / "a" / "b")]))
print("null", tried(lambda: open("/dev/null", "w").close()))
print("own", tried(lambda: open(f"/proc/{os.getpid()}/environ").close()))
print("write", tried((victim / "file").touch))
print("append", tried(lambda: open(victim / "there.txt", "a").close()))
print("empty", tried(lambda: os.truncate(victim / "there.txt", 0)))
print("replace", tried(lambda: (given / "a" / "b").rename(victim / "there.txt")))
print("link", tried(lambda: os.link(victim / "there.txt", given / "stolen")))
print("fifo", tried(lambda: os.mkfifo(victim / "fifo")))
print("device", tried(lambda: os.mknod(given / "device", 0o20600, os.makedev(1, 3))))
print("environ", tried(lambda: open(f"/proc/{pid}/environ").close()))
print("memory", tried(lambda: open(f"/proc/{pid}/mem").close()))
print("attach", tried(attach))
print("signal", tried(lambda: os.kill(pid, 0)))
print("limits", tried(lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))))
print("look", tried(lambda: resource.prlimit(pid, resource.RLIMIT_CPU)))
print("lease", tried(lambda: fcntl.fcntl(open(victim / "there.txt"), fcntl.F_SETLEASE, 0)))
print("own limits", tried(lambda: resource.setrlimit(resource.RLIMIT_CPU, (900, 900))))
"""
# The same call, as programs for older processors make it: prints the number of an error each.
OTHER_CALLS = """\
import ctypes, mmap, os, sys
pid, prlimit, cpu, anything = int(sys.argv[1]), 302, 0, 1
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(prlimit | 1 << 30, pid, cpu, ctypes.c_void_p(anything), None)  # x32
print(ctypes.get_errno(), flush=True)
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov ebx, edi; mov ecx, esi; xor esi, esi; mov eax, 340; int 0x80; pop rbx; cdqe; ret
code.write(bytes.fromhex("53 89fb 89f1 31f6 b854010000 cd80 5b 4898 c3"))
place = ctypes.addressof(ctypes.c_char.from_buffer(code))
call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_uint)(place)
child = os.fork()
if not child:
    os._exit(-call(pid, cpu, anything))
status = os.waitpid(child, 0)[1]  # it is killed where the kernel has no such calls
print(os.waitstatus_to_exitcode(status))
"""
STATUS = "print(open('/proc/self/status').read())"


@pytest.fixture
def places() -> Iterator[tuple[Path, Path]]:
    """A victim and what a child is given; /tmp is everybody's."""
    with tempfile.TemporaryDirectory(prefix="releasekit-sandbox-", dir="/var/tmp") as name:
        top = Path(name)
        for directory in (top, top / "victim", top / "given"):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o777)
        (top / "victim" / "there.txt").write_text("as it was")
        (top / "victim" / "there.txt").chmod(0o666)
        yield top / "victim", top / "given"


def launched(argv: list[str], *places: Path | str, user: int | None, python: str) -> str:
    """What it prints in a sandbox, run by `user`."""
    read_end, write_end = os.pipe()
    program = [python, "-I", "-S", launcher.__file__]
    given = [str(launcher_abi()), str(write_end), *map(str, places), "--"]
    whose = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(  # type: ignore[call-overload]
        [*program, *given, *argv],
        # A child that is measured could not write down of what lines it consists.
        env={name: text for name, text in os.environ.items() if not name.startswith("COV")},
        pass_fds=[write_end],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
        **whose,
    )
    os.close(write_end)
    said = os.read(read_end, 100)
    os.close(read_end)
    assert (done.returncode, done.stderr, said) == (0, "", b"")
    return str(done.stdout)


def launcher_abi() -> int:
    return require_landlock()


def python_of(user: int | None) -> str:
    """One that the user may run: that of the tests may lie in root's home."""
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")):
        whose = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        try:
            subprocess.run([python, "-I", "-c", ""], check=True, cwd="/", **whose)  # type: ignore[call-overload]
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    raise AssertionError


@pytest.mark.parametrize("user", [None, NOBODY] if os.geteuid() == 0 else [None])
def test_a_child_reaches_nothing_but_what_it_is_given(
    places: tuple[Path, Path], user: int | None
) -> None:
    """R50, R52: as root, and as somebody who is not."""
    if user is not None:
        require_access_for_others()
    victim, given = places
    python = python_of(user)
    whose = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    outside = subprocess.Popen(["sleep", "600"], cwd="/", **whose)  # type: ignore[call-overload]
    try:
        argv = [python, "-I", "-c", PROBE, str(victim), str(given), str(outside.pid)]
        out = launched(argv, given, "/dev/null", "/not/there", user=user, python=python)
    finally:
        outside.kill()
        outside.wait()
    numbers = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in out.splitlines()}
    possible = {"written", "moved", "null", "own", "look", "own limits"}
    possible |= {"signal"} if launcher_abi() < 6 else set()
    assert {what for what, number in numbers.items() if number == 0} == possible
    assert len(numbers) == 19
    assert numbers["limits"] == numbers["lease"] == errno.EPERM
    assert [path.name for path in victim.iterdir()] == ["there.txt"]
    assert (victim / "there.txt").read_text() == "as it was"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its calls have three forms")
def test_no_form_of_a_call_limits_a_process_outside() -> None:
    """R50: each has its own numbers, and reaches the same function of the kernel."""
    outside = subprocess.Popen(["sleep", "600"], cwd="/")
    try:
        python = python_of(None)
        argv = [python, "-I", "-c", OTHER_CALLS, str(outside.pid)]
        x32, i386 = map(int, launched(argv, user=None, python=python).split())
    finally:
        outside.kill()
        outside.wait()
    assert x32 == errno.EPERM
    assert i386 in {errno.EPERM, -signal.SIGSEGV}


def test_a_system_without_filters_still_has_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a processor whose numbers are not known."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(launcher, "called", refuse)
    launcher.protect_processes()
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="m68k"))
    monkeypatch.delattr(launcher, "called")
    launcher.protect_processes()


def test_a_build_writes_to_no_terminal_of_the_user(tmp_path: Path) -> None:
    """R50: nor has it one of its own, unless the user says so."""
    require_landlock()
    ours, theirs = os.openpty()
    own = "import pty; pty.openpty()"

    async def run(sandbox: Sandbox, *argv: str) -> bool:
        async with Processes(environment=dict(os.environ), sandbox=sandbox) as processes:
            try:
                await processes.run(argv, cwd=tmp_path)
            except CommandFailed:
                return False
        return True

    try:
        write = ("sh", "-c", f"echo x >{os.ttyname(theirs)}")
        terminal = f"os.open({os.ttyname(theirs)!r}, os.O_RDONLY)"
        stop = f"import os, termios; termios.tcflow({terminal}, termios.TCOOFF)"
        usual, more = choice(tmp_path), choice(tmp_path, further=[Path("/dev/pts")])
        python = (sys.executable, "-I", "-c", own)
        assert not asyncio.run(run(usual, *write))
        assert not asyncio.run(run(usual, *python))
        assert asyncio.run(run(usual, sys.executable, "-I", "-c", stop)) is (landlock()[0] < 5)
        assert asyncio.run(run(more, *write))
        assert asyncio.run(run(more, *python))
        shared = "import multiprocessing; multiprocessing.Lock()"
        assert asyncio.run(run(usual, sys.executable, "-I", "-c", shared))
    finally:
        os.close(ours)
        os.close(theirs)


def test_rights_are_given_up_for_good() -> None:
    """R50: neither sudo nor what root may do around every file is left, and signals are usual."""
    python = python_of(None)
    out = launched([python, "-I", "-c", STATUS], user=None, python=python)
    status = dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    kept = sum(1 << number for number in launcher.KEPT)
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) & ~kept == 0, name


def test_a_pipe_that_breaks_ends_a_child_as_ever() -> None:
    """Python ignores SIGPIPE, and what it ignores its children would ignore."""

    async def body() -> None:
        async with Processes(environment=dict(os.environ), sandbox=confined()) as processes:
            done = await processes.run(["sh", "-c", "grep SigIgn /proc/self/status"], cwd=Path("/"))
            ignored = int(done.stdout.split()[1], 16)
            assert not ignored & 1 << (signal.SIGPIPE - 1)

    asyncio.run(body())


def confined(*places: str) -> Sandbox:
    return Sandbox(words="sandboxed", abi=require_landlock(), places=("/dev/null", *places))


@pytest.mark.parametrize("box", ["confined", "free"])
def test_a_program_that_cannot_be_started_is_told_of_as_ever(tmp_path: Path, box: str) -> None:
    within = confined() if box == "confined" else UNCONFINED
    (tmp_path / "plain").touch()

    async def body() -> list[str]:
        said = []
        async with Processes(environment=dict(os.environ), sandbox=within) as processes:
            for program in ("is-not-here", "./plain", "./neither"):
                with pytest.raises(CommandFailed, match="cannot be started") as caught:
                    await processes.run([program], cwd=tmp_path)
                said.append(str(caught.value))
            with pytest.raises(CommandFailed, match="cannot be started"):
                await processes.run(["true"], cwd=tmp_path / "neither")
        return said

    assert asyncio.run(body()) == [
        "`is-not-here` cannot be started: [Errno 2] No such file or directory: 'is-not-here'",
        "`./plain` cannot be started: [Errno 13] Permission denied: './plain'",
        "`./neither` cannot be started: [Errno 2] No such file or directory: './neither'",
    ]


def test_nothing_is_started_that_cannot_be_confined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R50: after sixteen sandboxes, one in the other, the system allows no more, for instance."""
    stand_in = tmp_path / "launcher.py"
    stand_in.write_text("import os, sys; os.write(int(sys.argv[2]), b'confine 7'); sys.exit(127)")
    monkeypatch.setattr(sandbox, "_LAUNCHER", stand_in)

    async def body() -> CommandFailed:
        async with Processes(environment=dict(os.environ), sandbox=confined()) as processes:
            with pytest.raises(CommandFailed) as caught:
                await processes.run(["touch", "made"], cwd=tmp_path)
            return caught.value

    error = asyncio.run(body())
    assert str(error) == "`touch made` cannot be sandboxed: Argument list too long"
    assert "`build-sandbox: off`" in error.hint
    assert not (tmp_path / "made").exists()


def test_a_launcher_that_is_cancelled_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R50"""
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    stand_in = tmp_path / "launcher.py"
    stand_in.write_text(
        f"import os, signal; open({str(pipe)!r}, 'w').write(str(os.getpid())); signal.pause()"
    )
    monkeypatch.setattr(sandbox, "_LAUNCHER", stand_in)

    async def body() -> int:
        async with Processes(
            environment=dict(os.environ), sandbox=confined(), patience=IMPATIENT
        ) as processes:
            task = asyncio.create_task(processes.run(["true"], cwd=tmp_path))
            pid = int(await asyncio.to_thread(pipe.read_text))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return pid

    assert ended(asyncio.run(body()))


def test_who_acts_for_the_user_is_not_confined(places: tuple[Path, Path]) -> None:
    """R50: gpg writes to its home."""
    victim, given = places

    async def body() -> None:
        async with Processes(environment=dict(os.environ), sandbox=confined()) as processes:
            with pytest.raises(CommandFailed, match="failed with exit code"):
                await processes.run(["touch", "file"], cwd=given)
            await processes.run(["touch", "file"], cwd=victim, outside=True)

    asyncio.run(body())
    assert (victim / "file").exists()


def choice(
    root: Path,
    wanted: sandbox.Wanted = "auto",
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    further: Sequence[Path] = (),
    caches: Sequence[Cache] = (),
) -> Sandbox:
    return chosen(
        wanted,
        root=root,
        state_directory=root / ".releasekit",
        further=further,
        caches=caches,
        environment=environment,
    )


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_another_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, name: str
) -> None:
    """R50"""
    monkeypatch.setattr(sys, "platform", platform)
    lacking = f"{name} has no Landlock"
    assert choice(tmp_path) == Sandbox(words=f"not sandboxed: {lacking}", lacking=lacking)
    with pytest.raises(ConfigError, match=f"^build-sandbox = required, but {name} has no") as error:
        choice(tmp_path, "required")
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (2, r"Landlock of Linux \S+ has ABI 2, and 3 is needed \(Linux 6.2\)"),
        (OSError(38, "Function not implemented"), r"Linux \S+ offers no Landlock \(Function"),
        (OSError(95, "Operation not supported"), r"Linux \S+ offers no Landlock \(Operation"),
    ],
)
def test_an_old_kernel_has_too_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int | OSError, why: str
) -> None:
    """R50"""

    def called(*_: object) -> int:
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(launcher, "called", called)
    assert choice(tmp_path).abi == 0
    with pytest.raises(ConfigError, match=why):
        choice(tmp_path, "required")


def test_a_landlock_that_answers_and_then_refuses_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R68: a filter of system calls that lets the question pass."""

    def called(what: str, number: int, *rest: object) -> int:
        del what
        if number == launcher.CREATE_RULESET and not rest[0]:
            return 7
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(launcher, "called", called)
    found = choice(tmp_path)
    assert (found.abi, found.words) == (0, f"not sandboxed: {found.lacking}")
    assert found.lacking.endswith("reports ABI 7 but refuses rules (Operation not permitted)")


def test_it_can_be_left_out(tmp_path: Path) -> None:
    assert choice(tmp_path, "off") == Sandbox(words="not sandboxed: build-sandbox is off")


def test_what_lies_in_a_place_is_not_followed(tmp_path: Path) -> None:
    """R52: a build may have put a link there, for the next run to follow."""
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (root / "state").mkdir(parents=True)
    elsewhere.mkdir()
    (root / "state" / "dist").symlink_to(elsewhere)
    (tmp_path / "link").symlink_to(elsewhere)
    assert outermost([root, root / "state" / "dist", root]) == [root]
    assert outermost([root, tmp_path / "link"]) == [root, elsewhere]


def test_of_a_state_directory_outside_only_the_places_of_builds_are_open(
    places: tuple[Path, Path],
) -> None:
    """R52: the journal is not."""
    require_landlock()
    root, state = places
    within = chosen("auto", root=root, state_directory=state, further=(), caches=(), environment={})
    made = {str(state / name) for name in ("dist", "logs", "work")}
    assert {place for place in within.places if place.startswith(str(root.parent))} == {
        str(root),
        *made,
    }
    assert all(Path(place).is_dir() for place in made)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ""),
        ({"HOME": "{root}"}, ", but the workspace holds the home directory"),
        ({"HOME": "{root}/home"}, ", but the workspace holds the home directory"),
        ({"HOME": "/nowhere", "RUNNER_TEMP": "{root}/_temp"}, ", but the workspace holds files of"),
    ],
)
def test_a_workspace_that_holds_too_much_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    abi = require_landlock()
    monkeypatch.setattr(sandbox, "_OURS", (Path("/nowhere"),))
    (tmp_path / "_temp" / "_runner_file_commands").mkdir(parents=True)
    given = {name: text.format(root=tmp_path) for name, text in environment.items()}
    said = choice(tmp_path, environment=given).words
    assert said.startswith(f"sandboxed (Landlock {abi}){words}")
    assert ("use the secrets of this run. Keep the home" in said) is bool(words)
    assert bool(words) == ("but" in said)


def test_a_workspace_with_this_program_in_it_is_told_of() -> None:
    """R50: as an action from the checkout itself, `uses: ./`."""
    require_landlock()
    root = Path(sandbox.__file__).parents[3]
    assert ", but the workspace holds ReleaseKit itself: a build" in choice(root).words


@pytest.mark.parametrize("path", [sys.base_prefix, str(Path(sys.executable).resolve().parent)])
def test_an_open_place_with_the_interpreter_in_it_is_told_of(tmp_path: Path, path: str) -> None:
    """R50: whose modules run with the secrets, from wherever an environment leads to them."""
    require_landlock()
    require_closed()
    found = chosen(
        "auto",
        root=tmp_path,
        state_directory=tmp_path / ".releasekit",
        further=[Path(path)],
        caches=(),
        environment={},
    )
    assert f", but {Path(path).resolve()} holds ReleaseKit itself: a build" in found.words


def test_an_open_link_to_the_interpreter_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R54: a build can lead it elsewhere; what starts children has been looked up before."""
    require_landlock()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".venv").symlink_to(sys.prefix)
    there = tmp_path / "w" / ".venv" / "bin" / "python"
    monkeypatch.setattr(sandbox, "_OURS", (there,))
    found = choice(tmp_path / "w")
    assert ", but the workspace holds ReleaseKit itself: a build" in found.words
    assert found.command(["true"], {}, 3)[0] == os.path.realpath(sys.executable)


def test_a_workspace_that_is_everything_is_told_of() -> None:
    require_landlock()
    assert ", but the workspace is the whole file system: a build" in choice(Path("/")).words


def test_a_cache_is_where_its_variables_and_those_of_the_system_say(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").touch(mode=0o700)
    here = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}
    cache = Cache("tool", "TOOL_HOME", "~/.cache/tool")
    assert [*cache.places(here)] == [tmp_path / "home/.cache/tool"]
    assert [*cache.places({**here, "XDG_CACHE_HOME": str(tmp_path / "xdg")})] == [
        tmp_path / "xdg/tool"
    ]
    assert [*cache.places({**here, "XDG_CACHE_HOME": "relative"})] == [
        tmp_path / "home/.cache/tool"
    ]
    assert [*cache.places({**here, "TOOL_HOME": str(tmp_path / "own")})] == [tmp_path / "own"]
    assert cache.places({**here, "TOOL_HOME": "relative"}) == {}
    without = {"PATH": "/nowhere", "HOME": str(tmp_path / "empty")}
    assert cache.places(without) == {}
    assert replace(cache, tool=str(tmp_path / "bin" / "tool")).places(without)
    (tmp_path / "empty/.cache/tool").mkdir(parents=True)
    assert [*cache.places(without)] == [tmp_path / "empty/.cache/tool"]


def test_of_a_home_only_the_cache_in_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R52: not the programs beside it, which others run."""
    require_landlock()
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ())
    (tmp_path / "tool").touch(mode=0o700)
    root, home = tmp_path / "root", tmp_path / "home"
    cache = Cache("tool", "", "~/.tool", below=("registry/", ".lock"))
    here = {"PATH": str(tmp_path), "HOME": str(home)}
    places = [home / ".tool/registry", home / ".tool/.lock"]
    within = choice(root, environment=here, caches=[cache])
    assert within.places == (str(root), *map(str, places))
    assert places[0].is_dir()
    assert places[1].is_file()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("", "home/.tool"),
        ("-Xmx1g", "home/.tool"),
        ("-Dat=/nowhere -Xmx1g -Dat={0}/own", "own"),
        ("-Dat=relative", ""),
    ],
)
def test_a_cache_may_be_named_among_other_options(tmp_path: Path, value: str, name: str) -> None:
    (tmp_path / "tool").touch(mode=0o700)
    here = {"PATH": str(tmp_path), "HOME": str(tmp_path / "home")}
    cache = Cache("tool", "TOOL_OPTS", "~/.tool", option="-Dat=")
    places = cache.places({**here, "TOOL_OPTS": value.format(tmp_path)})
    assert [*places] == ([tmp_path / name] if name else [])


def test_a_jvm_has_its_home_from_the_list_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R50: in a job in a container, HOME is another one, and Maven could not write."""
    (tmp_path / "tool").touch(mode=0o700)
    here = {"PATH": str(tmp_path), "HOME": str(tmp_path / "home"), "TOOL": str(tmp_path / "own")}
    theirs = SimpleNamespace(pw_dir=str(tmp_path / "theirs"))
    monkeypatch.setattr("pwd.getpwuid", {os.getuid(): theirs}.__getitem__)
    cache = Cache("tool", "TOOL", "~/.tool", of_the_user=True)
    assert [*cache.places({**here, "TOOL": ""})] == [tmp_path / "theirs/.tool"]
    assert [*cache.places(here)] == [tmp_path / "own"]
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert [*cache.places({**here, "TOOL": ""})] == [tmp_path / "home/.tool"]


def test_a_cache_that_cannot_be_made_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_landlock()
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ())
    (tmp_path / "tool").touch(mode=0o700)
    (tmp_path / "home").touch()
    here = {"PATH": str(tmp_path), "HOME": str(tmp_path / "home")}
    choice(tmp_path / "root", environment=here, caches=[Cache("tool", "", "~/.tool")])
    assert (tmp_path / "home").is_file()


@pytest.mark.parametrize(
    ("cache", "planted", "opened"),
    [
        # The directory of the cache is a link in a closed place: the user's own.
        ("{}/closed/cache", {"closed/cache": "elsewhere"}, "elsewhere"),
        ("{}/closed/up/cache", {"closed/up": "elsewhere"}, "elsewhere/cache"),
        # In an open place a build made it: at each level, and by a way that leads there.
        ("{}/open/cache", {"open/cache": "victim"}, ""),
        ("{}/open/cache/deep", {"open/cache": "victim"}, ""),
        ("{}/open/a/cache", {"open/a": "closed", "closed/cache": "victim"}, ""),
        ("{}/closed/cache", {"closed/cache": "open/x", "open/x": "victim"}, ""),
        ("{}/closed/cache/deep", {"closed/cache": "open", "open/deep": "victim"}, ""),
        ("{}/closed/../open/cache", {"open/cache": "victim"}, ""),
        ("{}/open/../open/cache", {"open/cache": "victim"}, ""),
        ("{}/open/out/../new", {"open/out": "victim/below"}, ""),
    ],
)
@pytest.mark.parametrize("below", ["", "lock", "registry/"])
def test_no_cache_is_made_or_opened_by_a_link_of_a_build(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cache: str,
    planted: dict[str, str],
    opened: str,
    below: str,
) -> None:
    """R50, R52: an earlier build left the link, and this run makes what is missing."""
    require_landlock()
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ())
    for name in ("open", "closed", "elsewhere", "victim/below"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tool").touch(mode=0o700)
    for name, target in planted.items():
        (tmp_path / name).symlink_to(tmp_path / target)
    before = sorted(tmp_path.glob("victim/**/*"))
    here = {"PATH": str(tmp_path), "TOOL": cache.format(tmp_path)}
    within = choice(
        tmp_path / "open", environment=here, caches=[Cache("tool", "TOOL", "", below=(below,))]
    )
    expected = [str(tmp_path / opened / below)] if opened else []
    assert within.places == (str(tmp_path / "open"), *expected)
    assert all(Path(each).exists() for each in within.places)
    assert sorted(tmp_path.glob("victim/**/*")) == before


def test_what_lies_in_the_cache_of_another_tool_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R52: whichever comes first, and however it leads there."""
    require_landlock()
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ())
    for name in ("root", "data", "victim"):
        (tmp_path / name).mkdir()
    (tmp_path / "tool").touch(mode=0o700)
    (tmp_path / "first").symlink_to(tmp_path / "data" / "inner")
    (tmp_path / "data" / "inner").symlink_to(tmp_path / "victim")
    (tmp_path / "second").symlink_to(tmp_path / "data")
    here = {"PATH": str(tmp_path)}
    caches = [Cache("tool", "", str(tmp_path / name)) for name in ("first", "second")]
    for order in (caches, caches[::-1]):
        within = choice(tmp_path / "root", environment=here, caches=order)
        assert within.places == (str(tmp_path / "root"), str(tmp_path / "data"))


def test_a_place_that_is_not_opened_closes_no_other(tmp_path: Path) -> None:
    """A link in the workspace names a directory above a cache."""
    (tmp_path / "root").mkdir()
    (tmp_path / "home" / "cache").mkdir(parents=True)
    (tmp_path / "root" / "up").symlink_to(tmp_path / "home")
    wanted = [tmp_path / "home" / "cache", tmp_path / "root" / "up", tmp_path / "root"]
    assert outermost(wanted) == [tmp_path / "home" / "cache", tmp_path / "root"]
    for here, there in (("a", "b"), ("b", "a")):
        (tmp_path / here).mkdir()
        (tmp_path / here / "link").symlink_to(tmp_path / there)
    assert outermost([tmp_path / "a" / "link", tmp_path / "b" / "link"]) == []
    (tmp_path / "loop").symlink_to("loop")
    assert outermost([tmp_path / "a", tmp_path / "loop" / "x"])[0] == tmp_path / "a"


def test_temporary_directories_are_open(tmp_path: Path) -> None:
    require_landlock()
    (tmp_path / "root").mkdir()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as own:
        environment = {"TMPDIR": own, "TMP": "relative", "TEMP": "/tmp/mine"}
        places = choice(tmp_path / "root", environment=environment).places
        assert own in places
        assert not {"relative", "/tmp/mine"} & {*places}


def test_a_temporary_directory_that_became_a_link_opens_nothing(places: tuple[Path, Path]) -> None:
    """R50, R52: it lies in /tmp, where a build may put a link in its place for the next one."""
    require_landlock()
    victim, given = places
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        own, further = Path(name, "own"), Path(name, "further")
        environment = {**os.environ, "TMPDIR": str(own)}
        own.mkdir()
        further.mkdir()
        within = choice(given, environment=environment, further=[further])

        async def body() -> None:
            async with Processes(environment=environment, sandbox=within) as processes:
                for each in (own, further):
                    await processes.run(["rmdir", str(each)], cwd=given)
                    await processes.run(["ln", "-s", str(victim), str(each)], cwd=given)
                with pytest.raises(CommandFailed, match="failed with exit code"):
                    await processes.run(["touch", str(victim / "file")], cwd=given)

        asyncio.run(body())
    assert not (victim / "file").exists()


def test_what_leads_into_an_open_place_is_not_followed_a_second_time(tmp_path: Path) -> None:
    """R52: a cache that is a link to a directory in /tmp."""
    (tmp_path / "open" / "cache").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "cache")
    assert outermost([tmp_path / "open", tmp_path / "link"]) == [tmp_path / "open"]


def test_no_library_of_a_build_gets_into_what_is_not_confined_yet(tmp_path: Path) -> None:
    """R50: an empty part of LD_LIBRARY_PATH is the working directory, where a build writes."""
    (tmp_path / "open").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "open")
    inside, through = str(tmp_path / "open" / "lib"), str(tmp_path / "link" / "lib")
    within = Sandbox(words="", abi=7, places=(str(tmp_path / "open"),))
    for given, kept in [
        ("/opt/lib:", "/opt/lib"),
        (f"lib:/opt/lib:{inside}:{through}", "/opt/lib"),
        (f"/opt/../{inside}:/usr/lib", "/usr/lib"),
        ("", None),
    ]:
        environment = {"LD_LIBRARY_PATH": given, "PATH": "/bin"}
        trusted = within.trusted(environment)
        assert trusted == {"PATH": "/bin"} | ({"LD_LIBRARY_PATH": kept} if kept else {})
        assert UNCONFINED.trusted(environment) == environment
        command = within.command(["true"], environment, 9)
        assert command[6 : command.index("--")] == [f"LD_LIBRARY_PATH={given}", *within.places]


def test_a_program_outside_is_found_once_and_in_no_open_place(tmp_path: Path) -> None:
    """R50: as it is spelled, as it is resolved, and every link between."""
    for name in ("open/bin", "closed", "real"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "real" / "tool").touch(mode=0o700)
    (tmp_path / "open" / "tool").touch(mode=0o700)
    links = {
        "open/bin/tool": "real/tool",
        "closed/direct": "open/tool",
        "open/hop": "real/tool",
        "closed/twice": "open/hop",
        "closed/dir": "open/bin",
        "closed/fine": "real/tool",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(tmp_path / target)
    within = Sandbox(words="", abi=7, places=(str(tmp_path / "open"),))

    def found(path: str, program: str, sandbox: Sandbox = within) -> str | None:
        environment = {"PATH": f"{tmp_path / path}:/nowhere"}
        return Processes(environment=environment, sandbox=sandbox).outside(program)

    for path, program in [
        ("open", "tool"),
        ("open/bin", "tool"),
        ("open/../real/../open", "tool"),
        ("closed", "direct"),
        ("closed", "twice"),
        ("closed/dir", "tool"),
    ]:
        words = f"{program} is {tmp_path / path / program}, where builds can write"
        with pytest.raises(ConfigError) as caught:
            found(path, program)
        assert str(caught.value) == words
        assert program in caught.value.hint
        assert found(path, program, UNCONFINED)
    assert found("closed", "fine") == str(tmp_path / "closed" / "fine")
    assert found("closed", "neither") is None


def test_a_program_outside_is_not_looked_up_a_second_time(tmp_path: Path) -> None:
    """R50: whatever a build has installed since."""

    async def body() -> None:
        environment = {"PATH": str(tmp_path)}
        async with Processes(environment=environment) as processes:
            assert processes.outside("tool") is None
            (tmp_path / "tool").touch(mode=0o700)
            assert processes.outside("tool") is None
            with pytest.raises(CommandFailed, match="tool is not on PATH"):
                await processes.run(["tool"], cwd=tmp_path, outside=True)

    asyncio.run(body())


def test_a_program_outside_gets_nothing_that_loads_what_a_build_wrote(tmp_path: Path) -> None:
    """R50: of a PATH only what is closed, and no setting of an interpreter."""
    (tmp_path / "open").mkdir()
    within = Sandbox(words="", abi=require_landlock(), places=(str(tmp_path / "open"), "/dev/null"))
    own = f"{tmp_path}/open/bin"
    environment = {
        "PATH": f"{own}::.:{os.environ['PATH']}",
        "HOME": "/home",
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": own,
        "LD_PRELOAD": f"{own}/x.so",
        "PYTHONPATH": own,
        "NODE_OPTIONS": f"--require {own}/x.js",
        "XDG_CONFIG_HOME": own,
    }

    async def body() -> str:
        async with Processes(environment=environment, sandbox=within) as processes:
            return (await processes.run(["env"], cwd=tmp_path, outside=True)).stdout

    given = dict(line.split("=", 1) for line in asyncio.run(body()).splitlines())
    path = ":".join(each for each in os.environ["PATH"].split(":") if each.startswith("/"))
    assert given == {"PATH": path, "HOME": "/home", "LC_ALL": "C"}
    assert within.outside({"PATH": own})["PATH"] == os.defpath


def test_a_child_with_a_secret_starts_where_no_build_writes_and_is_confined(tmp_path: Path) -> None:
    """R34, R69"""
    (tmp_path / "open").mkdir()
    within = Sandbox(words="", abi=require_landlock(), places=(str(tmp_path / "open"), "/dev/null"))
    environment = {
        "PATH": f"{tmp_path}/open:{os.environ['PATH']}",
        "NODE_OPTIONS": f"--require {tmp_path}/open/x.js",
    }
    secrets = {"TOKEN": "canary"}

    async def body() -> None:
        async with Processes(environment=environment, sandbox=within) as processes:
            done = await processes.run(["env"], cwd=tmp_path, env={"A": "b"}, secrets=secrets)
            given = dict(line.split("=", 1) for line in done.stdout.splitlines())
            assert given.keys() - {"LC_CTYPE"} == {"PATH", "TOKEN", "A"}  # Python's own
            assert str(tmp_path) not in given["PATH"]
            with pytest.raises(CommandFailed, match="failed with exit code 1"):
                await processes.run(["touch", "file"], cwd=tmp_path, secrets=secrets)
            for given_secrets in (secrets, {}):
                with pytest.raises(PathError, match=r"env would start in .*/open, which builds"):
                    await processes.run(["env"], cwd=tmp_path / "open", secrets=given_secrets)
            planted = tmp_path / "open" / "tool"
            planted.write_text("#!/bin/sh\n")
            planted.chmod(0o755)
            with pytest.raises(PathError, match=r"tool is .*/open/tool, where builds can write"):
                await processes.run(["tool"], cwd=tmp_path, secrets=secrets)

    asyncio.run(body())


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "LOCPATH"])
def test_a_setting_of_the_loader_is_for_the_child_alone(name: str) -> None:
    """R50: `pass-env` asked for it, and the launcher is not confined yet."""
    within = Sandbox(words="", abi=7)
    environment = {"PATH": "/bin", name: "/x"}
    assert within.trusted(environment) == {"PATH": "/bin"}
    assert f"{name}=/x" in within.command(["true"], environment, 9)


def test_a_child_has_its_own_setting_of_the_loader(tmp_path: Path) -> None:
    require_landlock()
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": ":/opt/x=y"}

    async def body() -> list[str]:
        said = []
        async with Processes(environment=environment, sandbox=confined()) as processes:
            for outside in (False, True):
                done = await processes.run(["env"], cwd=tmp_path, outside=outside)
                said += [line for line in done.stdout.splitlines() if line.startswith("LD_")]
        return said

    assert asyncio.run(body()) == ["LD_LIBRARY_PATH=:/opt/x=y", "LD_LIBRARY_PATH=/opt/x=y"]


@pytest.mark.parametrize("which", ["itself", "runner", "home", "linked"])
def test_a_cache_that_holds_too_much_is_told_of_and_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """R50: as with `uvx releasekit`, which runs from the cache of uv, or files linked to it."""
    require_landlock()
    root, cache = tmp_path / "root", tmp_path / "cache"
    for directory in (root, cache, tmp_path / "_temp" / "_runner_file_commands"):
        directory.mkdir(parents=True)
    program = tmp_path / "launcher.py"
    program.touch()
    monkeypatch.setattr(sandbox, "_LAUNCHER", program)
    monkeypatch.setattr(sandbox, "_OURS", (cache if which == "itself" else Path("/nowhere"),))
    monkeypatch.setattr(sandbox, "_EVERYBODYS", ())
    if which == "linked":
        (cache / "launcher.py").hardlink_to(program)
    further = [tmp_path / "_temp"] if which == "runner" else [cache]
    environment = {"RUNNER_TEMP": str(tmp_path / "_temp")}
    if which == "home":
        (tmp_path / "home").symlink_to(cache)
        environment["HOME"] = str(tmp_path / "home" / "user")

    def found(wanted: sandbox.Wanted) -> Sandbox:
        return chosen(
            wanted,
            root=root,
            state_directory=root / ".releasekit",
            further=further,
            caches=(),
            environment=environment,
        )

    told = {
        "itself": f"{cache} holds ReleaseKit itself",
        "runner": f"{further[0]} holds files of the runner",
        "home": f"{cache} holds the home directory",
        "linked": "the files of ReleaseKit are linked to a cache or another place",
    }[which]
    assert found("auto").words.partition(", but ")[2].partition(": a build")[0] == told
    with pytest.raises(ConfigError, match=f"^build-sandbox = required, but {told}$") as caught:
        found("required")
    assert "`uv tool install --link-mode copy`" in caught.value.hint


def failed(*log: str, hint: str = "") -> Result:
    package = Package(id=PackageId("npm", "a"), version="1.0.0", directory=Path(), manifest=Path())
    return Result(package=package, outcome=Outcome.FAILED, reason="", hint=hint, log=log)


@pytest.mark.parametrize(
    "line",
    [
        "touch: cannot touch '/opt/x': Permission denied",
        "Error: EACCES: permission denied, open '/opt/x'",
        "OSError: [Errno 30] Read-only file system: '/opt/x'",
        'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
    ],
)
def test_who_lacked_a_right_is_told_how_to_give_it(line: str) -> None:
    within = Sandbox(words="", abi=7)
    (told,) = within.explained([failed("first", line, hint="The whole output is in x.")])
    assert told.hint == f"The whole output is in x. {HINT}"
    assert UNCONFINED.explained([failed(line)]) == (failed(line),)
    assert within.explained([failed("SyntaxError")]) == (failed("SyntaxError"),)


def test_this_machine_has_what_it_says() -> None:
    abi, lacking = landlock()
    assert bool(abi) != bool(lacking)
