"""`releasekit notes`: the text of one release, for other uses than ours."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from releasekit.aio import Group
from releasekit.announce.notes import existing_commit, name_alone, write_notes
from releasekit.announce.tag_names import is_shared, previous_tag
from releasekit.cli.commands.notes import NotesInputs
from releasekit.cli.interruption import Interruption
from releasekit.cli.session import list_packages, refuse_elsewhere
from releasekit.config.package_filter import find_package
from releasekit.errors import CommandFailed, ConfigError
from releasekit.fields import replace
from releasekit.git.commits import Commits
from releasekit.git.tag_forms import tag_name
from releasekit.host.files import repository_of
from releasekit.problems import Problem
from releasekit.text.escape import plain, visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config
    from releasekit.host.forges import Pages
    from releasekit.model import Package

_SHALLOW = (
    "warning: this clone is shallow, and commits that it lacks are not told of: "
    "`git fetch --unshallow`, or `fetch-depth: 0` at actions/checkout, `GIT_DEPTH: 0` at GitLab"
)


async def run(config: Config, session: Session) -> int:
    """Print what a release of a version says; nothing is asked of any server."""
    inputs = config.own(NotesInputs)
    if len(inputs.subject) != 2:
        raise ConfigError(
            "notes takes a package and a version",
            hint="Write `releasekit notes npm:@acme/core 1.2.0`.",
            problem=Problem.COMMAND_LINE,
        )
    name, version = inputs.subject
    await asyncio.to_thread(refuse_elsewhere, config.root, config.package_filter, session)
    with Interruption("cancelled"):
        async with Group() as group:
            packages, aside, processes = await list_packages(group, config, session)
            found = find_package(name, packages, aside)
            top = repository_of(config.root)
            if top is None:
                raise ConfigError(
                    f"{config.root} is in no git repository, and notes are made of what is "
                    "committed",
                    hint="Run it in a clone of the repository.",
                )
            try:
                commits = Commits(top, processes)
                pages = session.ci.origin(config.root).pages
                text = await _write_text(
                    found, version, packages, commits, config.tagging.name, config.root, pages
                )
            except CommandFailed as error:
                raise ConfigError(f"the history cannot be read: {error}") from error
    shown = plain(text) if session.out.isatty() else text
    print(session.runner.log_text(shown), file=session.out)
    return 0


async def _write_text(
    found: Package,
    version: str,
    packages: Sequence[Package],
    commits: Commits,
    template: str,
    root: Path,
    pages: Pages,
) -> str:
    package = replace(found, version=version)
    tags = await commits.list_tags()
    own = tag_name(template, package, root)
    previous = previous_tag(template, package, root, tags)
    commit = tags.get(own) or await commits.require_head()
    if await commits.is_shallow():
        print(_SHALLOW, file=sys.stderr)  # noqa: T201 (beside the text)
    is_known = own in tags or version.removeprefix("v") == found.version.removeprefix("v")
    text = await write_notes(
        package,
        commits,
        commit=commit,
        # Of a version that nothing else names, only a section of the change log tells.
        previous=await existing_commit(tags.get(previous, ""), commits) if is_known else "",
        others=packages,
        beside=[root] if is_shared(template) else [],
        pages=pages,
    )
    if not is_known and text == name_alone(package):
        raise ConfigError(
            f"{found.id} has no version {visible(version)}: its manifest has "
            f"{found.version or 'none'}, there is no tag {visible(own)}, and no section of its "
            "change log names it",
            hint="Write the version of its manifest, of a tag, or of a section of its change log.",
        )
    return text
