"""What the go command gets by the tags of modules, as their users do."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING, Any

from harness.http_server import Handler, serving
from peers.go.asking import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class _Hosts(Handler):
    """All hosts of modules, as a proxy over HTTP. https://go.dev/ref/mod#vcs-find"""

    root: str

    def do_GET(self) -> None:
        page = f'<meta name="go-import" content="{self.root} git https://{self.root}">'
        self.send(200, (), page.encode())


def find_root(path: str, below: str) -> str:
    """Which path leads to the repository that has a module in this directory; empty if none does.
    https://go.dev/ref/mod#vcs-version
    """
    major = r"/v\d+$"
    for each in (path, re.sub(major, "", path)):
        if below == "." or each.endswith(f"/{below}"):
            root = re.sub(major, "", each) if below == "." else each.removesuffix(f"/{below}")
            # The go command knows that nothing else is a repository there.
            return "" if re.match(r"example\.net(/|$)|github\.com(?!(/[^/]+){2}$)", root) else root
    return ""


def download(repository: Path, root: str, modules: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What `go mod download` says of each of these, as `path@version`, where `root` leads to the
    repository.
    """
    cache = repository.parent / "modules"
    cache.mkdir()
    with serving(_Hosts, root=root) as url:
        environment = {
            **ENVIRONMENT,
            "GOPROXY": "direct",
            "GOINSECURE": "*",
            "GOVCS": "*:git",
            "GOFLAGS": "-modcacherw",
            "GOMODCACHE": str(cache),
            "HTTP_PROXY": url,
            "HTTPS_PROXY": url,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": f"https://{root}",
        }
        done = subprocess.run(
            ["go", "mod", "download", "-json", *modules],
            cwd=cache,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    yield from map(json.loads, re.split(r"(?m)(?<=^})\n(?=.)", done.stdout))
