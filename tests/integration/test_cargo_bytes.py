"""Crates are packaged as by `cargo package`, to the byte, with the index looked at once."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from integration.recorder import Fault
from integration.test_cargo_publish import cargo, machine, publish, toolchain
from integration.tools import require_tool
from workspaces import Program, git

if TYPE_CHECKING:
    from pathlib import Path

    from integration.crates import CrateServer

COMMON = "version.workspace = true\nedition.workspace = true\nlicense.workspace = true\n"
MEMBERS = {
    "odd-base": (
        'description = "No needs but those from elsewhere"\nbuild = "build.rs"\n',
        (
            'outer = "1"\nfree = { version = "1", optional = true }\n\n'
            '[features]\ndefault = []\nmore = ["dep:free"]\n'
        ),
    ),
    "odd-derive": (
        'description = "Named otherwise where it is needed"\n',
        (
            'base = { path = "../odd-base", version = "1.0.0", package = "odd-base" }\n\n'
            '[dev-dependencies]\nodd-app = { path = "../odd-app" }\n'
        ),
    ),
    "odd-mid": (
        'description = "Needs one through another name, and one for its tests"\n',
        (
            "odd-base.workspace = true\nderived = { workspace = true, features = [] }\n\n"
            "[target.'cfg(windows)'.dependencies]\nouter = \"1\"\n\n"
            '[build-dependencies]\nbuilt = "2"\n\n'
            '[dev-dependencies]\nodd-probes = { path = "../odd-probes", version = "1" }\n'
        ),
    ),
    "odd-probes": ('description = "For tests"\n', "odd-base = { workspace = true }\n"),
    "odd-app": (
        'description = "A program"\n[[bin]]\nname = "odd"\npath = "src/odd.rs"\n',
        'odd-mid = { path = "../odd-mid", version = "1.0.0" }\nouter = "1.0"\n',
    ),
}


@pytest.fixture(autouse=True)
def tools() -> None:
    require_tool("cargo")


@pytest.fixture
def program(tmp_path: Path, crate_server: CrateServer) -> Program:
    return machine(tmp_path / "home", crate_server)


@pytest.fixture
def workspace(tmp_path: Path, crate_server: CrateServer, program: Program) -> Path:
    """Its Cargo.lock is older than the newest versions of what it needs from elsewhere."""
    for name, version in (("outer", "1.0.0"), ("free", "1.0.0"), ("built", "2.0.0")):
        crate_server.crates.hold(name, version)
    root = tmp_path / "odd"
    (root / ".cargo").mkdir(parents=True)
    (root / "releasekit.toml").write_text("[cargo]\nverify = false\n")
    (root / "LICENSE").write_text("Do what you like.\n")
    (root / "Cargo.toml").write_text(
        '[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n\n'
        '[workspace.package]\nversion = "1.0.0"\nedition = "2021"\nlicense = "MIT"\n\n'
        '[workspace.dependencies]\nodd-base = { path = "crates/odd-base", version = "1.0.0" }\n'
        'derived = { path = "crates/odd-derive", version = "1", package = "odd-derive" }\n'
    )
    for name, (package, needs) in MEMBERS.items():
        source = root / "crates" / name / "src"
        source.mkdir(parents=True)
        (source / "lib.rs").write_text("")
        (source / "odd.rs").write_text("fn main() {}\n")
        (source.parent / "build.rs").write_text("fn main() {}\n")
        head, bar, targets = package.partition("[[")
        (source.parent / "Cargo.toml").write_text(
            f'[package]\nname = "{name}"\n{COMMON}{head}\n{bar}{targets}\n[dependencies]\n{needs}'
        )
    environment = {**os.environ, **toolchain(program.home)}
    cargo("generate-lockfile", "--manifest-path", root / "Cargo.toml", environment=environment)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    crate_server.crates.hold("outer", "1.1.0")
    crate_server.crates.hold("free", "1.0.1")
    return root


def plain(workspace: Path, program: Program, target: Path) -> dict[str, bytes]:
    """What cargo alone makes of it."""
    environment = {**os.environ, **toolchain(program.home)}
    argv = ["package", "--workspace", "--no-verify", "--registry", "local", "--target-dir"]
    subprocess.run(
        [require_tool("cargo"), *argv, target],
        cwd=workspace,
        env=environment,
        check=True,
        capture_output=True,
    )
    return {path.name: path.read_bytes() for path in (target / "package").glob("*.crate")}


def kept_by_cargo(program: Program) -> set[str]:
    registry = program.home / "cargo" / "registry"
    return {str(path.relative_to(registry)) for path in registry.glob("*/*")}


# Neither of them changes what the other does.
@pytest.mark.parametrize(
    ("lock", "newer"),
    [("kept", True), ("ignored", False)]
    + ([("kept", False), ("ignored", True)] if SEARCHING else []),
)
def test_the_bytes_are_those_of_cargo_package(
    crate_server: CrateServer,
    program: Program,
    workspace: Path,
    tmp_path: Path,
    lock: str,
    newer: bool,
) -> None:
    """R18: also where the registry has a later version of a crate than the workspace, which cargo
    prefers.
    """
    if lock == "ignored":
        (workspace / ".gitignore").write_text("Cargo.lock\n")
        git(workspace, "rm", "--quiet", "Cargo.lock")
        git(workspace, "add", "--all")
        git(workspace, "commit", "--quiet", "--message", "Ignore the lock file")
    if newer:
        crate_server.crates.hold("odd-base", "1.7.0")
    expected = plain(workspace, program, tmp_path / "target")
    assert len(expected) == len(MEMBERS)
    (program.home / "cargo" / "registry").rename(tmp_path / "seen before")
    crate_server.recorder.forget()

    run = publish(program, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    published = {name: crate_server.crates.files[name] for name in expected}
    assert published == expected
    lock_file = _read(published["odd-app-1.0.0.crate"], "Cargo.lock")
    assert (b'"odd-base"\nversion = "1.7.0"' in lock_file) == newer
    assert (b'"outer"\nversion = "1.1.0"' in lock_file) == (lock == "ignored")
    asked = Counter(each.path for each in crate_server.recorder.exchanges if each.method == "GET")
    assert {name: asked[path] for name, path in _PATHS.items()} == dict.fromkeys(_PATHS, 1)
    assert kept_by_cargo(program) == set()


def raise_version(workspace: Path, program: Program, server: CrateServer) -> None:
    """Of all members; the registry has the version before of one that others need."""
    server.crates.hold("odd-base", "1.0.0")
    manifest = workspace / "Cargo.toml"
    before, after = (f'[workspace.package]\nversion = "{it}"' for it in ("1.0.0", "1.1.0"))
    manifest.write_text(manifest.read_text().replace(before, after))
    environment = {**os.environ, **toolchain(program.home)}
    cargo("update", "--workspace", "--manifest-path", manifest, environment=environment)
    git(workspace, "commit", "--quiet", "--all", "--message", "Raise the version")


def test_without_a_mirror_they_are_the_same(
    crate_server: CrateServer, program: Program, workspace: Path, tmp_path: Path
) -> None:
    """R18: cargo asks for itself what could not be had for it, and takes no earlier version."""
    raise_version(workspace, program, crate_server)
    expected = plain(workspace, program, tmp_path / "target")
    refusals = [Fault(kind="status", method="GET", path=_PATHS["outer"], status=500)] * 2
    crate_server.recorder.faults.extend(refusals)
    run = publish(program, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    assert not crate_server.recorder.faults
    assert {name: crate_server.crates.files[name] for name in expected} == expected


@pytest.mark.parametrize(("pin", "compiles"), [("auto", False), ("exact", True)])
def test_what_was_built_before_is_taken_as_it_is(
    crate_server: CrateServer,
    program: Program,
    workspace: Path,
    tmp_path: Path,
    pin: str,
    *,
    compiles: bool,
) -> None:
    """R18: the registry has an earlier version, which cargo would take."""
    (workspace / "releasekit.toml").write_text(
        f'pin = "{pin}"\n\n[cargo]\nverify = {str(compiles).lower()}\n'
    )
    raise_version(workspace, program, crate_server)
    expected = plain(workspace, program, tmp_path / "target")
    earlier = "--packages=cargo:odd-base,cargo:odd-derive"
    first = publish(program, workspace, crate_server, earlier, "--dry-run")
    assert first.code == 0, first.out + first.err
    crate_server.crates.index_lag_s = 1
    run = publish(program, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    published = {name: crate_server.crates.files[name] for name in expected}
    if pin == "auto":
        assert published == expected
    lock = _read(published["odd-app-1.1.0.crate"], "Cargo.lock").decode()
    for name in ("odd-base", "odd-derive", "odd-mid"):
        sha256 = hashlib.sha256(published[f"{name}-1.1.0.crate"]).hexdigest()
        assert f'name = "{name}"\nversion = "1.1.0"' in lock
        assert f'checksum = "{sha256}"' in lock


def test_what_one_call_cannot_package_keeps_no_other_back(
    crate_server: CrateServer, program: Program, workspace: Path
) -> None:
    """R6: the call of the first level has to package all levels."""
    refusals = [Fault(kind="status", method="GET", path=_PATHS["outer"], status=500)] * 2
    crate_server.recorder.faults.extend(refusals)
    manifest = workspace / "crates" / "odd-derive" / "Cargo.toml"
    text = manifest.read_text()
    manifest.write_text(text.replace("[package]", '[package]\nreadme = "NOPE.md"', 1))
    git(workspace, "commit", "--quiet", "--all", "--message", "Break one")
    run = publish(program, workspace, crate_server)
    assert run.outcomes == {
        "odd-base": "published",
        "odd-derive": "failed",
        "odd-probes": "published",
        "odd-mid": "blocked",
        "odd-app": "blocked",
    }
    assert "NOPE.md" in run.row("odd-derive")["reason"]


_PATHS = {name: f"/index/{name[:2]}/{name[2:4]}/{name}" for name in ("outer", "built", "free")}


def _read(crate: bytes, wanted: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(crate), mode="r:gz") as archive:
        (name,) = (each for each in archive.getnames() if each.endswith(f"/{wanted}"))
        file = archive.extractfile(name)
        assert file is not None
        return file.read()


@pytest.mark.parametrize("compiles", [False, True])
def test_the_first_crates_go_out_while_others_are_packaged(
    crate_server: CrateServer,
    program: Program,
    workspace: Path,
    tmp_path: Path,
    *,
    compiles: bool,
) -> None:
    """R3, R65: the last of them is packaged once the first is there, or never. No registry is asked
    twice for a file of its index, nor for a crate that cargo has downloaded before.
    """
    if compiles:
        (workspace / "releasekit.toml").unlink()
        environment = {**os.environ, **toolchain(program.home)}
        cargo("fetch", "--manifest-path", workspace / "Cargo.toml", environment=environment)
        crate_server.crates.hold("late", "1.0.0")
        with (workspace / "crates" / "odd-app" / "Cargo.toml").open("a") as manifest:
            manifest.write('late = "1"\n')
        git(workspace, "commit", "--quiet", "--all", "--message", "Need one more")
    before = kept_by_cargo(program)
    crate_server.recorder.forget()
    there = tmp_path / "there"
    publish_one = crate_server.crates.publish

    def note(body: bytes) -> None:
        publish_one(body)
        there.touch()

    crate_server.crates.publish = note  # type: ignore[method-assign]
    wrapper = tmp_path / "bin" / "cargo"
    wrapper.parent.mkdir()
    wrapper.write_text(
        "#!/bin/sh\n"
        'case "$*" in *"--package odd-app"*)\n'
        f"  for _ in $(seq 600); do [ -e '{there}' ] && break; sleep 0.1; done\n"
        f"  [ -e '{there}' ] || exit 1;;\n"
        f'esac\nexec {require_tool("cargo")} "$@"\n'
    )
    wrapper.chmod(0o755)
    search = f"{wrapper.parent}:{os.environ['PATH']}"
    slow = Program(program.home, {**program.environment, "PATH": search})
    run = publish(slow, workspace, crate_server)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes) == set(MEMBERS)
    assert kept_by_cargo(program) == before
    if compiles:
        asked = [each.path for each in crate_server.recorder.exchanges if each.method == "GET"]
        assert {name: asked.count(path) for name, path in _PATHS.items()} == dict.fromkeys(
            _PATHS, 1
        )
        assert [path for path in asked if path.startswith("/api/v1/crates/")] == [
            "/api/v1/crates/late/1.0.0/download"
        ]


@pytest.mark.parametrize("pin", ["auto", "exact"])
def test_an_offline_cargo_is_called_again_without_a_mirror(
    crate_server: CrateServer, program: Program, workspace: Path, tmp_path: Path, pin: str
) -> None:
    """R18, R65: once for all that is left, pinned as ever, and takes no earlier version."""
    (workspace / "releasekit.toml").write_text(f'pin = "{pin}"\n')
    raise_version(workspace, program, crate_server)
    expected = plain(workspace, program, tmp_path / "target")
    environment = {**os.environ, **toolchain(program.home)}
    cargo("fetch", "--manifest-path", workspace / "Cargo.toml", environment=environment)
    wrapper = tmp_path / "bin" / "cargo"
    wrapper.parent.mkdir()
    calls = tmp_path / "calls"
    wrapper.write_text(
        "#!/bin/sh\n"
        f'[ "$1" != package ] || echo "$CARGO_NET_OFFLINE $*" >> \'{calls}\'\n'
        f'exec {require_tool("cargo")} "$@"\n'
    )
    wrapper.chmod(0o755)
    search = f"{wrapper.parent}:{os.environ['PATH']}"
    changes = {"CARGO_NET_OFFLINE": "true", "PATH": search}
    run = publish(
        Program(program.home, {**program.environment, **changes}), workspace, crate_server
    )
    assert run.code == 0, run.out + run.err
    published = {name: crate_server.crates.files[name] for name in expected}
    if pin == "auto":
        assert published == expected
    else:
        manifests = {name: _read(crate, "Cargo.toml") for name, crate in published.items()}
        assert [name for name in manifests if b'"=1.1.0"' not in manifests[name]] == [
            "odd-base-1.1.0.crate"
        ]
    made = calls.read_text().splitlines()
    assert all(call.startswith("true ") for call in made)
    assert ["source.releasekit-0" in call for call in made] == [True, False]
