"""Generated workspaces of each ecosystem: what is decided is written whole, and once."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from effort import SEARCHING
from integration.tools import require_tool
from releasekit.__main__ import main
from versions.test_version_command import bare_environment, commit, repository

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    # Of a package: its name and version, and those it needs.
    Named = tuple[str, str]
    Write = Callable[[random.Random, Named, Sequence[Named]], dict[str, str]]

__all__ = ["bare_environment"]

VERSIONS = ("0.0.3", "0.4.2", "1.2.3", "1.9.9", "2.0.0")
MESSAGES = ("fix: a", "feat: b", "feat!: c", "chore: d", "fix!: e (#4)")


def in_python(rng: random.Random, own: Named, needs: Sequence[Named]) -> dict[str, str]:
    def require(name: str, version: str) -> str:
        major, minor, _ = version.split(".")
        shapes = ["", f"=={version}", f">={version}", f"~={major}.{minor}"]
        return name + rng.choice([*shapes, f">={major}.{minor},<{int(major) + 1}"])

    text = (
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "{own[0]}"\nversion = "{own[1]}"\n'
        f"dependencies = {json.dumps([require(*each) for each in needs])}\n"
    )
    return {"pyproject.toml": text, "src/a.py": ""}


def in_npm(rng: random.Random, own: Named, needs: Sequence[Named]) -> dict[str, str]:
    tables: dict[str, dict[str, str]] = {}
    for name, version in needs:
        table = rng.choice(["dependencies", "devDependencies", "peerDependencies"])
        shapes = ["workspace:*", "workspace:^", f"^{version}", f"~{version}", f">={version}"]
        tables.setdefault(table, {})[name] = rng.choice([*shapes, version])
    document = {"name": own[0], "version": own[1], **tables}
    return {"package.json": json.dumps(document, indent=rng.choice([2, None])), "a.js": ""}


def in_cargo(rng: random.Random, own: Named, needs: Sequence[Named]) -> dict[str, str]:
    text = f'[package]\nname = "{own[0]}"\nversion = "{own[1]}"\nedition = "2021"\n'
    for name, version in needs:
        major, minor, _ = version.split(".")
        shapes = [version, f"={version}", f"{major}.{minor}", f"~{version}", f">={version}"]
        table = rng.choice(["dependencies", "dev-dependencies", "build-dependencies"])
        text += f'[{table}.{name}]\npath = "../{name}"\nversion = "{rng.choice(shapes)}"\n'
    return {"Cargo.toml": text, "src/lib.rs": ""}


def in_maven(_: random.Random, own: Named, needs: Sequence[Named]) -> dict[str, str]:
    def name(artifact: str, version: str) -> str:
        said = f"<artifactId>{artifact}</artifactId><version>{version}</version>"
        return f"<groupId>g</groupId>{said}"

    listed = "".join(f"<dependency>{name(*each)}</dependency>" for each in needs)
    text = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"{name(*own)}<dependencies>{listed}</dependencies></project>\n"
    )
    return {"pom.xml": text, "src/main/java/A.java": ""}


def in_go(_: random.Random, own: Named, needs: Sequence[Named]) -> dict[str, str]:
    requires = "".join(f"require x.example/{name} v{version}\n" for name, version in needs)
    text = f"module x.example/{own[0]}\n\n{requires}"
    return {"go.mod": text, "VERSION": f"v{own[1]}\n", "a.go": "package a\n"}


MODULES = "".join(f"<module>p{number}</module>" for number in range(6))
# How a package is written, its source, and what stands at the root.
ECOSYSTEMS: dict[str, tuple[Write, str, dict[str, str]]] = {
    "pypi": (in_python, "src/a.py", {"pyproject.toml": '[tool.uv.workspace]\nmembers = ["p*"]\n'}),
    "npm": (
        in_npm,
        "a.js",
        {"pnpm-workspace.yaml": "packages: ['p*']\n", "package.json": '{"private": true}'},
    ),
    "cargo": (in_cargo, "src/lib.rs", {"Cargo.toml": '[workspace]\nmembers = ["p*"]\n'}),
    "maven": (
        in_maven,
        "src/main/java/A.java",
        {
            "pom.xml": in_maven(random.Random(), ("root", "1"), [])["pom.xml"].replace(
                "<dependencies></dependencies>",
                f"<packaging>pom</packaging><modules>{MODULES}</modules>"
                "<properties><maven.deploy.skip>true</maven.deploy.skip></properties>",
            )
        },
    ),
    "go": (in_go, "a.go", {"releasekit.toml": '[go]\nversion-file = "VERSION"\n'}),
}


@pytest.mark.parametrize("seed", range(30 if SEARCHING else 2))
@pytest.mark.parametrize("ecosystem", ECOSYSTEMS)
def test_what_is_decided_is_what_a_plan_sees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ecosystem: str, seed: int
) -> None:
    """Stable versions, and prereleases where the seed is odd."""
    if ecosystem == "cargo":
        require_tool("cargo")
    rng = random.Random(f"{ecosystem} {seed}")
    write_package, source, files = ECOSYSTEMS[ecosystem]
    # The major version of a Go module is in its path.
    versions = [each for each in VERSIONS if ecosystem != "go" or each < "2"]
    packages = [(f"p{number}", rng.choice(versions)) for number in range(6)]
    for number, own in enumerate(packages):
        needs = [each for each in packages[:number] if rng.random() < 0.4]
        for name, text in write_package(rng, own, needs).items():
            files = {**files, f"{own[0]}/{name}": text}
    if seed % 2:
        config = files.get("releasekit.toml", "")
        files = {**files, "releasekit.toml": f'{config}[version]\nbranches = {{ main = "rc" }}\n'}
    joint = "/v" if ecosystem == "go" else "-v"
    root = repository(tmp_path / "w", files, *(f"{name}{joint}{it}" for name, it in packages))
    for number in range(4):
        path = root / rng.choice(packages)[0] / source
        message = rng.choice(MESSAGES if ecosystem != "go" else MESSAGES[:2])
        commit(root, message, {str(path.relative_to(root)): f"{path.read_text()}// {number}\n"})

    assert main(["version", str(root)]) == 0
    decided = [line.split() for line in capsys.readouterr().out.splitlines() if " → " in line]
    written = {words[0]: words[3] for words in decided}
    assert written
    for message in ("", "chore: release"):
        if message:
            commit(root, message, {})
        assert main(["version", str(root), "--check"]) == 0
    capsys.readouterr()
    assert main(["plan", str(root), "--format=json"]) == 0
    planned = {it["name"]: it["version"] for it in json.loads(capsys.readouterr().out)["packages"]}
    before = dict(packages)
    for name, version in planned.items():
        short = name.rpartition("/")[2].rpartition(":")[2]
        assert version.removeprefix("v") == written.get(name, before[short]).removeprefix("v")
