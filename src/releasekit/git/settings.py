"""What git is told of servers and logins, read before the first build, and how git runs with it.

Builds write in the checkout, its settings included, and a setting can name a program. So git gets a
login only in a repository of our own, which no build can change, with the settings that the
checkout had when the run began, and the objects that it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from msgspec import Struct

from releasekit.aio import gather_all
from releasekit.errors import CommandFailed, PathError, PlanError, Rejected
from releasekit.git.commits import parse_id
from releasekit.git.programs import find_open_program
from releasekit.host import durable
from releasekit.host.scratch import closed_scratch
from releasekit.problems import Problem
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.host.process import Printed, Processes

TIMEOUT_S: Final = 300.0
# What git needs to find the user's credentials and settings. None of it is secret, and no build
# gets it.
_PROGRAMS: Final = ("SSH_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND")
_PLACES: Final = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
AUTHORITIES: Final = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
_PASSED: Final = ("SSH_AUTH_SOCK", *_PROGRAMS, *AUTHORITIES)
# Of what every child gets: how a server is reached, and what a credential helper asks for.
_OF_SERVERS: Final = re.compile(
    r"(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|(?:CURL|REQUESTS)_CA_BUNDLE"
    r"|NODE_EXTRA_CA_CERTS|XDG_\w+|CI|(?:CI|GITLAB|GITHUB|RUNNER)_\w+",
    re.IGNORECASE,
)
# No person can answer a prompt, and messages are told apart by their words.
UNATTENDED: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}
# The settings that a push or a helper of it reads, and those of a login over HTTP. What they
# include is among those that git lists.
# https://git-scm.com/docs/git-config
_READ: Final = re.compile(
    r"(?!core\.(?:bare|worktree|repositoryformatversion|hookspath|fsmonitor)$)"
    r"(?:core|gpg|pack|protocol|push|remote|ssh|transfer|user)\..+",
    re.DOTALL,
)
_OF_HTTP: Final = re.compile(r"(?:credential|http)\..+", re.DOTALL)
# Those of a repository that say how its objects are kept; git obeys them in its own file alone.
# https://git-scm.com/docs/git-config#Documentation/git-config.txt-extensions
_OF_OBJECTS: Final = frozenset({"extensions.objectformat", "extensions.partialclone"})
_OF_PROGRAMS: Final = re.compile(
    r"core\.(?:sshcommand|askpass|gitproxy|alternaterefscommand)|credential\.(?:.*\.)?helper"
    r"|gpg\.(?:.*\.)?(?:program|defaultkeycommand)|remote\..+\.(?:uploadpack|receivepack)",
    re.DOTALL,
)
_NO_COMMANDS: Final = ("protocol.ext.allow", "never")
# It comes before those of the commit. https://git-scm.com/docs/gitattributes
_NO_ATTRIBUTES: Final = (
    "* -export-subst -export-ignore -text -eol -ident -filter -working-tree-encoding\n"
)
_ADDRESS: Final = re.compile(r"remote\..+\.(?:push)?url", re.DOTALL)
OVER_HTTP: Final = re.compile(r"https?://", re.IGNORECASE)
_PASSWORD: Final = re.compile(r"(https?://)([^/?#@:]*):([^/?#@]*)@([^\n]*)", re.IGNORECASE)
# A helper is asked for a password by the server that the address names, and by no other.
# https://git-scm.com/docs/gitcredentials#_custom_helpers
_TELL: Final = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" '
    '"$RELEASEKIT_GIT_USER_NUMBER" "$RELEASEKIT_GIT_PASSWORD_NUMBER"; }; f'
)
# Where a shallow clone ends: a commit a line.
_MAX_SHALLOW_BYTES: Final = 4 * 1024 * 1024
_MAX_SHOWN: Final = 200


class _Entry(Struct, frozen=True):
    """One setting, as `git config --list --show-scope` has it."""

    scope: str
    key: str
    value: str


class _Snapshot(Struct, frozen=True):
    """`remotes` is as `git remote --verbose` has it; `refusal` says why nothing may log in."""

    entries: tuple[_Entry, ...]
    remotes: tuple[str, ...]
    head: str
    objects: Path
    shallow: bytes
    refusal: Rejected | None


class GitSettings:
    """Those of the repository at `top`; `environment` is the snapshot taken at the start."""

    def __init__(self, top: Path, processes: Processes, environment: Mapping[str, str]) -> None:
        self.top = top
        self.processes = processes
        self._environment = environment
        self._turn = asyncio.Lock()
        self._seen: _Snapshot | CommandFailed | Rejected | None = None
        self._place: Path | None = None

    async def remember(self) -> None:
        """As they are now, before the first build. Raises nothing: who needs them hears of it."""
        async with self._turn:
            if self._seen is None:
                try:
                    self._seen = await self._read()
                except (CommandFailed, Rejected) as error:
                    self._seen = error
                except PlanError as error:
                    self._seen = Rejected(str(error), hint=error.hint, problem=error.problem)
                except OSError as error:
                    self._seen = CommandFailed(f"{self.top}: {error.strerror or error}")

    async def list_addresses(self, remote: str) -> list[tuple[str, str]]:
        """Each with `fetch` or `push`; none without such a remote.

        Raises CommandFailed and Rejected.
        """
        return _list_addresses(await self._recall(), remote)

    async def read_head(self) -> str:
        """The commit that was checked out; empty where nothing is committed. Raises as above."""
        return (await self._recall()).head

    async def run_git(
        self,
        *arguments: str,
        remote: str,
        objects: Path | None = None,
        login: Mapping[str, str] | None = None,
    ) -> Printed:
        """In the repository of our own, with the settings of the checkout as far as this `remote`
        needs them, its objects, and a directory of `objects` besides. Raises CommandFailed,
        Rejected, and PathError where no directory is closed to builds.
        """
        known = await self._recall()
        if known.refusal is not None:
            raise known.refusal
        if not await asyncio.to_thread(known.objects.is_dir):
            raise Rejected(
                f"{visible(clip(str(known.objects), _MAX_SHOWN))} no longer exists; it held the "
                "objects of the repository when the run began",
                hint="A build may have moved them: check what it does to `.git`, and run again.",
                problem=Problem.TAG_REFUSED,
            )
        place = await self.open_place()
        beside = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)} if objects else {}
        done = await self.processes.run(
            ["git", *arguments],
            cwd=place,
            env={
                **self.pass_on(_PASSED),
                **beside,
                "GIT_DIR": str(place),
                "GIT_OBJECT_DIRECTORY": str(known.objects),
                "GIT_CONFIG_GLOBAL": str(place / "safe"),
                "GIT_CONFIG_NOSYSTEM": "1",
            },
            secrets={**self._hand_over_of(known, remote), **(login or {})},
            timeout_s=TIMEOUT_S,
        )
        return done.stdout

    async def write_files(self, commit: str, into: Path) -> None:
        """Write the files of a commit into a directory that no build can change, with the very
        bytes that it has: in the repository of our own, no attribute, filter or replacement counts.
        Links that lead out of it are left out.

        Raises as `run_git`, and CommandFailed where the commit is not here.
        """
        known, place = await self._recall(), await self.open_place()
        durable.make_directory(into, sync=False)
        for words in (("read-tree", commit), ("checkout-index", "--all")):
            await self.processes.run(
                ["git", *words],
                cwd=place,
                env={
                    "GIT_DIR": str(place),
                    "GIT_WORK_TREE": str(into),
                    "GIT_INDEX_FILE": str(place / "index"),
                    "GIT_OBJECT_DIRECTORY": str(known.objects),
                    "GIT_CONFIG_GLOBAL": os.devnull,
                    "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_NO_LAZY_FETCH": "1",
                },
                secrets={},
                outside=True,
                timeout_s=TIMEOUT_S,
            )
        await asyncio.to_thread(_remove_links_out, into)

    async def hand_over_of_user(self, *further: tuple[str, str]) -> dict[str, str]:
        """The settings of the user and of the machine but for other addresses, and these, as
        variables of git that lets no file of either count. Raises CommandFailed and Rejected.
        """
        known = await self._recall()
        if known.refusal is not None:
            raise known.refusal
        of_user = (each for each in known.entries if each.scope in {"system", "global"})
        wanted = [
            (each.key, each.value)
            for each in of_user
            if any(kind.fullmatch(each.key) for kind in (_READ, _OF_HTTP))
        ]
        files = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return files | _hand_over([*wanted, *further])

    def pass_on(self, names: Iterable[str]) -> dict[str, str]:
        """For git: what reaches servers, and these variables."""
        given = {name: self._environment.get(name, "") for name in names}
        usual, can_change = self.processes.environment, self.processes.sandbox.can_change
        passed = {
            name: value
            for name, value in usual.items()
            if _OF_SERVERS.fullmatch(name)
            and not (name.startswith("XDG_") and can_change(Path(value)))  # settings of helpers
        }
        return passed | {name: value for name, value in given.items() if value} | UNATTENDED

    async def open_place(self) -> Path:
        """The repository of our own, made once. It holds no setting that is secret."""
        known = await self._recall()
        async with self._turn:
            if self._place is None:
                manager = closed_scratch(self._environment, self.processes.sandbox)
                place = await self.processes.group.enter(manager)
                await asyncio.to_thread(_make_repository, place, known)
                self._place = place
        return self._place

    async def _recall(self) -> _Snapshot:
        await self.remember()
        match self._seen:
            case _Snapshot() as known:
                return known
            case None:
                raise CommandFailed(f"{self.top}: ReleaseKit has not read the settings of git")
            case error:
                raise error

    async def _read(self) -> _Snapshot:
        with contextlib.suppress(PathError):  # who would give it a login is told
            self.processes.outside("git")
        paths = ("--git-path", "objects", "--git-path", "shallow")
        listed, verbose, told = await gather_all(
            (
                self._ask("config", "--list", "--null", "--show-scope"),
                self._ask("remote", "--verbose"),
                # With `--revs-only`, a commit that is not there is no error.
                self._ask("rev-parse", *paths, "--revs-only", "HEAD^{commit}"),
            )
        )
        entries = listed.parse(_parse)
        # Ours are among them, but for a git that does not read them.
        if not any(each.scope == "command" for each in entries):
            raise Rejected(
                "this git cannot read settings from variables",
                hint="Install git 2.32 or later: git logs in only with the settings that the "
                "checkout had when the run began.",
                problem=Problem.TAG_REFUSED,
            )
        objects, shallow = told.parse(lambda text: parse_paths(text, self.top))
        third = told.split("\n")[2]
        head = told.parse(parse_id, third) if third else ""
        ends = read_shallow(shallow)
        refusal = self._find_open_program(entries)
        remotes = tuple(verbose.parse_rows(_parse_remote))
        return _Snapshot(entries, remotes, head, objects.resolve(), ends, refusal)

    async def _ask(self, *arguments: str) -> Printed:
        env = self.pass_on(_PLACES)
        done = await self.processes.run(
            ["git", *arguments], cwd=self.top, env=env, timeout_s=TIMEOUT_S
        )
        return done.stdout

    def _hand_over_of(self, known: _Snapshot, remote: str) -> dict[str, str]:
        """What is read for the remote: nothing of others, and what HTTP needs over HTTP alone, as a
        hook of a remote on this machine sees all of it. Addresses are as `url.*.insteadOf` has made
        them, and paths as they are from the checkout.
        """
        addresses = _list_addresses(known, remote)
        kinds = [_READ, *[_OF_HTTP for _, url in addresses if OVER_HTTP.match(url)][:1]]
        own = f"remote.{remote}."
        settings = [
            (each.key, each.value)
            for each in known.entries
            if each.scope != "command"
            and any(kind.fullmatch(each.key) for kind in kinds)
            and (each.key.startswith(own) or not each.key.startswith("remote."))
            and not _ADDRESS.fullmatch(each.key)
        ]
        logins: dict[str, str] = {}
        for number, (use, url) in enumerate(addresses):
            address = url
            # Git names the address to its helpers in an argument, which every process can read.
            if found := _PASSWORD.fullmatch(url):
                scheme, user, password, rest = found.groups()
                address = f"{scheme}{rest}"
                logins[f"RELEASEKIT_GIT_USER_{number}"] = unquote(user)
                logins[f"RELEASEKIT_GIT_PASSWORD_{number}"] = unquote(password)
                helper = f"credential.{address}.helper"
                settings += [(helper, ""), (helper, _TELL.replace("NUMBER", str(number)))]
            elif ":" not in url.partition("/")[0] and not url.startswith("/"):
                address = os.path.normpath(self.top / url)
            settings.append((f"{own}{'url' if use == 'fetch' else 'pushurl'}", address))
        return _hand_over(settings) | logins

    def _find_open_program(self, entries: Iterable[_Entry]) -> Rejected | None:
        """One that would get a login, and that builds can write."""
        named = [(each.key, each.value) for each in entries if _OF_PROGRAMS.fullmatch(each.key)]
        named += [(name, self._environment.get(name, "")) for name in _PROGRAMS]
        sandbox = self.processes.sandbox
        environment = sandbox.outside(self.processes.environment) | self.pass_on(_PASSED)
        found = find_open_program(named, self.top, environment, sandbox.can_change)
        if found is None:
            return None
        name, path = found
        return Rejected(
            f"git would log in with {visible(clip(path, _MAX_SHOWN))}, which {visible(name)} "
            "names, but builds can write to it",
            hint="Keep it outside the workspace, /tmp and caches, and give its absolute path.",
            problem=Problem.TAG_REFUSED,
        )


def read_shallow(path: Path) -> bytes:
    """Empty where the clone is not shallow."""
    return durable.read_file(path, max_bytes=_MAX_SHALLOW_BYTES) if durable.is_file(path) else b""


def _list_addresses(known: _Snapshot, remote: str) -> list[tuple[str, str]]:
    own = f"{remote}\t"
    lines = (line.removeprefix(own) for line in known.remotes if line.startswith(own))
    parts = (line.rpartition(" (") for line in lines)
    return [(use.partition(")")[0], url) for url, _, use in parts]


def parse_paths(told: str, top: Path) -> tuple[Path, Path]:
    """The first two that `git rev-parse --git-path` prints at `top`."""
    first, second, _ = told.split("\n", 2)
    if not first or not second:
        raise ValueError("not two paths")
    return top / first, top / second


def _parse_remote(line: str) -> str:
    if "\t" not in line or " (" not in line:
        raise ValueError("not the address of a remote")
    return line


def _parse(listed: str) -> tuple[_Entry, ...]:
    """`--null` ends scopes and values with NUL, and keys with a line feed; a key alone is true."""
    fields = listed.removesuffix("\0").split("\0")
    entries = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=True):
        key, separator, value = setting.partition("\n")
        if "." not in key:
            raise ValueError("not the name of a setting")
        entries.append(_Entry(scope, key, value if separator else "true"))
    return tuple(entries)


def _hand_over(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By variables, since some are secret: no file of ours has them, and no argument.

    https://git-scm.com/docs/git-config#Documentation/git-config.txt-GITCONFIGCOUNT
    """
    handed: dict[str, str] = {}
    number = 0
    # An address of this kind is a command, which would see the others.
    # https://git-scm.com/docs/git-remote-ext
    for number, (key, value) in enumerate([*settings, _NO_COMMANDS], start=1):
        handed[f"GIT_CONFIG_KEY_{number - 1}"] = key
        handed[f"GIT_CONFIG_VALUE_{number - 1}"] = value
    return handed | {"GIT_CONFIG_COUNT": str(number)}


def _remove_links_out(top: Path) -> None:
    for directory, directories, files in os.walk(top):
        for path in (Path(directory, name) for name in (*directories, *files)):
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(top):
                path.unlink()


def _make_repository(place: Path, known: _Snapshot) -> None:
    """An empty one; its objects are elsewhere.

    https://git-scm.com/docs/gitrepository-layout
    """
    kept = [each for each in known.entries if each.key in _OF_OBJECTS and each.scope == "local"]
    lines = ["[core]", f"repositoryFormatVersion = {1 if kept else 0}", "bare = true"]
    for each in kept:
        lines += ["[extensions]", f"{each.key.partition('.')[2]} = {quote_text(each.value)}"]
    # A program at the other end of a path reads no variables, and obeys only the user's own.
    # https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory
    of_user = (each for each in known.entries if each.scope in {"system", "global"})
    safe = [each.value for each in of_user if each.key == "safe.directory"]
    files = {
        "HEAD": "ref: refs/heads/none\n",
        "info/attributes": _NO_ATTRIBUTES,
        "config": "".join(f"{line}\n" for line in lines),
        "safe": "".join(f"[safe]\ndirectory = {quote_text(each)}\n" for each in safe),
    }
    for name in ("objects", "refs", "info"):
        durable.make_directory(place / name)
    for name, text in files.items():
        durable.replace(place / name, text.encode("utf-8", "surrogateescape"))
    if known.shallow:
        durable.replace(place / "shallow", known.shallow)


def quote_text(value: str) -> str:
    """As the files of git's settings have it, and the streams that it imports."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
