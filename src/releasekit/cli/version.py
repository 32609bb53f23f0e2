"""The command version: the versions that the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from releasekit.cli.commands.version import VersionInputs
from releasekit.cli.notes import require_head
from releasekit.cli.session import open_command, open_targets, open_workspace, take_turn
from releasekit.errors import ConfigError, join_errors
from releasekit.git.commits import Commits
from releasekit.host.files import repository_of
from releasekit.plan.other_tools import Deciding, describe_unread, find_unread, refuse_unread
from releasekit.plan.unlisted_packages import mark_unread
from releasekit.plan.warnings import refuse_warned
from releasekit.report.remarks import warning_annotations
from releasekit.report.text import describe_private
from releasekit.report.versions import versions_outputs, versions_summary, versions_table
from releasekit.versions.addition import find_title
from releasekit.versions.decision import decide_versions
from releasekit.versions.edit import edit, write
from releasekit.versions.scope import describe_idle_bumps, make_scope
from releasekit.versions.snapshot import make_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.aio import Group
    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.ecosystems.interface import Target
    from releasekit.versions.edit import Discover
    from releasekit.versions.scope import Scope


async def run(config: Config, session: Session) -> int:
    """Write the next versions; with `dry_run` or `check`, only show them."""
    inputs = config.own(VersionInputs)
    writes = not (inputs.dry_run or inputs.check)
    async with open_command(config, session) as group:
        seal = await take_turn(group, config, session) if writes else None
        scope, title = await open_versions(group, config, session), ""
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
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(versions_summary(view))
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(view.warned))
    table = versions_table(view, changes, verbose=config.verbose or bool(config.snapshot))
    print(table, file=session.out)
    refuse_warned(view.warned, config.levels)
    return 1 if inputs.check and changes else 0


async def open_versions(
    group: Group, config: Config, session: Session, since: str | None = None
) -> Scope:
    """Open for as long as `group` is. `since` is what a preview is compared with."""
    top = repository_of(config.root)
    if top is None:
        raise ConfigError(
            f"{config.root} is in no git repository, and its history says what has changed",
            hint="Run it in a clone of the repository.",
        )
    config, survey, services = await open_workspace(group, config, session)
    commits = Commits(top, services.processes)
    if config.mode != "change":  # which takes no history
        await require_head(commits)
    targets = await open_targets(group, config, session, services, survey.tree)
    about = config.package_filter
    notes = survey.describe_unlisted(config, targets)
    files = survey.describe_unread(about)
    # Where anything is found, what may get no version is said with the versions.
    is_empty = not any(each.workspace.packages for each in targets.values())
    beside = [*notes, *files] if is_empty else ()
    scope = await make_scope(
        config, targets, services, commits, survey.tree, since=since, unlisted=beside
    )
    notes += map(mark_unread, files)
    if not scope.versioned:
        private = [each for each in scope.packages.values() if each.unpublishable]
        notes += describe_private([each for each in private if about.has_package(each.id)])
    deciding = Deciding(
        packages=scope.versioned,
        branch=scope.branch,
        excluded=config.exclude_packages,
        given=config.given.keys(),
    )
    unread = list(find_unread((top, config.root), deciding, config.written))
    # A change file is written whatever the version will be.
    if config.mode != "change" and (refused := refuse_unread(unread)):
        raise join_errors(refused)
    idle = describe_idle_bumps(scope)
    return replace(scope, notes=[*notes, *idle, *describe_unread(unread)])


def rediscover(group: Group, scope: Scope, session: Session) -> Discover:
    """Reads the workspace of the scope again, once versions are written."""

    async def discover(config: Config) -> Mapping[str, Target]:
        return await open_targets(group, config, session, scope.services, scope.holdings.tree)

    return discover
