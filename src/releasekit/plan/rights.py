"""Whether the identity of this run may publish what is planned, as far as that can be known before
the first upload: a registry that refuses the last package of a release has published all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.aio import gather_all
from releasekit.ecosystems.preflight import RightsFound
from releasekit.errors import PlanError, Transient, raise_all
from releasekit.fields import replace
from releasekit.model import SENT
from releasekit.problems import Problem
from releasekit.report.text import few, without_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.ecosystems.interface import Target
    from releasekit.ecosystems.preflight import Rights
    from releasekit.model import Package, Plan

# How many packages a message names, which all need the same.
_NAMED: Final = 50


async def refuse_unentitled(
    plan: Plan, targets: Mapping[str, Target], tags: Rights | None, *, proving: bool
) -> Plan:
    """`plan`, with notes on what is not known. Raises PlanError for all packages that their
    registries surely refuse, or `tags` does, one for each cause, and PackageError where one of
    these does not answer a run that is `proving`, as in `preflight.Rights`.
    """

    async def find(rights: Rights, own: Sequence[Package]) -> RightsFound:
        try:
            return await rights.find_rights(own, proving=proving)
        except Transient as error:
            if proving:
                raise
            said = str(error).removesuffix(".")
            return RightsFound(note=f"whether these credentials may publish is not known: {said}")

    sent = [each.package for each in plan.packages if each.action in SENT]
    asked = [(tags, sent)]
    for name, target in targets.items():
        own = [each for each in sent if each.id.ecosystem == name]
        asked.append((target.preflight.rights, own))
    answers = await gather_all(find(rights, own) for rights, own in asked if rights and own)
    causes: dict[tuple[str, str], list[str]] = {}
    for answer in answers:
        for package in sent:
            if error := answer.denied.get(package.id):
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
    raise_all(refused)
    notes = dict.fromkeys(answer.note for answer in answers if answer.note)
    return replace(plan, notes=(*plan.notes, *notes))
