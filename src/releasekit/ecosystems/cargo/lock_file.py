"""What a Cargo.lock says that crates need.

https://doc.rust-lang.org/cargo/guide/cargo-toml-vs-cargo-lock.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from releasekit.ecosystems.shared.documents import text_in
from releasekit.graph import reachable
from releasekit.text.bounds import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

_REGISTRY: Final = "registry+"
_CRATES_IO: Final = "registry+https://github.com/rust-lang/crates.io-index"


def needed(lock: bytes, names: Iterable[str]) -> set[tuple[str, str]]:
    """The index, as manifests name it and empty for crates.io, and the name of all that `names`
    are and need, as far as it is from registries; nothing where the file cannot be read, of which
    cargo says more.
    """
    try:
        packages = parse_toml(lock.decode()).get("package")
    except ValueError:
        return set()
    edges: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for package in packages if isinstance(packages, list) else []:
        name, source = text_in(package, "name"), text_in(package, "source")
        if name and source:
            # "NAME", "NAME VERSION" or "NAME VERSION (SOURCE)".
            needs = package.get("dependencies") or []
            edges.setdefault(name, set()).update(str(need).partition(" ")[0] for need in needs)
            sources.setdefault(name, set()).add("" if source == _CRATES_IO else source)
    return {
        (source, name)
        for name in reachable(names, lambda name: edges.get(name, ()))
        for source in sources.get(name, ())
        if not source.startswith(_REGISTRY)
    }
