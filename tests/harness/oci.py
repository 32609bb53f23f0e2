"""A real registry for images and charts on loopback, and the real programs that push to it. All are
built from what the Go proxy has of them, once per machine, by `make oci`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from integration.servers import PASSWORD, USERNAME, free_port, running
from integration.tools import IN_CI, require_tool
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Go's checksum database knows what each of them is.
_REGISTRY: Final = {
    "github.com/distribution/distribution/v3": "v3.1.2",
    "github.com/google/go-containerregistry": "v0.22.1",
}
_REGISTRY_COMMANDS: Final = ("./registry", "github.com/google/go-containerregistry/cmd/crane")
_HELM: Final = {"helm.sh/helm/v3": "v3.22.0"}
# distribution's own main, without the clients of three clouds: a third of its build.
# https://github.com/distribution/distribution/blob/v3.1.2/cmd/registry/main.go
_MAIN: Final = """\
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

func main() {
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
"""
# Neither optimized nor to be debugged.
_FLAGS: Final = ("-mod=mod", "-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w")
_SPARING: Final = {"GOGC": "400", "GOFLAGS": "-modcacherw"}
_CONFIG: Final = """\
version: 0.1
log: {{ level: warn }}
storage: {{ inmemory: {{}} }}
auth: {{ htpasswd: {{ realm: tests, path: {directory}/htpasswd }} }}
http: {{ addr: "127.0.0.1:{port}" }}
health: {{ storagedriver: {{ enabled: false }} }}
"""
# The registry reads bcrypt alone, which Python has not: of PASSWORD, at the least cost.
_HASH: Final = "$2b$04$abcdefghijklmnopqrstuupOWRSKKNe562z1DsLEArFuJDHVyRIMa"


def build() -> Path:
    """The directory of `registry` and `crane`."""
    return _build("oci", _REGISTRY, *_REGISTRY_COMMANDS)


def build_helm() -> Path:
    """It takes as long as both others together, and GitHub's runners have one."""
    return _build("helm", _HELM, "helm.sh/helm/v3/cmd/helm") / "helm"


def _build(name: str, modules: Mapping[str, str], *commands: str) -> Path:
    """The directory of these programs."""
    place = _place(name, modules)
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several workers may want it at once
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
                _run_go(Path(scratch), modules, commands)
                Path(scratch, "built").rename(place)
    return place


def _run_go(scratch: Path, modules: Mapping[str, str], commands: Sequence[str]) -> None:
    """Not `go install …@version`: that asks for a list of versions, too."""
    required = "".join(f"require {module} {version}\n" for module, version in modules.items())
    (scratch / "go.mod").write_text(f"module tests\n\ngo 1.25\n\n{required}")
    (scratch / "registry").mkdir()
    (scratch / "registry" / "main.go").write_text(_MAIN)
    (scratch / "built").mkdir()
    subprocess.run(
        [require_tool("go"), "build", *_FLAGS, "-o", "built/", *commands],
        cwd=scratch,
        env={**os.environ, **_SPARING},
        check=True,
        timeout=PATIENCE_S * 2,
    )


def _place(name: str, modules: Mapping[str, str]) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "releasekit-tests" / "-".join([name, *modules.values()])


def require_programs() -> Path:
    if not _place("oci", _REGISTRY).exists() and not IN_CI:
        pytest.skip("the registry of images is not built; `make oci` does that")
    return build()


def require_helm() -> Path:
    """That of PATH, where there is one."""
    if found := shutil.which("helm"):
        return Path(found)
    if not _place("helm", _HELM).exists() and not IN_CI:
        pytest.skip("helm is not installed, nor built; `make oci` does that")
    return build_helm()


@dataclass(frozen=True, kw_only=True)
class OciRegistry:
    """`host` is what stands in front of a repository; USERNAME may do everything."""

    host: str

    def manifest(self, repository: str, tag: str) -> dict[str, Any]:
        """Raises HTTPError for one that is not there."""
        found: dict[str, Any] = json.loads(self._get(f"{repository}/manifests/{tag}"))
        return found

    def blob(self, repository: str, digest: str) -> bytes:
        return self._get(f"{repository}/blobs/{digest}")

    def tags(self, repository: str) -> list[str]:
        return sorted(json.loads(self._get(f"{repository}/tags/list"))["tags"])

    def _get(self, path: str) -> bytes:
        login = b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        kinds = "application/vnd.oci.image.manifest.v1+json"
        kinds += ", application/vnd.docker.distribution.manifest.v2+json"
        headers = {"Authorization": f"Basic {login}", "Accept": kinds}
        request = urllib.request.Request(f"http://{self.host}/v2/{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            content: bytes = response.read()
        return content


@contextlib.contextmanager
def serving_oci(directory: Path) -> Iterator[OciRegistry]:
    """An empty one, which nobody reads or writes without a login."""
    program = require_programs() / "registry"
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    (directory / "htpasswd").write_text(f"{USERNAME}:{_HASH}\n")
    config = directory / "config.yml"
    config.write_text(_CONFIG.format(directory=directory, port=port))
    argv: list[str | Path] = ["env", "OTEL_TRACES_EXPORTER=none", program, "serve", config]
    host = f"127.0.0.1:{port}"
    with running(argv, log=directory / "log", ready=f"http://{host}/"):
        yield OciRegistry(host=host)


if __name__ == "__main__":
    build()
    if not shutil.which("helm"):
        build_helm()
