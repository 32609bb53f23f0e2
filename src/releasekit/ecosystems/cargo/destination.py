"""Where packages go: crates.io, a registry that cargo's configuration names, a URL, a directory.

https://doc.rust-lang.org/cargo/reference/config.html
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import httpx
from msgspec import Struct, field

from releasekit.config.values import Directory, Url
from releasekit.ecosystems.cargo import CRATES_IO_INDEX
from releasekit.ecosystems.shared.crates import read_toml
from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.errors import ConfigError, did_you_mean
from releasekit.fields import replace
from releasekit.host.files import is_in_checkout
from releasekit.http.origins import require_safe, same_origin
from releasekit.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.config.values import Name
    from releasekit.ecosystems.cargo import CargoOptions
    from releasekit.ecosystems.interface import Services
    from releasekit.host.sandbox import Sandbox

# Its name in cargo's configuration. https://doc.rust-lang.org/cargo/reference/registries.html
CRATES_IO_NAME: Final = "crates-io"
# Its name wherever the URL of an index is expected, also for the sparse protocol.
# https://doc.rust-lang.org/cargo/reference/registry-index.html (dependencies: registry)
CRATES_IO: Final = "https://github.com/rust-lang/crates.io-index"
SPARSE: Final = "sparse+"
_INDEX: Final = re.compile("CARGO_REGISTRIES_.+_INDEX")
_MAX_HOPS: Final = 16
# Index to API, which people also write as the address, where config.json need not be read.
_KNOWN: Final = {
    CRATES_IO_INDEX: "https://crates.io",
    "https://index.staging.crates.io/": "https://staging.crates.io",
}
_ALIASES: Final = {api: index for index, api in _KNOWN.items()}


class CargoConfig(Struct, frozen=True, kw_only=True):
    """`registries` maps each name to its index as it is written there, `sparse+` included;
    `stand_in` is the index of the registry that stands in for crates.io, empty when none does, and
    `replaced` says that something does, which may be a directory; `variables` are those of the
    environment that name an index. `of_the_user` are the URLs of sparse indexes in these variables
    and in the user's own configuration, even where a nearer file overrides it.
    """

    registries: Mapping[str, str]
    default_registry: str = ""
    stand_in: str = ""
    replaced: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    of_the_user: tuple[str, ...] = ()

    def index_of(self, name: str) -> str:
        """As it is written; empty for a name that is not configured."""
        return self.variables.get(_variable(name)) or self.registries.get(name, "")

    @classmethod
    def from_files(cls, root: Path, environment: Mapping[str, str], sandbox: Sandbox) -> Self:
        """The nearer file wins over the farther one, and the environment over all. A file that
        builds can change does not count as the user's. Raises ConfigError.
        """
        registries: dict[str, str] = {}
        sources: dict[str, Mapping[str, Any]] = {}
        variables = {name: value for name, value in environment.items() if _INDEX.fullmatch(name)}
        own, home = [*variables.values()], cargo_home(environment)
        default = environment.get("CARGO_REGISTRY_DEFAULT", "")
        for path in _find_files(root, environment):
            document = read_toml(path)
            is_own = path.parent == home and not (
                is_in_checkout(path, root) or sandbox.can_change(path)
            )
            for name, entry in table_in(document, "registries").items():
                if index := text_in(entry, "index"):
                    registries.setdefault(name, index)
                    own += [index] if is_own else []
            for name, entry in table_in(document, "source").items():
                sources.setdefault(name, entry)
            default = default or text_in(document.get("registry"), "default")
        registries = {
            name: environment.get(_variable(name)) or index for name, index in registries.items()
        }
        return cls(
            registries=registries,
            variables=variables,
            of_the_user=tuple(
                index.removeprefix(SPARSE) for index in own if index.startswith(SPARSE)
            ),
            default_registry=default,
            stand_in=_find_stand_in(sources, registries),
            replaced=bool(text_in(sources.get(CRATES_IO_NAME), "replace-with")),
        )


def _find_stand_in(sources: Mapping[str, object], registries: Mapping[str, str]) -> str:
    """https://doc.rust-lang.org/cargo/reference/source-replacement.html"""
    name = CRATES_IO_NAME
    for _ in range(_MAX_HOPS):
        name = text_in(sources.get(name), "replace-with") or name
    if name == CRATES_IO_NAME:
        return ""
    return text_in(sources.get(name), "registry") or registries.get(name, "")


def cargo_home(environment: Mapping[str, str]) -> Path:
    """https://doc.rust-lang.org/cargo/guide/cargo-home.html"""
    return Path(environment.get("CARGO_HOME") or Path(environment.get("HOME", "/")) / ".cargo")


def _variable(name: str) -> str:
    return f"CARGO_REGISTRIES_{name.upper().replace('-', '_')}_INDEX"


def _find_files(root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    directories = [directory / ".cargo" for directory in (root, *root.parents)]
    for directory in dict.fromkeys([*directories, cargo_home(environment)]):
        # The older name wins where both exist.
        for name in ("config", "config.toml"):
            if (directory / name).is_file():
                yield directory / name
                break


class Destination(Struct, frozen=True, kw_only=True):
    """`name` is its name in cargo's configuration, empty where it has none. `directory` is set for
    a directory; else `index` is the URL of its sparse index, ending with a slash, and `api` that
    of its API if it is known beforehand. `stands_for` is the index that manifests name for it.
    `only_in` is that of `Url`.
    """

    name: str = ""
    directory: Path | None = None
    index: str = ""
    api: str = ""
    stands_for: str = CRATES_IO
    only_in: str = ""

    def holds(self, registry: str) -> bool:
        """Whether cargo looks here for a dependency on `registry`, empty for crates.io."""
        return with_slash(registry or CRATES_IO) in {with_slash(self.stands_for), self.index}

    @property
    def is_crates_io(self) -> bool:
        return self.index in _KNOWN

    @property
    def manifest_index(self) -> str:
        """Its name in a manifest, and in the index line of another package."""
        if self.is_crates_io:
            return CRATES_IO
        return "" if self.directory else f"{SPARSE}{self.index}"


def find_destination(
    root: Path, goes_to: Directory | Url | Name | None, options: CargoOptions, services: Services
) -> Destination:
    """What inputs, releasekit.toml and cargo's configuration say, in this order. Raises ConfigError
    for an unknown name, and for an index that is not sparse.
    """
    cargo = CargoConfig.from_files(root, services.environment, services.processes.sandbox)
    match goes_to:
        case Directory(path):
            stands_for = cargo.index_of(options.registry) or CRATES_IO
            return Destination(name=options.registry, directory=path, stands_for=stands_for)
        case Url(url, where):
            index = with_slash(url)
            named = (name for name, at in cargo.registries.items() if with_slash(at) == index)
            found = _make_destination(index, options.registry or next(named, ""))
        case given:
            name = options.registry or cargo.default_registry or CRATES_IO_NAME
            found = _find_named(cargo, name if given is None else given.text)
            # A name leads where cargo's configuration says, whichever input gives it.
            where = f".cargo/config.toml: registries.{found.name}"
    require_safe(found.index, name="cargo-registry", insecure=services.insecure)
    stands_in = found.is_crates_io or with_slash(cargo.stand_in) == found.index
    known = (CRATES_IO_INDEX, *cargo.of_the_user)
    return replace(
        found,
        stands_for=CRATES_IO if stands_in else found.index,
        only_in="" if any(_has_origin(index, found.index) for index in known) else where,
    )


def _has_origin(written: str, index: str) -> bool:
    try:
        return same_origin(written, index)
    except httpx.InvalidURL:
        return False


def _find_named(cargo: CargoConfig, name: str) -> Destination:
    if name == CRATES_IO_NAME:
        return _make_destination(CRATES_IO_INDEX, name)
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
    return _make_destination(with_slash(index), name)


def _make_destination(address: str, name: str) -> Destination:
    index = _ALIASES.get(address.rstrip("/"), address)
    name = name or (CRATES_IO_NAME if index in _KNOWN else "")
    return Destination(name=name, index=index, api=_KNOWN.get(index, ""))


def with_slash(index: str) -> str:
    """The URL of a sparse index in one spelling."""
    return index.removeprefix(SPARSE).rstrip("/") + "/"
