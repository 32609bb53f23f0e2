"""The properties that are set from outside the POMs, by `-D`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from releasekit.host.files import read_parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from releasekit.ecosystems.maven import Options

MAX_BYTES: Final = 64 * 1024


def overrides(root: Path, top: Path, options: Options) -> dict[str, str]:
    """Of `.mvn/maven.config`, then of `[maven] args`, then of `[maven] properties`."""
    configured = dict(_defined(_configured(root, top)))
    return {**configured, **dict(_defined(options.args)), **options.properties}


def _configured(root: Path, top: Path) -> list[str]:
    """The arguments in the nearest `.mvn` at or above the reactor.

    https://maven.apache.org/configure.html#mvn-maven-config-file
    """
    levels = [each for each in (top, *top.parents) if each.is_relative_to(root)]
    for settings in (level / ".mvn" for level in levels):
        if settings.is_dir():
            path = settings / "maven.config"
            if not path.is_file():
                return []
            return read_parsed(
                path, _words, complaint="is not a list of arguments", max_bytes=MAX_BYTES
            )
    return []


def _words(text: str) -> list[str]:
    # Lines that begin with # are comments from Maven 3.9 on, and never were arguments before.
    return [word for line in text.splitlines() if line[:1] != "#" for word in shlex.split(line)]


def _defined(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    following = iter(arguments)
    for argument in following:
        text = ""
        if argument in {"-D", "--define"}:
            text = next(following, "")
        elif argument.startswith(("-D", "--define=")):
            text = argument.removeprefix("--define=").removeprefix("-D")
        name, equals, value = text.partition("=")
        if name:
            yield name, value if equals else "true"
