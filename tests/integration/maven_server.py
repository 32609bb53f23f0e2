"""A real Maven repository on loopback: nginx, which takes files by PUT and gives them back.

https://nginx.org/en/docs/http/ngx_http_dav_module.html
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from integration.servers import PASSWORD, USERNAME, apr_md5, free_port, recorded, running
from integration.tools import require_tool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.recorder import Recorder

_CONFIG: Final = """\
{user}daemon off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_max_body_size 64m;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /maven2/ {{
      root {directory}/served;
      autoindex on;
      dav_methods PUT;
      create_full_put_path on;
      limit_except GET HEAD {{
        auth_basic releases;
        auth_basic_user_file {directory}/htpasswd;
      }}
    }}
  }}
}}
"""


@dataclass(frozen=True, kw_only=True)
class MavenServer:
    """`url` leads through `recorder`; `files` is what it serves."""

    url: str
    files: Path
    recorder: Recorder

    @property
    def environment(self) -> dict[str, str]:
        """What publishing there takes."""
        return {"RELEASEKIT_MAVEN_USERNAME": USERNAME, "RELEASEKIT_MAVEN_PASSWORD": PASSWORD}


@contextlib.contextmanager
def nginx(directory: Path) -> Iterator[MavenServer]:
    """An empty repository at /maven2/, to be read by all and written by one user."""
    program = require_tool("nginx")
    files = directory / "served" / "maven2"
    files.mkdir(parents=True)
    (directory / "htpasswd").write_text(f"{USERNAME}:{apr_md5(PASSWORD)}\n")
    port = free_port()
    # Its workers would be another user's, who may not write here.
    user = "user root;\n" if os.geteuid() == 0 else ""
    config = directory / "nginx.conf"
    config.write_text(_CONFIG.format(directory=directory, port=port, user=user))
    argv: list[str | Path] = [program, "-p", directory, "-e", directory / "error.log", "-c", config]
    origin = f"http://127.0.0.1:{port}"
    ready = f"{origin}/maven2/"
    with running(argv, log=directory / "log", ready=ready), recorded(origin) as seen:
        yield MavenServer(url=f"{seen.url}/maven2/", files=files, recorder=seen)


def local_repository() -> Path:
    """Where mvn keeps what it fetched, the same for all tests: fetching takes a minute once."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(cache) / "releasekit-tests" / "m2"
    path.mkdir(parents=True, exist_ok=True)
    return path
