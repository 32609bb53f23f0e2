"""The command version: the versions that the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.cli.commands.version import VersionInputs
from releasekit.cli.decision import decide_versions, open_versions
from releasekit.cli.edit_versions import edit, write
from releasekit.cli.preview import find_addition
from releasekit.cli.session import open_command, take_turn
from releasekit.cli.snapshot import make_snapshot
from releasekit.plan.warnings import refuse_warned
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs, versions_summary, versions_table

if TYPE_CHECKING:
    from releasekit.cli.session import Session
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Write the next versions; with `dry_run` or `check`, only show them."""
    inputs = config.own(VersionInputs)
    writes = not (inputs.dry_run or inputs.check)
    async with open_command(config, session) as group:
        seal = await take_turn(group, config, session) if writes else None
        workspace, title = await open_versions(group, config, session), ""
        if config.snapshot and (request := session.ci.read_pull_request()):
            _, title = await find_addition(workspace.commits, "", request)
        decided = await decide_versions(workspace, title=title)
        if config.snapshot:
            decided = await make_snapshot(decided, config.snapshot)
        edited = await asyncio.to_thread(edit, decided, decided.workspace.targets)
        view = decided.view.with_moved(edited.moved)
        if seal and edited.changes and not view.is_refused:
            await write(decided, edited, seal, group, session)
    changes = edited.names(config.root)
    for name, value in versions_outputs(view, changes, config.root).items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(versions_summary(view))
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(view.warned))
    table = versions_table(view, changes, verbose=config.verbose or bool(config.snapshot))
    print(table, file=session.out)
    refuse_warned(view.warned, config.levels)
    return 1 if inputs.check and changes else 0
