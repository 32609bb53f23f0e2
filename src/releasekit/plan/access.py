"""What the registries show, and whether they let this run in: of all of them at once, so that one
run names every token that is missing or wrong.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from releasekit.aio import gather_all
from releasekit.errors import Denied, MissingCredentials, PackageError, UnnamedRegistry
from releasekit.http.traffic import billed_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Package, PackageId, Published

    Answer = Published | PackageError | None


def find_unnamed(checks: Mapping[str, Callable[[], None]]) -> dict[str, UnnamedRegistry]:
    """Why registries get none of the credentials that there are: by ecosystem, as `checks` are."""
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
    if unnamed:
        raise _as_one([*unnamed.values()])


async def look_up(
    packages: Sequence[Package],
    targets: Mapping[str, Target],
    *,
    uploading: bool,
    unnamed: Mapping[str, UnnamedRegistry] = MappingProxyType({}),
) -> dict[PackageId, Published | None]:
    """What the registries show of every package, asked side by side.

    Raises Denied, with one reason for each registry that refuses to be read, and also with what is
    missing to go on where this run is `uploading`. Those of the `unnamed` were asked as anybody.
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
            why = unnamed.get(id_.ecosystem)
            denied.setdefault(id_.ecosystem, _without_token(error, why) if why else error)
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


def _without_token(error: Denied, why: UnnamedRegistry) -> Denied:
    return Denied(
        f"{error}; what it has is not known without the token, which was not sent: {why}",
        hint=why.hint,
    )


def _as_one(
    errors: Sequence[Denied | MissingCredentials | UnnamedRegistry],
) -> Denied | MissingCredentials | UnnamedRegistry:
    """Of the class of the first; each reason and each hint once."""
    first, *others = errors
    if not others:
        return first
    reasons = dict.fromkeys(map(str, errors))
    hints = dict.fromkeys(error.hint for error in errors if error.hint)
    return type(first)("; ".join(reasons), hint=" ".join(hints))
