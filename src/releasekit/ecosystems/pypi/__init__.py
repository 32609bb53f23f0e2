"""Python packages and PyPI-like registries, declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests
from releasekit.config.tables import OptionTable
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    username: Annotated[str, Declaration("The user that `pypi-token` belongs to.", "text")] = (
        "__token__"
    )
    index: Annotated[
        str,
        Declaration(
            "The simple index that belongs to `pypi-registry`; derived from it by default.",
            "index",
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`packages` and `exclude` are globs of directories, relative to the workspace's root;
    `workspaces` are the roots of further uv workspaces.

    `config_settings` go to every PEP 517 hook; `pass_env` names environment variables that builds
    may see besides the ones they always do. `directory_url` is where a `dir:` registry will be
    served: the address of an attestation is absolute.
    """

    ECOSYSTEM: ClassVar[str] = "pypi"

    workspaces: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    config_settings: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    directory_url: str = ""


DECLARATION: Final = EcosystemDeclaration(
    name="pypi",
    folder=__name__,
    title="Python packages",
    registry=Declaration.registry(
        "pypi-registry",
        "Where Python packages go: an upload URL, or `dir:PATH` for a static directory. "
        "Default: pypi.org.",
    ),
    secrets=(
        Declaration.secret(
            "pypi-token",
            "The token or password for `pypi-registry`; not needed with trusted publishing.",
        ),
    ),
    inputs=Inputs,
    options=Options,
    variables=ToolVariables(
        seen=(
            *(r"PIP_\w+", r"UV_\w+", r"PYENV_\w+", r"HATCH_\w+", r"SETUPTOOLS_\w+"),
            *(r"PDM_\w+", r"POETRY_\w+", r"MATURIN_\w+"),
        ),
        # Where uv would publish to, and as whom.
        hidden=(r"UV_PUBLISH_\w+",),
    ),
    caches=(
        Cache("uv", "UV_CACHE_DIR", "~/.cache/uv"),
        Cache("python3", "PIP_CACHE_DIR", "~/.cache/pip"),
        Cache("ccache", "CCACHE_DIR", "~/.cache/ccache"),
    ),
    suffixes=(".whl", ".tar.gz"),
    manifests=Manifests(names=("pyproject.toml",), workspaces="workspaces", packages="packages"),
)
