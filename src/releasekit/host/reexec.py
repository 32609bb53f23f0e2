"""The process executes itself once more, without secrets in the environment it starts with.

What execve(2) is given can be read in /proc/PID/environ for as long as the process lives,
also after changes of `os.environ`: https://man7.org/linux/man-pages/man5/proc_pid_environ.5.html
So the environment goes to the second life through a descriptor, which that one reads and closes
before it starts anything. Pid, arguments and signal dispositions stay; nothing touches a disk.
"""

from __future__ import annotations

# Nothing else is imported, not even typing: each start waits for the first life, too.
import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

MARKER = "RELEASEKIT_HANDED_OVER"

# What the loader and the interpreter look at before our first line, or tell apart by: see ld.so(8),
# dyld(1) and https://docs.python.org/3/using/cmdline.html#environment-variables
_NEEDED = frozenset({b"PATH", b"HOME", b"LANG", b"LANGUAGE", b"TZ", b"TMPDIR"})
_NEEDED_PREFIXES = (b"LC_", b"LD_", b"DYLD_", b"GLIBC_", b"MALLOC_", b"PYTHON")
_SUSPECT = (b"TOKEN", b"SECRET", b"PASS", b"KEY", b"AUTH", b"CREDENTIAL")

# <linux/prctl.h>
_PR_SET_DUMPABLE = 4


def reexec_without_secrets() -> None:
    """Returns in the second life, with `os.environ` complete; exits with 2 where none can be had.

    On Linux no process of the same user can look into that one from then on: its environment, its
    memory, its descriptors. Root can. https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
    """
    marker = os.environ.pop(MARKER, None)
    if marker is not None:
        os.environb.update(_decoded(_received(marker)))
        _forbid_inspection()
    elif sys.executable and sys.argv[0] not in {"", "-"}:  # a script on stdin is read only once
        _reexec()


def _reexec() -> None:
    everything = b"\0".join(name + b"=" + value for name, value in os.environb.items() if name)
    descriptor, writer = _offered(everything)
    kept = {name: value for name, value in os.environb.items() if _is_needed(name, value)}
    kept[MARKER.encode()] = f"{os.getpid()}:{descriptor}:{len(everything)}:{writer}".encode()
    try:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], kept)  # noqa: S606
    except OSError as error:
        _refuse(
            f"{sys.executable}: cannot be executed again: {error.strerror}",
            "It has to be, so that no build can read the secrets that it was started with.",
        )


def _is_needed(name: bytes, value: bytes) -> bool:
    return (
        (name in _NEEDED or name.startswith(_NEEDED_PREFIXES))
        and not any(word in name.upper() for word in _SUSPECT)
        and not (b"://" in value and b"@" in value)
    )


def _offered(data: bytes) -> tuple[int, int]:
    """A descriptor that the second life inherits, and the process that writes to it, or 0."""
    try:
        memory = os.memfd_create("environment")  # only Linux has it
    except (AttributeError, OSError):
        return _written_by_a_child(data)
    _write_all(memory, data)
    os.lseek(memory, 0, os.SEEK_SET)
    return _inheritable(memory), 0


def _written_by_a_child(data: bytes) -> tuple[int, int]:
    """An environment may be larger than a pipe."""
    read_end, write_end = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            os.close(read_end)
            _write_all(write_end, data)
        finally:
            os._exit(0)
    os.close(write_end)
    return _inheritable(read_end), writer


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _inheritable(descriptor: int) -> int:
    """Never one of the first three, which may have been closed when we were started."""
    duplicate = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 3)
    os.close(descriptor)
    return duplicate


def _received(marker: str) -> bytes:
    try:
        pid, descriptor, length, writer = map(int, marker.split(":"))
        if pid != os.getpid() or descriptor < 3:
            raise ValueError(marker)  # noqa: TRY301 - said like all that is not ours
        with open(descriptor, "rb") as file:  # noqa: PTH123
            data = file.read(length + 1)
        if len(data) != length:
            raise ValueError(marker)  # noqa: TRY301
        if writer:
            os.waitpid(writer, 0)
    except (ValueError, OSError, OverflowError):
        _refuse(
            f"{MARKER}: {marker[:80]!a} does not come from this process",
            "Unset it: ReleaseKit sets it for itself while it starts.",
        )
    return data


def _refuse(message: str, hint: str) -> NoReturn:
    from releasekit.problems import Problem, mark  # noqa: PLC0415 (every start would pay for it)

    problem = Problem.CANNOT_EXECUTE
    print(f"error: {message}{mark(problem)}\n  {hint}\n  {problem.url}", file=sys.stderr)
    sys.exit(2)


def _decoded(data: bytes) -> dict[bytes, bytes]:
    items = (item.partition(b"=") for item in data.split(b"\0") if item)
    return {name: value for name, _, value in items}


def _forbid_inspection() -> None:
    if sys.platform != "linux":
        return
    try:
        import ctypes  # noqa: PLC0415 - 4 ms, and no Python has to have it

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # the environment is clean all the same
