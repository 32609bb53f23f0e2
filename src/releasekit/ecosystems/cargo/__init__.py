"""Rust crates and cargo registries, declared."""

from typing import Final

from releasekit.config.declaration import Declaration
from releasekit.config.ecosystem import Demo, EcosystemDeclaration
from releasekit.ecosystems.cargo.options import Options
from releasekit.host.scrub import ToolVariables

DECLARATION: Final = EcosystemDeclaration(
    name="cargo",
    folder=__name__,
    title="Rust crates",
    registry=Declaration.registry(
        "cargo-registry",
        "Where crates go: the URL of a sparse index, or `dir:PATH` for a static directory. "
        "Default: what `.cargo/config.toml` says, else crates.io.",
    ),
    secrets=(
        Declaration.secret(
            "cargo-token",
            "The API token for `cargo-registry`; not needed with trusted publishing.",
        ),
    ),
    options=Options,
    variables=ToolVariables(seen=(r"CARGO_\w+", r"RUSTUP_\w+", r"RUSTC\w*", "RUSTFLAGS")),
    demo=Demo(tool="cargo", version="1.90", followers=("pypi:acme-measure",)),
)
