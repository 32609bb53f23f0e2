"""The commands, in the order in which help lists them: a module and a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.cli.commands import (
    approve,
    change,
    check,
    init,
    notes,
    plan,
    preview,
    publish,
    reject,
    release_pr,
    report,
    status,
    trust,
    verify,
    version,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.config.command import Command

_LISTED: Final = (
    *(init, check, version, preview, release_pr, plan, publish, status, approve, reject),
    *(report, verify, notes, change, trust),
)
COMMANDS: Final[Mapping[str, Command]] = {each.COMMAND.name: each.COMMAND for each in _LISTED}
