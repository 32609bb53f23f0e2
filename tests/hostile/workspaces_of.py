"""A small good workspace of each ecosystem, of which cases spoil one file."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING, Final

from workspaces import git

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BACKEND: Final = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
PYPROJECT: Final = f'[project]\nname = "acme"\nversion = "1.0"\n{BACKEND}'
PYPI_ROOT: Final = '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
MEMBER: Final = f'[project]\nname = "acme-a"\nversion = "1.0"\ndependencies = []\n{BACKEND}'
NEEDING: Final = (
    '[project]\nname = "acme-b"\nversion = "1.0"\ndependencies = ["acme-a"]\n'
    f"{BACKEND}[tool.uv.sources]\nacme-a = {{ workspace = true }}\n"
)
CARGO: Final = (
    '[package]\nname = "acme"\nversion = "1.0.0"\nedition = "2021"\n'
    'license = "MIT"\ndescription = "x"\n'
)
GOMOD: Final = "module github.com/acme/mono/a\n\ngo 1.22\n"
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>acme</artifactId>
  <version>1.0.0</version>
</project>
"""
PACKAGE: Final = {"name": "@acme/a", "version": "1.0.0"}
PNPM: Final = "packages:\n  - packages/*\n"

PYPI: Final[Mapping[str, str]] = {
    "w/pyproject.toml": PYPI_ROOT,
    "w/packages/a/pyproject.toml": MEMBER,
    "w/packages/b/pyproject.toml": NEEDING,
}
NPM: Final[Mapping[str, str]] = {
    "w/package.json": json.dumps({"private": True, "workspaces": ["packages/*"]}),
    "w/packages/a/package.json": json.dumps(PACKAGE),
}
PNPM_WORKSPACE: Final[Mapping[str, str]] = {
    "w/package.json": json.dumps({"private": True, "packageManager": "pnpm@10.34.9"}),
    "w/pnpm-workspace.yaml": PNPM,
    "w/packages/a/package.json": json.dumps(PACKAGE),
}
CRATES: Final[Mapping[str, str]] = {"w/Cargo.toml": CARGO, "w/src/lib.rs": ""}
GO: Final[Mapping[str, str]] = {
    "w/a/go.mod": GOMOD,
    "w/a/a.go": "package a\n",
    "w/go.work": "go 1.22\n\nuse ./a\n",
    "w/releasekit.toml": '[go]\nversion = "v1.0.0"\nverify = false\n',
}
MAVEN: Final[Mapping[str, str]] = {"w/pom.xml": POM}


def tarball(**keys: object) -> bytes:
    """What `npm pack` makes of @acme/a, so that a release takes no tool."""
    manifest = json.dumps({**PACKAGE, **keys}).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(manifest)
        archive.addfile(member, io.BytesIO(manifest))
    return packed.getvalue()


BUILT: Final[Mapping[str, str | bytes]] = {**NPM, "dist/acme-a-1.0.0.tgz": tarball()}
PUBLISH: Final = ("publish", "--registry", "dir:{root}/registry", "--dist", "{root}/dist")

# A manifest → the workspace that it is part of.
MANIFESTS: Final[Mapping[str, Mapping[str, str]]] = {
    "w/pyproject.toml": PYPI,
    "w/packages/a/pyproject.toml": PYPI,
    "w/package.json": NPM,
    "w/packages/a/package.json": NPM,
    "w/pnpm-workspace.yaml": PNPM_WORKSPACE,
    "w/Cargo.toml": CRATES,
    "w/a/go.mod": GO,
    "w/go.work": GO,
    "w/pom.xml": MAVEN,
}
# What a Go module cannot do without.
IN_GIT: Final = frozenset({"w/a/go.mod", "w/go.work"})


def commit(root: Path) -> None:
    """Make the workspace a git repository with one commit."""
    work = root / "w"
    git(work, "init", "--quiet")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "Start")
