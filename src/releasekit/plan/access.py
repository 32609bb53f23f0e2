"""What the registries show, and whether they let this run in: of all of them at once, so that one
run names every token that is missing or wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.errors import Denied, MissingCredentials, PackageError
from releasekit.http.traffic import billed_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Published

    Answer = Published | PackageError | None


async def look_up(
    packages: Sequence[Package], targets: Mapping[str, Target], *, uploading: bool
) -> dict[PackageId, Published | None]:
    """What the registries show of every package, asked side by side.

    Raises Denied, with one reason for each registry that refuses to be read, and also with what is
    missing to go on where this run is `uploading`.
    """

    async def answer_of(package: Package) -> Answer:
        try:
            with billed_to(package.id):
                return await targets[package.id.ecosystem].registry.lookup(package)
        except PackageError as error:
            return error

    answers = dict(
        zip((p.id for p in packages), await gather_all(map(answer_of, packages)), strict=True)
    )
    errors = {id_: answer for id_, answer in answers.items() if isinstance(answer, PackageError)}
    denied: dict[str, Denied] = {}
    for id_, error in errors.items():
        if isinstance(error, Denied):
            denied.setdefault(id_.ecosystem, error)
    if denied:
        wanting = {id_.ecosystem for id_, answer in answers.items() if answer is None}
        missing = _missing(wanting - denied.keys(), targets) if uploading else []
        raise _as_one([*denied.values(), *missing])
    for error in errors.values():
        raise error
    return {id_: answer for id_, answer in answers.items() if not isinstance(answer, PackageError)}


def check_credentials(ecosystems: Iterable[str], targets: Mapping[str, Target]) -> None:
    """Raises MissingCredentials for all of these ecosystems where uploads have none."""
    if missing := _missing(ecosystems, targets):
        raise _as_one(missing)


def _missing(ecosystems: Iterable[str], targets: Mapping[str, Target]) -> list[MissingCredentials]:
    missing = []
    for name in sorted(ecosystems):
        try:
            targets[name].registry.check_credentials()
        except MissingCredentials as error:
            missing.append(error)
    return missing


def _as_one(
    errors: Sequence[Denied | MissingCredentials],
) -> Denied | MissingCredentials:
    """Of the class of the first; each reason and each hint once."""
    first, *others = errors
    if not others:
        return first
    reasons = dict.fromkeys(map(str, errors))
    hints = dict.fromkeys(error.hint for error in errors if error.hint)
    return type(first)("; ".join(reasons), hint=" ".join(hints))
