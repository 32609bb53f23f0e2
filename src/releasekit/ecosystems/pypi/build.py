"""Building one package: its sdist, the wheel of that sdist, and their digests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.pypi.conversation import Answer, Request, ask
from releasekit.ecosystems.pypi.environment import Requirements
from releasekit.ecosystems.pypi.simple_index import release_of
from releasekit.ecosystems.shared import artifacts
from releasekit.ecosystems.shared.logs import Log
from releasekit.errors import BuildFailed
from releasekit.model import PackageId

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.ecosystems.pypi.environment import Environments
    from releasekit.ecosystems.pypi.manifest import PyProject
    from releasekit.ecosystems.shared.logs import Logs
    from releasekit.model import Artifact

# Each answer of a get_requires hook leads to another environment, where it is asked again.
MAX_ROUNDS: Final = 5
# What PyPI's upload form asks for: https://docs.pypi.org/api/upload/
_DIGESTS: Final = ("sha256", "blake2b_256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What the builds of a run share.

    `state` is the state directory, which no sdist may hold. `scratch` is outside the workspace.
    `environment` is added to that of every hook.
    """

    environments: Environments
    config_settings: Mapping[str, str]
    environment: Mapping[str, str]
    state: Path
    scratch: Path
    logs: Logs

    async def build(
        self, project: PyProject, into: Path, *, wheels: Mapping[str, Path]
    ) -> tuple[Artifact, ...]:
        """The project's sdist and wheel, in `into`, which holds nothing else afterwards.

        `wheels` are the in-repo packages its build needs. Raises BuildFailed, also when what was
        built has another name or version than the project.
        """
        log = self._log(project, "build")
        with artifacts.staged(into) as partial:
            request = self._request(project, into=partial, log=log)
            answer = await self._ask(request, project, wheels)
            sdist, wheel = answer.sdist, answer.wheel
            if not wheel:
                request = replace(request, operation="wheel", source=partial / sdist)
                wheel = (await self._ask(request, project, wheels)).wheel
            _check(sdist, "sdist", project)
            _check(wheel, "bdist_wheel", project)
        return tuple(artifacts.digested(into / name, *_DIGESTS) for name in (sdist, wheel))

    async def metadata(self, project: PyProject, *, wheels: Mapping[str, Path]) -> str:
        """The METADATA its build backend computes for the tree as it is; raises BuildFailed."""
        log = self._log(project, "metadata")
        request = self._request(project, into=self.scratch, log=log)
        return (await self._ask(replace(request, operation="metadata"), project, wheels)).metadata

    def _request(self, project: PyProject, *, into: Path, log: Path) -> Request:
        source = project.manifest.parent
        inside = self.state.is_relative_to(source)
        return Request(
            operation="sdist",
            source=source,
            into=into,
            scratch=self.scratch,
            log=log,
            build_system=project.build_system,
            config_settings=self.config_settings,
            environment=self.environment,
            hidden=self.state.relative_to(source).as_posix() if inside else "",
        )

    async def _ask(
        self, request: Request, project: PyProject, wheels: Mapping[str, Path]
    ) -> Answer:
        installed: tuple[str, ...] = ()
        what = f"pypi:{project.name}: its {request.operation}"
        try:
            for _ in range(MAX_ROUNDS):
                wanted = Requirements.of((*project.build_system.requires, *installed), wheels)
                worker = await self.environments.worker(wanted)
                answer = await ask(worker, replace(request, installed=installed))
                if not answer.requires:
                    return answer
                installed += answer.requires
        except BuildFailed as error:
            log = Log(request.log, self.logs.redact)
            raise log.failure(f"{what} could not be built: {error}", error) from error
        raise BuildFailed(f"{what} needs ever more build requirements: {', '.join(installed)}")

    def _log(self, project: PyProject, kind: str) -> Path:
        return self.logs.fresh(kind, PackageId("pypi", project.name)).path


def _check(filename: str, kind: str, project: PyProject) -> None:
    release = release_of(filename)
    if release is None or release[2] != kind:
        what = "a wheel" if kind == "bdist_wheel" else "a source distribution"
        raise BuildFailed(f"pypi:{project.name}: {filename!r} is not the name of {what}")
    name, version, _ = release
    if (name, str(version)) != (project.name, project.version or str(version)):
        raise BuildFailed(
            f"pypi:{project.name}: the build made {filename}, but {project.name} "
            f"{project.version} was planned",
            hint="A dynamic version has to stay the same from plan to build: commit first, and "
            "build nothing into the tree.",
        )
