"""The file with the outputs, for a CI that obeys none that are printed: where it lies, how an old
one goes before a run, and how a new one is written after it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

from releasekit.errors import ConfigError, PathError, ReleasekitError, describe_os_error
from releasekit.host import durable
from releasekit.host.output_path import describe_obstacle
from releasekit.state.directory import NAME as STATE
from releasekit.state.directory import make_state_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.config import ReportConfig
    from releasekit.host.ci import CI

NAME: Final = "outputs.env"


class OutputsFile(Struct, frozen=True):
    path: Path
    is_state: bool

    @classmethod
    def of_config(cls, config: ReportConfig, ci: CI) -> Self | None:
        """None for a command without outputs. Raises ConfigError where the CI has its own."""
        if config.outputs_file is not None and ci.is_actions:
            raise ConfigError(
                "outputs-file is for other CIs: steps of this one read `steps.ID.outputs.result`",
                hint="Leave `outputs-file` out.",
            )
        if config.outputs_file is not None:
            return cls(config.outputs_file, is_state=False)
        has_default = ci.kind == "gitlab" and "reports" in config.command.takes
        return cls(config.state_directory / NAME, is_state=True) if has_default else None

    @classmethod
    def of_variables(cls, environment: Mapping[str, str], cwd: Path, ci: CI) -> Self | None:
        """Most likely the same one, where the configuration cannot be read."""
        root = cwd / environment.get("RELEASEKIT_WORKING_DIRECTORY", "")
        state = environment.get("RELEASEKIT_STATE_DIRECTORY") or STATE
        named = environment.get("RELEASEKIT_OUTPUTS_FILE", "")
        default = f"{state}/{NAME}" if ci.kind == "gitlab" else ""
        if ci.is_actions or not (named or default):
            return None
        path = cwd / os.path.normpath(root / (named or default))
        with suppress(OSError):  # the error that is told is about something else
            # Whatever lies in the state directory, GitLab would read it.
            if not named or not describe_obstacle(path, "outputs"):
                return cls(path, is_state=not named)
        return None

    def forget(self) -> None:
        """Remove those of an earlier run, which a cache may bring along: if this one ends early,
        later jobs must not take them for its own. Raises PathError where that cannot be.
        """
        try:
            if durable.is_file(self.path):
                durable.remove(self.path)
        except OSError as error:
            raise PathError(f"{self.path}: cannot be removed: {error.strerror}") from error

    def write(self, text: str) -> str:
        """Returns what is in the way, or nothing."""
        try:
            if self.is_state:
                make_state_directory(self.path.parent)
                # A link in its place would be followed by GitLab.
                durable.remove_tree(self.path)
            else:
                durable.make_directory(self.path.parent)
            durable.replace(self.path, text.encode())
        except (OSError, ReleasekitError) as error:
            why = describe_os_error(error) if isinstance(error, OSError) else error
            return f"{self.path}: the outputs are not written: {why}"
        return ""
