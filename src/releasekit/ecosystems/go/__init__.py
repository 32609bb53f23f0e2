"""Go modules, declared: tags on a git remote, and the proxies that serve them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final

from releasekit.config.declaration import Declaration, Demo, EcosystemDeclaration, Manifests
from releasekit.config.tables import OptionTable, string
from releasekit.host.sandbox import Cache
from releasekit.host.scrub import ToolVariables


def _parse_file_name(key: str, value: object) -> str:
    name = string(key, value)
    if "\\" in name or ".." in name.split("/") or name.startswith("/"):
        raise ValueError(
            'Write a name like "VERSION"; it is looked for beside each go.mod and above.'
        )
    return name


def _parse_remote(key: str, value: object) -> str:
    remote = string(key, value)
    # git would take it for an option, or for another repository than the one of its settings.
    if remote.startswith("-") or any(character in remote for character in ":/ "):
        raise ValueError("Write the name of a remote: `git remote`.")
    return remote


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(OptionTable):
    """`version` is that of every module nothing else tells one of; `version_file` a file name,
    looked for from the directory of a module upwards; `versions` maps directories (`.` for the
    root) or module paths to versions.

    `exclude` are globs of directories that hold no modules of this workspace, `private` of modules
    that are never published. `remote` is the git remote that tags are pushed to. Without `proxy`,
    no proxy is asked: a tag on the remote is all there is to see.
    """

    ECOSYSTEM: ClassVar[str] = "go"

    version: str = ""
    version_file: Annotated[str, _parse_file_name] = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    remote: Annotated[str, _parse_remote] = "origin"
    proxy: bool = True


DECLARATION: Final = EcosystemDeclaration(
    name="go",
    folder=__name__,
    title="Go modules",
    registry=Declaration.registry(
        "go-proxy",
        "The module proxy to ask for Go modules after their tags are pushed, or `dir:PATH` for "
        "a static directory instead of tags. Default: proxy.golang.org.",
    ),
    options=Options,
    variables=ToolVariables(seen=("GO[A-Z0-9]+", r"CGO_\w+")),
    # A build of another ecosystem may call the go command.
    caches=(
        Cache("go", "GOCACHE", "~/.cache/go-build"),
        Cache("go", "GOPATH", "~/go", below=("pkg/",)),
        Cache("go", "GOMODCACHE", "~/go/pkg/mod"),
    ),
    demo=Demo(tool="git", version="2", followers=("npm:@acme/cli",)),
    manifests=Manifests(names=("go.work", "go.mod"), workspaces="", packages=""),
)
