"""What a plan cannot be carried out without, on this machine: found before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.errors import ConfigError
from releasekit.model import Action

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Plan


def missing_tools(plan: Plan, targets: Mapping[str, Target]) -> ConfigError | None:
    """One error for all ecosystems of which there is something to build; blocks for a moment."""
    errors = []
    for name, target in sorted(targets.items()):
        building = [
            planned.package
            for planned in plan.packages
            if planned.package.id.ecosystem == name and planned.action is Action.PUBLISH
        ]
        if building and target.missing_tool and (error := target.missing_tool(building)):
            errors.append(error)
    if not errors:
        return None
    return ConfigError("; ".join(map(str, errors)), hint=" ".join(each.hint for each in errors))
