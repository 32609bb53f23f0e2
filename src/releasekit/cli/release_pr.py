"""The command release-pr: one pull request with the versions of the next release."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from releasekit.announce.post_release import find_forge, require_token
from releasekit.cli.scope import open_scope, rediscover
from releasekit.cli.session import open_command, refuse_foreign, start_processes, take_turn
from releasekit.errors import ConfigError
from releasekit.fields import replace
from releasekit.git.remote import Remote
from releasekit.git.settings import GitSettings
from releasekit.host.files import find_top
from releasekit.host.scratch import closed_scratch
from releasekit.plan.warnings import refuse_warned
from releasekit.report.release_pr import release_pr_line, release_pr_outputs, release_pr_summary
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs, versions_summary, versions_table
from releasekit.text.escape import visible
from releasekit.versions.decision import decide_versions
from releasekit.versions.edit import edit, write
from releasekit.versions.release_branch import name_branch
from releasekit.versions.release_pr import Keeper, list_changed_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from releasekit.aio import Group
    from releasekit.announced import ForgeKind
    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.host.ci import CI
    from releasekit.host.forges import ForgePlace

_NEEDS: Final[Mapping[ForgeKind, str]] = {
    "github": "`contents: write` and `pull-requests: write`",
    "gitlab": "the scope `api` and the role Developer: a job's own token can neither open nor "
    "change merge requests",
    "gitea": "the scope `write:repository`",
}


async def run(config: Config, session: Session) -> int:
    """Open it, bring it up to date, or close it."""
    refuse_foreign(config, session)
    async with open_command(config, session) as group:
        at = await _find_forge(group, config, session)
        needs = _NEEDS[at.kind]
        token = require_token(session.credentials, session.ci, at, asked="release-pr", needs=needs)
        seal = await take_turn(group, config, session)
        scope = await open_scope(group, config, session)
        decided = await decide_versions(scope)
        into = _require_branch(scope.branch, session.ci)
        refuse_warned(decided.view.warned, config.levels)
        edited = await asyncio.to_thread(edit, decided, scope.targets)
        decided = replace(decided, view=decided.view.with_moved(edited.moved))
        files = await list_changed_files(scope, edited.changes)
        if files:
            discover = rediscover(group, scope, session)
            await write(decided, edited, seal, discover, keeps=False)
        sandbox = scope.services.processes.sandbox
        closed = closed_scratch(session.credentials.environment, sandbox)
        keeper = Keeper.of(decided, files, at, token, await group.enter(closed), into)
        kept = await keeper.keep()
    view, changes = decided.view, edited.names(config.root)
    outputs = versions_outputs(view, changes, config.root) | release_pr_outputs(kept)
    for name, value in outputs.items():
        session.runner.output(name, value)
    if config.summary:
        session.runner.summary(f"{release_pr_summary(kept)}\n{versions_summary(view)}")
    if config.annotations:
        session.runner.annotate("warning", warning_annotations(view.warned))
        if kept.operation == "edited":
            session.runner.annotate("warning", [("release pull request", kept.words)])
    print(versions_table(view, changes, verbose=config.verbose), file=session.out)
    print(release_pr_line(kept), file=session.out, flush=True)
    return 0


async def _find_forge(group: Group, config: PlanConfig, session: Session) -> ForgePlace:
    """Asked before a build could change remotes. Raises ConfigError."""
    processes = await start_processes(group, config, session, ())
    top, name = find_top(config.root), config.tagging.remote
    remote = Remote(name, GitSettings(top, processes, session.credentials.environment))
    return await find_forge(remote, name, session.ci, asked="release-pr")


def _require_branch(branch: str, ci: CI) -> str:
    """The branch that is released from. Raises ConfigError where there is none."""
    if not branch or ci.pull_request or branch.startswith(name_branch("")):
        ref = visible(ci.ref or branch or "a detached HEAD")
        raise ConfigError(
            f"a release pull request is made for a branch, and not for {ref}",
            hint="Run it on pushes to the branch that is released from: `on: push: branches: "
            '[main]`, or `if: $CI_COMMIT_BRANCH == "main"` at GitLab.',
        )
    return branch
