"""One small workspace for each protocol, with its files built already, so that no build tool runs:
`core`, and `app`, which needs it.
"""

from __future__ import annotations

import functools
import io
import json
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import distributions
from hostile import registries
from releasekit.ecosystems.go import module_zip
from workspaces import git, uv_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hostile.registries import Spoken

PROTOCOLS: Final = ("pypi", "npm", "cargo", "go", "maven", "portal")
GROUP: Final = "com.example.acme"
MODULE: Final = "example.com/acme/mono"


@dataclass(frozen=True)
class World:
    """`files` are the workspace's; `flags` and `settings` name the registry as {server}; `names`
    are core and app as results have them.
    """

    files: Mapping[str, bytes]
    flags: tuple[str, ...]
    names: tuple[str, str]
    speak: Callable[[], Spoken]
    settings: str = ""


@functools.cache
def world(protocol: str) -> World:
    return _MADE[protocol]()


def _pypi() -> World:
    with tempfile.TemporaryDirectory() as name:
        root = uv_workspace(Path(name) / "w", {"core": (), "app": ("core",)})
        dist = root / "dist"
        dist.mkdir()
        for package in ("core", "app"):
            of = distributions.package(package)
            distributions.sdist(dist, of)
            distributions.wheel(dist, of, requires=["core"] if package == "app" else [])
        files = files_of(root, ".git")
    flags = ("--pypi-registry", "{server}/legacy/", "--pypi-index", "{server}/simple/")
    return World(files, flags, ("core", "app"), registries.PyPI)


def _npm() -> World:
    files = {"package.json": json.dumps({"private": True, "workspaces": ["packages/*"]}).encode()}
    for package, needs in (("core", {}), ("app", {"@acme/core": "^1.0.0"})):
        document = {"name": f"@acme/{package}", "version": "1.0.0", "dependencies": needs}
        page = json.dumps(document).encode()
        files[f"packages/{package}/package.json"] = page
        files[f"dist/acme-{package}-1.0.0.tgz"] = tarball({"package/package.json": page})
    flags = ("--npm-registry", "{server}/", "--npm-tag", "latest")
    return World(files, flags, ("@acme/core", "@acme/app"), registries.Npm)


def _cargo() -> World:
    top = b'[workspace]\nmembers = ["crates/*"]\nresolver = "2"\n'
    files = {"Cargo.toml": top}
    for package in ("core", "app"):
        lines = ["[package]", f'name = "acme-{package}"', 'version = "1.0.0"', 'edition = "2021"']
        lines += ['license = "MIT"', 'description = "A demo"']
        packed = "\n".join(lines)
        if package == "app":
            packed += '\n[dependencies.acme-core]\nversion = "1.0.0"\n'
            lines += ["[dependencies]", 'acme-core = { path = "../core", version = "1.0.0" }']
        files[f"crates/{package}/Cargo.toml"] = "\n".join([*lines, ""]).encode()
        files[f"crates/{package}/src/lib.rs"] = b""
        stem = f"acme-{package}-1.0.0"
        inside = {f"{stem}/Cargo.toml": packed.encode(), f"{stem}/src/lib.rs": b""}
        files[f"dist/{stem}.crate"] = tarball(inside)
    flags = ("--cargo-registry", "{server}/index/")
    names = ("acme-core", "acme-app")
    return World(files, flags, names, registries.Cargo)


def _go() -> World:
    """The remote is a bare repository beside the workspace; git finds it by {remote}."""
    core = {"go.mod": _mod("core"), "core.go": b"package core\n"}
    known = module_zip.hash_of_zip(registries.module_zip(f"{MODULE}/core@v1.0.0", core))
    sums = f"{MODULE}/core v1.0.0 {known}\n"
    sums += f"{MODULE}/core v1.0.0/go.mod {module_zip.hash_of_mod(core['go.mod'])}\n"
    app = {"go.mod": _mod("app", f"\nrequire {MODULE}/core v1.0.0\n"), "app.go": b"package app\n"}
    modules = {f"{MODULE}/core": core, f"{MODULE}/app": {**app, "go.sum": sums.encode()}}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "w"
        for module, files in modules.items():
            for path, data in files.items():
                write(root, f"{module.removeprefix(MODULE)[1:]}/{path}", data)
        write(root, "releasekit.toml", b'[go]\nversion = "v1.0.0"\nverify = false\n')
        git(root, "init", "--quiet", "--initial-branch", "main")
        git(root, "add", "--all")
        git(root, "commit", "--quiet", "--message", "Start")
        git(root, "remote", "add", "origin", f"https://{MODULE}")
        found = files_of(root)
    names = (f"{MODULE}/core", f"{MODULE}/app")
    return World(
        found, ("--go-proxy", "{server}/"), names, functools.partial(registries.Go, modules)
    )


def _mod(name: str, needs: str = "") -> bytes:
    return f"module {MODULE}/{name}\n\ngo 1.22\n{needs}".encode()


def _maven() -> World:
    flags = ("--maven-registry", "{server}/", "--maven-username", "releaser")
    names = (f"{GROUP}:core", f"{GROUP}:app")
    files = _maven_files()
    return World(files, flags, names, registries.Maven)


def _portal() -> World:
    of = _maven()
    settings = '[maven]\napi = "portal"\nrepository = "{server}/repo/"\n'
    return World(of.files, of.flags, of.names, registries.Portal, settings)


def _maven_files() -> dict[str, bytes]:
    head = '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    modules = "<modules><module>core</module><module>app</module></modules>"
    files = {
        "pom.xml": f"{head}<groupId>{GROUP}</groupId><artifactId>top</artifactId>"
        f"<version>1-SNAPSHOT</version><packaging>pom</packaging>{modules}</project>".encode()
    }
    need = f"<groupId>{GROUP}</groupId><artifactId>core</artifactId><version>1.0.0</version>"
    for name, needs in (("core", ""), ("app", f"<dependency>{need}</dependency>")):
        pom = (
            f"{head}<groupId>{GROUP}</groupId><artifactId>{name}</artifactId>"
            f"<version>1.0.0</version><dependencies>{needs}</dependencies></project>"
        ).encode()
        files[f"{name}/pom.xml"] = files[f"dist/{name}-1.0.0.pom"] = pom
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr(zipfile.ZipInfo("A.class"), name)
        files[f"dist/{name}-1.0.0.jar"] = jar.getvalue()
    return files


def tarball(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def write(root: Path, name: str, data: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def files_of(root: Path, *without: str) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in without
    }


_MADE: Final[Mapping[str, Callable[[], World]]] = {
    "pypi": _pypi,
    "npm": _npm,
    "cargo": _cargo,
    "go": _go,
    "maven": _maven,
    "portal": _portal,
}
