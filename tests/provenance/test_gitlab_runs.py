"""Whole releases by ./entrypoint.sh in a job of gitlab.com, as its CI file would start it: without
an input, an address or a stored token, to doubles of the registries by their own names.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pypi_attestations
import pytest

from harness import public_names
from harness.npm import registry
from harness.npm.documents import pack
from harness.npm.npmjs import Npmjs
from integration import crates
from integration.test_cargo_publish import toolchain
from integration.tools import require_tool
from provenance.npmjs import Examiner
from provenance.warehouse import Warehouse
from releasekit.__main__ import main
from releasekit.provenance.statement import PUBLISH
from trusted_index import served
from workspaces import Program, git, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.npm.registry import Registry
    from integration.crates import CrateServer
    from provenance.sigstore_double import Sigstore

PROJECT = "acme/tools/widgets"
# One ID token is for both.
NODE = ("@acme/icons", "@acme/ui")
AUDIENCES = {
    "PYPI_ID_TOKEN": "pypi",
    "PYPI_ID_TOKEN_2": "pypi",
    "CRATES_IO_ID_TOKEN": "crates.io",
    "NPM_ID_TOKEN": "npm:registry.npmjs.org",
}
# By one of the index, no build could be done here: pypi.org is a double.
_BACKEND = """
import tarfile
import zipfile
from pathlib import Path

NAME = "acme_core-1.0.0"
METADATA = "Metadata-Version: 2.1\\nName: acme-core\\nVersion: 1.0.0\\n"

def build_wheel(directory, settings=None, metadata=None):
    with zipfile.ZipFile(Path(directory, f"{NAME}-py3-none-any.whl"), "w") as archive:
        archive.writestr(f"{NAME}.dist-info/METADATA", METADATA)
        archive.writestr(f"{NAME}.dist-info/WHEEL",
            "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(f"{NAME}.dist-info/RECORD", "")
    return f"{NAME}-py3-none-any.whl"

def build_sdist(directory, settings=None):
    Path("PKG-INFO").write_text(METADATA)
    with tarfile.open(Path(directory, f"{NAME}.tar.gz"), "w:gz") as archive:
        for name in ("PKG-INFO", "pyproject.toml", "backend.py"):
            archive.add(name, f"{NAME}/{name}")
    return f"{NAME}.tar.gz"
"""
_PYPROJECT = """
[project]
name = "acme-core"
version = "1.0.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@dataclass
class Job:
    sigstore: Sigstore
    pypi: Warehouse
    npm: Registry
    crates: CrateServer
    environment: dict[str, str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    # Its own program is not to be installed from the doubles.
    assert Program(tmp_path / "home").run("--version").code == 0
    return tmp_path / "home"


@pytest.fixture
def job(sigstore: Sigstore, tmp_path: Path) -> Iterator[Job]:
    """Each registry knows all of it by what its publisher form asks for."""
    require_tool("npm")
    require_tool("cargo")
    sigstore.become_gitlab()
    publisher = pypi_attestations.GitLabPublisher(
        repository=PROJECT, workflow_filepath=".gitlab-ci.yml"
    )
    pypi = Warehouse(sigstore=sigstore, publisher=publisher, audience="pypi")
    npmjs = Npmjs()
    with (
        served(pypi) as origin,
        registry.serving(npmjs) as npm,
        crates.crate_server() as crate_server,
        contextlib.ExitStack() as names,
    ):
        npm.before = Examiner(sigstore)
        for name in NODE:
            npmjs.publish(pack({"name": name, "version": "0.9.0"}))
        crate_server.crates.hold("acme-lib", "0.0.1")
        tokens = {name: sigstore.issuer.token(aud) for name, aud in AUDIENCES.items()}
        crate_server.crates.id_tokens = [tokens["CRATES_IO_ID_TOKEN"]]
        npmjs.accounts.github.id_tokens = [tokens["NPM_ID_TOKEN"]]
        npmjs.accounts.allowed = frozenset({"publish"})
        doubles = {
            **dict.fromkeys(("pypi.org", "upload.pypi.org"), origin),
            **dict.fromkeys(("fulcio.sigstore.dev", "rekor.sigstore.dev"), sigstore.url),
            "registry.npmjs.org": npmjs.origin,
            "index.crates.io": crate_server.index_url.rstrip("/"),
            "crates.io": crate_server.index_url.removesuffix("/index/"),
        }
        asked = names.enter_context(public_names.answering(doubles, tmp_path / "certificates"))
        environment = {**sigstore.environment, **tokens, **asked}
        yield Job(sigstore, pypi, npm, crate_server, environment)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "work space"
    root.mkdir()
    (root / "python").mkdir()
    (root / "python" / "pyproject.toml").write_text(_PYPROJECT)
    (root / "python" / "backend.py").write_text(_BACKEND)
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["python"]\n')
    said = {
        "version": "1.0.0",
        "repository": f"https://gitlab.com/{PROJECT}.git",
        "publishConfig": {"access": "public"},
    }
    write_json(root / "package.json", {"private": True, "workspaces": ["node/*"]})
    for name in NODE:
        write_json(root / "node" / name.split("/")[1] / "package.json", {"name": name, **said})
    crate = root / "rust"
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "lib.rs").write_text("pub fn one() -> u32 {\n    1\n}\n")
    (crate / "Cargo.toml").write_text(
        '[package]\nname = "acme-lib"\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n'
        'description = "One"\n'
    )
    (root / "Cargo.toml").write_text('[workspace]\nmembers = ["rust"]\nresolver = "2"\n')
    (root / "releasekit.toml").write_text("[cargo]\nverify = false\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def test_a_project_of_gitlab_publishes_as_itself(
    job: Job, workspace: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R14, R38: three registries trust it, two of which verify what it has signed."""
    job.crates.cargo_config(home / "cargo")
    program = Program(home, {**toolchain(home), **job.environment})
    run = program.run("publish", workspace)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert len(run.outcomes) == 4
    assert len(job.pypi.stored) == 2
    assert job.pypi.attested == {name: [PUBLISH] for name in job.pypi.stored}
    examiner = job.npm.before
    assert isinstance(examiner, Examiner)
    assert sorted(map(str, examiner.taken)) == [f"{name}@1.0.0" for name in NODE]
    assert list(job.crates.crates.requests) == ["acme-lib-1.0.0.crate"]
    statement = run.results["statement"]
    assert (statement["subjects"], statement["url"], statement["note"]) == (5, "", "")
    secrets = [value for name, value in job.environment.items() if name.endswith("TOKEN")]
    kept = b"".join(
        path.read_bytes() for path in (workspace / ".releasekit").rglob("*") if path.is_file()
    )
    for secret in secrets:
        assert secret not in run.out + run.err
        assert secret.encode() not in kept
    assert program.run("publish", workspace).results["result"] == "noop"
    (crate,) = (workspace / ".releasekit").rglob("*.crate")
    asked = ("--repository", f"https://gitlab.com/{PROJECT}", "--workflow", ".gitlab-ci.yml")
    trust = ("--trust-config", str(job.sigstore.trusted_root))
    bundle = ("--bundle", str(home / "provenance.jsonl"))
    assert main(["verify", str(crate), *asked, *bundle, *trust]) == 0
    said = f"https://gitlab.com/{PROJECT} .gitlab-ci.yml refs/heads/main push {'a' * 40}"
    assert said in capsys.readouterr().out


def test_a_token_that_the_registry_has_taken_makes_room_for_the_next(
    job: Job, workspace: Path, home: Path
) -> None:
    """R38: as where the answer to the first was lost; of crates.io there is one only."""
    job.crates.cargo_config(home / "cargo")
    job.pypi.answer("POST", "/_/oidc/mint-token", "", _mint(job.environment["PYPI_ID_TOKEN"]))
    job.crates.crates.used_tokens.add(job.environment["CRATES_IO_ID_TOKEN"])
    run = Program(home, {**toolchain(home), **job.environment}).run(
        *("publish", workspace, "--retry-base-delay", "0.05s")
    )
    assert run.code == 1, run.out + run.err
    told = dict.fromkeys(("acme-core", *NODE), "published")
    assert run.outcomes == {**told, "acme-lib": "failed"}
    assert len(job.pypi.minted) == 2
    assert "the ID tokens of this job for `crates.io` are used or too old: it had 1" in run.out
    assert "CRATES_IO_ID_TOKEN_2" in run.out


def _mint(token: str) -> bytes:
    return json.dumps({"token": token}).encode()
