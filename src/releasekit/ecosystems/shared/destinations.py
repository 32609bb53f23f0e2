"""Registries that files of a package name for it, where a run would send it to another one."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from releasekit.config.locations import FILENAME
from releasekit.errors import ConfigError, map_all
from releasekit.problems import Problem
from releasekit.report.text import few
from releasekit.text.escape import redact_urls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from releasekit.config.config import PlanConfig
    from releasekit.model import PackageId


# How many packages a hint names.
_MOST: Final = 20
# Of a property, or of a variable of the environment.
_EXPRESSION: Final = re.compile(r"\$\{[^}]*\}|^\$[A-Za-z_]\w*", re.ASCII)


class NamedRegistry(NamedTuple):
    """`key` is what the file `where` calls it, `url` as it is written there."""

    where: str
    key: str
    url: str


def find_elsewhere(
    meant: Iterable[tuple[PackageId, NamedRegistry | None]],
    config: PlanConfig,
    *,
    here: str,
    setting: str,
    cure: str = "",
) -> frozenset[PackageId]:
    """Of the packages of this run, those that are meant for another registry than `here`, which the
    input `setting` overrides. Raises ConfigError with the names of all of them for a command that
    has to know where each goes; `cure` sends them here all the same.
    """
    elsewhere: dict[NamedRegistry, list[PackageId]] = {}
    for package, named in meant:
        if named is not None and config.package_filter.has_package(package):
            elsewhere.setdefault(named, []).append(package)

    def refuse(each: tuple[NamedRegistry, Sequence[PackageId]]) -> None:
        (where, key, written), ids = each
        url, names = redact_urls(written), ",".join(map(str, ids[:_MOST]))
        names += ",…" if len(ids) > _MOST else ""
        unknown = _EXPRESSION.search(url)
        said = f", in which ReleaseKit does not resolve {unknown[0]}" if unknown else ""
        to, known = ("URL", ", with the address that it stands for,") if unknown else (url, "")
        raise ConfigError(
            f"{where}: {key} is {url!r}{said}, and {few([it.name for it in ids])} would go to "
            f"{here}",
            hint=f"Set `{setting}: {to}`{known} to publish there. If other packages go to {here}, "
            f"make two runs: one with the input `exclude-packages: {names}`, and one with "
            f"`packages: {names}` and `{setting}: {to}`. Do not write `exclude-packages` into "
            f"{FILENAME}: `version` would leave them out, too. `{cure or f'{setting}: {here}'}` "
            f"publishes everything to {here}.",
            problem=Problem.REGISTRY_SETTINGS,
        )

    if config.command.needs_destinations:
        map_all(refuse, elsewhere.items())
    return frozenset(chain.from_iterable(elsewhere.values()))
