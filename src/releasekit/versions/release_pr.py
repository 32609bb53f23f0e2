"""One pull request with the versions of the next release, kept up to date.

It is a function of the commit at hand. What is read of it is its branch: neither title, body,
labels nor comments. A branch that somebody has edited is left alone. GitHub does not compare before
it writes a title or a body. So a run looks right before and right after it: where a newer run has
moved the branch meanwhile, it writes what that one says, and where the request was merged or
closed, it gives it back what it said.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from msgspec import Struct

from releasekit.announce.forge import LookAgain
from releasekit.announce.post_release import open_github
from releasekit.announce.pull_requests import BOT, FileChange, GitHubPullRequests
from releasekit.decided import Level
from releasekit.errors import ConfigError
from releasekit.git.commits import Commits, parse_id
from releasekit.git.forge_repository import ForgeRepository
from releasekit.git.objects import FILE_MODE, Object
from releasekit.git.trailers import write_base, write_trailers
from releasekit.host.ci import SERVER_URL
from releasekit.host.edits import refuse_edit
from releasekit.host.files import exists, read_file
from releasekit.host.forges import page_of_new_file
from releasekit.http.origins import require_safe
from releasekit.model import MAX_MANIFEST_BYTES
from releasekit.report.release_pr import DONE, Kept, write_body, write_title
from releasekit.report.text import packages
from releasekit.text.escape import visible
from releasekit.versions.change_files import ChangeEntry, format_change_file
from releasekit.versions.edit import write_notes
from releasekit.versions.release_branch import (
    ReleaseBranch,
    name_branch,
    name_edits,
    read_release_branch,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.announced import ForgePullRequest
    from releasekit.host.forges import ForgePlace
    from releasekit.http.credentials import Secret
    from releasekit.versions.decision import Decided
    from releasekit.versions.edit import Changes
    from releasekit.versions.scope import Scope

# Something else may be faster.
_LOOKS: Final = 3
_SHORT: Final = 7
# Of a change file to begin with.
_ENTRY: Final = "What this brings to users."


async def list_changed_files(scope: Scope, changes: Changes) -> list[FileChange]:
    """With their paths in the repository and the modes that HEAD has. Raises PlanError for what a
    commit would not hold as it is here.
    """
    top = scope.commits.top
    there = await scope.commits.list_files(
        "HEAD", [path.relative_to(top).as_posix() for path in changes]
    )
    files = []
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
        files.append(FileChange(path=name, mode=file.mode if file else FILE_MODE, data=data))
    return files


class _Overtaken(LookAgain):
    """A newer run has moved the branch, and this one may have written over what it says."""


class _Situation(NamedTuple):
    """HEAD, the newest commit of the branch that it is to be merged into, and what stands there."""

    head: str
    tip: str
    there: ReleaseBranch
    pull: ForgePullRequest | None


class Keeper(Struct, frozen=True):
    """Keeps the pull request from `branch` into the branch `into`. `page` is where a person writes
    a change file.
    """

    decided: Decided
    files: Sequence[FileChange]
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
        files: Sequence[FileChange],
        at: ForgePlace,
        token: Secret,
        place: Path,
        into: str,
    ) -> Self:
        """`at` is where the pull request is, `place` an empty directory that no build can write."""
        scope = decided.scope
        services, bumps = scope.services, decided.view.decision.bumps
        address = require_safe(f"{at.page}.git", name=SERVER_URL)
        clone = ForgeRepository(str(address), token, place, services.git, services.retries)
        path = f"{scope.config.versioning.directory}/change.md"
        entries = [ChangeEntry(name=str(bump.package), level=Level.PATCH) for bump in bumps[:1]]
        return cls(
            decided=decided,
            files=files,
            commits=Commits(scope.commits.top, services.processes, clone.objects),
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
        await self.clone.begin(self.decided.scope.commits)
        overtaken = False
        for _ in range(_LOOKS - 1):
            try:
                return await self._act(await self._look(), restores=overtaken)
            except LookAgain as error:
                overtaken |= isinstance(error, _Overtaken)
        return await self._act(await self._look(), restores=overtaken)

    async def _look(self) -> _Situation:
        seen = await self.clone.list_branches(self.into, self.branch)
        here = await self.commits.find_existing(seen.values())
        if lacking := set(seen.values()) - here:
            await self.clone.fetch(sorted(lacking))
        head, tip = await self.commits.read_head(), seen.get(self.into, "")
        if not tip or not await self.commits.is_in_history(head, of=tip):
            raise ConfigError(
                f"HEAD is not on the branch {visible(self.into)} of the remote",
                hint="A pull request is made of what is pushed: push it, or check out that branch.",
            )
        there = await read_release_branch(self.commits, seen.get(self.branch, ""), tip)
        pull = await self.forge.find(self.branch, self.into)
        if (
            there.is_foreign
            and pull is None
            and await self.forge.has_merged(self.branch, self.into, there.head)
        ):
            there = ReleaseBranch(head=there.head)  # squashed or rebased, and not deleted
        return _Situation(head, tip, there, pull)

    async def _act(self, seen: _Situation, *, restores: bool) -> Kept:
        """It `restores` what a newer run has written, where this one may have written over it."""
        there, pull = seen.there, seen.pull
        if there.is_foreign:
            words = (
                f"{self.branch} has commits of somebody else, and stays as it is: merge it as it "
                "is, or delete it"
            )
            return Kept("edited", words, pull)
        if newer := await self._find_newer(there.base, seen.head, seen.tip):
            if restores and pull and there.text:
                body = await self.forge.fetch_text(there.text)
                await self._say(pull, there.head, title=there.title, body=body)
            return Kept("newer", f"a run on {newer[:_SHORT]} brings it up to date", pull)
        if not self.files:
            return await self._close(there, pull)
        names = {
            each.path: Object("blob", each.data).id if each.data is not None else ""
            for each in self.files
        }
        edits, title = (
            name_edits(names),
            write_title(self.decided.view, self.decided.scope.config.versioning.title),
        )
        # One that was made on HEAD would be no nearer to the newest commit.
        is_behind = pull is not None and pull.is_behind and there.base != seen.head
        if edits == there.edits and not is_behind:
            return await self._write(pull, title, there.base, there.head, moved=False)
        made = await self._move(seen, title, edits)
        return await self._write(pull, title, seen.head, made, moved=True)

    async def _move(self, seen: _Situation, title: str, edits: str) -> str:
        """The commit on HEAD that the branch is at afterwards; `edits` names what it changes."""
        base = seen.head
        tree = (await self.commits.run_git("rev-parse", f"{base}^{{tree}}")).parse(parse_id)
        body = self._write_body(seen.pull.author if seen.pull else "", base)
        trailers = write_trailers(base, edits, await self.forge.keep_text(body))
        made = await self.forge.commit(base, tree, self.files, f"{title}\n\n{trailers}\n")
        await self.forge.move(self.branch, seen.there.head, made)
        return made

    async def _find_newer(self, base: str, head: str, tip: str) -> str:
        """The commit that another run has decided on, or is going to; empty where HEAD is to be
        decided on.
        """
        known = base in await self.commits.find_existing([base])
        if known and base != head and await self.commits.is_in_history(head, of=base):
            return base
        changed = await self.commits.list_changed(head, tip)
        return tip if any(each.path in changed for each in self.files) else ""

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
        after = await self.forge.update(pull.number, **changes)
        if after.is_merged or not (after.is_open or "state" in changes):
            await self.forge.update(pull.number, title=now.title, body=now.body)
            raise LookAgain(f"{now.url} was closed meanwhile")
        if await self._find_head() != head:
            raise _Overtaken(f"{self.branch} was moved meanwhile")

    async def _find_head(self) -> str:
        return (await self.clone.list_branches(self.branch)).get(self.branch, "")
