"""What users can install after half a release of other tools, as registries and six clients say."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING, Final

import pytest

from distributions import both, package, sdist, wheel
from go_workspaces import HOST, commit_and_push, go_workspace, write_module
from integration import crates, reactor, verdaccio
from integration.maven_server import local_repository
from integration.recorder import Fault
from integration.test_cargo_publish import cargo_workspace, toolchain
from integration.tools import require_tool
from processes import wait_until
from releasekit.__main__ import main
from workspaces import Program, git, kill, npm_workspace, uv_workspace, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from integration.crates import CrateServer
    from integration.goproxy import GoProxy
    from integration.maven_server import MavenServer
    from integration.recorder import Recorder
    from integration.servers import IndexServer
    from integration.verdaccio import Verdaccio
    from workspaces import Run

# The first in the alphabet needs the others.
THREE: Final = {"demo-app": ("demo-io",), "demo-base": (), "demo-io": ("demo-base",)}
PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def read_rows(run: Run) -> dict[str, tuple[str, str]]:
    """Package → what its registry shows, and what is wrong with it."""
    found = {}
    for line in run.out.partition("\n\n")[0].splitlines()[1:]:
        name, _, shown, *why = re.split(r"  +", line)
        found[name] = (shown, " ".join(why))
    return found


def kill_at_upload(
    argv: Sequence[str | Path], directory: Path, recorder: Recorder, fault: Fault, **more: str
) -> None:
    """Run another tool until the server acts on this upload, and the tool does not know it yet."""
    recorder.faults.append(fault)
    log = directory.parent / "tool.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(argv),
            cwd=directory,
            env={**os.environ, **more},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        wait_until(lambda: bool(recorder.holding), process, log.read_text)
    finally:
        kill(process, directory)
        recorder.let_go()
        wait_until(lambda: not recorder.uploading)


def test_uv_in_a_loop_was_killed(pypiserver: IndexServer, tmp_path: Path) -> None:
    workspace, dist = uv_workspace(tmp_path / "w", THREE), tmp_path / "dist"
    for name in THREE:
        both(dist, package(name))
    publish = [require_tool("uv"), "publish", "--publish-url", pypiserver.upload_url]
    publish += ["--username", pypiserver.username, "--password", pypiserver.password]
    loop = 'for file in "$0"/*; do "$@" "$file"; done'
    kill_at_upload(
        ["bash", "-ec", loop, str(dist), *map(str, publish)],
        workspace,
        pypiserver.recorder,
        Fault(kind="held", filename="demo_base-.*.whl"),
    )
    flags: list[str | Path] = [
        "--pypi-registry",
        pypiserver.upload_url,
        "--pypi-index",
        pypiserver.index_url,
    ]
    run = Program(tmp_path / "home").run("status", "--working-directory", workspace, *flags)
    assert run.code == 1
    assert list(read_rows(run).items()) == [
        ("pypi:demo-io", ("missing", "")),
        ("pypi:demo-base", ("partly there", "")),
        ("pypi:demo-app", ("there", "needs pypi:demo-io 1.0.0, which is missing")),
    ]
    last = "1 of 3 is there; 1 is missing, 1 is partly there, and 1 that is there needs them"
    assert last in run.out
    assert f"goes to: {pypiserver.upload_url}\n" in run.out
    assert "`releasekit publish`" in run.out
    assert not (workspace / ".releasekit").exists()


def test_npm_publish_of_all_workspaces_was_killed(npm_registry: Verdaccio, tmp_path: Path) -> None:
    workspace = npm_workspace(tmp_path / "w", THREE)
    address = npm_registry.url.partition(":")[2]
    (tmp_path / "npmrc").write_text(f"{address}:_authToken={npm_registry.token}\n")
    kill_at_upload(
        ["npm", "publish", "--workspaces", "--access", "public", "--registry", npm_registry.url],
        workspace,
        npm_registry.recorder,
        Fault(kind="held", method="PUT", path="/@acme%2fdemo-base"),
        npm_config_userconfig=str(tmp_path / "npmrc"),
    )
    where: list[str | Path] = ["--working-directory", workspace, "--npm-registry", npm_registry.url]
    run = Program(tmp_path / "home").run("status", *where)
    assert run.code == 1
    assert read_rows(run) == {
        "npm:@acme/demo-io": ("missing", ""),
        "npm:@acme/demo-app": ("there", "needs npm:@acme/demo-io 1.0.0, which is missing"),
        "npm:@acme/demo-base": ("there", ""),
    }
    assert "2 of 3 are there; 1 is missing, and 1 that is there needs it" in run.out
    # Nobody has this version yet.
    run = Program(tmp_path / "home").run("status", "2.0.0", *where)
    assert run.code == 1
    assert "0 of 3 are there; 3 are missing" in run.out
    assert "on the commit of these versions" in run.out


def test_cargo_publish_of_a_workspace_was_killed(
    alternate_crate_server: CrateServer, tmp_path: Path
) -> None:
    """To a private registry, which cargo reads with its own login."""
    require_tool("cargo")
    server, home = alternate_crate_server, tmp_path / "home"
    workspace = cargo_workspace(tmp_path / "w", THREE, docs=False)
    path = re.compile(r'\{ path = ("\S+") \}')
    for manifest in workspace.rglob("Cargo.toml"):
        wanted = r'{ path = \1, version = "1.0.0", registry = "local" }'
        manifest.write_text(path.sub(wanted, manifest.read_text()))
    server.cargo_config(home / "cargo", replace=False)
    argv = ["cargo", "publish", "--workspace", "--no-verify", "--allow-dirty"]
    kill_at_upload(
        [*argv, "--registry", "local"],
        workspace,
        server.recorder,
        Fault(kind="held", method="PUT", filename="demo-io-.*"),
        **toolchain(home),
    )
    program = Program(home, {**toolchain(home), "RELEASEKIT_CARGO_TOKEN": crates.TOKEN})
    flags = ["--cargo-registry", server.index_url, "--smoke"]
    run = program.run("status", "--working-directory", workspace, *flags)
    assert run.code == 1
    assert read_rows(run) == {
        "cargo:demo-app": ("missing", ""),
        "cargo:demo-base": ("there", ""),
        "cargo:demo-io": ("there", ""),
    }, run.out + run.err


def test_six_clients_resolve_what_is_whole_and_run_nothing(
    pypiserver_and_its_files: tuple[IndexServer, Path],
    npm_registry: Verdaccio,
    crate_server: CrateServer,
    goproxy: GoProxy,
    maven_server: MavenServer,
    tmp_path: Path,
) -> None:
    """Of each ecosystem, a package that is whole, and one that needs what nobody has."""
    require_tool("cargo")
    pypiserver, files = pypiserver_and_its_files
    for path in files.iterdir():
        path.unlink()
    root, home = tmp_path / "w", tmp_path / "home"
    go_workspace(root, goproxy.forge, {"whole": ()})
    write_module(root / "broken", "broken", required={"nowhere": "v1.0.0"})
    (root / "go.work").write_text("go 1.22\n\nuse (\n\t./whole\n\t./broken\n)\n")

    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["py/*"]\n')
    for name, needs in {"demo-whole": [], "demo-broken": ["nowhere>=1"]}.items():
        member = root / "py" / name / "pyproject.toml"
        member.parent.mkdir(parents=True)
        member.write_text(
            f'[project]\nname = "{name}"\nversion = "1.0.0"\n'
            '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        )
        sdist(files, package(name))
        wheel(files, package(name), requires=needs)

    mark = tmp_path / "executed"
    write_json(root / "package.json", {"private": True, "workspaces": ["npm/*"]})
    write_json(root / "js" / "package.json", {"private": True})
    (root / "js" / "pnpm-workspace.yaml").write_text("packages:\n  - pnpm/*\n")
    (tmp_path / "npmrc").write_text(
        f"{npm_registry.url.partition(':')[2]}:_authToken={npm_registry.token}\n"
    )
    for place in (root / "npm", root / "js" / "pnpm"):
        for name, dependencies in {"whole": {}, "broken": {"@acme/nowhere": "1"}}.items():
            document = {"name": f"@acme/{place.name}-{name}", "version": "1.0.0"}
            scripts = {"preinstall": f"touch {mark}", "prepare": f"touch {mark}"}
            directory = place / name
            write_json(
                directory / "package.json",
                {**document, "dependencies": dependencies, "scripts": scripts},
            )
            subprocess.run(
                [
                    "npm",
                    "publish",
                    "--loglevel=error",
                    "--ignore-scripts",
                    "--registry",
                    npm_registry.url,
                ],
                cwd=directory,
                env={**os.environ, "npm_config_userconfig": str(tmp_path / "npmrc")},
                check=True,
            )

    members = {"demo-whole": (), "demo-broken": ()}
    cargo_workspace(tmp_path / "crates", members, docs=False)
    (tmp_path / "crates" / "Cargo.toml").rename(root / "Cargo.toml")
    (tmp_path / "crates" / "crates").rename(root / "crates")
    for name in members:
        crate_server.crates.hold(name, "1.0.0")
    need = {"name": "nowhere", "req": "^1", "features": [], "optional": False, "kind": "normal"}
    broken = crate_server.crates.lines["demo_broken"][0][1]
    broken["deps"] = [{**need, "default_features": True, "target": None}]

    modules = ""
    for name, need_of in {"whole": "", "broken": "nowhere"}.items():
        body = f"  <groupId>{reactor.GROUP}</groupId>\n  <artifactId>{name}</artifactId>\n"
        body += "  <version>1.0.0</version>\n"
        reactor.page(root / "mvn" / name / "pom.xml", body)
        dependency = f"<groupId>{reactor.GROUP}</groupId><artifactId>{need_of}</artifactId>"
        dependency = f"<dependency>{dependency}<version>1</version></dependency>"
        body += f"  <dependencies>{dependency if need_of else ''}</dependencies>"
        place = maven_server.files / "com/example/acme" / name / "1.0.0"
        reactor.page(place / f"{name}-1.0.0.pom", body)
        with zipfile.ZipFile(place / f"{name}-1.0.0.jar", "w"):
            pass
        (place.parent / "maven-metadata.xml").write_text(
            "<metadata><versioning><versions><version>1.0.0</version></versions></versioning>"
            "</metadata>"
        )
        for file in (*place.iterdir(), place.parent / "maven-metadata.xml"):
            digest = hashlib.sha1(file.read_bytes()).hexdigest()
            file.with_name(f"{file.name}.sha1").write_text(digest)
        modules += f"<module>mvn/{name}</module>"
    top = "<groupId>com.example</groupId><artifactId>top</artifactId><version>1</version>"
    skip = "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>"
    top += f"<packaging>pom</packaging>{skip}"
    reactor.page(root / "pom.xml", f"{top}<modules>{modules}</modules>")

    settings = '[go]\nversion-file = "VERSION"\n[npm]\nworkspaces = ["js"]\n'
    (root / "releasekit.toml").write_text(settings)
    commit_and_push(root, goproxy.forge, "Add the others")
    for name in ("whole", "broken"):
        git(root, "tag", f"{name}/v1.0.0")
    git(root, "push", "--quiet", f"file://{goproxy.forge.bare}", "--tags")

    crate_server.cargo_config(home / "cargo")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "pnpm").write_text(f'#!/bin/sh\nexec {" ".join(verdaccio.pnpm())} "$@"\n')
    (tools / "pnpm").chmod(0o755)
    (tools / "uv").symlink_to(require_tool("uv"))
    if not (local_repository() / "org/apache/maven/plugins/maven-dependency-plugin/3.8.1").exists():
        reactor.mvn(tmp_path, f"{PLUGIN}:help")
    # The plugins come from where the other tests have theirs.
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(
        "<settings><mirrors><mirror><id>tests</id><mirrorOf>central</mirrorOf>"
        f"<url>{local_repository().as_uri()}</url></mirror></mirrors></settings>"
    )
    program = Program(
        home,
        {
            **toolchain(home),
            **goproxy.environment,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GOSUMDB": "off",
            "MAVEN_OPTS": f"{reactor.environment()['MAVEN_OPTS']} -Duser.home={home}",
            "UV_DEFAULT_INDEX": pypiserver.index_url,
            "npm_config_registry": npm_registry.url,
        },
    )
    flags = ["--pypi-registry", pypiserver.upload_url, "--pypi-index", pypiserver.index_url]
    flags += ["--npm-registry", npm_registry.url, "--cargo-registry", crate_server.index_url]
    flags += ["--go-proxy", goproxy.url, "--maven-registry", maven_server.url]
    run = program.run("status", "--working-directory", root, "--smoke", *flags)
    found = read_rows(run)
    assert {shown for shown, _ in found.values()} == {"there"}, run.out + run.err
    assert {name for name, (_, why) in found.items() if not why} == {
        "pypi:demo-whole",
        "npm:@acme/npm-whole",
        "npm:@acme/pnpm-whole",
        "cargo:demo-whole",
        f"go:{HOST}/whole",
        f"maven:{reactor.GROUP}:whole",
    }
    clients = ("uv", "npm", "pnpm", "cargo", "go", "mvn")
    reasons = [why for _, why in found.values() if why]
    assert sorted(why.partition(":")[0] for why in reasons) == sorted(clients)
    assert all("nowhere" in why for why in reasons), reasons
    assert run.code == 1
    assert "12 of 12 are there; 6 are not resolved" in run.out
    assert not mark.exists()


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose packages are all in the directory `r` beside it."""
    for name in os.environ:
        if name.startswith(("RELEASEKIT_", "GITHUB_", "ACTIONS_", "RUNNER_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    workspace = uv_workspace(tmp_path / "w", THREE)
    for name in THREE:
        both(tmp_path / "dist", package(name))
    assert main(["publish", "w", "--registry", "dir:r", "--dist", "dist"]) == 0
    return workspace


def test_a_release_is_named_by_the_tree_a_version_or_its_results(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--working-directory", "w", "--registry", "dir:r"]
    results = released / ".releasekit" / "results.json"
    kept = tmp_path / "results.json"
    kept.write_text(results.read_text().replace('"demo-io"', '"demo-old"'))
    for manifest in released.glob("packages/*/pyproject.toml"):
        manifest.write_text(manifest.read_text().replace('"1.0.0"', '"1.1.0"'))
    shutil.rmtree(released / ".releasekit")
    capsys.readouterr()

    assert main(["status", *flags]) == 1
    assert "0 of 3 are there; 3 are missing" in capsys.readouterr().out
    assert main(["status", "1.0", *flags]) == 0
    assert "all 3 packages are there" in capsys.readouterr().out
    assert main(["status", str(kept), *flags]) == 0
    out = capsys.readouterr().out
    assert "all 2 packages are there" in out
    assert "not in this workspace any more, and not looked up: pypi:demo-old 1.0.0" in out
    assert main(["status", str(kept), *flags, "--packages", "demo-app"]) == 0
    assert "not in this workspace" not in capsys.readouterr().out
    kept.write_text(kept.read_text().replace('"demo-', '"other-'))
    assert main(["status", str(kept), *flags]) == 2
    assert f"no package here that is published, of those in {kept}" in capsys.readouterr().err
    # What a chosen package needs is part of the answer.
    assert main(["status", *flags, "--packages", "demo-io"]) == 1
    assert "0 of 2 are there" in capsys.readouterr().out
    assert main(["status", "1.0", *flags, "--smoke"]) == 1
    assert "no client reads a directory: serve it" in capsys.readouterr().out
    assert not (released / ".releasekit").exists()


def test_what_is_left_out_may_have_no_such_version(
    released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """npm takes no version of two numbers."""
    write_json(released / "package.json", {"name": "web", "version": "1.0.0"})
    flags = ["--working-directory", "w", "--registry", "dir:r"]
    assert main(["status", "1.0", *flags, "--packages", "demo-*"]) == 0
    assert "all 3 packages are there" in capsys.readouterr().out
    assert main(["status", "1.0", *flags]) == 2
    assert "npm:web cannot have the version 1.0" in capsys.readouterr().err


def test_versions_that_the_tree_does_not_release_can_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two releases, a reactor has snapshots."""
    body = "<groupId>com.example</groupId><artifactId>a</artifactId>"
    reactor.page(tmp_path / "pom.xml", f"{body}<version>1.1.0-SNAPSHOT</version>")
    flags = ["--working-directory", str(tmp_path), "--registry", "dir:r"]
    assert main(["status", *flags]) == 2
    said = capsys.readouterr().err
    assert "`releasekit plan` (`mode: plan` of the action) says why; `releasekit status 1" in said
    assert main(["status", "1.0.0", *flags]) == 1
    assert "maven:com.example:a  1.0.0    missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("results.json", "results.json"),
        ("w/gone.json", "Name results.json of a run"),
        ("./w", "A workspace elsewhere is named by `working-directory`"),
        ("w", "pypi:demo-app cannot have the version w"),
        ("1.0\x1b[2J", "line break or a control character"),
        ("strange.json", "pypi:demo-app cannot have the version 1.0"),
    ],
)
def test_what_names_no_release_is_refused_in_one_line(
    argument: str, said: str, released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.json").write_text('{"schema": 1, "packages": ')
    text = (released / ".releasekit" / "results.json").read_text()
    strange = text.replace('"1.0.0"', r'"1.0\n--index-url https://evil.example"')
    (tmp_path / "strange.json").write_text(strange)
    capsys.readouterr()
    assert main(["status", argument, "--working-directory", "w", "--registry", "dir:r"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert sum(line.startswith("error: ") for line in told.splitlines()) == 1
    assert "Traceback" not in told
