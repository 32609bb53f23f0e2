"""The command preview: what merging the changes at hand would release, and what says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.cli.commands.preview import PreviewInputs
from releasekit.cli.decision import decide_versions, look_back, open_versions
from releasekit.cli.result_files import write
from releasekit.cli.session import open_command
from releasekit.config.locations import FILENAME
from releasekit.decided import Level
from releasekit.errors import CommandFailed, ConfigError
from releasekit.git.commits import parse_id
from releasekit.host.ci import TEMPORARY
from releasekit.host.forges import REPOSITORY, page_of_new_file
from releasekit.model import PackageWarning, WarningName
from releasekit.plan.warnings import refuse_warned
from releasekit.problems import Problem
from releasekit.report.preview import Preview, preview_markdown, preview_outputs, preview_table
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs
from releasekit.text.escape import visible
from releasekit.versioning.change_files import Entry, format_change_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.cli.decision import Decided, Workspace
    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.git.commits import Commits
    from releasekit.host.ci import PullRequest
    from releasekit.model import Package, PackageId

_MAIN: Final = "origin/main"
_SILENT: Final = PackageWarning(
    name=WarningName.MISSING_INTENT,
    message="files of it that are published change, and nothing says what that asks for",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What HEAD has and the commit `base` has not. Of what it is compared with, it `lacks` so many
    commits.
    """

    base: str
    commits: frozenset[str]
    lacks: int = 0


async def run(config: Config, session: Session) -> int:
    """Show it; changes nothing."""
    async with open_command(config, session) as group:
        request = session.ci.read_pull_request()
        workspace = await open_versions(group, config, session)
        since = config.own(PreviewInputs).since
        addition, title = await find_addition(workspace.commits, since, request)
        past = await look_back(workspace, addition.base)
        before = await decide_versions(past)
        shared = await _list_shared(workspace, past, addition.base)
        after = await decide_versions(workspace, title=title)
    silent = [workspace.packages[each] for each in find_silent(after, addition)]
    warned = [(each, config.levels.apply([_SILENT])) for each in silent]
    page = _find_page(config.versioning.directory, session, request, silent)
    preview = Preview(before.view, after.view, silent, page, addition.lacks, shared)
    text = preview_markdown(preview)
    if directory := session.credentials.environment.get(TEMPORARY):
        path = Path(directory) / "preview.md"
        write(path, text)
        session.actions.output("preview-file", str(path))
    outputs = versions_outputs(after.view, {}, config.root)
    for name, value in {**outputs, **preview_outputs(preview)}.items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(text)
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(warned))
    print(preview_table(preview), file=session.out, flush=True)
    refuse_warned(warned, config.levels)
    return 0


async def _list_shared(workspace: Workspace, past: Workspace, base: str) -> list[str]:
    """The files that this changes and that `look_back` reads as they are now: the configuration,
    and manifests for what they require. That a version is written changes nothing of that.
    """
    commits, config = workspace.commits, workspace.config
    now = {each.id: each.version for each in workspace.public}
    read = [each.manifest for each in past.public if each.version == now[each.id]]
    read.append(config.config_file or config.root / FILENAME)
    changed = await commits.list_changed(base, "HEAD")
    names = {
        each.relative_to(commits.top).as_posix() for each in read if commits.top in each.parents
    }
    return sorted(names & changed.keys())


async def find_addition(
    commits: Commits, since: str, request: PullRequest | None
) -> tuple[Addition, str]:
    """What HEAD adds, and the title that it is going to be merged under, empty where that is not
    known. GitHub checks out what a merge would make, on top of the newest commit of its base.

    https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows#pull_request
    """
    parents = (await commits.run_git("rev-parse", "HEAD^@")).parse_rows(parse_id)
    if request and not since and parents[1:] == [request.commit]:
        base, title, lacks = parents[0], f"{request.title} (#{request.number})", 0
    else:
        other = since or (request.base if request else "") or "origin/HEAD"
        try:
            told = await commits.run_git("merge-base", "--end-of-options", other, "HEAD")
            base = told.parse(parse_id)
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
        title = ""
        lacks = (await commits.run_git("rev-list", "--count", f"{base}..{other}")).parse(int)
    added = await commits.run_git("rev-list", f"{base}..HEAD")
    commits_of_head = frozenset(added.parse_rows(parse_id))
    return Addition(base=base, commits=commits_of_head, lacks=lacks), title


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
    spoken = {each.package for each in decided.collected.intents if each.source.commit in told}
    silent = {
        package
        for package, sources in decided.collected.unread.items()
        if any(each.commit in addition.commits for each in sources)
    }
    return sorted(silent - spoken)


def _find_page(
    directory: str, session: Session, request: PullRequest | None, silent: Sequence[Package]
) -> str:
    """Where a person writes a change file on the branch, at GitHub."""
    if not request or not silent or session.ci.kind != "github":
        return ""
    if not REPOSITORY.fullmatch(request.repository):
        return ""
    entries = [Entry(name=str(each.id), level=Level.PATCH) for each in silent]
    return page_of_new_file(
        f"{session.ci.server}/{request.repository}",
        request.branch,
        f"{directory}/change-{request.number}.md",
        format_change_file(entries, request.title),
    )
