"""Real package index servers on loopback, with accounts, each behind a recorder."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from integration.recorder import Recorder
from integration.tools import require_tool
from processes import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

USERNAME = "releaser"
PASSWORD = "correct-horse-battery"

_indexes = itertools.count(1)
_RANDOM = random.SystemRandom()


@dataclass(frozen=True, kw_only=True)
class IndexServer:
    """What a user would be told about the server; the URLs lead through `recorder`."""

    upload_url: str
    index_url: str
    username: str
    password: str
    recorder: Recorder

    @property
    def environment(self) -> dict[str, str]:
        """What publishing there takes."""
        return {"RELEASEKIT_PYPI_USERNAME": self.username, "RELEASEKIT_PYPI_TOKEN": self.password}


def tool(name: str) -> Path:
    """A program of this environment."""
    return Path(sys.executable).with_name(name)


@contextlib.contextmanager
def pypiserver(directory: Path, *, protected: str = "update") -> Iterator[IndexServer]:
    """An empty pypiserver whose files go to `directory / "packages"`."""
    packages = directory / "packages"
    packages.mkdir(parents=True)
    accounts = directory / "htpasswd"
    accounts.write_text(f"{USERNAME}:{apr_md5(PASSWORD)}\n")
    port = free_port()
    argv: list[str | Path] = [
        tool("pypi-server"),
        "run",
        "-i",
        "127.0.0.1",
        "-p",
        str(port),
        "--disable-fallback",
    ]
    argv += ["-P", accounts, "-a", protected, "--health-endpoint", "/healthz", packages]
    origin = f"http://127.0.0.1:{port}"
    with running(argv, log=directory / "log", ready=f"{origin}/healthz"), recorded(origin) as seen:
        yield IndexServer(
            upload_url=f"{seen.url}/",
            index_url=f"{seen.url}/simple/",
            username=USERNAME,
            password=PASSWORD,
            recorder=seen,
        )


@dataclass(frozen=True)
class Devpi:
    """A devpi-server with one user; indexes are cheap, the server is not."""

    origin: str
    token: str

    @contextlib.contextmanager
    def index(self) -> Iterator[IndexServer]:
        """A new index with PyPI's rules about duplicates."""
        name = f"release{next(_indexes)}"
        path = f"/{USERNAME}/{name}"
        _call("PUT", self.origin + path, {"volatile": False, "bases": []}, token=self.token)
        with recorded(self.origin) as seen:
            yield IndexServer(
                upload_url=f"{seen.url}{path}/",
                index_url=f"{seen.url}{path}/+simple/",
                username=USERNAME,
                password=self.token,
                recorder=seen,
            )


@contextlib.contextmanager
def devpi(directory: Path) -> Iterator[Devpi]:
    state = directory / "state"
    log = directory / "log"
    directory.mkdir(parents=True)
    with log.open("wb") as output:
        subprocess.run(
            [tool("devpi-init"), "--no-root-pypi", "--root-passwd", PASSWORD, "--serverdir", state],
            check=True,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(directory),
            timeout=PATIENCE_S,
        )
    port = free_port()
    argv: list[str | Path] = [
        tool("devpi-server"),
        "--serverdir",
        state,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    argv += ["--offline-mode", "--enable-core-metadata"]
    origin = f"http://127.0.0.1:{port}"
    with running(argv, log=log, ready=f"{origin}/+api"):
        account = {"password": PASSWORD}
        _call("PUT", f"{origin}/{USERNAME}", account)
        # The password itself costs 270 ms a request, this token 12 ms.
        answer = _call("POST", f"{origin}/+login", {"user": USERNAME, **account})
        yield Devpi(origin, answer["result"]["password"])


@contextlib.contextmanager
def static_server(directory: Path) -> Iterator[str]:
    """Any web server: Python's own, over a directory. Yields its URL."""
    port = free_port()
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "http.server",
        str(port),
        "-b",
        "127.0.0.1",
        "-d",
        directory,
    ]
    origin = f"http://127.0.0.1:{port}"
    with running(argv, log=directory.parent / "http.log", ready=f"{origin}/"):
        yield origin


@contextlib.contextmanager
def recorded(origin: str) -> Iterator[Recorder]:
    recorder = Recorder(origin)
    try:
        yield recorder
    finally:
        recorder.close()


@contextlib.contextmanager
def running(argv: Sequence[str | Path], *, log: Path, ready: str) -> Iterator[None]:
    """A server process from its first good answer on `ready` to its end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(log.parent),
            start_new_session=True,
        )
    try:
        _wait_until_ready(process, ready, log)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """None of those that the system gives to whoever asks for any: it could be gone before the
    server that it is for takes it. By system randomness: hypothesis seeds Python's own alike in
    every process.
    """
    while True:
        port = _RANDOM.randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    patience = time.monotonic() + PATIENCE_S
    while time.monotonic() < patience and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.02)
    raise RuntimeError(f"{process.args!r} does not serve {url}:\n{log.read_text()[-4000:]}")


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


def _call(
    method: str, url: str, document: Mapping[str, object], *, token: str = ""
) -> dict[str, dict[str, str]]:
    request = urllib.request.Request(url, json.dumps(document).encode(), method=method)
    request.add_header("Content-Type", "application/json")
    request.add_header("Accept", "application/json")
    if token:
        pair = base64.b64encode(f"{USERNAME}:{token}".encode()).decode()
        request.add_header("X-Devpi-Auth", pair)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
        answer: dict[str, dict[str, str]] = json.load(response)
        return answer


def apr_md5(password: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # passlib looks for `crypt`
        from passlib.hash import apr_md5_crypt  # type: ignore[import-untyped]  # noqa: PLC0415
    hashed: str = apr_md5_crypt.hash(password)
    return hashed


_LIMITED = """\
{user}daemon off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log crit;
events {{ worker_connections 512; }}
http {{
  access_log {directory}/access.log;
  client_max_body_size 64m;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  limit_req_zone $binary_remote_addr zone=all:1m rate={per_s}r/s;
  limit_req_status {status};
  server {{
    listen 127.0.0.1:{port};
    location / {{
      limit_req zone=all burst={burst} nodelay;
      proxy_pass {origin};
    }}
    location = /ready {{ return 204; }}
  }}
}}
"""


@contextlib.contextmanager
def limited(
    origin: str, directory: Path, *, per_s: int, status: int, burst: int = 20
) -> Iterator[str]:
    """nginx before a server: so many requests a second, `burst` at once, else this status, and no
    word of when to come back. https://nginx.org/en/docs/http/ngx_http_limit_req_module.html
    """
    directory.mkdir()
    port = free_port()
    user = "user root;\n" if os.geteuid() == 0 else ""
    text = _LIMITED.format(
        directory=directory,
        port=port,
        user=user,
        per_s=per_s,
        status=status,
        origin=origin,
        burst=burst,
    )
    (directory / "nginx.conf").write_text(text)
    argv: list[str | Path] = [require_tool("nginx"), "-p", directory, "-e", directory / "error.log"]
    argv += ["-c", directory / "nginx.conf"]
    url = f"http://127.0.0.1:{port}"
    with running(argv, log=directory / "log", ready=f"{url}/ready"):
        yield url
