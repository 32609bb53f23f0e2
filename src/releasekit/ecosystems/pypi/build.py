"""Building one package: its sdist, the wheel of that sdist, and their digests; and wheels of a
workspace's own packages, for the builds that need them installed.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from packaging.tags import sys_tags

from releasekit.ecosystems.pypi.discover import build_closure, is_draft
from releasekit.ecosystems.pypi.distribution import unusual
from releasekit.ecosystems.pypi.environment import Requirements
from releasekit.ecosystems.pypi.simple_index import release_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What the builds of a run share.

    `state` is the state directory, which no sdist should hold. `scratch` is outside the workspace.
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
        """The project's sdist and wheel, in `into`, which holds nothing else afterwards. What is
        `given` takes their place: no wheel is built beside others, and one of a given sdist.

        `wheels` are the in-repo packages its build needs. Raises BuildFailed, also when what was
        built has another name or version than the project.
        """
        log = self.logs.fresh("build", PackageId("pypi", project.name))
        async with artifacts.staged_aside(into) as partial:
            names = await asyncio.to_thread(artifacts.placed, given, partial)
            sdists = [name for name in names if not name.endswith(".whl")]
            built = [name for name in names if name.endswith(".whl")]
            request = self._request("sdist", project, into=partial)
            request |= {"environment": {**self.environment, **_version_of_commit(project)}}
            answer: dict[str, Any] = {}
            if not sdists:
                request |= {"alone": bool(built)}
                answer = await self._answer(request, project=project, wheels=wheels, log=log)
            sdist = "".join(sdists) or str(answer.get("sdist", ""))
            if not built and "wheel" not in answer:
                request |= {"operation": "wheel", "source": str(partial / sdist)}
                answer = await self._answer(request, project=project, wheels=wheels, log=log)
            if not sdists:
                _check(sdist, "sdist", project)
            if not built:
                built = [str(answer.get("wheel", ""))]
                _check(built[0], "bdist_wheel", project)
            for name in (sdist, *built):
                _check_made(partial / name, project)
        made = (into / name for name in (sdist, *built))
        return await asyncio.to_thread(
            lambda: tuple(artifacts.digested(path, *DIGESTS) for path in made)
        )

    async def metadata(self, project: PyProject, *, wheels: Mapping[str, Path]) -> str:
        """The METADATA its build backend computes for the tree as it is; raises BuildFailed."""
        log = self.logs.fresh("metadata", PackageId("pypi", project.name))
        request = self._request("metadata", project, into=self.scratch)
        answer = await self._answer(request, project=project, wheels=wheels, log=log)
        text = str(answer.get("metadata", ""))
        if reason := unusual(text.encode()):
            raise BuildFailed(
                f"pypi:{project.name}: its METADATA {reason}", problem=Problem.NOT_A_PACKAGE
            )
        return text

    def _request(self, operation: str, project: PyProject, *, into: Path) -> dict[str, object]:
        """What a build worker is asked. `hidden` are names of directories that a backend which can
        be told so leaves out, wherever they are.
        """
        source = project.manifest.parent
        state = within(self.state, source)
        # Such a name may be that of sources too, but not at the top, nor with a dot.
        hidden = {NAME, *([state] if state.startswith(".") and "/" not in state else [])}
        return {
            "operation": operation,
            "source": str(source),
            "into": str(into),
            "scratch": str(self.scratch),
            "backend": project.build_system.backend,
            "backend_path": project.build_system.backend_path,
            "config_settings": dict(self.config_settings),
            "environment": dict(self.environment),
            "hidden": sorted(hidden),
        }

    async def _answer(
        self,
        request: Mapping[str, object],
        *,
        project: PyProject,
        wheels: Mapping[str, Path],
        log: Log,
    ) -> dict[str, Any]:
        """What a worker answers once its environment holds all that the build backend asks for."""
        installed: tuple[str, ...] = ()
        what = f"pypi:{project.name}: its {request['operation']}"
        try:
            for _ in range(MAX_ROUNDS):
                asked = (*project.build_system.requires, *installed)
                wanted = Requirements.parse(asked, wheels, project.limits)
                worker = await self.environments.worker(wanted)
                async with log.piped() as pipe:
                    question = {**request, "installed": installed, "log": str(pipe)}
                    answer = await worker.ask(question, cancellable=True)
                if "requires" not in answer:
                    return answer
                more = answer["requires"]
                if not (isinstance(more, list) and len(more) <= MAX_REQUIREMENTS):
                    raise BuildFailed(  # noqa: TRY301 (as an answer of the worker that fails)
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


def _version_of_commit(project: PyProject) -> dict[str, str]:
    """What keeps the planned version while pinned manifests make the tree differ from its commit:
    both backends drop GIT_INDEX_FILE, as all that begins with GIT_.

    https://setuptools-scm.readthedocs.io/en/latest/overrides/
    https://backend.pdm-project.org/metadata/#dynamic-version-from-scm
    """
    if "version" not in project.dynamic or not project.version or is_draft(project):
        return {}
    return {
        "SETUPTOOLS_SCM_PRETEND_METADATA": "{dirty=false}",
        "PDM_BUILD_SCM_VERSION": project.version,
    }


def _check(filename: str, kind: str, project: PyProject) -> None:
    release = None if {"/", "\0"} & {*filename} else release_of(filename)
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


def _check_made(path: Path, project: PyProject) -> None:
    """A backend names a file, and leaves there what it likes: to open a pipe waits for ever."""
    if not durable.is_file(path):
        raise BuildFailed(
            f"pypi:{project.name}: the build said that it had made {path.name}, and there is no "
            "such file",
            problem=Problem.BUILT_OTHERWISE,
        )


class InRepoWheels:
    """Those of one workspace, each made once: what this run has built of a package, or an earlier
    one, or else a build that is never published, as the package may be on its registry already, or
    be planned for later.
    """

    def __init__(self, builder: Callable[[], Awaitable[Builder]]) -> None:
        self._builder = builder
        self._wheels: dict[str, Path] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def built(self, name: str, wheels: Iterable[Path]) -> None:
        """Of several, for machines of any kind, one that can be installed on this one."""
        self._wheels.pop(name, None)
        for wheel in wheels:
            if installable(wheel.name):
                self._wheels[name] = wheel

    async def needed_by(
        self, project: PyProject, projects: Projects, earlier: Earlier = None
    ) -> dict[str, Path]:
        """What its build environment needs of `projects`, all of the workspace. `earlier` tells
        where an earlier run would have put what it built of a package.
        """
        closure = build_closure(project, projects)
        return {name: await self._wheel(name, projects, earlier) for name in closure}

    async def _wheel(self, name: str, projects: Projects, earlier: Earlier) -> Path:
        if name not in self._wheels and earlier is not None:
            found = earlier(name)
            names = [each for each in durable.names(found) if each.endswith(".whl")]
            self.built(name, [found / each for each in names])
        if name in self._wheels:
            return self._wheels[name]
        # Before its own turn, so that nobody has the turns of two wheels.
        wheels = await self.needed_by(projects[name], projects, earlier)
        builder = await self._builder()
        async with turn(Kind.WHEEL, name, self._locks[name]):
            if name not in self._wheels:
                # A new one: another workspace may have a package of the same name.
                directory = await asyncio.to_thread(
                    durable.make_scratch, builder.scratch, "in-repo-"
                )
                built = await builder.build(projects[name], directory / name, wheels=wheels)
                self._wheels[name] = built[-1].path
            return self._wheels[name]


def installable(wheel: str) -> bool:
    """Whether a wheel of this name fits this Python on this machine, which builds run on too."""
    interpreters, abis, platforms = (
        part.split(".") for part in wheel.removesuffix(".whl").split("-")[-3:]
    )
    return any(
        interpreter in interpreters and abi in abis and platform in platforms
        for interpreter, abi, platform in tags_here()
    )


@cache
def tags_here() -> tuple[tuple[str, str, str], ...]:
    """What wheels fit: a thousand tags, which take 10 ms to make, once."""
    return tuple((tag.interpreter, tag.abi, tag.platform) for tag in sys_tags())
