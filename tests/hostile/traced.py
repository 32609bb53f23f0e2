"""What a run under strace did outside of the sandbox, once builds may have changed what they can:
which names it followed, changed, executed and loaded.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# Whatever takes a path, whatever begins a process or a program, and the sandbox. A filter in the
# kernel lets all other calls pass without a stop.
_CALLS: Final = "%file,%process,fchdir,connect,bind,landlock_add_rule,landlock_restrict_self"
STRACE: Final = (
    "strace",
    "-f",
    "-qq",
    "-y",
    "-s",
    "4096",
    "--seccomp-bpf",
    "-e",
    f"trace={_CALLS}",
)

# Programs that are confined, and begin no build: git looks at the checkout while the plan is made.
_BUILDS_NOTHING: Final = frozenset({"git"})
# They open nothing. What they tell may be a lie by the time of the next call, which is judged.
_LOOKS: Final = frozenset(
    {"stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "statfs"}
    | {"readlink", "readlinkat", "getxattr", "lgetxattr", "listxattr", "llistxattr", "chdir"}
)
_OPENS: Final = frozenset({"open", "openat", "openat2", "creat"})
_EXECUTES: Final = frozenset({"execve", "execveat"})
_FORKS: Final = frozenset({"clone", "clone3", "fork", "vfork"})
_TWO_PATHS: Final = frozenset({"rename", "renameat", "renameat2", "link", "linkat", "mount"})
_PATH_COMES_LAST: Final = frozenset({"symlink", "symlinkat"})
_SOCKETS: Final = frozenset({"connect", "bind"})
# By these the last name of a path is followed unless they are told otherwise.
_FOLLOW: Final = frozenset({"fchmodat", "fchmodat2", "fchownat", "utimensat", "futimesat"})
# A right in a directory: whoever has it may put a link or a pipe in the place of a file.
_CHANGES_NAMES: Final = "LANDLOCK_ACCESS_FS_MAKE_SYM"

_LINE: Final = re.compile(r"(\d+) +(.*)")
_BEGUN: Final = re.compile(r"(\w+)\((.*)")
_RESUMED: Final = re.compile(r"<\.\.\. \w+ resumed>(.*)")
_UNFINISHED: Final = " <unfinished ...>"
_ENDED: Final = re.compile(r"(.*)\) += (-?\d+|\?|0x[0-9a-f]+)(?:<(.*?)>)?(?: .*)?")
_PATH: Final = re.compile(
    r'(?:^|, )(?:(?P<folder>AT_FDCWD|\d+)(?:<(?P<where>[^"]*?)>(?:\(deleted\))?)?, )?'
    r'(?:\{[^"{]*sun_path=)?"(?P<text>(?:[^"\\]|\\.)*)"'
)
_DESCRIPTOR: Final = re.compile(r"\d+<(.*?)>")
_PARTS: Final = 6
_OWN_DESCRIPTOR: Final = re.compile(r"/(?:proc/self|dev)/fd/\d+")


@dataclass(frozen=True)
class Name:
    """A path as a call has it: `text`, in `folder`, and whether that is an open directory."""

    text: str
    folder: str
    beneath: bool


@dataclass(frozen=True)
class Call:
    """One call of one thread; the last one of each is "+++". `opened` is where the descriptor leads
    that it returned.
    """

    thread: int
    name: str
    arguments: str = ""
    result: str = "?"
    opened: str = ""

    @property
    def succeeded(self) -> bool:
        return not self.result.startswith(("-", "?"))

    @cached_property
    def names(self) -> list[Name]:
        if self.name == "getcwd":  # what it has is an answer
            return []
        found = [
            Name(
                _unescaped(match["text"]),
                _unescaped(match["where"] or ""),
                (match["folder"] or "").isdigit() and self.name not in _SOCKETS,
            )
            for match in _PATH.finditer(self.arguments)
        ]
        if self.name in _PATH_COMES_LAST:
            return found[1:]
        return found[: 2 if self.name in _TWO_PATHS else 1]

    @property
    def program(self) -> str:
        return posixpath.basename(self.names[0].text)

    def starts_build(self, process: Process) -> bool:
        """Whether it is the first program that a confined child executes, and builds something."""
        begins = self.name in _EXECUTES and self.succeeded and process.about_to_execute
        return begins and self.program not in _BUILDS_NOTHING


@dataclass
class Process:
    """A child is `ours` until it executes a program. One that is `confined` writes to `places`
    only, and is at first `about_to_execute` the program for which it is.
    """

    program: str
    ours: bool
    is_child: bool = False
    confined: bool = False
    about_to_execute: bool = False
    cwd: str = "/"
    places: tuple[str, ...] = ()

    def after(self, call: Call) -> None:
        """Take note of what a call that succeeded has changed."""
        if call.name in _EXECUTES:
            self.program, self.about_to_execute = call.program, False
            self.ours = self.ours and not self.is_child
        elif call.name == "landlock_restrict_self":
            self.confined = self.about_to_execute = True
        elif call.name == "landlock_add_rule" and _CHANGES_NAMES in call.arguments:
            found = re.search(r"parent_fd=\d+<(.*?)>", call.arguments)
            self.places += (found[1],) if found else ()
        elif call.name == "chdir":
            self.cwd = posixpath.join(self.cwd, call.names[0].text)
        elif call.name == "fchdir" and (found := _DESCRIPTOR.match(call.arguments)):
            self.cwd = found[1]


@dataclass(frozen=True, order=True)
class Deed:
    """What an unsandboxed process did, and why that is wrong; the latter is empty for a look."""

    why: str
    who: str
    call: str
    path: str

    def __str__(self) -> str:
        return f"{self.who}: {self.call} {self.path}: {self.why}"


@dataclass
class Findings:
    """`first_build` is the program with which builds began, empty where there were none; `places`
    are those that they may write to. From then on, `kept` calls in these places kept to the rule.
    """

    first_build: str = ""
    places: tuple[str, ...] = ()
    kept: int = 0
    violations: Counter[Deed] = field(default_factory=Counter)
    looks: Counter[Deed] = field(default_factory=Counter)


def read_calls(lines: Iterable[str]) -> list[Call]:
    """In the order in which they began, those that never ended included."""
    calls: list[Call] = []
    unfinished: dict[int, tuple[int, str, str]] = {}
    for line in lines:
        numbered = _LINE.match(line)
        if numbered is None:
            continue
        thread, rest = int(numbered[1]), numbered[2]
        if begun := _BEGUN.match(rest):
            name, text = begun.groups()
            if text.endswith(_UNFINISHED):
                text = text.removesuffix(_UNFINISHED)
                unfinished[thread] = len(calls), name, text
            calls.append(_call(thread, name, text))
        elif (resumed := _RESUMED.match(rest)) and thread in unfinished:
            at, name, text = unfinished.pop(thread)
            calls[at] = _call(thread, name, text + resumed[1])
        elif rest.startswith("+++"):
            calls.append(Call(thread, "+++"))
    return calls


def _call(thread: int, name: str, text: str) -> Call:
    ended = _ENDED.fullmatch(text)
    if ended is None:
        return Call(thread, name, text)
    return Call(thread, name, ended[1], ended[2], _unescaped(ended[3] or ""))


def _unescaped(text: str) -> str:
    """As the bytes are that strace writes in octal."""
    return text.encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")


def judge(calls: Sequence[Call], code: Sequence[str], cwd: str) -> Findings:
    """What the unsandboxed processes did after the first build had begun. The first one of all is
    ReleaseKit's, started in `cwd`; `code` is where it is loaded from.
    """
    findings = Findings()
    start = len(calls)
    for at, (call, process) in enumerate(_with_processes(calls, cwd)):
        if call.starts_build(process):
            findings.places = tuple(sorted({*findings.places, *process.places}))
            if not findings.first_build:
                start, findings.first_build = at, call.names[0].text
    for at, (call, process) in enumerate(_with_processes(calls, cwd)):
        if at > start and not process.confined:
            for name in call.names:
                _judge_name(call, name, process, code, findings)
    return findings


def _judge_name(
    call: Call, name: Name, process: Process, code: Sequence[str], findings: Findings
) -> None:
    if not name.text:  # a descriptor, and no name
        return
    written = posixpath.join(name.folder or process.cwd, name.text)
    path = posixpath.normpath(written)
    who = "ReleaseKit" if process.ours else process.program
    if call.name in _OPENS and process.ours and _is_below((path, call.opened), code):
        findings.violations[Deed("is loaded after the first build", who, call.name, path)] += 1
    # The name of a place itself is in a directory that no build can change, and a file that never
    # has a name is out of reach.
    opened = "" if "O_TMPFILE" in call.arguments else call.opened
    if _is_below((written, path, opened), findings.places):
        if call.name in _LOOKS:
            findings.looks[Deed("", who, call.name, path)] += 1
        elif why := _fault(call, name):
            findings.violations[Deed(why, who, call.name, path)] += 1
        else:
            findings.kept += 1


def _is_below(paths: Iterable[str], places: Iterable[str]) -> bool:
    return any(path.startswith(f"{place}/") for place in places for path in paths)


def _fault(call: Call, name: Name) -> str:
    """How a build could lead this call elsewhere, or keep it waiting; empty where it cannot."""
    if call.name in _EXECUTES:
        return "executes what a build can write"
    if call.name in _OPENS and _OWN_DESCRIPTOR.fullmatch(name.text):
        return ""
    if "RESOLVE_NO_SYMLINKS" not in call.arguments:
        if not name.beneath:
            return "goes by path"
        if "/" in name.text or name.text == "..":
            return "goes more than one name beneath a descriptor"
        if call.name in _OPENS and name.text != "." and "O_NOFOLLOW" not in call.arguments:
            return "follows a link"
        if call.name in _FOLLOW and "AT_SYMLINK_NOFOLLOW" not in call.arguments:
            return "follows a link"
        if "AT_SYMLINK_FOLLOW" in call.arguments:  # what linkat does when it is told to
            return "follows a link"
    waits = not re.search("O_(PATH|DIRECTORY|NONBLOCK|EXCL)", call.arguments)
    if call.name in _OPENS and name.text != "." and waits:
        return "waits for the other end of a pipe"
    return ""


def _with_processes(calls: Sequence[Call], cwd: str) -> Iterator[tuple[Call, Process]]:
    """Each call, and the process as it was when the call began. Threads share theirs."""
    alive: dict[int, Process] = {}
    # Of a parent that was killed as it forked, no line has the number of the child.
    unnumbered: list[Process] = []
    for call in calls:
        if call.name == "+++":
            alive.pop(call.thread, None)
            continue
        if call.thread not in alive:
            first = Process(program="", ours=True, cwd=cwd)
            alive[call.thread] = unnumbered.pop() if unnumbered else first
        process = alive[call.thread]
        yield call, process
        if call.name in _FORKS:
            child = replace(process, is_child=True, about_to_execute=False)
            if call.result.isdigit():
                is_thread = "CLONE_THREAD" in call.arguments
                alive[int(call.result)] = process if is_thread else child
            elif call.result == "?":
                unnumbered.append(child)
        elif call.succeeded:
            process.after(call)


def fold(deeds: Mapping[Deed, int], directories: Mapping[str, str]) -> Counter[Deed]:
    """`deeds` without what differs from run to run: `directories` get their names, and whatever is
    random or a number becomes a sign.
    """
    folded: Counter[Deed] = Counter()
    for deed, count in deeds.items():
        path = deed.path
        for directory in sorted(directories, key=len, reverse=True):
            if f"{path}/".startswith(f"{directory}/"):
                path = directories[directory] + path.removeprefix(directory)
                break
        # The names of `tempfile`, and those of git's objects.
        path = re.sub(r"(?<=[/-])(?=[a-z_]*\d)[a-z0-9_]{8}(?=/|$)", "*", path)
        path = re.sub(r"(?<=/releasekit-)(log-)?[a-z0-9_]{8}(?=/|$)", r"\1*", path)
        path = re.sub(r"(?<=/)[0-9a-f]{2}(?=/|$)|[0-9a-f]{12,}", "*", path)
        path = re.sub(r"\d+", "#", path)
        parts = path.split("/")
        path = "/".join([*parts[:_PARTS], "..."] if len(parts) > _PARTS else parts)
        folded[replace(deed, path=path)] += count
    return folded
