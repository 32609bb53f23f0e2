"""The recipes of docs/steps.md as they stand there: only addresses and names of users are others.

Images and charts go to a real registry, with real programs, and a tap is a real git remote. The
MCP Registry, Open VSX, JSR and nuget.org cannot run here.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from documents import ROOT, blocks
from harness.git_server import git_server
from harness.oci import require_helm, require_programs, serving_oci
from integration.servers import PASSWORD, USERNAME, static_server
from integration.stores import TOKEN, Jsr, McpRegistry, NuGet, OpenVsx, serving_store
from integration.tools import require_landlock, require_tool
from integration.verdaccio import installed
from outside import make_outside
from releasekit.http.identity import read_claims
from trusted_index import TrustedIndex, served
from workspaces import Program, git, write_json, write_member

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from harness.oci import OciRegistry
    from workspaces import Run

PAGE: Final = ROOT / "docs/steps.md"
# A script says its name in its second line, below what starts it.
SCRIPTS: Final = {
    found[1]: block.text
    for block in blocks(PAGE)
    if (found := re.match(r"#!/bin/sh\n# scripts/(\S+)\n", block.text))
}
STEPS: Final = {
    found[1]: block.text
    for block in blocks(PAGE)
    if (found := re.match(r"\[steps\.([a-z-]+)\]\n", block.text))
}
IN_THE_REGISTRY: Final = ("downloads", "image", "chart", "tap")
IN_STORES: Final = ("mcp", "vscode", "jsr", "nuget")

# What the recipes publish, in the repository of a user.
FILES: Final = {
    "cli/cli.js": "#!/usr/bin/env node\nconsole.log('acme')\n",
    "cli/README.md": "# acme\n",
    "cli/mod.ts": 'export const name: string = "acme";\n',
    "cli/jsr.json": '{"name": "@acme/cli", "exports": "./mod.ts", "license": "MIT"}\n',
    "chart/Chart.yaml": "apiVersion: v2\nname: cli\nversion: 0.0.0\n",
    "chart/templates/pod.yaml": "image: ghcr.io/acme/cli:{{ .Chart.AppVersion }}\n",
    "cli.rb.in": 'class Cli < Formula\n  url "@URL@"\n  sha256 "@SHA256@"\nend\n',
    "server.json": json.dumps(
        {
            "name": "io.github.acme/cli",
            "description": "Acme",
            "version": "0.0.0",
            "packages": [{"registryType": "npm", "identifier": "@acme/cli", "version": "0.0.0"}],
        }
    ),
    "extension/package.json": """\
{
  "name": "acme-vscode", "publisher": "acme", "version": "0.4.0", "license": "MIT",
  "engines": { "vscode": "^1.90.0" }, "main": "./extension.js",
  "activationEvents": ["onStartupFinished"], "files": ["extension.js"],
  "repository": "https://github.com/acme/acme"
}
""",
    "extension/extension.js": "exports.activate = () => {}\n",
    "extension/README.md": "# acme\n",
    "extension/LICENSE": "MIT\n",
    "dotnet/Acme.Client.csproj": '<Project Sdk="Microsoft.NET.Sdk" />\n',
}
# What `dotnet pack` makes, as far as nuget.org looks at it.
DOTNET: Final = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys, zipfile
words = sys.argv[1:]
assert words[:2] == ["pack", "dotnet"], words
(version,) = (each.partition("=")[2] for each in words if each.startswith("-p:Version="))
into = words[words.index("--output") + 1]
about = f"<id>Acme.Client</id><version>{{version}}</version>"
with zipfile.ZipFile(f"{{into}}/Acme.Client.{{version}}.nupkg", "w") as archive:
    archive.writestr("Acme.Client.nuspec", f"<package><metadata>{{about}}</metadata></package>")
"""
# On loopback there is no TLS, as crane knows, and helm does not.
HELM: Final = """\
#!/bin/sh
case $1 in
push | registry) exec "{program}" "$@" --plain-http ;;
esac
exec "{program}" "$@"
"""
DENO: Final = '#!/bin/sh\nJSR_URL={origin}/ exec "{program}" "$@"\n'


@dataclass
class Release:
    """A repository with an npm package and a Python package, and steps of the page. `place` is open
    to no build; the packages go to a directory, which is served at `files`.
    """

    place: Path
    files: str
    addresses: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.place / "acme"

    @property
    def registry(self) -> Path:
        return self.place / "registry"

    @property
    def programs(self) -> Path:
        return self.place / "programs"

    def add_program(self, name: str, text: str) -> None:
        program = self.programs / name
        program.write_text(text)
        program.chmod(0o755)

    def link_program(self, name: str, program: Path) -> None:
        (self.programs / name).symlink_to(program)

    def write(self, steps: tuple[str, ...]) -> None:
        """The repository; what is not for these steps is there, too."""
        write_json(self.root / "package.json", {"private": True, "workspaces": ["cli"]})
        about = {"name": "@acme/cli", "version": "1.4.0", "license": "MIT", "bin": "cli.js"}
        write_json(self.root / "cli/package.json", about)
        write_member(self.root / "core", "acme-core", version="0.9.0")
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        config = '[pypi]\npackages = ["core"]\n' + "".join(map(self.put, map(STEPS.get, steps)))
        (self.root / "releasekit.toml").write_text(config)
        (self.root / "scripts").mkdir()
        for name, text in SCRIPTS.items():
            script = self.root / "scripts" / name
            script.write_text(self.put(text))
            script.chmod(0o755)
        git(self.root, "init", "--quiet", "--initial-branch", "main")
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", "Start")

    def put(self, text: str | None) -> str:
        """With the addresses of this machine: each of them stands in the page."""
        assert text is not None
        for theirs, ours in self.addresses.items():
            text = text.replace(theirs, ours)
        return text

    def run(self, command: str, *flags: str, root: Path | None = None) -> Run:
        home = self.place / "home"
        home.mkdir(exist_ok=True)
        program = Program(home, self.environment)
        # Programs of the environment last: pip is there, and so is a python.
        beside = (str(self.programs), program.full_environment["PATH"])
        path = os.pathsep.join((*beside, str(Path(sys.executable).parent)))
        places = [f"--{each}-registry=dir:{self.registry / each}" for each in ("npm", "pypi")]
        given = Program(home, {**self.environment, "PATH": path})
        return given.run(command, root or self.root, *places, *flags)


@contextlib.contextmanager
def release(**addresses: str) -> Iterator[Release]:
    """`write` is still to be called."""
    place = make_outside("recipes")
    (place / "registry").mkdir()
    (place / "programs").mkdir()
    (place / "downloads").mkdir()
    with static_server(place / "registry") as files:
        known = {
            "https://registry.npmjs.org/@acme/cli/-/cli-": f"{files}/npm/-/@acme/cli/acme-cli-",
            "https://registry.npmjs.org/": f"{files}/npm/",
            "https://pypi.org/simple/": f"{files}/pypi/simple/",
            "/srv/downloads": str(place / "downloads"),
        }
        made = Release(place, files, {**known, **addresses})
        # The environment of the tests has pip, and may be made of links to what has none.
        made.add_program("pip", f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
        yield made
    shutil.rmtree(place)


def test_every_recipe_of_the_page_is_run() -> None:
    """R66: a step that the page shows, and a script, is in one of these tests."""
    assert set(STEPS) == {*IN_THE_REGISTRY, *IN_STORES}
    shown = set(re.findall(r"^# scripts/(\S+)$", PAGE.read_text(), re.MULTILINE))
    started = set(re.findall(r'= "(?:\.\./)?scripts/([a-z-]+)', "".join(STEPS.values())))
    assert shown == started == set(SCRIPTS)


def test_the_first_step_does_as_the_page_says() -> None:
    """R66: a plan shows it, a rehearsal runs nothing, and a release runs it once."""
    require_tool("npm")
    require_tool("jq")
    with release() as made:
        made.write(("downloads",))
        downloads = made.place / "downloads"
        assert "not asked" in made.run("plan").out
        asked = made.run("plan", "--ask-steps").out
        (shown,) = (block.text for block in blocks(PAGE) if block.text.startswith("package "))
        assert columns(shown) <= columns(asked)
        rehearsed = made.run("publish", "--step-registry", f"dir:{made.place / 'rehearsal'}")
        assert rehearsed.code == 0, rehearsed.err
        assert [each.name for each in downloads.iterdir()] == []
        assert made.run("publish").outcomes["downloads"] == "published"
        there = {each.name for each in (downloads / "1.4.0").iterdir()}
        assert there == {"acme-cli-1.4.0.tgz"}
        assert set(made.run("publish").outcomes.values()) == {"already-published"}
        assert [each.name for each in downloads.iterdir()] == ["1.4.0"]


def columns(table: str) -> set[tuple[str, ...]]:
    return {tuple(re.split("  +", line)) for line in table.splitlines()}


@pytest.fixture
def oci(tmp_path: Path) -> Iterator[OciRegistry]:
    with serving_oci(tmp_path / "oci") as registry:
        yield registry


def test_an_image_a_chart_and_a_tap_follow_the_packages(oci: OciRegistry, tmp_path: Path) -> None:
    """R66: the image fails at first, for want of the one that it is made from: what needs it waits,
    and nothing else does. A job of its own, in another checkout, does the rest, and then nothing is
    left to do.
    """
    for tool in ("npm", "jq", "curl", "git"):
        require_tool(tool)
    require_landlock()  # without a sandbox, builds could read the secrets
    tap = tmp_path / "git" / "homebrew-tap"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", str(tap))
    git(tap, "config", "http.receivepack", "true")
    start = git(tap, "commit-tree", git(tap, "mktree").strip(), "-m", "Start").strip()
    git(tap, "update-ref", "refs/heads/main", start)
    users = {
        "--username acme": f"--username {USERNAME}",
        "username=acme-bot": f"username={USERNAME}",
    }
    hosts = {"ghcr.io": oci.host, "docker.io": oci.host}
    with git_server(tmp_path / "git") as remote, release() as made:
        made.addresses |= {"https://github.com/acme": remote, **users, **hosts}
        made.environment |= {"GHCR_TOKEN": PASSWORD, "TAP_TOKEN": PASSWORD}
        programs = require_programs()
        made.link_program("crane", programs / "crane")
        made.add_program("helm", HELM.format(program=require_helm()))
        made.write(IN_THE_REGISTRY)

        failed = made.run("publish", "--task-timeout", "20s")
        assert failed.code == 1
        assert failed.outcomes == {
            "@acme/cli": "published",
            "acme-core": "published",
            "downloads": "published",
            "image": "failed",
            "chart": "blocked",
            "tap": "blocked",
        }, failed.out
        assert "library/node:24-slim" in failed.row("image")["reason"]
        assert git(tap, "rev-parse", "main").strip() == start

        push_base(oci, programs / "crane", tmp_path)
        clone = made.place / "clone"
        git(made.place, "clone", "--quiet", str(made.root), str(clone))
        resumed = made.run(
            "publish",
            "--ecosystem",
            "step",
            "--exclude-packages",
            "downloads",
            "--wait",
            "1m",
            root=clone,
        )
        assert resumed.outcomes == dict.fromkeys(("image", "chart", "tap"), "published"), (
            resumed.out
        )

        assert {"app/node_modules/@acme/cli/cli.js", "app/python/acme_core/__init__.py"} < {
            *files_of(oci, "acme/cli", "1.4.0", layer=-1)
        }
        assert files_of(oci, "acme/cli", "1.4.0", layer=0) == ["base"]
        assert "cli/Chart.yaml" in files_of(oci, "acme/charts/cli", "1.4.0", layer=0)
        published = made.registry / "npm/-/@acme/cli/acme-cli-1.4.0.tgz"
        formula = git(tap, "show", "cli-1.4.0:Formula/cli.rb")
        assert hashlib.sha256(published.read_bytes()).hexdigest() in formula
        assert git(tap, "rev-parse", "cli-1.4.0") == git(tap, "rev-parse", "main")

        pushed = oci.manifest("acme/cli", "1.4.0"), git(tap, "rev-parse", "main")
        again = made.run("publish")
        assert again.code == 0, again.out
        assert set(again.outcomes.values()) == {"already-published"}
        assert pushed == (oci.manifest("acme/cli", "1.4.0"), git(tap, "rev-parse", "main"))
        assert PASSWORD not in failed.out + failed.err + resumed.out + resumed.err + logs_of(made)


def logs_of(made: Release) -> str:
    """What the steps have printed, which is there."""
    logs = [each.read_text() for each in made.root.glob(".releasekit/logs/**/*-step-*.log")]
    assert any(logs)
    return "".join(logs)


def unmasked(said: str) -> str:
    """Without what tells the runner of secrets."""
    return re.sub("^::add-mask::.*$", "", said, flags=re.MULTILINE)


def push_base(oci: OciRegistry, crane: Path, scratch: Path) -> None:
    """The image that the one of the recipe is made from."""
    login = b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
    write_json(scratch / "docker/config.json", {"auths": {oci.host: {"auth": login}}})
    with tarfile.open(scratch / "base.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("base"))
    image = f"{oci.host}/library/node:24-slim"
    flags = ("--oci-empty-base", "--new_layer", scratch / "base.tar", "--new_tag", image)
    environment = {**os.environ, "DOCKER_CONFIG": str(scratch / "docker")}
    subprocess.run([crane, "append", *flags], env=environment, check=True, capture_output=True)


def files_of(oci: OciRegistry, repository: str, tag: str, *, layer: int) -> list[str]:
    manifest = oci.manifest(repository, tag)
    content = oci.blob(repository, manifest["layers"][layer]["digest"])
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return archive.getnames()


def stores_programs() -> Mapping[str, Path]:
    """Those that npm has, as one installs them."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    deno = f"@deno/linux-{machine}-glibc"
    wanted = {"private": True, "dependencies": {"ovsx": "1.1.1", deno: "2.9.6"}}
    modules = installed("stores", wanted)
    return {"ovsx": modules / "ovsx/bin/ovsx", "deno": modules / deno / "deno"}


def test_four_stores_get_a_release_once() -> None:
    """R66: with the programs of Open VSX and of JSR themselves. What nuget.org shows later is
    waited for.
    """
    for tool in ("npm", "jq", "curl"):
        require_tool(tool)
    require_landlock()
    known = stores_programs()
    github = TrustedIndex()
    mcp, vsx, jsr, nuget = McpRegistry(), OpenVsx(), Jsr(), NuGet(hidden=2)

    def read_audience(token: str) -> str:
        return str(read_claims(token)["aud"]) if token in github.id_tokens else ""

    mcp.proves = read_audience
    with contextlib.ExitStack() as stack:
        origins = [stack.enter_context(serving_store(each)) for each in (mcp, vsx, jsr, nuget)]
        made = stack.enter_context(release())
        made.addresses |= {
            "https://registry.modelcontextprotocol.io/v0.1": f"{origins[0]}/v0.1",
            "https://open-vsx.org": origins[1],
            "https://jsr.io": origins[2],
            "https://api.nuget.org": origins[3],
            "https://www.nuget.org": origins[3],
        }
        made.environment |= github.environment(stack.enter_context(served(github)))
        made.environment |= dict.fromkeys(("OVSX_PAT", "JSR_TOKEN", "NUGET_API_KEY"), TOKEN)
        made.link_program("ovsx", known["ovsx"])
        made.add_program("deno", DENO.format(origin=origins[2], program=known["deno"]))
        made.add_program("dotnet", DOTNET.format(python=sys.executable))
        made.write(IN_STORES)

        first = made.run("publish", "--attestations", "off")
        assert first.code == 0, first.out + first.err
        assert {first.outcomes[each] for each in IN_STORES} == {"published"}
        assert list(mcp.published) == [("io.github.acme/cli", "1.4.0")]
        (server,) = mcp.published.values()
        assert [each["version"] for each in server["packages"]] == ["1.4.0"]
        assert list(vsx.published) == [("acme.acme-vscode", "0.4.0")]
        assert "/mod.ts" in jsr.published["@acme/cli", "1.4.0"]["manifest"]
        assert list(nuget.published) == [("acme.client", "1.4.0")]

        second = made.run("publish", "--attestations", "off")
        assert second.code == 0, second.out + second.err
        assert {second.outcomes[each] for each in IN_STORES} == {"already-published"}
        assert [each.pushed for each in (mcp, vsx, jsr, nuget)] == [1, 1, 1, 1]
        said = unmasked(first.out + first.err + second.out + second.err + logs_of(made))
        assert TOKEN not in said
        assert not any(each in said for each in github.id_tokens)
