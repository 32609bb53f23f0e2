"""Somebody who installs what was published into static directories, with the ecosystem's client."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from typing import TYPE_CHECKING

import tomlkit
from packaging.utils import canonicalize_name

from go_workspaces import go, go_environment
from integration import crates
from integration.servers import static_server
from integration.test_cargo_publish import cargo, toolchain
from integration.tools import require_tool
from workspaces import write_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def installed(
    ecosystem: str, registry: Path, wanted: Mapping[str, str], home: Path
) -> set[str] | None:
    """The packages that came along with these versions, themselves included; None where a client
    would first have to fetch more than the packages.
    """
    home.mkdir()
    match ecosystem:
        case "pypi":
            return with_uv(registry, wanted, home)
        case "npm":
            return with_npm(registry, wanted, home)
        case "cargo":
            return with_cargo(registry, wanted, home)
        case "go":
            return with_go(registry, wanted, home)
        case _:
            return None


def with_uv(registry: Path, wanted: Mapping[str, str], home: Path) -> set[str]:
    argv: list[str | Path] = [require_tool("uv"), "pip", "install", "--quiet", "--no-cache"]
    argv += ["--prerelease", "allow", *(f"{name}=={wanted[name]}" for name in wanted)]
    with static_server(registry) as url:
        run([*argv, "--target", home / "into", "--index-url", f"{url}/simple/"], home)
    found = (home / "into").glob("*.dist-info")
    return {canonicalize_name(path.name.partition("-")[0]) for path in found}


def with_npm(registry: Path, wanted: Mapping[str, str], home: Path) -> set[str]:
    write_json(home / "package.json", {"name": "user", "private": True})
    argv: list[str | Path] = [require_tool("npm"), "install", "--no-audit", "--no-fund"]
    argv += ["--cache", home / "cache"]
    with static_server(registry) as url:
        run([*argv, "--registry", url, *(f"{name}@{wanted[name]}" for name in wanted)], home)
    locked = json.loads((home / "package-lock.json").read_text())["packages"]
    return {path.rpartition("node_modules/")[2] for path in locked if path}


def with_cargo(registry: Path, wanted: Mapping[str, str], home: Path) -> set[str]:
    needs = {name: f"={wanted[name]}" for name in wanted}
    package = {"name": "user", "version": "1.0.0", "edition": "2021"}
    (home / "src").mkdir()
    (home / "src" / "lib.rs").write_text("")
    (home / "Cargo.toml").write_text(tomlkit.dumps({"package": package, "dependencies": needs}))
    with static_server(registry) as url:
        crates.write_config(home / "cargo", f"sparse+{url}/", replace=True)
        environment = {**os.environ, **toolchain(home)}
        manifest = ["--manifest-path", str(home / "Cargo.toml")]
        cargo("fetch", "--quiet", *manifest, environment=environment)
    locked = tomllib.loads((home / "Cargo.lock").read_text())["package"]
    return {each["name"] for each in locked} - {"user"}


def with_go(registry: Path, wanted: Mapping[str, str], home: Path) -> set[str]:
    environment = go_environment(home / "home", GOPROXY=registry.as_uri())
    go(home, "mod", "init", "example.com/user", environment=environment)
    go(home, "get", *(f"{name}@{wanted[name]}" for name in wanted), environment=environment)
    listed = go(home, "list", "-m", "-f", "{{.Path}}", "all", environment=environment)
    return {*listed.split()} - {"example.com/user"}


def run(argv: list[str | Path], directory: Path) -> None:
    done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
