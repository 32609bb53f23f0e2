"""How Maven gets a package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from releasekit.ecosystems.clients import Clients, Trial
from releasekit.ecosystems.maven.build import PLUGINS
from releasekit.ecosystems.maven.layout import main_names, pom_name

if TYPE_CHECKING:
    from pathlib import Path

    from releasekit.model import Package


class MavenClients(Clients):
    """`command` starts mvn, in `root`; `repository` is empty for Maven Central."""

    def __init__(self, root: Path, command: str, repository: str) -> None:
        self._root = root
        self._command = command
        self._repository = repository

    def try_out(self, package: Package, shared: Path, /) -> Trial:
        """`dependency:get` resolves what the POM needs, too. Two mvn may not share a repository.
        https://maven.apache.org/plugins/maven-dependency-plugin/get-mojo.html
        """
        command = self._command
        main = next(iter(main_names(package)), pom_name(package))
        return Trial(
            argv=(
                str(self._root / command) if "/" in command else command,
                *("--batch-mode", "--no-transfer-progress", f"-Dmaven.repo.local={shared}"),
                f"{PLUGINS}:maven-dependency-plugin:3.8.1:get",
                f"-Dartifact={package.id.name}:{package.version}:{main.rpartition('.')[2]}",
                *([f"-DremoteRepositories=it::::{self._repository}"] if self._repository else []),
            ),
            files={".mvn/jvm.config": ""},  # else it looks for one in all directories above
            alone=True,
        )
