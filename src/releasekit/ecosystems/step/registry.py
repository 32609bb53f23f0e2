"""What is known of a step: its check is asked as a registry is, and its command publishes."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.aio import Resource, uncancellable
from releasekit.ecosystems.shared.artifacts import no_place, placed
from releasekit.ecosystems.step import ECOSYSTEM, FIELD, PLACE
from releasekit.errors import (
    CommandFailed,
    ConfigError,
    MissingCredentials,
    PackageError,
    Transient,
)
from releasekit.host import durable
from releasekit.host.files import repository_of
from releasekit.host.scratch import closed_scratch
from releasekit.http.identity import open_tokens
from releasekit.model import PackageId, Published
from releasekit.problems import Problem
from releasekit.text.cause import find_cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.ecosystems.interface import Services
    from releasekit.ecosystems.step import StepOptions
    from releasekit.http.credentials import Secret
    from releasekit.model import Artifact, Package

# What a command says by its exit status.
_ABSENT: Final = 10
# EX_TEMPFAIL: https://man.freebsd.org/cgi/man.cgi?query=sysexits
_TRY_AGAIN: Final = 75
# Places of the user and of the job, for which a step has its own; and languages of messages.
_LEFT_OUT: Final = (
    *("LC_ALL", "LANGUAGE", "TEMP", "TMP", "RUNNER_TEMP", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"),
    *("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
)


def name_record(package: Package) -> str:
    return f"{package.id.name}-{package.version.replace('/', '_')}"


def make_record(package: Package) -> bytes:
    """What stands for a step among built files, the same whenever it is made."""
    record = {"step": package.id.name, "version": package.version}
    return f"{json.dumps(record)}\n".encode()


def published(package: Package, record: bytes) -> Published:
    """What a step has published is there as a whole, or not at all."""
    digest = hashlib.sha256(record).hexdigest()
    return Published(files={name_record(package): f"sha256:{digest}"})


class FixedStep(Struct, frozen=True):
    """The commands of a step, and where they start. Below `top` builds can change nothing, and
    there are the files of the commit; without, `check` is only asked, in the sandbox and in the
    checkout.
    """

    check: Sequence[str]
    publish: Sequence[str]
    cwd: Path
    top: Path | None = None


class StepRegistry(Resource):
    """Implements `interface.Registry` for all steps. It is opened before anybody's code runs, and
    where steps are to be run, what they run is fixed then. Its target fills in the `tags` of their
    versions, the `versions` of all packages, and the `files` of what each needs.
    """

    url = PLACE

    def __init__(
        self,
        options: Mapping[str, StepOptions],
        secrets: Mapping[str, Secret],
        config: PlanConfig,
        services: Services,
    ) -> None:
        super().__init__()
        chosen = config.package_filter.has_package
        self._chosen = {name for name in options if chosen(PackageId(ECOSYSTEM, name))}
        # What is left out, and needed by a package that is not, is asked too.
        needed = {edge.on.name for edge in config.extra_edges if chosen(edge.dependent)}
        self._options = {n: each for n, each in options.items() if n in self._chosen | needed}
        self._secrets, self._config, self._services = secrets, config, services
        self._tokens = open_tokens(services.ci, services.credentials, services.http)
        self._steps: dict[str, FixedStep] = {}
        self.tags: dict[PackageId, str] = {}
        self.versions: Mapping[PackageId, str] = {}
        self.files: dict[PackageId, Mapping[PackageId, Sequence[Artifact] | None]] = {}

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        try:
            if self._config.is_uploading and self._options:
                self._refuse_here()
                await self._fix_steps()
            elif self._config.ask_steps:
                for name, each in self._options.items():
                    place = self._config.root / each.directory
                    self._steps[name] = FixedStep(shlex.split(each.check), (), place)
        except BaseException:
            await self.__aexit__(*sys.exc_info())
            raise
        return self

    def check_credentials(self) -> str:
        for name in sorted(self._chosen):
            step = self._options[name]
            where = step.where(name)
            for each in step.secrets:
                if each not in self._secrets:
                    raise MissingCredentials(
                        f"{where} secrets: {each} is not set", hint="Give the job this variable."
                    )
            if step.identity and (obstacle := self._tokens.find_obstacle(step.identity)):
                raise MissingCredentials(
                    f"{where} identity: {obstacle.condition}", hint=obstacle.cure
                )
        return "the variables and tokens of each step"

    def _refuse_here(self) -> None:
        """Raises ConfigError in a job of a pull request, and where builds could read a secret; else
        as `check_credentials`.
        """
        if job := self._services.ci.pull_request:
            raise ConfigError(
                f"this is a job of a pull request ({job}), and no step runs there",
                hint="Publish on the push that merges it, or leave steps out: "
                '`exclude-packages: "step:*"`.',
                problem=Problem.STEP,
            )
        self.check_credentials()
        sandbox = self._services.processes.sandbox
        # A package that is only looked up may run code to tell its version.
        others = {*self._config.ecosystems_to_discover} - {ECOSYSTEM}
        for name, step in self._options.items() if others and not sandbox.abi else ():
            if step.secrets or step.identity:
                raise ConfigError(
                    f"{step.where(name)} has a secret, and builds of this run could read it: "
                    f"{sandbox.words}",
                    hint="Run on Linux 6.2 or later, with `build-sandbox: auto`.",
                    problem=Problem.STEP,
                )

    async def _fix_steps(self) -> None:
        """Write the files of the commit to where no build can change them, and find programs."""
        git, sandbox = self._services.git, self._services.processes.sandbox
        place = await self.group.enter(closed_scratch(self._services.environment, sandbox))
        try:
            commit = await git.read_head()
            for name in self._options:
                await git.write_files(commit, place / name / "sources")
            inside = self._config.root.relative_to(git.top)
            for name, options in self._options.items():
                cwd = place / name / "sources" / inside / options.directory
                durable.make_directory(cwd, sync=False)
        except (PackageError, OSError) as error:
            why = error if repository_of(self._config.root) else "this is no git repository"
            raise ConfigError(
                f"steps run what is committed, and that cannot be read: {why}",
                hint="Run it in a clone of the repository, and commit what they run.",
                problem=Problem.STEP,
            ) from error
        for name, options in self._options.items():
            top = place / name
            cwd = top / "sources" / inside / options.directory
            check = self._find(options.check, name, cwd)
            publish = self._find(options.publish, name, cwd) if name in self._chosen else ()
            self._steps[name] = FixedStep(check, publish, cwd, top)

    def _find(self, command: str, name: str, cwd: Path) -> Sequence[str]:
        """Its words, with the program as a shell that starts in `cwd` would find it."""
        program, *words = shlex.split(command)
        wanted = str(cwd / program) if "/" in program else program
        found = self._services.processes.outside(wanted)
        if found is None:
            directory = self._options[name].directory or "the root"
            said, hint = f"{program} is not on PATH", "Install it before, or commit a script."
            if "/" in program and Path(wanted).is_file():
                said = f"{program} is not executable in the commit"
                hint = f"In {directory}: `git update-index --chmod=+x {program}`, and commit that."
            elif "/" in program:
                said = f"{program} is no file of the commit, below {directory}"
                hint = "Commit it, or write where it is: steps run what is committed."
            raise ConfigError(
                f"{self._options[name].where(name)}: {said}",
                hint=hint,
                problem=Problem.TOOL_MISSING,
            )
        return [found, *words]

    async def lookup(self, package: Package) -> Published | None:
        step = self._steps.get(package.id.name)
        if step is None:
            raise Transient(
                "not asked: only a run that publishes it, or `--ask-steps`, runs its `check`",
                problem=Problem.STEP_UNKNOWN,
            )
        try:
            await self._run("check", step.check, step, package)
        except CommandFailed as error:
            if error.status == _ABSENT:
                return None
            raise Transient(
                f"its `check` does not tell whether {package.version} is there: {_explain(error)}",
                hint="It exits with 0 where the version is there, with 10 where it is not.",
                problem=Problem.STEP_UNKNOWN,
            ) from error
        return published(package, make_record(package))

    async def upload(self, package: Package, _artifacts: Sequence[Artifact]) -> None:
        """Whatever it ends with, `lookup` tells what became of it."""
        step, audience = self._steps[package.id.name], self._options[package.id.name].identity
        token = {"STEP_ID_TOKEN": await self._tokens.fetch(audience)} if audience else {}
        try:
            await self._run("publish", step.publish, step, package, token)
        except CommandFailed as error:
            message = f"its `publish` {_explain(error)}"
            if error.status == _TRY_AGAIN:
                raise Transient(message, problem=Problem.STEP_FAILED) from error
            raise error.with_(message=message, problem=Problem.STEP_FAILED) from error

    async def _run(
        self,
        what: str,
        command: Sequence[str],
        step: FixedStep,
        package: Package,
        token: Mapping[str, Secret] | None = None,
    ) -> None:
        name, version = package.id.name, package.version
        fields = {"version": version, "name": name, "tag": self.tags.get(package.id, "")}
        env: dict[str, str | None] = {f"STEP_{key.upper()}": fields[key] for key in fields}
        secrets, own = None, None
        if step.top is not None:
            own = durable.make_scratch(step.top, "own-")
            env |= self._services.git.pass_on(()) | dict.fromkeys(_LEFT_OUT)
            for each in ("HOME", "TMPDIR"):
                env[each] = str(own / each)
                durable.make_directory(own / each, sync=False)
            given = {it: self._secrets.get(it) for it in self._options[name].secrets}
            secrets = {it: each.reveal() for it, each in {**given, **(token or {})}.items() if each}
            if what == "publish":
                place = own / "files"
                files = await asyncio.to_thread(self._copy_files, place, package.id)
                env["STEP_FILES"] = files
        program, *words = command
        try:
            await self._services.processes.run(
                [program, *(FIELD.sub(lambda found: fields[found[1]], each) for each in words)],
                cwd=step.cwd,
                env=env,
                secrets=secrets,
                outside=step.top is not None,
                log=self._services.logs.fresh(what, package.id).path,
                timeout_s=self._config.task_timeout,
            )
        finally:
            if own is not None:  # builds can read what it has left there, such as a login
                await uncancellable(asyncio.to_thread(_remove, own))

    def _copy_files(self, top: Path, step: PackageId) -> str:
        """The files of what it needs, which are its own from now on, as JSON. Raises BuildFailed
        where one is not what was built.
        """
        rows: list[Mapping[str, str | None]] = []
        for package, files in self.files.get(step, {}).items():
            if package.ecosystem == ECOSYSTEM:
                continue  # what it has published is no file here
            about = {"package": str(package), "version": self.versions.get(package)}
            if files is None:
                rows.append(about | dict.fromkeys(("name", "path", "sha256")))
                continue
            into = top / str(len(rows))
            try:
                durable.make_directory(into, sync=False)
            except OSError as error:
                raise no_place(error) from error
            placed(files, into)
            for each in files:
                place = {"path": str(into / each.filename), "sha256": each.sha256}
                rows.append(about | {"name": each.filename} | place)
        return json.dumps(rows)


def _remove(place: Path) -> None:
    """As far as the user may: a cache of Go is read-only."""
    with contextlib.suppress(OSError):
        durable.remove_tree(place)


def _explain(error: CommandFailed) -> str:
    """How a command ended, and the line of its output that says why."""
    ended = str(error).rpartition("` ")[2]
    said = find_cause(error.log) or next(filter(str.strip, reversed(error.log)), "").strip()
    return f"{ended}: {said}" if said else ended
