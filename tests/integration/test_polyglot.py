"""One release of all five ecosystems, into five servers, and back with five clients."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from effort import SEARCHING
from go_workspaces import go, go_environment
from integration import polyglot, reactor
from integration.polyglot import GROUP, MODULES, NEEDS, REMOTE, TAGS
from integration.recorder import Fault
from integration.servers import limited
from integration.test_cargo_publish import cargo, toolchain
from integration.test_maven import fresh_repository
from integration.tools import require_tool
from workspaces import PROJECT, Program, git, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from integration.crates import CrateServer
    from integration.goproxy import GoProxy
    from integration.maven_server import MavenServer
    from integration.polyglot import Registries
    from integration.servers import IndexServer
    from integration.verdaccio import Verdaccio
    from workspaces import Run


_ORIGIN: Final = re.compile(r"http://127\.0\.0\.1:[0-9]+")


@pytest.fixture
def registries(
    pypiserver: IndexServer,
    npm_registry: Verdaccio,
    crate_server: CrateServer,
    goproxy: GoProxy,
    maven_server: MavenServer,
) -> Iterator[Registries]:
    for tool in ("uv", "npm", "cargo", "go", "mvn"):
        require_tool(tool)
    with polyglot.registries(
        pypiserver, npm_registry, crate_server, goproxy, maven_server
    ) as found:
        yield found


@pytest.fixture
def program(tmp_path: Path, registries: Registries) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home", registries.environment(tmp_path / "home"))


@pytest.fixture
def workspace(tmp_path: Path, registries: Registries) -> Path:
    """A repository of its own, whose only commit is on the remote."""
    root = tmp_path / "the example"
    ignored = shutil.ignore_patterns(".releasekit", "__pycache__", "node_modules", "target")
    shutil.copytree(PROJECT / "examples" / "polyglot", root, ignore=ignored)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", REMOTE)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Start")
    git(root, "push", "--quiet", f"file://{registries.go.forge.bare}", "HEAD:refs/heads/main")
    return root


def outcomes(run: Run) -> dict[str, str]:
    rows = run.results["packages"]
    return {f"{row['ecosystem']}:{row['name']}": row["outcome"] for row in rows}


def tree(root: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file but git's and the run's own: bytes, mode and time."""
    return {
        str(path.relative_to(root)): (
            path.read_bytes(),
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in {".git", ".releasekit"}
    }


def assert_in_order(
    registries: Registries, packages: Mapping[str, tuple[str, ...]] = NEEDS
) -> None:
    """No byte of a package came to its server before the servers of all that it needs had shown
    that they have it, whole.
    """
    sent = registries.sent()
    assert set(sent) == set(packages)
    together = set(TAGS.values())
    for package, needs in packages.items():
        for need in needs:
            if {package, need} <= together:
                continue  # one atomic push: all of its tags appear, or none
            accepted_s = max(exchange.ended_s for exchange in sent[need])
            looks = [
                exchange.ended_s
                for exchange in registries.shown(need)
                if exchange.began_s > accepted_s
            ]
            assert looks, (package, need)
            assert min(looks) < min(exchange.began_s for exchange in sent[package]), (package, need)


def assert_nothing_was_sent(registries: Registries) -> None:
    assert registries.uploads() == []
    for name, recorder in registries.recorders.items():
        reading = {"GET", "HEAD", *(["POST"] if name == "git" else [])}
        assert {exchange.method for exchange in recorder.exchanges} <= reading
        assert not [it for it in recorder.exchanges if it.path.endswith("git-receive-pack")]


def test_five_ecosystems_go_in_one_order_once_to_servers_that_refuse_and_limit(
    registries: Registries, program: Program, workspace: Path, tmp_path: Path
) -> None:
    """R1, R19, R22, R25, R57, R58: of each ecosystem, one package is stored and refused, which the
    run tells; and before every registry there is an nginx, without a word of when to come back.
    """
    before = tree(workspace)
    refusals = {
        "pypi:acme-core": [
            Fault(kind="refused", status=400, filename=f"acme_core-.*{suffix}")
            for suffix in ("whl", "tar.gz")
        ],
        "npm:@acme/tokens": [
            Fault(kind="refused", status=400, method="PUT", path="/@acme%2ftokens")
        ],
        "cargo:acme-units": [
            Fault(kind="refused", status=400, method="PUT", filename="acme-units-.*")
        ],
        f"maven:{GROUP}:acme-codec": [
            Fault(kind="refused", status=400, method="PUT", path=".*/acme-codec-.*pom.sha1")
        ],
    }
    for package, faults in refusals.items():
        registries.recorders[package.partition(":")[0]].faults.extend(faults)
    registries.remote.faults.append(Fault(kind="refused", status=403, path=".*/git-receive-pack"))
    flags = list(registries.flags)
    fronts: list[Path] = []
    with contextlib.ExitStack() as stack:
        for origin in sorted(set(_ORIGIN.findall(" ".join(flags)))):
            fronts.append(tmp_path / f"nginx-{len(fronts)}")
            front = stack.enter_context(limited(origin, fronts[-1], per_s=2, burst=1, status=429))
            flags = [each.replace(origin, front) for each in flags]
        run = program.run("publish", workspace, *flags, timeout_s=600)
    assert run.code == 0, run.out + run.err
    assert outcomes(run) == dict.fromkeys(NEEDS, "published")
    refused = [front for front in fronts if '" 429 ' in (front / "access.log").read_text()]
    assert len(fronts) == 5
    assert refused, "the limit was never met"
    told = {
        f"{row['ecosystem']}:{row['name']}": each["message"]
        for row in run.results["packages"]
        for each in row["warnings"]
        if each["name"] == "refused-but-there"
    }
    # The other tags of the push have a turn of their own, and are there by then.
    assert told.keys() == {*refusals, f"go:{MODULES}/core"}
    words = dict.fromkeys(told, "the server has a bad day") | {f"go:{MODULES}/core": "403"}
    assert all(words[package] in message for package, message in told.items())
    uploads = registries.uploads()
    assert len(uploads) == len(set(uploads))
    assert_in_order(registries)
    assert tree(workspace) == before
    assert git(workspace, "status", "--porcelain") == ""


def test_a_job_of_one_ecosystem_follows_the_others_by_their_registries(
    registries: Registries, program: Program, workspace: Path
) -> None:
    """R1, R19: each as a job of its own, at first too early."""

    def job(ecosystem: str) -> Run:
        return program.run("publish", workspace, "--ecosystem", ecosystem, *registries.flags)

    early = job("pypi")
    assert early.code == 3
    assert "pypi:acme-measure needs cargo:acme-measure, which is left out" in early.err
    assert "cargo,pypi" in early.err
    assert registries.uploads() == []
    # Maven follows PyPI as npm follows Go.
    jobs = ("cargo", "pypi", *(["maven"] if SEARCHING else []), "go", "npm")
    for ecosystem in jobs:
        run = job(ecosystem)
        assert run.code == 0, run.out + run.err
        assert set(outcomes(run)) == {it for it in NEEDS if it.startswith(f"{ecosystem}:")}
    chosen = {it: needs for it, needs in NEEDS.items() if it.partition(":")[0] in jobs}
    assert_in_order(registries, chosen)


def test_a_package_that_does_not_build_keeps_back_all_five(
    registries: Registries, program: Program, workspace: Path
) -> None:
    """With `start-uploads: built`; and what was built is what the next run of this commit sends."""
    script = workspace / "npm" / "format" / "make-stamp.js"
    obstacle = workspace / ".git" / "obstacle"
    obstacle.touch()
    look = "if (require('fs').existsSync('../../.git/obstacle')) process.exit(1);\n"
    script.write_text(look + script.read_text())
    git(workspace, "commit", "--all", "--quiet", "--message", "Look for an obstacle")
    git(workspace, "push", "--quiet", f"file://{registries.go.forge.bare}", "HEAD:refs/heads/main")
    run = program.run("publish", workspace, *registries.flags, "--start-uploads=built")
    assert run.code == 1, run.out + run.err
    assert registries.sent() == {}
    ended = outcomes(run)
    assert ended.pop("npm:@acme/format") == "failed"
    assert set(ended.values()) == {"blocked"}
    built = {it["package"] for it in journal(workspace, "built")}
    assert built == set(NEEDS) - {"npm:@acme/format"}

    obstacle.unlink()
    run = program.run("publish", workspace, *registries.flags, "--start-uploads=built")
    assert set(outcomes(run).values()) == {"published"}, run.out + run.err
    builds = [it["package"] for it in journal(workspace, "built")]
    assert sorted(builds) == sorted(NEEDS)
    assert_in_order(registries)


def test_a_killed_run_of_all_five_is_finished_by_the_next_and_comes_back(
    registries: Registries, program: Program, workspace: Path, tmp_path: Path
) -> None:
    """R14, R15, R18, R19, R21, R22, R27: the answers to two uploads never come, and then the
    machine is gone. Five clients take what was published, and another machine has nothing to do.
    """
    before = tree(workspace)
    core, tokens = registries.pypi.recorder, registries.npm.recorder
    core.faults.append(Fault(kind="held", filename=r"acme_core-.*"))
    tokens.faults.append(Fault(kind="held", method="PUT", path="/@acme%2ftokens"))
    free = without_dependents("pypi:acme-core", "npm:@acme/tokens")
    assert {package.partition(":")[0] for package in free} == {"pypi", "cargo", "go", "maven"}

    def nothing_else_can_come() -> bool:
        held = core.holding == tokens.holding == 1
        return (
            held
            and all(registries.shown(package) for package in free)
            and {it["package"] for it in journal(workspace, "built")} == set(NEEDS)
        )

    program.kill_once(nothing_else_can_come, workspace, *registries.flags)
    registries.let_go()
    assert set(registries.sent()) == free | {"pypi:acme-core", "npm:@acme/tokens"}
    announced = {it["package"] for it in journal(workspace, "intent")}
    assert announced == set(registries.sent())
    built = [file for it in journal(workspace, "built") for file in it["artifacts"]]

    run = program.run("publish", workspace, *registries.flags)
    assert run.code == 0, run.out + run.err
    assert set(outcomes(run)) == set(NEEDS) == set(registries.sent())
    assert set(outcomes(run).values()) == {"published", "already-published"}
    uploads = registries.uploads()
    assert len(uploads) == len(set(uploads)), sorted(uploads)
    state = workspace / ".releasekit"
    for file in built:
        data = (state / file["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["digests"]["sha256"], file["path"]
    assert_what_was_sent_is_what_is_stored(registries, state / "dist")
    assert tree(workspace) == before
    assert git(workspace, "status", "--porcelain") == ""

    python_installs(registries, tmp_path / "python")
    npm_installs(registries, tmp_path / "npm")
    cargo_builds(registries, tmp_path / "cargo")
    go_runs(registries, tmp_path / "go")
    maven_compiles(registries, tmp_path / "maven")

    elsewhere = tmp_path / "another machine"
    git(tmp_path, "clone", "--quiet", str(workspace), str(elsewhere))
    git(elsewhere, "remote", "set-url", "origin", REMOTE)
    registries.forget()
    again = program.run("publish", elsewhere, *registries.flags)
    assert again.code == 0, again.out + again.err
    assert again.results["result"] == "noop"
    assert outcomes(again) == dict.fromkeys(NEEDS, "already-published")
    assert_nothing_was_sent(registries)


def without_dependents(*packages: str) -> set[str]:
    """All others that need none of them, directly or not."""
    behind = set(packages)
    while more := {it for it, needs in NEEDS.items() if behind & {*needs}} - behind:
        behind |= more
    return set(NEEDS) - behind


def journal(workspace: Path, event: str) -> list[dict[str, Any]]:
    """Its whole lines about this."""
    lines = (workspace / ".releasekit" / "journal.jsonl").read_text().splitlines(keepends=True)
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in found if record["event"] == event]


def assert_what_was_sent_is_what_is_stored(registries: Registries, dist: Path) -> None:
    for name in ("pypi", "npm", "cargo", "maven"):
        stored = [path.read_bytes() for path in (dist / name).rglob("*") if path.is_file()]
        if name == "npm":
            stored = [base64.b64encode(data) for data in stored]
        for upload in registries.recorders[name].uploads:
            assert any(data in upload.body for data in stored), upload.filename


def python_installs(registries: Registries, where: Path) -> None:
    uv, python = require_tool("uv"), where / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", where], check=True)
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--no-cache"]
    install += ["--python", python, "--index-url", registries.pypi.index_url]
    subprocess.run([*install, "acme-cli[all]", "acme-measure"], check=True, timeout=300)
    said = subprocess.check_output([where / "bin" / "acme"], text=True)
    assert said == "HELLO, WORLD! 1.0.0\n"
    code = "import acme_measure, acme_web; print(acme_measure.length('2 cm'))"
    assert subprocess.check_output([python, "-I", "-c", code], text=True) == "20\n"


def npm_installs(registries: Registries, where: Path) -> None:
    where.mkdir()
    write_json(where / "package.json", {"name": "user", "private": True})
    argv: list[str | Path] = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--cache",
        where / "cache",
    ]
    argv += ["--registry", registries.npm.url, "@acme/cli@2.0.0-beta.1"]
    subprocess.run(argv, cwd=where, check=True, timeout=300)
    said = subprocess.check_output([where / "node_modules" / ".bin" / "acme-hello"], text=True)
    assert "hello" in said.lower()


def cargo_builds(registries: Registries, where: Path) -> None:
    home = where / "home"
    registries.cargo.cargo_config(home / "cargo")
    environment = {**os.environ, **toolchain(home), "CARGO_TARGET_DIR": str(where / "target")}
    cargo("init", "--quiet", "--name", "user", where / "user", environment=environment)
    manifest: list[str | Path] = ["--manifest-path", where / "user" / "Cargo.toml"]
    cargo(
        "add",
        "--quiet",
        *manifest,
        "acme-measure@0.5.0",
        "--features",
        "precise",
        environment=environment,
    )
    code = (
        'fn main() { println!("{:?} {}", acme_measure::length("2 cm"), acme_measure::PRECISION); }'
    )
    (where / "user" / "src" / "main.rs").write_text(code + "\n")
    cargo("build", "--quiet", *manifest, environment=environment)
    said = subprocess.check_output([where / "target" / "debug" / "user"], text=True)
    assert said == "Some(20) 3\n"


def go_runs(registries: Registries, where: Path) -> None:
    where.mkdir()
    environment = go_environment(where / "home", GOPROXY=registries.go.url)
    go(where, "mod", "init", "example.com/user", environment=environment)
    go(where, "get", f"{MODULES}/text/v2@v2.1.0", environment=environment)
    (where / "main.go").write_text(
        f'package main\n\nimport "fmt"\nimport "{MODULES}/text/v2"\n\n'
        "func main() { fmt.Println(text.Greeting()) }\n"
    )
    assert go(where, "run", ".", environment=environment) == "hello from acme\n"
    go(where, "install", f"{MODULES}/cmd/greet@v0.1.0", environment=environment)
    greet = where / "home" / "go" / "bin" / "greet"
    assert subprocess.check_output([greet], text=True) == "hello from acme (acme)\n"


def maven_compiles(registries: Registries, where: Path) -> None:
    where.mkdir()
    repository = fresh_repository(where)
    reactor.dependent(
        where / "user",
        registries.maven.url,
        version="1.3.0",
        artifact="acme-client",
        name='com.example.acme.Client.greet("you")',
    )
    reactor.mvn(where / "user", "compile", repository=repository)
    assert (repository / "com/example/acme/acme-codec/1.3.0").is_dir()
