"""Where one release happens: an empty directory, a new checkout in it, a new registry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from bench.release.peers import Peers

PROJECT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
STATE: Final = str(Path.home() / ".local/state/releasekit-bench")
# It is taken out of all output, so it must not be a word of it.
_TOKEN: Final = "token-for-measuring"


class Scenario(NamedTuple):
    """`latency_s` is what a request takes, `read_latency_s` what one takes that only reads, where
    that is something else, `lag_s` what an index lags behind, `slots` how many
    packages may be uploaded at once by those that can be told.
    """

    ecosystem: str
    packages: int
    latency_s: float
    lag_s: float = 0.0
    index_latency_s: float | None = None
    read_latency_s: float | None = None


class Server:
    """A registry in a process of its own."""

    def __init__(self, scenario: Scenario, *options: str) -> None:
        argv = [sys.executable, "-m", "bench.release.servers", scenario.ecosystem, *options]
        argv += ["--latency", str(scenario.latency_s), "--lag", str(scenario.lag_s)]
        for name, value in {
            "--index-latency": scenario.index_latency_s,
            "--read-latency": scenario.read_latency_s,
        }.items():
            argv += [] if value is None else [name, str(value)]
        self._process = subprocess.Popen(
            argv, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.origin = f"http://127.0.0.1:{int(self._line())}"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def seen(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seen: dict[str, Any] = json.loads(self._line())
        return seen

    def close(self) -> None:
        self._process.communicate()


@dataclass(frozen=True, kw_only=True)
class Place:
    """`tree` is the checkout of ReleaseKit that is measured."""

    directory: Path
    root: Path
    server: Server
    peers: Peers
    scenario: Scenario
    slots: int
    offline: bool = True
    tree: Path = PROJECT

    @property
    def environment(self) -> dict[str, str]:
        """A home without configuration; caches are warm, and the same for all."""
        home = str(self.directory / "home")
        kept = {name: os.environ[name] for name in ("LANG", "SSL_CERT_FILE") if name in os.environ}
        return {
            **kept,
            "PATH": self.peers.path,
            "HOME": home,
            "XDG_CACHE_HOME": CACHE,
            "XDG_STATE_HOME": STATE,  # our own environment is made once
            "RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup"),
            "RUSTUP_TOOLCHAIN": os.environ.get("RUSTUP_TOOLCHAIN", ""),
            "UV_OFFLINE": str(int(self.offline)),
            **_OF_ECOSYSTEM[self.scenario.ecosystem](self),
        }

    @property
    def ours(self) -> list[list[str | Path]]:
        flag, path = _REGISTRIES[self.scenario.ecosystem]
        argv: list[str | Path] = [self.tree / "entrypoint.sh", "publish", self.root]
        argv += ["--concurrency", str(self.slots), flag, f"{self.server.origin}{path}"]
        return [argv]

    def limit(self, *, confirms: bool) -> list[list[str | Path]]:
        origin, slots, lag_s = self.server.origin, str(self.slots), str(self.scenario.lag_s)
        if self.scenario.ecosystem == "npm":
            script = Path(__file__).parent / "limit" / "npm.mjs"
            lag = [lag_s] if confirms else []
            return [["node", script, self.peers.npm_modules, self.root, f"{origin}/", slots, *lag]]
        arguments = [self.scenario.ecosystem, str(self.root), origin, slots, lag_s]
        arguments += ["--confirm"] if confirms else []
        return [[sys.executable, "-m", "bench.release.limit", *arguments]]


def _environment_of_javascript(origin: str) -> dict[str, str]:
    """No daemons, which would go on with the work of one round in the next; no telemetry."""
    return {
        "YARN_NPM_REGISTRY_SERVER": origin,
        "YARN_NPM_AUTH_TOKEN": "bench",
        "YARN_UNSAFE_HTTP_WHITELIST": "127.0.0.1",
        "YARN_ENABLE_TELEMETRY": "0",
        "YARN_ENABLE_IMMUTABLE_INSTALLS": "0",
        "NX_DAEMON": "false",
        "NX_NO_CLOUD": "true",
        "CI": "true",
    }


def _npm(place: Place) -> dict[str, str]:
    settings = place.directory / "npmrc"
    host = place.server.origin.removeprefix("http:")
    settings.write_text(f"registry={place.server.origin}/\n{host}/:_authToken={_TOKEN}\n")
    return {
        "NPM_CONFIG_USERCONFIG": str(settings),
        "NPM_CONFIG_CACHE": str(place.directory / "npm-cache"),
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        "RELEASEKIT_NPM_TOKEN": _TOKEN,
        **_environment_of_javascript(place.server.origin),
    }


def _pypi(place: Place) -> dict[str, str]:
    address = f"{place.server.origin}/legacy/"
    return {
        "RELEASEKIT_PYPI_TOKEN": _TOKEN,
        "UV_PUBLISH_URL": address,
        "UV_PUBLISH_TOKEN": _TOKEN,
        "TWINE_REPOSITORY_URL": address,
        "TWINE_USERNAME": "__token__",
        "TWINE_PASSWORD": _TOKEN,
        "TWINE_NON_INTERACTIVE": "1",
    }


def _cargo(place: Place) -> dict[str, str]:
    """The server is crates.io, and the registry named `local`.

    https://doc.rust-lang.org/cargo/reference/source-replacement.html
    """
    home = place.directory / "cargo"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'[registries.local]\nindex = "sparse+{place.server.origin}/index/"\n'
        '[source.crates-io]\nreplace-with = "local"\n'
        '[registry]\nglobal-credential-providers = ["cargo:token"]\n'
    )
    (home / "credentials.toml").write_text(f'[registries.local]\ntoken = "{_TOKEN}"\n')
    return {
        "CARGO_HOME": str(home),
        "CARGO_TARGET_DIR": str(place.root / "target"),
        "RELEASEKIT_CARGO_TOKEN": _TOKEN,
    }


def _maven(_place: Place) -> dict[str, str]:
    local = Path(CACHE) / "releasekit-bench" / "m2"
    local.mkdir(parents=True, exist_ok=True)
    return {
        "MAVEN_OPTS": f"-Dmaven.repo.local={local}",
        "RELEASEKIT_MAVEN_USERNAME": "bench",
        "RELEASEKIT_MAVEN_PASSWORD": _TOKEN,
    }


def _go(place: Place) -> dict[str, str]:
    settings = place.directory / "gitconfig"
    url = f"{place.server.origin}/mono.git"
    settings.write_text(f'[url "{url}"]\n\tinsteadOf = https://github.com/acme/mono\n')
    return {"GIT_CONFIG_GLOBAL": str(settings), "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local"}


_OF_ECOSYSTEM: Final = {"npm": _npm, "pypi": _pypi, "cargo": _cargo, "maven": _maven, "go": _go}
_REGISTRIES: Final = {
    "npm": ("--npm-registry", "/"),
    "pypi": ("--pypi-registry", "/legacy/"),
    "cargo": ("--cargo-registry", "/index/"),
    "maven": ("--maven-registry", "/maven2/"),
    "go": ("--go-proxy", "/"),
}
