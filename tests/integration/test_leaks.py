"""A real run among builds and a server that show every secret they can: none is kept or shown."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from harness.http_server import Handler, serving
from workspaces import Program, git

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "pypi-c4n4ry/T0k3n+of=the-Registry"
SECRETS = {
    "RELEASEKIT_PYPI_TOKEN": TOKEN,
    "PIP_EXTRA_INDEX_URL": "https://robot:c4n4ry-userinfo@index.example/simple",
    "MAVEN_OPTS": "-Xmx1g -Dgpg.passphrase=c4n4ry-option",
    "npm_config_//npm.example/:_authToken": "npm_c4n4ryc4n4ry",
    "SIGNING_KEY": "-----BEGIN-----\nc4n4ry-line-of-a-key\n-----END-----",
}
SHOWN = (TOKEN, "c4n4ry-userinfo", "c4n4ry-option", "npm_c4n4ryc4n4ry", "c4n4ry-line-of-a-key")
BACKEND = """\
import base64, io, json, os, sys, tarfile, zipfile
from urllib.parse import quote

NAME = {name!r}
TOP = NAME + "-1.0.0"
METADATA = f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: 1.0.0\\n"

def show():
    # Whoever has got hold of them, by way of a file for instance.
    for secret in json.load(open({canaries!r})):
        print("it is", secret, quote(secret, safe=""), json.dumps(secret), repr(secret))
        for user in ("", "a:", "robot:"):
            print(base64.b64encode((user + secret).encode()).decode())
        sys.stdout.write("in two " + secret[:9])
        sys.stdout.flush()
        os.write(1, (secret[9:] + "\\n").encode())
        os.write(2, ("x" * 65530 + secret + "y" * 70000 + "\\n").encode())
    for name, value in os.environ.items():
        print(name, value)

def build_sdist(directory, config_settings=None):
    show()
    if {fails!r}:
        raise SystemExit(f"no way, {{json.load(open({canaries!r}))}}")
    with tarfile.open(os.path.join(directory, TOP + ".tar.gz"), "w:gz") as archive:
        archive.add("pyproject.toml", TOP + "/pyproject.toml")
        archive.add("backend.py", TOP + "/backend.py")
        metadata = METADATA.encode()
        member = tarfile.TarInfo(TOP + "/PKG-INFO")
        member.size = len(metadata)
        archive.addfile(member, io.BytesIO(metadata))
    return TOP + ".tar.gz"

def build_wheel(directory, config_settings=None, metadata_directory=None):
    show()
    with zipfile.ZipFile(os.path.join(directory, TOP + "-py3-none-any.whl"), "w") as archive:
        info = TOP + ".dist-info/"
        archive.writestr(info + "METADATA", METADATA)
        archive.writestr(info + "WHEEL",
            "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(info + "RECORD", "")
    return TOP + "-py3-none-any.whl"
"""


def echoing(status: int, kind: str) -> type[Handler]:
    """Every answer to an upload shows the request's headers, and what they hold."""

    class Echo(Handler):
        def do_GET(self) -> None:
            self._answer(404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(status)

        def _answer(self, code: int) -> None:
            sent = self.headers.get("Authorization", "")
            pair = base64.b64decode(sent.removeprefix("Basic ")).decode()
            words = (
                f"you sent Authorization: {sent} which is {pair}, see https://x.example/?s={pair}"
            )
            body = json.dumps({"message": words}) if "json" in kind else f"<p>{words}</p>"
            self.send_response(code, words if kind == "none" else None)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body) if kind != "none" else 0))
            self.end_headers()
            if kind != "none":
                self.wfile.write(body.encode())

    return Echo


def workspace(root: Path, canaries: Path) -> Path:
    root.mkdir()
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    for name in ("good", "bad"):
        directory = root / "packages" / name
        directory.mkdir(parents=True)
        source = BACKEND.format(name=name, canaries=str(canaries), fails=name == "bad")
        (directory / "backend.py").write_text(source)
        (directory / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "1.0.0"\n'
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


@pytest.mark.parametrize(
    ("status", "kind"), [(403, "application/json"), (500, "text/html"), (400, "none")]
)
def test_no_secret_is_kept_or_shown(tmp_path: Path, status: int, kind: str) -> None:
    """R34, R50"""
    canaries = tmp_path / "canaries.json"
    canaries.write_text(json.dumps(SHOWN))
    root = workspace(tmp_path / "workspace", canaries)
    home = tmp_path / "home"
    home.mkdir()
    files = {name: str(home / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    # With debug logging, every request is told as well.
    program = Program(home, {**SECRETS, **files, "GITHUB_ACTIONS": "true", "RUNNER_DEBUG": "1"})
    with serving(echoing(status, kind)) as url:
        run = program.run(
            *("publish", root, "--pypi-username", "robot", "--max-retries", "0"),
            *("--pypi-registry", f"{url}/legacy/", "--pypi-index", f"{url}/simple/"),
        )
    assert run.code == 1
    assert f"pypi:good  POST {url}/legacy/ -> {status}; sent " in run.out
    assert set(run.outcomes) == {"good", "bad"}
    assert "published" not in run.outcomes.values()
    state = root / ".releasekit"
    logs = [path.read_text() for path in state.rglob("build-*.log")]
    assert len(logs) == 2
    assert all("it is *** *** " in log and "in two ***\n" in log for log in logs)
    printed = [line for line in run.out.splitlines() if not line.startswith("::add-mask::")]
    written = [path for place in (state, home) for path in place.rglob("*") if path.is_file()]
    sources = {str(path): path.read_bytes().decode("latin-1") for path in written}
    sources |= {"out": "\n".join(printed), "err": run.err}
    for where, text in sources.items():
        for form in forms():
            assert form not in text, where


def forms() -> list[str]:
    """Of each canary what is enough to know it."""
    whole = [form for secret in SHOWN for form in (secret, quote(secret, safe=""))]
    encoded = [
        base64.b64encode(before + secret.encode())[4:24].decode()
        for secret in SHOWN
        for before in (b"", b"a:", b"robot:")
    ]
    return ["c4n4ry", *whole, *encoded]
