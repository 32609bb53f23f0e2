"""What HEAD has and its base has not: what a preview, and a missing change file, is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from releasekit.config.locations import FILENAME
from releasekit.errors import CommandFailed, ConfigError
from releasekit.git.commits import parse_id
from releasekit.problems import Problem
from releasekit.text.escape import visible

if TYPE_CHECKING:
    from releasekit.git.commits import Commits
    from releasekit.host.ci import PullRequest
    from releasekit.model import PackageId
    from releasekit.versions.decision import Decided
    from releasekit.versions.scope import Scope

_MAIN: Final = "origin/main"


class Addition(Struct, frozen=True, kw_only=True):
    """What HEAD has and the commit `base` has not. Of what it is compared with, it `lacks` so many
    commits. `title` is that of `find_title`.
    """

    base: str
    commits: frozenset[str]
    lacks: int
    title: str


async def find_addition(commits: Commits, since: str, request: PullRequest | None) -> Addition:
    """Raises ConfigError where the branch that HEAD is to be merged into is unknown here."""
    base, title = ("", "") if since else await _read_merge(commits, request)
    lacks = 0
    if not base:
        other = since or (request.base if request else "") or "origin/HEAD"
        base = await _find_fork(commits, other)
        lacks = (await commits.run_git("rev-list", "--count", f"{base}..{other}")).parse(int)
    added = await commits.run_git("rev-list", f"{base}..HEAD")
    return Addition(
        base=base, commits=frozenset(added.parse_rows(parse_id)), lacks=lacks, title=title
    )


async def find_title(commits: Commits, request: PullRequest | None) -> str:
    """What HEAD is going to be called once it is merged; empty where that is not known. GitHub
    checks out what a merge would make, on top of the newest commit of its base.

    https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#pull_request
    """
    _, title = await _read_merge(commits, request)
    return title


async def _read_merge(commits: Commits, request: PullRequest | None) -> tuple[str, str]:
    """The base and the title of the request that HEAD merges; empty where it merges another one."""
    if request:
        parents = (await commits.run_git("rev-parse", "HEAD^@")).parse_rows(parse_id)
        if parents[1:] == [request.commit]:
            return parents[0], f"{request.title} (#{request.number})"
    return "", ""


async def _find_fork(commits: Commits, other: str) -> str:
    try:
        told = await commits.run_git("merge-base", "--end-of-options", other, "HEAD")
        return told.parse(parse_id)
    except CommandFailed as error:
        why = f"it has no commit in common with {visible(other)}"
        if not await _is_commit(commits, other):
            why = f"git knows no {visible(other)} here"
        cure = "`--since main`"
        if await _is_commit(commits, _MAIN):
            cure = f"`--since {_MAIN}`, or run `git remote set-head origin --auto`"
        raise ConfigError(
            f"ReleaseKit cannot tell what HEAD adds: {why}",
            hint=f"Name the branch that HEAD is to be merged into: {cure}. In a job, "
            "check out with `fetch-depth: 0`, or `GIT_DEPTH: 0` at GitLab.",
            problem=Problem.COMMAND_LINE,
        ) from error


async def _is_commit(commits: Commits, name: str) -> bool:
    try:
        await commits.run_git("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
    except CommandFailed:
        return False
    return True


def find_silent(decided: Decided, addition: Addition) -> list[PackageId]:
    """The packages that this changes, and nothing of it says what for."""
    # A change file without a commit is not committed yet.
    told = {"", *addition.commits}
    return sorted(
        each.id
        for each in decided.collected.candidates.values()
        if any(it.commit in addition.commits for it in each.unclear)
        and not any(it.source.commit in told for it in each.intents)
    )


async def list_shared(scope: Scope, past: Scope, base: str) -> list[str]:
    """The files that this changes and that `look_back` reads as they are now: the configuration,
    and manifests for what they require. That a version is written changes nothing of that.
    """
    commits, config = scope.commits, scope.config
    now = {each.id: each.version for each in scope.public}
    read = [each.manifest for each in past.public if each.version == now[each.id]]
    read.append(config.config_file or config.root / FILENAME)
    changed = await commits.list_changed(base, "HEAD")
    names = {
        each.relative_to(commits.top).as_posix() for each in read if commits.top in each.parents
    }
    return sorted(names & changed.keys())
