"""What Maven packages are built by, looked for before anything is built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.maven.signing import check_gpg
from releasekit.errors import ConfigError, PathError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.ecosystems.maven import Options
    from releasekit.host.process import Processes
    from releasekit.model import Package

OLDEST: Final = (3, 6, 3)
INSTALL: Final = (
    "Install Maven 3.6.3 or later (https://maven.apache.org/install.html), or name the wrapper in "
    'releasekit.toml: [maven] command = "./mvnw".'
)
_JDK: Final = "Install a JDK (actions/setup-java does), and put it on PATH or into JAVA_HOME."
_GPG: Final = "Install GnuPG (https://gnupg.org), or do without signatures."
_CORE: Final = re.compile(r"maven-core-(\d+)\.(\d+)\.(\d+).*\.jar")


def missing_tool(
    packages: Sequence[Package],
    options: Options,
    processes: Processes,
    environment: Mapping[str, str],
) -> ConfigError | None:
    """Why none of `packages` could be built; lists two directories at most."""
    try:
        lacks_gpg = bool(options.sign) and not check_gpg(processes)
    except PathError as error:
        return PathError(f"maven: {error}", hint=error.hint)
    if all(package.prebuilt for package in packages):
        return None
    command = options.command
    found = command if "/" in command else processes.which(command)
    if found is None:
        return ConfigError(f"maven: {command} is not on PATH", hint=INSTALL)
    if "/" not in command and (version := _version_of(Path(found))) and version < OLDEST:
        said = ".".join(map(str, version))
        return ConfigError(f"maven: the {command} on PATH is {said}, too old", hint=INSTALL)
    if processes.which("java") is None and not _is_told_a_jdk(environment):
        return ConfigError("maven: java is not on PATH, and JAVA_HOME is not set", hint=_JDK)
    if lacks_gpg:
        return ConfigError("maven: [maven] sign is set, and gpg is not on PATH", hint=_GPG)
    return None


def _is_told_a_jdk(environment: Mapping[str, str]) -> bool:
    """Mvn reads these files first. https://maven.apache.org/configure.html"""
    files = (Path("/etc/mavenrc"), Path(environment.get("HOME", "/"), ".mavenrc"))
    return bool(environment.get("JAVA_HOME")) or any(path.exists() for path in files)


def _version_of(command: Path) -> tuple[int, ...]:
    """Of the installation that the program belongs to; empty where it is none, as with shims."""
    library = command.resolve().parent.parent / "lib"
    for path in library.glob("maven-core-*.jar"):
        if match := _CORE.fullmatch(path.name):
            return tuple(map(int, match.groups()))
    return ()
