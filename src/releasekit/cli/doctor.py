"""The command doctor: what earlier runs left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from releasekit.cli.session import Session, find_seal
from releasekit.config.values import Directory
from releasekit.state import doctor
from releasekit.state.seals import Seal
from releasekit.text.escape import log_line

if TYPE_CHECKING:
    from releasekit.config.config import Config


async def run(config: Config, session: Session) -> int:
    """Say what earlier runs left behind, and repair it where `fix` asks for that."""
    if config.fix:
        seal = find_seal(session, make=False) or Seal.for_one_run()
        fixed = await asyncio.to_thread(
            doctor.fix, config.state_directory, root=config.root, seal=seal
        )
        for finding in fixed:
            print(f"fixed: {log_line(finding.message)}", file=session.out)
    found = await asyncio.to_thread(
        doctor.examine,
        config.state_directory,
        root=config.root,
        registries=[
            place.path for place in config.registries.values() if isinstance(place, Directory)
        ],
        every_lock=config.verbose,
    )
    for finding in found.findings:
        print(f"{finding.kind}: {log_line(finding.message)}", file=session.out)
        if finding.hint:
            print(f"  {log_line(finding.hint)}", file=session.out)
    if not found.findings:
        print(f"{config.state_directory}: nothing was left behind", file=session.out)
    for line in (*found.locks, *found.last_run):
        print(log_line(line), file=session.out)
    return 1 if found.findings else 0
