"""A separate program that runs first: it gives up rights forever, then becomes the child's program.

    python -I -S launcher.py ABI PIPE [NAME=VALUE...] PLACE... -- PROGRAM ARGUMENT...

The child writes only below the PLACEs, can neither look into a process outside nor limit it, and
never gets more rights later. The settings are for the child alone. One line on
PIPE says why the child does not start; without a line, it has taken over.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

# The same on every architecture since they came, and in no libc.
# https://github.com/torvalds/linux/blob/v6.12/scripts/syscall.tbl
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
# https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/landlock.h
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
IOCTL_DEV = 1 << 15  # on devices, which stops what is written to a terminal: since 5
# REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM, REFER
IN_DIRECTORY = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13
DEVICES = 1 << 6 | 1 << 11  # MAKE_CHAR, MAKE_BLOCK: granted nowhere
PATH_BENEATH = 1
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

# https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/prctl.h
CAPBSET_DROP, SET_NO_NEW_PRIVS, CAP_AMBIENT, CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
# What root keeps, as in a container: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
# NET_BIND_SERVICE. https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/capability.h
KEPT = frozenset({0, 1, 3, 4, 5, 6, 7, 10})
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
# For programs of each kind that a processor runs, its own kind first: the number of prlimit64, and
# those of fcntl. https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/audit.h
CALLS = {
    "x86_64": ((0xC000003E, 302, 72), (0x40000003, 340, 55, 221)),
    "aarch64": ((0xC00000B7, 261, 25), (0x40000028, 369, 55, 221)),
}
# https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/fcntl.h
SETLEASE = 1024
X32 = 1 << 30  # of a number on x86_64: the same call, with shorter pointers
SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
# https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/bpf_common.h
LOAD, AND, EQUAL, RETURN = 0x20, 0x54, 0x15, 0x06
# Where a filter finds what is called: seccomp(2)
NUMBER, KIND, PID, COMMAND, LIMITS = 0, 4, 16, 24, 32
ALLOW, EPERM = 0x7FFF0000, 0x00050001
SIGINT, SIGPIPE, SIGXFSZ = 2, 13, 25
SIG_DFL, SIG_IGN = 0, 1

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
LIBC.signal.restype = ctypes.c_void_p


def called(what: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """A function of libc with C's idea of its arguments; raises OSError."""
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(getattr(LIBC, what)(*given))
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def ruleset(abi: int) -> int:  # pragma: no cover - cannot be taken back
    """The descriptor of one that forbids to write anywhere, and to reach processes outside."""
    handled = WRITE_FILE | TRUNCATE | IN_DIRECTORY | DEVICES | (IOCTL_DEV if abi >= 5 else 0)
    # Kernels of RHEL 9 say 6 and do not know signals.
    # https://github.com/tukaani-project/xz/blob/master/src/common/my_landlock.h
    scopes = (ABSTRACT_SOCKETS | SIGNALS, ABSTRACT_SOCKETS, 0) if abi >= 6 else (0,)
    for scoped in scopes:
        attributes = struct.pack("=QQQ", handled, 0, scoped)[: 24 if scoped else 8]
        try:
            return called("syscall", CREATE_RULESET, attributes, len(attributes), 0)
        except OSError:
            if not scoped:
                raise
    raise AssertionError


def permit(abi: int, rules: int, place: str) -> None:  # pragma: no cover - as above
    """Writing below it; a place that is not there, or out of reach, stays as it is."""
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    access = WRITE_FILE | TRUNCATE | (IOCTL_DEV if abi >= 5 else 0)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        access |= IN_DIRECTORY
    rule = struct.pack("=Qi", access, descriptor)
    called("syscall", ADD_RULE, rules, PATH_BENEATH, rule, 0)
    os.close(descriptor)


def drop_capabilities() -> None:  # pragma: no cover - as above
    """What a system administrator's rights could do around any file; few processes have some."""
    try:
        for number in sorted(set(range(CAPABILITIES)) - KEPT):
            called("prctl", CAPBSET_DROP, number, 0, 0, 0)
    except OSError:
        pass  # it has none to drop, or all that this kernel knows are dropped
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION, 0), 8)
    current = ctypes.create_string_buffer(24)
    called("capget", header, current)
    # Effective, permitted and inheritable ones, twice: the last would get past those bounds.
    first = struct.unpack("=6I", current.raw)
    called("capset", header, struct.pack("=6I", *first[:2], 0, *first[3:5], 0))
    called("prctl", CAP_AMBIENT, CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)


def protect_processes() -> None:
    """No limit of another process is changed, which ends one with a limit of CPU time, and no lease
    is taken on a file, which holds up processes that open or execute it: neither Landlock nor a
    lack of rights forbids either among the processes of a user.

    A process names itself as 0. Systems without such filters do without.
    """
    if os.uname().machine not in CALLS:
        return
    (kind, limit, fcntl), (_, other_limit, other_fcntl, fcntl64) = CALLS[os.uname().machine]
    program = [
        *((LOAD, 0, 0, KIND), (EQUAL, 0, 5, kind)),
        *((LOAD, 0, 0, NUMBER), (AND, 0, 0, ~X32 & 0xFFFFFFFF)),
        *((EQUAL, 7, 0, limit), (EQUAL, 12, 0, fcntl), (RETURN, 0, 0, ALLOW)),
        *((LOAD, 0, 0, NUMBER), (EQUAL, 3, 0, other_limit)),
        *((EQUAL, 8, 0, other_fcntl), (EQUAL, 7, 0, fcntl64), (RETURN, 0, 0, ALLOW)),
        *((LOAD, 0, 0, PID), (EQUAL, 6, 0, 0)),
        # A pointer, in two halves: without one it is only asked.
        *((LOAD, 0, 0, LIMITS), (EQUAL, 0, 5, 0), (LOAD, 0, 0, LIMITS + 4), (EQUAL, 2, 3, 0)),
        *((LOAD, 0, 0, COMMAND), (EQUAL, 1, 0, SETLEASE)),
        *((RETURN, 0, 0, ALLOW), (RETURN, 0, 0, EPERM)),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    try:
        place = struct.pack("@HP", len(program), ctypes.addressof(code))
        about = ctypes.create_string_buffer(place)
        called("prctl", SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(about), 0, 0)
    except OSError:
        pass  # the system has none


def confine(abi: int, places: list[str]) -> None:  # pragma: no cover - as above
    rules = ruleset(abi)
    for place in places:
        permit(abi, rules, place)
    drop_capabilities()
    called("prctl", SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    called("syscall", RESTRICT_SELF, rules, 0)
    os.close(rules)
    protect_processes()


def main() -> None:  # pragma: no cover - as above
    # Python's own handlers would make a traceback of what ends the run, and its children get what
    # it ignores. https://docs.python.org/3/library/signal.html#general-rules
    if LIBC.signal(SIGINT, SIG_DFL) == SIG_IGN:
        LIBC.signal(SIGINT, SIG_IGN)
    LIBC.signal(SIGPIPE, SIG_DFL)
    LIBC.signal(SIGXFSZ, SIG_DFL)
    abi, pipe = int(sys.argv[1]), int(sys.argv[2])
    middle = sys.argv.index("--", 3)
    os.set_inheritable(pipe, False)
    step = "confine"
    try:
        settings = [each for each in sys.argv[3:middle] if not each.startswith("/")]
        confine(abi, sys.argv[3 + len(settings) : middle])
        for name, _, value in (each.partition("=") for each in settings):
            os.environ[name] = value
        step = "start"
        os.execvp(sys.argv[middle + 1], sys.argv[middle + 1 :])  # noqa: S606 - what it is for
    except OSError as error:
        os.write(pipe, f"{step} {error.errno}".encode())
        sys.exit(127)


if __name__ == "__main__":  # pragma: no cover
    main()
