"""One pull request with the versions of the next release, kept up to date.

It is a function of the commit at hand. What is read of it is its branch: neither title, body,
labels nor comments. A branch that somebody has edited is left alone. Forges do not compare before
they write a title or a body. So a run looks right before and right after it: where a newer run has
moved the branch meanwhile, it writes what that one says, and where the request was merged or
closed, it gives it back what it said.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from msgspec import Struct

from releasekit.announce.forge import LookAgain
from releasekit.announce.github_pull_requests import GitHubPullRequests
from releasekit.announce.post_release import open_pull_requests
from releasekit.announce.pull_requests import FileChange, NewCommit
from releasekit.announce.pushed_branches import PushedBranches
from releasekit.decided import Level
from releasekit.errors import ConfigError
from releasekit.git.commits import Commits, parse_id
from releasekit.git.forge_repository import ForgeRepository
from releasekit.git.objects import FILE_MODE, Object
from releasekit.git.trailers import write_base, write_trailers
from releasekit.host.ci import SERVER_URL
from releasekit.host.edits import refuse_edit
from releasekit.host.files import exists, read_file
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

    from releasekit.announce.pull_requests import PullRequests
    from releasekit.announced import ForgePullRequest
    from releasekit.host.forges import ForgePlace
    from releasekit.http.credentials import Secret
    from releasekit.report.release_pr import Operation
    from releasekit.versions.decision import Decided
    from releasekit.versions.edit import Changes
    from releasekit.versions.scope import Scope

# Something else may be faster, or a server learn later of what was pushed: a GitLab within 10
# seconds, as users report, and a Gitea within 4.
_LOOKS: Final = 5
# https://docs.gitlab.com/user/project/merge_requests/drafts/
# https://docs.gitea.com/administration/config-cheat-sheet (WORK_IN_PROGRESS_PREFIXES)
_DRAFT: Final = re.compile(r"(?:(?:draft|wip):|\[(?:draft|wip)\]|\(draft\)) *", re.IGNORECASE)
# Of a change file to begin with.
_ENTRY: Final = "What this brings to users."


async def list_changed_files(scope: Scope, changes: Changes) -> list[FileChange]:
    """With their paths in the repository and the modes that HEAD has. Raises PlanError for what a
    commit would not hold as it is here.
    """
    top = scope.commits.top
    named = {path.relative_to(top).as_posix(): path for path in changes}
    there = await scope.commits.list_files("HEAD", named)
    files = []
    for name, path in named.items():
        file, data = there.get(name), changes[path]
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


class Seen(NamedTuple):
    """What a run knows before it acts: `here` is HEAD, `tip` the newest commit of the branch to be
    merged into, and `edits` names what it would commit, as `name_edits` does; empty for nothing.
    """

    here: str
    tip: str
    there: ReleaseBranch
    pull: ForgePullRequest | None
    edits: str
    is_base_newer: bool  # what stands there was decided on a later commit than HEAD
    is_here_outdated: bool  # from `here` to `tip`, a file has changed that is to be edited
    is_said: bool  # by the pull request, of what stands there
    was_overtaken: bool  # and may have written over what a newer run says


class Choice(NamedTuple):
    """What becomes of the pull request, with versions that are decided on the commit `base`. Its
    branch `moves`, or goes; where a newer run has decided, this one `restores` what that says.
    """

    operation: Operation
    base: str = ""
    moves: bool = False
    restores: bool = False


def decide_pull(seen: Seen) -> Choice:
    """The first row that holds."""
    there, pull = seen.there, seen.pull
    if there.is_foreign:
        return Choice("edited")
    if seen.is_base_newer:
        return Choice("newer", there.base, restores=seen.was_overtaken)
    if seen.is_here_outdated:
        return Choice("newer", seen.tip, restores=seen.was_overtaken)
    if not seen.edits:
        return Choice("closed" if pull else "none", moves=bool(there.edits))
    if seen.edits != there.edits:
        return Choice("updated" if pull else "created", seen.here, moves=True)
    if pull is None:
        return Choice("created", there.base)
    if pull.is_behind and there.base != seen.here:  # one on `here` would be no nearer to `tip`
        return Choice("updated", seen.here, moves=True)
    return Choice("current" if seen.is_said else "updated", there.base)


class Keeper(Struct, frozen=True):
    """Keeps the pull request from `branch` into the branch `into`. `page` is where a person writes
    a change file.
    """

    decided: Decided
    files: Sequence[FileChange]
    commits: Commits
    clone: ForgeRepository
    branches: GitHubPullRequests | PushedBranches
    forge: PullRequests
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
        name, insecure = (SERVER_URL, ()) if at.kind == "github" else ("forge", services.insecure)
        address = require_safe(f"{at.page}.git", name=name, insecure=insecure)
        forge = open_pull_requests(services, at, token)
        clone = ForgeRepository(
            url=str(address),
            token=token,
            place=place,
            settings=services.git,
            policy=services.retries,
            cure=forge.cures[403],
        )
        path = f"{scope.config.versioning.directory}/change.md"
        entries = [ChangeEntry(name=str(bump.package), level=Level.PATCH) for bump in bumps[:1]]
        pages = services.ci.find_public(at).pages
        return cls(
            decided=decided,
            files=files,
            commits=Commits(scope.commits.top, services.processes, clone.objects),
            clone=clone,
            branches=forge
            if isinstance(forge, GitHubPullRequests)
            else PushedBranches(clone, at.host),
            forge=forge,
            into=into,
            branch=name_branch(into),
            page=pages.new_file(into, path, format_change_file(entries, _ENTRY)),
        )

    async def keep(self) -> Kept:
        """Raises PackageError where the forge refuses, and ConfigError for a commit of another
        branch.
        """
        await self.clone.begin(self.decided.scope.commits)
        overtaken = False
        for tried in range(_LOOKS - 1):
            try:
                return await self._act(await self._look(overtaken))
            except LookAgain as error:
                overtaken |= isinstance(error, _Overtaken)
            await asyncio.sleep(self.clone.policy.base_delay_s * 2**tried)
        return await self._act(await self._look(overtaken))

    async def _look(self, overtaken: bool) -> Seen:
        branch, into = self.branch, self.into
        heads = await self.clone.list_branches(into, branch)
        known = await self.commits.find_existing(heads.values())
        if lacking := set(heads.values()) - known:
            await self.clone.fetch(sorted(lacking))
        here, tip = await self.commits.read_head(), heads.get(into, "")
        if not tip or not await self.commits.is_in_history(here, of=tip):
            raise ConfigError(
                f"HEAD is not on the branch {visible(into)} of the remote",
                hint="A pull request is made of what is pushed: push it, or check out that branch.",
            )
        there = await read_release_branch(self.commits, heads.get(branch, ""), tip)
        pull = await self.forge.find(branch, into)
        if there.is_foreign and not pull and await self.forge.has_merged(branch, into, there.head):
            there = ReleaseBranch(head=there.head)  # squashed or rebased, and not deleted
        base, changed = there.base, await self.commits.list_changed(here, tip)
        is_known = base != here and base in await self.commits.find_existing([base])
        blobs = {
            each.path: "" if each.data is None else Object("blob", each.data).id
            for each in self.files
        }
        return Seen(
            *(here, tip, there, pull, name_edits(blobs) if blobs else ""),
            is_base_newer=is_known and await self.commits.is_in_history(here, of=base),
            is_here_outdated=not changed.keys().isdisjoint(blobs),
            is_said=bool(pull and blobs and _read_words(pull) == self._compose(pull, base)),
            was_overtaken=overtaken,
        )

    async def _act(self, seen: Seen) -> Kept:
        choice, there, pull = decide_pull(seen), seen.there, seen.pull
        base = choice.base[:7]
        match choice.operation:
            case "edited":
                words = (
                    f"{self.branch} has commits of somebody else, and stays as it is: merge it as "
                    "it is, or delete it"
                )
            case "newer":
                words = f"a run on {base} brings it up to date"
                if choice.restores and pull and there.text:
                    body = await self.branches.fetch_text(there.text)
                    await self._say(pull, there.head, title=there.title, body=body)
            case "none" | "closed":
                words = f"there is nothing to release{' any more' if pull else ''}"
                if choice.moves:
                    await self.branches.delete(self.branch, there.head)
                if pull:
                    head = "" if choice.moves else there.head
                    await self._say(pull, head, body=DONE, state="closed")
            case "current":
                words = f"nothing differs, base {base}"
            case _:  # created or updated
                words = f"{packages(len(self.decided.view.decision.bumps))}, base {base}"
                pull = await self._write(seen, choice)
        return Kept(choice.operation, words, pull)

    async def _write(self, seen: Seen, choice: Choice) -> ForgePullRequest:
        pull, head, base = seen.pull, seen.there.head, choice.base
        words = self._compose(pull, base)
        if choice.moves:
            tree = (await self.commits.run_git("rev-parse", f"{base}^{{tree}}")).parse(parse_id)
            text = words["body"]
            trailers = write_trailers(base, seen.edits, Object("blob", text.encode()).id)
            message = f"{words['title']}\n\n{trailers}\n"
            commit = NewCommit(on=base, tree=tree, files=self.files, message=message, text=text)
            head = await self.branches.write(self.branch, head, commit)
        elif pull is None:
            heads = await self.clone.list_branches(self.into, self.branch)
            if heads != {self.into: seen.tip, self.branch: head}:
                raise LookAgain(f"{self.branch} was merged or moved meanwhile")
        if pull is None:
            pull = await self.forge.create(self.branch, self.into, **words)
            words = self._compose(pull, base)
        if _read_words(pull) != words:
            await self._say(pull, head, **words)
        return pull

    def _compose(self, pull: ForgePullRequest | None, base: str) -> dict[str, str]:
        """What it is to say of what was decided on the commit `base`."""
        view, notes, last = self.decided.view, write_notes(self.decided), write_base(base)
        is_of_bot = pull is not None and pull.author in self.forge.bots
        told = [self.forge.squashing, self.forge.waiting if is_of_bot else ""]
        body = write_body(view, notes, into=self.into, page=self.page, told=told, last=last)
        title = write_title(view, self.decided.scope.config.versioning.title)
        return {"title": title, "body": body}

    async def _say(self, pull: ForgePullRequest, head: str, **changes: str) -> None:
        """Raises LookAgain where the branch is not at `head`, or the request has been merged."""
        if await self._find_head() != head:
            raise LookAgain(f"{self.branch} was moved meanwhile")
        now = await self.forge.read(pull.number)
        if now.is_merged or not (now.is_open or "state" in changes):
            raise LookAgain(f"{now.url} was closed meanwhile")
        if "title" in changes:
            changes["title"] = f"{_find_draft(now)}{changes['title']}"
        after = await self.forge.update(pull.number, **changes)
        if after.is_merged or not (after.is_open or "state" in changes):
            await self.forge.update(pull.number, title=now.title, body=now.body)
            raise LookAgain(f"{now.url} was closed meanwhile")
        if await self._find_head() != head:
            raise _Overtaken(f"{self.branch} was moved meanwhile")

    async def _find_head(self) -> str:
        return (await self.clone.list_branches(self.branch)).get(self.branch, "")


def _read_words(pull: ForgePullRequest) -> dict[str, str]:
    title = pull.title.removeprefix(_find_draft(pull))
    return {"title": title, "body": pull.body.replace("\r\n", "\n")}


def _find_draft(pull: ForgePullRequest) -> str:
    """What a person has put before the title so that nobody merges it; GitHub has no such words."""
    found = _DRAFT.match(pull.title) if pull.forge != "github" else None
    return found[0] if found else ""
