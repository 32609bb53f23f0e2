"""What cargo's own configuration says of registries.

https://doc.rust-lang.org/cargo/reference/config.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from releasekit.ecosystems.shared.documents import table_in, text_in
from releasekit.host.files import is_in_checkout, read_parsed
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from releasekit.host.sandbox import Sandbox

# What cargo calls it. https://doc.rust-lang.org/cargo/reference/registries.html
CRATES_IO_NAME: Final = "crates-io"
SPARSE: Final = "sparse+"
# Where a workspace has it.
PLACE: Final = ".cargo/config.toml"
_INDEX: Final = re.compile("CARGO_REGISTRIES_.+_INDEX")
_MAX_BYTES: Final = 1024 * 1024
_MAX_HOPS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CargoConfig:
    """`registries` maps each name to its index as it is written there, `sparse+` included;
    `stand_in` is the index of the registry that stands in for crates.io, empty when none does, and
    `replaced` says that something does, which may be a directory;
    `variables` are those of the environment that say where an index is. `of_the_user` are the URLs
    of sparse indexes that these name, or the user's own configuration, whatever is nearer.
    """

    registries: Mapping[str, str]
    default_registry: str = ""
    stand_in: str = ""
    replaced: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    of_the_user: tuple[str, ...] = ()

    def index_of(self, name: str) -> str:
        """As it is written; empty for a name that nothing says anything of."""
        return self.variables.get(_variable(name)) or self.registries.get(name, "")

    @classmethod
    def from_files(cls, root: Path, environment: Mapping[str, str], sandbox: Sandbox) -> Self:
        """The nearer file wins, and the environment over all. What builds can write is not the
        user's. Raises ConfigError.
        """
        registries: dict[str, str] = {}
        sources: dict[str, Mapping[str, Any]] = {}
        variables = {name: value for name, value in environment.items() if _INDEX.fullmatch(name)}
        own, home = [*variables.values()], cargo_home(environment)
        default = environment.get("CARGO_REGISTRY_DEFAULT", "")
        for path in _files(root, environment):
            document = _document(path)
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
            stand_in=_followed(sources, registries),
            replaced=bool(text_in(sources.get(CRATES_IO_NAME), "replace-with")),
        )


def cargo_home(environment: Mapping[str, str]) -> Path:
    """https://doc.rust-lang.org/cargo/guide/cargo-home.html"""
    return Path(environment.get("CARGO_HOME") or Path(environment.get("HOME", "/")) / ".cargo")


def _variable(name: str) -> str:
    return f"CARGO_REGISTRIES_{name.upper().replace('-', '_')}_INDEX"


def _followed(sources: Mapping[str, Mapping[str, Any]], registries: Mapping[str, str]) -> str:
    """https://doc.rust-lang.org/cargo/reference/source-replacement.html"""
    name = CRATES_IO_NAME
    for _ in range(_MAX_HOPS):
        instead = text_in(sources.get(name), "replace-with")
        if not instead:
            break
        name = instead
    if name == CRATES_IO_NAME:
        return ""
    return text_in(sources.get(name), "registry") or registries.get(name, "")


def _files(root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    directories = [directory / ".cargo" for directory in (root, *root.parents)]
    for directory in dict.fromkeys([*directories, cargo_home(environment)]):
        # The older name wins where both are.
        for name in ("config", "config.toml"):
            if (directory / name).is_file():
                yield directory / name
                break


def _document(path: Path) -> Mapping[str, Any]:
    return read_parsed(path, parse_toml, complaint="is not valid TOML", max_bytes=_MAX_BYTES)
