"""Publishing exactly what was planned: an earlier `plan` held against this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from releasekit.errors import ConfigError, PlanError
from releasekit.fields import replace
from releasekit.host.files import read_file
from releasekit.model import (
    SENT,
    Action,
    Dependency,
    DependencyKind,
    Package,
    PackageId,
    Plan,
    PlannedPackage,
)
from releasekit.problems import Problem
from releasekit.report.plans import PLAN_SCHEMA
from releasekit.report.results import MAX_PACKAGES
from releasekit.report.text import few
from releasekit.text.commands import spell
from releasekit.text.escape import clip, visible
from releasekit.text.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.config import Config

# A plan of 10,000 packages is about 10 MB.
MAX_BYTES = 32 * 1024 * 1024


class PlanFile(Struct, frozen=True):
    """What was planned: the sources, and each package with its fingerprint, in publish order."""

    path: Path
    commit: str
    digest: str
    packages: tuple[PlannedPackage, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises ConfigError for a file that is not a plan of ours."""
        hint = f"Write it with {spell('plan --plan-file FILE')}."
        data = read_file(path, max_bytes=MAX_BYTES)
        try:
            document = parse_json(data, max_bytes=None)
            if document["schema"] != PLAN_SCHEMA:
                raise ConfigError(
                    f"{path}: plan schema {document['schema']!r}, this version reads {PLAN_SCHEMA}",
                    hint=hint,
                    problem=Problem.PLAN_FILE,
                )
            rows = document["packages"]
            if len(rows) > MAX_PACKAGES:
                raise ConfigError(
                    f"{path}: has more than {MAX_PACKAGES} packages", problem=Problem.PLAN_FILE
                )
            packages = tuple(_planned(row, path.parent) for row in rows)
            return cls(path, str(document["commit"]), str(document["digest"]), packages)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            why = f": {error}" if isinstance(error, ValueError) else ""
            raise ConfigError(
                f"{path}: is not a plan file{why}", hint=hint, problem=Problem.PLAN_FILE
            ) from error

    def narrowed(self, config: Config) -> Config:
        """`config` with these packages, so far as it chooses them, as the only ones of the run, and
        none of them to publish that the file does not publish.
        """
        about = config.package_filter
        ours = [planned for planned in self.packages if about.has_package(planned.package.id)]
        found = [planned for planned in ours if not config.shard or planned.shard == config.shard]
        if ours and not found:
            known = {f"{planned.package.id.ecosystem} {planned.shard}" for planned in ours}
            raise ConfigError(
                f"{self.path}: has no part {config.shard}",
                hint=f"Its parts: {few(sorted(known), 10)}."
                if any(planned.shard for planned in ours)
                else "It was not split: plan with `shards`.",
                problem=Problem.SHARDS,
            )
        if not found:
            raise ConfigError(
                f"{self.path}: none of its packages is chosen by `ecosystem`, `packages` and "
                "`exclude-packages`",
                hint="Leave these out to publish all of the plan.",
                problem=Problem.NOTHING_MATCHES,
            )
        return replace(
            config,
            packages=tuple(str(planned.package.id) for planned in found),
            exclude_packages=(),
            not_to_publish=frozenset(
                planned.package.id for planned in found if planned.action not in SENT
            ),
        )

    def check(self, plan: Plan) -> None:
        """Raises PlanError when `plan` would publish anything else."""
        hint = "Check out what was planned, or plan again."
        if plan.commit != self.commit:
            raise PlanError(
                f"{self.path}: was planned at {self.commit or 'no commit'}, the sources are at "
                f"{plan.commit or 'no commit'}",
                hint=hint,
                problem=Problem.NOT_AS_PLANNED,
            )
        fingerprints = {planned.package.id: planned.fingerprint for planned in self.packages}
        for planned in plan.packages:
            if fingerprints[planned.package.id] != planned.fingerprint:
                raise PlanError(
                    f"{self.path}: {planned.package.id} is not what was planned: its version, "
                    "dependencies, manifest, files that were built elsewhere, or registry differ",
                    hint=hint,
                    problem=Problem.NOT_AS_PLANNED,
                )
        published = {each.package.id for each in self.packages if each.action in SENT}
        for package in plan.foreign:
            if package.id not in published:
                raise PlanError(
                    f"{self.path}: {package.id} would be waited for, and this plan does not "
                    "publish it",
                    hint=f"Publish {package.id.name} first, or plan again with it.",
                    problem=Problem.NOT_AS_PLANNED,
                )

    def plan(self) -> Plan:
        """The plan as it was written, to account for every package of it. Its paths are not those
        of this machine.
        """
        return Plan(packages=self.packages, private=(), commit=self.commit, digest=self.digest)


def _planned(row: Mapping[str, Any], place: Path) -> PlannedPackage:
    """Raises KeyError, TypeError or ValueError for a row that is none of ours."""
    identity = PackageId(str(row["ecosystem"]), str(row["name"]))
    if any(character in str(identity) for character in "*?["):
        # As a pattern it would choose others.
        raise ValueError(f"{visible(clip(str(identity), 100))} is the name of no package")
    package = Package(
        id=identity,
        version=str(row["version"]),
        directory=place,
        manifest=place,
        dependencies=tuple(
            Dependency(
                on=PackageId.parse(str(edge["on"])),
                kind=DependencyKind(edge["kind"]),
                requirement=str(edge["requirement"]),
            )
            for edge in row["dependencies"]
        ),
    )
    return PlannedPackage(
        package=package,
        action=Action(row["action"]),
        reason=str(row["reason"]),
        fingerprint=str(row["fingerprint"]),
        shard=str(row.get("shard", "")),
    )
