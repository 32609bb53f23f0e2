"""How npm and pnpm get a package."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from releasekit.ecosystems.clients import Clients, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.ecosystems.npm.discover import Found
    from releasekit.model import Package


class NpmClients(Clients):
    def __init__(self, found: Found, url: str) -> None:
        self._found = found
        self._url = url

    def try_out(self, package: Package, shared: Path, /) -> Trial:
        """By pnpm where the workspace is its own. npm reads the manifests of git dependencies, and
        packs none for a lock file alone: https://github.com/npm/pacote/blob/main/lib/git.js
        """
        url, found = self._url, self._found
        public = [each for each in found.by_name.values() if not each.unpublishable]
        scopes = {each.name.partition("/")[0] for each in public if each.name.startswith("@")}
        # What belongs to others comes from where the configuration of the user says.
        is_scoped = all(each.name.startswith("@") for each in public)
        everywhere = [] if is_scoped else ["--registry", url]
        if found.home(found.by_name[package.id.name]).tool == "pnpm":
            argv = ["pnpm", "install", "--lockfile-only", "--ignore-workspace"]
            argv += [f"--config.cache-dir={shared}"]
        else:
            argv = ["npm", "install", "--package-lock-only", "--no-audit", "--no-fund"]
            argv += ["--cache", str(shared)]
        manifest = {"private": True, "dependencies": {package.id.name: package.version}}
        return Trial(
            argv=[*argv, "--ignore-scripts", *everywhere],
            files={
                "package.json": json.dumps(manifest),
                ".npmrc": "".join(f"{scope}:registry={url}\n" for scope in sorted(scopes)),
            },
        )
