"""What a go.work says of the directories around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.go import gomod

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


def workspace_at(directory: Path) -> Membership | None:
    """It lists its modules one by one: the others are left out on purpose."""
    work = directory / "go.work"
    if not work.is_file():
        return None
    listed = gomod.used_directories(gomod.read_text(work), str(work))
    used = {(directory / use).resolve() for use in listed}

    def standing(below: Path) -> Standing:
        return "member" if below in used else "excluded"

    return standing


def publishable_at(directory: Path) -> bool:
    """Whether its version is known is said by options, and by files around it."""
    return (directory / "go.mod").is_file()
