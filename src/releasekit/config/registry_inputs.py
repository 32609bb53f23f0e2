"""Where each ecosystem's packages go, and as whom."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from releasekit.config.declaration import Declaration
from releasekit.config.run_inputs import ALL, PUBLISH, RunInputs


@dataclass(frozen=True, kw_only=True)
class RegistryInputs(RunInputs):
    """See `inputs.Inputs`."""

    pypi_username: Annotated[
        str,
        Declaration(
            "The user that `pypi-token` belongs to.",
            "text",
        ),
    ] = "__token__"
    pypi_registry: Annotated[
        str,
        Declaration(
            "Where Python packages go: an upload URL, or `dir:PATH` for a static directory. "
            "Default: pypi.org.",
            "registry",
            commands=ALL,
        ),
    ] = ""
    pypi_index: Annotated[
        str,
        Declaration(
            "The simple index that belongs to `pypi-registry`; derived from it by default.",
            "registry",
        ),
    ] = ""
    npm_registry: Annotated[
        str,
        Declaration(
            "Where npm packages go: a registry's URL, or `dir:PATH` for a static directory. "
            "Default: registry.npmjs.org.",
            "registry",
            commands=ALL,
        ),
    ] = ""
    npm_tag: Annotated[
        str,
        Declaration(
            "The dist-tag of every npm package. Default: `latest` for what is newest; a prerelease "
            "gets its own word (`beta`), an older release line its own (`release-1.x`).",
            "text",
        ),
    ] = ""
    npm_access: Annotated[
        Literal["", "public", "restricted"],
        Declaration(
            "Who may see npm packages with a scope: `public` or `restricted`. Default: what their "
            "`publishConfig` says, or npm's own default.",
            "choice",
            choices=("public", "restricted"),
        ),
    ] = ""
    maven_username: Annotated[
        str,
        Declaration(
            "The user that `maven-password` belongs to, or the first half of a token.",
            "text",
        ),
    ] = ""
    maven_registry: Annotated[
        str,
        Declaration(
            "Where Maven packages go: a repository's URL, or `dir:PATH` for a static directory. "
            "Default: Maven Central, by its portal.",
            "registry",
            commands=ALL,
        ),
    ] = ""
    cargo_registry: Annotated[
        str,
        Declaration(
            "Where crates go: the URL of a sparse index, or `dir:PATH` for a static directory. "
            "Default: what `.cargo/config.toml` says, else crates.io.",
            "registry",
            commands=ALL,
        ),
    ] = ""
    go_proxy: Annotated[
        str,
        Declaration(
            "The module proxy that shows Go modules once their tags are pushed, or `dir:PATH` for "
            "a static directory instead of tags. Default: proxy.golang.org.",
            "registry",
            commands=ALL,
        ),
    ] = ""
    registry: Annotated[
        str,
        Declaration(
            "`dir:PATH`: static directories, `PATH/pypi` for Python, for every ecosystem that "
            "has no registry of its own here.",
            "registry",
        ),
    ] = ""


# Their values never pass through here: `credentials` takes them from the environment.
SECRETS: Final = {
    "pypi-token": Declaration(
        "The token or password for `pypi-registry`; not needed with trusted publishing.",
        "secret",
        name="pypi-token",
        commands=PUBLISH,
        places=frozenset({"action"}),
    ),
    "npm-token": Declaration(
        "The access token for `npm-registry`; not needed with trusted publishing.",
        "secret",
        name="npm-token",
        commands=PUBLISH,
        places=frozenset({"action"}),
    ),
    "cargo-token": Declaration(
        "The API token for `cargo-registry`; not needed with trusted publishing.",
        "secret",
        name="cargo-token",
        commands=PUBLISH,
        places=frozenset({"action"}),
    ),
    "maven-password": Declaration(
        "The password for `maven-registry`, or the second half of a token.",
        "secret",
        name="maven-password",
        commands=PUBLISH,
        places=frozenset({"action"}),
    ),
}
