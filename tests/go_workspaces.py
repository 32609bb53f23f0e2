"""Small Go workspaces with a real git remote, and the environment in which go and git find it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from integration.tools import require_tool
from releasekit.errors import BuildFailed
from releasekit.state.directory import built_directory
from workspaces import TWELVE, git

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from releasekit.ecosystems.interface import Target
    from releasekit.model import Artifact, Package

HOST = "github.com/acme/mono"
REMOTE = f"https://{HOST}"
PLACEHOLDER = "v0.0.0-00010101000000-000000000000"


@dataclass(frozen=True)
class Forge:
    """A bare repository that git takes for REMOTE when its home is `home`."""

    bare: Path
    home: Path

    def tags(self) -> dict[str, str]:
        """Tag → the commit it leads to."""
        form = "--format=%(refname:short) %(*objectname)"
        listed = git(self.bare, "for-each-ref", form, "refs/tags")
        return dict(line.split(" ", 1) for line in listed.splitlines())

    def pushes(self) -> list[list[str]]:
        """The tags of each push, in order."""
        log = self.home / "pushes"
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def forge(directory: Path) -> Forge:
    bare, home = directory / "mono.git", directory / "home"
    home.mkdir(parents=True)
    git(directory, "init", "--quiet", "--bare", str(bare))
    hook = bare / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho $(cut -d' ' -f3 | grep ^refs/tags/) >> '{home}/pushes'\n")
    hook.chmod(0o755)
    (home / ".gitconfig").write_text(
        f'[url "file://{bare}"]\n\tinsteadOf = {REMOTE}\n[safe]\n\tdirectory = *\n'
    )
    return Forge(bare, home)


def go_workspace(
    root: Path,
    made: Forge,
    packages: Mapping[str, tuple[str, ...]] = TWELVE,
    *,
    version: str = "1.0.0",
) -> Path:
    """One module per package, in directories of their names, joined by a go.work; pushed."""
    root.mkdir(parents=True, exist_ok=True)
    uses = "".join(f"\t./{name}\n" for name in packages)
    (root / "go.work").write_text(f"go 1.22\n\nuse (\n{uses})\n")
    (root / "VERSION").write_text(f"{version}\n")
    (root / "LICENSE").write_text("Do what you like.\n")
    (root / "releasekit.toml").write_text('[go]\nversion-file = "VERSION"\nverify = false\n')
    for name, needs in packages.items():
        write_module(root / name, name, needs)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "remote", "add", "origin", REMOTE)
    commit_and_push(root, made, "Start")
    return root


def commit_and_push(root: Path, made: Forge, message: str) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)
    subprocess.run(
        ["git", "push", "--quiet", f"file://{made.bare}", "HEAD:refs/heads/main"],
        cwd=root,
        check=True,
    )


def write_module(
    directory: Path,
    name: str,
    needs: tuple[str, ...] = (),
    *,
    text: str = "one",
    required: Mapping[str, str] | None = None,
) -> None:
    """Requirements are placeholders, as go.work allows, unless `required` tells a version."""
    directory.mkdir(parents=True)
    versions = dict.fromkeys(needs, PLACEHOLDER) | dict(required or {})
    lines = "".join(
        f"\t{HOST}/{need} {version} // of this repository\n" for need, version in versions.items()
    )
    requires = f"\nrequire (\n{lines})\n" if versions else ""
    (directory / "go.mod").write_text(f"module {HOST}/{name}\n\ngo 1.22\n{requires}")
    package = identifier(name)
    imports = "".join(f'\t"{HOST}/{need}"\n' for need in versions)
    calls = "".join(f' + " " + {identifier(need)}.Name()' for need in versions)
    (directory / f"{package}.go").write_text(
        f"// Package {package} is {text}.\npackage {package}\n\n"
        + (f"import (\n{imports})\n\n" if versions else "")
        + "// Name is its name, and those of what it needs.\n"
        + f'func Name() string {{ return "{name}"{calls} }}\n'
    )


def require_back(root: Path, name: str, need: str) -> None:
    """A requirement that closes a cycle of modules, for a package that no other one imports."""
    manifest = root / name / "go.mod"
    manifest.write_text(f"{manifest.read_text()}\nrequire {HOST}/{need} {PLACEHOLDER}\n")
    directory = root / name / "back"
    directory.mkdir()
    (directory / "back.go").write_text(
        f'// Package back needs {need}.\npackage back\n\nimport "{HOST}/{need}"\n\n'
        "// Name is that of what it needs.\n"
        f"func Name() string {{ return {identifier(need)}.Name() }}\n"
    )


def identifier(name: str) -> str:
    return name.replace("-", "")


def go_environment(home: Path, **changes: str) -> dict[str, str]:
    """For a go command that shares nothing but compiled packages with anybody."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GOPATH": str(home / "go"),
        "GOCACHE": str(Path(cache) / "go-build"),
        "GOFLAGS": "-modcacherw",
        "GOSUMDB": "off",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        **changes,
    }


def go(where: Path, *arguments: str, environment: Mapping[str, str]) -> str:
    require_tool("go")
    done = subprocess.run(
        ["go", *arguments],
        cwd=where,
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"go {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


async def built(target: Target, packages: list[Package]) -> dict[str, tuple[Artifact, ...]]:
    order = sorted(packages, key=lambda package: len(package.dependencies))
    state = packages[0].directory.parent / ".releasekit"
    results = await target.workspace.build(order, partial(built_directory, state_directory=state))
    made = {}
    for package, result in results.items():
        assert not isinstance(result, BuildFailed), (str(result), result.log)
        made[package.name.rpartition("/")[2]] = result
    return made


async def deploy(
    target: Target, packages: Iterable[Package], artifacts: Mapping[str, tuple[Artifact, ...]]
) -> None:
    assert target.deployment is not None
    assert not target.deployment.whole
    await target.deployment.deploy({package: artifacts[short(package)] for package in packages})


def short(package: Package) -> str:
    return package.id.name.rpartition("/")[2]
