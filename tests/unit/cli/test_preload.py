"""What a run loads before the first build, so that nothing is loaded later."""

from __future__ import annotations

import ast
import base64
import subprocess
import sys
import threading
import time
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_loader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import releasekit
from processes import PATIENCE_S
from releasekit.__main__ import main
from releasekit.cli.preload import import_from_top
from releasekit.errors import ConfigError

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

SOURCE = Path(releasekit.__file__).parent
SIGSTORE = base64.b64encode(b'{"aud":"sigstore"}').decode()
# Where a run begins, and what it loads there for the ecosystems that it is about.
EARLY = {
    "errors",  # for a mistake in what a user wrote
    "start",
    "__main__",
    "ecosystems.folders",
    "host.ci",
    "host.reexec",
    "host.sandbox",
    "host.folder",
    "config.locations",
    "cli.prepare",
    "report.progress",
}
# Commands that build nothing.
APART = {
    "releasekit.cli.approve",
    "releasekit.cli.verify",
    "releasekit.provenance.verifier",
    "releasekit.cli.notes",
    "releasekit.cli.change",
}

LATER = """
import sys
from releasekit.cli import plan, preload, publish, session
from releasekit.config.config import Config

class Given:
    mode = "publish"
    attestations = "auto"
    tag = announce = True

preload.load_everything(Given(), signs=True)
before = set(sys.modules)

import asyncio, contextlib, http.server, io, socket, threading, zipfile
from datetime import datetime
from releasekit.http.client import http_client
from releasekit.report import page

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass

async def ask():
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    async with http_client(pool_size=2) as client:
        before.update(sys.modules)  # a client is there before any build
        await client.get(f"http://127.0.0.1:{server.server_port}/")
        for host in ("localhost", "b\\u00fccher.localhost"):
            with contextlib.suppress(OSError, Exception):
                await client.get(f"https://{host}:1/")
    await asyncio.to_thread(datetime.strptime, "2026", "%Y")

asyncio.run(ask())
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("\\u00e9", "")
zipfile.ZipFile(packed).namelist()
b"".decode("utf-8-sig")
print(*sorted({*sys.modules} - before))
"""


def imports_in_functions(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom) and inner.module:
                    found.add(inner.module)
                elif isinstance(inner, ast.Import):
                    found |= {each.name for each in inner.names}
    return found


def test_whatever_a_function_imports_is_loaded_before_the_first_build() -> None:
    """R53"""
    code = (
        "import sys\n"
        "from releasekit.cli import plan, preload, publish\n"
        "class Given:\n"
        "    mode, attestations = 'publish', 'auto'\n"
        "    tag = announce = True\n"
        "preload.load_everything(Given(), signs=True)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {*done.stdout.split(), *APART}
    late = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        wanted = imports_in_functions(ast.parse(path.read_text()))
        if module not in EARLY and (missing := wanted - loaded):
            late[module] = missing
    assert late == {}


def test_a_run_loads_nothing_that_it_has_no_use_for() -> None:
    """Neither what draws a table, nor what tags and announces, nor what decides versions."""
    code = (
        "import sys\n"
        "from releasekit.cli import preload, publish\n"
        "class Given:\n"
        "    mode, attestations, tag, announce = 'publish', 'off', False, False\n"
        "preload.load_everything(Given(), signs=False)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    by_need = {"rich", "releasekit.announce.post_release", "releasekit.versions.decide"}
    assert by_need.isdisjoint(done.stdout.split())


def test_libraries_load_nothing_of_their_own_later() -> None:
    """R53"""
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    own = {"http.server", "socketserver", "html", "html.entities"}
    assert [name for name in done.stdout.split() if name not in own] == []


class SlowLoader(SourceFileLoader):
    """Makes the module not before `go_on`; until then, only its lock tells of it."""

    def __init__(self, name: str, path: str) -> None:
        super().__init__(name, path)
        self.entered, self.go_on = threading.Event(), threading.Event()

    def create_module(self, _spec: ModuleSpec) -> None:
        self.entered.set()
        self.go_on.wait()

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return spec_from_loader(name, self, is_package=True) if name == self.name else None


def test_a_package_that_another_thread_is_loading_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python gives up where two threads hold what the other one wants."""
    (tmp_path / "slow/inner").mkdir(parents=True)
    (tmp_path / "slow/inner/leaf.py").touch()
    (tmp_path / "slow/inner/__init__.py").touch()
    (tmp_path / "slow/__init__.py").write_text("import slow.inner\n")
    loader = SlowLoader("slow", str(tmp_path / "slow/__init__.py"))
    monkeypatch.setattr(sys, "meta_path", [loader, *sys.meta_path])
    raised: list[BaseException] = []

    def load(name: str) -> None:
        try:
            import_from_top(name)
        except BaseException as error:  # noqa: BLE001 (it is the test's to judge)
            raised.append(error)

    first = threading.Thread(target=load, args=("slow",))
    first.start()
    loader.entered.wait()
    second = threading.Thread(target=load, args=("slow.inner.leaf",))
    second.start()
    while sys._current_frames()[second.ident or 0].f_code.co_name != "acquire":
        time.sleep(0)
    loader.go_on.set()
    first.join()
    second.join()
    assert raised == []
    assert "slow.inner.leaf" in sys.modules
    for name in ("slow", "slow.inner", "slow.inner.leaf"):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("job", "signs"),
    [
        ({"GITHUB_ACTIONS": "true"}, False),
        (
            {
                "GITHUB_ACTIONS": "true",
                "ACTIONS_ID_TOKEN_REQUEST_URL": "https://id.example/",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "x" * 20,
            },
            True,
        ),
        ({"GITLAB_CI": "true"}, False),
        (
            {
                "GITLAB_CI": "true",
                "SIGSTORE_ID_TOKEN": f"x.{SIGSTORE}.x",
            },
            True,
        ),
    ],
)
def test_what_signs_is_loaded_wherever_a_job_has_an_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: dict[str, str], signs: bool
) -> None:
    """R52: a build may write to where it would be loaded from later."""
    seen = []

    def load(_: object, *, signs: bool) -> None:
        seen.append(signs)
        raise ConfigError("that is enough")

    monkeypatch.setattr("releasekit.cli.prepare.load_everything", load)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    assert main(["plan", str(tmp_path)]) == 2
    assert seen == [signs]


def test_the_checkout_is_read_while_certificates_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = threading.Event()

    async def read_checkout(*_: object, **__: object) -> None:
        reading.set()

    def http_client(**_: object) -> None:
        assert reading.wait(PATIENCE_S)
        raise ConfigError("that is enough")

    monkeypatch.setattr("releasekit.cli.prepare.read_checkout", read_checkout)
    monkeypatch.setattr("releasekit.cli.prepare.http_client", http_client)
    assert main(["plan", str(tmp_path)]) == 2
    assert reading.is_set()
