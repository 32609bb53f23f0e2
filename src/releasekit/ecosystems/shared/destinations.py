"""Registries that files of a package name for it, where a run would send it to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from releasekit.errors import ConfigError, map_all
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.escape import redact_urls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class NamedRegistry(NamedTuple):
    """`key` is what the file `where` calls it, `url` as it is written there."""

    where: str
    key: str
    url: str


def refuse_elsewhere(
    elsewhere: Mapping[NamedRegistry, Sequence[str]], *, here: str, setting: str, cure: str = ""
) -> None:
    """Raises ConfigError with the names of all packages that are meant for another registry than
    `here`, which the input `setting` overrides; `cure` sends them here all the same.
    """

    def refuse(meant: tuple[NamedRegistry, Sequence[str]]) -> None:
        (where, key, written), names = meant
        url = redact_urls(written)
        raise ConfigError(
            f"{where}: {key} is {url!r}, and {few(names)} would go to {here}",
            hint=f"Set `{setting}: {url}` to publish there, or list what belongs there in "
            f"`exclude-packages` and publish it in another run. `{cure or f'{setting}: {here}'}` "
            f"publishes everything to {here}.",
            problem=Problem.REGISTRY_SETTINGS,
        )

    map_all(refuse, elsewhere.items())
