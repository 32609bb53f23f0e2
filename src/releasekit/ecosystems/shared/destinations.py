"""Registries that files of a package name for it, where a run would send it to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.config.locations import FILENAME
from releasekit.errors import ConfigError, map_all
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.escape import redact_urls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from releasekit.model import PackageId


# How many packages a hint names.
_MOST: Final = 20


class NamedRegistry(NamedTuple):
    """`key` is what the file `where` calls it, `url` as it is written there."""

    where: str
    key: str
    url: str


def refuse_elsewhere(
    elsewhere: Mapping[NamedRegistry, Sequence[PackageId]],
    *,
    here: str,
    setting: str,
    cure: str = "",
) -> None:
    """Raises ConfigError with the names of all packages that are meant for another registry than
    `here`, which the input `setting` overrides; `cure` sends them here all the same.
    """

    def refuse(meant: tuple[NamedRegistry, Sequence[PackageId]]) -> None:
        (where, key, written), ids = meant
        url, names = redact_urls(written), ",".join(map(str, ids[:_MOST]))
        names += ",…" if len(ids) > _MOST else ""
        raise ConfigError(
            f"{where}: {key} is {url!r}, and {few([each.name for each in ids])} would go to {here}",
            hint=f"Set `{setting}: {url}` to publish there. If other packages go to {here}, make "
            f"two runs: one with the input `exclude-packages: {names}`, and one with `packages: "
            f"{names}` and `{setting}: {url}`; in {FILENAME}, `exclude-packages` would end their "
            f"versions, too. `{cure or f'{setting}: {here}'}` publishes everything to {here}.",
            problem=Problem.REGISTRY_SETTINGS,
        )

    map_all(refuse, elsewhere.items())
