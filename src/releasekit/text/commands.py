"""How a hint names a command of ours: for the terminal, and for the action, which installs none."""

from __future__ import annotations

from typing import Final

# What the action does by its input of that name.
_MODES: Final = frozenset(
    {"plan", "publish", "check", "version", "preview", "release-pr", "report"}
)


def spell(command: str) -> str:
    """`command` with its flags, as it can be copied wherever the reader is."""
    name, _, flags = command.partition(" ")
    # The action has no input for this flag.
    is_mode = name in _MODES and flags != "--fix"
    elsewhere = f"`mode: {name}`" if is_mode else f"`./entrypoint.sh {command}`"
    return f"`releasekit {command}` ({elsewhere} of the action)"
