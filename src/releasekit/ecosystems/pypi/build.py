"""Builds one package: its sdist, the wheel of that sdist, and their digests; and the wheels of
in-repo packages that other builds need installed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from packaging.tags import sys_tags

from releasekit.ecosystems.pypi.discover import list_build_needs
from releasekit.ecosystems.pypi.distribution import explain_unparsable
from releasekit.ecosystems.pypi.environment import Requirements
from releasekit.ecosystems.pypi.simple_index import parse_filename
from releasekit.ecosystems.shared import artifacts
from releasekit.errors import BuildFailed
from releasekit.host import durable
from releasekit.model import PackageId
from releasekit.problems import Problem
from releasekit.state.directory import NAME, within
from releasekit.state.lock_order import Kind, turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from releasekit.ecosystems.pypi.environment import Environments
    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.model import Artifact
    from releasekit.state.run_logs import Log, Logs

    Projects = Mapping[str, PyProject]
    Earlier = Callable[[str], Path] | None

# Each answer of a get_requires hook leads to another environment, where it is asked again.
MAX_ROUNDS: Final = 5
MAX_REQUIREMENTS: Final = 1_000
# What PyPI's upload form asks for: https://docs.pypi.org/api/upload/
DIGESTS: Final = ("sha256", "blake2b_256")


class Builder(Struct, frozen=True, kw_only=True):
    """Builds the packages of a run.

    `state` is the state directory, which sdists leave out. `scratch` is outside the workspace.
    `environment` is added to that of every hook.
    """

    environments: Environments
    config_settings: Mapping[str, str]
    environment: Mapping[str, str]
    state: Path
    scratch: Path
    logs: Logs

    async def build(
        self,
        project: PyProject,
        into: Path,
        *,
        wheels: Mapping[str, Path],
        given: Sequence[Artifact] = (),
    ) -> tuple[Artifact, ...]:
        """The project's sdist and wheel, in `into`, which holds nothing else afterwards. Files that
        are `given` replace them: beside given wheels, no wheel is built; with a given sdist, the
        wheel is built from it.

        `wheels` are the in-repo packages that its build needs. Raises BuildFailed, also when a
        built file has another name or version than the project.
        """
        log = self.logs.fresh("build", PackageId("pypi", project.name))
        async with artifacts.staged_aside(into) as partial:
            names = await asyncio.to_thread(artifacts.placed, given, partial) if given else []
            sdists = [name for name in names if not name.endswith(".whl")]
            built = [name for name in names if name.endswith(".whl")]
            request = self._make_request("sdist", project, into=partial)
            request |= {"environment": {**self.environment, **_keep_version(project)}}
            answer: dict[str, Any] = {}
            if not sdists:
                request |= {"alone": bool(built)}
                answer = await self._ask(request, project=project, wheels=wheels, log=log)
            sdist = "".join(sdists) or str(answer.get("sdist", ""))
            if not built and "wheel" not in answer:
                request |= {"operation": "wheel", "source": str(partial / sdist)}
                answer = await self._ask(request, project=project, wheels=wheels, log=log)
            if not sdists:
                _check_name(sdist, "sdist", project)
            if not built:
                built = [str(answer.get("wheel", ""))]
                _check_name(built[0], "bdist_wheel", project)
            for name in (sdist, *built):
                # A backend may leave anything there: to open a pipe would wait for ever.
                if not durable.is_file(partial / name):
                    raise BuildFailed(
                        f"pypi:{project.name}: the build said that it had made {name}, and there "
                        "is no such file",
                        problem=Problem.BUILT_OTHERWISE,
                    )
        made = (into / name for name in (sdist, *built))
        return await asyncio.to_thread(
            lambda: tuple(artifacts.digested(path, *DIGESTS) for path in made)
        )

    async def metadata(self, project: PyProject, *, wheels: Mapping[str, Path]) -> str:
        """The METADATA that its build backend computes for the present tree; raises BuildFailed."""
        log = self.logs.fresh("metadata", PackageId("pypi", project.name))
        request = self._make_request("metadata", project, into=self.scratch)
        answer = await self._ask(request, project=project, wheels=wheels, log=log)
        text = str(answer.get("metadata", ""))
        if reason := explain_unparsable(text.encode()):
            raise BuildFailed(
                f"pypi:{project.name}: its METADATA {reason}", problem=Problem.NOT_A_PACKAGE
            )
        return text

    def _make_request(self, operation: str, project: PyProject, *, into: Path) -> dict[str, object]:
        """A request to a build worker. `hidden` are names of directories that a backend leaves out
        at any depth, if it can.
        """
        source = project.manifest.parent
        state = within(self.state, source)
        # Only a name at the top and with a dot is surely not that of sources.
        hidden = {NAME, *([state] if state.startswith(".") and "/" not in state else [])}
        return {
            "operation": operation,
            "source": str(source),
            "into": str(into),
            "scratch": str(self.scratch),
            "backend": project.build_system.backend,
            "backend_path": project.build_system.backend_path,
            "config_settings": {**project.config_settings, **self.config_settings},
            "environment": dict(self.environment),
            "hidden": sorted(hidden),
            "inert": project.is_inert and not durable.is_file(source / "hatch.toml"),
        }

    async def _ask(
        self,
        request: Mapping[str, object],
        *,
        project: PyProject,
        wheels: Mapping[str, Path],
        log: Log,
    ) -> dict[str, Any]:
        """The answer of a worker, once its environment holds all that the backend requires."""
        installed: tuple[str, ...] = ()
        what = f"pypi:{project.name}: its {request['operation']}"
        try:
            for _ in range(MAX_ROUNDS):
                asked = (*project.build_system.requires, *installed)
                if unread := project.find_unread(asked):
                    raise BuildFailed(  # noqa: TRY301 (handled as a failed answer)
                        unread.what, hint=unread.cure, problem=Problem.BUILD_REQUIREMENTS
                    )
                wanted = Requirements.parse(asked, wheels, project.limits)
                worker = await self.environments.worker(wanted)
                async with log.piped() as pipe:
                    question = {**request, "installed": installed, "log": str(pipe)}
                    answer = await worker.ask(question, cancellable=True)
                if "requires" not in answer:
                    return answer
                more = answer["requires"]
                if not (isinstance(more, list) and len(more) <= MAX_REQUIREMENTS):
                    raise BuildFailed(  # noqa: TRY301 (handled as a failed answer)
                        "the build backend asks for no list of packages",
                        problem=Problem.BUILD_REQUIREMENTS,
                    )
                installed += tuple(map(str, more))
        except BuildFailed as error:
            raise log.failure(f"{what} could not be built: {error}", error) from error
        raise BuildFailed(
            f"{what} needs ever more build requirements: {', '.join(installed)}",
            problem=Problem.BUILD_REQUIREMENTS,
        )


def _keep_version(project: PyProject) -> dict[str, str]:
    """Variables that keep the planned version, although pinned manifests make the tree differ from
    its commit: both backends drop GIT_INDEX_FILE, as all variables that begin with GIT_.
    https://setuptools-scm.readthedocs.io/en/latest/overrides/
    https://backend.pdm-project.org/metadata/#dynamic-version-from-scm
    """
    if "version" not in project.dynamic or not project.version or project.is_draft:
        return {}
    return {
        "SETUPTOOLS_SCM_PRETEND_METADATA": "{dirty=false}",
        "PDM_BUILD_SCM_VERSION": project.version,
    }


def _check_name(filename: str, kind: str, project: PyProject) -> None:
    release = None if {"/", "\0"} & {*filename} else parse_filename(filename)
    if release is None or release[2] != kind:
        what = "a wheel" if kind == "bdist_wheel" else "a source distribution"
        raise BuildFailed(
            f"pypi:{project.name}: {filename!r} is not the name of {what}",
            problem=Problem.NOT_A_PACKAGE,
        )
    name, version, _ = release
    if (name, str(version)) != (project.name, project.version or str(version)):
        raise BuildFailed(
            f"pypi:{project.name}: the build made {filename}, but {project.name} "
            f"{project.version} was planned",
            hint="A dynamic version has to stay the same from plan to build: commit first, and "
            "build nothing into the tree.",
            problem=Problem.BUILT_OTHERWISE,
        )


class InRepoWheels:
    """The wheels of one workspace, each made once: one that this or an earlier run has built, or
    else one that is never published, as the package may be on its registry already, or be planned
    for later.
    """

    def __init__(self, builder: Callable[[], Awaitable[Builder]]) -> None:
        self._builder = builder
        self._wheels: dict[str, Path] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def add(self, name: str, wheels: Iterable[Path]) -> None:
        """Of wheels for several kinds of machines, keep one that this machine can install."""
        self._wheels.pop(name, None)
        for wheel in wheels:
            if is_installable(wheel.name):
                self._wheels[name] = wheel

    async def collect_for(
        self, project: PyProject, projects: Projects, earlier: Earlier = None
    ) -> dict[str, Path]:
        """What its build environment needs of `projects`, all of the workspace. `earlier` tells
        where an earlier run would have put the built files of a package.
        """
        closure = list_build_needs(project, projects)
        return {name: await self._get_wheel(name, projects, earlier) for name in closure}

    async def _get_wheel(self, name: str, projects: Projects, earlier: Earlier) -> Path:
        if name not in self._wheels and earlier is not None:
            found = earlier(name)
            names = [each for each in durable.names(found) if each.endswith(".whl")]
            self.add(name, [found / each for each in names])
        if name in self._wheels:
            return self._wheels[name]
        # Before its own turn, so that a task never holds the turns of two wheels.
        wheels = await self.collect_for(projects[name], projects, earlier)
        builder = await self._builder()
        async with turn(Kind.WHEEL, name, self._locks[name]):
            if name not in self._wheels:
                # A new directory: another workspace may have a package of the same name.
                directory = await asyncio.to_thread(
                    durable.make_scratch, builder.scratch, "in-repo-"
                )
                built = await builder.build(projects[name], directory / name, wheels=wheels)
                self._wheels[name] = built[-1].path
            return self._wheels[name]


def is_installable(wheel: str) -> bool:
    """Whether a wheel of this name fits this Python on this machine, where builds run too."""
    return _has_fitting(*wheel.removesuffix(".whl").split("-")[-3:])


@cache
def _has_fitting(*parts: str) -> bool:
    """Nearly all wheels of a workspace end alike, and there are a thousand tags to look through."""
    interpreters, abis, platforms = (part.split(".") for part in parts)
    return any(
        interpreter in interpreters and abi in abis and platform in platforms
        for interpreter, abi, platform in list_tags()
    )


@cache
def list_tags() -> tuple[tuple[str, str, str], ...]:
    """The tags of wheels that fit here: a thousand, cached, as they take 10 ms to make."""
    return tuple((tag.interpreter, tag.abi, tag.platform) for tag in sys_tags())
