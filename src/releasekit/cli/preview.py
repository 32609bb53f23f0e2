"""The command preview: what merging the changes at hand would release, and what says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.cli.commands.preview import PreviewInputs
from releasekit.cli.result_files import write
from releasekit.cli.scope import open_scope
from releasekit.cli.session import open_command
from releasekit.decided import Level
from releasekit.fields import replace
from releasekit.host.ci import TEMPORARY
from releasekit.host.forges import is_repository
from releasekit.model import PackageWarning, WarningName
from releasekit.plan.warnings import refuse_warned
from releasekit.report.preview import Preview, preview_markdown, preview_outputs, preview_table
from releasekit.report.remarks import warning_annotations
from releasekit.report.versions import versions_outputs
from releasekit.versions.addition import find_addition, find_silent, list_shared
from releasekit.versions.change_files import ChangeEntry, format_change_file
from releasekit.versions.decision import decide_versions
from releasekit.versions.scope import look_back

if TYPE_CHECKING:
    from collections.abc import Sequence

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.host.ci import PullRequest
    from releasekit.model import Package

_SILENT: Final = PackageWarning(
    name=WarningName.MISSING_INTENT,
    message="files of it that are published change, and nothing says what that asks for",
)


async def run(config: Config, session: Session) -> int:
    """Show it; changes nothing."""
    async with open_command(config, session) as group:
        request = session.ci.read_pull_request()
        since = config.own(PreviewInputs).since
        scope = await open_scope(group, config, session, since)
        addition = await find_addition(scope.commits, since, request)
        past = await look_back(scope, addition.base)
        before = await decide_versions(past)
        shared = await list_shared(scope, past, addition.base)
        after = await decide_versions(scope, title=addition.title)
    silent = [scope.packages[each] for each in find_silent(after, addition)]
    warned = [(each, config.levels.apply([_SILENT])) for each in silent]
    page = _find_page(config.versioning.directory, session, request, silent)
    preview = Preview(
        *(before.view, after.view, silent, page, addition.lacks, shared),
        has_title=bool(addition.title),
    )
    text = preview_markdown(preview)
    if directory := session.credentials.environment.get(TEMPORARY):
        path = Path(directory) / "preview.md"
        write(path, text)
        session.runner.output("preview-file", str(path))
    outputs = versions_outputs(after.view, {}, config.root)
    for name, value in {**outputs, **preview_outputs(preview)}.items():
        session.runner.output(name, value)
    if config.summary:
        session.runner.summary(text)
    if config.annotations:
        session.runner.annotate("warning", warning_annotations(warned))
    print(preview_table(preview), file=session.out, flush=True)
    refuse_warned(warned, config.levels)
    return 0


def _find_page(
    directory: str, session: Session, request: PullRequest | None, silent: Sequence[Package]
) -> str:
    """Where a person writes a change file on the branch."""
    here = session.ci.forge
    if not (request and silent and here and is_repository(here.kind, request.repository)):
        return ""
    entries = [ChangeEntry(name=str(each.id), level=Level.PATCH) for each in silent]
    there = replace(session.ci.find_public(here), repository=request.repository)
    return there.pages.new_file(
        request.branch,
        f"{directory}/change-{request.number}.md",
        format_change_file(entries, request.title),
    )
