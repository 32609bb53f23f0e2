"""What a run is going to sign, before anything is built, and what keeps the rest from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from releasekit.attested import COMPLETE, Obstacle
from releasekit.errors import PlanError
from releasekit.fields import replace
from releasekit.model import SENT
from releasekit.problems import Problem
from releasekit.provenance.conditions import NO_JOB
from releasekit.report.text import few, packages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.values import AttestationMode
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Plan
    from releasekit.provenance.job import Job


def with_provenance(
    plan: Plan,
    mode: AttestationMode,
    targets: Mapping[str, Target],
    job: Job | Obstacle,
    *,
    uploading: bool,
) -> Plan:
    """`plan` with what is to be attested in the name of `job`, and its words about that. A run that
    is not `uploading` is never refused: a plan, and a dry run, may be made where nothing can be
    signed, as for a pull request.

    Raises PlanError where attestations are `required` of a release, and something has to go out
    without.
    """
    sent = [planned.package for planned in plan.packages if planned.action in SENT]
    if not sent:
        return plan
    signing = {each: by for each in sent if (by := targets[each.id.ecosystem].attesting)}
    wishes = {package: by.wish(package) for package, by in signing.items()}
    wished = [str(package.id) for package, wish in wishes.items() if wish]
    if mode == "off":
        return replace(plan, provenance=f"off, and {_asked(wished)}" if wished else "")
    is_required = mode == "required" and uploading
    if isinstance(job, Obstacle):
        if is_required:
            refuse_unattested({job: []})
        # Users who expect none need no message.
        quiet = job == NO_JOB and mode == "auto" and not wished
        words = f"nothing is attested: {job}{f' {_asked(wished)}.' if wished else ''}"
        return plan if quiet else replace(plan, provenance=words)
    met = {it: by.obstacle(it, job) for it, by in signing.items() if wishes[it] is not False}
    attested = {package.id for package, obstacle in met.items() if obstacle is None}
    obstacles: dict[Obstacle, list[str]] = {}
    for package, obstacle in met.items():
        if obstacle is not None:
            obstacles.setdefault(obstacle, []).append(str(package.id))
    if obstacles and is_required:
        refuse_unattested(obstacles)
    made = [packages(len(attested)) + " to attest"] if attested else []
    words = ", ".join([*made, COMPLETE])
    without = [f"{few(names)}: {each}" for each, names in obstacles.items()]
    return replace(
        plan,
        packages=tuple(
            replace(planned, attest=planned.package.id in attested) for planned in plan.packages
        ),
        provenance=f"{words}; not attested: {' '.join(without)}" if without else words,
    )


def _asked(wished: Sequence[str]) -> str:
    asks = "ask" if len(wished) > 1 else "asks"
    return f"{few(wished)} {asks} for it (`publishConfig.provenance`)"


def refuse_unattested(obstacles: Mapping[Obstacle, Sequence[str]]) -> NoReturn:
    """Raises PlanError; each obstacle with the packages that meet it, or none for all of them."""
    reasons = [
        f"{few(names)}: {each.condition}" if names else each.condition
        for each, names in obstacles.items()
    ]
    raise PlanError(
        f"attestations are required, and cannot be made: {'; '.join(reasons)}",
        hint=" ".join(each.cure for each in obstacles),
        problem=Problem.CANNOT_ATTEST,
    )
