"""Registries of all five ecosystems at once, with accounts, and what they saw of a release."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.git_server import git_server
from integration import crates, reactor
from integration.servers import PASSWORD, USERNAME, recorded
from integration.test_cargo_publish import toolchain
from processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from integration.crates import CrateServer
    from integration.goproxy import GoProxy
    from integration.maven_server import MavenServer
    from integration.recorder import Exchange, Recorder
    from integration.servers import IndexServer
    from integration.verdaccio import Verdaccio

MODULES: Final = "github.com/example/polyglot/go"
REMOTE: Final = "https://github.com/example/polyglot"
GROUP: Final = "com.example.acme"

# The packages of examples/polyglot, and what has to be there before each: its README as a table.
NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "cargo:acme-derive": (),
    "cargo:acme-units": (),
    "cargo:acme-measure": ("cargo:acme-derive", "cargo:acme-units"),
    f"go:{MODULES}/core": (),
    f"go:{MODULES}/text/v2": (f"go:{MODULES}/core",),
    f"go:{MODULES}/cmd/greet": (f"go:{MODULES}/core", f"go:{MODULES}/text/v2"),
    "npm:@acme/tokens": (),
    "npm:@acme/format": ("npm:@acme/tokens",),
    "npm:@acme/cli": ("npm:@acme/format", "npm:@acme/tokens", f"go:{MODULES}/cmd/greet"),
    "pypi:acme-core": (),
    "pypi:acme-measure": ("cargo:acme-measure",),
    "pypi:acme-stamp": (),
    "pypi:acme-text": ("pypi:acme-core",),
    "pypi:acme-web": ("pypi:acme-core",),
    "pypi:acme-cli": ("pypi:acme-core", "pypi:acme-stamp", "pypi:acme-text", "pypi:acme-web"),
    f"maven:{GROUP}:acme-parent": (),
    f"maven:{GROUP}:acme-codec": (f"maven:{GROUP}:acme-parent",),
    f"maven:{GROUP}:acme-client": (
        f"maven:{GROUP}:acme-parent",
        f"maven:{GROUP}:acme-codec",
        "pypi:acme-web",
    ),
    f"maven:{GROUP}:acme-bom": (
        f"maven:{GROUP}:acme-parent",
        f"maven:{GROUP}:acme-codec",
        f"maven:{GROUP}:acme-client",
    ),
}
TAGS: Final = {
    "go/core/v0.3.0": f"go:{MODULES}/core",
    "go/text/v2.1.0": f"go:{MODULES}/text/v2",
    "go/cmd/greet/v0.1.0": f"go:{MODULES}/cmd/greet",
}


@dataclass(frozen=True, kw_only=True)
class Registries:
    """Five servers; `remote` records what comes to the git remote behind the module proxy."""

    pypi: IndexServer
    npm: Verdaccio
    cargo: CrateServer
    go: GoProxy
    maven: MavenServer
    remote: Recorder

    @property
    def recorders(self) -> dict[str, Recorder]:
        return {
            "pypi": self.pypi.recorder,
            "npm": self.npm.recorder,
            "cargo": self.cargo.recorder,
            "go": self.go.recorder,
            "git": self.remote,
            "maven": self.maven.recorder,
        }

    @property
    def flags(self) -> list[str]:
        flags = ["--pypi-registry", self.pypi.upload_url, "--pypi-index", self.pypi.index_url]
        flags += ["--npm-registry", self.npm.url, "--cargo-registry", self.cargo.index_url]
        flags += ["--go-proxy", self.go.url, "--maven-registry", self.maven.url]
        return [*flags, "--retry-base-delay", "0.05s"]

    def environment(self, home: Path) -> dict[str, str]:
        """All that a release into all of them takes, on a machine with this home."""
        self.cargo.cargo_config(home / "cargo")
        login = self.remote.url.replace("://", f"://{USERNAME}:{PASSWORD}@")
        config = home / "release.gitconfig"
        config.write_text(f'[url "{login}/{self.go.forge.bare.name}"]\n\tinsteadOf = {REMOTE}\n')
        return {
            **self.pypi.environment,
            **self.npm.environment,
            **toolchain(home),
            "RELEASEKIT_CARGO_TOKEN": crates.TOKEN,
            "GIT_CONFIG_GLOBAL": str(config),
            **self.maven.environment,
            **reactor.environment(),
        }

    def forget(self) -> None:
        for recorder in self.recorders.values():
            recorder.forget()

    def uploads(self) -> list[tuple[str, str]]:
        """Each upload of one file, or push of one tag, that a server got: ecosystem and name."""
        found = []
        for name, recorder in self.recorders.items():
            for exchange in recorder.exchanges:
                found += [("git", tag) for tag in pushed(exchange)]
                found += [(name, exchange.filename)] if exchange.filename else []
        return found

    def sent(self) -> dict[str, list[Exchange]]:
        """Package → the requests that carried it."""
        found: dict[str, list[Exchange]] = {}
        for name, recorder in self.recorders.items():
            for exchange in recorder.exchanges:
                for package in _CARRIES[name](exchange):
                    found.setdefault(package, []).append(exchange)
        return found

    def shown(self, package: str) -> list[Exchange]:
        """The answers by which the registry showed that it has it."""
        ecosystem, _, name = package.partition(":")
        looks = _SHOWS[ecosystem]
        return [
            exchange
            for exchange in self.recorders[ecosystem].exchanges
            if exchange.method == "GET" and exchange.status == 200 and looks(name, exchange.path)
        ]

    def let_go(self) -> None:
        """End what was held, and wait until every upload that has come is on record."""
        for recorder in self.recorders.values():
            recorder.let_go()
        wait_until(lambda: not any(it.uploading for it in self.recorders.values()))


@contextlib.contextmanager
def registries(
    pypi: IndexServer, npm: Verdaccio, cargo: CrateServer, go: GoProxy, maven: MavenServer
) -> Iterator[Registries]:
    """The git remote of `go` gets another name, and accounts."""
    bare = go.forge.bare
    (go.forge.home / ".gitconfig").write_text(
        f'[url "file://{bare}"]\n\tinsteadOf = {REMOTE}\n[safe]\n\tdirectory = *\n'
    )
    with git_server(bare.parent) as origin, recorded(origin) as remote:
        yield Registries(pypi=pypi, npm=npm, cargo=cargo, go=go, maven=maven, remote=remote)


def pushed(exchange: Exchange) -> list[str]:
    """The tags of a push. https://git-scm.com/docs/pack-protocol#_reference_update_request"""
    tags: list[str] = []
    if (exchange.method, exchange.path.rpartition("/")[2]) != ("POST", "git-receive-pack"):
        return tags
    at, body = 0, exchange.body
    while size := int(body[at : at + 4], 16):
        ref = body[at + 4 : at + size].partition(b"\0")[0].decode().split()[2]
        tags.append(ref.removeprefix("refs/tags/"))
        at += size
    return tags


def _python(exchange: Exchange) -> list[str]:
    name = exchange.filename.partition("-")[0].replace("_", "-")
    return [f"pypi:{name}"] if name else []


def _javascript(exchange: Exchange) -> list[str]:
    name = exchange.path.lstrip("/").replace("%2f", "/")
    return [f"npm:{name}"] if exchange.filename else []


def _crate(exchange: Exchange) -> list[str]:
    name = exchange.filename.rpartition("-")[0]
    return [f"cargo:{name}"] if name else []


def _maven(exchange: Exchange) -> list[str]:
    return [f"maven:{GROUP}:{exchange.path.split('/')[-3]}"] if exchange.filename else []


_CARRIES: Final[Mapping[str, Callable[[Exchange], list[str]]]] = {
    "pypi": _python,
    "npm": _javascript,
    "cargo": _crate,
    "go": lambda _: [],
    "git": lambda exchange: [TAGS[tag] for tag in pushed(exchange)],
    "maven": _maven,
}
_SHOWS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "pypi": lambda name, path: path.endswith(f"/{name}/"),
    "npm": lambda name, path: path.startswith(f"/{name.replace('/', '%2f')}/"),
    "cargo": lambda name, path: path.endswith(f"/{name}"),
    "go": lambda name, path: path.startswith(f"/{name}/@v/") and path.endswith(".zip"),
    "maven": lambda name, path: (
        path.endswith(".pom.sha1") and path.split("/")[-3] == name.partition(":")[2]
    ),
}
