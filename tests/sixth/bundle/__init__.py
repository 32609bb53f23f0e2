"""Bundles, declared: directories that are published as one archive of their files.

A small ecosystem that is not part of the product. Tests add it to the others.
"""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Struct

from releasekit.config.declaration import Declaration, EcosystemDeclaration
from releasekit.config.tables import Option, OptionTable
from releasekit.host.scrub import ToolVariables


class Inputs(Struct, frozen=True, kw_only=True):
    channel: Annotated[
        Literal["stable", "beta"],
        Declaration("Who gets bundles: those on `stable`, or those on `beta`.", "choice"),
    ] = "stable"
    notes: Annotated[str, Declaration("A file that goes into every archive, as NOTES.", "path")] = (
        ""
    )


class Options(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "bundle"

    exclude: Annotated[
        tuple[str, ...], Option("Globs of file names that stay out of every archive.")
    ] = ()


DECLARATION: Final = EcosystemDeclaration(
    name="bundle",
    folder=__name__,
    title="Bundles",
    registry=Declaration.registry(
        "bundle-registry", "Where bundles go: `dir:PATH`. Default: `bundles` in the workspace."
    ),
    secrets=(Declaration.secret("bundle-seal", "The key that archives are sealed with."),),
    inputs=Inputs,
    options=Options,
    variables=ToolVariables(seen=("BUNDLE_[A-Z]+",), hidden=("BUNDLE_OWNER",)),
)
