"""Go modules, declared: tags on a git remote, and the proxies that serve them."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from msgspec import field

from releasekit.config.declaration import Declaration, EcosystemDeclaration, Manifests, Setup, Tool
from releasekit.config.tables import Option, OptionTable, remote_name, string
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables

OFFICIAL: Final = "https://proxy.golang.org/"


def _parse_file_name(key: str, value: object) -> str:
    name = string(key, value)
    if "\\" in name or ".." in name.split("/") or name.startswith("/"):
        raise ValueError(
            'Write a name like "VERSION"; it is looked for beside each go.mod and above.'
        )
    return name


class GoOptions(OptionTable, frozen=True, kw_only=True):
    TABLE: ClassVar[str] = "go"

    version: Annotated[
        str, Option("The version of every module that nothing else tells one of.")
    ] = ""
    version_file: Annotated[
        str,
        Option(
            "The name of a file that holds the version, looked for from the directory of each "
            "module upwards.",
            _parse_file_name,
        ),
    ] = ""
    versions: Annotated[
        Mapping[str, str],
        Option("Versions by directory, `.` for the root, or by module path."),
    ] = field(default_factory=dict)
    exclude: Annotated[
        tuple[str, ...], Option("Globs of directories that hold no modules of this workspace.")
    ] = ()
    private: Annotated[tuple[str, ...], Option("Globs of modules that are never published.")] = ()
    remote: Annotated[str, Option("The git remote that tags are pushed to.", remote_name)] = (
        "origin"
    )
    proxy: Annotated[
        bool,
        Option("Ask the module proxy; if `false`, a tag on the remote is all there is to see."),
    ] = True
    verify: Annotated[bool, Option("Build each module as it will be published.")] = True


TOOL: Final = Tool(
    program="go",
    version="1.21",
    install="Install Go 1.21 or later (https://go.dev/dl/), or write `verify = false` below [go]: "
    "to push tags takes only git.",
    asked="version",
    followers=("npm:@acme/cli",),
)

DECLARATION: Final = EcosystemDeclaration(
    name="go",
    folder=__name__,
    title="Go modules",
    registry=Declaration.registry(
        "go-proxy",
        "The module proxy to ask for Go modules after their tags are pushed, or `dir:PATH` for "
        "a static directory instead of tags. Default: proxy.golang.org.",
    ),
    default_registry=OFFICIAL,
    # https://go.dev/ref/mod#checksum-database and https://index.golang.org: no proxies
    pages=dict.fromkeys(("pkg.go.dev", "sum.golang.org", "index.golang.org"), (OFFICIAL,)),
    options=GoOptions,
    variables=ToolVariables(seen=("GO[A-Z0-9]+", r"CGO_\w+")),
    caches=(
        Cache("go", "GOCACHE", "~/.cache/go-build"),
        Cache("go", "GOPATH", "~/go", below=("pkg/",)),
        Cache("go", "GOMODCACHE", "~/go/pkg/mod"),
    ),
    setup=Setup(
        first="Nothing is to be registered: the job pushes the tags of {name}, and "
        "https://proxy.golang.org shows them.",
        steps="""\
- uses: actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0
  with:
    go-version: stable  # modules are built before their tags are pushed
    cache: false
""",
        pushes=True,
    ),
    tool=TOOL,
    manifests=Manifests(names=("go.work", "go.mod"), workspaces="", packages=""),
)
