"""The command status: what users can install now, of this release or an earlier one, by any tool.

It keeps no state and takes no lock, so it may run beside a release.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.cli.commands.status import StatusInputs
from releasekit.cli.request_log import request_logger, say_busy
from releasekit.cli.result_files import load_results, write
from releasekit.cli.session import open_command, open_targets, open_workspace
from releasekit.config.values import Directory
from releasekit.errors import CommandFailed, ConfigError, PackageError, PathError
from releasekit.fields import replace
from releasekit.graph import reachable
from releasekit.host.scratch import scratch
from releasekit.http.traffic import collect
from releasekit.plan.make import collect_packages
from releasekit.plan.registries import ask_all, find_unnamed
from releasekit.plan.withdrawn import find_withdrawn_needs
from releasekit.problems import Problem
from releasekit.report.screen import fit_lines
from releasekit.report.status import StatusAnswers, list_needs, status_table
from releasekit.text.cause import find_cause
from releasekit.text.commands import spell
from releasekit.text.escape import clip, visible
from releasekit.text.numbering import numbering_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.ecosystems.interface import Services, Target
    from releasekit.model import Package, PackageId
    from releasekit.plan.registries import Answer

_MAX_CHARS: Final = 100
# What cargo, rustup and uv look for in all directories above; some of it names programs to start.
# https://doc.rust-lang.org/cargo/reference/config.html#hierarchical-structure,
# https://rust-lang.github.io/rustup/overrides.html and
# https://docs.astral.sh/uv/concepts/configuration-files/
_OBEYED: Final = (
    ".cargo", "rust-toolchain", "rust-toolchain.toml", ".venv", "uv.toml", "pyproject.toml",
)  # fmt: skip
_NAMES: Final = (
    "Name results.json of a run, as it is in its state directory. A workspace elsewhere is named "
    "by `working-directory`."
)


async def run(config: Config, session: Session) -> int:
    """Print it; 0 where all packages are there and, as far as that was asked, installable."""
    inputs = config.own(StatusInputs)
    tell = request_logger(session, verbose=config.verbose, mode=config.mode)
    async with open_command(config, session) as group:
        with collect(tell):
            config, survey, services = await open_workspace(group, config, session)
            targets = await open_targets(group, config, session, services, survey.tree)
            about = config.package_filter
            beside = survey.describe_beside(config, targets)
            found = collect_packages(targets, config.root, about, beside)
            versions = await asyncio.to_thread(_list_versions, inputs.release, found)
            known = {each.id: each for each in found if each.id in versions}
            if not known:
                hint = "Name the workspace as `working-directory`."
                if not versions:
                    hint = f"{spell('plan')} says why; {spell('status 1.4.0')} asks for a version."
                raise ConfigError(
                    f"{config.root}: there is no package here that is published"
                    + (f", of those in {inputs.release}" if versions else ""),
                    hint=hint,
                    problem=Problem.NO_PACKAGES,
                )
            # As in a plan, what a chosen package needs has to be there too.
            wanted = reachable(
                [each.id for each in config.package_filter.select(known)],
                lambda id_: [need for need in list_needs(known[id_]) if need in known],
            )
            packages = [
                _with_version(each, versions[each.id])
                for each in known.values()
                if each.id in wanted
            ]
            asked = {each.id.ecosystem for each in packages}
            unnamed = find_unnamed(
                {name: targets[name].registry.check_credentials for name in asked}
            )
            say_busy("asking registries", session)
            answers = await ask_all(packages, targets, unnamed)
            status = StatusAnswers(
                packages=packages,
                answers=answers,
                unreachable=await asyncio.to_thread(_find_unreachable, packages, answers, targets),
                places=[targets[name].registry.url for name in sorted(asked)],
                gone=[
                    f"{id_} {version}"
                    for id_, version in versions.items()
                    if id_ not in known and config.package_filter.has_package(id_)
                ],
            )
            if inputs.smoke:
                say_busy("resolving what is there", session)
                place = await group.enter(scratch(services.processes.environment))
                await asyncio.to_thread(_refuse_foreign, place)
                status = await _resolve_all(status, targets, services, config, place)
    text = session.credentials.redact(status_table(status))
    print(fit_lines(text, session.out, session.credentials.environment), file=session.out)
    return 0 if status.is_installable else 1


def _find_unreachable(
    packages: Sequence[Package],
    answers: Mapping[PackageId, Answer],
    targets: Mapping[str, Target],
) -> set[tuple[PackageId, PackageId]]:
    """Pairs of a package and a yanked one that clients do not take for it. Blocks."""
    known = {each.id: each for each in packages}
    published = {id_: it for id_, it in answers.items() if not isinstance(it, PackageError)}
    there = [each for each in packages if published.get(each.id)]
    needs = find_withdrawn_needs(there, known, published, targets)
    return {(need.package.id, need.on.id) for need in needs if need.fatal}


def _list_versions(release: str | Path, found: Sequence[Package]) -> Mapping[PackageId, str]:
    """Of a release, also of packages that are not here any more. Blocks; raises ConfigError."""
    if isinstance(release, Path):
        try:
            (recorded,) = load_results(release)
        except ConfigError as error:
            raise error.with_(hint=error.hint or _NAMES) from error.__cause__
        return {each.package.id: each.package.version for each in recorded.results}
    if not release:
        return {each.id: each.version for each in found if not each.unpublishable}
    return dict.fromkeys((each.id for each in found if each.gets_version or each.follows), release)


def _with_version(package: Package, version: str) -> Package:
    """Raises ConfigError for one that its ecosystem does not have: clients find it in commands and
    files.
    """
    if version == package.version:
        return package
    try:
        spelled = numbering_of(package.id.ecosystem).check(version)
    except ValueError as error:
        raise ConfigError(
            f"{package.id} cannot have the version {visible(clip(version, _MAX_CHARS))}",
            hint="Write one such as 1.4.0, or the path of a results.json; `--ecosystem` and "
            "`--packages` leave out what has other versions, and `working-directory` names a "
            "workspace elsewhere.",
        ) from error
    mark = "v" if package.id.ecosystem == "go" else ""
    return replace(package, version=f"{mark}{spelled}")


def _refuse_foreign(place: Path) -> None:
    """Raises PathError where clients would obey what another user has left above `place`: into /tmp
    anybody can write.
    """
    for path in (level / name for level in place.resolve().parents for name in _OBEYED):
        with suppress(OSError):
            if path.lstat().st_uid not in {0, os.getuid()}:
                raise PathError(
                    f"{path} belongs to another user, and clients would obey it",
                    hint="Remove it, or set TMPDIR to a directory of your own.",
                )


async def _resolve_all(
    status: StatusAnswers,
    targets: Mapping[str, Target],
    services: Services,
    config: PlanConfig,
    place: Path,
) -> StatusAnswers:
    """`status` with what clients say of the packages that are there; they work below `place`."""
    limit = asyncio.Semaphore(config.concurrency)
    turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def resolve(number: int, package: Package) -> str:
        """Why that fails; empty where it does not."""
        name = package.id.ecosystem
        try_out = targets[name].clients.try_out
        if try_out is None or isinstance(config.registries.get(name), Directory):
            return "no client reads a directory: serve it, and give its address"
        trial = try_out(package, place / name)
        directory = place / f"{name}-{number}"
        for file, text in trial.files.items():
            await asyncio.to_thread(write, directory / file, text)
        async with turns[name] if trial.alone else nullcontext(), limit:
            try:
                await services.processes.run(
                    trial.argv, cwd=directory, env=trial.env, timeout_s=config.task_timeout
                )
            except CommandFailed as error:
                client = Path(trial.argv[0]).name
                if error.problem is Problem.CANNOT_START:
                    return (
                        f"{client} cannot be started: install it, or name others in `--ecosystem`"
                    )
                said = [str(error), *filter(str.strip, error.log)]
                return f"{client}: {find_cause(error.log) or said[-1].strip()}"
        return ""

    there = [each for each in status.packages if status.find_state(each.id) == "there"]
    reasons = await gather_all(resolve(number, package) for number, package in enumerate(there))
    unresolved = {it.id: why for it, why in zip(there, reasons, strict=True) if why}
    return replace(status, unresolved=unresolved, is_smoked=True)
