"""What a hostile case is: files, arguments and an environment that mean harm, and the right end."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from effort import SEARCHING
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

# What every run has in its environment and nobody may see in a file or a stream.
SECRETS: Final = {
    "RELEASEKIT_PYPI_TOKEN": "pypi-AgEIcHlwaS5vcmcCJDk5OWZhNDQw+/x",
    "RELEASEKIT_NPM_TOKEN": "npm_Zk3vJw8Qy5Rt1Ux7Pb2Nc4Md6",
    "RELEASEKIT_CARGO_TOKEN": "cio8Hq2Wn5Xe7Rv1Tb4Ym6Uk9",
    "RELEASEKIT_MAVEN_PASSWORD": "correct horse/battery+staple",
    "GITHUB_TOKEN": "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz",
}

# Below the root: where what does the harm says that it ran.
HARM: Final = "tmp/harm"


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Fifo:
    """A named pipe that nobody writes to."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A file of this many zero bytes, none of them on the disk."""

    size: int


@dataclass(frozen=True, slots=True)
class Folder:
    """An empty directory."""

    mode: int = 0o755


# What is at a path. A function makes what is too large to keep; None removes what is there.
Content: TypeAlias = bytes | str | Link | Fifo | Sparse | Folder | Callable[[], bytes] | None


@dataclass(frozen=True, slots=True)
class SignalAt:
    """`number` is sent when the function `where` ("module:name" or "module:Class.name", where it is
    looked up) is called for the `nth` time; `again` more times, one each time it is called next.
    """

    where: str
    number: int
    nth: int = 1
    again: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run. In texts, `{root}` is the case's own directory, and `{server}` what `server` gave.

    Below the root lie `w`, the workspace, where the run starts; `home`, `tmp` and `runner`, where
    it may write; `registry`, where a `dir:` registry may be; `canary`, which nobody may touch.
    """

    name: str
    # By path relative to the root.
    files: Mapping[str, Content]
    argv: tuple[str, ...] = ("plan", "--registry", "dir:{root}/registry")
    # Added to an environment with SECRETS; None takes a variable out.
    environment: Mapping[str, str | None] = field(default_factory=dict)
    # Exit codes that are right; -N where signal N may end the process.
    codes: frozenset[int] = frozenset({2})
    # Regular expressions, all of which are found in the streams.
    says: tuple[str, ...] = ()
    # And none of these.
    never_says: tuple[str, ...] = ()
    # What no file in the registry holds, packed or not.
    unpublished: bytes = b""
    # Name of a package → its outcome in results.json of the state directory.
    outcomes: Mapping[str, str] = field(default_factory=dict)
    # Called with the root once the files are there.
    prepare: Callable[[Path], None] | None = None
    # Gives the URL of a server that lives as long as the run.
    server: Callable[[], AbstractContextManager[str]] | None = None
    signals: tuple[SignalAt, ...] = ()
    # Paths relative to the root, with all below them, that the run may change besides the state.
    may_write: tuple[str, ...] = ()
    cwd: str = "w"
    # The directory is removed once the process stands in it.
    cwd_gone: bool = False
    # Descriptors that are closed at the start.
    closed: tuple[int, ...] = ()
    # As whom, where we are root.
    uid: int | None = None
    # A process of its own, as a user starts it, where a fork of one that has imported everything
    # would not show it; its stall is not measured.
    executed: bool = False
    # Its directory lies where the sandbox lets no build write, but to `w`, `tmp` and what the
    # tools keep in `home`.
    sandboxed: bool = False
    # There is no stream to say a reason in.
    silent: bool = False
    # Peak memory, in MB, and the longest time that the event loop may be deaf, in seconds of CPU.
    peak_mb: float = 300.0
    # CPU time of the run and its children, in seconds.
    cpu_s: float = 20.0
    # When it is killed, and when a process that outlives it counts as left running: only what hangs
    # takes as long.
    wall_s: float = PATIENCE_S
    left_s: float = PATIENCE_S
    # Python that is run at the first step of a plan, for tests of the judge.
    breaks: str = ""
    stall_s: float = 0.2

    @property
    def on_runner(self) -> bool:
        return self.environment.get("GITHUB_ACTIONS", "true") == "true"


def environment_of(case: Case, root: Path) -> dict[str, str]:
    """All that the run sees: secrets, a home of its own, a runner's files."""
    usual = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": f"{root}/home",
        "TMPDIR": f"{root}/tmp",
        "RUNNER_TEMP": f"{root}/tmp",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")),  # noqa: PTH111
        "GITHUB_ACTIONS": "true",
        "GITHUB_OUTPUT": f"{root}/runner/output",
        "GITHUB_STEP_SUMMARY": f"{root}/runner/summary",
        "GIT_CONFIG_NOSYSTEM": "1",
        **SECRETS,
    }
    for name, value in case.environment.items():
        if value is None:
            usual.pop(name, None)
        else:
            usual[name] = value
    return usual


def sampled(cases: Sequence[Case]) -> Sequence[Case]:
    """Every twelfth of them; in a long search, all."""
    return cases if SEARCHING else cases[::12]


def cases(*tables: Callable[[], Iterator[Case]]) -> tuple[Case, ...]:
    return tuple(case for table in tables for case in table())
