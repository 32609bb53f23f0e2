"""Where packages go: crates.io, a registry that cargo's configuration names, a URL, a directory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import httpx

from releasekit.config.values import Directory, Name, Url
from releasekit.ecosystems.cargo.configuration import CRATES_IO_NAME, PLACE, SPARSE, CargoConfig
from releasekit.ecosystems.cargo.publication import CRATES_IO
from releasekit.errors import ConfigError, did_you_mean
from releasekit.http.origins import require_safe, same_origin
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from releasekit.config.config import Config
    from releasekit.ecosystems.cargo import Options
    from releasekit.host.sandbox import Sandbox

_DEFAULT: Final = "https://index.crates.io/"
# Index to API, for those that need not be asked for it, and the addresses people know them by.
_KNOWN: Final = {
    _DEFAULT: "https://crates.io",
    "https://index.staging.crates.io/": "https://staging.crates.io",
}
_ALIASES: Final = {api: index for index, api in _KNOWN.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """`name` is what cargo calls it, empty when its configuration does not know it. `directory` is
    set for a directory; else `index` is the URL of its sparse index, ending with a slash, and
    `api` that of its API where it is known beforehand. `stands_for` is the index that manifests
    name when they mean it. `only_in` is that of `Url`.
    """

    name: str = ""
    directory: Path | None = None
    index: str = ""
    api: str = ""
    stands_for: str = CRATES_IO
    only_in: str = field(default="", compare=False)

    def holds(self, registry: str) -> bool:
        """Whether a dependency on `registry`, empty for crates.io, is looked for here."""
        return _with_slash(registry or CRATES_IO) in {_with_slash(self.stands_for), self.index}

    @property
    def is_crates_io(self) -> bool:
        return self.index in _KNOWN

    @property
    def manifest_index(self) -> str:
        """As a manifest, or another package's index line, would name it."""
        if self.is_crates_io:
            return CRATES_IO
        return "" if self.directory else f"{SPARSE}{self.index}"


def destination_for(
    config: Config, options: Options, environment: Mapping[str, str], sandbox: Sandbox
) -> Destination:
    """What inputs, releasekit.toml and cargo's configuration say, in this order.

    Raises ConfigError for a name nobody knows, and an index that is not sparse.
    """
    cargo = CargoConfig.from_files(config.root, environment, sandbox)
    found = _destination(cargo, config, options)
    if found.directory is None:
        require_safe(found.index, name="cargo-registry", insecure=config.insecure_hosts)
    if found.directory is not None:
        return replace(found, stands_for=cargo.index_of(found.name) or CRATES_IO)
    stands_in = found.is_crates_io or _with_slash(cargo.stand_in) == found.index
    return replace(
        found,
        stands_for=CRATES_IO if stands_in else found.index,
        only_in=_find_only_in(found, cargo, config),
    )


def _destination(cargo: CargoConfig, config: Config, options: Options) -> Destination:
    match config.registries.get("cargo"):
        case Directory(path):
            return Destination(name=options.registry, directory=path)
        case Url(url):
            index = _with_slash(url)
            named = (name for name, at in cargo.registries.items() if _with_slash(at) == index)
            return _at(index, options.registry or next(named, ""))
        case Name(name):
            return _named(cargo, name)
        case None:
            return _named(cargo, options.registry or cargo.default_registry or CRATES_IO_NAME)


def _find_only_in(found: Destination, cargo: CargoConfig, config: Config) -> str:
    """A name leads where cargo's configuration says, whoever has given it."""
    given = config.registries.get("cargo")
    where = given.only_in if isinstance(given, Url) else f"{PLACE}: registries.{found.name}"
    known = (_DEFAULT, *cargo.of_the_user)
    return "" if any(_has_origin(index, found.index) for index in known) else where


def _has_origin(written: str, index: str) -> bool:
    try:
        return same_origin(written, index)
    except httpx.InvalidURL:
        return False


def _named(cargo: CargoConfig, name: str) -> Destination:
    if name == CRATES_IO_NAME:
        return _at(_DEFAULT, name)
    index = cargo.index_of(name)
    if not index:
        raise ConfigError(
            f"cargo: the registry {name!r} is not configured{did_you_mean(name, cargo.registries)}",
            hint=f'Write into .cargo/config.toml: [registries.{name}] index = "sparse+https://…".',
            problem=Problem.REGISTRY_SETTINGS,
        )
    if not index.startswith(SPARSE):
        raise ConfigError(
            f"cargo: the index of the registry {name!r} is a git repository",
            hint="Use its sparse index (sparse+https://…), which every current server has.",
            problem=Problem.REGISTRY_SETTINGS,
        )
    return _at(_with_slash(index), name)


def _at(address: str, name: str) -> Destination:
    index = _ALIASES.get(address.rstrip("/"), address)
    name = name or (CRATES_IO_NAME if index in _KNOWN else "")
    return Destination(name=name, index=index, api=_KNOWN.get(index, ""))


def _with_slash(index: str) -> str:
    return index.removeprefix(SPARSE).rstrip("/") + "/"
