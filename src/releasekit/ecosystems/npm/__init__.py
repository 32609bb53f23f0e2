"""JavaScript packages and npm-like registries, declared."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from releasekit.config.declaration import Declaration
from releasekit.config.ecosystem import Demo, EcosystemDeclaration
from releasekit.ecosystems.npm.options import Options
from releasekit.host.scrub import ToolVariables


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    tag: Annotated[
        str,
        Declaration(
            "The dist-tag of every npm package. Default: `latest` for what is newest; a prerelease "
            "gets its own word (`beta`), an older release line its own (`release-1.x`).",
            "text",
        ),
    ] = ""
    access: Annotated[
        Literal["", "public", "restricted"],
        Declaration(
            "Who may see npm packages with a scope: `public` or `restricted`. Default: what their "
            "`publishConfig` says, or npm's own default.",
            "choice",
        ),
    ] = ""


DECLARATION: Final = EcosystemDeclaration(
    name="npm",
    folder=__name__,
    title="npm packages",
    registry=Declaration.registry(
        "npm-registry",
        "Where npm packages go: a registry's URL, or `dir:PATH` for a static directory. "
        "Default: registry.npmjs.org.",
    ),
    secrets=(
        Declaration.secret(
            "npm-token",
            "The access token for `npm-registry`; not needed with trusted publishing.",
        ),
    ),
    inputs=Inputs,
    options=Options,
    variables=ToolVariables(
        seen=(
            *(r"NODE_(ENV|OPTIONS)", r"(NPM|npm)_(CONFIG|config)_\w+", "PNPM_HOME"),
            *(r"NVM_\w+", r"VOLTA_\w+", r"COREPACK_\w+"),
        ),
    ),
    demo=Demo(tool="npm", version="1"),
)
