"""The main job: a uv workspace, real builds, real registries, proved from the servers' side."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from integration.recorder import Fault
from integration.servers import free_port, static_server
from integration.tools import require_tool
from workspaces import TWELVE, Program, git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from integration.recorder import Recorder
    from integration.servers import IndexServer
    from workspaces import Run


FOUR = {
    "demo-base": (),
    "demo-io": ("demo-base",),
    "demo-store": ("demo-base", "demo-io"),
    "demo-lone": (),
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return uv_workspace(tmp_path / "a workspace", FOUR)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home")


def publish(
    program: Program, workspace: Path, server: IndexServer, *more: str, **environment: str
) -> Run:
    known = Program(program.home, {**server.environment, **environment})
    registry = ["--pypi-registry", server.upload_url, "--pypi-index", server.index_url]
    return known.run("publish", workspace, *registry, "--retry-base-delay", "0.05s", *more)


def package_of(filename: str) -> str:
    return filename.split("-", maxsplit=1)[0].replace("_", "-")


def assert_in_order(recorder: Recorder, packages: Mapping[str, tuple[str, ...]] = TWELVE) -> None:
    """Each package's first byte came after the index had shown all files of its dependencies."""
    began: dict[str, float] = {}
    files: dict[str, set[bytes]] = {}
    for upload in recorder.uploads:
        began.setdefault(package_of(upload.filename), upload.began_s)
        files.setdefault(package_of(upload.filename), set()).add(upload.filename.encode())
    for name, needs in packages.items():
        for need in needs:
            # The index may show a file before the answer to its upload is out.
            looks = [
                exchange.ended_s
                for exchange in recorder.exchanges
                if exchange.method == "GET"
                and f"/{need}/" in exchange.path
                and all(filename in exchange.answer for filename in files[need])
            ]
            assert looks, (name, need)
            assert min(looks) < began[name], (name, need)


def test_twelve_packages_in_order_once_and_back(
    pypiserver: IndexServer, program: Program, tmp_path: Path
) -> None:
    """R1, R2, R19, R22, R24, R25: requirements within the repository are pinned in what is
    published only.
    """
    workspace = uv_workspace(tmp_path / "a workspace")
    first = publish(program, workspace, pypiserver, "--concurrency", "3")
    assert first.code == 0, first.out + first.err
    assert first.outcomes == dict.fromkeys(TWELVE, "published")
    uploads = pypiserver.recorder.uploads
    assert len(uploads) == len({upload.filename for upload in uploads}) == 2 * len(TWELVE)
    for upload in uploads:
        beside = {
            other.filename.split("-1.0.0")[0].replace("_", "-")
            for other in uploads
            if other.began_s <= upload.began_s < other.ended_s
        }
        assert len(beside) <= 3
    assert_in_order(pypiserver.recorder)
    assert git(workspace, "status", "--porcelain") == ""
    (wheel,) = [it for it in uploads if it.filename == "demo_http-1.0.0-py3-none-any.whl"]
    assert b"demo-net==1.0.0" in wheel.body
    assert b"demo-io==1.0.0" in wheel.body

    pypiserver.recorder.forget()
    second = publish(program, workspace, pypiserver)
    assert second.code == 0, second.out + second.err
    assert second.results["result"] == "noop"
    assert second.outcomes == dict.fromkeys(TWELVE, "already-published")
    assert pypiserver.recorder.uploads == []

    uv = require_tool("uv")
    environment = tmp_path / "installed"
    python = environment / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", environment], check=True)
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-cache"]
    index = ["--index-url", pypiserver.index_url]
    subprocess.run([*install, "--python", python, *index, *TWELVE], check=True)
    modules = [name.replace("-", "_") for name in TWELVE]
    checks = "; ".join(f"import {m}; assert {m}.NAME.replace('-', '_') == {m!r}" for m in modules)
    subprocess.run([python, "-I", "-c", checks], check=True)


def test_what_a_run_spent_is_what_the_server_saw(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    """R12: a refused upload and a refused look are asked for again, and counted."""
    faults = pypiserver.recorder.faults
    faults.append(Fault(kind="status", headers=(("Retry-After", "0"),)))
    faults.append(Fault(kind="status", method="GET"))
    run = publish(program, workspace, pypiserver)
    assert run.code == 0, run.out + run.err
    spent = run.results["spent"]
    exchanges = pypiserver.recorder.exchanges
    assert spent["requests"] == len(exchanges)
    assert spent["sent_bytes"] == sum(len(exchange.body) for exchange in exchanges)
    assert spent["retries"] == 2
    rows = {row["name"]: row["spent"] for row in run.results["packages"]}
    assert sum(row["requests"] for row in rows.values()) == spent["requests"]
    for name, row in rows.items():
        asked = [each for each in exchanges if f"/{name}/" in each.path]
        sent = [each for each in exchanges if package_of(each.filename) == name]
        assert row["requests"] == len(asked) + len(sent)
    total = sum(step["lasted_s"] for step in spent["chain"])
    assert total <= run.results["duration_s"] + 0.001


def test_a_bad_network_costs_nothing_but_time(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    """R12, R15, R16: every kind of fault once, and still everything is there exactly once."""
    pypiserver.recorder.faults.extend(
        [
            Fault(kind="status", status=503),
            Fault(kind="status", status=429, headers=(("Retry-After", "0"),)),
            Fault(kind="lost"),
            Fault(kind="reset"),
            Fault(kind="lost"),
            Fault(kind="status", status=502, method="GET"),
        ]
    )
    run = publish(program, workspace, pypiserver, "--max-retries", "8")
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert not pypiserver.recorder.faults
    stored = [u.filename for u in pypiserver.recorder.uploads if u.status == 200]
    assert len(stored) == len(set(stored))
    assert_in_order(pypiserver.recorder, FOUR)


def test_a_fresh_machine_resumes_from_the_registry_alone(
    devpi_index: IndexServer, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R19: half of it is there, and there is no journal."""
    half = publish(program, workspace, devpi_index, "--packages", "demo-base\ndemo-lone")
    assert half.code == 0, half.out + half.err
    elsewhere = tmp_path / "another machine"
    subprocess.run(["git", "clone", "--quiet", workspace, elsewhere], check=True)
    devpi_index.recorder.forget()
    run = publish(program, elsewhere, devpi_index)
    assert run.code == 0, run.out + run.err
    assert run.outcomes["demo-base"] == "already-published"
    assert run.outcomes["demo-io"] == "published"
    names = {package_of(upload.filename) for upload in devpi_index.recorder.uploads}
    assert names == set(FOUR) - {"demo-base", "demo-lone"}


def test_wrong_credentials_are_one_clear_message(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    run = publish(program, workspace, pypiserver, RELEASEKIT_PYPI_TOKEN="wrong-password")
    assert run.code == 1
    assert run.outcomes["demo-base"] == "failed"
    assert run.outcomes["demo-io"] == "blocked"
    assert "pypi-token" in run.row("demo-base")["reason"] + run.row("demo-base")["hint"]
    assert "wrong-password" not in run.out + run.err + str(run.results)


def test_missing_credentials_are_found_before_anything_is_built(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    run = program.run("publish", workspace, "--pypi-registry", pypiserver.upload_url)
    assert run.code == 3
    assert "RELEASEKIT_PYPI_TOKEN" in run.err
    assert not (workspace / ".releasekit" / "dist").exists()


def test_an_unreachable_registry_is_one_clear_message(workspace: Path, program: Program) -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    known = Program(program.home, {"RELEASEKIT_PYPI_TOKEN": "secret-token"})
    run = known.run(
        "publish",
        workspace,
        "--pypi-registry",
        url,
        "--max-retries",
        "1",
        "--retry-base-delay",
        "0s",
    )
    assert run.code == 1
    assert url in run.err
    assert "Traceback" not in run.err
    assert len(run.err.strip().splitlines()) <= 4
    assert "Nothing was published. The address is that of `pypi-registry`: correct it" in run.err


def test_a_build_that_fails_shows_its_log_and_blocks_its_dependents(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    """R6"""
    manifest = workspace / "packages" / "demo-io" / "pyproject.toml"
    broken = '[tool.hatch.build.targets.wheel]\npackages = ["src/nowhere"]\n'
    manifest.write_text(manifest.read_text() + broken + "[tool.hatch.build]\nhooks = 7\n")
    run = publish(program, workspace, pypiserver)
    assert run.code == 1
    assert run.outcomes == {
        "demo-base": "published",
        "demo-io": "failed",
        "demo-store": "blocked",
        "demo-lone": "published",
    }
    assert "hooks" in run.out
    [log] = (workspace / ".releasekit" / "logs").glob("*/build-pypi-demo-io.log")
    assert str(log) in run.out + str(run.row("demo-io"))
    before = log.read_bytes()
    publish(program, workspace, pypiserver)
    # R47: the next run has logs of its own.
    assert log.read_bytes() == before
    assert len(list(log.parents[1].glob("*/build-pypi-demo-io.log"))) == 2


def test_a_dry_run_builds_everything_and_uploads_nothing(
    pypiserver: IndexServer, workspace: Path, program: Program
) -> None:
    run = publish(program, workspace, pypiserver, "--dry-run")
    assert run.code == 0, run.out + run.err
    assert run.results["dry_run"] is True
    assert {row["outcome"] for row in run.results["packages"]} == {"would-publish"}
    assert len(run.row("demo-store")["artifacts"]) == 2
    assert pypiserver.recorder.uploads == []


def test_a_static_directory_serves_what_was_published(
    workspace: Path, program: Program, tmp_path: Path
) -> None:
    run = program.run("publish", workspace, "--registry", f"dir:{tmp_path / 'served'}")
    assert run.code == 0, run.out + run.err
    install: list[str | Path] = [require_tool("uv"), "pip", "install", "--quiet", "--no-cache"]
    with static_server(tmp_path / "served" / "pypi") as url:
        where: list[str | Path] = ["--target", tmp_path / "into", "--index-url", f"{url}/simple/"]
        subprocess.run([*install, *where, *FOUR], check=True)
    assert (tmp_path / "into" / "demo_store" / "__init__.py").exists()
