"""Which registry a package is meant for, by its own package.json and the workspace's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx

from releasekit.ecosystems.npm import NPMJS_HOST
from releasekit.ecosystems.npm.roots import find_registries
from releasekit.ecosystems.shared.destinations import NamedRegistry
from releasekit.http.origins import same_origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from releasekit.ecosystems.npm.manifest import NpmPackage
    from releasekit.ecosystems.npm.roots import WorkspaceFiles

# Yarn's name for npmjs.com's registry: https://github.com/yarnpkg/yarn/issues/5892
_NPMJS_HOSTS: Final = frozenset({NPMJS_HOST, "registry.yarnpkg.com"})


def find_named_registry(
    package: NpmPackage, home: WorkspaceFiles, *, is_set: bool
) -> NamedRegistry | None:
    """The one that the workspace's own tool would publish to; None where no file names one.

    An input that `is_set` is stronger than settings of the workspace, and weaker than the package's
    own `publishConfig`.
    """
    return next(_list_named(package, home, is_set=is_set), None)


def _list_named(
    package: NpmPackage, home: WorkspaceFiles, *, is_set: bool
) -> Iterator[NamedRegistry]:
    """The strongest first.

    npm, Bun, and pnpm, which calls npm: https://github.com/npm/cli/blob/latest/lib/commands/publish.js
    and https://github.com/npm/npm-registry-fetch/blob/main/lib/index.js (pickRegistry). Yarn knows
    no scopes in publishConfig:
    https://github.com/yarnpkg/berry/blob/master/packages/plugin-npm/sources/npmConfigUtils.ts
    (getPublishRegistry)
    """
    name, slash, _ = package.name.partition("/")
    scope = name if slash else ""
    settings = {} if is_set else find_registries(home, package.directory)
    order = [_of_package(package, "registry"), settings.get(scope), settings.get("")]
    if home.tool in {"npm", "pnpm", "bun"} and scope:
        order = [_of_package(package, f"{scope}:registry"), settings.get(scope), *order]
    yield from filter(None, order)


def _of_package(package: NpmPackage, key: str) -> NamedRegistry | None:
    url = package.publish_config.get(key)
    if not url or not isinstance(url, str):
        return None
    return NamedRegistry(str(package.manifest), f"publishConfig.{key}", url)


def is_same_registry(one: str, other: str) -> bool:
    """Whether both name one place: its origin, and the path, as one server may hold several."""
    try:
        mine, theirs = _parse(one), _parse(other)
    except (httpx.InvalidURL, UnicodeError):  # a host may be no name
        return False
    return same_origin(mine, theirs) and mine.path.rstrip("/") == theirs.path.rstrip("/")


def _parse(address: str) -> httpx.URL:
    url = httpx.URL(address)
    is_npmjs = url.host in _NPMJS_HOSTS and url.port is None
    return url.copy_with(scheme="https", host=NPMJS_HOST) if is_npmjs else url
