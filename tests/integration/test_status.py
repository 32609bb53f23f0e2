"""What users can install after half a release of other tools, as registries and six clients say."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zipfile
from typing import TYPE_CHECKING, Final

from distributions import both, package, sdist, wheel
from go_workspaces import HOST, commit_and_push, go_workspace, write_module
from integration import crates, reactor, verdaccio
from integration.maven_server import local_repository
from integration.recorder import Fault
from integration.test_cargo_publish import cargo_workspace, machine, toolchain
from integration.tools import require_tool
from processes import wait_until
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
    publish = f"{require_tool('uv')} publish --publish-url {pypiserver.upload_url}"
    login = f"--username {pypiserver.username} --password {pypiserver.password}"
    kill_at_upload(
        ["bash", "-ec", f'for file in {dist}/*; do {publish} {login} "$file"; done'],
        workspace,
        pypiserver.recorder,
        Fault(kind="held", filename="demo_base-.*.whl"),
    )
    flags = ["--pypi-registry", pypiserver.upload_url, "--pypi-index", pypiserver.index_url]
    run = Program(tmp_path / "home").run("status", "--working-directory", workspace, *flags)
    assert run.code == 1
    assert list(read_rows(run).items()) == [
        ("pypi:demo-io", ("missing", "")),
        ("pypi:demo-base", ("partly there", "")),
        ("pypi:demo-app", ("there", "needs pypi:demo-io 1.0.0, which is missing")),
    ]
    last = "1 of 3 is there; 1 is missing, 1 is partly there, and 1 that is there needs them"
    assert last in run.out
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
    where = ["--working-directory", workspace, "--npm-registry", npm_registry.url]
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


def test_cargo_publish_of_a_workspace_was_killed(crate_server: CrateServer, tmp_path: Path) -> None:
    workspace = cargo_workspace(tmp_path / "w", THREE, docs=False)
    for manifest in workspace.rglob("Cargo.toml"):
        # Cargo publishes nothing that needs a crate in any version.
        path = re.compile(r'\{ path = ("\S+") \}')
        manifest.write_text(path.sub(r'{ path = \1, version = "1.0.0" }', manifest.read_text()))
    program = machine(tmp_path / "home", crate_server)
    kill_at_upload(
        ["cargo", "publish", "--workspace", "--no-verify", "--allow-dirty", "--registry", "local"],
        workspace,
        crate_server.recorder,
        Fault(kind="held", method="PUT", filename="demo-io-.*"),
        CARGO_REGISTRIES_LOCAL_TOKEN=crates.TOKEN,
        **toolchain(tmp_path / "home"),
    )
    run = program.run(
        "status", "--working-directory", workspace, "--cargo-registry", crate_server.index_url
    )
    assert run.code == 1
    assert read_rows(run) == {
        "cargo:demo-app": ("missing", ""),
        "cargo:demo-base": ("there", ""),
        "cargo:demo-io": ("there", ""),
    }


def test_six_clients_resolve_what_is_whole_and_run_nothing(
    pypiserver_and_its_files: tuple[IndexServer, Path],
    npm_registry: Verdaccio,
    crate_server: CrateServer,
    goproxy: GoProxy,
    maven_server: MavenServer,
    tmp_path: Path,
) -> None:
    """Of each ecosystem, a package that is whole, and one that needs what nobody has."""
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
                ["npm", "publish", "--silent", "--ignore-scripts", "--registry", npm_registry.url],
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
    for name, needs in {"whole": "", "broken": "nowhere"}.items():
        body = f"  <groupId>{reactor.GROUP}</groupId>\n  <artifactId>{name}</artifactId>\n"
        body += "  <version>1.0.0</version>\n"
        reactor.page(root / "mvn" / name / "pom.xml", body)
        dependency = f"<groupId>{reactor.GROUP}</groupId><artifactId>{needs}</artifactId>"
        dependency = f"<dependency>{dependency}<version>1</version></dependency>"
        body += f"  <dependencies>{dependency if needs else ''}</dependencies>"
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
    assert "12 of 12 are there; 6 cannot be resolved" in run.out
    assert not mark.exists()
