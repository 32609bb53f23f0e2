"""Crates through ./entrypoint.sh, to a registry with crates.io's rules, and back with cargo."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration import crates
from integration.recorder import Fault
from integration.servers import static_server
from integration.tools import require_tool
from processes import wait_until
from releasekit.ecosystems.cargo.discover import read_metadata
from releasekit.errors import ConfigError
from releasekit.host.process import Processes
from workspaces import TWELVE, Program, git, kill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from integration.crates import CrateServer
    from integration.recorder import Recorder
    from workspaces import Run


FOUR = {
    "demo-base": (),
    "demo-io": ("demo-base",),
    "demo-docs": ("demo-base", "demo-io"),
    "demo-lone": (),
}


@pytest.fixture(autouse=True)
def tools() -> None:
    require_tool("cargo")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return cargo_workspace(tmp_path / "a workspace", FOUR)


@pytest.fixture
def program(tmp_path: Path, crate_server: CrateServer) -> Program:
    """On a machine for which the server is crates.io."""
    return machine(tmp_path / "home", crate_server)


def machine(home: Path, server: CrateServer) -> Program:
    server.cargo_config(home / "cargo")
    return Program(home, {**toolchain(home), "RELEASEKIT_CARGO_TOKEN": crates.TOKEN})


def toolchain(home: Path) -> dict[str, str]:
    """An empty CARGO_HOME, and the compiler of this machine where rustup keeps it."""
    rustup = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")
    return {"CARGO_HOME": str(home / "cargo"), "RUSTUP_HOME": rustup}


def cargo_workspace(
    root: Path, packages: Mapping[str, tuple[str, ...]] = TWELVE, *, docs: bool = True
) -> Path:
    """A git repository; half of the dependencies are inherited, and none says a version. Its
    crates are not compiled, which takes longer than all else that is done with them.
    """
    shared = sorted({need for needs in packages.values() for need in needs})[::2]
    lines = [f'{name} = {{ path = "crates/{name}" }}\n' for name in shared]
    root.mkdir(parents=True)
    (root / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n\n'
        '[workspace.package]\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n\n'
        f"[workspace.dependencies]\n{''.join(lines)}"
    )
    (root / "releasekit.toml").write_text("[cargo]\nverify = false\n")
    for name, needs in packages.items():
        inherited = "".join(f"{need}.workspace = true\n" for need in needs if need in shared)
        own = "".join(
            f'{need} = {{ path = "../{need}" }}\n' for need in needs if need not in shared
        )
        source = root / "crates" / name / "src"
        source.mkdir(parents=True)
        calls = "".join(f" + {need.replace('-', '_')}::count()" for need in needs)
        (source / "lib.rs").write_text(f"pub fn count() -> u32 {{\n    1{calls}\n}}\n")
        (root / "crates" / name / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\nversion.workspace = true\nedition.workspace = true\n'
            f'license.workspace = true\ndescription = "Of a demo"\n\n'
            f"[dependencies]  # of this workspace\n{inherited}{own}\n"
            # Needs what needs it: cargo strips it, for it has no version.
            + ('[dev-dependencies]\ndemo-docs = { path = "../demo-docs" }\n' if docs else "")
        )
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    return root


def publish(program: Program, workspace: Path, server: CrateServer, *more: str) -> Run:
    registry = ["--cargo-registry", server.index_url]
    return program.run("publish", workspace, *registry, "--retry-base-delay", "0.05s", *more)


def package_of(filename: str) -> str:
    return filename.removesuffix("-1.0.0.crate")


def assert_in_order(recorder: Recorder, packages: Mapping[str, tuple[str, ...]] = TWELVE) -> None:
    """Each package's first byte came after the index had shown its dependencies."""
    began: dict[str, float] = {}
    for upload in recorder.uploads:
        began.setdefault(package_of(upload.filename), upload.began_s)
    accepted = {
        package_of(upload.filename): upload.ended_s
        for upload in recorder.uploads
        if upload.status in {200, None}  # None: an answer that got lost
    }
    for name, needs in packages.items():
        for need in needs:
            looks = [
                exchange.ended_s
                for exchange in recorder.exchanges
                if exchange.method == "GET"
                and exchange.path.endswith(f"/{need}")
                and exchange.status == 200
                and accepted[need] < exchange.began_s
            ]
            assert looks, (name, need)
            assert min(looks) < began[name], (name, need)


def build_dependent(directory: Path, home: Path, *names: str, prepare: bool = True) -> int:
    """A program that depends on `names`, added and run by a cargo that knows nothing yet; what it
    counts.
    """
    environment = {**os.environ, **toolchain(home), "CARGO_TARGET_DIR": str(directory / "target")}
    if prepare:
        cargo("init", "--quiet", "--name", "dependent", directory, environment=environment)
    manifest = ["--manifest-path", str(directory / "Cargo.toml")]
    cargo("add", "--quiet", *manifest, *names, environment=environment)
    calls = " + ".join(f"{name.replace('-', '_')}::count()" for name in names)
    (directory / "src" / "main.rs").write_text(f'fn main() {{ println!("{{}}", {calls}); }}\n')
    return int(cargo("run", "--quiet", *manifest, environment=environment))


def cargo(*arguments: str | Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        [require_tool("cargo"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def counted(name: str, packages: Mapping[str, tuple[str, ...]] = TWELVE) -> int:
    return 1 + sum(counted(need, packages) for need in packages[name])


def test_twelve_crates_in_order_once_and_back(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R1, R2, R19, R22, R25"""
    workspace = cargo_workspace(tmp_path / "a workspace")
    crate_server.crates.index_lag_s = 0.3
    manifests = {path: path.read_bytes() for path in workspace.rglob("Cargo.toml")}
    first = publish(program, workspace, crate_server, "--concurrency", "3")
    assert first.code == 0, first.out + first.err
    assert first.outcomes == dict.fromkeys(TWELVE, "published")
    uploads = crate_server.recorder.uploads
    assert len(uploads) == len({upload.filename for upload in uploads}) == len(TWELVE)
    assert crate_server.recorder.peak_uploads <= 3
    assert_in_order(crate_server.recorder)
    assert {path: path.read_bytes() for path in manifests} == manifests
    assert git(workspace, "status", "--porcelain") == ""

    crate_server.recorder.forget()
    second = publish(program, workspace, crate_server)
    assert second.code == 0, second.out + second.err
    assert second.results["result"] == "noop"
    assert second.outcomes == dict.fromkeys(TWELVE, "already-published")
    assert crate_server.recorder.uploads == []

    crate_server.cargo_config(tmp_path / "fresh" / "cargo")
    found = build_dependent(tmp_path / "dependent", tmp_path / "fresh", "demo-docs", "demo-lone")
    assert found == counted("demo-docs") + counted("demo-lone")


def test_a_lock_file_that_is_behind_comes_back_after_a_killed_run(
    crate_server: CrateServer, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R18, R25: killed once cargo has updated it."""
    environment = {**os.environ, **toolchain(program.home)}
    where = ["--offline", "--manifest-path", str(workspace / "Cargo.toml")]
    cargo("generate-lockfile", *where, environment=environment)
    lock, let_go = workspace / "Cargo.lock", tmp_path / "let go"
    lock.write_text(lock.read_text().replace('"1.0.0"', '"0.9.0"'))
    lock.chmod(0o640)
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "Bump the versions")
    behind, modified_ns = lock.read_bytes(), lock.stat().st_mtime_ns
    wrapper = tmp_path / "bin" / "cargo"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\n{require_tool("cargo")} "$@" || exit\n'
        'case "$*" in package*)\n'
        f"  for _ in $(seq 600); do [ -e '{let_go}' ] && break; sleep 0.1; done;;\nesac\n"
    )
    wrapper.chmod(0o755)
    search = f"{wrapper.parent}:{os.environ['PATH']}"
    slow = Program(program.home, {**program.environment, "PATH": search})
    process = slow.start("publish", workspace, "--cargo-registry", crate_server.index_url)
    wait_until(lambda: lock.read_bytes() not in {b"", behind}, process, slow.log.read_text)
    os.killpg(process.pid, signal.SIGKILL)
    let_go.touch()
    kill(process, workspace)
    assert lock.read_bytes() != behind

    run = publish(program, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    assert f"restored {lock}, which a killed run had left changed" in run.out
    assert run.outcomes == dict.fromkeys(FOUR, "published")
    assert run.results["commit"] == git(workspace, "rev-parse", "HEAD").strip()
    status = lock.stat()
    assert lock.read_bytes() == behind
    assert (status.st_mode & 0o7777, status.st_mtime_ns) == (0o640, modified_ns)
    assert git(workspace, "status", "--porcelain") == ""


def test_a_killed_run_is_finished_with_the_bytes_it_had_built(
    crate_server: CrateServer, workspace: Path, program: Program
) -> None:
    """R14, R18"""
    crate_server.recorder.faults.append(
        Fault(kind="held", method="PUT", filename="demo-io-1.0.0.crate")
    )
    registry = ["--cargo-registry", crate_server.index_url, "--concurrency", "1"]
    crates = workspace / ".releasekit" / "dist"

    def is_under_way() -> bool:
        built = len(list(crates.rglob("*.crate")))
        return crate_server.recorder.holding == 1 and built == len(FOUR)

    program.kill_once(is_under_way, workspace, *registry)
    assert 1 <= len(crate_server.crates.files) < len(FOUR)
    before = dict(crate_server.crates.files)
    built = {path.name: path.read_bytes() for path in crates.rglob("*.crate")}
    crate_server.recorder.let_go()

    run = publish(program, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) <= {"published", "already-published"}
    assert crate_server.crates.files == built
    assert before.items() <= crate_server.crates.files.items()


def test_a_bad_network_costs_nothing_but_time(
    crate_server: CrateServer, workspace: Path, program: Program
) -> None:
    """R12, R15, R16: every kind of fault, and still everything is there exactly once."""
    crate_server.recorder.faults.extend(
        [
            Fault(kind="status", method="PUT", status=503),
            Fault(kind="status", method="PUT", status=429, headers=(("Retry-After", "0"),)),
            Fault(kind="lost", method="PUT"),
            Fault(kind="reset", method="PUT"),
            Fault(kind="lost", method="PUT"),
            Fault(kind="status", method="GET", status=502),
        ]
    )
    run = publish(program, workspace, crate_server, "--max-retries", "8")
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert not crate_server.recorder.faults
    assert len(crate_server.crates.files) == len(FOUR)
    assert_in_order(crate_server.recorder, FOUR)


def test_an_index_in_git_takes_one_crate_at_a_time(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R12, R15: those that were turned away because of others have lost no attempt by it."""
    index = tmp_path / "index.git"
    index.mkdir()
    git(index, "init", "--quiet", "--bare", "--initial-branch", "master")
    empty = git(index, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    first = git(index, "commit-tree", empty, "-m", "Start").strip()
    git(index, "update-ref", "refs/heads/master", first)
    crate_server.crates.git_index = index
    names = [f"demo-{number}" for number in range(20)]
    root = cargo_workspace(tmp_path / "twenty", dict.fromkeys(names, ()), docs=False)
    run = publish(program, root, crate_server, "--concurrency", "5", "--max-retries", "0")
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys(names, "published")
    uploads = crate_server.recorder.uploads
    refused = [upload for upload in uploads if upload.status != 200]
    assert {upload.status for upload in refused} == {500}
    assert git(index, "rev-list", "--count", "master").strip() == "21"
    known = min(upload.ended_s for upload in refused)
    calm = max(upload.ended_s for upload in uploads if upload.began_s < known)
    later = sorted((it.began_s, it.ended_s) for it in uploads if it.began_s > calm)
    assert later
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(later))


def test_limits_of_the_registry_are_waited_for(
    crate_server: CrateServer, workspace: Path, program: Program
) -> None:
    """R12: an HTTP date says when the next one may come, and nobody comes earlier."""
    crate_server.crates.new_crates = crates.Bucket(3, 1.0)
    run = publish(program, workspace, crate_server, "--max-retries", "8")
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    refused = [it for it in crate_server.recorder.uploads if it.status == 429]
    assert 1 <= len(refused) <= 8


def test_what_a_crate_takes_from_its_workspace_counts_for_its_version(
    program: Program, workspace: Path, crate_server: CrateServer
) -> None:
    """R49: and a test of it does not."""
    for name in FOUR:
        crate_server.crates.hold(name, "1.0.0")
    git(workspace, "tag", "v1.0.0")
    root = workspace / "Cargo.toml"
    text = root.read_text().replace('license = "MIT"', 'license = "Apache-2.0"')
    root.write_text(text)
    for name in ("demo-docs", "demo-base"):
        tests = workspace / "crates" / name / "tests"
        tests.mkdir()
        (tests / "counts.rs").write_text("#[test]\nfn counts() {}\n")
    git(workspace, "add", "--all")
    git(workspace, "commit", "--quiet", "--message", "Change")
    run = program.run("plan", workspace, "--cargo-registry", crate_server.index_url)
    assert run.code == 0, run.out + run.err
    assert "what its manifest takes from the workspace changed since 1.0.0 was" in run.out
    assert "counts.rs" not in run.out
    root.write_text(text.replace("Apache-2.0", "MIT"))
    git(workspace, "commit", "--quiet", "--all", "--message", "Change it back")
    run = program.run("plan", workspace, "--cargo-registry", crate_server.index_url)
    assert "changed since" not in run.out


def test_a_fresh_machine_resumes_from_the_registry_alone(
    crate_server: CrateServer, workspace: Path, program: Program, tmp_path: Path
) -> None:
    """R19: half of it is there, and what needs it is packaged against the registry."""
    half = publish(program, workspace, crate_server, "--packages", "demo-base\ndemo-lone")
    assert half.code == 0, half.out + half.err
    elsewhere = tmp_path / "another machine"
    subprocess.run(["git", "clone", "--quiet", workspace, elsewhere], check=True)
    crate_server.recorder.forget()
    run = publish(program, elsewhere, crate_server)
    assert run.code == 0, run.out + run.err
    assert run.outcomes["demo-base"] == "already-published"
    names = {package_of(upload.filename) for upload in crate_server.recorder.uploads}
    assert names == set(FOUR) - {"demo-base", "demo-lone"}


def test_a_crate_that_does_not_compile_blocks_its_dependents_only(
    crate_server: CrateServer, workspace: Path, program: Program
) -> None:
    """R6: crates are compiled unless somebody says otherwise."""
    (workspace / "releasekit.toml").unlink()
    source = workspace / "crates" / "demo-io" / "src" / "lib.rs"
    source.write_text("pub use demo_base::nowhere;\n")
    run = publish(program, workspace, crate_server)
    assert run.code == 1
    assert run.outcomes == {
        "demo-base": "published",
        "demo-io": "failed",
        "demo-docs": "blocked",
        "demo-lone": "published",
    }
    assert run.row("demo-io")["reason"] == (
        "could not be packaged: it does not compile: error[E0432]: unresolved import "
        "`demo_base::nowhere`"
    )
    assert "`[cargo] verify = false`" in run.out
    assert run.out.count("build failed in") == 1


def test_what_no_registry_has_is_told_once_for_all_that_need_it(
    crate_server: CrateServer, program: Program, tmp_path: Path
) -> None:
    """R6: cargo names one crate a call."""
    needs = {f"demo-{name}": () for name in ("a", "b", "c")}
    root = cargo_workspace(tmp_path / "three", needs, docs=False)
    for name in ("demo-a", "demo-c"):
        manifest = root / "crates" / name / "Cargo.toml"
        manifest.write_text(f'{manifest.read_text()}no-such-crate = "1"\n')
    run = publish(program, root, crate_server)
    assert run.outcomes == {"demo-a": "failed", "demo-b": "published", "demo-c": "failed"}
    for name in ("demo-a", "demo-c"):
        assert "no matching package named `no-such-crate` found" in run.row(name)["reason"]
    assert "Last lines of the log of cargo:demo-a, cargo:demo-c" in run.out
    assert run.out.count("Last lines of the log of") == 1


def test_a_static_directory_serves_what_was_published(
    workspace: Path, program: Program, tmp_path: Path
) -> None:
    """Cargo builds from it through any web server."""
    served = tmp_path / "served"
    run = program.run("publish", workspace, "--registry", f"dir:{served}")
    assert run.code == 0, run.out + run.err
    with static_server(served / "cargo") as url:
        fresh = tmp_path / "fresh"
        crates.write_config(fresh / "cargo", f"sparse+{url}/", replace=True)
        found = build_dependent(tmp_path / "dependent", fresh, "demo-docs")
    assert found == counted("demo-docs", FOUR)


def test_what_cargo_says_of_a_manifest_is_told_with_its_place(tmp_path: Path) -> None:
    """The last that it says is only which members could not be loaded."""
    member = tmp_path / "rs" / "calc"
    (member / "src").mkdir(parents=True)
    (member / "src" / "lib.rs").touch()
    (member / "Cargo.toml").write_text('[package]\nname = "calc"\nversion = "0.3"\n')
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["rs/*"]\nresolver = "2"\n')

    async def main() -> None:
        environment = {**os.environ, **toolchain(tmp_path / "home")}
        async with Processes(environment=environment) as processes:
            await read_metadata(tmp_path, processes)

    with pytest.raises(ConfigError) as caught:
        asyncio.run(main())
    assert "cargo cannot read it: rs/calc/Cargo.toml:3:11: " in str(caught.value)
    assert "minor version number" in str(caught.value)
