"""Python packages and PyPI-like registries, declared."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from msgspec import Struct, field

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests, Setup, Tool
from releasekit.config.tables import Option, OptionTable
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables

PYPI: Final = "https://upload.pypi.org/legacy/"
_TEST_PYPI: Final = "https://test.pypi.org/legacy/"


class PyPIInputs(Struct, frozen=True, kw_only=True):
    username: Annotated[
        str,
        Declaration("The user that `pypi-token` belongs to.", "text", taken_with="lookup"),
    ] = "__token__"
    index: Annotated[
        str,
        Declaration(
            "The simple index that belongs to `pypi-registry`; derived from it by default.",
            "index",
            taken_with="lookup",
        ),
    ] = ""


class PyPIOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "pypi"

    workspaces: Annotated[tuple[str, ...], Option("Further roots of uv workspaces.")] = ()
    packages: Annotated[
        tuple[str, ...], Option("Globs of directories with projects outside of any workspace.")
    ] = ()
    exclude: Annotated[tuple[str, ...], Option("Globs of directories to leave out.")] = ()
    config_settings: Annotated[
        Mapping[str, str], Option("What every hook of the build backend is given (PEP 517).")
    ] = field(default_factory=dict)
    pass_env: Annotated[
        tuple[str, ...], Option("Variables that builds see besides the usual ones.")
    ] = ()
    directory_url: Annotated[
        str,
        Option(
            "The address at which a `dir:` registry will be served: links to attestations are "
            "absolute."
        ),
    ] = ""


# It makes the environments of builds where it is there, and knows these options:
# https://github.com/astral-sh/uv/blob/main/changelogs/0.5.x.md
UV: Final = Tool(
    program="uv",
    version="0.5.5",
    install="Update it (https://docs.astral.sh/uv/getting-started/installation/), name another one "
    "with `uv-path`, or take it off PATH, so that pip makes the environments.",
)

DECLARATION: Final = EcosystemDeclaration(
    name="pypi",
    folder=__name__,
    title="Python packages",
    registry=Declaration.registry(
        "pypi-registry",
        "Where Python packages go: an upload URL, or `dir:PATH` for a static directory. "
        "Default: pypi.org.",
    ),
    default_registry=PYPI,
    # https://docs.pypi.org/api/upload/, https://docs.pypi.org/api/index-api/
    pages={
        **dict.fromkeys(("pypi.org", "www.pypi.org", "pypi.python.org"), (PYPI,)),
        **dict.fromkeys(("upload.pypi.org", "files.pythonhosted.org"), (PYPI,)),
        **dict.fromkeys(("test.pypi.org", "test-files.pythonhosted.org"), (_TEST_PYPI,)),
    },
    secrets=(
        Declaration.secret(
            "pypi-token",
            "The token or password for `pypi-registry`; not needed with trusted publishing.",
        ),
    ),
    inputs=PyPIInputs,
    options=PyPIOptions,
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
    setup=Setup(
        # https://docs.pypi.org/trusted-publishers/
        first="Register this repository and the workflow release.yml, without an environment, at "
        "https://pypi.org/manage/project/{name}/settings/publishing/; a project that is new, at "
        "https://pypi.org/manage/account/publishing/.",
        trusts=True,
    ),
    suffixes=(".whl", ".tar.gz"),
    manifests=Manifests(
        names=("pyproject.toml",),
        workspaces="workspaces",
        packages="packages",
        foreign=("setup.cfg", "setup.py"),
    ),
)
