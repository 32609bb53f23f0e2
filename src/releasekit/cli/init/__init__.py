"""The command init: the files that a first release takes, written for what the repository holds.

What it writes is planned before it is written, as the next `plan` will: what that would refuse is
mended, or said.
"""

from __future__ import annotations

import asyncio
import os
from difflib import unified_diff
from textwrap import indent
from typing import TYPE_CHECKING, Final

from releasekit.cli.commands.init import InitInputs
from releasekit.cli.init.survey import survey_repository
from releasekit.cli.init.telling import describe
from releasekit.cli.init.trial import try_out
from releasekit.cli.init.workflow import WORKFLOW, is_anothers, make_job, write_workflow
from releasekit.cli.session import open_command
from releasekit.config.locations import FILENAME
from releasekit.errors import ConfigError, PathError, describe_os_error
from releasekit.host import durable
from releasekit.host.files import is_file, read_text
from releasekit.plan.publishers import find_publishers
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.cli.session import Session
    from releasekit.config.config import Config

_MAX_BYTES: Final = 1024 * 1024


async def run(config: Config, session: Session) -> int:
    """Write what is not there yet, and say what a person does next."""
    async with open_command(config, session) as group:
        found = await survey_repository(group, config, session)
        names = found.ecosystems if found.ground.is_new else None
        tried = await try_out(group, config, session, found.draft, names)
    found = found.leave_out(tried.draft.excluded)
    job = make_job(found, tried, session)
    top, files = found.ground.top, {}
    if found.is_on_github:
        files[top / WORKFLOW] = write_workflow(
            job.setups.values(),
            config.root.relative_to(top),
            start=job.start,
            has_submodules=is_file(top / ".gitmodules"),
        )
    if tried.text:
        files[config.root / FILENAME] = tried.text
    in_the_way = found.is_on_github and is_anothers(top)
    publishers = [*find_publishers(top)] if found.is_on_github else []
    said = [*describe(found, tried, job, publishers, in_the_way=in_the_way)]
    placed: list[str] = []
    for path, text in files.items():
        compares = path != top / WORKFLOW or not in_the_way
        placed += await asyncio.to_thread(
            _place, path, text, compares=compares, dry_run=config.own(InitInputs).dry_run
        )
    print("\n".join(map(log_line, [*placed, *said])), file=session.out)
    return 0


def _place(path: Path, text: str, *, compares: bool, dry_run: bool) -> list[str]:
    """What happened to the file. What is there stays, be it a link that leads nowhere, and
    `compares` to this text unless it is for something else.
    """
    if os.path.lexists(path):
        try:
            there = read_text(path, max_bytes=_MAX_BYTES)
        except ConfigError as error:
            return [f"{path} is there already, and stays as it is: {error}"]
        if there == text:
            return [f"{path} is there already"]
        if not compares:
            return [f"{path} is there already, and stays as it is"]
        pair = (there.splitlines(), text.splitlines())
        told = unified_diff(*pair, "as it is", "as it would be written", lineterm="")
        return [f"{path} is there already, and stays as it is:", *told]
    if dry_run:
        return [f"{path} would be written:", *indent(text, "    ").splitlines()]
    try:
        durable.make_directory(path.parent)
        durable.replace(path, text.encode())
    except OSError as error:
        raise PathError(
            f"{describe_os_error(error)}; correct what is in the way of {path}"
        ) from error
    return [f"{path} is written"]
