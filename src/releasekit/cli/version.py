"""The command version: the versions that the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.cli.commands.version import VersionInputs
from releasekit.cli.scope import open_scope, rediscover
from releasekit.cli.session import open_command, take_turn
from releasekit.plan.warnings import refuse_warned
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs, versions_summary, versions_table
from releasekit.versions.addition import find_title
from releasekit.versions.decision import decide_versions
from releasekit.versions.edit import edit, write
from releasekit.versions.snapshot import make_snapshot

if TYPE_CHECKING:
    from releasekit.cli.session import Session
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Write the next versions; with `dry_run` or `check`, only show them."""
    inputs = config.own(VersionInputs)
    writes = not (inputs.dry_run or inputs.check)
    async with open_command(config, session) as group:
        seal = await take_turn(group, config, session) if writes else None
        scope, title = await open_scope(group, config, session), ""
        if config.snapshot:
            title = await find_title(scope.commits, session.ci.read_pull_request())
        decided = await decide_versions(scope, title=title)
        if config.snapshot:
            decided = await make_snapshot(decided, config.snapshot)
        edited = await asyncio.to_thread(edit, decided, scope.targets)
        view = decided.view.with_moved(edited.moved)
        if seal and edited.changes and not view.is_refused:
            await write(decided, edited, seal, rediscover(group, scope, session))
    changes = edited.names(config.root)
    for name, value in versions_outputs(view, changes, config.root).items():
        session.runner.output(name, value)
    if config.summary:
        session.runner.summary(versions_summary(view))
    if config.annotations:
        session.runner.annotate("warning", warning_annotations(view.warned))
    table = versions_table(view, changes, verbose=config.verbose or bool(config.snapshot))
    print(table, file=session.out)
    refuse_warned(view.warned, config.levels)
    return 1 if inputs.check and changes else 0
