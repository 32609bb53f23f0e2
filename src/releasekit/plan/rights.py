"""Whether the identity of this run may publish what is planned, as far as that can be known before
the first upload: a registry that refuses the last package of a release has published all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.errors import PlanError, join_errors
from releasekit.model import SENT
from releasekit.problems import Problem
from releasekit.report.text import few, without_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.ecosystems.interface import Target
    from releasekit.errors import Denied
    from releasekit.model import PackageId, PlannedPackage

# How many packages a message names, which all need the same.
_NAMED: Final = 50


async def refuse_unentitled(
    planned: Iterable[PlannedPackage], targets: Mapping[str, Target], *, proving: bool
) -> None:
    """Raises PlanError for all packages that their registries surely refuse, one for each cause,
    and PackageError where a registry does not answer. `proving` as in `interface.Rights`.
    """
    sent = [each.package for each in planned if each.action in SENT]

    async def find_denied(name: str) -> Mapping[PackageId, Denied]:
        own = [each for each in sent if each.id.ecosystem == name]
        rights = targets[name].rights
        return await rights.find_denied(own, proving=proving) if rights and own else {}

    causes: dict[tuple[str, str], list[str]] = {}
    for denied in await gather_all(map(find_denied, targets)):
        for package in sent:
            if error := denied.get(package.id):
                cause = without_name(str(error), package), error.hint
                causes.setdefault(cause, []).append(str(package.id))
    refused = [
        PlanError(
            f"{few(names, _NAMED)}: {why}; nothing was sent",
            hint=hint,
            problem=Problem.NO_RIGHT,
        )
        for (why, hint), names in causes.items()
    ]
    if refused:
        raise join_errors(refused)
