"""Go modules, declared: tags on a git remote, and the proxies that serve them."""

from typing import Final

from releasekit.config.declaration import Declaration
from releasekit.config.ecosystem import Demo, EcosystemDeclaration
from releasekit.ecosystems.go.options import Options
from releasekit.host.scrub import ToolVariables

DECLARATION: Final = EcosystemDeclaration(
    name="go",
    folder=__name__,
    title="Go modules",
    registry=Declaration.registry(
        "go-proxy",
        "The module proxy that shows Go modules once their tags are pushed, or `dir:PATH` for "
        "a static directory instead of tags. Default: proxy.golang.org.",
    ),
    options=Options,
    variables=ToolVariables(seen=("GO[A-Z0-9]+", r"CGO_\w+")),
    demo=Demo(tool="git", version="2", followers=("npm:@acme/cli",)),
)
