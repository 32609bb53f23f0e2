from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest

import fakes
from releasekit.ecosystems.cargo.crate_file import PrebuiltCrates
from releasekit.errors import BuildFailed, PackageError
from releasekit.fields import replace
from releasekit.model import Dependency, Package, PackageId
from unit.cargo.test_cargo_registry import crate

MANIFEST = """\
[package]
name = "demo"
version = "1.0.0"
[dependencies]
serde = "1"
core = "^1.0"
[target."cfg(unix)".dependencies.renamed]
version = "2"
package = "extra"
[dev-dependencies.helper]
version = "3"
"""
DEMO = Package(
    id=PackageId("cargo", "demo"),
    version="1.0.0",
    directory=Path("/demo"),
    manifest=Path("/demo/Cargo.toml"),
    dependencies=tuple(Dependency(on=PackageId("cargo", name)) for name in ("core", "extra")),
)


CRATES = PrebuiltCrates((DEMO,))


def test_a_crate_is_known_by_its_manifest() -> None:
    """Of what it needs, only crates of the workspace count: no path tells them from others."""
    data = io.BytesIO(crate({"Cargo.toml": MANIFEST}))
    found = CRATES.contained(data, Path("demo-1.0.0.crate"))
    assert (found.name, found.version) == ("demo", "1.0.0")
    assert [(need.on.name, need.requirement) for need in found.dependencies] == [
        ("core", "^1.0"),
        ("extra", "2"),
    ]


def test_a_requirement_admits_what_cargo_would_take() -> None:
    """`1.0` is a caret requirement, `=` takes one version."""
    assert CRATES.admits("1.0", "1.2.0")
    assert not CRATES.admits("=1.0.0", "1.2.0")


@pytest.mark.parametrize("name", ["a-1.0.0-rc.1+build.crate", "a-b-2-1.0.0.crate"])
def test_the_version_in_a_name_begins_where_semver_says(name: str) -> None:
    stem = name.removesuffix(".crate")
    crate_name, _, rest = stem.partition("-1")
    text = f'[package]\nname = "{crate_name}"\nversion = "1{rest}"\n'
    data = io.BytesIO(crate({"Cargo.toml": text}, stem))
    assert CRATES.contained(data, Path(name)).version == f"1{rest}"


@pytest.mark.parametrize(
    ("filename", "words"),
    [
        ("demo.crate", "a crate is named NAME-VERSION.crate"),
        ("demo-2.0.0.crate", "is not its package"),
    ],
)
def test_another_file_is_refused_by_its_path(filename: str, words: str) -> None:
    """Whatever is wrong with it, the message begins with its path."""
    data = io.BytesIO(crate({"Cargo.toml": MANIFEST}))
    with pytest.raises(PackageError, match=words) as caught:
        CRATES.contained(data, Path("/dist") / filename)
    assert str(caught.value).startswith(f"/dist/{filename}: ")


def test_a_crate_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0.0.crate"
    path.write_bytes(crate({"Cargo.toml": MANIFEST}))
    given = replace(DEMO, prebuilt=(fakes.artifact(path, path.read_bytes()),))
    into = tmp_path / "into"
    (built,) = asyncio.run(CRATES.complete([given], lambda _: into)).values()
    assert not isinstance(built, BuildFailed)
    assert built[0].path.read_bytes() == path.read_bytes()
