"""Files that real tools built elsewhere, published by ./entrypoint.sh from `dist`, and back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import distributions
from integration.servers import static_server
from integration.test_cargo_publish import cargo_workspace, toolchain
from integration.tools import require_tool
from workspaces import Program, npm_workspace, uv_workspace

if TYPE_CHECKING:
    from pathlib import Path

PAIR = {"demo-base": (), "demo-io": ("demo-base",)}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_wheels_go_out_with_a_source_distribution_of_the_tree(tmp_path: Path, home: Path) -> None:
    """R1, R17: the very bytes, beside what they lack, in order; a later run has nothing to do."""
    workspace, served = uv_workspace(tmp_path / "a workspace", PAIR), tmp_path / "served"
    wheelhouse, uv = workspace / "wheelhouse", require_tool("uv")
    build: list[str | Path] = [uv, "build", "--quiet", "--wheel", "--python", sys.executable]
    member = workspace / "packages" / "demo-io"
    subprocess.run([*build, "--out-dir", wheelhouse, member], check=True)
    (wheel,) = wheelhouse.glob("*.whl")
    # As cibuildwheel leaves them, for machines of other kinds too.
    shutil.copy(wheel, wheelhouse / "demo_io-1.0.0-py3-none-macosx_11_0_arm64.whl")
    given = {path.name: path.read_bytes() for path in wheelhouse.glob("*.whl")}
    arguments = ("--registry", f"dir:{served}", "--dist", str(wheelhouse))

    run = Program(home).run("publish", workspace, *arguments)
    assert run.code == 0, run.out + run.err
    assert list(run.outcomes) == ["demo-base", "demo-io"]
    published = {path.name: path.read_bytes() for path in served.rglob("demo_io-*[lz]")}
    assert published.keys() == {*given, "demo_io-1.0.0.tar.gz"}
    assert given.items() <= published.items()
    assert Program(home).run("publish", workspace, *arguments).results["result"] == "noop"
    with static_server(served / "pypi") as url:
        where: list[str | Path] = ["--target", tmp_path / "into", "--index-url", f"{url}/simple/"]
        install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-cache"]
        subprocess.run([*install, *where, "demo-io"], check=True)
    assert (tmp_path / "into" / "demo_base" / "__init__.py").exists()


def test_no_build_backend_is_asked_for_what_the_files_tell(tmp_path: Path, home: Path) -> None:
    """R17: neither for the plan, where the version is dynamic, nor for the release."""
    workspace, dist = tmp_path / "w", tmp_path / "dist"
    dist.mkdir()
    workspace.mkdir()
    (workspace / "pyproject.toml").write_text(
        '[project]\nname = "demo-rust"\ndynamic = ["version", "dependencies"]\n'
        '[build-system]\nrequires = ["no-such-backend"]\nbuild-backend = "no_such_backend"\n'
    )
    distributions.both(dist, distributions.package("demo-rust", "1.2.0"))
    run = Program(home).run(
        "publish", workspace, "--registry", f"dir:{tmp_path / 's'}", "--dist", str(dist)
    )
    assert run.code == 0, run.out + run.err
    assert len([*(tmp_path / "s").rglob("demo_rust-1.2.0*[lz]")]) == 2


def test_packed_tarballs_go_out_as_they_are(tmp_path: Path, home: Path) -> None:
    """R1: what only the tarball needs, as napi writes it there, goes out before it."""
    npm = require_tool("npm")
    workspace, served = npm_workspace(tmp_path / "w", {"app": (), "native": ()}), tmp_path / "s"
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(workspace / "packages" / "app", elsewhere / "app")
    manifest = elsewhere / "app" / "package.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(document | {"optionalDependencies": {"@acme/native": "1.0.0"}}))
    (tmp_path / "dist").mkdir()
    pack: list[str | Path] = [
        npm,
        "pack",
        "--loglevel=error",
        "--pack-destination",
        tmp_path / "dist",
    ]
    subprocess.run(pack, cwd=elsewhere / "app", check=True, capture_output=True)
    (tarball,) = (tmp_path / "dist").iterdir()
    # As the action passes its input on.
    program = Program(home, {"RELEASEKIT_DIST": f"{tmp_path / 'dist'}\n"})
    run = program.run("publish", workspace, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    assert list(run.outcomes) == ["@acme/native", "@acme/app"]
    (published,) = served.rglob(tarball.name)
    assert published.read_bytes() == tarball.read_bytes()


def test_a_crate_goes_out_as_it_is(tmp_path: Path, home: Path) -> None:
    """R1"""
    cargo = require_tool("cargo")
    program = Program(home, toolchain(home))
    workspace = cargo_workspace(tmp_path / "w", {**PAIR, "demo-docs": ()})
    package: list[str | Path] = [cargo, "package", "--quiet", "--no-verify", "--package"]
    target: list[str | Path] = ["--target-dir", tmp_path / "target"]
    subprocess.run([*package, "demo-base", *target], cwd=workspace, check=True)
    served, dist = tmp_path / "served", tmp_path / "dist"
    dist.mkdir()
    crate = dist / "demo-base-1.0.0.crate"
    shutil.copy(tmp_path / "target" / "package" / crate.name, crate)
    arguments = ("--registry", f"dir:{served}", "--dist", str(dist))
    run = program.run("publish", workspace, *arguments)
    assert run.code == 0, run.out + run.err
    (published,) = served.rglob(crate.name)
    assert published.read_bytes() == crate.read_bytes()


def test_a_file_of_another_version_is_named_before_anything_is_built(
    tmp_path: Path, home: Path
) -> None:
    """One line has the file, what it is, and what is planned."""
    workspace, dist = uv_workspace(tmp_path / "w", PAIR, version="1.1.0"), tmp_path / "dist"
    dist.mkdir()
    wheel = distributions.wheel(dist, distributions.package("demo-base")).path
    run = Program(home).run("plan", workspace, "--dist", str(dist), "--registry", "dir:served")
    assert run.code == 3
    assert f"error: {wheel} is pypi:demo-base 1.0.0, but 1.1.0 is planned [RK-308]\n" in run.err
    assert not (workspace / "served").exists()
