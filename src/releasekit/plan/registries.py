"""What the registries show, and whether they let this run in. All are asked at once, so that one
run names every token that is missing or wrong.
"""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.errors import (
    Denied,
    DigestMismatch,
    MissingCredentials,
    PackageError,
    UnnamedRegistry,
    join_errors,
    raise_all,
)
from releasekit.fields import replace
from releasekit.http.traffic import attribute_to
from releasekit.model import Action, Staged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from releasekit.ecosystems.interface import Registry, Staging, Target
    from releasekit.model import Package, PackageId, PlannedPackage, Published

    Answer = Published | PackageError | None

# Four times the connections: more would only wait for one, with 17 kB each.
AT_ONCE: Final = 256
DROPPED: Final = (
    "it was staged by an earlier run, and is neither published nor staged any more: it was "
    "rejected, or the registry dropped it. Bump the version; or, if it was approved just now, run "
    "again in some minutes"
)


def find_unnamed(checks: Mapping[str, Callable[[], object]]) -> dict[str, UnnamedRegistry]:
    """Why a registry gets none of the credentials of this run, by ecosystem, as `checks` are."""
    found = {}
    for name in sorted(checks):
        try:
            checks[name]()
        except UnnamedRegistry as error:
            found[name] = error
        except MissingCredentials:
            pass  # a plan needs none, and uploads are refused later
    return found


def refuse_unnamed(unnamed: Mapping[str, UnnamedRegistry]) -> None:
    """Raises one error for all of them."""
    raise_all([*unnamed.values()])


async def ask_all(
    packages: Sequence[Package],
    targets: Mapping[str, Target],
    unnamed: Mapping[str, UnnamedRegistry] = MappingProxyType({}),
) -> dict[PackageId, Answer]:
    """What the registries show of every package, asked side by side, or why they do not say. The
    `unnamed` are asked without a token.
    """
    turns = asyncio.Semaphore(AT_ONCE)

    async def answer_of(package: Package) -> Answer:
        try:
            async with turns:
                with attribute_to(package.id):
                    return await targets[package.id.ecosystem].registry.lookup(package)
        except Denied as error:
            why = unnamed.get(package.id.ecosystem)
            return _without_token(error, why) if why else error
        except PackageError as error:
            return error

    answers = await gather_all(map(answer_of, packages))
    return dict(zip((package.id for package in packages), answers, strict=True))


async def look_up_all(
    packages: Sequence[Package],
    targets: Mapping[str, Target],
    *,
    uploading: bool,
    unnamed: Mapping[str, UnnamedRegistry] = MappingProxyType({}),
) -> tuple[dict[PackageId, Published | None], dict[PackageId, PackageError]]:
    """What the registries show of every package, asked side by side, and why some of them could
    not be asked: only a run that is `uploading` has to know, and raises the first of these errors.

    What is published by no registry may stay unknown until its turn comes.

    Raises Denied with one reason for each registry that refuses to be read, and, where this run is
    `uploading`, with the credentials that are missing. The `unnamed` are asked without a token.
    """
    answers = await ask_all(packages, targets, unnamed)
    errors = {id_: answer for id_, answer in answers.items() if isinstance(answer, PackageError)}
    denied: dict[str, Denied] = {}
    for id_, error in errors.items():
        if isinstance(error, Denied):
            denied.setdefault(id_.ecosystem, error)
    if denied:
        wanting = {id_.ecosystem for id_, answer in answers.items() if answer is None}
        missing = _find_missing(wanting - denied.keys(), targets) if uploading else []
        raise join_errors([*denied.values(), *missing])
    final = [it for id_, it in errors.items() if targets[id_.ecosystem].is_repeatable]
    if final and uploading:
        raise final[0]
    seen = {id_: it for id_, it in answers.items() if not isinstance(it, PackageError)}
    return seen, errors


def check_credentials(ecosystems: Iterable[str], targets: Mapping[str, Target]) -> None:
    """Raises MissingCredentials for all of these ecosystems where uploads have none."""
    raise_all(_find_missing(ecosystems, targets))


def _find_missing(
    ecosystems: Iterable[str], targets: Mapping[str, Target]
) -> list[MissingCredentials]:
    missing = []
    for name in sorted(ecosystems):
        try:
            targets[name].registry.check_credentials()
        except MissingCredentials as error:
            missing.append(error)
    return missing


def _without_token(error: Denied, why: UnnamedRegistry) -> Denied:
    return Denied(
        f"{error}; what it has is not known without the token, which was not sent: {why}",
        hint=why.hint,
    )


async def refresh_staged(
    packages: Sequence[PlannedPackage], targets: Mapping[str, Target]
) -> list[PlannedPackage]:
    """`packages`, with those that earlier runs staged as their registries show them now. A package
    that is only claimed to be staged has no `staged` unless its registry confirms it.
    """
    awaited: dict[str, list[PlannedPackage]] = {}
    for planned in packages:
        if planned.action is Action.AWAIT:
            awaited.setdefault(planned.package.id.ecosystem, []).append(planned)
    answers = await gather_all(
        _refresh_ecosystem(own, staging, targets[name].registry)
        for name, own in awaited.items()
        if (staging := targets[name].staging) is not None
    )
    found = {planned.package.id: planned for answer in answers for planned in answer}
    return [found.get(planned.package.id, planned) for planned in packages]


async def _refresh_ecosystem(
    packages: Sequence[PlannedPackage], staging: Staging, registry: Registry
) -> list[PlannedPackage]:
    """A token that may not ask for the first package may not ask for the others either."""

    async def refresh_other(planned: PlannedPackage) -> PlannedPackage:
        try:
            return await _refresh(planned, staging, registry)
        except Denied:
            return planned

    first, *others = packages
    try:
        seen = await _refresh(first, staging, registry)
    except Denied:
        return []
    return [seen, *await gather_all(map(refresh_other, others))]


async def _refresh(planned: PlannedPackage, staging: Staging, registry: Registry) -> PlannedPackage:
    """Raises Denied; where a registry gives no answer, what is known stays."""
    try:
        with attribute_to(planned.package.id):
            found = await staging.staged(planned.package, planned.artifacts)
            # It may have been approved since it was looked up.
            dropped = found is None and await registry.lookup(planned.package) is None
    except DigestMismatch as mismatch:
        return replace(planned, action=Action.REFUSE, reason=str(mismatch), staged=None)
    except Denied:
        raise
    except PackageError:
        return planned
    if dropped and planned.staged is not None:
        return replace(planned, action=Action.REFUSE, reason=DROPPED, staged=None)
    known = planned.staged
    if found is not None and known is not None and not found.id:
        # Some registries tell no id; the journal has it.
        found = Staged(id=known.id, url=known.url or found.url, tag=found.tag or known.tag)
    return replace(planned, staged=found or known)
