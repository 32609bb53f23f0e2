"""A build hook that writes a package's version into its wheel."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl


class StampHook(BuildHookInterface):
    PLUGIN_NAME = "acme-stamp"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        self._directory = tempfile.TemporaryDirectory()
        stamp = Path(self._directory.name, "_stamp.py")
        stamp.write_text(f'VERSION = "{self.metadata.version}"\n')
        build_data["force_include"][str(stamp)] = f"{self.config['package']}/_stamp.py"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.target_name == "wheel":
            self._directory.cleanup()


@hookimpl
def hatch_register_build_hook() -> type[StampHook]:
    return StampHook
