"""Build environments: one for each distinct set of build requirements, shared by its packages."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import site
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from releasekit.aio import Resource
from releasekit.ecosystems.pypi import worker
from releasekit.ecosystems.pypi.manifest import UNLIMITED, BuildLimits
from releasekit.ecosystems.shared.artifacts import MAX_BYTES
from releasekit.ecosystems.shared.jsonlines import conversation
from releasekit.errors import BuildFailed, CommandFailed, describe_os_error
from releasekit.host import durable
from releasekit.problems import Problem
from releasekit.state.lock_order import Kind, turn
from releasekit.text.cause import find_cause
from releasekit.text.escape import clip, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from releasekit.ecosystems.shared.jsonlines import Conversation
    from releasekit.host.process import Processes

# Settings that make uv or pip install elsewhere than into the given environment, and those that
# `uv build` ignores.
INTERFERING: Final = (
    "PIP_PREFIX", "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV", "PIP_ROOT", "PIP_TARGET", "PIP_USER",
    "UV_BUILD_CONSTRAINT", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_PREFIX", "UV_PROJECT",
    "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_TARGET",
    "UV_WORKING_DIR", "UV_WORKING_DIRECTORY",
)  # fmt: skip
INSTALL_TIMEOUT_S: Final = 900.0
_SHOWN: Final = 200
_OF_UV: Final = " {} says where they come from; the input `index-url` takes the place of that."
# Of all requirements of one environment: `packaging` takes a tenth of a second for so many.
_MAX_CHARS: Final = 32 * 1024
# pip has no option for it.
_FROM_STDIN: Final = ("--requirement", "/dev/stdin")
# The first pip that installs into another environment.
# https://pip.pypa.io/en/stable/news/#v22-3 (the `--python` option)
_FIRST_FOR_OTHERS: Final = Version("22.3")


class Installer(Struct, frozen=True, kw_only=True):
    """Makes environments with `uv`, its path, or, where that is empty, with venv and pip.

    `index_url` and `find_links` are added to the settings of uv or pip; `pass_env` names the
    variables that builds may see besides the usual ones.
    """

    uv: str = ""
    index_url: str = ""
    find_links: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()

    def requirements(self, wanted: Requirements) -> str:
        """The text of a requirements file. It holds the index settings, because every process of
        the machine can read a command line; it goes to stdin, because a build could replace a file
        by a link.
        """
        options = [f"--index-url {self.index_url}"] if self.index_url else []
        options += [f"--find-links {link}" for link in self.find_links]
        return "".join(f"{line}\n" for line in [*options, *wanted.lines()])

    def commands(self, directory: Path) -> tuple[list[str], list[str]]:
        """The command that makes the environment, also over a half made one, and the one that
        installs the requirements from stdin.
        """
        python, inside = sys.executable, str(_python(directory))
        if self.uv:
            create = [self.uv, "venv", "--no-project", "--clear", "--python", python]
            install = [self.uv, "pip", "install", "--python", inside, "--requirements", "-"]
        elif with_pip := find_python_with_pip():
            # Installing a pip into each environment takes two seconds.
            create = [python, "-I", "-m", "venv", "--clear", "--without-pip"]
            install = [with_pip, "-I", "-m", "pip", "--python", inside, "install", *_FROM_STDIN]
        else:
            create = [python, "-I", "-m", "venv", "--clear"]
            install = [inside, "-I", "-m", "pip", "install", *_FROM_STDIN]
        return [*create, str(directory)], install


def find_python_with_pip() -> str:
    """A Python whose pip can install into any environment: ours, or the one that our environment
    was made from; empty where neither has such a pip.
    """
    if importlib.util.find_spec("pip"):
        return sys.executable
    base = str(getattr(sys, "_base_executable", ""))
    places = site.getsitepackages([sys.base_prefix])
    pip = next(iter(metadata.distributions(name="pip", path=places)), None)
    try:
        fits = pip is not None and Version(pip.version) >= _FIRST_FOR_OTHERS
    except InvalidVersion:
        return ""
    return base if fits else ""


class Requirements(Struct, frozen=True):
    """What an environment holds: normalised requirements, and by name the wheels of in-repo
    packages, which replace any requirement on them.
    """

    texts: frozenset[str]
    wheels: Mapping[str, Path] = field(default_factory=dict)
    limits: BuildLimits = UNLIMITED

    @classmethod
    def parse(
        cls, texts: Iterable[str], wheels: Mapping[str, Path], limits: BuildLimits = UNLIMITED
    ) -> Requirements:
        """Raises BuildFailed for an invalid requirement, and for too many characters."""
        texts = tuple(texts)
        if sum(map(len, texts)) > _MAX_CHARS:
            raise BuildFailed(
                "build-system.requires and what the build backend asks for have more than "
                f"{_MAX_CHARS} characters",
                problem=Problem.BUILD_REQUIREMENTS,
            )
        return cls(frozenset(filter(None, map(_normalize, texts))), wheels, limits)

    def lines(self) -> list[str]:
        extras: defaultdict[str, set[str]] = defaultdict(set)
        lines = []
        for text in self.texts:
            requirement = Requirement(text)
            if requirement.name in self.wheels:
                extras[requirement.name] |= requirement.extras
            else:
                lines.append(text)
        for name, wheel in self.wheels.items():
            wanted = f"[{','.join(sorted(extras[name]))}]" if extras[name] else ""
            lines.append(f"{name}{wanted} @ {wheel.as_uri()}")
        return sorted(lines)

    def key(self) -> str:
        """The same for the same texts, the same limits, and the same bytes of the wheels. Blocks;
        raises OSError.
        """
        limits = self.limits
        lines = [*self.lines(), *limits.constraints, *limits.newest, limits.indexes]
        digest = hashlib.sha256("\n".join(lines).encode())
        for _, wheel in sorted(self.wheels.items()):
            digest.update(durable.sha256_of(wheel, max_bytes=MAX_BYTES).encode())
        return digest.hexdigest()[:16]


def _normalize(text: str) -> str:
    """Canonical name, no marker; empty where the marker excludes this environment."""
    try:
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate()
    except (ValueError, RecursionError) as error:  # packaging has one for each mistake
        asked = visible(clip(text, _SHOWN))
        reason = clip(str(error), 2 * _SHOWN)
        raise BuildFailed(
            f"the build backend asks for {asked!r}: {reason}", problem=Problem.BUILD_REQUIREMENTS
        ) from error
    if not wanted:
        return ""
    requirement.marker = None
    requirement.name = canonicalize_name(requirement.name)
    line = str(requirement)
    if len(line.splitlines()) > 1:  # the second would be a setting of uv or pip
        raise BuildFailed(
            "the build backend asks for a package in several lines",
            problem=Problem.BUILD_REQUIREMENTS,
        )
    return line


class Environments(Resource):
    """Makes environments below `scratch`, each at its first use, and starts their workers, which
    end with this object. The directories stay.
    """

    def __init__(self, installer: Installer, processes: Processes, scratch: Path) -> None:
        super().__init__(together=True)
        self._installer = installer
        self._processes = processes
        self.scratch = scratch
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._workers: dict[str, Conversation] = {}
        self._broken: dict[str, BuildFailed] = {}

    async def worker(self, wanted: Requirements) -> Conversation:
        """The running worker of the environment that holds `wanted`.

        Raises BuildFailed when it cannot be made; the next package with the same requirements
        then fails with the same reason, at once.
        """
        try:
            key = await asyncio.to_thread(wanted.key) if wanted.wheels else wanted.key()
        except OSError as error:
            raise BuildFailed(
                describe_os_error(error), problem=Problem.BUILD_REQUIREMENTS
            ) from error
        async with turn(Kind.ENVIRONMENT, key, self._locks[key]):
            if known := self._broken.get(key):
                raise BuildFailed(
                    str(known), log=known.log, hint=known.hint, problem=Problem.BUILD_REQUIREMENTS
                )
            directory = self.scratch / f"environment-{key}"
            if key not in self._workers:
                try:
                    await self._make(directory, wanted)
                except CommandFailed as error:
                    self._broken[key] = BuildFailed(
                        f"the build requirements {', '.join(wanted.lines())} cannot be installed: "
                        f"{find_cause(error.log) or error}",
                        log=error.log,
                        hint="Check their names and versions, and that the index can be reached."
                        + (_OF_UV.format(wanted.limits.place) if wanted.limits.indexes else ""),
                        problem=Problem.BUILD_REQUIREMENTS,
                    )
                    raise self._broken[key] from error
            if key not in self._workers or self._workers[key].ended:
                self._workers[key] = await self.group.enter(self._start_worker(directory))
            return self._workers[key]

    def _start_worker(self, directory: Path) -> AbstractAsyncContextManager[Conversation]:
        path = self._processes.environment.get("PATH", "")
        return conversation(
            "its build worker ended",
            [str(_python(directory)), "-I", "-B", "-X", "utf8", worker.__file__],
            processes=self._processes,
            cwd=self.scratch,
            env={
                **self._processes.passing(self._installer.pass_env),
                # For programs that are build requirements, such as cmake and ninja.
                "PATH": f"{directory / 'bin'}:{path}" if path else str(directory / "bin"),
                "VIRTUAL_ENV": str(directory),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )

    async def _make(self, directory: Path, wanted: Requirements) -> None:
        create, install = self._installer.commands(directory)
        limits, environment = wanted.limits, self._processes.environment
        if limits.place and not self._installer.uv:
            raise BuildFailed(
                f"{limits.place} limits what packages are built with, and only uv knows how",
                hint="Install uv, or name one with `uv-path`.",
                problem=Problem.BUILD_REQUIREMENTS,
            )
        # The scratch directory is outside the workspace, so that its [tool.uv], as
        # `required-version`, does not apply. https://docs.astral.sh/uv/concepts/configuration-files/
        run = partial(
            self._processes.run,
            cwd=self.scratch,
            env={**dict.fromkeys(INTERFERING), **_resolve_constraints(environment)},
            timeout_s=INSTALL_TIMEOUT_S,
        )
        await run(create)
        if not wanted.lines():
            return
        named = environment.get("UV_BUILD_CONSTRAINT", "") if self._installer.uv else ""
        install += limits.newest
        with ExitStack() as files:
            given = []
            if limits.indexes:
                # uv joins it with the user's own settings, unlike a file that an option names.
                place = await asyncio.to_thread(durable.make_scratch, self.scratch, "indexes-")
                settings = place / "uv.toml"
                await asyncio.to_thread(durable.replace, settings, limits.indexes.encode())
                run = partial(run, cwd=place)
            for option in ("--constraints", "--build-constraints"):
                install += [f"{option}={place}" for place in _resolve_places(named)]
                if limits.constraints:
                    # They have no names, so that no build can replace them either.
                    file = files.enter_context(tempfile.TemporaryFile("w+"))
                    file.writelines(f"{line}\n" for line in limits.constraints)
                    file.seek(0)
                    given.append(file.fileno())
                    install.append(f"{option}=/dev/fd/{file.fileno()}")
            await run(install, stdin=self._installer.requirements(wanted), given=given)


def _resolve_constraints(environment: Mapping[str, str]) -> dict[str, str]:
    """Pip's variables for constraints, valid in any directory. pip takes URLs of files, and splits
    at spaces: https://pip.pypa.io/en/stable/user_guide/#constraints-files
    """
    names = {"PIP_BUILD_CONSTRAINT", "PIP_CONSTRAINT"} & environment.keys()
    return {
        name: " ".join(
            place if "://" in place else Path(place).as_uri()
            for place in _resolve_places(environment[name])
        )
        for name in names
    }


def _resolve_places(named: str) -> list[str]:
    """Files that the user names, relative to where ReleaseKit was started."""
    return [each if "://" in each else str(Path.cwd() / each) for each in named.split()]


def _python(directory: Path) -> Path:
    return directory / "bin" / "python"
