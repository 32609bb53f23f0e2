"""Does the analysis of a trace see what it is there to see? The lines are those of strace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from hostile.traced import STRACE, Deed, fold, judge, read_calls
from integration.tools import require_landlock, require_tool
from releasekit.host import launcher

if TYPE_CHECKING:
    from hostile.traced import Findings


_GRANT: Final = (
    "landlock_add_rule(3, LANDLOCK_RULE_PATH_BENEATH, {{allowed_access={}, parent_fd={}}}, 0)"
)
_NAMES: Final = "LANDLOCK_ACCESS_FS_WRITE_FILE|LANDLOCK_ACCESS_FS_MAKE_SYM"
# ReleaseKit (10, with a second thread, 20) begins a build (11), which may write to /w and /tmp.
BEGINNING: Final = f"""\
10 execve("/v/bin/python", ["python", "/src/__main__.py"], 0x7ffd /* 2 vars */) = 0
10 openat(AT_FDCWD</at>, "/w/manifest", O_RDONLY|O_CLOEXEC) = 3</w/manifest>
10 openat(AT_FDCWD</at>, "/src/early.py", O_RDONLY|O_CLOEXEC) = 3</src/early.py>
10 clone3({{flags=CLONE_VM|CLONE_FS|CLONE_THREAD, exit_signal=0}} => {{parent_tid=[20]}}, 88) = 20
10 vfork( <unfinished ...>
11 execve("/v/bin/python", ["python", "-I", "launcher.py"], 0x7ffd /* 2 vars */ <unfinished ...>
10 <... vfork resumed>)              = 11
11 <... execve resumed>)             = 0
11 {_GRANT.format(_NAMES, "4</w>")} = 0
11 {_GRANT.format(_NAMES, "4</tmp>")} = 0
11 {_GRANT.format("LANDLOCK_ACCESS_FS_WRITE_FILE", "4</dev/null>")} = 0
11 landlock_restrict_self(3, 0) = 0
11 execve("/none/builder", ["builder"], 0x7ffd /* 2 vars */) = -1 ENOENT (No such file or directory)
11 execve("/usr/bin/builder", ["builder"], 0x7ffd /* 2 vars */) = 0
"""
NO_LINKS: Final = "{flags=O_RDONLY|O_NONBLOCK, resolve=RESOLVE_NO_SYMLINKS}"
# A program that stands in for ReleaseKit; its build may write to the directory "open".
STANDING_IN: Final = """\
import os, subprocess, sys, threading

launcher, abi = sys.argv[1:]
here = os.open("open", os.O_PATH)
os.close(os.open("open/before", os.O_WRONLY | os.O_CREAT))
read, write = os.pipe()
confined = [sys.executable, "-I", "-S", launcher, abi, str(write), os.path.realpath("open")]
subprocess.run([*confined, "--", "touch", "open/by the build"], pass_fds=[write], check=True)
flags = os.O_NOFOLLOW | os.O_NONBLOCK
os.close(os.open("before", flags, dir_fd=here))
os.mkdir("directory", dir_fd=here)
thread = threading.Thread(target=lambda: os.close(os.open("open/before", flags)))
thread.start()
thread.join()
os.rename("open/by the build", "kept")
subprocess.run(["cat", "open/before"], check=True)
import colorsys
"""


def judged(*lines: str) -> Findings:
    return judge(read_calls([*BEGINNING.splitlines(), *lines]), ["/src", "/v"], "/at")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('openat(AT_FDCWD</at>, "/w/a", O_RDONLY|O_NOFOLLOW|O_NONBLOCK) = 3</w/a>', "by path"),
        ('openat(AT_FDCWD</at>, "/w/a", O_RDONLY) = -1 ENOENT (No such file)', "by path"),
        ('openat(AT_FDCWD</w>, "a", O_RDONLY|O_NOFOLLOW|O_NONBLOCK) = 3</w/a>', "by path"),
        ('openat(AT_FDCWD</at>, "/at/../w/\\303\\251", O_RDONLY) = 3</w/\\303\\251>', "by path"),
        ('openat(AT_FDCWD</at>, "/at/link", O_RDONLY) = 3</w/a>', "by path"),
        ('openat(AT_FDCWD</at>, "/proc/self/fd/3/a", O_RDONLY) = 4</w/a>', "by path"),
        ('openat(3</w>, "a/b", O_RDONLY|O_NOFOLLOW|O_NONBLOCK) = 4</w/a/b>', "more than one name"),
        ('openat(3</w/a>, "..", O_RDONLY|O_NOFOLLOW|O_DIRECTORY) = 4</w>', "more than one name"),
        ('openat(3</w>, "a", O_RDONLY|O_NONBLOCK|O_DIRECTORY) = 4</w/a>', "follows a link"),
        ('openat(3</w>, "a", O_RDONLY|O_NOFOLLOW|O_CLOEXEC) = 4</w/a>', "waits"),
        ('openat2(AT_FDCWD</at>, "/w/a", {flags=O_RDONLY, resolve=0}, 24) = 3</w/a>', "by path"),
        ('open("/w/a", O_RDONLY) = 3</w/a>', "by path"),
        ('creat("/w/a", 0666) = 3</w/a>', "by path"),
        ('mkdir("/tmp/a", 0700) = 0', "by path"),
        ('rename("/at/a", "/w/a") = 0', "by path"),
        ('renameat(3</w>, "a", AT_FDCWD</at>, "/w/b") = 0', "by path"),
        ('renameat2(3</at>, "a", 4</w>, "b/c", 0) = 0', "more than one name"),
        ('symlink("x", "/w/a") = 0', "by path"),
        ('symlinkat("x", AT_FDCWD</at>, "/w/a") = 0', "by path"),
        ('unlink("/w/a") = 0', "by path"),
        ('unlinkat(AT_FDCWD</at>, "/w/a", AT_REMOVEDIR) = 0', "by path"),
        ('truncate("/w/a", 0) = 0', "by path"),
        ('chmod("/w/a", 0644) = 0', "by path"),
        ('fchmodat(3</w>, "a", 0644) = 0', "follows a link"),
        ('utimensat(3</w>, "a", [UTIME_NOW, UTIME_NOW], 0) = 0', "follows a link"),
        ('linkat(3</w>, "a", 4</at>, "b", AT_SYMLINK_FOLLOW) = 0', "follows a link"),
        ('mknodat(AT_FDCWD</at>, "/tmp/a", S_IFIFO|0600) = 0', "by path"),
        ('connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/tmp/a"}, 110) = 0', "by path"),
        ('mount("/at", "/w/a", NULL, MS_BIND, NULL) = 0', "by path"),
        ('execve("/w/gpg", ["gpg"], 0x7ffd /* 2 vars */) = -1 ENOENT (No such file)', "executes"),
        ('openat(AT_FDCWD</at>, "/src/late.py", O_RDONLY) = 3</src/late.py>', "loaded"),
        (
            'openat(AT_FDCWD</at>, "/v/late.so", O_RDONLY|O_CLOEXEC) = 3</v/late.so>',
            "loaded",
        ),
        ('openat(AT_FDCWD</at>, "/src/page.css", O_RDONLY) = -1 ENOENT (No such file)', "loaded"),
    ],
)
def test_a_call_against_the_rule_is_found_in_each_thread(line: str, why: str) -> None:
    for thread in (10, 20):
        findings = judged(f"{thread} {line}")
        assert len(findings.violations) == 1, findings
        (deed,) = findings.violations
        assert why in str(deed)
        assert deed.who == "ReleaseKit"


@pytest.mark.parametrize(
    "line",
    [
        f'openat2(AT_FDCWD</at>, "/w/a", {NO_LINKS}, 24) = 3</w/a>',
        'openat(AT_FDCWD</at>, "/w", O_RDONLY|O_CLOEXEC|O_PATH|O_DIRECTORY) = 3</w>',
        'openat(AT_FDCWD</at>, "/tmp", O_RDWR|O_TMPFILE|O_EXCL, 0600) = 3</tmp/#7>(deleted)',
        'openat(3</w>, "a", O_RDONLY|O_NOFOLLOW|O_PATH|O_DIRECTORY) = 4</w/a>',
        'openat(3</w>, "a", O_RDONLY|O_NONBLOCK|O_NOFOLLOW|O_CLOEXEC) = 4</w/a>',
        'openat(3</w>, "a", O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW, 0666) = 4</w/a>',
        'openat(3</w/a>, ".", O_RDONLY|O_NOFOLLOW|O_CLOEXEC) = 4</w/a>',
        'openat(AT_FDCWD</at>, "/proc/self/fd/3", O_RDONLY|O_CLOEXEC) = 4</w/a>',
        'renameat(3</w>, "a", 3</w>, "b") = 0',
        'linkat(3</w>, "a", 4</w/b>, "c", 0) = 0',
        'unlinkat(3</w/a(b)>, "a", 0) = 0',
        'mkdirat(3</w>, "a", 0777) = 0',
        'symlinkat("/at/a", 3</w>, "a") = 0',
        'symlink("/w/a", "/at/a") = 0',
        'utimensat(3</w>, "a", [UTIME_NOW, UTIME_NOW], AT_SYMLINK_NOFOLLOW) = 0',
        "utimensat(3</w/a>, NULL, [UTIME_NOW, UTIME_NOW], 0) = 0",
        'rename("/at/a", "/at/b") = 0',
        'openat(AT_FDCWD</at>, "/world", O_RDONLY|O_CLOEXEC) = 3</world>',
        'openat(AT_FDCWD</at>, "/dev/null", O_RDWR|O_CLOEXEC) = 3</dev/null>',
        'getcwd("/w/a", 4096) = 5',
        'execve("/usr/bin/gpg", ["gpg", "/w/a"], 0x7ffd /* 2 vars */) = 0',
        'connect(3<socket:[1]>, {sa_family=AF_UNIX, sun_path="/at/agent"}, 110) = 0',
    ],
)
def test_a_call_that_no_build_can_turn_is_left_alone(line: str) -> None:
    findings = judged(f"10 {line}")
    assert findings.violations == {}
    assert findings.looks == {}


def test_what_keeps_to_the_rule_is_counted() -> None:
    """Else a rule that nothing comes near would hold as well."""
    keeps, goes_by = 'openat(3</w>, "a", O_PATH|O_NOFOLLOW) = 4</w/a>', 'unlink("/w/a") = 0'
    assert judged(f"10 {keeps}", f"11 {keeps}", f"20 {keeps}", f"10 {goes_by}").kept == 2


@pytest.mark.parametrize(
    "line",
    [
        'newfstatat(AT_FDCWD</at>, "/w/a", {st_mode=S_IFREG|0644, st_size=1, ...}, 0) = 0',
        'readlink("/w/a", "/at/b", 4096) = 5',
        'access("/w/a", F_OK) = -1 ENOENT (No such file or directory)',
        'chdir("/w/a") = 0',
    ],
)
def test_a_look_is_no_violation_and_is_told(line: str) -> None:
    findings = judged(f"10 {line}")
    assert findings.violations == {}
    assert [deed.path for deed in findings.looks] == ["/w/a"]


def test_builds_begin_with_the_first_confined_program_that_is_not_git() -> None:
    read = '10 openat(AT_FDCWD</at>, "/w/a", O_RDONLY) = 3</w/a>'
    looks_only = BEGINNING.replace("/usr/bin/builder", "/usr/bin/git")
    findings = judge(read_calls([*looks_only.splitlines(), read]), ["/src"], "/at")
    assert (findings.first_build, findings.places, findings.violations) == ("", (), {})
    findings = judged(read)
    assert (findings.first_build, findings.places) == ("/usr/bin/builder", ("/tmp", "/w"))
    assert findings.violations.total() == 1


def test_what_is_confined_does_as_it_likes_and_so_do_its_children() -> None:
    findings = judged(
        '11 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a>',
        "11 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 12",
        '12 execve("/w/tool", ["tool"], 0x7ffd /* 2 vars */) = 0',
        '12 openat(AT_FDCWD</w>, "/v/lib/late.py", O_RDONLY) = 3</v/lib/late.py>',
        "11 vfork( <unfinished ...>",
        '13 unlink("/w/a") = 0',
        "11 +++ killed by SIGKILL +++",
    )
    assert findings.violations == {}


def test_a_child_is_judged_until_it_is_confined_and_loads_what_it_likes() -> None:
    findings = judged(
        "10 vfork() = 12",
        '12 execve("/v/bin/python", ["python", "-I", "launcher.py"], 0x7ffd /* 2 vars */) = 0',
        '12 openat(AT_FDCWD</at>, "/v/lib/ctypes.py", O_RDONLY|O_CLOEXEC) = 3</v/lib/ctypes.py>',
        '12 openat(AT_FDCWD</at>, "/w/libc.so.6", O_RDONLY|O_CLOEXEC) = 3</w/libc.so.6>',
        "12 landlock_restrict_self(3, 0) = -1 EINVAL (Invalid argument)",
        '12 openat(AT_FDCWD</at>, "/w/a", O_RDONLY) = 3</w/a>',
        "12 landlock_restrict_self(3, 0) = 0",
        '12 openat(AT_FDCWD</at>, "/w/b", O_RDONLY) = 3</w/b>',
    )
    assert {(deed.who, deed.path) for deed in findings.violations} == {
        ("python", "/w/libc.so.6"),
        ("python", "/w/a"),
    }


def test_a_relative_path_is_one_in_the_directory_of_its_process() -> None:
    findings = judged(
        "10 vfork( <unfinished ...>",
        '12 chdir("/w/a") = 0',
        '12 execve("gpg", ["gpg"], 0x7ffd /* 2 vars */) = 0',
        "10 <... vfork resumed>) = 12",
        '12 unlink("b") = 0',
        '10 unlink("b") = 0',
    )
    assert {(deed.who, deed.path) for deed in findings.violations} == {
        ("ReleaseKit", "/w/a/gpg"),
        ("gpg", "/w/a/b"),
    }


def test_a_number_of_a_process_that_has_ended_is_anothers() -> None:
    findings = judged(
        "11 +++ exited with 0 +++",
        "10 vfork() = 11",
        '11 execve("/usr/bin/gpg", ["gpg"], 0x7ffd /* 2 vars */) = 0',
        '11 open("/w/a", O_RDONLY) = 3</w/a>',
    )
    assert [(deed.who, deed.path) for deed in findings.violations] == [("gpg", "/w/a")]


def test_a_process_that_executes_itself_is_still_the_same() -> None:
    line = '10 execve("/v/bin/python", ["python", "/src/__main__.py"], 0x7ffd /* 2 vars */) = 0'
    late = '10 openat(AT_FDCWD</at>, "/src/late.py", O_RDONLY) = 3</src/late.py>'
    assert judged(line, late).violations.total() == 1


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/w/a/b", "{workspace}/a/b"),
        ("/w", "{workspace}"),
        ("/tmp/releasekit-ab_cdefg/x", "/tmp/releasekit-*/x"),
        ("/tmp/releasekit-log-ab_cdefg/log", "/tmp/releasekit-log-*/log"),
        ("/tmp/a1b2c3d4", "/tmp/*"),
        (f"/x/ab/{'0f' * 19}", "/x/*/*"),
        ("/w/acme-1.0.0.tar.gz", "{workspace}/acme-#.#.#.tar.gz"),
        ("/w/a/b/c/d/e/f/g", "{workspace}/a/b/c/d/e/..."),
    ],
)
def test_a_path_is_told_without_what_differs_from_run_to_run(path: str, shown: str) -> None:
    deed = Deed("goes by path", "ReleaseKit", "open", path)
    (folded,) = fold({deed: 2}, {"/w": "{workspace}", "/": "/"})
    assert folded.path == shown


def test_what_strace_writes_is_read(tmp_path: Path) -> None:
    """Of real processes, one of them in the sandbox."""
    strace, abi = require_tool("strace"), require_landlock()
    (tmp_path / "open").mkdir()
    log = tmp_path / "log"
    argv = [sys.executable, "-I", "-c", STANDING_IN, launcher.__file__, str(abi)]
    subprocess.run([strace, *STRACE[1:], "-o", log, *argv], cwd=tmp_path, check=True)
    with log.open() as lines:
        findings = judge(read_calls(lines), [sys.base_prefix], str(tmp_path))
    assert Path(findings.first_build).name == "touch"
    assert findings.places == (str(tmp_path / "open"),)
    loaded = {deed for deed in findings.violations if "loaded" in deed.why}
    assert any("colorsys" in deed.path for deed in loaded)
    found = {
        (deed.who, deed.call, Path(deed.path).name) for deed in findings.violations.keys() - loaded
    }
    assert found == {
        ("ReleaseKit", "openat", "before"),
        ("ReleaseKit", "rename", "by the build"),
        ("cat", "openat", "before"),
    }
    assert findings.kept == 2
