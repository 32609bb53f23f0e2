"""Whether builds can be kept from everything but their own files, and which files those are.

Linux' Landlock does it: it needs no rights, no program, and works in containers too. What is given
up in `launcher.py` stays given up in all that the child starts.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from releasekit.errors import ConfigError
from releasekit.host import durable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import Result

Wanted = Literal["auto", "required", "off"]

# Before it, whoever may not write a file may still empty it.
# https://docs.kernel.org/userspace-api/landlock.html#truncating-files-abi-3
LEAST_ABI: Final = 3
_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION
_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
# Who can write these decides what runs with the secrets.
_OURS: Final = (_LAUNCHER, Path(sys.prefix))
_SYSTEMS: Final = {"darwin": "macOS", "win32": "Windows"}
_TEMPORARY: Final = ("TMPDIR", "TEMP", "TMP")
# The JVM takes the last one whatever the variables say.
# https://github.com/openjdk/jdk/blob/jdk-21-ga/src/java.base/unix/native/libjava/java_props_md.c
_EVERYBODYS: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
    *("/dev/ptmx", "/dev/pts", "/dev/shm", "/tmp"),  # noqa: S108 - named, not made
)
_OF_THE_STATE: Final = ("dist", "logs", "work")
# Where a runner keeps the files by which a step changes those after it.
_OF_THE_RUNNER: Final = "_runner_file_commands"
_REFUSED: Final = re.compile(
    r"Permission denied|EACCES|EROFS|Read-only file system|no new privileges", re.IGNORECASE
)
HINT: Final = (
    "Builds write only to the workspace, the caches of their tools and temporary files. If this "
    "one has to write elsewhere, name the directory in `build-sandbox-paths`; `build-sandbox: off` "
    "lets them write anywhere."
)


@dataclass(frozen=True, slots=True)
class Cache:
    """Where `tool` keeps what it has downloaded: in `default`, unless a variable of this name says
    otherwise, by this `option` among others if there is one; of that directory only what lies
    `below`, directories with a slash at the end.

    What others run, such as ~/.cargo/bin, is no cache.
    """

    tool: str
    variable: str
    default: str
    below: tuple[str, ...] = ("",)
    option: str = ""

    def places(self, environment: Mapping[str, str]) -> list[Path]:
        """Those that are there, and where the tool is, those that it would make."""
        text = environment.get(self.variable, "")
        if self.option:
            # The last one counts; quotes are the business of a shell, and of those who need one.
            found = [each for each in text.split() if each.startswith(self.option)]
            text = found[-1].removeprefix(self.option) if found else ""
        top = _expanded(text or self.default, environment)
        if not top.is_absolute():
            return []
        if shutil.which(self.tool, path=environment.get("PATH", os.defpath)) is not None:
            for name in self.below:
                with contextlib.suppress(OSError):
                    _make(top, name)
        return [top / name for name in self.below if (top / name).exists()]


def _make(top: Path, name: str) -> None:
    if name and not name.endswith("/"):
        top.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    else:
        (top / name).mkdir(parents=True, exist_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """`words` say what holds for builds, as plans and reports have it. With an `abi` of 0 there is
    none; else children write below `places`, and below the temporary directories they are given.
    """

    words: str
    abi: int = 0
    places: tuple[str, ...] = ()

    def command(self, argv: Sequence[str], environment: Mapping[str, str], pipe: int) -> list[str]:
        """What to start in the place of `argv`; `pipe` is for what a `Refusal` reads."""
        own = [environment[name] for name in _TEMPORARY if name in environment]
        if "RUNNER_TEMP" in environment and not _of_a_runner(Path(environment["RUNNER_TEMP"])):
            own.append(environment["RUNNER_TEMP"])
        places = [*self.places, *filter(os.path.isabs, own)]
        program = [sys.executable, "-I", "-S", str(_LAUNCHER)]
        return [*program, str(self.abi), str(pipe), *places, "--", *argv]

    def opened(self, *further: Path) -> Sandbox:
        """The same, with more places to write to."""
        return replace(self, places=(*self.places, *map(str, further)))

    def explained(self, results: Iterable[Result]) -> tuple[Result, ...]:
        """What failed for want of a right gets a hint at how to give it."""
        return tuple(
            replace(result, hint=f"{result.hint} {HINT}".strip())
            if self.abi and not result.outcome.done and self.refused(result.log)
            else result
            for result in results
        )

    @staticmethod
    def refused(log: Iterable[str]) -> bool:
        """Whether the last words of a build are of a right that it did not have."""
        return any(_REFUSED.search(line) for line in log)


UNCONFINED: Final = Sandbox(words="not sandboxed")


def chosen(  # noqa: PLR0913 - all that decides, by name
    wanted: Wanted,
    *,
    root: Path,
    state_directory: Path,
    further: Sequence[Path],
    caches: Iterable[Cache],
    environment: Mapping[str, str],
) -> Sandbox:
    """Raises ConfigError where it is `required` and not to be had."""
    if wanted == "off":
        return Sandbox(words="not sandboxed: build-sandbox is off")
    abi, lacking = landlock()
    if lacking and wanted == "required":
        raise ConfigError(
            f"build-sandbox = required, but {lacking}",
            hint="Run it on Linux 6.2 or later, or write `build-sandbox: auto`.",
        )
    if lacking:
        return Sandbox(words=f"not sandboxed: {lacking}")
    # Of the state directory, a build gets the places where it works, not the journal.
    state = [state_directory / name for name in _OF_THE_STATE]
    if state_directory.is_dir() and not state_directory.is_relative_to(root):
        for place in state:
            durable.make_directory(place)
    candidates = [root, *map(Path, _EVERYBODYS), *further, *state]
    candidates += [place for cache in caches for place in cache.places(environment)]
    return Sandbox(
        words=f"sandboxed (Landlock {abi}){_except_for(root, environment)}",
        abi=abi,
        places=tuple(map(str, outermost(candidates))),
    )


def landlock() -> tuple[int, str]:
    """The version of its interface, and why it cannot be used, empty if it can."""
    if sys.platform != "linux":
        return 0, f"{_SYSTEMS.get(sys.platform, sys.platform)} has no Landlock"
    from releasekit.host import launcher  # noqa: PLC0415 (a libc is found where it is imported)

    kernel = f"Linux {platform.release()}"
    try:
        abi = launcher.called("syscall", launcher.CREATE_RULESET, 0, 0, _VERSION)
    except OSError as error:
        return 0, f"{kernel} offers no Landlock ({error.strerror})"
    if abi < LEAST_ABI:
        return 0, f"Landlock of {kernel} has ABI {abi}, and {LEAST_ABI} is needed (Linux 6.2)"
    return abi, ""


def outermost(places: Sequence[Path]) -> list[Path]:
    """Those that lie in no other one, in this order, links resolved.

    What lies in another one is not followed: there, a build can put a link in its place.
    """
    top = [place for place in places if not any(other in place.parents for other in places)]
    return list(dict.fromkeys(place.resolve() for place in top))


def _of_a_runner(temporary: Path) -> bool:
    """Whether this directory also holds the runner's own files, or those of this very program."""
    return (temporary / _OF_THE_RUNNER).exists() or any(
        each.is_relative_to(temporary) for each in _OURS
    )


def _except_for(root: Path, environment: Mapping[str, str]) -> str:
    """What lies in the workspace, and so open to builds, and should not."""
    if root == Path(root.anchor):
        return ", but the workspace is the whole file system"
    for name, what in (("HOME", "the home directory"), ("RUNNER_TEMP", "files of the runner")):
        if environment.get(name) and Path(environment[name]).resolve().is_relative_to(root):
            return f", but the workspace holds {what}"
    if any(each.resolve().is_relative_to(root) for each in _OURS):
        return ", but the workspace holds ReleaseKit itself"
    return ""


def _expanded(text: str, environment: Mapping[str, str]) -> Path:
    """A path as everybody writes it: the XDG variables move what is below their defaults.

    https://specifications.freedesktop.org/basedir-spec/latest/
    """
    moved = {"~/.cache/": "XDG_CACHE_HOME", "~/.local/share/": "XDG_DATA_HOME"}
    for prefix, variable in moved.items():
        base = environment.get(variable, "")
        if text.startswith(prefix) and base.startswith("/"):
            return Path(base, text.removeprefix(prefix))
    home = environment.get("HOME", "")
    return Path(home, text.removeprefix("~/")) if text.startswith("~/") else Path(text)
