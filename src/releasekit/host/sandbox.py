"""Whether builds can be kept from everything but their own files, and which files those are.

Linux' Landlock does it: it needs no rights, no program, and works in containers too. What is given
up in `launcher.py` stays given up in all that the child starts.
https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import contextlib
import os
import platform
import pwd
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.host import durable
from releasekit.host.ci import TEMPORARY
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.model import Result

Wanted = Literal["auto", "required", "off"]

# Before ABI 3, a process that may not write a file may still empty it.
# https://docs.kernel.org/userspace-api/landlock.html#truncating-files-abi-3
LEAST_ABI: Final = 3
_VERSION: Final = 1  # LANDLOCK_CREATE_RULESET_VERSION
# Where they really are, before a build could put a link on the way.
_PYTHON: Final = os.path.realpath(sys.executable)
_LAUNCHER: Final = Path(os.path.realpath(__file__)).with_name("launcher.py")
# A process that can write these decides what runs with the secrets.
_OURS: Final = (_LAUNCHER, *map(Path, (sys.prefix, sys.base_prefix, sys.executable)))
# As Linux has it: path_resolution(7)
_MAX_LINKS: Final = 40
_SYSTEMS: Final = {"darwin": "macOS", "win32": "Windows"}
_TEMPORARY: Final = ("TMPDIR", "TEMP", "TMP")
# Of what children get, what the loader and libc look at before a launcher has given anything up,
# for code among others: ld.so(8), setlocale(3), iconv_open(3)
_OF_THE_LOADER: Final = re.compile(r"LD_\w+|GCONV_PATH|GLIBC_TUNABLES|LOCPATH")
_LIBRARIES: Final = "LD_LIBRARY_PATH"
# The only variables of a program that acts for the user: others could make it load code.
_OF_THE_USER: Final = re.compile(rf"PATH|HOME|USER|LOGNAME|LANG|LANGUAGE|LC_\w+|TZ|{_LIBRARIES}")
# Not /dev/pts: the user's terminals are there. The JVM takes /tmp and ignores the variables.
# https://github.com/openjdk/jdk/blob/jdk-21-ga/src/java.base/unix/native/libjava/java_props_md.c
_EVERYBODYS: Final = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"),
    *("/dev/ptmx", "/dev/shm", "/tmp"),  # noqa: S108 - named, not made
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

_APART: Final = (
    "Keep the home directory, the runner's files and ReleaseKit apart from the workspace, /tmp, "
    "TMPDIR and caches: no `uses: ./`, no `uvx`, and `uv tool install --link-mode copy`."
)


class Cache(Struct, frozen=True):
    """Where `tool` keeps what it has downloaded: in `default`, unless a variable of this name says
    otherwise, by this `option` among others if there is one; of that directory only what lies
    `below`, directories with a slash at the end. For a JVM, ~ is the home directory `of_the_user`,
    even if HOME differs, as in a job in a container.

    Programs that others run, such as those in ~/.cargo/bin, do not belong to a cache.
    """

    tool: str
    variable: str
    default: str
    below: tuple[str, ...] = ("",)
    option: str = ""
    of_the_user: bool = False

    def places(self, environment: Mapping[str, str]) -> dict[Path, bool]:
        """Those that are there, and where the tool is, those that it would make; each with whether
        it is a directory.
        """
        text = environment.get(self.variable, "")
        if self.option:
            # The last one counts. Quotes are not read: only a shell understands them.
            found = [each for each in text.split() if each.startswith(self.option)]
            text = found[-1].removeprefix(self.option) if found else ""
        if self.of_the_user and not text:
            environment = {**environment, "HOME": _home_of_the_user(environment)}
        top = _expanded(text or self.default, environment)
        if not top.is_absolute():
            return {}
        used = shutil.which(self.tool, path=environment.get("PATH", os.defpath)) is not None
        return {
            top / name: not name or name.endswith("/")
            for name in self.below
            if used or (top / name).exists()
        }


class Sandbox(Struct, frozen=True, kw_only=True):
    """`words` say what holds for builds, as plans and reports have it. With an `abi` of 0 there is
    none, if only because the system is `lacking` one; else children write below `places`, which are
    without links.
    """

    words: str
    abi: int = 0
    places: tuple[str, ...] = ()
    lacking: str = ""

    def command(self, argv: Sequence[str], environment: Mapping[str, str], pipe: int) -> list[str]:
        """What to start in the place of `argv`; on `pipe` the launcher says why
        the child does not start.
        """
        setting = [
            f"{name}={value}"
            for name, value in environment.items()
            if _OF_THE_LOADER.fullmatch(name)
        ]
        program = [_PYTHON, "-I", "-S", str(_LAUNCHER)]
        return [*program, str(self.abi), str(pipe), *setting, *self.places, "--", *argv]

    def trusted(self, environment: Mapping[str, str]) -> dict[str, str]:
        """`environment` for a program that is not confined, or not yet: it loads no library from
        where a build writes, its working directory included.
        """
        if not self.abi:
            return dict(environment)
        rest = {k: value for k, value in environment.items() if not _OF_THE_LOADER.fullmatch(k)}
        return rest | self._closed_directories(_LIBRARIES, environment)

    def outside(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Of `environment`, what a program gets that acts for the user: it finds no program where a
        build writes.
        """
        rest = {k: value for k, value in environment.items() if _OF_THE_USER.fullmatch(k)}
        return rest | {"PATH": os.defpath} | self._closed_directories("PATH", environment)

    def _closed_directories(self, name: str, environment: Mapping[str, str]) -> dict[str, str]:
        """A variable that lists directories, without those that a build can change; none if none
        are left.
        """
        given = environment.get(name, "").replace(";", ":").split(":")
        kept = [each for each in given if each[:1] == "/" and not self.can_change(Path(each))]
        return {name: ":".join(kept)} if kept else {}

    def can_write(self, place: Path) -> bool:
        """Whether a build may write where `place` leads."""
        if not self.abi:
            return True
        led = trail(place)[-1]
        return self._has_any(led, *led.parents)

    def can_change(self, place: Path) -> bool:
        """Whether a build may decide what is found at `place`: there, or by a link on the way."""
        return self._has_any(*trail(place.absolute()))

    def _has_any(self, *places: Path) -> bool:
        return not {*self.places}.isdisjoint(map(str, places))

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


def chosen(
    wanted: Wanted,
    *,
    root: Path,
    state_directory: Path,
    further: Sequence[Path],
    caches: Iterable[Cache],
    environment: Mapping[str, str],
) -> Sandbox:
    """Raises ConfigError where it is `required`, and not to be had or of no use."""
    if wanted == "off":
        return Sandbox(words="not sandboxed: build-sandbox is off")
    abi, lacking = landlock()
    if lacking and wanted == "required":
        raise _make_error(lacking, "Run it on Linux 6.2 or later, or write `build-sandbox: auto`.")
    if lacking:
        return Sandbox(words=f"not sandboxed: {lacking}", lacking=lacking)
    # Of the state directory, a build gets the places where it works, not the journal.
    state = [state_directory / name for name in _OF_THE_STATE]
    temporary = (Path(environment.get(name, "")) for name in _TEMPORARY)
    caches_of = {place: kind for each in caches for place, kind in each.places(environment).items()}
    places = outermost(
        [
            *(root, *map(Path, _EVERYBODYS), *further, *state, *caches_of),
            *(place for place in temporary if place.is_absolute()),
        ]
    )
    exposed = _find_exposed(root, places, environment)
    if exposed and wanted == "required":
        raise _make_error(exposed, f"{_APART} `build-sandbox: auto` continues anyway.")
    # What lies in an open place is left to the tools: a build may have put a link on the way.
    if state_directory.is_dir():
        for place in set(state) & set(places):
            durable.make_directory(place)
    _make_caches(caches_of, places)
    words = f"sandboxed (Landlock {abi})"
    if exposed:
        words += f", but {exposed}: a build could change it, and so use the secrets of this "
        words += f"run. {_APART}"
    return Sandbox(words=words, abi=abi, places=tuple(map(str, places)))


def _make_error(why: str, hint: str) -> ConfigError:
    said = f"build-sandbox = required, but {why}"
    return ConfigError(said, hint=hint, problem=Problem.NO_SANDBOX)


def _make_caches(wanted: Mapping[Path, bool], places: Sequence[Path]) -> None:
    for place, is_directory in wanted.items():
        led = trail(place)[-1]
        with contextlib.suppress(OSError):
            if led in places:
                (led if is_directory else led.parent).mkdir(parents=True, exist_ok=True)
                if not is_directory and not led.exists():
                    led.touch()


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
    # A filter of system calls may let the question pass alone.
    try:
        rules = launcher.ruleset(abi)
        try:
            launcher.permit(abi, rules, os.devnull)
        finally:
            os.close(rules)
    except OSError as error:
        return 0, f"Landlock of {kernel} reports ABI {abi} but refuses rules ({error.strerror})"
    return abi, ""


def trail(place: Path) -> list[Path]:
    """Every path on the way to where `place` leads, which is the last one, from the root on; links
    are followed, and no path holds one but as its last part.
    """
    at, left, links = Path(place.anchor), [*reversed(place.parts[1:])], 0
    steps = [at]
    while left:
        name = left.pop()
        at = at.parent if name == ".." else at / name
        steps.append(at)
        try:
            target = at.readlink()
        except (OSError, ValueError):
            continue  # no link, or nothing at all
        links += 1
        if links > _MAX_LINKS:
            break
        left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        at = Path(target.anchor) if target.is_absolute() else at.parent
        steps.append(at)
    return steps


def outermost(places: Sequence[Path]) -> list[Path]:
    """Where they lead, in this order, without what lies in another one of them.

    A place is left out too if the way to it goes through another one, where a build can put a link.
    """
    ways = [
        (steps[-1], {above for step in steps for above in step.parents})
        for steps in map(trail, dict.fromkeys(places))
    ]
    waiting, found = ways, set[Path]()
    while waiting:
        ends = {end for end, _ in waiting}
        ready = [(end, above) for end, above in waiting if ends.isdisjoint(above)]
        if not ready:
            break  # of several, each way goes through another one: builds decide about all
        found |= {end for end, above in ready if found.isdisjoint(above)}
        waiting = [(end, above) for end, above in waiting if not ends.isdisjoint(above)]
    return [end for end in dict.fromkeys(end for end, _ in ways) if end in found]


def _find_exposed(root: Path, places: Sequence[Path], environment: Mapping[str, str]) -> str:
    """What lies in the workspace or another place open to builds, and should not; or nothing."""
    if root == Path(root.anchor):
        return "the workspace is the whole file system"
    runners = Path(environment.get(TEMPORARY) or "/", _OF_THE_RUNNER)
    # What is in a home decides where tokens go and what git runs with them.
    watched = {
        "the home directory": [Path(home)] if (home := environment.get("HOME")) else [],
        "ReleaseKit itself": _OURS,
        "files of the runner": [runners] if runners.exists() else [],
    }
    steps = {
        what: {step for path in paths for step in trail(path.absolute())}
        for what, paths in watched.items()
    }
    for place in (root, *places):
        for what, those in steps.items():
            if place in those:
                return f"{'the workspace' if place == root else place} holds {what}"
    # `uv tool install` links them to its cache, unless told to copy.
    if _LAUNCHER.stat().st_nlink > 1:
        return "the files of ReleaseKit are linked to a cache or another place"
    return ""


def _home_of_the_user(environment: Mapping[str, str]) -> str:
    """What a JVM takes for it.

    https://github.com/openjdk/jdk/blob/jdk-21-ga/src/java.base/unix/native/libjava/java_props_md.c
    """
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return environment.get("HOME", "")


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
