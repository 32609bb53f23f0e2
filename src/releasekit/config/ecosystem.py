"""What an ecosystem says of itself to everybody who need not know how it works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from releasekit.config.declaration import Declaration, declared_by
from releasekit.host.scrub import ToolVariables

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from releasekit.config.tables import OptionTable
    from releasekit.host.sandbox import Cache


@dataclass(frozen=True, slots=True)
class NoInputs:
    """Of an ecosystem that has none besides its registry and its secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What `make demo` needs before it publishes packages of this ecosystem: a version of a tool.

    Without it, `followers` among the example's packages of other ecosystems stay behind too.
    """

    tool: str
    version: str
    followers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What a package or a workspace of this ecosystem is known by: the names of files.

    `workspaces` and `packages` are the options that take in a workspace below the root, and a
    package that is in none; a workspace inside another is its member where they are `nested`.
    """

    names: tuple[str, ...]
    workspaces: str
    packages: str
    nested: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EcosystemDeclaration:
    """`folder` is the package that declares it. Its module `target` has `layout`, how its `dir:`
    registries lie in files, and `target`, which does the work (`ecosystems.folders`). With
    `manifests`, its module `roots` tells workspaces and packages from one another. Where a registry
    of it `approves` what waits, its module `approval` has `approval`, which makes that happen.

    The annotated fields of `inputs` are its inputs, named behind its name. `options` is the
    dataclass that its table of releasekit.toml becomes; an underscore is a hyphen there. `suffixes`
    are what the names of its built files end with; `caches`, what its tools write outside of the
    workspace.
    """

    name: str
    folder: str
    title: str
    registry: Declaration
    secrets: tuple[Declaration, ...] = ()
    inputs: type[DataclassInstance] = NoInputs
    options: type[OptionTable]
    variables: ToolVariables = field(default_factory=ToolVariables)
    caches: tuple[Cache, ...] = ()
    demo: Demo | None = None
    suffixes: tuple[str, ...] = ()
    manifests: Manifests | None = None
    approves: bool = False

    @property
    def declarations(self) -> tuple[Declaration, ...]:
        """In the order in which they are shown: as whom, where to, and the rest."""
        own = declared_by(self.inputs, f"{self.name}-")
        username = own.pop(f"{self.name}-username", None)
        return (*([username] if username else []), *self.secrets, self.registry, *own.values())

    @property
    def option_keys(self) -> tuple[str, ...]:
        return self.options.option_keys()
