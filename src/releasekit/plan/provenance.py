"""What a run is going to sign, before anything is built, and what keeps the rest from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from releasekit.attested import Obstacle
from releasekit.causes.refusals import CannotAttest
from releasekit.model import Action
from releasekit.provenance.conditions import NO_JOB
from releasekit.report.text import few, packages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Target
    from releasekit.model import Plan, PlannedPackage
    from releasekit.provenance.job import Job

SENT: Final = frozenset({Action.PUBLISH, Action.UPLOAD})


def with_provenance(
    plan: Plan, config: Config, targets: Mapping[str, Target], job: Job | Obstacle
) -> Plan:
    """`plan` with what is to be attested in the name of `job`, and its words about that.

    Raises PlanError where attestations are `required` of a release, and something has to go out
    without.
    """
    sent = [planned for planned in plan.packages if planned.action in SENT]
    wishes = {
        planned.package.id: attesting.wish(planned.package)
        for planned in sent
        if (attesting := targets[planned.package.id.ecosystem].attesting) is not None
    }
    wished = [str(package) for package, wish in wishes.items() if wish]
    if config.attestations == "off":
        words = f"off, and {few(wished)} asks for it (`publishConfig.provenance`)"
        return replace(plan, provenance=words if wished else "")
    obstacles: dict[Obstacle, list[str]] = {}
    attested = set()
    for planned in sent:
        package = planned.package
        attesting = targets[package.id.ecosystem].attesting
        if attesting is None or wishes[package.id] is False:
            continue
        obstacle = job if isinstance(job, Obstacle) else attesting.obstacle(package, job)
        if obstacle is None:
            attested.add(package.id)
        else:
            obstacles.setdefault(obstacle, []).append(str(package.id))
    if isinstance(job, Obstacle) and sent:
        obstacles.setdefault(job, [])
    required = config.attestations == "required"
    if required and obstacles and config.mode == "publish" and not config.dry_run:
        raise CannotAttest(
            "attestations are required, and cannot be made"
            + "; ".join(f"{_of(names)}: {each.condition}" for each, names in obstacles.items()),
            hint=" ".join(each.cure for each in obstacles),
        )
    if obstacles.keys() == {NO_JOB} and not (required or wished):
        # Where nobody expects any, nobody has to be told.
        return plan
    steps = tuple(
        replace(planned, attest=planned.package.id in attested) for planned in plan.packages
    )
    return replace(plan, packages=steps, provenance=_words(sent, len(attested), obstacles))


def _of(names: Sequence[str]) -> str:
    return f" for {few(names)}" if names else ""


def _words(
    sent: Sequence[PlannedPackage], attested: int, obstacles: Mapping[Obstacle, Sequence[str]]
) -> str:
    if not sent:
        return ""
    alone = next((each for each in obstacles if len(obstacles) == 1 and not attested), None)
    if alone is not None and (len(obstacles[alone]) in {0, len(sent)}):
        return f"nothing is attested: {alone}"
    made = [f"{packages(attested)} attested" if attested else ""]
    made += [f"not{_of(names)}: {each}" for each, names in obstacles.items()]
    return "; ".join(filter(None, [*made, "all files in the release statement"]))
