"""System calls of a child process: listed, or answered with kill -9 just before one of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

import releasekit

# Whatever this process imports, so that a mutant is traced where a mutant is tested.
# And the only package that this takes, without what `site` does at a start.
SOURCES = [Path(str(module.__file__)).parents[1] for module in (releasekit, msgspec)]
WORKLOAD = Path(__file__).with_name("workload.py")

# Everything by which the code under test can change a file or make a change durable.
CHANGING = (
    "openat,openat2,mkdir,mkdirat,rmdir,write,pwrite64,ftruncate,fsync,fdatasync,fchmod,fchown,utimensat,"
    "rename,renameat,renameat2,link,unlink,unlinkat,symlink"
)


@dataclass(frozen=True)
class Call:
    """One finished call. `nth` counts the calls of this name since the process began; `folders` are
    the directories that its names are relative to.
    """

    name: str
    arguments: str
    result: int
    nth: int
    folders: tuple[bytes, ...] = ()

    @cached_property
    def texts(self) -> list[bytes]:
        """The string arguments, paths and data alike; names in an open directory as whole paths."""
        texts = [
            bytes.fromhex(text.replace("\\x", ""))
            for text in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', self.arguments)
        ]
        for number, folder in enumerate(self.folders):
            texts[number] = os.path.normpath(os.path.join(folder, texts[number]))  # noqa: PTH118
        return texts

    @property
    def descriptor(self) -> int:
        """The first argument, where that is a file descriptor; -1 else."""
        number = re.match(r"\d+", self.arguments)
        return int(number[0]) if number else -1


def run(directory: Path, command: str) -> list[Call]:
    """The workload's calls, all of them, from the start of the interpreter."""
    log = directory.with_name(directory.name + ".strace")
    # -xx: hex, so that any byte can be told from any syntax; -s: all the data of a write
    subprocess.run(
        [
            *_strace(CHANGING + ",close"),
            *("-xx", "-s", "1000000", "-o", str(log)),
            *_workload(directory, command),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    calls: list[Call] = []
    counts: dict[str, int] = {}
    opened: dict[str, bytes] = {}
    for line in log.read_text().splitlines():
        if found := re.match(r"\d+ +(\w+)\((.*)\) += (-?\d+)", line):
            name, arguments, result = found.groups()
            counts[name] = counts.get(name, 0) + 1
            # openat(3, "name", …), renameat(3, "old", 3, "new")
            relative = name.removesuffix("2").endswith("at")
            numbers = re.findall(r'(?:^|, )(AT_FDCWD|\d+), "', arguments) if relative else []
            folders = tuple(opened.get(number, b"") for number in numbers)
            call = Call(name, arguments, int(result), counts[name], folders)
            if name in {"openat", "openat2"}:
                opened[result] = call.texts[0]
            calls.append(call)
    log.unlink()
    return calls


def kill_before(call: Call, directory: Path, command: str) -> list[str] | None:
    """Run the workload up to `call`; what it had said by then, None if it never came so far."""
    done = subprocess.run(
        [
            *_strace(call.name),
            *("-e", f"inject={call.name}:signal=SIGKILL:when={call.nth}", "-o", "/dev/null"),
            *_workload(directory, command),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in {0, 137, -9}, done.stderr
    return None if done.returncode == 0 else done.stdout.split()


def _strace(calls: str) -> list[str]:
    return ["strace", "-f", "-qq", "-e", f"trace={calls}"]


def _workload(directory: Path, command: str) -> list[str]:
    sources = os.pathsep.join(map(str, SOURCES))
    return [sys.executable, "-ISB", str(WORKLOAD), sources, command, str(directory)]
