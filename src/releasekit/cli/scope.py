"""What a command about versions opens, and reads again once versions are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.cli.session import open_targets, open_workspace
from releasekit.errors import ConfigError, raise_all
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.host.files import repository_of
from releasekit.plan.other_tools import Deciding, describe_unread, find_unread, refuse_unread
from releasekit.plan.unlisted_packages import mark_unread
from releasekit.report.text import describe_private
from releasekit.versions.rules import describe_idle_edges
from releasekit.versions.scope import make_scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.aio import Group
    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.ecosystems.interface import Target
    from releasekit.versions.edit import Discover
    from releasekit.versions.scope import Scope


async def open_scope(
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
    await commits.require_head()
    targets = await open_targets(group, config, session, services, survey.tree)
    about = config.package_filter
    notes = survey.describe_unlisted(config, targets)
    notes += filter(None, (each.versioning.describe_left_out() for each in targets.values()))
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
    if config.mode != "change":
        raise_all(refuse_unread(unread))
    idle = describe_idle_edges(config.extra_edges, scope.packages, scope.public, config.root)
    return replace(scope, notes=[*notes, *idle, *describe_unread(unread)])


def rediscover(group: Group, scope: Scope, session: Session) -> Discover:
    """Reads the workspace of the scope again, once versions are written."""

    async def discover(config: PlanConfig) -> Mapping[str, Target]:
        return await open_targets(group, config, session, scope.services, scope.holdings.tree)

    return discover
