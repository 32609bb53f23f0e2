"""The command version: the versions that the changes since the last release ask for, and why."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final

from releasekit.cli.decision import decide_versions, open_versions
from releasekit.cli.edit_versions import edit, write
from releasekit.cli.preview import find_addition
from releasekit.cli.session import open_command, say, take_turn
from releasekit.cli.snapshot import make_snapshot
from releasekit.errors import CommandFailed
from releasekit.plan.warnings import refuse_warned
from releasekit.report.remarks import warning_annotations
from releasekit.report.text import few
from releasekit.report.versions import versions_outputs, versions_summary, versions_table

if TYPE_CHECKING:
    from releasekit.cli.decision import Decided
    from releasekit.cli.edit_versions import Edited
    from releasekit.cli.session import Session
    from releasekit.config.config import Config

_MOST_PLACES: Final = 20
# What they say was so.
_OLD_NAMES_STAY: Final = frozenset({"go.sum", "go.work.sum", "CHANGELOG.md"})
# One of `git grep -z -n -o`. https://git-scm.com/docs/git-grep
_MENTION: Final = re.compile(r"([^\0]+)\0([0-9]+)\0([^\n]*)\n")


async def run(config: Config, session: Session) -> int:
    """Write the next versions; with `dry_run` or `check`, only show them."""
    writes = not (config.dry_run or config.check)
    async with open_command(config, session) as group:
        seal = await take_turn(group, config, session) if writes else None
        workspace, title = await open_versions(group, config, session), ""
        if config.snapshot and (request := session.ci.read_pull_request()):
            _, title = await find_addition(workspace.commits, "", request)
        decided = await decide_versions(workspace, title=title)
        if config.snapshot:
            decided = await make_snapshot(decided, config.snapshot)
        edited = await asyncio.to_thread(edit, decided, decided.workspace.targets)
        view = decided.view.with_moved(edited.moved)
        look = await _find_mentions(decided, edited)
        if seal and edited.changes and not view.is_refused:
            await write(decided, edited, seal, group, session)
    changes = edited.names(config.root)
    for name, value in versions_outputs(view, changes, config.root).items():
        session.actions.output(name, value)
    if config.summary:
        session.actions.summary(versions_summary(view))
    if config.annotations:
        session.actions.annotate("warning", warning_annotations(view.warned))
    table = versions_table(view, changes, verbose=config.verbose or bool(config.snapshot))
    print(table, file=session.out)
    for old, new in edited.renamed.items():
        say(f"{old.name} is now {new.name}", session)
    if look:
        say(f"left alone, please look: {few(look, _MOST_PLACES)}", session)
    refuse_warned(view.warned, config.levels)
    return 1 if config.check and changes else 0


async def _find_mentions(decided: Decided, edited: Edited) -> list[str]:
    """Where else the sources have the old names of packages, as `README.md:12`. A link to what
    lies at such an address is none.
    """
    commits, root = decided.workspace.commits, decided.workspace.config.root
    old = {each.name for each in edited.renamed}
    if not old:
        return []
    known = {each.name for each in (*decided.workspace.packages, *edited.renamed.values())}
    begins = {"/".join(name.split("/")[:2]).replace(".", r"\.") for name in old}
    pattern = f"(://)?({'|'.join(sorted(begins))})[A-Za-z0-9._~/-]{{0,255}}"

    def is_old(mention: str) -> bool:
        while mention and mention not in known:  # the package that it is of
            mention = mention.rpartition("/")[0]
        return mention in old

    place = f":(literal){root.relative_to(commits.top).as_posix()}"
    grep = ("grep", "--no-color", "--no-column", "-I", "-z", "-n", "-o", "-E", pattern)
    try:
        told = str(await commits.run_git(*grep, "--", place))
    except CommandFailed:  # there are none
        told = ""
    found = dict.fromkeys(
        (name, int(number))
        for name, number, mention in _MENTION.findall(told)
        if commits.top / name not in edited.changes and is_old(mention.rstrip("."))
    )
    for path, data in edited.changes.items():
        for number, line in enumerate((data or b"").split(b"\n"), 1):
            mentions = re.finditer(pattern.encode(), line)
            if any(is_old(it[0].decode().rstrip(".")) for it in mentions):
                found[path.relative_to(commits.top).as_posix(), number] = None
    stays = [each for each in sorted(found) if each[0].rpartition("/")[2] not in _OLD_NAMES_STAY]
    return [f"{name}:{number}" for name, number in stays]
