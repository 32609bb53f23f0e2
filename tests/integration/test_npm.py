"""npm packages for real: npm and pnpm workspaces, verdaccio, directories, and back."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from effort import SEARCHING
from integration import verdaccio
from integration.recorder import Fault
from integration.servers import limited, static_server
from integration.tools import require_tool
from workspaces import (
    TWELVE,
    Program,
    git,
    npm_workspace,
    pnpm_workspace,
    write_json,
    yarn_1_workspace,
    yarn_4_workspace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from integration.verdaccio import Verdaccio
    from workspaces import Run

NAMES = [f"@acme/{name}" for name in TWELVE]
FOUR = {"core": (), "text": ("core",), "web": ("core", "text"), "lone": ()}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "home").mkdir()
    return Program(tmp_path / "home")


def publish(
    program: Program, workspace: Path, server: Verdaccio, *more: str, **environment: str
) -> Run:
    known = Program(program.home, {**server.environment, **environment})
    registry = ["--npm-registry", server.url, "--retry-base-delay", "0.05s"]
    return known.run("publish", workspace, *registry, *more)


def packument(server: Verdaccio, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((server.storage / name / "package.json").read_text())
    return found


def install(
    registry: str, into: Path, names: Iterable[str], *, tool: str, flag: str = "--registry"
) -> None:
    """With the real client, and all of them required by node."""
    into.mkdir()
    write_json(into / "package.json", {"name": "user", "private": True})
    argv = ["npm", "install", "--no-audit", "--no-fund", "--cache", str(into / "cache")]
    if tool == "pnpm":
        argv = [*verdaccio.pnpm(), "add", "--store-dir", str(into / "store")]
        argv += [f"--config.cache-dir={into / 'cache'}"]
    require_tool("npm")
    done = subprocess.run(
        [*argv, f"{flag}={registry}", *names],
        cwd=into,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    checks = "".join(
        f"if (require({json.dumps(n)}) !== {json.dumps(n.partition('/')[2])}) throw 1;"
        for n in names
    )
    subprocess.run(["node", "-e", checks], cwd=into, check=True)


def assert_in_order(server: Verdaccio) -> None:
    """Each package's first byte came after the registry had shown its dependencies."""
    uploads = server.recorder.uploads
    began = {upload.filename.rpartition("-1.0.0")[0]: upload.began_s for upload in uploads[::-1]}
    for name, needs in TWELVE.items():
        for need in needs:
            looks = [
                exchange.ended_s
                for exchange in server.recorder.exchanges
                if exchange.method == "GET"
                and exchange.path == f"/@acme%2f{need}/1.0.0"
                and exchange.status == 200
            ]
            assert looks, (name, need)
            assert min(looks) < began[f"@acme/{name}"], (name, need)


def assert_nothing_only_the_workspace_understands(server: Verdaccio) -> None:
    for name in TWELVE:
        entry = packument(server, f"@acme/{name}")["versions"]["1.0.0"]
        ranges = entry.get("dependencies", {})
        assert set(ranges.values()) <= {"1.0.0", "^1.0.0", "~1.0.0"}
        assert set(ranges) == {f"@acme/{need}" for need in TWELVE[name]}
        # The registry shows what is in the tarball.
        (tarball,) = (server.storage / "@acme" / name).glob("*.tgz")
        held = members(tarball)
        assert sorted(held) == ["package/index.js", "package/package.json"]
        assert held["package/package.json"]["dependencies"] == ranges


def test_a_bundle_has_what_its_sibling_publishes(program: Program, tmp_path: Path) -> None:
    """R64: the same bytes each time, though both are packed in one run."""
    require_tool("npm")
    root = tmp_path / "workspace"
    packages: dict[str, dict[str, Any]] = {
        "core": {"scripts": {"prepack": "sleep 0.3; echo > made.js"}},
        "web": {"bundleDependencies": ["@acme/core"]},
        "lone": {},
    }
    for name, keys in packages.items():
        needs = {"core": ["lone"], "web": ["core", "lone"]}.get(name, [])
        dependencies = {f"@acme/{need}": "*" for need in needs}
        manifest = {"name": f"@acme/{name}", "version": "1.0.0", "dependencies": dependencies}
        (root / name).mkdir(parents=True)
        write_json(root / name / "package.json", {**manifest, **keys})
    (root / "web/node_modules/@acme").mkdir(parents=True)
    (root / "web/node_modules/@acme/core").symlink_to("../../../core")
    # npm lists what is behind it by a path out of the package, which nobody unpacks.
    (root / "core/node_modules/@acme").mkdir(parents=True)
    (root / "core/node_modules/@acme/lone").symlink_to("../../../lone")
    write_json(root / "package.json", {"private": True, "workspaces": ["*"]})
    run = program.run("publish", root, "--registry", f"dir:{tmp_path / 'registry'}")
    assert run.code == 0, run.err
    held = {
        name: members(next((root / f".releasekit/dist/npm/@acme/{name}").rglob("*.tgz")))
        for name in ("core", "web")
    }
    inside = "package/node_modules/@acme/core/package.json"
    assert held["web"][inside] == held["core"]["package/package.json"]
    assert held["web"][inside]["dependencies"] == {"@acme/lone": "1.0.0"}
    assert "package/node_modules/@acme/core/made.js" in held["web"]
    assert [path for path in held["web"] if ".." in path] == []


@pytest.mark.parametrize(
    ("make", "tool"), [(npm_workspace, "npm"), (pnpm_workspace, "pnpm")], ids=["npm", "pnpm"]
)
def test_twelve_packages_in_order_once_and_back(
    npm_registry: Verdaccio,
    program: Program,
    tmp_path: Path,
    make: Callable[[Path], Path],
    tool: str,
) -> None:
    """R1, R2, R19, R24, R25"""
    workspace = make(tmp_path / "a workspace")
    first = publish(program, workspace, npm_registry, "--concurrency", "3")
    assert first.code == 0, first.out + first.err
    assert first.outcomes == dict.fromkeys(NAMES, "published")
    assert len(npm_registry.recorder.uploads) == len(TWELVE)
    assert npm_registry.recorder.peak_uploads <= 3
    assert_in_order(npm_registry)
    assert_nothing_only_the_workspace_understands(npm_registry)
    assert git(workspace, "status", "--porcelain") == ""

    npm_registry.recorder.forget()
    second = publish(program, workspace, npm_registry)
    assert second.code == 0, second.out + second.err
    assert second.results["result"] == "noop"
    assert npm_registry.recorder.uploads == []
    install(npm_registry.url, tmp_path / "into", NAMES, tool=tool)


def test_a_registry_without_encryption_has_to_be_named(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R37: this address leads here too, as no address of this machine says."""
    root = npm_workspace(tmp_path / "workspace", {"core": ()})
    place = npm_registry.url.replace("127.0.0.1", "0.0.0.0")
    run = publish(program, root, npm_registry, "--npm-registry", place)
    assert run.code == 2
    assert "--npm-registry = http://0.0.0.0:" in run.err
    assert "`insecure-hosts: 0.0.0.0`" in run.err
    assert not npm_registry.recorder.uploads
    named = ["--npm-registry", place, "--insecure-hosts", "0.0.0.0"]
    known = {"RELEASEKIT_NPM_TOKEN": npm_registry.environment["RELEASEKIT_NPM_TOKEN"]}
    run = publish(program, root, npm_registry, *named, **known)
    assert run.code == 0, run.out + run.err
    assert f"INSECURE: {place} is reached without encryption, as `insecure-hosts` all" in run.out
    assert run.outcomes == {"@acme/core": "published"}


def test_a_bad_network_costs_nothing_but_time(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R12, R15, R16: every kind of fault once, and still everything is there exactly once."""
    npm_registry.recorder.faults.extend(
        [
            Fault(kind="status", method="PUT", status=503),
            Fault(kind="status", method="PUT", status=429, headers=(("Retry-After", "0"),)),
            Fault(kind="lost", method="PUT"),
            Fault(kind="reset", method="PUT"),
            Fault(kind="status", method="PUT", status=409),
            Fault(kind="lost", method="PUT"),
            Fault(kind="status", status=502, method="GET"),
        ]
    )
    root = npm_workspace(tmp_path / "workspace", FOUR)
    run = publish(program, root, npm_registry, "--max-retries", "8")
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published"}
    assert not npm_registry.recorder.faults
    stored = [u.filename for u in npm_registry.recorder.uploads if u.status == 201]
    assert len(stored) == len(set(stored))


# The contract suite has both, one request at a time.
@pytest.mark.parametrize("status", [429, 503] if SEARCHING else [503])
def test_a_limit_of_rates_costs_nothing_but_time(
    npm_registry: Verdaccio, tmp_path: Path, program: Program, status: int
) -> None:
    """R12, R19: four requests in a second, for many packages at once; each is sent once."""
    names = [f"limited-{number}" for number in range(20)]
    root = tmp_path / "workspace"
    write_json(root / "package.json", {"private": True, "workspaces": ["packages/*"]})
    for name in names:
        where = root / "packages" / name
        write_json(where / "package.json", {"name": name, "version": "1.0.0", "license": "MIT"})
    front = limited(npm_registry.url, tmp_path / "nginx", per_s=4, burst=4, status=status)
    with front as url:
        run = publish(program, root, replace(npm_registry, url=url))
    assert run.code == 0, run.out + run.err
    assert run.outcomes == dict.fromkeys(names, "published")
    log = (tmp_path / "nginx" / "access.log").read_text()
    answers = [line.split()[8] for line in log.splitlines()]
    assert str(status) in answers
    assert len([it for it in npm_registry.recorder.uploads if it.status == 201]) == len(names)


@pytest.mark.parametrize("make", [yarn_1_workspace, yarn_4_workspace], ids=["yarn 1", "yarn 4"])
def test_yarn_is_started_by_nobody_but_a_script(
    npm_registry: Verdaccio, tmp_path: Path, program: Program, make: Callable[[Path], Path]
) -> None:
    """R24: its workspaces are published without it, and a script that starts it says what is
    missing.
    """
    root = make(tmp_path / "workspace")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "yarn").write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\nexit 9\n")
    (programs / "yarn").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    run = publish(program, root, npm_registry, PATH=path)
    assert run.code == 0, run.out + run.err
    assert not (tmp_path / "started").exists()
    assert run.outcomes == dict.fromkeys(NAMES, "published")
    assert_in_order(npm_registry)
    assert_nothing_only_the_workspace_understands(npm_registry)
    assert git(root, "status", "--porcelain") == ""


def test_a_script_that_fails_or_cannot_start_says_why_and_blocks_dependents(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R6"""
    root = yarn_4_workspace(tmp_path / "workspace", {**FOUR, "solo": ()})
    broken = {"core": "echo the compiler is unhappy && exit 3", "lone": "yarn-is-not-here build"}
    for name, script in broken.items():
        path = root / "packages" / name / "package.json"
        write_json(path, {**json.loads(path.read_text()), "scripts": {"prepack": script}})
    run = publish(program, root, npm_registry)
    assert run.code == 1
    assert run.outcomes == {
        "@acme/core": "failed",
        "@acme/text": "blocked",
        "@acme/web": "blocked",
        "@acme/lone": "failed",
        "@acme/solo": "published",
    }
    assert "the compiler is unhappy" in run.out
    reason = run.row("@acme/lone")["reason"]
    assert (
        "its prepack script failed with exit code 127: a program that it starts is not on PATH"
        in reason
    )
    assert any("yarn-is-not-here" in line for line in run.row("@acme/lone")["log"])


def kill_once(
    program: Program, workspace: Path, server: Verdaccio, reached: Callable[[], bool]
) -> None:
    """Start to publish, and kill the run without warning as soon as it has come that far."""
    known = Program(program.home, server.environment)
    known.kill_once(reached, workspace, "--npm-registry", server.url)


def test_a_run_killed_in_a_postpublish_script_is_not_followed_again(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R16, R19: the package is published, and what the script has done so far stays done once."""
    root = npm_workspace(tmp_path / "workspace", {"core": ()})
    path = root / "packages" / "core" / "package.json"
    scripts = {"postpublish": "echo begun >>../../order.txt && sleep 5"}
    write_json(path, {**json.loads(path.read_text()), "scripts": scripts})
    kill_once(program, root, npm_registry, (root / "order.txt").exists)
    run = publish(program, root, npm_registry)
    assert run.code == 0, run.out + run.err
    assert run.outcomes == {"@acme/core": "already-published"}
    assert (root / "order.txt").read_text() == "begun\n"
    assert len(npm_registry.recorder.uploads) == 1


# What puts the manifests back is the same for all of them.
@pytest.mark.parametrize(
    "make",
    [pnpm_workspace, *([npm_workspace, yarn_1_workspace, yarn_4_workspace] if SEARCHING else [])],
)
def test_a_killed_run_is_finished_by_the_next(
    npm_registry: Verdaccio, tmp_path: Path, program: Program, make: Callable[..., Path]
) -> None:
    """R18, R19, R22: nothing twice, and every manifest as it was."""
    workspace, recorder = make(tmp_path / "a workspace", FOUR), npm_registry.recorder
    recorder.faults.append(Fault(kind="held", method="PUT", path="/@acme%2ftext"))
    kill_once(program, workspace, npm_registry, lambda: recorder.holding == 1)
    recorder.let_go()
    run = publish(program, workspace, npm_registry)
    assert run.code == 0, run.out + run.err
    assert set(run.outcomes.values()) == {"published", "already-published"}
    stored = [u.filename for u in npm_registry.recorder.uploads if u.status == 201]
    assert len(stored) == len(set(stored))
    # Those that were under way may have arrived after the kill.
    assert all(packument(npm_registry, f"@acme/{name}")["versions"] for name in FOUR)
    assert git(workspace, "status", "--porcelain") == ""


def test_a_prerelease_and_a_backport_leave_latest_alone(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    root = npm_workspace(tmp_path / "workspace", {"core": ()})
    path = root / "packages" / "core" / "package.json"
    expected = {}
    for version, tag in [("2.0.0", "latest"), ("2.1.0-beta.1", "beta"), ("1.4.1", "release-1.x")]:
        write_json(path, {**json.loads(path.read_text()), "version": version})
        git(root, "commit", "--quiet", "--all", "--message", version)
        run = publish(program, root, npm_registry)
        assert run.code == 0, run.out + run.err
        expected[tag] = version
        assert packument(npm_registry, "@acme/core")["dist-tags"] == expected


def test_scripts_run_as_npm_runs_them_once_and_see_no_secret(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R16, R34: the last of them when the registry shows the package, and never again; that one of
    these fails changes no outcome, and is told.
    """
    root = npm_workspace(tmp_path / "workspace", {"core": (), "text": ("core",)})
    look = f"node ../../look.js {npm_registry.recorder.url}/@acme%2fcore/1.0.0"
    (root / "look.js").write_text(
        "fetch(process.argv[2]).then(async (it) => require('fs').appendFileSync("
        "'../../order.txt', `${process.env.npm_lifecycle_event} ${it.status}\\n`))"
    )
    note = "echo $npm_lifecycle_event >>../../order.txt"
    scripts = {
        "core": {
            **dict.fromkeys(("prepublishOnly", "prepare", "postpack"), note),
            "prepack": "env >../../packing.txt && echo '// made' >>index.js",
            "publish": look,
            "postpublish": f"{look} && env >../../published.txt",
        },
        "text": {"postpublish": "echo the mail server is unhappy && exit 3"},
    }
    for name, declared in scripts.items():
        path = root / "packages" / name / "package.json"
        write_json(path, {**json.loads(path.read_text()), "scripts": declared})
    run = publish(program, root, npm_registry, GITHUB_TOKEN="ghs_canary")
    assert run.code == 0, run.out + run.err
    assert run.outcomes == {"@acme/core": "published", "@acme/text": "published"}
    assert "scripts of @acme/core, @acme/text run once the registry shows" in run.out
    order = ["prepublishOnly", "prepare", "postpack", "publish 200", "postpublish 200"]
    assert (root / "order.txt").read_text().splitlines() == order
    for event, name in (("prepack", "packing.txt"), ("postpublish", "published.txt")):
        seen = (root / name).read_text()
        assert f"npm_lifecycle_event={event}\n" in seen
        assert "ghs_canary" not in seen
        assert npm_registry.token not in seen
    (tarball,) = (npm_registry.storage / "@acme" / "core").glob("*.tgz")
    assert "// made" in members(tarball)["package/index.js"]
    text = run.row("@acme/text")
    assert "but its postpublish script failed with exit code 3" in text["reason"]
    assert "by hand" in text["hint"]
    assert "the mail server is unhappy" in text["log"]
    again = publish(program, root, npm_registry)
    assert again.results["result"] == "noop"
    assert (root / "order.txt").read_text().splitlines() == order


def test_a_shim_of_npm_is_not_taken_for_npm_itself(program: Program, tmp_path: Path) -> None:
    """R68: node may find some of npm's modules from anywhere, as Debian's does, and not the others;
    and scripts get the npm that packs.
    """
    npm = require_tool("npm")
    root = npm_workspace(tmp_path / "workspace", {"core": ()})
    look = "require('fs').copyFileSync(process.env.npm_execpath, 'index.js')"
    path = root / "packages" / "core" / "package.json"
    document = json.loads(path.read_text())
    write_json(path, {**document, "scripts": {"prepack": f'node -e "{look}"'}})
    shim = tmp_path / "shims" / "npm"
    write_json(shim.parent / "node_modules" / "npm-packlist" / "package.json", {"main": "x.js"})
    (shim.parent / "node_modules" / "npm-packlist" / "x.js").touch()
    shim.write_text(f'#!/bin/sh\nexec "{npm}" "$@"\n')
    shim.chmod(0o755)
    known = Program(program.home, {"PATH": f"{shim.parent}:{os.environ['PATH']}"})
    run = known.run("publish", root, "--registry", f"dir:{tmp_path / 'registry'}")
    assert run.code == 0, run.out + run.err
    (tarball,) = (tmp_path / "registry").rglob("*.tgz")
    assert "require('../lib/cli.js')" in members(tarball)["package/index.js"]


@pytest.mark.parametrize(
    ("addressed", "flag", "tools"),
    [(False, "--registry", ["npm"]), (True, "--@acme:registry", ["npm", "pnpm"])],
    ids=["a registry", "that of a scope"],
)
def test_a_static_directory_serves_from_below_the_root_of_its_host(
    program: Program, tmp_path: Path, tools: list[str], flag: str, addressed: bool
) -> None:
    """npm puts its own registry's address in the place of npmjs.org's; others take the address as
    it stands, and so does npm for a scope.
    """
    require_tool("npm")
    root = npm_workspace(tmp_path / "workspace", {"core": (), "web": ("core",)})
    served = tmp_path / "served" / "any" / "prefix"
    served.mkdir(parents=True)
    with static_server(tmp_path / "served") as origin:
        url = f"{origin}/any/prefix/npm/"
        if addressed:
            (root / "releasekit.toml").write_text(f'[npm]\ndirectory-url = "{url}"\n')
        run = program.run("publish", root, "--registry", f"dir:{served}")
        assert run.code == 0, run.out + run.err
        for tool in tools:
            install(url, tmp_path / tool, ["@acme/core", "@acme/web"], tool=tool, flag=flag)


def publish_config(root: Path, name: str, **config: object) -> Path:
    """The package's directory, with this in its package.json."""
    path = root / "packages" / name / "package.json"
    write_json(path, {**json.loads(path.read_text()), "publishConfig": config})
    return path.parent


def members(tarball: Path) -> dict[str, Any]:
    with tarfile.open(tarball) as archive:
        files = {it.name: archive.extractfile(it) for it in archive}
        texts = {name: file.read().decode() for name, file in files.items() if file is not None}
    return {
        name: json.loads(text) if name.endswith("package.json") else text
        for name, text in texts.items()
    }


def test_a_directory_is_packed_as_pnpm_packs_it(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """Built before the run, or by a script of the package, with what only the workspace knows, and
    with its license where the package has none.
    """
    root = pnpm_workspace(tmp_path / "workspace", {"core": (), "text": ("core",), "web": ("core",)})
    (root / "LICENSE.md").write_text("Of all\n")
    (root / "licence").symlink_to("package.json")
    (root / "packages" / "core" / "Licence").write_text("Of core\n")
    copy = "node -e \"const fs = require('fs'); fs.cpSync('index.js', 'dist/index.js')\""
    for name in ("text", "web"):
        directory = publish_config(root, name, directory="dist", linkDirectory=True)
        document = json.loads((directory / "package.json").read_text())
        made = {**document, "description": "built", "publishConfig": {"main": "index.js"}}
        write_json(directory / "dist" / "package.json", {**made, "main": "index.ts"})
        if name == "web":
            write_json(directory / "package.json", {**document, "scripts": {"prepack": copy}})
        else:
            (directory / "dist" / "index.js").write_text("module.exports = 'text';\n")
    run = publish(program, root, npm_registry)
    assert run.code == 0, run.out + run.err
    assert "npm: LICENSE.md of the workspace goes into @acme/text, @acme/web, without" in run.out
    for name in ("core", "text", "web"):
        directory, packed = root / "packages" / name, tmp_path / f"pnpm-{name}"
        pack = [*verdaccio.pnpm(), "pack", "--pack-destination", str(packed)]
        subprocess.run(pack, cwd=directory, check=True, capture_output=True)
        (theirs,) = packed.glob("*.tgz")
        (ours,) = (npm_registry.storage / "@acme" / name).glob("*.tgz")
        assert members(ours) == members(theirs)
        assert ("package/LICENSE.md" in members(ours)) is (name != "core")
        built = members(ours)["package/package.json"].get("description") == "built"
        assert built is (name != "core")


def test_a_workspace_of_bun_is_packed_as_bun_packs_it(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R36, R64: with requirements from the workspace and its catalogs, and without settings."""
    root = tmp_path / "workspace"
    asked: dict[str, dict[str, object]] = {
        "core": {"bin": {"core": "./bin.js"}, "files": ["lib"], "main": "lib/a.js"},
        "text": {
            "dependencies": {"@acme/core": "workspace:*"},
            "peerDependencies": {"@acme/core": "workspace:^"},
            "devDependencies": {"@acme/web": "workspace:~", "@acme/core": "catalog:old"},
            "publishConfig": {"main": "lib/a.js"},
        },
        "web": {
            "dependencies": {"@acme/core": "catalog:", "@acme/text": "workspace:^1.0.0"},
            "optionalDependencies": {"@acme/core": "catalog: old "},
        },
    }
    catalogs = {"catalog": {"@acme/core": "^1.0.0"}, "catalogs": {"old": {"@acme/core": "1.0.x"}}}
    below = {"packages": ["packages/*"], **catalogs}
    write_json(root / "package.json", {"private": True, "workspaces": below})
    for name, fields in asked.items():
        directory = root / "packages" / name
        write_json(
            directory / "package.json", {"name": f"@acme/{name}", "version": "1.0.0", **fields}
        )
        (directory / "lib").mkdir()
        for file in ("bin.js", "lib/a.js", "lib/bunfig.toml", "bunfig.toml", ".env.production"):
            (directory / file).write_text(f"// {name}/{file}\n")
        (directory / "bunfig.toml").write_text("")
    subprocess.run(
        [verdaccio.bun(), "install", "--lockfile-only"], cwd=root, check=True, capture_output=True
    )
    run = publish(program, root, npm_registry)
    assert run.code == 0, run.out + run.err
    for name in asked:
        directory, packed = root / "packages" / name, tmp_path / f"bun-{name}"
        pack = [str(verdaccio.bun()), "pm", "pack", "--destination", str(packed)]
        subprocess.run(pack, cwd=directory, check=True, capture_output=True)
        (theirs,) = packed.glob("*.tgz")
        (ours,) = (npm_registry.storage / "@acme" / name).glob("*.tgz")
        assert members(ours) == members(theirs)


def test_a_directory_outside_the_package_is_never_packed(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R36: by its name, or by where a link leads once it is built."""
    root = pnpm_workspace(tmp_path / "workspace", {"core": (), "text": ()})
    outside = tmp_path / "outside"
    write_json(outside / "package.json", {"name": "@acme/core", "version": "1.0.0"})
    core = publish_config(root, "core", directory="dist")
    (core / "dist").symlink_to(outside)
    publish_config(root, "text", directory="lib")
    run = publish(program, root, npm_registry)
    assert run.outcomes == {"@acme/core": "failed", "@acme/text": "failed"}
    assert (
        "publishConfig.directory, dist, leads out of the package" in run.row("@acme/core")["reason"]
    )
    assert "lib, holds no package.json" in run.row("@acme/text")["reason"]
    publish_config(root, "core", directory="../../../outside")
    refused = publish(program, root, npm_registry)
    assert refused.code == 2
    assert "which is not inside the package" in refused.err
    assert not npm_registry.recorder.uploads


def test_bundled_packages_travel_in_the_tarball_that_npm_packs(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """To the byte: those of others and those of this workspace, private ones too."""
    root = npm_workspace(tmp_path / "workspace", {"core": (), "web": ("core",)})
    core, web = root / "packages" / "core", root / "packages" / "web"
    document = json.loads((core / "package.json").read_text())
    write_json(core / "package.json", {**document, "private": True})
    bundled = {
        **json.loads((web / "package.json").read_text()),
        "dependencies": {"@acme/core": "1.0.0", "left": "^1.0.0"},
        "bundleDependencies": ["@acme/core", "left"],
        "bin": "index.js",
    }
    write_json(web / "package.json", bundled)
    (web / "index.js").write_text("require('@acme/core'); module.exports = require('left');\n")
    left = web / "node_modules" / "left"
    write_json(left / "package.json", {"name": "left", "version": "1.0.0"})
    (left / "index.js").write_text("module.exports = 'web';\n")
    (web / "node_modules" / "@acme").mkdir()
    (web / "node_modules" / "@acme" / "core").symlink_to(core)
    argv = ["npm", "pack", "--loglevel=error", "--pack-destination", str(tmp_path)]
    subprocess.run([*argv, "--workspace", "@acme/web"], cwd=root, check=True)
    run = publish(program, root, npm_registry)
    assert run.code == 0, run.out + run.err
    assert run.outcomes == {"@acme/web": "published"}
    (ours,) = (npm_registry.storage / "@acme" / "web").glob("*.tgz")
    assert ours.read_bytes() == (tmp_path / "acme-web-1.0.0.tgz").read_bytes()
    install(npm_registry.url, tmp_path / "into", ["@acme/web"], tool="npm")
    entry = packument(npm_registry, "@acme/web")["versions"]["1.0.0"]
    assert entry["bin"] == {"web": "index.js"}


def test_packages_in_a_circle_of_optional_and_peer_dependencies_are_published(
    npm_registry: Verdaccio, tmp_path: Path, program: Program
) -> None:
    """R7: as `npm publish --workspaces` and `pnpm -r publish` do."""
    root = tmp_path / "circle"
    write_json(root / "package.json", {"private": True, "workspaces": ["core", "fast"]})
    needs = {
        "core": {"optionalDependencies": {"@acme/fast": "^1.0.0"}},
        "fast": {"peerDependencies": {"@acme/core": "^1.0.0"}},
    }
    for name, fields in needs.items():
        manifest = {"name": f"@acme/{name}", "version": "1.0.0", "main": "main.js", **fields}
        write_json(root / name / "package.json", manifest)
        (root / name / "main.js").write_text(f"module.exports = {json.dumps(name)}\n")
    done = publish(program, root, npm_registry, "--concurrency", "1")
    assert done.code == 0, done.out + done.err
    assert done.outcomes == dict.fromkeys(["@acme/core", "@acme/fast"], "published")
    assert "@acme/core -> @acme/fast (optional)" in done.out + done.err
    uploads = [upload.filename for upload in npm_registry.recorder.uploads]
    assert uploads == ["@acme/core-1.0.0.tgz", "@acme/fast-1.0.0.tgz"]
