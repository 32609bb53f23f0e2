"""The command version: the versions that the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.aio import Group
from releasekit.cli.decision import decide_versions, open_versions
from releasekit.cli.edit_versions import edit, write
from releasekit.cli.interruption import Interruption
from releasekit.cli.session import refuse_elsewhere, take_turn
from releasekit.cli.snapshot import make_snapshot
from releasekit.plan.warnings import refuse_warned
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs, versions_summary, versions_table

if TYPE_CHECKING:
    from releasekit.cli.session import Session
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Write the next versions; with `dry_run` or `check`, only show them."""
    writes = not (config.dry_run or config.check)
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    session.actions.watch_files()  # build backends may have to tell versions
    with Interruption("cancelled"):
        async with Group() as group:
            seal = await take_turn(group, config, session) if writes else None
            decided = await decide_versions(await open_versions(group, config, session))
            if config.snapshot:
                decided = await make_snapshot(decided, config.snapshot)
            view = decided.view
            edited = await asyncio.to_thread(edit, decided, decided.workspace.targets)
            if seal and edited.changes and not view.is_refused:
                await write(decided, edited, seal, group, session)
    session.actions.restore_files(for_good=True)
    changes = edited.names(config.root)
    for name, value in versions_outputs(view, changes, config.root).items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(versions_summary(view))
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(view.warned))
    table = versions_table(view, changes, verbose=config.verbose or bool(config.snapshot))
    print(table, file=session.out, flush=True)
    refuse_warned(view.warned)
    return 1 if config.check and changes else 0
