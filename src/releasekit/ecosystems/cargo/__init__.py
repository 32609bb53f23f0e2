"""Rust crates and cargo registries, declared."""

from typing import Annotated, ClassVar, Final

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests, Setup, Tool
from releasekit.config.tables import Option, OptionTable
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables

CRATES_IO_INDEX: Final = "https://index.crates.io/"


class CargoOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "cargo"

    workspaces: Annotated[
        tuple[str, ...],
        Option(
            "Further directories with a Cargo.toml of their own. A package that belongs to the "
            "workspace of another Cargo.toml needs no entry."
        ),
    ] = ()
    registry: Annotated[
        str,
        Option(
            "A name from `[registries]` of `.cargo/config.toml`; if empty, cargo's own default."
        ),
    ] = ""
    verify: Annotated[bool, Option("Compile each crate as it will be published.")] = True
    directory_url: Annotated[
        str, Option("The address at which a `dir:` registry will be served.")
    ] = ""
    pass_env: Annotated[
        tuple[str, ...], Option("Variables that a verifying build sees besides the usual ones.")
    ] = ()


TOOL: Final = Tool(
    program="cargo",
    # The first that packages crates which need one another before they are published:
    # https://doc.rust-lang.org/cargo/CHANGELOG.html#cargo-190-2025-09-18
    version="1.90",
    # https://rust-lang.github.io/rustup/overrides.html
    install="Install Rust 1.90 or later (https://rustup.rs; `rustup update` updates it, and "
    "RUSTUP_TOOLCHAIN=stable overrides rust-toolchain.toml), or leave cargo out with `ecosystem`, "
    "and packages of others that need one of it with `exclude-packages`.",
    followers=("pypi:acme-measure",),
)

DECLARATION: Final = EcosystemDeclaration(
    name="cargo",
    folder=__name__,
    title="Rust crates",
    registry=Declaration.registry(
        "cargo-registry",
        "Where crates go: the URL of a sparse index, the name of a registry in "
        "`.cargo/config.toml`, or `dir:PATH` for a static directory. Default: the registry of "
        "`.cargo/config.toml`, else crates.io.",
        named=True,
    ),
    default_registry=CRATES_IO_INDEX,
    # Of crates.io itself, the address of its API stands for the index.
    pages=dict.fromkeys(
        ("crates.io", "www.crates.io", "static.crates.io"), (CRATES_IO_INDEX, "https://crates.io")
    ),
    secrets=(
        Declaration.secret(
            "cargo-token", "The API token for `cargo-registry`; not needed with trusted publishing."
        ),
    ),
    options=CargoOptions,
    variables=ToolVariables(seen=(r"CARGO_\w+", r"RUSTUP_\w+", r"RUSTC\w*", "RUSTFLAGS")),
    caches=(
        Cache(
            *("cargo", "CARGO_HOME", "~/.cargo"),
            below=("registry/", "git/", ".package-cache", ".package-cache-mutate", ".global-cache"),
        ),
        Cache("sccache", "SCCACHE_DIR", "~/.cache/sccache"),
        # One directory for the targets of many workspaces; without them, it is in the workspace.
        # https://doc.rust-lang.org/cargo/reference/config.html#buildtarget-dir
        Cache("cargo", "CARGO_TARGET_DIR", ""),
        Cache("cargo", "CARGO_BUILD_TARGET_DIR", ""),
        Cache("cargo", "CARGO_BUILD_BUILD_DIR", ""),
    ),
    setup=Setup(
        # https://crates.io/docs/trusted-publishing
        first="Publish the first version of a new crate with a token, the secret CARGO_TOKEN. Then "
        "register this repository and the workflow release.yml at "
        "https://crates.io/crates/{name}/settings/new-trusted-publisher.",
        inputs="""\
# cargo-token: ${{ secrets.CARGO_TOKEN }}  # for the first version of a new crate
""",
        trusts=True,
    ),
    tool=TOOL,
    suffixes=(".crate",),
    manifests=Manifests(names=("Cargo.toml",), workspaces="workspaces", packages="workspaces"),
)
