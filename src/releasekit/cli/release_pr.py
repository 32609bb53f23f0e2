"""The command release-pr: one pull request with the versions of the next release, kept up to date.

It is a function of the commit at hand. What is read of it is its branch: neither title, body,
labels nor comments. A branch that somebody has edited is left alone. GitHub does not compare before
it writes a title or a body. So a run looks right before and right after it: where a newer run has
moved the branch meanwhile, it writes what that one says, and where the request was merged or
closed, it gives it back what it said.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from releasekit.announce.forge import LookAgain
from releasekit.announce.post_release import find_forge, open_github, require_token
from releasekit.announce.pull_requests import BOT, FileEdit, GitHubPullRequests
from releasekit.cli.decision import decide_versions, open_versions
from releasekit.cli.edit_versions import edit, write, write_notes
from releasekit.cli.session import open_command, refuse_foreign, start_processes, take_turn
from releasekit.decided import Level
from releasekit.errors import ConfigError
from releasekit.git.commits import Commits, parse_id
from releasekit.git.forge_repository import ForgeRepository
from releasekit.git.objects import FILE_MODE, Object
from releasekit.git.remote import Remote
from releasekit.git.settings import GitSettings
from releasekit.host.ci import SERVER_URL
from releasekit.host.files import exists, read_file, repository_of
from releasekit.host.forges import page_of_new_file
from releasekit.host.scratch import closed_scratch
from releasekit.http.origins import require_safe
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.plan.warnings import refuse_warned
from releasekit.report.release_pr import (
    DONE,
    Kept,
    release_pr_line,
    release_pr_outputs,
    release_pr_summary,
    write_body,
    write_title,
)
from releasekit.report.remarks import warning_annotations
from releasekit.report.text import packages
from releasekit.report.versions import versions_outputs, versions_summary, versions_table
from releasekit.text.commands import spell
from releasekit.text.escape import visible
from releasekit.versioning.change_files import Entry, format_change_file
from releasekit.versioning.edits import refuse_edit
from releasekit.versioning.messages import write_base, write_trailers
from releasekit.versioning.release_branch import (
    ReleaseBranch,
    name_branch,
    name_edits,
    read_release_branch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.aio import Group
    from releasekit.announce.pull_requests import ForgePullRequest
    from releasekit.cli.decision import Decided, Workspace
    from releasekit.cli.edit_versions import Changes
    from releasekit.cli.session import Session
    from releasekit.config.config import Config, PlanConfig
    from releasekit.host.ci import CI
    from releasekit.host.forges import ForgePlace
    from releasekit.http.credentials import Secret

# Something else may be faster.
_LOOKS: Final = 3
_SHORT: Final = 7
# Of a change file to begin with.
_ENTRY: Final = "What this brings to users."


async def run(config: Config, session: Session) -> int:
    """Open it, bring it up to date, or close it."""
    refuse_foreign(config, session)
    async with open_command(config, session) as group:
        needs = "`contents: write` and `pull-requests: write`"
        at = await _find_forge(group, config, session)
        token = require_token(session.credentials, session.ci, at, asked="release-pr", needs=needs)
        seal = await take_turn(group, config, session)
        workspace = await open_versions(group, config, session)
        decided = await decide_versions(workspace)
        into = _require_branch(workspace, session.ci)
        refuse_warned(decided.view.warned, config.levels)
        edited = await asyncio.to_thread(edit, decided, workspace.targets)
        decided = replace(decided, view=decided.view.with_moved(edited.moved))
        edits = await _list_edits(workspace, edited.changes)
        if edits:
            await write(decided, edited, seal, group, session, keeps=False)
        sandbox = workspace.services.processes.sandbox
        closed = closed_scratch(session.credentials.environment, sandbox)
        keeper = _Keeper.of(decided, edits, at, token, await group.enter(closed), into)
        await keeper.clone.begin(workspace.commits)
        kept = await keeper.keep()
    view, changes = decided.view, edited.names(config.root)
    outputs = versions_outputs(view, changes, config.root) | release_pr_outputs(kept)
    for name, value in outputs.items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(f"{release_pr_summary(kept)}\n{versions_summary(view)}")
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(view.warned))
        if kept.operation == "edited":
            session.actions.annotate("warning", [("release pull request", kept.words)])
    print(versions_table(view, changes, verbose=config.verbose), file=session.out)
    print(release_pr_line(kept), file=session.out, flush=True)
    return 0


async def _find_forge(group: Group, config: PlanConfig, session: Session) -> ForgePlace:
    """Asked before a build could change remotes. Raises ConfigError for any but a GitHub."""
    processes = await start_processes(group, config, session, ())
    top, name = repository_of(config.root) or config.root, config.tagging.remote
    remote = Remote(name, GitSettings(top, processes, session.credentials.environment))
    place = await find_forge(remote, name, session.ci, asked="release-pr")
    if place.kind != "github":
        raise ConfigError(
            f"`release-pr` keeps a pull request at GitHub, and {place.page} is elsewhere",
            hint=f"Run {spell('version')}, and propose what it writes.",
        )
    return place


def _require_branch(workspace: Workspace, ci: CI) -> str:
    """The branch that is released from. Raises ConfigError where there is none."""
    branch = workspace.branch
    if not branch or ci.pull_request or branch.startswith(name_branch("")):
        ref = visible(ci.ref or branch or "a detached HEAD")
        raise ConfigError(
            f"a release pull request is made for a branch, and not for {ref}",
            hint="Run it on pushes to the branch that is released from: `on: push: branches: "
            "[main]`.",
        )
    return branch


async def _list_edits(workspace: Workspace, changes: Changes) -> list[FileEdit]:
    """With their paths in the repository and the modes that HEAD has. Raises PlanError for what a
    commit would not hold as it is here.
    """
    top = workspace.commits.top
    there = await workspace.commits.list_files(
        "HEAD", [path.relative_to(top).as_posix() for path in changes]
    )
    edits = []
    for path, data in changes.items():
        name = path.relative_to(top).as_posix()
        file = there.get(name)
        if file is not None:
            held = await asyncio.to_thread(read_file, path, max_bytes=MAX_MANIFEST_BYTES)
            if Object("blob", held).id != file.blob:
                raise refuse_edit(
                    f"{name} is not what HEAD has: it was edited, or .gitattributes changes it",
                    "Commit it; `text`, `eol` and `filter` in .gitattributes cannot be for it.",
                )
        elif data is None:
            raise refuse_edit(f"{name} is not committed", "Commit it, and run it again.")
        elif await asyncio.to_thread(exists, path):
            continue  # ignored, as what is generated: no commit is to have it
        edits.append(FileEdit(path=name, mode=file.mode if file else FILE_MODE, data=data))
    return edits


class _Overtaken(LookAgain):
    """A newer run has moved the branch, and this one may have written over what it says."""


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Keeps the pull request from `branch` into the branch `into`. `page` is where a person writes
    a change file.
    """

    decided: Decided
    edits: Sequence[FileEdit]
    commits: Commits
    clone: ForgeRepository
    forge: GitHubPullRequests
    into: str
    branch: str
    page: str

    @classmethod
    def of(
        cls,
        decided: Decided,
        edits: Sequence[FileEdit],
        at: ForgePlace,
        token: Secret,
        place: Path,
        into: str,
    ) -> Self:
        """`at` is where the pull request is, `place` an empty directory that no build can write."""
        workspace = decided.workspace
        services, bumps = workspace.services, decided.view.decision.bumps
        address = require_safe(f"{at.page}.git", name=SERVER_URL)
        clone = ForgeRepository(str(address), token, place, services.git, services.retries)
        path = f"{workspace.config.versioning.directory}/change.md"
        entries = [Entry(name=str(bump.package), level=Level.PATCH) for bump in bumps[:1]]
        return cls(
            decided=decided,
            edits=edits,
            commits=Commits(workspace.commits.top, services.processes, clone.objects),
            clone=clone,
            forge=GitHubPullRequests(
                open_github(services, at, token), at.repository, services.retries
            ),
            into=into,
            branch=name_branch(into),
            page=page_of_new_file(at.page, into, path, format_change_file(entries, _ENTRY)),
        )

    async def keep(self) -> Kept:
        """Raises PackageError where GitHub refuses, and ConfigError for a commit of another
        branch.
        """
        overtaken = False
        for _ in range(_LOOKS - 1):
            try:
                return await self._look_and_act(restores=overtaken)
            except LookAgain as error:
                overtaken |= isinstance(error, _Overtaken)
        return await self._look_and_act(restores=overtaken)

    async def _look_and_act(self, *, restores: bool) -> Kept:
        """It `restores` what a newer run has written, where this one may have written over it."""
        seen = await self.clone.list_branches(self.into, self.branch)
        here = await self.commits.find_existing(seen.values())
        if lacking := set(seen.values()) - here:
            await self.clone.fetch(sorted(lacking))
        head, tip = await self.commits.read_head(), seen.get(self.into, "")
        if not tip or not await self.commits.has(tip, head):
            raise ConfigError(
                f"HEAD is not on the branch {visible(self.into)} of the remote",
                hint="A pull request is made of what is pushed: push it, or check out that branch.",
            )
        there = await read_release_branch(self.commits, seen.get(self.branch, ""), tip)
        pull = await self.forge.find(self.branch, self.into)
        if (
            there.is_edited
            and pull is None
            and await self.forge.has_merged(self.branch, self.into, there.head)
        ):
            there = ReleaseBranch(head=there.head)  # squashed or rebased, and not deleted
        if there.is_edited:
            words = (
                f"{self.branch} has commits of somebody else, and stays as it is: merge it as it "
                "is, or delete it"
            )
            return Kept("edited", words, pull)
        if newer := await self._find_newer(there.base, head, tip):
            if restores and pull and there.text:
                body = await self.forge.fetch_text(there.text)
                await self._say(pull, there.head, title=there.title, body=body)
            return Kept("newer", f"a run on {newer[:_SHORT]} brings it up to date", pull)
        if not self.edits:
            return await self._close(there, pull)
        names = {
            each.path: Object("blob", each.data).id if each.data is not None else ""
            for each in self.edits
        }
        edits, base, made = name_edits(names), there.base, ""
        # One that was made on HEAD would be no nearer to the newest commit.
        is_behind = pull is not None and pull.is_behind and base != head
        moves = edits != there.edits or is_behind
        title = write_title(self.decided.view, self.decided.workspace.config.versioning.title)
        if moves:
            base = head
            tree = (await self.commits.run_git("rev-parse", f"{head}^{{tree}}")).parse(parse_id)
            body = self._write_body(pull.author if pull else "", base)
            trailers = write_trailers(base, edits, await self.forge.keep_text(body))
            made = await self.forge.commit(head, tree, self.edits, f"{title}\n\n{trailers}\n")
            await self.forge.move(self.branch, there.head, made)
        return await self._write(pull, title, base, made if moves else there.head, moved=moves)

    async def _find_newer(self, base: str, head: str, tip: str) -> str:
        """The commit that another run has decided on, or is going to; empty where HEAD is to be
        decided on.
        """
        known = base in await self.commits.find_existing([base])
        if known and base != head and await self.commits.has(base, head):
            return base
        changed = await self.commits.list_changed(head, tip)
        return tip if any(each.path in changed for each in self.edits) else ""

    async def _close(self, there: ReleaseBranch, pull: ForgePullRequest | None) -> Kept:
        if there.edits:
            await self.forge.move(self.branch, there.head, "")
        if pull is None:
            return Kept("none", "there is nothing to release")
        await self._say(pull, "", body=DONE, state="closed")
        return Kept("closed", "there is nothing to release any more", pull)

    async def _write(
        self, pull: ForgePullRequest | None, title: str, base: str, head: str, *, moved: bool
    ) -> Kept:
        """`head` is the commit of the branch that this is about."""
        words = f"{packages(len(self.decided.view.decision.bumps))}, base {base[:_SHORT]}"
        first = self._write_body("", base) if pull is None else ""
        opened = pull or await self.forge.create(self.branch, self.into, title, first)
        body = self._write_body(opened.author, base)
        differs = (opened.title, opened.body.replace("\r\n", "\n")) != (title, body)
        if differs:
            await self._say(opened, head, title=title, body=body)
        if pull is None:
            return Kept("created", words, opened)
        if moved or differs:
            return Kept("updated", words, pull)
        return Kept("current", f"nothing differs, base {base[:_SHORT]}", pull)

    def _write_body(self, author: str, base: str) -> str:
        return write_body(
            self.decided.view,
            write_notes(self.decided),
            into=self.into,
            page=self.page,
            last=write_base(base),
            is_of_bot=author == BOT,
        )

    async def _say(self, pull: ForgePullRequest, head: str, **changes: str) -> None:
        """Raises LookAgain where the branch is not at `head`, or the request has been merged."""
        if await self._find_head() != head:
            raise LookAgain(f"{self.branch} was moved meanwhile")
        now = await self.forge.read(pull.number)
        if now.is_merged or not (now.is_open or "state" in changes):
            raise LookAgain(f"{now.url} was closed meanwhile")
        after = await self.forge.edit(pull.number, **changes)
        if after.is_merged or not (after.is_open or "state" in changes):
            await self.forge.edit(pull.number, title=now.title, body=now.body)
            raise LookAgain(f"{now.url} was closed meanwhile")
        if await self._find_head() != head:
            raise _Overtaken(f"{self.branch} was moved meanwhile")

    async def _find_head(self) -> str:
        return (await self.clone.list_branches(self.branch)).get(self.branch, "")
