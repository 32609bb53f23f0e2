"""What a go.work says of the directories around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.go import gomod
from releasekit.host.files import follow

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.interface import Membership, Standing


def may_list(top: Path, place: Path, _at_any_depth: bool) -> bool:
    work = top / "go.work"
    listed = gomod.used_directories(gomod.read_text(work), str(work)) if work.is_file() else ()
    return any(follow(top / use).is_relative_to(place) for use in listed)


def workspace_at(directory: Path) -> Membership | None:
    """A go.work lists its modules one by one, so it leaves out the others on purpose."""
    work = directory / "go.work"
    if not work.is_file():
        return None
    listed = gomod.used_directories(gomod.read_text(work), str(work))
    used = {follow(directory / use) for use in listed}

    def standing(below: Path) -> Standing:
        return "member" if below in used else "excluded"

    return standing


def publishable_at(directory: Path) -> bool:
    """Options and version files tell its version, so its go.mod is enough here."""
    return (directory / "go.mod").is_file()
